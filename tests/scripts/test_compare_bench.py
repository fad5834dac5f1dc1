"""Test the bench of ``overhead compare``: its A/A pairs share no run, and it fails for a wrong method."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.versus import decide
from overhead.versus.calls import BothSides
from overhead.versus.sides import Sampled
from scripts.bench import compare as bench
from scripts.bench import simulated_runs as pools
from tests.fakes.machine import Disturbance

NOISY_RUNS = pools.SimulatedMachine("runs 5 %", Disturbance(spread=0.002), 0.05)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "AA_PAIRS", 20)
    for name, value in {"CASES_PER_RUN": 4, "RUNS_PER_MACHINE": 8, "_ROUNDS_PER_PROCESS": 3}.items():
        monkeypatch.setattr(pools, name, value)


def test_the_two_sides_of_a_pair_share_no_run() -> None:
    def run(number: int) -> pools.SimulatedRun:
        return {"case": Sampled(np.full(5, float(number)), np.zeros(0))}

    for cases in bench.pairs([run(i) for i in range(8)], 3, np.random.default_rng(1)):
        (case,) = cases
        base, new = ({float(s.slopes[0]) for s in side} for side in (case.base, case.new))
        assert len(base) == len(new) == 3
        assert not base & new
        assert {s.slopes.size for s in (*case.base, *case.new)} == {4}


def row(pool: pools.RunPool, dice: np.random.Generator, runs: int) -> bench.StudyRow:
    return bench._row(pool, runs, False, bench.study(bench.pairs(pool.runs, runs, dice), dice))


def test_no_pair_comes_twice() -> None:
    few = [{"case": Sampled(np.full(3, float(i)), np.zeros(0))} for i in range(4)]
    assert len(list(bench.pairs(few, 1, np.random.default_rng(1)))) == 6


def test_a_quiet_machine_passes() -> None:
    dice = np.random.default_rng(2)
    one, three, turns = bench.rows(pools.simulated(pools.SIMULATED_MACHINES[0], dice), dice)
    assert [(found.runs, found.in_turn, found.false) for found in (one, three, turns)] == [
        (1, False, 0),
        (3, False, 0),
        (1, True, 0),
    ]
    assert all(requirement.holds for requirement in bench.requirements([one]))
    assert turns.smallest < one.smallest
    assert bench.how(turns) == "in turn"


def test_a_change_of_speed_between_two_processes_gives_no_verdict() -> None:
    dice = np.random.default_rng(2)
    *_, turns = bench.rows(pools.simulated(pools.SIMULATED_MACHINES[-1], dice), dice)
    assert turns.false <= 1


def test_a_method_without_run_to_run_spread_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs differ by 5 % and the processes of a run agree, so a test on processes alone gives false verdicts."""
    monkeypatch.setattr(decide.trials, "__defaults__", (0.0,))
    dice = np.random.default_rng(3)
    false_calls, _ = bench.requirements([row(pools.simulated(NOISY_RUNS, dice), dice, 1)])
    assert not false_calls.holds


def test_several_runs_of_the_same_machine_pass() -> None:
    dice = np.random.default_rng(3)
    found = row(pools.simulated(NOISY_RUNS, dice), dice, 3)
    assert found.false <= 3
    assert found.smallest > 0.05


def test_without_a_canary_there_is_no_comparison_in_its_units() -> None:
    assert BothSides((Sampled(np.zeros(3), np.zeros(0)),), (Sampled(np.zeros(3), np.zeros(0)),)).in_own_units is None


def test_paired_processes_are_not_compared_in_units_of_the_canary() -> None:
    slow, fast = Sampled(np.zeros(3), np.zeros(3)), Sampled(np.zeros(3), np.ones(3))
    assert BothSides((slow,), (fast,)).in_own_units is not None
    assert BothSides((slow,), (fast,), paired=True).in_own_units is None
