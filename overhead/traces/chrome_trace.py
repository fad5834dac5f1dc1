"""Read the trace that PyTorch's profiler exports: JSON in the format of Chrome's traces."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import functools
import math
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from overhead.bounded_files import DamagedFile, first_bytes, read_until_cut
from overhead.errors import BadFile
from overhead.results import because
from overhead.traces.assembly import TraceSource, assemble
from overhead.traces.broken_json import ends_with_its_list, events_one_by_one, header_of
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.marks import kind_of_range
from overhead.traces.other_files import (
    SAMPLE_BYTES,
    known_json,
    other_file,
    other_json,
    other_trace,
)
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import TimeRange, Trace

MOST_TRACE_BYTES = 1 << 30
_MOST_OBJECTS = 20_000_000
"""Most bytes of a file, and objects in it. Chosen, not measured; a larger file fills the memory."""
_MOST_CATEGORIES = 281
"""Most characters of the categories of a trace of another program."""
_MOST_NAME = 200
"""Most characters of the name of a device or a rank."""
_MOST_GROUP = 1000
"""Most characters of the description of a group of ranks."""
_UNIT_NS = 1000.0
"""The file has its times in µs."""
_EXACT_US = 2.0**42
"""From here on a float of 64 bits in µs has steps that are too long to give whole ns: 51 days.
Times since 1970 are longer.
"""
_LATEST_US = 1e16
"""A time from here on is no time, and needs no digits: 317 years."""
_EXACT_NS = 2.0**52
"""Below this, sums of whole ns are exact as floats."""
_NO_STREAM = 2**32 - 1
"""CUPTI's number for no stream."""
_GZIP = b"\x1f\x8b"
_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""How a text begins in each encoding that writes such a mark."""
_DEVICE_CATEGORIES = ("mtia_ccp_events", "mtia_insight", "hpu_op", "cuda_profiler_range")
"""Categories of PyTorch with device work that has no number of a call, so that it is not read."""

_KINDS = {
    "cpu_op": EventKind.OPERATION,
    "operator": EventKind.OPERATION,
    "user_annotation": EventKind.ANNOTATION,
    "cpu_instant_event": EventKind.MEMORY,
    "overhead": EventKind.PROFILER_COST,
    "runtime": EventKind.CALL,
    "cuda_runtime": EventKind.CALL,
    "cuda_driver": EventKind.CALL,
    "kernel": EventKind.WORK,
    "gpu_memcpy": EventKind.WORK,
    "gpu_memset": EventKind.WORK,
    "memcpy": EventKind.WORK,
    "memset": EventKind.WORK,
    "cuda_sync": EventKind.SYNC,
}
"""By category, in small letters. PyTorch 1.8 to 1.12 writes Operator, Runtime, Kernel, Memcpy and
Memset.
"""
_DEVICE_CALLS = re.compile(r"(cuda|hip|xpu|mtia|privateuse1|mlu|gcu|musa)_(runtime|driver)", re.I)
_DEVICE_COPIES = re.compile(r"(xpu|mlu|gcu|musa)_(memcpy|memset)", re.I)
"""Makers of devices name categories of their own like those of PyTorch."""
_PROFILER_COSTS = (
    "Activity Buffer Request",
    "Buffer Flush",
    "Instrumentation",
    "Resource",
    "UVM Activity Init",
)
"""What CUPTI does for itself. Of the same category are the loading of kernels and a full queue: the
program's own.
"""


class _Arguments(msgspec.Struct, frozen=True, gc=False):
    """``correlation``: the number that a call and its device work share. ``size``: bytes of an
    allocation.

    ``collective``: what a kernel or an operation exchanges with other ranks; ``group``,
    ``group_name``, ``group_size``: which ranks take part; ``elements``: how many numbers it gets.
    Releases of PyTorch write these as text, numbers or lists. ``name``: of a process, in metadata.

    ``sync``: what a call waits for, or tells ``stream`` to wait for: all work of a ``device``, of a
    stream, or of ``awaited_stream`` before the call with the number ``awaited_record``. -1 or the
    largest number of 32 bits stands for none.
    """

    correlation: int = 0
    size: int = msgspec.field(name="Bytes", default=0)
    collective: str = msgspec.field(name="Collective name", default="")
    group: Any = msgspec.field(name="Process Group Ranks", default="")
    group_name: Any = msgspec.field(name="Process Group Name", default="")
    elements: Any = msgspec.field(name="In msg nelems", default="")
    name: Any = ""
    group_size: Any = msgspec.field(name="Group size", default="")
    device: Any = -1
    stream: Any = -1
    sync: str = msgspec.field(name="cuda_sync_kind", default="")
    awaited_stream: Any = msgspec.field(name="wait_on_stream", default=-1)
    awaited_record: Any = msgspec.field(name="wait_on_cuda_event_record_corr_id", default=-1)


class _FileEvent(msgspec.Struct, gc=False):
    """An event as PyTorch writes it. ``ts``, ``dur``: in µs. ``pid``, ``tid``: of device work,
    device and stream.

    Metadata has no ``ts``.
    """

    ts: float = math.nan
    ph: str = ""
    cat: str = ""
    name: str = ""
    dur: float = 0.0
    pid: int | str = ""
    tid: int | str = ""
    args: _Arguments = _Arguments()


@dataclasses.dataclass
class _Header:
    """What a file tells beside its events: of the ranks of the program, and of the devices."""

    distributed: dict[str, object] = dataclasses.field(default_factory=dict)
    devices: list[dict[str, object]] = dataclasses.field(default_factory=list)


class _ExactTime(msgspec.Struct, gc=False):
    """The start of an event with all digits that the file has."""

    ts: Decimal = Decimal(0)


class _RawFile(msgspec.Struct):
    """The file with its events as they are written, so that each can be decoded on its own. The
    other fields are of any kind: a wrong one costs not the events.
    """

    traceEvents: list[msgspec.Raw]
    distributedInfo: Any = None
    deviceProperties: Any = None


class _Category(msgspec.Struct):
    cat: object = ""


def is_chrome_trace(path: Path) -> bool:
    """Whether a file is read as JSON: all are that no other format claims, so that the error says
    what the file is.
    """
    return True


def read_chrome_file(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps of a trace in a file, packed or not. ``choice``: what the person names as steps.
    Raises ``BadFile``, one line.
    """
    packed = first_bytes(path, len(_GZIP)) == _GZIP
    try:
        content = read_until_cut(path, MOST_TRACE_BYTES, packed=packed)
    except DamagedFile as error:
        damaged = because("packed-file-is-damaged", message=str(error.fault))
        raise BadFile(damaged, path) from None
    # A large file is not copied: only what another encoding needs.
    raw = _in_utf8(content.content)
    is_cut = content.is_cut
    del content  # so that the bytes can go before the end
    return _read(raw, path, trimmed=True, is_cut=is_cut, choice=choice)


