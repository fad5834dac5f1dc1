"""The campaign: every target's worker, replicate by replicate, in turns of one window at a time on the machine."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence

import psutil

from overhead.profiles import Plan
from overhead.results import EndedLine, FailedLine, JournalLine, Target, Together
from overhead.runner.baton import baton
from overhead.runner.further import chosen, widths
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.journal import Journal, Past, note_ladder
from overhead.runner.progress import Listener
from overhead.runner.protocol import Job, Pause, Ready
from overhead.runner.redaction import redacted
from overhead.runner.schedule import Task
from overhead.runner.spawn import Died, WorkerProcess

SILENCE_S = 300.0
"""A worker that says nothing for so long hangs: longer than any compile, which is a silence of its own, should take."""
TURN_S = 0.5
"""So long a worker measures, in whole rounds, before the next of its group does. A machine's speed wanders within
seconds: in turns each worker sees all of its group's time, not a few seconds of its own."""
ABREAST = 16
"""Workers at most that are open at a time."""
WORKER_BYTES = 3 << 30
"""What an open worker may be expected to take: a deep-learning library, its compiler and a device context."""
START_S = 3.0
"""Rough time for a worker to start, for the time-left display alone."""


def memory_limit() -> int:
    """Bytes of resident memory that a worker may take: what most of this machine has."""
    return int(psutil.virtual_memory().total * 0.75)


@dataclasses.dataclass
class Lane:
    """What is measured under one interpreter into one journal; ``together`` where it is one of two."""

    journal: Journal
    tasks: Sequence[Task]
    past: Past | None = None
    interpreter: Interpreter = HERE
    together: Together | None = None
    dropped: set[str] = dataclasses.field(default_factory=set)
    ladders: dict[str, list[int]] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.ladders = dict(self.past.ladders) if self.past else {}

    def missing(self, further: int = 0) -> dict[str, int]:
        """By target, how many processes of those planned and of so many further ones the journal does not hold yet."""
        done = self.past.done if self.past else {}
        return {t.target.key: max(0, t.processes + further - done.get(t.target.key, 0)) for t in self.tasks}


@dataclasses.dataclass
class _Started:
    """A worker and how far it is; ``spent``: seconds that it has measured, ``turn``: of a turn not over yet."""

    lane: Lane
    task: Task
    process: int
    worker: WorkerProcess
    spent: float = 0.0
    turn: float = 0.0


Team = list[tuple[Lane, Task]]
"""The workers of one target, one a lane, whose turns at the machine follow each other."""


