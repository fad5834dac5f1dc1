"""The host's own work in a profiled step: without the cost of the profiler, and without waiting for the device. Pure.

A profile of the device's work slows the runtime calls of the host by an amount that differs from call to call. So the
host's times come from a second profile of the same operations, without the device.
"""

from __future__ import annotations

import bisect
import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from overhead.explain.trace import HostOperation, StepTrace, Trace, spans_of


@dataclass(frozen=True)
class ProfilerCost:
    """What the profiler of the host adds to its time, ns: for each operation, those inside others too; for each step of
    a backward pass, which is an operation, in addition.

    ``entry_ns``: from the end of an operation to the start of the next one in a loop without other work: what PyTorch
    takes from Python to an operation.
    """

    operation_ns: float = 0.0
    backward_ns: float = 0.0
    entry_ns: float = 0.0

    def of(self, operation: HostOperation) -> float:
        """What it adds to an outermost operation, ns."""
        return self.operation_ns * (1 + operation.inner) + self.backward_ns * operation.backward


@dataclass(frozen=True)
class ProfilerEvents:
    """One call of a program as the profiler shows it, and what the profiler adds to its time, ns."""

    profile: StepTrace
    added_ns: float

    @property
    def numbers(self) -> tuple[int, int]:
        """How many operations, and operations of a backward pass."""
        operations = self.profile.operations
        return sum(1 + each.inner for each in operations), sum(each.backward for each in operations)


def profiler_cost(programs: Sequence[ProfilerEvents], repeated: StepTrace) -> ProfilerCost:
    """The cost for each kind of event that fits what the profiler adds to these programs (least squares of the ratios).

    ``repeated``: the same operation several times in a loop without other work.
    """
    added = [(program.numbers, program.added_ns) for program in programs if program.added_ns > 0]
    if not added:
        return ProfilerCost()
    shares = np.array([[number / ns for number in numbers] for numbers, ns in added])
    operation, backward = (float(ns) for ns in nnls(shares, np.ones(len(added)))[0])
    gaps = [after.start - before.end for before, after in itertools.pairwise(repeated.operations)]
    return ProfilerCost(operation, backward, statistics.median(gaps) if gaps else 0.0)


class HostWork:
    """The host's work in one step as a function of the profile's time."""

    def __init__(self, parts: _Parts, work_ns: Sequence[float]) -> None:
        self._parts = parts
        self._done = [0.0, *itertools.accumulate(work_ns)]

    def between(self, start: float, end: float) -> float:
        """The host's work from one time of the profile to another, ns."""
        first, last = np.interp([self._parts.own_until(start), self._parts.own_until(end)], self._parts.own, self._done)
        return float(last - first)


_NO_TRACE, _NO_COST = Trace(()), ProfilerCost()


@dataclass(frozen=True)
class HostTimes:
    """The times of the host.

    ``alone``: steps profiled without the device, each of which began when the device had no work. They count where
    their operations are those of the step in question. ``cost``: of the profiler in them.
    """

    alone: Trace = _NO_TRACE
    cost: ProfilerCost = _NO_COST

    def of(self, step: StepTrace, call_ns: float = 0.0) -> HostWork:
        """The host's work in a step. ``call_ns``: what the profile of the device adds to each runtime call."""
        parts = _Parts(step, call_ns)
        usual = self._usual.get(_names(step), parts.own_ns)
        work, debt = [], 0.0
        for index, own in enumerate(parts.own_ns):
            # A profile without the device cannot tell a wait from work.
            found = min(usual[index], own) if parts.waits[index] else usual[index]
            # A part that is shorter than the profiler's cost leaves a rest of the cost for the next ones.
            debt += self.cost.of(step.operations[index // 2]) if index % 2 else 0.0
            work.append(max(0.0, found - debt))
            debt -= found - work[-1]
        return HostWork(parts, work)

    def call_ns(self, trace: Trace) -> float:
        """What the profile of the device adds to each runtime call: the median over the steps, ns.

        It is known from the parts of the step in which the host does not wait, and 0 if these have no call.
        """
        found = []
        for step in trace.steps:
            parts = _Parts(step)
            usual = self._usual.get(_names(step), parts.own_ns)
            free = [index for index, waits in enumerate(parts.waits) if not waits]
            if calls := sum(parts.calls[index] for index in free):
                found.append(sum(parts.own_ns[index] - usual[index] for index in free) / calls)
        return max(0.0, statistics.median(found)) if found else 0.0

    def knows(self, trace: Trace) -> bool:
        """Whether the operations of these steps are those of steps that were profiled without the device."""
        return all(_names(step) in self._usual for step in trace.steps)

    @cached_property
    def _usual(self) -> dict[tuple[str, ...], list[float]]:
        """By the names of a step's operations: the usual time of each part of the step, ns."""
        kinds: dict[tuple[str, ...], list[StepTrace]] = {}
        for step in self.alone.steps:
            kinds.setdefault(_names(step), []).append(step)
        found = {}
        for names, steps in kinds.items():
            times = [_Parts(step).lengths for step in Trace(steps).quiet().steps]
            found[names] = [statistics.median(part) for part in zip(*times, strict=True)]
        return found


def _names(step: StepTrace) -> tuple[str, ...]:
    return tuple(operation.name for operation in step.operations)


class _Parts:
    """A step in parts, by turns a time between operations and an operation; the first and the last are between.

    Operations of several threads may overlap; then a part is cut short. ``lengths``, ``calls``, ``waits``: of each
    part, its time, its number of runtime calls that do not wait, and whether the host waits for the device in it.
    ``own``: at each edge, the time that the host had worked since the start of the step; ``own_ns``: that of each part.
    """

    def __init__(self, step: StepTrace, call_ns: float = 0.0) -> None:
        edges = [step.start, *(at for each in step.operations for at in (each.start, each.end)), step.end]
        edges = [min(at, step.end) for at in itertools.accumulate(edges, max)]
        waits = spans_of((call.end - call.no_work, call.end) for call in step.calls if call.no_work > 0)
        free = sorted((call.start, call.end) for call in step.calls if not call.blocked)
        self._start = step.start
        self._lost = spans_of([*waits, *((max(start, end - call_ns), end) for start, end in free)])
        self._lost_until = [0.0, *itertools.accumulate(end - start for start, end in self._lost)]
        self.own = [self.own_until(at) for at in edges]
        self.own_ns = _steps_of(self.own)
        self.lengths = _steps_of(edges)
        self.calls = _steps_of([bisect.bisect_left(free, (at,)) for at in edges])
        self.waits = [count > 0 for count in _steps_of([bisect.bisect_left(waits, (at,)) for at in edges])]

    def own_until(self, at: float) -> float:
        """The time from the start of the step to ``at`` in which the host worked, without the cost of calls."""
        begun = bisect.bisect_right(self._lost, at, key=lambda lost: lost[0])
        ahead = max(0.0, self._lost[begun - 1][1] - at) if begun else 0.0
        return at - self._start - self._lost_until[begun] + ahead


def _steps_of(values: Sequence[float]) -> list[float]:
    """The difference of each value from the one before."""
    return [after - before for before, after in itertools.pairwise(values)]
