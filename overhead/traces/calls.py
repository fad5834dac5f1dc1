"""The calls of the device's runtime or driver: what each does, and how long it waits."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from overhead.traces.clocks import SKEW_NS
from overhead.traces.events import TraceEvent
from overhead.traces.pending_work import AwaitedStreams, PendingWork, uncalled_work
from overhead.traces.spans import Span, Spans, start_of
from overhead.traces.stream_waits import StreamWait
from overhead.traces.trace import (
    NO_SITE,
    CallKind,
    CallSite,
    DeviceWork,
    HostCall,
    HostOperation,
    QueueAtCall,
)

_NO_WAIT = AwaitedStreams((), 0.0)
_NO_QUEUE = QueueAtCall()
_TAIL = 0.02
"""How much of an upload may follow the call that waits for it, as a share of the upload. Chosen,
not measured.
"""
_TO_HOST = re.compile(r"Memcpy DtoH", re.I)
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


@functools.lru_cache(maxsize=10_000)  # a recording has few names, and many calls
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
    told: Mapping[int, StreamWait],
) -> Iterator[HostCall]:
    """The calls by start, each with the operation that made it, its line of the program, and how
    long it waits for the device.

    ``operations``: those that no other one called. ``sites``: the lines of the program, by the time
    in which each runs. ``by_correlation``: by the number of a call the device work that it issued;
    ``told``: for what it waits, where the recording tells that.
    """
    of_operations = Spans(
        Span(operation.thread, operation.start, operation.end, operation)
        for operation in operations
    )
    events = sorted(events, key=start_of)
    all_work = itertools.chain.from_iterable(by_correlation.values())
    pending = PendingWork(told, uncalled_work(all_work, events))
    for event in events:
        pending.begin(event)
        work = by_correlation.get(event.correlation, ()) if event.correlation else ()
        queue = _NO_QUEUE
        queue_full_ns = 0.0
        if work:
            queue, queue_full_ns = pending.issue(work, event)

        kind = call_kind(event.name)
        # So long after the call's return the work may seem to end that it waited for.
        pageable = [piece for piece in work if piece.is_pageable]
        late_ns = _latest_end_ns(pageable)
        if kind == "synchronisation" and _returns_before(work, event.end + late_ns):
            kind = "copy"  # such as cudaMemcpy between two places of the device
        if kind == "other" and work:  # of a runtime whose names are not known
            kind = kind_of_work(work[0].name)

        # A wait returns when work is done. The call of a copy waits if the copy is done by then.
        wait = _NO_WAIT
        if kind == "synchronisation" or _waits_for_copy(pageable, event.end + late_ns):
            wait = pending.finished(event, late_ns)

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
            queue=queue,
            operation=operation,
            site=site,
        )


def _latest_end_ns(work: Iterable[DeviceWork]) -> float:
    """How long after a call's return the work may end, by the recording, that the call waited for;
    ns. ``work``: copies of pageable memory that the call itself issued.

    The clocks of host and device differ a little. And the call of an upload from pageable memory
    may return shortly before the upload ends: at most 2 % of its length (``_TAIL``).
    """
    late_ns = SKEW_NS  # what clocks of healthy machines differ by
    for piece in work:
        if piece.uploads_pageable:
            late_ns = max(late_ns, _TAIL * (piece.end - piece.start))
    return late_ns


def _returns_before(work: Sequence[DeviceWork], until: float) -> bool:
    """Whether a call returned before any work that it issued had ended, so that it did not wait.
    Only work other than copies to the host counts, since these are always waited for.
    """
    if not work or any(_TO_HOST.match(piece.name) for piece in work):
        return False
    return all(piece.end > until for piece in work)


def _waits_for_copy(work: Iterable[DeviceWork], until: float) -> bool:
    """Whether a call waits for a copy that it issued: one of pageable memory that is done then."""
    return any(piece.blocks and piece.end <= until for piece in work)
