"""Lines through samples whose true slope and intercept are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from overhead.measure.fitting import line as fit

NS = np.array([1.0, 2, 4, 8, 16, 100])


class Times(NamedTuple):
    """Samples on a line, with noise, ns."""

    n: fit.Floats
    y: fit.Floats


def noisy(slope: float, intercept: float, seed: int = 0, passes: int = 20) -> Times:
    """Samples of each of ``NS`` on this line, with noise of 20 ns."""
    n = np.tile(NS, passes)
    noise = np.random.default_rng(seed).normal(0, 20, n.size)
    return Times(n, intercept + slope * n + noise)


@pytest.mark.needs("scipy")
def test_the_theil_sen_line_agrees_with_scipy() -> None:
    from scipy import stats

    n, y = noisy(slope=300.0, intercept=5_000.0)
    line = fit.theil_sen(n, y)
    assert line is not None
    assert line.slope == pytest.approx(stats.theilslopes(y, n).slope)
    assert line.intercept == pytest.approx(5_000.0, abs=10)


@pytest.mark.needs("scipy")
def test_repeated_medians_agree_with_scipy() -> None:
    from scipy import stats

    n, y = noisy(slope=300.0, intercept=5_000.0, passes=1)
    assert fit.siegel_slope(n, y) == pytest.approx(stats.siegelslopes(y, n).slope)
    assert fit.siegel_slope(n[:1], y[:1]) is None


def test_samples_at_one_n_have_no_line() -> None:
    one = np.full(5, 3.0)
    assert fit.theil_sen(one, one) is None
    assert fit.sen_slope(one, one) is None


def test_the_slope_of_many_samples_is_estimated_from_random_pairs() -> None:
    n, y = noisy(slope=300.0, intercept=5_000.0, passes=200)
    assert n.size * (n.size - 1) // 2 > fit.LINE.most_pairs
    assert fit.sen_slope(n, y) == pytest.approx(300.0, rel=1e-3)


def test_only_interrupted_samples_are_left_out_of_the_fit() -> None:
    n, y = noisy(slope=300.0, intercept=5_000.0, passes=50)
    hit = np.random.default_rng(1).random(n.size) < 0.002 * n
    late = y + np.where(hit, 200_000.0, 0.0)
    clear = fit.undisturbed_mask(n, late)
    assert not clear[hit].any()
    assert clear[~hit].mean() > 0.98
    line = fit.robust_line(n, late)
    assert line is not None
    assert line.slope == pytest.approx(300.0, rel=1e-3)


def test_a_sample_interrupted_before_the_wait_is_left_out_of_the_total_time_too() -> None:
    n, issue = noisy(slope=300.0, intercept=0.0, passes=50)
    hit = np.random.default_rng(1).random(n.size) < 0.3
    interruption = np.where(hit, 2_000.0, 0.0)
    wait = np.random.default_rng(2).uniform(0, 4_000, n.size)
    total = issue + wait + interruption
    alone = fit.robust_line(n, total)
    together = fit.robust_line(n, total, issue + interruption)
    assert alone is not None
    assert together is not None
    assert abs(together.intercept - 2_000) < abs(alone.intercept - 2_000)


def test_with_few_samples_of_an_n_none_is_taken_for_interrupted() -> None:
    n = np.full(7, 4.0)
    assert fit.LINE.samples_per_n == 8
    times = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1e9])
    assert fit.undisturbed_mask(n, times).all()


def test_the_misfit_is_the_largest_distance_from_the_line_as_a_share_of_its_rise() -> None:
    n, y = noisy(slope=300.0, intercept=5_000.0)
    line = fit.Line(300.0, 5_000.0)
    assert abs(fit.worst_misfit(n, y, line).share) < 0.001
    bend = np.where(n < 50, 60.0 * np.sqrt(n), 0.0)
    bent = fit.worst_misfit(n, y + bend, line)
    assert bent.at == 16
    assert bent.share == pytest.approx(240 / (300 * 99), rel=0.1)
    assert bent.sigmas > 4
