"""Windows of peers in, figures out: cost, issue, work of all together, and what limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.results import Contention, PeersLine, WindowLine


def contention_of(lines: Sequence[PeersLine | WindowLine], target: float) -> Iterator[Contention]:
    """A record for each case, way, number of peers and placement. ``target``: relative half-width that is ``ok``."""
    raise NotImplementedError
