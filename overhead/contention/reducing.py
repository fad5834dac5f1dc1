"""Reduce the periods of a journal to the records of contention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.results import Contention, PeersEntry, PeriodEntry


def reduce(entries: Sequence[PeersEntry | PeriodEntry], precision: float) -> Iterator[Contention]:
    """The records of contention from these entries of a journal: one for each case, way, number of
    peers and placement. ``precision``: relative half-width of a figure that is ``ok``.

    Most runs have no such entries, and then do without the code that makes figures of them.
    """
    if not entries:
        return
    from overhead.contention.figures import contention_of

    yield from contention_of(entries, precision)
