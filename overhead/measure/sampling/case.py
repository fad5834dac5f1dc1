"""A case while it is measured: its ladder, its time, its units, and whether it has had enough."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from overhead.errors import Unverified
from overhead.measure.fitting.data import OneOff, Process, Round, Series
from overhead.measure.fitting.line import MAD, Floats
from overhead.measure.fitting.one_process import SLOPES, by_round
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.window import Chain

MOST_PASSES = 4
"""Of the ladder in one round."""
LEAST_ROUNDS = 2
"""A case is sampled this often whatever it costs."""
FEW, MANY, LONG = 10, 120, 0.5
"""No case is steady before so few rounds, nor before so many or half of its time: it has to see some weather."""
ENOUGH = 0.25
"""A case is steady when a process's own half-width is under this share of the target: the rest is between processes."""


@dataclass
class CaseInProgress:
    """``seconds``: its share of the process's time. ``credit``: ns it may spend now. ``cost``: ns a pass.
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
    values: dict[str, list[float]] = field(default_factory=dict)

    def verify(self) -> None:
        """Compare what ran with what was issued."""
        done = self.chain.executed()
        if done != self.issued and self.chain.executes:
            raise Unverified(f"{self.issued} units issued, {done} executed")

    def passes(self, owed: bool) -> int:
        """How many passes this case can pay for now; one on credit while rounds are ``owed``, one once it is steady."""
        if self.steady or self.rounds < LEAST_ROUNDS:
            return 1
        return max(int(owed and self.credit > 0), min(MOST_PASSES, int(self.credit / self.cost)))

    def spend(self, ns: float, passes: int) -> None:
        self.credit -= ns
        self.spent += ns
        self.cost = max(1.0, ns / passes)
        self.rounds += 1

    def keep(self, one: Round, target: float) -> None:
        """Remember each slope of this round, and see whether their medians hold still."""
        series = Series([], self.chain.synchronous, self.chain.wait_spins)
        process = Process([one], {"wait_quantum": OneOff([self.ladder.wait_quantum_ns])})
        for name in SLOPES:
            self.values.setdefault(name, []).extend(by_round(process, series, name, None).values())
        seen = self.rounds >= FEW and self.spent >= LONG * self.seconds * 1e9
        held = all(_half_width(np.array(v)) <= ENOUGH * target for v in self.values.values() if v)
        self.steady = (seen or self.rounds >= MANY) and held and not self.ladder.stairs


def _half_width(values: Floats) -> float:
    """Relative 95 % half-width of the median, from the median absolute deviation."""
    middle = float(np.median(values))
    spread = MAD * float(np.median(np.abs(values - middle)))
    return 2 * 1.2533 * spread / values.size**0.5 / abs(middle) if middle else float("inf")
