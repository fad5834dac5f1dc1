"""Where the time of devices goes: computing, collectives, copies, fills and idling."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from overhead.explaining.record import save_explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.trace_file import explain_traces
from overhead.traces.device_split import TimeSplit, device_split, split_times
from overhead.traces.trace import DeviceWork, StepTrace, Trace
from tests.traces.test_trace_faults import (
    ALL_REDUCE,
    Event,
    Program,
    explained,
    rank_files,
    said,
    steps_taken,
    usual,
    waiting,
)

NAMES = {
    "compute": "gemm",
    "collective": ALL_REDUCE,
    "copy": "Memcpy HtoD (Pinned -> Device)",
    "fill": "Memset (Device)",
}
ORDER = ("compute", "collective", "copy", "fill")


def work(kind: str, start: float, end: float, stream: str = "0:7") -> DeviceWork:
    return DeviceWork(NAMES[kind], stream, start, end)


def one_step(*pieces: DeviceWork, length: float = 100.0) -> Trace:
    return Trace([StepTrace(0.0, length, device=pieces)])


def parts(row: TimeSplit) -> dict[str, float]:
    return {
        "compute": row.compute,
        "collective": row.collective,
        "waiting": row.waiting,
        "copy": row.copy,
        "fill": row.fill,
        "idle": row.idle,
    }


def test_a_moment_counts_as_computing_else_as_a_collective_else_as_a_copy_or_fill() -> None:
    split = device_split(
        one_step(
            work("compute", 10, 30),
            work("collective", 20, 50, "0:8"),
            work("copy", 40, 60, "0:9"),
            work("fill", 55, 65, "0:10"),
        )
    )
    (device,) = split.devices
    assert parts(device) == {
        "compute": 20,
        "collective": 20,
        "waiting": 0,
        "copy": 10,
        "fill": 5,
        "idle": 45,
    }
    assert device.collective_overlapped == 10
    assert (device.copy_overlapped, device.fill_overlapped) == (10, 5)
    streams = {row.stream: row.busy for row in split.rows if row.stream}
    assert streams == {"7": 20, "8": 30, "9": 20, "10": 10}


def test_one_stream_needs_no_row_of_its_own() -> None:
    split = device_split(one_step(work("compute", 10, 30), work("copy", 30, 40)))
    assert [(row.device, row.stream) for row in split.rows] == [("0", "")]


def test_a_known_wait_is_no_exchange() -> None:
    collective = work("collective", 20, 80)
    trace = one_step(work("compute", 10, 30, "0:8"), collective)
    (device,) = device_split(trace, {collective: 50.0}).devices
    assert device.compute == 20
    assert device.waiting == 40, "from 30, when nothing computes any more, until 70"
    assert device.collective == 10
    assert device.collective_overlapped == 10, "the wait from 20 to 30, beside computing"


def made(seed: int) -> Trace:
    """Steps of random length with random work on two devices and some streams; some of it runs on
    after its step, and some steps lie apart.
    """
    chance = random.Random(seed)
    steps = []
    now = 1000.0
    for number in range(6):
        length = chance.uniform(50, 200)
        pieces = []
        for _ in range(20):
            start = now + chance.uniform(0, 1.2 * length)
            stream = f"{chance.randrange(2)}:{chance.randrange(3)}"
            kind = chance.choice(ORDER)
            pieces.append(work(kind, start, start + chance.uniform(0, 20), stream))
        steps.append(StepTrace(now, now + length, device=pieces, number=number))
        now += length + chance.choice([0.0, 0.0, 60.0])
    return Trace(steps)


def sampled(trace: Trace, device: str, stream: str, samples: int = 20_000) -> dict[str, float]:
    """The parts of a row, counted at moments of time: independent of all sorting."""
    times = split_times(trace.steps)
    chance = random.Random(1)
    pieces: list[DeviceWork] = []
    for step in trace.steps:
        for piece in step.device:
            if piece.device == device and stream in ("", piece.stream.partition(":")[2]):
                pieces.append(piece)
    found = dict.fromkeys([*ORDER, "idle"], 0)
    begin, end = times.ranges[0][0], times.ranges[-1][1]
    hits = 0
    for _ in range(samples):
        moment = chance.uniform(begin, end)
        if not any(first <= moment < last for first, last in times.ranges):
            continue
        hits += 1
        running = {piece.kind for piece in pieces if piece.start <= moment < piece.end}
        first = next((kind for kind in ORDER if kind in running), "idle")
        found[first] += 1
    whole = sum(last - first for first, last in times.ranges) / times.steps
    return {kind: count / hits * whole for kind, count in found.items()}


@pytest.mark.parametrize("seed", range(3))
def test_the_parts_are_those_that_samples_of_time_find(seed: int) -> None:
    trace = made(seed)
    split = device_split(trace)
    assert {row.device for row in split.devices} == {"0", "1"}
    for row in split.rows:
        assert sum(parts(row).values()) == pytest.approx(row.step), "the parts are the whole"
        for kind, ns in sampled(trace, row.device, row.stream).items():
            assert parts(row)[kind] == pytest.approx(ns, abs=0.02 * row.step)


def test_work_that_is_left_after_the_last_step_is_no_idle_time() -> None:
    """Each of three steps launches a kernel at its end, which runs during the next one."""
    steps = []
    for number in range(3):
        start = 10_000.0 * number
        kernel = work("compute", start + 10_000, start + 19_000)
        steps.append(StepTrace(start, start + 10_000, device=[kernel]))
    (device,) = device_split(Trace(steps)).devices
    assert device.step == 10_000
    assert device.idle == pytest.approx(1000)


def test_time_between_marked_steps_is_nobodys_idle_time() -> None:
    steps = []
    for number in range(4):
        start = 1000.0 * number
        steps.append(StepTrace(start, start + 100, device=[work("compute", start, start + 60)]))
    (device,) = device_split(Trace(steps)).devices
    assert (device.step, device.compute, device.idle) == pytest.approx((100, 60, 40))


def test_work_that_no_recorded_call_issued_keeps_the_device_busy(tmp_path: Path) -> None:
    events = usual(host_us=50, device_us=25)
    kernel = next(event for event in events if event["cat"] == "kernel")
    lost = kernel | {"args": {}, "tid": 8, "ts": kernel["ts"] + 700.0, "dur": 10.0}
    without = explained(tmp_path, events).device_time[0].idle_ns
    found = explained(tmp_path, [*events, lost])
    assert found.device_time[0].idle_ns < without


def test_many_pieces_of_work_take_seconds() -> None:
    pieces = []
    for number in range(200_000):
        start = 10.0 * number
        pieces.append(DeviceWork("gemm", f"0:{number % 4}", start, start + 12))
    step = StepTrace(0.0, 2e6, device=pieces)
    began = time.process_time()
    (device,) = device_split(Trace([step])).devices
    assert time.process_time() - began < 10
    assert device.busy == pytest.approx(2e6 + 2)


def test_the_split_is_in_the_file_and_in_the_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = explained(tmp_path, usual(host_us=50, device_us=5))
    (row,) = found.device_time
    assert row.device == "0"
    assert row.waiting_ns is None
    assert row.compute_ns == pytest.approx(50e3)
    assert row.compute_ns + row.idle_ns == pytest.approx(row.step_ns)
    save_explanation(tmp_path / "out.json", found)
    assert read_explanation(tmp_path / "out.json") == found


def test_the_waits_of_several_ranks_are_in_the_split(tmp_path: Path) -> None:
    paths = rank_files(tmp_path, [waiting(late=late, kernel=ALL_REDUCE) for late in (False, True)])
    alone, *_ = explain_traces(paths[:1]).device_time
    assert alone.collective_ns == pytest.approx(8.6e6)
    assert alone.waiting_ns is None
    both, *_ = explain_traces(paths).device_time
    assert both.compute_ns == pytest.approx(1e6)
    assert both.collective_ns == pytest.approx(0.06e6)
    assert both.waiting_ns == pytest.approx(8.54e6)


def exchanging(host_us: float, wait_us: float, exchange_us: float = 100) -> list[Event]:
    """Steps of 500 µs of computing and a collective, then a wait of the host for both."""
    program = Program()
    now = 0.0
    for number in range(4):
        program.span("cpu_op", "layer", start=now + 1, length_us=host_us)
        program.launch(called=now + 5, starts=now + 10, length_us=500)
        collective_us = wait_us + exchange_us
        program.launch(
            called=now + 10, starts=now + 511, length_us=collective_us, kernel=ALL_REDUCE
        )
        end = max(now + host_us + 5, now + 515 + collective_us)
        program.call(
            "cudaDeviceSynchronize", start=now + host_us + 2, length_us=end - now - host_us - 2
        )
        program.step(number, start=now, length_us=end - now)
        now = end
    return program.events


@pytest.mark.parametrize(
    ("host_us", "wait_us", "kind"),
    [(30, 3000, "ranks"), (30, 50, "device"), (5000, 3000, "host")],
    ids=["waits", "computes", "is slow on the host"],
)
def test_a_rank_that_waits_is_not_bound_by_its_device(
    host_us: float, wait_us: float, kind: str, tmp_path: Path
) -> None:
    files = [exchanging(host_us, wait_us), exchanging(host_us, 0)]
    found = explain_traces(rank_files(tmp_path, files))
    assert found.verdict.kind == kind
    if kind == "ranks":
        bound = said(found)["bound-by-ranks"].values
        assert bound["step_ns"] == pytest.approx((511 + wait_us + 100) * 1e3, rel=0.05)
        assert bound["without_waits_ns"] == pytest.approx(611e3, rel=0.05)


@pytest.mark.parametrize(
    ("host_us", "if_waiting", "if_exchange"),
    [(30, "ranks", "device"), (2800, "host", "mixed")],
)
def test_one_rank_alone_tells_what_bounds_it_in_either_case(
    host_us: float, if_waiting: str, if_exchange: str, tmp_path: Path
) -> None:
    found = explained(tmp_path, exchanging(host_us, 2500))
    assert found.verdict.kind == "unclear"
    known = said(found)["no-verdict-of-one-rank"].values
    assert (known["bound_if_waiting"], known["bound_if_exchange"]) == (if_waiting, if_exchange)


def test_waits_in_few_steps_are_no_device_work_of_the_others(tmp_path: Path) -> None:
    """In one step of eight rank 0 waits 300 ms for rank 1; in the others nobody waits."""

    def rank(wait_us: float) -> list[Event]:
        program = Program()
        now = 0.0
        for number in range(8):
            collective_us = 50 + (wait_us if number == 5 else 0)
            program.span("cpu_op", "layer", start=now + 1, length_us=30)
            program.launch(called=now + 5, starts=now + 10, length_us=5000)
            program.launch(
                called=now + 10, starts=now + 5011, length_us=collective_us, kernel=ALL_REDUCE
            )
            end = now + 5016 + collective_us
            program.call("cudaDeviceSynchronize", start=now + 40, length_us=end - now - 40)
            program.step(number, start=now, length_us=end - now)
            now = end
        return program.events

    paths = rank_files(tmp_path, [rank(300_000), rank(0)])
    both = explain_traces(paths)
    assert both.verdict.kind == "unclear"
    waits = said(both)["steps-differ-in-waits"].values
    assert waits["waiting_ns"] == pytest.approx(300e6 / 7, rel=0.02), "the first step is left out"
    late = said(both)["rank-is-late-at-times"].values
    assert (late["late_steps"], late["steps"]) == (1, 8)
    alone = explain_traces(paths[:1])
    assert alone.verdict.kind == "device"
    taken = steps_taken(alone)
    assert taken.slow == 1, "without the other rank that step is told apart"
    assert taken.slow_longest_ns == pytest.approx(305e6, rel=0.01)
    assert explain_traces(paths[1:]).verdict.kind == "device"


def test_of_two_devices_that_both_work_the_busier_one_is_named(tmp_path: Path) -> None:
    program = Program()
    for number in range(4):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "layer", start=start, length_us=990)
        program.launch(called=start + 1, starts=start + 10, length_us=400, pid=0)
        program.launch(called=start + 2, starts=start + 10, length_us=600, pid=1)
    found = explained(tmp_path, program.events)
    told = said(found)["several-devices"].values
    assert told["device"] == "1"
    assert told["busy"] == pytest.approx(0.6)
    assert [row.idle_ns for row in found.device_time] == pytest.approx([600e3, 400e3])
