"""Lines, knees and stairs through samples whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from overhead.measure.fitting import line as fit
from overhead.measure.fitting.data import OneOff, Process, Round, Series
from overhead.measure.fitting.knee import find_knee
from overhead.measure.fitting.one_process import by_round, fit_process
from overhead.measure.fitting.polled_line import censored_line
from overhead.measure.fitting.quiet_rounds import slow_rounds
from overhead.measure.fitting.two_speeds import canary_changed, split_speeds, two_groups

NS = np.array([1.0, 2, 4, 8, 16, 100])


def noisy(slope: float, intercept: float, seed: int = 0, passes: int = 20) -> tuple[fit.Floats, fit.Floats]:
    n = np.tile(NS, passes)
    return n, intercept + slope * n + np.random.default_rng(seed).normal(0, 20, n.size)


def test_theil_sen_is_scipys() -> None:
    n, y = noisy(300.0, 5_000.0)
    line = fit.theil_sen(n, y)
    assert line is not None
    assert line.slope == pytest.approx(stats.theilslopes(y, n).slope)
    assert line.intercept == pytest.approx(5_000.0, abs=10)


def test_repeated_medians_are_scipys() -> None:
    n, y = noisy(300.0, 5_000.0, passes=1)
    assert fit.siegel_slope(n, y) == pytest.approx(stats.siegelslopes(y, n).slope)
    assert fit.siegel_slope(n[:1], y[:1]) is None


def test_one_n_makes_no_line() -> None:
    one = np.full(5, 3.0)
    assert fit.theil_sen(one, one) is None
    assert fit.sen_slope(one, one) is None


def test_many_samples_are_thinned_to_the_same_slope() -> None:
    n, y = noisy(300.0, 5_000.0, passes=200)
    assert n.size * (n.size - 1) // 2 > fit._MAX_PAIRS
    assert fit.sen_slope(n, y) == pytest.approx(300.0, rel=1e-3)


def test_interruptions_are_left_out_of_the_fit_and_nothing_else() -> None:
    n, y = noisy(300.0, 5_000.0, passes=50)
    hit = np.random.default_rng(1).random(n.size) < 0.002 * n
    late = y + np.where(hit, 200_000.0, 0.0)
    clear = fit.undisturbed(n, late)
    assert not clear[hit].any()
    assert clear[~hit].mean() > 0.98
    line = fit.robust_line(n, late)
    assert line is not None
    assert line.slope == pytest.approx(300.0, rel=1e-3)


def test_an_interruption_seen_in_issue_disturbs_the_whole_sample() -> None:
    n, issue = noisy(300.0, 0.0, passes=50)
    hit = np.random.default_rng(1).random(n.size) < 0.3
    total = issue + np.random.default_rng(2).uniform(0, 4_000, n.size) + np.where(hit, 2_000.0, 0.0)
    alone, together = fit.robust_line(n, total), fit.robust_line(n, total, issue + np.where(hit, 2_000.0, 0.0))
    assert alone is not None
    assert together is not None
    assert abs(together.intercept - 2_000) < abs(alone.intercept - 2_000)


def test_few_samples_are_all_believed() -> None:
    n = np.full(fit.MIN_SAMPLES_PER_N - 1, 4.0)
    assert fit.undisturbed(n, np.array([1.0] * (n.size - 1) + [1e9])).all()


def test_the_misfit_is_a_share_of_the_rise_and_stands_beyond_the_rungs_spread() -> None:
    n, y = noisy(300.0, 5_000.0)
    line = fit.Line(300.0, 5_000.0)
    assert abs(fit.misfit(n, y, line).share) < 0.001
    bent = fit.misfit(n, y + 60.0 * np.sqrt(n) * (n < 50), line)
    assert bent.at == 16
    assert bent.share == pytest.approx(240 / (300 * 99), rel=0.1)
    assert bent.sigmas > 4


def issued(depth: int, host: float = 2_000.0, device: float = 5_000.0) -> tuple[fit.Floats, fit.Floats]:
    n = np.repeat([1, 64, 128, 256, 512, 1024, 1400, 1900, 2300, 2800, 3400], 9).astype(float)
    full = host + (n - depth) * device
    noise = np.random.default_rng(0).normal(0, 1, n.size)
    return n, np.maximum(n * host, full if depth else 0.0) * (1 + 0.002 * noise)


def test_the_knee_is_where_issue_bends_and_the_depth_what_was_in_flight() -> None:
    knee = find_knee(*issued(1024))
    assert knee is not None
    assert knee.n == pytest.approx((1024 - 0.4) / 0.6, rel=0.01)
    assert knee.depth == pytest.approx(1024, rel=0.01)
    assert [knee.below, knee.above] == pytest.approx([2_000, 5_000], rel=0.02)


def test_a_straight_issue_has_no_knee() -> None:
    assert find_knee(*issued(0)) is None
    n, y = issued(1024)
    assert find_knee(n[n <= 128], y[n <= 128]) is None


def test_noise_on_two_low_rungs_is_no_knee() -> None:
    rows = np.repeat(NS, 4), np.repeat(NS * 300.0, 4)
    wild = rows[1] * (1 + 0.5 * np.random.default_rng(3).standard_normal(rows[1].size) * (rows[0] < 5))
    assert find_knee(rows[0], wild) is None


def test_stairs_are_seen_through() -> None:
    quantum, slope, done = 1e8, 5_000.0, 3e6
    draw = np.random.default_rng(0)
    n = np.concatenate(
        [[1, 5_000, 10_000], draw.uniform(0.97, 1.03, 12) * 19_400, draw.uniform(0.97, 1.03, 12) * 59_400]
    )
    total = np.ceil((done + slope * n) / quantum) * quantum + draw.gamma(2, 2e4, n.size)
    line = censored_line(n, total, quantum * 1.01)
    assert line is not None
    assert line.slope == pytest.approx(slope, rel=0.01)
    assert line.intercept == pytest.approx(done, abs=1.5e6)
    squares = np.polyfit(n, total, 1)
    assert abs(squares[0] / slope - 1) > 0.02


def test_t1_and_the_first_stair_tell_the_line() -> None:
    """Windows that open just before a look show T(1) as it is; a busy thread's look comes late, with the work's end."""
    quantum, slope, start = 1e8, 50_000.0, 1.5e6
    draw = np.random.default_rng(1)
    n = np.concatenate([[1, 1], draw.uniform(0.9, 1.1, 20) * 1_970]).round()
    done = (start + slope * n) * draw.normal(1, 0.02, n.size)
    total = np.ceil(done / quantum) * quantum
    total[:2] = 2.0e6, 2.4e6
    for looked in (total, np.where(n > 1, np.maximum(done, quantum), total)):
        line = censored_line(n, looked, quantum)
        assert line is not None
        assert line.slope == pytest.approx(slope, rel=0.02)
        assert line.intercept == pytest.approx(start, abs=1e6)


def test_one_stair_tells_no_slope() -> None:
    assert censored_line(np.array([1.0, 2, 3]), np.array([1e8, 1e8, 1e8]), 1e8) is None


def test_two_groups_need_distance_and_members() -> None:
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(5), 20)
    one = draw.normal(100, 2, 100)
    assert two_groups(one, owners) is None
    assert two_groups(one[:5], owners[:5]) is None
    two = np.where(np.arange(100) % 3 == 0, 180.0, 100.0) * draw.normal(1, 0.01, 100)
    found = two_groups(two, owners)
    assert found is not None
    assert (found == (np.arange(100) % 3 == 0)).all()
    few = one.copy()
    few[:3] = 500.0
    assert two_groups(few, owners) is None


def test_processes_that_differ_by_a_fifth_are_spread_but_a_change_within_one_is_not() -> None:
    owners = np.repeat(np.arange(5), 20)
    values = np.random.default_rng(0).normal(100, 0.5, 100)
    assert two_groups(np.where(owners < 2, 1.2, 1.0) * values, owners) is None
    assert two_groups(np.where(owners < 2, 2.0, 1.0) * values, owners) is not None
    assert two_groups(np.where(np.arange(100) % 20 < 8, 1.2, 1.0) * values, owners) is not None


def test_the_canary_tells_two_speeds_that_a_noisy_figure_follows() -> None:
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(5), 20)
    slow = np.arange(100) % 2 == 0
    values = np.where(slow, 150.0, 100.0) * draw.normal(1, 0.12, 100)
    canaries = np.where(slow, 150.0, 100.0) * draw.normal(1, 0.005, 100)
    assert two_groups(values, owners) is None
    found = split_speeds(values, canaries, owners)
    assert found is not None
    assert found.by == "canary"
    assert split_speeds(draw.normal(100, 12, 100), canaries, owners) is None
    assert split_speeds(values, np.zeros(0), owners) is None
    assert canary_changed(canaries).any()
    assert not canary_changed(np.zeros(0)).any()


def test_a_processs_slow_rounds_are_told_by_its_own_best_and_another_clock_by_the_other_processes() -> None:
    calm = np.array([100.0, 101.0, 99.0, 102.0, 108.0])
    calms = [calm, 1.01 * calm, 0.99 * calm]
    *none, spell, drifted, slow, fast = slow_rounds(
        [*calms, np.append(calm, [115.0, 160.0]), 1.04 * calm, 1.5 * calm, 0.86 * calm]
    )
    assert not np.any(none)
    assert spell.tolist() == [False] * 5 + [True] * 2
    assert not drifted.any()
    assert slow.all()
    assert fast.all()


def test_where_no_clock_is_the_usual_one_every_process_counts() -> None:
    calm = np.array([100.0, 101.0, 99.0, 102.0, 108.0])
    assert not np.any(slow_rounds([calm, 1.15 * calm, 1.3 * calm]))
    assert not np.any(slow_rounds([calm, calm, 1.15 * calm, 1.15 * calm]))
    assert not np.any(slow_rounds([pace * calm for pace in (0.86, 0.94, 1.0, 1.05, 1.12, 1.2)]))


def test_the_quietest_rounds_always_count() -> None:
    few, third = slow_rounds([np.array([100.0, 150.0, 160.0, 400.0]), np.array([100.0, *np.linspace(150, 400, 11)])])
    assert few.tolist() == [False, False, False, True]
    assert np.count_nonzero(~third) == 4


def test_a_process_is_fitted_below_its_knee_and_behind_a_polling_wait_round_by_round_is_refused() -> None:
    n, issue = issued(1024)
    rows = [[int(k), round(i), round(20_000 + 5_000 * k)] for k, i in zip(n, issue, strict=True)]
    process = Process([Round(rows)])
    found = fit_process(process, Series([process]))
    assert found.knee is not None
    assert found.value("issue") == pytest.approx(2_000, rel=0.01)
    assert found.value("complete") == pytest.approx(5_000, rel=0.01)
    assert found.value("fixed") == pytest.approx(20_000, rel=0.01)
    assert found.value("host") is None
    polled = Process(process.rounds, {"wait_quantum": OneOff([1e6])})
    assert by_round(polled, Series([polled]), "issue", None) == {}
