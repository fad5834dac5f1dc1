"""The table of formats: a format of one's own is a reader and a line of the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.traces import formats
from overhead.traces.assembly import TraceSource, assemble
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.formats import TraceFormat, read_trace_file
from overhead.traces.step_choice import StepChoice
from overhead.traces.trace import Trace

HEADER = b"made-up trace"
STEPS = 4
STEP_NS = 100_000


def is_made_up(path: Path) -> bool:
    return path.is_file() and path.read_bytes().startswith(HEADER)


def read_made_up(path: Path, choice: StepChoice) -> Trace:
    """A file whose lines are: kind, name, start and end in ns, number."""
    events = []
    for line in path.read_text("utf-8").splitlines()[1:]:
        kind, name, start, end, number = line.split(",")
        event = TraceEvent(
            kind=EventKind[kind],
            name=name,
            start=float(start),
            end=float(end),
            thread="main",
            stream="0:7" if kind == "WORK" else "",
            correlation=int(number),
        )
        events.append(event)
    return assemble(events, TraceSource(device="A made-up device"), choice=choice)


def host_bound_lines() -> list[str]:
    """Steps of 100 µs, each with one launch of a kernel of 10 µs and a wait for it."""
    lines = []
    for step in range(STEPS):
        start = step * STEP_NS
        lines += [
            f"STEP,step {step},{start},{start + STEP_NS},0",
            f"OPERATION,add,{start + 1000},{start + 80_000},0",
            f"CALL,cudaLaunchKernel,{start + 70_000},{start + 75_000},{step + 1}",
            f"WORK,kernel,{start + 76_000},{start + 86_000},{step + 1}",
            f"CALL,cudaStreamSynchronize,{start + 81_000},{start + 90_000},0",
        ]
    return lines


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the made-up format, which the table has."""
    made_up_format = TraceFormat(is_made_up, read_made_up)
    monkeypatch.setattr(formats, "TRACE_FORMATS", [made_up_format, *formats.TRACE_FORMATS])
    path = tmp_path / "made_up.trace"
    path.write_text("\n".join([HEADER.decode(), *host_bound_lines()]), "utf-8")
    return path


def test_a_format_in_the_table_is_read_as_steps(made_up: Path) -> None:
    trace = read_trace_file(made_up)
    assert [step.number for step in trace.steps] == [0, 1, 2, 3]
    assert [step.end - step.start for step in trace.steps] == [STEP_NS] * STEPS
    first = trace.steps[0]
    assert [operation.name for operation in first.operations] == ["add"]
    assert [(work.name, work.start, work.end) for work in first.device] == [
        ("kernel", 76_000, 86_000)
    ]
    assert trace.device == "A made-up device"


def test_a_step_of_a_format_in_the_table_is_explained(
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--trace", str(made_up), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["program"]["device"] == "A made-up device"
    assert answer["profiled_steps"] == STEPS
    assert answer["per_step"]["launches"]["value"] == 1
    assert answer["verdict"]["kind"] == "host"


def test_a_file_that_no_other_format_claims_is_read_as_json(tmp_path: Path) -> None:
    path = tmp_path / "made_up.trace"
    path.write_bytes(HEADER)
    with pytest.raises(BadFile, match=str(path)):
        read_trace_file(path)
