"""What a profile says of a step: host work without the profiler's cost and without waits; counts;
and the rows. Pure.

CUPTI, which profiles the device's work, slows each runtime call of the host by another amount. So
the host's times come from another profile of the same operations, without the device.
"""

from __future__ import annotations

import bisect
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overhead.explaining import record
from overhead.explaining.record import BETWEEN, missing
from overhead.results import Figure, Why, because
from overhead.traces.doubts import working_threads
from overhead.traces.earlier_work import own_wait_ns
from overhead.traces.trace import (
    NO_SITE,
    CallKind,
    CallSite,
    HostOperation,
    StepTrace,
    TimeRange,
    Trace,
    quiet_mean,
    union_of_spans,
)


@dataclass(frozen=True)
class ProfilerCost:
    """What the profiler costs, ns. ``operation_ns``: what it adds to each operation, nested ones
    too. ``entry_ns``: the time that PyTorch needs to get from Python into an operation; a trace
    shows it before the operation, to which it belongs.
    """

    operation_ns: float = 0.0
    entry_ns: float = 0.0


class ReturnTimes(Struct, frozen=True):
    """Times of calls without a profiler, ns, each on an idle device: of the step, and of a loop of
    one operation.
    """

    step: Sequence[float] = ()
    loop: Sequence[float] = ()


_MUCH_WAITING = 0.05
"""A step that waits for a larger share of its time than this may hide the profiler's cost in its
waits. Chosen, not measured; docs/explain.md tells it.
"""


def profiler_cost(
    alone: Trace, loop: Trace, returns: ReturnTimes, blocked_ns: float = 0.0
) -> ProfilerCost:
    """What the profiler costs an operation: how much longer the same calls take with it than
    without it (``returns``). With it: ``alone``, a trace of steps, and ``loop``, a trace of a loop
    that only repeats one operation.

    ``blocked_ns``: how long a step waits for the device. If that is much, the cost is taken from
    the loop, which does not wait: what the profiler adds while the host would wait anyway is not
    seen in the time of the step.
    """
    # The loop does nothing between its operations but enter the next one. So ``entry_ns``, from the
    # end of one to the start of the next, is the time to get into an operation.
    gaps_ns = []
    for step in loop.steps:
        for before, after in itertools.pairwise(step.operations):
            gaps_ns.append(after.start - before.end)
    entry_ns = statistics.median(gaps_ns) if gaps_ns else 0.0

    # ``returns``: without the profiler, how long a step and the loop take until they return.
    # ``quiet_mean``: of the quickest quarter. Much waiting is over 5 % of a step.
    if blocked_ns > _MUCH_WAITING * quiet_mean(returns.step):
        return ProfilerCost(_added_ns(loop, returns.loop), entry_ns)
    return ProfilerCost(_added_ns(alone, returns.step), entry_ns)


def _added_ns(profiled: Trace, returns: Sequence[float]) -> float:
    """What the profiler adds to an operation, ns: how much longer the profiled steps take than
    without it (``returns``: times until a step returns), over the number of their operations.
    """
    steps = profiled.quiet().steps  # those that took the host least
    operations = 0
    for step in steps:
        # ``inner``: how many operations it calls in turn, each of which is profiled too.
        operations += sum(operation.calls + operation.inner for operation in step.operations)
    if not operations or not returns:
        return 0.0
    # ``quiet`` keeps all steps if they are not alike; then all times without the profiler count.
    # ``alike``: all steps run the same number of operations; ``quiet_mean``: of the quickest
    # quarter.
    unprofiled_ns = quiet_mean(returns) if profiled.alike else statistics.fmean(returns)
    added_ns = sum(step.end - step.start - unprofiled_ns for step in steps)
    return max(0.0, added_ns / operations)


_NO_TRACE, _NO_COST = Trace(()), ProfilerCost()


@dataclass(frozen=True)
class _ProfiledParts:
    """For each part of a step (``_CutStep``), ns: its time with a profiler, and how much of that is
    the profiler's cost.
    """

    part_ns: Sequence[float]
    cost_ns: Sequence[float]


