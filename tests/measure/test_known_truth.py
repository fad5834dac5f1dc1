"""The whole method on fake stacks whose true costs are known; ``scripts/bench/main.py known-truth``
runs many more.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from overhead.measure.fitting.case_figures import DRIFTS, estimate
from overhead.measure.fitting.one_process import Series
from overhead.measure.sampling.window import sample
from overhead.results import Figure, codes_of
from scripts.bench import known_truth as bench, main
from scripts.bench.known_truth import TIME_FIGURES, TruthOutcome, oracle, run, score
from scripts.bench.scenarios import SCENARIOS, Scenario
from tests.fakes.chains import measured
from tests.fakes.machine import CALM, Disturbance, FakeChain, FakeClock, FastFakeChain, Law

LAWS = {
    "pipelined, device-bound": Law(host=1_400.0, device=5_000.0, fixed=20_000.0),
    "pipelined, host-bound, deferred": Law(
        host=1_400.0, device=500.0, fixed=40_000.0, deferred=900.0
    ),
    "serial": Law(host=600.0, device=2_000.0, fixed=30_000.0, overlap="serial"),
    "synchronous": Law(host=600.0, device=100.0, fixed=0.0, synchronous=True),
    "queue": Law(host=2_000.0, device=5_000.0, fixed=20_000.0, depth=64),
    "poll": Law(host=2_000.0, device=5_000.0, fixed=20_000.0, poll=1e6),
}
NAMES = [s.name for s in SCENARIOS]
SAME_FIGURES = Path(__file__).parents[1] / "data" / "known_truth.json"
"""Figures of the quick profile with seed 1, by scenario; times in ns, to eight digits."""


@pytest.mark.parametrize("name", LAWS)
def test_a_fake_chain_that_samples_in_its_own_loop_gives_the_same_times_as_one_that_does_not(
    name: str,
) -> None:
    ns = [1, 5, 50, 150, 600]
    slow, fast = FakeClock(CALM), FakeClock(CALM)
    by_verbs = np.array(sample(FakeChain(LAWS[name], slow), ns, slow, cpu=True), dtype=float)
    at_once = np.array(sample(FastFakeChain(LAWS[name], fast), ns, fast, cpu=True), dtype=float)
    assert by_verbs == pytest.approx(at_once, abs=4 * 40)


@pytest.mark.parametrize("name", [n for n in LAWS if n != "poll"])
def test_simulated_runs_without_noise_give_the_true_figures(name: str) -> None:
    law = LAWS[name]
    clock = FakeClock(CALM)
    _, _, found = measured({"case": FakeChain(law, clock)}, clock, 0.5, extras=frozenset({"case"}))
    figures = estimate(Series([found["case"]] * 2, law.synchronous, False, law.overlap), 0.03)
    for figure, truth in law.truth().items():
        assert figures[figure].value == pytest.approx(truth, rel=0.005, abs=150), figure


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario", [s for s in SCENARIOS if not (s.two_speeds or s.refused)], ids=lambda s: s.name
)
def test_the_figures_of_every_simulated_scenario_agree_with_the_truth(scenario: Scenario) -> None:
    outcomes = [run(scenario, 2)]
    for figure in TIME_FIGURES:
        held = score(scenario, outcomes, figure)
        assert held.valued == 1
        assert abs(held.bias) < max(0.02, 2 * held.half_width)
        if figure != "fixed" and held.oracle < 0.01:
            assert held.ok == 1


def test_the_bench_scales_true_times_by_the_processor_speed_but_not_counts() -> None:
    scenario = next(s for s in SCENARIOS if s.name == "queue of 64")
    truth = scenario.truth()
    values = {"complete": 1.1 * truth["complete"], "knee_n": truth["knee_n"]}
    exact: dict[str, Any] = {}
    for name, value in values.items():
        figure = Figure(name=name, value=value, low=0.999 * value, high=1.001 * value)
        exact[name] = structs.asdict(figure)
    outcome = TruthOutcome(scenario.name, 0, exact, counts={1: 9, 64: 9}, pace=1.1)
    for name in exact:
        held = score(scenario, [outcome], name)
        assert (held.covered, held.far) == (1, 0)
        assert held.bias == pytest.approx(0.0)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.two_speeds], ids=lambda s: s.name)
def test_a_simulated_machine_with_two_speeds_gives_a_figure_with_both_values(
    scenario: Scenario,
) -> None:
    outcomes = [run(scenario, seed) for seed in range(2)]
    for figure in ("issue", "host", "complete"):
        assert score(scenario, outcomes, figure).right == 2


def test_the_scenarios_of_the_bench_have_unique_names_and_cheap_to_costly_units() -> None:
    assert len(set(NAMES)) == len(NAMES) == 29
    units = [s.truth()["complete"] for s in SCENARIOS if not s.refused]
    assert min(units) == 200.0
    assert max(units) == 1e6
    assert any(s.law.poll == 1e8 for s in SCENARIOS)
    assert all(s.disturbance.preemptions == 50.0 for s in SCENARIOS)


@pytest.mark.parametrize("profile", ["quick", "default"])
@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.refused], ids=lambda s: s.name)
def test_a_simulated_cost_that_is_not_linear_in_n_gives_no_figure(
    scenario: Scenario, profile: str
) -> None:
    found = run(scenario, 0, profile).figures["complete"]
    assert found["status"] in scenario.refused
    assert bool(codes_of(found["reason"]) & DRIFTS) == (scenario.law.rise > 0)


@pytest.mark.parametrize(
    "name",
    [
        "knee at 90",
        "5 us issued, 8 us deferred",
        "10 % of the samples 200 us late",
        "first unit 300 us",
        "undeclared 1 ms poll, 30 us a unit",
    ],
)
def test_the_slope_of_an_unusual_but_linear_cost_is_found_to_2_percent(name: str) -> None:
    scenario = SCENARIOS[NAMES.index(name)]
    found = run(scenario, 0, "quick").figures["complete"]
    assert found["status"] == "ok"
    assert found["value"] == pytest.approx(scenario.truth()["complete"], rel=0.02)


@pytest.mark.slow
def test_two_simulated_runs_with_the_same_seed_give_equal_figures() -> None:
    assert run(SCENARIOS[3], 7) == run(SCENARIOS[3], 7)
    assert run(SCENARIOS[3], 7) != run(SCENARIOS[3], 8)


@pytest.mark.parametrize("name", json.loads(SAME_FIGURES.read_text("utf-8")))
def test_a_simulated_run_with_a_known_seed_gives_the_recorded_figures(name: str) -> None:
    expected = json.loads(SAME_FIGURES.read_text("utf-8"))[name]
    found = run(SCENARIOS[NAMES.index(name)], 1, "quick").figures
    assert {figure: _recorded(one) for figure, one in found.items()} == expected


def _recorded(figure: dict[str, Any]) -> list[Any]:
    """Status, value, interval and modes of a figure."""
    numbers = [figure["value"], figure["low"], figure["high"], *figure["modes"]]
    return [figure["status"], *(one if one is None else float(f"{one:.8g}") for one in numbers)]


def test_the_best_possible_error_grows_with_the_spread_of_processes_and_falls_with_samples() -> (
    None
):
    scenario = SCENARIOS[6]
    few, many = ({1: k, 100: k, 200: k} for k in (1, 1_000))
    bare = 1.96 * (0.005**2 + 0.003**2) ** 0.5 / 5**0.5
    assert oracle(scenario, few, "complete", 5) > oracle(scenario, many, "complete", 5) > bare
    assert oracle(scenario, many, "complete", 5) == pytest.approx(bare, rel=0.02)
    assert np.isnan(oracle(scenario, many, "knee_n", 5))


@pytest.mark.slow
def test_the_bench_script_prints_its_tables_and_claims(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    two_speeds = [scenario for scenario in SCENARIOS if scenario.two_speeds]
    refused = [scenario for scenario in SCENARIOS if scenario.refused]
    kept = [SCENARIOS[1], two_speeds[0], refused[0]]
    monkeypatch.setattr(bench, "SCENARIOS", kept)
    monkeypatch.setattr(bench, "_run_job", lambda job: run(kept[job[0]], job[1], job[2]))
    monkeypatch.setattr(bench, "ProcessPoolExecutor", _LocalPool)
    code = main.main(["known-truth", "--seeds", "2", "--jobs", "1"])
    printed = capsys.readouterr().out
    assert "synchronous, 2 us" in printed
    assert "two speeds come out bimodal with both within 2 % in 100.0%" in printed
    assert code == ("FAILS" in printed)
    main.main(["known-truth", "--seeds", "1", "--json"])
    assert '"scores"' in capsys.readouterr().out


class _LocalPool:
    """A process pool that runs everything in this process."""

    def __init__(self, jobs: int) -> None:
        self.map = lambda function, jobs, chunksize: map(function, jobs)

    def __enter__(self) -> _LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        return


def test_a_simulated_disturbance_switches_the_speed_after_its_mean_duration() -> None:
    clock = FakeClock(Disturbance(0.0, 2.0, 0.01, preemptions=0.0), seed=1)
    seen = set()
    for _ in range(200):
        clock.sleep(0.001)
        seen.add(clock.speed)
    assert seen == {1.0, 2.0}
