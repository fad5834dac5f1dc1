"""Who takes the CPU time, in words."""

from __future__ import annotations

from overhead.reading.host_shares import HostShares, ShareDoubt
from overhead.results import Caller
from overhead.words.format import MICRO
from overhead.words.names import CALLER_WORDS

DOUBTS: dict[ShareDoubt, str] = {"": "", "below-zero": "below zero", "unclear": "too uncertain"}
NOT_RESOLVED = "not resolved"
"""What stands in place of a share whose interval reaches below zero."""
ALL_OF_IT = "all CPU time"
PART_OF_ANOTHER, NO_LAYER = "part of a layer above", "for comparison only"
CALLS_TITLE = f"The calls of a dispatch, each timed by itself, {MICRO}"
MINIMAL_PROGRAM = "a minimal Vulkan program"


def case(shares: HostShares) -> str:
    """Pattern, parameters, and the caller unless it is Python: ``per-k k=16``."""
    label = shares.target.pattern_label(shares.top)
    caller = shares.top.caller
    return label if caller == "binding" else f"{label}, {CALLER_WORDS[caller]}"


def called_through(target: str, caller: Caller) -> str:
    """The heading of a column: a library, and who calls it."""
    return f"{target}, {CALLER_WORDS[caller]}"


def title(device: str) -> str:
    """The title of the table of layers. ``device``: the one that all cases ran on, or ''."""
    question = "Who takes the CPU time"
    return f"{question}, {device}" if device else question
