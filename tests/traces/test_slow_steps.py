"""Steps that are not alike: slow ones are told apart, and all figures are of the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from overhead.explaining.record import Explanation
from overhead.explaining.steps import steps_reasons
from tests.traces.test_trace_faults import Event, Program, by_code, explained, said, steps_taken


def steps_of(
    kernels_us: Sequence[Sequence[float]], *, first_us: float = 0, slow: int = 0, late_us: float = 3
) -> list[Event]:
    """Steps with kernels of these lengths, and a wait at the end that returns ``late_us`` after the
    last one. Step ``slow`` begins with an operation of ``first_us`` that launches nothing.
    """
    program, now, free = Program(), 1e6, 0.0
    for number, lengths in enumerate(kernels_us):
        began = now
        if first_us and number == slow:
            program.span("cpu_op", "compile", start=now, length_us=first_us)
            now += first_us + 1
        for length_us in lengths:
            program.span("cpu_op", "aten::mm", start=now, length_us=30)
            start = max(free, now + 15)
            program.launch(called=now + 5, starts=start, length_us=length_us)
            free, now = start + length_us, now + 40
        end = max(now, free) + late_us
        program.call("cudaDeviceSynchronize", start=now, length_us=end - now)
        now = end + 1
        program.step(number, start=began, length_us=now - began)
    return program.events


def told_of_steps(found: Explanation) -> set[str]:
    return set(by_code(steps_reasons(steps_taken(found))))


@pytest.mark.parametrize("steps", [2, 3, 9])
def test_a_first_step_that_compiles_is_left_out_and_told(steps: int, tmp_path: Path) -> None:
    events = steps_of([[70.0] * 10] * steps, first_us=3e6)
    found = explained(tmp_path, events)
    assert found.verdict.kind == "device"
    assert found.profiled_steps == steps - 1
    taken = steps_taken(found)
    assert (taken.slow, taken.slow_at_first) == (1, True)
    assert taken.slow_longest_ns == pytest.approx(3e9, rel=0.01)
    assert "slow-first-step" in told_of_steps(found)
    assert found.replay.measured.value == pytest.approx(720e3, rel=0.03)
    assert "compile" not in {row.name for row in found.operations}


def test_one_long_step_among_many_is_told_by_its_number(tmp_path: Path) -> None:
    found = explained(tmp_path, steps_of([[70.0] * 10] * 8, first_us=300e3, slow=5))
    taken = steps_taken(found)
    assert (taken.slow, taken.slow_at_first, taken.slow_number) == (1, False, 5)
    assert "slow-step-of-number" in told_of_steps(found)
    assert found.verdict.kind == "device"
    assert found.replay.measured.value == pytest.approx(720e3, rel=0.03)


def test_steps_that_are_long_in_turn_are_part_of_the_program(tmp_path: Path) -> None:
    """An update after every fourth step is not left out."""
    lengths = [[70.0] * 10 if number % 4 else [700.0] * 10 for number in range(12)]
    found = explained(tmp_path, steps_of(lengths))
    assert steps_taken(found).slow == 0
    assert found.profiled_steps == 12


def test_all_figures_of_unlike_steps_are_of_the_same_steps(tmp_path: Path) -> None:
    lengths_us = [2500, 4200, 300, 320, 2450, 4000, 400, 430, 3500, 2900]
    found = explained(tmp_path, steps_of([[length_us] for length_us in lengths_us]))
    mean_ns = 1e3 * sum(lengths_us[1:]) / 9
    assert found.step.busy.value == pytest.approx(mean_ns)
    assert (found.step.busy.low, found.step.busy.high) == (300e3, 4200e3)
    assert found.device_time[0].compute_ns == pytest.approx(mean_ns)
    assert said(found)["device-bound"].values["device_ns"] == pytest.approx(mean_ns)
    assert found.device_time[0].step_ns == pytest.approx(found.replay.measured.value)
    assert found.replay.replayed.value == pytest.approx(found.replay.measured.value, rel=0.02)
    assert sum(row.device_ns for row in found.operations) == pytest.approx(mean_ns)
    assert "times-are-means-after-the-first" in told_of_steps(found)


def test_a_first_step_that_waits_for_earlier_work_is_not_slow(tmp_path: Path) -> None:
    """The device works on something from before the recording for 20 ms."""
    program = Program()
    early = {"pid": 0, "tid": 7, "args": {"correlation": 1}}
    program.span("kernel", "gemm", start=1e6 - 100, length_us=20e3, **early)
    program.number = 10
    free = 1e6 + 19_900.0
    for number in range(6):
        began = 1e6 + 60 * number
        program.span("cpu_op", "aten::mm", start=began + 1, length_us=50)
        program.launch(called=began + 5, starts=free, length_us=2000)
        free += 2000
        program.step(number, start=began, length_us=58)
    found = explained(tmp_path, program.events)
    assert steps_taken(found).slow == 0
    assert found.verdict.kind == "device"


def test_a_host_that_sleeps_in_a_long_wait_may_wake_late(tmp_path: Path) -> None:
    """An event for blocking waits: the wait returns 300 µs after work of 10 ms."""
    found = explained(tmp_path, steps_of([[2600.0] * 4] * 10, late_us=300))
    assert found.verdict.kind == "device"
    short = explained(tmp_path, steps_of([[26.0] * 4] * 10, late_us=300))
    assert short.verdict.kind == "unclear", "beside short work that is lost work"


def test_graphs_that_begin_with_the_same_kernel_are_not_one(tmp_path: Path) -> None:
    """Each step replays three graphs, of 3, 7 and 12 kernels."""
    program, now = Program(), 1e6
    for number in range(6):
        began = now
        for nodes in (3, 7, 12):
            program.span("cpu_op", "piece", start=now, length_us=20)
            program.launch(
                called=now + 1, starts=now + 10, length_us=4, kernel="norm", call="cudaGraphLaunch"
            )
            for node in range(1, nodes):
                program.span(
                    "kernel",
                    f"node {node}",
                    start=now + 10 + 5 * node,
                    length_us=4,
                    pid=0,
                    tid=7,
                    args={"correlation": program.number},
                )
            now += 10 + 5 * nodes
        program.call("cudaDeviceSynchronize", start=now, length_us=3)
        now += 5
        program.step(number, start=began, length_us=now - began)
    told = said(explained(tmp_path, program.events))
    assert "replays-differ" not in told
    assert "nodes-missing" not in told
