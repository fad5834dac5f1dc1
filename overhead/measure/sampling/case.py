"""A case while it is measured: its ladder, its time and its units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from overhead.errors import Unverified
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.chain import Chain
from overhead.results import OneOffLine

_MOST_PASSES = 4
"""Passes of the ladder in one round, at most."""
LEAST_ROUNDS = 2
"""A case is sampled in this many rounds whatever they cost."""


@dataclass
class CaseInProgress:
    """``seconds``: the case's share of the process's time. ``credit``: ns that it may spend now. ``cost``: ns per pass.
    ``staged``: its calls are also timed one by one. ``names``: the fields of its lines that name it and the process."""

    key: str
    chain: Chain
    seconds: float
    ladder: Ladder = field(default_factory=lambda: Ladder((0, 1), 1.0, 1.0, 1.0, 0))
    cost: float = 1.0
    credit: float = 0.0
    issued: int = 0
    rounds: int = 0
    reads_cpu: bool = True
    staged: bool = False
    names: Mapping[str, Any] = field(default_factory=dict)

    def once(self, name: str, values: Sequence[float] = (), at: Sequence[int] = (), reason: str = "") -> OneOffLine:
        """The line with values that the case measured outside the ladder, or with the reason why there are none."""
        return OneOffLine(**self.names, name=name, values=list(values), at=list(at), reason=reason)

    def verify(self) -> None:
        """Compare the units that ran with those issued. Raises ``Unverified``."""
        done = self.chain.executed()
        if done != self.issued and self.chain.executes:
            raise Unverified(f"{self.issued} units issued, {done} executed")

    def passes(self, owed: bool) -> int:
        """The passes that the case can pay for now. ``owed``: rounds are still due to it, so it gets one on credit."""
        if self.rounds < LEAST_ROUNDS:
            return 1
        return max(int(owed and self.credit > 0), min(_MOST_PASSES, int(self.credit / self.cost)))

    def spend(self, ns: float, passes: int) -> None:
        """Book one round of so many passes that took ``ns``."""
        self.credit -= ns
        self.cost = max(1.0, ns / passes)
        self.rounds += 1
