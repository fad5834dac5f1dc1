"""The worker process: it finds the targets of a stack, or opens and measures the cases of a job."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path

from overhead.child import Parent, serve
from overhead.errors import BadPlugin
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.description import describe, opening_of
from overhead.measure.sampling.events import Doing, Event, reason_of, status_of
from overhead.measure.sampling.rounds import measure_cases
from overhead.probes import (
    allow_entry_points,
    environments_of,
    load_plugin,
    registry,
    space_of,
    targets_of,
)
from overhead.probes.arms import open_case
from overhead.probes.base import Chain, Unavailable
from overhead.probes.common.availability import CANNOT, cannot_here
from overhead.results import EndedEntry, FailedEntry, OneOffEntry, OpenedEntry, Why, because
from overhead.runner.workers import Assignment, FoundTargets, Job, Note, Pause, Ready

LONGEST_SILENCE_S = 20.0
"""A worker sends its lines at least this often, except while one step of one case takes longer."""


class Worker:
    """Runs one job. Lines are added to the answers, and delivered where nothing is measured."""

    def __init__(self, job: Job, parent: Parent) -> None:
        self.job, self.parent = job, parent
        self.note: Note | None = None
        with contextlib.suppress(
            OSError
        ):  # someone has deleted the file: it only serves to explain a death
            self.note = Note(Path(job.doing_file)) if job.doing_file else None
        self.chains: dict[str, Chain] = {}
        self.opened: set[str] = set()
        self.ran: set[str] = set()
        """Targets by key: those with an opened case, and those with a unit that ran."""
        self.index = {a.key: i for i, a in enumerate(job.assignments)}
        self.by_id = {a.key: a for a in job.assignments}
        self.names = {a.key: a.entry_fields(job.worker, job.process) for a in job.assignments}
        self.paused = time.monotonic()

    def note_step(self, case: str, what: str) -> None:
        """Note the next step where the parent finds it if this process dies."""
        if self.note is not None:
            self.note.write(self.index.get(case, -1), what)

    def discover(self) -> None:
        """Answer with the targets of the job's stack, or why it cannot be measured. Check its other
        answers too.
        """
        try:
            probe = registry()[self.job.stack]
            environments_of(probe)
            found = FoundTargets(targets=targets_of(probe))
            for target in found.targets:
                space_of(probe, target)
        except Unavailable as error:
            found = FoundTargets(reason=error.reason, mend=error.mend)
        except BaseException as error:  # a library that fails to load may raise anything
            found = FoundTargets(
                reason=reason_of(error), mend=registry()[self.job.stack].mend, failed=True
            )
        self.parent(found)

    def open_and_measure(self) -> None:
        """Open every chain, wait for the turn, measure, close."""
        for name, assignment in self.by_id.items():
            self.note_step(name, "opening")
            self._open(name, assignment)
            self.parent.flush()  # before the next open, which may compile for long or crash
        self.note_step("", "waiting for its turn")
        self.parent(Ready())
        self.parent.wait()
        rule: Why = because("no-case-opened")
        if self.chains:
            settings = replace(self.job.settings, names=self.names, process=self.job.process)
            rule = measure_cases(
                self.chains, SystemClock(), settings, self._take, self._judge_first_call
            )
        self.note_step("", "ending")
        self.parent(EndedEntry(worker=self.job.worker, process=self.job.process, rule=rule))
        self.parent.wait()
        for name in list(self.chains):
            self._close(name)

    def _open(self, name: str, assignment: Assignment) -> None:
        target, case = assignment.target, assignment.case
        begin = time.perf_counter_ns()
        try:
            is_first = self._runs_first() and target.key not in self.opened
            chain = self.chains[name] = open_case(
                registry()[target.stack], target, case, is_first=is_first
            )
            took = time.perf_counter_ns() - begin
            self.opened.add(target.key)
            found = describe(chain)
            opening = opening_of(chain)
        except BaseException as error:  # sys.exit in a stack must not end the other cases
            self.parent.add(
                FailedEntry(**self.names[name], status=status_of(error), reason=reason_of(error))
            )
            self._close(name)
            return
        self.parent.add(OpenedEntry(**self.names[name], **vars(found)))
        for figure, value in {"open": took, **opening}.items():
            self.parent.add(OneOffEntry(**self.names[name], name=figure, values=[value]))

    def _runs_first(self) -> bool:
        """Whether this is the first process of its targets. Later ones run what has run in an
        earlier one.
        """
        return self.job.process == 0

    def _judge_first_call(self, name: str, error: BaseException) -> BaseException:
        """The error of a case's first call; ``Unavailable`` if the machine is the cause, because no
        unit has run.
        """
        target = self.by_id[name].target
        if not self._runs_first() or target.key in self.ran or not isinstance(error, Exception):
            return error
        return cannot_here(error, registry()[target.stack], CANNOT) or error

    def _close(self, name: str) -> None:
        """Close the chain, if it is open. Errors are ignored, because its results or its failure
        are delivered.
        """
        with contextlib.suppress(Exception):
            if chain := self.chains.pop(name, None):
                chain.close()

    def _take(self, event: Event) -> None:
        """Send a line of the journal; note the next step, and wait at the steps where others may
        measure.
        """
        if not isinstance(event, Doing):
            if not isinstance(event, FailedEntry):
                self.ran.add(event.target)
            self.parent.add(event)
            return
        if not event.case or time.monotonic() - self.paused > LONGEST_SILENCE_S:
            self._pause(event.others)
        self.note_step(event.case, event.what)

    def _pause(self, others: bool) -> None:
        """Deliver all lines and wait until the parent has saved them. ``others``: another worker
        measures first.
        """
        self.parent(Pause(others=others))
        self.parent.wait()
        self.paused = time.monotonic()


def _answer(job: Job, parent: Parent) -> None:
    allow_entry_points(job.entry_points)
    try:
        for plugin in job.plugins:
            load_plugin(Path(plugin))
    except BadPlugin as error:
        raise SystemExit(str(error)) from None
    worker = Worker(job, parent)
    worker.discover() if job.stack else worker.open_and_measure()
    raise SystemExit


if __name__ == "__main__":
    serve(Job, _answer)
