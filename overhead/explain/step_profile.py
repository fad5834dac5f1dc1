"""The rows of an explanation from a trace: counts, operations, synchronisations and the device's gaps. Pure."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

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
from overhead.explain.trace import HostCall, HostOperation, StepTrace, Trace, idle_times
from overhead.results import Figure

BETWEEN = "between operations"
"""The row of host work outside of all operations: the program's own Python, and that of its libraries."""
NO_DEVICE = "no work on a device was seen"
_MOST_GAPS = 10
_Key = tuple[str, CallSite]


def step_counts(trace: Trace, allocations_seen: bool = True) -> StepCounts:
    """The counts of a step; medians where steps differ, with the fewest and the most."""
    if not trace.has_device and not any(step.calls for step in trace.steps):
        none = {name: missing(name, NO_DEVICE, "count") for name in ("launches", "copies", "synchronisations")}
        none["driver_allocations"] = missing("driver_allocations", NO_DEVICE, "count")
    else:
        none = {}
    allocations = _count("allocations", trace, lambda step: len(step.allocations))
    return StepCounts(
        launches=none.get("launches") or _count("launches", trace, lambda step: step.count("launch")),
        copies=none.get("copies") or _count("copies", trace, lambda step: step.count("copy") + step.count("set")),
        allocations=allocations if allocations_seen else missing("allocations", "the profiler saw none", "count"),
        driver_allocations=none.get("driver_allocations")
        or _count("driver_allocations", trace, lambda step: step.count("allocation")),
        synchronisations=none.get("synchronisations")
        or _count("synchronisations", trace, lambda step: step.count("synchronisation")),
    )


def _count(name: str, trace: Trace, of: Callable[[StepTrace], int]) -> Figure:
    counts = [of(step) for step in trace.steps]
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
    between, call_ns = 0.0, host.call_ns(trace) or 0.0
    for step in trace.steps:
        for call in step.calls:
            if call.operation is not None:
                work = step.by_correlation.get(call.correlation, ()) if call.correlation else ()
                device_ns[_key(call.operation)] += sum(each.end - each.start for each in work)
        work_of, last = host.of(step, call_ns), step.start
        for operation in step.operations:
            start = max(last, operation.start)  # operations of several threads may overlap
            end = max(start, operation.end)
            before = work_of.between(last, start)
            entry = min(before, host.cost.entry_ns)
            count[_key(operation)] += 1
            host_ns[_key(operation)] += entry + work_of.between(start, end)
            between += before - entry
            last = end
        between += work_of.between(last, step.end)
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
    """The longest times without device work in the step of median length."""
    step = middle_step(trace.steps)
    if step is None:
        return []
    return [
        DeviceGap(
            ns=idle.end - idle.start,
            before=idle.before.name[:4000],
            host=idle.operation.name if idle.operation is not None else BETWEEN,
            site=idle.operation.site if idle.operation is not None else CallSite(),
        )
        for idle in idle_times(step)[:_MOST_GAPS]
    ]


def middle_step(steps: Sequence[StepTrace]) -> StepTrace | None:
    """The step whose window has the median length; None if there are no steps."""
    return sorted(steps, key=lambda step: step.end - step.start)[len(steps) // 2] if steps else None
