"""The calls of the device's runtime or driver: what each does, and how long it waits."""

from __future__ import annotations

import bisect
import functools
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from overhead.traces.clocks import SKEW_NS
from overhead.traces.events import TraceEvent
from overhead.traces.spans import Span, Spans, start_of
from overhead.traces.trace import (
    NO_SITE,
    CallKind,
    CallSite,
    DeviceWork,
    HostCall,
    HostOperation,
)

QUEUE_DEPTH = 1022
"""Pieces of work that CUDA's queue was seen to hold in recorded traces; with as many, a launch
blocks until one has finished.
"""
_NEARLY_FULL = 0.98
"""The queue counts as full from this share of its depth on. Chosen, not measured; the clocks of
host and device differ, so a few pieces may have ended that the trace still shows.
"""
_USUAL_CALLS = 100
"""The median of so many calls at the beginning is what a launch takes while the queue has room.
Chosen, not measured.
"""
_TAIL = 0.02
"""How much of an upload may follow the call that waits for it, as a share of the upload. Chosen,
not measured.
"""
_MOST_NAME = 1000
"""Most characters of a name."""

_KINDS: tuple[tuple[CallKind, str], ...] = (
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
"""By the name of a call what it does; the first pattern that fits counts."""


@functools.lru_cache(maxsize=100_000)
def call_kind(name: str) -> CallKind:
    """What a call of the CUDA, HIP or Intel runtime or driver does, by its name: a launch, a wait
    (``synchronisation``), a copy and so on; ``other`` if it is none of the kinds.
    """
    for kind, pattern in _KINDS:  # the first pattern that fits decides
        if re.fullmatch(pattern, name):
            return kind
    return "other"


def kind_of_work(name: str) -> CallKind:
    """What a call does that issued device work of this name."""
    if name.startswith("Memcpy"):
        return "copy"
    return "set" if name.startswith("Memset") else "launch"


def host_calls(
    events: Iterable[TraceEvent],
    operations: Sequence[HostOperation],
    sites: Spans[CallSite],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> Iterator[HostCall]:
    """The calls by start, each with the operation that made it, its line of the program, and how
    long it waits for the device.

    ``operations``: those that no other one called. ``sites``: the lines of the program, by the time
    in which each runs. ``by_correlation``: by the number of a call the device work that it issued.
    """
    of_operations = Spans(
        Span(operation.thread, operation.start, operation.end, operation)
        for operation in operations
    )
    queue = _PendingWork()
    for event in sorted(events, key=start_of):
        work = by_correlation.get(event.correlation, ()) if event.correlation else ()
        queue_full_ns = queue.issue(work, event.start, event.end) if work else 0.0

        kind = call_kind(event.name)
        if kind == "other" and work:  # of a runtime whose names are not known
            kind = kind_of_work(work[0].name)

        # A wait returns when work is done. The call of a copy waits if the copy is done by then.
        wait = _NO_WAIT
        # So long after the call's return the work may seem to end that it waited for.
        late_ns = _latest_end_ns(work)
        if call_kind(event.name) == "synchronisation" or _waits_for_copy(work, event.end + late_ns):
            wait = queue.finished(event.start, event.end, late_ns)

        operation = of_operations.around(event.thread, event.start)
        site = sites.around(event.thread, event.start) or NO_SITE
        # No line is marked at the start of this call, but one may be inside its operation.
        if not site.line and operation is not None:
            site = operation.site
        yield HostCall(
            name=event.name[:_MOST_NAME],
            kind=kind,
            start=event.start,
            end=event.end,
            thread=event.thread,
            correlation=event.correlation,
            blocked=wait.blocked_ns,
            queue_full=queue_full_ns,
            waits_for=wait.streams,
            operation=operation,
            site=site,
        )


def _latest_end_ns(work: Iterable[DeviceWork]) -> float:
    """How long after a call's return the work may end, by the recording, that the call waited for;
    ns. ``work``: what the call itself issued.

    The clocks of host and device differ a little. And the call of an upload from pageable memory
    may return shortly before the upload ends: at most 2 % of its length (``_TAIL``).
    """
    late_ns = SKEW_NS  # what clocks of healthy machines differ by
    for piece in work:
        if piece.uploads_pageable:
            late_ns = max(late_ns, _TAIL * (piece.end - piece.start))
    return late_ns


def _waits_for_copy(work: Iterable[DeviceWork], until: float) -> bool:
    """Whether a call waits for a copy that it issued: one of pageable memory that is done then."""
    return any(piece.blocks and piece.end <= until for piece in work)


class _Wait(NamedTuple):
    """The streams that a call waits for, and how long it is blocked."""

    streams: tuple[str, ...]
    blocked_ns: float


_NO_WAIT = _Wait((), 0.0)


class _PendingWork:
    """The device work that has been issued so far, to find which calls had to wait for it. The
    calls are given in the order of their start.
    """

    def __init__(self) -> None:
        self._ends: list[float] = []
        self._last_end: dict[str, float] = {}
        self._with_room_ns: list[float] = []
        """How long each call took that issued work while the queue had room."""

    def issue(self, work: Iterable[DeviceWork], start: float, end: float) -> float:
        """Note the work that a call issues. Returns how long the call waited for room in the
        queue, ns.

        CUDA's queue holds about 1,000 pieces of work. If it is full, a launch blocks. The call then
        waited for what it took beyond a usual call with room in the queue.
        """
        # Work that was issued, and that had not ended when this call began.
        pending = len(self._ends) - bisect.bisect_right(self._ends, start)
        waited_ns = 0.0
        # Nearly: the clocks differ, so work that has just ended may still count as pending.
        if pending >= _NEARLY_FULL * QUEUE_DEPTH:
            # 0 if no call had room yet: then all of this one counts as waiting.
            usual_ns = statistics.median(self._with_room_ns[:_USUAL_CALLS] or [0.0])
            waited_ns = max(0.0, end - start - usual_ns)
        else:
            self._with_room_ns.append(end - start)
        # The ends of all work are kept sorted, and by stream the end of its last work.
        for piece in work:
            bisect.insort(self._ends, piece.end)
            self._last_end[piece.stream] = max(self._last_end.get(piece.stream, 0.0), piece.end)
        return waited_ns

    def finished(self, start: float, end: float, late_ns: float) -> _Wait:
        """What a call waits for: the streams whose work has all ended when the call returns, or up
        to ``late_ns`` later. The call is blocked until the last of these ends.

        The recording does not tell which stream a call waits for. A stream with work left at its
        return cannot be the one.
        """
        done = {
            stream: last_end
            for stream, last_end in self._last_end.items()
            if last_end <= end + late_ns
        }
        last = max(done.values(), default=start)
        return _Wait(tuple(done), max(0.0, min(end, last) - start))
