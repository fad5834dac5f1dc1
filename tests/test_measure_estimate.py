"""From samples to figures: intervals, the status that each is worth, pairs and families."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from overhead.measure.estimate import Process, Round, Series, bound, estimate, marginal, paired
from overhead.measure.fake import Law, Weather
from overhead.measure.figures import Estimate
from overhead.measure.gates import LATER_FROM, ROBUST_FROM, across
from overhead.measure.oncefigures import once_figures
from overhead.measure.pairs import PARTS, counts_of
from overhead.measure.process import by_round
from tests.fake_chains import lines, series

NOISE = {"wake": 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}


def test_the_interval_is_students() -> None:
    values = [100.0, 102.0, 101.0, 99.0]
    found = across(values, 0.03)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert [found.value, found.low, found.high] == pytest.approx([100.5, low, high])
    assert found.status == "ok"
    assert found.processes == 4
    assert found.rule == "4 processes, Student's t: half-width 2.04%, target 3%"


def test_where_a_case_may_have_been_looked_at_more_than_once_the_interval_is_a_little_wider() -> None:
    values = [100.0, 102.0, 101.0, 99.0, 103.0]
    found = across(values, 0.03)
    low, high = stats.t.interval(0.96, LATER_FROM - 1, np.mean(values), stats.sem(values))
    assert [found.value, found.low, found.high] == pytest.approx([101.0, low, high])


def test_what_goes_with_the_canary_is_no_uncertainty() -> None:
    """Against scipy's regression: the mean, with the standard error of the line where the canary is its mean."""
    paces = 60_000 * np.array([0.9, 0.97, 1.0, 1.04, 1.12, 1.01])
    values = 100 * (1 + 0.8 * (paces / 60_000 - 1)) + np.array([0.2, -0.1, 0.1, -0.3, 0.0, 0.1])
    found = across(values, 0.03, paces=paces)
    line = stats.linregress(paces - paces.mean(), values)
    half = float(stats.t.ppf(0.98, 4)) * line.intercept_stderr
    mean = float(values.mean())
    assert [found.value, found.low, found.high] == pytest.approx([mean, mean - half, mean + half])
    assert found.rule == "6 processes, Student's t at a canary of 60.4 us: half-width 0.22%, target 3%"
    assert across(values, 0.03).status == "noisy"


@pytest.mark.parametrize("apart", [1, 2, 5])
def test_values_that_are_mostly_alike_do_not_make_the_others_nought(apart: int) -> None:
    values = [16.0] * (20 - apart) + [32.0] * apart
    found = across(values, 0.03)
    assert found.value == pytest.approx(np.mean(values))
    assert found.status == "noisy"
    assert found.rule.startswith("20 processes, Student's t: ")


def test_one_value_far_off_does_not_make_the_others_alike() -> None:
    around = [-20.0, -12.0, -9.0, -5.0, -1.0, 2.0, 4.0, 8.0, 13.0, 21.0]
    found = across([*around, 300_000.0], 0.03, scale=5_000.0)
    assert found.value == pytest.approx(0.0, abs=10.0)
    assert found.status == "ok"
    assert across([0.0] * 11 + [3.0], 0.03).value == pytest.approx(0.25)


def test_an_intercept_is_judged_by_its_own_size_and_not_by_one_far_off() -> None:
    """Nineteen of about 4 us, each another, and one of 3 ms, behind a slope of 1 us."""
    draw = np.random.default_rng(0)
    fixed = [*(4_000 + 1_500 * draw.standard_normal(19)), 3e6]
    made = [replace(lines(1_000.0, fixed=own).processes[0], number=i) for i, own in enumerate(fixed)]
    found = estimate(Series(made), 0.03)["fixed"]
    assert found.value == pytest.approx(4_000, rel=0.3)
    assert found.status == "noisy"


def test_hubers_estimate_and_its_error_are_those_of_the_book() -> None:
    """The equations that they solve, on processes that differ by a t distribution."""
    draw = np.random.default_rng(3)
    values, paces = 100 + draw.standard_t(3, 14), 6e4 * (1 + 0.03 * draw.standard_normal(14))
    found = across(values, 0.03, paces=paces)
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
    ids=["not told", "all alike", "a nanosecond apart", "one not told", "too few"],
)
def test_without_a_canary_to_go_by_the_interval_is_that_of_the_mean(paces: tuple[float, ...]) -> None:
    values = [100.0, 104.0, 98.0, 97.0, 103.0, 98.0]
    assert across(values, 0.03, paces=paces) == across(values, 0.03)
    assert across(values, 0.03).value == pytest.approx(100.0)


