"""Random programs on a simulated host and devices, with the trace that a profiler would write and
what is true of each step.

The clock is made: whole ticks of a microsecond or of a part of it. What is true is taken from the
simulation: counts when a call is made, and times of a device from a row of ticks, each of which is
busy or not.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TICKS_NS = (1000, 100)
"""Lengths of a tick. Older profilers write whole µs, newer ones also parts of a µs."""
BEGIN = 1_000_000
"""The tick at which the program begins."""
MAIN, BACKWARD = 501, 502
COMPUTE, SIDE, COMMUNICATION = 7, 13, 20
COLLECTIVES = (
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
)
KINDS = ("compute", "collective", "copy", "fill")
KIND_OF_PART = {"collective": "collective", "copy": "copy", "read": "copy", "fill": "fill"}
"""All others compute."""
Event = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """A piece of a step.

    ``kind``: python, operation, backward (an operation of another thread), launch, graph, copy,
    fill, collective, read (a copy to the host and the wait for it), wait.
    """

    kind: str
    ticks: int = 0
    """Of the host."""
    device_ticks: tuple[int, ...] = ()
    name: str = ""
    device: int = 0
    stream: int = COMPUTE
    inner: tuple[Part, ...] = ()


@dataclass
class Step:
    """What is true of one step. Times are ns; times of devices are by device."""

    tick_ns: int = 1000
    start: int = 0
    end: int = 0
    launches: int = 0
    copies: int = 0
    fills: int = 0
    synchronisations: int = 0
    busy_ns: dict[int, int] = field(default_factory=dict)
    collective_ns: dict[int, int] = field(default_factory=dict)
    exposed_ns: dict[int, int] = field(default_factory=dict)
    split_ns: dict[int, dict[str, int]] = field(default_factory=dict)
    """Each moment counts once: as computing, a collective, a copy or a fill, what comes first."""
    running_ns: dict[int, int] = field(default_factory=dict)
    """The work of all steps, where it runs in this one."""
    operations: dict[str, list[int]] = field(default_factory=dict)
    """How many, and their ns without the waits inside."""
    latencies: list[int] = field(default_factory=list)
    """Of kernels whose stream had no work when the call was made."""
    latencies_of_idle_device: list[int] = field(default_factory=list)
    """Of launches of a kernel that had run before, on a device without work."""

    @property
    def busiest_ns(self) -> int:
        return max(self.busy_ns.values())

    @property
    def idle_share(self) -> float:
        return 1 - max(self.running_ns.values()) / ((self.end - self.start) * self.tick_ns)


@dataclass
class Work:
    kind: str
    name: str
    start: int
    end: int
    device: int
    stream: int
    number: int
    step: int
    called: int


class Simulation:
    """Runs the parts of a step again and again. ``latency``: ticks from the end of a call to the
    start of its work on an idle stream. ``tick_ns``: the length of a tick.
    """

    def __init__(self, dice: random.Random, latency: int = 4, tick_ns: int = 1000) -> None:
        self.dice = dice
        self.tick_ns = tick_ns
        self.latency = latency
        self.now = BEGIN
        self.thread = MAIN
        self.number = 0
        self.events: list[Event] = []
        self.work: list[Work] = []
        self.free: dict[tuple[int, int], int] = defaultdict(int)
        self.steps: list[Step] = []
        self.waited = 0
        self.known_kernels: set[str] = set()

    def run(self, parts: tuple[Part, ...], steps: int, first: int = 0) -> None:
        for number in range(first, first + steps):
            self.steps.append(Step(self.tick_ns, start=self.now))
            began = self.now
            for part in parts:
                self.do(part, depth=0)
            self.now += 3
            self.steps[-1].end = self.now
            self.write("user_annotation", f"ProfilerStep#{number}", began, self.now)
            self.now += 2
        self.measure()

    def do(self, part: Part, depth: int) -> None:
        step = self.steps[-1]
        if part.kind == "python":
            self.now += part.ticks
        elif part.kind in ("operation", "backward"):
            self.operation(part, depth)
        elif part.kind == "wait":
            step.synchronisations += 1
            self.wait(part)
        elif part.kind == "read":
            step.synchronisations += 1
            step.copies += 1
            self.call(part, "cudaMemcpyAsync", ("Memcpy DtoH (Device -> Pageable)",))
            self.wait(Part("wait", name="cudaStreamSynchronize", stream=part.stream))
        elif part.kind == "copy":
            step.copies += 1
            self.call(part, "cudaMemcpyAsync", ("Memcpy DtoD (Device -> Device)",))
        elif part.kind == "fill":
            step.fills += 1
            self.call(part, "cudaMemsetAsync", ("Memset (Device)",))
        elif part.kind == "graph":
            step.launches += 1
            names = tuple(f"{part.name}_{index}" for index in range(len(part.device_ticks)))
            self.call(part, "cudaGraphLaunch", names)
        else:
            step.launches += 1
            call = "cudaLaunchKernelExC" if part.kind == "collective" else "cudaLaunchKernel"
            self.call(part, call, (part.name,))

    def operation(self, part: Part, depth: int) -> None:
        previous = self.thread
        if part.kind == "backward":
            self.thread = BACKWARD
            self.now += 2
        began, waited = self.now, self.waited
        self.now += part.ticks
        for inner in part.inner:
            self.do(inner, depth + 1)
            self.now += 1
        self.write("cpu_op", part.name, began, self.now)
        is_outermost = depth == 0 or part.kind == "backward"
        if is_outermost:
            row = self.steps[-1].operations.setdefault(part.name, [0, 0])
            row[0] += 1
            row[1] += self.now - began - (self.waited - waited)
        if part.kind == "backward":
            self.now += 2
        self.thread = previous

    def call(self, part: Part, call: str, names: tuple[str, ...]) -> None:
        """The call, and the work that it issues, piece by piece on one stream."""
        self.number += 1
        began = self.now
        self.now += part.ticks
        self.write("cuda_runtime", call, began, self.now, correlation=self.number)
        stream = (part.device, part.stream)
        was_idle = self.free[stream] <= began
        at = max(self.free[stream], self.now + self.latency)
        kind = part.kind
        if kind == "collective":  # which waits for what was issued before
            at = max(at, self.free[part.device, COMPUTE])
        if kind in ("launch", "graph") and was_idle:
            self.steps[-1].latencies.append((at - began) * self.tick_ns)
        streams = [free for (device, _), free in self.free.items() if device == part.device]
        if kind == "launch" and part.name in self.known_kernels and max(streams) <= began:
            self.steps[-1].latencies_of_idle_device.append((at - began) * self.tick_ns)
        if kind == "launch":
            self.known_kernels.add(part.name)
        for name, ticks in zip(names, part.device_ticks, strict=True):
            end = at + ticks
            step = len(self.steps) - 1
            piece = Work(kind, name, at, end, *stream, self.number, step, began)
            self.work.append(piece)
            at = end
            self.free[stream] = end

    def wait(self, part: Part) -> None:
        """Until the device, or one of its streams, has done all."""
        self.number += 1
        ends = [
            free
            for (device, stream), free in self.free.items()
            if part.name != "cudaStreamSynchronize" or (device, stream) == (0, part.stream)
        ]
        began = self.now
        self.now = max([self.now, *ends]) + 2
        self.waited += self.now - began
        self.write("cuda_runtime", part.name, began, self.now, correlation=self.number)

    def write(self, kind: str, name: str, start: int, end: int, **arguments: int) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": kind,
                "name": name,
                "ts": start * self.tick_ns / 1000,
                "dur": (end - start) * self.tick_ns / 1000,
                "pid": 42,
                "tid": self.thread,
                "args": arguments,
            }
        )

    def measure(self) -> None:
        """The times of the devices, from rows of ticks."""
        end = max([self.now, *[piece.end for piece in self.work]])
        devices = sorted({piece.device for piece in self.work})
        for device in devices:
            all_steps = np.zeros(end - BEGIN, dtype=bool)
            for index, step in enumerate(self.steps):
                rows = {kind: np.zeros(end - BEGIN, dtype=bool) for kind in KINDS}
                for piece in self.work:
                    if (piece.device, piece.step) == (device, index):
                        row = rows[KIND_OF_PART.get(piece.kind, "compute")]
                        row[piece.start - BEGIN : piece.end - BEGIN] = True
                busy = np.zeros(end - BEGIN, dtype=bool)
                step.split_ns[device] = {}
                for kind in KINDS:
                    step.split_ns[device][kind] = ticks_ns(rows[kind] & ~busy, self.tick_ns)
                    busy |= rows[kind]
                others = rows["compute"] | rows["copy"] | rows["fill"]
                all_steps |= busy
                step.busy_ns[device] = ticks_ns(busy, self.tick_ns)
                step.collective_ns[device] = ticks_ns(rows["collective"], self.tick_ns)
                step.exposed_ns[device] = ticks_ns(rows["collective"] & ~others, self.tick_ns)
            for step in self.steps:
                inside = all_steps[step.start - BEGIN : step.end - BEGIN]
                step.running_ns[device] = ticks_ns(inside, self.tick_ns)
        for step in self.steps:
            for counted in step.operations.values():
                counted[1] *= self.tick_ns

    def kineto(self, path: Path) -> Path:
        """The trace of PyTorch's profiler; its events in random order."""
        events = list(self.events)
        categories = {"copy": "gpu_memcpy", "read": "gpu_memcpy", "fill": "gpu_memset"}
        for piece in self.work:
            place = {"device": piece.device, "stream": piece.stream}
            events.append(
                {
                    "ph": "X",
                    "cat": categories.get(piece.kind, "kernel"),
                    "name": piece.name,
                    "ts": piece.start * self.tick_ns / 1000,
                    "dur": (piece.end - piece.start) * self.tick_ns / 1000,
                    "pid": piece.device,
                    "tid": piece.stream,
                    "args": place | {"correlation": piece.number},
                }
            )
        self.dice.shuffle(events)
        properties = [{"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": "NVIDIA H100"}]
        whole = {"schemaVersion": 1, "deviceProperties": properties, "traceEvents": events}
        path.write_text(json.dumps(whole), encoding="utf-8")
        return path

    def nsight(self, path: Path) -> Path:
        """The export of Nsight Systems; operations are NVTX ranges."""
        process = 4242 << 24
        strings: dict[str, int] = {}

        def text(name: str) -> int:
            return strings.setdefault(name, len(strings) + 1)

        with sqlite3.connect(path) as base:
            base.executescript(TABLES)
            base.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100')")
            for event in self.events:
                start = round(event["ts"] * 1000)
                end = start + round(event["dur"] * 1000)
                thread = process + event["tid"]
                if event["cat"] == "cuda_runtime":
                    number = event["args"]["correlation"]
                    row = (start, end, thread, number, text(event["name"] + "_v7000"))
                    add_row(base, "CUPTI_ACTIVITY_KIND_RUNTIME", row)
                else:
                    name = event["name"].replace("ProfilerStep#", "step ")
                    add_row(base, "NVTX_EVENTS", (start, end, 59, None, thread, text(name)))
            for piece in self.work:
                span = (piece.start * self.tick_ns, piece.end * self.tick_ns)
                place = (*span, piece.device, piece.stream, piece.number, process)
                if piece.kind in ("copy", "read"):
                    to_host = piece.kind == "read"
                    kinds = (2, 2, 0, 8) if to_host else (8, 2, 2, 8)
                    add_row(base, "CUPTI_ACTIVITY_KIND_MEMCPY", (*place, *kinds))
                elif piece.kind == "fill":
                    add_row(base, "CUPTI_ACTIVITY_KIND_MEMSET", (*place, 0, 64, 2))
                else:
                    name_id = text(piece.name)
                    add_row(base, "CUPTI_ACTIVITY_KIND_KERNEL", (*place, name_id, name_id))
            for name, number in strings.items():
                add_row(base, "StringIds", (number, name))
        base.close()
        return path


