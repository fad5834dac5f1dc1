"""What the calls and the device work of a recording tell of its clocks."""

from __future__ import annotations

import dataclasses
import functools
import heapq
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from overhead.traces.calls import call_kind
from overhead.traces.clocks import LEAST_WAKE_OF_HIP_NS, ClockBound, Clocks, clocks_of
from overhead.traces.events import TraceEvent
from overhead.traces.pending_work import uncalled_work
from overhead.traces.spans import start_of
from overhead.traces.stream_waits import StreamWait
from overhead.traces.trace import DeviceWork

_ADDED_VERSION = re.compile(r"_v\d{4,}$")
"""CUPTI adds the version of CUDA to a name: ``cudaLaunchKernel_v7000``."""
_WHOLE_DEVICE = re.compile(r"(cuda|hip)DeviceSynchronize|cuCtxSynchronize")
"""Calls that wait for all work of a device."""
_ONE_STREAM = re.compile(r"(cuda|hip)StreamSynchronize\w*|cuStreamSynchronize|urQueueFinish")
"""Calls that wait for the work of one stream; most recordings do not tell which."""
_COPY_THAT_WAITS = re.compile(r"(cuda|hip)Memcpy(DtoH)?|cuMemcpyDtoH(_v2)?")
"""Calls that return when a copy to the host is done; copies from it may still run."""
_COPY_AND_WAIT = "hipMemcpyWithStream"
"""A call that copies in any direction, and then waits for its stream."""
_TO_HOST = re.compile(r"Memcpy DtoH|Memcpy Device ?To ?Host|CopyDeviceToHost", re.I)


@functools.lru_cache(maxsize=10_000)  # a recording has few names, and many calls
def _plain_name(name: str) -> str:
    """The name without what CUPTI adds to it."""
    return _ADDED_VERSION.sub("", name)


_RunningCall = tuple[float, int, Sequence[DeviceWork]]
"""When a call returns, its place among the calls, and its work."""


def compare_clocks(
    calls: Sequence[TraceEvent], work: Sequence[DeviceWork], told: Mapping[int, StreamWait]
) -> dict[str, Clocks]:
    """Compare the clocks of host and device by the waits and launches of a recording; by device,
    since each has a clock of its own. ``told``: by the number of a call for what it waits.

    Work that a wait waited for must have ended when the wait returns; by how much it seems to end
    later, the device's clock is late at least. Work cannot begin before its call does; by how much
    it begins later, the clock is late at most. The result fits between all these bounds.
    """
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for piece in work:
        by_correlation[piece.correlation].append(piece)
    streams = {piece.stream: piece.device for piece in work}
    devices = sorted(set(streams.values()))
    without_wait_after = _without_wait_after(calls)
    # At these calls, events were recorded for which a later call waits.
    records = {wait.record for wait in told.values()} - {0}

    waits: dict[str, list[ClockBound]] = {device: [] for device in devices}
    starts: dict[str, list[ClockBound]] = {device: [] for device in devices}
    # Calls of any thread that have not returned: when each returns, and its work. A wait that
    # begins meanwhile may not wait for their work. A heap: the next to return is first.
    running: list[_RunningCall] = []
    # By stream, when the work of all calls ends that have returned before the current call, also of
    # those before the recording.
    ends = _last_ends(uncalled_work(work, calls).earlier)
    ends_at_record: dict[int, dict[str, float]] = {}
    for number, call in enumerate(sorted(calls, key=start_of)):
        _note_returned(running, call.start, ends)
        if call.correlation in records:
            ends_at_record[call.correlation] = dict(ends)

        # A bound: when it holds, and by how much the device's clock is late at least.
        wait = told.get(call.correlation)
        for device, last_end in _awaited(call.name, wait, ends, ends_at_record, streams).items():
            waits[device].append(ClockBound(call.end, last_end - call.end))

        issued = by_correlation.get(call.correlation, ()) if call.correlation else ()
        if not issued:
            continue
        # Here the clock is late at most by so much.
        first = issued[0] if len(issued) == 1 else min(issued, key=start_of)
        starts[first.device].append(ClockBound(call.start, first.start - call.start))
        returns_when_done = _returns_when_done(call, without_wait_after)
        for piece in issued if returns_when_done is not _never else ():
            if returns_when_done(piece):
                waits[piece.device].append(ClockBound(call.end, piece.end - call.end))
        heapq.heappush(running, (call.end, number, issued))

    by_device = {}
    for device in devices:
        found = clocks_of(waits[device], starts[device])
        name = device if len(devices) > 1 else ""
        if any(call.name.startswith("hip") for call in calls):
            found = dataclasses.replace(found, least_wake_ns=LEAST_WAKE_OF_HIP_NS)
        by_device[device] = dataclasses.replace(found, device=name)
    return by_device


