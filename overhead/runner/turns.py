"""Open workers measure in turns of whole rounds. A worker that dies is started again."""

from __future__ import annotations

import dataclasses
import os
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

import psutil

from overhead.devices import same_adapter
from overhead.errors import cause_of
from overhead.locks import device_lock
from overhead.machine import redacted
from overhead.measure.sampling.events import Settings
from overhead.profiles import Plan
from overhead.results import DiedLine, EndedLine, FailedLine, JournalLine, OneOffLine, Target, Together
from overhead.runner.interpreter import HERE, Interpreter
from overhead.runner.journal import Journal
from overhead.runner.progress import Listener
from overhead.runner.protocol import Job, Message, Pause, Ready
from overhead.runner.schedule import Task
from overhead.runner.workers import WorkerDied, WorkerProcess

_MOST_WORKERS = 16
"""The highest number of workers that are open at the same time."""
_WORKER_BYTES = 3 << 30
"""Memory that one open worker may need for a deep-learning library, its compiler and a device context."""


@dataclasses.dataclass
class InterpreterRun:
    """The tasks that are measured with one interpreter, the journal that gets the results, and what failed so far.

    ``together``: set if two interpreters are compared. ``dropped``: keys of the cases that failed, which are not
    measured again. ``ladders``: of each case the sizes of n of its first process; empty if the wait of the case polls.
    """

    journal: Journal
    tasks: Sequence[Task]
    interpreter: Interpreter = HERE
    together: Together | None = None
    dropped: set[str] = dataclasses.field(init=False, default_factory=set)
    ladders: dict[str, list[int]] = dataclasses.field(init=False, default_factory=dict)
    _told: Counter[tuple[str, str, str]] = dataclasses.field(init=False, default_factory=Counter)

    def keep(self, line: JournalLine, listener: Listener) -> None:
        """Write a line to the journal, and note what later processes need to know."""
        if isinstance(line, FailedLine):
            self.dropped.add(f"{line.target} {line.case}")
            line = redacted(line)
            self._tell(line, listener)
        if isinstance(line, OneOffLine) and line.name in ("ladder", "wait_quantum"):
            key = f"{line.target} {line.case}"
            polls = line.name == "wait_quantum"
            self.ladders[key] = [] if polls else self.ladders.get(key, [int(n) for n in line.values])
        self.journal.write([line])

    def _tell(self, line: FailedLine, listener: Listener) -> None:
        """Tell a failure. Of several with one cause, tell the first, and that there are more."""
        cause = (line.target, line.status, cause_of(line.reason))
        self._told[cause] += 1
        if self._told[cause] == 1:
            listener.note(self.named(f"{line.target} {line.case}: {line.status}: {line.reason}"))
        elif self._told[cause] == 2:
            listener.note(self.named(f"{line.target}: more cases {line.status} alike; overhead show --all lists them"))

    def named(self, text: str) -> str:
        """The text. If two interpreters are compared, the name of the side precedes it."""
        return f"{self.together.side}: {text}" if self.together else text


TargetTasks = list[tuple[InterpreterRun, Task]]
"""The task of one target under each interpreter, in the order of their turns."""


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
    """The methods of a worker that take part in the turns. See ``WorkerProcess``."""

    def listen(self) -> Message | JournalLine | None: ...

    def go(self) -> None: ...

    def release(self) -> None: ...

    def end(self) -> None: ...


@dataclasses.dataclass
class _OpenWorker:
    """A worker and its progress. ``measured_s``: its measuring time so far; ``turn_s``: that of the current turn.

    ``deaths``: how many workers that measured in its place have died.
    """

    run: InterpreterRun
    task: Task
    process: int
    worker: MeasuringWorker
    measured_s: float = 0.0
    turn_s: float = 0.0
    deaths: int = 0

    def end(self) -> None:
        """End the worker that is in this place now."""
        self.worker.end()


