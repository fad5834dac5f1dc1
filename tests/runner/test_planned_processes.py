"""The planned processes: no process starts that would end after the wall limit, and a ladder is calibrated once."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Any

import pytest

from overhead import results
from overhead.loading import files
from overhead.profiles import Plan
from overhead.results import Case, EndedLine, OneOffLine, OpenedLine, Target
from overhead.runner.campaign import Campaign
from overhead.runner.interpreter_run import InterpreterRun
from overhead.runner.journal import note_ladder
from overhead.runner.progress import Listener
from overhead.runner.protocol import Assignment, Job
from overhead.runner.run import Outcome, run
from overhead.runner.schedule import Task
from overhead.runner.turns import WorkerLimits
from overhead.runner.workers import WorkerProcess
from tests.fakes.workers import FakeJournal, FakeWorkers, no_lock

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "wandering.py"
PLAN = Plan(processes=3, target=0.1, sampling_s=1.5, wall_s=None, case_s=0.05)
TARGET = Target(stack="fake", api="CPU", adapter="A")
TASK = Task.of(TARGET, [Assignment(TARGET, Case(pattern="per-submit"))], 1.0, 8)


def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **more: object) -> Outcome:
    (tmp_path / "costs").write_text("1000\n" * 3)
    monkeypatch.setenv("WANDERS", str(tmp_path / "costs"))
    settings: dict[str, Any] = {"plan": PLAN, "campaign": functools.partial(Campaign, lock=no_lock), **more}
    return run(["wandering"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json", **settings)


class Notes(Listener):
    """Keeps the notes of a campaign."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.mark.parametrize(
    ("wall_s", "processes"), [(None, 8), (490.0, 8), (430.0, 7), (220.0, 3), (150.0, 3), (100.0, 2), (1.0, 1)]
)
def test_no_process_starts_that_would_end_after_the_wall_limit(wall_s: float | None, processes: int) -> None:
    """Each of the eight processes takes 60 s.

    The first three start as long as the limit is not reached.
    """
    workers, notes = FakeWorkers(start_s=60.0), Notes()
    plan = Plan(processes=8, target=0.1, sampling_s=10.0, wall_s=wall_s, case_s=1.0)
    runs = [InterpreterRun(FakeJournal(), [TASK])]  # type: ignore[arg-type]
    limits = WorkerLimits(memory_bytes=1, open_workers=1)
    Campaign(
        runs, plan, notes, [], random.Random(1), limits=limits, spawn=workers, lock=no_lock, clock=workers.clock
    ).run()
    assert len(workers.jobs) == processes
    assert bool(notes.notes) == (processes < 8)


def test_a_ladder_is_calibrated_in_the_first_process_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, list[str]]] = []

    def spawn(job: Job, *given: Any, **more: Any) -> WorkerProcess:
        seen.append((job.process, sorted(job.ladders)))
        return WorkerProcess(job, *given, **more)

    outcome = measure(tmp_path, monkeypatch, campaign=functools.partial(Campaign, lock=no_lock, spawn=spawn))
    keys = sorted(record.key for record in outcome.fingerprint.records)
    assert seen == [(0, []), (1, keys), (2, keys)]
    large = [
        line.values
        for line in files.read_journal(outcome.samples)
        if isinstance(line, OneOffLine) and line.name == "ladder" and "large" in line.case
    ]
    assert len(large) == 3
    assert large[0] == large[1] == large[2]


def test_no_ladder_is_stored_for_a_case_whose_wait_polls() -> None:
    ladders: dict[str, list[int]] = {}

    def said(case: str, name: str, *values: float) -> None:
        note_ladder(ladders, OneOffLine(target="t", case=case, worker="t", process=0, name=name, values=list(values)))

    said("a", "ladder", 0, 1, 4)
    said("a", "ladder", 0, 1, 8)
    said("b", "ladder", 1, 9)
    said("b", "wait_quantum", 1e8)
    said("b", "ladder", 1, 9)
    assert ladders == {"t a": [0, 1, 4], "t b": []}


@pytest.mark.slow
def test_a_resumed_run_measures_the_processes_that_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(tmp_path, monkeypatch)
    lines = list(files.read_journal(whole.samples))
    ends = [i for i, line in enumerate(lines) if isinstance(line, EndedLine)]
    assert len(ends) == 3
    assert sum(isinstance(line, OpenedLine) for line in lines) == 2 * 3
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(map(results.encode_line, lines[: ends[1] + 1])))
    (tmp_path / "costs").write_text("1000")
    resumed = run(plugins=[PLUGIN], resume=cut, plan=PLAN, campaign=functools.partial(Campaign, lock=no_lock))
    assert sum(isinstance(line, EndedLine) for line in files.read_journal(resumed.samples)) == 3


def test_the_time_left_includes_the_table_by_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the first process of each target. At the end all planned seconds are done."""
    monkeypatch.setattr("os.cpu_count", lambda: 64)
    planned: dict[bool, float] = {}

    class Times(Listener):
        done_s = planned_s = 0.0

        def begin(self, planned_s: float) -> None:
            self.planned_s = planned_s

        def advance(self, done_s: float) -> None:
            self.done_s = done_s

    for table in (False, True):
        workers, times = FakeWorkers(), Times()
        plan = Plan(processes=8, target=0.1, sampling_s=10.0, wall_s=None, case_s=1.0, by_processor=table)
        runs = [InterpreterRun(FakeJournal(), [TASK])]  # type: ignore[arg-type]
        limits = WorkerLimits(memory_bytes=1, open_workers=1)
        Campaign(
            runs, plan, times, [], random.Random(1), limits=limits, spawn=workers, lock=no_lock, clock=workers.clock
        ).run()
        assert times.done_s == pytest.approx(times.planned_s)
        planned[table] = times.planned_s
    assert planned[True] - planned[False] == pytest.approx(16 * 0.15)
