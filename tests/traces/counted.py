"""What a recorded trace holds, counted by plain loops over the raw file.

It shares no code with ``overhead.traces``, so that the two can be compared. Times are whole
nanoseconds. A window is counted by the calls that begin in it, and by the work that they issued.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Stretch = tuple[int, int]
Event = dict[str, Any]

WORK = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "fill",
    "memcpy": "copy",
    "memset": "fill",
}
CALLS = {
    "cuda_runtime",
    "cuda_driver",
    "runtime",
    "driver",
    "xpu_runtime",
    "xpu_driver",
    "privateuse1_runtime",
    "privateuse1_driver",
}
OPERATIONS = {"cpu_op", "operator"}
MARKS = {"cpu_op", "operator", "user_annotation"}
WRAPPER = "autograd::engine::evaluate_function: "
LAUNCH = re.compile(
    r"(cuda|cu|hip)(Ext)?(Module|Graph)?Launch(Kernel|CooperativeKernel|MultiKernel)?(ExC|Ex)?"
    r"(MultiDevice)?$|hipModuleLaunchKernel|hipExt\w*LaunchKernel|EnqueueKernelLaunch"
    r"|AppendLaunch\w*Kernel"
)
COPY = re.compile(r"(cuda|cu|hip)(GraphMem|Mem)cpy|EnqueueUSMMemcpy|AppendMemoryCopy|EnqueueMem")
FILL = re.compile(r"(cuda|cu|hip)Memset|EnqueueUSMFill|AppendMemoryFill")
WAIT = re.compile(
    r"((cuda|hip)(Device|Stream|Event)|cu(Ctx|Stream|Event))Synchronize"
    r"|(cuda|hip)Memcpy(2D|3D|FromSymbol|ToSymbol)?$|cuMemcpy(HtoD|DtoH|DtoD)?$"
    r"|(cuda|hip)Free$"
)
SUFFIX = re.compile(r"(_v\d+)+(_pt[sd]z)?$")
"""Of the names of calls in a database."""
COLLECTIVE = re.compile(
    r"nccl|rccl|oneccl|ccl_|msccl|all_?reduce|all_?gather|reduce_?scatter", re.I
)
STEP = re.compile(r"ProfilerStep ?#\d+$|step \d+$")


@dataclass(frozen=True)
class Piece:
    """An event: a call, an operation or a mark of a thread, or work of a device."""

    kind: str
    name: str
    start: int
    end: int
    place: Any
    """The thread, or the device."""
    stream: Any = 0
    number: int = -1
    """It links a call and its work."""

    @property
    def is_collective(self) -> bool:
        return self.kind == "kernel" and bool(COLLECTIVE.search(self.name))


@dataclass
class Counts:
    """Of one window. ``busy_ns``, ``collective_ns``, ``exposed_ns`` are by device."""

    name: str
    start: int
    end: int
    launches: int = 0
    copies: int = 0
    fills: int = 0
    synchronisations: int = 0
    busy_ns: dict[Any, int] = field(default_factory=dict)
    collective_ns: dict[Any, int] = field(default_factory=dict)
    exposed_ns: dict[Any, int] = field(default_factory=dict)
    compute_ns: dict[Any, int] = field(default_factory=dict)
    copying_ns: dict[Any, int] = field(default_factory=dict)
    running_ns: dict[Any, int] = field(default_factory=dict)
    """The time in the window in which the device works, on work of any step."""
    operations: dict[str, list[int]] = field(default_factory=dict)
    """Outermost operations by name: how many, and their ns."""
    waiting_ns: int = 0
    latencies: list[int] = field(default_factory=list)
    """From call to start, of kernels whose stream was idle when the call began."""
    gaps: list[int] = field(default_factory=list)
    """Between the pieces of work of the device that works most, the longest first."""
    lost_calls: int = 0
    """Launches, copies and fills without work."""

    @property
    def wall_ns(self) -> int:
        return self.end - self.start

    @property
    def busiest_ns(self) -> int:
        return max(self.busy_ns.values(), default=0)

    @property
    def idle_share(self) -> float:
        busiest_ns = max(self.running_ns.values(), default=0)
        return 1 - busiest_ns / self.wall_ns if self.wall_ns else 0.0

    @property
    def latency_ns(self) -> float | None:
        return statistics.median(self.latencies) if self.latencies else None


@dataclass
class Recording:
    calls: list[Piece] = field(default_factory=list)
    operations: list[Piece] = field(default_factory=list)
    marks: list[Piece] = field(default_factory=list)
    work: list[Piece] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)


def counted(path: Path, start: int | None = None, end: int | None = None) -> list[Counts]:
    """The counts of this window; without one, of each marked step, or of the ``whole``."""
    recording = read(path)
    if start is not None and end is not None:
        return [count(recording, "window", start, end)]
    marks = sorted(recording.marks, key=lambda mark: mark.start)
    if marks:
        return [count(recording, mark.name, mark.start, mark.end) for mark in marks]
    first, last = whole(recording)
    return [count(recording, "everything", first, last)]


def whole(recording: Recording) -> tuple[int, int]:
    """From the first call that issues work to the end of the last work, or of all operations."""
    numbers = {piece.number for piece in recording.work}
    issuing = [call.start for call in recording.calls if call.number in numbers]
    if issuing:
        return min(issuing), max(piece.end for piece in recording.work)
    pieces = recording.operations + recording.calls + recording.work
    return min(piece.start for piece in pieces), max(piece.end for piece in pieces)


def read(path: Path) -> Recording:
    with open(path, "rb") as file:
        opening = file.read(16)
    if opening.startswith(b"SQLite format 3"):
        return read_database(path)
    text = gzip.decompress(path.read_bytes()) if opening[:2] == b"\x1f\x8b" else path.read_bytes()
    whole = json.loads(text.decode("utf-8", "replace"), parse_float=Decimal, strict=False)
    events = whole if isinstance(whole, list) else whole["traceEvents"]
    found = read_events(events)
    if isinstance(whole, dict):
        for device in whole.get("deviceProperties", []):
            found.devices.append(device.get("name", ""))
    return found


def read_events(events: Iterable[Event]) -> Recording:
    """Complete events of PyTorch's profiler, of any version."""
    found = Recording()
    for event in events:
        if event.get("ph") != "X" or "ts" not in event:
            continue
        start = int(Decimal(event["ts"]) * 1000)
        end = int((Decimal(event["ts"]) + Decimal(event.get("dur", 0))) * 1000)
        kind = str(event.get("cat", "")).lower()
        name = str(event.get("name", ""))
        arguments = event.get("args") or {}
        number = int(arguments.get("correlation", -1))
        thread = (event.get("pid"), event.get("tid"))
        if kind in WORK:
            device = arguments.get("device", event.get("pid"))
            stream = arguments.get("stream", event.get("tid"))
            found.work.append(Piece(WORK[kind], name, start, end, device, stream, number))
        elif kind in CALLS:
            found.calls.append(Piece("call", name, start, end, thread, 0, number))
        elif kind in MARKS and STEP.match(name):
            found.marks.append(Piece("mark", name, start, end, thread))
        elif kind in OPERATIONS:
            name = name.removeprefix(WRAPPER)
            found.operations.append(Piece("operation", name, start, end, thread))
    return found


