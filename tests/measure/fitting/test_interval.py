"""The mean of one value per process: its interval, the effect of the reference loop, outliers, and
the status.
"""

from __future__ import annotations

import numpy as np
import pytest

from overhead.measure.fitting.interval import MEAN, mean_of_processes
from overhead.results import codes_of
from tests.fakes.reasons import values_of


@pytest.mark.needs("scipy")
def test_the_interval_of_a_mean_of_processes_is_that_of_students_t() -> None:
    from scipy import stats

    values = [100.0, 102.0, 101.0, 99.0]
    found = mean_of_processes("complete", values, precision=0.03)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert [found.value, found.low, found.high] == pytest.approx([100.5, low, high])
    assert found.status == "ok"
    assert found.processes == 4
    rule = values_of(found.rule, "half-width")
    assert rule == {
        "processes": 4,
        "share": pytest.approx((high - low) / 2 / 100.5),
        "target": 0.03,
    }


@pytest.mark.needs("scipy")
def test_changes_that_follow_the_processor_speed_do_not_widen_the_interval() -> None:
    """As in scipy's regression: the mean, with the standard error of the line at the mean
    reference loop.
    """

    from scipy import stats

    paces = 60_000 * np.array([0.9, 0.97, 1.0, 1.04, 1.12, 1.01])
    values = 100 * (1 + 0.8 * (paces / 60_000 - 1)) + np.array([0.2, -0.1, 0.1, -0.3, 0.0, 0.1])
    found = mean_of_processes("complete", values, precision=0.03, paces=paces)
    line = stats.linregress(paces - paces.mean(), values)
    half = float(stats.t.ppf(0.975, 4)) * line.intercept_stderr
    mean = float(values.mean())
    assert found.value == pytest.approx(mean)
    assert found.low == pytest.approx(mean - half)
    assert found.high == pytest.approx(mean + half)
    rule = values_of(found.rule, "half-width-at-canary")
    assert rule["processes"] == 6
    assert rule["target"] == 0.03
    assert rule["canary_us"] == pytest.approx(paces.mean() / 1e3)
    assert rule["share"] == pytest.approx(half / mean)
    assert mean_of_processes("complete", values, precision=0.03).status == "noisy"


@pytest.mark.parametrize(
    "paces",
    [
        (),
        (6e4,) * 6,
        (*(6e4,) * 5, 6e4 + 1),
        (0.0, 6e4, 6.1e4, 6.2e4, 5.9e4, 6e4),
        (6.1e4, 5.9e4, 6e4),
    ],
    ids=["none", "all equal", "nearly equal", "one unknown", "too few"],
)
def test_without_known_processor_speeds_a_figure_is_the_plain_mean(
    paces: tuple[float, ...],
) -> None:
    values = [100.0, 104.0, 98.0, 97.0, 103.0, 98.0]
    assert mean_of_processes("complete", values, precision=0.03, paces=paces) == mean_of_processes(
        "complete", values, precision=0.03
    )
    assert mean_of_processes("complete", values, precision=0.03).value == pytest.approx(100.0)


def test_with_fewer_than_five_processes_the_processor_speed_is_not_used() -> None:
    values, paces = [100.0, 110.0, 90.0, 105.0], [6e4, 6.6e4, 5.4e4, 6.3e4]
    assert mean_of_processes("complete", values, precision=0.03, paces=paces) == mean_of_processes(
        "complete", values, precision=0.03
    )


def test_a_wide_interval_is_noisy_and_its_reason_estimates_the_processes_needed() -> None:
    found = mean_of_processes("complete", [100.0, 110.0, 90.0, 105.0, 95.0], precision=0.03)
    assert found.status == "noisy"
    assert values_of(found.reason, "too-wide") == {
        "share": pytest.approx(0.0982, abs=1e-4),
        "target": 0.03,
    }
    assert values_of(found.reason, "more-processes-would-do") == {"processes": 54}
    assert codes_of(mean_of_processes("complete", [100.0, 300.0], precision=0.01).reason) == {
        "too-wide"
    }


def test_one_process_gives_no_interval_and_none_gives_no_value() -> None:
    one = mean_of_processes("complete", [100.0], precision=0.03)
    assert one.value == 100.0
    assert one.low is None
    assert one.status == "noisy"
    assert mean_of_processes("complete", [], precision=0.03).status == "failed"
    assert mean_of_processes("complete", [0.0, 0.0], precision=0.03).status == "ok"
    assert mean_of_processes("complete", [5.0] * 10, precision=0.03).low == 5.0


@pytest.mark.slow
@pytest.mark.parametrize("processes", [4, 5, 8, 12])
def test_intervals_cover_the_truth_in_about_95_percent(processes: int) -> None:
    """1,000 draws with a reference loop that varies. Below five processes the interval includes its
    changes.
    """
    draw, held = np.random.default_rng(1), 0
    for _ in range(1_000):
        paces = 1 + 0.04 * draw.standard_normal(processes)
        values = 1 + 0.7 * (paces - 1) + 0.02 * draw.standard_normal(processes)
        found = mean_of_processes("complete", values, precision=0.03, paces=paces)
        assert found.low is not None
        assert found.high is not None
        truth = 1 + 0.7 * (paces.mean() - 1) if processes >= MEAN.reference_from else 1
        held += found.low <= truth <= found.high
    assert 0.93 <= held / 1_000 <= 0.97