def read_chrome_trace(
    raw: bytes,
    name: str = "the trace",
    *,
    trimmed: bool = False,
    choice: StepChoice = ANY_STEPS,
) -> Trace:
    """The steps of a trace that ``torch.profiler`` exported as JSON. Raises ``BadFile``, which
    calls the trace by ``name``. A trace without marks of steps is one step.

    ``trimmed``: that step begins with the first launch and ends with the last device work.
    """
    return _read(bytearray(raw), Path(name), trimmed=trimmed, choice=choice)


def _read(
    raw: bytearray, path: Path, *, trimmed: bool, choice: StepChoice, is_cut: bool = False
) -> Trace:
    """The steps of a trace in JSON. The bytes are dropped as soon as the events are read, to save
    memory. ``is_cut``: whether bytes at the end are missing.
    """
    sample = bytes(raw[:SAMPLE_BYTES])
    other = other_file(path, sample)
    if other is not None:
        raise BadFile(other, path)
    try:
        # Each object needs memory, so a hostile file is refused before it is decoded.
        if raw.count(b"{") > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
        found = _events_in(raw, path)
        found.is_cut |= is_cut
        # A program that did nothing may profile itself; nobody asks about a file of that kind.
        if trimmed and not found.of_pytorch:
            if found.objects and not found.has_phases:
                raise BadFile(because("json-is-no-trace"))
            raise BadFile(because("json-without-events"))
        raw.clear()
        return assemble(found.events, _source_of(found), trimmed=trimmed, choice=choice)
    except BadFile as error:
        raise BadFile(error.fault, path) from None  # the functions above know no name
    except RecursionError:
        raise BadFile(because("json-nested-too-deep"), path) from None
    except ValueError as error:
        message = " ".join(str(error).split())[:200]
        raise BadFile(f"not a trace that can be read: {message}", path) from None


