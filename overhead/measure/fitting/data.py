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
class Process:
    """What one fresh process gave: its rounds, and by name the values taken once with the n of each (or empty).

    ``reasons``: by name, why there is no value. ``pace``: ns, its canary at its best, 0 where that is not known.
    """

    rounds: Sequence[Round] = ()
    once: Mapping[str, Sequence[float]] = field(default_factory=dict)
    at: Mapping[str, Sequence[int]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    pace: float = 0.0


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
