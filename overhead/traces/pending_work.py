"""The device work that is issued and has not ended, call by call: what each call finds on the
device, and for what it waits. Pure; ns.
"""

from __future__ import annotations

import bisect
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from overhead.traces.events import TraceEvent
from overhead.traces.spans import start_of
from overhead.traces.stream_waits import StreamWait
from overhead.traces.trace import DeviceWork, QueueAtCall

IDLE_WAIT_NS = 20_000.0
"""At most so long lasts a call that waits for nothing. Of 1,381 such calls in 53 published traces
half take 2.8 µs, 90 % at most 8.9 µs, and 5 % more than this; those that were looked at are of
programs with managed memory, whose migrations are no recorded work. Chosen above most of them.
"""
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
_TELLS_TO_WAIT = re.compile(r"StreamWaitEvent|StreamWaitValue")
"""Calls that tell a stream to wait, for other streams mostly."""


class AwaitedStreams(NamedTuple):
    """The streams that a call waits for, and how long it is blocked."""

    streams: tuple[str, ...]
    blocked_ns: float


class Issued(NamedTuple):
    """What a call that issues work finds on the device, and how long it waited for room in the
    queue, ns.
    """

    queue: QueueAtCall
    queue_full_ns: float


class UncalledWork(NamedTuple):
    """Work that no recorded call issued. ``earlier``: what was issued before the recording began;
    ``lost``: the rest.
    """

    earlier: list[DeviceWork]
    lost: list[DeviceWork]


def uncalled_work(work: Iterable[DeviceWork], calls: Iterable[TraceEvent]) -> UncalledWork:
    """The work that none of these calls issued: a call and its work have the same number."""
    numbers = {call.correlation for call in calls} - {0}  # 0: no number
    first_number = min(numbers, default=0)
    found = UncalledWork([], [])
    for piece in work:
        if piece.correlation in numbers:
            continue
        # Numbers grow.
        is_earlier = 0 < piece.correlation < first_number
        (found.earlier if is_earlier else found.lost).append(piece)
    return found


