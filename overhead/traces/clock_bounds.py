"""What the calls and the device work of a recording tell of its two clocks."""

from __future__ import annotations

import functools
import heapq
import math
import re
from collections import defaultdict
from collections.abc import Sequence

from overhead.traces.calls import call_kind
from overhead.traces.clocks import ClockBound, Clocks, clocks_of
from overhead.traces.events import TraceEvent
from overhead.traces.spans import start_of
from overhead.traces.trace import DeviceWork

_ADDED_VERSION = re.compile(r"_v\d{4,}$")
"""CUPTI adds the version of CUDA to a name: ``cudaLaunchKernel_v7000``."""
_WHOLE_DEVICE = re.compile(r"(cuda|hip)DeviceSynchronize|cuCtxSynchronize")
"""Calls that wait for all work of a device."""
_ONE_STREAM = re.compile(r"(cuda|hip)StreamSynchronize\w*|cuStreamSynchronize")
"""Calls that wait for the work of one stream; the trace does not tell which."""


def compare_clocks(calls: Sequence[TraceEvent], work: Sequence[DeviceWork]) -> Clocks:
    """Compare the clocks of host and device by the waits and launches of a recording.

    Work that a wait waited for must have ended when the wait returns; by how much it seems to end
    later, the device's clock is late at least. Work cannot begin before its call does; by how much
    it begins later, the clock is late at most. The result fits between all these bounds.
    """
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for piece in work:
        by_correlation[piece.correlation].append(piece)
    one_device = len({piece.device for piece in work}) == 1
    one_stream = len({piece.stream for piece in work}) == 1
    without_wait_after = _without_wait_after(calls)

    waits: list[ClockBound] = []
    starts: list[ClockBound] = []
    # Calls of any thread that have not returned: when each returns, and when its work ends. A wait
    # that begins meanwhile may not wait for their work. A heap: the next to return is first.
    running: list[tuple[float, float]] = []
    last_end = -math.inf
    """When the work of all calls ends that have returned before the current call."""
    for call in sorted(calls, key=start_of):
        while running and running[0][0] <= call.start:
            _, work_end = heapq.heappop(running)
            last_end = max(last_end, work_end)

        # A bound: when it holds, and by how much the device's clock is late at least.
        if last_end > -math.inf and _waits_for_all(call.name, one_device, one_stream):
            waits.append(ClockBound(call.end, last_end - call.end))

        issued = by_correlation.get(call.correlation, ()) if call.correlation else ()
        if not issued:
            continue
        # Here the clock is late at most by so much.
        first_start = min(piece.start for piece in issued)
        starts.append(ClockBound(call.start, first_start - call.start))
        # The call of a copy to pageable memory is a wait for that copy.
        if call.correlation in without_wait_after:
            for piece in issued:
                if piece.copies_to_pageable:
                    waits.append(ClockBound(call.end, piece.end - call.end))
        heapq.heappush(running, (call.end, max(piece.end for piece in issued)))
    return clocks_of(waits, starts)


@functools.lru_cache(maxsize=100_000)
def _waits_for_all(name: str, one_device: bool, one_stream: bool) -> bool:
    """Whether a call of this name waits for all recorded work: of the only device, or of the only
    stream. With several of them, the trace does not tell for which the call waits.
    """
    name = _ADDED_VERSION.sub("", name)  # such as ``_v7000`` at the end
    if one_device and _WHOLE_DEVICE.fullmatch(name):
        return True
    return one_stream and _ONE_STREAM.fullmatch(name) is not None


@functools.lru_cache(maxsize=100_000)
def _is_synchronisation(name: str) -> bool:
    return call_kind(_ADDED_VERSION.sub("", name)) == "synchronisation"


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
        if not _is_synchronisation(call.name):
            numbers.add(before)
        last_of_thread[call.thread] = call.correlation
    numbers.update(last_of_thread.values())  # nothing follows the last call of a thread
    numbers.discard(0)  # 0 stands for a call without a number
    return numbers
