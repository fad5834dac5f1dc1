"""The worker process: it reads one job from standard input and answers on a private copy of standard output.

Standard output itself is redirected to standard error before anything is imported, so that the output of a library
cannot be mistaken for an answer.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from overhead.child import connect
from overhead.errors import BadPlugin
from overhead.measure.sampling.clock import Clock, SystemClock
from overhead.measure.sampling.description import describe, opening_of
from overhead.measure.sampling.events import Doing, Event, Settings, reason_of, status_of
from overhead.measure.sampling.rounds import measure_cases
from overhead.probes import allow_entry_points, environments_of, load_plugin, registry, space_of, targets_of
from overhead.probes.base import Chain, Probe, Unavailable
from overhead.results import EndedLine, FailedLine, JournalLine, OneOffLine, OpenedLine
from overhead.runner.protocol import Assignment, FoundTargets, Job, Message, Pause, Ready, decode_job, encode
from overhead.runner.workers import WorkerNote

_LONGEST_SILENCE_S = 20.0
"""A worker sends its lines at least this often, except while one step of one case takes longer."""

Measure = Callable[[Mapping[str, Chain], Clock, Settings, Callable[[Event], None]], str]


class Worker:
    """Runs one job. ``out`` takes protocol lines; ``wait_for_go`` blocks until the parent lets the worker go on.

    ``stacks`` returns the registered stacks; ``measure`` samples the open chains.
    """

    def __init__(
        self,
        job: Job,
        out: IO[bytes],
        wait_for_go: Callable[[], object],
        *,
        longest_silence_s: float = _LONGEST_SILENCE_S,
        stacks: Callable[[], Mapping[str, Probe]] = registry,
        measure: Measure = measure_cases,
    ) -> None:
        self.job, self.out, self.wait_for_go = job, out, wait_for_go
        self.longest_silence_s, self.stacks, self.measure = longest_silence_s, stacks, measure
        self.note: WorkerNote | None = None
        with contextlib.suppress(OSError):  # someone has deleted the file: it only serves to explain a death
            self.note = WorkerNote(Path(job.doing_file)) if job.doing_file else None
        self.chains: dict[str, Chain] = {}
        self.index = {a.key: i for i, a in enumerate(job.assignments)}
        self.by_id = {a.key: a for a in job.assignments}
        self.paused = time.monotonic()

    def send(self, message: Message | JournalLine) -> None:
        """Write one line; ``out.flush`` delivers it."""
        self.out.write(encode(message))  # type: ignore[arg-type]

    def note_step(self, case: str, what: str) -> None:
        """Note the next step where the parent finds it if this process dies."""
        if self.note is not None:
            self.note.write(self.index.get(case, -1), what)

    def discover(self) -> None:
        """Answer with the targets of the job's stack, or why it cannot be measured. Check its other answers too."""
        try:
            probe = self.stacks()[self.job.stack]
            environments_of(probe)
            found = FoundTargets(targets=targets_of(probe))
            for target in found.targets:
                space_of(probe, target)
        except Unavailable as error:
            found = FoundTargets(reason=error.reason, mend=error.mend)
        except BaseException as error:  # a library that fails to load may raise anything
            found = FoundTargets(reason=reason_of(error), mend=self.stacks()[self.job.stack].mend)
        self.send(found)
        self.out.flush()

    def open_and_measure(self) -> None:
        """Open every chain, wait for the turn, measure, close."""
        for name, assignment in self.by_id.items():
            self.note_step(name, "opening")
            self._open(name, assignment)
            self.out.flush()  # before the next open, which may compile for long or crash
        self.note_step("", "waiting for its turn")
        self.send(Ready())
        self.out.flush()
        self.wait_for_go()
        rule = self._sample_chains() if self.chains else "no case could be opened"
        self.note_step("", "ending")
        self.send(EndedLine(worker=self.job.worker, process=self.job.process, rule=rule))
        self.out.flush()
        self.wait_for_go()
        for name in list(self.chains):
            self._close(name)

    def _open(self, name: str, assignment: Assignment) -> None:
        target, case = assignment.target, assignment.case
        begin = time.perf_counter_ns()
        try:
            chain = self.chains[name] = self.stacks()[target.stack].open(target, case)
            took = time.perf_counter_ns() - begin
            found = describe(chain)
            opening = opening_of(chain)
        except BaseException as error:  # sys.exit in a stack must not end the other cases
            self.send(FailedLine(**self._which(name), status=status_of(error), reason=reason_of(error)))
            self._close(name)
            return
        self.send(
            OpenedLine(
                **self._which(name),
                overlap=found.overlap,
                synchronous=found.synchronous,
                wait_spins=found.wait_spins,
                window=found.window,
                kernels=found.kernels,
                flags=found.flags,
            )
        )
        for figure, value in {"open": took, **opening}.items():
            self.send(OneOffLine(**self._which(name), name=figure, values=[value]))

    def _close(self, name: str) -> None:
        """Close the chain, if it is open. Errors are ignored, because its results or its failure are delivered."""
        with contextlib.suppress(Exception):
            if chain := self.chains.pop(name, None):
                chain.close()

    def _which(self, name: str) -> dict[str, Any]:
        """The fields of a line that say which case it is about, and which process measured it."""
        a = self.by_id[name]
        return {
            "target": a.target.key,
            "case": a.case.key,
            "worker": self.job.worker,
            "process": self.job.process,
        }

    def _sample_chains(self) -> str:
        """Measure all open chains; return the rule that stopped it."""
        settings = replace(self.job.settings, names={name: self._which(name) for name in self.chains})
        return self.measure(self.chains, SystemClock(), settings, self._take)

    def _take(self, event: Event) -> None:
        """Send a line of the journal; note the next step, and wait at the steps where others may measure."""
        if not isinstance(event, Doing):
            self.send(event)
            return
        if not event.case or time.monotonic() - self.paused > self.longest_silence_s:
            self._pause(event.others)
        self.note_step(event.case, event.what)

    def _pause(self, others: bool) -> None:
        """Deliver all lines and wait until the parent has saved them. ``others``: another worker measures first.

        Called between rounds, and between long steps before them, while nothing is measured.
        """
        self.send(Pause(others=others))
        self.out.flush()
        self.wait_for_go()
        self.paused = time.monotonic()


def main() -> int:
    lines, out = connect()
    job = decode_job(next(lines))
    allow_entry_points(job.entry_points)
    try:
        for plugin in job.plugins:
            load_plugin(Path(plugin))
        worker = Worker(job, out, lambda: next(lines))
    except BadPlugin as error:
        print(error, file=sys.stderr)
        return 2
    if job.stack:
        worker.discover()
    else:
        worker.open_and_measure()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
