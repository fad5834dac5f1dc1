"""A change between two cases in words: who calls what, both costs, and the intervals."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.findings._changes import Change
from overhead.reading.view import stack_name
from overhead.results import Record
from overhead.words.format import (
    MICRO,
    cost_text,
    ends_text,
    factor,
    factor_spread,
    listed,
    micro_spread,
)
from overhead.words.names import CALLER_WORDS

_MOST_OTHERS = 3
"""Further stacks that a detail names; the tables have all. Chosen, not measured."""


def stack(change: Change) -> str:
    """The stack inside a sentence: ``Dawn``."""
    return stack_name(change.target)


def called(change: Change) -> str:
    """The caller in words, ``from Python``; both with "and" between where they differ."""
    before = CALLER_WORDS[change.before.caller]
    after = CALLER_WORDS[change.after.caller]
    return before if before == after else f"{before} and {after}"


def cost(record: Record) -> str:
    """The cost in us without unit: ``5.79``; a noisy one with its interval, ``1.11 (0.98 to
    1.24)``.
    """
    figure = record.figure("complete")
    if figure is not None and figure.status == "noisy":
        return micro_spread(figure)
    return cost_text(record)


def instead(change: Change) -> str:
    """Both costs, the second first: ``11.7 µs instead of 25.6 µs per dispatch from Python``."""
    before = cost(change.before)
    after = cost(change.after)
    unit = change.before.unit
    return f"{after} {MICRO} instead of {before} {MICRO} per {unit} {called(change)}"


def intervals(change: Change, *, before_first: bool = False) -> str:
    """The intervals of both costs, in the order of the title, and by how much they differ:
    ``Intervals 3.12 to 3.30 and 25.0 to 26.3 µs, 8.0× (7.6 to 8.4) less.``
    """
    records = [change.after, change.before]
    if before_first:
        records.reverse()
    ends = []
    for record in records:
        ns = record.measured("complete")
        ends.append(ends_text(ns / 1e3) if ns is not None else "")
    return f"Intervals {' and '.join(ends)} {MICRO}, {factor_spread(change.times)} less."


def others(changes: Sequence[Change]) -> str:
    """A sentence on the changes behind the first one: ``Also through Dawn (6.9× less).``; '' if
    there are none.
    """
    further = changes[1:]
    named = [f"{stack(change)} ({factor(change.times)} less)" for change in further[:_MOST_OTHERS]]
    if len(further) > _MOST_OTHERS:
        named.append(f"{len(further) - _MOST_OTHERS} more")
    return f"Also through {listed(named)}." if named else ""


def sentences(*texts: str) -> str:
    """The sentences as one text, without empty ones."""
    return " ".join(filter(None, texts))
