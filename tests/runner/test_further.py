"""Cases that are noisy after the planned processes get further processes, while the plan has time for them."""

from __future__ import annotations

import functools
import math
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from overhead import results
from overhead.loading import files
from overhead.loading.reduce import load, noisy
from overhead.measure.fitting.across_processes import mean_of_processes
from overhead.measure.fitting.data import Estimate
from overhead.measure.fitting.line import Floats
from overhead.profiles import PROFILES, Plan
from overhead.results import Case, EndedLine, OneOffLine, OpenedLine, Record, Target
from overhead.runner.campaign import Campaign
from overhead.runner.interpreter_run import InterpreterRun
from overhead.runner.journal import note_ladder
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.protocol import Assignment, Job
from overhead.runner.run import run
from overhead.runner.schedule import Task, further_tasks, half_widths
from overhead.runner.turns import WorkerLimits
from overhead.runner.workers import WorkerProcess
from tests.fakes.runs import Made
from tests.fakes.workers import FakeJournal, FakeWorkers, no_lock

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "wandering.py"
QUICK = PROFILES["quick"]
PLAN = Plan(processes=2, target=0.1, sampling_s=2.0, wall_s=60.0, case_s=0.05, further=3, further_share=0.5)
TARGET = Target(stack="fake", api="CPU", adapter="A")
APART = 1_000, 1_300, 1_000, 1_300, 1_000, 1_300
"""Costs whose interval never becomes as narrow as 10 %."""
CASES = [Case(pattern="per-submit", params={"n": n}) for n in range(4)]


def slow_clock() -> float:
    """A clock that is much slower than real time, so that a busy test machine does not reach the wall limit."""
    return 1e-3 * time.monotonic()


def unlimited(*given: Any, **more: Any) -> Campaign:
    """A campaign without the lock of the machine that never reaches its wall limit."""
    return Campaign(*given, **{"lock": no_lock, "clock": slow_clock, **more})


def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *costs: float, **more: object) -> Outcome:
    (tmp_path / "costs").write_text("\n".join(map(str, costs)))
    monkeypatch.setenv("WANDERS", str(tmp_path / "costs"))
    settings: dict[str, Any] = {"plan": PLAN, "campaign": unlimited, **more}
    return run(["wandering"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json", **settings)


def record(outcome: Outcome, size: str) -> Record:
    return next(r for r in outcome.fingerprint.records if r.params["size"] == size)


def ended(outcome: Outcome) -> int:
    """The number of processes that completed."""
    return sum(isinstance(line, EndedLine) for line in files.read_journal(outcome.samples))


def complete(outcome: Outcome, size: str) -> results.Figure:
    return next(f for f in record(outcome, size).figures if f.name == "complete")


def test_a_noisy_case_gets_further_processes_until_it_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_020, 1_010)
    assert (complete(outcome, "large").status, complete(outcome, "large").processes) == ("ok", 3)
    assert complete(outcome, "large").rule.endswith("1 further process, as the case was noisy before")
    assert (complete(outcome, "small").status, complete(outcome, "small").processes) == ("ok", 2)
    assert "noisy before" not in complete(outcome, "small").rule


@pytest.mark.slow
def test_the_number_of_further_processes_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, *APART)
    assert (complete(outcome, "large").status, ended(outcome)) == ("noisy", 5)


@pytest.mark.parametrize(("wall_s", "processes"), [(205.0, 2), pytest.param(220.0, 3, marks=pytest.mark.slow)])
def test_no_process_starts_that_would_end_after_the_wall_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall_s: float, processes: int
) -> None:
    starts: list[Job] = []

    def spawn(job: Job, *given: Any, **more: Any) -> WorkerProcess:
        starts.append(job)
        return WorkerProcess(job, *given, **more)

    def campaign(*given: Any) -> Campaign:  # each process takes 70 s
        return unlimited(*given, spawn=spawn, clock=lambda: 70.0 * len(starts) + slow_clock())

    found = measure(tmp_path, monkeypatch, *APART, plan=replace(PLAN, wall_s=wall_s), campaign=campaign)
    assert ended(found) == processes


def test_a_further_process_measures_only_slopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_020, 1_010)
    lines = list(files.read_journal(outcome.samples))
    taken = {n: {line.name for line in lines if isinstance(line, OneOffLine) and line.process == n} for n in range(3)}
    assert {"naive", "naive_idle", "empty_wait", "ladder"} <= taken[0] == taken[1]
    assert taken[2] == {"clock", "ladder"}


def test_a_ladder_is_calibrated_in_the_first_process_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, list[str]]] = []

    def spawn(job: Job, *given: Any, **more: Any) -> WorkerProcess:
        seen.append((job.process, sorted(job.ladders)))
        return WorkerProcess(job, *given, **more)

    spawning = functools.partial(unlimited, spawn=spawn)
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_000, campaign=spawning)
    keys = sorted(record.key for record in outcome.fingerprint.records)
    assert seen == [(0, []), (1, keys)]
    large = [
        line.values
        for line in files.read_journal(outcome.samples)
        if isinstance(line, OneOffLine) and line.name == "ladder" and "large" in line.case
    ]
    assert len(large) == 2
    assert large[0] == large[1]


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


