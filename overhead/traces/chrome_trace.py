"""Read the trace that PyTorch's profiler exports, as steps; and mark operations with their lines
for it.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import functools
import heapq
import math
import operator
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from overhead.errors import BadFile
from overhead.traces.doubts import (
    WorkTimes,
    lost_nodes,
    lost_work_ns,
    may_wait,
    other_threads_wait_ns,
    profiler_ns,
    unexplained_wait_ns,
    working_threads,
)
from overhead.traces.recording import SKEW_NS, Clocks, Recording, clocks_of
from overhead.traces.trace import (
    LOADER,
    NO_SITE,
    CallKind,
    CallSite,
    DeviceWork,
    HostCall,
    HostOperation,
    StepTrace,
    Trace,
    union_of_spans,
)

_T = TypeVar("_T")
_start = operator.attrgetter("start")
STEP_MARK = "overhead step "
SITE_MARK = "overhead site "
"""Names of the annotations around a step, and around an operation whose line is known (``line|line
of a library``).
"""
_STEP_WORDS = ("step", "iter", "iteration", "batch", "token")
_STEP = re.compile(
    rf"(?:ProfilerStep#|(?:\w+ )?(?:{'|'.join(_STEP_WORDS)})[ _#:=-]+)\d+", re.I | re.A
)
_PROFILER_STEP = "ProfilerStep#"
MIGRATION = "Memcpy UVM"
"""The name of a copy of managed memory, which no call issues."""

DISPATCH_MODE = "PythonDispatchMode"
"""The operation that torch records around a dispatch mode, where the library itself has none around
it.
"""
QUEUE_DEPTH = 1022
"""Pieces of work that CUDA's queue was seen to hold; with as many, a launch blocks until one has
finished.
"""
_NEARLY_FULL = 0.98
_TAIL = 0.02
"""How much of an upload may follow the call that waits for it."""
_START_UP = 10
"""An operation is start-up if its first call takes so many times as long as a later one."""
_ONE_KERNEL = re.compile(r"(cuda|hip|cu)\w*LaunchKernel\w*")
"""Calls that launch exactly one kernel."""
_COPIES = ("copy", "set")
_COPY_CALL = re.compile(r"(cuda|hip)Memcpy\w*|cuMemcpy\w*")
"""Also copies that wait."""
_ADDED_VERSION = re.compile(r"_v\d{4,}$")

_CALLS: tuple[tuple[CallKind, str], ...] = (
    ("launch", r"(cuda|hip|cu)[A-Za-z]*Launch(?!HostFunc|Bounds)\w*"),
    ("launch", r"(ur|ze)[A-Za-z]*Launch\w*"),  # Intel's Unified Runtime and Level Zero
    ("synchronisation", r"urQueueFinish|urEventWait|ze[A-Za-z]*Synchronize"),
    (
        "synchronisation",
        r"(cuda|hip)(Stream|Device|Event)Synchronize\w*|cu(Stream|Ctx|Event)Synchronize\w*",
    ),
    # Frees wait until the device has finished; copies without "Async" wait until they are done.
    ("synchronisation", r"(cuda|hip)Free|cuMemFree(_v2)?"),
    (
        "synchronisation",
        r"(cuda|hip)Memcpy(2D|3D|ToSymbol|FromSymbol|DtoH|HtoD|WithStream)?|cuMemcpy\w*(?<!Async)(?<!Async_v2)",
    ),
    ("copy", r"(cuda|hip|cu)Memcpy\w*"),
    ("set", r"(cuda|hip|cu)Memset\w*"),
    ("allocation", r"(cuda|hip)(Malloc|HostAlloc|HostMalloc)\w*|cuMem(Alloc|Create|HostAlloc)\w*"),
)
_BACKWARD = "autograd::engine::evaluate_function: "


def call_kind(name: str) -> CallKind:
    """What a call of the CUDA or HIP runtime or driver does, by its name; ``other`` if it is none
    of the kinds.
    """
    return next((kind for kind, pattern in _CALLS if re.fullmatch(pattern, name)), "other")


class EventArguments(msgspec.Struct, frozen=True, gc=False):
    """``correlation``: the number that a call and its device work share. ``size``: bytes of an
    allocation.

    ``collective``: what a kernel or an operation exchanges with other ranks; ``group``,
    ``group_name``: which ranks take part; ``elements``: how many numbers it gets. Releases of
    PyTorch write these as text, numbers or lists.
    """

    correlation: int = 0
    size: int = msgspec.field(name="Bytes", default=0)
    collective: str = msgspec.field(name="Collective name", default="")
    group: Any = msgspec.field(name="Process Group Ranks", default="")
    group_name: Any = msgspec.field(name="Process Group Name", default="")
    elements: Any = msgspec.field(name="In msg nelems", default="")


class TraceEvent(msgspec.Struct, gc=False):
    """An event as PyTorch writes it. ``ts``, ``dur``: in µs. ``pid``, ``tid``: of device work,
    device and stream.

    Metadata has no ``ts``.
    """

    ts: float = math.nan
    ph: str = ""
    cat: str = ""
    name: str = ""
    dur: float = 0.0
    pid: int | str = ""
    tid: int | str = ""
    args: EventArguments = EventArguments()

    @property
    def start(self) -> float:
        """When it begins, ns."""
        return self.ts * 1000

    @property
    def end(self) -> float:
        """When it ends, ns."""
        return (self.ts + self.dur) * 1000


class _File(msgspec.Struct):
    traceEvents: list[TraceEvent]
    distributedInfo: dict[str, object] = {}
    deviceProperties: list[dict[str, object]] = []


class _RawFile(msgspec.Struct):
    traceEvents: list[msgspec.Raw]
    distributedInfo: dict[str, object] = {}
    deviceProperties: list[dict[str, object]] = []


class _Category(msgspec.Struct):
    cat: object = ""


_LATEST_US = 1e16
_MOST_CATEGORIES = 281
"""Most characters of the categories of a trace of another program."""
MOST_TRACE_BYTES, _MOST_OBJECTS, _MOST_STREAMS = 1 << 30, 20_000_000, 1000
"""Most bytes of a file, objects in it, and streams of a device."""
_KINDS = {
    "cpu_op": "operations",
    "operator": "operations",
    "user_annotation": "annotations",
    "cpu_instant_event": "memory",
    "overhead": "costs",
    **dict.fromkeys(("runtime", "cuda_runtime", "cuda_driver"), "calls"),
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"), "work"),
}
"""PyTorch 1.8 to 1.12 writes Operator, Runtime, Kernel, Memcpy and Memset."""
_PROFILER_COSTS = (
    "Activity Buffer Request",
    "Buffer Flush",
    "Instrumentation",
    "Resource",
    "UVM Activity Init",
)
"""What CUPTI does for itself. Of the same category are the loading of kernels and a full queue: the
program's own.
"""
_DEVICE_CALLS = re.compile(r"(cuda|hip|xpu|mtia|privateuse1)_(runtime|driver)")


@functools.cache
def _kind_of(category: str) -> str:
    """Which kind of events a category holds; empty if they are not read."""
    found = _KINDS.get(category.lower(), "")
    return found or ("calls" if _DEVICE_CALLS.fullmatch(category) else "")


def read_chrome_trace(raw: bytes, name: str = "the trace", *, trimmed: bool = False) -> Trace:
    """The steps of a trace that ``torch.profiler`` exported. Raises ``BadFile``; a trace without
    steps is one step.

    ``trimmed``: that step begins with the first launch and ends with the last device work.
    """
    try:
        if raw.count(b"{") > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
        data, unreadable = _decoded(raw)
        _refuse_other_programs(data.traceEvents, raw)
        steps, recording, processes = steps_of(data.traceEvents, unreadable, trimmed=trimmed)
    except BadFile as error:
        raise BadFile(error.fault, name) from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        _refuse_quotes_in_names(raw, str(error), name)
        said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise BadFile(f"not a trace: {said}", name) from None
    device = str(data.deviceProperties[0].get("name", "")) if data.deviceProperties else ""
    rank = str(data.distributedInfo.get("rank", ""))[:200]
    ranks = data.distributedInfo.get("world_size", 0)
    return Trace(
        steps, device[:200], rank, processes, recording, ranks if isinstance(ranks, int) else 0
    )


def _decoded(raw: bytes) -> tuple[_File, int]:
    """The file, and how many events that are needed cannot be read: one odd event must not cost the
    others.
    """
    try:
        found = msgspec.json.decode(raw, type=_File | list[TraceEvent], strict=False)
        return (_File(found) if isinstance(found, list) else found), 0
    except msgspec.ValidationError as error:
        first = error
    each = msgspec.json.decode(raw, type=_RawFile | list[msgspec.Raw])
    whole = _RawFile(each) if isinstance(each, list) else each
    decoder, category = (
        msgspec.json.Decoder(TraceEvent, strict=False),
        msgspec.json.Decoder(_Category),
    )
    events, unreadable = [], 0
    for one in whole.traceEvents:
        try:
            events.append(decoder.decode(one))
        except msgspec.ValidationError:
            with contextlib.suppress(msgspec.ValidationError):
                unreadable += bool(_kind_of(str(category.decode(one).cat)))
    if not any(_kind_of(event.cat) for event in events):
        raise first
    return _File(events, whole.distributedInfo, whole.deviceProperties), unreadable


def _refuse_other_programs(events: Sequence[TraceEvent], raw: bytes) -> None:
    """Raise ``BadFile`` for a trace that has events, and none of PyTorch's."""
    if not events or any(_kind_of(event.cat) for event in events):
        return
    if b'"/host:' in raw or b'"/device:' in raw:
        raise BadFile(
            "a trace of JAX or TensorFlow (XProf), not of PyTorch; it has no launches. Explain the"
            " program itself: overhead explain STEP"
        )
    categories = sorted({event.cat for event in events if event.cat})
    if not categories:
        raise BadFile("not a trace of PyTorch: its events have no categories")
    names = ", ".join(categories[:6])[:_MOST_CATEGORIES]
    raise BadFile(f"not a trace of PyTorch: its categories are {names}")


