"""A campaign measures every target in several new worker processes. Open workers measure in turns of whole rounds."""

from __future__ import annotations

import dataclasses
import math
import os
import random
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import psutil
from filelock import FileLock, Timeout

from overhead.devices import same_adapter
from overhead.machine import redacted
from overhead.measure.sampling import met
from overhead.profiles import Plan
from overhead.results import EndedLine, FailedLine, JournalLine, Target, Together
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.journal import Journal, Past, note_ladder
from overhead.runner.progress import Listener
from overhead.runner.protocol import Job, Message, Pause, Ready
from overhead.runner.schedule import Task
from overhead.runner.workers import WorkerDied, WorkerProcess

_MOST_WORKERS = 16
"""The highest number of workers that are open at the same time."""
_WORKER_BYTES = 3 << 30
"""Memory that one open worker may need for a deep-learning library, its compiler and a device context."""
_LEAST_PROCESSES = 3
"""The wall limit stops the run before a process that would end later only if so many processes are complete."""
_START_S = 3.0
"""Rough start time of a worker, s. Only the display of the time left uses it."""


@dataclasses.dataclass(frozen=True)
class WorkerLimits:
    """Limits of the workers of a campaign."""

    silence_s: float = 300.0
    """A worker that sends nothing for this time is killed. Compilations, during which it sends nothing, are shorter."""
    turn_s: float = 0.5
    """Duration of a turn, rounded to whole rounds.

    The speed of a machine changes within seconds. With short turns all open workers measure under the same conditions.
    """
    memory_bytes: int = dataclasses.field(default_factory=lambda: int(psutil.virtual_memory().total * 0.75))
    """Limit of the resident memory of one worker."""
    open_workers: int = dataclasses.field(
        default_factory=lambda: room_for_workers(os.cpu_count() or 1, psutil.virtual_memory().total)
    )
    """The highest number of workers that are open at the same time."""


