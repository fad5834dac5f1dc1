"""How the times of calls read in Python: as their command prints them."""

from __future__ import annotations

from overhead.display import register_display
from overhead.timing.show import timing_blocks
from overhead.timing.timing import CallTiming, Timing
from overhead.words.timing import display as words

register_display(Timing, "timing", words.timing_line, timing_blocks)
register_display(CallTiming, "call", words.call_line)
