"""A step replayed as a queue: does what the profile shows account for the time that was measured
without it? Pure.

The host issues work in order. Work starts at ``max(end of the one before on its stream, issued +
latency)``. The queue has a bounded depth. A synchronisation blocks the host until the device has
finished; blocking is no host work.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import heapq
import itertools
import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import Struct

from overhead.explaining.host_work import AS_RECORDED, HostTimes, HostWork
from overhead.explaining.launch_delays import launch_latencies_ns
from overhead.results import Why, because
from overhead.traces.collectives import is_copy
from overhead.traces.earlier_work import delay_by_earlier_work_ns, own_wait_ns
from overhead.traces.pending_work import QUEUE_DEPTH
from overhead.traces.spans import start_of
from overhead.traces.trace import DeviceWork, HostCall, StepTrace, Trace, busiest_ns

_ROUNDS = 4
"""Each of the two lengths, whose difference gives a step, repeats the profiled steps this often
more. Chosen, not measured; more of them take longer to replay.
"""
_REMEMBERED = 4
"""So many models and results are kept, since several rules ask for those of all steps and of the
quiet ones. A trace of a million events takes seconds.
"""


_CLOCK_NS = 100.0
"""Times of one device are so exact. Chosen, not measured."""
_STREAM_WAIT_NS = 20_000.0
"""Work begins within this time after the work of another stream that it waits for; without such a
wait, it begins within this time after its launch. Chosen, not measured.
"""


GraphRole = Literal["launch", "upload", "no"]
"""The place of a call's work in a graph that the program would make of its launches. A ``launch``
is saved by the graph. An ``upload`` may be in it. ``no``: the graph ends before this work.
"""
_ENDS_A_GRAPH = re.compile(r"DtoH|Device ?To ?Host|Pageable", re.I)
"""A read, whose value the program needs; and a copy of pageable memory, whose call works itself."""
_UPLOAD = re.compile(r"HtoD|Host ?To ?Device", re.I)


class QueueAction(Struct, frozen=True, gc=False):
    """One piece of a replayed step: host work, then ``jobs`` for the device, then a wait for the
    streams in ``waits_for``. A job is what a call gives to one stream, and how long the stream
    works on it, ns.

    ``latency_ns``: from the call that issues the work to its start on an idle device. ``call``,
    ``kernel``: names. ``issue_ns``: how long the call itself works on the host; that is part of the
    work of the next action, since the device may start before the call returns. ``in_graph``:
    what the work would be in a graph.
    """

    work_ns: float
    jobs: Sequence[tuple[str, float]] = ()
    latency_ns: float = 0.0
    waits_for: Sequence[str] = ()
    call: Why = ""
    kernel: str = ""
    after: Sequence[str] = ()
    issue_ns: float = 0.0
    in_graph: GraphRole = "launch"


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
        if self.step <= 0:
            return 0.0
        return max(0.0, 1 - self.without_waits / self.step)


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
    """Computes how long a step takes from its parts, by a model of host and device: the host works
    and hands work to the streams of the device, which run it in order. Actions are the parts; this
    is the state after those so far.

    ``now``: the time of the host, ns. ``stream_ends``: when each stream becomes free. ``spans``:
    what host and device did, for a timeline; None where nobody asks for it.
    """

    def __init__(self, model: QueueModel, *, waits: bool = True) -> None:
        """``waits``: whether the host waits in the actions that are synchronisations."""
        # Nobody has issued anything: all streams are free, and the queue is empty.
        self.wake_ns = model.wake_ns
        self.waits = waits
        self.now = 0.0
        self.spans: list[ReplayedSpan] | None = None
        self.stream_ends: dict[str, float] = {}
        self.queued_ends: list[float] = []  # the ends of the work in the queue, as a heap

    def run(self, actions: Iterable[QueueAction]) -> float:
        """Replay these actions after those before. Returns when all work is done, ns."""
        ends = self.queued_ends
        stream_ends = self.stream_ends
        for action in actions:
            # Millions of actions pass here, and most are a launch of one kernel.
            is_launch = len(action.jobs) == 1 and not action.after and not action.waits_for
            if self.spans is not None or not is_launch:
                self._run(action)
                continue
            self.now += action.work_ns
            while ends and ends[0] <= self.now:
                heapq.heappop(ends)
            if len(ends) >= QUEUE_DEPTH:
                self._wait_for_room()
            stream, duration_ns = action.jobs[0]
            start = self.now + action.latency_ns
            free = stream_ends.get(stream, 0.0)
            end = (start if start > free else free) + duration_ns
            stream_ends[stream] = end
            heapq.heappush(ends, end)
        return max([self.now, *stream_ends.values()])

    def _run(self, action: QueueAction) -> None:
        """Replay one action: the host works, hands its jobs to the device, and waits for streams if
        the action is a synchronisation.
        """
        # First the host's own work.
        # Spans are asked for only where a timeline is made: millions of actions pass here.
        host_end = self.now + action.work_ns
        if self.spans is not None:
            self._keep_span("host", action.call, self.now, host_end)
        self.now = host_end

        # Then its jobs are handed to their streams.
        for stream, duration_ns in action.jobs:
            ends = self.queued_ends
            if ends and (ends[0] <= self.now or len(ends) >= QUEUE_DEPTH):
                self._wait_for_room()
            # A job starts when its launch has arrived and the work before it has ended.
            start = max(self.stream_ends.get(stream, 0.0), self.now + action.latency_ns)
            # The device lets it wait for other streams, as ``cudaStreamWaitEvent`` asked for.
            for other in action.after:
                start = max(start, self.stream_ends.get(other, 0.0))
            end = start + duration_ns
            self.stream_ends[stream] = end
            if self.spans is not None:
                self._keep_span(f"stream {stream}", action.kernel, start, end, issued=self.now)
            heapq.heappush(ends, end)

        # Last the wait, if the action has one: until all streams in ``waits_for`` are done.
        if not action.waits_for or not self.waits:
            return
        stream_ends = [self.stream_ends.get(stream, 0.0) for stream in action.waits_for]
        done = max(stream_ends, default=0.0)
        if done > self.now:
            returned = done + self.wake_ns  # the host notices the end a little later
            self._keep_span("wait", action.call, self.now, returned)
            self.now = returned

    def _wait_for_room(self) -> None:
        """Take finished work out of the queue. If the queue is still full, the host waits for the
        work that ends first, as CUDA blocks a launch then.
        """
        while self.queued_ends and self.queued_ends[0] <= self.now:
            heapq.heappop(self.queued_ends)
        # ``QUEUE_DEPTH``: as many pieces of work as CUDA's queue was seen to hold.
        if len(self.queued_ends) < QUEUE_DEPTH:
            return
        has_room_at = heapq.heappop(self.queued_ends)
        self._keep_span("wait", because("queue-is-full"), self.now, has_room_at)
        self.now = has_room_at

    def _keep_span(
        self, track: str, name: Why, start: float, end: float, issued: float | None = None
    ) -> None:
        """Keep what host or device did from ``start`` to ``end``, for a timeline, if anybody asks
        for it. ``track``: the line of the timeline. ``issued``: when the host issued it.
        """
        if self.spans is not None:
            self.spans.append(ReplayedSpan(track, name, start, end, issued))


def replayed_step_ns(model: QueueModel, rounds: int = _ROUNDS, *, waits: bool = True) -> float:
    """How long one step takes, ns, when the profiled steps are replayed in a row by a model of host
    and device.

    They are replayed ``rounds`` times, and as often again. Only the second half counts, from the
    end of the first one: so the start on an idle device is not in the result. ``waits``: whether
    the host waits at synchronisations.
    """
    queue = _Queue(model, waits=waits)
    once = list(itertools.chain.from_iterable(model.steps))
    # A long sequence fills the queue at once, and need not be repeated for that.
    rounds = min(rounds, max(1, math.ceil(_ROUNDS * QUEUE_DEPTH / max(1, len(once)))))
    # All profiled steps in a row, ``rounds`` times.
    actions = once * rounds
    # ``run`` returns when all work so far is done, on one clock.
    first_half_end = queue.run(actions)
    second_half_end = queue.run(actions)
    steps = max(1, rounds * len(model.steps))
    return (second_half_end - first_half_end) / steps


def replayed_spans(trace: Trace, host: HostTimes) -> list[ReplayedSpan]:
    """What host and device do in one replayed step, for a timeline: the step in the middle of the
    trace. Times are from its start. The same step runs before it some times, so that it does not
    start on an idle device.
    """
    model = queue_model(trace, host)
    step = model.steps[len(model.steps) // 2]
    queue = _Queue(model)
    queue.run([*step] * _ROUNDS)
    begin = queue.now
    queue.spans = []  # from here on they are kept
    queue.run(step)

    # Times from the begin of the kept step.
    from_zero = []
    for span in queue.spans:
        issued = span.issued - begin if span.issued is not None else None
        start = span.start - begin
        end = span.end - begin
        from_zero.append(dataclasses.replace(span, start=start, end=end, issued=issued))
    return from_zero


@functools.lru_cache(maxsize=_REMEMBERED)
def queue_model(trace: Trace, host: HostTimes) -> QueueModel:
    """The profiled steps as actions to be replayed: host work, device work and waits, without the
    cost of the profiler. The device's work is that of the trace, the host's work comes from
    ``host``, since the profiler of the device slows the host.
    """
    call_ns = host.call_ns(trace)  # what the profiler adds to a call of the runtime
    latencies = {}
    for name, latency_ns in launch_latencies_ns(trace).items():
        # As recorded, a latency holds what the profiler adds to the call.
        latencies[name] = max(0.0, latency_ns - call_ns)
    # ``work_of`` gives a function: the host's work between two times of the step.
    waits = _waits_for_streams(trace)
    steps = [
        list(_actions(step, host.work_of(step, call_ns), call_ns, latencies, waits))
        for step in trace.steps
    ]
    # From the end of the device's work until a call that waits for it returns: what is left of the
    # call without ``blocked``, its time until that work is done.
    wakes_ns = []
    for step in trace.steps:
        blocking = [call for call in step.calls if call.blocked > 0]
        wakes_ns += [call.end - call.start - call.blocked for call in blocking]
    return QueueModel(steps, statistics.median(wakes_ns) if wakes_ns else 0.0)


@functools.lru_cache(maxsize=_REMEMBERED)
def step_parts(trace: Trace, host: HostTimes) -> StepParts:
    """The parts of a typical step: the medians over the profiled steps, or the means over recorded
    ones, each of which is replayed alone.
    """
    rounds = 1 if trace.is_recorded else _ROUNDS  # a recorded trace may have many steps
    return _typical(_each_step(trace, host, rounds), middle_of(trace))


def middle_of(trace: Trace) -> Callable[[Sequence[float]], float]:
    """The function that makes one time of the times of several steps. Recorded steps may do
    different work, and there are no others, so their mean is taken. The median of a profile of ours
    leaves out steps that the profiler disturbed.
    """
    return statistics.fmean if trace.is_recorded else statistics.median


def mean_parts(trace: Trace, host: HostTimes, first: int = 0) -> StepParts:
    """The parts of the mean step: each time is the mean over the steps from index ``first`` on, so
    that slow steps count too.
    """
    # Latencies are known from the first launch on, when the device is idle.
    return _typical(_each_step(trace, host, 1)[first:], statistics.fmean)


def _typical(parts: Sequence[StepParts], typical: Callable[[Sequence[float]], float]) -> StepParts:
    """The parts of a step that stands for all of these: each of its times is the median or the mean
    of that time. ``typical``: computes the one or the other.
    """
    return StepParts(
        step=typical([each.step for each in parts]),
        host=typical([each.host for each in parts]),
        device=typical([each.device for each in parts]),
        without_waits=typical([each.without_waits for each in parts]),
    )


def _each_step(trace: Trace, host: HostTimes, rounds: int) -> list[StepParts]:
    """For each profiled step: how long it takes when it alone is replayed, ``rounds`` times; how
    long host and device work in it; and how long it takes without its synchronisations.
    """
    whole = queue_model(trace, host)
    parts: list[StepParts] = []
    # Each step is replayed alone: its actions, again and again.
    for step, actions in zip(trace.steps, whole.steps, strict=True):
        model = dataclasses.replace(whole, steps=[actions])
        step_ns = replayed_step_ns(model, rounds)
        # The time of a step that does not wait is a bound: the program may need the values for
        # which it waits.
        without_ns = step_ns
        if any(action.waits_for for action in actions):
            without_ns = replayed_step_ns(model, rounds, waits=False)
            without_ns = max(without_ns, min(step_ns, _least_without_waits_ns(step, step_ns, host)))
        parts.append(
            StepParts(
                step=step_ns,
                host=sum(action.work_ns for action in actions),
                device=busiest_ns(step.device),
                without_waits=without_ns,
            )
        )
    return parts


def _least_without_waits_ns(step: StepTrace, step_ns: float, host: HostTimes) -> float:
    """The least that a step can take without its waits, ns. They cannot cost more than the time in
    which the device is idle: streams that did not work side by side may not be able to. As it was
    recorded, no wait costs more than it lasts; without the profiler it may last longer.
    """
    device_ns = busiest_ns(step.device)
    if host != AS_RECORDED:
        return device_ns
    waits_ns = 0.0
    for call in step.synchronisations:
        earlier_ns = call.blocked - own_wait_ns(step, call)
        waits_ns += call.end - call.start - earlier_ns
    return max(device_ns, step_ns - waits_ns)


def _actions(
    step: StepTrace,
    host: HostWork,
    call_ns: float,
    latencies: Mapping[str, float],
    waits: Mapping[int, str],
) -> Iterator[QueueAction]:
    """A profiled step as actions, which a model replays: one for each call that issues work or
    waits, with the host's work since the call before, and one for the rest of the host's work.

    ``host``: the host's work in it. ``call_ns``: what the profiler adds to a call.
    ``latencies``: from a call to the start of its work, by the name of the call, '' for a call
    whose own is not known. ``waits``: by the number of a call, the stream that its work waits for.
    """
    # With each call the device work that it started, the first piece first. Other calls, such as
    # queries, are only host work.
    found = [(call, step.issued_by(call)) for call in step.calls]
    found = [(call, issued) for call, issued in found if issued or call.waits_for]
    works_ns = host.between([step.start, *(call.start for call, _ in found), step.end])
    for (call, issued), work_ns in zip(found, works_ns[:-1], strict=True):
        # The call begins when the host has done the work before it. The call itself is host work of
        # the next action: the device may start before the call returns.
        latency_ns = latencies.get(call.name, latencies.get("", 0.0))
        if issued:  # no call has a longer latency than what passed until its own work began
            passed_ns = issued[0].start - call.start - call_ns
            latency_ns = max(0.0, min(latency_ns, passed_ns))
        awaited_stream = waits.get(call.correlation)
        # How long the call works on the host, without its waits and the profiler.
        issue_ns = call.end - call.start - call.no_work - call_ns
        yield QueueAction(
            work_ns,
            _jobs(issued),
            latency_ns,
            call.waits_for,
            call=call.operation.name if call.operation else call.name,
            kernel=issued[0].name if issued else "",
            after=() if awaited_stream is None else (awaited_stream,),
            issue_ns=max(0.0, issue_ns),
            in_graph=_role_in_graph(call, issued),
        )
    yield QueueAction(works_ns[-1], call=because("end-of-step"))


def _role_in_graph(call: HostCall, issued: Sequence[DeviceWork]) -> GraphRole:
    """The place of a call's work in a graph that the program would make of its launches."""
    if "GraphLaunch" in call.name:
        return "no"
    roles = {_role_of_work(work.name) for work in issued}
    if "no" in roles:
        return "no"
    return "upload" if roles == {"upload"} else "launch"


