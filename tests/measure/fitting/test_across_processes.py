"""The mean of one value per process: its interval, the effect of the canary, outliers, and the status."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from overhead.measure.fitting.across_processes import CANARY_FROM_PROCESSES, HUBER_FROM_PROCESSES, mean_of_processes


def test_the_interval_is_that_of_students_t() -> None:
    values = [100.0, 102.0, 101.0, 99.0]
    found = mean_of_processes(values, 0.03)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert [found.value, found.low, found.high] == pytest.approx([100.5, low, high])
    assert found.status == "ok"
    assert found.processes == 4
    assert found.rule == "4 processes, Student's t: half-width 2.04%, target 3%"


def test_from_five_processes_on_the_interval_is_wider_because_cases_are_tested_repeatedly() -> None:
    values = [100.0, 102.0, 101.0, 99.0, 103.0]
    found = mean_of_processes(values, 0.03)
    low, high = stats.t.interval(0.96, CANARY_FROM_PROCESSES - 1, np.mean(values), stats.sem(values))
    assert [found.value, found.low, found.high] == pytest.approx([101.0, low, high])


def test_changes_that_follow_the_canary_do_not_widen_the_interval() -> None:
    """As in scipy's regression: the mean, with the standard error of the line at the mean canary."""
    paces = 60_000 * np.array([0.9, 0.97, 1.0, 1.04, 1.12, 1.01])
    values = 100 * (1 + 0.8 * (paces / 60_000 - 1)) + np.array([0.2, -0.1, 0.1, -0.3, 0.0, 0.1])
    found = mean_of_processes(values, 0.03, paces=paces)
    line = stats.linregress(paces - paces.mean(), values)
    half = float(stats.t.ppf(0.98, 4)) * line.intercept_stderr
    mean = float(values.mean())
    assert [found.value, found.low, found.high] == pytest.approx([mean, mean - half, mean + half])
    assert found.rule == "6 processes, Student's t where the canary's loop takes 60.4 us: half-width 0.22%, target 3%"
    assert mean_of_processes(values, 0.03).status == "noisy"


@pytest.mark.parametrize("apart", [1, 2, 5])
def test_if_most_values_are_equal_the_others_keep_their_weight(apart: int) -> None:
    values = [16.0] * (20 - apart) + [32.0] * apart
    found = mean_of_processes(values, 0.03)
    assert found.value == pytest.approx(np.mean(values))
    assert found.status == "noisy"
    assert found.rule.startswith("20 processes, Student's t: ")


def test_one_outlier_has_no_weight_among_values_around_zero() -> None:
    around = [-20.0, -12.0, -9.0, -5.0, -1.0, 2.0, 4.0, 8.0, 13.0, 21.0]
    found = mean_of_processes([*around, 300_000.0], 0.03, scale=5_000.0)
    assert found.value == pytest.approx(0.0, abs=10.0)
    assert found.status == "ok"
    assert mean_of_processes([0.0] * 11 + [3.0], 0.03).value == pytest.approx(0.25)


def test_hubers_estimate_solves_the_published_equations() -> None:
    """With values from a t distribution."""
    draw = np.random.default_rng(3)
    values, paces = 100 + draw.standard_t(3, 14), 6e4 * (1 + 0.03 * draw.standard_normal(14))
    found = mean_of_processes(values, 0.03, paces=paces)
    assert found.value is not None
    assert found.high is not None
    design = np.column_stack([np.ones(14), paces / paces.mean() - 1])

    def off(slope: float) -> Any:
        return values - design @ [found.value, slope]

    def bend(slope: float) -> float:
        return 1.5 * 1.4826 * float(np.median(np.sort(np.abs(off(slope)))[1:]))

    slope = optimize.brentq(lambda b: float(design[:, 1] @ np.clip(off(b), -bend(b), bend(b))), -300, 300)
    clipped = np.clip(off(slope), -bend(slope), bend(slope))
    assert float(clipped.sum()) == pytest.approx(0.0, abs=1e-4)
    near = float(np.mean(np.abs(off(slope)) <= bend(slope)))
    assert near < 1
    correction = 1 + 2 / 14 * (1 - near) / near
    error = correction / near * np.sqrt(clipped @ clipped / 12 * np.linalg.inv(design.T @ design)[0, 0])
    assert found.high - found.value == pytest.approx(float(stats.t.ppf(0.98, 12)) * error, rel=1e-4)


