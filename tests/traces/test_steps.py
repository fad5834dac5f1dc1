"""What of a recording is taken as its steps, and what the person can name instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import UsageError
from overhead.explaining.record import Explanation, save_explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.steps import steps_reasons
from overhead.explaining.trace_file import explain_traces
from overhead.results import codes_of
from overhead.traces.formats import read_trace_file
from overhead.traces.marks import is_step, step_number
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.steps_taken import StepsTaken
from tests.traces.test_trace_faults import Event, Program, usual
from tests.traces.test_trace_file import kineto, nsys

MODEL = ["embed", *["norm", "gemm", "softmax", "gemm2", "gelu"] * 12, "norm", "head"]
"""The kernels of one pass through a model."""


def explained(
    tmp_path: Path, events: Sequence[Event], choice: StepChoice = ANY_STEPS
) -> Explanation:
    return explain_traces([kineto(tmp_path / "t.json", events)], choice=choice)


def taken_of(tmp_path: Path, events: Sequence[Event], choice: StepChoice = ANY_STEPS) -> StepsTaken:
    return read_trace_file(kineto(tmp_path / "t.json", events), choice).steps_taken


def named(events: Sequence[Event], name: Callable[[int], str]) -> list[Event]:
    """The events with other names of the marks, by their number."""
    found = []
    for event in events:
        if event["name"].startswith("ProfilerStep#"):
            number = int(event["name"].removeprefix("ProfilerStep#"))
            event = event | {"name": name(number)}
        found.append(event)
    return found


def without_marks(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if not event["name"].startswith("ProfilerStep#")]


def passes(
    number: int, *, wait: bool = True, ranges: Sequence[str] = (), category: str = "user_annotation"
) -> list[Event]:
    """Passes through a model, without marks. ``ranges``: their names, in turn within each pass."""
    program, now = Program(), 1e6
    for _ in range(number):
        begin = now
        for kernel in MODEL:
            program.span("cpu_op", "aten::op", start=now, length_us=9)
            program.launch(called=now + 1, starts=now + 4, length_us=5, kernel=kernel)
            now += 10
        if wait:
            program.call("cudaStreamSynchronize", start=now, length_us=5)
            now += 10
        part_us = (now - begin) / max(1, len(ranges))
        for index, name in enumerate(ranges):
            program.span(category, name, start=begin + index * part_us, length_us=part_us - 1)
    return program.events


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("ProfilerStep#12", 12),
        ("step 12", 12),
        ("train_step_12", 12),
        ("Iteration 12", 12),
        ("iteration12", 12),
        ("iteration[12,16)", 12),
        ("batch: 12", 12),
        ("Step 12 (epoch 3)", 3_000_000_012),
        ("epoch 3 step 12", 3_000_000_012),
        ("iteration/engine/step-12", 12),
        ("[Executor] _forward_step 12: 0 ctx reqs, 32 gen reqs", 12),
        ("train_step", None),
        ("training step", None),
        ("step[DECODE bs=32]", None),
        ("execute_context_0(0)_generation_5(5)", None),
        ("execute_16_context_0(sq0sk0)_generation_16(sq16sk9)", None),
        ("execute_diffusion_1_256x256", None),
        ("[pl][profile]run_training_batch", None),
    ],
)
def test_names_that_programs_and_engines_give_their_steps(name: str, number: int | None) -> None:
    assert is_step(name)
    assert step_number(name) == number


@pytest.mark.parametrize(
    "name",
    [
        "aten::batch_norm",
        "Optimizer.step#SGD.step",
        "nccl:all_reduce",
        "forward",
        "batch_norm2d",
        "## Call CompiledFxGraph f4ii27ddivzklxr ##",
        "autograd::engine::evaluate_function: StepBackward0",
        "triton_poi_fused_step_3",
        "epoch 3",
        "DistributedDataParallel.forward",
    ],
)
def test_names_that_are_none_of_steps(name: str) -> None:
    assert not is_step(name)


@pytest.mark.parametrize(
    "name",
    [
        lambda number: f"Step {number} (epoch 3)",
        lambda number: f"epoch 3 step {number}",
        lambda number: f"execute_context_0(0)_generation_{number % 2}({number % 2})",
        lambda number: "train_step",
    ],
)
def test_marks_of_programs_and_engines_are_steps(
    name: Callable[[int], str], tmp_path: Path
) -> None:
    marked = read_trace_file(kineto(tmp_path / "m.json", usual()))
    trace = read_trace_file(kineto(tmp_path / "t.json", named(usual(), name)))
    assert trace.steps_taken.how == "marks"
    assert [step.start for step in trace.steps] == [step.start for step in marked.steps]


def test_counts_of_requests_are_no_numbers_of_steps(tmp_path: Path) -> None:
    events = named(usual(), lambda number: f"execute_context_0(0)_generation_{number % 2}(1)")
    trace = read_trace_file(kineto(tmp_path / "t.json", events))
    assert {step.number for step in trace.steps} == {None}


def test_steps_of_two_epochs_have_different_numbers(tmp_path: Path) -> None:
    events = named(usual(), lambda number: f"epoch {number // 3} step {number % 3}")
    trace = read_trace_file(kineto(tmp_path / "t.json", events))
    assert len({step.number for step in trace.steps}) == 6


def test_a_step_lasts_until_the_next_mark_if_the_program_launches_in_between(
    tmp_path: Path,
) -> None:
    """The mark is around half of the launches: an engine samples after its model."""
    events = named(usual(launches=10), lambda number: "execute_context_0(0)_generation_1(1)")
    halved = []
    for event in events:
        if event["name"].startswith("execute_"):
            event = event | {"dur": event["dur"] / 2}
        halved.append(event)
    trace = read_trace_file(kineto(tmp_path / "t.json", halved))
    assert trace.steps_taken.joined
    assert trace.steps_taken.outside == 0
    assert [len(step.device) for step in trace.steps] == [10] * 6


def test_ranges_in_turn_are_steps_without_marks(tmp_path: Path) -> None:
    events = passes(5, wait=False, ranges=["forward", "Optimizer.step#SGD.step"])
    trace = read_trace_file(kineto(tmp_path / "t.json", events))
    assert trace.steps_taken.how == "ranges"
    assert [len(step.device) for step in trace.steps] == [len(MODEL)] * 5


@pytest.mark.parametrize("ranges", [["decoder layer"], ["Torch-Compiled Region: 0/0"]])
def test_parts_of_a_model_are_no_steps(ranges: list[str], tmp_path: Path) -> None:
    assert taken_of(tmp_path, passes(5, wait=False, ranges=ranges)).how == "recording"


def test_launches_that_repeat_are_steps_if_the_host_waits_in_each(tmp_path: Path) -> None:
    events = passes(5)
    trace = read_trace_file(kineto(tmp_path / "t.json", events))
    assert trace.steps_taken.how == "period"
    assert trace.steps_taken.launches == len(MODEL)
    assert [len(step.device) for step in trace.steps] == [len(MODEL)] * 5
    assert [len(step.operations) for step in trace.steps] == [len(MODEL)] * 5


def test_launches_of_a_first_pass_that_differs_are_left_out(tmp_path: Path) -> None:
    program = Program(number=10_000)
    for index in range(50):
        now = 900_000 + 10 * index
        program.launch(called=now, starts=now + 5, length_us=5, kernel=f"init{index}")
    taken = taken_of(tmp_path, [*program.events, *passes(5)])
    assert (taken.how, taken.found) == ("period", 5)
    assert taken.outside == pytest.approx(50 / (50 + 5 * len(MODEL)))
    assert taken.before_ns == pytest.approx(100_000_000, rel=0.01)


def test_launches_that_repeat_without_an_exchange_may_be_layers(tmp_path: Path) -> None:
    assert taken_of(tmp_path, passes(5, wait=False)).how == "recording"


@pytest.mark.parametrize("number", [1, 2])
def test_fewer_than_three_passes_are_one_step(number: int, tmp_path: Path) -> None:
    assert taken_of(tmp_path, passes(number)).how in ("launches", "recording")


@pytest.mark.parametrize("name", ["forward 0", "forward", "forw", "forward N"])
def test_a_range_that_the_person_names_is_the_step(name: str, tmp_path: Path) -> None:
    program = Program(number=10_000)
    events = usual()
    for index, event in enumerate(events):
        if event["name"] == "aten::mul" and index < 40:
            program.span("user_annotation", f"forward {index}", event["ts"] - 1, 50)
    taken = taken_of(tmp_path, [*events, *program.events], StepChoice(name=name))
    assert taken.how == "named"
    assert taken.found == len(program.events)
    assert codes_of(steps_reasons(taken)[0]) == {"steps-are-ranges"}


def test_the_ranges_that_repeat_are_named(tmp_path: Path) -> None:
    events = passes(4, ranges=["forward", "backward", "my optimizer"])
    taken = taken_of(tmp_path, events)
    assert {other.name for other in taken.others} == {"forward", "backward", "my optimizer"}
    assert {other.times for other in taken.others} == {4}


def test_a_name_that_is_not_there_ends_with_the_ranges_that_repeat(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", passes(4, ranges=["forward", "backward"]))
    assert main(["explain", "--trace", str(path), "--step", "backwards"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    for expected in ("backwards", "forward (4×)", "backward (4×)", str(path)):
        assert expected in said


def test_a_name_that_is_not_in_a_database_says_so_too(tmp_path: Path) -> None:
    path = nsys(tmp_path / "t.sqlite", usual())
    with pytest.raises(UsageError, match="step N"):
        read_trace_file(path, StepChoice(name="nothing"))


def test_times_that_the_person_names_hold_one_step_or_the_steps_in_them(tmp_path: Path) -> None:
    events = passes(5, wait=False)
    one = read_trace_file(kineto(tmp_path / "t.json", events), StepChoice("", 0.0001, 0.0006))
    assert one.steps_taken.how == "between"
    (step,) = one.steps
    assert step.end - step.start == pytest.approx(500_000)

    marks = usual(host_us=50, launches=10, steps=6)  # of 0.5 ms each
    some = read_trace_file(kineto(tmp_path / "m.json", marks), StepChoice("", 0.0004, 0.0022))
    assert [step.number for step in some.steps] == [1, 2, 3]


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "-1"],
        ["--from", "2", "--to", "1"],
        ["--to", "nan"],
        ["--from", "1e3"],
        ["--to", "inf"],
    ],
)
def test_bad_times_are_refused_in_one_line(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", usual())
    assert main(["explain", "--trace", str(path), *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_choice_of_steps_is_for_traces(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "x.py:step", "--step", "forward"]) == 2
    assert "--trace" in capsys.readouterr().err


def test_several_traces_have_one_choice(tmp_path: Path) -> None:
    paths = []
    for rank in range(2):
        events = named(usual(host_us=50 + rank), lambda number: f"part {number}")
        paths.append(kineto(tmp_path / f"{rank}.json", events))
    found = explain_traces(paths, choice=StepChoice(name="part"))
    assert found.steps_taken is not None
    assert found.steps_taken.how == "named"
    assert len(found.ranks) == 2


def test_what_was_taken_is_said_first_and_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", usual())
    assert main(["explain", "--trace", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    said = [line for line in lines if line.strip()]
    assert "ProfilerStep#N" in said[1]
    assert main(["explain", "--trace", str(path), "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)["steps_taken"]
    assert (saved["how"], saved["name"], saved["found"]) == ("marks", "ProfilerStep#N", 6)

    found = explain_traces([path])
    save_explanation(tmp_path / "e.json", found)
    assert read_explanation(tmp_path / "e.json").steps_taken == found.steps_taken


def behind(first_start: float) -> list[Event]:
    """One step of 2 ms on the host; its device work takes 10 ms and begins later."""
    program = Program()
    for index in range(20):
        called = 1_000_000 + 100 * index
        starts = first_start + 500 * index
        program.launch(called=called, starts=starts, length_us=500)
    program.step(3, start=1_000_000, length_us=2000)
    return program.events


@pytest.mark.parametrize("first_start", [1_000_010, 1_030_000])
def test_work_from_before_the_recording_is_no_idle_time(first_start: float, tmp_path: Path) -> None:
    """The device may work on an earlier step when the recording begins."""
    found = explained(tmp_path, behind(first_start))
    assert found.replay.measured.value == pytest.approx(10e6, rel=0.02)
    assert found.replay.ok
    assert found.verdict.kind == "device"
    assert found.verdict.overhead_share == pytest.approx(0, abs=0.01)
    assert found.steps_taken is not None
    assert found.steps_taken.already_busy == (first_start > 1_001_000)


def test_a_device_that_runs_behind_gives_the_time_of_a_step(tmp_path: Path) -> None:
    """The host issues a step in 2 ms, and the device works 5 ms on it."""
    program, free = Program(), 1_030_000.0
    for number in range(4):
        begin = 1_000_000 + 2000 * number
        for index in range(10):
            program.launch(called=begin + 100 * index, starts=free, length_us=500)
            free += 500
        program.step(number, start=begin, length_us=2000)
    found = explained(tmp_path, program.events)
    assert found.replay.measured.value == pytest.approx(5e6, rel=0.01)
    assert found.replay.ok
    assert found.verdict.kind == "device"
    assert found.verdict.overhead_share == pytest.approx(0, abs=0.01)
    assert found.steps_taken is not None
    assert found.steps_taken.behind_ns > 0


def test_work_that_waits_for_another_stream_is_replayed_so(tmp_path: Path) -> None:
    """Each second kernel is on another stream, and waits for the one before it."""
    program, free = Program(), 1_000_100.0
    for number in range(5):
        begin = 1_000_000 + 1000 * number
        for index in range(10):
            stream = 7 + index % 2
            program.launch(called=begin + 100 * index, starts=free, length_us=200, tid=stream)
            free += 201
        program.step(number, start=begin, length_us=1000)
    found = explained(tmp_path, program.events)
    assert found.replay.replayed.value == pytest.approx(found.replay.measured.value, rel=0.05)


def test_earlier_work_does_not_shorten_what_the_host_does(tmp_path: Path) -> None:
    """The host works for 2 ms, and the device on something else for the first of them."""
    program = Program()
    for index in range(20):
        called = 1_000_000 + 100 * index
        starts = max(1_001_200 + index, called + 10)
        program.launch(called=called, starts=starts, length_us=1)
    program.step(3, start=1_000_000, length_us=2000)
    found = explained(tmp_path, program.events)
    assert found.steps_taken is not None
    assert found.steps_taken.already_busy
    assert found.replay.measured.value == pytest.approx(2e6, rel=0.02)
    assert found.replay.ok
    assert found.verdict.kind == "host"