def test_fewer_than_five_processes_do_not_tell_what_goes_with_the_canary() -> None:
    values, paces = [100.0, 110.0, 90.0, 105.0], [6e4, 6.6e4, 5.4e4, 6.3e4]
    assert across(values, 0.03, paces=paces) == across(values, 0.03)


@pytest.mark.parametrize("paced", [False, True])
def test_from_ten_processes_on_one_that_stands_apart_counts_less(paced: bool) -> None:
    draw = np.random.default_rng(0)
    paces = 6e4 * (1 + 0.03 * draw.standard_normal(ROBUST_FROM))
    values = 100 * (paces / paces.mean() if paced else 1) + draw.standard_normal(ROBUST_FROM)
    values[3] += 60
    found = across(values, 0.03, paces=paces if paced else ())
    few = across(values[: ROBUST_FROM - 1], 0.03, paces=paces[: ROBUST_FROM - 1] if paced else ())
    assert found.value == pytest.approx(100, abs=1.5)
    assert "Huber's estimate" in found.rule
    assert (found.status, few.status) == ("ok", "noisy")
    assert across([5.0] * ROBUST_FROM, 0.03).low == 5.0


def test_a_wide_interval_is_noisy_and_says_what_would_do() -> None:
    found = across([100.0, 110.0, 90.0, 105.0, 95.0], 0.03)
    assert found.status == "noisy"
    assert found.reason == "half-width 10.6%, target 3%; about 63 processes would do"
    assert across([100.0, 300.0], 0.01).reason.startswith("half-width 635.3%, target 1%")


def test_one_process_gives_a_value_without_an_interval_and_none_gives_nothing() -> None:
    one = across([100.0], 0.03)
    assert (one.value, one.low, one.status) == (100.0, None, "noisy")
    assert across([], 0.03).status == "failed"
    assert across([0.0, 0.0], 0.03).status == "ok"


def at_canaries(slopes: Sequence[float], ns: Sequence[float]) -> Series:
    """A process for each slope, with its own canary."""
    made = lines(*slopes)
    return replace(made, processes=[replace(p, pace=pace) for p, pace in zip(made.processes, ns, strict=True)])


def test_every_slope_and_the_intercept_are_said_at_their_canary() -> None:
    """Seven processes, each as fast as its canary says."""
    paces = (0.91, 0.95, 1.0, 1.02, 1.04, 1.09, 0.99)
    made = lines(*(600.0 * pace for pace in paces))
    told = replace(made, processes=[replace(p, pace=6e4 * pace) for p, pace in zip(made.processes, paces, strict=True)])
    found, blind = estimate(told, 0.01), estimate(made, 0.01)
    for name in ("issue", "host", "complete", "fixed"):
        assert "at a canary of 60.0 us" in found[name].rule
        assert "at a canary" not in blind[name].rule
        assert found[name].value == pytest.approx(blind[name].value)
    assert found["complete"].value == pytest.approx(600.0, abs=0.5)
    assert {found[name].status for name in ("issue", "host", "complete", "fixed")} == {"ok"}
    assert blind["complete"].status == "noisy"


@pytest.mark.parametrize(("processes", "apart"), [(5, 0.0), (9, 0.0), (10, 0.0), (10, 0.1), (20, 0.0), (20, 0.1)])
def test_intervals_at_a_canary_keep_their_word(processes: int, apart: float) -> None:
    """Processes of which some stand a quarter apart, on a machine that wanders: 1,000 draws each."""
    draw, held = np.random.default_rng(1), 0
    for _ in range(1_000):
        paces = 1 + 0.04 * draw.standard_normal(processes)
        values = 1 + 0.7 * (paces - 1) + 0.02 * draw.standard_normal(processes)
        values *= np.where(draw.random(processes) < apart, 1.25, 1)
        found = across(values, 0.03, paces=paces)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 1 + 0.7 * (paces.mean() - 1) <= found.high
    assert 0.925 <= held / 1_000 <= 0.985


