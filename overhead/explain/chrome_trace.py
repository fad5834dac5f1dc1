"""Read the trace that PyTorch's profiler exports, as steps; and mark operations with their lines for it."""

from __future__ import annotations

import bisect
import contextlib
import math
import operator
import os
import re
import statistics
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from overhead.errors import BadFile
from overhead.explain.record import CallSite
from overhead.explain.steps import call_site
from overhead.explain.trace import LOADER, NO_SITE, CallKind, DeviceWork, HostCall, HostOperation, StepTrace, Trace

_T = TypeVar("_T")
_start = operator.attrgetter("start")
STEP_MARK = "overhead step "
SITE_MARK = "overhead site "
"""Names of the annotations around a step, and around an operation whose line is known (``line|line of a library``)."""
_STEP = re.compile(r"(?:ProfilerStep#|(?:\w+ )?(?:step|iter|iteration|batch|token)[ _#:=-]+)\d+", re.I)

DISPATCH_MODE = "PythonDispatchMode"
"""The operation that torch records around a dispatch mode, where the library itself has none around it."""
QUEUE_DEPTH = 1022
"""Pieces of work that CUDA's queue was seen to hold; with as many, a launch blocks until one has finished."""
_NEARLY_FULL = 0.98
_SKEW_NS, _TAIL = 2000.0, 0.02
"""How far the clocks of host and device may differ; how much of an upload may follow the call that waits for it."""

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
    """What a call of the CUDA or HIP runtime or driver does, by its name; ``other`` if it is none of the kinds."""
    return next((kind for kind, pattern in _CALLS if re.fullmatch(pattern, name)), "other")


class EventArguments(msgspec.Struct, frozen=True, gc=False):
    """``correlation``: the number that a call and its device work share. ``size``: bytes of an allocation."""

    correlation: int = 0
    size: int = msgspec.field(name="Bytes", default=0)


class TraceEvent(msgspec.Struct, gc=False):
    """An event as PyTorch writes it. ``ts``, ``dur``: in µs. ``pid``, ``tid``: of device work, device and stream."""

    ts: float
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


_LATEST_US = 1e16
MOST_TRACE_BYTES, _MOST_OBJECTS, _MOST_STREAMS = 1 << 30, 20_000_000, 1000
"""Most bytes of a file, objects in it, and streams of a device."""
_KINDS = {
    "cpu_op": "operations",
    "user_annotation": "annotations",
    "cpu_instant_event": "memory",
    **dict.fromkeys(("cuda_runtime", "cuda_driver"), "calls"),
    **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset"), "work"),
}


