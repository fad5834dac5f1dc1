"""What a profile says of a step: host work without the profiler's cost and without waits; counts;
and the rows. Pure.

CUPTI, which profiles the device's work, slows each runtime call of the host by another amount. So
the host's times come from another profile of the same operations, without the device.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct

from overhead.explaining import record
from overhead.explaining.record import BETWEEN, missing
from overhead.results import Figure, Why, because
from overhead.traces.trace import (
    NO_SITE,
    CallKind,
    CallSite,
    HostOperation,
    StepTrace,
    Trace,
    quiet_mean,
    union_of_spans,
)


@dataclass(frozen=True)
class ProfilerCost:
    """What the profiler costs, ns. ``operation_ns``: for each operation, nested ones too.

    ``entry_ns``: the time that PyTorch needs to get from Python into an operation.
    """

    operation_ns: float = 0.0
    entry_ns: float = 0.0


class ReturnTimes(Struct, frozen=True):
    """Times of calls without a profiler, ns, each on an idle device: of the step, and of a loop of
    one operation.
    """

    step: Sequence[float] = ()
    loop: Sequence[float] = ()


def profiler_cost(
    alone: Trace, loop: Trace, returns: ReturnTimes, blocked_ns: float = 0.0
) -> ProfilerCost:
    """The cost of the profiler, from calls with it (``alone``: steps, ``loop``) and without it
    (``returns``).

    If a step waits for the device for over 5 % (``blocked_ns``), which may hide the cost, that in
    the loop is taken.
    """
    waits = blocked_ns > 0.05 * quiet_mean(returns.step)
    gaps = [
        after.start - before.end
        for step in loop.steps
        for before, after in itertools.pairwise(step.operations)
    ]
    added_ns = _added_ns(loop, returns.loop) if waits else _added_ns(alone, returns.step)
    return ProfilerCost(added_ns, statistics.median(gaps) if gaps else 0.0)


def _added_ns(profiled: Trace, returns: Sequence[float]) -> float:
    """What the profiler adds to an operation, ns."""
    steps = profiled.quiet().steps
    operations = sum(1 + each.inner for step in steps for each in step.operations)
    if not operations or not returns:
        return 0.0
    plain = quiet_mean(returns) if profiled.alike else statistics.fmean(returns)
    return max(0.0, sum(step.end - step.start - plain for step in steps) / operations)


HostWork = Callable[[float, float], float]
"""The host's work in one step from one time of the profile to another, ns."""
_NO_TRACE, _NO_COST = Trace(()), ProfilerCost()


@dataclass(frozen=True)
class HostTimes:
    """The times of the host. ``alone``: steps profiled without the device, each of which began on
    an idle device.

    They tell the work of steps with the same operations in the same order. ``cost``: what the
    profiler adds, ns.
    """

    alone: Trace = _NO_TRACE
    cost: ProfilerCost = _NO_COST

    def work_of(self, step: StepTrace, call_ns: float) -> HostWork:
        """A function of two times of a step: the host's work between them, ns. ``call_ns``: CUPTI's
        cost of a call.
        """
        parts = _Parts(step, call_ns)
        usual = self._usual.get(_names(step)) or (parts.own_ns, self._costs(step))
        work, debt = [], 0.0
        for index, (own, usual_ns, cost_ns) in enumerate(zip(parts.own_ns, *usual, strict=True)):
            # A profile without the device cannot tell a wait from work. A part that is longer there
            # than with CUPTI has waited too, for room in the queue.
            calls = parts.calls[index]
            waits = parts.waits[index] > 0 or (calls > 0 and usual_ns > own + calls * call_ns)
            found = min(usual_ns, own) if waits else usual_ns
            # If a part is shorter than the profiler's cost, the remaining cost is subtracted from
            # the next parts.
            debt += cost_ns
            work.append(max(0.0, found - debt))
            debt -= found - work[-1]
        own_until, done = np.asarray(parts.own), np.asarray([0.0, *itertools.accumulate(work)])

        def between(start: float, end: float) -> float:
            first, last = np.interp((parts.own_until(start), parts.own_until(end)), own_until, done)
            return float(last - first)

        return between

    def call_ns(self, trace: Trace) -> float:
        """How much longer CUPTI makes a runtime call that does not wait, ns: the median over steps;
        0 without calls.
        """
        found = []
        for step in trace.steps:
            usual, parts = self._usual.get(_names(step)), _Parts(step, 0.0)
            if usual is None:
                continue
            free = [index for index, waits in enumerate(parts.waits) if not waits]
            if calls := sum(parts.calls[index] for index in free):
                found.append(sum(parts.own_ns[index] - usual[0][index] for index in free) / calls)
        return max(0.0, statistics.median(found)) if found else 0.0

    def count_unknown_steps(self, trace: Trace) -> int:
        """How many steps of the trace run other operations than the steps that were profiled
        without the device.
        """
        return sum(_names(step) not in self._usual for step in trace.steps)

    @cached_property
    def _usual(self) -> dict[tuple[str, ...], tuple[list[float], list[float]]]:
        """By the names of a step's operations: the usual time of each part with the profiler, and
        its cost there.
        """
        kinds: dict[tuple[str, ...], list[StepTrace]] = {}
        for step in self.alone.steps:
            kinds.setdefault(_names(step), []).append(step)
        found = {}
        for names, steps in kinds.items():
            quiet = Trace(steps).quiet().steps
            times = zip(*(_Parts(step, 0.0).own_ns for step in quiet), strict=True)
            found[names] = ([statistics.fmean(part) for part in times], self._costs(quiet[0]))
        return found

    def _costs(self, step: StepTrace) -> list[float]:
        """The cost of the profiler in each part of a step."""
        return [
            0.0,
            *(
                ns
                for each in step.operations
                for ns in (self.cost.operation_ns * (1 + each.inner), 0.0)
            ),
        ]


