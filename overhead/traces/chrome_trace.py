"""Read the trace that PyTorch's profiler exports: JSON in the format of Chrome's traces."""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from overhead.bounded_files import first_bytes, read_whole
from overhead.errors import BadFile
from overhead.traces.assembly import TraceSource, assemble
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.marks import kind_of_range
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import Trace

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
_NO_STREAM = 2**32 - 1
"""CUPTI's number for no stream."""
_GZIP = b"\x1f\x8b"

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
_DEVICE_CALLS = re.compile(r"(cuda|hip|xpu|mtia|privateuse1)_(runtime|driver)")
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


class _File(msgspec.Struct):
    traceEvents: list[_FileEvent]
    distributedInfo: dict[str, object] = {}
    deviceProperties: list[dict[str, object]] = []


class _RawFile(msgspec.Struct):
    """The file with its events as they are written, so that each can be decoded on its own."""

    traceEvents: list[msgspec.Raw]
    distributedInfo: dict[str, object] = {}
    deviceProperties: list[dict[str, object]] = []


class _Category(msgspec.Struct):
    cat: object = ""


def is_chrome_trace(path: Path) -> bool:
    """Whether a file is read as JSON: all are that no other format claims, so that the error says
    what is wrong with its JSON.
    """
    return True


def read_chrome_file(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps of a trace in a file, packed or not. ``choice``: what the person names as steps.
    Raises ``BadFile``, one line.
    """
    packed = first_bytes(path, len(_GZIP)) == _GZIP
    raw = read_whole(path, MOST_TRACE_BYTES, packed=packed)
    return read_chrome_trace(raw, str(path), trimmed=True, choice=choice)


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
    try:
        # Each object needs memory, so a hostile file is refused before it is decoded.
        if raw.count(b"{") > _MOST_OBJECTS:
            raise ValueError(f"more than {_MOST_OBJECTS:,} objects")
        decoded = _decoded(raw)
        _refuse_other_programs(decoded.file.traceEvents, raw)
        events = _events_of(decoded.file.traceEvents)
        return assemble(events, _source_of(decoded), trimmed=trimmed, choice=choice)
    except BadFile as error:
        raise BadFile(error.fault, name) from None  # the functions above know no name
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        _refuse_quotes_in_names(raw, str(error), name)
        message = " ".join(str(error).split())[:200]
        raise BadFile(f"not a trace: {type(error).__name__}: {message}", name) from None


class _Decoded(NamedTuple):
    """A file, and how many events of it that are needed could not be read."""

    file: _File
    unreadable: int


def _decoded(raw: bytes) -> _Decoded:
    """The file; without single events that cannot be read, because one odd event must not cost the
    others. A file may also be the list of its events alone.
    """
    try:
        # Not strict: a number may also be written as a text.
        whole = msgspec.json.decode(raw, type=_File | list[_FileEvent], strict=False)
    except msgspec.ValidationError as error:
        return _decoded_event_by_event(raw, error)
    file = _File(whole) if isinstance(whole, list) else whole
    return _Decoded(file, unreadable=0)


def _decoded_event_by_event(raw: bytes, why: msgspec.ValidationError) -> _Decoded:
    """The file with the events that can be read, each decoded on its own. Raises ``why``, the error
    of decoding it as a whole, if none of them is of a category of PyTorch: then it is another file.
    """
    # ``Raw``: the bytes of an event, which are not decoded yet.
    whole = msgspec.json.decode(raw, type=_RawFile | list[msgspec.Raw])
    file = _RawFile(whole) if isinstance(whole, list) else whole
    event_decoder = msgspec.json.Decoder(_FileEvent, strict=False)
    category_decoder = msgspec.json.Decoder(_Category)
    events = []
    unreadable = 0
    for raw_event in file.traceEvents:
        try:
            events.append(event_decoder.decode(raw_event))
        except msgspec.ValidationError:
            # It is counted if its category is one that is read; without a category nobody needs it.
            with contextlib.suppress(msgspec.ValidationError):
                category = str(category_decoder.decode(raw_event).cat)
                if _kind_of(category) is not None:
                    unreadable += 1
    if not _any_of_pytorch(events):
        raise why
    return _Decoded(_File(events, file.distributedInfo, file.deviceProperties), unreadable)


@functools.cache
def _kind_of(category: str) -> EventKind | None:
    """Which kind of events a category holds; None if they are not read."""
    kind = _KINDS.get(category.lower())
    if kind is None and _DEVICE_CALLS.fullmatch(category):
        return EventKind.CALL
    return kind


def _any_of_pytorch(events: Iterable[_FileEvent]) -> bool:
    """Whether one of the events is of a category of PyTorch."""
    return any(_kind_of(event.cat) is not None for event in events)


def _source_of(decoded: _Decoded) -> TraceSource:
    """What the file tells beside its events: the first device, which rank of how many the program
    was, and how many events could not be read.
    """
    file = decoded.file
    device = ""
    if file.deviceProperties:
        device = str(file.deviceProperties[0].get("name", ""))
    ranks = file.distributedInfo.get("world_size", 0)
    return TraceSource(
        unit_ns=_UNIT_NS,
        device=device[:_MOST_NAME],
        rank=str(file.distributedInfo.get("rank", ""))[:_MOST_NAME],
        ranks=ranks if isinstance(ranks, int) else 0,
        names=_process_names(file.traceEvents),
        unreadable=decoded.unreadable,
    )


def _process_names(events: Iterable[_FileEvent]) -> dict[int | str, str]:
    """The names of processes, as far as the file tells them."""
    names: dict[int | str, str] = {}
    for event in events:
        if event.ph == "M" and event.name == "process_name" and event.args.name:
            names[event.pid] = str(event.args.name)[:_MOST_NAME]
    return names


def _events_of(events: Iterable[_FileEvent]) -> Iterator[TraceEvent]:
    """The events that tell of the program, in ns, in the form that is the same for all formats of
    traces. The file has its times in µs.
    """
    for event in events:
        kind = _kind_of(event.cat)
        # The phase ``X`` is an event with a length. Those of memory are moments, of another phase.
        if kind is None or (event.ph != "X" and kind is not EventKind.MEMORY):
            continue
        # This category also holds what the program itself needs, such as the loading of kernels.
        if kind is EventKind.PROFILER_COST and event.name not in _PROFILER_COSTS:
            continue
        if kind is EventKind.SYNC:
            yield _sync_event(event)
            continue
        if kind in (EventKind.OPERATION, EventKind.ANNOTATION):
            kind = kind_of_range(event.name, otherwise=kind)
        yield TraceEvent(
            kind=kind,
            name=event.name,
            start=event.ts * _UNIT_NS,
            end=(event.ts + event.dur) * _UNIT_NS,
            process=event.pid,
            thread=str(event.tid),
            # For device work the two fields are the device and its stream.
            stream=f"{event.pid}:{event.tid}" if kind is EventKind.WORK else "",
            correlation=event.args.correlation,
            size=event.args.size,
            collective=event.args.collective,
            group=_group_of(event.args) if kind is EventKind.WORK else "",
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
    return TraceEvent(
        kind=EventKind.SYNC,
        name=event.name,
        start=event.ts * _UNIT_NS,
        end=(event.ts + event.dur) * _UNIT_NS,
        process=event.pid,
        stream=stream,
        correlation=arguments.correlation,
        awaits=awaits,
        record=record,
    )


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


def _refuse_other_programs(events: Sequence[_FileEvent], raw: bytes) -> None:
    """Raise ``BadFile`` for a trace that has events, and none of PyTorch's. Other programs write
    this format too; the error says whose trace it seems to be. ``raw``: the file.
    """
    if not events or _any_of_pytorch(events):
        return
    # So XProf names the processes of its traces.
    if b'"/host:' in raw or b'"/device:' in raw:
        raise BadFile(
            "a trace of JAX or TensorFlow (XProf), not of PyTorch; it has no launches. Explain the"
            " program itself: overhead explain STEP"
        )
    categories = sorted({event.cat for event in events if event.cat})
    if not categories:
        raise BadFile("not a trace of PyTorch: its events have no categories")
    # A hostile file may have many, and long ones.
    names = ", ".join(categories[:6])[:_MOST_CATEGORIES]
    raise BadFile(f"not a trace of PyTorch: its categories are {names}")


def _refuse_quotes_in_names(raw: bytes, error: str, file: str) -> None:
    """Raise ``BadFile`` if JSON is malformed since PyTorch did not escape a quote in the name of an
    event.

    With ``with_stack=True``, PyTorch writes names of Python's frames, which may hold quotes.
    ``error``: the message of the decoder, which tells the byte. ``file``: the name of the file.
    """
    place = re.search(r"malformed.*\(byte (\d+)\)", error)
    if place is None or b'"traceEvents"' not in raw:
        return
    at = int(place[1])
    # The name that is cut short begins shortly before that byte; else something else is wrong.
    begin = raw.rfind(b'"name"', max(0, at - 2000), at)
    if begin < 0:
        return
    shown = " ".join(raw[begin : at + 40].decode(errors="replace").split())[:80]
    raise BadFile(
        f"JSON that is not valid at byte {at:,}, near {shown}: PyTorch does not escape quotes in"
        " names. Record without with_stack=True",
        file,
    ) from None
