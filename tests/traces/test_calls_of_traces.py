"""Calls of a recording: those inside each other, copies that wait, and for what calls wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.explaining.launch_delays import launch_delays
from overhead.explaining.record import Explanation
from overhead.explaining.trace_file import explain_traces
from overhead.traces.formats import read_trace_file
from overhead.traces.trace import Trace
from tests.traces.test_trace_faults import Program, explained
from tests.traces.test_trace_file import kineto, nsys

PROCESS = 77 << 24
NONE = 2**32 - 1


def counts(found: Explanation) -> tuple[float | None, float | None, float | None]:
    per_step = found.per_step
    return per_step.launches.value, per_step.copies.value, per_step.synchronisations.value


@pytest.mark.parametrize("name", ["t.json", "t.sqlite"])
@pytest.mark.parametrize("work_of", ["the outer call", "the inner call"])
def test_calls_inside_each_other_are_one(name: str, work_of: str, tmp_path: Path) -> None:
    """A runtime calls the driver, and both are recorded, with numbers of their own."""
    program, now = Program(), 1e6
    for number in range(6):
        began = now
        for _ in range(10):
            if work_of == "the inner call":
                program.call("cudaLaunchKernel", start=now, length_us=6)
                program.launch(
                    called=now + 1, starts=now + 20, length_us=5, call="cuLaunchKernel", call_us=4
                )
            else:
                program.launch(called=now, starts=now + 20, length_us=5, call_us=6)
                program.call("cuLaunchKernel", start=now + 1, length_us=4)
            now += 50
        program.call("cudaDeviceSynchronize", start=now, length_us=5)
        program.call("cuCtxSynchronize", start=now + 1, length_us=3)
        now += 5
        program.step(number, start=began, length_us=now - began)
    path = (nsys if name == "t.sqlite" else kineto)(tmp_path / name, program.events)
    found = explain_traces([path])
    assert counts(found) == (10, 0, 1)
    assert found.verdict.kind == "host"
    assert {row.name: row.count for row in found.calls} == {
        "cudaLaunchKernel": 10,
        "cudaDeviceSynchronize": 1,
    }


def test_calls_of_whole_microseconds_in_a_row_are_not_inside_each_other(tmp_path: Path) -> None:
    """A short call then seems to lie at the start of the next one, or to be as long as it."""
    program, now = Program(), 1e6
    for number in range(6):
        began = now
        for _ in range(5):
            program.launch(called=now, starts=now + 9, length_us=3, call_us=0)
            program.launch(called=now, starts=now + 12, length_us=3, call_us=6)
            program.launch(called=now + 6, starts=now + 15, length_us=3, call_us=2)
            now += 50
        program.step(number, start=began, length_us=now - began)
    assert counts(explained(tmp_path, program.events))[0] == 15


def test_calls_of_another_thread_are_not_inside_a_call(tmp_path: Path) -> None:
    program, now = Program(), 1e6
    for number in range(6):
        program.launch(called=now, starts=now + 9, length_us=3, call_us=40)
        program.call("cudaEventSynchronize", start=now + 10, length_us=4, tid=2)
        program.step(number, start=now, length_us=50)
        now += 50
    assert counts(explained(tmp_path, program.events)) == (1, 0, 1)


def test_a_damaged_end_of_a_call_does_not_swallow_the_others(tmp_path: Path) -> None:
    program, now = Program(), 1e6
    program.call("cudaEventRecord", start=now, length_us=1e9)
    for number in range(30):
        for at in range(5):
            program.launch(called=now + 20 * at, starts=now + 20 * at + 9, length_us=3)
        program.step(number, start=now, length_us=100)
        now += 100
    assert counts(explained(tmp_path, program.events))[0] == 5


@pytest.mark.parametrize("call", ["cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream"])
@pytest.mark.parametrize(("work_us", "waits"), [(15, 1), (60, 0)])
def test_a_copy_that_waits_is_a_copy_and_a_synchronisation(
    call: str, work_us: int, waits: int, tmp_path: Path
) -> None:
    """Copies between two places of the device are not waited for, whatever the call."""
    program, now = Program(), 1e6
    for number in range(6):
        program.launch(called=now, starts=now + 9, length_us=5)
        copy = "Memcpy DtoD (Device -> Device)"
        program.launch(
            called=now + 20, starts=now + 30, length_us=work_us, kernel=copy,
            category="gpu_memcpy", call=call, call_us=30,
        )  # fmt: skip
        program.step(number, start=now, length_us=100)
        now += 100
    assert counts(explained(tmp_path, program.events)) == (1, 1, waits)


@pytest.mark.parametrize(
    ("between", "wait", "waits"),
    [
        ("", "cudaStreamSynchronize", 1),
        ("cudaEventRecord", "cudaStreamSynchronize", 2),
        ("", "cudaDeviceSynchronize", 2),
    ],
)
def test_a_read_outside_of_operations_is_one_synchronisation(
    between: str, wait: str, waits: int, tmp_path: Path
) -> None:
    """Such as ``item()`` in a program that Nsight Systems recorded without ranges."""
    program, now = Program(), 1e6
    for number in range(6):
        program.launch(called=now, starts=now + 9, length_us=20)
        program.launch(
            called=now + 10, starts=now + 29, length_us=2, call_us=4,
            kernel="Memcpy DtoH (Device -> Pageable)", category="gpu_memcpy",
            call="cudaMemcpyAsync",
        )  # fmt: skip
        if between:
            program.call(between, start=now + 14, length_us=1)
        program.call(wait, start=now + 16, length_us=20)
        program.step(number, start=now, length_us=100)
        now += 100
    assert counts(explained(tmp_path, program.events))[2] == waits


def two_streams(path: Path, waits: list[str], tells: bool) -> Trace:
    """Each step launches into stream 7, then a long kernel into stream 8, and waits: for stream 7,
    or for an event in it. ``tells``: whether the database says so.
    """
    program, now = Program(), 1e6
    rows = []
    for number in range(6):
        program.launch(called=now, starts=now + 9, length_us=10, tid=7)
        program.call("cudaEventRecord", start=now + 3, length_us=1)
        rows.append(
            f"INSERT INTO CUPTI_ACTIVITY_KIND_CUDA_EVENT VALUES ({PROCESS}, 4, 7, 5,"
            f" {program.number})"
        )
        program.launch(called=now + 5, starts=now + 12, length_us=12, tid=8)
        program.call("cudaEventSynchronize", start=now + 10, length_us=16)
        start = int(1000 * (now + 10))
        values = [
            text.format(start=start, end=start + 16_000, number=program.number) for text in waits
        ]
        rows += [f"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES ({v})" for v in values]
        program.step(number, start=now, length_us=50)
        now += 50
    tables = [
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN contextId INT DEFAULT 4",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT (globalPid INT, contextId INT, streamId INT,"
        " eventId INT, correlationId INT)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INT, end INT, globalPid INT,"
        " deviceId INT, contextId INT, correlationId INT, syncType INT, streamId INT, eventId INT)",
        *rows,
    ]
    return read_trace_file(nsys(path, program.events, *(tables if tells else [])))


WAIT_ROWS = {
    # The device of these rows is 0 whatever it is, so the context tells it.
    "a stream": f"{{start}}, {{end}}, {PROCESS}, 3, 4, {{number}}, 3, 7, {NONE}",
    "an event": f"{{start}}, {{end}}, {PROCESS}, 3, {NONE}, {{number}}, 1, {NONE}, 5",
}


@pytest.mark.parametrize("wait", WAIT_ROWS)
def test_nsight_tells_for_which_stream_a_call_waits(wait: str, tmp_path: Path) -> None:
    def waits_for(path: Path, tells: bool) -> set[tuple[str, ...]]:
        trace = two_streams(path, [WAIT_ROWS[wait]], tells)
        waits = [call for step in trace.steps for call in step.synchronisations]
        return {tuple(call.waits_for) for call in waits}

    # By the times of the work alone, the call waits for both streams.
    assert waits_for(tmp_path / "silent.sqlite", tells=False) == {("0:7", "0:8")}
    assert waits_for(tmp_path / "told.sqlite", tells=True) == {("0:7",)}


ODD_ROWS = [
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, {{number}}, 3, {NONE}, {NONE}",
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, {{number}}, 1, 7, 99",
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, {{number}}, 0, 7, 5",
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, {{number}}, 2, {NONE}, 5",
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, {{number}}, 3, 'x', 'y'",
    f"'now', 'then', {PROCESS}, 0, 4, 'x', 3, 7, 5",
    f"NULL, NULL, {PROCESS}, 0, 4, {{number}}, 3, 7, 5",
    f"{{start}}, {{end}}, {PROCESS}, 0, 4, NULL, 3, 7, 5",
]


def test_a_wait_that_names_no_stream_tells_nothing(tmp_path: Path) -> None:
    silent = two_streams(tmp_path / "silent.sqlite", [], tells=False)
    told = two_streams(tmp_path / "told.sqlite", ODD_ROWS, tells=True)
    assert [step.synchronisations for step in told.steps] == [
        step.synchronisations for step in silent.steps
    ]
    assert launch_delays(told) == launch_delays(silent)
