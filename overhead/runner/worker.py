"""The worker process: one job from standard input, answers on a private copy of standard output.

Standard output itself is turned to standard error before anything is imported, so that what libraries print there can't
be taken for an answer.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, cast

from overhead.errors import BadPlugin
from overhead.measure.sampling import rounds as c
from overhead.measure.sampling.clock import SystemClock
from overhead.probes import load_plugin, registry
from overhead.probes.base import Chain, Unavailable
from overhead.results import EndedLine, FailedLine, JournalLine, OneOffLine, OpenedLine, RoundLine, Status
from overhead.runner.protocol import Assignment, FoundTargets, Job, Message, Pause, Ready, decode_job, encode
from overhead.runner.workers import WorkerNote

QUIET_S = 20.0
"""A worker says something at least so often, but while a single case keeps it."""


class Worker:
    """Runs one job. ``out`` takes protocol lines; ``go`` blocks until the parent hands over or gives on the baton."""

    def __init__(self, job: Job, out: IO[bytes], go: Callable[[], None]) -> None:
        self.job, self.out, self.go = job, out, go
        self.note = WorkerNote(Path(job.doing_file)) if job.doing_file else None
        self.chains: dict[str, Chain] = {}
        self.index = {a.key: i for i, a in enumerate(job.assignments)}
        self.by_id = {a.key: a for a in job.assignments}
        self.paused = time.monotonic()

    def say(self, message: Message | JournalLine) -> None:
        self.out.write(encode(message))  # type: ignore[arg-type]

    def doing(self, case: str, what: str) -> None:
        if self.note is not None:
            self.note.write(self.index.get(case, -1), what)

    def discover(self) -> None:
        """Answer with the targets of the job's stack."""
        try:
            found = FoundTargets(targets=registry()[self.job.stack].targets())
        except Unavailable as error:
            found = FoundTargets(reason=error.reason, mend=error.mend)
        except Exception as error:  # a library that fails to load says so in its own way
            found = FoundTargets(reason=c.reason_of(error), mend=registry()[self.job.stack].mend)
        self.say(found)
        self.out.flush()

    def measure(self) -> None:
        """Open every chain, wait for the baton, measure, end."""
        for name, assignment in self.by_id.items():
            self.doing(name, "opening")
            self._open(name, assignment)
            self.out.flush()  # a slow compile is a silence of its own, and costs its own case at most
        self.doing("", "waiting for its turn")
        self.say(Ready())
        self.out.flush()
        self.go()
        rule = self._conduct() if self.chains else "no case could be opened"
        self.doing("", "ending")
        self.say(EndedLine(worker=self.job.worker, process=self.job.process, rule=rule))
        self.out.flush()
        self.go()
        for chain in self.chains.values():
            with contextlib.suppress(Exception):  # every number is delivered: a failing release harms nobody
                chain.close()

    def _open(self, name: str, assignment: Assignment) -> None:
        target, case = assignment.target, assignment.case
        begin = time.perf_counter_ns()
        try:
            chain = registry()[target.stack].open(target, case)
        except Exception as error:
            self._failed(name, c.status_of(error), c.reason_of(error))
            return
        took = time.perf_counter_ns() - begin
        self.chains[name] = chain
        self.say(
            OpenedLine(
                target=target.key,
                case=case.key,
                worker=self.job.worker,
                process=self.job.process,
                overlap=chain.overlap,
                synchronous=chain.synchronous,
                wait_spins=chain.wait_spins,
                window=chain.window(),
                kernels=chain.kernels(),
                flags=list(chain.flags),
            )
        )
        if self.job.further:
            return
        self._once(name, "open", [took])
        for figure, value in chain.opening().items():
            self._once(name, figure, [value])

    def _failed(self, name: str, status: str, reason: str) -> None:
        a = self.by_id[name]
        self.say(
            FailedLine(
                target=a.target.key,
                case=a.case.key,
                worker=self.job.worker,
                process=self.job.process,
                status=cast(Status, status),
                reason=reason,
            )
        )

    def _once(self, name: str, figure: str, values: list[float], at: list[int] | None = None, reason: str = "") -> None:
        a = self.by_id[name]
        self.say(
            OneOffLine(
                target=a.target.key,
                case=a.case.key,
                worker=self.job.worker,
                process=self.job.process,
                name=figure,
                values=values,
                at=at or [],
                reason=reason,
            )
        )

    def _conduct(self) -> str:
        def emit(event: c.Event) -> None:
            match event:
                case c.Doing(case, what, others):
                    if not case or time.monotonic() - self.paused > QUIET_S:
                        self._pause(others)
                    self.doing(case, what)
                case c.Rounded(case, number, samples, canary):
                    a = self.by_id[case]
                    self.say(
                        RoundLine(
                            target=a.target.key,
                            case=a.case.key,
                            worker=self.job.worker,
                            process=self.job.process,
                            round=number,
                            samples=samples,
                            canary=list(canary),
                        )
                    )
                case c.Taken(case, name, values, at, reason):
                    self._once(case, name, list(values), list(at), reason)
                case c.Dropped(case, status, reason):
                    self._failed(case, status, reason)

        settings = c.Settings(
            seconds=self.job.seconds,
            min_rounds=self.job.min_rounds,
            target=self.job.target,
            seed=self.job.seed,
            extras=frozenset(self.job.firsts[:1]),
            staged=frozenset() if self.job.further else frozenset(self.job.firsts),
            slopes_only=self.job.further,
            ladders=self.job.ladders,
            max_rounds=self.job.max_rounds,
        )
        return c.conduct(self.chains, SystemClock(), settings, emit)

    def _pause(self, others: bool) -> None:
        """Between rounds, and between cases that take long before them: let the parent put what was said on disk, and
        hear that the worker lives, while nothing is measured. ``others``: another worker is to measure first."""
        self.say(Pause(others=others))
        self.out.flush()
        self.go()
        self.paused = time.monotonic()


def main() -> int:
    sys.stdout.flush()
    out = os.fdopen(os.dup(1), "wb", buffering=1 << 16)
    os.dup2(2, 1)
    job = decode_job(sys.stdin.buffer.readline())

    def go() -> None:
        if not sys.stdin.buffer.readline():
            os._exit(0)  # the parent is gone

    try:
        for plugin in job.plugins:
            load_plugin(Path(plugin))
        worker = Worker(job, out, go)
    except BadPlugin as error:
        print(error, file=sys.stderr)
        return 2
    if job.stack:
        worker.discover()
    else:
        worker.measure()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
