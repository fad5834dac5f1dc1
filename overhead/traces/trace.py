"""What a profiled program did on the host and on the device, step by step. Pure: events in, lists
out; nanoseconds.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from msgspec import Struct

from overhead.results import LongText
from overhead.traces.recording import Recording

CallKind = Literal["launch", "copy", "set", "allocation", "synchronisation", "other"]
TO_HOST = re.compile(r"Memcpy DtoH.*-> Pageable", re.I)
"""A copy into pageable memory blocks its call, also without a synchronisation after it."""
_FROM_PAGEABLE, _STAGED_NS = re.compile(r"Memcpy HtoD.*Pageable ->", re.I), 10_000.0
"""A copy from pageable memory blocks its call too, unless it is so short that CUDA stages it: 64
KiB.
"""
LOADER = "enumerate(DataLoader)#"
"""How the annotation of PyTorch begins that holds a DataLoader's ``next``; it counts as an
operation.
"""


class CallSite(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True, kw_only=True):
    """A line of the program. ``inside``: the line of a library below it that made the call; empty
    if there is none.
    """

    line: LongText = ""
    inside: LongText = ""


NO_SITE = CallSite()
"""Nothing is known of the line."""


@dataclass(frozen=True)
class HostOperation:
    """An operation of the library. ``inner``: how many operations it calls, on all levels."""

    name: str
    start: float
    end: float
    thread: str
    inner: int = 0
    site: CallSite = NO_SITE


@dataclass(frozen=True)
class HostCall:
    """A call of the device's runtime or driver. ``waits_for``: the streams whose work has finished
    when it returns.

    ``blocked``: how long it waits for them. ``queue_full``: how long it waits for room in the
    queue.
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
    operation: HostOperation | None = None
    site: CallSite = NO_SITE

    @property
    def no_work(self) -> float:
        """The part of the call that is no host work, ns: all of it if it waits for device work,
        else ``queue_full``.
        """
        return self.end - self.start if self.blocked > 0 else self.queue_full


_COMMUNICATES = re.compile(
    r"\b(?:nccl|rccl|oneccl|mscclpp|nvshmem|cross_device_reduce|deep_ep|multimem)"
    r"|nccl(?:Dev|Symk?Dev|Kernel)|(?<!warp)(?<!block)(?<!warp_)(?<!block_)all_?(?:reduce|gather|to_?all)"
    r"|reduce_?scatter|(?:one|two)_?shot_?(?:all|push|pull)|\w*_ep_(?:dispatch|combine)",
    re.I,
)
"""Kernels that exchange data with other devices, and wait for them while they run: libraries of
collectives, and the names that vLLM, SGLang, TensorRT-LLM, FlashInfer and PyTorch's symmetric
memory give their own.
"""


@dataclass(frozen=True)
class DeviceWork:
    """One kernel, copy or set on the device. ``stream``: ``device:stream``.

    ``collective``: what it exchanges with other devices, as PyTorch names it; empty if it does not
    or is not known. ``group``: which ranks take part and how much each of them gives, in the words
    of the recording; empty likewise.
    """

    name: str
    stream: str
    start: float
    end: float
    correlation: int = 0
    collective: str = ""
    group: str = ""

    @property
    def device(self) -> str:
        """The number of the device."""
        return self.stream.partition(":")[0]

    @property
    def communicates(self) -> bool:
        """Whether it may wait for other devices while it runs."""
        return bool(_COMMUNICATES.search(self.name))

    @property
    def uploads_pageable(self) -> bool:
        """Whether it copies from pageable memory, and its call waits for the work before it."""
        return self.end - self.start >= _STAGED_NS and bool(_FROM_PAGEABLE.search(self.name))

    @property
    def copies_to_pageable(self) -> bool:
        """Whether it copies into pageable memory, and its call returns when that is done."""
        return bool(TO_HOST.search(self.name))

    @property
    def blocks(self) -> bool:
        """Whether the call that issues it waits for it."""
        return self.uploads_pageable or self.copies_to_pageable


