"""Files that are no traces which overhead reads: each is named, in one line with what to do."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import sqlite3
import stat
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explaining.trace_file import explain_traces
from overhead.results import codes_of
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Program, explained, said, usual
from tests.traces.test_trace_file import kineto, nsys


def code_of_refusal(path: Path) -> str:
    with pytest.raises(BadFile) as refused:
        read_trace_file(path)
    codes = codes_of(refused.value.why) - {"about"}
    assert len(codes) == 1
    return next(iter(codes))


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("trace.json"))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("trace.json", "{}")
    return packed.getvalue()


def chrome(**event: object) -> bytes:
    """A trace in Chrome's format with one event."""
    whole = {"ph": "X", "name": "work", "ts": 1, "dur": 2, "pid": 1, "tid": 1} | event
    return json.dumps({"traceEvents": [whole]}).encode()


CONTENTS = {
    "file-is-empty": b" \n",
    "file-is-lfs-pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 5\n",
    "file-is-tar": tar(),
    "file-is-zip": zipped(),
    "file-is-packed": bz2.compress(b"{}"),
    "file-is-page": b"<!DOCTYPE html>\n<html>",
    "file-is-xplane": b"\n\x9d\xb2\x08\x12\x0e/host:metadata\x22\x93\x07",
    "file-is-nsight-compute": b"NVR\0\x10\x00\x00\x00",
    "file-is-nsys-other-export": b"\x89HDF\r\n\x1a\n",
    "file-is-pickle": pickle.dumps({"segments": []}),
    "file-is-perfetto": b"\n\x10\x08\x01\x12\x0c\x00\x00",
    "file-is-table": b'"Kind","Agent_Id","Kernel_Name","Correlation_Id"\n"KERNEL",1,"k",2\n',
    "file-is-go-trace": b"go 1.22 trace\x00\x00\x00",
    "file-is-binary": b"\x7fELF\x02\x01\x01\x00",
    "file-is-rocprofv3": b'{"rocprofiler-sdk-tool": [{"metadata": {}}]}',
    "file-is-execution-trace": b'{"schema": "1.0.1", "pid": 1, "nodes": []}',
    "file-is-memory-snapshot": b'{"segments": [], "device_traces": []}',
    "file-is-memory-timeline": b"[[-1, 1, 37888, 7], [-1, 1, 512, 7]]",
    "file-is-nsys-json": b'{"data": ["x"]}\n{"Type": 48, "CudaEvent": {}}\n',
    "file-is-profile-of-functions": b'{"$schema": "https://www.speedscope.app/x", "profiles": []}',
    "file-is-trtexec": b'[{"count": 100}, {"name": "conv1", "averageMs": 0.01}]',
    "file-is-onnx-runtime": chrome(cat="Session", name="model_loading_uri"),
    "json-is-no-trace": b"{}",
    "json-has-other-keys": b'{"aten::add": []}',
    "json-nested-too-deep": b'{"traceEvents":' + 100_000 * b'{"a":',
    "json-without-events": b'{"traceEvents": []}',
    "file-is-text": b"a text",
    "file-is-explanation": b'{"format": "overhead-explain", "version": 1}',
    "json-broken": b'{"traceEvents": [oops]}',
    "file-is-ascend": chrome(cat="cpu_op", args={"arrow": "async_npu"}).replace(
        b'"cpu_op"', b'"async_npu"'
    ),
    "file-is-unitrace": chrome(cat="gpu_op"),
    "file-is-old-autograd": chrome(pid="CPU functions"),
    "file-is-rocprof": chrome(args={"BeginNs": "1"}),
    "file-is-xprof": chrome(args={"name": "/host:CPU"}),
    "file-is-tensorflow": chrome(cat="Op"),
    "file-is-browser": chrome(cat="devtools.timeline"),
    "events-without-categories": chrome(),
    "events-of-other-categories": chrome(cat="toplevel"),
}