def _refuse_quotes_in_names(raw: bytes, error: str, file: str) -> None:
    """Raise ``BadFile`` if JSON is malformed since PyTorch did not escape a quote in the name of an
    event.
    """
    found = re.search(r"malformed.*\(byte (\d+)\)", error)
    if found is None or b'"traceEvents"' not in raw:
        return
    at = int(found[1])
    begin = raw.rfind(b'"name"', max(0, at - 2000), at)
    if begin < 0:
        return
    shown = " ".join(raw[begin : at + 40].decode(errors="replace").split())[:80]
    raise BadFile(
        f"JSON that is not valid at byte {at:,}, near {shown}: PyTorch does not escape quotes in"
        " names. Record without with_stack=True",
        file,
    ) from None


def steps_of(
    events: Iterable[TraceEvent], unreadable: int = 0, *, trimmed: bool = True
) -> tuple[list[StepTrace], Recording, int]:
    """The steps of a trace, each with the device work that it issued; what else it holds; the
    number of processes.

    ``unreadable``: how many needed events could not be read. ``trimmed``: see
    ``read_chrome_trace``. Raises ``BadFile`` for processes that cannot be told apart, and
    ``ValueError`` for too many streams, or if no event can be read.
    """
    sorted_out = _SortedEvents(events)
    of, processes = sorted_out.of, sorted_out.keep_one_process()
    bad = unreadable + sorted_out.unreadable
    if bad and not any(of.values()):
        raise ValueError("none of its events can be read")
    if len({(each.pid, each.tid) for each in of["work"]}) > _MOST_STREAMS:
        raise ValueError(f"more than {_MOST_STREAMS:,} streams")
    names = _collective_names(of)
    work = [_work(each, names.get(each.args.correlation, "")) for each in of["work"]]
    clocks = _clocks(of["calls"], work)
    if clocks.late_ns or clocks.drift:
        work = [_moved(each, -clocks.late_at(each.start)) for each in work]
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for one in work:
        by_correlation[one.correlation].append(one)
    windows = _marked_windows(of["steps"])
    # A longer operation, such as the range of an epoch, holds steps.
    longest = max((end - start for start, end, _ in windows), default=math.inf)
    sites = _Spans((str(each.tid), each.start, each.end, _site(each.name)) for each in of["sites"])
    operations = _outermost(
        (each for each in of["operations"] if each.end - each.start <= longest), sites
    )
    calls = list(_calls(of["calls"], operations, sites, by_correlation))
    memory = sorted((each for each in of["memory"] if each.args.size > 0), key=_start)
    recording = Recording(
        marked=bool(windows),
        doubled=sorted_out.doubled,
        backwards=sorted_out.backwards,
        unreadable=bad,
        events=bad + sorted_out.backwards + sum(map(len, of.values())),
        memory_recorded=bool(of["memory"]),
        rounded_ns=sorted_out.rounded_ns(),
        clocks=clocks,
    )
    every: list[HostOperation | HostCall] = [*operations, *calls]
    if every and not windows:
        whole = min(each.start for each in every), max(each.end for each in every) + 1, None
        last = max([whole[1], *(each.end for each in work)])
        recording = dataclasses.replace(recording, recorded_ns=last - whole[0])
        windows = [whole]
        if trimmed:
            window, recording = _trimmed_window(whole, operations, calls, by_correlation, recording)
            windows = [window]
    if windows:
        begin, end = windows[0][0], max(each[1] for each in windows)
        recording = _with_losses(recording, calls, work, begin, end)
        recording = _with_doubts(recording, windows, operations, calls, work, by_correlation)
        costs = union_of_spans((each.start, each.end) for each in of["costs"])
        recording = dataclasses.replace(
            recording, profiler_ns=profiler_ns(costs, _started(calls, begin, end))
        )
    steps = []
    for start, end, number in windows:
        own = _started(calls, start, end)
        issued = [
            each
            for call in own
            for each in by_correlation.get(call.correlation, ())
            if call.correlation
        ]
        sizes = [each.args.size for each in _started(memory, start, end)]
        inside = _started(operations, start, end)
        steps.append(StepTrace(start, end, inside, own, sorted(issued, key=_start), sizes, number))
    return steps, recording, processes