class PendingWork:
    """The device work that has been issued so far, to find which calls had to wait for it, and
    which work had to wait. The calls are given in the order of their start.

    ``told``: by the number of a call for what it waits, where the recording tells it.
    ``uncalled``: work that no recorded call issued.
    """

    def __init__(self, told: Mapping[int, StreamWait], uncalled: UncalledWork) -> None:
        self._told = told
        self._ends: list[float] = []
        self._last_end: dict[str, float] = {}
        self._last_end_of_device: dict[str, float] = {}
        self._with_room_ns: list[float] = []
        """How long each call took that issued work while the queue had room."""
        for piece in uncalled.earlier:
            self._add(piece)
        # When work was issued whose call is lost is not known, but it was before it began. The last
        # to begin is the first here.
        self._lost = sorted(uncalled.lost, key=start_of, reverse=True)
        self._seen: set[tuple[str, str]] = set()
        """Calls that issued work, with the name of its first kernel."""

        self._last_call: dict[str, float] = {}
        """By stream when a call last issued work to it."""
        self._event_wait_at = -math.inf
        """When any stream was last told to wait, and the recording does not tell for which."""
        self._held_until: dict[str, float] = defaultdict(_never)
        """By stream that was told to wait, when the work ends for which it waits."""
        self._records = {wait.record for wait in told.values()} - {0}
        self._ends_at_record: dict[int, dict[str, float]] = {}
        """By the number of a call that recorded an event: when the work before it ends."""

    def begin(self, call: TraceEvent) -> None:
        """Note that a call begins. This comes before all else that is asked about it."""
        while self._lost and self._lost[-1].start <= call.start:
            self._add(self._lost.pop())
        if call.correlation in self._records:
            self._ends_at_record[call.correlation] = dict(self._last_end)

        told = self._told.get(call.correlation)
        if told is not None and told.holds:
            until = max(self._awaited(told).values(), default=-math.inf)
            self._held_until[told.holds] = max(self._held_until[told.holds], until)
        elif told is None and _TELLS_TO_WAIT.search(call.name):
            self._event_wait_at = call.start

    def issue(self, work: Sequence[DeviceWork], call: TraceEvent) -> Issued:
        """Note the work that a call issues.

        CUDA's queue holds about 1,000 pieces of work. If it is full, a launch blocks. The call then
        waited for what it took beyond a usual call with room in the queue.
        """
        # Work that was issued, and that had not ended when this call began.
        pending = len(self._ends) - bisect.bisect_right(self._ends, call.start)
        length_ns = call.end - call.start
        waited_ns = 0.0
        # Nearly: the clocks differ, so work that has just ended may still count as pending.
        if pending >= _NEARLY_FULL * QUEUE_DEPTH:
            # 0 if no call had room yet: then all of this one counts as waiting.
            usual_ns = statistics.median(self._with_room_ns[:_USUAL_CALLS] or [0.0])
            waited_ns = max(0.0, length_ns - usual_ns)
        else:
            self._with_room_ns.append(length_ns)

        # The other nodes of a graph wait for the first one.
        first = work[0] if len(work) == 1 else min(work, key=start_of)
        device = first.device
        names = (call.name, first.name)
        found = QueueAtCall(
            stream_free_at=self._last_end.get(first.stream, -math.inf),
            device_free_at=self._last_end_of_device.get(device, -math.inf),
            others_free_at=self._others_free_at(first),
            first=names not in self._seen,
        )
        self._seen.add(names)
        for piece in work:
            self._add(piece)
            self._last_call[piece.stream] = call.start
        return Issued(found, waited_ns)

    def _add(self, piece: DeviceWork) -> None:
        """Keep the ends of all work sorted, and by stream and device the end of the last work."""
        end = piece.end
        if self._ends and end < self._ends[-1]:
            bisect.insort(self._ends, end)
        else:
            self._ends.append(end)
        for ends, key in (
            (self._last_end, piece.stream),
            (self._last_end_of_device, piece.device),
        ):
            if end > ends.get(key, -math.inf):
                ends[key] = end

    def _others_free_at(self, work: DeviceWork) -> float:
        """When the other streams were done with the work for which ``work`` was told to wait; minus
        infinity if it waits for none, because its stream was not told to wait since the last call
        that issued work to it.
        """
        told = self._held_until.pop(work.stream, -math.inf)
        if self._event_wait_at < self._last_call.get(work.stream, -math.inf):
            return told
        # Which of the other streams it waits for is not recorded, so the one that was free last
        # counts. One that is still at work when this work starts cannot be meant.
        ends = [told]
        for stream, end in self._last_end.items():
            if stream != work.stream and end <= work.start:
                ends.append(end)
        return max(ends)

    def _awaited(self, told: StreamWait) -> dict[str, float]:
        """By stream when the work ends for which a call waits, or tells a stream to wait."""
        ends: Mapping[str, float] = self._last_end
        if told.record:
            ends = self._ends_at_record.get(told.record, {})
        return {stream: end for stream, end in ends.items() if told.covers(stream)}

    def finished(self, call: TraceEvent, late_ns: float) -> AwaitedStreams:
        """What a call waits for: the streams whose work has all ended when the call returns, or up
        to ``late_ns`` later. The call is blocked until the last of these ends.

        Most recordings do not tell which stream a call waits for. A stream with work left at its
        return cannot be the one.
        """
        latest = call.end + late_ns
        done = {stream: end for stream, end in self._last_end.items() if end <= latest}
        last = max(done.values(), default=call.start)
        told = self._told.get(call.correlation)
        if told is not None and not told.holds:
            # Other work of that stream may come after the event for which the call waits.
            awaited = max(self._awaited(told).values(), default=call.start)
            # A call that lasts waits for something, also where the file tells of another event.
            if awaited > call.start or call.end - call.start <= IDLE_WAIT_NS:
                last = awaited
                done = {stream: end for stream, end in done.items() if told.covers(stream)}
        return AwaitedStreams(tuple(done), max(0.0, min(call.end, last) - call.start))


def _never() -> float:
    return -math.inf