def read_database(path: Path) -> Recording:
    """An SQLite export of Nsight Systems: the process with most rows of device work."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as base:
        base.row_factory = sqlite3.Row
        tables = {row["name"] for row in base.execute("SELECT name FROM sqlite_master")}

        def rows(table: str) -> list[sqlite3.Row]:
            return list(base.execute(f"SELECT * FROM {table}")) if table in tables else []

        strings = {row["id"]: row["value"] for row in rows("StringIds")}
        found = Recording()
        by_process: dict[int, list[Piece]] = defaultdict(list)
        for table, kind in (("KERNEL", "kernel"), ("MEMCPY", "copy"), ("MEMSET", "fill")):
            for row in rows(f"CUPTI_ACTIVITY_KIND_{table}"):
                name = kind
                if kind == "kernel":
                    name = strings.get(row["demangledName"], "?")
                columns = set(row.keys())
                process = (row["globalPid"] or 0) >> 24 if "globalPid" in columns else 0
                by_process[process].append(
                    Piece(
                        kind,
                        str(name),
                        row["start"],
                        row["end"],
                        row["deviceId"],
                        row["streamId"],
                        row["correlationId"],
                    )
                )
        process = max(by_process, key=lambda each: len(by_process[each]), default=0)
        found.work = by_process[process]
        for row in rows("CUPTI_ACTIVITY_KIND_RUNTIME"):
            thread = row["globalTid"]
            if process and thread >> 24 != process:
                continue
            name = SUFFIX.sub("", str(strings.get(row["nameId"], "?")))
            number = row["correlationId"]
            found.calls.append(Piece("call", name, row["start"], row["end"], thread, 0, number))
        for row in rows("NVTX_EVENTS"):
            if row["end"] is None or (process and row["globalTid"] >> 24 != process):
                continue
            name = row["text"] or strings.get(row["textId"], "")
            is_step = bool(STEP.match(name))
            piece = Piece(
                "mark" if is_step else "operation",
                name,
                row["start"],
                row["end"],
                row["globalTid"],
            )
            (found.marks if is_step else found.operations).append(piece)
    base.close()
    return found


def count(recording: Recording, name: str, start: int, end: int) -> Counts:
    found = Counts(name, start, end)
    numbers_of_work = {piece.number for piece in recording.work}
    for call in outermost(recording.calls):
        if start <= call.start < end:
            count_call(found, call, has_work=call.number in numbers_of_work)
    # A call of the driver inside a call of the runtime has a number of its own.
    call_of = {call.number: call for call in recording.calls if start <= call.start < end}
    own = [piece for piece in recording.work if piece.number in call_of]
    split_by_device(found, own, recording.work)
    for operation in outermost(recording.operations):
        if start <= operation.start < end:
            row = found.operations.setdefault(operation.name, [0, 0])
            row[0] += 1
            row[1] += operation.end - operation.start
    find_latencies(found, recording.work, call_of)
    return found


def count_call(found: Counts, call: Piece, *, has_work: bool) -> None:
    is_issuing = True
    if LAUNCH.search(call.name):
        found.launches += 1
    elif COPY.search(call.name):
        found.copies += 1
    elif FILL.search(call.name):
        found.fills += 1
    else:
        is_issuing = False
    if is_issuing and not has_work:
        found.lost_calls += 1
    if WAIT.search(call.name):
        found.synchronisations += 1
        found.waiting_ns += call.end - call.start


def split_by_device(found: Counts, own: Sequence[Piece], everything: Sequence[Piece]) -> None:
    by_device: dict[Any, list[Piece]] = defaultdict(list)
    for piece in own:
        by_device[piece.place].append(piece)
    for device, pieces in by_device.items():
        collectives = union(piece for piece in pieces if piece.is_collective)
        others = union(piece for piece in pieces if not piece.is_collective)
        kernels = [piece for piece in pieces if piece.kind == "kernel"]
        compute = union(piece for piece in kernels if not piece.is_collective)
        found.busy_ns[device] = length(union(pieces))
        found.collective_ns[device] = length(collectives)
        found.exposed_ns[device] = length(union(pieces)) - length(others)
        found.compute_ns[device] = length(compute)
        found.copying_ns[device] = length(union(piece for piece in pieces if piece.kind == "copy"))
    by_device.clear()
    for piece in everything:
        first, last = max(piece.start, found.start), min(piece.end, found.end)
        if last > first:
            by_device[piece.place].append(piece)
    for device, pieces in by_device.items():
        found.running_ns[device] = sum(
            max(0, min(last, found.end) - max(first, found.start)) for first, last in union(pieces)
        )
    if found.busy_ns:
        busiest = max(found.busy_ns, key=lambda device: found.busy_ns[device])
        stretches = union(piece for piece in own if piece.place == busiest)
        for before, after in itertools.pairwise(stretches):
            found.gaps.append(after[0] - before[1])
        found.gaps.sort(reverse=True)


def find_latencies(found: Counts, work: Sequence[Piece], call_of: dict[int, Piece]) -> None:
    busy_until: dict[Any, int] = {}
    seen: set[int] = set()
    for piece in sorted(work, key=lambda piece: piece.start):
        stream = (piece.place, piece.stream)
        earlier = busy_until.get(stream, -1)
        busy_until[stream] = max(earlier, piece.end)
        if piece.number not in call_of or piece.kind != "kernel" or piece.number in seen:
            continue
        if piece.is_collective:  # which waits for other streams
            continue
        seen.add(piece.number)
        call = call_of[piece.number]
        if earlier <= call.start and LAUNCH.search(call.name):
            found.latencies.append(piece.start - call.start)


def outermost(pieces: Iterable[Piece]) -> list[Piece]:
    """Those that lie in no other one of their thread."""
    found: list[Piece] = []
    ends: dict[Any, int] = {}
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if piece.start >= ends.get(piece.place, -1):
            found.append(piece)
            ends[piece.place] = piece.end
    return found


def union(pieces: Iterable[Piece]) -> list[Stretch]:
    """The stretches of time in which at least one of them runs."""
    found: list[Stretch] = []
    for piece in sorted(pieces, key=lambda piece: piece.start):
        if found and piece.start <= found[-1][1]:
            first, last = found.pop()
            found.append((first, max(last, piece.end)))
        else:
            found.append((piece.start, piece.end))
    return found


def length(stretches: Iterable[Stretch]) -> int:
    return sum(last - first for first, last in stretches)