class _SortedEvents:
    """The events by kind, without those that cannot be, and without second copies; how many were
    left out.
    """

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self.of: dict[str, list[TraceEvent]] = defaultdict(list)
        self.backwards = self.unreadable = self.doubled = 0
        seen = set[tuple[object, ...]]()
        for event in events:
            kind = (
                _kind_of(event.cat) if event.ph == "X" or event.cat == "cpu_instant_event" else ""
            )
            if not kind:
                continue
            if not (abs(event.dur) < _LATEST_US and abs(event.ts) < _LATEST_US):
                self.unreadable += 1
                continue
            if event.dur < 0:
                self.backwards += 1
                continue
            if kind in ("operations", "annotations"):
                kind = _kind_by_name(kind, event.name)
            elif kind == "costs" and event.name not in _PROFILER_COSTS:
                continue
            elif kind in ("calls", "work"):
                key = (event.ts, event.pid, event.tid, event.args.correlation, event.name)
                if key in seen:
                    self.doubled += 1
                    continue
                seen.add(key)
            self.of[kind].append(event)

    def keep_one_process(self) -> int:
        """Keep the process with the longest device work, of those that make calls; how many have
        device work.

        Raises ``BadFile`` if they number their calls alike, since then nobody knows whose the
        device work is.
        """
        calls: dict[int | str, set[int]] = defaultdict(set)
        for event in self.of["calls"]:
            calls[event.pid].add(event.args.correlation)
        if len(calls) <= 1:
            return 1
        numbers = {event.args.correlation for event in self.of["work"]} - {0}
        issued = {pid: own & numbers for pid, own in calls.items() if own & numbers}
        if len(issued) <= 1:
            pid = next(iter(issued), None)
        elif sum(map(len, issued.values())) > len(set.union(*issued.values())):
            raise BadFile(
                f"{len(issued)} processes in one file number their launches alike, so their device"
                " work cannot be told apart: give a file for each"
            )
        else:
            pid = self._busiest(issued)
        if pid is None:
            return 1
        others = set.union(set(), *(own for other, own in issued.items() if other != pid))
        for kind in self.of:
            if kind == "costs":
                continue  # they have no process
            if kind == "work":
                self.of[kind] = [
                    event for event in self.of[kind] if event.args.correlation not in others
                ]
            else:
                self.of[kind] = [event for event in self.of[kind] if event.pid == pid]
        return len(issued)

    def _busiest(self, issued: Mapping[int | str, set[int]]) -> int | str:
        """The process whose device work takes longest. ``issued``: by process, the numbers of its
        work.
        """
        issuers = {number: pid for pid, numbers in issued.items() for number in numbers}
        busy: dict[int | str, float] = dict.fromkeys(issued, 0.0)
        for event in self.of["work"]:
            pid = issuers.get(event.args.correlation)
            if pid is not None:
                busy[pid] += event.dur
        return max(busy, key=busy.__getitem__)

    def rounded_ns(self) -> float:
        """The rounding of a time in this file, ns. Large times have few digits left in a number of
        64 bits.
        """
        times = [event.ts for event in self.of["work"] or self.of["operations"]]
        return 1e3 * math.ulp(max(map(abs, times))) if times else 0.0