def _last_ends(work: Iterable[DeviceWork]) -> dict[str, float]:
    """By stream, when the last of this work ends."""
    ends: dict[str, float] = {}
    for piece in work:
        ends[piece.stream] = max(ends.get(piece.stream, -math.inf), piece.end)
    return ends


def _note_returned(running: list[_RunningCall], now: float, ends: dict[str, float]) -> None:
    """Add the work of the calls that have returned by now to ``ends``, the last end by stream, and
    take these calls out of the heap.
    """
    while running and running[0][0] <= now:
        _, _, issued = heapq.heappop(running)
        for piece in issued:
            if piece.end > ends.get(piece.stream, -math.inf):
                ends[piece.stream] = piece.end


def _awaited(
    name: str,
    wait: StreamWait | None,
    ends: Mapping[str, float],
    ends_at_record: Mapping[int, Mapping[str, float]],
    streams: Mapping[str, str],
) -> dict[str, float]:
    """By device when the work ends that a call of this name waits for; empty if it is no wait, or
    nobody knows for what.

    ``wait``: for what the recording says that it waits. ``ends``: by stream the end of all work of
    earlier calls; ``ends_at_record``: the same at the calls that recorded an event. ``streams``:
    the device of each.
    """
    name = _plain_name(name)  # such as ``_v7000`` at the end
    if wait is not None and not wait.holds:
        if wait.record:
            ends = ends_at_record.get(wait.record, {})
        awaited = [stream for stream in ends if wait.covers(stream)]
    elif wait is None and _waits_for_all(name, streams):
        awaited = list(ends)
    else:
        return {}
    by_device: dict[str, float] = {}
    for stream in awaited:
        device = streams[stream]
        by_device[device] = max(by_device.get(device, -math.inf), ends[stream])
    return by_device


def _waits_for_all(name: str, streams: Mapping[str, str]) -> bool:
    """Whether a call of this name waits for all recorded work: of the only device, or of the only
    stream. With several of them, the trace does not tell for which the call waits.
    """
    if _waits_for_device(name):
        return len(set(streams.values())) == 1
    return len(streams) == 1 and _waits_for_stream(name)


@functools.lru_cache(maxsize=10_000)
def _waits_for_device(name: str) -> bool:
    return _WHOLE_DEVICE.fullmatch(name) is not None


@functools.lru_cache(maxsize=10_000)
def _waits_for_stream(name: str) -> bool:
    return _ONE_STREAM.fullmatch(name) is not None


def _returns_when_done(
    call: TraceEvent, without_wait_after: set[int]
) -> Callable[[DeviceWork], bool]:
    """Which of the work of a call is done when the call returns: a copy to the host, if the call is
    one that waits; and a copy to pageable memory.
    """
    if call.name == _COPY_AND_WAIT:
        return _always
    if _is_copy_that_waits(call.name):
        return _copies_to_host
    if call.correlation in without_wait_after:
        return _copies_to_pageable
    return _never


@functools.lru_cache(maxsize=10_000)
def _is_copy_that_waits(call: str) -> bool:
    return _COPY_THAT_WAITS.fullmatch(_plain_name(call)) is not None


def _copies_to_host(piece: DeviceWork) -> bool:
    return _TO_HOST.search(piece.name) is not None


def _copies_to_pageable(piece: DeviceWork) -> bool:
    return piece.copies_to_pageable


def _always(piece: DeviceWork) -> bool:
    return True


def _never(piece: DeviceWork) -> bool:
    return False


def _without_wait_after(calls: Sequence[TraceEvent]) -> set[int]:
    """The numbers of the calls whose next call in the same thread is no wait.

    The call of a copy to pageable memory returns when the copy is done; only where nothing waits
    after it is that sure.
    """
    numbers: set[int] = set()
    last_of_thread: dict[str, int] = {}
    for call in sorted(calls, key=start_of):
        # This call tells of the one before it whether a wait follows.
        before = last_of_thread.get(call.thread, 0)
        if call_kind(_plain_name(call.name)) != "synchronisation":
            numbers.add(before)
        last_of_thread[call.thread] = call.correlation
    numbers.update(last_of_thread.values())  # nothing follows the last call of a thread
    numbers.discard(0)  # 0 stands for a call without a number
    return numbers
