"""A step replayed as a queue: does what the profile shows account for the time that was measured without it? Pure.

The host issues work in order. Work starts at ``max(end of the one before on its stream, issued + latency)``. The queue
has a bounded depth. A synchronisation blocks the host until the device has finished; blocking is no host work.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from overhead.explain.trace import QUEUE_DEPTH, HostCall, HostOperation, StepTrace, Trace, busy

_ROUNDS = 4
"""Each of the two lengths, whose difference gives a step, repeats the profiled steps this often more."""


@dataclass(frozen=True)
class QueueAction:
    """Host work of ``work_ns``, then device work for streams, then a wait until the streams ``waits_for`` are done.

    ``latency_ns``: from the call that issues the work to its start on an idle device.
    """

    work_ns: float
    jobs: Sequence[tuple[str, float]] = ()
    latency_ns: float = 0.0
    waits_for: Sequence[str] = ()


@dataclass(frozen=True)
class ProfilerCost:
    """What the profiler adds to the host's time, ns: for each operation, those inside others too; for each step of a
    backward pass, which is an operation, in addition; for each runtime call.

    ``entry_ns``: from the end of an operation to the start of the next one in a loop without other work: what PyTorch
    takes from Python to an operation.
    """

    operation_ns: float = 0.0
    backward_ns: float = 0.0
    call_ns: float = 0.0
    entry_ns: float = 0.0

    def of(self, operation: HostOperation) -> float:
        """What it adds to an outermost operation, without runtime calls, ns."""
        return self.operation_ns * (1 + operation.inner) + self.backward_ns * operation.backward


_NO_COST = ProfilerCost()


@dataclass(frozen=True)
class ProfilerEvents:
    """One call of a program as the profiler shows it, and what the profiler adds to its time, ns."""

    profile: StepTrace
    added_ns: float

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many operations, operations of a backward pass, and runtime calls."""
        operations = self.profile.operations
        return (
            sum(1 + each.inner for each in operations),
            sum(each.backward for each in operations),
            len(self.profile.calls),
        )


def profiler_cost(programs: Sequence[ProfilerEvents], repeated: StepTrace) -> ProfilerCost:
    """The cost for each kind of event that fits what the profiler adds to these programs (least squares of the ratios).

    ``repeated``: the same operation several times in a loop without other work.
    """
    added = [(program.numbers, program.added_ns) for program in programs if program.added_ns > 0]
    if not added:
        return ProfilerCost()
    shares = np.array([[number / ns for number in numbers] for numbers, ns in added])
    operation, backward, call = (float(ns) for ns in nnls(shares, np.ones(len(added)))[0])
    gaps = [after.start - before.end for before, after in itertools.pairwise(repeated.operations)]
    return ProfilerCost(operation, backward, call, statistics.median(gaps) if gaps else 0.0)


@dataclass(frozen=True)
class QueueModel:
    """The steps as actions. ``wake_ns``: from the end of the work to the return of a call that waits for it."""

    steps: Sequence[Sequence[QueueAction]]
    wake_ns: float = 0.0
    depth: int = QUEUE_DEPTH

    def without_waits(self) -> QueueModel:
        """The same steps without synchronisations: a bound, since the program may need their values."""
        steps = [[dataclasses.replace(action, waits_for=()) for action in step] for step in self.steps]
        return dataclasses.replace(self, steps=steps)


@dataclass(frozen=True)
class StepParts:
    """One replayed step, ns. ``host``: host work. ``device``: how long the device works. ``without_waits``: the step
    without its synchronisations.
    """

    step: float
    host: float
    device: float
    without_waits: float

    @property
    def lost(self) -> float:
        """The share of the step that synchronisations cost, from 0 to 1."""
        return max(0.0, 1 - self.without_waits / self.step) if self.step > 0 else 0.0


@dataclass(frozen=True)
class Replayed:
    """Times of one step, ns: ``step_ns`` until its work is done, ``host_ns`` of host work, ``blocked_ns`` of waiting
    for the device, ``queue_full_ns`` of waiting for room in the queue.
    """

    step_ns: float
    host_ns: float
    blocked_ns: float
    queue_full_ns: float


class _Queue:
    """The state of host and device while actions are replayed."""

    def __init__(self, model: QueueModel) -> None:
        self.wake_ns, self.depth = model.wake_ns, model.depth
        self.now = self.blocked = self.full = 0.0
        self.ends: dict[str, float] = {}
        self.pending: list[float] = []
        """The ends of the work in the queue, as a heap."""

    def run(self, action: QueueAction) -> None:
        self.now += action.work_ns
        for stream, duration in action.jobs:
            self._make_room()
            start = max(self.ends.get(stream, 0.0), self.now + action.latency_ns)
            self.ends[stream] = start + duration
            heapq.heappush(self.pending, start + duration)
        done = max((self.ends.get(stream, 0.0) for stream in action.waits_for), default=0.0)
        if done > self.now:
            self.blocked += done + self.wake_ns - self.now
            self.now = done + self.wake_ns

    def _make_room(self) -> None:
        while self.pending and self.pending[0] <= self.now:
            heapq.heappop(self.pending)
        if len(self.pending) >= self.depth:
            end = heapq.heappop(self.pending)
            self.full += end - self.now
            self.now = end

    def finished(self) -> float:
        return max(self.ends.values(), default=0.0)