def _kind_by_name(kind: str, name: str) -> str:
    """What an operation or annotation is, by its name."""
    if name.startswith(LOADER):
        return "operations"
    if _STEP.fullmatch(name):
        return "steps"
    return "sites" if name.startswith(SITE_MARK) else kind


def _collective_names(of: Mapping[str, Sequence[TraceEvent]]) -> dict[int, str]:
    """By the number of a call that issues a collective: which one."""
    annotated = [*_collective_spans([*of["annotations"], *of["operations"]])]
    if not annotated:
        return {}
    spans = _Spans(annotated)
    found = {each.args.correlation: spans.around(str(each.tid), each.start) for each in of["calls"]}
    return {number: name for number, name in found.items() if number and name}


def _collective_spans(events: Iterable[TraceEvent]) -> Iterator[tuple[str, float, float, str]]:
    """Where a thread issues a collective, and which: PyTorch annotates it (``nccl:all_to_all``) or
    its operation.
    """
    for event in events:
        name = event.args.collective or (event.name[5:] if event.name.startswith("nccl:") else "")
        if name:
            yield str(event.tid), event.start, event.end, name[:200]


def _work(event: TraceEvent, collective: str) -> DeviceWork:
    named = event.args.collective[:200] or collective
    stream = f"{event.pid}:{event.tid}"
    group = f"{event.args.group or event.args.group_name} {event.args.elements}"
    number = event.args.correlation
    return DeviceWork(
        event.name[:1000], stream, event.start, event.end, number, named, group.strip()[:1000]
    )


