"""The run-to-run range in words: what it means, or that there is none, and as text."""

from __future__ import annotations

from overhead.reading.next_run import has_next_run, next_run
from overhead.results import Machine, Record, Value
from overhead.words.format import number
from overhead.words.printed import printed

NEXT_RUN_SENTENCE = (
    "Run-to-run range: 9 of 10 other runs on this kind of machine put the cost in this range. The"
    " CPU-bound costs of a run move together: if one is outside of its range, most are."
)
NOT_KNOWN = (
    "Run-to-run range: not known for this kind of machine. A second run shows how much runs differ."
)


def next_run_sentence(machine: Machine) -> str:
    """A sentence on what the run-to-run range means, or that this kind of machine has none."""
    if has_next_run(machine):
        return NEXT_RUN_SENTENCE
    return NOT_KNOWN


def next_run_text(record: Record, machine: Machine, figure: str = "complete") -> str:
    """``next_run`` as text in microseconds without unit, ``22 to 30``; '' where there is no
    range.
    """
    return range_text(next_run(record, machine, figure))


def range_text(found: Value | None) -> str:
    """The range in which another run would put a cost, as text in microseconds without unit: ``22
    to 30``; '' for None. ``found``: the cost in ns, with that range as its interval.
    """
    if found is None:
        return ""
    low, high = found.floor / 1e3, found.ceiling / 1e3  # the ends of the interval, in µs
    # Both ends get the digits that the range allows.
    ends = [number(Value(end, low, high)) for end in (low, high)]
    return printed(" to ".join(ends), found / 1e3)