def _names(step: StepTrace) -> tuple[str, ...]:
    return tuple(operation.name for operation in step.operations)


class _Parts:
    """A step cut at the start and end of each operation, which counts from the end of those before
    it if they overlap.

    For each part: ``calls``: how many runtime calls do not wait; ``waits``: how many may wait for
    the device; ``own_ns``: the host's work. ``own``: at each edge, the work since the start of the
    step.
    """

    def __init__(self, step: StepTrace, call_ns: float) -> None:
        edges = [
            step.start,
            *(at for each in step.operations for at in (each.start, each.end)),
            step.end,
        ]
        edges = [min(at, step.end) for at in itertools.accumulate(edges, max)]
        waiting = [call for call in step.calls if call.no_work > 0]
        free = sorted(
            (call.start, call.end - call.queue_full) for call in step.calls if not call.blocked
        )
        self._start = step.start
        lost = [(call.end - call.no_work, call.end) for call in waiting]
        self._lost = union_of_spans(
            [*lost, *((max(start, end - call_ns), end) for start, end in free)]
        )
        self._lost_until = [0.0, *itertools.accumulate(end - start for start, end in self._lost)]
        self.own = [self.own_until(at) for at in edges]
        self.own_ns = [after - before for before, after in itertools.pairwise(self.own)]
        self.calls = _numbers([start for start, _ in free], edges)
        self.waits = _numbers([call.start for call in (*waiting, *step.synchronisations)], edges)

    def own_until(self, at: float) -> float:
        """The time from the start of the step to ``at`` in which the host worked, without the cost
        of calls.
        """
        begun = bisect.bisect_right(self._lost, at, key=lambda lost: lost[0])
        ahead = max(0.0, self._lost[begun - 1][1] - at) if begun else 0.0
        return at - self._start - self._lost_until[begun] + ahead


def _numbers(times: Iterable[float], edges: Sequence[float]) -> list[int]:
    """How many of these times lie in each part."""
    found: list[int] = np.diff(np.searchsorted(sorted(times), edges)).tolist()
    return found


_CALLS: dict[str, tuple[CallKind, ...]] = {
    "launches": ("launch",),
    "copies": ("copy",),
    "fills": ("set",),
    "driver_allocations": ("allocation",),
    "synchronisations": ("synchronisation",),
}
"""The kinds of calls that each count adds up."""
FROM_PAGEABLE = "from-pageable-memory"
"""The code in the name of an upload that waits for the work before it."""
NO_STEP = because("no-step-was-profiled")
_MOST_GAPS = 10
_Key = tuple[str, CallSite]


