"""The study of ``compare``: its A/A pairs are disjoint, and it fails where the method would."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overhead.results import Together
from overhead.versus import decide
from overhead.versus.calls import BothSides
from overhead.versus.sides import Sampled
from scripts.bench import compare as bench
from scripts.bench import compare_pools as pools
from tests.fakes.machine import Disturbance
from tests.fakes.runs import Made

NOISY_RUNS = pools.SimulatedMachine("runs 5 %", Disturbance(spread=0.002), 0.05)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PAIRS", 20)
    for name, value in {"CASES": 4, "RUNS": 8, "ROUNDS": 3}.items():
        monkeypatch.setattr(pools, name, value)


def test_the_pairs_share_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(number: int) -> pools.Run:
        return {"case": Sampled(np.full(5, float(number)), np.zeros(0))}

    for cases in bench.pairs([run(i) for i in range(8)], 3, np.random.default_rng(1)):
        (case,) = cases
        base, new = ({float(s.slopes[0]) for s in side} for side in (case.base, case.new))
        assert len(base) == len(new) == 3
        assert not base & new
        assert {s.slopes.size for s in (*case.base, *case.new)} == {4}


def row(pool: pools.Pool, dice: np.random.Generator, runs: int) -> bench.StudyRow:
    return bench._row(pool, False, runs, False, bench.study(bench.pairs(pool.runs, runs, dice), dice))


def test_no_pair_comes_twice() -> None:
    few = [{"case": Sampled(np.full(3, float(i)), np.zeros(0))} for i in range(4)]
    assert len(list(bench.pairs(few, 1, np.random.default_rng(1)))) == 6


def test_a_quiet_machine_passes() -> None:
    dice = np.random.default_rng(2)
    one, three, turns = bench.rows(pools.simulated(pools.MACHINES[0], dice), False, dice)
    assert [(found.runs, found.in_turn, found.false) for found in (one, three, turns)] == [
        (1, False, 0),
        (3, False, 0),
        (1, True, 0),
    ]
    assert all(claim.holds for claim in bench.claims([one]))
    assert turns.smallest < one.smallest
    assert bench.how(turns) == "in turn"


def test_a_speed_that_turns_between_two_processes_is_not_called() -> None:
    dice = np.random.default_rng(2)
    *_, turns = bench.rows(pools.simulated(pools.MACHINES[-1], dice), False, dice)
    assert turns.false <= 1


def test_a_method_without_run_to_run_spread_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs spread by 5 %, and the processes of a run agree: the plain test calls what is weather."""
    monkeypatch.setattr(decide.trials, "__defaults__", (0.0,))
    dice = np.random.default_rng(3)
    false_calls, _ = bench.claims([row(pools.simulated(NOISY_RUNS, dice), dice, 1)])
    assert not false_calls.holds


def test_several_runs_of_the_same_machine_pass() -> None:
    dice = np.random.default_rng(3)
    found = row(pools.simulated(NOISY_RUNS, dice), dice, 3)
    assert found.false <= 3
    assert found.smallest > 0.05


def test_recorded_runs_are_kept_as_they_are(tmp_path: Path) -> None:
    for folder in ("runs", "base", "new"):
        (tmp_path / folder).mkdir()
    for seed in range(4):
        Made(seed=seed).write(tmp_path / "runs" / f"{seed}.json")
    for run in range(2):
        for seed, side in ((10 + run, "base"), (20 + run, "new")):
            own = Together(id=f"{run:012d}", side=side)  # type: ignore[arg-type]
            Made(seed=seed, processes=3, together=own).write(tmp_path / side / f"{run}.json")
    made = pools.recorded("here", [tmp_path / "runs"], tmp_path / "base", tmp_path / "new")
    pools.save(made, tmp_path / "kept.json")
    kept = pools.load(tmp_path / "kept.json")
    assert (kept.name, kept.processes, len(kept.runs)) == ("here", 5, 4)
    assert made.turns is not None
    assert kept.turns is not None
    for one, other in zip((*made.runs, *made.turns), (*kept.runs, *kept.turns), strict=True):
        assert one.keys() == other.keys()
        for case in one:
            assert other[case].slopes == pytest.approx(one[case].slopes, abs=1e-6)
    assert {s.slopes.size for s in kept.turns[1].values()} == {6}
    found = list(bench.rows(kept, True, np.random.default_rng(1)))
    assert [(r.runs, r.in_turn) for r in found] == [(1, False), (1, True)]


def test_evidence_needs_no_canary() -> None:
    assert BothSides((Sampled(np.zeros(3), np.zeros(0)),), (Sampled(np.zeros(3), np.zeros(0)),)).in_own_units is None


def test_pairs_need_no_canary() -> None:
    slow, fast = Sampled(np.zeros(3), np.zeros(3)), Sampled(np.zeros(3), np.ones(3))
    assert BothSides((slow,), (fast,)).in_own_units is not None
    assert BothSides((slow,), (fast,), paired=True).in_own_units is None
