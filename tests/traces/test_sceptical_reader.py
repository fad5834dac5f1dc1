"""``overhead explain --trace``: what a sceptical reader found wrong. Waits and what they cost,
start-up, places of the host's time, and recordings that lack something.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.explaining.host_places import host_places
from overhead.explaining.host_work import AS_RECORDED, operation_rows, synchronisation_rows
from overhead.explaining.record import BETWEEN
from overhead.explaining.replay import step_parts
from overhead.explaining.start_up import start_up_of
from overhead.explaining.trace_file import explain_traces
from overhead.results import codes_of
from overhead.traces.formats import read_trace_file
from overhead.traces.opened_ranges import with_opened_ranges
from overhead.traces.trace import Trace, busiest_ns
from overhead.words.reasons import sentence
from tests.traces.test_trace_faults import Event, Program, explained, said, steps_taken, usual
from tests.traces.test_trace_file import kineto

US = 1e3
MS = 1e6


def read(tmp_path: Path, events: list[Event]) -> Trace:
    return read_trace_file(kineto(tmp_path / "t.json", events))


def upload(copy_us: float, wait_us: float) -> Program:
    """A copy from pageable memory, whose call takes ``copy_us``, and a wait of ``wait_us``."""
    program = Program()
    start = 1e6
    program.span("cpu_op", "aten::to", start=start, length_us=copy_us + wait_us + 10)
    program.launch(
        called=start + 1,
        starts=start + 5,
        length_us=copy_us + wait_us - 6,
        call="cudaMemcpyAsync",
        call_us=copy_us,
        category="gpu_memcpy",
        kernel="Memcpy HtoD (Pageable -> Device)",
    )
    program.call("cudaStreamSynchronize", start=start + 2 + copy_us, length_us=wait_us)
    for index in range(5):
        at = start + copy_us + wait_us + 20 + 20 * index
        program.launch(called=at, starts=at + 5, length_us=4, kernel=f"gemm{index % 2}")
    return program


@pytest.mark.parametrize(
    ("copy_us", "wait_us", "waits_in"),
    [(9000.0, 10.0, "cudaMemcpyAsync"), (10.0, 9000.0, "cudaStreamSynchronize")],
)
def test_a_wait_has_the_name_of_the_call_that_waits(
    tmp_path: Path, copy_us: float, wait_us: float, waits_in: str
) -> None:
    rows = synchronisation_rows(read(tmp_path, upload(copy_us, wait_us).events))
    assert waits_in in sentence(rows[0].what)


def test_waits_cost_no_more_than_the_device_is_idle(tmp_path: Path) -> None:
    """Two streams whose kernels never ran side by side, and a wait for both at the end."""
    program = Program()
    for index in range(20):
        at = 1e6 + 10 * index
        starts = 1e6 + 20 + 1000 * index
        program.launch(called=at, starts=starts, length_us=999, kernel="gemm", tid=7 + index % 2)
    program.call("cudaDeviceSynchronize", start=1e6 + 210, length_us=20_000 - 190)
    trace = read(tmp_path, program.events)
    step = trace.steps[0]
    idle_ns = step.end - step.start - busiest_ns(step.device)
    cost_ns = step_parts(trace, AS_RECORDED).synchronisation_share * (step.end - step.start)
    assert cost_ns <= idle_ns + 2 * US


def test_a_wait_for_work_from_before_the_step_is_in_no_table(tmp_path: Path) -> None:
    program = Program()
    start = 1e6
    program.step(5, start=start, length_us=100_500)
    program.launch(called=start + 10, starts=start + 100_000, length_us=20)
    for index in range(4):
        at = start + 20 + 10 * index
        program.launch(called=at, starts=start + 100_020 + 20 * index, length_us=20)
    program.call("hipStreamSynchronize", start=start + 80, length_us=100_100 - 60)
    found = explained(tmp_path, program.events)
    assert steps_taken(found).earlier_ns == pytest.approx(100 * MS, rel=0.01)
    told = said(found)
    assert found.synchronisations[0].blocked_ns < 0.2 * MS
    assert "launches-queue" not in told
    assert "launches-queue-and-hide-the-latency" not in told


@pytest.mark.parametrize(
    "name",
    ["cudaFree", "cudaStreamCreateWithFlags", "cudaOccupancyMaxActiveBlocksPerMultiprocessor"],
)
def test_slow_calls_that_set_up_are_start_up(tmp_path: Path, name: str) -> None:
    program = Program()
    program.call(name, start=1e6 + 10, length_us=90_000)
    program.launch(called=1e6, starts=1e6 + 5, length_us=3)
    for index in range(10):
        at = 1e6 + 100_000 + 50 * index
        program.launch(called=at, starts=at + 5, length_us=3)
    trace = read(tmp_path, program.events)
    assert start_up_of(trace, AS_RECORDED).ns_by_kind["sets-up"] == pytest.approx(90 * MS, rel=0.01)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "unclear"
    assert "predicted-gains" not in said(found)


def test_an_operation_that_is_slow_in_each_step_is_no_first_call(tmp_path: Path) -> None:
    program = Program()
    for number in range(2):
        start = 1e6 + 200_000 * number
        program.step(number, start=start, length_us=190_000)
        program.span("cpu_op", "aten::_foreach_mul_", start=start, length_us=100_000)
        program.launch(called=start + 5, starts=start + 10, length_us=3)
        for index in range(5):
            at = start + 110_000 + 100 * index
            program.span("cpu_op", "aten::_foreach_mul_", start=at, length_us=50)
            program.launch(called=at + 5, starts=at + 10, length_us=3)
    trace = read(tmp_path, program.events)
    alone = start_up_of(trace.counted, AS_RECORDED)
    assert alone.ns_by_kind["first-calls"] == pytest.approx(100 * MS, rel=0.01)
    seen = start_up_of(trace.counted, AS_RECORDED, trace.steps)
    assert "first-calls" not in seen.ns_by_kind


def test_frees_at_the_end_or_in_each_step_set_nothing_up(tmp_path: Path) -> None:
    at_end = Program()
    for index in range(10):
        at = 1e6 + 50 * index
        at_end.launch(called=at, starts=at + 5, length_us=3)
    at_end.call("cudaFree", start=1e6 + 1000, length_us=5000)
    at_end.span("cpu_op", "aten::mul", start=1e6, length_us=10_000)
    assert "sets-up" not in start_up_of(read(tmp_path, at_end.events), AS_RECORDED).ns_by_kind
    each = Program()
    for number in range(3):
        start = 1e6 + 10_000 * number
        each.step(number, start=start, length_us=9000)
        each.call("cudaFree", start=start + 10, length_us=3000)
        each.launch(called=start + 4000, starts=start + 4005, length_us=10)
    assert "sets-up" not in start_up_of(read(tmp_path, each.events), AS_RECORDED).ns_by_kind


def test_a_program_that_loads_a_module_for_each_launch_starts_up(tmp_path: Path) -> None:
    program = Program()
    program.launch(called=1e6, starts=1e6 + 5, length_us=3, kernel="first")
    for index in range(4):
        at = 1e6 + 40_000 * (index + 1)
        program.call("cuModuleLoadData", start=at, length_us=300)
        program.launch(called=at + 400, starts=at + 410, length_us=3, kernel=f"made{index}")
    found = start_up_of(read(tmp_path, program.events), AS_RECORDED)
    assert found.share > 0.9


def test_ranges_of_a_compiler_are_start_up_also_inside_of_others(tmp_path: Path) -> None:
    program = Program()
    program.span("cpu_op", "Cache::runFusion", start=1e6, length_us=50_000)
    program.span("cpu_op", "Runtime::compileFusionParallel", start=1e6 + 100, length_us=40_000)
    for index in range(5):
        at = 1e6 + 41_000 + 50 * index
        program.launch(called=at, starts=at + 5, length_us=3)
    trace = read(tmp_path, program.events)
    compiles_ns = start_up_of(trace, AS_RECORDED).ns_by_kind["compiles"]
    assert compiles_ns == pytest.approx(40 * MS, rel=0.05)


def test_time_between_operations_is_that_of_the_table(tmp_path: Path) -> None:
    """A range around operations is opened. What is left of it is a place of its own."""
    program = Program()
    for number in range(6):
        start = 1e6 + 11_000 * number
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "my_range", start=start + 1000, length_us=8000)
        for index in range(5):
            at = start + 1500 + 1500 * index
            program.span("cpu_op", "aten::mul", start=at, length_us=500)
            program.launch(called=at + 100, starts=at + 110, length_us=50)
    trace, opened = with_opened_ranges(read(tmp_path, program.events))
    assert "my_range" in opened
    places = host_places(trace.typical, AS_RECORDED, opened)
    rows = {row.name: row.host_ns for row in operation_rows(trace.typical, AS_RECORDED)}
    assert places.between_ns == pytest.approx(rows[BETWEEN], rel=0.01)
    assert places.ranges_ns == pytest.approx(rows["my_range"], rel=0.01)


def test_a_step_that_waits_for_workers_is_bound_by_the_data_loader(tmp_path: Path) -> None:
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    program = Program()
    for number in range(6):
        start = 1e6 + 10_000 * number
        program.step(number, start=start, length_us=9900)
        program.span("cpu_op", name, start=start + 10, length_us=9000)
        for index in range(5):
            at = start + 9100 + 100 * index
            program.span("cpu_op", "aten::mul", start=at, length_us=80)
            program.launch(called=at + 10, starts=at + 15, length_us=5)
    told = said(explained(tmp_path, program.events))
    assert "bound-by-data-loader" in told
    assert not {"host-bound", "predicted-gains", "data-loader"} & told.keys()


def test_a_given_time_of_a_step_keeps_its_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", usual(host_us=50, device_us=5))
    main(["explain", "--trace", str(path), "--step-ms", "0.5324"])
    out = capsys.readouterr().out
    assert "532.4" in out
    assert "pinned" not in out


def test_python_stacks_are_named_as_a_cost(tmp_path: Path) -> None:
    events = usual(host_us=50, device_us=5)
    assert "stacks-recorded" not in said(explained(tmp_path, events))
    program = Program()
    program.span("python_function", "model.py(3): forward", start=1e6, length_us=100)
    assert "stacks-recorded" in said(explained(tmp_path, [*events, *program.events]))


def test_a_slow_launch_call_is_no_delay_of_the_device(tmp_path: Path) -> None:
    def steps(call_us: float) -> list[Event]:
        program = Program()
        for number in range(12):
            start = 1e6 + 1000 * number
            program.step(number, start=start, length_us=900)
            program.launch(called=start + 10, starts=start + 50, length_us=20, call_us=call_us)
        return program.events

    assert "latency-is-the-call" in said(explained(tmp_path, steps(41)))
    assert "latency-is-the-call" not in said(explained(tmp_path, steps(5)))


def test_ranges_without_cuda_are_no_work_of_the_cpu(tmp_path: Path) -> None:
    """Nsight Systems writes no tables of CUDA if it did not trace CUDA."""
    path = tmp_path / "ranges.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute(
            "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,"
            " globalTid INTEGER, textId INTEGER)"
        )
        for index in range(20):
            at = 1_000_000 * index
            base.execute(
                "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, 1, NULL)",
                (at, at + 900_000, "enqueue"),
            )
    found = explain_traces([path])
    assert found.verdict.kind == "unclear"
    codes = codes_of(found.verdict.sentences[0])
    assert "cuda-not-traced" in codes
