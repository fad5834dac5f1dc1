"""A step replayed as a queue: does what the profile shows account for the time that was measured without it? Pure.

The host issues work in order. Work starts at ``max(end of the one before on its stream, issued + latency)``. The queue
has a bounded depth. A synchronisation blocks the host until the device has finished; blocking is no host work.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from overhead.explain.chrome_trace import QUEUE_DEPTH
from overhead.explain.host_work import HostTimes, HostWork
from overhead.explain.trace import HostCall, StepTrace, Trace, busy_ns

_ROUNDS = 4
"""Each of the two lengths, whose difference gives a step, repeats the profiled steps this often more."""


@dataclass(frozen=True)
class QueueAction:
    """Host work, then ``jobs`` (stream and ns of device work), then a wait for the streams in ``waits_for``.

    ``latency_ns``: from the call that issues the work to its start on an idle device. ``call``, ``kernel``: names.
    """

    work_ns: float
    jobs: Sequence[tuple[str, float]] = ()
    latency_ns: float = 0.0
    waits_for: Sequence[str] = ()
    call: str = ""
    kernel: str = ""


@dataclass(frozen=True)
class QueueModel:
    """The steps as actions. ``wake_ns``: from the end of the work to the return of a call that waits for it."""

    steps: Sequence[Sequence[QueueAction]]
    wake_ns: float = 0.0

    def without_waits(self) -> QueueModel:
        """A copy of the model without synchronisations: a bound, since the program may need their values."""
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
    def synchronisation_share(self) -> float:
        """The share of the step that synchronisations cost, from 0 to 1."""
        return max(0.0, 1 - self.without_waits / self.step) if self.step > 0 else 0.0


@dataclass(frozen=True)
class ReplayedSpan:
    """Something that a replayed step does, ns. ``track``: ``host``, ``wait``, or the stream of device work.

    Of device work: when it was ``issued``, and when the stream was ``free`` of earlier work.
    """

    track: str
    name: str
    start: float
    end: float
    issued: float = 0.0
    free: float = 0.0

    @property
    def queued(self) -> float:
        """How long it waits for earlier work of its stream."""
        return max(0.0, min(self.start, self.free) - self.issued)


HOST_TRACK, WAIT_TRACK = "host", "wait"


class _Queue:
    """The state of host and device while steps are replayed. ``spans``: what they did, unless None."""

    def __init__(self, model: QueueModel) -> None:
        self.wake_ns, self.now = model.wake_ns, 0.0
        self.spans: list[ReplayedSpan] | None = None
        self.ends: dict[str, float] = {}
        self.pending: list[float] = []  # the ends of the work in the queue, as a heap

    @property
    def ended(self) -> float:
        """When all work is done."""
        return max([self.now, *self.ends.values()])

    def run(self, step: Iterable[QueueAction]) -> None:
        for action in step:
            self._run(action)

    def _run(self, action: QueueAction) -> None:
        self._note(HOST_TRACK, action.call, self.now, self.now + action.work_ns)
        self.now += action.work_ns
        for stream, duration in action.jobs:
            while self.pending and self.pending[0] <= self.now:
                heapq.heappop(self.pending)
            if len(self.pending) >= QUEUE_DEPTH:
                full, self.now = self.now, heapq.heappop(self.pending)
                self._note(WAIT_TRACK, "the queue is full", full, self.now)
            free = self.ends.get(stream, 0.0)
            start = max(free, self.now + action.latency_ns)
            self._note(stream, action.kernel, start, start + duration, self.now, free)
            self.ends[stream] = start + duration
            heapq.heappush(self.pending, start + duration)
        done = max((self.ends.get(stream, 0.0) for stream in action.waits_for), default=0.0)
        if done > self.now:
            self._note(WAIT_TRACK, action.call, self.now, done + self.wake_ns)
            self.now = done + self.wake_ns

    def _note(self, track: str, name: str, start: float, end: float, *issued_and_free: float) -> None:
        if self.spans is not None:
            self.spans.append(ReplayedSpan(track, name, start, end, *issued_and_free))


def replayed_step_ns(model: QueueModel) -> float:
    """The time of one replayed step until its work is done, ns: the slope over the number of steps."""
    queue = _Queue(model)
    ends = []
    for _ in range(2):
        for step in [*model.steps] * _ROUNDS:
            queue.run(step)
        ends.append(queue.ended)
    return (ends[1] - ends[0]) / max(1, _ROUNDS * len(model.steps))


def replayed_spans(model: QueueModel, index: int) -> Sequence[ReplayedSpan]:
    """What the step of this index does when it is replayed after itself."""
    queue = _Queue(model)
    for _ in range(_ROUNDS):
        queue.run(model.steps[index])
    queue.spans = []
    queue.run(model.steps[index])
    return queue.spans


def queue_model(trace: Trace, host: HostTimes) -> QueueModel:
    """The profiled steps as host work, device work and waits, to be replayed; the host's work comes from ``host``."""
    call_ns = host.call_ns(trace)
    latencies = {name: max(0.0, ns - call_ns) for name, ns in launch_latencies_ns(trace).items()}
    steps = [list(_actions(step, host.work_of(step, call_ns), call_ns, latencies)) for step in trace.steps]
    return QueueModel(steps, wake_ns(trace))


