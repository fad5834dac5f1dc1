"""``overhead explain --trace``: files of PyTorch and Nsight Systems, ranks, the replayed step, and
hostile files.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explaining.launch_delays import launch_delays
from overhead.explaining.record import BETWEEN, save_explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.trace_file import explain_traces, host_times
from overhead.explaining.verdict import UNCHECKED
from overhead.results import Reason, Why, codes_of
from overhead.traces import nsys_export
from overhead.traces.formats import read_trace_file
from tests.fakes.profiled_program import Launch, Parts, Python, Read, SimulatedDevice, Wait

DEVICE = SimulatedDevice()
HOST_BOUND: Parts = [Python(20_000), *[Launch(20_000, 2000)] * 20]
DEVICE_BOUND: Parts = [Launch(4000, 30_000)] * 20


def codes(reasons: Iterable[Why]) -> set[str]:
    return {code for reason in reasons for code in codes_of(reason)}


def events_of(
    parts: Parts, steps: int = 5, device: SimulatedDevice = DEVICE
) -> list[dict[str, Any]]:
    """What PyTorch writes for some steps of this program; the last step waits for the device."""
    events = device.run([*[parts] * steps, [*parts, Wait()]]).events
    return [
        event | {"name": event["name"].replace("overhead step ", "ProfilerStep#")}
        for event in events
    ]


def kineto(path: Path, events: Sequence[dict[str, Any]], **more: Any) -> Path:
    text = json.dumps(
        {"schemaVersion": 1, "deviceProperties": [{"name": "NVIDIA H100"}], "traceEvents": events}
        | more
    )
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def nsys(path: Path, events: Iterable[dict[str, Any]], *statements: str, process: int = 77) -> Path:
    """The same as a database. Another process has one kernel."""
    strings: dict[str, int] = {}
    own, other = process << 24, 99 << 24
    with sqlite3.connect(path) as base:
        base.executescript(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);CREATE TABLE"
            " TARGET_INFO_GPU (id INT, name TEXT);CREATE TABLE NVTX_EVENTS (start INT, end INT,"
            " eventType INT, text TEXT, globalTid INT, textId INT);CREATE TABLE"
            " CUPTI_ACTIVITY_KIND_RUNTIME (start INT, end INT, globalTid INT, correlationId INT,"
            " nameId INT);CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId"
            " INT, streamId INT, correlationId INT, globalPid INT, demangledName INT, shortName"
            " INT);CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT,"
            " streamId INT, correlationId INT, globalPid INT, copyKind INT, srcKind INT, dstKind"
            " INT, bytes INT);"
        )
        base.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100')")
        base.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (0, 5, 0, 7, 1, ?, 0, 0)", (other,)
        )
        base.execute(
            "INSERT INTO NVTX_EVENTS VALUES (0, 99000000, 59, 'epoch', ?, NULL)", (own + 3,)
        )
        for event in events:
            span = (int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000))
            number = event["args"].get("correlation", 0)
            name = event["name"].replace("ProfilerStep#", "step ")
            place = (*span, 0, event["tid"], number, own)
            row: tuple[Any, ...]
            if event["cat"] in ("cpu_op", "user_annotation"):
                base.execute(
                    "INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, NULL)", (*span, name, own + 3)
                )
            elif event["cat"] == "cuda_runtime":
                index = strings.setdefault(f"{name}_v7000", len(strings))
                row = (*span, own + 3, number, index)
                base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", row)
            elif event["cat"] == "kernel":
                index = strings.setdefault(name, len(strings))
                row = (*place, index, index)
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
            else:
                row = (*place, 2, 2, 0, 4)
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
        base.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(index, name) for name, index in strings.items()],
        )
        for statement in statements:
            base.execute(statement)
    base.close()
    return path


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.sqlite"])
@pytest.mark.parametrize(("parts", "bound"), [(HOST_BOUND, "host"), (DEVICE_BOUND, "device")])
def test_a_trace_is_bound_by_its_gaps_or_by_its_queue(
    name: str, parts: Parts, bound: str, tmp_path: Path
) -> None:
    path = (nsys if name == "t.sqlite" else kineto)(tmp_path / name, events_of(parts))
    found = explain_traces([path])
    assert (found.verdict.kind, found.replay.ok, found.replay.unchecked) == (bound, True, True)
    assert UNCHECKED in found.verdict.sentences
    assert found.profiled_steps == 6
    assert (found.per_step.launches.value, found.program.device) == (20, "NVIDIA H100")
    assert found.replay.ratio == pytest.approx(1, abs=0.03)
    assert {row.name for row in found.operations} == {"aten::add_", BETWEEN}
    delays = launch_delays(read_trace_file(path))
    own_ns = sum(delay.own for delay in delays)
    whole_ns = sum(delay.delay for delay in delays)
    assert (own_ns > 0.9 * whole_ns) == (bound == "device")
    if bound == "host":
        assert [each.latency for each in delays] == pytest.approx(
            len(delays) * [DEVICE.latency_ns + 1000]
        )


def test_a_database_gives_the_synchronisations_that_the_json_gives(tmp_path: Path) -> None:
    events = events_of([Launch(10_000, 10_000), Read(8000)] * 10)
    first, second = (
        explain_traces([make(tmp_path / name, events)])
        for make, name in ((kineto, "a.json"), (nsys, "b"))
    )
    assert first.per_step.synchronisations.value == second.per_step.synchronisations.value == 10
    assert first.verdict.kind == second.verdict.kind == "synchronisation"
    assert [row.process for row in second.processes] == ["77", "99"]
    assert [row.explained for row in second.processes] == [True, False]
    assert "one-process-read" in codes(second.verdict.sentences)
    assert "one-process-read" not in codes(first.verdict.sentences)


def test_a_database_without_ranges_is_one_step(tmp_path: Path) -> None:
    drop = ["DROP TABLE NVTX_EVENTS", "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY"]
    found = explain_traces([nsys(tmp_path / "t", events_of(DEVICE_BOUND), *drop)])
    assert (found.verdict.kind, found.profiled_steps) == ("device", 1)
    assert not {"own-python", "between-the-operations"} & codes(found.verdict.sentences), (
        "operations are not known"
    )
    assert (found.per_step.launches.value, found.per_step.synchronisations.value) == (120, 1)


@pytest.mark.parametrize(("factor", "kind"), [(1.05, "host"), (0.3, "unclear")])
def test_a_measured_time_checks_the_replay_of_a_trace(
    factor: float, kind: str, tmp_path: Path
) -> None:
    path = kineto(tmp_path / "t.json", events_of(HOST_BOUND))
    found = explain_traces([path], step_ms=factor * DEVICE.step_ns(HOST_BOUND) / 1e6)
    assert (found.verdict.kind, found.replay.unchecked, found.replay.ok) == (
        kind,
        False,
        kind == "host",
    )
    assert UNCHECKED not in found.verdict.sentences
    assert found.step.wall.value == pytest.approx(factor * DEVICE.step_ns(HOST_BOUND))


def test_the_cost_of_the_profiler_is_what_makes_the_replay_longer_than_the_measured_step(
    tmp_path: Path,
) -> None:
    path = kineto(
        tmp_path / "t.json", events_of(HOST_BOUND, device=SimulatedDevice(operation_cost_ns=4000))
    )
    cost_ns = host_times(read_trace_file(path), DEVICE.step_ns(HOST_BOUND)).cost.operation_ns
    assert cost_ns == pytest.approx(4000, rel=0.15)
    found = explain_traces([path], step_ms=DEVICE.step_ns(HOST_BOUND) / 1e6)
    assert (found.verdict.kind, found.replay.ok) == ("host", True)
    assert "cost-chosen-by-step-ms" in codes(found.verdict.sentences), (
        "what was chosen checks nothing"
    )


def test_a_trace_that_its_replay_does_not_explain_gets_no_verdict(tmp_path: Path) -> None:
    """The device works late, for no reason that is in the trace."""
    late = [
        event
        | {
            "ts": (
                event["ts"]
                + 3000 * (event["cat"] == "kernel" and event["args"]["correlation"] > 60)
            )
        }
        for event in events_of(HOST_BOUND)
    ]
    found = explain_traces([kineto(tmp_path / "t.json", late)])
    assert (found.verdict.kind, found.replay.ok) == ("unclear", False)


def test_steps_without_device_work_and_events_that_end_before_they_start_are_left_out(
    tmp_path: Path,
) -> None:
    events = events_of(HOST_BOUND)
    empty = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "ProfilerStep#99",
        "ts": 1e6,
        "dur": 1,
        "tid": 1,
    }
    found = explain_traces([kineto(tmp_path / "t.json", [*events, empty, events[0] | {"dur": -5}])])
    assert (found.profiled_steps, found.per_step.launches.value) == (6, 20)


def rank_file(path: Path, rank: int, host_ns: int, device_ns: int, waits_ns: int) -> Path:
    """Steps of ten kernels and one collective of a rank. ``waits_ns``: how long its kernel waits
    for the last rank.
    """
    parts: Parts = [
        *[Launch(host_ns, device_ns)] * 10,
        Launch(10_000, 20_000 + waits_ns, "nccl"),
        Wait(),
    ]
    events = events_of(parts)
    for event in events:
        if event["name"] == "kernel of nccl":
            event["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(args)"
    return kineto(path, events, distributedInfo={"rank": rank})


@pytest.mark.parametrize(
    ("late", "others", "more"),
    [
        ((40_000, 2000, 0), (20_000, 2000, 200_000), (200, 0)),
        ((5000, 60_000, 0), (5000, 40_000, 200_000), (0, 200)),
        ((20_000, 2000, 1000), (20_000, 2000, 1000), None),
        ((20_000, 2000, 0), (20_000, 2000, 200_000), (0, 0)),
    ],
    ids=["host", "device", "none", "unknown"],
)
def test_the_rank_for_which_the_others_wait_is_named_with_its_side(
    late: tuple[int, int, int],
    others: tuple[int, int, int],
    more: tuple[int, int] | None,
    tmp_path: Path,
) -> None:
    paths = [
        rank_file(tmp_path / f"{r}.json", r, *(late if r == 5 else others)) for r in (3, 4, 5, 6)
    ]
    found = explain_traces(paths)
    assert [row.rank for row in found.ranks] == ["3", "4", "5", "6"]
    last = found.verdict.sentences[-1]
    assert isinstance(last, Reason)
    assert (last.code == "rank-is-late") == (more is not None)
    if more is not None:
        assert last.values["rank"] == "5"
        assert last.values["waited_ns"] == pytest.approx(200e3)
        cause = last.values["cause"]
        assert isinstance(cause, Reason)
        host_us, device_us = more
        expected = {}
        if host_us:
            expected["host_ns"] = pytest.approx(1e3 * host_us)
        if device_us:
            expected["device_ns"] = pytest.approx(1e3 * device_us)
        assert cause.values == expected, "how much longer its host or its device works"
    waits = {row.rank: row.waits_ns for row in found.ranks}
    assert waits == {r: pytest.approx(others[2] - late[2] if r != "5" else 0) for r in "3456"}
    save_explanation(tmp_path / "out.json", found)
    assert read_explanation(tmp_path / "out.json") == found


def test_the_replayed_step_is_written_for_perfetto(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, chrome = (
        kineto(tmp_path / "t.json.gz", events_of([*DEVICE_BOUND, Read(8000)])),
        tmp_path / "replay.json",
    )
    assert main(["explain", "--trace", str(path), "--chrome", str(chrome), "--json"]) == 0
    capsys.readouterr()
    events = json.loads(chrome.read_bytes())["traceEvents"]
    tracks = {event["tid"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert set(tracks.values()) == {"host", "wait", "stream 0:7"}
    lengths_us: dict[str, list[float]] = {}
    for event in events:
        if event["ph"] == "X":
            lengths_us.setdefault(tracks[event["tid"]], []).append(event["dur"])
    assert sum(lengths_us["stream 0:7"]) == pytest.approx(20 * 30 + 1)
    assert len(lengths_us["wait"]) == 1
    depths = [event["args"]["pieces"] for event in events if event["ph"] == "C"]
    assert (min(depths), depths[-1]) == (0, 0)
    assert 10 < max(depths) <= 21


@pytest.mark.parametrize(
    "options",
    [[], ["step", "--trace", "t"], ["--trace", "t", "--arg", "a=1"], ["a.py:f", "--step-ms", "1"]]
    + [["--trace", "t", "--step-ms", text] for text in ("0", "-1", "nan", "inf")]
    + [["a.py:f", "--seconds", text] for text in ("0", "-3", "nan", "inf")]
    + [
        ["--trace", "t.json", "--out", "t.json"],
        ["--trace", "t.json", "--chrome", "a.json", "--out", "a.json"],
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *options]) == 2
    assert capsys.readouterr().err.count("\n") == 1


KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "k",
    "ts": 5,
    "dur": 1,
    "tid": 7,
    "args": {"correlation": 1},
}
LAUNCH = KERNEL | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": 1}
HOSTILE: dict[str, bytes] = {
    "nothing.json": b"",
    "nesting.json": b'{"traceEvents": ' + b"[" * 100_000,
    "nested-args.json": (
        b'{"traceEvents": [{"ph":"X","cat":"kernel","ts":1,"args":' + b'{"a":' * 100_000
    ),
    "huge.json": b'{"traceEvents": [{"ph":"X","cat":"kernel","ts":1e999}]}',
    "digits.json": (
        b'{"traceEvents": [{"ph":"X","cat":"kernel","ts":1,"args":{"correlation":'
        + b"9" * 9999
        + b"}}]}"
    ),
    "infinite.json": (
        json.dumps({"traceEvents": [KERNEL | {"args": {"correlation": 1e300 * 1e10}}]}).encode()
    ),
    "nan.json": b'{"traceEvents": [{"ph":"X","cat":"kernel","ts":NaN}]}',
    "lists.json": b'{"traceEvents": [{"name": [[[]]], "ts": {}}]}',
    "arguments.json": json.dumps([KERNEL | {"args": [1]}]).encode(),
    "no-times.json": json.dumps([KERNEL | {"ts": None}]).encode(),
    "host-only.json": json.dumps([LAUNCH]).encode(),
    "device-only.json": json.dumps([KERNEL]).encode(),
    "other-numbers.json": json.dumps([KERNEL, LAUNCH | {"args": {"correlation": 2}}]).encode(),
    "streams.json": json.dumps([LAUNCH, *(KERNEL | {"tid": tid} for tid in range(2000))]).encode(),
    "cut.json.gz": gzip.compress(os.urandom(5000))[:3000],
    "no-gzip.json.gz": b"traceEvents",
    "bomb.json.gz": gzip.compress(b" " * 50_000_000),
    "database": b"SQLite format 3\0" + os.urandom(5000),
    "cut-database": b"SQLite format 3\0",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_in_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(HOSTILE[name])
    began = time.monotonic()
    assert main(["explain", "--trace", str(path)]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"overhead: {path}: ")
    assert time.monotonic() - began < 5


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="a pipe stands for any file that is not regular"
)
def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing.json"):
        with pytest.raises(BadFile, match="^" + str(path)):
            explain_traces([path])


ENDLESS = (
    "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start FROM n"
)


def test_a_database_runs_no_view_and_no_long_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = [
        "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL",
        f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {ENDLESS}",
    ]
    with pytest.raises(BadFile) as refused:
        explain_traces([nsys(tmp_path / "view", events_of(HOST_BOUND), *view)])
    assert codes_of(refused.value.why) == {"export-of-launches-alone", "record-with-nsight"}
    wrong = [
        "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (a TEXT)",
    ]
    with pytest.raises(BadFile) as refused:
        explain_traces([nsys(tmp_path / "columns", events_of(HOST_BOUND), *wrong)])
    assert "much-work-without-call" in codes_of(refused.value.why)
    texts = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'text', end = x'00'"
    with pytest.raises(BadFile, match=str(tmp_path / "texts")):
        explain_traces([nsys(tmp_path / "texts", events_of(HOST_BOUND), texts)])
    monkeypatch.setattr(nsys_export, "_MOST_ROWS", 100)
    with pytest.raises(BadFile, match="100"):
        explain_traces([nsys(tmp_path / "rows", events_of(HOST_BOUND))])
    monkeypatch.setattr(nsys_export, "_MOST_ROWS", 10**9)
    monkeypatch.setattr(nsys_export, "_MOST_SECONDS", -1.0)
    with pytest.raises(BadFile, match="interrupted"):
        explain_traces([nsys(tmp_path / "slow", events_of(DEVICE_BOUND, steps=400))])


def test_a_database_is_not_written(tmp_path: Path) -> None:
    path = nsys(tmp_path / "t.sqlite", events_of(HOST_BOUND))
    before = path.read_bytes()
    explain_traces([path])
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (before, ["t.sqlite"])


def test_text_of_a_trace_reaches_no_terminal_as_control_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "\x1b]0;title\x07\x1b[2Jname\n\u202e<script>" + "x" * 5000
    events = [
        e | {"name": evil if e["cat"] in ("cpu_op", "kernel") else e["name"]}
        for e in events_of(HOST_BOUND)
    ]
    path = kineto(tmp_path / "t.json", events, deviceProperties=[{"name": evil}])
    chrome, html = tmp_path / "chrome.json", tmp_path / "page.html"
    assert (
        main(["explain", "--trace", str(path), "--chrome", str(chrome), "--html", str(html)]) == 0
    )
    for text in (capsys.readouterr().out, chrome.read_text(), html.read_text()):
        assert "name" in text
        assert not set("\x1b\x07\u202e") & set(text)
        assert "\\u001b" not in text
    assert "<script>x" not in html.read_text()


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_a_trace_of_the_processor_alone_is_explained(tmp_path: Path) -> None:
    import torch

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        torch.ones(9).sum()
        profile.step()
    profile.export_chrome_trace(str(tmp_path / "t.json.gz"))
    found = explain_traces([tmp_path / "t.json.gz"])
    assert found.program.device == ""
    assert "aten::sum" in {row.name for row in found.operations}
    assert codes(found.verdict.sentences) & {"processor-only", "processor-only-without-a-time"}