def _moved(work: DeviceWork, by_ns: float) -> DeviceWork:
    return dataclasses.replace(work, start=work.start + by_ns, end=work.end + by_ns)


_WHOLE_DEVICE = re.compile(r"(cuda|hip)DeviceSynchronize|cuCtxSynchronize")
_ONE_STREAM = re.compile(r"(cuda|hip)StreamSynchronize\w*|cuStreamSynchronize")


def _clocks(events: Sequence[TraceEvent], work: Sequence[DeviceWork]) -> Clocks:
    """Compare the clocks of host and device by the waits and launches in these calls."""
    issued: dict[int, list[DeviceWork]] = defaultdict(list)
    for each in work:
        issued[each.correlation].append(each)
    one_device = len({each.device for each in work}) == 1
    one_stream = len({each.stream for each in work}) == 1
    waits: list[tuple[float, float]] = []
    starts: list[tuple[float, float]] = []
    alone = _without_wait_after(events)
    running: list[
        tuple[float, float]
    ] = []  # when calls of any thread return, and when their work ends, as a heap
    last = -math.inf
    for event in sorted(events, key=_start):
        while running and running[0][0] <= event.start:
            last = max(last, heapq.heappop(running)[1])
        name = _ADDED_VERSION.sub("", event.name)
        waits_for_all = one_device and _WHOLE_DEVICE.fullmatch(name)
        waits_for_all = waits_for_all or (one_stream and _ONE_STREAM.fullmatch(name))
        if waits_for_all and last > -math.inf:
            waits.append((event.end, last - event.end))
        own = issued.get(event.args.correlation, ()) if event.args.correlation else ()
        if own:
            starts.append((event.start, min(each.start for each in own) - event.start))
            if event.args.correlation in alone:
                waits += [
                    (event.end, each.end - event.end) for each in own if each.copies_to_pageable
                ]
            heapq.heappush(running, (event.end, max(each.end for each in own)))
    return clocks_of(waits, starts)


