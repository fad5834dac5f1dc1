"""Differences and ratios of cases that alternated, and marginal costs from several patterns."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Process, Series, slopes_by_round
from overhead.measure.fitting.paired import (
    MARGINAL_COSTS,
    PerDispatch,
    difference_and_ratio,
    marginal_costs,
)
from overhead.results import because
from tests.fakes.chains import (
    at_paces,
    one_process_per_slope,
    one_round,
    series,
    with_reference_loops,
)
from tests.fakes.machine import Disturbance, Law
from tests.fakes.reasons import values_of

PER_SUBMIT = PerDispatch(submits=1.0, passes=1.0)
PER_PASS = PerDispatch(submits=0.0, passes=1.0)
ONE_PASS = PerDispatch(submits=0.0, passes=0.0)
PER_4 = PerDispatch(submits=1 / 4, passes=1 / 4)
PER_16 = PerDispatch(submits=1 / 16, passes=1 / 16)
ROTATED = PerDispatch(submits=0.0, passes=0.0, binds=1.0)


def around(slope: float) -> Series:
    """Three processes whose slopes lie within 1 % of this one, ns per unit of the total; the slope
    of ``issue`` is half of that.
    """
    return one_process_per_slope(slope, 1.01 * slope, 0.99 * slope)


def without_pace(case: Series) -> Series:
    """The case without the reference loops of its processes."""
    return replace(case, processes=[replace(process, pace=0.0) for process in case.processes])


def with_rounds_from(case: Series, first: int) -> Series:
    """The case with other numbers of its rounds."""
    processes: list[Process] = []
    for process in case.processes:
        rounds = [msgspec.structs.replace(e, round=e.round + first) for e in process.rounds]
        processes.append(replace(process, rounds=rounds))
    return replace(case, processes=processes)


def without_reference_loops(case: Series) -> Series:
    """The case without the reference loops of its rounds."""
    processes: list[Process] = []
    for process in case.processes:
        rounds = [msgspec.structs.replace(entry, canary=[]) for entry in process.rounds]
        processes.append(replace(process, rounds=rounds))
    return replace(case, processes=processes)


def test_two_cases_are_compared_round_by_round_within_a_process() -> None:
    found = difference_and_ratio(
        of=one_process_per_slope(600.0, 900.0, 1_200.0),
        against=one_process_per_slope(300.0, 450.0, 600.0),
        figure="complete",
        precision=0.03,
    )
    assert found.ratio.value == pytest.approx(2.0)
    assert found.ratio.status == "ok"
    assert found.ratio.unit == "ratio"
    assert found.difference.value == pytest.approx(450.0), "the mean of 300, 450 and 600"
    assert found.difference.status == "noisy", "as the processes differ"


def test_differences_ratios_and_marginal_costs_are_corrected_for_the_processor_speed() -> None:
    paces = (0.91, 0.95, 1.0, 1.02, 1.04, 1.09, 0.99)
    reference = [6e4 * pace for pace in paces]
    per_submit = at_paces(slopes=[6_000.0 * pace for pace in paces], best_loops_ns=reference)
    one_pass = at_paces(slopes=[600.0 * pace for pace in paces], best_loops_ns=reference)
    family = {PER_SUBMIT: per_submit, ONE_PASS: one_pass}
    found = difference_and_ratio(of=per_submit, against=one_pass, figure="complete", precision=0.01)
    parts = marginal_costs(family, precision=0.01, figure="issue")
    for one in (found.difference, found.ratio, parts["per_dispatch"]):
        assert values_of(one.rule, "half-width-at-canary")["canary_us"] == pytest.approx(60.0)
        assert one.status == "ok"
    unpaced = difference_and_ratio(
        of=without_pace(per_submit),
        against=without_pace(one_pass),
        figure="complete",
        precision=0.01,
    )
    assert unpaced.difference.status == "noisy"


def test_a_negative_difference_is_shown_as_negative_and_noisy() -> None:
    found = difference_and_ratio(
        of=one_process_per_slope(300.0, 301.0, 302.0),
        against=one_process_per_slope(400.0, 401.0, 402.0),
        figure="issue",
        precision=0.03,
    ).difference
    assert found.value == pytest.approx(-50.0), "issue has half of the slopes"
    assert found.status == "noisy"
    assert found.reason == because("difference-not-separable")


def test_two_cases_are_compared_in_the_processes_that_measured_both() -> None:
    a = one_process_per_slope(600.0, 900.0, 1_200.0, 5_000.0)
    b = one_process_per_slope(300.0, 450.0, 600.0, 700.0)
    first_three_reversed = [b.processes[2], b.processes[1], b.processes[0]]
    lacking = replace(b, processes=first_three_reversed)
    found = difference_and_ratio(of=a, against=lacking, figure="complete", precision=0.03).ratio
    assert found.value == pytest.approx(2.0)
    assert found.processes == 3
    costs = marginal_costs({PER_SUBMIT: a, ONE_PASS: lacking}, figure="issue")
    assert costs["per_dispatch"].processes == 3
    in_other_order = marginal_costs({ONE_PASS: lacking, PER_SUBMIT: a}, figure="issue")
    assert in_other_order["per_dispatch"].processes == 3
    with pytest.raises(ValueError, match="same number"):
        difference_and_ratio(
            of=replace(a, processes=[a.processes[0]] * 2), against=b, figure="complete"
        )


def test_cases_without_a_common_round_have_no_difference() -> None:
    early = one_process_per_slope(300.0, 300.0)
    late = with_rounds_from(early, first=100)
    found = difference_and_ratio(of=early, against=late, figure="complete")
    assert found.difference.status == found.ratio.status == "failed"


@pytest.mark.slow
def test_the_ratio_of_two_cases_is_precise_although_processes_differ_in_speed() -> None:
    disturbance = Disturbance(spread=0.05, preemptions=0.0)
    a = series(
        Law(host=2_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005),
        disturbance,
        processes=4,
    )
    b = series(
        Law(host=1_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005),
        disturbance,
        processes=4,
    )
    assert estimate(without_reference_loops(a), precision=0.03)["complete"].status == "noisy"
    assert difference_and_ratio(of=a, against=b, figure="complete").ratio.value == pytest.approx(
        2.0, rel=0.005
    )


def test_four_patterns_of_a_case_give_the_cost_of_a_submit_a_pass_and_a_dispatch() -> None:
    costs = np.array([9_000.0, 2_000.0, 400.0, 150.0])
    family = {}
    for counts in (PER_SUBMIT, PER_4, PER_16, PER_PASS, ONE_PASS, ROTATED):
        cost = float(np.dot(counts, costs))
        family[counts] = around(2 * cost)  # as issue has half the slope
    found = marginal_costs(family, figure="issue")
    assert tuple(found) == MARGINAL_COSTS
    assert [found[part].value for part in MARGINAL_COSTS] == pytest.approx(list(costs), rel=0.02)
    family.pop(ROTATED)
    assert marginal_costs(family, figure="issue")["per_bind"].status == "unavailable"


def test_without_passes_two_patterns_determine_the_cost_of_a_submit() -> None:
    family = {
        PER_SUBMIT: one_process_per_slope(20_000.0, 20_100.0, 19_900.0),
        ONE_PASS: one_process_per_slope(2_000.0, 2_010.0, 1_990.0),
    }
    assert marginal_costs(family, figure="issue")["per_submit"].status == "unavailable"
    found = marginal_costs(family, figure="issue", passes=False)
    # A unit issues for half of the slope: 10,000 ns with a submit of its own, 1,000 ns without.
    assert found["per_submit"].value == pytest.approx(9_000.0)
    assert found["per_dispatch"].value == pytest.approx(1_000.0)
    assert found["per_pass"].status == "unavailable"
    assert found["per_pass"].reason == because("no-passes")


def test_patterns_without_figures_have_no_marginal_costs() -> None:
    bare = Series([Process([one_round([[1, 5, 9]] * 9)])] * 2)
    costs = marginal_costs({PER_SUBMIT: bare, ONE_PASS: bare})
    assert {cost.status for cost in costs.values()} == {"unavailable"}


def test_a_marginal_cost_whose_interval_reaches_zero_is_noisy() -> None:
    members = {
        PER_SUBMIT: one_process_per_slope(20_000.0, 20_020.0, 19_980.0),
        PER_PASS: one_process_per_slope(2_000.0, 2_002.0, 1_998.0),
        ONE_PASS: one_process_per_slope(2_002.0, 2_004.002, 1_999.998),
        PER_16: one_process_per_slope(3_200.0, 3_203.2, 3_196.8),
    }
    found = marginal_costs(members, figure="issue")
    assert found["per_pass"].status == "noisy"
    assert found["per_pass"].reason == because("cost-not-separable")


def test_a_comparison_leaves_out_the_slow_rounds_of_either_case() -> None:
    """The figures of both cases leave such rounds out, too."""
    calm = (100, 101, 99, 100)
    slow = (100, 101, 99, 160)
    of = (600.0, 600.0, 600.0, 960.0)
    against = (300.0, 300.0, 300.0, 480.0)
    found = difference_and_ratio(
        of=with_reference_loops(slopes=of, loops_us=slow),
        against=with_reference_loops(slopes=against, loops_us=calm),
        figure="complete",
    )
    assert found.difference.value == pytest.approx(300.0)
    assert found.difference.status == "ok"
    assert found.difference.processes == 3, "the last process of one case was slow"
    few = difference_and_ratio(
        of=with_reference_loops(slopes=of[:2], loops_us=slow[2:]),
        against=with_reference_loops(slopes=against[:2], loops_us=calm[2:]),
        figure="complete",
    )
    assert few.difference.processes == 2
    family = {
        PER_SUBMIT: with_reference_loops(slopes=of, loops_us=slow),
        ONE_PASS: with_reference_loops(slopes=against, loops_us=calm),
    }
    assert marginal_costs(family, figure="issue")["per_dispatch"].processes == 3


def test_a_comparison_uses_all_rounds_if_too_few_fast_ones_are_common() -> None:
    """The slow rounds of one case are undisturbed ones of the other."""
    of = with_reference_loops(slopes=(600.0, 600.0, 600.0, 600.0), loops_us=(150, 100, 101, 100))
    against = with_reference_loops(
        slopes=(300.0, 300.0, 300.0, 300.0), loops_us=(100, 101, 100, 150)
    )
    assert difference_and_ratio(of=of, against=against, figure="complete").difference.processes == 4
    costs = marginal_costs({PER_SUBMIT: of, ONE_PASS: against}, figure="issue")
    assert costs["per_dispatch"].processes == 4


@pytest.mark.slow
def test_a_difference_of_host_times_uses_every_round() -> None:
    """Few samples read the CPU clock, so the CPU time inside the wait comes from the whole
    process.
    """
    a = series(
        Law(host=2_000.0, device=10.0, fixed=20_000.0, deferred=500.0, jitter=0.01), processes=4
    )
    b = series(
        Law(host=1_000.0, device=10.0, fixed=20_000.0, deferred=200.0, jitter=0.01), processes=4
    )
    for process in a.processes:
        assert slopes_by_round(process, a, "host", None).keys() == {r.round for r in process.rounds}
    assert difference_and_ratio(of=a, against=b, figure="host").difference.value == pytest.approx(
        1_300.0, rel=0.01
    )
