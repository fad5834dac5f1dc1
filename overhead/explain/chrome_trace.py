"""Read the trace that ``torch.profiler.export_chrome_trace`` writes: its events as steps, calls and device work."""

from __future__ import annotations

import bisect
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from overhead.errors import BadFile
from overhead.explain.record import CallSite
from overhead.explain.trace import NO_SITE, TO_HOST, CallKind, DeviceWork, HostCall, HostOperation, StepTrace, Trace

STEP_MARK = "overhead step "
SITE_MARK = "overhead site "
"""Names of the annotations around a step, and around an operation whose line is known (``line|line of a library``)."""
_STEP = re.compile(rf"(?:ProfilerStep#|{STEP_MARK})(\d+)")

QUEUE_DEPTH = 1022
"""Pieces of work that CUDA's queue was seen to hold; with as many, a launch blocks until one has finished."""
_NEARLY_FULL = 0.98
_SKEW_NS = 2000.0
"""How far the clocks of host and device may differ."""

_CALLS: tuple[tuple[CallKind, str], ...] = (
    ("launch", r"(cuda|hip|cu)[A-Za-z]*Launch(?!HostFunc|Bounds)\w*"),
    ("synchronisation", r"(cuda|hip)(Stream|Device|Event)Synchronize\w*|cu(Stream|Ctx|Event)Synchronize\w*"),
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
    """What a call of the CUDA or HIP runtime or driver does, by its name."""
    return next((kind for kind, pattern in _CALLS if re.fullmatch(pattern, name)), "other")


@dataclass
class _Events:
    operations: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    device: list[dict[str, Any]] = field(default_factory=list)
    sites: list[dict[str, Any]] = field(default_factory=list)
    memory: list[dict[str, Any]] = field(default_factory=list)
    windows: list[tuple[float, float]] = field(default_factory=list)


_LISTS = {
    "cpu_op": "operations",
    "cuda_runtime": "calls",
    "cuda_driver": "calls",
    "kernel": "device",
    "gpu_memcpy": "device",
    "gpu_memset": "device",
    "cpu_instant_event": "memory",
}
_DEVICE_KINDS: Mapping[str, Literal["kernel", "copy", "set"]] = {
    "kernel": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "set",
}


def read_chrome_trace(raw: bytes, name: str = "the trace") -> Trace:
    """The steps of a trace that ``torch.profiler`` exported. Raises ``BadFile``; a trace without steps is one step."""
    try:
        data = msgspec.json.decode(raw, strict=False)
        events = data["traceEvents"] if isinstance(data, dict) else data
        found = _sorted_out(events)
        return Trace(list(_steps(found)))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadFile(f"{name}: not a trace: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _sorted_out(events: Iterable[dict[str, Any]]) -> _Events:
    found = _Events()
    for event in events:
        phase, category, name = event.get("ph"), str(event.get("cat", "")).lower(), str(event.get("name", ""))
        if phase == "X" and category in ("user_annotation", "cpu_op") and _STEP.fullmatch(name):
            found.windows.append((_start(event), _end(event)))
        elif phase == "X" and category in ("user_annotation", "cpu_op") and name.startswith(SITE_MARK):
            found.sites.append(event)
        elif (phase == "X" or category == "cpu_instant_event") and category in _LISTS:
            getattr(found, _LISTS[category]).append(event)
    return found


def _start(event: Mapping[str, Any]) -> float:
    return float(event["ts"]) * 1000


def _end(event: Mapping[str, Any]) -> float:
    return (float(event["ts"]) + float(event.get("dur", 0))) * 1000


def _thread(event: Mapping[str, Any]) -> str:
    return str(event.get("tid", ""))


def _arguments(event: Mapping[str, Any]) -> Mapping[str, Any]:
    return event.get("args") or {}


def _steps(found: _Events) -> Iterator[StepTrace]:
    by_correlation: dict[int, list[DeviceWork]] = {}
    for work in map(_device_work, found.device):
        by_correlation.setdefault(work.correlation, []).append(work)
    operations = _outermost(found.operations, found.sites)
    calls = list(_calls(found.calls, operations, _Sites(found.sites), by_correlation))
    memory = sorted(
        (float(event["ts"]) * 1000, int(_arguments(event).get("Bytes", 0)))
        for event in found.memory
        if event.get("name") == "[memory]"
    )
    windows = sorted(found.windows) or _one_window([*operations, *calls])
    for start, end in windows:
        own = [call for call in calls if start <= call.start < end]
        issued = [each for call in own for each in by_correlation.get(call.correlation, ()) if call.correlation]
        yield StepTrace(
            start,
            end,
            [operation for operation in operations if start <= operation.start < end],
            own,
            sorted(issued, key=lambda each: each.start),
            [size for when, size in memory if start <= when < end and size > 0],
        )


def _one_window(events: Sequence[HostOperation | HostCall]) -> list[tuple[float, float]]:
    if not events:
        return []
    return [(min(event.start for event in events), max(event.end for event in events) + 1)]


def _device_work(event: Mapping[str, Any]) -> DeviceWork:
    arguments = _arguments(event)
    stream = f"{arguments.get('device', event.get('pid', ''))}:{arguments.get('stream', event.get('tid', ''))}"
    return DeviceWork(
        str(event["name"]),
        _DEVICE_KINDS[str(event["cat"]).lower()],
        stream,
        _start(event),
        _end(event),
        int(arguments.get("correlation", 0)),
    )


class _Sites:
    """The call sites of a trace, by thread and time."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self._by_thread: dict[str, list[tuple[float, float, CallSite]]] = {}
        for event in events:
            line, _, inside = str(event["name"]).removeprefix(SITE_MARK).partition("|")
            site = CallSite(line=line, inside=inside)
            self._by_thread.setdefault(_thread(event), []).append((_start(event), _end(event), site))
        for sites in self._by_thread.values():
            sites.sort(key=lambda each: each[0])

    def around(self, thread: str, start: float) -> CallSite:
        """The innermost site that holds this time."""
        sites = self._by_thread.get(thread, [])
        at = bisect.bisect_right(sites, start, key=lambda each: each[0])
        return next((site for _, end, site in reversed(sites[max(0, at - 8) : at]) if end > start), NO_SITE)

    def within(self, thread: str, start: float, end: float) -> CallSite:
        """The first site that begins in this time, else the one around it."""
        sites = self._by_thread.get(thread, [])
        at = bisect.bisect_left(sites, start, key=lambda each: each[0])
        return sites[at][2] if at < len(sites) and sites[at][0] < end else self.around(thread, start)


def _outermost(events: Iterable[Mapping[str, Any]], marks: Iterable[Mapping[str, Any]]) -> list[HostOperation]:
    sites = _Sites(marks)
    by_thread: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        by_thread.setdefault(_thread(event), []).append(event)
    found = []
    for thread, own in by_thread.items():
        own.sort(key=lambda event: (_start(event), -_end(event)))
        index = 0
        while index < len(own):
            first, outer = index, own[index]
            start, end = _start(outer), _end(outer)
            index += 1
            while index < len(own) and _start(own[index]) < end:
                index += 1
            name, site = str(outer["name"]).removeprefix(_BACKWARD), sites.within(thread, start, end)
            found.append(HostOperation(name, start, end, thread, index - first - 1, site))
    return sorted(found, key=lambda operation: operation.start)


def _calls(
    events: Iterable[Mapping[str, Any]],
    operations: Sequence[HostOperation],
    sites: _Sites,
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> Iterator[HostCall]:
    """The runtime calls by start, each with its operation and how long it waits for the device."""
    events = sorted(events, key=_start)
    inside = _ByThread(operations)
    queue = _PendingWork(events, by_correlation)
    for event in events:
        name, start, end, thread = str(event["name"]), _start(event), _end(event), _thread(event)
        kind, correlation = call_kind(name), int(_arguments(event).get("correlation", 0))
        work = by_correlation.get(correlation, ()) if correlation else ()
        full = queue.waits_for_room(start, end) if work else 0.0
        queue.issue(work)
        done = kind == "synchronisation" or any(
            TO_HOST.search(each.name) and each.end <= end + _SKEW_NS for each in work
        )
        waits_for, blocked = queue.finished(start, end) if done else ((), 0.0)
        operation, site = inside.around(thread, start), sites.around(thread, start)
        if not site.line and operation is not None:
            site = operation.site
        yield HostCall(name, kind, start, end, thread, correlation, blocked, full, waits_for, operation, site)


class _PendingWork:
    """The device work that has been issued so far, while the calls are read in order."""

    def __init__(self, events: Sequence[Mapping[str, Any]], by_correlation: Mapping[int, Sequence[DeviceWork]]) -> None:
        self._ends: list[float] = []
        self._last: dict[str, float] = {}
        self._usual = _usual_launch(events, by_correlation)

    def issue(self, work: Iterable[DeviceWork]) -> None:
        for each in work:
            bisect.insort(self._ends, each.end)
            self._last[each.stream] = max(self._last.get(each.stream, 0.0), each.end)

    def waits_for_room(self, start: float, end: float) -> float:
        """How long a launch of this duration waited for room in the queue."""
        return max(0.0, end - start - self._usual) if _is_full(self._ends, start) else 0.0

    def finished(self, start: float, end: float) -> tuple[tuple[str, ...], float]:
        """A call that waits: the streams it waited for, and for how long."""
        done = {stream: last for stream, last in self._last.items() if last <= end + _SKEW_NS}
        return tuple(done), max(0.0, min(end, max(done.values(), default=start)) - start)


def _is_full(ends: list[float], at: float) -> bool:
    return len(ends) - bisect.bisect_right(ends, at) >= _NEARLY_FULL * QUEUE_DEPTH


def _usual_launch(events: Iterable[Mapping[str, Any]], by_correlation: Mapping[int, Sequence[DeviceWork]]) -> float:
    """How long a launch takes while the queue has room."""
    ends: list[float] = []
    found = []
    for event in events:
        start = _start(event)
        if call_kind(str(event["name"])) == "launch" and not _is_full(ends, start):
            found.append(_end(event) - start)
        for work in by_correlation.get(int(_arguments(event).get("correlation", 0)), ()):
            bisect.insort(ends, work.end)
    return statistics.median(found) if found else 0.0


class _ByThread:
    """Operations that do not overlap within a thread."""

    def __init__(self, operations: Iterable[HostOperation]) -> None:
        self._own: dict[str, list[HostOperation]] = {}
        for operation in operations:
            self._own.setdefault(operation.thread, []).append(operation)

    def around(self, thread: str, start: float) -> HostOperation | None:
        own = self._own.get(thread, [])
        at = bisect.bisect_right(own, start, key=lambda operation: operation.start) - 1
        return own[at] if at >= 0 and own[at].end > start else None
