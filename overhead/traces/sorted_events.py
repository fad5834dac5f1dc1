"""The events of a trace by their kind, of one process, without those that cannot be."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.nested_calls import outermost_calls
from overhead.traces.processes import (
    ProcessId,
    ProcessTime,
    chosen_process,
    device_ns_by_process,
    issuers_of,
    process_times,
)

_LATEST_NS = 1e19
"""A time from here on is no time: 317 years. Chosen, not measured."""
_HALVES = (EventKind.CALL, EventKind.WORK)
"""The kinds that a profiler may write twice, and that share numbers."""

_NO_NAMES: Mapping[ProcessId, str] = {}


class SortedEvents:
    """The events of a trace by kind: calls, device work, operations and so on. Counts what it left
    out.

    ``unreadable``: events whose time is no number or out of range. ``backwards``: events that end
    before they begin. ``doubled``: second copies of calls and device work.
    """

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        """Sort the events by kind, and leave out those that cannot be."""
        self.by_kind: dict[EventKind, list[TraceEvent]] = defaultdict(list)
        # How many are left out: with times that cannot be, with an end before the start, and as a
        # second copy of an event that was seen.
        self.unreadable = 0
        self.backwards = 0
        self.doubled = 0
        self._seen: set[tuple[object, ...]] = set()
        for event in events:
            self._add(event)
        self._seen.clear()  # of a million events it takes 100 MiB

    def of(self, kind: EventKind) -> list[TraceEvent]:
        """The events of this kind, in the order of the file."""
        return self.by_kind[kind]

    @property
    def count(self) -> int:
        """How many events are left."""
        return sum(len(events) for events in self.by_kind.values())

    def _add(self, event: TraceEvent) -> None:
        """Keep an event, or only count it: for times that cannot be, or as a second copy."""
        # Not a number is not below the limit either.
        has_times = abs(event.start) < _LATEST_NS and abs(event.end - event.start) < _LATEST_NS
        if not has_times:
            self.unreadable += 1
            return
        if event.end < event.start:
            self.backwards += 1
            return
        # A profiler may write calls and device work (``_HALVES``) twice. Equal operations are
        # different ones.
        if event.kind in _HALVES:
            # Device work runs in a stream, a call in a thread.
            track = event.stream or (event.process, event.thread)
            identity = (event.start, track, event.correlation, event.name)
            if identity in self._seen:
                self.doubled += 1
                return
            self._seen.add(identity)
        self.by_kind[event.kind].append(event)

    def keep_one_process(
        self, process: str = "", names: Mapping[ProcessId, str] = _NO_NAMES
    ) -> list[ProcessTime]:
        """Keep the events of one process: of the one that the person names (``process``), else the
        one whose device work takes longest. Returns all processes that used a device, if several
        did. ``names``: what the recording calls them.

        Raises ``BadFile`` if ``process`` is none of them, or if nobody knows whose the device work
        is.
        """
        calls = self.of(EventKind.CALL)
        hosts = {event.process for event in calls if event.correlation}
        if len(hosts) <= 1 and not process:
            return []
        work = self.of(EventKind.WORK)
        issuers = issuers_of(work, calls)
        times = device_ns_by_process(work, issuers)
        # Without device work of a known process, nothing tells which one to keep.
        if not times and not process:
            return []
        chosen = chosen_process(times, process)
        if len({event.process for event in calls}) > 1:
            self._keep(chosen, issuers)
        found = process_times(times, chosen, names)
        return found if len(found) > 1 else []

    def _keep(self, process: ProcessId, issuers: Sequence[ProcessId | None]) -> None:
        """Keep the events of this process. ``issuers``: of the device work. Work of an unknown call
        is kept, so that it counts as lost. Costs of the profiler have no process.
        """
        numbers = {call.correlation for call in self.of(EventKind.CALL) if call.process == process}
        for kind, events in self.by_kind.items():
            if kind is EventKind.PROFILER_COST:
                continue
            if kind is EventKind.SYNC:  # it has the device in place of the process
                kept = [event for event in events if event.correlation in numbers]
            elif kind is EventKind.WORK:
                kept = []
                for event, issuer in zip(events, issuers, strict=True):
                    if issuer is None or issuer == process:
                        kept.append(event)
            else:
                kept = [event for event in events if event.process == process]
            self.by_kind[kind] = kept

    def keep_outermost_calls(self) -> None:
        """Keep of calls inside each other the outermost one, as which they count. Device work and
        waits get its number.
        """
        calls = self.of(EventKind.CALL)
        kept, numbers = outermost_calls(calls)
        if len(kept) == len(calls):
            return
        self.by_kind[EventKind.CALL] = kept
        for kind in (EventKind.WORK, EventKind.SYNC):
            events = []
            for event in self.of(kind):
                number = numbers.get(event.correlation, event.correlation)
                record = numbers.get(event.record, event.record)
                if (number, record) != (event.correlation, event.record):
                    event = msgspec.structs.replace(event, correlation=number, record=record)
                events.append(event)
            self.by_kind[kind] = events

    def rounded_ns(self, unit_ns: float, begin_ns: float) -> float:
        """The rounding of a time in the file, ns, whose times are floats in units of ``unit_ns``.
        ``begin_ns``: the time in the file from which the times of the events count.

        Large times have few digits left in a number of 64 bits: counted from 1970 in µs, a time is
        rounded to 0.25 µs.
        """
        # The times of kernels matter; a trace of the host alone has operations.
        events = self.of(EventKind.WORK) or self.of(EventKind.OPERATION)
        if not events:
            return 0.0
        largest_ns = max(abs(event.start + begin_ns) for event in events)
        # An ulp is the distance from a number to the next one that a float can hold.
        return unit_ns * math.ulp(largest_ns / unit_ns)