def step_counts(trace: Trace, reason: Why = NO_STEP) -> record.StepCounts:
    """The counts of a step: medians of the steps, with the fewest and the most. ``reason``: why
    there are no steps.
    """
    if not trace.steps:
        return record.StepCounts(
            **{name: missing(name, reason, "count") for name in ("allocations", *_CALLS)}
        )
    found = {"allocations": _count("allocations", [len(step.allocations) for step in trace.steps])}
    seen = trace.has_device or any(step.calls for step in trace.steps)
    for name, kinds in _CALLS.items():
        counts = [sum(map(step.count, kinds)) for step in trace.steps]
        found[name] = (
            _count(name, counts) if seen else missing(name, because("no-work-on-a-device"), "count")
        )
    return record.StepCounts(**found)


def _count(name: str, counts: Sequence[int]) -> Figure:
    return Figure(
        name=name, unit="count", value=statistics.median(counts), low=min(counts), high=max(counts)
    )


def operation_rows(trace: Trace, host: HostTimes) -> list[record.OperationRow]:
    """A row for each outermost operation by name and line, most host work first, and one for the
    work between them.

    The time that PyTorch needs to get from Python into an operation belongs to the operation.
    """
    found: dict[_Key, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    between, call_ns, steps = 0.0, host.call_ns(trace), len(trace.steps)
    for step in trace.steps:
        for call in step.calls:
            if call.operation is not None and call.correlation:
                work = step.by_correlation.get(call.correlation, ())
                found[_key(call.operation)][2] += sum(each.end - each.start for each in work)
        work_of, last = host.work_of(step, call_ns), step.start
        for operation in step.operations:
            start = max(last, operation.start)  # operations of several threads may overlap
            end = max(start, operation.end)
            before = work_of(last, start)
            entry = min(before, host.cost.entry_ns)
            sums = found[_key(operation)]
            sums[0] += 1
            sums[1] += entry + work_of(start, end)
            between += before - entry
            last = end
        between += work_of(last, step.end)
    if found or between:
        found[BETWEEN, NO_SITE] = [steps, between, 0.0]
    rows = [
        record.OperationRow(
            name=name, count=n / steps, host_ns=host / steps, device_ns=device / steps, site=site
        )
        for (name, site), (n, host, device) in found.items()
    ]
    return sorted(rows, key=lambda row: -row.host_ns)[: record.MOST_ROWS]


def _key(operation: HostOperation) -> _Key:
    return operation.name, operation.site


def synchronisation_rows(trace: Trace) -> list[record.SynchronisationRow]:
    """The synchronisations by kind and line, the one that blocks longest first."""
    found: dict[tuple[str, bool, CallSite], list[float]] = defaultdict(list)
    for step in trace.steps:
        for call in step.synchronisations:
            name = (
                f"{call.operation.name}, {call.name}" if call.operation is not None else call.name
            )
            issued = step.by_correlation.get(call.correlation, ())
            is_pageable = any(work.uploads_pageable for work in issued)
            found[name, is_pageable, call.site].append(call.blocked)
    steps = len(trace.steps)
    rows = []
    for (name, is_pageable, site), times in found.items():
        what = because("from-pageable-memory", what=name) if is_pageable else name
        count, blocked_ns = len(times) / steps, sum(times) / steps
        rows.append(
            record.SynchronisationRow(what=what, count=count, blocked_ns=blocked_ns, site=site)
        )
    return sorted(rows, key=lambda row: -row.blocked_ns)[: record.MOST_ROWS]


def gap_rows(trace: Trace) -> list[record.DeviceGap]:
    """The longest times without device work, between the first and the last work of the step of
    median length.
    """
    if not trace.steps:
        return []
    step = sorted(trace.steps, key=lambda step: step.end - step.start)[len(trace.steps) // 2]
    starts = [operation.start for operation in step.operations]
    found, end = [], float("inf")
    for work in step.device:
        if work.start > end:
            middle = (end + work.start) / 2
            at = bisect.bisect_right(starts, middle) - 1
            runs = at >= 0 and step.operations[at].end >= middle
            host, site = _key(step.operations[at]) if runs else (BETWEEN, NO_SITE)
            found.append(
                record.DeviceGap(ns=work.start - end, before=work.name[:4000], host=host, site=site)
            )
        end = work.end if end == float("inf") else max(end, work.end)
    return sorted(found, key=lambda gap: -gap.ns)[:_MOST_GAPS]