def _in_utf8(raw: bytearray) -> bytearray:
    """The text in UTF-8 without a mark of its encoding (BOM), which editors and Windows write."""
    for mark, encoding in _MARKS.items():
        if raw.startswith(mark):
            return bytearray(raw[len(mark) :].decode(encoding, errors="replace").encode())
    return raw


@dataclasses.dataclass
class _Found:
    """The events of a file that are needed, and what it tells beside them.

    ``odd``: events that could not be read; ``unreadable``: those of them that are needed.
    ``mended``: events whose JSON is not valid, and that were read. ``is_cut``: whether the file
    ends in the middle. ``begin_ns``: the time from which their times count. ``objects``: how many
    the list of events has; ``has_phases``: whether one of them is an event of Chrome's format.
    ``categories``: how many events each has that is not read. ``names``: of processes.
    """

    events: list[TraceEvent] = dataclasses.field(default_factory=list)
    unreadable: int = 0
    odd: int = 0
    mended: int = 0
    is_cut: bool = False
    begin_ns: float = 0.0
    objects: int = 0
    has_phases: bool = False
    categories: Counter[str] = dataclasses.field(default_factory=Counter)
    names: dict[int | str, str] = dataclasses.field(default_factory=dict)
    header: _Header = dataclasses.field(default_factory=_Header)

    @property
    def of_pytorch(self) -> bool:
        """Whether an event is of a category of PyTorch."""
        return bool(self.events or self.unreadable)


def _events_in(raw: bytearray, path: Path) -> _Found:
    """The events of a file. One that cannot be read costs not the others. Raises ``BadFile`` for
    a file without events of PyTorch.
    """
    try:
        # ``Raw``: the bytes of an event, decoded one after the other, so that not all of them are
        # in memory in both forms. A file may also be the list of its events alone.
        whole = msgspec.json.decode(raw, type=_RawFile | list[msgspec.Raw])
    except msgspec.ValidationError as error:
        keys = _keys_of(raw)
        if keys is None:  # such as an event on each line
            return _events_of_broken(raw, path, str(error))
        raise BadFile(other_json(path, raw[:SAMPLE_BYTES], keys)) from None
    # ``RecursionError``: one event may be nested without an end.
    except (msgspec.DecodeError, RecursionError) as error:
        return _events_of_broken(raw, path, str(error))
    if isinstance(whole, list) and whole and not bytes(whole[0]).startswith(b"{"):
        raise BadFile(other_json(path, raw[:SAMPLE_BYTES], []))
    file = _RawFile(whole) if isinstance(whole, list) else whole
    found = _Found(header=_header(file))
    _add_events(found, file.traceEvents)
    _refuse_other_programs(found, raw, path)
    return found


def _header(file: _RawFile) -> _Header:
    """What the file tells beside its events, where that is of the usual kind."""
    distributed = file.distributedInfo
    if not isinstance(distributed, dict):
        distributed = {}
    devices = file.deviceProperties
    if not isinstance(devices, list):
        devices = []
    return _Header(distributed, [each for each in devices if isinstance(each, dict)])


def _keys_of(raw: bytearray) -> list[str] | None:
    """The keys of the object that a file holds; none if it holds something else; None if it is no
    valid JSON as a whole.
    """
    try:
        return list(msgspec.json.decode(raw, type=dict[str, msgspec.Raw]))
    except msgspec.ValidationError:
        return []
    except msgspec.DecodeError:
        return None


def _events_of_broken(raw: bytearray, path: Path, error: str) -> _Found:
    """The events of a file whose JSON is not valid, with their text mended. Raises ``BadFile`` if
    there is none. ``error``: the message of the decoder, which tells the byte.
    """
    known = known_json(path, raw[:SAMPLE_BYTES])
    if known is not None:
        raise BadFile(known)
    found = _Found(is_cut=not ends_with_its_list(raw))
    parts = []
    for event in events_one_by_one(raw):
        if event.content is None:
            found.unreadable += 1
            continue
        parts.append(event.content)
        found.mended += event.mended
    # In a file that was cut, the last event is incomplete. The result says that the file was cut,
    # so this event is not counted again.
    if found.is_cut and found.unreadable:
        found.unreadable -= 1
    _add_events(found, parts)
    with contextlib.suppress(msgspec.DecodeError):
        header = msgspec.json.decode(header_of(raw), type=_RawFile)
        found.header = _header(header)
    if not parts:
        place = re.search(r"\(byte (\d+)\)", error)
        at = int(place[1]) if place else len(raw)
        near = bytes(raw[max(0, at - 20) : at + 20]).decode(errors="replace")
        raise BadFile(
            because("json-broken", at=at, size=len(raw), near=" ".join(near.split()) or '""')
        )
    _refuse_other_programs(found, raw, path)
    return found


