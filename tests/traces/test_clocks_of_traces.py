"""``overhead explain --trace``: recordings whose host and devices have clocks that differ."""

from __future__ import annotations

import collections
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overhead.explaining.record import Explanation
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Event, Program, by_code, explained, said
from tests.traces.test_trace_file import kineto

ShownAt = Callable[[int, float], float]
"""What the clock of a device shows, µs, by the number of the device and the true time."""
BEGIN_US = 1e6
LATENCY_US = 6.0


def steps_of(
    *,
    device_us: float,
    wake_us: float = 4.0,
    streams: int = 1,
    devices: int = 1,
    wait: str = "cudaDeviceSynchronize",
) -> list[Event]:
    """8 steps of 40 launches, 50 µs apart, that take turns on the streams or devices. A wait ends
    each step, ``wake_us`` or little more after the work for which it waits: of stream 7, or of all.
    """
    chance = random.Random(1)
    program = Program()
    now = BEGIN_US
    free: dict[tuple[int, int], float] = collections.defaultdict(float)
    for number in range(8):
        began = now
        for index in range(40):
            program.span("cpu_op", "aten::mul", start=now, length_us=40)
            place = (index % devices, 7 + index % streams)
            start = max(free[place] + 1, now + 10 + LATENCY_US + chance.random())
            program.launch(
                called=now + 10, starts=start, length_us=device_us, pid=place[0], tid=place[1]
            )
            free[place] = start + device_us
            now += 50
        if wait:
            awaited = max(free.values()) if "Device" in wait else free[0, 7]
            end = max(now + 2, awaited + wake_us + chance.random())
            program.call(wait, start=now, length_us=end - now)
            now = end
        program.step(number, start=began, length_us=now - began)
    return program.events


def as_shown(events: list[Event], shown_at: ShownAt) -> list[Event]:
    """The events with the times of device work as the clocks of the devices show them."""
    shown = []
    for event in events:
        if event["cat"] == "kernel":
            start = shown_at(event["pid"], event["ts"])
            end = shown_at(event["pid"], event["ts"] + event["dur"])
            event = event | {"ts": start, "dur": end - start}
        shown.append(event)
    return shown


def offset(late_us: float) -> ShownAt:
    return lambda device, at: at + late_us


def drift(ppm: float, late_us: float = 0.0) -> ShownAt:
    return lambda device, at: at + late_us + 1e-6 * ppm * (at - BEGIN_US)


def jump(late_us: float) -> ShownAt:
    """A clock that jumps in the fifth of the eight steps."""
    return lambda device, at: at + (late_us if at > BEGIN_US + 9000 else 0)


def of_one_device(late_us: float) -> ShownAt:
    return lambda device, at: at + (late_us if device == 1 else 0)


SIGNED_US = [
    sign * late_us for late_us, sign in itertools.product((1, 5, 30, 1000, 10_000), (1, -1))
]
CLOCKS: dict[str, ShownAt] = (
    {f"offset {late_us}": offset(late_us) for late_us in SIGNED_US}
    | {f"drift {ppm}": drift(ppm) for ppm in (10, -10, 500, -500)}
    | {f"drift {ppm} and late": drift(ppm, 50) for ppm in (100, -100)}
    | {f"jump {late_us}": jump(late_us) for late_us in SIGNED_US}
)
PROGRAMS: dict[str, dict[str, Any]] = {
    "host": {"device_us": 5},
    "device": {"device_us": 90},
    "device, the host sleeps in waits": {"device_us": 90, "wake_us": 60},
    "host, no wait": {"device_us": 5, "wait": ""},
    "two streams": {"device_us": 170, "streams": 2, "wait": "cudaStreamSynchronize"},
    "two devices": {"device_us": 170, "devices": 2},
}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_clocks_that_differ_change_no_verdict(program: str, clock: str, tmp_path: Path) -> None:
    events = steps_of(**PROGRAMS[program])
    bound = explained(tmp_path, events).verdict.kind
    found = explained(tmp_path, as_shown(events, CLOCKS[clock]))
    assert found.verdict.kind in (bound, "unclear")
    if found.verdict.kind == "unclear":
        assert found.verdict.sentences
    check_latency(found)


