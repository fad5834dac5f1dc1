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
    before = CALLER_WORDS[change.before.caller]
    after = CALLER_WORDS[change.after.caller]
    return before if before == after else f"{before} and {after}"


def instead(change: Change) -> str:
    """Both costs, the second first: ``11.7 µs instead of 25.6 µs per dispatch from Python``."""
    before = cost_text(change.before)
    after = cost_text(change.after)
    unit = change.before.unit
    return f"{after} {MICRO} instead of {before} {MICRO} per {unit} {called(change)}"


def intervals(changes: Sequence[Change]) -> str:
    """Each with intervals: ``Dawn from Python: 3.21 (3.12 to 3.30) instead of 25.6 (25.0 to 26.3)
    µs, 8.0× less``.
    """
    return ". ".join(_interval(change) for change in changes)


def _interval(change: Change) -> str:
    """A change, such as from Python to compiled code, with both intervals: ``Dawn from Python: 3.21
    (3.12 to 3.30) instead of 25.6 (25.0 to 26.3) µs, 8.0× less``.
    """
    before = change.before.figure("complete")
    after = change.after.figure("complete")
    both = ""
    if before is not None and after is not None:
        both = f"{micro_spread(after)} instead of {micro_spread(before)} {MICRO}"
    subject = f"{_capital(stack(change))} {called(change)}"
    return f"{subject}: {both}, {factor_spread(change.times)} less"


def _capital(name: str) -> str:
    """The name at the beginning of a sentence: only its article changes, as names keep their own
    first letter.
    """
    return name.replace("the ", "The ", 1) if name.startswith("the ") else name