class Campaign:
    """Runs the lanes' tasks for the plan's number of processes, then what is noisy in more; journals what they say.

    With two lanes their workers of a target take turns, and who comes first changes from process to process.
    """

    def __init__(
        self, lanes: Sequence[Lane], plan: Plan, listener: Listener, plugins: list[str], rng: random.Random
    ) -> None:
        self.lanes, self.plan, self.listener, self.plugins, self.rng = lanes, plan, listener, plugins, rng
        self.seed = rng.getrandbits(32)
        self.first = rng.getrandbits(1)
        self.next_process: dict[str, int] = {}
        for past in (lane.past for lane in lanes if lane.past):
            for key, number in past.next_process.items():
                self.next_process[key] = max(number, self.next_process.get(key, 0))
        self.began = self.waited = self.finished = 0.0
        room = min(ABREAST, os.cpu_count() or 1, psutil.virtual_memory().total // WORKER_BYTES)
        self.abreast = max(1, room // len(lanes))

    def run(self) -> None:
        """Every task in every replicate that the past does not hold yet, and the further processes."""
        self.began, self.finished, self.waited = time.monotonic(), 0.0, 0.0
        self.listener.begin(
            sum(
                (t.seconds + START_S) * m[t.target.key]
                for lane in self.lanes
                for m in [lane.missing()]
                for t in lane.tasks
            )
        )
        beside = 0.0
        for replicate in range(self.plan.processes):
            before, due = self._elapsed(), self._due(replicate)
            teams = self._teams(due, replicate)
            for group in _groups(teams, self.abreast):
                if self._elapsed() > self._wall_s():
                    self.listener.note(
                        f"the wall limit of {self._wall_s():.0f} s is reached: "
                        f"the rest of process {replicate + 1} of {self.plan.processes} is not measured"
                    )
                    return
                self._group(group)
            beside = self._elapsed() - before - _sampling(due) if teams else beside
        self._further(beside)

    def _further(self, beside: float) -> None:
        """One more process of what is noisy, as often as the plan allows and it would end in time.

        ``beside``: what the last replicate took beside its sampling, s.
        """
        seconds, due = self.plan.further_s, self._due(0, self.plan.further)
        for replicate in range(self.plan.further):
            before = self._elapsed()
            noisy = widths(due, [lane.journal.path for lane in self.lanes])
            due = [[t.only(noisy.keys()) for t in own] for own in self._due(replicate, self.plan.further)]
            tasks = chosen(due, noisy, seconds / (self.plan.further - replicate))
            teams = self._teams(tasks, self.plan.processes + replicate)
            if not teams or self._elapsed() + beside + _sampling(tasks) > self._wall_s():
                return
            self.listener.note(f"noisy so far, and measured in one more process: {_count(tasks)}")
            self.listener.more(_sampling(tasks) + START_S * sum(map(len, tasks)))
            for group in _groups(teams, self.abreast):
                self._group(group)
            seconds -= _sampling(tasks) / len(self.lanes)
            beside = self._elapsed() - before - _sampling(tasks)

    def _due(self, replicate: int, further: int = 0) -> list[list[Task]]:
        """By lane, the tasks that lack more than so many processes."""
        due = []
        for lane in self.lanes:
            missing = lane.missing(further)
            due.append([t.without(lane.dropped) for t in lane.tasks if missing[t.target.key] > replicate])
        return due

    def _teams(self, due: Sequence[Sequence[Task]], replicate: int) -> list[Team]:
        """The lanes' tasks by target, in a new order, the lanes of each in turn (AB, BA, AB, ...)."""
        teams: dict[str, Team] = {}
        for lane, tasks in zip(self.lanes, due, strict=True):
            for task in tasks:
                teams.setdefault(task.target.key, []).append((lane, task))
        shuffled = list(teams.values())
        self.rng.shuffle(shuffled)
        return [team if (replicate + self.first) % 2 == 0 else team[::-1] for team in shuffled]

    def _wall_s(self) -> float:
        return math.inf if self.plan.wall_s is None else self.plan.wall_s * len(self.lanes)

    def _elapsed(self) -> float:
        """Seconds since this run began to measure, without those that it waited for others."""
        return time.monotonic() - self.began - self.waited

    def _group(self, teams: Sequence[Team]) -> None:
        """Start these workers together; once all are open and quiet, let them measure in turns.

        None releases its objects, or another that shares the device would feel it, before all have measured.
        """
        started: list[_Started] = []
        try:
            for team in teams:
                started.extend(self._start_team(team))
            ready = [s for s in started if self._until_ready(s)]
            tasks = [task for team in teams for _, task in team]
            self._done(START_S * len(tasks))
            self._measure(ready)
            self._done(sum(task.seconds for task in tasks))
            for one in started:
                one.worker.release()
        finally:
            for one in started:
                one.worker.end()

    def _start_team(self, team: Team) -> Iterator[_Started]:
        """The workers of one team; they share the process's number."""
        process = self._number(team[0][1])
        for lane, task in team:
            if started := self._start(lane, task, process):
                yield started

    def _number(self, task: Task) -> int:
        key = task.target.key
        process = self.next_process.get(key, 0)
        self.next_process[key] = process + 1
        return process

    def _start(self, lane: Lane, task: Task, process: int) -> _Started | None:
        left = task.without(lane.dropped)
        if not left.assignments:
            return None
        key = task.target.key
        job = Job(
            worker=key,
            process=process,
            assignments=list(left.assignments),
            extras=list(left.extras),
            staged=list(left.staged),
            slopes_only=left.slopes_only,
            ladders={a.key: ns for a in left.assignments if (ns := lane.ladders.get(a.key))},
            plugins=self.plugins,
            seconds=left.seconds,
            min_rounds=self.plan.min_rounds,
            max_rounds=self.plan.max_rounds,
            target=self.plan.target,
            seed=random.Random(f"{self.seed} {key} {process}").getrandbits(32),
        )
        self.listener.working(_named(f"opening {key}", lane))
        worker = WorkerProcess(
            job,
            task.target.environment,
            interpreter=lane.interpreter,
            silence_s=SILENCE_S,
            memory_bytes=memory_limit(),
        )
        return _Started(lane, left, process, worker)

    def _until_ready(self, one: _Started) -> bool:
        """Keep what the worker says while it opens its chains. A death costs its case alone; the rest starts anew."""
        try:
            while not isinstance(answer := one.worker.listen(), Ready):
                if answer is None:
                    raise Died(-1, "the worker ended before it measured")
                self._keep(one.lane, answer)  # type: ignore[arg-type]
        except Died as death:
            return self._again(one, death) and self._until_ready(one)
        one.lane.journal.sync()
        return True

    def _done(self, seconds: float) -> None:
        """So much of what was planned is over."""
        self.finished += seconds
        self.listener.advance(self.finished)

    def _measure(self, ready: Sequence[_Started]) -> None:
        """Take the baton and hand it round until all have ended."""
        waiting, asked = deque(ready), time.monotonic()
        with baton(lambda: self.listener.note("waiting: another run is measuring on this machine")):
            self.waited += time.monotonic() - asked
            while waiting:
                one = waiting.popleft()
                while not (ended := self._turn(one)) and one.turn:
                    other = _sharing(one.task.target, waiting)
                    if other and self._turn(other, brief=True):
                        waiting.remove(other)
                if not ended:
                    waiting.append(one)
                self.listener.advance(self.finished + sum(min(s.spent, s.task.seconds) for s in ready))

    def _turn(self, one: _Started, *, brief: bool = False) -> bool:
        """Let a worker measure until its turn is over, it asks for another's, or (``brief``) it pauses; whether it has
        ended. A death costs the case it was at, the rest is measured anew."""
        self.listener.working(_named(f"{one.task.target.key}, process {one.process + 1}", one.lane))
        began = time.monotonic()
        try:
            ended = self._heard(one, brief)
        except Died as death:
            ended = not (self._again(one, death) and self._until_ready(one))
        one.spent += time.monotonic() - began
        return ended

    def _heard(self, one: _Started, brief: bool) -> bool:
        """Keep what a worker says in its turn, or a part of it; whether it has ended. Raises ``Died``."""
        began, one.turn = time.monotonic() - one.turn, 0.0
        one.worker.go()
        while (answer := one.worker.listen()) is not None:
            if isinstance(answer, Pause):
                one.lane.journal.sync()
                used = time.monotonic() - began
                over = used >= TURN_S
                if over or brief or answer.others:
                    one.turn = 0.0 if over else used
                    return False
                one.worker.go()
                continue
            self._keep(one.lane, answer)  # type: ignore[arg-type]
            if isinstance(answer, EndedLine):
                one.lane.journal.sync()
                return True
        raise Died(-1, "the worker ended before it had measured everything")

    def _keep(self, lane: Lane, line: JournalLine) -> None:
        if isinstance(line, FailedLine):
            lane.dropped.add(f"{line.target} {line.case}")
            line = redacted(line)
            self.listener.note(_named(f"{line.target} {line.case}: {line.status}: {line.reason}", lane))
        note_ladder(lane.ladders, line)
        lane.journal.write([line])

    def _again(self, one: _Started, death: Died) -> bool:
        """Note the death against the case that caused it, or against all where none did; start the rest anew."""
        one.worker.end()
        assignments = one.task.assignments
        guilty = [assignments[death.index]] if 0 <= death.index < len(assignments) else list(assignments)
        for a in guilty:
            self._keep(
                one.lane,
                FailedLine(
                    target=a.target.key,
                    case=a.case.key,
                    worker=one.task.target.key,
                    process=one.process,
                    status="failed",
                    reason=death.reason,
                ),
            )
        one.lane.journal.sync()
        fresh = self._start(one.lane, one.task, self._number(one.task))
        if fresh is None:
            return False
        one.task, one.process, one.worker = fresh.task, fresh.process, fresh.worker
        return True


def _sharing(target: Target, waiting: Sequence[_Started]) -> _Started | None:
    """The first that waits on this device, or at least on one of its name: not every API tells two of a name apart."""
    named = [one for one in waiting if one.task.target.adapter == target.adapter]
    return min(named, key=lambda one: one.task.target.device != target.device, default=None)


def _sampling(tasks: Sequence[Sequence[Task]]) -> float:
    """Seconds of sampling, all lanes'."""
    return sum(t.seconds for own in tasks for t in own)


def _count(tasks: Sequence[Sequence[Task]]) -> str:
    keys = {a.key for own in tasks for task in own for a in task.assignments}
    return f"{len(keys)} case{'s' * (len(keys) != 1)}"


def _named(text: str, lane: Lane) -> str:
    return f"{lane.together.side}: {text}" if lane.together else text


def _groups(teams: Sequence[Team], size: int) -> Iterator[Sequence[Team]]:
    for start in range(0, len(teams), size):
        yield teams[start : start + size]
