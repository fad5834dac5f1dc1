"""The host's own work in a profiled step: without the cost of the profiler, and without waiting for the device. Pure.

CUPTI, which profiles the device's work, slows the runtime calls of the host by an amount that differs from call to
call. So the host's times come from another profile of the same operations, without the device.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from msgspec import Struct

from overhead.explain.trace import StepTrace, Trace, quiet_mean, spans_of


@dataclass(frozen=True)
class ProfilerCost:
    """``operation_ns``: what the profiler adds to the host's time for each operation, nested ones included, ns.

    ``entry_ns``: from the end of an operation to the start of the next one in a loop without other work: the time that
    PyTorch needs to get from Python into an operation.
    """

    operation_ns: float = 0.0
    entry_ns: float = 0.0


class ReturnTimes(Struct, frozen=True):
    """Times without a profiler, ns: from the start of a call, when the device has no work, until it returns.

    ``step``: of the step. ``loop``: of a loop that runs one operation several times and nothing else.
    """

    step: Sequence[float] = ()
    loop: Sequence[float] = ()


_MOST_BLOCKED = 0.05
"""The share of a step that may be waiting if the profiler's cost is taken from the step."""


def profiler_cost(alone: Trace, loop: Trace, returns: ReturnTimes, blocked_ns: float = 0.0) -> ProfilerCost:
    """The cost of the profiler, from calls with it (``alone``: steps, ``loop``) and without it.

    ``blocked_ns``: how long a step waits for the device. What the profiler adds may pass within such waits. So if they
    are more than 5 % of the step, the cost is that of the loop.
    """
    waits = blocked_ns > _MOST_BLOCKED * quiet_mean(returns.step)
    gaps = [after.start - before.end for step in loop.steps for before, after in itertools.pairwise(step.operations)]
    return ProfilerCost(
        _added_ns(loop, returns.loop) if waits else _added_ns(alone, returns.step),
        statistics.median(gaps) if gaps else 0.0,
    )


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
    """The times of the host.

    ``alone``: steps profiled without the device, each of which began when the device had no work. Used only for steps
    that run the same operations in the same order. ``cost``: of the profiler in them.
    """

    alone: Trace = _NO_TRACE
    cost: ProfilerCost = _NO_COST

    def of(self, step: StepTrace, call_ns: float) -> HostWork:
        """The host's work in a step. ``call_ns``: what CUPTI adds to each runtime call."""
        parts = _Parts(step, call_ns)
        usual = self._usual.get(_names(step)) or (parts.own_ns, self._costs(step))
        work, debt = [], 0.0
        for index, (own, usual_ns, cost_ns) in enumerate(zip(parts.own_ns, *usual, strict=True)):
            # A profile without the device cannot tell a wait from work. A part that is longer there than with CUPTI
            # has waited too, for room in the queue.
            calls = parts.calls[index]
            waits = parts.waits[index] or (calls > 0 and usual_ns > own + calls * call_ns)
            found = min(usual_ns, own) if waits else usual_ns
            # If a part is shorter than the profiler's cost, the remaining cost is subtracted from the next parts.
            debt += cost_ns
            work.append(max(0.0, found - debt))
            debt -= found - work[-1]
        done = [0.0, *itertools.accumulate(work)]

        def between(start: float, end: float) -> float:
            first, last = np.interp((parts.own_until(start), parts.own_until(end)), parts.own, done)
            return float(last - first)

        return between

    def call_ns(self, trace: Trace) -> float:
        """What CUPTI adds to each runtime call, ns. For each step: the extra time compared with the host's profile,
        divided by the step's runtime calls; the median over the steps.

        Parts in which the host waits do not count. 0 if no other part has a call.
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

    def unknown(self, trace: Trace) -> int:
        """How many steps run other operations than the steps that were profiled without the device."""
        return sum(_names(step) not in self._usual for step in trace.steps)

    @cached_property
    def _usual(self) -> dict[tuple[str, ...], tuple[list[float], list[float]]]:
        """The usual time of each part with the profiler, and the profiler's cost in each, by the names of a step's
        operations in order.
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
        return [0.0, *(ns for each in step.operations for ns in (self.cost.operation_ns * (1 + each.inner), 0.0))]


def _names(step: StepTrace) -> tuple[str, ...]:
    return tuple(operation.name for operation in step.operations)


class _Parts:
    """A step cut into parts: the time before the first operation, the first operation, the time before the second one,
    and so on; the last part is the time after the last operation.

    Operations of several threads may overlap; then an operation counts from the end of those before it. ``calls``: the
    number of runtime calls in each part that do not wait. ``waits``: whether a part has a call that may wait for the
    device. ``own``: at each edge of the parts, the time that the host had worked since the start of the step.
    ``own_ns``: that of each part.
    """

    def __init__(self, step: StepTrace, call_ns: float) -> None:
        edges = [step.start, *(at for each in step.operations for at in (each.start, each.end)), step.end]
        edges = [min(at, step.end) for at in itertools.accumulate(edges, max)]
        waiting = [call for call in step.calls if call.no_work > 0]
        free = sorted((call.start, call.end - call.queue_full) for call in step.calls if not call.blocked)
        self._start = step.start
        self._lost = spans_of(
            [
                *((call.end - call.no_work, call.end) for call in waiting),
                *((max(start, end - call_ns), end) for start, end in free),
            ]
        )
        self._lost_until = [0.0, *itertools.accumulate(end - start for start, end in self._lost)]
        self.own = [self.own_until(at) for at in edges]
        self.own_ns = [after - before for before, after in itertools.pairwise(self.own)]
        self.calls = _numbers([start for start, _ in free], edges)
        self.waits = [
            number > 0 for number in _numbers([call.start for call in (*waiting, *step.synchronisations)], edges)
        ]

    def own_until(self, at: float) -> float:
        """The time from the start of the step to ``at`` in which the host worked, without the cost of calls."""
        begun = bisect.bisect_right(self._lost, at, key=lambda lost: lost[0])
        ahead = max(0.0, self._lost[begun - 1][1] - at) if begun else 0.0
        return at - self._start - self._lost_until[begun] + ahead


def _numbers(times: Iterable[float], edges: Sequence[float]) -> list[int]:
    """How many of these times lie in each part."""
    ordered = sorted(times)
    return [
        bisect.bisect_left(ordered, end) - bisect.bisect_left(ordered, start)
        for start, end in itertools.pairwise(edges)
    ]
