"""What the profiles ask for: processes, precision, seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Cost = Literal["cheap", "fast", "slow", "polling"]
"""``cheap``: a call on the host alone; ``fast``: unit and wait well under a millisecond; ``slow``: milliseconds;
``polling``: a wait that looks rarely."""

WEIGHT: Mapping[Cost, float] = {"cheap": 0.5, "fast": 1.0, "slow": 2.8, "polling": 8.2}


@dataclass(frozen=True)
class Plan:
    """What a profile asks for. ``target``: relative half-width. ``case_s``: the least a fast case needs a process."""

    processes: int
    target: float
    sampling_s: float | None
    wall_s: float | None
    case_s: float
    most: Mapping[Cost, int] = field(default_factory=dict)
    """Cases at most of a stack of that cost."""
    stretch: bool = True
    """Whether a slow case gets its part of the time that is left over."""
    fewer: Mapping[Cost, int] = field(default_factory=dict)
    """Processes of a target of that cost, where each takes long to start."""
    further: int = 0
    """Processes at most of a case that is noisy after those."""
    reserve: float = 0.0
    """Share of the sampling that is kept for them."""
    min_rounds: int = 6
    max_rounds: int = 400

    def processes_of(self, cost: Cost) -> int:
        """Fresh processes of a target whose own cases cost this."""
        return self.fewer.get(cost, self.processes)

    @property
    def planned_s(self) -> float:
        """Seconds of sampling that are planned from the start."""
        return float("inf") if self.sampling_s is None else self.sampling_s * (1 - self.reserve)

    @property
    def further_s(self) -> float:
        """Seconds of sampling that all further processes may take."""
        return float("inf") if self.sampling_s is None else self.sampling_s * self.reserve


PROFILES: Mapping[str, Plan] = {
    "quick": Plan(
        processes=4,
        target=0.10,
        sampling_s=90.0,
        wall_s=240.0,
        case_s=0.22,
        most={"slow": 8, "polling": 3},
        stretch=False,
        fewer={"slow": 3, "polling": 3},
        further=3,
        reserve=1 / 6,
    ),
    "default": Plan(processes=5, target=0.03, sampling_s=300.0, wall_s=600.0, case_s=0.4, further=15, reserve=0.4),
    "thorough": Plan(processes=10, target=0.01, sampling_s=None, wall_s=None, case_s=2.0, further=5),
}
