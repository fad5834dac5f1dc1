"""The time left of a run: first by its plan, then by how long its processes took.

Callers say what happened and when, in seconds since the run began. Nothing here reads a clock, so
tests need none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from overhead.profiles import Cost

OPENING_S = 2.5
"""What a process takes beside measuring: to start, to open its cases and to release them.

Measured: 1.7 to 3 s for one case of torch; 2 to 6 s for each process of a run of all stacks on a
machine with two CPU cores, but 20 s for a stack that compiles.
"""
BESIDE_SAMPLES_S = 1.0
CASE_BESIDE_SAMPLES_S: Mapping[Cost, float] = {
    "cheap": 0.3,
    "fast": 0.3,
    "slow": 4.0,
    "polling": 4.0,
}
"""What a process takes to measure beside its samples: 1 s, and so much more for each of its cases.

| cases | samples, s | measured in, s | expected, s |
|---|---|---|---|
| 5 | 1.1 | 2.3 | 3.6 |
| 9 | 1.9 | 3.1 | 5.6 |
| 1 | 4.0 | 5.1 | 5.3 |
| 8 in a page of a browser | 4.7 | 36 to 44 | 37.7 |

The first round may be planned too long; what its processes take corrects the rounds after it."""
_MOST_TIMES_SLOWER = 2.0
"""A first process may take so many times as long as later ones: jax measured for 10 s and then for
8, PyOpenCL for 10 and then for 5.
"""
_TRUST_S = 5.0
"""How much the plan counts when its rest is corrected: like so many seconds of work that took as
long as planned.