def test_an_exact_line_gives_its_slope_and_intercept() -> None:
    found = estimate(lines(600.0, 602.0, 598.0), 0.03)
    assert found["complete"].value == pytest.approx(600.0)
    assert found["issue"].value == pytest.approx(300.0)
    assert found["host"].value == pytest.approx(310.0)
    assert found["fixed"].value == pytest.approx(1_000.0, abs=2)
    assert found["legacy"].value == pytest.approx(610.0)
    assert {e.status for e in found.values()} == {"ok"}


def test_host_needs_the_cpu_clock_unless_the_wait_does_nothing() -> None:
    bare = [
        Process([Round([row for row in r.samples if len(row) == 3], (), r.number) for r in p.rounds])
        for p in lines(600.0, 601.0).processes
    ]
    found = estimate(Series(bare), 0.1)
    assert (found["host"].status, found["issue"].status) == ("unavailable", "ok")
    assert estimate(Series(bare, synchronous=True), 0.1)["host"].value == pytest.approx(300.25)
    spins = estimate(Series(bare, wait_spins=True), 0.1)["host"]
    assert spins.value == pytest.approx(300.25)
    assert "the wait spins" in spins.rule


def test_nothing_sampled_is_failed_and_one_n_is_no_slope() -> None:
    assert {e.status for e in estimate(Series([Process()]), 0.03).values()} == {"failed"}
    one = Series([Process([Round([[4, 10, 20]] * 9)])] * 3, synchronous=True)
    assert estimate(one, 0.03)["complete"].status == "failed"
    polled = Series([Process([Round([[4, 10, 20]] * 9)], {"wait_quantum": [1e8]})] * 3)
    found = estimate(polled, 0.03)
    assert found["complete"].status == "below-resolution"
    assert found["fixed"].status == "below-resolution"


def test_what_the_clock_cannot_resolve_has_no_value() -> None:
    coarse = [replace(p, once={"clock": [100_000.0, 50.0, 500.0]}) for p in lines(600.0, 601.0, 602.0).processes]
    found = estimate(Series(coarse), 0.03)["complete"]
    assert (found.status, found.value) == ("below-resolution", None)
    assert "the clock steps by 100000 ns" in found.reason
    flat = estimate(lines(600.0, -5.0, 602.0), 0.03)["complete"]
    assert (flat.status, flat.value) == ("below-resolution", None)


def test_a_bend_beyond_the_noise_is_no_line() -> None:
    ns = (1, 4, 16, 64, 256)
    rows = [[n, 10 * n, round(1_000 + 600 * n + 3_000 * n**0.5)] for n in ns] * 4
    bent = Process([Round(rows, (), i) for i in range(4)])
    found = estimate(Series([bent] * 3, synchronous=True), 0.03)
    assert found["complete"].status == "nonlinear"
    assert found["complete"].value is None
    assert "off the line" in found["complete"].reason
    assert found["fixed"].status == "nonlinear"
    assert found["issue"].status == "ok"


def test_two_speeds_give_both() -> None:
    law = Law(host=3_000.0, device=2_000.0, fixed=30_000.0, **NOISE)  # type: ignore[arg-type]
    found = estimate(series(law, Weather(0.005, 1.8, 0.1), processes=4, seconds=0.5), 0.03)
    for name in ("issue", "host", "complete"):
        assert found[name].status == "bimodal"
        assert list(found[name].modes) == pytest.approx([3_000.0, 5_400.0], rel=0.02)
        low = found[name].low
        assert low is not None
        assert low < 3_050
    assert found["fixed"].status == "bimodal"
    assert "two speeds" in found["complete"].reason


def test_rounds_under_other_weather_are_labelled() -> None:
    calm = lines(600.0, 601.0)
    rounds = [replace(r, canary=(53_000, 50_000) if r.number == 0 else r.canary) for r in calm.processes[0].rounds]
    found = estimate(Series([Process(rounds), calm.processes[1]]), 0.1)["complete"]
    assert found.rule.endswith("the canary was off by over 5% in 12% of the rounds")
    assert "canary" not in estimate(calm, 0.1)["complete"].rule


