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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
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
from overhead.runner.workers import Assignment, Job, Pause, Ready, WorkerDied, WorkerProcess
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
for the next. On a machine with an H100 only torch-compile took longer, 16 s
(tests/runner/test_whole_run.py); others took at most 7 s.
"""


@dataclasses.dataclass
class InterpreterRun:
    """The tasks that are measured with one interpreter, the journal that gets the results, and what
    failed so far. ``together``: set if two interpreters are compared. ``dropped``: keys of the
    cases that failed, which are not measured again. ``ladders``: for each case the numbers of units
    n that its first process measured chains of, so that later processes measure the same; empty if
    the wait of the case polls. ``_told``: how often a failure came, by target, status and cause.
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

    def store(self, entry: JournalEntry, listener: Listener) -> None:
        """Write what a worker sent to the journal, and note what later processes need to know:
        which cases have failed, and which numbers of units a case is measured with.
        """
        if isinstance(entry, FailedEntry):
            self.dropped.add(f"{entry.target} {entry.case}")
            # Its reason may name paths or the user of this machine: they are replaced.
            entry = redacted(entry)
            self._tell(entry, listener)
        if isinstance(entry, OneOffEntry):
            self._note_ladder(entry)
        # All entries go to the journal, also those that were noted.
        self.journal.write([entry])

    def _note_ladder(self, entry: OneOffEntry) -> None:
        """Note the ladder of a case: the numbers of units that its first process chose to measure
        chains of, so that later ones measure the same.

        A wait that polls ends only at its next poll, so T(n) has steps, and every process has to
        find by itself which n lie at their edges. The entry ``wait_quantum`` tells of such a wait.
        """
        key = f"{entry.target} {entry.case}"
        if entry.name == "wait_quantum":
            # An empty ladder is handed to no process, and no later entry replaces it.
            self.ladders[key] = []
        elif entry.name == "ladder" and key not in self.ladders:
            self.ladders[key] = [int(n) for n in entry.values]

    def _tell(self, entry: FailedEntry, listener: Listener) -> None:
        """Tell the user of a failure of a case. Where several cases of a target fail from the same
        cause, only the first is told, and with the second that there are more.
        """
        cause = (entry.target, entry.status, cause_of(entry.reason))
        self._told[cause] += 1
        if self._told[cause] == 1:
            listener.note(
                CaseFailed(entry.target, entry.case, entry.status, entry.reason, self.side)
            )
        elif self._told[cause] == 2:
            listener.note(MoreFailedAlike(entry.target, entry.status, self.side))

    @property
    def side(self) -> str:
        """``base`` or ``new`` if two interpreters are compared; else ''."""
        return self.together.side if self.together else ""


@dataclasses.dataclass(frozen=True)
class _Due:
    """A task that is due under an interpreter."""

    run: InterpreterRun
    task: Task

    @property
    def kind(self) -> str:
        """What tells the processes of this task from others, where their times are expected."""
        return f"{self.run.side} {self.task.target.key}"


@dataclasses.dataclass(frozen=True)
class TargetTasks:
    """The task of one target under each interpreter, in the order of their turns."""

    key: str
    due: Sequence[_Due]


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
    """The place of one worker process (``worker``), which measures the cases of ``task``; after its
    death another one has its place.

    ``process``: its number among the processes of the target. ``opening_ns``: how long its cases
    took to open. ``measured_s``: its measuring time so far; ``turn_s``: what it has used of its
    turn when it pauses early. ``deaths``: how many workers died in this place.
    """

    run: InterpreterRun
    task: Task
    process: int
    worker: WorkerProcess
    opening_ns: float = 0.0
    measured_s: float = 0.0
    turn_s: float = 0.0
    deaths: int = 0
    is_ready: bool = False

    @property
    def kind(self) -> str:
        """As ``_Due.kind``."""
        return _Due(self.run, self.task).kind

    def end(self) -> None:
        """End the worker that is in this place now."""
        self.worker.end()