def step_parts(trace: Trace, host: HostTimes) -> StepParts:
    """The parts of a typical step: the medians over the profiled steps, each of which is replayed alone."""
    whole = queue_model(trace, host)
    found: list[StepParts] = []
    for step, actions in zip(trace.steps, whole.steps, strict=True):
        model = dataclasses.replace(whole, steps=[actions])
        host_ns = sum(action.work_ns for action in actions)
        unwaited_ns = replayed_step_ns(model.without_waits())
        found.append(StepParts(replayed_step_ns(model), host_ns, busy_ns(step.device), unwaited_ns))
    return StepParts(*map(statistics.median, zip(*map(dataclasses.astuple, found), strict=True)))


def wake_ns(trace: Trace) -> float:
    """From the end of the device's work to the return of a call that waited for it; the median, ns."""
    blocked = [call for step in trace.steps for call in step.calls if call.blocked > 0]
    return statistics.median([call.end - call.start - call.blocked for call in blocked]) if blocked else 0.0


def launch_latencies_ns(trace: Trace) -> dict[str, float]:
    """By the name of the call: the median time from its start to that of its work on an idle device, ns; '' for all."""
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


def _actions(step: StepTrace, host: HostWork, call_ns: float, latencies: Mapping[str, float]) -> Iterator[QueueAction]:
    last = step.start
    for call in step.calls:
        jobs = _jobs(step, call)
        if not jobs and not call.waits_for:
            continue
        # A launch is host work after its own action: the device may start before the launch returns.
        latency = latencies.get(call.name, latencies.get("", 0.0))
        if jobs:  # no call has a longer latency than what passed until its own work began
            began = min(work.start for work in step.by_correlation[call.correlation])
            latency = max(0.0, min(latency, began - call.start - call_ns))
        kernel = step.by_correlation[call.correlation][0].name if jobs else ""
        name = call.operation.name if call.operation else call.name
        yield QueueAction(host(last, call.start), jobs, latency, call.waits_for, name, kernel)
        last = call.start
    yield QueueAction(host(last, step.end))


def _jobs(step: StepTrace, call: HostCall) -> list[tuple[str, float]]:
    """The work of a call as one job for each of its streams; a graph's nodes keep the pauses between them."""
    spans: dict[str, tuple[float, float]] = {}
    for work in step.by_correlation.get(call.correlation, ()) if call.correlation else ():
        start, end = spans.get(work.stream, (work.start, work.end))
        spans[work.stream] = (min(start, work.start), max(end, work.end))
    return [(stream, end - start) for stream, (start, end) in spans.items()]


def launch_delays_ns(trace: Trace) -> tuple[float, float]:
    """The mean time from a call to the start of its work as recorded, ns, and the part in which its stream works."""
    free: dict[str, float] = {}
    delays = []
    for step in trace.steps:
        for call in step.calls:
            for work in step.by_correlation.get(call.correlation, ()) if call.correlation else ():
                span = ReplayedSpan(work.stream, "", work.start, work.end, call.start, free.get(work.stream, 0.0))
                delays.append((max(0.0, span.start - span.issued), span.queued))
                free[work.stream] = max(span.free, span.end)
    delay, queued = zip(*delays, strict=True) if delays else ((0.0,), (0.0,))
    return statistics.fmean(delay), statistics.fmean(queued)


def recorded_and_replayed_ns(trace: Trace) -> tuple[float, float]:
    """The mean time of a step as recorded, without what lies between steps, and when all are replayed once, ns."""
    ended = max(max([step.end, *(work.end for work in step.device)]) for step in trace.steps)
    between = sum(max(0.0, after.start - before.end) for before, after in itertools.pairwise(trace.steps))
    model = queue_model(trace, HostTimes())
    queue = _Queue(model)
    queue.run(itertools.chain.from_iterable(model.steps))
    return (ended - trace.steps[0].start - between) / len(trace.steps), queue.ended / len(trace.steps)
