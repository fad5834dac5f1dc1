"""A case while it is measured: its ladder, its time, its units, and whether it needs more rounds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overhead.errors import Unverified
from overhead.measure.fitting.data import OneOff, Process, Round, Series
from overhead.measure.fitting.line import MAD, Floats
from overhead.measure.fitting.one_process import SLOPES, by_round
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.chain import Chain

_MOST_PASSES = 4
"""Passes of the ladder in one round, at most."""
LEAST_ROUNDS = 2
"""A case is sampled in this many rounds whatever they cost."""
_STEADY_FROM_ROUNDS = 10
"""No case is steady before this many rounds and ``_STEADY_FROM_SHARE`` of its time."""
_STEADY_FROM_SHARE = 0.5
STEADY_ROUNDS = 120
"""From this many rounds on a case may be steady whatever share of its time it has used."""
_STEADY_WIDTH = 0.25
"""A case is steady when its half-width in this process is below this share of the target; the remaining spread is
between processes, and more rounds would not reduce it."""


@dataclass
class CaseInProgress:
    """``seconds``: the case's share of the process's time. ``credit``: ns that it may spend now. ``cost``: ns per pass.
    ``staged``: its calls are also timed one by one."""

    key: str
    chain: Chain
    seconds: float
    ladder: Ladder = field(default_factory=lambda: Ladder((0, 1), 1.0, 1.0, 1.0, 0))
    cost: float = 1.0
    credit: float = 0.0
    issued: int = 0
    rounds: int = 0
    spent: float = 0.0
    reads_cpu: bool = True
    steady: bool = False
    staged: bool = False
    slopes: dict[str, list[float]] = field(default_factory=dict)

    def verify(self) -> None:
        """Compare the units that ran with those issued. Raises ``Unverified``."""
        done = self.chain.executed()
        if done != self.issued and self.chain.executes:
            raise Unverified(f"{self.issued} units issued, {done} executed")

    def passes(self, owed: bool) -> int:
        """The passes that the case can pay for now. ``owed``: rounds are still due to it, so it gets one on credit.
        A steady case gets one."""
        if self.steady or self.rounds < LEAST_ROUNDS:
            return 1
        return max(int(owed and self.credit > 0), min(_MOST_PASSES, int(self.credit / self.cost)))

    def spend(self, ns: float, passes: int) -> None:
        """Book one round of so many passes that took ``ns``."""
        self.credit -= ns
        self.spent += ns
        self.cost = max(1.0, ns / passes)
        self.rounds += 1

    def keep(self, one: Round, target: float) -> None:
        """Store the slopes of this round, and update ``steady`` from the half-widths of their medians."""
        series = Series([], self.chain.synchronous, self.chain.wait_spins)
        process = Process([one], {"wait_quantum": OneOff([self.ladder.wait_quantum_ns])})
        for name in SLOPES:
            self.slopes.setdefault(name, []).extend(by_round(process, series, name, None).values())
        seen = self.rounds >= _STEADY_FROM_ROUNDS and self.spent >= _STEADY_FROM_SHARE * self.seconds * 1e9
        narrow = all(_half_width(np.array(v)) <= _STEADY_WIDTH * target for v in self.slopes.values() if v)
        self.steady = (seen or self.rounds >= STEADY_ROUNDS) and narrow and not self.ladder.stairs


def _half_width(values: Floats) -> float:
    """Relative 95 % half-width of the median, from the median absolute deviation."""
    middle = float(np.median(values))
    spread = MAD * float(np.median(np.abs(values - middle)))
    return 2 * 1.2533 * spread / values.size**0.5 / abs(middle) if middle else float("inf")
