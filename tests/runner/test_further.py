"""What is noisy after the processes that were planned is measured in further ones, until it is not or time is up."""

from __future__ import annotations

import contextlib
import math
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead import results
from overhead.loading.reduce import load, noisy
from overhead.measure.fitting.across_processes import across
from overhead.measure.fitting.data import Estimate
from overhead.measure.fitting.line import Floats
from overhead.profiles import PROFILES, Plan
from overhead.results import Case, EndedLine, OneOffLine, OpenedLine, Record, Target
from overhead.runner import campaign, further
from overhead.runner.further import chosen, widths
from overhead.runner.journal import note_ladder
from overhead.runner.progress import Listener
from overhead.runner.protocol import Assignment, Job
from overhead.runner.run import Outcome, run
from overhead.runner.schedule import Task
from overhead.runner.spawn import WorkerProcess
from tests.fakes.runs import Made

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "wandering.py"
QUICK = PROFILES["quick"]
PLAN = Plan(processes=2, target=0.1, sampling_s=2.0, wall_s=60.0, case_s=0.05, further=3, reserve=0.5)
TARGET = Target(stack="fake", api="CPU", adapter="A")
APART = 1_000, 1_300, 1_000, 1_300, 1_000, 1_300
"""Costs that never come to an interval of a tenth."""
CASES = [Case(pattern="per-submit", params={"n": n}) for n in range(4)]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "baton", lambda waiting: contextlib.nullcontext())
    monkeypatch.setattr(campaign.Campaign, "_elapsed", lambda self: 0.0)  # a slow disk is no wall limit
    monkeypatch.setitem(PROFILES, "quick", PLAN)


def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *costs: float, **more: object) -> Outcome:
    (tmp_path / "costs").write_text("\n".join(map(str, costs)))
    monkeypatch.setenv("WANDERS", str(tmp_path / "costs"))
    return run(["wandering"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json", **more)  # type: ignore[arg-type]


def record(outcome: Outcome, size: str) -> Record:
    return next(r for r in outcome.fingerprint.records if r.params["size"] == size)


def ended(outcome: Outcome) -> int:
    """How many processes ran to their end."""
    return sum(isinstance(line, EndedLine) for line in results.read_journal(outcome.samples))


def complete(outcome: Outcome, size: str) -> results.Figure:
    return next(f for f in record(outcome, size).figures if f.name == "complete")


def test_what_is_noisy_gets_further_processes_until_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_020, 1_010)
    assert (complete(outcome, "large").status, complete(outcome, "large").processes) == ("ok", 3)
    assert complete(outcome, "large").rule.endswith("1 further process, as the case was noisy before")
    assert (complete(outcome, "small").status, complete(outcome, "small").processes) == ("ok", 2)
    assert "noisy before" not in complete(outcome, "small").rule


@pytest.mark.slow
def test_there_is_an_end_to_further_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, *APART)
    assert (complete(outcome, "large").status, ended(outcome)) == ("noisy", 5)


def test_none_is_begun_that_would_end_too_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began = iter(range(0, 10_000, 25))  # each look at the clock finds 25 s gone
    monkeypatch.setattr(campaign.Campaign, "_elapsed", lambda self: float(next(began)))
    monkeypatch.setitem(PROFILES, "quick", replace(PLAN, wall_s=175.0))
    assert ended(measure(tmp_path, monkeypatch, *APART)) == 2


def test_a_further_process_takes_the_slopes_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_020, 1_010)
    lines = list(results.read_journal(outcome.samples))
    taken = {n: {line.name for line in lines if isinstance(line, OneOffLine) and line.process == n} for n in range(3)}
    assert {"naive", "naive_idle", "empty_wait", "ladder"} <= taken[0] == taken[1]
    assert taken[2] == {"clock", "ladder"}


def test_a_ladder_is_calibrated_once_a_run_but_where_the_knee_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, list[str]]] = []

    def spawn(job: Job, *given: Any, **more: Any) -> WorkerProcess:
        seen.append((job.process, sorted(job.ladders)))
        return WorkerProcess(job, *given, **more)

    monkeypatch.setattr(campaign, "WorkerProcess", spawn)
    outcome = measure(tmp_path, monkeypatch, 1_000, 1_000)
    keys = sorted(record.key for record in outcome.fingerprint.records)
    assert seen == [(0, []), (1, keys)]
    large = [
        line.values
        for line in results.read_journal(outcome.samples)
        if isinstance(line, OneOffLine) and line.name == "ladder" and "large" in line.case
    ]
    assert len(large) == 2
    assert large[0] == large[1]


def test_no_ladder_is_kept_of_a_polling_wait() -> None:
    ladders: dict[str, list[int]] = {}

    def said(case: str, name: str, *values: float) -> None:
        note_ladder(ladders, OneOffLine(target="t", case=case, worker="t", process=0, name=name, values=list(values)))

    said("a", "ladder", 0, 1, 4)
    said("a", "ladder", 0, 1, 8)
    said("b", "ladder", 1, 9)
    said("b", "wait_quantum", 1e8)
    said("b", "ladder", 1, 9)
    assert ladders == {"t a": [0, 1, 4], "t b": []}


