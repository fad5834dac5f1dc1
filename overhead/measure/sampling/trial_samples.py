"""The samples that calibration takes: few, bounded, and counted."""

from __future__ import annotations

import statistics

from overhead.measure.fitting.line import MAD
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import sample

_SHORT_NS = 5_000_000
_LONG_NS = 20_000_000


class TrialSamples:
    """Samples of one chain. ``seen``: all of them; ``issued``: the units that they ran, warm ones included."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain, self.clock = chain, clock
        self.seen: Samples = []
        self.issued = 0

    def run(self, ns: list[int]) -> Samples:
        """One sample of each n."""
        self.issued += self.chain.units(ns)
        rows = sample(self.chain, ns, self.clock)
        self.seen += rows
        return rows

    def run_after_idle(self, ns: list[int], idle_ns: float) -> Samples:
        """One sample of each n, its window opened after an idle time. Only for a chain with its own loop."""
        self.issued += self.chain.units(ns)
        rows = self.chain.sample_idle(ns, idle_ns / 1e6)
        self.seen += rows
        return rows

    def total(self, n: int, least: int = 1) -> tuple[float, float]:
        """The median of T(n), ns, over five samples (three from 5 ms on, ``least`` from 20 ms on), and their standard
        deviation.

        The deviation is estimated from the samples below the median alone, which an interruption does not widen. It is
        0 for one sample.
        """
        rows = self.run([n])
        longest = rows[0][2]
        rows += self.run([n] * (4 if longest < _SHORT_NS else 2 if longest < _LONG_NS else least - 1))
        totals = [row[2] for row in rows]
        middle = statistics.median(totals)
        below = [middle - t for t in totals if t < middle]
        return middle, MAD * statistics.median(below) if below else 0.0

    def shortest_totals(self) -> dict[int, float]:
        """By n the minimum of T(n) so far, ns: interruptions only lengthen a sample."""
        shortest: dict[int, float] = {}
        for n, _, total, *_ in self.seen:
            shortest[n] = min(shortest.get(n, float(total)), float(total))
        return shortest

    def shortest_issue(self, n: int) -> float:
        """The minimum of ``issue``, ns, over three samples of n (one from 20 ms on)."""
        rows = self.run([n])
        rows += self.run([n] * (2 if rows[0][2] < _LONG_NS else 0))
        return min(row[1] for row in rows)
