"""The range of another run in words: what it means, or why there is none, and as text."""

from __future__ import annotations

from overhead.reading.next_run import has_next_run, kinds_known, next_run
from overhead.results import Machine, Record, Value
from overhead.words.format import listed, number
from overhead.words.printed import printed

NEXT_RUN_SENTENCE = (
    "Next run: the range that should contain the figure of another run on this kind of machine in 90 % of cases. The "
    "host's figures of a run shift together: if one is out of range, most will be."
)


def next_run_sentence(machine: Machine) -> str:
    """A sentence on what the range of another run means, or on why this kind of machine has none."""
    if has_next_run(machine):
        return NEXT_RUN_SENTENCE
    return (
        "The range of another run cannot be told on this kind of machine: how much runs differ is known only for "
        f"{listed(kinds_known())}."
    )


def next_run_text(record: Record, machine: Machine, figure: str = "complete") -> str:
    """``next_run`` as text in microseconds without unit, ``22 to 30``; '' where there is no range."""
    return range_text(next_run(record, machine, figure))


def range_text(found: Value | None) -> str:
    """The interval of a value in ns as text in microseconds without unit, ``22 to 30``; '' for None."""
    if found is None:
        return ""
    low, high = found.floor / 1e3, found.ceiling / 1e3
    said = " to ".join(number(Value(end, low, high)) for end in (low, high))
    return printed(said, found / 1e3)
