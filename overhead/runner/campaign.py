"""A campaign measures every target (a stack on a device) in several new worker processes.

Open workers measure in turns of whole rounds. A worker that dies is started again.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import random
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack

import psutil

from overhead.devices import same_adapter
from overhead.locks import device_lock
from overhead.machine import redacted
from overhead.measure.sampling.events import Settings
from overhead.probes import registry
from overhead.profiles import Plan
from overhead.results import (
    DiedEntry,
    EndedEntry,
    FailedEntry,
    JournalEntry,
    OneOffEntry,
    Target,
    Together,
    because,
    cause_of,
)
from overhead.runner.events import (
    CaseFailed,
    MeasuredAgain,
    MeasuringProcess,
    MoreFailedAlike,
    Opening,
    WorkNeeds,
)
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.output import Journal
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task
from overhead.runner.time_left import OPENING_S, PlannedProcess, RunTimeLeft, measuring_s
from overhead.runner.workers import Job, Pause, Ready, WorkerDied, WorkerProcess
from overhead.workloads import stack_works

_MOST_WORKERS = 16
"""The highest number of workers that are open at the same time."""
_WORKER_BYTES = 3 << 30
"""Memory that one open worker may need for a deep-learning library, its compiler and a device
context.
"""
_LEAST_PROCESSES = 3
"""The wall limit stops the run before a process that would end later only if so many processes are
complete.
"""
_LONG_OPENING_S = 10.0
"""Where opening the cases takes longer, two processes open at a time: one for this replicate, one
for the next.
"""


@dataclasses.dataclass
class InterpreterRun:
    """The tasks that are measured with one interpreter, the journal that gets the results, and what
    failed so far.

    ``together``: set if two interpreters are compared. ``dropped``: keys of the cases that failed,
    which are not measured again. ``ladders``: of each case the sizes of n of its first process;
    empty if the wait of the case polls.
    """

    journal: Journal
    tasks: Sequence[Task]
    interpreter: Interpreter = HERE
    together: Together | None = None
    targets: Sequence[Target] = ()
    dropped: set[str] = dataclasses.field(init=False, default_factory=set)
    ladders: dict[str, list[int]] = dataclasses.field(init=False, default_factory=dict)
    _told: Counter[tuple[str, str, Hashable]] = dataclasses.field(
        init=False, default_factory=Counter
    )

    def store(self, line: JournalEntry, listener: Listener) -> None:
        """Write a line to the journal, and note what later processes need to know."""
        if isinstance(line, FailedEntry):
            self.dropped.add(f"{line.target} {line.case}")
            line = redacted(line)
            self._tell(line, listener)
        if isinstance(line, OneOffEntry) and line.name in ("ladder", "wait_quantum"):
            key = f"{line.target} {line.case}"
            polls = line.name == "wait_quantum"
            self.ladders[key] = (
                [] if polls else self.ladders.get(key, [int(n) for n in line.values])
            )
        self.journal.write([line])

    def _tell(self, line: FailedEntry, listener: Listener) -> None:
        """Tell a failure. Of several with one cause, tell the first, and that there are more."""
        cause = (line.target, line.status, cause_of(line.reason))
        self._told[cause] += 1
        if self._told[cause] == 1:
            listener.note(CaseFailed(line.target, line.case, line.status, line.reason, self.side))
        elif self._told[cause] == 2:
            listener.note(MoreFailedAlike(line.target, line.status, self.side))

    @property
    def side(self) -> str:
        """``base`` or ``new`` if two interpreters are compared; else ''."""
        return self.together.side if self.together else ""


TargetTasks = list[tuple[InterpreterRun, Task]]
"""The task of one target under each interpreter, in the order of their turns."""


@dataclasses.dataclass(frozen=True)
class WorkerLimits:
    """Limits of time, memory and number for the workers of a campaign."""

    silence_s: float = 300.0
    """A worker that sends nothing for this time is killed. Compilations, during which it sends
    nothing, are shorter.
    """
    turn_s: float = 0.5
    """Duration of a turn, rounded to whole rounds. The speed of a machine changes within seconds:
    with short turns all open workers measure under the same conditions.
    """
    memory_bytes: int = dataclasses.field(
        default_factory=lambda: int(psutil.virtual_memory().total * 0.75)
    )
    """Limit of the resident memory of one worker."""
    open_workers: int = dataclasses.field(
        default_factory=lambda: room_for_workers(os.cpu_count() or 1, psutil.virtual_memory().total)
    )
    """The highest number of workers that are open at the same time."""


def room_for_workers(processors: int, memory_bytes: int) -> int:
    """The number of workers that may be open at the same time on a machine of this size; at least
    1.
    """
    return max(1, min(_MOST_WORKERS, processors, memory_bytes // _WORKER_BYTES))


@dataclasses.dataclass
class _OpenWorker:
    """A worker. ``measured_s``: its measuring time so far; ``turn_s``: in this turn; ``deaths``: of
    those before it.
    """

    run: InterpreterRun
    task: Task
    process: int
    worker: WorkerProcess
    measured_s: float = 0.0
    turn_s: float = 0.0
    deaths: int = 0
    is_ready: bool = False

    def end(self) -> None:
        """End the worker that is in this place now."""
        self.worker.end()


class Campaign:
    """Measures the tasks of one or two interpreters in the planned processes.

    With two interpreters, the two workers of a target alternate. The order changes with every
    process. A subclass may replace how workers start, the lock of the devices, and the clock (s).
    """

    def __init__(
        self,
        runs: Sequence[InterpreterRun],
        plan: Plan,
        listener: Listener,
        plugins: Sequence[str],
        rng: random.Random,
        limits: WorkerLimits,
    ) -> None:
        self.runs, self.plan, self.listener, self.plugins, self.rng = (
            runs,
            plan,
            listener,
            list(plugins),
            rng,
        )
        self.limits = limits
        self._seed, self._first = rng.getrandbits(32), rng.getrandbits(1)
        self._process_numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
        self._slow: set[str] = set()
        self._ahead: dict[str, _OpenWorker] = {}
        """By target key, workers of the next replicate that are ready: those of targets that are
        slow to open.
        """
        self._began_s = self._waited_s = 0.0
        self._wall_s = math.inf if plan.wall_s is None else plan.wall_s * len(runs)
        planned, opening_s = _planned_processes(runs), max(OPENING_S, plan.opening_s)
        self._time_left = RunTimeLeft(planned, self._wall_s, _LEAST_PROCESSES, opening_s)

    def start_worker(
        self, job: Job, environment: Mapping[str, str], interpreter: Interpreter
    ) -> WorkerProcess:
        """Start a worker with this job and these environment variables."""
        memory_bytes, silence_s = self.limits.memory_bytes, self.limits.silence_s
        return WorkerProcess(
            job, environment, interpreter, silence_s=silence_s, memory_bytes=memory_bytes
        )

    def lock(self, waiting: Callable[[float], None]) -> AbstractContextManager[None]:
        """A ``with`` block that holds the lock of the devices. ``waiting``: as of
        ``device_lock``.
        """
        return device_lock(waiting)

    def clock(self) -> float:
        """The time of a clock that never goes back, s."""
        return time.monotonic()

    def run(self) -> None:
        """Measure all planned processes that end before the wall limit."""
        self._began_s = self.clock()
        planned = {
            a.case.workload for run in self.runs for task in run.tasks for a in task.assignments
        }
        for work in stack_works().values():
            if work.name in planned and work.needs:
                self.listener.note(WorkNeeds(work.name, work.needs))
        self.listener.begin()
        self._tell_time_left()
        at_once = max(1, self.limits.open_workers // len(self.runs))
        with ExitStack() as self._at_the_end:
            for replicate in range(self.plan.processes):
                targets = self._targets(replicate)
                if (
                    targets
                    and not self._ahead
                    and not self._may_start(replicate, self._elapsed_s())
                ):
                    wall = {"processes": self.plan.processes, "limit_s": self._wall_s}
                    self.listener.note(
                        because("process-would-exceed-wall", measured=replicate, **wall)
                    )
                    return
                due = [_kind(run, task) for own in targets for run, task in own]
                self._time_left.begin_round(replicate, due)
                soon = self._to_open_ahead(replicate, at_once - len(targets))
                for start in range(0, len(targets), at_once):
                    if self._elapsed_s() > self._wall_s:
                        wall = {"processes": self.plan.processes, "limit_s": self._wall_s}
                        self.listener.note(because("wall-reached", process=replicate + 1, **wall))
                        return
                    self._measure_group(targets[start : start + at_once], soon)

    def _to_open_ahead(self, replicate: int, room: int) -> list[TargetTasks]:
        """The slow targets of the next replicate, to open with this one; empty if they are more
        than ``room``.
        """
        found = [
            own
            for own in self._targets(replicate + 1)
            if own[0][1].target.key in self._slow - self._ahead.keys()
        ]
        in_time = self._may_start(
            replicate + 1, self._elapsed_s() + self._time_left.round_s(replicate)
        )
        return found if in_time and len(self.runs) == 1 and len(found) <= room else []

    def _targets(self, replicate: int) -> list[TargetTasks]:
        """The tasks due, by target, in a new random order of targets. Two interpreters alternate in
        order (AB, BA).
        """
        targets: dict[str, TargetTasks] = {}
        for run in self.runs:
            for task in run.tasks:
                if task.processes > replicate:
                    targets.setdefault(task.target.key, []).append((run, task.without(run.dropped)))
        shuffled = list(targets.values())
        self.rng.shuffle(shuffled)
        return [own if (replicate + self._first) % 2 == 0 else own[::-1] for own in shuffled]

    def _may_start(self, replicate: int, at_s: float) -> bool:
        """Whether this replicate ends before the wall limit if it starts then, or has to be
        measured in any case.
        """
        return (
            replicate < _LEAST_PROCESSES
            or at_s + self._time_left.round_s(replicate) <= self._wall_s
        )

    def _tell_time_left(self) -> None:
        """Tell it; waits for other runs are expected to go on as they were."""
        elapsed_s = self._elapsed_s()
        waits = 1 + self._waited_s / elapsed_s if elapsed_s > 0 else 1.0
        self.listener.left(self._time_left.left_s(elapsed_s) * waits)

    def _elapsed_s(self) -> float:
        """Time since this run began to measure, s, without the time that it waited for other
        runs.
        """
        return self.clock() - self._began_s - self._waited_s

    def _measure_group(
        self, group: Sequence[TargetTasks], soon: Sequence[TargetTasks] = ()
    ) -> None:
        """Start the workers of these targets and of those in ``soon``; when all are ready, let the
        first measure.

        None releases its objects before all have measured: that would disturb others on its device.
        """
        kinds = [_kind(run, task) for own in group for run, task in own]
        self._time_left.begin_group(kinds, self._elapsed_s())
        self._tell_time_left()
        with ExitStack() as stack:
            workers, early = self._start_all(group, stack), self._start_all(soon, self._at_the_end)
            ready = [one for one in workers if one.is_ready or self._wait_until_ready(one)]
            self._ahead = {one.task.target.key: one for one in early if self._wait_until_ready(one)}
            self._time_left.opened(self._elapsed_s())
            self._tell_time_left()
            self._take_turns(ready)
            for one in workers:
                one.worker.release()
        self._time_left.end_group(self._elapsed_s())

    def _start_all(self, targets: Sequence[TargetTasks], stack: ExitStack) -> list[_OpenWorker]:
        workers = []
        for own in targets:
            ahead = self._ahead.pop(own[0][1].target.key, None)
            process = (
                ahead.process if ahead else next(self._process_numbers[own[0][1].target.key])
            )  # on both sides
            for run, task in own:
                if one := ahead or self._start(run, task, process):
                    workers.append(one)
                    stack.callback(one.end)
        return workers

    def _start(self, run: InterpreterRun, task: Task, process: int) -> _OpenWorker | None:
        """A new worker for the cases of the task that have not failed; None if there are none."""
        left = task.without(run.dropped)
        if not left.assignments:
            return None
        key = task.target.key
        settings = Settings(
            seconds=left.seconds,
            target=self.plan.precision,
            min_rounds=self.plan.min_rounds,
            max_rounds=self.plan.max_rounds,
            seed=random.Random(f"{self._seed} {key} {process}").getrandbits(32),
            extras=frozenset(left.staged[:1]),
            staged=frozenset(left.staged),
            met=frozenset(left.unpinned(alone=len(run.tasks) == 1)),
            far=frozenset(left.staged[:1] if self.plan.far else ()),
            ladders={a.key: ns for a in left.assignments if (ns := run.ladders.get(a.key))},
        )
        self.listener.working(Opening(key, run.side))
        assignments = list(left.assignments)
        job = Job(
            worker=key,
            process=process,
            assignments=assignments,
            settings=settings,
            plugins=self.plugins,
        )
        worker = self.start_worker(job, task.target.environment, run.interpreter)
        return _OpenWorker(run, left, process, worker)

    def _wait_until_ready(self, one: _OpenWorker) -> bool:
        """Store the lines that the worker sends while it opens its chains. Returns whether a worker
        is ready.
        """
        opening_ns = 0.0
        while True:
            try:
                while not isinstance(answer := one.worker.receive(), Ready):
                    one.run.store(answer, self.listener)  # type: ignore[arg-type]
                    opening_ns += (
                        answer.values[0]
                        if isinstance(answer, OneOffEntry) and answer.name == "open"
                        else 0.0
                    )
            except WorkerDied as death:
                if not self._start_again(one, death):
                    return False
            else:
                one.run.journal.sync()
                one.is_ready = True
                self._slow |= {one.task.target.key} if opening_ns > _LONG_OPENING_S * 1e9 else set()
                return True

    def _take_turns(self, ready: Sequence[_OpenWorker]) -> None:
        """Hold the lock of the devices, and let the workers measure in turns until all have
        ended.
        """
        waiting, asked_s = deque(ready), self.clock()
        with self.lock(self.listener.waiting):
            self._waited_s += self.clock() - asked_s
            self.listener.waited(self.clock() - asked_s)
            while waiting:
                one = waiting.popleft()
                while not (ended := self._turn(one)) and one.turn_s:
                    other = _on_same_device(one.task.target, waiting)
                    if other and self._turn(other, brief=True):
                        waiting.remove(other)
                if not ended:
                    waiting.append(one)
                self._tell_time_left()

    def _turn(self, one: _OpenWorker, *, brief: bool = False) -> bool:
        """Let a worker measure for a turn, with ``brief`` until it pauses. Whether it ended and was
        not replaced.
        """
        self.listener.working(MeasuringProcess(one.task.target.key, one.process, one.run.side))
        began_s = self.clock()
        try:
            ended = self._listen_for_a_turn(one, brief)
        except WorkerDied as death:
            ended = not (self._start_again(one, death) and self._wait_until_ready(one))
        one.measured_s += self.clock() - began_s
        self._time_left.measured(_kind(one.run, one.task), one.measured_s)
        return ended

    def _listen_for_a_turn(self, one: _OpenWorker, brief: bool) -> bool:
        """Store what a worker sends in its turn. Returns whether it has ended; raises
        ``WorkerDied``.
        """
        began_s, one.turn_s = self.clock() - one.turn_s, 0.0
        one.worker.go()
        while True:
            answer = one.worker.receive()
            if isinstance(answer, Pause):
                one.run.journal.sync()
                used_s = self.clock() - began_s
                over = used_s >= self.limits.turn_s
                if over or brief or answer.others:
                    one.turn_s = 0.0 if over else used_s
                    return False
                one.worker.go()
                continue
            one.run.store(answer, self.listener)  # type: ignore[arg-type]
            if isinstance(answer, EndedEntry):
                one.run.journal.sync()
                return True

    def _start_again(self, one: _OpenWorker, death: WorkerDied) -> bool:
        """Record that the worker died, and start another one in its place. Returns whether there is
        one.

        The first death may be an accident. After a later one, the case that the worker was busy
        with has failed, or all of its cases if none is known.
        """
        one.worker.end()
        one.deaths += 1
        key = one.task.target.key
        died = redacted(DiedEntry(worker=key, process=one.process, reason=death.reason))
        one.run.store(died, self.listener)
        if one.deaths == 1:
            self.listener.note(MeasuredAgain(key, one.process, died.reason, one.run.side))
        else:
            assignments = one.task.assignments
            for a in (
                [assignments[death.index]] if 0 <= death.index < len(assignments) else assignments
            ):
                failed = FailedEntry(
                    **a.entry_fields(key, one.process), status="failed", reason=death.reason
                )
                one.run.store(failed, self.listener)
        one.run.journal.sync()
        other = self._start(one.run, one.task, next(self._process_numbers[key]))
        if other is None:
            return False
        one.task, one.process, one.worker = other.task, other.process, other.worker
        return True


def _kind(run: InterpreterRun, task: Task) -> str:
    """What tells the processes of a task from others, where their times are expected."""
    return f"{run.side} {task.target.key}"


def _planned_processes(runs: Sequence[InterpreterRun]) -> list[PlannedProcess]:
    planned = []
    for run in runs:
        for task in run.tasks:
            stack = registry().get(task.target.stack)
            seconds = measuring_s(
                task.seconds, len(task.assignments), stack.cost if stack else "fast"
            )
            planned.append(PlannedProcess(_kind(run, task), seconds, task.processes))
    return planned


def _on_same_device(target: Target, waiting: Sequence[_OpenWorker]) -> _OpenWorker | None:
    """The first waiting worker on this device, or else on one of the same name: some APIs report
    only the name.
    """
    same_name = [one for one in waiting if same_adapter(one.task.target, target)]
    return min(same_name, key=lambda one: one.task.target.device != target.device, default=None)
