"""The words of an estimate: what goes in (``Series``) and what comes out (``Estimate``). Times in ns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LEGACY_N = 100
"""The n that published "sequential" figures divide by."""
UNSTAGED = "unstaged"
"""The one-off value that holds ``issue`` of a chain of the staged length, ns."""


@dataclass(frozen=True)
class Round:
    """One round of one case: ``[n, issue, total]`` or ``[n, issue, total, wait_cpu]`` rows, and the round's canary."""

    samples: Sequence[Sequence[int]]
    canary: Sequence[int] = ()
    number: int = 0


@dataclass(frozen=True)
class OneOff:
    """Values that a process measured outside the ladder, in the unit of their name.

    ``at``: the n of each value, empty where n has no meaning. ``reason``: why values are missing.
    """

    values: Sequence[float]
    at: Sequence[int] = ()
    reason: str = ""


@dataclass(frozen=True)
class Process:
    """The samples of one fresh process: its rounds, and its one-off values by name.

    ``pace``: the fast end of its canary, ns; 0 if unknown.
    """

    rounds: Sequence[Round] = ()
    one_off: Mapping[str, OneOff] = field(default_factory=dict)
    number: int = 0
    pace: float = 0.0

    def values(self, name: str) -> Sequence[float]:
        """The one-off values of this name; empty if the process has none."""
        return self.one_off[name].values if name in self.one_off else ()


@dataclass(frozen=True)
class Series:
    """One case over all its processes."""

    processes: Sequence[Process]
    synchronous: bool = False
    wait_spins: bool = False
    overlap: str = "pipelined"


@dataclass(frozen=True)
class Estimate:
    """A figure: value and 95 % interval in ``unit``, or a status and a reason why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    status: str = "ok"
    reason: str = ""
    rule: str = ""
    processes: int = 0
    modes: tuple[float, ...] = ()
    unit: str = "ns"


@dataclass(frozen=True)
class Paired:
    """``of`` minus ``against`` and ``of`` over ``against``, formed per round."""

    difference: Estimate
    ratio: Estimate