def test_a_knee_is_a_figure_where_most_processes_see_it() -> None:
    law = Law(host=3_000.0, device=36_000.0, fixed=20_000.0, depth=64, jitter=0.002)
    found = estimate(series(law, extras=frozenset({"case"})), 0.03)
    assert found["knee_n"].value == pytest.approx(law.truth()["knee_n"], rel=0.01)
    assert found["queue_depth"].value == pytest.approx(64, rel=0.01)
    assert found["knee_n"].unit == "n"
    assert "knee_n" not in estimate(lines(600.0, 601.0), 0.03)
    bent = series(law, extras=frozenset({"case"}))
    assert "knee_n" not in estimate(replace(bent, overlap="serial"), 0.03)


def test_once_values_become_figures() -> None:
    once = {
        "naive": [900.0, 1_000.0, 1_100.0], "naive_idle": [5_000.0], "empty_wait": [100.0], "first": [9e6],
        "latency": [float(v) for v in range(1_001)], "prepare": [300.0], "legacy": [61_000.0], "stage:submit": [40.0],
        "device_busy": [1_100.0, 600.0, 350.0], "device_quantum": [1.0], "start_latency": [7_000.0],
    }  # fmt: skip
    at = {"device_busy": [100, 50, 25]}
    found = estimate(Series([Process(p.rounds, once, at) for p in lines(600.0, 600.0).processes]), 0.03)
    values = {name: e.value for name, e in found.items()}
    assert values["naive"] == 1_000.0
    assert [values[p] for p in ("p50", "p95", "p99")] == [500.0, 950.0, 990.0]
    assert values["legacy"] == 610.0
    assert values["device_busy"] == pytest.approx(10.0)
    assert values["stage:submit"] == 40.0
    assert {"naive_idle", "empty_wait", "first", "prepare", "start_latency"} <= set(values)


def test_what_was_asked_for_in_vain_says_why() -> None:
    reasons = {"device_span": "no timestamps", "naive": "said, yet there is a value"}
    bare = [Process(p.rounds, {"naive": [5.0]}, {}, reasons) for p in lines(600.0, 600.0).processes]
    found = estimate(Series(bare), 0.03)
    assert (found["device_span"].status, found["device_span"].reason) == ("unavailable", "no timestamps")
    assert found["naive"].value == 5.0


def test_what_a_recording_costs_is_a_line_of_its_own() -> None:
    once, at = {"making:capture": [150.0, 600.0, 5_100.0]}, {"making:capture": [1, 10, 100]}
    found = estimate(Series([Process(p.rounds, once, at) for p in lines(600.0, 600.0).processes]), 0.03)
    assert found["making:capture"].value == pytest.approx(50.0)
    assert found["making:capture:fixed"].value == pytest.approx(100.0)


def test_the_device_is_said_to_be_busy_where_most_processes_saw_it_so() -> None:
    def named(*names: str) -> set[str]:
        processes = [
            Process(p.rounds, {name: [1_100.0, 600.0], "device_quantum": [1.0]}, {name: [100, 50]})
            for p, name in zip(lines(600.0, 600.0, 600.0).processes, names, strict=True)
        ]
        return {name for name in once_figures(Series(processes), 0.03) if name.startswith("device")}

    assert named("device_busy", "device_span", "device_busy") == {"device_busy"}
    assert named("device_span", "device_span", "device_busy") == {"device_span"}


def test_device_time_below_its_clocks_step_has_no_value() -> None:
    once = {"device_span": [1_100.0, 600.0], "device_quantum": [1_000.0]}
    found = estimate(
        Series([Process(p.rounds, once, {"device_span": [100, 50]}) for p in lines(600.0, 600.0).processes]), 0.03
    )
    assert found["device_span"].status == "below-resolution"
    assert found["device_span"].value is None


@pytest.mark.parametrize(("host", "expected"), [(95.0, "host"), (80.0, "balanced"), (20.0, "device")])
def test_bound_is_told_by_the_hosts_share(host: float, expected: str) -> None:
    figures = {"host": Estimate(host), "complete": Estimate(100.0)}
    assert bound(Series([]), figures) == expected
    assert bound(Series([], synchronous=True), figures) == "host"
    assert bound(Series([], overlap="serial"), figures) == ""
    assert bound(Series([]), {"host": Estimate(status="failed"), "complete": Estimate(100.0)}) == ""