# Of a million pieces of work only some hundred have different names.
@functools.lru_cache(maxsize=100_000)
def _role_of_work(name: str) -> GraphRole:
    # A kernel may be called anything.
    if not is_copy(name):
        return "launch"
    if _ENDS_A_GRAPH.search(name):
        return "no"
    return "upload" if _UPLOAD.search(name) else "launch"


def _waits_for_streams(trace: Trace) -> dict[int, str]:
    """Which work waits for another stream: by the number of its call, the stream that it waits for.
    Traces do not tell these waits. Such work was issued earlier, its own stream was free, and it
    begins just when the work on the other stream ends.

    Traces do not tell these waits. Such work was issued earlier, its own stream was free, and it
    begins just when the work on the other stream ends.
    """
    called: dict[int, float] = {}
    pieces: list[DeviceWork] = []
    for step in trace.steps:
        called |= {call.correlation: call.end for call in step.calls if call.correlation}
        pieces += step.device
    pieces.sort(key=start_of)
    if len({work.stream for work in pieces}) < 2:
        return {}
    ended = sorted((work.end, work.stream) for work in pieces)
    ends = [end for end, _ in ended]
    own_ends: dict[str, float] = {}
    found: dict[int, str] = {}
    for work in pieces:
        own_end = own_ends.get(work.stream, -math.inf)
        own_ends[work.stream] = max(own_end, work.end)
        ready = max(called.get(work.correlation, math.inf), own_end)
        if work.start - ready <= _STREAM_WAIT_NS:
            continue
        # Of the work that has just ended, the last one on another stream.
        last = bisect.bisect_right(ends, work.start + _CLOCK_NS)
        while last > 0 and ends[last - 1] >= work.start - _STREAM_WAIT_NS:
            last -= 1
            stream = ended[last][1]
            if stream != work.stream:
                found[work.correlation] = stream
                break
    return found