Chosen, not measured. Without it, a first process of 1 s that takes 2 would double the time left of
the whole run.
"""


class Durations:
    """How long work takes that is done again and again, by its kind: first as planned
    (``planned_s``, seconds by kind), then as it took.

    Work of a kind that was not done yet is expected to exceed its plan as much as the work that was
    done.
    """

    def __init__(self, planned_s: Mapping[str, float]) -> None:
        self.planned_s = planned_s
        # By kind: how long each work that ended took, in order; and how long the one that runs now
        # has run so far.
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
        """Seconds that work of this kind is expected to take if it is done once more: as long as
        the last of it, or as the one that runs now if that is longer.
        """
        # The expectation as if nothing ran now: by the last work that ended, or by the plan.
        from_ended_s = self._from_ended_s(kind)
        running_s = self._running_s.get(kind, 0.0)
        if running_s <= from_ended_s:
            return from_ended_s
        # Work that runs for longer than expected shows that more time is needed, before it has
        # ended.
        is_first = not self._taken_s.get(kind)
        return self._later_s(kind, running_s) if is_first else running_s

    def rest_s(self, kind: str) -> float:
        """Seconds until the work of this kind that runs now has ended."""
        running_s = self._running_s.get(kind, 0.0)
        return max(0.0, self._from_ended_s(kind) - running_s)

    def _from_ended_s(self, kind: str) -> float:
        """Seconds that work of this kind takes, by the last one that ended, or by the plan where
        none has.
        """
        taken_s = self._taken_s.get(kind, [])
        # Nothing of this kind has ended: its plan counts, corrected by how many times as long as
        # planned other work took.
        if not taken_s:
            return self.planned_s.get(kind, 0.0) * self._times_planned()
        if len(taken_s) == 1:  # a first one may be slow for once
            return self._later_s(kind, taken_s[0])
        return taken_s[-1]

    def _later_s(self, kind: str, first_s: float) -> float:
        """Seconds that later work of this kind is expected to take, after the first took
        ``first_s``.

        A first one may be slow for once: it compiles or fills caches. Later ones take between the
        plan, or ``first_s / _MOST_TIMES_SLOWER`` if that is more, and ``first_s``. The geometric
        mean of both is expected.
        """
        # The least that later ones take: the plan, but at least half of the first, and not more
        # than the first.
        planned_s = self.planned_s.get(kind, 0.0)
        least_s = max(planned_s, first_s / _MOST_TIMES_SLOWER)
        least_s = min(least_s, first_s)
        return math.sqrt(first_s * least_s)

    def _times_planned(self) -> float:
        """How many times as long as planned the work took so far, to correct the plan of work that
        is still to come. What counts is the first work of each kind, and of a kind without any the
        work that runs now, if it already takes longer than planned.
        """
        # By kind, how long its first work took. Later work of a kind is expected from the kind
        # itself.
        firsts_s = {kind: taken_s[0] for kind, taken_s in self._taken_s.items()}
        # Work that still runs counts once it is late: it already shows that the plan is too short.
        for kind, running_s in self._running_s.items():
            is_late = running_s > self.planned_s.get(kind, 0.0)
            if is_late and kind not in firsts_s:
                firsts_s[kind] = running_s
        taken_s = sum(firsts_s.values())
        planned_s = sum(self.planned_s.get(kind, 0.0) for kind in firsts_s)
        # ``_TRUST_S`` on both sides, so that a short first work does not change the plan much.
        return (taken_s + _TRUST_S) / (planned_s + _TRUST_S)


@dataclass(frozen=True)
class PlannedProcess:
    """A process that is planned ``times`` times, once in each of the first rounds.

    ``kind``: what it measures, and in which interpreter of a run with two.
    """

    kind: str
    measuring_s: float
    times: int


def measuring_s(sampled_s: float, cases: int, cost: Cost) -> float:
    """Seconds that a process measures. Its samples take ``sampled_s``, and are of ``cases`` cases
    of this cost.
    """
    return BESIDE_SAMPLES_S + sampled_s + CASE_BESIDE_SAMPLES_S[cost] * cases


@dataclass
class _Group:
    """Processes that are open at the same time, and measure in turns.

    ``is_open``: all are ready. ``measured_s``: what each has measured so far, by kind.
    """

    kinds: Sequence[str]
    began_s: float
    is_open: bool = False
    measured_s: dict[str, float] = field(default_factory=dict)

    @property
    def spent_measuring_s(self) -> float:
        """How long all processes of the group have measured, s."""
        return sum(self.measured_s.values())


class RunTimeLeft:
    """The time left of a run. It has rounds, each with a process of each kind that is due (a kind
    is what a process measures); the processes of a round run in groups, which are open together.
    ``limit_s``: no group begins later. A round that would end later is left out, unless it is one
    of the first ``least_rounds``. ``opening_s``: what a process should take beside measuring
    (``OPENING_S``).

    Two times are kept of each kind: while its process opens and ends, and while it measures.
    """

    def __init__(
        self,
        planned: Iterable[PlannedProcess],
        limit_s: float = math.inf,
        least_rounds: int = 0,
        opening_s: float = OPENING_S,
    ) -> None:
        # By kind the planned process; how many rounds there are; and by kind the seconds that each
        # part of a process is planned to take.
        self._planned: dict[str, PlannedProcess] = {}
        self._rounds = 0
        opening_of_kinds_s: dict[str, float] = {}
        measuring_of_kinds_s: dict[str, float] = {}
        for process in planned:
            self._planned[process.kind] = process
            # ``times``: in how many rounds, from the first on, such a process is measured.
            self._rounds = max(self._rounds, process.times)
            opening_of_kinds_s[process.kind] = opening_s
            measuring_of_kinds_s[process.kind] = process.measuring_s
        # What a process takes beside measuring: to open and to end.
        self._beside = Durations(opening_of_kinds_s)
        self._measuring = Durations(measuring_of_kinds_s)
        self._limit_s = limit_s
        self._least_rounds = least_rounds
        # The round that runs (-1 before the first), and its kinds whose group has not begun.
        self._round = -1
        self._waiting: list[str] = []
        self._group: _Group | None = None

    def round_s(self, number: int) -> float:
        """Seconds that this round takes; rounds count from 0."""
        seconds = 0.0
        for kind, process in self._planned.items():
            if process.times > number:
                seconds += self._process_s(kind)
        return seconds

    def begin_round(self, number: int, kinds: Iterable[str]) -> None:
        """A round begins, which has processes of these kinds."""
        self._round = number
        self._waiting = list(kinds)

    def begin_group(self, kinds: Sequence[str], at_s: float) -> None:
        """A group of the round's processes starts, of these kinds."""
        self._group = _Group(kinds, at_s)
        self._waiting = [kind for kind in self._waiting if kind not in kinds]

    def opened(self, at_s: float) -> None:
        """The processes of the group are open, and measure from now on."""
        if self._group is not None:
            self._note_opening(self._group, at_s)
            self._group.is_open = True

    def measured(self, kind: str, seconds: float) -> None:
        """The process of this kind in the group has measured for so long, all its turns
        together.
        """
        if self._group is not None:
            self._group.measured_s[kind] = seconds
            self._measuring.runs_for(kind, seconds)

    def end_group(self, at_s: float) -> None:
        """The processes of the group have measured and were released at this time. Notes how long
        each took, from which later times are expected.
        """
        group, self._group = self._group, None
        if group is None:
            return
        # From the start of the group to its end: opening, measuring and releasing.
        took_s = at_s - group.began_s
        # Processes open at the same time. Each counts for an equal part of what the group took
        # beside measuring.
        beside_s = (took_s - group.spent_measuring_s) / len(group.kinds)
        for kind in group.kinds:
            self._beside.took(kind, beside_s)
            self._measuring.took(kind, group.measured_s.get(kind, 0.0))

    def left_s(self, at_s: float) -> float:
        """Seconds until the run ends, from the time ``at_s`` on: the rest of the group that runs,
        the other processes of its round, and the rounds that will still be measured.
        """
        # The processes of this round whose group has not begun run after the group that runs.
        group_ends_s = at_s + self._group_rest_s(at_s)
        # ``_process_s``: what a process measures, and its part of the opening and ending.
        ends_s = group_ends_s + sum(map(self._process_s, self._waiting))
        for number in range(self._round + 1, self._rounds):
            round_ends_s = ends_s + self.round_s(number)
            may_be_left_out = number >= self._least_rounds
            if may_be_left_out and round_ends_s > self._limit_s:
                break
            ends_s = round_ends_s
        # The group that runs may end after the limit; no other one begins after it.
        latest_s = max(group_ends_s, self._limit_s)
        return min(ends_s, latest_s) - at_s

    def _process_s(self, kind: str) -> float:
        """What a process of this kind takes in all."""
        return self._beside.expected_s(kind) + self._measuring.expected_s(kind)

    def _group_rest_s(self, at_s: float) -> float:
        """Seconds that are left of the group that runs; 0 if none does. While its processes open,
        their opening is left too.
        """
        group = self._group
        if group is None:
            return 0.0
        # They measure in turns, so their times add up.
        measuring_s = sum(map(self._measuring.rest_s, group.kinds))
        if group.is_open:
            return measuring_s
        # ``_beside``: what processes take beside measuring, here to open. Noted also now: an
        # opening that takes longer than expected tells, before it has ended, that later ones will
        # take longer.
        self._note_opening(group, at_s)
        return measuring_s + sum(map(self._beside.rest_s, group.kinds))

    def _note_opening(self, group: _Group, at_s: float) -> None:
        """Note how long each process of the group has been opening, as an equal part of the time of
        the group.
        """
        # Processes of a group open side by side, so the time of the group is not the time of each:
        # it is shared out, as ``end_group`` does too.
        each_s = (at_s - group.began_s) / len(group.kinds)
        for kind in group.kinds:
            self._beside.runs_for(kind, each_s)
