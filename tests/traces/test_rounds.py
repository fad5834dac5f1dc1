"""Plain loops beside start-up, and recordings that hold too little for a step or a verdict."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from overhead.cli import main
from overhead.errors import UsageError
from overhead.explaining.steps import steps_reasons
from overhead.explaining.trace_file import explain_traces
from overhead.results import codes_of, together
from overhead.traces.delimited import starts_of_parts
from overhead.traces.formats import read_trace_file
from overhead.traces.rounds import Rounds, rounds_of
from overhead.traces.step_choice import StepChoice
from tests.traces.test_trace_faults import Event, Program, usual
from tests.traces.test_trace_file import kineto


def found(names: Sequence[int]) -> Rounds | None:
    return rounds_of(np.array(names, dtype=np.int32))


def test_equal_parts_are_found_wherever_they_stand() -> None:
    start, end = list(range(100, 130)), list(range(200, 240))
    assert found([*start, *[1, 2, 3, 4, 5] * 200, *end]) == Rounds(5, start=30, repetitions=200)
    rounds = found([9, *[1, 1, 2] * 130, 8])
    assert rounds is not None
    assert (rounds.length, rounds.repetitions) == (3, 130)
    assert rounds.starts[:2] == [1, 4]


def test_few_parts_or_parts_of_a_smaller_half_are_none() -> None:
    assert found([1, 2, 3] * 99) is None
    assert found([*range(1000, 2000), *[1, 2, 3] * 120]) is None
    generator = random.Random(1)
    assert found([generator.randrange(50) for _ in range(1000)]) is None
    assert found([]) is None
    assert found([1]) is None


def test_long_sequences_take_a_moment() -> None:
    names = np.random.default_rng(1).integers(0, 20, 1_000_000, dtype=np.int32)
    began = time.perf_counter()
    assert rounds_of(names) is None
    assert time.perf_counter() - began < 5


def loop(start_up: int, rounds: int, evaluation: int = 0, wait: bool = False) -> list[Event]:
    """Start-up of 0.9 ms for each launch, rounds of five launches that the device bounds, and an
    evaluation. ``wait``: whether the host waits in each round.
    """
    program, now, free = Program(), 1e6, 0.0

    def launch(kernel: str, host_us: float, device_us: float) -> None:
        nonlocal now, free
        program.span("cpu_op", "aten::op", start=now, length_us=0.9 * host_us)
        starts = max(free, now + 8)
        program.launch(called=now + 4, starts=starts, length_us=device_us, kernel=kernel)
        now, free = now + host_us, starts + device_us

    def synchronise() -> None:
        nonlocal now
        end = max(now, free) + 3
        program.call("cudaStreamSynchronize", start=now, length_us=end - now)
        now = end

    for index in range(start_up):
        launch(f"init{index}", 900, 20)
    for _ in range(rounds):
        for index in range(5):
            launch(f"k{index}", 22, 40)
        if wait:
            synchronise()
    synchronise()
    for index in range(evaluation):
        launch(f"eval{index}", 900, 5)
    return program.events


@pytest.mark.parametrize(("start_up", "evaluation"), [(30, 0), (0, 40), (30, 40)])
def test_a_plain_loop_is_told_from_what_is_before_and_after_it(
    start_up: int, evaluation: int, tmp_path: Path
) -> None:
    path = kineto(tmp_path / "t.json", loop(start_up, 200, evaluation))
    explained = explain_traces([path])
    taken = explained.steps_taken
    assert taken is not None
    assert (taken.how, taken.found, taken.launches) == ("period", 200, 5)
    assert "steps-may-be-parts" in codes_of(together(*steps_reasons(taken)))
    assert explained.verdict.kind == "device"
    assert explained.replay.measured.value == pytest.approx(200e3, rel=0.02)


def training(skipped: Sequence[int], steps: int = 8, layers: int = 6) -> list[Event]:
    """Steps that read whether gradients overflowed, and then skip the optimizer (``skipped``)."""
    program, now = Program(), 1e6

    def launch(kernel: str) -> None:
        nonlocal now
        program.span("cpu_op", "aten::op", start=now, length_us=18)
        program.launch(called=now + 4, starts=now + 9, length_us=5, kernel=kernel)
        now += 20

    for number in range(steps):
        for kernel in ["embed", *["norm", "gemm", "gelu"] * layers, "loss"]:
            launch(kernel)
        copy = {"call": "cudaMemcpyAsync", "category": "gpu_memcpy"}
        kernel = "Memcpy DtoH (Device -> Pinned)"
        program.launch(called=now, starts=now + 4, length_us=2, kernel=kernel, **copy)
        program.call("cudaStreamSynchronize", start=now + 7, length_us=5)
        now += 20
        if number not in skipped:
            for _ in range(4):
                launch("multi_tensor_apply_kernel")
    return program.events


@pytest.mark.parametrize("skipped", [[], [0], [3], [6], [7]])
def test_a_step_that_skips_its_optimizer_hides_no_other(skipped: list[int], tmp_path: Path) -> None:
    trace = read_trace_file(kineto(tmp_path / "t.json", training(skipped)))
    assert (trace.steps_taken.how, trace.steps_taken.found) == ("period", 8)
    lengths = [25 - 4 * (number in skipped) for number in range(8)]
    assert [len(step.device) for step in trace.steps] == lengths


@pytest.mark.parametrize(
    "names",
    [
        # An embedding before layers, each of which waits: layers are no steps.
        [90, 91, *[*range(12), 70] * 6, 80],
        # Another length at the end: the recording ends in the middle of a step.
        [*[*range(12), 70, *range(20, 30)] * 5, *range(12), 70],
        [*[*range(12), 70] * 2],
        [*[1, 70] * 20],
        [],
    ],
)
def test_parts_that_begin_or_end_otherwise_are_none(names: list[int]) -> None:
    assert starts_of_parts(np.array(names, dtype=np.int32), [70]) is None


def test_a_loop_that_is_all_of_the_recording_stays_one_step(tmp_path: Path) -> None:
    taken = read_trace_file(kineto(tmp_path / "t.json", loop(0, 200))).steps_taken
    assert taken.how == "recording"


def test_rounds_that_the_host_waits_in_are_steps(tmp_path: Path) -> None:
    taken = read_trace_file(kineto(tmp_path / "t.json", loop(30, 50, wait=True))).steps_taken
    assert (taken.how, taken.found, taken.may_be_parts) == ("period", 50, False)


def test_a_launch_and_a_read_may_be_a_turn_of_a_loop_in_a_step(tmp_path: Path) -> None:
    program, now = Program(), 1e6
    for _ in range(50):
        program.launch(called=now, starts=now + 5, length_us=3)
        program.call("cudaStreamSynchronize", start=now + 6, length_us=5)
        now += 20
    taken = read_trace_file(kineto(tmp_path / "t.json", program.events)).steps_taken
    assert (taken.how, taken.launches, taken.may_be_parts) == ("period", 1, True)
    assert "steps-are-single-launches" in codes_of(together(*steps_reasons(taken)))


@pytest.mark.parametrize(("launches", "allowed"), [(1, False), (2, False), (10, True)])
def test_one_or_two_launches_allow_no_verdict(launches: int, allowed: bool, tmp_path: Path) -> None:
    events = usual(steps=1, launches=launches, wait=False)
    explained = explain_traces([kineto(tmp_path / "t.json", events)])
    assert (explained.verdict.kind != "unclear") == allowed
    said = codes_of(together(*explained.verdict.sentences))
    assert ("too-little-device-work" in said) != allowed


def test_times_that_no_program_has_allow_no_verdict(tmp_path: Path) -> None:
    events = []
    for event in usual(steps=1, wait=False):
        events.append(event | {"ts": event["ts"] / 1e4, "dur": event["dur"] / 1e4})
    explained = explain_traces([kineto(tmp_path / "t.json", events)])
    assert explained.verdict.kind == "unclear"
    assert "times-too-short" in codes_of(together(*explained.verdict.sentences))


def test_a_time_without_launches_ends_with_when_there_are_some(tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    with pytest.raises(UsageError, match="between --from and --to"):
        read_trace_file(path, StepChoice("", 0.000001, 0.000002))


@pytest.mark.parametrize("name", ["", " "])
def test_an_empty_name_of_a_step_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", usual())
    assert main(["explain", "--trace", str(path), "--step", name]) == 2
    assert capsys.readouterr().err.count("\n") == 1
