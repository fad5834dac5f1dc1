"""A campaign measures every target in several new worker processes: which target is measured when, and how often."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

from overhead.locks import device_lock
from overhead.profiles import Plan
from overhead.runner.interpreter_run import InterpreterRun
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task
from overhead.runner.turns import START_S, MeasuringWorker, TargetTasks, Turns, WorkerLimits
from overhead.runner.workers import WorkerProcess
from overhead.workloads._decode import needs

_LEAST_PROCESSES = 3
"""The wall limit stops the run before a process that would end later only if so many processes are complete."""


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
        next_process: dict[str, int] = {}
        for past in (run.past for run in runs if run.past):
            for key, number in past.next_process.items():
                next_process[key] = max(number, next_process.get(key, 0))
        self._turns = Turns(
            plan, listener, plugins, seed, next_process, limits=limits, spawn=spawn, lock=lock, clock=clock
        )
        self._began_s = 0.0
        self._targets_at_once = max(1, limits.open_workers // len(runs))

    def run(self) -> None:
        """Measure all planned processes that the journals lack and that end before the wall limit."""
        self._began_s = self._clock()
        planned_s = sum(
            self._turns.measuring_s(task, more) + START_S
            for run in self.runs
            for missing in [run.missing()]
            for task in run.tasks
            for more in range(missing[task.target.key])
        )
        for sentence in needs(a.case.workload for run in self.runs for task in run.tasks for a in task.assignments):
            self.listener.note(sentence)
        self.listener.begin(min(planned_s, self._wall_s()))
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
                self._turns.measure_group(group)
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


def _measuring_s(tasks: Sequence[Sequence[Task]]) -> float:
    """Seconds that one process of each task of all interpreters measures."""
    return sum(task.measuring_s for own in tasks for task in own)


def _groups(targets: Sequence[TargetTasks], size: int) -> Iterator[Sequence[TargetTasks]]:
    for start in range(0, len(targets), size):
        yield targets[start : start + size]
