"""The met cost of a case from the turns of its processes."""

from __future__ import annotations

import pytest

from overhead.measure.fitting.one_off_figures import one_off_figures, unpinned_figures
from overhead.measure.fitting.one_process import Process, Series
from overhead.results import because
from tests.fakes.chains import one_off_line


def met_series(*turns: tuple[float, ...]) -> Series:
    """A process for each tuple of turns, ns per unit."""
    return Series(
        [Process((), one_off={"met": one_off_line(own, at=[8] * len(own))}) for own in turns]
    )


def test_the_met_cost_is_the_median_of_the_processes_with_the_lowest_and_the_highest() -> None:
    found = unpinned_figures(met_series((29.0, 31.0), (56.0,), (70.0, 70.0, 70.0)))["met"]
    # The means of the turns of the three processes are 30, 56 and 70.
    assert found.value == 56.0
    assert found.low == 30.0
    assert found.high == 70.0
    assert found.processes == 3
    assert found.unit == "ns"
    assert found.status == "ok"
    assert found.rule == because("lowest-and-highest-mean", processes=3)


def test_with_eight_processes_the_ends_of_the_met_cost_are_percentiles() -> None:
    found = unpinned_figures(met_series(*((float(value),) for value in range(1, 12))))["met"]
    # Of eleven processes with 1 to 11 ns: the median, the 10th and the 90th percentile.
    assert (found.value, found.low, found.high) == pytest.approx((6.0, 2.0, 10.0))
    assert found.rule == because("percentiles-of-means", processes=11)


def test_the_spread_of_the_met_cost_within_a_process_is_a_second_figure() -> None:
    found = unpinned_figures(met_series((10.0, 11.0, 10.5), (20.0, 30.0), (5.0, 10.0), (7.0,)))[
        "met_rounds"
    ]
    # The longest turn over the shortest one: 1.1, 1.5 and 2. The fourth process has one turn.
    assert (found.value, found.low, found.high) == pytest.approx((1.5, 1.1, 2.0))
    assert found.unit == "ratio"
    assert found.processes == 3


def test_the_met_cost_of_one_process_is_its_own_mean() -> None:
    found = unpinned_figures(met_series((4.0, 6.0)))["met"]
    assert (found.value, found.low, found.high, found.processes) == (5.0, 5.0, 5.0, 1)


def test_a_met_cost_at_or_below_zero_gets_no_value() -> None:
    found = unpinned_figures(met_series((4.0,), (-1.0,)))
    assert set(found) == {"met"}
    assert found["met"].status == "below-resolution"
    assert found["met"].value is None


def test_a_met_cost_with_a_reason_and_no_values_is_unavailable() -> None:
    series = Series([Process((), one_off={"met": one_off_line((), reason="too slow")})])
    assert unpinned_figures(series) == {}
    assert one_off_figures(series, precision=0.1)["met"].reason == "too slow"
