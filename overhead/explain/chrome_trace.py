"""Read the trace that ``torch.profiler.export_chrome_trace`` writes: its events as steps, calls and device work."""

from __future__ import annotations

import bisect
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from overhead.errors import BadFile
from overhead.explain.record import CallSite
from overhead.explain.trace import NO_SITE, TO_HOST, CallKind, DeviceWork, HostCall, HostOperation, StepTrace, Trace

_T = TypeVar("_T")
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


_Event = Mapping[str, Any]
_LISTS = {
    "cpu_op": "operations",
    "cuda_runtime": "calls",
    "cuda_driver": "calls",
    "kernel": "device",
    "gpu_memcpy": "device",
    "gpu_memset": "device",
}


def read_chrome_trace(raw: bytes, name: str = "the trace") -> Trace:
    """The steps of a trace that ``torch.profiler`` exported. Raises ``BadFile``; a trace without steps is one step."""
    try:
        data = msgspec.json.decode(raw, strict=False)
        events = data["traceEvents"] if isinstance(data, dict) else data
        return Trace(list(_steps(_sorted_out(events))))
    except (msgspec.DecodeError, RecursionError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadFile(f"{name}: not a trace: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None


def _sorted_out(events: Iterable[_Event]) -> dict[str, list[_Event]]:
    """The events by kind: ``steps``, ``sites``, ``memory``, and the values of ``_LISTS``."""
    found: dict[str, list[_Event]] = defaultdict(list)
    for event in events:
        category, name = str(event.get("cat", "")).lower(), str(event.get("name", ""))
        kind = _LISTS.get(category, "")
        if category in ("user_annotation", "cpu_op"):
            kind = "steps" if _STEP.fullmatch(name) else "sites" if name.startswith(SITE_MARK) else kind
        if category == "cpu_instant_event" and name == "[memory]":
            found["memory"].append(event)
        elif kind and event.get("ph") == "X":
            found[kind].append(event)
    return found


def _start(event: _Event) -> float:
    return float(event["ts"]) * 1000


def _end(event: _Event) -> float:
    return (float(event["ts"]) + float(event.get("dur", 0))) * 1000


def _thread(event: _Event) -> str:
    return str(event.get("tid", ""))


def _arguments(event: _Event) -> Mapping[str, Any]:
    return event.get("args") or {}


def _steps(found: Mapping[str, list[_Event]]) -> Iterator[StepTrace]:
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for work in map(_device_work, found["device"]):
        by_correlation[work.correlation].append(work)
    sites = _Spans((_thread(each), _start(each), _end(each), _site(str(each["name"]))) for each in found["sites"])
    operations = _outermost(found["operations"], sites)
    calls = list(_calls(found["calls"], operations, sites, by_correlation))
    memory = sorted((_start(each), int(_arguments(each).get("Bytes", 0))) for each in found["memory"])
    windows = sorted((_start(each), _end(each)) for each in found["steps"])
    every: list[HostOperation | HostCall] = [*operations, *calls]
    if every and not windows:
        windows = [(min(each.start for each in every), max(each.end for each in every) + 1)]
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


def _device_work(event: _Event) -> DeviceWork:
    arguments = _arguments(event)
    stream = f"{arguments.get('device', event.get('pid', ''))}:{arguments.get('stream', event.get('tid', ''))}"
    return DeviceWork(
        str(event["name"]),
        stream,
        _start(event),
        _end(event),
        int(arguments.get("correlation", 0)),
    )


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
        return next((value for _, end, value in reversed(spans[max(0, at - 8) : at]) if end > start), None)

    def within(self, thread: str, start: float, end: float) -> _T | None:
        """The first one that begins in this time, else the one around it."""
        spans = self._by_thread[thread]
        at = bisect.bisect_left(spans, start, key=lambda each: each[0])
        return spans[at][2] if at < len(spans) and spans[at][0] < end else self.around(thread, start)


def _outermost(events: Iterable[_Event], sites: _Spans[CallSite]) -> list[HostOperation]:
    by_thread: dict[str, list[_Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (_start(event), -_end(event))):
        by_thread[_thread(event)].append(event)
    found = []
    for thread, own in by_thread.items():
        starts, index = [_start(event) for event in own], 0
        while index < len(own):
            start, end = starts[index], _end(own[index])
            after = max(index + 1, bisect.bisect_left(starts, end))
            name = str(own[index]["name"]).removeprefix(_BACKWARD)
            site = sites.within(thread, start, end) or NO_SITE
            found.append(HostOperation(name, start, end, thread, after - index - 1, site))
            index = after
    return sorted(found, key=lambda operation: operation.start)


def _calls(
    events: Iterable[_Event],
    operations: Sequence[HostOperation],
    sites: _Spans[CallSite],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> Iterator[HostCall]:
    """The runtime calls by start, each with its operation and how long it waits for the device."""
    inside = _Spans((each.thread, each.start, each.end, each) for each in operations)
    queue = _PendingWork()
    for event in sorted(events, key=_start):
        name, start, end, thread = str(event["name"]), _start(event), _end(event), _thread(event)
        kind, correlation = call_kind(name), int(_arguments(event).get("correlation", 0))
        work = by_correlation.get(correlation, ()) if correlation else ()
        full = queue.issue(work, start, end) if work else 0.0
        done = kind == "synchronisation" or any(
            TO_HOST.search(each.name) and each.end <= end + _SKEW_NS for each in work
        )
        waits_for, blocked = queue.finished(start, end) if done else ((), 0.0)
        operation, site = inside.around(thread, start), sites.around(thread, start) or NO_SITE
        if not site.line and operation is not None:
            site = operation.site
        yield HostCall(name, kind, start, end, thread, correlation, blocked, full, waits_for, operation, site)


class _PendingWork:
    """The device work that has been issued so far, while the calls are read in order."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._last: dict[str, float] = {}
        self._usual: list[float] = []
        """How long each call took that issued work while the queue had room."""

    def issue(self, work: Iterable[DeviceWork], start: float, end: float) -> float:
        """A call that issues work: how long it waited for room in the queue."""
        full = len(self._ends) - bisect.bisect_right(self._ends, start) >= _NEARLY_FULL * QUEUE_DEPTH
        waited = max(0.0, end - start - statistics.median(self._usual or [0.0])) if full else 0.0
        if not full:
            self._usual.append(end - start)
        for each in work:
            bisect.insort(self._ends, each.end)
            self._last[each.stream] = max(self._last.get(each.stream, 0.0), each.end)
        return waited

    def finished(self, start: float, end: float) -> tuple[tuple[str, ...], float]:
        """A call that waits: the streams it waited for, and for how long."""
        done = {stream: last for stream, last in self._last.items() if last <= end + _SKEW_NS}
        return tuple(done), max(0.0, min(end, max(done.values(), default=start)) - start)