def with_canaries(slopes: Sequence[float], canaries: Sequence[float]) -> Series:
    """A process for each slope, its canary's us beside it."""
    made = lines(*slopes)
    return replace(
        made,
        processes=[
            replace(p, rounds=[replace(r, canary=(round(500 * us), round(500 * us))) for r in p.rounds])
            for p, us in zip(made.processes, canaries, strict=True)
        ],
    )


@pytest.mark.parametrize(("last", "canary"), [(720.0, 140), (720.0, 112), (510.0, 85)])
def test_a_process_at_another_clock_is_left_out_and_said(last: float, canary: int) -> None:
    slopes = (600.0, 602.0, 598.0, 601.0, last)
    found = estimate(with_canaries(slopes, (100, 102, 99, 101, canary)), 0.03)["complete"]
    assert (found.status, found.processes) == ("ok", 4)
    assert found.value == pytest.approx(600.25)
    assert "20% of the rounds are left out" in found.rule
    fixed = estimate(with_canaries(slopes, (100, 102, 99, 101, canary)), 0.03)["fixed"]
    assert (fixed.processes, "left out" in fixed.rule) == (4, True)
    calm = estimate(with_canaries(slopes, (100, 102, 99, 101, 104)), 0.03)["complete"]
    assert (calm.status, calm.processes) == ("noisy", 5)
    assert "left out" not in calm.rule


def test_no_process_is_left_out_where_half_of_them_were_slow() -> None:
    found = estimate(with_canaries((600.0, 600.0, 720.0, 722.0), (100, 100, 118, 118)), 0.03)["complete"]
    assert found.processes == 4
    assert "left out" not in found.rule


@pytest.mark.parametrize("last", [603.0, 540.0, 720.0])
def test_the_figure_has_no_say_in_what_is_left_out(last: float) -> None:
    """Or its interval would be narrow by choice."""
    found = estimate(with_canaries((600.0, 602.0, 598.0, 601.0, last), (100, 102, 99, 101, 140)), 0.03)["complete"]
    assert found.processes == 4


def test_rounds_behind_a_polling_wait_are_too_few_to_leave_any_out() -> None:
    made = with_canaries((600.0, 602.0, 598.0, 601.0, 720.0), (100, 102, 99, 101, 140))
    polled = [replace(p, once={"wait_quantum": [10.0]}) for p in made.processes]
    assert estimate(replace(made, processes=polled), 0.03)["complete"].processes == 5


def test_a_slow_spell_within_a_process_costs_its_rounds_alone() -> None:
    made = with_canaries((600.0, 602.0, 598.0), (100, 101, 99))
    slow = with_canaries((750.0, 750.0, 750.0), (130, 130, 130))
    mixed = replace(
        made,
        processes=[
            replace(p, rounds=[*p.rounds, *[replace(r, number=r.number + 100) for r in q.rounds[:1]]])
            for p, q in zip([*made.processes, made.processes[0]], [*slow.processes, slow.processes[0]], strict=True)
        ],
    )
    found = estimate(mixed, 0.03)["complete"]
    assert (found.status, found.processes) == ("ok", 4)
    assert found.value == pytest.approx(600.0, rel=0.002)


def test_pairs_are_formed_round_by_round_within_a_process() -> None:
    found = paired(lines(600.0, 900.0, 1_200.0), lines(300.0, 450.0, 600.0), "complete", 0.03)
    assert found.ratio.value == pytest.approx(2.0)
    assert found.ratio.status == "ok"
    assert found.ratio.unit == "ratio"
    assert found.difference.value == pytest.approx(450.0)
    assert found.difference.status == "noisy"


def test_differences_ratios_and_families_are_said_at_their_canary() -> None:
    paces = (0.91, 0.95, 1.0, 1.02, 1.04, 1.09, 0.99)
    family = {
        name: at_canaries([cost * pace for pace in paces], [6e4 * pace for pace in paces])
        for name, cost in (("per-submit", 6_000.0), ("one-pass", 600.0))
    }
    found = paired(family["per-submit"], family["one-pass"], "complete", 0.01)
    parts = marginal(family, 0.01, figure="issue")
    for one in (found.difference, found.ratio, parts["per_dispatch"]):
        assert "at a canary of 60.0 us" in one.rule
        assert one.status == "ok"
    bare = {name: replace(s, processes=[replace(p, pace=0.0) for p in s.processes]) for name, s in family.items()}
    assert paired(bare["per-submit"], bare["one-pass"], "complete", 0.01).difference.status == "noisy"


