"""The planned processes: no process starts that would end after the wall limit, and a ladder is
calibrated once.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from overhead.loading import files
from overhead.profiles import Plan
from overhead.results import Case, OneOffEntry, Target
from overhead.runner.campaign import InterpreterRun, WorkerLimits
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task
from overhead.runner.workers import Assignment, Job, WorkerProcess
from tests.fakes.workers import FakeJournal, FakeWorkers, Notes, Unlocked, faked, run_with

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "wandering.py"
PLAN = Plan(processes=3, precision=0.1, sampling_s=1.5, wall_s=None, case_s=0.05)
TARGET = Target(stack="fake", api="CPU", adapter="A")
TASK = Task(TARGET, (Assignment(TARGET, Case(pattern="per-submit")),), 1.0, 8)


def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Outcome:
    (tmp_path / "costs").write_text("1000\n" * 3)
    monkeypatch.setenv("WANDERS", str(tmp_path / "costs"))
    out = tmp_path / "r.json"
    return run_with(["wandering"], profile="quick", plugins=[PLUGIN], out=out, plan=PLAN, **more)


@pytest.mark.parametrize(
    ("wall_s", "processes"),
    [
        pytest.param(None, 8, id="no limit"),
        pytest.param(490.0, 8, id="all end before"),
        pytest.param(430.0, 7, id="seven end before"),
        pytest.param(220.0, 3, id="three end before"),
        pytest.param(150.0, 3, id="the third starts before"),
        pytest.param(100.0, 2, id="the second starts before"),
        pytest.param(1.0, 1, id="the first starts before"),
    ],
)
def test_a_run_starts_no_process_that_would_end_after_its_time_limit(
    wall_s: float | None, processes: int
) -> None:
    """Each of the eight processes takes 60 s.

    The first three start as long as the limit is not reached.
    """
    workers, notes = FakeWorkers(start_s=60.0), Notes()
    plan = Plan(processes=8, precision=0.1, sampling_s=10.0, wall_s=wall_s, case_s=1.0)
    runs = [InterpreterRun(FakeJournal(), [TASK])]  # type: ignore[arg-type]
    limits = WorkerLimits(memory_bytes=1, open_workers=1)
    faked(workers)(runs, plan, notes, [], random.Random(1), limits).run()
    assert len(workers.jobs) == processes
    assert bool(notes.notes) == (processes < 8)


def test_the_sizes_of_n_are_searched_in_the_first_process_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, list[str]]] = []

    class Watched(Unlocked):
        def start_worker(self, job: Job, *given: Any) -> WorkerProcess:
            seen.append((job.process, sorted(job.settings.ladders)))
            return super().start_worker(job, *given)

    outcome = measure(tmp_path, monkeypatch, campaign=Watched)
    keys = sorted(record.key for record in outcome.fingerprint.records)
    # The number of the process, and the cases whose sizes it is given and need not search.
    assert seen == [(0, []), (1, keys), (2, keys)]
    large = [
        line.values
        for line in files.read_journal(outcome.samples)
        if isinstance(line, OneOffEntry) and line.name == "ladder" and "large" in line.case
    ]
    assert len(large) == 3, "one for each process"
    assert len({*map(tuple, large)}) == 3, "no two processes measure the same sizes"
    for first, other in itertools.product(large, large):
        assert [n for n in first if n <= 8] == [n for n in other if n <= 8]
        assert other[-1] == pytest.approx(first[-1], rel=0.5), "they are near to each other"


def test_a_case_whose_wait_polls_searches_its_sizes_of_n_in_every_process() -> None:
    run = InterpreterRun(FakeJournal(), [])  # type: ignore[arg-type]

    def said(case: str, name: str, *values: float) -> None:
        run.store(
            OneOffEntry(
                target="t", case=case, worker="t", process=0, name=name, values=list(values)
            ),
            Listener(),
        )

    # The ladder: the sizes of n that a process has found. The first of a case is kept.
    said("a", "ladder", 0, 1, 4)
    said("a", "ladder", 0, 1, 8)
    said("b", "ladder", 1, 9)
    # The wait of "b" polls, every 0.1 s: no process is given its ladder.
    said("b", "wait_quantum", 1e8)
    said("b", "ladder", 1, 9)
    assert run.ladders == {"t a": [0, 1, 4], "t b": []}


@pytest.mark.parametrize(
    ("wall_s", "start_s"), [(None, 5.0), (None, 300.0), (700.0, 5.0), (1200.0, 120.0)]
)
def test_the_time_left_that_a_run_shows_is_about_right(
    wall_s: float | None, start_s: float
) -> None:
    """However long workers open, and where the wall limit ends the run."""
    other = Target(stack="other", api="CPU", adapter="B")
    tasks = [dataclasses.replace(TASK, seconds=0.1)]
    tasks.append(Task(other, (Assignment(other, Case(pattern="per-submit")),), 0.1, 3))
    workers, told = FakeWorkers(rounds=40, start_s=start_s), list[tuple[float, float]]()

    def clock() -> float:
        return workers.now_s + len(workers.calls)

    class Times(Listener):
        def left(self, seconds: float) -> None:
            told.append((clock(), seconds))

    plan = Plan(processes=8, precision=0.1, sampling_s=10.0, wall_s=wall_s, case_s=1.0)
    runs = [InterpreterRun(FakeJournal(), tasks)]  # type: ignore[arg-type]
    limits = WorkerLimits(memory_bytes=1, open_workers=2)
    faked(workers, clock)(runs, plan, Times(), [], random.Random(1), limits).run()
    assert told[0][0] == 0.0
    # After a quarter of the run an estimate is right to 30 % of the run, after half to 10 %.
    for at_s, left_s in told:
        if at_s > clock() / 4:
            assert left_s == pytest.approx(clock() - at_s, abs=0.3 * clock())
        if at_s > clock() / 2:
            assert left_s == pytest.approx(clock() - at_s, abs=0.1 * clock())