def room_for_workers(processors: int, memory_bytes: int) -> int:
    """The number of workers that may be open at the same time on a machine of this size; at least 1."""
    return max(1, min(_MOST_WORKERS, processors, memory_bytes // _WORKER_BYTES))


class MeasuringWorker(Protocol):
    """The methods of a worker that a campaign uses. See ``WorkerProcess``."""

    def listen(self) -> Message | JournalLine | None: ...

    def go(self) -> None: ...

    def release(self) -> None: ...

    def end(self) -> None: ...


@contextmanager
def machine_lock(waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of this machine, so that two runs never measure at the same time.

    ``waiting`` is called if another run holds the lock.
    """
    lock = FileLock(
        Path(tempfile.gettempdir()) / "overhead-baton.lock", mode=0o666
    )  # other versions of the suite use this name too
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waiting()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@dataclasses.dataclass
class InterpreterRun:
    """The tasks that are measured with one interpreter, and the journal that gets the results.

    ``past``: the contents of the journal of an interrupted run. ``together``: set if two interpreters are compared.
    """

    journal: Journal
    tasks: Sequence[Task]
    past: Past | None = None
    interpreter: Interpreter = HERE
    together: Together | None = None
    dropped: set[str] = dataclasses.field(default_factory=set)
    ladders: dict[str, list[int]] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.ladders = dict(self.past.ladders) if self.past else {}

    def missing(self) -> dict[str, int]:
        """By target key, the number of planned processes that the journal lacks."""
        done = self.past.done if self.past else {}
        return {t.target.key: max(0, t.processes - done.get(t.target.key, 0)) for t in self.tasks}

    def named(self, text: str) -> str:
        """The text. If two interpreters are compared, the name of the side precedes it."""
        return f"{self.together.side}: {text}" if self.together else text


@dataclasses.dataclass
class _OpenWorker:
    """A worker and its progress. ``measured_s``: its measuring time so far; ``turn_s``: that of the current turn."""

    run: InterpreterRun
    task: Task
    process: int
    worker: MeasuringWorker
    measured_s: float = 0.0
    turn_s: float = 0.0


_TargetTasks = list[tuple[InterpreterRun, Task]]
"""The task of one target under each interpreter, in the order of their turns."""


class Campaign:
    """Measures the tasks of one or two interpreters in the planned processes.

    With two interpreters, the two workers of a target alternate. The order changes with every process. Tests replace
    ``spawn``, ``lock`` and ``clock`` (s).
    """

    def __init__(
        self,
        runs: Sequence[InterpreterRun],
        plan: Plan,
        listener: Listener,
        plugins: Sequence[str],
        rng: random.Random,
        *,
        limits: WorkerLimits | None = None,
        spawn: Callable[..., MeasuringWorker] = WorkerProcess,
        lock: Callable[[Callable[[], None]], AbstractContextManager[None]] = machine_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs, self.plan, self.listener, self.plugins, self.rng = runs, plan, listener, list(plugins), rng
        self.limits, self._spawn, self._lock, self._clock = limits or WorkerLimits(), spawn, lock, clock
        self._seed = rng.getrandbits(32)
        self._first = rng.getrandbits(1)
        self._next_process: dict[str, int] = {}
        for past in (run.past for run in runs if run.past):
            for key, number in past.next_process.items():
                self._next_process[key] = max(number, self._next_process.get(key, 0))
        self._began_s = self._waited_s = self._finished_s = 0.0
        self._targets_at_once = max(1, self.limits.open_workers // len(runs))

    def run(self) -> None:
        """Measure all planned processes that the journals lack and that end before the wall limit."""
        self._began_s, self._finished_s, self._waited_s = self._clock(), 0.0, 0.0
        self.listener.begin(
            sum(
                self._measuring_s(task, self._next_process.get(task.target.key, 0) + more) + _START_S
                for run in self.runs
                for missing in [run.missing()]
                for task in run.tasks
                for more in range(missing[task.target.key])
            )
        )
        other_s, past = 0.0, self._past_processes()
        for replicate in range(self.plan.processes):
            before, due = self._elapsed_s(), self._due(replicate)
            targets = self._by_target(due, replicate)
            enough = past + replicate >= _LEAST_PROCESSES
            if targets and enough and before + other_s + _measuring_s(due) > self._wall_s():
                self.listener.note(
                    f"{past + replicate} of {self.plan.processes} processes are measured; one more would end after the "
                    f"wall limit of {self._wall_s():.0f} s"
                )
                return
            for group in _groups(targets, self._targets_at_once):
                if self._elapsed_s() > self._wall_s():
                    self.listener.note(
                        f"the wall limit of {self._wall_s():.0f} s is reached: "
                        f"the rest of process {replicate + 1} of {self.plan.processes} is not measured"
                    )
                    return
                self._measure_group(group)
            other_s = self._elapsed_s() - before - _measuring_s(due) if targets else other_s

    def _past_processes(self) -> int:
        """The number of processes that the journals have of every target."""
        lacking = [(t.processes, run.missing()[t.target.key]) for run in self.runs for t in run.tasks]
        return min((planned - missing for planned, missing in lacking), default=0)

    def _due(self, replicate: int) -> list[list[Task]]:
        """For each interpreter, the tasks that lack more than ``replicate`` processes."""
        due = []
        for run in self.runs:
            missing = run.missing()
            due.append([t.without(run.dropped) for t in run.tasks if missing[t.target.key] > replicate])
        return due

    def _by_target(self, due: Sequence[Sequence[Task]], replicate: int) -> list[_TargetTasks]:
        """The tasks by target, in a new random order of targets. Two interpreters alternate in order (AB, BA, ...)."""
        targets: dict[str, _TargetTasks] = {}
        for run, tasks in zip(self.runs, due, strict=True):
            for task in tasks:
                targets.setdefault(task.target.key, []).append((run, task))
        shuffled = list(targets.values())
        self.rng.shuffle(shuffled)
        return [own if (replicate + self._first) % 2 == 0 else own[::-1] for own in shuffled]

    def _measuring_s(self, task: Task, process: int) -> float:
        """Seconds that one process of a task measures. The first one also takes the table by processor."""
        tables = len({*task.extras} & {*task.met}) if self.plan.by_processor and process == 0 else 0
        return task.measuring_s + tables * met.by_processor_s(os.cpu_count() or 1)

    def _wall_s(self) -> float:
        return math.inf if self.plan.wall_s is None else self.plan.wall_s * len(self.runs)

    def _elapsed_s(self) -> float:
        """Time since this run began to measure, s, without the time that it waited for other runs."""
        return self._clock() - self._began_s - self._waited_s

    def _measure_group(self, group: Sequence[_TargetTasks]) -> None:
        """Start the workers of these targets. When all are ready, let them measure in turns.

        No worker releases its objects before all have measured, because that would disturb other workers on its device.
        """
        workers: list[_OpenWorker] = []
        planned = [self._measuring_s(t, self._next_process.get(t.target.key, 0)) for tasks in group for _, t in tasks]
        try:
            for tasks in group:
                workers.extend(self._start_target(tasks))
            ready = [one for one in workers if self._wait_until_ready(one)]
            self._advance(_START_S * len(planned))
            self._measure(ready)
            self._advance(sum(planned))
            for one in workers:
                one.worker.release()
        finally:
            for one in workers:
                one.worker.end()

    def _start_target(self, tasks: _TargetTasks) -> Iterator[_OpenWorker]:
        """Start the workers of one target. They have the same process number."""
        process = self._new_process_number(tasks[0][1])
        for run, task in tasks:
            if started := self._start(run, task, process):
                yield started

    def _new_process_number(self, task: Task) -> int:
        key = task.target.key
        process = self._next_process.get(key, 0)
        self._next_process[key] = process + 1
        return process

    def _start(self, run: InterpreterRun, task: Task, process: int) -> _OpenWorker | None:
        left = task.without(run.dropped)
        if not left.assignments:
            return None
        key = task.target.key
        job = Job(
            worker=key,
            process=process,
            assignments=list(left.assignments),
            extras=list(left.extras),
            staged=list(left.staged),
            met=list(left.met),
            by_processor=self.plan.by_processor and process == 0,
            ladders={a.key: ns for a in left.assignments if (ns := run.ladders.get(a.key))},
            plugins=self.plugins,
            seconds=left.seconds,
            min_rounds=self.plan.min_rounds,
            max_rounds=self.plan.max_rounds,
            target=self.plan.target,
            seed=random.Random(f"{self._seed} {key} {process}").getrandbits(32),
        )
        self.listener.working(run.named(f"opening {key}"))
        worker = self._spawn(
            job,
            task.target.environment,
            interpreter=run.interpreter,
            silence_s=self.limits.silence_s,
            memory_bytes=self.limits.memory_bytes,
        )
        return _OpenWorker(run, left, process, worker)

    def _wait_until_ready(self, one: _OpenWorker) -> bool:
        """Store the lines that the worker sends while it opens its chains. Returns whether it is ready.

        If the worker dies, only the case that it was opening is lost. A new worker starts with the other cases.
        """
        try:
            while not isinstance(answer := one.worker.listen(), Ready):
                if answer is None:
                    raise WorkerDied(-1, "the worker ended before it measured")
                self._keep(one.run, answer)  # type: ignore[arg-type]
        except WorkerDied as death:
            return self._restart(one, death) and self._wait_until_ready(one)
        one.run.journal.sync()
        return True

    def _advance(self, seconds: float) -> None:
        """Report that this part of the planned time is done."""
        self._finished_s += seconds
        self.listener.advance(self._finished_s)

    def _measure(self, ready: Sequence[_OpenWorker]) -> None:
        """Hold the lock of the machine, and let the workers measure in turns until all have ended."""
        waiting, asked = deque(ready), self._clock()
        with self._lock(lambda: self.listener.note("waiting: another run is measuring on this machine")):
            self._waited_s += self._clock() - asked
            while waiting:
                one = waiting.popleft()
                while not (ended := self._turn(one)) and one.turn_s:
                    other = _on_same_device(one.task.target, waiting)
                    if other and self._turn(other, brief=True):
                        waiting.remove(other)
                if not ended:
                    waiting.append(one)
                measured_s = sum(min(each.measured_s, self._measuring_s(each.task, each.process)) for each in ready)
                self.listener.advance(self._finished_s + measured_s)

    def _turn(self, one: _OpenWorker, *, brief: bool = False) -> bool:
        """Let a worker measure until its turn ends, it lets another worker measure, or with ``brief`` until it pauses.

        Returns whether the worker has ended. If it dies, the case that it measured is lost. A new worker measures the
        others again.
        """
        self.listener.working(one.run.named(f"{one.task.target.key}, process {one.process + 1}"))
        began = self._clock()
        try:
            ended = self._listen_for_a_turn(one, brief)
        except WorkerDied as death:
            ended = not (self._restart(one, death) and self._wait_until_ready(one))
        one.measured_s += self._clock() - began
        return ended

    def _listen_for_a_turn(self, one: _OpenWorker, brief: bool) -> bool:
        """Store the lines that a worker sends in its turn, or until its first pause if ``brief``.

        Returns whether the worker has ended. Raises ``WorkerDied``.
        """
        began, one.turn_s = self._clock() - one.turn_s, 0.0
        one.worker.go()
        while (answer := one.worker.listen()) is not None:
            if isinstance(answer, Pause):
                one.run.journal.sync()
                used = self._clock() - began
                over = used >= self.limits.turn_s
                if over or brief or answer.others:
                    one.turn_s = 0.0 if over else used
                    return False
                one.worker.go()
                continue
            self._keep(one.run, answer)  # type: ignore[arg-type]
            if isinstance(answer, EndedLine):
                one.run.journal.sync()
                return True
        raise WorkerDied(-1, "the worker ended before it had measured everything")

    def _keep(self, run: InterpreterRun, line: JournalLine) -> None:
        if isinstance(line, FailedLine):
            run.dropped.add(f"{line.target} {line.case}")
            line = redacted(line)
            self.listener.note(run.named(f"{line.target} {line.case}: {line.status}: {line.reason}"))
        note_ladder(run.ladders, line)
        run.journal.write([line])

    def _restart(self, one: _OpenWorker, death: WorkerDied) -> bool:
        """Record the failure for the case that caused it, or for all cases if the cause is unknown.

        Restarts the worker with the remaining cases. Returns whether there are any.
        """
        one.worker.end()
        assignments = one.task.assignments
        lost = [assignments[death.index]] if 0 <= death.index < len(assignments) else list(assignments)
        for a in lost:
            self._keep(
                one.run,
                FailedLine(
                    target=a.target.key,
                    case=a.case.key,
                    worker=one.task.target.key,
                    process=one.process,
                    status="failed",
                    reason=death.reason,
                ),
            )
        one.run.journal.sync()
        fresh = self._start(one.run, one.task, self._new_process_number(one.task))
        if fresh is None:
            return False
        one.task, one.process, one.worker = fresh.task, fresh.process, fresh.worker
        return True


def _on_same_device(target: Target, waiting: Sequence[_OpenWorker]) -> _OpenWorker | None:
    """The first waiting worker on this device, or else on a device with the same name.

    Some APIs report only the name.
    """
    same_name = [one for one in waiting if same_adapter(one.task.target, target)]
    return min(same_name, key=lambda one: one.task.target.device != target.device, default=None)


def _measuring_s(tasks: Sequence[Sequence[Task]]) -> float:
    """Seconds that one process of each task of all interpreters measures."""
    return sum(task.measuring_s for own in tasks for task in own)


def _groups(targets: Sequence[_TargetTasks], size: int) -> Iterator[Sequence[_TargetTasks]]:
    for start in range(0, len(targets), size):
        yield targets[start : start + size]