class Campaign:
    """Measures every target (a stack on a device) in several new worker processes. ``runs``: what
    is measured with each interpreter, one or two that are compared. ``plan``: how long.

    A *replicate* is one process of each target that is due. Its targets are measured in groups, as
    many as may be open at the same time. The workers of a group open their cases side by side, and
    then measure in turns.

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
        self.runs = runs
        self.plan = plan
        self.listener = listener
        self.plugins = list(plugins)
        self.rng = rng
        self.limits = limits
        # A worker gets a seed that is made of this one, its target and its number.
        self._seed = rng.getrandbits(32)
        # Which of two interpreters begins in the first replicate: 0 or 1.
        self._first = rng.getrandbits(1)
        # By target key, what counts its processes: 0, 1, ...
        self._process_numbers: dict[str, Iterator[int]] = defaultdict(itertools.count)
        # Keys of the targets whose cases take long to open.
        self._slow: set[str] = set()
        self._ahead: dict[str, _OpenWorker] = {}
        """By target key, workers of the next replicate that are ready: those of targets that are
        slow to open.
        """
        # When the run began, by ``clock``, and how long it has waited for other runs since, s.
        self._began_s = 0.0
        self._waited_s = 0.0
        self._wall_s = math.inf
        # Each interpreter gets the time that a run with one has.
        if plan.wall_s is not None:
            self._wall_s = plan.wall_s * len(runs)
        # ``opening_s``: what a process should take beside measuring; a plan may know more of it.
        opening_s = max(OPENING_S, plan.opening_s)
        self._time_left = RunTimeLeft(
            _planned_processes(runs), self._wall_s, _LEAST_PROCESSES, opening_s
        )

    def start_worker(
        self, job: Job, environment: Mapping[str, str], interpreter: Interpreter
    ) -> WorkerProcess:
        """Start a worker process with this job and these environment variables. Tests replace this
        method by workers that measure nothing.
        """
        return WorkerProcess(
            job,
            environment,
            interpreter,
            silence_s=self.limits.silence_s,
            memory_bytes=self.limits.memory_bytes,
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
        """Measure all planned processes that end before the wall limit (the most time that a run
        may take), replicate by replicate: one process of each target that is due.
        """
        self._began_s = self.clock()
        self._tell_needs_of_works()
        self.listener.begin()
        self._tell_time_left()
        # How many targets: with two interpreters each has two workers.
        at_once = max(1, self.limits.open_workers // len(self.runs))
        wall = {"processes": self.plan.processes, "limit_s": self._wall_s}
        # At its end it ends the workers that were opened ahead.
        with ExitStack() as self._at_the_end:
            for replicate in range(self.plan.processes):
                targets = self._targets(replicate)
                # Workers that were opened ahead are measured in any case. Without targets there is
                # nothing to stop.
                is_due = bool(targets) and not self._ahead
                # Without time for another replicate the run ends, with what it has. ``_may_start``
                # allows the first three in any case.
                if is_due and not self._may_start(replicate, self._elapsed_s()):
                    note = because("process-would-exceed-wall", measured=replicate, **wall)
                    self.listener.note(note)
                    return
                # Of the time left, a round is a replicate, and a kind what one process measures.
                self._time_left.begin_round(replicate, _kinds(targets))
                # Targets that are slow to open, of the next replicate: they open while these
                # measure.
                soon = self._to_open_ahead(replicate, at_once - len(targets))
                # Group by group, ``at_once`` targets in each.
                for start in range(0, len(targets), at_once):
                    if self._elapsed_s() > self._wall_s:
                        note = because("wall-reached", process=replicate + 1, **wall)
                        self.listener.note(note)
                        return
                    self._measure_group(targets[start : start + at_once], soon)

    def _tell_needs_of_works(self) -> None:
        """Tell the user what a run of the planned work takes, where a stack's own work says so."""
        planned: set[str] = set()
        for run in self.runs:
            for task in run.tasks:
                planned.update(assignment.case.workload for assignment in task.assignments)
        # ``stack_works``: the workloads that stacks define themselves.
        for work in stack_works().values():
            if work.name in planned and work.needs:
                self.listener.note(WorkNeeds(work.name, work.needs))

    def _to_open_ahead(self, replicate: int, room: int) -> list[TargetTasks]:
        """The targets of the next replicate that take long to open, to be opened together with
        those of this one, so that both open at the same time.

        Empty if they are more than ``room``, the number of workers that may still be open; if the
        next replicate may not start in time; or if two interpreters are compared, whose workers
        must measure right after each other.
        """
        slow = []
        for target in self._targets(replicate + 1):
            if target.key in self._slow and target.key not in self._ahead:
                slow.append(target)
        # When this replicate should end, and the next one begin.
        at_s = self._elapsed_s() + self._time_left.round_s(replicate)
        in_time = self._may_start(replicate + 1, at_s)
        compares_interpreters = len(self.runs) > 1
        if not in_time or compares_interpreters or len(slow) > room:
            return []
        return slow

    def _targets(self, replicate: int) -> list[TargetTasks]:
        """The tasks that are due in this replicate, by target, in a new random order of targets.
        The order of two interpreters alternates from replicate to replicate (AB, BA), so that none
        is always measured first.
        """
        by_target: dict[str, list[_Due]] = {}
        for run in self.runs:
            for task in run.tasks:
                # A task has one process in each replicate until it has all.
                if task.processes > replicate:
                    # ``dropped``: the cases that failed, which are not measured again.
                    due = _Due(run, task.without(run.dropped))
                    by_target.setdefault(task.target.key, []).append(due)
        shuffled = list(by_target.items())
        self.rng.shuffle(shuffled)
        # In every second replicate the other interpreter begins.
        is_reversed = (replicate + self._first) % 2 == 1
        targets = []
        for key, of_target in shuffled:
            targets.append(TargetTasks(key, of_target[::-1] if is_reversed else of_target))
        return targets

    def _may_start(self, replicate: int, at_s: float) -> bool:
        """Whether this replicate ends before the wall limit if it starts then, or has to be
        measured in any case.
        """
        if replicate < _LEAST_PROCESSES:
            return True
        return at_s + self._time_left.round_s(replicate) <= self._wall_s

    def _tell_time_left(self) -> None:
        """Tell it; waits for other runs are expected to go on as they were."""
        elapsed_s = self._elapsed_s()
        times_longer = 1.0
        if elapsed_s > 0:
            times_longer = 1 + self._waited_s / elapsed_s
        self.listener.left(self._time_left.left_s(elapsed_s) * times_longer)

    def _elapsed_s(self) -> float:
        """Time since this run began to measure, s, without the time that it waited for other
        runs.
        """
        return self.clock() - self._began_s - self._waited_s

    def _measure_group(
        self, group: Sequence[TargetTasks], soon: Sequence[TargetTasks] = ()
    ) -> None:
        """Measure these targets, as many as may be open at once: start their workers; when all have
        opened their cases, let them measure in turns. The workers of ``soon`` are opened too, and
        stay open for the next replicate.

        None releases its objects before all have measured: that would disturb others on its device.
        """
        self._time_left.begin_group(_kinds(group), self._elapsed_s())
        self._tell_time_left()
        with ExitStack() as at_end_of_group:
            # ``workers``: of this replicate, which end with the group. ``early``: of the next one,
            # which end with the run, or with the group that takes them over.
            workers = self._start_all(group, at_end_of_group)
            early = self._start_all(soon, self._at_the_end)
            ready = []
            for worker in workers:
                # One that was opened ahead is ready since the last replicate.
                if worker.is_ready or self._wait_until_ready(worker):
                    ready.append(worker)
            self._ahead = {}
            for worker in early:
                if self._wait_until_ready(worker):
                    self._ahead[worker.task.target.key] = worker
            self._time_left.opened(self._elapsed_s())
            self._tell_time_left()
            # Only now does anything measure; compiling and opening are over.
            self._take_turns(ready)
            for worker in workers:
                worker.worker.release()
        self._time_left.end_group(self._elapsed_s())

    def _start_all(self, targets: Sequence[TargetTasks], at_end: ExitStack) -> list[_OpenWorker]:
        """The workers of these targets, just started; those that were opened ahead are taken over.
        ``at_end``: ends them when it closes.

        Both interpreters of a target have the same number of the process, so that readers compare
        processes that were measured right after each other.
        """
        workers = []
        for target in targets:
            ahead = self._ahead.pop(target.key, None)
            # A worker that was opened ahead has its number already.
            process = ahead.process if ahead else next(self._process_numbers[target.key])
            for due in target.due:
                # Workers are opened ahead only in a run with one interpreter, so the target has one
                # task then.
                worker = ahead or self._start(due.run, due.task, process)
                if worker is not None:
                    workers.append(worker)
                    at_end.callback(worker.end)
        return workers

    def _start(self, run: InterpreterRun, task: Task, process: int) -> _OpenWorker | None:
        """Start a worker for the cases of the task that have not failed so far; None if there are
        none. ``process``: its number among the processes of the target.
        """
        # ``dropped``: cases that have failed in an earlier process.
        left = task.without(run.dropped)
        if not left.assignments:
            return None
        self.listener.working(Opening(task.target.key, run.side))
        job = Job(
            worker=task.target.key,
            process=process,
            assignments=list(left.assignments),
            settings=self._settings(run, left, process),
            plugins=self.plugins,
        )
        worker = self.start_worker(job, task.target.environment, run.interpreter)
        return _OpenWorker(run, left, process, worker)

    def _settings(self, run: InterpreterRun, task: Task, process: int) -> Settings:
        """What the worker of this task is to measure, and for how long.

        Slow extra values are measured for the first case only. Cases that an earlier process has
        measured get its ladder, the numbers of units n, so that all processes measure the same.
        """
        key = task.target.key
        # ``staged``: the keys of cases whose calls are timed one by one too; the first gets more
        # values.
        first = frozenset(task.staged[:1])
        ladders = {}
        for assignment in task.assignments:
            known = run.ladders.get(assignment.key)
            if known:
                ladders[assignment.key] = known
        return Settings(
            seconds=task.seconds,
            precision=self.plan.precision,
            min_rounds=self.plan.min_rounds,
            max_rounds=self.plan.max_rounds,
            # Of its own for every process, and the same if the run is repeated with its seed.
            seed=random.Random(f"{self._seed} {key} {process}").getrandbits(32),
            # The cases that get more than samples of whole chains: ``extras`` values that are slow
            # and measured once, ``staged`` calls timed one by one, ``met`` an unpinned cost,
            # ``far`` a chain of a hundred times the largest n.
            extras=first,
            staged=frozenset(task.staged),
            met=frozenset(task.unpinned(alone=len(run.tasks) == 1)),
            far=first if self.plan.far else frozenset(),
            ladders=ladders,
        )

    def _wait_until_ready(self, opening: _OpenWorker) -> bool:
        """Wait until the worker has opened its chains, and store what it sends meanwhile. If it
        dies, another one is started in its place. Returns whether one of them is ready; if not, no
        case is left to measure.
        """
        opening.opening_ns = 0.0
        while True:
            try:
                self._listen_until_ready(opening)
            except WorkerDied as death:
                if not self._start_again(opening, death):
                    return False
                continue  # and wait for the other worker
            # What it sent is on the disk before it measures.
            opening.run.journal.sync()
            opening.is_ready = True
            # From the next replicate on, the worker of this target is opened ahead.
            if opening.opening_ns > _LONG_OPENING_S * 1e9:
                self._slow.add(opening.task.target.key)
            return True

    def _listen_until_ready(self, opening: _OpenWorker) -> None:
        """Store what a worker sends until it is ready, and add up how long its cases took to open.
        Raises ``WorkerDied``.
        """
        while True:
            answer = opening.worker.receive()
            if isinstance(answer, Ready):
                return
            # All else that a worker sends is an entry of the journal.
            opening.run.store(answer, self.listener)  # type: ignore[arg-type]
            # The entry "open" has the time that one case took to open, ns.
            if isinstance(answer, OneOffEntry) and answer.name == "open":
                opening.opening_ns += answer.values[0]

    def _take_turns(self, ready: Sequence[_OpenWorker]) -> None:
        """Hold the lock of the devices, and let the workers measure in turns until all have
        ended.

        Where a worker pauses before its turn is over, another one on its device measures next.
        """
        waiting = deque(ready)
        asked_s = self.clock()
        with self.lock(self.listener.waiting):
            waited_s = self.clock() - asked_s
            self._waited_s += waited_s
            self.listener.waited(waited_s)
            # One that has not ended goes to the back of the row.
            while waiting:
                now = waiting.popleft()
                has_ended = self._turn(now)
                # A rest of the turn is left where a worker paused for others on its device.
                while not has_ended and now.turn_s > 0:
                    other = _on_same_device(now.task.target, waiting)
                    if other and self._turn(other, brief=True):
                        waiting.remove(other)  # it has measured everything
                    has_ended = self._turn(now)
                if not has_ended:
                    waiting.append(now)
                self._tell_time_left()

    def _turn(self, worker: _OpenWorker, *, brief: bool = False) -> bool:
        """Let a worker measure for a turn, or with ``brief`` only until its first pause. Returns
        whether its place is done: it has measured everything, or it died and was not replaced.
        """
        key = worker.task.target.key
        self.listener.working(MeasuringProcess(key, worker.process, worker.run.side))
        began_s = self.clock()
        try:
            has_ended = self._listen_for_a_turn(worker, brief)
        except WorkerDied as death:
            # The other worker opens its cases at once, and measures in its next turn.
            is_replaced = self._start_again(worker, death) and self._wait_until_ready(worker)
            has_ended = not is_replaced
        # The time of a turn counts as measuring, even where the worker died in it.
        worker.measured_s += self.clock() - began_s
        self._time_left.measured(worker.kind, worker.measured_s)
        return has_ended

    def _listen_for_a_turn(self, worker: _OpenWorker, brief: bool) -> bool:
        """Let a worker measure until its turn is over, and store what it sends. Returns whether it
        has measured everything; raises ``WorkerDied``.

        A worker pauses after each round. Before its turn is over it stops with ``brief``, or where
        it asks that another worker on its device measures first. ``worker.turn_s`` then is the time
        it has used, so that the next call goes on with the same turn; else 0.
        """
        # As if the turn had begun earlier by what was used of it.
        began_s = self.clock() - worker.turn_s
        worker.turn_s = 0.0
        worker.worker.go()
        while True:
            answer = worker.worker.receive()
            if isinstance(answer, Pause):
                worker.run.journal.sync()
                used_s = self.clock() - began_s
                # The turn ends here; only if it is not over yet, a rest of it stays for the next
                # call.
                is_over = used_s >= self.limits.turn_s
                if is_over or brief or answer.others:
                    worker.turn_s = 0.0 if is_over else used_s
                    return False
                worker.worker.go()
                continue
            # All else that a worker sends is an entry of the journal.
            worker.run.store(answer, self.listener)  # type: ignore[arg-type]
            if isinstance(answer, EndedEntry):
                worker.run.journal.sync()
                return True

    def _start_again(self, dead: _OpenWorker, death: WorkerDied) -> bool:
        """Record that the worker died, and start another one in its place. Returns whether there is
        one: without cases that have not failed there is none.

        The first death may be an accident, so all cases are measured again. After a later one, the
        case that the worker was busy with has failed, or all of its cases if none is known.
        """
        dead.worker.end()
        dead.deaths += 1
        key = dead.task.target.key
        died = redacted(DiedEntry(worker=key, process=dead.process, reason=death.reason))
        dead.run.store(died, self.listener)
        if dead.deaths == 1:
            self.listener.note(MeasuredAgain(key, dead.process, died.reason, dead.run.side))
        else:
            for assignment in _busy_with(dead.task, death):
                # ``entry_fields``: the fields that name a case in each entry of the journal.
                names = assignment.entry_fields(key, dead.process)
                failed = FailedEntry(**names, status="failed", reason=death.reason)
                dead.run.store(failed, self.listener)
        dead.run.journal.sync()

        # The other worker counts as another process, with the cases that have not failed.
        number = next(self._process_numbers[key])
        other = self._start(dead.run, dead.task, number)
        if other is None:
            return False
        dead.task = other.task
        dead.process = other.process
        dead.worker = other.worker
        return True


