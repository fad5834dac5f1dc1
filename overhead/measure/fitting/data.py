"""Input of the fit: raw samples. Its output are figures of the file (``results.Figure``). Times in ns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead.results import OneOffLine, RoundLine

LEGACY_N = 100
"""Published "sequential" figures divide T(n) by this n."""
UNSTAGED = "unstaged"
"""Name of the one-off value with ``issue`` of a chain as long as the one whose calls are timed one by one, ns."""


@dataclass(frozen=True)
class Process:
    """The samples of one fresh process: its rounds, and its one-off values by name.

    ``pace``: the usual time of its canary when nothing slows it down, ns (``best_pace``); 0 if unknown.
    """

    rounds: Sequence[RoundLine] = ()
    one_off: Mapping[str, OneOffLine] = field(default_factory=dict)
    number: int = 0
    pace: float = 0.0

    def values(self, name: str) -> Sequence[float]:
        """The one-off values of this name; empty if the process has none."""
        return self.one_off[name].values if name in self.one_off else ()


@dataclass(frozen=True)
class Series:
    """The samples of one case from all its processes, and how its chain waits and overlaps.

    ``anchored``: measured by a method that takes anchors, so that a line without them was not checked.
    """

    processes: Sequence[Process]
    synchronous: bool = False
    wait_spins: bool = False
    overlap: str = "pipelined"
    anchored: bool = False
