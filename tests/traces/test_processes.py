"""Several processes in one file: which one is read, and whose the device work is."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explaining.record import Explanation
from overhead.explaining.trace_file import explain_traces
from overhead.traces.processes import process_named
from overhead.traces.step_choice import StepChoice
from tests.traces.test_trace_faults import Event, Program, said
from tests.traces.test_trace_file import DEVICE_BOUND, events_of, kineto, nsys


def program(
    pid: Any, device: Any, kernel_us: float, late_us: float = 0.0, first: int = 0
) -> list[Event]:
    """Three steps of four launches, each with a kernel of this length."""
    made = Program(pid=pid, device=device, number=first)
    for number in range(3):
        start = number * 10_000.0 + late_us
        made.step(number, start=start, length_us=10_000)
        made.span("cpu_op", "layer", start=start + 10, length_us=9900)
        for index in range(4):
            called = start + 20 + 1000 * index
            made.launch(called=called, starts=called + 10, length_us=kernel_us)
    return made.events


def read(tmp_path: Path, events: Sequence[Event], process: str = "") -> Explanation:
    return explain_traces([kineto(tmp_path / "t.json", events)], choice=StepChoice(process=process))


def work_us(found: Explanation) -> float:
    """Device work of a step, µs."""
    return (found.step.busy.value or 0.0) / 1e3


FILES = {
    "own numbers": [*program(1, 0, 50), *program(2, 1, 70, first=1000)],
    "own numbers on one device": [*program(1, 0, 50), *program(2, 0, 70, 500, first=1000)],
    "labels of ranks": [
        *program("[TP00] 1", "[TP00] 0", 50),
        *program("[TP01] 2", "[TP01] 0", 70, late_us=3),
    ],
    "a device each": [*program(1, 0, 50), *program(2, 1, 70)],
    "a device each, started one after the other": [
        *program(2, 1, 70, late_us=50_000),
        *program(1, 0, 50),
    ],
    "devices in another order": [*program(1, 5, 50, late_us=300), *program(2, 3, 70)],
    "one device, one after the other": [*program(1, 0, 50), *program(2, 0, 70, 500_000)],
    "one device, in turn": [*program(1, 0, 50), *program(2, 0, 70, late_us=500)],
}


@pytest.mark.parametrize("events", FILES.values(), ids=FILES)
@pytest.mark.parametrize(("process", "kernel_us"), [("1", 50), ("2", 70)])
def test_the_work_of_a_process_is_told_from_that_of_others(
    events: list[Event], process: str, kernel_us: float, tmp_path: Path
) -> None:
    shuffled = list(events)
    random.Random(1).shuffle(shuffled)
    found = read(tmp_path, shuffled, process)
    assert found.profiled_steps == 3
    assert found.per_step.launches.value == 4
    assert work_us(found) == pytest.approx(4 * kernel_us)
    times = {row.process.split()[-1]: row.device_ns for row in found.processes}
    assert times == pytest.approx({"1": 12 * 50e3, "2": 12 * 70e3})
    (explained,) = [row.process for row in found.processes if row.explained]
    assert explained.split()[-1] == process


@pytest.mark.parametrize("events", FILES.values(), ids=FILES)
def test_the_process_with_most_device_work_is_read_and_the_others_are_named(
    events: list[Event], tmp_path: Path
) -> None:
    found = read(tmp_path, events)
    assert work_us(found) == pytest.approx(4 * 70)
    told = said(found)
    assert str(told["one-process-read"].values["process"]).endswith("2")
    assert str(told["other-process"].values["process"]).endswith("1")
    assert told["other-process"].values["device_ns"] == pytest.approx(12 * 50e3)


def test_names_of_processes_are_told(tmp_path: Path) -> None:
    names = [
        {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}
        for pid, name in [(1, "trainer"), (2, "loader")]
    ]
    found = read(tmp_path, [*FILES["own numbers"], *names])
    assert {row.process: row.name for row in found.processes} == {"1": "trainer", "2": "loader"}


def test_processes_that_nothing_tells_apart_are_refused(tmp_path: Path) -> None:
    """Both run on one device at the same time with the same numbers."""
    with pytest.raises(BadFile, match=r"\b2\b"):
        read(tmp_path, [*program(1, 0, 50), *program(2, 0, 70, late_us=1)])


def test_a_file_of_one_process_says_nothing_of_processes(tmp_path: Path) -> None:
    found = read(tmp_path, program(1, 0, 50))
    assert found.processes == []
    assert "one-process-read" not in said(found)
    assert work_us(read(tmp_path, program(1, 0, 50), "1")) == pytest.approx(200)


def test_lost_calls_of_another_process_are_no_loss_of_this_one(tmp_path: Path) -> None:
    """Process 1 has lost half of its calls; process 2, on another device, none."""
    kept = []
    for number, event in enumerate(program(1, 0, 50)):
        if event["cat"] != "cuda_runtime" or number % 4 == 0:
            kept.append(event)
    found = read(tmp_path, [*kept, *program(2, 1, 70, first=1000)], "2")
    assert found.verdict.kind == "host"


@pytest.mark.parametrize("process", ["9", "nobody"])
def test_an_unknown_process_is_refused_with_those_there_are(
    process: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kineto(tmp_path / "t.json", FILES["own numbers"])
    assert main(["explain", "--trace", str(path), "--process", process]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert process in line
    assert "1, 2" in line


def test_a_process_is_chosen_of_one_trace_alone(tmp_path: Path) -> None:
    path = str(kineto(tmp_path / "t.json", FILES["own numbers"]))
    other = str(kineto(tmp_path / "u.json", program(1, 0, 50)))
    assert main(["explain", "--trace", path, other, "--process", "1"]) == 2
    assert main(["explain", "step.py:step", "--process", "1"]) == 2


def test_a_process_is_named_by_its_number_its_text_or_its_label() -> None:
    processes = ["[TP00] 12", "[TP01] 13", "[TP01] 12"]
    assert process_named("TP00", processes) == "[TP00] 12"
    assert process_named("13", processes) == "[TP01] 13"
    assert process_named("[TP01] 12", processes) == "[TP01] 12"
    assert process_named("12", processes) is None, "two have it"
    assert process_named("7", [7, 8]) == 7


def test_a_process_of_a_database_can_be_chosen(tmp_path: Path) -> None:
    """The database has a process 77 with most device work, and 99 with a kernel of 5 ns."""
    path = nsys(tmp_path / "t.sqlite", events_of(DEVICE_BOUND))
    found = explain_traces([path], choice=StepChoice(process="77"))
    assert [row.explained for row in found.processes] == [True, False]
    with pytest.raises(BadFile, match="77, 99"):
        explain_traces([path], choice=StepChoice(process="1"))


def test_a_database_names_its_processes(tmp_path: Path) -> None:
    path = nsys(
        tmp_path / "t.sqlite",
        events_of(DEVICE_BOUND),
        "CREATE TABLE PROCESSES (globalPid INT, pid INT, name TEXT)",
        f"INSERT INTO PROCESSES VALUES ({77 << 24}, 77, '/usr/bin/python3')",
    )
    found = explain_traces([path])
    assert {row.process: row.name for row in found.processes} == {"77": "python3", "99": ""}
