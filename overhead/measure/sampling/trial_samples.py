"""Calibration's own samples: few, bounded, and counted."""

from __future__ import annotations

import statistics

from overhead.measure.fitting.line import MAD
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import Chain, Samples, sample, units

SHORT_NS = 5_000_000
LONG_NS = 20_000_000


class TrialSamples:
    """Samples of one chain; ``seen`` keeps them, ``issued`` counts the units they ran, warm ones included."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain, self.clock = chain, clock
        self.seen: Samples = []
        self.issued = 0

    def run(self, ns: list[int]) -> Samples:
        self.issued += units(self.chain, ns)
        rows = sample(self.chain, ns, self.clock)
        self.seen += rows
        return rows

    def late(self, ns: list[int], idle_ns: float) -> Samples:
        """Samples whose windows open after an idle time; the chain brings its own loop."""
        self.issued += units(self.chain, ns)
        rows: Samples = self.chain.sample_idle(ns, idle_ns / 1e6)  # type: ignore[attr-defined]
        self.seen += rows
        return rows

    def total(self, n: int, least: int = 1) -> tuple[float, float]:
        """ns: the median of T(n) over five samples (three from 5 ms, ``least`` from 20 ms), and their spread.

        The deviation comes from the distance to the nearest below the median, which an interruption cannot widen; 0
        for one sample.
        """
        rows = self.run([n])
        longest = rows[0][2]
        rows += self.run([n] * (4 if longest < SHORT_NS else 2 if longest < LONG_NS else least - 1))
        totals = [row[2] for row in rows]
        middle = statistics.median(totals)
        below = [middle - t for t in totals if t < middle]
        return middle, MAD * statistics.median(below) if below else 0.0

    def least(self) -> dict[int, float]:
        """By n the shortest total so far, ns: an interruption can only lengthen one."""
        shortest: dict[int, float] = {}
        for n, _, total, *_ in self.seen:
            shortest[n] = min(shortest.get(n, float(total)), float(total))
        return shortest

    def issue(self, n: int) -> float:
        """ns: the least ``issue`` of three samples of n (one from 20 ms)."""
        rows = self.run([n])
        rows += self.run([n] * (2 if rows[0][2] < LONG_NS else 0))
        return min(row[1] for row in rows)