def _without_wait_after(events: Iterable[TraceEvent]) -> set[int]:
    """The numbers of the calls that no wait follows in their thread.

    The call of a copy to pageable memory returns when the copy is done; only where nothing waits
    after it is that sure.
    """
    found = set[int]()
    last: dict[int | str, int] = {}
    for event in sorted(events, key=_start):
        before = last.pop(event.tid, 0)
        if before and call_kind(_ADDED_VERSION.sub("", event.name)) != "synchronisation":
            found.add(before)
        last[event.tid] = event.args.correlation
    return (found | set(last.values())) - {0}


_Window = tuple[float, float, int | None]
"""Start and end of a step, ns, and the number of its mark."""


def _marked_windows(marks: Iterable[TraceEvent]) -> list[_Window]:
    """Start, end and number of each marked step, by start.

    Of marks that differ only in their number, those of PyTorch's profiler are the steps, else those
    that take longest together.
    """
    by_name: dict[str, list[_Window]] = defaultdict(list)
    for each in marks:
        name = each.name.rstrip("0123456789")
        by_name[name].append((each.start, each.end, int(each.name[len(name) :][:18])))
    if _PROFILER_STEP in by_name:
        return sorted(set(by_name[_PROFILER_STEP]))
    return sorted(set(max(by_name.values(), key=_together_ns, default=[])))


def _together_ns(windows: Iterable[_Window]) -> float:
    return sum(end - start for start, end, _ in windows)


def _trimmed_window(
    whole: _Window,
    operations: Sequence[HostOperation],
    calls: Sequence[HostCall],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
    recording: Recording,
) -> tuple[_Window, Recording]:
    """What counts as the step of a recording without marks: from the first launch to the last
    device work.

    Before and after these a program starts and ends. Without device work, it is the whole
    recording.
    """
    issuing = [call for call in calls if call.correlation and by_correlation.get(call.correlation)]
    if not issuing:
        return whole, recording
    first, start = issuing[0], issuing[0].start
    done = max(each.end for call in issuing for each in by_correlation[call.correlation])
    waits = [
        call.end
        for call in calls
        if call.kind == "synchronisation" and call.start < done <= call.end
    ]
    end = max([done, *waits]) + 1
    around = next((each for each in operations if each.start <= start < each.end), None)
    if around is None:
        return (start, end, None), recording
    alike = [
        each.end - each.start
        for each in operations
        if each.name == around.name and each.start > around.start
    ]
    if alike and around.end - around.start > _START_UP * statistics.median(alike):
        start_up_ns = around.end - around.start
        return (around.end, end, None), dataclasses.replace(
            recording, start_up=around.name, start_up_ns=start_up_ns
        )
    return (min(around.start, first.start), end, None), recording


