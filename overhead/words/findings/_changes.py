"""A change between two cases in words: who calls what, both costs, and the intervals."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.findings._changes import Change
from overhead.reading.view import stack_name
from overhead.words.format import MICRO, cost_text, factor_spread, micro_spread
from overhead.words.names import CALLER_WORDS


def stack(change: Change) -> str:
    """The stack inside a sentence: ``Dawn``."""
    return stack_name(change.target)


def called(change: Change) -> str:
    """The caller in words, ``from Python``; both with "and" between where they differ."""
    return " and ".join(dict.fromkeys(CALLER_WORDS[record.caller] for record in (change.before, change.after)))


def instead(change: Change) -> str:
    """Both costs, the second first: ``11.7 instead of 25.6 µs a dispatch from Python``."""
    before, after = cost_text(change.before), cost_text(change.after)
    return f"{after} instead of {before} {MICRO} for each {change.before.unit} {called(change)}"


def against(change: Change) -> str:
    """Both costs, the first first: ``211 µs against 22.8 a dispatch from Python``."""
    before, after = cost_text(change.before), cost_text(change.after)
    return f"{before} {MICRO} for each {change.before.unit} {called(change)}, against {after}"


def intervals(changes: Sequence[Change]) -> str:
    """Each with intervals: ``Dawn from Python: 25.6 (25.0 to 26.3) → 3.21 (3.12 to 3.30) µs, 8.0× (7.6 to 8.4)``."""
    return "; ".join(_interval(change) for change in changes)


def _interval(change: Change) -> str:
    before, after = (record.figure("complete") for record in (change.before, change.after))
    both = f"{micro_spread(before)} → {micro_spread(after)} {MICRO}" if before and after else ""
    return f"{stack(change)} {called(change)}: {both}, {factor_spread(change.times)}"
