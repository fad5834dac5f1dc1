"""The worker process: it finds the targets of a stack, or opens and measures the cases of a job."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

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
    """Runs the one job of a worker process: it finds the targets of a stack, or measures cases.
    What it finds is added to the answers for the parent process, and delivered where nothing is
    measured. ``index``, ``by_key``, ``names``: for each case, by the key of its assignment, its
    place in the job, the assignment, and the fields that name it in the journal.
    """

    def __init__(self, job: Job, parent: Parent) -> None:
        self.job = job
        self.parent = parent
        self.note: Note | None = None
        if job.doing_file:
            # If someone has deleted the file, go on: it only serves to explain a death.
            with contextlib.suppress(OSError):
                self.note = Note(Path(job.doing_file))
        self.chains: dict[str, Chain] = {}
        self.opened: set[str] = set()
        self.ran: set[str] = set()
        """Targets by key: those with an opened case, and those with a unit that ran."""
        # By key of the assignment: its place in the job, the assignment itself, and the fields that
        # name it in the journal.
        self.index: dict[str, int] = {}
        self.by_key: dict[str, Assignment] = {}
        self.names: dict[str, dict[str, Any]] = {}
        for index, assignment in enumerate(job.assignments):
            self.index[assignment.key] = index
            self.by_key[assignment.key] = assignment
            self.names[assignment.key] = assignment.entry_fields(job.worker, job.process)
        self.paused = time.monotonic()
        """When this last paused, which delivers all lines."""

    def note_step(self, case: str, what: str) -> None:
        """Note the next step where the parent finds it if this process dies."""
        if self.note is not None:
            self.note.write(self.index.get(case, -1), what)

    def discover(self) -> None:
        """Answer with the targets of the job's stack (the devices that it finds), or why it cannot
        be measured.

        Also asks the stack for what is needed later, its variables and its cases, so that an error
        in them shows here and not in the process that plans the run.
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
            mend = registry()[self.job.stack].mend
            found = FoundTargets(reason=reason_of(error), mend=mend, failed=True)
        self.parent(found)

    def open_and_measure(self) -> None:
        """Open the chain of every case, wait for the turn of this worker, measure, and close them.
        The parent gets entries of the journal, and says when the turn comes.
        """
        for key, assignment in self.by_key.items():
            self.note_step(key, "opening")
            self._open(assignment)
            self.parent.flush()  # before the next open, which may compile for long or crash
        # All that may be opened is open.
        self.note_step("", "waiting for its turn")
        self.parent(Ready())
        self.parent.wait()
        # ``rule``: why the sampling ended; without a chain there was none.
        rule: Why = because("no-case-opened")
        if self.chains:
            settings = replace(self.job.settings, names=self.names, process=self.job.process)
            # ``_take`` gets what is measured, ``_judge_first_call`` the error of a case's first
            # call.
            rule = measure_cases(
                self.chains, SystemClock(), settings, self._take, self._judge_first_call
            )
        self.note_step("", "ending")
        self.parent(EndedEntry(worker=self.job.worker, process=self.job.process, rule=rule))
        # Closing would disturb others on the device; the parent waits until all have measured.
        self.parent.wait()
        for key in list(self.chains):
            self._close(key)

    def _open(self, assignment: Assignment) -> None:
        """Open the chain of a case, and send what it is and how long that took; or send why the
        case failed.
        """
        key, target = assignment.key, assignment.target
        names = self.names[key]
        began_ns = time.perf_counter_ns()
        try:
            # Neither an earlier process (``_runs_first``) nor this one has opened a case of the
            # target. What this very first case cannot open, this machine cannot run.
            is_first = self._runs_first() and target.key not in self.opened
            probe = registry()[target.stack]
            chain = open_case(probe, target, assignment.case, is_first=is_first)
            self.chains[key] = chain
            # The time to open, then what is known of the chain and the parts of that time.
            opening_ns = time.perf_counter_ns() - began_ns
            self.opened.add(target.key)
            description = describe(chain)
            parts_of_opening = opening_of(chain)
        except BaseException as error:  # sys.exit in a stack must not end the other cases
            failed = FailedEntry(**names, status=status_of(error), reason=reason_of(error))
            self.parent.add(failed)
            self._close(key)
            return
        self.parent.add(OpenedEntry(**names, **vars(description)))
        for figure, value in {"open": opening_ns, **parts_of_opening}.items():
            self.parent.add(OneOffEntry(**names, name=figure, values=[value]))

    def _runs_first(self) -> bool:
        """Whether this is the first process of its targets. Later ones run what has run in an
        earlier one.
        """
        return self.job.process == 0

    def _judge_first_call(self, key: str, error: BaseException) -> BaseException:
        """The error to report for the first call of a case, which raised ``error``. If nothing has
        run on its target yet, the machine may lack something: then it is ``Unavailable``, which
        says what, and not a failure of the case.
        """
        target = self.by_key[key].target
        has_run_before = not self._runs_first() or target.key in self.ran
        if has_run_before or not isinstance(error, Exception):
            return error
        # None if the machine is not known to be the cause. ``CANNOT``: what the message says.
        return cannot_here(error, registry()[target.stack], CANNOT) or error

    def _close(self, key: str) -> None:
        """Close the chain of the case with this key, if it is open. Errors are ignored: its results
        or its failure are delivered already.
        """
        with contextlib.suppress(Exception):
            chain = self.chains.pop(key, None)
            if chain is not None:
                chain.close()

    def _take(self, event: Event) -> None:
        """Take what measuring emits: an entry of the journal, which goes to the parent, or what is
        done next (``Doing``), which is noted in case this process dies.

        A step without a case is one at which others may measure, so the worker pauses there; also
        where it has sent nothing for long, or the parent would take it for dead.
        """
        if not isinstance(event, Doing):
            # Any other entry is of samples, so a unit has run on its target.
            if not isinstance(event, FailedEntry):
                self.ran.add(event.target)
            self.parent.add(event)
            return
        # ``paused``: when the last pause was, at which all lines were delivered.
        silent_s = time.monotonic() - self.paused
        if not event.case or silent_s > LONGEST_SILENCE_S:
            # ``others``: another worker on the device should measure first.
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
    """Carry out the one job that the parent has sent to this process, which then ends."""
    # Of installed packages only the stacks that the parent has tried.
    allow_entry_points(job.entry_points)
    try:
        for plugin in job.plugins:
            load_plugin(Path(plugin))
    except BadPlugin as error:
        # One job is all that a worker does.
        raise SystemExit(str(error)) from None
    worker = Worker(job, parent)
    if job.stack:
        worker.discover()
    else:
        worker.open_and_measure()
    raise SystemExit


if __name__ == "__main__":
    serve(Job, _answer)
