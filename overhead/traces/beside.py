"""Threads beside the program, such as one that pins memory and uploads it. They wait for streams of
their own, and hold up nobody else. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from overhead.traces.doubts import working_threads
from overhead.traces.trace import DeviceWork, HostCall, HostOperation

_OF_A_DEVICE = re.compile(r"\w*(Device|Ctx|Context|Thread)Synchronize\w*")
"""A wait for all streams is for the program's work too."""


def without_waits_beside(
    calls: Sequence[HostCall],
    operations: Sequence[HostOperation],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> list[HostCall]:
    """The calls, without the waits of threads beside the program: threads that neither run
    operations nor launch kernels, and that wait for work of their own. The program goes on
    meanwhile. A thread that issues no work may be one that the program waits for, so its waits
    stay. If a recording does not tell the stream of a wait, the thread's own stream is taken.

    A thread that issues nothing itself may be the one that the program waits for. Where a recording
    does not tell for which stream a call waits, the thread's own is taken.
    """
    working = working_threads(operations, calls)
    of_program: set[str] = set()
    of_threads: dict[str, set[str]] = defaultdict(set)
    for call in calls:
        if call.correlation:
            streams = {work.stream for work in by_correlation.get(call.correlation, ())}
            of_threads[call.thread] |= streams
            if call.thread in working:
                of_program |= streams

    kept = []
    for call in calls:
        own = of_threads[call.thread] - of_program
        is_beside = call.thread not in working and not own.isdisjoint(call.waits_for)
        if is_beside and not _OF_A_DEVICE.fullmatch(call.name):
            call = msgspec.structs.replace(call, blocked=0.0, waits_for=(), beside=True)
        kept.append(call)
    return kept
