"""The events of a trace by their kind, of one process, without those that cannot be."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from overhead.errors import BadFile
from overhead.traces.events import EventKind, TraceEvent

_LATEST_NS = 1e19
"""A time from here on is no time: 317 years. Chosen, not measured."""
_HALVES = (EventKind.CALL, EventKind.WORK)
"""The kinds that a profiler may write twice, and that share numbers."""

_ProcessNumbers = Mapping[int | str, set[int]]
"""By process the numbers (``correlation``) of its calls."""


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

    def keep_one_process(self) -> int:
        """Keep the events of one process: of those whose calls issued device work, the one whose
        work takes longest. Returns how many processes issued device work, at least 1.

        A step belongs to one process, and launches of another one would count as its own. Raises
        ``BadFile`` if processes number their calls alike, since then nobody knows whose the device
        work is.
        """
        calls: dict[int | str, set[int]] = defaultdict(set)
        for event in self.of(EventKind.CALL):
            calls[event.process].add(event.correlation)
        if len(calls) <= 1:
            return 1

        issued = self._numbers_with_work(calls)
        # Without device work of a known process, nothing tells which one to keep.
        if not issued:
            return 1
        if len(issued) == 1:
            process = next(iter(issued))
        else:
            _refuse_shared_numbers(issued)
            process = self._busiest(issued)

        others: set[int] = set()
        for other, numbers in issued.items():
            if other != process:
                others |= numbers
        self._keep(process, others)
        return len(issued)

    def _numbers_with_work(self, calls: _ProcessNumbers) -> dict[int | str, set[int]]:
        """By process the numbers of its calls that device work has too: a call and the work that it
        issued share a number. Processes that issued none are left out.
        """
        of_work = {event.correlation for event in self.of(EventKind.WORK)} - {0}  # 0: no number
        issued = {}
        for process, numbers in calls.items():
            with_work = numbers & of_work
            if with_work:
                issued[process] = with_work
        return issued

    def _keep(self, process: int | str, others: set[int]) -> None:
        """Keep the events of this process, and the device work that no other one issued.

        ``others``: the numbers of the others' calls. Device work of an unknown call is kept, so
        that it counts as lost. Costs of the profiler have no process.
        """
        for kind, events in self.by_kind.items():
            if kind is EventKind.PROFILER_COST:
                continue
            # Both have the device in place of the process.
            if kind in (EventKind.WORK, EventKind.SYNC):
                kept = [event for event in events if event.correlation not in others]
            else:
                kept = [event for event in events if event.process == process]
            self.by_kind[kind] = kept

    def _busiest(self, issued: _ProcessNumbers) -> int | str:
        """The process whose device work takes longest. ``issued``: by process, the numbers of its
        calls that issued work; the event of the work itself does not name a process.
        """
        issuers: dict[int, int | str] = {}  # by the number of a call its process
        for process, numbers in issued.items():
            for number in numbers:
                issuers[number] = process
        busy_ns: dict[int | str, float] = dict.fromkeys(issued, 0.0)
        for event in self.of(EventKind.WORK):
            issuer = issuers.get(event.correlation)
            if issuer is not None:
                busy_ns[issuer] += event.end - event.start
        return max(busy_ns, key=busy_ns.__getitem__)

    def rounded_ns(self, unit_ns: float) -> float:
        """The rounding of a time in the file, ns, whose times are floats in units of ``unit_ns``.

        Large times have few digits left in a number of 64 bits: counted from 1970 in µs, a time is
        rounded to 0.25 µs.
        """
        # The times of kernels matter; a trace of the host alone has operations.
        events = self.of(EventKind.WORK) or self.of(EventKind.OPERATION)
        if not events:
            return 0.0
        largest_ns = max(abs(event.start) for event in events)
        # An ulp is the distance from a number to the next one that a float can hold.
        return unit_ns * math.ulp(largest_ns / unit_ns)


def _refuse_shared_numbers(issued: _ProcessNumbers) -> None:
    """Raise ``BadFile`` if two processes have a call of the same number: device work with it could
    be of either.
    """
    numbers_in_all = sum(len(numbers) for numbers in issued.values())
    different = len(set().union(*issued.values()))
    if numbers_in_all > different:
        raise BadFile(
            f"{len(issued)} processes in one file number their launches alike, so their device"
            " work cannot be told apart: give a file for each"
        )
