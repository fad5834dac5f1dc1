"""What a profiled program did on the host and on the device, step by step. Pure: events in, lists
out; nanoseconds.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from msgspec import Struct, structs

from overhead.results import LongText
from overhead.traces.collectives import WorkKind, is_copy, kind_of_work
from overhead.traces.processes import ProcessTime
from overhead.traces.recording import Recording
from overhead.traces.steps_taken import StepsTaken

CallKind = Literal["launch", "copy", "set", "allocation", "synchronisation", "other"]
TraceMaker = Literal["", "pytorch", "nsight"]
"""Whose options a sentence may name."""
TimeRange = tuple[float, float]
"""Start and end, ns."""
_TO_PAGEABLE = re.compile(r"Memcpy DtoH.*-> Pageable", re.I)
"""A copy into pageable memory blocks its call, also without a synchronisation after it."""
_FROM_PAGEABLE = re.compile(r"Memcpy HtoD.*Pageable ->", re.I)
_COPY_CALL = re.compile(r"(cuda|hip|cu)Memcpy\w*")
"""Calls that copy, also those that wait until the copy is done."""
_WAITS_FOR_STREAM = re.compile(r"(cuda|hip|cu)StreamSynchronize\w*")
_STAGED_NS = 10_000.0
"""A copy from pageable memory blocks its call too, unless it is so short that CUDA stages it: 64
KiB.
"""


_MOST_QUIET_CALLS = 40_000
_FEWEST_QUIET = 5
"""Of a large trace only some quiet steps are taken: as many as have this number of calls together,
but at least this number of steps. Chosen, not measured; to replay all steps of a million events
takes seconds longer.
"""


class CallSite(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    """A line of the program. ``inside``: the line of a library below it that made the call; empty
    if there is none.
    """

    line: LongText = ""
    inside: LongText = ""


NO_SITE = CallSite()
"""Nothing is known of the line."""


class HostOperation(Struct, frozen=True, gc=False):
    """An operation of the library. ``inner``: how many operations it calls, on all levels.

    ``children``: those that it calls itself, where it may be a range around others. ``calls``: 0
    for a further piece of a range that is cut into pieces (``opened_ranges``).
    """

    name: str
    start: float
    end: float
    thread: str
    inner: int = 0
    site: CallSite = NO_SITE
    children: Sequence[HostOperation] = ()
    calls: int = 1


class QueueAtCall(Struct, frozen=True, gc=False):
    """What a call that issues work finds on the device, of all earlier calls of the recording: when
    the earlier work ends of the same stream (``stream_free_at``), of the whole device
    (``device_free_at``), and of the other streams for which the work was told to wait
    (``others_free_at``). Minus infinity: there is none.

    ``first``: whether the call is the first of the recording that issues work, or the first of its
    kind whose work begins with this kernel: it may have to load the kernel.
    """

    stream_free_at: float = -math.inf
    device_free_at: float = -math.inf
    others_free_at: float = -math.inf
    first: bool = False


_NOTHING_QUEUED = QueueAtCall()


class HostCall(Struct, frozen=True, gc=False):
    """A call of the device's runtime or driver. ``waits_for``: the streams whose work has finished
    when it returns.

    ``blocked``: how long it waits for them. ``queue_full``: how long it waits for room in the
    queue. ``queue``: what its work finds on the device. ``beside``: a thread beside the program
    makes it, so its wait holds nothing up. ``copy``, ``copy_blocked``: of a copy and the wait for
    it as one, the name of the copy's call, and how long that one waits.
    """

    name: str
    kind: CallKind
    start: float
    end: float
    thread: str
    correlation: int = 0
    blocked: float = 0.0
    queue_full: float = 0.0
    waits_for: Sequence[str] = ()
    queue: QueueAtCall = _NOTHING_QUEUED
    operation: HostOperation | None = None
    site: CallSite = NO_SITE
    beside: bool = False
    copy: str = ""
    copy_blocked: float = 0.0

    @property
    def no_work(self) -> float:
        """The part of the call that is no host work, ns: all of it if it waits for device work,
        else ``queue_full``.
        """
        return self.end - self.start if self.blocked > 0 else self.queue_full

    @property
    def copies(self) -> bool:
        """Whether it copies; it may wait too."""
        return self.kind == "copy" or _is_copy_call(self.name)


# Of a million pieces of work only some hundred have different names.
@functools.lru_cache(maxsize=10_000)
def _is_copy_call(name: str) -> bool:
    return _COPY_CALL.fullmatch(name) is not None


@functools.lru_cache(maxsize=100_000)
def _is_from_pageable(name: str) -> bool:
    return _FROM_PAGEABLE.search(name) is not None


@functools.lru_cache(maxsize=100_000)
def _is_to_pageable(name: str) -> bool:
    return _TO_PAGEABLE.search(name) is not None


class DeviceWork(Struct, frozen=True, gc=False):
    """One kernel, copy or set on the device. ``stream``: ``device:stream``.

    ``collective``: what it exchanges with other devices, as PyTorch names it; empty if it does not
    or is not known. ``group``: which ranks take part and how much each of them gives, in the words
    of the recording; empty likewise. ``exchanges``: a collective issued it, as the recording tells,
    whatever its name says.
    """

    name: str
    stream: str
    start: float
    end: float
    correlation: int = 0
    collective: str = ""
    group: str = ""
    exchanges: bool = False

    @property
    def device(self) -> str:
        """The number of the device."""
        return self.stream.partition(":")[0]

    @property
    def communicates(self) -> bool:
        """Whether it may wait for other devices while it runs. A copy exchanges data too, but it
        begins when the data is there.
        """
        return self.kind == "collective" and not is_copy(self.name)

    @property
    def kind(self) -> WorkKind:
        """What it is: computing, a collective, a copy or a fill."""
        return kind_of_work(self.name, exchanges=self.exchanges)

    @property
    def is_pageable(self) -> bool:
        """Whether it copies from or into pageable memory."""
        return _is_from_pageable(self.name) or _is_to_pageable(self.name)

    @property
    def uploads_pageable(self) -> bool:
        """Whether it copies from pageable memory, and its call waits for the work before it."""
        if self.end - self.start < _STAGED_NS:
            return False
        return _is_from_pageable(self.name)

    @property
    def copies_to_pageable(self) -> bool:
        """Whether it copies into pageable memory, and its call returns when that is done."""
        return _is_to_pageable(self.name)

    @property
    def blocks(self) -> bool:
        """Whether the call that issues it waits for it."""
        return self.uploads_pageable or self.copies_to_pageable


@dataclass(frozen=True)
class StepTrace:
    """One step from ``start`` to ``end`` on the host, what ran then, and the device work that it
    issued, by start.

    Device work may end later. ``operations``: the outermost ones. ``allocations``: bytes from the
    library's allocator. ``number``: that of its mark; None without one. ``busy_before``: until when
    the device works on what was issued before the step; minus infinity if nothing is recorded.
    ``is_first``: whether no step of the recording is before it, so that such work is of no step;
    ``unrecorded_until``: the same of work that the recording does not hold.
    """

    start: float
    end: float
    operations: Sequence[HostOperation] = ()
    calls: Sequence[HostCall] = ()
    device: Sequence[DeviceWork] = ()
    allocations: Sequence[int] = ()
    number: int | None = None
    busy_before: float = -math.inf
    is_first: bool = False
    unrecorded_until: float = -math.inf

    @cached_property
    def by_correlation(self) -> Mapping[int, list[DeviceWork]]:
        """The device work by its number, which the call that issued it has too."""
        by_number: dict[int, list[DeviceWork]] = {}
        for work in self.device:
            by_number.setdefault(work.correlation, []).append(work)
        return by_number

    def issued_by(self, call: HostCall) -> Sequence[DeviceWork]:
        """The device work that a call issued, by start; nothing if the call has no number."""
        if not call.correlation:
            return ()
        return self.by_correlation.get(call.correlation, ())

    @cached_property
    def synchronisations(self) -> list[HostCall]:
        """Calls that wait for the device, by start: waits, and copies whose call returns when the
        copy is done.

        A copy and the wait for it within one operation are one synchronisation: PyTorch reads a
        value by a copy that does not wait, and a wait after it. So are they outside of operations,
        if the wait for a stream is the next call after the copy.
        """
        waits: list[HostCall] = []
        # By thread its last call.
        last: dict[str, HostCall] = {}
        for call in self.calls:
            if call.beside:
                continue
            before = last.get(call.thread)
            last[call.thread] = call
            if call.kind == "synchronisation":
                if waits and _is_copy_before(waits[-1], call, before):
                    call = _with_copy(call, waits.pop())
                waits.append(call)
            elif call.kind == "copy" and self._blocks(call):
                waits.append(call)
        return waits

    def key(self, index: int) -> int:
        """The number by which this step is found in the traces of other ranks: that of its mark,
        else its position ``index``.
        """
        return index if self.number is None else self.number

    @property
    def blocked_ns(self) -> float:
        """How long the host waits for the device, ns."""
        return sum(call.blocked for call in self.synchronisations)

    def _blocks(self, copy: HostCall) -> bool:
        """Whether a call waits for the copy that it issues."""
        return any(work.blocks for work in self.by_correlation.get(copy.correlation, ()))

    def count(self, kind: CallKind) -> int:
        """How many calls of this kind the step makes. A copy that waits counts as both: as a copy
        and as a synchronisation.
        """
        if kind == "synchronisation":
            return len(self.synchronisations)
        if kind == "copy":
            return len([call for call in self.calls if call.copies])
        return len([call for call in self.calls if call.kind == kind])


def _is_copy_before(earlier: HostCall, wait: HostCall, before: HostCall | None) -> bool:
    """Whether a wait is for this copy. ``before``: the call before the wait in its thread."""
    if earlier.kind != "copy" or earlier.operation is not wait.operation:
        return False
    if wait.operation is not None:
        return True
    return before is earlier and _WAITS_FOR_STREAM.fullmatch(wait.name) is not None


def _with_copy(wait: HostCall, copy: HostCall) -> HostCall:
    """A copy and the wait for it as one wait, from the start of the copy to the end of the wait. It
    has the number of the copy, which finds the device work.
    """
    both_blocked = copy.blocked + wait.blocked
    return structs.replace(
        wait,
        start=copy.start,
        # Calls of two threads may overlap; no wait is blocked for longer than it lasts.
        blocked=min(both_blocked, wait.end - copy.start),
        correlation=copy.correlation,
        copy=copy.name,
        copy_blocked=copy.blocked,
    )


_NOTHING_LOST = Recording()
_ALL = StepsTaken(how="recording")


@dataclass(frozen=True, eq=False)
class Trace:
    """The steps of a program that a profiler recorded, in order. ``device``: its name.
    ``processes``: those that used a device, if the recording holds several; one is read.

    ``recording``: what else was recorded, and what is lost. ``ranks``: how many ranks the program
    has; 0 if unknown. ``work``: all device work of the recording, also what no step issued; empty
    where only that of the steps is known. ``steps_taken``: how the steps were found. ``maker``:
    what recorded it; '' for a profile of ours. ``is_recorded``: somebody recorded it.
    """

    steps: Sequence[StepTrace]
    device: str = ""
    rank: str = ""
    processes: Sequence[ProcessTime] = ()
    recording: Recording = _NOTHING_LOST
    ranks: int = 0
    work: Sequence[DeviceWork] = ()
    steps_taken: StepsTaken = _ALL
    maker: TraceMaker = ""
    is_recorded: bool = False

    @property
    def counted(self) -> Trace:
        """The steps that all figures of the result are made of. Of a trace that somebody recorded
        these are all after the first one: the device may run behind the host, so the first step
        only tells when the second one begins. Of a profile of ours they are all steps.
        """
        return self._counted if self.is_recorded else self

    @cached_property
    def _counted(self) -> Trace:
        return dataclasses.replace(self, steps=self.steps[1:] or self.steps)

    @property
    def typical(self) -> Trace:
        """The steps that stand for all: of a recorded trace those that count, whose mean is taken;
        of a profile of ours the quiet ones, since the profiler disturbs the others.
        """
        return self.counted if self.is_recorded else self.quiet()

    def without_first_step(self) -> Trace:
        """The trace without its first step, which begins on an idle device; the same if it has no
        other step.
        """
        return Trace(self.steps[1:] or self.steps)

    def quiet(self) -> Trace:
        """The steps that took the host least: a quarter, three at least. All of them if they differ
        in their operations, because the shortest would then be those that do least. Of a large
        trace only some of them, spread over it.
        """
        return self._quiet

    @cached_property
    def _quiet(self) -> Trace:
        if not self.alike:  # by the number of operations
            return self
        # The shortest quarter of the lengths. A step as long as the longest of these counts too.
        quietest_ns = _quietest(step.end - step.start for step in self.steps)
        longest_ns = max(quietest_ns, default=0.0)
        return Trace(_spread([s for s in self.steps if s.end - s.start <= longest_ns]))

    @property
    def alike(self) -> bool:
        """Whether all steps run the same number of operations."""
        return len({len(step.operations) for step in self.steps}) <= 1

    @property
    def blocked_ns(self) -> float:
        """How long the host waits for the device in a typical step, ns: the median; 0 without a
        step.
        """
        waits_ns = [step.blocked_ns for step in self.steps]
        return statistics.median(waits_ns) if waits_ns else 0.0

    @property
    def has_device(self) -> bool:
        """Whether a step issued work to a device."""
        return any(step.device for step in self.steps)


def _spread(steps: Sequence[StepTrace]) -> Sequence[StepTrace]:
    """Of steps with many calls some, spread over all of them; else all."""
    calls = sum(len(step.calls) for step in steps)
    every = math.ceil(calls / _MOST_QUIET_CALLS)
    return steps[::every] if every > 1 and len(steps) >= every * _FEWEST_QUIET else steps


def _quietest(times: Iterable[float]) -> list[float]:
    ordered = sorted(times)
    return ordered[: max(3, len(ordered) // 4)]


def quiet_mean(times: Iterable[float]) -> float:
    """The mean of the shortest quarter of these times, three at least; 0 for no times."""
    quietest = _quietest(times)
    return statistics.fmean(quietest) if quietest else 0.0


def busy_ns(work: Iterable[DeviceWork]) -> float:
    """How long at least one of these pieces of work runs, ns."""
    ranges = union_of_spans((piece.start, piece.end) for piece in work)
    return sum(end - start for start, end in ranges)


def busy_by_device(work: Iterable[DeviceWork]) -> dict[str, float]:
    """How long each device runs at least one of these pieces of work, ns, by its number."""
    by_stream: dict[str, list[DeviceWork]] = {}
    for piece in work:
        by_stream.setdefault(piece.stream, []).append(piece)
    by_device: dict[str, list[DeviceWork]] = {}
    for pieces in by_stream.values():
        by_device.setdefault(pieces[0].device, []).extend(pieces)
    return {device: busy_ns(by_device[device]) for device in sorted(by_device)}


def busiest_ns(work: Iterable[DeviceWork]) -> float:
    """How long the device that works longest runs at least one of these pieces of work, ns."""
    return max(busy_by_device(work).values(), default=0.0)


def union_of_spans(times: Iterable[TimeRange]) -> list[TimeRange]:
    """The times that these cover together, in order and without overlap.

    Of work side by side on several streams, each moment counts once then.
    """
    union: list[TimeRange] = []
    for start, end in sorted(times):
        # It begins before the last range has ended, so it may only make that one longer.
        if union and start <= union[-1][1]:
            last_start, last_end = union[-1]
            union[-1] = (last_start, max(last_end, end))
        else:
            union.append((start, end))
    return union
