"""A step replayed as a queue: does what the profile shows account for the time that was measured
without it? Pure.

The host issues work in order. Work starts at ``max(end of the one before on its stream, issued +
latency)``. The queue has a bounded depth. A synchronisation blocks the host until the device has
finished; blocking is no host work.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from overhead.explaining.host_work import HostTimes, HostWork
from overhead.reading.plain_text import plain
from overhead.results import Why, because
from overhead.traces.chrome_trace import QUEUE_DEPTH
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busiest_ns

_WAITS_FOR_EVENT = re.compile(r"StreamWaitEvent|StreamWaitValue")
_LONG_TIMES, _LONG_NS = 10, 100_000.0
"""The longest latency is named if it is so many times the median, and so many ns, or more: a kernel
loads so long.
"""
_ROUNDS = 4
"""Each of the two lengths, whose difference gives a step, repeats the profiled steps this often
more.
"""


@dataclass(frozen=True)
class QueueAction:
    """Host work, then ``jobs`` (stream and ns of device work), then a wait for the streams in
    ``waits_for``.

    ``latency_ns``: from the call that issues the work to its start on an idle device. ``call``,
    ``kernel``: names.
    """

    work_ns: float
    jobs: Sequence[tuple[str, float]] = ()
    latency_ns: float = 0.0
    waits_for: Sequence[str] = ()
    call: Why = ""
    kernel: str = ""


@dataclass(frozen=True)
class QueueModel:
    """The steps as actions. ``wake_ns``: from the end of the work to the return of a call that
    waits for it.
    """

    steps: Sequence[Sequence[QueueAction]]
    wake_ns: float = 0.0


@dataclass(frozen=True)
class StepParts:
    """One replayed step, ns. ``host``: host work. ``device``: how long the device works.
    ``without_waits``: the step without its synchronisations.
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
    """What a replayed step does from ``start`` to ``end``, ns. ``track``: ``host``, ``wait``, or
    ``stream`` and a name.

    ``name``: of the call or kernel, or a code where there is none. ``issued``: when its call was
    made, or None.
    """

    track: str
    name: Why
    start: float
    end: float
    issued: float | None = None


class _Queue:
    """The state of host and device while actions are replayed. ``spans``: what they did, unless
    None.
    """

    def __init__(self, model: QueueModel) -> None:
        self.wake_ns, self.now = model.wake_ns, 0.0
        self.spans: list[ReplayedSpan] | None = None
        self.ends: dict[str, float] = {}
        self.pending: list[float] = []  # the ends of the work in the queue, as a heap

    def run(self, actions: Iterable[QueueAction]) -> float:
        """Replay these actions. Returns when all work is done, ns."""
        for action in actions:
            self._run(action)
        return max([self.now, *self.ends.values()])

    def _run(self, action: QueueAction) -> None:
        self._note("host", action.call, self.now, self.now + action.work_ns)
        self.now += action.work_ns
        for stream, duration in action.jobs:
            while self.pending and self.pending[0] <= self.now:
                heapq.heappop(self.pending)
            if len(self.pending) >= QUEUE_DEPTH:
                full, self.now = self.now, heapq.heappop(self.pending)
                self._note("wait", because("queue-is-full"), full, self.now)
            start = max(self.ends.get(stream, 0.0), self.now + action.latency_ns)
            self.ends[stream] = start + duration
            self._note(f"stream {stream}", action.kernel, start, start + duration, self.now)
            heapq.heappush(self.pending, start + duration)
        done = max((self.ends.get(stream, 0.0) for stream in action.waits_for), default=0.0)
        if done > self.now:
            self._note("wait", action.call, self.now, done + self.wake_ns)
            self.now = done + self.wake_ns

    def _note(
        self, track: str, name: Why, start: float, end: float, issued: float | None = None
    ) -> None:
        if self.spans is not None:
            self.spans.append(ReplayedSpan(track, name, start, end, issued))


def replayed_step_ns(model: QueueModel, rounds: int = _ROUNDS) -> float:
    """The time of one replayed step until its work is done, ns: the slope over the number of
    steps.
    """
    queue = _Queue(model)
    actions = [action for step in model.steps for action in step] * rounds
    first, last = queue.run(actions), queue.run(actions)
    return (last - first) / max(1, rounds * len(model.steps))