def check_latency(found: Explanation) -> None:
    """A latency is right but for the few µs that clocks can differ unseen; or it comes with a
    word.
    """
    delays = found.launch_delays
    assert delays is not None
    if delays.latency_ns is None:
        return
    is_right = abs(delays.latency_ns - 1e3 * (LATENCY_US + 0.5)) < 5100
    assert is_right or delays.clocks == "unchecked"
    # A latency that almost no launch pays is in the file, and not in words.
    if delays.clocks == "unchecked" and "launch-latency" in said(found):
        assert "latency-with-unchecked-clocks" in said(found)


@pytest.mark.parametrize("late_us", [30, 1000, -30, -1000])
def test_an_offset_is_corrected_where_waits_and_launches_show_it(
    late_us: float, tmp_path: Path
) -> None:
    events = as_shown(steps_of(device_us=90), offset(late_us))
    clocks = read_trace_file(kineto(tmp_path / "t.json", events)).recording.clocks
    assert clocks.late_ns == pytest.approx(1e3 * late_us, abs=6000)
    assert clocks.agreement == "apart"
    least_ns, most_ns = clocks.bounds
    assert least_ns < 1e3 * late_us < most_ns


def test_each_device_has_a_clock_of_its_own(tmp_path: Path) -> None:
    """The clock of device 1 is early, that of device 0 is right."""
    events = as_shown(steps_of(device_us=40, devices=2), of_one_device(-500))
    path = kineto(tmp_path / "t.json", events)
    trace = read_trace_file(path)
    of_0, of_1 = trace.recording.clocks_of_devices
    assert of_0.late_ns == 0
    assert of_1.late_ns == pytest.approx(-500_000, abs=20_000)
    assert said(explained(tmp_path, events))["clock-of-one-device-apart"].values["device"] == "1"


def test_a_latency_with_a_corrected_clock_has_bounds(tmp_path: Path) -> None:
    events = as_shown(steps_of(device_us=90), offset(100))
    found = explained(tmp_path, events)
    delays = found.launch_delays
    assert delays is not None
    assert delays.latency_ns is None
    told = by_code([delays.reason])["latency-between-bounds-of-clocks"].values
    shortest_ns, longest_ns = told["shortest_ns"], told["longest_ns"]
    assert isinstance(shortest_ns, float)
    assert isinstance(longest_ns, float)
    assert shortest_ns <= 1e3 * LATENCY_US <= longest_ns


def test_a_recorded_wait_of_one_stream_shows_a_late_clock(tmp_path: Path) -> None:
    """With several streams a wait bounds the clock only where the recording tells its stream."""
    events = steps_of(device_us=170, streams=2, wait="cudaStreamSynchronize")
    told = []
    for event in events:
        if event["name"] == "cudaStreamSynchronize":
            arguments = {"cuda_sync_kind": "Stream Sync", "device": 0, "stream": 7}
            sync = {"cat": "cuda_sync", "pid": 0, "args": event["args"] | arguments}
            told.append(event | sync)
    shown = as_shown([*events, *told], offset(30))
    clocks = read_trace_file(kineto(tmp_path / "t.json", shown)).recording.clocks
    assert clocks.late_ns == pytest.approx(30_000, abs=6000)


@pytest.mark.parametrize(
    ("call", "copy"),
    [
        ("cudaMemcpy", "Memcpy DtoH (Device -> Pinned)"),
        ("hipMemcpyWithStream", "Memcpy HtoD (Host -> Device)"),
    ],
)
def test_a_blocking_copy_shows_a_late_clock(call: str, copy: str, tmp_path: Path) -> None:
    """Such a call returns when the copy is done, as in programs of C++ without another wait."""
    program = Program()
    program.step(1, start=0, length_us=5000)
    for index in range(10):
        at = 400.0 * index
        program.launch(called=at, starts=at + 106, length_us=100)
        program.launch(
            called=at + 10,
            starts=at + 207,
            length_us=10,
            kernel=copy,
            category="gpu_memcpy",
            call=call,
            call_us=110,
        )
    clocks = read_trace_file(kineto(tmp_path / "t.json", program.events)).recording.clocks
    assert clocks.late_ns == pytest.approx(100_000, abs=5000)