def _with_losses(
    recording: Recording,
    calls: Sequence[HostCall],
    work: Sequence[DeviceWork],
    begin: float,
    end: float,
) -> Recording:
    """The recording with what has lost its other half between ``begin`` and ``end``. ``calls``:
    all, by start.
    """
    has_work = {each.correlation for each in work} - {0}
    launching = [
        call
        for call in calls
        if call.kind in ("launch", *_COPIES) or _COPY_CALL.fullmatch(call.name)
    ]
    answered = _Spans(
        (call.thread, call.start, call.end, call)
        for call in launching
        if call.correlation in has_work
    )
    captures = _captures(calls)
    launches = without = shared = copies = 0
    lost_calls = list[HostCall]()
    issued = Counter(each.correlation for each in work)
    for call in _started(launching, begin, end):
        launch = call.kind == "launch"
        if call.correlation in has_work:
            launches += launch
            copies += not launch
            if _ONE_KERNEL.fullmatch(call.name):
                shared += issued[call.correlation] - 1
            continue
        # A launch into a graph that is captured does not run, and one inside another launch is the
        # same launch.
        captured = any(first <= call.start < last for first, last in captures)
        if not captured and answered.within(call.thread, call.start, call.end) is None:
            launches += launch
            without += launch
            copies += not launch
            lost_calls.append(call)
    numbers = {call.correlation for call in calls} - {0}
    first_number = min(numbers, default=0)
    first = min((each.start for each in work if each.correlation in numbers), default=math.inf)
    begun: dict[int, float] = {}
    for each in work:
        begun[each.correlation] = min(each.start, begun.get(each.correlation, math.inf))
    issuing = [
        (call.start, begun[call.correlation]) for call in calls if call.correlation in has_work
    ]
    lost_ns = lost_work_ns(
        lost_calls, issuing, WorkTimes([(each.start, each.end) for each in work]), end
    )
    lost, earlier, work_ns = list[DeviceWork](), 0, 0.0
    own = {call.correlation for call in _started(calls, begin, end)} - {0}
    done = max(
        [end, *(each.end for each in work if each.correlation in own)]
    )  # the device may be far behind
    for each in work:
        if not begin <= each.start < done:
            continue
        # Numbers grow: this was issued before the recording began, and had to wait in the queue.
        if 0 < each.correlation < first_number and each.start < first:
            earlier += 1
            continue
        work_ns += each.end - each.start
        if each.correlation not in numbers:
            lost.append(each)
    return dataclasses.replace(
        recording,
        launches=launches,
        launches_without_work=without,
        copies=copies,
        copies_without_work=len(lost_calls) - without,
        lost_ns=lost_ns,
        shared=shared,
        earlier=earlier,
        work_ns=work_ns,
        work_without_call=len(lost),
        work_without_call_ns=sum(each.end - each.start for each in lost),
        migrations=sum(each.name.startswith(MIGRATION) for each in lost),
    )


def _with_doubts(
    recording: Recording,
    windows: Sequence[_Window],
    operations: Sequence[HostOperation],
    calls: Sequence[HostCall],
    work: Sequence[DeviceWork],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> Recording:
    """The recording with what contradicts it in the steps."""
    times = WorkTimes([(each.start, each.end) for each in work])
    own = [
        call
        for start, end in union_of_spans(window[:2] for window in windows)
        for call in _started(calls, start, end)
    ]
    unexplained = [ns for call in own if (ns := unexplained_wait_ns(call, times)) > 0]
    slow: dict[str, float] = defaultdict(float)
    working = working_threads(operations, own)
    for call in own:
        if call.thread in working and may_wait(call, times):
            slow[call.name] += call.end - call.start - call.no_work
    nodes, missing = lost_nodes(own, by_correlation)
    return dataclasses.replace(
        recording,
        steps_ns=sum(end - start for start, end, _ in windows),
        waits=sum(call.kind == "synchronisation" for call in own),
        unexplained_waits=len(unexplained),
        unexplained_ns=sum(unexplained),
        nodes=nodes,
        nodes_missing=missing,
        may_wait=max(slow, key=slow.__getitem__, default=""),
        may_wait_ns=sum(slow.values()),
        beside_ns=other_threads_wait_ns(own, operations),
    )


def _captures(calls: Iterable[HostCall]) -> list[tuple[float, float]]:
    """When CUDA graphs are captured, by any thread."""
    found, began = list[tuple[float, float]](), None
    for call in calls:
        if "BeginCapture" in call.name:
            began = call.start
        elif "EndCapture" in call.name and began is not None:
            found.append((began, call.end))
            began = None
    return found


def _started(ordered: Sequence[_T], start: float, end: float) -> Sequence[_T]:
    """The elements that start in this time. ``ordered``: by start."""
    return ordered[
        bisect.bisect_left(ordered, start, key=_start) : bisect.bisect_left(
            ordered, end, key=_start
        )
    ]


def _site(name: str) -> CallSite:
    line, _, inside = name.removeprefix(SITE_MARK).partition("|")
    return CallSite(line=line, inside=inside)


class _Spans(Generic[_T]):
    """What holds a time of a thread. Given: for each the thread, start, end and value."""

    def __init__(self, spans: Iterable[tuple[str, float, float, _T]]) -> None:
        self._by_thread: dict[str, list[tuple[float, float, _T]]] = defaultdict(list)
        for thread, start, end, value in sorted(spans, key=lambda span: span[1]):
            self._by_thread[thread].append((start, end, value))

    def around(self, thread: str, start: float) -> _T | None:
        """The innermost one that holds this time."""
        spans = self._by_thread[thread]
        at = bisect.bisect_right(spans, start, key=lambda each: each[0])
        return next(
            (value for _, end, value in reversed(spans[max(0, at - 8) : at]) if end > start), None
        )

    def within(self, thread: str, start: float, end: float) -> _T | None:
        """The first one that begins in this time, else the one around it."""
        spans = self._by_thread[thread]
        at = bisect.bisect_left(spans, start, key=lambda each: each[0])
        return (
            spans[at][2] if at < len(spans) and spans[at][0] < end else self.around(thread, start)
        )


def _outermost(events: Iterable[TraceEvent], sites: _Spans[CallSite]) -> list[HostOperation]:
    by_thread: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.start, -event.end)):
        by_thread[str(event.tid)].append(event)
    found = []
    for thread, own in by_thread.items():
        starts, index = [event.start for event in own], 0
        while index < len(own):
            start, end = starts[index], own[index].end
            after = max(index + 1, bisect.bisect_left(starts, end))
            if own[index].name == DISPATCH_MODE and any(
                each.end > end for each in own[index + 1 : after]
            ):
                index += (
                    1  # it holds only the beginning of a range, such as that of a DataLoader's next
                )
                continue
            name = own[index].name[:1000].removeprefix(_BACKWARD)
            site = sites.within(thread, start, end) or NO_SITE
            found.append(HostOperation(name, start, end, thread, after - index - 1, site))
            index = after
    return sorted(found, key=_start)