@pytest.mark.parametrize(
    "paces",
    [(), (6e4,) * 6, (*(6e4,) * 5, 6e4 + 1), (0.0, 6e4, 6.1e4, 6.2e4, 5.9e4, 6e4), (6.1e4, 5.9e4, 6e4)],
    ids=["none", "all equal", "nearly equal", "one unknown", "too few"],
)
def test_without_usable_canaries_the_figure_is_the_mean(paces: tuple[float, ...]) -> None:
    values = [100.0, 104.0, 98.0, 97.0, 103.0, 98.0]
    assert mean_of_processes(values, 0.03, paces=paces) == mean_of_processes(values, 0.03)
    assert mean_of_processes(values, 0.03).value == pytest.approx(100.0)


def test_with_fewer_than_five_processes_the_canary_is_not_used() -> None:
    values, paces = [100.0, 110.0, 90.0, 105.0], [6e4, 6.6e4, 5.4e4, 6.3e4]
    assert mean_of_processes(values, 0.03, paces=paces) == mean_of_processes(values, 0.03)


@pytest.mark.parametrize("paced", [False, True])
def test_from_ten_processes_on_an_outlier_has_less_weight(paced: bool) -> None:
    draw = np.random.default_rng(0)
    paces = 6e4 * (1 + 0.03 * draw.standard_normal(HUBER_FROM_PROCESSES))
    values = 100 * (paces / paces.mean() if paced else 1) + draw.standard_normal(HUBER_FROM_PROCESSES)
    values[3] += 60
    found = mean_of_processes(values, 0.03, paces=paces if paced else ())
    few = mean_of_processes(
        values[: HUBER_FROM_PROCESSES - 1], 0.03, paces=paces[: HUBER_FROM_PROCESSES - 1] if paced else ()
    )
    assert found.value == pytest.approx(100, abs=1.5)
    assert "Huber's estimate" in found.rule
    assert (found.status, few.status) == ("ok", "noisy")
    assert mean_of_processes([5.0] * HUBER_FROM_PROCESSES, 0.03).low == 5.0


def test_a_wide_interval_is_noisy_and_its_reason_estimates_the_processes_needed() -> None:
    found = mean_of_processes([100.0, 110.0, 90.0, 105.0, 95.0], 0.03)
    assert found.status == "noisy"
    assert found.reason == "half-width 10.6%, target 3%; about 63 processes would do"
    assert mean_of_processes([100.0, 300.0], 0.01).reason.startswith("half-width 635.3%, target 1%")


def test_one_process_gives_no_interval_and_none_gives_no_value() -> None:
    one = mean_of_processes([100.0], 0.03)
    assert (one.value, one.low, one.status) == (100.0, None, "noisy")
    assert mean_of_processes([], 0.03).status == "failed"
    assert mean_of_processes([0.0, 0.0], 0.03).status == "ok"


@pytest.mark.slow
@pytest.mark.parametrize(("processes", "apart"), [(5, 0.0), (9, 0.0), (10, 0.0), (10, 0.1), (20, 0.0), (20, 0.1)])
def test_intervals_cover_the_truth_in_about_95_percent(processes: int, apart: float) -> None:
    """1,000 draws with a canary that varies, and outliers of 25 % in a share ``apart`` of the processes."""
    draw, held = np.random.default_rng(1), 0
    for _ in range(1_000):
        paces = 1 + 0.04 * draw.standard_normal(processes)
        values = 1 + 0.7 * (paces - 1) + 0.02 * draw.standard_normal(processes)
        values *= np.where(draw.random(processes) < apart, 1.25, 1)
        found = mean_of_processes(values, 0.03, paces=paces)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 + 0.7 * (paces.mean() - 1) <= found.high
    assert 0.925 <= held / 1_000 <= 0.985
