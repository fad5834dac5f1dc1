"""Reduce the windows of a journal to the records of contention."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.results import Contention, PeersEntry, PeriodEntry


def reduce(lines: Sequence[PeersEntry | PeriodEntry], target: float) -> Iterator[Contention]:
    """A record for each case, way, number of peers and placement. ``target``: relative half-width
    that is ``ok``.
    """
    if not lines:
        return
    from overhead.contention.figures import contention_of

    yield from contention_of(lines, target)