TABLES = """
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
CREATE TABLE TARGET_INFO_GPU (id INT, name TEXT);
CREATE TABLE NVTX_EVENTS (
    start INT, end INT, eventType INT, text TEXT, globalTid INT, textId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (
    start INT, end INT, globalTid INT, correlationId INT, nameId INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (
    start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT,
    demangledName INT, shortName INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (
    start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT,
    copyKind INT, srcKind INT, dstKind INT, bytes INT);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (
    start INT, end INT, deviceId INT, streamId INT, correlationId INT, globalPid INT,
    value INT, bytes INT, memKind INT);
"""


def add_row(base: sqlite3.Connection, table: str, row: tuple[Any, ...]) -> None:
    base.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def ticks_ns(row: NDArray[np.bool_], tick_ns: int) -> int:
    return int(row.sum()) * tick_ns


def random_step(dice: random.Random, devices: int, *, collectives: bool) -> tuple[Part, ...]:
    """The parts of a step. A wait for the devices ends it, so that all steps are alike."""
    return RandomStep(dice, devices, collectives).parts()


@dataclass
class RandomStep:
    dice: random.Random
    devices: int
    has_collectives: bool
    longest: int = 0
    """Ticks of a kernel: shorter or longer than the work of the host for it."""

    def parts(self) -> tuple[Part, ...]:
        dice = self.dice
        self.longest = dice.choice([6, 20, 90])
        first = Part("launch", 3, (4,), "kernel_0")
        parts = [
            Part("python", dice.randint(0, 30)),
            Part("operation", 3, name="aten::first", inner=(first,)),
        ]
        for _ in range(dice.randint(4, 25)):
            parts.append(self.operation(depth=0))
            if dice.random() < 0.4:
                parts.append(Part("python", dice.randint(1, 40)))
        for _ in range(dice.randint(0, 5)):
            inside = self.operation(depth=1)
            name = f"{dice.choice('AB')}Backward0"
            parts.append(Part("backward", inside.ticks, name=name, inner=inside.inner))
        parts.append(Part("wait", name="cudaDeviceSynchronize"))
        return tuple(parts)

    def operation(self, depth: int) -> Part:
        dice = self.dice
        inner = [self.work() for _ in range(dice.randint(0, 3))]
        if depth < 3 and dice.random() < 0.5:
            inner.insert(dice.randint(0, len(inner)), self.operation(depth + 1))
        if dice.random() < 0.08:
            inner.append(Part("read", dice.randint(2, 4), (dice.randint(1, 2),)))
        name = f"aten::operation_{dice.randrange(8)}"
        return Part("operation", dice.randint(1, 20), name=name, inner=tuple(inner))

    def work(self) -> Part:
        dice = self.dice
        kind = dice.choice(["launch"] * 8 + ["graph", "copy", "fill", "collective"])
        device = dice.randrange(self.devices)
        stream = SIDE if dice.random() < 0.15 else COMPUTE
        name = f"kernel_{dice.randrange(9)}"
        pieces = 1
        if kind == "graph":
            name, pieces = f"graph_{dice.randrange(10**6)}", dice.randint(2, 6)
        elif kind == "collective" and self.has_collectives:
            name, stream = dice.choice(COLLECTIVES), COMMUNICATION
        elif kind == "collective":
            kind = "launch"
        lengths = tuple(dice.randint(1, self.longest) for _ in range(pieces))
        return Part(kind, dice.randint(2, 6), lengths, name, device, stream)
