"""Trends over the rounds of processes."""

from __future__ import annotations

import numpy as np
import pytest

from overhead.measure.fitting.drift import find_drift, find_drift_beyond_reference

TARGET = 0.03


def _rounds(change: float, seed: int) -> dict[int, float]:
    noise = np.random.default_rng(seed).normal(0, 0.01, 15)
    return {i: float(100 * (1 + change * i / 14 + noise[i])) for i in range(15)}


def test_a_cost_that_drifts_in_all_processes_gives_its_early_and_late_value() -> None:
    found = find_drift([_rounds(0.3, seed) for seed in range(4)], TARGET)
    assert found is not None
    assert (found.early, found.late) == pytest.approx((104.3, 125.7), rel=0.02)


def test_constant_costs_show_no_drift_in_99_percent_of_the_cases() -> None:
    alarms = [find_drift([_rounds(0.0, 4 * i + k) for k in range(4)], 0.0) for i in range(300)]
    assert sum(a is not None for a in alarms) <= 9


def test_a_drift_that_the_processor_speed_explains_is_not_reported() -> None:
    costs = [_rounds(0.3, seed) for seed in range(4)]
    assert (
        find_drift_beyond_reference(costs, [_rounds(0.3, seed + 10) for seed in range(4)], TARGET)
        is None
    )
    assert (
        find_drift_beyond_reference(costs, [_rounds(0.0, seed + 10) for seed in range(4)], TARGET)
        is not None
    )


def test_a_drift_of_the_processor_speed_alone_is_not_reported_for_the_cost() -> None:
    costs = [_rounds(0.0, seed) for seed in range(4)]
    assert (
        find_drift_beyond_reference(costs, [_rounds(0.3, seed + 10) for seed in range(4)], TARGET)
        is None
    )