def _jobs(issued: Sequence[DeviceWork]) -> Sequence[tuple[str, float]]:
    """The device work of a call as one job for each stream, from its first start to its last end. A
    CUDA graph has many pieces of work on one stream, and the pauses between them count as work: the
    host cannot shorten them.
    """
    # Most calls issue one piece.
    if len(issued) == 1:
        return [(issued[0].stream, issued[0].end - issued[0].start)]
    # By stream: the first start and the last end of this call's work.
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    for work in issued:
        starts[work.stream] = min(starts.get(work.stream, work.start), work.start)
        ends[work.stream] = max(ends.get(work.stream, work.end), work.end)
    return [(stream, ends[stream] - start) for stream, start in starts.items()]


class RecordedAndReplayed(NamedTuple):
    """The mean time of a step in two ways, ns: as it was recorded, and in one replay of all
    steps.
    """

    recorded_ns: float
    replayed_ns: float


def recorded_and_replayed_ns(trace: Trace) -> RecordedAndReplayed:
    """The mean time of a step in a recorded trace, without the time between steps, and in one
    replay of all its steps. If the two agree, the replay describes the trace.

    From the end of the first step to the end of the last one, so that work of the last step which
    runs after it, and the start on an idle device, are not spread over the steps. A single step
    counts whole, without the time in which its first work waits for work from before the step.
    """
    # Without other profiles the host's times are those of the trace, the profiler's cost included.
    model = queue_model(trace, AS_RECORDED)
    queue = _Queue(model)
    queue.stream_ends.update(_busy_at_first(trace))
    # ``run`` returns when each step and all work before it are done, on one clock over all steps.
    replayed_ends = [queue.run(actions) for actions in model.steps]
    recorded_ends = _recorded_ends(trace)
    if len(recorded_ends) == 1:
        earlier_ns = delay_by_earlier_work_ns(trace.steps[0])
        recorded_ns = recorded_ends[0] - trace.steps[0].start - earlier_ns
        return RecordedAndReplayed(recorded_ns, max(0.0, replayed_ends[0] - earlier_ns))

    between_steps = []
    for before, after in itertools.pairwise(trace.steps):
        between_steps.append(max(0.0, after.start - before.end))
    recorded_ns = recorded_ends[-1] - recorded_ends[0] - sum(between_steps)
    replayed_ns = replayed_ends[-1] - replayed_ends[0]
    steps = len(trace.steps) - 1
    return RecordedAndReplayed(recorded_ns / steps, replayed_ns / steps)


def _busy_at_first(trace: Trace) -> dict[str, float]:
    """For each stream, until when it works on what was issued before the first step, ns from the
    start of that step. Streams that are free by then are left out.
    """
    first = trace.steps[0]
    busy: dict[str, float] = {}
    for step in trace.steps:
        for work in step.device:
            # The first work of a stream shows that the stream was free by then.
            until = min(first.busy_before, work.start) - first.start
            if work.stream not in busy and until > 0:
                busy[work.stream] = until
    return busy


def _recorded_ends(trace: Trace) -> list[float]:
    """When each step and all work before it had ended, on the host and on the device: the device
    may still work when the host has ended a step.
    """
    ends: list[float] = []
    latest = -math.inf
    for step in trace.steps:
        latest = max([latest, step.end, *(work.end for work in step.device)])
        ends.append(latest)
    return ends