class Turns:
    """Lets groups of workers measure, one group after another. Tests replace ``spawn``, ``lock`` and ``clock`` (s).

    ``after_turn`` is called after each turn. ``waited_s``: the time for which this run waited for other runs so far.
    ``process_s``: by target key, the time of the target's latest process from its start to its end, s.
    """

    def __init__(
        self,
        plan: Plan,
        listener: Listener,
        plugins: Sequence[str],
        seed: int,
        after_turn: Callable[[], None],
        *,
        limits: WorkerLimits,
        spawn: Callable[..., MeasuringWorker] = WorkerProcess,
        lock: Callable[[Callable[[], None]], AbstractContextManager[None]] = device_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plan, self.listener, self.plugins, self.limits = plan, listener, list(plugins), limits
        self._seed, self._after_turn = seed, after_turn
        self._next_process = Counter[str]()
        self._spawn, self._lock, self._clock = spawn, lock, clock
        self.waited_s = 0.0
        self.process_s: dict[str, float] = {}

    def measure_group(self, group: Sequence[TargetTasks]) -> None:
        """Start the workers of these targets. When all are ready, let them measure in turns.

        No worker releases its objects before all have measured, because that would disturb other workers on its device.
        """
        workers: list[_OpenWorker] = []
        began, waited_s = self._clock(), self.waited_s
        with ExitStack() as stack:
            for tasks in group:
                for one in self._start_target(tasks):
                    workers.append(one)
                    stack.callback(one.end)
            ready = [one for one in workers if self._wait_until_ready(one)]
            self._measure(ready)
            for one in workers:
                one.worker.release()
        took_s = self._clock() - began - (self.waited_s - waited_s)
        beside_s = (took_s - sum(one.measured_s for one in workers)) / max(1, len(workers))
        for tasks in group:
            own = [one for one in workers if one.task.target == tasks[0][1].target]
            self.process_s[tasks[0][1].target.key] = sum(one.measured_s + beside_s for one in own)

    def _start_target(self, tasks: TargetTasks) -> Iterator[_OpenWorker]:
        """Start the workers of one target. They have the same process number."""
        process = self._new_process_number(tasks[0][1])
        for run, task in tasks:
            if started := self._start(run, task, process):
                yield started

    def _new_process_number(self, task: Task) -> int:
        key = task.target.key
        self._next_process[key] += 1
        return self._next_process[key] - 1

    def _start(self, run: InterpreterRun, task: Task, process: int) -> _OpenWorker | None:
        """A new worker for the cases of the task that have not failed; None if there are none."""
        left = task.without(run.dropped)
        if not left.assignments:
            return None
        key = task.target.key
        job = Job(
            worker=key,
            process=process,
            assignments=list(left.assignments),
            settings=Settings(
                left.seconds,
                self.plan.target,
                self.plan.min_rounds,
                self.plan.max_rounds,
                seed=random.Random(f"{self._seed} {key} {process}").getrandbits(32),
                extras=frozenset(left.extras),
                staged=frozenset(left.staged),
                met=frozenset(left.met),
                ladders={a.key: ns for a in left.assignments if (ns := run.ladders.get(a.key))},
            ),
            plugins=self.plugins,
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
        """Store the lines that the worker sends while it opens its chains. Returns whether a worker is ready."""
        while True:
            try:
                while not isinstance(answer := one.worker.listen(), Ready):
                    if answer is None:
                        raise WorkerDied(-1, "the worker ended before it measured")
                    one.run.keep(answer, self.listener)  # type: ignore[arg-type]
            except WorkerDied as death:
                if not self._start_again(one, death):
                    return False
            else:
                one.run.journal.sync()
                return True

    def _measure(self, ready: Sequence[_OpenWorker]) -> None:
        """Hold the lock of the devices, and let the workers measure in turns until all have ended."""
        waiting, asked = deque(ready), self._clock()
        with self._lock(lambda: self.listener.note("waiting: another run is measuring on this machine")):
            self.waited_s += self._clock() - asked
            while waiting:
                one = waiting.popleft()
                while not (ended := self._turn(one)) and one.turn_s:
                    other = _on_same_device(one.task.target, waiting)
                    if other and self._turn(other, brief=True):
                        waiting.remove(other)
                if not ended:
                    waiting.append(one)
                self._after_turn()

    def _turn(self, one: _OpenWorker, *, brief: bool = False) -> bool:
        """Let a worker measure until its turn ends, it lets another worker measure, or with ``brief`` until it pauses.

        Returns whether the worker has ended and no other was started in its place.
        """
        self.listener.working(one.run.named(f"{one.task.target.key}, process {one.process + 1}"))
        began = self._clock()
        try:
            ended = self._listen_for_a_turn(one, brief)
        except WorkerDied as death:
            ended = not (self._start_again(one, death) and self._wait_until_ready(one))
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
            one.run.keep(answer, self.listener)  # type: ignore[arg-type]
            if isinstance(answer, EndedLine):
                one.run.journal.sync()
                return True
        raise WorkerDied(-1, "the worker ended before it had measured everything")

    def _start_again(self, one: _OpenWorker, death: WorkerDied) -> bool:
        """Record that the worker died, and start another one in its place. Returns whether there is one.

        The first death may be an accident, so all cases are measured again. After a later one, the case that the worker
        was busy with has failed, or all of its cases if none is known.
        """
        one.worker.end()
        key, deaths = one.task.target.key, one.deaths + 1
        died = redacted(DiedLine(worker=key, process=one.process, reason=death.reason))
        one.run.keep(died, self.listener)
        if deaths == 1:
            self.listener.note(one.run.named(f"{key}, process {one.process + 1}: {died.reason}; measured again"))
        else:
            assignments = one.task.assignments
            for a in [assignments[death.index]] if 0 <= death.index < len(assignments) else assignments:
                failed = FailedLine(
                    target=a.target.key,
                    case=a.case.key,
                    worker=key,
                    process=one.process,
                    status="failed",
                    reason=death.reason,
                )
                one.run.keep(failed, self.listener)
        one.run.journal.sync()
        other = self._start(one.run, one.task, self._new_process_number(one.task))
        if other is None:
            return False
        one.task, one.process, one.worker, one.deaths = other.task, other.process, other.worker, deaths
        return True


def _on_same_device(target: Target, waiting: Sequence[_OpenWorker]) -> _OpenWorker | None:
    """The first waiting worker on this device, or else on a device with the same name.

    Some APIs report only the name.
    """
    same_name = [one for one in waiting if same_adapter(one.task.target, target)]
    return min(same_name, key=lambda one: one.task.target.device != target.device, default=None)