def read_chrome_trace(raw: bytes, name: str = "the trace") -> Trace:
    """The steps of a trace that ``torch.profiler`` exported. Raises ``BadFile``; a trace without steps is one step."""
    try:
        if raw.count(b"{") > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
        found = msgspec.json.decode(raw, type=_File | list[TraceEvent], strict=False)
        data = _File(found) if isinstance(found, list) else found
        steps = steps_of(data.traceEvents)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadFile(f"{name}: not a trace: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
    device = str(data.deviceProperties[0].get("name", "")) if data.deviceProperties else ""
    return Trace(steps, device[:200], str(data.distributedInfo.get("rank", ""))[:200])


def steps_of(events: Iterable[TraceEvent]) -> list[StepTrace]:
    """The steps of a trace, each with the device work that it issued. Raises ``ValueError`` for too many streams."""
    of: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        kind = _KINDS.get(event.cat, "") if event.ph == "X" or event.cat == "cpu_instant_event" else ""
        if kind in ("operations", "annotations"):
            kind = "steps" if _STEP.fullmatch(event.name) else "sites" if event.name.startswith(SITE_MARK) else kind
            kind = "operations" if event.name.startswith(LOADER) else kind
        if 0 <= event.dur < _LATEST_US and abs(event.ts) < _LATEST_US:
            of[kind].append(event)
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for each in of["work"]:
        work = DeviceWork(each.name[:1000], f"{each.pid}:{each.tid}", each.start, each.end, each.args.correlation)
        by_correlation[work.correlation].append(work)
    if len({(each.pid, each.tid) for each in of["work"]}) > _MOST_STREAMS:
        raise ValueError(f"more than {_MOST_STREAMS:,} streams")
    marks: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for each in of["steps"]:
        marks[each.name.rstrip("0123456789")].append((each.start, each.end))
    # Of the marks that differ only in their number, the steps are those that take longest together.
    windows = sorted(max(marks.values(), key=lambda own: sum(end - start for start, end in own), default=[]))
    # A longer operation, such as the range of an epoch, holds steps.
    longest = max((end - start for start, end in windows), default=math.inf)
    sites = _Spans((str(each.tid), each.start, each.end, _site(each.name)) for each in of["sites"])
    operations = _outermost((each for each in of["operations"] if each.end - each.start <= longest), sites)
    calls = list(_calls(of["calls"], operations, sites, by_correlation))
    memory = sorted((each for each in of["memory"] if each.args.size > 0), key=_start)
    every: list[HostOperation | HostCall] = [*operations, *calls]
    if every and not windows:
        windows = [(min(each.start for each in every), max(each.end for each in every) + 1)]
    steps = []
    for start, end in windows:
        own = _started(calls, start, end)
        issued = [each for call in own for each in by_correlation.get(call.correlation, ()) if call.correlation]
        sizes = [each.args.size for each in _started(memory, start, end)]
        steps.append(StepTrace(start, end, _started(operations, start, end), own, sorted(issued, key=_start), sizes))
    return steps


def _started(ordered: Sequence[_T], start: float, end: float) -> Sequence[_T]:
    """The elements that start in this time. ``ordered``: by start."""
    return ordered[bisect.bisect_left(ordered, start, key=_start) : bisect.bisect_left(ordered, end, key=_start)]


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
            if own[index].name == DISPATCH_MODE and any(each.end > end for each in own[index + 1 : after]):
                index += 1  # it holds only the beginning of a range, such as that of a DataLoader's next
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
        late = max([_SKEW_NS, *(_TAIL * (each.end - each.start) for each in work if each.uploads_pageable)])
        done = kind == "synchronisation" or any(each.blocks and each.end <= end + late for each in work)
        waits_for, blocked = queue.finished(start, end, late) if done else ((), 0.0)
        operation, site = inside.around(thread, start), sites.around(thread, start) or NO_SITE
        if not site.line and operation is not None:
            site = operation.site
        yield HostCall(name, kind, start, end, thread, correlation, blocked, full, waits_for, operation, site)


class _PendingWork:
    """The device work that has been issued so far, while the calls are read in order."""

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._last: dict[str, float] = {}
        self._usual: list[float] = []  # how long each call took that issued work while the queue had room

    def issue(self, work: Iterable[DeviceWork], start: float, end: float) -> float:
        """A call that issues work: how long it waited for room in the queue."""
        full = len(self._ends) - bisect.bisect_right(self._ends, start) >= _NEARLY_FULL * QUEUE_DEPTH
        waited = max(0.0, end - start - statistics.median(self._usual[:100] or [0.0])) if full else 0.0
        if not full:
            self._usual.append(end - start)
        for each in work:
            bisect.insort(self._ends, each.end)
            self._last[each.stream] = max(self._last.get(each.stream, 0.0), each.end)
        return waited

    def finished(self, start: float, end: float, late: float) -> tuple[tuple[str, ...], float]:
        """A call that waits: the streams it waited for, and for how long. ``late``: ns that they may end later."""
        done = {stream: last for stream, last in self._last.items() if last <= end + late}
        return tuple(done), max(0.0, min(end, max(done.values(), default=start)) - start)


def torch_folders(torch: Any) -> list[str]:
    """The folders of torch and its libraries, each with a separator at its end; their lines tell a user nothing."""
    home = Path(torch.__file__).parents[1]
    return [str(home / name) + os.sep for name in ("torch", "triton", "functorch")]


@contextlib.contextmanager
def marked_sites(torch: Any, folder: str) -> Iterator[None]:
    """A context that writes the program's line of each operation and wait into PyTorch's profile, for later reading.

    ``folder``: lines are written relative to it.
    """
    from unittest import mock

    from torch.utils._python_dispatch import TorchDispatchMode

    libraries = torch_folders(torch)
    mark = torch._C._profiler._RecordFunctionFast
    main = threading.main_thread().ident

    def marked(frame: Any) -> Any:
        site = call_site(frame, folder, libraries)
        if not site.line and threading.get_ident() != main and main is not None:
            # A backward pass on a device runs in a thread of its own, while the program waits in its line.
            site = call_site(sys._current_frames().get(main), folder, libraries)
        return mark(f"{SITE_MARK}{site.line}|{site.inside}")

    class Sites(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with marked(sys._getframe(1)):
                return func(*args, **(kwargs or {}))

    def waiting(call: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            with marked(sys._getframe(1)):
                return call(*args, **kwargs)

        return wait

    waits = [(torch.cuda.Stream, "synchronize"), (torch.cuda.Event, "synchronize"), (torch._C, "_cuda_synchronize")]
    with contextlib.ExitStack() as ends:
        for owner, name in waits:
            if hasattr(owner, name):
                ends.enter_context(mock.patch.object(owner, name, waiting(getattr(owner, name))))
        with Sites():
            yield
