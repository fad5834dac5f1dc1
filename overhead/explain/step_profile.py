"""The rows of an explanation from a trace: counts, operations, synchronisations and the device's gaps. Pure."""

from __future__ import annotations

import bisect
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence

from overhead.explain.host_work import HostTimes
from overhead.explain.record import (
    MOST_ROWS,
    CallSite,
    DeviceGap,
    OperationRow,
    StepCounts,
    SynchronisationRow,
    missing,
)
from overhead.explain.trace import CallKind, HostCall, HostOperation, Trace
from overhead.results import Figure

BETWEEN = "between operations"
"""The row of host work outside of all operations: the program's own Python, and that of its libraries."""
_CALLS: dict[str, tuple[CallKind, ...]] = {
    "launches": ("launch",),
    "copies": ("copy", "set"),
    "driver_allocations": ("allocation",),
    "synchronisations": ("synchronisation",),
}
"""The kinds of calls that each count adds up."""
_NO_OPERATION = HostOperation(BETWEEN, 0, 0, "")
_MOST_GAPS = 10
_Key = tuple[str, CallSite]


def step_counts(trace: Trace) -> StepCounts:
    """The counts of a step; medians where steps differ, with the fewest and the most."""
    found = {"allocations": _count("allocations", [len(step.allocations) for step in trace.steps])}
    seen = trace.has_device or any(step.calls for step in trace.steps)
    for name, kinds in _CALLS.items():
        counts = [sum(map(step.count, kinds)) for step in trace.steps]
        found[name] = _count(name, counts) if seen else missing(name, "no work on a device was seen", "count")
    return StepCounts(**found)


def _count(name: str, counts: Sequence[int]) -> Figure:
    if not counts:
        return missing(name, "no step was profiled", "count")
    return Figure(name=name, unit="count", value=statistics.median(counts), low=min(counts), high=max(counts))


def operation_rows(trace: Trace, host: HostTimes) -> list[OperationRow]:
    """The outermost operations by name and line, the one with most host work first, and the host work between them.

    What PyTorch takes from Python to an operation belongs to the operation.
    """
    count: Counter[_Key] = Counter()
    host_ns: dict[_Key, float] = defaultdict(float)
    device_ns: dict[_Key, float] = defaultdict(float)
    between, call_ns = 0.0, host.call_ns(trace)
    for step in trace.steps:
        for call in step.calls:
            if call.operation is not None:
                work = step.by_correlation.get(call.correlation, ()) if call.correlation else ()
                device_ns[_key(call.operation)] += sum(each.end - each.start for each in work)
        work_of, last = host.of(step, call_ns), step.start
        for operation in step.operations:
            start = max(last, operation.start)  # operations of several threads may overlap
            end = max(start, operation.end)
            before = work_of(last, start)
            entry = min(before, host.cost.entry_ns)
            count[_key(operation)] += 1
            host_ns[_key(operation)] += entry + work_of(start, end)
            between += before - entry
            last = end
        between += work_of(last, step.end)
    steps = max(1, len(trace.steps))
    rows = [
        OperationRow(
            name=key[0],
            count=count[key] / steps,
            host_ns=host_ns[key] / steps,
            device_ns=device_ns[key] / steps,
            site=key[1],
        )
        for key in count
    ]
    if rows or between:
        rows.append(OperationRow(name=BETWEEN, count=1, host_ns=between / steps))
    return sorted(rows, key=lambda row: -row.host_ns)[:MOST_ROWS]


def _key(operation: HostOperation) -> _Key:
    return operation.name, operation.site


def synchronisation_rows(trace: Trace) -> list[SynchronisationRow]:
    """The synchronisations by kind and line, the one that blocks longest first."""
    count: Counter[_Key] = Counter()
    blocked: dict[_Key, float] = defaultdict(float)
    for step in trace.steps:
        for call in step.synchronisations:
            key = (_what(call), call.site)
            count[key] += 1
            blocked[key] += call.blocked
    steps = max(1, len(trace.steps))
    rows = [
        SynchronisationRow(what=key[0], count=count[key] / steps, blocked_ns=blocked[key] / steps, site=key[1])
        for key in count
    ]
    return sorted(rows, key=lambda row: -row.blocked_ns)[:MOST_ROWS]


def _what(call: HostCall) -> str:
    return f"{call.operation.name}, {call.name}" if call.operation is not None else call.name


def gap_rows(trace: Trace) -> list[DeviceGap]:
    """The longest times without device work, between the first and the last work of the step of median length."""
    if not trace.steps:
        return []
    step = sorted(trace.steps, key=lambda step: step.end - step.start)[len(trace.steps) // 2]
    starts = [operation.start for operation in step.operations]
    found, end = [], float("inf")
    for work in step.device:
        if work.start > end:
            middle = (end + work.start) / 2
            at = bisect.bisect_right(starts, middle) - 1
            running = step.operations[at] if at >= 0 and step.operations[at].end >= middle else _NO_OPERATION
            found.append(DeviceGap(ns=work.start - end, before=work.name[:4000], host=running.name, site=running.site))
        end = work.end if end == float("inf") else max(end, work.end)
    return sorted(found, key=lambda gap: -gap.ns)[:_MOST_GAPS]
