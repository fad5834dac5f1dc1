"""Programs that mark several kinds of steps, or mark only a part of what they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from overhead.explaining.trace_file import explain_traces
from overhead.results import because, code_of, codes_of
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Event, Program
from tests.traces.test_trace_file import kineto, nsys


class Loop:
    """A program whose parts follow each other; ``now``: µs."""

    def __init__(self) -> None:
        self.program, self.now = Program(), 1e6
        self._free = 0.0

    def part(
        self, mark: str, launches: int, host_us: float, device_us: float, marked: float = 1
    ) -> None:
        """Launches, then a wait. ``marked``: which share of it the mark holds."""
        begin = self.now
        for _ in range(launches):
            self.program.span("cpu_op", "aten::mm", start=self.now, length_us=0.8 * host_us)
            start = max(self._free, self.now + 7)
            self.program.launch(called=self.now + 1, starts=start, length_us=device_us)
            self._free, self.now = start + device_us, self.now + host_us
        end = max(self.now, self._free) + 3
        self.program.call("cudaDeviceSynchronize", start=self.now, length_us=end - self.now)
        self.now = end
        if mark:
            length_us = marked * (self.now - begin)
            self.program.span("user_annotation", mark, start=begin, length_us=length_us)

    def load(self, length_us: float) -> None:
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        self.program.span("user_annotation", name, start=self.now, length_us=length_us)
        self.now += length_us


def train_and_evaluate() -> list[Event]:
    """Six steps of training that the device bounds, three of evaluation that the host bounds and
    that launch more.
    """
    loop = Loop()
    for number in range(6):
        loop.part("train_step", launches=10, host_us=25, device_us=80)
        if number % 2:
            loop.part("eval_step", launches=40, host_us=50, device_us=4)
    return loop.program.events


def test_of_two_kinds_of_steps_side_by_side_the_one_that_repeats_most_counts(
    tmp_path: Path,
) -> None:
    path = kineto(tmp_path / "t.json", train_and_evaluate())
    found = explain_traces([path])
    taken = found.steps_taken
    assert taken is not None
    assert (taken.name, taken.found, taken.joined) == ("train_step", 6, False)
    assert [(other.name, other.times) for other in taken.others] == [("eval_step", 3)]
    assert found.verdict.kind == "device"
    (device,) = [row for row in found.device_time if not row.stream]
    assert found.verdict.overhead_share == pytest.approx(device.idle_ns / device.step_ns, abs=0.01)


def test_what_other_marks_hold_is_not_joined_to_a_step(tmp_path: Path) -> None:
    trace = read_trace_file(kineto(tmp_path / "t.json", train_and_evaluate()))
    assert [len(step.device) for step in trace.steps] == [10] * 6


@pytest.mark.parametrize("inner", ["micro batch {}", "token {}"])
def test_marks_inside_of_others_are_their_parts(inner: str, tmp_path: Path) -> None:
    loop = Loop()
    for number in range(4):
        begin = loop.now
        for part in range(5):
            loop.part(inner.format(part), launches=3, host_us=20, device_us=5)
        loop.part("", launches=1, host_us=20, device_us=5)
        length_us = loop.now - begin
        loop.program.span("user_annotation", f"step {number}", start=begin, length_us=length_us)
    taken = read_trace_file(kineto(tmp_path / "t.json", loop.program.events)).steps_taken
    assert (taken.name, taken.found) == ("step N", 4)


@pytest.mark.parametrize(("mark", "joined"), [("iteration {}", True), ("forward", False)])
def test_a_last_step_that_the_recording_cuts_is_left_out(
    mark: str, joined: bool, tmp_path: Path
) -> None:
    """The program launches half of a step after its mark, and stops before it does so at last."""
    loop = Loop()
    for number in range(5):
        loop.part(mark.format(number), launches=10, host_us=50, device_us=5)
        if number < 4:
            loop.part("", launches=8, host_us=50, device_us=5)
    trace = read_trace_file(kineto(tmp_path / "t.json", loop.program.events))
    assert trace.steps_taken.joined == joined
    assert [len(step.device) for step in trace.steps] == [18] * 4


@pytest.mark.parametrize("write", [kineto, nsys])
@pytest.mark.parametrize(("loading_us", "bounds"), [(5000, True), (300, False)])
def test_an_idle_device_between_the_steps_is_said_before_what_bounds_a_step(
    write: Callable[[Path, Sequence[Event]], Path], loading_us: float, bounds: bool, tmp_path: Path
) -> None:
    loop = Loop()
    for number in range(8):
        loop.part(f"step {number}", launches=10, host_us=25, device_us=60)
        loop.load(loading_us)
    suffix = ".json" if write is kineto else ".sqlite"
    found = explain_traces([write(tmp_path / f"t{suffix}", loop.program.events)])
    assert (found.verdict.kind == "unclear") == bounds
    first = found.verdict.sentences[0]
    assert code_of(first) == ("between-steps-bounds" if bounds else "between-steps-costs")
    assert "most-between-steps" in codes_of(first)
    assert because("less-host-work-saves-nothing") not in found.verdict.sentences
    assert found.steps_taken is not None
    assert found.steps_taken.idle_between_ns == pytest.approx(7e3 * loading_us, rel=0.05)


def test_a_device_that_works_between_the_steps_is_not_idle_there(tmp_path: Path) -> None:
    """The marks hold the launches alone; the host waits for them outside."""
    loop = Loop()
    for number in range(8):
        loop.part(f"step {number}", launches=10, host_us=25, device_us=300, marked=0.1)
    found = explain_traces([kineto(tmp_path / "t.json", loop.program.events)])
    assert found.steps_taken is not None
    assert found.steps_taken.between_ns > 0
    assert found.steps_taken.idle_between_ns == 0
    assert found.verdict.kind == "device"
