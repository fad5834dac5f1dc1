"""How an explained step reads in Python: as its command prints it."""

from __future__ import annotations

from overhead.display import register_display
from overhead.explaining.record import Alternative, Explanation
from overhead.explaining.show import explanation_blocks
from overhead.words.explaining.alternatives import alternative_line
from overhead.words.explaining.display import explanation_line

register_display(Explanation, "explanation", explanation_line, explanation_blocks)
register_display(Alternative, "alternative", alternative_line)
