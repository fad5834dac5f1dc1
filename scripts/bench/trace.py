"""``main.py trace``: the time and memory of explaining a trace of a million events, of PyTorch and
of Nsight Systems.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

from rich.console import Console

from scripts.bench.report import CommandCost, cost_of
from scripts.bench.requirement import Requirement, print_requirements

_EVENTS = 1_000_000
_STEPS = 50
_MOST_S = 15.0
_MOST_MIB = 1_024.0
"""The longest time and the largest memory for a trace of so many events. Chosen, not measured."""
_LAUNCH_NS = 20_000
_KERNEL_NS = 12_000
"""The host launches a kernel every 20 µs, which takes the device 12 µs: the host bounds a step."""
_LONGER_NS = 10
_LENGTHS = 11
"""Steps of a program are never equally long: here of so many lengths, by so much for each launch.
"""


@dataclass(frozen=True)
class _Launch:
    """One launch of the made program: when its operation begins, and when its kernel does, ns."""

    number: int
    start: int
    kernel_start: int


def trace(options: argparse.Namespace, console: Console) -> bool:
    """Explain a trace of each format; return whether both kept to their time and memory."""
    writers: dict[str, Callable[[Path], None]] = {
        "json": write_kineto,
        "sqlite": write_nsys,
    }
    costs: dict[str, CommandCost] = {}
    with tempfile.TemporaryDirectory(prefix="trace-") as folder:
        for ending, write in writers.items():
            path = Path(folder) / f"trace.{ending}"
            write(path)
            costs[ending] = cost_of("explain", "--trace", str(path))
    requirements = []
    for ending, cost in costs.items():
        words = (
            f"{_EVENTS:,} events ({ending}): {cost.wall_s:.1f} s of {_MOST_S:.0f} s"
            f" ({cost.cpu_s:.1f} s of processor time), {cost.peak_mib:.0f} MiB of {_MOST_MIB:.0f}"
        )
        requirements.append(Requirement(words, cost.is_within(_MOST_S, _MOST_MIB)))
    if options.json:
        console.print(json.dumps({ending: astuple(cost) for ending, cost in costs.items()}))
    else:
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _steps(events_of_launch: int) -> Iterator[list[_Launch]]:
    """The launches of each step, for so many events of each launch."""
    each = _EVENTS // events_of_launch // _STEPS
    number = 0
    now = 10**9
    for step in range(_STEPS):
        launch_ns = _LAUNCH_NS + _LONGER_NS * (37 * step % _LENGTHS)
        launches = []
        for _ in range(each):
            number += 1
            launches.append(_Launch(number, now, kernel_start=now + _LAUNCH_NS // 2))
            now += launch_ns
        yield launches


def write_kineto(path: Path) -> None:
    """Write a trace as PyTorch's profiler does, with stacks and arrows: seven events a launch."""
    with path.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion": 1, "deviceProperties": [{"name": "NVIDIA H100"}],\n')
        file.write('"traceEvents": [\n')
        for number, launches in enumerate(_steps(events_of_launch=7)):
            for launch in launches:
                for event in _kineto_events(launch):
                    file.write(json.dumps(event) + ",\n")
            mark = _event(f"ProfilerStep#{number}", "user_annotation", launches[0].start)
            end = launches[-1].start + _LAUNCH_NS
            mark["dur"] = (end - launches[0].start) / 1000
            file.write(json.dumps(mark) + (",\n" if number + 1 < _STEPS else "\n"))
        file.write("]}\n")


def _event(name: str, category: str, start_ns: int, **more: object) -> dict[str, object]:
    event: dict[str, object] = {"ph": "X", "cat": category, "name": name, "ts": start_ns / 1000}
    return event | {"pid": 100, "tid": 100} | more


def _kineto_events(launch: _Launch) -> Iterator[dict[str, object]]:
    """What PyTorch writes for one launch, with the arguments that make its files large."""
    external: dict[str, object] = {"External id": launch.number, "Ev Idx": launch.number}
    shapes = external | {"Input Dims": [[8, 1024], [1024, 1024]], "Input type": ["float", "float"]}
    numbered = external | {"correlation": launch.number, "cbid": 211}
    grid = numbered | {"grid": [1, 1, 1], "block": [128, 1, 1], "registers per thread": 90}
    start = launch.start
    on_device = {"pid": 0, "tid": 7}
    arrow = {"id": launch.number, "name": "ac2g"}
    yield _event("aten::linear", "cpu_op", start, dur=18.0, args=shapes)
    yield _event("aten::addmm", "cpu_op", start + 2000, dur=14.0, args=shapes)
    yield _event("linear.py(116): forward", "python_function", start, dur=17.0, args=external)
    yield _event("cudaLaunchKernel", "cuda_runtime", start + 5000, dur=4.0, args=numbered)
    yield _event("ac2g", "ac2g", start + 5000, ph="s", id=launch.number)
    length_us = _KERNEL_NS / 1000
    kernel = _event("sm90_gemm", "kernel", launch.kernel_start, dur=length_us, args=grid)
    yield kernel | on_device
    yield _event("ac2g", "ac2g", launch.kernel_start, ph="f", bp="e") | arrow | on_device


def write_nsys(path: Path) -> None:
    """Write a database as Nsight Systems exports it: three rows a launch."""
    process = 77 << 24
    thread = process + 3
    columns_of_times = "start INT, end INT"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        texts = [(1, "cudaLaunchKernel_v7000"), (2, "sm90_gemm"), (3, "aten::linear, op_id = 5")]
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", texts)
        base.execute(
            f"CREATE TABLE NVTX_EVENTS ({columns_of_times}, text TEXT, textId INT, globalTid INT)"
        )
        base.execute(
            f"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME ({columns_of_times}, nameId INT,"
            " globalTid INT, correlationId INT)"
        )
        base.execute(
            f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns_of_times}, demangledName INT,"
            " globalPid INT, deviceId INT, streamId INT, correlationId INT)"
        )
        for number, launches in enumerate(_steps(events_of_launch=3)):
            ranges: list[tuple[object, ...]] = []
            calls = []
            kernels = []
            for launch in launches:
                start = launch.start
                ranges.append((start, start + 18_000, None, 3, thread))
                calls.append((start + 5000, start + 9000, 1, thread, launch.number))
                ends = launch.kernel_start + _KERNEL_NS
                kernels.append((launch.kernel_start, ends, 2, process, 0, 7, launch.number))
            end = launches[-1].start + _LAUNCH_NS
            ranges.append((launches[0].start, end, f"step {number}", None, thread))
            base.executemany("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?)", ranges)
            base.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", calls
            )
            base.executemany(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", kernels
            )
    base.close()
