"""``overhead explain --trace``: how long work waits after its launch, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.explaining.launch_delays import launch_delays, launch_latencies_ns, summed_up
from overhead.explaining.record import Explanation, LaunchDelays
from overhead.traces.formats import read_trace_file
from overhead.traces.trace import Trace
from tests.traces.test_trace_faults import Event, Program, explained, said, usual
from tests.traces.test_trace_file import kineto


def read(tmp_path: Path, events: list[Event]) -> Trace:
    return read_trace_file(kineto(tmp_path / "t.json", events))


def delays_in(tmp_path: Path, events: list[Event]) -> LaunchDelays:
    trace = read(tmp_path, events)
    delays = summed_up(launch_delays(trace), trace.recording.clocks)
    assert delays is not None
    return delays


def sync_event(kind: str, number: int, at: float, **more: Any) -> Event:
    """What Kineto writes for the call with this number, if it records synchronisations."""
    arguments = {"cuda_sync_kind": kind, "device": 0, "stream": -1, "correlation": number} | more
    return {
        "ph": "X",
        "cat": "cuda_sync",
        "name": kind,
        "ts": at,
        "dur": 1,
        "pid": 0,
        "tid": arguments["stream"],
        "args": arguments,
    }


def test_a_launch_that_finds_the_device_idle_has_a_latency(tmp_path: Path) -> None:
    """10 launches a step, 50 µs apart, of kernels of 5 µs, which start 5 µs after the call."""
    delays = delays_in(tmp_path, usual(steps=6))
    assert delays.launches == 60
    assert (delays.found_idle, delays.first_calls) == (59, 1)
    assert (delays.latency_ns, delays.low_ns, delays.high_ns) == pytest.approx((5000, 5000, 5000))
    assert (delays.queued, delays.unsure) == (0, 0)


def test_a_launch_behind_earlier_work_has_no_latency(tmp_path: Path) -> None:
    """Kernels of 500 µs, launched 50 µs apart: only the first one of a step finds the device idle.
    On an AMD GPU a start often equals the end before.
    """
    events = usual(device_us=500, steps=6)
    delays = delays_in(tmp_path, events)
    assert (delays.found_idle, delays.first_calls, delays.queued) == (5, 1, 54)
    assert delays.latency_ns == pytest.approx(5000)
    assert delays.hidden == 54
    told = said(explained(tmp_path, events))
    assert "launches-queue-and-hide-the-latency" in told


def test_without_launches_on_an_idle_device_no_latency_is_told(tmp_path: Path) -> None:
    found = explained(tmp_path, usual(device_us=500, steps=6, wait=False))
    delays = found.launch_delays
    assert delays is not None
    assert delays.latency_ns is None
    assert delays.reason
    assert delays.queued == 59
    told = said(found)
    assert "launches-queue-and-hide-the-latency" in told
    assert not told.keys() & {"launch-latency", "no-launch-latency"}


def test_a_launch_just_after_the_end_of_other_work_is_unsure(tmp_path: Path) -> None:
    """Clocks of healthy machines differ by 2 µs, so work that ended 1 µs before the call may have
    ended after it.
    """
    program = Program()
    program.step(1, start=0, length_us=1000)
    for index in range(6):
        at = 100.0 * index
        program.launch(called=at + 10, starts=at + 16, length_us=20, kernel="a")
        program.launch(called=at + 37, starts=at + 43, length_us=20, kernel="b")
    delays = delays_in(tmp_path, program.events)
    assert (delays.found_idle, delays.first_calls, delays.unsure) == (5, 1, 6)


def test_work_of_another_stream_makes_a_latency_unsure(tmp_path: Path) -> None:
    """A kernel of another stream runs all the time: there may be no room beside it."""
    program = Program()
    program.step(1, start=0, length_us=1000)
    program.launch(called=5, starts=10, length_us=980, kernel="long", tid=9)
    for index in range(9):
        at = 100.0 * index
        program.launch(called=at + 20, starts=at + 26, length_us=20)
    delays = delays_in(tmp_path, program.events)
    assert (delays.found_idle, delays.first_calls, delays.unsure) == (0, 1, 9)
    assert delays.latency_ns is None


def test_a_recorded_wait_for_an_event_of_another_stream_is_a_queue(tmp_path: Path) -> None:
    """Stream 9 waits for the first of two kernels of stream 7, as the recording tells. Stream 8 is
    busy too, and nobody waits for it.
    """
    program = Program()
    program.step(1, start=0, length_us=1000)
    program.launch(called=5, starts=10, length_us=200, kernel="first")
    program.call("cudaEventRecord", start=8, length_us=1)
    record = program.number
    program.launch(called=10, starts=211, length_us=500, kernel="second")
    program.launch(called=12, starts=20, length_us=150, kernel="beside", tid=8)
    program.call("cudaStreamWaitEvent", start=15, length_us=1)
    told = {"stream": 9, "wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": record}
    program.events.append(sync_event("Stream Wait Event", program.number, 15, **told))
    program.launch(called=20, starts=214, length_us=10, kernel="after", tid=9)
    delays = launch_delays(read(tmp_path, program.events))
    after = delays[-1]
    assert after.found == "others"
    assert after.others == pytest.approx(190_000)
    assert after.latency == pytest.approx(4000)


def test_first_launches_are_told_apart(tmp_path: Path) -> None:
    """The first launch of each of two kernels takes 1,300 µs, in which the kernel is loaded."""
    program = Program()
    program.step(1, start=0, length_us=20_000)
    for index in range(12):
        at = 1000.0 + 1500 * index
        latency = 1300.0 if index < 2 else 6.0
        program.launch(
            called=at,
            starts=at + latency,
            length_us=9,
            kernel=f"kernel {index % 2}",
            call_us=latency - 4,
        )
    events = program.events
    found = explained(tmp_path, events)
    delays = found.launch_delays
    assert delays is not None
    assert (delays.first_calls, delays.found_idle) == (2, 10)
    assert delays.first_calls_ns == pytest.approx(2_600_000)
    assert delays.high_ns == pytest.approx(6000)
    told = said(found)
    assert told["first-launches-take-long"].values["launches"] == 2
    assert launch_latencies_ns(read(tmp_path, events))[""] == pytest.approx(6000)


def test_work_that_begins_long_after_its_call_returned_waited_for_something(
    tmp_path: Path,
) -> None:
    """No kernel is loaded then: work from before the recording, which it does not hold, still runs,
    or a lost one.
    """
    program = Program()
    program.step(1, start=0, length_us=9000)
    program.launch(called=10, starts=5000, length_us=10)
    program.launch(called=6000, starts=6006, length_us=10)
    program.launch(called=7000, starts=8000, length_us=10)
    delays = delays_in(tmp_path, program.events)
    assert (delays.unsure, delays.found_idle, delays.first_calls) == (2, 1, 0)


def test_first_launches_that_take_no_longer_are_not_said(tmp_path: Path) -> None:
    assert "first-launches-take-long" not in said(explained(tmp_path, usual()))


def test_copies_and_graphs_have_latencies_of_their_own(tmp_path: Path) -> None:
    program = Program()
    program.step(1, start=0, length_us=30_000)
    for index in range(7):
        at = 1000.0 + 3000 * index
        program.launch(called=at, starts=at + 6, length_us=9)
        program.launch(called=at + 500, starts=at + 512, length_us=9, call="cudaGraphLaunch")
        copies = {"category": "gpu_memcpy", "call": "cudaMemcpyAsync"}
        program.launch(
            called=at + 1000,
            starts=at + 1009,
            length_us=9,
            kernel="Memcpy HtoD (Pinned -> Device)",
            **copies,
        )
        program.launch(
            called=at + 2000,
            starts=at + 2090,
            length_us=9,
            kernel="Memcpy HtoD (Pageable -> Device)",
            **copies,
        )
    delays = delays_in(tmp_path, program.events)
    assert delays.latency_ns == pytest.approx(6000)
    other_ns = {each.kind: each.latency_ns for each in delays.other_kinds}
    assert other_ns == {"graph": pytest.approx(12_000), "copy": pytest.approx(9000)}


def test_a_wait_for_work_from_before_the_recording_is_a_wait(tmp_path: Path) -> None:
    """The profiler waits for the device when it starts. The work for which it waits has numbers
    before the first recorded one.
    """
    program = Program(number=50)
    program.step(1, start=990, length_us=20_000)
    for index in range(100):
        place: Event = {"pid": 0, "tid": 7, "args": {"correlation": index % 50 + 1}}
        program.span("kernel", "gemm", start=900 + 100 * index, length_us=99, **place)
    program.call("cudaDeviceSynchronize", start=1000, length_us=9904)
    for index in range(90):
        at = 11_000 + 100.0 * index
        program.span("cpu_op", "aten::mul", start=at, length_us=95)
        program.launch(called=at + 20, starts=at + 26, length_us=9)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "host"
    told = said(found)
    assert told["wait-for-earlier-work-left-out"].values["waited_ns"] == pytest.approx(9_904_000)
    assert "call-outside-of-operations" not in told


def test_the_first_launch_behind_work_from_before_the_recording_has_no_latency(
    tmp_path: Path,
) -> None:
    program = Program(number=50)
    program.step(1, start=0, length_us=2000)
    program.span("kernel", "old", start=0, length_us=900, pid=0, tid=7, args={"correlation": 3})
    program.launch(called=20, starts=901, length_us=9)
    (only,) = launch_delays(read(tmp_path, program.events))
    assert only.found == "stream"
    assert only.latency == pytest.approx(1000)


@pytest.mark.parametrize(
    "sync",
    [
        {"cuda_sync_kind": "Stream Sync", "stream": 7},
        {
            "cuda_sync_kind": "Event Sync",
            "wait_on_stream": 7,
            "wait_on_cuda_event_record_corr_id": 2,
        },
    ],
)
def test_a_recorded_wait_names_its_stream(sync: dict[str, Any], tmp_path: Path) -> None:
    """Stream 9 is done long before stream 7, for which the host waits. Stream 7 gets more work
    after the event.
    """
    program = Program()
    program.step(1, start=0, length_us=3000)
    program.launch(called=5, starts=10, length_us=500)
    program.call("cudaEventRecord", start=8, length_us=1)
    if "Event" in sync["cuda_sync_kind"]:
        program.launch(called=10, starts=511, length_us=900)
    program.launch(called=20, starts=26, length_us=10, tid=9)
    program.call("cudaEventSynchronize", start=30, length_us=484)
    program.events.append(sync_event("", program.number, 30, **sync))
    (step,) = read(tmp_path, program.events).steps
    (wait,) = step.synchronisations
    assert wait.blocked == pytest.approx(480_000)
    assert "0:9" not in wait.waits_for


def test_a_call_that_lasts_waits_although_the_file_tells_of_an_event_that_was_done(
    tmp_path: Path,
) -> None:
    program = Program()
    program.step(1, start=0, length_us=3000)
    program.launch(called=5, starts=10, length_us=5)
    program.call("cudaEventRecord", start=8, length_us=1)
    record = program.number
    program.launch(called=20, starts=26, length_us=900)
    program.call("cudaEventSynchronize", start=30, length_us=900)
    told = {"wait_on_stream": 7, "wait_on_cuda_event_record_corr_id": record}
    program.events.append(sync_event("Event Sync", program.number, 30, **told))
    (step,) = read(tmp_path, program.events).steps
    (wait,) = step.synchronisations
    assert wait.blocked == pytest.approx(896_000)


def test_the_file_of_an_explanation_keeps_the_delays(tmp_path: Path) -> None:
    found = explained(tmp_path, usual())
    again = msgspec.convert(found.to_dict(), Explanation)
    assert again.launch_delays == found.launch_delays
    older = {name: value for name, value in found.to_dict().items() if name != "launch_delays"}
    assert msgspec.convert(older, Explanation).launch_delays is None
