"""Reduce the periods of a journal to the records of contention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.results import Contention, PeersEntry, PeriodEntry


def reduce(entries: Sequence[PeersEntry | PeriodEntry], precision: float) -> Iterator[Contention]:
    """A record for each case, way, number of peers and placement. ``precision``: relative
    half-width of a figure that is ``ok``.
    """
    if not entries:
        return
    from overhead.contention.figures import contention_of

    yield from contention_of(entries, precision)
