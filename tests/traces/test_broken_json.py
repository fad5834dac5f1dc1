"""Traces whose JSON is not valid: what can be read is read, the rest is counted."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from overhead.errors import BadFile
from overhead.results import codes_of
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import Program, explained, said, usual
from tests.traces.test_trace_file import kineto

MARK = "@@"
"""Stands for what a writer puts into a name without escaping it."""


def broken(path: Path, text: str, indent: int | None = None, category: str = "cpu_op") -> Path:
    """A trace with one event more, whose name holds this text as it is."""
    named = Program().span(category, f"name {MARK} end", start=1e6 + 1, length_us=2)
    document = {"schemaVersion": 1, "traceEvents": [named, *usual()], "traceName": "t"}
    written = json.dumps(document, indent=indent)
    path.write_text(written.replace(MARK, text), "utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "text",
    ['{"device": "toy"}(12)', "C:\\Users\\me", "line\nbreak", "\x01", 'a", "b', "\\", "\\xff"],
)
def test_text_that_a_name_does_not_escape_costs_nothing(
    text: str, indent: int | None, tmp_path: Path
) -> None:
    path = broken(tmp_path / "t.json", text, indent)
    with pytest.raises(ValueError):
        json.loads(path.read_bytes())
    recording = read_trace_file(path).recording
    assert (recording.mended, recording.unreadable, recording.is_cut) == (1, 0, False)
    whole = read_trace_file(kineto(tmp_path / "whole.json", usual())).recording
    assert recording.launches == whole.launches == 60


@pytest.mark.parametrize("number", ["NaN", "-nan", "Infinity", "-inf"])
def test_numbers_that_json_does_not_know_are_read(number: str, tmp_path: Path) -> None:
    events = [event | {"args": event["args"] | {"occupancy": MARK}} for event in usual()]
    path = kineto(tmp_path / "t.json", events)
    path.write_text(path.read_text("utf-8").replace(f'"{MARK}"', number), "utf-8")
    recording = read_trace_file(path).recording
    assert (recording.mended, recording.unreadable) == (len(events), 0)


@pytest.mark.parametrize("end", [",]}", "]", "\n]", ",\n"])
def test_an_end_with_a_comma_or_without_brackets_is_read(end: str, tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    text = path.read_text("utf-8").removesuffix("]}")
    path.write_text(text + end, "utf-8")
    trace = read_trace_file(path)
    assert len(trace.steps) == 6
    assert trace.recording.unreadable == 0


def test_a_file_with_an_event_on_each_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(map(json.dumps, usual())), "utf-8")
    assert len(read_trace_file(path).steps) == 6


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_is_read_and_gets_no_verdict(packed: bool, tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    content = path.read_bytes()
    if packed:
        # Packed data of which a part is missing: without the last bytes.
        path.write_bytes(gzip.compress(content)[:-200])
    else:
        path.write_bytes(content[: len(content) // 2])
    trace = read_trace_file(path)
    assert trace.recording.is_cut
    from overhead.explaining.trace_file import explain_traces

    found = explain_traces([path])
    assert found.verdict.kind == "unclear"
    assert "file-is-cut" in said(found)


def test_events_that_cannot_be_mended_are_counted_and_cost_the_verdict(tmp_path: Path) -> None:
    path = kineto(tmp_path / "t.json", usual())
    # The argument of every second kernel loses its closing bracket, and a colon.
    damaged = re.sub(r'"kernel", "name"', '"kernel" "name"', path.read_text("utf-8"))
    path.write_text(damaged, "utf-8")
    with pytest.raises(BadFile) as refused:
        read_trace_file(path)
    assert codes_of(refused.value.why) >= {"trace-of-launches-alone"}

    few = path.read_text("utf-8").replace('"kernel" "name"', '"kernel", "name"', 59)
    path.write_text(few, "utf-8")
    recording = read_trace_file(path).recording
    assert (recording.unreadable, recording.launches_without_work) == (1, 1)


def test_what_was_mended_is_said(tmp_path: Path) -> None:
    from overhead.explaining.trace_file import explain_traces

    found = explain_traces([broken(tmp_path / "t.json", '"')])
    assert found.verdict.kind == explained(tmp_path, usual()).verdict.kind
    assert said(found)["events-mended"].values["events"] == 1


@pytest.mark.parametrize(
    "content",
    [
        b'{"traceEvents": [' + 200_000 * b"\n" + b"{",
        b'{"traceEvents": [' + 5_000 * b'{"name": "a" "name": "b"',
        b'{"traceEvents": [{"name": "' + 200_000 * b'"name": "',
        200_000 * b'{"ph":',
    ],
)
def test_hostile_text_is_refused_soon(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_bytes(content)
    with pytest.raises(BadFile):
        read_trace_file(path)