def replay(model: QueueModel) -> Replayed:
    """Replay the steps. Times are slopes over the number of steps, as in the measurement."""
    if not model.steps:
        return Replayed(0.0, 0.0, 0.0, 0.0)
    queue = _Queue(model)
    ends = []
    for _ in range(2):
        for _ in range(_ROUNDS):
            for step in model.steps:
                for action in step:
                    queue.run(action)
        ends.append((max(queue.now, queue.finished()), queue.blocked, queue.full))
    steps = _ROUNDS * len(model.steps)
    whole, blocked, full = ((b - a) / steps for a, b in zip(*ends, strict=True))
    host = sum(action.work_ns for step in model.steps for action in step) / len(model.steps)
    return Replayed(whole, host, blocked, full)


def queue_model(trace: Trace, cost: ProfilerCost = _NO_COST, depth: int = QUEUE_DEPTH) -> QueueModel:
    """The queue model of a trace, with the cost of the profiler taken out of the host's work."""
    latencies = {name: max(0.0, ns - cost.call_ns) for name, ns in launch_latencies(trace).items()}
    steps = [list(_actions(step, cost, latencies)) for step in trace.steps]
    return QueueModel(steps, wake_time(trace), depth)


def step_parts(trace: Trace, cost: ProfilerCost = _NO_COST) -> StepParts:
    """The parts of a typical step: every profiled step is replayed alone, and the medians are taken."""
    whole = queue_model(trace, cost)
    found: list[StepParts] = []
    for step, actions in zip(trace.steps, whole.steps, strict=True):
        model = dataclasses.replace(whole, steps=[actions])
        replayed, free = replay(model), replay(model.without_waits())
        found.append(StepParts(replayed.step_ns, replayed.host_ns, busy(step.device), free.step_ns))
    return StepParts(*(statistics.median(getattr(one, name) for one in found)
                       for name in ("step", "host", "device", "without_waits")))  # fmt: skip


def wake_time(trace: Trace) -> float:
    """From the end of the device's work to the return of a call that waited for it; the median, ns."""
    blocked = [call for step in trace.steps for call in step.calls if call.blocked > 0]
    return statistics.median([call.end - call.start - call.blocked for call in blocked]) if blocked else 0.0


def launch_latencies(trace: Trace) -> dict[str, float]:
    """By the name of the call: from its start to the start of its work where the device was idle; the medians, ns."""
    idle: dict[str, list[float]] = {}
    end = float("-inf")
    for step in trace.steps:
        for call in step.calls:
            work = step.by_correlation.get(call.correlation, []) if call.correlation else []
            if work and end <= call.start:
                idle.setdefault(call.name, []).append(max(0.0, work[0].start - call.start))
            end = max([end, *(each.end for each in work)])
    # A copy after a launch never finds the device idle. Then the latency of the other calls stands for its own.
    every = [ns for some in idle.values() for ns in some]
    usual = {"": statistics.median(every)} if every else {}
    return usual | {name: statistics.median(some) for name, some in idle.items()}


def _actions(step: StepTrace, cost: ProfilerCost, latencies: Mapping[str, float]) -> Iterator[QueueAction]:
    profiler = _ProfilerTime(step, cost)
    last, waited = step.start, 0.0
    for call in step.calls:
        jobs = _jobs(step, call)
        if not jobs and not call.waits_for:
            continue
        # A launch is host work after its own action: the device may start before the launch returns.
        latency = latencies.get(call.name, latencies.get("", 0.0))
        if jobs:  # no call has a longer latency than what passed until its own work began
            began = min(work.start for work in step.by_correlation[call.correlation])
            latency = max(0.0, min(latency, began - call.start - cost.call_ns))
        yield QueueAction(profiler.take(call.start - last - waited, last, call.start), jobs, latency, call.waits_for)
        last = call.start
        waited = call.no_work
    yield QueueAction(profiler.take(step.end - last - waited, last, step.end))


def _jobs(step: StepTrace, call: HostCall) -> list[tuple[str, float]]:
    """The work of a call as one job for each of its streams; a graph's nodes keep the pauses between them."""
    spans: dict[str, tuple[float, float]] = {}
    for work in step.by_correlation.get(call.correlation, ()) if call.correlation else ():
        start, end = spans.get(work.stream, (work.start, work.end))
        spans[work.stream] = (min(start, work.start), max(end, work.end))
    return [(stream, end - start) for stream, (start, end) in spans.items()]


class _ProfilerTime:
    """Takes the time of the profiler out of the host's work. What an interval is too short for is taken later."""

    def __init__(self, step: StepTrace, cost: ProfilerCost) -> None:
        self._cost, self._debt = cost, 0.0
        self._operations = [(operation.start, cost.of(operation)) for operation in step.operations]
        self._calls = [call.start for call in step.calls if not call.blocked]

    def take(self, elapsed: float, start: float, end: float) -> float:
        """The host's own work in the interval from ``start`` to ``end``, of which ``elapsed`` was not blocked."""
        first, last = (bisect.bisect_left(self._operations, (at, 0)) for at in (start, end))
        operations = sum(ns for _, ns in self._operations[first:last])
        calls = bisect.bisect_left(self._calls, end) - bisect.bisect_left(self._calls, start)
        self._debt += operations + calls * self._cost.call_ns
        own = max(0.0, elapsed - self._debt)
        self._debt -= max(0.0, elapsed) - own
        return own
