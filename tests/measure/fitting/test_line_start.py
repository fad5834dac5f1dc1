"""From which n on a cost holds, and an intercept that one unit contradicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Process
from overhead.measure.fitting.remarks import is_drift_judged
from overhead.results import Figure, RoundEntry, codes_of
from tests.fakes.chains import (
    anchored_series,
    dropped,
    measured,
    one_off_line,
    one_process_per_slope,
    one_round,
)
from tests.fakes.machine import FakeClock, FastFakeChain, Law
from tests.fakes.reasons import values_of

NOISE: dict[str, Any] = {"jitter": 0.005, "scatter": 0.1, "own": 0.003}


def figures(law: Law, target: float = 0.1, **more: Any) -> dict[str, Figure]:
    return estimate(anchored_series(law, processes=4, **more), precision=target)


def straight(unit: float, fixed: float = 300.0) -> Law:
    return Law(host=unit, device=0.0, fixed=fixed, synchronous=True, **NOISE)


@pytest.mark.parametrize(("unit", "fixed"), [(30.0, 300.0), (5e3, 300.0), (5e3, 3e6), (50e3, 0.0)])
@pytest.mark.parametrize("target", [0.03, 0.1])
def test_a_straight_line_holds_from_its_first_unit(
    unit: float, fixed: float, target: float
) -> None:
    found = figures(straight(unit=unit, fixed=fixed), target=target)["complete"]
    assert found.status == "ok"
    assert found.holds_from == 1
    assert found.value == pytest.approx(unit, rel=0.01)


@pytest.mark.parametrize("longest", [50, 200])
@pytest.mark.parametrize("fixed", [300.0, 3e6])
def test_a_cost_that_short_chains_do_not_have_says_from_which_n_on_it_holds(
    longest: int, fixed: float
) -> None:
    """A unit of a short chain takes 5,000 ns, of a longer one 30 ns."""

    def extra(n: np.ndarray) -> np.ndarray:
        return np.where(n <= longest, n * 4_970.0, 0.0)

    law = Law(host=30.0, device=0.0, fixed=fixed, synchronous=True, extra=extra, **NOISE)
    found = figures(law)
    complete = found["complete"]
    assert complete.status == "ok"
    assert complete.value == pytest.approx(30.0, rel=0.02)
    assert longest < complete.holds_from <= 50 * longest
    assert {found[name].holds_from for name in ("issue", "host")} == {complete.holds_from}


def test_a_call_whose_cost_begins_later_than_that_of_its_work_says_so_itself() -> None:
    """The device bounds T(n), so a slower call of short chains does not show there."""

    def extra(n: np.ndarray) -> np.ndarray:
        return np.where(n <= 20, n * 1_000.0, 0.0)

    found = figures(Law(host=3_000.0, device=10_000.0, fixed=20e3, extra=extra, **NOISE))
    assert found["complete"].status == "ok"
    assert found["complete"].holds_from == 1
    assert 20 < found["issue"].holds_from <= 100


def test_first_units_that_cost_more_move_the_start_beyond_them() -> None:
    """Each of the first 20 units takes 50,000 ns, a later one 1,000 ns."""

    def extra(n: np.ndarray) -> np.ndarray:
        return np.minimum(n, 20) * 49_000.0

    found = figures(
        Law(host=1_000.0, device=0.0, fixed=300.0, synchronous=True, extra=extra, **NOISE)
    )
    assert 20 < found["complete"].holds_from <= 1_000
    assert found["fixed"].status == "noisy"


def test_an_intercept_far_above_one_unit_is_not_ok() -> None:
    """A chain of one unit takes 15 us. From three units on, every chain takes 107 us more."""

    def extra(n: np.ndarray) -> np.ndarray:
        return np.where(n <= 2, 0.0, 107e3)

    found = figures(
        Law(host=1_000.0, device=0.0, fixed=14_000.0, synchronous=True, extra=extra, **NOISE)
    )
    assert found["fixed"].status == "noisy"
    assert (found["fixed"].value or 0.0) > 50e3
    told = values_of(found["fixed"].reason, "one-unit-is-off")
    assert told["single_us"] == pytest.approx(15, abs=1)
    assert found["complete"].holds_from > 2


def test_an_intercept_far_below_one_unit_is_not_ok() -> None:
    found = figures(
        Law(
            host=10e3,
            device=0.0,
            fixed=20e3,
            synchronous=True,
            extra=lambda n: np.where(n == 1, 60e3, 0.0),
            **NOISE,
        )
    )
    assert found["fixed"].status == "noisy"
    told = values_of(found["fixed"].reason, "one-unit-is-off")
    single_us = 10 + 20 + 60  # the host, the intercept, and the extra time of a single unit
    assert told["single_us"] == pytest.approx(single_us, rel=0.1)


def test_one_differing_unit_leaves_the_cost_from_one_on_where_a_hundred_units_hide_it() -> None:
    found = figures(
        Law(
            host=25e3,
            device=0.0,
            fixed=40e3,
            synchronous=True,
            extra=lambda n: np.where(n == 1, 40e3, 0.0),
            **NOISE,
        )
    )
    assert found["complete"].status == "ok"
    assert found["complete"].holds_from == 1
    assert found["fixed"].status == "noisy"


def test_a_figure_of_an_older_method_says_nothing_of_where_it_begins() -> None:
    series = anchored_series(straight(unit=5e3), processes=4)
    found = estimate(replace(series, anchored=False), precision=0.1)
    not_known = 0
    assert {figure.holds_from for figure in found.values()} == {not_known}


def test_a_wait_that_polls_has_no_start() -> None:
    found = figures(Law(host=2_000.0, device=500.0, fixed=20e3, poll=1e6))
    assert found["complete"].holds_from == 0


@pytest.mark.parametrize(("poll", "judged"), [(0.0, True), (1e6, False)])
def test_a_drift_is_judged_unless_the_wait_polls(poll: float, judged: bool) -> None:
    series = anchored_series(Law(host=2_000.0, device=500.0, fixed=20e3, poll=poll), processes=4)
    assert is_drift_judged(series) == judged
    assert (
        "drift-judged-over" in codes_of(estimate(series, precision=0.1)["complete"].rule)
    ) == judged
    assert not is_drift_judged(replace(series, processes=series.processes[:1]))


def test_a_clock_with_steps_of_20_us_gives_a_figure() -> None:
    found = figures(straight(unit=5e3), resolution_ns=20_000)["complete"]
    assert found.status == "ok"
    assert found.value == pytest.approx(5e3, rel=0.02)


@pytest.mark.parametrize("resolution_ns", [100_000, 1_000_000, 15_600_000])
def test_a_clock_with_longer_steps_is_said_to_be_too_coarse(resolution_ns: int) -> None:
    found = figures(straight(unit=5e3), resolution_ns=resolution_ns)["complete"]
    assert found.status == "below-resolution"
    assert codes_of(found.reason) == {"clock-too-coarse"}


class _Stopped(FakeClock):
    def now(self) -> int:
        return 1_000


def test_a_clock_that_stands_is_unavailable_and_does_not_hang() -> None:
    clock = _Stopped()
    _, events, _ = measured({"case": FastFakeChain(straight(unit=5e3), clock)}, clock)
    failure = dropped(events)["case"]
    assert failure.status == "unavailable"
    assert codes_of(failure.reason) == {"clock-stands"}


@pytest.mark.parametrize("size", [16, 64, 256])
def test_units_that_are_rounded_up_are_not_two_speeds(size: int) -> None:
    """A chain costs as much as the next multiple of ``size`` units."""

    def extra(n: np.ndarray) -> np.ndarray:
        return (np.ceil(n / size) * size - n) * 5e3

    for seed in range(3):
        found = figures(
            Law(host=5e3, device=0.0, fixed=300.0, synchronous=True, extra=extra, **NOISE),
            seed=seed,
        )
        complete = found["complete"]
        assert complete.status != "bimodal"
        assert complete.status != "ok" or complete.value == pytest.approx(5e3, rel=0.05)


def round_on_line(slope: float, number: int) -> RoundEntry:
    """A round whose samples lie on the line of this slope, two of each n."""
    rows: list[list[int]] = []
    for n in (1, 2, 4, 8, 16, 100):
        rows.append([n, round(slope * n / 2), round(1_000 + slope * n)])
    return one_round(2 * rows, canary=(50_000, 50_000), number=number)


@pytest.mark.parametrize(
    ("both", "status", "modes"),
    [(False, "noisy", []), (True, "bimodal", [600.0, 1_200.0])],
    ids=["each process has one speed", "the last process has both"],
)
def test_anchors_that_are_alike_deny_two_speeds_unless_a_process_has_both(
    both: bool, status: str, modes: list[float]
) -> None:
    fast = [600.0] * 10
    slow = [1_200.0] * 10
    last = [600.0] * 5 + [1_200.0] * 5 if both else slow
    of_processes = [fast, slow, fast, slow, fast, last]
    anchors = one_off_line([91_000.0, 901_000.0] * 3, at=[100, 1_000] * 3)
    processes = []
    for number, slopes in enumerate(of_processes):
        rounds = [round_on_line(slope, index) for index, slope in enumerate(slopes)]
        processes.append(Process(rounds, one_off={"anchor": anchors}, number=number))
    found = estimate(
        replace(one_process_per_slope(600.0), processes=processes, synchronous=True, anchored=True),
        precision=0.1,
    )["complete"]
    assert found.status == status
    assert [*(found.modes or [])] == modes


@pytest.mark.parametrize(("least", "unit"), [(100e3, 5e3), (300e3, 5e3), (1e6, 5e3)])
def test_a_bend_that_processes_meet_at_different_sizes_starts_the_cost_beyond_it(
    least: float, unit: float
) -> None:
    """No chain takes less than ``least`` ns, so that up to there the cost seems to be 0."""

    def extra(n: np.ndarray) -> np.ndarray:
        return np.maximum(least - unit * n, 0.0)

    for seed in range(3):
        complete = figures(
            Law(host=unit, device=0.0, fixed=300.0, synchronous=True, extra=extra, **NOISE),
            seed=seed,
        )["complete"]
        assert complete.status != "ok" or complete.holds_from * unit >= 0.8 * least


@pytest.mark.parametrize("longest", [100, 150])
def test_a_jump_above_short_chains_starts_the_cost_beyond_it(longest: int) -> None:
    def extra(n: np.ndarray) -> np.ndarray:
        return np.where(n > longest, 400e3, 0.0)

    found = figures(
        Law(host=500.0, device=0.0, fixed=300.0, synchronous=True, extra=extra, **NOISE)
    )
    assert found["complete"].status == "ok"
    assert found["complete"].holds_from > longest
    assert found["fixed"].status == "noisy"
