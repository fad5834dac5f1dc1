"""What a chain takes to prepare an n for the first time: compiling and recording are no sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import Chain


class Preparing:
    """Adds up the first ``prepare`` of each n of these chains, ns, up to ``most_ns``: a compile may not run away."""

    def __init__(self, chains: Iterable[Chain], clock: Clock, most_ns: float) -> None:
        self._clock, self._most, self._took = clock, most_ns, 0
        for chain in chains:
            chain.prepare = self._timed(chain.prepare)  # type: ignore[assignment]

    @property
    def ns(self) -> float:
        return min(self._took, self._most)

    def _timed(self, prepare: Callable[[int], None]) -> Callable[[int], None]:
        known: set[int] = set()

        def timed(n: int) -> None:
            if n in known:
                return prepare(n)
            began = self._clock.now()
            prepare(n)
            self._took += self._clock.now() - began
            known.add(n)

        return timed