@dataclass(frozen=True, eq=False)
class HostTimes:
    """Tells how long the host works in each part of a step, from a profile that recorded the host
    alone: a profile with the device (by CUPTI) slows the host down.

    ``alone``: the steps of that profile, each of which began on an idle device. They tell the work
    of steps with the same operations in the same order. ``cost``: what that profiler adds, ns.
    """

    alone: Trace = _NO_TRACE
    cost: ProfilerCost = _NO_COST

    def work_of(self, step: StepTrace, call_ns: float) -> HostWork:
        """The host's work in ``step``.

        The step was profiled with the device, by CUPTI, which makes each runtime call ``call_ns``
        longer. The work in each of its parts comes from steps that were profiled without the
        device. Within a part the work is spread as the time of the host in ``step``.
        """
        cut = _CutStep(step, call_ns)
        # If no step with the same operations was profiled without the device, this step's own times
        # must do.
        own = _ProfiledParts(cut.part_ns, self._costs(step))
        without_device = own
        if self._parts_by_names:
            without_device = self._parts_by_names.get(_names(step), own)
        # From the work of each part follows the work up to each edge; between edges it is
        # interpolated.
        work_ns: Sequence[float] = cut.part_ns
        if without_device is not own or self.cost.operation_ns:
            work_ns = _work_of_parts(cut, without_device, call_ns)
        return HostWork(cut, [0.0, *itertools.accumulate(work_ns)])

    def call_ns(self, trace: Trace) -> float:
        """How much longer CUPTI, which profiles the device, makes a call of its runtime that does
        not wait, ns: the median over the steps of ``trace``; 0 without calls.

        A step that was also profiled without the device tells it: it is what the parts without
        waits take longer in ``trace``, over the number of calls in them.
        """
        longer_ns_per_call = []
        for step in trace.steps:
            # ``_names``: those of the operations, in order.
            without_device = self._parts_by_names.get(_names(step))
            if without_device is None:
                continue
            cut = _CutStep(step, 0.0)
            # A wait takes another time in each profile, so parts with a wait tell nothing.
            unwaited = [index for index, waits in enumerate(cut.waits) if not waits]
            calls = sum(cut.free_calls[index] for index in unwaited)
            longer_ns = sum(
                cut.part_ns[index] - without_device.part_ns[index] for index in unwaited
            )
            if calls:
                longer_ns_per_call.append(longer_ns / calls)
        return max(0.0, statistics.median(longer_ns_per_call)) if longer_ns_per_call else 0.0

    def count_unknown_steps(self, trace: Trace) -> int:
        """How many steps of the trace run other operations than the steps that were profiled
        without the device.
        """
        unknown = [step for step in trace.steps if _names(step) not in self._parts_by_names]
        return len(unknown)

    @cached_property
    def _parts_by_names(self) -> dict[tuple[str, ...], _ProfiledParts]:
        """How long each part of a step takes in the profile without the device. A part is an
        operation, or what is between two. Steps with the same operations in the same order are of
        one kind: by their names, the means over the quickest steps of the kind.
        """
        steps_by_names: dict[tuple[str, ...], list[StepTrace]] = {}
        for step in self.alone.steps:
            steps_by_names.setdefault(_names(step), []).append(step)

        parts_by_names = {}
        for names, steps in steps_by_names.items():
            # ``quiet``: the quickest quarter of the steps of this kind.
            quickest = Trace(steps).quiet().steps
            # Rows: steps; columns: parts. ``zip`` turns it into the times of each part.
            parts_of_steps = [_CutStep(step, 0.0).part_ns for step in quickest]
            times_of_parts = zip(*parts_of_steps, strict=True)
            part_ns = [statistics.fmean(times) for times in times_of_parts]
            parts_by_names[names] = _ProfiledParts(part_ns, self._costs(quickest[0]))
        return parts_by_names

    def _costs(self, step: StepTrace) -> list[float]:
        """The cost of the profiler in each part of a step, ns, by turns outside and inside of an
        operation. Only operations cost something, and also those that they call in turn.
        """
        if not self.cost.operation_ns:
            return [0.0] * (2 * len(step.operations) + 1)
        costs_ns = [0.0]  # before the first operation
        for operation in step.operations:
            costs_ns.append(self.cost.operation_ns * (operation.calls + operation.inner))
            costs_ns.append(0.0)  # between this operation and the next one
        return costs_ns


AS_RECORDED = HostTimes()
"""The times of the host as a trace has them, with what its profiler added."""


def _names(step: StepTrace) -> tuple[str, ...]:
    return tuple(operation.name for operation in step.operations)