def _add_events(found: _Found, raw_events: Iterable[msgspec.Raw | bytes]) -> None:
    """Decode the events of a file that tell of the program, in whole ns from the earliest of them,
    in the form that is the same for all formats of traces. Counts the others.
    """
    event_decoder = msgspec.json.Decoder(_FileEvent, strict=False)
    category_decoder = msgspec.json.Decoder(_Category)
    # A name or thread is kept once, though millions of events may have it.
    names: dict[str, str] = {}
    for raw_event in raw_events:
        found.objects += 1
        try:
            # Not strict: a number may also be written as a text.
            event = event_decoder.decode(raw_event)
        except (msgspec.DecodeError, RecursionError):
            # It counts as lost if its category is one that is read; without a category nobody needs
            # it.
            found.odd += 1
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                category = str(category_decoder.decode(raw_event).cat)
                if _kind_of(category) is not None:
                    found.unreadable += 1
            continue
        kind = _kind_of(event.cat)
        if kind is None:
            found.has_phases |= bool(event.ph)
            if event.ph == "M" and event.name == "process_name" and event.args.name:
                found.names[event.pid] = str(event.args.name)[:_MOST_NAME]
            if event.ph == "X":
                found.categories[event.cat] += 1
            continue
        made = _event_of(event, kind, names)
        if made is None:
            continue
        if _EXACT_US <= event.ts < _LATEST_US:
            _make_exact(made, raw_event)
        found.events.append(made)
    _count_from_the_earliest(found)


def _make_exact(event: TraceEvent, raw_event: msgspec.Raw | bytes) -> None:
    """Give an event the start that all digits in the file tell. Its length stays."""
    exact = msgspec.json.decode(raw_event, type=_ExactTime, strict=False)
    start = round(exact.ts * 1000)
    event.end = start + (event.end - event.start)
    event.start = start


def _count_from_the_earliest(found: _Found) -> None:
    """Let the times of all events count from the earliest one. Whole ns since 1970 have more digits
    than a float, so that neighbours would seem to overlap.
    """
    if not found.events:
        return
    starts = np.array([event.start for event in found.events], dtype=np.float64)
    starts = starts[np.isfinite(starts)]
    if not len(starts):
        return
    # One event with a wrong time, such as 0, must not decide.
    usual = starts[np.abs(starts - np.median(starts)) < _EXACT_NS]
    begin_ns = int(usual.min(initial=math.inf)) if len(usual) else 0
    found.begin_ns = float(begin_ns)
    for event in found.events:
        event.start = float(event.start - begin_ns)
        event.end = float(event.end - begin_ns)


@functools.cache
def _kind_of(category: str) -> EventKind | None:
    """Which kind of events a category holds; None if they are not read."""
    kind = _KINDS.get(category.lower())
    if kind is None and _DEVICE_CALLS.fullmatch(category):
        return EventKind.CALL
    if kind is None and _DEVICE_COPIES.fullmatch(category):
        return EventKind.WORK
    return kind


def _source_of(found: _Found) -> TraceSource:
    """What the file tells beside its events: the first device, which rank of how many the program
    was, and what could not be read.
    """
    header = found.header
    device = ""
    if header.devices:
        device = str(header.devices[0].get("name", ""))
    ranks = header.distributed.get("world_size", 0)
    other_device = ""
    for category in _DEVICE_CATEGORIES:
        if found.categories[category]:
            other_device = category
    return TraceSource(
        unit_ns=_UNIT_NS,
        begin_ns=found.begin_ns,
        device=device[:_MOST_NAME],
        rank=str(header.distributed.get("rank", ""))[:_MOST_NAME],
        ranks=ranks if isinstance(ranks, int) else 0,
        names=found.names,
        unreadable=found.unreadable,
        mended=found.mended,
        is_cut=found.is_cut,
        other_device=other_device,
        stacks=found.categories["python_function"] > 0,
    )