def _kinds(targets: Iterable[TargetTasks]) -> list[str]:
    """The kinds of all processes that these targets have now."""
    kinds = []
    for target in targets:
        kinds += [due.kind for due in target.due]
    return kinds


def _busy_with(task: Task, death: WorkerDied) -> Sequence[Assignment]:
    """The assignment that a worker was busy with when it died; all if none is known."""
    if 0 <= death.index < len(task.assignments):
        return [task.assignments[death.index]]
    return task.assignments


def _planned_processes(runs: Sequence[InterpreterRun]) -> list[PlannedProcess]:
    """The processes that the run has planned, with how long each should measure. Only the time left
    that the user sees is made of it.
    """
    planned = []
    for run in runs:
        for task in run.tasks:
            stack = registry().get(task.target.stack)
            cost = stack.cost if stack else "fast"  # a stack that is not registered here
            # Its samples, and about what it does beside them for each case.
            seconds = measuring_s(task.seconds, len(task.assignments), cost)
            # ``kind``: by which the time left tells the processes of different tasks apart.
            kind = _Due(run, task).kind
            planned.append(PlannedProcess(kind, seconds, task.processes))
    return planned


def _on_same_device(target: Target, waiting: Sequence[_OpenWorker]) -> _OpenWorker | None:
    """The waiting worker that may measure while one on this device pauses: the first on the same
    device, or else on one of the same name, because some APIs report only the name.
    """
    same_name = [each for each in waiting if same_adapter(each.task.target, target)]
    for worker in same_name:
        if worker.task.target.device == target.device:
            return worker
    return same_name[0] if same_name else None
