"""The study of ``compare``: its A/A pairs are disjoint, and it fails where the method would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overhead.measure.fake import Weather
from overhead.versus import decide
from overhead.versus.calls import Evidence
from overhead.versus.sides import Sampled
from scripts import bench_compare as bench
from tests.fake_runs import Made

NOISY_RUNS = bench.Machine("runs 5 %", Weather(spread=0.002), 0.05)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PAIRS": 20, "CASES": 4, "RUNS": 8, "ROUNDS": 3}.items():
        monkeypatch.setattr(bench, name, value)


def test_the_pairs_share_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(number: int) -> bench.Run:
        return {"case": Sampled(np.full(5, float(number)), np.zeros(0))}

    for cases in bench.pairs([run(i) for i in range(8)], 3, np.random.default_rng(1)):
        (case,) = cases
        base, new = ({float(s.slopes[0]) for s in side} for side in (case.base, case.new))
        assert len(base) == len(new) == 3
        assert not base & new
        assert {s.slopes.size for s in (*case.base, *case.new)} == {4}


def test_a_quiet_machine_passes() -> None:
    dice = np.random.default_rng(2)
    pool = bench.simulated(bench.MACHINES[0], dice)
    assert bench.study(bench.pairs(pool, 1, dice), dice).good


def test_a_method_without_run_to_run_spread_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs spread by 5 %, and the processes of a run agree: the plain test calls what is weather."""
    monkeypatch.setattr(decide.trials, "__defaults__", (0.0,))
    dice = np.random.default_rng(3)
    pool = bench.simulated(NOISY_RUNS, dice)
    assert not bench.study(bench.pairs(pool, 1, dice), dice).good


def test_several_runs_of_the_same_machine_pass() -> None:
    dice = np.random.default_rng(3)
    pool = bench.simulated(NOISY_RUNS, dice)
    found = bench.study(bench.pairs(pool, 3, dice), dice)
    assert found.false <= 3
    assert float(np.median(found.smallest)) > 0.05


def test_recorded_runs_are_taken_instead(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(4):
        Made(seed=seed, processes=3).write(tmp_path / f"{seed}.json")
    bench.main([str(tmp_path)])
    said = capsys.readouterr().out
    assert "recorded: 4 runs, 3 cases" in said
    assert "simulated" not in said


def test_evidence_needs_no_canary() -> None:
    assert Evidence((Sampled(np.zeros(3), np.zeros(0)),), (Sampled(np.zeros(3), np.zeros(0)),)).in_own_units is None
