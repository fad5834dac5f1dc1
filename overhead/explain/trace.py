"""What a profiled program did on the host and on the device, step by step. Pure: events in, lists out; nanoseconds."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from overhead.explain.record import CallSite

CallKind = Literal["launch", "copy", "set", "allocation", "synchronisation", "other"]
TO_HOST = re.compile(r"Memcpy DtoH.*-> Pageable", re.I)
"""A copy into pageable memory blocks its call, also without a synchronisation after it."""


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
    """A call of the device's runtime or driver. ``waits_for``: the streams whose work has finished when it returns.

    ``blocked``: how long it waits for them. ``queue_full``: how long it waits for room in the queue.
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
        """The part of the call that is no host work: all of a call that waits for work, with its return."""
        return self.end - self.start if self.blocked > 0 else self.queue_full


@dataclass(frozen=True)
class DeviceWork:
    """One kernel, copy or set on the device."""

    name: str
    stream: str
    start: float
    end: float
    correlation: int = 0


@dataclass(frozen=True)
class StepTrace:
    """One step: its window on the host, what ran in it, and the device work that it issued.

    ``operations`` (the outermost ones), ``calls`` and ``device`` are sorted by start. Device work may end after the
    window. ``allocations``: bytes that the library's allocator handed out.
    """

    start: float
    end: float
    operations: Sequence[HostOperation] = ()
    calls: Sequence[HostCall] = ()
    device: Sequence[DeviceWork] = ()
    allocations: Sequence[int] = ()

    @cached_property
    def by_correlation(self) -> Mapping[int, list[DeviceWork]]:
        found: dict[int, list[DeviceWork]] = {}
        for work in self.device:
            found.setdefault(work.correlation, []).append(work)
        return found

    @cached_property
    def synchronisations(self) -> list[HostCall]:
        """Calls that wait for the device. A copy to the host and the wait for it within one operation are one."""
        found: list[HostCall] = []
        for call in self.calls:
            if call.kind == "synchronisation":
                last = found[-1] if found else None
                if last is not None and last.kind == "copy" and last.operation is call.operation is not None:
                    found.pop()
                    blocked = min(last.blocked + call.blocked, call.end - last.start)
                    call = dataclasses.replace(call, start=last.start, blocked=blocked)
                found.append(call)
            elif call.kind == "copy" and self._to_host(call):
                found.append(call)
        return found

    def _to_host(self, call: HostCall) -> bool:
        return any(TO_HOST.search(work.name) for work in self.by_correlation.get(call.correlation, ()))

    def count(self, kind: CallKind) -> int:
        """How many calls of this kind."""
        return len(self.synchronisations) if kind == "synchronisation" else sum(c.kind == kind for c in self.calls)

    @property
    def blocked(self) -> float:
        """How long the host waits for the device in this step."""
        return sum(call.blocked for call in self.synchronisations)


@dataclass(frozen=True)
class Trace:
    """The profiled steps, in order."""

    steps: Sequence[StepTrace]

    def settled(self) -> Trace:
        """Without the first step, which begins on an idle device; the trace itself if it has no other step."""
        return Trace(self.steps[1:] or self.steps)

    def quiet(self) -> Trace:
        """The quarter of the steps that took the host least, three at least; all if they run different operations."""
        if not self.alike:
            return self
        lengths = sorted(step.end - step.start for step in self.steps)
        longest = lengths[: quiet_number(lengths)][-1:]
        return Trace([step for step in self.steps if step.end - step.start <= longest[0]])

    @property
    def alike(self) -> bool:
        """Whether all steps run the same number of operations."""
        return len({len(step.operations) for step in self.steps}) <= 1

    @property
    def blocked_ns(self) -> float:
        """How long the host waits for the device in a typical step."""
        return statistics.median([step.blocked for step in self.steps]) if self.steps else 0.0

    @property
    def has_device(self) -> bool:
        return any(step.device for step in self.steps)


def quiet_number(times: Sequence[object]) -> int:
    """How many of these times are the quarter that took least, three at least."""
    return max(3, len(times) // 4)


def quiet_mean(times: Iterable[float]) -> float:
    """The mean of the quarter of these times that took least, three at least; 0 for no times."""
    ordered = sorted(times)
    return statistics.fmean(ordered[: quiet_number(ordered)]) if ordered else 0.0


def busy(work: Iterable[DeviceWork]) -> float:
    """How long at least one of these runs."""
    return sum(end - start for start, end in spans_of((each.start, each.end) for each in work))


def spans_of(times: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The times that at least one of these pairs of start and end covers, in order."""
    spans: list[tuple[float, float]] = []
    for start, end in sorted(times):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], end))
        else:
            spans.append((start, end))
    return spans
