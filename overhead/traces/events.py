"""The event that every format of traces is read as: times in ns, and a kind of our own."""

from __future__ import annotations

import enum

from msgspec import Struct


class EventKind(enum.Enum):
    """What an event of a trace tells of."""

    OPERATION = enum.auto()
    """An operation of a library on the host, or a range that the program named."""
    ANNOTATION = enum.auto()
    """A range on the host that is no operation; it may name a collective."""
    STEP = enum.auto()
    """The mark around one step."""
    SITE = enum.auto()
    """The mark around what one line of the program does."""
    CALL = enum.auto()
    """A call of the device's runtime or driver."""
    WORK = enum.auto()
    """A kernel, copy or fill on the device."""
    MEMORY = enum.auto()
    """An allocation or a release by the library's allocator."""
    PROFILER_COST = enum.auto()
    """What the profiler does for itself while the program waits."""
    SYNC = enum.auto()
    """What a call waits for, or which stream it tells to wait, and for what."""


class TraceEvent(Struct, gc=False, kw_only=True):
    """One event of a trace; ``start`` and ``end`` are ns on any clock that all events share.

    ``process``, ``thread``: of an event on the host. ``stream``: of device work, as
    ``device:stream``. ``correlation``: the number that a call and the device work that it issued
    have in common; 0 for none. ``size``: bytes of an allocation. ``collective``: what a kernel or
    an operation exchanges with other ranks. ``group``: which ranks take part in it and how much
    each of them gives, in the words of the file.

    Of an event of the kind ``SYNC``, ``stream`` is the one that is told to wait, empty where the
    host waits. ``awaits``: the stream whose work is waited for; ``device:`` for all of a device.
    ``record``: the number of the call that recorded the event which is waited for; 0 for none.
    """

    kind: EventKind
    name: str
    start: float
    end: float
    process: int | str = 0
    thread: str = ""
    stream: str = ""
    correlation: int = 0
    size: int = 0
    collective: str = ""
    group: str = ""
    awaits: str = ""
    record: int = 0