@pytest.mark.parametrize("code", CONTENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_file_of_another_kind_is_named_by_its_content(
    code: str, packed: bool, tmp_path: Path
) -> None:
    content = CONTENTS[code]
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert code_of_refusal(path) == code


def test_a_refusal_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    for content in CONTENTS.values():
        path.write_bytes(content)
        assert main(["explain", "--trace", str(path)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert str(path) in said


def test_a_folder_is_refused_with_the_traces_in_it(tmp_path: Path) -> None:
    assert code_of_refusal(tmp_path) == "file-is-folder"
    kineto(tmp_path / "rank0.json", usual())
    assert code_of_refusal(tmp_path) == "file-is-folder-with-traces"


@pytest.mark.parametrize(
    ("tables", "code"),
    [
        (["rocpd_kernel_dispatch"], "database-is-rocpd"),
        (["CUPTI_ACTIVITY_KIND_MARKER", "CUPTI_ACTIVITY_KIND_KERNEL"], "database-is-nvprof"),
        (["StringIds", "ThreadNames"], "database-without-device-tables"),
        (["CUPTI_ACTIVITY_KIND_RUNTIME"], "database-without-names"),
        (["users"], "database-of-another-program"),
        ([], "database-of-another-program"),
    ],
)
def test_a_database_of_another_kind_is_named(
    tables: Sequence[str], code: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("PRAGMA user_version = 1")  # so that the file has a header
        for table in tables:
            base.execute(f"CREATE TABLE {table} (start INT, end INT)")
    base.close()
    assert code_of_refusal(path) == code


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    path.write_bytes(b"SQLite format 3\0" + 5000 * b"x")
    assert code_of_refusal(path) == "database-is-damaged"


@pytest.mark.parametrize("end", [b"garbage", b"\x1f\x8b\x08\x00garbage garbage garbage"])
def test_a_damaged_packed_file_is_refused(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(gzip.compress(b"[") + end)
    assert code_of_refusal(path) == "packed-file-is-damaged"


@pytest.mark.skipif(sys.platform == "win32", reason="a program of the shell")
@pytest.mark.parametrize("works", [True, False])
def test_a_report_is_exported_where_nsys_is_installed(
    works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = nsys(tmp_path / "whole.sqlite", usual())
    folder = tmp_path / "reports"
    folder.mkdir()
    report = folder / "r.nsys-rep"
    report.write_bytes(b"a report")
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    # A stand-in that "exports" the database above: its sixth word is the output.
    program = programs / "nsys"
    action = f'/bin/cp {database} "$5"' if works else "echo no licence >&2; exit 1"
    program.write_text(f"#!/bin/sh\n{action}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    if works:
        found = read_trace_file(report)
        assert len(found.steps) == 6
        assert found.recording.exported
    else:
        assert code_of_refusal(report) == "report-export-failed"
    assert [each.name for each in folder.iterdir()] == ["r.nsys-rep"]


def test_a_report_that_cannot_be_exported_here_is_refused_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    report = tmp_path / "r.nsys-rep"
    report.write_bytes(b"a report")
    assert code_of_refusal(report) == "report-not-exported"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_trace_with_a_mark_of_its_encoding_is_read(encoding: str, tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    path.write_text(path.read_text("utf-8"), encoding)
    assert len(read_trace_file(path).steps) == 6


@pytest.mark.parametrize("maker", ["mlu", "gcu", "musa"])
def test_categories_of_other_makers_are_read(maker: str, tmp_path: Path) -> None:
    events = []
    for event in usual():
        category = event["cat"].replace("cuda_runtime", f"{maker}_runtime")
        events.append(event | {"cat": category})
    assert explained(tmp_path, events).verdict.kind == "host"


def test_device_work_that_is_not_read_is_said(tmp_path: Path) -> None:
    """MTIA's has no number of a call."""
    program = Program()
    for step in range(4):
        start = 1e6 + 1000 * step
        program.step(step, start=start, length_us=1000)
        program.span("cpu_op", "aten::mm", start=start, length_us=900)
        program.span("mtia_ccp_events", "dma", start=start + 100, length_us=50, pid=9)
    found = explained(tmp_path, program.events)
    assert said(found)["other-device-not-read"].values["category"] == "mtia_ccp_events"
    of_a_processor = {"processor-only", "no-device-work-to-see", "kernels-inside-operations"}
    assert not of_a_processor & set(said(found))
    # What its calls do is not known, which is not the same as none.
    counts = found.per_step
    for count in (counts.launches, counts.copies, counts.synchronisations):
        assert count.value is None
        assert codes_of(count.reason) == {"calls-of-other-device"}


def test_ranges_of_nsight_alone_say_how_to_record_calls_of_cuda(tmp_path: Path) -> None:
    drop = ["DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"]
    found = explain_traces([nsys(tmp_path / "t.sqlite", usual(), *drop)])
    assert "trace-cuda-too" in said(found)


@pytest.mark.parametrize(
    ("statements", "codes"),
    [
        (
            ["CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"],
            {"trace-without-device-work"},
        ),
        (["CUPTI_ACTIVITY_KIND_KERNEL"], {"export-of-launches-alone"}),
        (["CUPTI_ACTIVITY_KIND_RUNTIME"], {"trace-of-one-half"}),
    ],
)
def test_a_half_of_an_export_gets_advice_for_nsight(
    statements: Sequence[str], codes: set[str], tmp_path: Path
) -> None:
    path = nsys(tmp_path / "t.sqlite", usual(), *[f"DELETE FROM {table}" for table in statements])
    with pytest.raises(BadFile) as refused:
        read_trace_file(path)
    found = codes_of(refused.value.why)
    assert found >= {*codes, "record-with-nsight"}
    assert "record-with-pytorch" not in found


def test_texts_in_columns_of_numbers_cost_their_rows_alone(tmp_path: Path) -> None:
    changes = [
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = CAST(start AS TEXT)",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'abc' WHERE rowid = 9",
        "UPDATE NVTX_EVENTS SET end = 'soon' WHERE rowid = 9",
        "UPDATE TARGET_INFO_GPU SET name = NULL",
    ]
    path = nsys(tmp_path / "t.sqlite", usual(), *changes)
    trace = read_trace_file(path)
    assert (trace.recording.unreadable, trace.device) == (2, "a device")
    assert len(trace.work) == 59


def test_a_field_of_another_kind_costs_not_the_events(tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual(), deviceProperties="x", distributedInfo=[7])
    assert len(read_trace_file(path).steps) == 6
    path = kineto(tmp_path / "t.json", usual(), deviceProperties=[7, {"name": "a"}])
    assert read_trace_file(path).device == "a"


@pytest.mark.parametrize("half", [chr(0xD800), chr(0xDC80)])
def test_names_with_half_a_character_are_read(half: str, tmp_path: Path) -> None:
    """Python writes so the bytes of a path that are no text."""
    events = [event | {"name": f"{event['name']} {half}"} for event in usual(wait=False)]
    trace = read_trace_file(kineto(tmp_path / "t.json", events))
    assert (trace.recording.unreadable, trace.recording.mended) == (0, len(events))
    assert len(trace.work) == 60


def test_an_event_that_is_nested_without_an_end_costs_itself_alone(tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    deep = 100_000 * "[" + 100_000 * "]"
    path.write_text(path.read_text().replace('"args": {}', f'"args": {{"a": {deep}}}', 1))
    trace = read_trace_file(path)
    assert (len(trace.steps), trace.recording.unreadable) == (6, 1)


@pytest.mark.parametrize("option", ["--out", "--html", "--chrome"])
@pytest.mark.parametrize("folder", [".", "/", ".."])
def test_a_folder_is_no_output(
    option: str, folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", usual())
    assert main(["explain", "--trace", str(path), option, folder]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_step_beside_a_trace_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As by ``--json FILE``: that option takes no file."""
    path = kineto(tmp_path / "t.json", usual())
    assert main(["explain", "--trace", str(path), "--json", "x.json"]) == 2
    assert "x.json" in capsys.readouterr().err


def test_a_trace_of_counters_is_refused(tmp_path: Path) -> None:
    events = []
    for event in usual():
        category = event["cat"].replace("kernel", "cuda_profiler_range")
        events.append(event | {"cat": category, "args": {}})
    path = kineto(tmp_path / "t.json", events)
    assert code_of_refusal(path) == "trace-of-profiler-range"
