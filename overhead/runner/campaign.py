"""The campaign: every target's worker, replicate by replicate, one window at a time on the machine."""

from __future__ import annotations

import dataclasses
import os
import random
import time
from collections.abc import Iterator, Sequence

import psutil

from overhead.measure.planner import Plan
from overhead.results import Ended, Failed, Line
from overhead.runner.baton import baton
from overhead.runner.journal import Journal, Past
from overhead.runner.progress import Listener
from overhead.runner.protocol import Job, Pause, Ready
from overhead.runner.redaction import redacted
from overhead.runner.schedule import Task
from overhead.runner.spawn import Died, WorkerProcess

SILENCE_S = 120.0
"""A worker that says nothing for so long hangs: longer than any compile or round should take."""
START_S = 3.0
"""Rough time for a worker to start, for the time-left display alone."""


def memory_limit() -> int:
    """Bytes of resident memory that a worker may take: what most of this machine has."""
    return int(psutil.virtual_memory().total * 0.75)


@dataclasses.dataclass
class _Started:
    task: Task
    process: int
    worker: WorkerProcess


class Campaign:
    """Runs tasks for the plan's number of processes and journals what they say."""

    def __init__(
        self, journal: Journal, plan: Plan, listener: Listener, plugins: list[str], rng: random.Random
    ) -> None:
        self.journal, self.plan, self.listener, self.plugins, self.rng = journal, plan, listener, plugins, rng
        self.dropped: set[tuple[str, str]] = set()
        self.next_process: dict[str, int] = {}
        self.waited = 0.0
        self.abreast = max(1, min(8, os.cpu_count() or 1))

    def run(self, tasks: Sequence[Task], past: Past | None) -> None:
        """Every task in every replicate that the past does not hold yet."""
        done = dict(past.done) if past else {}
        self.next_process = dict(past.next_process) if past else {}
        missing = {t.target.key: max(0, self.plan.processes - done.get(t.target.key, 0)) for t in tasks}
        planned = sum((t.seconds + START_S) * missing[t.target.key] for t in tasks)
        began, finished, self.waited = time.monotonic(), 0.0, 0.0
        self.listener.begin(planned)
        for replicate in range(self.plan.processes):
            due = [t for t in tasks if missing[t.target.key] > self.plan.processes - 1 - replicate]
            self.rng.shuffle(due)
            for group in _groups(due, self.abreast):
                if self.plan.wall_s is not None and time.monotonic() - began - self.waited > self.plan.wall_s:
                    self.listener.note(
                        f"the wall limit of {self.plan.wall_s:.0f} s is reached: "
                        f"the rest of process {replicate + 1} of {self.plan.processes} is not measured"
                    )
                    return
                self._group(group)
                finished += sum(t.seconds + START_S for t in group)
                self.listener.advance(finished)

    def _group(self, tasks: Sequence[Task]) -> None:
        """Start these workers together; once all are open and quiet, let them measure one after the other."""
        started = [s for s in (self._start(task) for task in tasks) if s]
        try:
            ready = [s for s in started if self._until_ready(s)]
            for one in ready:
                self._measure(one)
        finally:
            for one in started:
                one.worker.end()

    def _start(self, task: Task) -> _Started | None:
        left = task.without(self.dropped)
        if not left.assignments:
            return None
        key = task.target.key
        process = self.next_process.get(key, 0)
        self.next_process[key] = process + 1
        job = Job(
            worker=key,
            process=process,
            assignments=list(left.assignments),
            plugins=self.plugins,
            seconds=left.seconds,
            min_rounds=self.plan.min_rounds,
            max_rounds=self.plan.max_rounds,
            target=self.plan.target,
            seed=self.rng.getrandbits(32),
        )
        self.listener.working(f"opening {key}")
        worker = WorkerProcess(job, task.target.environment, silence_s=SILENCE_S, memory_bytes=memory_limit())
        return _Started(left, process, worker)

    def _until_ready(self, one: _Started) -> bool:
        """Keep what the worker says while it opens its chains. A death costs its case alone; the rest starts anew."""
        try:
            while not isinstance(answer := one.worker.listen(), Ready):
                if answer is None:
                    raise Died(-1, "the worker ended before it measured")
                self._keep(answer)  # type: ignore[arg-type]
        except Died as death:
            return self._again(one, death) and self._until_ready(one)
        self.journal.sync()
        return True

    def _measure(self, one: _Started) -> None:
        """Hand over the baton and keep every round; a death costs the case it was at, the rest is measured anew."""
        while True:
            self.listener.working(f"{one.task.target.key}, process {one.process + 1}")
            asked = time.monotonic()
            try:
                with baton(lambda: self.listener.note("waiting: another run is measuring on this machine")):
                    self.waited += time.monotonic() - asked
                    self._listen(one)
                return
            except Died as death:
                if not (self._again(one, death) and self._until_ready(one)):
                    return

    def _listen(self, one: _Started) -> None:
        one.worker.go()
        ended = False
        while (answer := one.worker.listen()) is not None:
            if isinstance(answer, Pause):
                self.journal.sync()
                one.worker.go()
            else:
                self._keep(answer)  # type: ignore[arg-type]
            if isinstance(answer, Ended):
                self.journal.sync()
                ended = True
                break  # what happens while it releases its objects harms nobody
        if not ended:
            raise Died(-1, "the worker ended before it had measured everything")

    def _keep(self, line: Line) -> None:
        if isinstance(line, Failed):
            self.dropped.add((line.target, line.case))
            line = redacted(line)
            self.listener.note(f"{line.target} {line.case}: {line.status}: {line.reason}")
        self.journal.write([line])

    def _again(self, one: _Started, death: Died) -> bool:
        """Note the death against the case that caused it, or against all where none did; start the rest anew."""
        one.worker.end()
        assignments = one.task.assignments
        guilty = [assignments[death.index]] if 0 <= death.index < len(assignments) else list(assignments)
        for a in guilty:
            self._keep(
                Failed(
                    target=a.target.key,
                    case=a.case.key,
                    worker=one.task.target.key,
                    process=one.process,
                    status="failed",
                    reason=death.reason,
                )
            )
        self.journal.sync()
        fresh = self._start(one.task)
        if fresh is None:
            return False
        one.task, one.process, one.worker = fresh.task, fresh.process, fresh.worker
        return True


def _groups(tasks: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    for start in range(0, len(tasks), size):
        yield tasks[start : start + size]
