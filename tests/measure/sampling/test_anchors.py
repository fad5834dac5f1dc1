"""Anchors: samples far beyond the line's sizes of n, and the status that they give a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from overhead.measure.fitting.case_figures import DRIFTS, estimate
from overhead.measure.fitting.one_process import Process, Series
from overhead.results import Figure, because, codes_of
from tests.fakes.chains import (
    anchored_series as run,
    dropped,
    measured,
    one_off_line,
    one_process_per_slope,
)
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law
from tests.fakes.reasons import values_of

NOISE: dict[str, Any] = {"wake": 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}
TOP, FAR = 100, 1_000
LINE = 1_000.0, 600.0
"""``fixed`` and the cost of a unit of ``anchored``, ns."""


def anchored(
    far_ns: float, queued_ns: float = 0.0, top_ns: float = LINE[0] + TOP * LINE[1], **more: Any
) -> Series:
    """Three processes on one line, each with anchors that took so long; the thread waited for its
    processor.
    """
    times = {
        "anchor": [top_ns, far_ns],
        "anchor_issue": [top_ns / 2, far_ns / 2],
        "anchor_queued": [0.0, queued_ns],
    }
    once = {name: one_off_line(ns * 3, at=[TOP, FAR] * 3) for name, ns in times.items()}
    return with_once(once | more)


def with_once(once: dict[str, Any]) -> Series:
    made = one_process_per_slope(*[LINE[1]] * 3)
    return replace(
        made,
        processes=[replace(p, one_off=once) for p in made.processes],
        synchronous=True,
        anchored=True,
    )


def complete(series: Series) -> Figure:
    return estimate(series, precision=0.03)["complete"]


ON_THE_LINE = LINE[0] + FAR * LINE[1]


def test_a_figure_holds_to_the_anchor_that_its_line_predicts() -> None:
    found = complete(anchored(ON_THE_LINE))
    assert found.status == "ok"
    assert found.holds_to == FAR


def test_shorter_chains_in_which_the_thread_only_waited_for_its_processor_do_not_end_the_fit() -> (
    None
):
    """The time in which it waited is longer than the chains took, so that none is left of them."""
    once = {
        "anchor": one_off_line([ON_THE_LINE / 10] * 3 + [ON_THE_LINE], at=[TOP] * 3 + [FAR]),
        "anchor_queued": one_off_line([ON_THE_LINE] * 4, at=[TOP] * 3 + [FAR]),
    }
    assert complete(with_once(once)).value


def test_an_anchor_off_the_line_makes_the_figure_nonlinear_with_both_costs() -> None:
    found = complete(anchored(2 * ON_THE_LINE))
    assert found.status == "nonlinear"
    assert found.value is None
    bends = values_of(found.reason, "bends-at-anchor")
    assert bends["units"] == TOP
    assert bends["anchor"] == FAR
    slope_ns = LINE[1]
    beyond_ns = (2 * ON_THE_LINE - (LINE[0] + TOP * slope_ns)) / (FAR - TOP)
    assert bends["slope_us"] == pytest.approx(slope_ns / 1e3, rel=1e-3)
    assert bends["beyond_us"] == pytest.approx(beyond_ns / 1e3, rel=1e-3)
    assert found.modes == pytest.approx([slope_ns, beyond_ns], rel=1e-3)


def test_a_figure_without_an_anchor_is_noisy_and_keeps_its_value() -> None:
    found = complete(
        with_once({"anchor": one_off_line([], reason=because("n-is-bounded", most=128))})
    )
    assert found.status == "noisy"
    assert found.holds_to == 0
    assert found.value == pytest.approx(LINE[1])
    assert values_of(found.reason, "not-checked-beyond")["units"] == TOP
    assert values_of(found.reason, "n-is-bounded") == {"most": 128}


def test_a_figure_of_an_older_method_keeps_its_status() -> None:
    assert complete(replace(with_once({}), anchored=False)).status == "ok"


def test_an_anchor_in_one_process_alone_is_not_enough() -> None:
    both = anchored(ON_THE_LINE)
    one = replace(
        both, processes=[both.processes[0], *(Process(p.rounds) for p in both.processes[1:])]
    )
    assert complete(one).status == "noisy"


def test_anchors_of_two_processes_off_the_line_make_the_figure_noisy() -> None:
    """Only those of three processes refuse its value."""
    three = anchored(2 * ON_THE_LINE)
    found = complete(replace(three, processes=three.processes[:2]))
    assert (found.status, found.holds_to) == ("noisy", 0)
    assert values_of(found.reason, "not-checked-beyond")["units"] == 100


def test_time_in_which_another_thread_had_the_processor_is_no_bend() -> None:
    assert complete(anchored(1.3 * ON_THE_LINE)).status == "nonlinear"
    found = complete(anchored(1.3 * ON_THE_LINE, queued_ns=0.3 * ON_THE_LINE))
    assert (found.status, found.holds_to) == ("ok", FAR)


def test_a_processor_that_is_slower_at_the_anchor_is_no_bend() -> None:
    slower = 1.01
    found = complete(anchored(slower * ON_THE_LINE, top_ns=slower * (LINE[0] + TOP * LINE[1])))
    assert (found.status, found.holds_to) == ("ok", FAR)


def test_a_cost_that_has_changed_at_the_end_of_the_process_drifts() -> None:
    found = complete(anchored(1.2 * ON_THE_LINE, top_ns=1.2 * (LINE[0] + TOP * LINE[1])))
    assert found.status == "noisy"
    assert codes_of(found.reason) & DRIFTS


@pytest.mark.parametrize(("times", "status", "to"), [(1.0, "ok", 10 * FAR), (1.5, "nonlinear", 0)])
def test_a_far_anchor_extends_the_figure_or_refuses_it(times: float, status: str, to: int) -> None:
    ten = 10 * ON_THE_LINE
    found = complete(
        anchored(ON_THE_LINE, anchor_far=one_off_line([ten, times * ten], at=[FAR, 10 * FAR]))
    )
    assert (found.status, found.holds_to) == (status, to)


@pytest.mark.parametrize(("queued", "status", "to"), [(0.5, "ok", 10 * FAR), (0.0, "nonlinear", 0)])
def test_time_in_which_another_thread_had_the_processor_is_no_bend_at_the_far_anchor(
    queued: float, status: str, to: int
) -> None:
    ten = 10 * ON_THE_LINE
    far: dict[str, Any] = {"anchor_far": one_off_line([ten, 1.5 * ten], at=[FAR, 10 * FAR])}
    if queued:
        far["anchor_far_queued"] = one_off_line([0.0, queued * ten], at=[FAR, 10 * FAR])
    found = complete(anchored(ON_THE_LINE, **far))
    assert (found.status, found.holds_to) == (status, to)


def test_each_process_has_its_own_sizes_of_n_and_an_anchor_ten_times_as_long_as_the_largest() -> (
    None
):
    series = run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE))
    tops = [int(max(p.values("ladder"))) for p in series.processes]
    assert len(set(tops)) == len(tops)
    assert [max(p.one_off["anchor"].at) for p in series.processes] == [10 * top for top in tops]
    sizes: set[float] = set()
    for process in series.processes:
        sizes |= {n for n in process.values("ladder") if n > 8}
    assert any(np.log2(n) % 1 for n in sizes)
    found = complete(series)
    assert (found.status, found.holds_to) == ("ok", 10 * min(tops))


def test_anchors_that_take_long_are_taken_in_three_processes_only() -> None:
    series = run(Law(host=1e6, device=0.0, fixed=0.0, synchronous=True), processes=5)
    assert [bool(p.values("anchor")) for p in series.processes] == [True, True, True, False, False]
    assert complete(series).status == "ok"


def test_the_far_anchor_is_taken_for_the_cases_that_are_named() -> None:
    law = Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE)
    named, plain = (
        complete(run(law, processes=2, far=frozenset({"case"}))),
        complete(run(law, processes=2)),
    )
    assert named.holds_to == 10 * plain.holds_to


@pytest.mark.parametrize("every", [1_000, 3_000])
def test_a_flush_beyond_the_sizes_of_n_is_seen(every: int) -> None:
    def flush(n: np.ndarray) -> np.ndarray:
        return np.asarray(np.floor(n / every) * every * 2_000.0)

    assert (
        complete(run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE, extra=flush))).status
        == "nonlinear"
    )


def test_a_cost_that_is_half_where_n_is_a_power_of_two_is_not_taken_for_the_cost() -> None:
    def half(n: np.ndarray) -> np.ndarray:
        is_power_of_two = np.log2(np.maximum(n, 1)) % 1 == 0
        return np.where(is_power_of_two, -n * 1_000.0, 0.0)

    found = complete(
        run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE, extra=half), processes=5)
    )
    assert found.status != "ok" or found.value == pytest.approx(2_000.0, rel=0.03)


def test_a_warm_up_longer_than_the_rounds_is_told_by_the_age_of_the_process() -> None:
    found = complete(
        run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE, warm=0.5, warm_s=3.0), processes=5)
    )
    assert found.status == "noisy"
    assert codes_of(found.reason) & DRIFTS


def test_work_that_is_done_when_the_values_are_read_is_unverified() -> None:
    clock = FakeClock()
    law = Law(host=50.0, device=0.0, fixed=20e3, lazy=2_000.0)
    _, events, _ = measured({"case": FastFakeChain(law, clock)}, clock)
    assert dropped(events)["case"].status == "unverified"


def test_preempted_anchors_do_not_refuse_a_straight_line() -> None:
    busy = Disturbance(spread=0.0, preemptions=100.0, preempted_ns=(1e6, 10e6))
    found = complete(
        run(
            Law(host=5_000.0, device=0.0, fixed=0.0, synchronous=True, **(NOISE | {"wake": 0.0})),
            busy,
            processes=5,
        )
    )
    assert found.status == "ok"


def test_the_mean_of_everything_holds_what_a_quiet_cost_leaves_out() -> None:
    law = Law(
        host=2_000.0, device=0.0, fixed=20e3, **NOISE, tail=2e-4, tail_ns=100e3, tail_index=3.0
    )
    found = estimate(run(law, processes=5), precision=0.03)
    assert found["complete"].value == pytest.approx(2_000.0, rel=0.01)
    mean_of_pareto = 1.5  # of index 3
    rare_ns = 2e-4 * 100e3 * mean_of_pareto
    assert found["everything"].value == pytest.approx(2_000.0 + rare_ns, abs=12)


def test_a_stack_that_bounds_n_close_to_the_largest_size_has_a_reason_instead_of_an_anchor() -> (
    None
):
    found = complete(run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE), max_n=512))
    assert found.status == "noisy"
    assert values_of(found.reason, "n-is-bounded") == {"most": 512}


def test_short_chains_that_the_ladder_lacks_are_sampled_beside_its_largest_n() -> None:
    for process in run(Law(host=2_000.0, device=0.0, fixed=20e3, first=300e3, **NOISE)).processes:
        ladder = process.values("ladder")
        near = process.one_off["anchor_near"]
        lacking = {n for n in (1, 10, 100) if n not in ladder}
        assert set(near.at) == {*lacking, max(ladder)}
        assert near.at == process.one_off["anchor_near_issue"].at
        assert all(near.values)


def test_the_age_of_a_process_at_its_anchors_is_kept() -> None:
    series = run(Law(host=2_000.0, device=0.0, fixed=20e3, **NOISE))
    assert all(process.values("anchor_age")[0] >= 2e9 for process in series.processes)
    assert 2 <= values_of(complete(series).rule, "drift-judged-over")["seconds"] < 3
