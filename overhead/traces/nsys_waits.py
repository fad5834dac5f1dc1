"""For what each call waits, as a database of Nsight Systems tells it."""

from __future__ import annotations

import bisect
import dataclasses
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Mapping

from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.nsys_queries import (
    COLUMNS_OF_TABLE,
    KIND_OF_TABLE,
    RECORDED_EVENTS,
    WAITS,
    contexts_query,
    recorded_events_query,
    waits_query,
)
from overhead.traces.processes import ProcessId

_FOR_EVENT, _STREAM_FOR_EVENT, _FOR_STREAM, _FOR_DEVICE = 1, 2, 3, 4
"""CUPTI's numbers for the kinds of waits: the host waits for an event, a stream does, the host
waits for a stream, or for all of a device.
"""
_NONE = 2**32 - 1
"""CUPTI's number for no stream and no event."""


def columns_of(base: sqlite3.Connection, table: str) -> set[str]:
    """The names of the columns of a table."""
    return {name for (name,) in base.execute(COLUMNS_OF_TABLE, (table,)).fetchall()}


@dataclasses.dataclass(frozen=True)
class _Places:
    """The streams of a process. ``devices``: by context its device. ``recorded``: by event of CUDA
    the number of each call that recorded it, in order, and in which stream.
    """

    devices: Mapping[int | None, int]
    recorded: dict[int, list[tuple[int, str]]] = dataclasses.field(
        default_factory=lambda: defaultdict(list)
    )

    def device(self, context: int | None) -> int | None:
        """The device of a context; that of the process where it has one alone; else None."""
        if context in self.devices:
            return self.devices[context]
        devices = set(self.devices.values())
        return devices.pop() if len(devices) == 1 else None

    def stream(self, context: int | None, stream: object) -> str:
        """A stream, as events name it; empty if it is not told."""
        device = self.device(context)
        return f"{device}:{stream}" if _is_told(stream) and device is not None else ""

    def last_record(self, event: object, number: int) -> tuple[int, str]:
        """The call that recorded an event last before the call with this number, and in which
        stream; 0 and empty if it is not known.
        """
        calls = self.recorded.get(event, []) if isinstance(event, int) else []
        before = bisect.bisect_left(calls, (number, ""))  # numbers grow
        return calls[before - 1] if before else (0, "")


def waits_of_calls(
    base: sqlite3.Connection, tables: Collection[str], process: ProcessId | None, most: int
) -> list[TraceEvent]:
    """What the calls of a process wait for; nothing where the database does not tell it. ``most``:
    how many waits, and recorded events, may be read at most. Raises ``ValueError`` for more.
    """
    if WAITS not in tables:
        return []
    places = _places(base, tables, process, most)
    waits: list[TraceEvent] = []
    query = waits_query(columns_of(base, WAITS))
    for start, end, number, kind, context, stream, event in base.execute(query, (process,)):
        # Any column may hold a text, or nothing.
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(number, int)):
            continue
        holds = awaits = ""
        record = 0
        if kind == _FOR_STREAM:
            awaits = places.stream(context, stream)
        elif kind == _FOR_DEVICE:
            device = places.device(context)
            awaits = "" if device is None else f"{device}:"
        elif kind in (_FOR_EVENT, _STREAM_FOR_EVENT):
            record, awaits = places.last_record(event, number)
        if kind == _STREAM_FOR_EVENT:
            holds = places.stream(context, stream)
        # A stream that waits, and is not told, is no wait of the host.
        if not awaits or (kind == _STREAM_FOR_EVENT and not holds):
            continue
        if len(waits) >= most:
            raise ValueError(f"more than {most:,} waits")
        wait = TraceEvent(
            kind=EventKind.SYNC,
            name="",
            start=float(start),
            end=float(end),
            stream=holds,
            correlation=number,
            awaits=awaits,
            record=record,
        )
        waits.append(wait)
    return waits


def _places(
    base: sqlite3.Connection, tables: Collection[str], process: ProcessId | None, most: int
) -> _Places:
    """The streams of a process, and the events of CUDA that it records in them."""
    devices: dict[int | None, int] = {}
    for table, kind in KIND_OF_TABLE.items():
        if kind is EventKind.WORK and table in tables:
            query = contexts_query(table, columns_of(base, table))
            for context, device in base.execute(query, (process,)):
                devices[context] = device if isinstance(device, int) else 0
    places = _Places(devices)
    if RECORDED_EVENTS not in tables:
        return places
    query = recorded_events_query(columns_of(base, RECORDED_EVENTS))
    for count, row in enumerate(base.execute(query, (process,))):
        event, number, context, stream = row
        if count >= most:
            raise ValueError(f"more than {most:,} recorded events")
        place = places.stream(context, stream)
        # An event may be recorded again and again.
        if isinstance(number, int) and place and _is_told(event):
            places.recorded[event].append((number, place))
    for calls in places.recorded.values():
        calls.sort()
    return places


def _is_told(number: object) -> bool:
    """Whether this is the number of a stream or of an event."""
    return isinstance(number, int) and 0 <= number < _NONE