class _CutStep:
    """A profiled step, cut into parts at the start and at the end of each operation, with the time
    of the host in each part: so that a part can be compared with the same part in another profile.

    The parts are by turns outside and inside of an operation; the first and the last one are
    outside. Operations of several threads may overlap: then one counts from the end of those before
    it. Times are ns of the host, without waits and without the cost of calls. ``part_ns``: of each
    part. ``time_until_edge``: from the start of the step to each cut. ``free_calls``: how many
    runtime calls in a part do not block. ``waits``: how many may wait for the device.
    """

    def __init__(self, step: StepTrace, call_ns: float) -> None:
        """Cut ``step``, and find the time of the host in each part. ``call_ns``: how much longer
        the profiler makes each call of the runtime that does not block.
        """
        self._start = step.start
        # A call waits for the device (``blocked``), or only for room in its queue (``queue_full``).
        # ``no_work``: all of a call that waits for the device, else the time for room, at its end.
        waiting = [call for call in step.calls if call.no_work > 0]
        free_spans = [
            (call.start, call.end - call.queue_full) for call in step.calls if not call.blocked
        ]
        # In these spans, waits and the profiler's cost, the host does no work of the program. The
        # cost of a call is taken from its end, and a call shorter than that is all cost.
        waits = [(call.end - call.no_work, call.end) for call in waiting]
        costs = [(max(start, end - call_ns), end) for start, end in free_spans if call_ns]
        # ``_lost_starts``, ``_lost_ends``: of these spans without overlaps, in order.
        # ``_lost_until``: by number of spans, how long those before last together.
        lost = np.array(union_of_spans([*waits, *costs]), dtype=np.float64).reshape(-1, 2)
        self._lost_starts = lost[:, 0]
        self._lost_ends = np.concatenate([[-math.inf], lost[:, 1]])
        self._lost_until = np.concatenate([[0.0], np.cumsum(lost[:, 1] - lost[:, 0])])

        # Now the parts, from edge to edge, in the host's time that is left.
        edges = _edges(step)
        self.time_until_edge = self.times_until(edges)
        self.part_ns: list[float] = np.diff(self.time_until_edge).tolist()
        self.free_calls = _count_in_parts([start for start, _ in free_spans], edges)
        may_wait = [call.start for call in (*waiting, *step.synchronisations)]
        self.waits = _count_in_parts(may_wait, edges)

    def times_until(self, moments: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
        """The time of the host from the start of the step to each of these moments, ns, without the
        spans that are waits or the cost of calls (lost spans).
        """
        at = np.asarray(moments, dtype=np.float64)
        begun = np.searchsorted(self._lost_starts, at, side="right")  # how many have begun by then
        # The last lost span that has begun may go on after ``at``; that part is not lost yet.
        lost_later = np.maximum(0.0, self._lost_ends[begun] - at)
        # From the start to ``at``, less all lost spans that have begun, plus what of the last is
        # still to come.
        times: NDArray[np.float64] = at - self._start - self._lost_until[begun] + lost_later
        return times


class HostWork:
    """The host's work in one step. It grows evenly with the host's time inside each part of the
    step. ``work_until_edge``: at each edge, the start or end of a part.
    """

    def __init__(self, cut: _CutStep, work_until_edge: Sequence[float]) -> None:
        # The parts follow from each other, from edge to edge.
        self._cut = cut
        self._work_until_edge = np.asarray(work_until_edge, dtype=np.float64)

    def until(self, moments: Sequence[float]) -> list[float]:
        """The work from the start of the step to each of these moments of the profile, ns. Between
        two edges of the same time there is none.
        """
        edges, works = self._cut.time_until_edge, self._work_until_edge
        times = self._cut.times_until(moments)
        after = np.searchsorted(edges, times, side="right")
        inside = np.clip(after, 1, len(edges) - 1)
        since, before = edges[inside - 1], works[inside - 1]
        length = edges[inside] - since
        # Beyond the last edge a part may have no length; its share is not used there.
        share = (times - since) / np.where(length > 0, length, 1.0)
        work = before + share * (works[inside] - before)
        work = np.where(after > len(edges) - 1, works[-1], work)
        until: list[float] = np.where(after == 0, 0.0, work).tolist()
        return until

    def between(self, moments: Sequence[float]) -> list[float]:
        """The work from each of these moments to the next, ns."""
        until = self.until(moments)
        return [end - start for start, end in itertools.pairwise(until)]

    def in_ranges(self, ranges: Iterable[TimeRange]) -> list[float]:
        """The work in each of these times, ns."""
        until = self.until(list(itertools.chain.from_iterable(ranges)))
        return [end - start for start, end in zip(until[::2], until[1::2], strict=True)]


def moments_of(step: StepTrace) -> list[float]:
    """The start of a step, the start and end of each operation, and the end of the step, in order.
    Operations of several threads may overlap: one begins where those before it end, so that no time
    counts twice.
    """
    moments = [step.start]
    for operation in step.operations:
        start = max(moments[-1], operation.start)
        moments += [start, max(start, operation.end)]
    moments.append(step.end)
    return moments


def _edges(step: StepTrace) -> NDArray[np.float64]:
    """The times at which a step is cut into parts: its start, the start and end of each operation,
    and its end, in order.
    """
    times = [step.start]
    for operation in step.operations:
        times += [operation.start, operation.end]
    times.append(step.end)
    # Operations of several threads may overlap, and one may end after the step: each edge is the
    # latest time so far, and none is later than the end of the step.
    latest = np.maximum.accumulate(np.array(times, dtype=np.float64))
    return np.minimum(latest, step.end)


def _count_in_parts(times: Sequence[float], edges: NDArray[np.float64]) -> list[int]:
    """How many of these times lie in each part, from one edge to the next."""
    # How many times lie before each edge; the difference of neighbours is the number in the part.
    before_edges = np.searchsorted(sorted(times), edges)
    counts: list[int] = np.diff(before_edges).tolist()
    return counts


def _work_of_parts(cut: _CutStep, without_device: _ProfiledParts, call_ns: float) -> list[float]:
    """The host's work in each part of a step, ns. The profile with the device (``cut``, by CUPTI)
    tells where the host waits; the one without the device tells how long a part takes otherwise.
    From this time the profiler's cost is subtracted.

    ``call_ns``: how much longer CUPTI makes each call of the runtime.
    """
    work_ns: list[float] = []
    cost_left_ns = 0.0  # of this part and those before, what is not subtracted yet
    for index, part_ns in enumerate(cut.part_ns):
        without_device_ns = without_device.part_ns[index]
        calls = cut.free_calls[index]
        # A profile without the device cannot tell a wait from work. With CUPTI this part took
        # ``part_ns`` and what CUPTI adds to its calls. Only a wait, for room in the queue, makes it
        # longer without CUPTI.
        waited_without_device = calls > 0 and without_device_ns > part_ns + calls * call_ns
        time_ns = without_device_ns
        # ``part_ns`` holds no waits, so the shorter time is nearer to the work.
        if cut.waits[index] > 0 or waited_without_device:
            time_ns = min(without_device_ns, part_ns)

        # If a part is shorter than the profiler's cost in it, the rest of the cost is subtracted
        # from the next parts, so that the sum over the step is right.
        cost_left_ns += without_device.cost_ns[index]
        # What this subtracts is the difference of both times, so the rest of the cost is left.
        part_work_ns = max(0.0, time_ns - cost_left_ns)
        cost_left_ns -= time_ns - part_work_ns
        work_ns.append(part_work_ns)
    return work_ns


_KIND_OF_COUNT: dict[str, CallKind] = {
    "launches": "launch",
    "copies": "copy",
    "fills": "set",
    "driver_allocations": "allocation",
    "synchronisations": "synchronisation",
}
"""The kind of calls that each count is of."""
FROM_PAGEABLE = "from-pageable-memory"
"""The code in the name of an upload that waits for the work before it."""
NO_STEP = because("no-step-was-profiled")
_MOST_GAPS = 10
_LONGEST_NAME = 4000
"""Names of kernels are cut there: a field of the file holds no longer text."""
_Key = tuple[str, CallSite]


def step_counts(trace: Trace, reason: Why = NO_STEP) -> record.StepCounts:
    """How many launches, copies, synchronisations and so on a step makes: of each the median over
    the profiled steps, with the fewest and the most. ``reason``: why there are no steps.
    """
    if not trace.steps:
        names = ("allocations", *_KIND_OF_COUNT)
        return record.StepCounts(**{name: missing(name, reason, "count") for name in names})

    allocations = [len(step.allocations) for step in trace.steps]
    figures = {"allocations": _count("allocations", allocations)}
    # Where no device takes part there is nothing to count, which is not the same as 0.
    has_calls = trace.has_device or any(step.calls for step in trace.steps)
    none = because("no-work-on-a-device")
    other_device = trace.recording.other_device
    if other_device and not trace.has_device:
        # What the calls of that device do is not known.
        has_calls = False
        none = because("calls-of-other-device", category=other_device)
    # By the name of a count the kind of calls that it counts.
    for name, kind in _KIND_OF_COUNT.items():
        if has_calls:
            figures[name] = _count(name, [step.count(kind) for step in trace.steps])
        else:
            figures[name] = missing(name, none, "count")
    return record.StepCounts(**figures)


def _count(name: str, counts: Sequence[int]) -> Figure:
    """A figure of the counts of several steps: their median, and the fewest and the most."""
    return Figure(
        name=name, unit="count", value=statistics.median(counts), low=min(counts), high=max(counts)
    )


@dataclass
class _OperationSums:
    """Sums over all profiled steps for the operations of one name and line, times in ns."""

    count: int = 0
    host_ns: float = 0.0
    device_ns: float = 0.0


def operation_rows(trace: Trace, host: HostTimes) -> list[record.OperationRow]:
    """The rows of the table of operations: how often each runs in a step, how long the host works
    in it, and the device for it. A row has the operations of one name and line, those that no other
    one calls; one more row (``BETWEEN``) has the work between them. Most host work comes first.

    The time that PyTorch needs to get from Python into an operation (``entry_ns``) belongs to the
    operation, though the profile shows it before.
    """
    sums: dict[_Key, _OperationSums] = defaultdict(_OperationSums)
    between_ns = 0.0
    # How much longer the profiler makes a call of the runtime.
    call_ns = host.call_ns(trace)
    for step in trace.steps:
        # The device time of an operation is that of all work which its calls issued.
        _add_device_work(sums, step)
        *parts_ns, rest_ns = host.work_of(step, call_ns).between(moments_of(step))
        for operation, before_ns, inside_ns in zip(
            step.operations, parts_ns[::2], parts_ns[1::2], strict=True
        ):
            # ``before_ns``: work between the operation before and this one. A part of it,
            # ``entry_ns`` at most, was getting into this operation.
            entry_ns = min(before_ns, host.cost.entry_ns)
            # ``_key``: the name of the operation and its line in the program.
            row_sums = sums[_key(operation)]
            row_sums.count += operation.calls
            row_sums.host_ns += entry_ns + inside_ns
            between_ns += before_ns - entry_ns
        between_ns += rest_ns

    # The row of the work between operations has no line.
    steps = len(trace.steps)
    if sums or between_ns:
        sums[BETWEEN, NO_SITE] = _OperationSums(steps, between_ns)
    rows = [_operation_row(key, row_sums, steps) for key, row_sums in sums.items()]
    # ``MOST_ROWS``: a file holds no more.
    return sorted(rows, key=lambda row: -row.host_ns)[: record.MOST_ROWS]


def call_rows(trace: Trace) -> list[record.OperationRow]:
    """For a trace that names no operations and ranges, such as that of a program in C++: the calls
    of the runtime by name, with the time that each works on the host, and the device for it. None
    for a trace with operations, whose table shows them.
    """
    sums: dict[_Key, _OperationSums] = defaultdict(_OperationSums)
    for step in trace.steps:
        if step.operations:
            return []
        # Threads that only wait, beside the program, do not count.
        working = working_threads((), step.calls)
        for call in step.calls:
            if call.thread not in working:
                continue
            row_sums = sums[call.name, NO_SITE]
            row_sums.count += 1
            row_sums.host_ns += max(0.0, call.end - call.start - call.no_work)
            issued = step.by_correlation.get(call.correlation, ()) if call.correlation else ()
            row_sums.device_ns += sum(work.end - work.start for work in issued)
    rows = [_operation_row(key, row_sums, len(trace.steps)) for key, row_sums in sums.items()]
    return sorted(rows, key=lambda row: -row.host_ns)[: record.MOST_ROWS]


def _add_device_work(sums: dict[_Key, _OperationSums], step: StepTrace) -> None:
    """Add the device work of a step to the operations whose calls issued it."""
    for call in step.calls:
        if call.operation is None or not call.correlation:
            continue
        issued = step.by_correlation.get(call.correlation, ())
        sums[_key(call.operation)].device_ns += sum(work.end - work.start for work in issued)


def _operation_row(key: _Key, sums: _OperationSums, steps: int) -> record.OperationRow:
    """The row of one operation: its sums as means over the steps."""
    name, site = key
    return record.OperationRow(
        name=name,
        count=sums.count / steps,
        host_ns=sums.host_ns / steps,
        device_ns=sums.device_ns / steps,
        site=site,
    )


def _key(operation: HostOperation) -> _Key:
    """What operations of one row have in common: their name and their line in the program."""
    return operation.name, operation.site


@dataclass
class _WaitSums:
    """The waits of one row: how many calls, how long they wait, and how long of this each of the
    calls of the runtime that they consist of, by its name.
    """

    calls: int = 0
    blocked_ns: float = 0.0
    ns_by_call: dict[str, float] = field(default_factory=lambda: defaultdict(float))


def synchronisation_rows(trace: Trace) -> list[record.SynchronisationRow]:
    """The rows of the table of synchronisations, calls that wait for the device: how many a step
    makes, and how long they block it. A row has those of one name and line; the one that blocks
    longest comes first.

    A copy and the wait for it are one, which has the name of the call that waits longer.
    """
    # By the operation, the calls, whether it uploads from pageable memory, and the line.
    sums: dict[tuple[str, str, str, bool, CallSite], _WaitSums] = defaultdict(_WaitSums)
    for step in trace.steps:
        for call in step.synchronisations:
            operation = call.operation.name if call.operation is not None else ""
            # An upload from pageable memory is told apart: pinned memory would avoid its wait. Work
            # and the call that issued it have the same ``correlation``, a number.
            issued = step.by_correlation.get(call.correlation, ())
            is_pageable = any(work.uploads_pageable for work in issued)
            row_sums = sums[operation, call.copy, call.name, is_pageable, call.site]
            row_sums.calls += 1
            row_sums.blocked_ns += own_wait_ns(step, call)
            if call.copy:
                row_sums.ns_by_call[call.copy] += call.copy_blocked
            row_sums.ns_by_call[call.name] += call.blocked - call.copy_blocked

    # Sums over all steps, divided by the steps.
    steps = len(trace.steps)
    rows = []
    for (operation, _, _, is_pageable, site), row_sums in sums.items():
        name = max(row_sums.ns_by_call, key=row_sums.ns_by_call.__getitem__)
        if operation:
            name = f"{operation}, {name}"
        what = because("from-pageable-memory", what=name) if is_pageable else name
        count = row_sums.calls / steps
        blocked_ns = row_sums.blocked_ns / steps
        rows.append(
            record.SynchronisationRow(what=what, count=count, blocked_ns=blocked_ns, site=site)
        )
    return sorted(rows, key=lambda row: -row.blocked_ns)[: record.MOST_ROWS]


def gap_rows(trace: Trace) -> list[record.DeviceGap]:
    """The longest gaps, times in which the device has no work, in one step: the one of median
    length. With each gap: which work ends it, and in which operation the host was in the middle of
    it. Before the first work and after the last one there is no gap.
    """
    if not trace.steps:
        return []
    by_length = sorted(trace.steps, key=lambda step: step.end - step.start)
    step = by_length[len(by_length) // 2]

    starts = [operation.start for operation in step.operations]
    gaps = []
    idle_from = math.inf  # until the first work is seen
    for work in step.device:
        # Nothing ran on any stream from ``idle_from`` to the start of this work.
        if work.start > idle_from:
            middle = (idle_from + work.start) / 2
            index = bisect.bisect_right(starts, middle) - 1  # the last operation that began by then
            name, site = BETWEEN, NO_SITE
            if index >= 0 and step.operations[index].end >= middle:
                name, site = _key(step.operations[index])
            gap_ns = work.start - idle_from
            before = work.name[:_LONGEST_NAME]
            gaps.append(record.DeviceGap(ns=gap_ns, before=before, host=name, site=site))
        # Work on another stream may end later.
        idle_from = work.end if idle_from == math.inf else max(idle_from, work.end)
    return sorted(gaps, key=lambda gap: -gap.ns)[:_MOST_GAPS]
