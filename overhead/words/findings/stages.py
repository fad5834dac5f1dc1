"""The finding on the calls of a dispatch in words."""

from __future__ import annotations

from overhead.reading.findings.stages import LongestStage, Stage, StagesTold
from overhead.reading.plain_text import plain
from overhead.reading.view import stack_name
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import MICRO, listed, number, spread
from overhead.words.names import CALLER_WORDS


@words_for(StagesTold)
def stages(told: StagesTold) -> FindingWords:
    """Which call of a dispatch takes most, through each library."""
    first = told.found[0]
    longest = [_longest(found) for found in told.found]
    unit = first.record.unit
    title = (
        f"Spare the most expensive call of a {unit}: {CALLER_WORDS[first.record.caller]},"
        f" {listed(longest)}."
    )
    intervals = []
    for found in told.found:
        both = f"{_call(found.longest)}, then {_call(found.second)}"
        intervals.append(f"{stack_name(found.target)}: {both}")
    timed = "Each call was timed by itself."
    return FindingWords(title, f"{'; '.join(intervals)} ({MICRO}). {timed}")


def _longest(found: LongestStage) -> str:
    """``submit takes 10.7 µs through wgpu-native``."""
    name = plain(found.longest.name, 30)
    time = number(found.longest.time / 1e3)
    return f"{name} takes {time} {MICRO} through {stack_name(found.target)}"


def _call(stage: Stage) -> str:
    """``submit 10.7 (9.9 to 11.6)``."""
    return f"{plain(stage.name, 30)} {spread(stage.time / 1e3)}"
