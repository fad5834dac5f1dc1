"""Workers and journals without processes and files, for tests of a campaign."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from overhead import child
from overhead.profiles import PROFILES, Plan
from overhead.results import EndedEntry, because
from overhead.runner import run as run_module
from overhead.runner.campaign import Campaign
from overhead.runner.events import RunNote
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.run import run
from overhead.runner.workers import Job, Pause, Ready, WorkerDied, decode


class Unlocked(Campaign):
    """A campaign that does not wait for other runs on this machine."""

    def lock(self, waiting: Callable[[float], None]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def run_with(
    *stacks: Any,
    plan: Plan | None = None,
    campaign: Callable[..., Campaign] = Unlocked,
    **options: Any,
) -> Outcome:
    """``run`` with another plan than that of its profile, or another campaign."""
    with runs_changed(plan, campaign):
        return run(*stacks, **options)


@contextlib.contextmanager
def runs_changed(
    plan: Plan | None = None, campaign: Callable[..., Campaign] = Unlocked
) -> Iterator[None]:
    """A ``with`` block in which all runs, those of commands too, have this plan and campaign."""
    profiles = PROFILES if plan is None else dict.fromkeys(PROFILES, plan)
    with mock.patch.multiple(run_module, Campaign=campaign, profiles=lambda: profiles):
        yield


class Parent(child.Parent):
    """The parent of a worker in this process. ``answers``: as received; ``flushed``: their number
    at every flush.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.flushed: list[int] = []

    def add(self, answer: object) -> None:
        self.answers.append(decode(msgspec.json.encode(answer)))

    def flush(self) -> None:
        self.flushed.append(len(self.answers))

    def wait(self) -> None:
        """The worker may go on at once."""


class Notes(Listener):
    """Keeps the notes of a campaign."""

    def __init__(self) -> None:
        self.notes: list[RunNote] = []

    def note(self, told: RunNote) -> None:
        self.notes.append(told)


class FakeJournal:
    """A journal that keeps nothing."""

    path = Path("journal")

    def write(self, lines: Iterable[Any]) -> None:
        """Take the lines, which may come from a generator."""
        list(lines)

    def sync(self) -> None:
        """Nothing is written."""


class FakeWorkers:
    """Starts workers that pause after each of their rounds. ``calls`` lists in order what they are
    asked to do.

    ``asking``: the stacks whose workers ask at each pause that another one is measured first.
    ``dying``: by stack, the round at which each of its first workers dies. ``start_s``: how far a
    start moves ``clock``, s.
    """

    def __init__(
        self,
        *,
        rounds: int = 3,
        asking: Iterable[str] = (),
        dying: dict[str, list[int]] | None = None,
        start_s: float = 0.0,
    ) -> None:
        self.rounds, self.asking, self.dying, self.start_s = (
            rounds,
            set(asking),
            dict(dying or {}),
            start_s,
        )
        self.calls: list[str] = []
        self.jobs: list[Job] = []
        self.now_s = 0.0

    def __call__(self, job: Job) -> FakeWorker:
        self.jobs.append(job)
        self.now_s += self.start_s
        return FakeWorker(self, job)

    def clock(self) -> float:
        """Seconds; a call of a worker takes a millisecond."""
        return self.now_s + 1e-3 * len(self.calls)


class FakeWorker:
    """A worker that ``FakeWorkers`` has started."""

    def __init__(self, workers: FakeWorkers, job: Job) -> None:
        self.workers, self.name = workers, job.worker.split("@")[0]
        pause = Pause(others=self.name in workers.asking)
        ended = EndedEntry(worker=job.worker, process=job.process, rule="")
        self.lines: list[Any] = [Ready(), *[pause] * (workers.rounds - 1), ended]
        dying = workers.dying.get(self.name)
        self.dies_at = dying.pop(0) if dying else None

    def receive(self) -> Any:
        line = self.lines.pop(0)
        if self.dies_at is not None and len(self.lines) == self.workers.rounds - 1 - self.dies_at:
            raise WorkerDied(0, because("process-killed", signal="SIGKILL"))
        return line

    def go(self) -> None:
        self.workers.calls.append(self.name)

    def release(self) -> None:
        self.workers.calls.append(f"{self.name} may release")

    def end(self) -> None:
        self.workers.calls.append(f"{self.name} ends")


def faked(workers: FakeWorkers, clock: Callable[[], float] | None = None) -> type[Campaign]:
    """A campaign with these workers and their clock, or another one."""

    class Faked(Unlocked):
        def start_worker(self, job: Job, *_: object) -> Any:
            return workers(job)

        def clock(self) -> float:
            return (clock or workers.clock)()

    return Faked