def _calls(
    events: Iterable[TraceEvent],
    operations: Sequence[HostOperation],
    sites: _Spans[CallSite],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> Iterator[HostCall]:
    """The runtime calls by start, each with its operation and how long it waits for the device."""
    inside = _Spans((each.thread, each.start, each.end, each) for each in operations)
    queue = _PendingWork()
    for event in sorted(events, key=_start):
        name, start, end, thread = event.name[:1000], event.start, event.end, str(event.tid)
        kind, correlation = call_kind(name), event.args.correlation
        work = by_correlation.get(correlation, ()) if correlation else ()
        full = queue.issue(work, start, end) if work else 0.0
        late = max(
            [SKEW_NS, *(_TAIL * (each.end - each.start) for each in work if each.uploads_pageable)]
        )
        done = kind == "synchronisation" or any(
            each.blocks and each.end <= end + late for each in work
        )
        waits_for, blocked = queue.finished(start, end, late) if done else ((), 0.0)
        operation, site = inside.around(thread, start), sites.around(thread, start) or NO_SITE
        if not site.line and operation is not None:
            site = operation.site
        if kind == "other" and work:  # of a runtime whose names are not known
            kind = _kind_of_work(work[0].name)
        yield HostCall(
            name, kind, start, end, thread, correlation, blocked, full, waits_for, operation, site
        )


def _kind_of_work(name: str) -> CallKind:
    if name.startswith("Memcpy"):
        return "copy"
    return "set" if name.startswith("Memset") else "launch"


class _PendingWork:
    """The device work that has been issued so far, while the calls are read in order."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._last: dict[str, float] = {}
        self._usual: list[
            float
        ] = []  # how long each call took that issued work while the queue had room

    def issue(self, work: Iterable[DeviceWork], start: float, end: float) -> float:
        """A call that issues work: how long it waited for room in the queue."""
        full = (
            len(self._ends) - bisect.bisect_right(self._ends, start) >= _NEARLY_FULL * QUEUE_DEPTH
        )
        waited = (
            max(0.0, end - start - statistics.median(self._usual[:100] or [0.0])) if full else 0.0
        )
        if not full:
            self._usual.append(end - start)
        for each in work:
            bisect.insort(self._ends, each.end)
            self._last[each.stream] = max(self._last.get(each.stream, 0.0), each.end)
        return waited

    def finished(self, start: float, end: float, late: float) -> tuple[tuple[str, ...], float]:
        """A call that waits: the streams it waited for, and for how long. ``late``: ns that they
        may end later.
        """
        done = {stream: last for stream, last in self._last.items() if last <= end + late}
        return tuple(done), max(0.0, min(end, max(done.values(), default=start)) - start)
