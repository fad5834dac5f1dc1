"""How the times of calls and an explained step read in Python: as their commands print them."""

from __future__ import annotations

from overhead.display import register_display
from overhead.explain.record import Alternative, Explanation
from overhead.explain.show import explanation_blocks, timing_blocks
from overhead.explain.timing import CallTiming, Timing
from overhead.words.explain import display as words
from overhead.words.explain.alternatives import alternative_line

register_display(Timing, "timing", words.timing_line, timing_blocks)
register_display(CallTiming, "call", words.call_line)
register_display(Explanation, "explanation", words.explanation_line, explanation_blocks)
register_display(Alternative, "alternative", alternative_line)