def test_a_negative_difference_stays_negative_and_is_not_separable() -> None:
    found = paired(lines(300.0, 301.0, 302.0), lines(400.0, 401.0, 402.0), "issue", 0.03).difference
    assert found.value == pytest.approx(-50.0)
    assert found.status == "noisy"
    assert found.reason.startswith("not separable")


def test_pairs_are_formed_of_the_processes_that_both_took_part_in() -> None:
    a, b = lines(600.0, 900.0, 1_200.0, 5_000.0), lines(300.0, 450.0, 600.0, 700.0)
    lacking = replace(b, processes=[p for p in b.processes if p.number != 3][::-1])
    found = paired(a, lacking, "complete", 0.03).ratio
    assert found.value == pytest.approx(2.0)
    assert found.processes == 3
    family = {"per-submit": a, "one-pass": lacking}
    assert marginal(family, figure="issue")["per_dispatch"].processes == 3
    assert marginal(dict(reversed(family.items())), figure="issue")["per_dispatch"].processes == 3
    with pytest.raises(ValueError, match="one number"):
        paired(replace(a, processes=[a.processes[0]] * 2), b, "complete")


def test_pairs_without_a_common_round_say_so() -> None:
    early = lines(300.0, 300.0)
    late = Series([replace(p, rounds=[replace(r, number=r.number + 100) for r in p.rounds]) for p in early.processes])
    found = paired(early, late, "complete")
    assert found.difference.status == found.ratio.status == "failed"


def test_paired_speeds_cancel_although_processes_differ() -> None:
    weather = Weather(spread=0.05, preemptions=0.0)
    a = series(Law(host=2_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005), weather, processes=4)
    b = series(Law(host=1_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005), weather, processes=4)
    bare = replace(a, processes=[replace(p, rounds=[replace(r, canary=[]) for r in p.rounds]) for p in a.processes])
    assert estimate(bare, 0.03)["complete"].status == "noisy"
    assert paired(a, b, "complete").ratio.value == pytest.approx(2.0, rel=0.005)


def test_a_family_gives_what_each_thing_adds() -> None:
    costs = np.array([9_000.0, 2_000.0, 400.0, 150.0])
    names = ("per-submit", "per-k 4", "per-k 16", "per-pass", "one-pass", "one-pass rotated")
    family = {}
    for name in names:
        each = float(np.dot(counts_of(name), costs))
        family[name] = lines(*(2 * each * f for f in (1.0, 1.01, 0.99)))
    found = marginal(family, figure="issue")
    assert tuple(found) == PARTS
    assert [found[part].value for part in PARTS] == pytest.approx(list(costs), rel=0.02)
    family.pop("one-pass rotated")
    assert marginal(family, figure="issue")["per_bind"].status == "unavailable"
    with pytest.raises(KeyError):
        marginal({"fused": family["one-pass"]})


def test_an_api_without_passes_tells_its_submission_from_two_patterns() -> None:
    family = {"per-submit": lines(20_000.0, 20_100.0, 19_900.0), "one-pass": lines(2_000.0, 2_010.0, 1_990.0)}
    assert marginal(family, figure="issue")["per_submit"].status == "unavailable"
    found = marginal(family, figure="issue", passes=False)
    assert found["per_submit"].value == pytest.approx(9_000.0)
    assert found["per_dispatch"].value == pytest.approx(1_000.0)
    assert (found["per_pass"].status, found["per_pass"].reason) == ("unavailable", "this API has no passes")


def test_a_family_without_numbers_tells_nothing() -> None:
    bare = Series([Process([Round([[1, 5, 9]] * 9)])] * 2)
    assert {e.status for e in marginal({"per-submit": bare, "one-pass": bare}).values()} == {"unavailable"}


def test_a_cost_that_may_be_nothing_is_not_separable() -> None:
    names = {"per-submit": 10_000.0, "per-pass": 1_000.0, "one-pass": 1_001.0, "per-k 16": 1_600.0}
    found = marginal({n: lines(*(2 * v * f for f in (1.0, 1.001, 0.999))) for n, v in names.items()}, figure="issue")
    assert found["per_pass"].status == "noisy"
    assert "not separable" in found["per_pass"].reason