def _event_of(event: _FileEvent, kind: EventKind, names: dict[str, str]) -> TraceEvent | None:
    """The event in ns; None for one that tells nothing of the program. The file has its times in
    µs. ``names``: those of earlier events.
    """
    # The phase ``X`` is an event with a length. Those of memory are moments, of another phase.
    if event.ph != "X" and kind is not EventKind.MEMORY:
        return None
    # This category also holds what the program itself needs, such as the loading of kernels.
    if kind is EventKind.PROFILER_COST and event.name not in _PROFILER_COSTS:
        return None
    if kind is EventKind.SYNC:
        return _sync_event(event)
    if kind in (EventKind.OPERATION, EventKind.ANNOTATION):
        kind = kind_of_range(event.name, otherwise=kind)
    arguments = event.args
    thread = str(event.tid)
    stream = group = ""
    if kind is EventKind.WORK:
        # For device work the two fields are the device and its stream.
        stream = f"{event.pid}:{thread}"
        group = _group_of(arguments)
    start, end = _whole_ns(event)
    return TraceEvent(
        kind=kind,
        name=names.setdefault(event.name, event.name),
        start=start,
        end=end,
        process=event.pid,
        thread=names.setdefault(thread, thread),
        stream=names.setdefault(stream, stream),
        correlation=arguments.correlation,
        size=arguments.size,
        collective=arguments.collective,
        group=group,
    )


def _sync_event(event: _FileEvent) -> TraceEvent:
    """What a call waits for. Where the file does not tell the stream, ``awaits`` is empty."""
    arguments = event.args
    device = arguments.device
    stream, awaits = "", ""
    record = 0
    if arguments.sync == "Context Sync":
        awaits = f"{device}:"
    elif arguments.sync == "Stream Sync" and _is_told(arguments.stream):
        awaits = f"{device}:{arguments.stream}"
    elif _is_told(arguments.awaited_stream):
        awaits = f"{device}:{arguments.awaited_stream}"
        if _is_told(arguments.awaited_record):
            record = arguments.awaited_record
        if arguments.sync == "Stream Wait Event":
            stream = f"{device}:{arguments.stream}"
    start, end = _whole_ns(event)
    return TraceEvent(
        kind=EventKind.SYNC,
        name=event.name,
        start=start,
        end=end,
        process=event.pid,
        stream=stream,
        correlation=arguments.correlation,
        awaits=awaits,
        record=record,
    )


def _whole_ns(event: _FileEvent) -> TimeRange:
    """Start and end of an event in whole ns, so that an event ends where the next one begins, and
    not a little later. Of a time that cannot be they are no whole numbers.
    """
    start, length = event.ts * _UNIT_NS, event.dur * _UNIT_NS
    if abs(event.ts) < _LATEST_US and abs(event.dur) < _LATEST_US:
        start, length = round(start), round(length)
    return start, start + length


def _is_told(number: object) -> bool:
    """Whether this is the number of a stream or of a call."""
    return isinstance(number, int) and 0 <= number < _NO_STREAM


def _group_of(arguments: _Arguments) -> str:
    """Which ranks take part in a collective, and how many numbers each of them gives. In an
    all-to-all that differs by rank.
    """
    ranks = arguments.group
    if not ranks:
        size = f" of {arguments.group_size}" if arguments.group_size else ""
        ranks = f"{arguments.group_name}{size}"
    if "alltoall" in arguments.collective.replace("_", ""):
        return str(ranks)[:_MOST_GROUP]
    return f"{ranks} {arguments.elements}".strip()[:_MOST_GROUP]


def _refuse_other_programs(found: _Found, raw: bytearray, path: Path) -> None:
    """Raise ``BadFile`` for a trace that has events, and none of PyTorch's. Other programs write
    this format too; the error says whose trace it seems to be. ``raw``: the file.
    """
    other = other_trace(path, raw, of_pytorch=found.of_pytorch)
    if other is not None:
        raise BadFile(other)
    if found.of_pytorch:
        return
    # Some events have a length and no category; of the others the categories are not counted.
    categories = sorted(category for category in found.categories if category)
    known = known_json(path, raw[:SAMPLE_BYTES])
    if known is not None:
        raise BadFile(known)
    if not found.categories and not found.odd:
        return
    if not categories:
        raise BadFile(because("events-without-categories"))
    # A hostile file may have many, and long ones.
    named = ", ".join(categories[:6])[:_MOST_CATEGORIES]
    raise BadFile(because("events-of-other-categories", categories=named))