@pytest.mark.parametrize(("wall_s", "processes"), [(240.0, 3), (300.0, 4)])
def test_the_expected_time_of_a_further_process_is_that_of_the_last_process(wall_s: float, processes: int) -> None:
    """One target has fewer processes than the profile, so the last replicate is empty."""
    workers = FakeWorkers(start_s=70.0)
    task = Task.of(TARGET, [Assignment(TARGET, CASES[0])], 1.0, 3)
    plan = replace(PLAN, processes=4, wall_s=wall_s, further=1, sampling_s=10.0)
    runs = [InterpreterRun(FakeJournal(), [task])]  # type: ignore[arg-type]
    Campaign(
        runs,
        plan,
        Listener(),
        [],
        random.Random(1),
        limits=WorkerLimits(memory_bytes=1, open_workers=1),
        spawn=workers,
        lock=no_lock,
        clock=workers.clock,
        noisy=lambda journal, keys: {task.own[0].key: 0.2},
    ).run()
    assert len(workers.jobs) == processes


@pytest.mark.slow
def test_a_resumed_run_continues_with_its_further_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(tmp_path, monkeypatch, *APART)
    lines = list(files.read_journal(whole.samples))
    ends = [i for i, line in enumerate(lines) if isinstance(line, EndedLine)]
    opened = [i for i, line in enumerate(lines) if isinstance(line, OpenedLine)]
    assert len(ends) == 5
    assert len(opened) == 2 * 2 + 3
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(map(results.encode_line, lines[: ends[3] + 1])))
    (tmp_path / "costs").write_text("1000 9999")
    resumed = run(plugins=[PLUGIN], resume=cut, plan=PLAN, campaign=unlimited)
    assert ended(resumed) == 5
    assert (tmp_path / "costs").read_text() == "9999.0"


def test_noisy_returns_the_half_widths_of_noisy_records(tmp_path: Path) -> None:
    calm = Made(processes=3).journal(tmp_path / "calm.jsonl")
    wild = Made(processes=3, drift={1: 1.2}).journal(tmp_path / "wild.jsonl")
    keys = [record.key for record in load(wild).records]
    assert noisy(calm, keys) == {}
    found = noisy(wild, keys)
    assert list(found) == keys
    assert all(0.2 < width < 0.4 for width in found.values())
    assert list(noisy(wild, keys[:1])) == keys[:1]


def test_cases_nearest_to_their_target_width_come_first() -> None:
    companion = Assignment(Target(stack="other", api="CPU", adapter="A"), CASES[0])
    own = [Assignment(TARGET, case) for case in CASES]
    task = Task.of(TARGET, [*own, companion], 1.0, 2)
    noisy_now = {companion.key: 0.11} | dict(zip([a.key for a in own], [0.4, 0.2, 0.3], strict=False))
    ((found,),) = further_tasks([[task]], noisy_now, 0.41)
    assert found.assignments == (own[1], own[2])
    assert found.seconds == pytest.approx(0.41)
    assert further_tasks([[task]], noisy_now, 100.0)[0][0].seconds == pytest.approx(3 * 0.6)
    assert further_tasks([[task]], noisy_now, math.inf)[0][0].seconds == pytest.approx(0.6)
    assert found.extras == task.extras == found.staged == task.staged == (own[0].key,)
    assert further_tasks([[task]], noisy_now, 0.1) == [[]]


def test_a_case_that_is_noisy_under_one_of_two_interpreters_is_measured_under_both() -> None:
    own = [Assignment(TARGET, case) for case in CASES]
    task = Task.of(TARGET, own, 1.0, 2)
    journals = {Path("base"): {own[0].key: 0.2}, Path("new"): {own[3].key: 0.2}}
    wide = half_widths([[task], [task]], journals, lambda journal, keys: journals[journal])
    base, new = further_tasks([[task], [task]], wide, 10.0)
    assert base == new
    assert base[0].assignments == (own[0], own[3])


@pytest.mark.slow
@pytest.mark.parametrize("profile", [QUICK, PROFILES["default"]], ids=["quick", "default"])
@pytest.mark.parametrize("targets", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("wander", [0.0, 0.04], ids=["steady", "wandering"])
def test_intervals_keep_their_coverage_with_further_processes(profile: Plan, targets: float, wander: float) -> None:
    """The costs of processes have a normal distribution, on a machine with constant or varying speed.

    ``targets``: the standard deviation as a multiple of the target half-width. Stopping when the interval is narrow
    enough reduces the coverage only a little. Intervals that are ``ok`` at that time contain the true cost (at the
    speed of these processes) more often than intervals that are ``ok`` after the planned processes.
    """
    plan, spread, dice = profile, targets * profile.target, np.random.default_rng(1)
    held, sure, grown = [], [], []
    for _ in range(1_000):
        most = plan.processes + plan.further
        paces = 1 + wander * dice.standard_normal(most)
        values = list(paces + spread * dice.standard_normal(most))
        count = plan.processes
        few = found = mean_of_processes(values[:count], plan.target, paces=paces[:count])
        while found.status == "noisy" and count < most:
            count += 1
            found = mean_of_processes(values[:count], plan.target, paces=paces[:count])
        held.append(holds(found, paces[:count]))
        sure += [holds(few, paces[: plan.processes])] if few.status == "ok" else []
        grown += [holds(found, paces[:count])] if found.status == "ok" else []
    assert (0.915 if wander else 0.925) <= np.mean(held) <= 0.975
    assert len(grown) > len(sure)
    assert np.mean(grown) > np.mean(sure)


def holds(found: Estimate, paces: Floats) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= float(np.mean(paces)) <= found.high