def test_pairs_are_formed_of_rounds_that_were_quiet_on_both_sides() -> None:
    """A slow round makes a difference longer than the figures it is of, which leave such rounds out."""
    calm, slow = (100, 101, 99, 100), (100, 101, 99, 160)
    of, against = (600.0, 600.0, 600.0, 960.0), (300.0, 300.0, 300.0, 480.0)
    found = paired(with_canaries(of, slow), with_canaries(against, calm), "complete")
    assert found.difference.value == pytest.approx(300.0)
    assert (found.difference.status, found.difference.processes) == ("ok", 3)
    few = paired(with_canaries(of[:2], slow[2:]), with_canaries(against[:2], calm[2:]), "complete")
    assert few.difference.processes == 2
    family = {"per-submit": with_canaries(of, slow), "one-pass": with_canaries(against, calm)}
    assert marginal(family, figure="issue")["per_dispatch"].processes == 3


def test_pairs_without_enough_quiet_rounds_in_common_are_formed_of_all() -> None:
    """Where one side's slow processes are the other's quiet ones."""
    early, late = (150, 100, 101, 100), (100, 101, 100, 150)
    of, against = with_canaries((600.0,) * 4, early), with_canaries((300.0,) * 4, late)
    assert paired(of, against, "complete").difference.processes == 4
    assert marginal({"per-submit": of, "one-pass": against}, figure="issue")["per_dispatch"].processes == 4


def test_a_process_without_rounds_has_no_say_in_which_are_slow() -> None:
    made = with_canaries((600.0, 602.0, 598.0, 601.0, 720.0), (100, 102, 99, 101, 140))
    cut = replace(made, processes=[*made.processes, Process([], {"ladder": [0.0, 1.0]}, number=5)])
    assert estimate(cut, 0.03)["complete"] == estimate(made, 0.03)["complete"]


def test_host_differences_are_told_by_every_round() -> None:
    """The CPU clock is read in few samples; what is deferred into the wait is taken of the whole process."""
    a = series(Law(host=2_000.0, device=10.0, fixed=20_000.0, deferred=500.0, jitter=0.01), processes=4)
    b = series(Law(host=1_000.0, device=10.0, fixed=20_000.0, deferred=200.0, jitter=0.01), processes=4)
    for process in a.processes:
        assert by_round(process, a, "host", None).keys() == {r.number for r in process.rounds}
    assert paired(a, b, "host").difference.value == pytest.approx(1_300.0, rel=0.01)


def test_host_is_not_lost_with_the_rounds_that_are_left_out() -> None:
    """Where the CPU clock was read in slow rounds alone."""
    made = with_canaries((600.0, 602.0, 598.0, 601.0), (100, 101, 99, 100))
    n = 4
    cpu = [[n, n * 600, n * 600 + 10_000, n * 100], [2 * n, n * 1_200, n * 1_200 + 10_000, n * 200]]
    processes = [
        replace(p, rounds=[replace(r, samples=[*r.samples, *cpu], canary=(80_000, 1)) if i == 0 else r
                           for i, r in enumerate(p.rounds)])
        for p in made.processes
    ]  # fmt: skip
    found = estimate(replace(made, processes=processes), 0.03)
    assert found["host"].processes == found["complete"].processes == 4


def test_two_speeds_of_quiet_rounds_say_what_was_left_out() -> None:
    dice = np.random.default_rng(0)
    processes = []
    for process in range(4):
        rounds = []
        for number in range(30):
            slope = (600 if number % 2 else 1_200) * dice.normal(1, 0.003)
            canary = 80_000 if number % 10 == 9 else 50_000
            rows = [[n, round(slope * n), round(slope * n) + 10_000] for n in (1, 64, 128, 256)]
            rounds.append(Round(rows, (canary, 50_000), number))
        processes.append(Process(rounds, number=process))
    found = estimate(Series(processes, synchronous=True), 0.03)
    assert found["complete"].status == "bimodal"
    assert "10% of the rounds are left out" in found["complete"].rule
    assert "10% of the rounds are left out" in found["fixed"].rule
