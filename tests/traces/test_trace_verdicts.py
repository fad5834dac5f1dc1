"""``overhead explain --trace``: what bounds the step, what a change would save, and where the time
of the host goes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.explaining.host_places import host_places
from overhead.explaining.host_work import HostTimes
from overhead.explaining.predictions import LEAST_SAVED, predictions, worth_naming
from overhead.explaining.start_up import start_up_of
from overhead.explaining.verdict import UNCHECKED
from overhead.results import Reason, code_of
from overhead.traces.formats import read_trace_file
from overhead.traces.opened_ranges import with_opened_ranges
from overhead.traces.trace import Trace
from tests.traces.test_trace_faults import Event, Program, explained, said, usual
from tests.traces.test_trace_file import kineto

US = 1e3


def read(tmp_path: Path, events: list[Event]) -> Trace:
    return read_trace_file(kineto(tmp_path / "t.json", events))


def one_long_operation(steps: int = 6) -> list[Event]:
    """Steps of 10 ms in one Python operation, which launches one kernel of 50 µs at its end."""
    program = Program()
    for number in range(steps):
        start = 1e6 + 10_100.0 * number
        program.step(number, start=start, length_us=10_050)
        program.span("cpu_op", "tokenize", start=start, length_us=10_000)
        program.launch(called=start + 9_900, starts=start + 9_910, length_us=50)
    return program.events


def predicted_ns(events: list[Event], tmp_path: Path) -> dict[str, float]:
    found = predictions(read(tmp_path, events).quiet(), HostTimes())
    return {each.change: each.step_ns for each in found}


def test_a_graph_leaves_the_device_and_one_call(tmp_path: Path) -> None:
    """Ten launches of 50 µs of the host and 5 µs of the device, and a wait at the end."""
    found = predicted_ns(usual(host_us=50, device_us=5), tmp_path)
    device_ns = 10 * 5 * US
    assert device_ns <= found["graphs"] <= device_ns + 25 * US
    assert found["half-host"] == pytest.approx(10 * 25 * US, rel=0.1)


def test_no_change_of_the_host_helps_a_busy_device(tmp_path: Path) -> None:
    events = usual(host_us=5, device_us=50, wait=False)
    trace = read(tmp_path, events)
    assert worth_naming(predictions(trace.quiet(), HostTimes())) == []
    assert "less-host-work-saves-nothing" in said(explained(tmp_path, events))


def test_a_graph_is_advised_with_what_it_saves(tmp_path: Path) -> None:
    found = explained(tmp_path, usual(host_us=50, device_us=5))
    assert found.verdict.kind == "host"
    told = said(found)["predicted-with-graphs"].values
    saved_at_best = 1 - 50 / 500
    saves = told["saves"]
    assert isinstance(saves, float)
    assert LEAST_SAVED < saves <= saved_at_best + 0.02


def test_no_graph_is_advised_for_one_launch_of_a_long_operation(tmp_path: Path) -> None:
    found = explained(tmp_path, one_long_operation())
    assert found.verdict.kind == "host"
    told = said(found)
    assert "predicted-with-graphs" not in told
    assert "fewer-launches-save-little" in told
    assert "host-work-for-each-launch" not in told
    assert told["predicted-with-half-the-host"].values["saves"] == pytest.approx(0.5, abs=0.02)


def test_a_program_that_launches_a_graph_goes_on_to_do_so(tmp_path: Path) -> None:
    """The call that launches the graph takes 900 µs; it stays."""
    program = Program()
    for number in range(6):
        start = 1e6 + 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.launch(
            called=start, starts=start + 20, length_us=40, call="cudaGraphLaunch", call_us=900
        )
        program.launch(called=start + 950, starts=start + 960, length_us=5)
    assert predicted_ns(program.events, tmp_path)["graphs"] >= 900 * US


def test_what_bounds_the_step_comes_first_and_remarks_on_the_times_last(tmp_path: Path) -> None:
    sentences = explained(tmp_path, usual()).verdict.sentences
    assert (code_of(sentences[0]), sentences[-1]) == ("host-bound", UNCHECKED)


def test_the_places_of_the_host_add_up_to_its_work(tmp_path: Path) -> None:
    """40 of 50 µs for each launch lie in operations that launch."""
    trace = read(tmp_path, usual(host_us=50, device_us=5))
    places = host_places(trace, HostTimes())
    assert places.launching_ns == pytest.approx(10 * 40 * US, rel=0.01)
    assert places.between_ns == pytest.approx(10 * 10 * US, rel=0.05)
    assert places.other_ns == 0
    assert [(call.name, call.count) for call in places.calls] == [("cudaLaunchKernel", 10)]


def first_launches(steps: int = 1) -> list[Event]:
    """Ten launches of which three take 100 ms, as each loads its kernel."""
    program = Program()
    now = 1e6
    for number in range(steps):
        began = now
        for index in range(10):
            call_us = 100_000.0 if index in (2, 4, 6) else 5.0
            program.span("cpu_op", f"aten::op{index}", start=now, length_us=call_us + 20)
            program.launch(called=now + 10, starts=now + 15 + call_us, length_us=4, call_us=call_us)
            now += call_us + 30
        program.step(number, start=began, length_us=now - began)
    return program.events


def test_a_recording_of_first_launches_is_no_step(tmp_path: Path) -> None:
    found = explained(tmp_path, first_launches())
    assert found.verdict.kind == "unclear"
    first = found.verdict.sentences[0]
    assert isinstance(first, Reason)
    assert first.code == "recording-is-start-up"
    assert first.values["start_up_ns"] == pytest.approx(300e6, rel=0.01)
    assert not {"predicted-gains", "host-work-for-each-launch"} & said(found).keys()


def test_start_up_counts_each_moment_once(tmp_path: Path) -> None:
    """A first call of an operation holds a first launch."""
    start_up = start_up_of(read(tmp_path, first_launches()), HostTimes())
    assert sum(start_up.ns_by_kind.values()) == pytest.approx(start_up.ns)
    assert start_up.ns <= start_up.whole_ns


def test_launches_of_usual_length_are_no_start_up(tmp_path: Path) -> None:
    assert start_up_of(read(tmp_path, usual()), HostTimes()).ns == 0


def test_a_range_around_most_of_a_step_is_opened(tmp_path: Path) -> None:
    """A range of 1 ms holds two operations of 300 µs; 400 µs are its own."""
    program = Program()
    for number in range(4):
        start = 1e6 + 1100.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "Torch-Compiled Region: 0/0", start=start, length_us=999)
        for index in range(2):
            at = start + 100 + 400 * index
            program.span("cpu_op", "aten::mm", start=at, length_us=300)
            program.launch(called=at + 100, starts=at + 110, length_us=5)
    opened = with_opened_ranges(read(tmp_path, program.events))
    assert list(opened.names) == ["Torch-Compiled Region: 0/0"]
    found = explained(tmp_path, program.events)
    rows = {row.name: row for row in found.operations}
    inner, region = rows["aten::mm"], rows["Torch-Compiled Region: 0/0"]
    assert (inner.count, region.count) == (2, 1)
    assert inner.host_ns == pytest.approx(600 * US, rel=0.01)
    assert region.host_ns == pytest.approx(400 * US, rel=0.01)
    # The calls belong to the operation in which they are made.
    for step in opened.trace.steps:
        names = {call.operation.name for call in step.calls if call.operation}
        assert names == {"aten::mm"}


def test_an_operation_of_the_library_stays_closed(tmp_path: Path) -> None:
    program = Program()
    for number in range(4):
        start = 1e6 + 1100.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "aten::linear", start=start, length_us=900)
        program.span("cpu_op", "aten::addmm", start=start + 100, length_us=700)
        program.launch(called=start + 200, starts=start + 210, length_us=5)
    assert list(with_opened_ranges(read(tmp_path, program.events)).names) == []
    assert explained(tmp_path, program.events).operations[0].name == "aten::linear"


def test_nothing_is_said_to_be_measured_of_a_recorded_step(tmp_path: Path) -> None:
    events = usual(host_us=50, device_us=5, steps=6)
    found = explained(tmp_path, events)
    assert "no-verdict-of-the-replay" not in said(found)
    apart = explained(tmp_path, events, step_ms=5.0)  # what a person gives was measured
    assert "no-verdict-of-the-replay" in said(apart)