@dataclass(frozen=True)
class StepTrace:
    """One step from ``start`` to ``end`` on the host, what ran then, and the device work that it
    issued, by start.

    Device work may end later. ``operations``: the outermost ones. ``allocations``: bytes from the
    library's allocator. ``number``: that of its mark; None without one.
    """

    start: float
    end: float
    operations: Sequence[HostOperation] = ()
    calls: Sequence[HostCall] = ()
    device: Sequence[DeviceWork] = ()
    allocations: Sequence[int] = ()
    number: int | None = None

    @cached_property
    def by_correlation(self) -> Mapping[int, list[DeviceWork]]:
        """The device work by its number, which the call that issued it has too."""
        found: dict[int, list[DeviceWork]] = {}
        for work in self.device:
            found.setdefault(work.correlation, []).append(work)
        return found

    @cached_property
    def synchronisations(self) -> list[HostCall]:
        """Calls that wait for the device. A copy to the host and the wait for it within one
        operation are one.
        """
        found: list[HostCall] = []
        for call in self.calls:
            if call.kind == "synchronisation":
                last = found[-1] if found else None
                if (
                    last is not None
                    and last.kind == "copy"
                    and last.operation is call.operation is not None
                ):
                    found.pop()
                    blocked, copy = (
                        min(last.blocked + call.blocked, call.end - last.start),
                        last.correlation,
                    )
                    call = dataclasses.replace(
                        call, start=last.start, blocked=blocked, correlation=copy
                    )
                found.append(call)
            elif call.kind == "copy" and any(
                each.blocks for each in self.by_correlation.get(call.correlation, ())
            ):
                found.append(call)
        return found

    def count(self, kind: CallKind) -> int:
        """How many calls of this kind the step makes."""
        return (
            len(self.synchronisations)
            if kind == "synchronisation"
            else sum(c.kind == kind for c in self.calls)
        )


_NOTHING_LOST = Recording()


@dataclass(frozen=True)
class Trace:
    """The profiled steps, in order. ``device``: its name. ``processes``: how many were recorded;
    one is read.

    ``recording``: what else was recorded, and what is lost. ``ranks``: how many ranks the program
    has; 0 if unknown.
    """

    steps: Sequence[StepTrace]
    device: str = ""
    rank: str = ""
    processes: int = 1
    recording: Recording = _NOTHING_LOST
    ranks: int = 0

    def without_first_step(self) -> Trace:
        """The trace without its first step, which begins on an idle device; the same if it has no
        other step.
        """
        return Trace(self.steps[1:] or self.steps)

    def quiet(self) -> Trace:
        """The steps that took the host least: a quarter, three at least; all if they differ in
        their operations.
        """
        if not self.alike:
            return self
        longest = max(_quietest(step.end - step.start for step in self.steps), default=0.0)
        return Trace([step for step in self.steps if step.end - step.start <= longest])

    @property
    def alike(self) -> bool:
        """Whether all steps run the same number of operations."""
        return len({len(step.operations) for step in self.steps}) <= 1

    @property
    def blocked_ns(self) -> float:
        """How long the host waits for the device in a typical step, ns: the median; 0 without a
        step.
        """
        waits = [sum(call.blocked for call in step.synchronisations) for step in self.steps]
        return statistics.median(waits) if waits else 0.0

    @property
    def has_device(self) -> bool:
        """Whether a step issued work to a device."""
        return any(step.device for step in self.steps)


def _quietest(times: Iterable[float]) -> list[float]:
    ordered = sorted(times)
    return ordered[: max(3, len(ordered) // 4)]


def quiet_mean(times: Iterable[float]) -> float:
    """The mean of the shortest quarter of these times, three at least; 0 for no times."""
    quietest = _quietest(times)
    return statistics.fmean(quietest) if quietest else 0.0


def busy_ns(work: Iterable[DeviceWork]) -> float:
    """How long at least one of these pieces of work runs, ns."""
    return sum(
        end - start for start, end in union_of_spans((each.start, each.end) for each in work)
    )


def busy_by_device(work: Iterable[DeviceWork]) -> dict[str, float]:
    """How long each device runs at least one of these pieces of work, ns, by its number."""
    found: dict[str, list[DeviceWork]] = {}
    for each in work:
        found.setdefault(each.device, []).append(each)
    return {device: busy_ns(found[device]) for device in sorted(found)}


def busiest_ns(work: Iterable[DeviceWork]) -> float:
    """How long the device that works longest runs at least one of these pieces of work, ns."""
    return max(busy_by_device(work).values(), default=0.0)


def union_of_spans(times: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The spans (start and end) that these spans cover together, in order and without overlap."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted(times):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans
