"""``overhead explain --trace``: what graphs can hold, threads beside the program, and verdicts from
the time of the device.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead.explaining.host_work import HostTimes
from overhead.explaining.predictions import predictions
from overhead.explaining.ranks import compare_ranks, rank_reasons
from overhead.results import code_of
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Event, Program, explained, said, usual
from tests.traces.test_trace_file import kineto

UPLOAD = "Memcpy HtoD (Pageable -> Device)"
READ = "Memcpy DtoH (Device -> Pinned)"


def reading(launches: int, steps: int = 6) -> list[Event]:
    """Steps of five reads of a value, each after so many launches of 10 µs of the host."""
    program, now = Program(), 1e6
    for number in range(steps):
        began = now
        for _ in range(5):
            for _ in range(launches):
                program.span("cpu_op", "aten::add", start=now, length_us=9)
                program.launch(called=now + 5, starts=now + 11, length_us=1)
                now += 10
            program.span("cpu_op", "aten::item", start=now, length_us=20)
            program.launch(
                called=now + 2,
                starts=now + 8,
                length_us=2,
                kernel=READ,
                call="cudaMemcpyAsync",
                category="gpu_memcpy",
            )
            program.call("cudaStreamSynchronize", start=now + 5, length_us=9)
            now += 22
        program.step(number, start=began, length_us=now - began)
    return program.events


@pytest.mark.parametrize(("launches", "saves"), [(1, False), (6, True)])
def test_a_graph_ends_at_each_read(launches: int, saves: bool, tmp_path: Path) -> None:
    trace = read_trace_file(kineto(tmp_path / "t.json", reading(launches)))
    found = {each.change: each for each in predictions(trace.quiet(), HostTimes())}
    assert (found["graphs"].saves > 0) == saves
    # A call for each graph, and all between two of them, stays.
    assert found["graphs"].step_ns > 5 * 22_000


def test_graphs_are_called_as_their_runtime(tmp_path: Path) -> None:
    events = usual(host_us=50, device_us=5)
    for event in events:
        event["name"] = event["name"].replace("cuda", "hip")
    told = said(explained(tmp_path, events))
    assert told["predicted-with-graphs"].values["runtime"] == "HIP"


def with_a_thread(streams: tuple[int, ...]) -> list[Event]:
    """Steps of ten launches, beside a thread that uploads for most of each, on the first of the
    streams, and waits.
    """
    program, now = Program(), 1e6
    for number in range(6):
        began = now
        for _ in range(10):
            program.span("cpu_op", "aten::mul", start=now, length_us=48)
            program.launch(called=now + 10, starts=now + 16, length_us=5)
            now += 50
        program.step(number, start=began, length_us=now - began)
        program.launch(
            called=began + 20,
            starts=began + 30,
            length_us=300,
            kernel="Memcpy HtoD (Pinned -> Device)",
            call="cudaMemcpyAsync",
            category="gpu_memcpy",
            tid=streams[0],
        )
        call = [each for each in program.events if each["name"] == "cudaMemcpyAsync"][-1]
        call["tid"] = 2
        program.call("cudaStreamSynchronize", start=began + 27, length_us=310, tid=2)
    return program.events


def test_a_thread_that_waits_for_its_own_uploads_holds_up_nobody(tmp_path: Path) -> None:
    found = explained(tmp_path, with_a_thread((22,)))
    assert found.verdict.kind == "host"
    assert found.per_step.synchronisations.value == 0
    assert said(found)["host-bound"].values["host_ns"] == pytest.approx(500_000)


def test_a_thread_that_waits_for_work_of_the_program_holds_it_up(tmp_path: Path) -> None:
    found = explained(tmp_path, with_a_thread((7,)))
    assert found.per_step.synchronisations.value == 1


def test_copies_that_take_the_device_are_named(tmp_path: Path) -> None:
    program = Program()
    for number in range(6):
        start = 1e6 + 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "aten::to", start=start, length_us=920)
        program.launch(
            called=start + 1,
            starts=start + 10,
            length_us=900,
            kernel=UPLOAD,
            call="cudaMemcpyAsync",
            call_us=915,
            category="gpu_memcpy",
        )
        program.launch(called=start + 930, starts=start + 935, length_us=50)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "device"
    copies = said(found)["pageable-copies-take-the-device"].values
    assert copies["share"] == pytest.approx(900 / 950, abs=0.01)


def test_devices_in_turn_bound_the_step(tmp_path: Path) -> None:
    """Two devices work for 500 µs each, the second one after the first."""
    program = Program()
    for number in range(6):
        start = 1e6 + 1010.0 * number
        program.step(number, start=start, length_us=1005)
        for device in (0, 1):
            program.device = device
            program.launch(
                called=start + 10 + 10 * device, starts=start + 20 + 490 * device, length_us=490
            )
        program.call("cudaDeviceSynchronize", start=start + 40, length_us=963)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "device"
    assert code_of(found.verdict.sentences[0]) == "device-bound-in-turn"
    assert not said(found).keys() & {"predicted-gains", "bound-by-synchronisation"}


def test_calls_that_allocate_in_each_step_are_named(tmp_path: Path) -> None:
    program = Program()
    for number in range(6):
        start = 1e6 + 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.call("cudaMallocManaged", start=start + 10, length_us=500)
        program.launch(called=start + 520, starts=start + 530, length_us=30)
        program.call("cudaFree", start=start + 600, length_us=380)
    told = said(explained(tmp_path, program.events))
    assert {"runtime-calls-take", "allocate-once"} <= told.keys()
    assert told["allocate-once"].values["share"] == pytest.approx(0.88, abs=0.03)


def test_three_launches_are_no_program(tmp_path: Path) -> None:
    program = Program()
    program.step(1, start=0, length_us=10_000)
    program.span("cpu_op", "aten::mul", start=10, length_us=9000)
    for called in (5000, 6000, 7000):
        program.launch(called=called, starts=called + 10, length_us=5)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "unclear"
    assert "too-few-launches" in said(found)


def test_several_ranks_may_be_slow_alike(tmp_path: Path) -> None:
    traces = []
    for rank, host_us in enumerate((80, 80, 40, 40)):
        path = tmp_path / f"{rank}.json"
        trace = read_trace_file(kineto(path, usual(host_us=host_us)))
        traces.append(trace)
    reasons = {code_of(each): each for each in rank_reasons(compare_ranks(traces))}
    assert "longer-steps" in reasons
