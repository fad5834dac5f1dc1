"""A step replayed as a queue: does what the profile shows account for the time that was measured without it? Pure.

The host issues work in order. Work starts at ``max(end of the one before on its stream, issued + latency)``. The queue
has a bounded depth. A synchronisation blocks the host until the device has finished; blocking is no host work.
"""

from __future__ import annotations

import bisect
import dataclasses
import statistics
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from overhead.explain.trace import QUEUE_DEPTH, HostCall, StepTrace, Trace, busy

_ROUNDS = 4
"""Each of the two lengths, whose difference gives a step, repeats the profiled steps this often more."""


@dataclass(frozen=True)
class Action:
    """Host work of ``work_ns``, then device work for streams, then, if ``waits``, a wait for all device work."""

    work_ns: float
    jobs: Sequence[tuple[str, float]] = ()
    waits: bool = False


@dataclass(frozen=True)
class ProfilerCost:
    """What the profiler adds to the host's time for each operation and for each runtime call, ns."""

    operation_ns: float = 0.0
    call_ns: float = 0.0


@dataclass(frozen=True)
class QueueModel:
    """The steps as actions. ``latency_ns``: from the call that issues work to its start on an idle device."""

    steps: Sequence[Sequence[Action]]
    latency_ns: float = 0.0
    depth: int = QUEUE_DEPTH

    def without_waits(self) -> QueueModel:
        """The same steps without synchronisations: a bound, since the program may need their values."""
        return self._changed(waits=False)

    def without_device(self) -> QueueModel:
        """The same steps on a device that takes no time."""
        return dataclasses.replace(self._changed(jobs=()), latency_ns=0.0)

    def _changed(self, **fields: object) -> QueueModel:
        steps = [[dataclasses.replace(action, **fields) for action in step] for step in self.steps]  # type: ignore[arg-type]
        return dataclasses.replace(self, steps=steps)


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

    def __init__(self, latency_ns: float, depth: int) -> None:
        self.latency_ns, self.depth = latency_ns, depth
        self.now = self.blocked = self.full = 0.0
        self.ends: dict[str, float] = {}
        self.pending: deque[float] = deque()
        """The ends of the work in the queue, in the order of issue."""

    def run(self, action: Action) -> None:
        self.now += action.work_ns
        for stream, duration in action.jobs:
            self._make_room()
            start = max(self.ends.get(stream, 0.0), self.now + self.latency_ns)
            self.ends[stream] = start + duration
            self.pending.append(start + duration)
        if action.waits and self.ends:
            self.blocked += max(0.0, self.finished() - self.now)
            self.now = max(self.now, self.finished())
            self.pending.clear()

    def _make_room(self) -> None:
        while self.pending and self.pending[0] <= self.now:
            self.pending.popleft()
        if len(self.pending) >= self.depth:
            end = self.pending.popleft()
            self.full += end - self.now
            self.now = end

    def finished(self) -> float:
        return max(self.ends.values(), default=0.0)


def replay(model: QueueModel) -> Replayed:
    """Replay the steps. Times are slopes over the number of steps, as in the measurement."""
    if not model.steps:
        return Replayed(0.0, 0.0, 0.0, 0.0)
    queue = _Queue(model.latency_ns, model.depth)
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


def device_ns(trace: Trace) -> float:
    """How long the device works on a step, on average."""
    return statistics.fmean(busy(step.device) for step in trace.steps) if trace.steps else 0.0


def queue_model(trace: Trace, cost: ProfilerCost = ProfilerCost(), depth: int = QUEUE_DEPTH) -> QueueModel:
    """The queue model of a trace, with the cost of the profiler taken out of the host's work."""
    return QueueModel([list(_actions(step, cost)) for step in trace.steps], launch_latency(trace), depth)


def launch_latency(trace: Trace) -> float:
    """From the start of a launch to the start of its work where the device had nothing to do; the median, ns.

    0 where the device always had work: then it makes no difference.
    """
    idle, end = [], float("-inf")
    for step in trace.steps:
        for call in step.calls:
            work = step.by_correlation.get(call.correlation, []) if call.correlation else []
            if work and end <= call.start:
                idle.append(max(0.0, work[0].start - call.start))
            end = max([end, *(each.end for each in work)])
    return statistics.median(idle) if idle else 0.0


def _actions(step: StepTrace, cost: ProfilerCost) -> Iterator[Action]:
    profiler = _ProfilerTime(step, cost)
    blocking = {id(call): call for call in _blocking(step)}
    last, blocked = step.start, 0.0
    for call in step.calls:
        jobs = _jobs(step, call)
        if not jobs and id(call) not in blocking:
            continue
        # The call itself is work after its action: work starts while the launch still runs.
        yield Action(profiler.take(call.start - last - blocked, last, call.start), jobs, id(call) in blocking)
        last, blocked = call.start, call.blocked + call.queue_full
    yield Action(profiler.take(step.end - last - blocked, last, step.end))


def _blocking(step: StepTrace) -> list[HostCall]:
    """The calls that wait; of a copy and the wait after it both."""
    return [call for call in step.calls if call.kind == "synchronisation" or call.blocked > 0]


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
        self._operations = [(operation.start, 1 + operation.inner) for operation in step.operations]
        self._calls = [call.start for call in step.calls]

    def take(self, elapsed: float, start: float, end: float) -> float:
        """The host's own work in the interval from ``start`` to ``end``, of which ``elapsed`` was not blocked."""
        first, last = (bisect.bisect_left(self._operations, (at, 0)) for at in (start, end))
        operations = sum(count for _, count in self._operations[first:last])
        calls = bisect.bisect_left(self._calls, end) - bisect.bisect_left(self._calls, start)
        self._debt += operations * self._cost.operation_ns + calls * self._cost.call_ns
        own = max(0.0, elapsed - self._debt)
        self._debt -= max(0.0, elapsed) - own
        return own