def replayed_spans(trace: Trace, host: HostTimes) -> list[ReplayedSpan]:
    """What a replayed step does, from 0 on; the same step runs before it."""
    model = queue_model(trace, host)
    queue, step = _Queue(model), model.steps[len(model.steps) // 2]
    queue.run([*step] * _ROUNDS)
    begin = queue.now
    queue.spans = []
    queue.run(step)
    found = []
    for span in queue.spans:
        issued = span.issued - begin if span.issued is not None else None
        found.append(
            dataclasses.replace(span, start=span.start - begin, end=span.end - begin, issued=issued)
        )
    return found


def queue_model(trace: Trace, host: HostTimes) -> QueueModel:
    """The profiled steps as host work, device work and waits, to be replayed; the host's work comes
    from ``host``.
    """
    call_ns = host.call_ns(trace)
    latencies = {name: max(0.0, ns - call_ns) for name, ns in launch_latencies_ns(trace).items()}
    steps = [
        list(_actions(step, host.work_of(step, call_ns), call_ns, latencies))
        for step in trace.steps
    ]
    waits = [call for step in trace.steps for call in step.calls if call.blocked > 0]
    return QueueModel(
        steps, statistics.median(c.end - c.start - c.blocked for c in waits) if waits else 0.0
    )


def step_parts(trace: Trace, host: HostTimes) -> StepParts:
    """The parts of a typical step: the medians over the profiled steps, each of which is replayed
    alone.
    """
    return _typical(_each_step(trace, host, _ROUNDS), statistics.median)


def mean_parts(trace: Trace, host: HostTimes, first: int = 0) -> StepParts:
    """The parts of the mean step, from the step with this index on: each step counts by the time
    that it takes.
    """
    # Latencies are known from the first launch on, when the device is idle.
    return _typical(_each_step(trace, host, 1)[first:], statistics.fmean)


def _typical(parts: Sequence[StepParts], typical: Callable[[Sequence[float]], float]) -> StepParts:
    return StepParts(*map(typical, zip(*map(dataclasses.astuple, parts), strict=True)))


def _each_step(trace: Trace, host: HostTimes, rounds: int) -> list[StepParts]:
    """The parts of each step, which is replayed alone, so often."""
    whole = queue_model(trace, host)
    found: list[StepParts] = []
    for step, actions in zip(trace.steps, whole.steps, strict=True):
        model = dataclasses.replace(whole, steps=[actions])
        step_ns, unwaited_ns = (
            replayed_step_ns(each, rounds) for each in (model, _without_waits(model))
        )
        found.append(StepParts(step_ns, _host_ns(actions), busiest_ns(step.device), unwaited_ns))
    return found


def _host_ns(actions: Iterable[QueueAction]) -> float:
    return sum(action.work_ns for action in actions)


def _without_waits(model: QueueModel) -> QueueModel:
    """The steps without their synchronisations. It is a bound, since the program may need their
    values.
    """
    steps = [
        [dataclasses.replace(action, waits_for=()) for action in actions] for actions in model.steps
    ]
    return dataclasses.replace(model, steps=steps)


def launch_latencies_ns(trace: Trace) -> dict[str, float]:
    """By the name of the call: the median time from its start to that of its work on an idle
    device, ns; '' for all.
    """
    idle: dict[str, list[float]] = {}
    end = float("-inf")
    for step in trace.steps:
        for call in step.calls:
            work = step.by_correlation.get(call.correlation, []) if call.correlation else []
            if work and end <= call.start:
                idle.setdefault(call.name, []).append(max(0.0, work[0].start - call.start))
            end = max([end, *(each.end for each in work)])
    # A copy after a launch never finds the device idle. Then the latency of the other calls stands
    # for its own.
    every = [ns for some in idle.values() for ns in some]
    usual = {"": statistics.median(every)} if every else {}
    return usual | {name: statistics.median(some) for name, some in idle.items()}


def _actions(
    step: StepTrace, host: HostWork, call_ns: float, latencies: Mapping[str, float]
) -> Iterator[QueueAction]:
    last = step.start
    for call in step.calls:
        issued = step.by_correlation.get(call.correlation, []) if call.correlation else []
        if not issued and not call.waits_for:
            continue
        # A launch is host work after its own action: the device may start before the launch
        # returns.
        latency = latencies.get(call.name, latencies.get("", 0.0))
        if issued:  # no call has a longer latency than what passed until its own work began
            latency = max(0.0, min(latency, issued[0].start - call.start - call_ns))
        name, kernel = (
            call.operation.name if call.operation else call.name,
            issued[0].name if issued else "",
        )
        yield QueueAction(
            host(last, call.start), _jobs(issued), latency, call.waits_for, name, kernel
        )
        last = call.start
    yield QueueAction(host(last, step.end), call=because("end-of-step"))


def _jobs(issued: Iterable[DeviceWork]) -> list[tuple[str, float]]:
    """The work of a call as one job for each of its streams; a graph's nodes keep the pauses
    between them.
    """
    spans: dict[str, tuple[float, float]] = {}
    for work in issued:
        start, end = spans.get(work.stream, (work.start, work.end))
        spans[work.stream] = (min(start, work.start), max(end, work.end))
    return [(stream, end - start) for stream, (start, end) in spans.items()]


@dataclass(frozen=True)
class LaunchDelay:
    """From a call to the start of the first work that it issues, as recorded, ns. ``kernel``: the
    name of that work.

    ``own``: the part while its stream still works; ``others``: while another stream works for which
    it waits. ``first``: whether it is the first work of that name.
    """

    delay: float
    own: float
    others: float
    kernel: str
    first: bool

    @property
    def latency(self) -> float:
        """The part for which no recorded work is the cause."""
        return self.delay - self.own - self.others


def launch_delays(trace: Trace) -> list[LaunchDelay]:
    """How long the device's work waits after each call that issues some, in order."""
    free: dict[str, float] = {}
    last_call: dict[str, float] = {}
    waited_at = -math.inf  # when a stream was last told to wait for an event
    seen = set[str]()
    found: list[LaunchDelay] = []
    for step in trace.steps:
        for call in step.calls:
            if _WAITS_FOR_EVENT.search(call.name):
                waited_at = call.start
            issued = step.by_correlation.get(call.correlation, ()) if call.correlation else ()
            if not issued:
                continue
            work = min(issued, key=_start)  # the other nodes of a graph wait for this one
            delay = max(0.0, work.start - call.start)
            own = min(delay, max(0.0, free.get(work.stream, 0.0) - call.start))
            others = 0.0
            if waited_at >= last_call.get(work.stream, -math.inf):
                # The stream waits for another one, which is free when the last work there before
                # this has ended.
                ends = [
                    end
                    for stream, end in free.items()
                    if stream != work.stream and end <= work.start
                ]
                others = max(0.0, min(delay, max(ends, default=0.0) - call.start) - own)
            found.append(LaunchDelay(delay, own, others, work.name, work.name not in seen))
            seen.add(work.name)
            for each in issued:
                free[each.stream] = max(free.get(each.stream, 0.0), each.end)
                last_call[each.stream] = call.start
    return found


def _start(work: DeviceWork) -> float:
    return work.start


def delays_reason(delays: Sequence[LaunchDelay]) -> Why:
    """How long the device's work waits after its launch; '' without launches."""
    if not delays:
        return ""
    usual = statistics.median(each.latency for each in delays)
    values = {
        "delay_ns": statistics.fmean(each.delay for each in delays),
        "own_ns": statistics.fmean(each.own for each in delays),
        "latency_ns": usual,
        "longest": _longest_latency(delays, usual),
    }
    if any(each.others for each in delays):
        others_ns = statistics.fmean(each.others for each in delays)
        return because("launch-delays-of-streams", others_ns=others_ns, **values)
    return because("launch-delays", **values)


def _longest_latency(delays: Sequence[LaunchDelay], usual: float) -> Why:
    """The longest latency, if it is far from the usual one, and whose it is; else ''."""
    longest = max(delays, key=_latency)
    if longest.latency < max(_LONG_TIMES * usual, _LONG_NS):
        return ""
    if longest is delays[0]:
        # Work that was issued before the recording is not in it.
        return because("longest-latency-is-the-first", latency_ns=longest.latency)
    kernel = plain(longest.kernel, 60)
    if longest.first:
        return because("longest-latency-loads-a-kernel", latency_ns=longest.latency, kernel=kernel)
    return because("longest-latency", latency_ns=longest.latency, kernel=kernel)


def _latency(delay: LaunchDelay) -> float:
    return delay.latency


def recorded_and_replayed_ns(trace: Trace) -> tuple[float, float]:
    """The mean time of a step, ns: as recorded, without the time between steps, and in one replay
    of all steps.

    From the end of the first step to the end of the last one, so that work of the last step which
    runs after it, and the start on an idle device, are not spread over the steps. A single step
    counts whole.
    """
    ended: list[float] = []
    for step in trace.steps:
        last = max([step.end, *(work.end for work in step.device)])
        ended.append(max([last, *ended[-1:]]))
    between = sum(
        max(0.0, after.start - before.end) for before, after in itertools.pairwise(trace.steps)
    )
    model = queue_model(trace, HostTimes())
    queue = _Queue(model)
    replayed = [queue.run(actions) for actions in model.steps]
    if len(ended) == 1:
        return ended[0] - trace.steps[0].start, replayed[0]
    return (ended[-1] - ended[0] - between) / (len(ended) - 1), (replayed[-1] - replayed[0]) / (
        len(replayed) - 1
    )