def test_a_further_process_counts_as_long_as_the_last_replicate_that_anybody_took_part_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A target of fewer processes than the profile leaves the last replicate empty."""
    now, ran = [0.0], list[float]()
    task = Task.of(TARGET, [Assignment(TARGET, CASES[0])], 1.0, 3)
    lane = campaign.Lane(SimpleNamespace(path=Path("j")), [task])  # type: ignore[arg-type]
    made = campaign.Campaign([lane], replace(PLAN, processes=4, wall_s=240.0), Listener(), [], random.Random(1))

    def group(teams: object) -> None:
        ran.append(now[0])
        now[0] += 70.0

    monkeypatch.setattr(made, "_group", group)
    monkeypatch.setattr(made, "_elapsed", lambda: now[0])
    monkeypatch.setattr(campaign, "widths", lambda tasks, journals: {task.own[0].key: 0.2})
    made.run()
    assert ran == [0.0, 70.0, 140.0]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_with_its_further_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(tmp_path, monkeypatch, *APART)
    lines = list(results.read_journal(whole.samples))
    ends = [i for i, line in enumerate(lines) if isinstance(line, EndedLine)]
    opened = [i for i, line in enumerate(lines) if isinstance(line, OpenedLine)]
    assert len(ends) == 5
    assert len(opened) == 2 * 2 + 3
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(map(results.encode_line, lines[: ends[3] + 1])))
    (tmp_path / "costs").write_text("1000 9999")
    resumed = run(plugins=[PLUGIN], resume=cut)
    assert ended(resumed) == 5
    assert (tmp_path / "costs").read_text() == "9999.0"


def test_noisy_records_of_a_journal_have_their_half_widths(tmp_path: Path) -> None:
    calm = Made(processes=3).journal(tmp_path / "calm.jsonl")
    wild = Made(processes=3, drift={1: 1.2}).journal(tmp_path / "wild.jsonl")
    keys = [record.key for record in load(wild).records]
    assert noisy(calm, keys) == {}
    found = noisy(wild, keys)
    assert list(found) == keys
    assert all(0.2 < width < 0.4 for width in found.values())
    assert list(noisy(wild, keys[:1])) == keys[:1]


def test_those_nearest_their_target_come_first() -> None:
    companion = Assignment(Target(stack="other", api="CPU", adapter="A"), CASES[0])
    own = [Assignment(TARGET, case) for case in CASES]
    task = Task.of(TARGET, [*own, companion], 1.0, 2)
    noisy_now = {companion.key: 0.11} | dict(zip([a.key for a in own], [0.4, 0.2, 0.3], strict=False))
    ((found,),) = chosen([[task]], noisy_now, 0.41)
    assert found.assignments == (own[1], own[2])
    assert found.seconds == pytest.approx(0.41)
    assert chosen([[task]], noisy_now, 100.0)[0][0].seconds == pytest.approx(3 * 0.6)
    assert chosen([[task]], noisy_now, math.inf)[0][0].seconds == pytest.approx(0.6)
    assert found.firsts == task.firsts == (own[0].key,)
    assert chosen([[task]], noisy_now, 0.1) == [[]]


def test_what_is_noisy_on_either_side_of_two_is_measured_on_both(monkeypatch: pytest.MonkeyPatch) -> None:
    own = [Assignment(TARGET, case) for case in CASES]
    task = Task.of(TARGET, own, 1.0, 2)
    journals = {Path("base"): {own[0].key: 0.2}, Path("new"): {own[3].key: 0.2}}
    monkeypatch.setattr(further, "noisy", lambda journal, among: journals[journal])
    base, new = chosen([[task], [task]], widths([[task], [task]], journals), 10.0)
    assert base == new
    assert base[0].assignments == (own[0], own[3])


@pytest.mark.slow
@pytest.mark.parametrize("profile", [QUICK, PROFILES["default"]], ids=["quick", "default"])
@pytest.mark.parametrize("targets", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("wander", [0.0, 0.04], ids=["steady", "wandering"])
def test_an_interval_that_may_grow_keeps_its_word(profile: Plan, targets: float, wander: float) -> None:
    """Processes that differ normally, by so many targets, on a machine whose speed wanders or not: stopping once the
    interval is narrow enough costs coverage little, and what is then called ok holds the truth, which is the cost at
    the processes' canary, more often than what the planned processes alone call so."""
    plan, spread, dice = profile, targets * profile.target, np.random.default_rng(1)
    held, sure, grown = [], [], []
    for _ in range(1_000):
        most = plan.processes + plan.further
        paces = 1 + wander * dice.standard_normal(most)
        values = list(paces + spread * dice.standard_normal(most))
        count = plan.processes
        few = found = across(values[:count], plan.target, paces=paces[:count])
        while found.status == "noisy" and count < most:
            count += 1
            found = across(values[:count], plan.target, paces=paces[:count])
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
