"""Trends over the rounds of processes."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.measure.fitting.drift import find_drift, find_drift_beyond_reference

PRECISION = 0.03


def process(change: float, seed: int) -> dict[int, float]:
    """Values of 15 rounds from 100 to ``100 * (1 + change)``, with 1 % of noise."""
    noise = np.random.default_rng(seed).normal(0, 0.01, 15)
    values: dict[int, float] = {}
    for number in range(15):
        trend = change * number / 14
        values[number] = float(100 * (1 + trend + noise[number]))
    return values


def processes(change: float, first_seed: int = 0) -> list[dict[int, float]]:
    """The rounds of four processes."""
    return [process(change, first_seed + index) for index in range(4)]


def test_a_cost_that_drifts_in_all_processes_gives_its_early_and_late_value() -> None:
    drift = find_drift(processes(change=0.3), PRECISION)
    assert drift is not None
    # Means of the first and of the last third of the rounds, which rise from 100 to 130.
    assert drift.early == pytest.approx(104.3, rel=0.02)
    assert drift.late == pytest.approx(125.7, rel=0.02)


def test_constant_costs_show_no_drift_in_99_percent_of_the_cases() -> None:
    cases = 300
    drifts = [find_drift(processes(change=0.0, first_seed=4 * case), 0.0) for case in range(cases)]
    alarms = [drift for drift in drifts if drift is not None]
    # Three are expected; chance alone seldom gives three times as many.
    assert len(alarms) <= 9


def test_a_drift_that_the_processor_speed_explains_is_not_reported() -> None:
    costs = processes(0.3)
    drifting = processes(0.3, first_seed=10)
    steady = processes(0.0, first_seed=10)
    assert find_drift_beyond_reference(costs, drifting, PRECISION) is None
    assert find_drift_beyond_reference(costs, steady, PRECISION) is not None


def test_a_drift_of_the_processor_speed_alone_is_not_reported_for_the_cost() -> None:
    drifting = processes(0.3, first_seed=10)
    assert find_drift_beyond_reference(processes(0.0), drifting, PRECISION) is None
