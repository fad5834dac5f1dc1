"""The figures of a case from its samples, and their status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import pytest

from overhead.measure.fitting.case_figures import estimate, limited_by
from overhead.measure.fitting.one_off_figures import one_off_figures
from overhead.measure.fitting.one_process import Process, Series
from overhead.results import Figure, OneOffEntry, RoundEntry, codes_of
from tests.fakes.chains import one_off_line, one_process_per_slope, one_round, series
from tests.fakes.machine import Disturbance, Law
from tests.fakes.reasons import values_of

NOISE = {"wake": 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}


def without_cpu_times(entry: RoundEntry) -> RoundEntry:
    """The round without the samples that read the CPU clock, and without a reference loop."""
    rows = [row for row in entry.samples if len(row) == 3]
    return one_round(rows, canary=(), number=entry.round)


def with_one_off(series: Series, one_off: Mapping[str, OneOffEntry]) -> Series:
    """The rounds of a series, with these one-off values in each process."""
    return Series([Process(process.rounds, one_off=one_off) for process in series.processes])


def test_every_slope_and_the_intercept_are_corrected_for_the_processor_speed() -> None:
    """Seven processes whose costs are proportional to their reference loop."""
    paces = (0.91, 0.95, 1.0, 1.02, 1.04, 1.09, 0.99)
    made = one_process_per_slope(*(600.0 * pace for pace in paces))
    paced: list[Process] = []
    for process, pace in zip(made.processes, paces, strict=True):
        paced.append(replace(process, pace=6e4 * pace))
    found = estimate(replace(made, processes=paced), precision=0.01)
    unpaced = estimate(made, precision=0.01)
    for name in ("issue", "host", "complete", "fixed"):
        reference_loop = values_of(found[name].rule, "half-width-at-canary")
        assert reference_loop["canary_us"] == pytest.approx(60.0)
        assert "half-width" in codes_of(unpaced[name].rule)
        assert found[name].value == pytest.approx(unpaced[name].value)
    assert found["complete"].value == pytest.approx(600.0, abs=0.5)
    assert {found[name].status for name in ("issue", "host", "complete", "fixed")} == {"ok"}
    assert unpaced["complete"].status == "noisy"


def test_an_exact_line_gives_its_slope_and_intercept() -> None:
    found = estimate(one_process_per_slope(600.0, 602.0, 598.0), precision=0.03)
    mean_slope_ns, wait_cpu_ns, fixed_ns = 600.0, 10.0, 1_000.0
    assert found["complete"].value == pytest.approx(mean_slope_ns)
    assert found["issue"].value == pytest.approx(mean_slope_ns / 2)
    assert found["host"].value == pytest.approx(mean_slope_ns / 2 + wait_cpu_ns)
    assert found["fixed"].value == pytest.approx(fixed_ns, abs=2)
    assert found["legacy"].value == pytest.approx(mean_slope_ns + fixed_ns / 100), "T(100) / 100"
    assert {e.status for e in found.values()} == {"ok"}


def test_the_host_figure_needs_the_cpu_clock_unless_the_wait_does_no_work() -> None:
    bare: list[Process] = []
    for process in one_process_per_slope(600.0, 601.0).processes:
        rounds = [without_cpu_times(entry) for entry in process.rounds]
        bare.append(Process(rounds))
    found = estimate(Series(bare), precision=0.1)
    assert found["host"].status == "unavailable"
    assert found["issue"].status == "ok"
    # Without work in the wait, the host's time is that of issue: half of the slopes, 600 and 601.
    assert estimate(Series(bare, synchronous=True), precision=0.1)["host"].value == pytest.approx(
        300.25
    )
    spins = estimate(Series(bare, wait_spins=True), precision=0.1)["host"]
    assert spins.value == pytest.approx(300.25)
    assert "wait-spins" in codes_of(spins.rule)


def test_without_samples_or_with_one_n_there_is_no_slope() -> None:
    assert {e.status for e in estimate(Series([Process()]), precision=0.03).values()} == {"failed"}
    one = Series([Process([one_round([[4, 10, 20]] * 9)])] * 3, synchronous=True)
    assert estimate(one, precision=0.03)["complete"].status == "failed"


def test_a_polling_wait_with_one_n_is_below_the_resolution() -> None:
    polled = Series(
        [Process([one_round([[4, 10, 20]] * 9)], one_off={"wait_quantum": one_off_line([1e8])})] * 3
    )
    found = estimate(polled, precision=0.03)
    assert found["complete"].status == "below-resolution"
    assert found["fixed"].status == "below-resolution"


def test_a_slope_below_the_clock_resolution_has_no_value() -> None:
    coarse = [
        replace(p, one_off={"clock": one_off_line([100_000.0, 50.0, 500.0])})
        for p in one_process_per_slope(600.0, 601.0, 602.0).processes
    ]
    found = estimate(Series(coarse), precision=0.03)["complete"]
    assert found.status == "below-resolution"
    assert found.value is None
    assert values_of(found.reason, "clock-too-coarse")["step_ns"] == 100_000


def test_a_negative_slope_in_one_process_leaves_no_value() -> None:
    flat = estimate(one_process_per_slope(600.0, -5.0, 602.0), precision=0.03)["complete"]
    assert flat.status == "below-resolution"
    assert flat.value is None


def test_a_figure_whose_times_leave_the_line_beyond_the_noise_is_nonlinear() -> None:
    ns = (1, 4, 16, 64, 256)
    # Times until the call returns, on a line, and until the work is done, which bend with sqrt(n).
    rows = [[n, 10 * n, round(1_000 + 600 * n + 3_000 * n**0.5)] for n in ns] * 4
    bent = Process([one_round(rows, canary=(), number=i) for i in range(4)])
    found = estimate(Series([bent] * 3, synchronous=True), precision=0.03)
    assert found["complete"].status == "nonlinear"
    assert found["complete"].value is None
    assert codes_of(found["complete"].reason) == {"below-the-line"}
    assert found["fixed"].status == "nonlinear"
    assert found["issue"].status == "ok"


def test_a_process_with_a_level_line_makes_the_slope_too_small_to_measure() -> None:
    made = one_process_per_slope(600.0, 601.0, 602.0)
    rows = [[n, 5_000 if n == 1 else 1_000, 1_000 + 600 * n] for n in (1, 2, 4, 8, 16, 100)] * 2
    level = Process([one_round(rows, canary=(50_000, 50_000), number=i) for i in range(4)])
    found = estimate(replace(made, processes=[level, *made.processes[1:]]), precision=0.03)
    assert found["complete"].status == "ok"
    assert found["issue"].status == "below-resolution"


def test_a_case_with_two_speeds_gives_both_values() -> None:
    fast_ns, slowdown = 3_000.0, 1.8
    slow_ns = fast_ns * slowdown
    law = Law(host=fast_ns, device=2_000.0, fixed=30_000.0, **NOISE)  # type: ignore[arg-type]
    found = estimate(
        series(
            law, Disturbance(spread=0.005, slowdown=slowdown, dwell_s=0.1), processes=4, seconds=0.5
        ),
        precision=0.03,
    )
    for name in ("issue", "host", "complete"):
        assert found[name].status == "bimodal"
        assert list(found[name].modes) == pytest.approx([fast_ns, slow_ns], rel=0.02)
        low = found[name].low
        assert low is not None
        assert low < 3_050
    assert found["fixed"].status == "bimodal"
    both = values_of(found["complete"].reason, "two-speeds")
    assert both["fast_us"] == pytest.approx(fast_ns / 1e3, rel=0.02)
    assert both["slow_us"] == pytest.approx(slow_ns / 1e3, rel=0.02)


def test_a_figure_mentions_rounds_at_another_processor_speed() -> None:
    calm = one_process_per_slope(600.0, 601.0)
    first, *others = calm.processes[0].rounds
    slower = msgspec.structs.replace(first, canary=(53_000, 50_000))
    found = estimate(Series([Process([slower, *others]), calm.processes[1]]), precision=0.1)[
        "complete"
    ]
    # In one of eight rounds a reference loop took 53 us in place of 50, over 5 % more.
    assert values_of(found.rule, "canary-was-off") == {"by": 0.05, "share": 1 / 8}
    assert "canary-was-off" not in codes_of(estimate(calm, precision=0.1)["complete"].rule)


def test_the_n_that_fills_the_queue_is_a_figure_if_most_processes_show_it() -> None:
    law = Law(host=3_000.0, device=36_000.0, fixed=20_000.0, depth=64, jitter=0.002)
    found = estimate(series(law, extras=frozenset({"case"})), precision=0.03)
    assert found["knee_n"].value == pytest.approx(law.truth()["knee_n"], rel=0.01)
    assert found["queue_depth"].value == pytest.approx(64, rel=0.01)
    assert found["knee_n"].unit == "n"
    assert "knee_n" not in estimate(one_process_per_slope(600.0, 601.0), precision=0.03)
    bent = series(law, extras=frozenset({"case"}))
    assert "knee_n" not in estimate(replace(bent, overlap="serial"), precision=0.03)


def test_values_measured_outside_the_rounds_become_figures() -> None:
    once = {
        "naive": [900.0, 1_000.0, 1_100.0],
        "naive_idle": [5_000.0],
        "empty_wait": [100.0],
        "first": [9e6],
        "latency": [float(v) for v in range(1_001)],
        "prepare": [300.0],
        "legacy": [61_000.0],
        "stage:submit": [40.0],
        "device_busy": [1_100.0, 600.0, 350.0],
        "device_quantum": [1.0],
        "start_latency": [7_000.0],
    }
    numbers_of_units = {"device_busy": [100, 50, 25]}
    one_off = {
        name: one_off_line(values, at=numbers_of_units.get(name, ()))
        for name, values in once.items()
    }
    few = one_process_per_slope(600.0, 600.0, rounds=3)
    found = estimate(with_one_off(few, one_off), precision=0.03)
    values = {name: e.value for name, e in found.items()}
    assert values["naive"] == 1_000.0, "the median"
    assert [values[p] for p in ("p50", "p95", "p99")] == [500.0, 950.0, 990.0]
    assert values["legacy"] == 61_000.0 / 100, "of 100 units"
    assert values["device_busy"] == pytest.approx((1_100.0 - 600.0) / 50), "per unit"
    assert values["stage:submit"] == 40.0
    assert {"naive_idle", "empty_wait", "first", "prepare", "start_latency"} <= set(values)


def test_the_time_of_one_unit_comes_from_the_rounds_if_these_have_enough_samples() -> None:
    measured_once_ns, from_rounds_ns = 5.0, 1_000.0 + 600.0
    one_off = {"naive": one_off_line([measured_once_ns])}
    for rounds, naive in ((3, measured_once_ns), (4, from_rounds_ns)):
        series = one_process_per_slope(600.0, 600.0, rounds=rounds)
        found = estimate(
            Series([Process(p.rounds, one_off=one_off) for p in series.processes], anchored=True),
            precision=0.03,
        )
        assert found["naive"].value == naive


def test_a_single_value_that_could_not_be_measured_is_unavailable_with_the_reason() -> None:
    one_off = {
        "device_span": one_off_line([], reason="no timestamps"),
        "naive": one_off_line([5.0], reason="there is a value"),
    }
    few = one_process_per_slope(600.0, 600.0, rounds=3)
    found = estimate(with_one_off(few, one_off), precision=0.03)
    assert found["device_span"].status == "unavailable"
    assert found["device_span"].reason == "no timestamps"
    assert found["naive"].value == 5.0


def test_the_cost_of_a_recording_has_a_slope_and_an_intercept() -> None:
    one_off = {"making:capture": one_off_line([150.0, 600.0, 5_100.0], at=[1, 10, 100])}
    found = estimate(with_one_off(one_process_per_slope(600.0, 600.0), one_off), precision=0.03)
    slope_ns, intercept_ns = 50.0, 100.0  # as 100 + 50 * 10 = 600
    assert found["making:capture"].value == pytest.approx(slope_ns)
    assert found["making:capture:fixed"].value == pytest.approx(intercept_ns)


def test_device_time_is_the_figure_that_most_processes_measured() -> None:
    def named(*names: str) -> set[str]:
        processes: list[Process] = []
        for process, name in zip(
            one_process_per_slope(600.0, 600.0, 600.0).processes, names, strict=True
        ):
            one_off = {
                name: one_off_line([1_100.0, 600.0], at=[100, 50]),
                "device_quantum": one_off_line([1.0]),
            }
            processes.append(Process(process.rounds, one_off=one_off))
        figures = one_off_figures(Series(processes), precision=0.03)
        return {name for name in figures if name.startswith("device")}

    assert named("device_busy", "device_span", "device_busy") == {"device_busy"}
    assert named("device_span", "device_span", "device_busy") == {"device_span"}


def test_device_time_below_the_resolution_of_its_clock_has_no_value() -> None:
    one_off = {
        "device_span": one_off_line([1_100.0, 600.0], at=[100, 50]),
        "device_quantum": one_off_line([1_000.0]),
    }
    found = estimate(with_one_off(one_process_per_slope(600.0, 600.0), one_off), precision=0.03)
    assert found["device_span"].status == "below-resolution"
    assert found["device_span"].value is None


@pytest.mark.parametrize(
    ("host_percent", "expected"), [(95.0, "host"), (80.0, "balanced"), (20.0, "device")]
)
def test_the_share_of_host_time_decides_whether_host_or_device_limits_a_case(
    host_percent: float, expected: str
) -> None:
    figures = {
        "host": Figure(name="host", value=host_percent),
        "complete": Figure(name="complete", value=100.0),
    }
    assert limited_by(Series([]), figures) == expected
    assert limited_by(Series([], synchronous=True), figures) == "host"
    assert limited_by(Series([], overlap="serial"), figures) == ""
    assert limited_by(Series([]), figures | {"host": Figure(name="host", status="failed")}) == ""
