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
    return " and ".join(
        dict.fromkeys(CALLER_WORDS[record.caller] for record in (change.before, change.after))
    )


def instead(change: Change) -> str:
    """Both costs, the second first: ``11.7 µs instead of 25.6 µs per dispatch from Python``."""
    before, after = cost_text(change.before), cost_text(change.after)
    return f"{after} {MICRO} instead of {before} {MICRO} per {change.before.unit} {called(change)}"


def intervals(changes: Sequence[Change]) -> str:
    """Each with intervals: ``Dawn from Python: 3.21 (3.12 to 3.30) instead of 25.6 (25.0 to 26.3)
    µs, 8.0× less``.
    """
    return ". ".join(_interval(change) for change in changes)


def _interval(change: Change) -> str:
    before, after = (record.figure("complete") for record in (change.before, change.after))
    both = (
        f"{micro_spread(after)} instead of {micro_spread(before)} {MICRO}"
        if before and after
        else ""
    )
    return f"{_capital(stack(change))} {called(change)}: {both}, {factor_spread(change.times)} less"


def _capital(name: str) -> str:
    """The name at the beginning of a sentence: only its article changes, as names keep their own
    first letter.
    """
    return name.replace("the ", "The ", 1) if name.startswith("the ") else name
