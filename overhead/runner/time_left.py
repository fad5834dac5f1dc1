"""How much longer a run takes: from its plan at first, then from what its parts have taken. It reads no clock."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from overhead.profiles import Cost

OPENING_S = 2.5
"""What a process takes to start, open its cases and release them: 1.7 to 3 s for one case of torch, and 2 to 6 s for
each process of all stacks of a machine with two processors, where a compiling stack takes 20."""
BESIDE_SAMPLES_S = 1.0
CASE_BESIDE_SAMPLES_S: Mapping[Cost, float] = {"cheap": 0.3, "fast": 0.3, "slow": 4.0, "polling": 4.0}
"""A process measures this much longer than it samples, and a case adds so much: 2.3 s with 1.1 s of samples of five
cases, 3.1 s with 1.9 s of nine, 5.1 s with 4.0 s of one. A page of a browser: 36 to 44 s with 4.7 s of eight cases."""
_MOST_TIMES_SLOWER = 2.0
"""A first process may have taken so many times as long as later ones do: jax measured for 10 s and then for 8,
PyOpenCL for 10 and then for 5."""
_TRUST_S = 5.0
"""The plan counts like so many seconds of work that took as long as planned, when the rest of the plan is corrected."""


class Durations:
    """What each kind of work takes. Kinds that were not done yet take as much longer than planned as the others did.

    ``planned_s``: by kind.
    """

    def __init__(self, planned_s: Mapping[str, float]) -> None:
        self.planned_s = planned_s
        self._taken_s: dict[str, list[float]] = {}
        self._running_s: dict[str, float] = {}

    def took(self, kind: str, seconds: float) -> None:
        """Work of this kind has ended after so many seconds."""
        self._running_s.pop(kind, None)
        self._taken_s.setdefault(kind, []).append(seconds)

    def runs_for(self, kind: str, seconds: float) -> None:
        """Work of this kind has run for so long, and has not ended."""
        self._running_s[kind] = seconds

    def expected_s(self, kind: str) -> float:
        """Seconds that this kind of work takes, if it is done once more."""
        from_ended_s, running_s = self._from_ended(kind), self._running_s.get(kind, 0.0)
        if running_s <= from_ended_s:
            return from_ended_s
        return running_s if self._taken_s.get(kind) else self._after_first(kind, running_s)

    def rest_s(self, kind: str) -> float:
        """Seconds that the work of this kind, which runs, goes on."""
        return max(0.0, self._from_ended(kind) - self._running_s.get(kind, 0.0))

    def _from_ended(self, kind: str) -> float:
        taken_s = self._taken_s.get(kind, [])
        if not taken_s:
            return self.planned_s.get(kind, 0.0) * self._slower_than_planned()
        return taken_s[-1] if len(taken_s) > 1 else self._after_first(kind, taken_s[0])

    def _after_first(self, kind: str, first_s: float) -> float:
        """What later ones take. A first one that took longer than planned may have been slow for once."""
        quick_s = min(first_s, max(self.planned_s.get(kind, 0.0), first_s / _MOST_TIMES_SLOWER))
        return math.sqrt(first_s * quick_s)

    def _slower_than_planned(self) -> float:
        firsts_s = {kind: taken[0] for kind, taken in self._taken_s.items()}
        for kind, seconds in self._running_s.items():
            if kind not in firsts_s and seconds > self.planned_s.get(kind, 0.0):
                firsts_s[kind] = seconds
        planned_s = sum(self.planned_s.get(kind, 0.0) for kind in firsts_s)
        return (sum(firsts_s.values()) + _TRUST_S) / (planned_s + _TRUST_S)


@dataclass(frozen=True)
class PlannedProcess:
    """A process of a run. ``kind``: the target and the side. ``times``: how many such processes are planned."""

    kind: str
    measuring_s: float
    times: int


def measuring_s(sampled_s: float, cases: int, cost: Cost) -> float:
    """How long a process measures that samples so many cases of this cost for so long, s."""
    return BESIDE_SAMPLES_S + sampled_s + CASE_BESIDE_SAMPLES_S[cost] * cases


@dataclass
class _Group:
    """Processes that are open at the same time."""

    kinds: Sequence[str]
    began_s: float
    is_open: bool = False
    measured_s: dict[str, float] = field(default_factory=dict)

    @property
    def spent_measuring_s(self) -> float:
        """How long its processes have measured, s."""
        return sum(self.measured_s.values())


class RunTimeLeft:
    """The time left of a run of processes in groups, round by round: each kind has a process in each of its rounds.

    All times are seconds since the run began. ``limit_s``: no group begins later, and no round that would end later
    once ``least_rounds`` are measured. ``opening_s``: of a process, as planned.
    """

    def __init__(
        self,
        planned: Iterable[PlannedProcess],
        limit_s: float = math.inf,
        least_rounds: int = 0,
        opening_s: float = OPENING_S,
    ) -> None:
        self._planned = {one.kind: one for one in planned}
        self._limit_s, self._least_rounds = limit_s, least_rounds
        self._rounds = max((one.times for one in self._planned.values()), default=0)
        self._beside = Durations(dict.fromkeys(self._planned, opening_s))
        self._measuring = Durations({one.kind: one.measuring_s for one in self._planned.values()})
        self._round = -1
        self._waiting: list[str] = []
        self._group: _Group | None = None

    def round_s(self, number: int) -> float:
        """Seconds that this round takes; rounds count from 0."""
        return sum(self._process_s(one.kind) for one in self._planned.values() if one.times > number)

    def begin_round(self, number: int, kinds: Iterable[str]) -> None:
        """A round begins; processes of these kinds are due."""
        self._round, self._waiting = number, list(kinds)

    def begin_group(self, kinds: Sequence[str], at_s: float) -> None:
        """Processes of these kinds of the round start."""
        self._group = _Group(kinds, at_s)
        self._waiting = [kind for kind in self._waiting if kind not in kinds]

    def opened(self, at_s: float) -> None:
        """The processes of the group are open, and measure from now on."""
        if self._group is not None:
            self._opens_until(at_s)
            self._group.is_open = True

    def measured(self, kind: str, seconds: float) -> None:
        """The process of this kind in the group has measured for so long."""
        if self._group is not None:
            self._group.measured_s[kind] = seconds
            self._measuring.runs_for(kind, seconds)

    def end_group(self, at_s: float) -> None:
        """The processes of the group have measured and were released."""
        group, self._group = self._group, None
        if group is None:
            return
        beside_s = at_s - group.began_s - group.spent_measuring_s
        for kind in group.kinds:
            self._beside.took(kind, beside_s / len(group.kinds))
            self._measuring.took(kind, group.measured_s.get(kind, 0.0))

    def left_s(self, at_s: float) -> float:
        """Seconds until the run ends."""
        end_s = at_s + self._group_rest_s(at_s)
        begins_last_s = max(end_s, self._limit_s)
        end_s += sum(map(self._process_s, self._waiting))
        for number in range(self._round + 1, self._rounds):
            ends_s = end_s + self.round_s(number)
            if number >= self._least_rounds and ends_s > self._limit_s:
                break
            end_s = ends_s
        return min(end_s, begins_last_s) - at_s

    def _process_s(self, kind: str) -> float:
        return self._beside.expected_s(kind) + self._measuring.expected_s(kind)

    def _group_rest_s(self, at_s: float) -> float:
        """What is left of the group that runs."""
        if self._group is None:
            return 0.0
        kinds = self._group.kinds
        measuring_s = sum(map(self._measuring.rest_s, kinds))
        if self._group.is_open:
            return measuring_s
        self._opens_until(at_s)
        return measuring_s + sum(map(self._beside.rest_s, kinds))

    def _opens_until(self, at_s: float) -> None:
        if self._group is not None:
            each_s = (at_s - self._group.began_s) / len(self._group.kinds)
            for kind in self._group.kinds:
                self._beside.runs_for(kind, each_s)
