"""A campaign measures every target in several new worker processes: which target is measured when, and how often."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from overhead.locks import device_lock
from overhead.profiles import Plan
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task
from overhead.runner.turns import InterpreterRun, MeasuringWorker, TargetTasks, Turns, WorkerLimits
from overhead.runner.workers import WorkerProcess
from overhead.workloads import stack_works

_LEAST_PROCESSES = 3
"""The wall limit stops the run before a process that would end later only if so many processes are complete."""
_LIKE_THE_FIRST, _LIKE_THE_LAST = (0.65, 1.25), (0.8, 1.25)
"""The time of a process over that of the target's latest one: between these two. The first one also calibrates."""
_LATE = 0.25
"""The processes of a replicate that takes longer than expected end within this share of the expected time."""


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
        lock: Callable[[Callable[[], None]], AbstractContextManager[None]] = device_lock,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs, self.plan, self.listener, self.rng = runs, plan, listener, rng
        self._clock = clock
        limits, seed = limits or WorkerLimits(), rng.getrandbits(32)
        self._first = rng.getrandbits(1)
        self._turns = Turns(
            plan,
            listener,
            plugins,
            seed,
            self._tell_time_left,
            limits=limits,
            spawn=spawn,
            lock=lock,
            clock=clock,
        )
        self._began_s = self._replicate_began_s = 0.0
        self._replicate = 0
        self._targets_at_once = max(1, limits.open_workers // len(runs))

    def run(self) -> None:
        """Measure all planned processes that end before the wall limit."""
        self._began_s = self._clock()
        planned = {a.case.workload for run in self.runs for task in run.tasks for a in task.assignments}
        for work in stack_works().values():
            if work.name in planned and work.needs:
                self.listener.note(f"{work.name}: {work.needs}")
        self.listener.begin()
        for replicate in range(self.plan.processes):
            self._replicate, self._replicate_began_s = replicate, self._elapsed_s()
            targets = self._by_target(self._due(replicate), replicate)
            if targets and not self._may_start(replicate, self._replicate_began_s):
                self.listener.note(
                    f"{replicate} of {self.plan.processes} processes are measured; one more would end "
                    f"after the wall limit of {self._wall_s():.0f} s"
                )
                return
            for group in _groups(targets, self._targets_at_once):
                if self._elapsed_s() > self._wall_s():
                    self.listener.note(
                        f"the wall limit of {self._wall_s():.0f} s is reached: "
                        f"the rest of process {replicate + 1} of {self.plan.processes} is not measured"
                    )
                    return
                self._tell_time_left()
                self._turns.measure_group(group)

    def _may_start(self, replicate: int, at_s: float) -> bool:
        """Whether this replicate ends before the wall limit if it starts then, or has to be measured in any case."""
        return replicate < _LEAST_PROCESSES or at_s + self._expected_s(replicate) <= self._wall_s()

    def _expected_s(self, replicate: int) -> float:
        """Seconds that the processes of this replicate take, if each takes as long as the target's latest one."""
        due = {task.target.key for tasks in self._due(replicate) for task in tasks}
        return sum(self._turns.process_s.get(key, 0.0) for key in due)

    def _tell_time_left(self) -> None:
        """Tell the listener how long the run still takes, once each target has measured a process."""
        if any(task.target.key not in self._turns.process_s for tasks in self._due(self._replicate) for task in tasks):
            return
        now_s, this_s = self._elapsed_s(), self._expected_s(self._replicate)
        end_s = max(now_s, self._replicate_began_s + this_s)
        for replicate in range(self._replicate + 1, self.plan.processes):
            if not self._may_start(replicate, end_s):
                break
            end_s += self._expected_s(replicate)
        least, most = _LIKE_THE_FIRST if self._replicate == 1 else _LIKE_THE_LAST
        self.listener.left(least * (end_s - now_s), max(most * (end_s - now_s), _LATE * this_s))

    def _due(self, replicate: int) -> list[list[Task]]:
        """For each interpreter, the tasks that have more than ``replicate`` processes."""
        return [[t.without(run.dropped) for t in run.tasks if t.processes > replicate] for run in self.runs]

    def _by_target(self, due: Sequence[Sequence[Task]], replicate: int) -> list[TargetTasks]:
        """The tasks by target, in a new random order of targets. Two interpreters alternate in order (AB, BA, ...)."""
        targets: dict[str, TargetTasks] = {}
        for run, tasks in zip(self.runs, due, strict=True):
            for task in tasks:
                targets.setdefault(task.target.key, []).append((run, task))
        shuffled = list(targets.values())
        self.rng.shuffle(shuffled)
        return [own if (replicate + self._first) % 2 == 0 else own[::-1] for own in shuffled]

    def _wall_s(self) -> float:
        return math.inf if self.plan.wall_s is None else self.plan.wall_s * len(self.runs)

    def _elapsed_s(self) -> float:
        """Time since this run began to measure, s, without the time that it waited for other runs."""
        return self._clock() - self._began_s - self._turns.waited_s


def _groups(targets: Sequence[TargetTasks], size: int) -> Iterator[Sequence[TargetTasks]]:
    for start in range(0, len(targets), size):
        yield targets[start : start + size]
