"""Assemble the steps of a program from the events of a trace, of whatever format."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from overhead.traces.beside import without_waits_beside
from overhead.traces.between_steps import with_time_between
from overhead.traces.calls import host_calls
from overhead.traces.clock_bounds import compare_clocks
from overhead.traces.clocks import Clocks, worst_of
from overhead.traces.collectives import IssuedCollective, collectives_of_calls
from overhead.traces.doubts import (
    graph_nodes,
    held_up_by_profiler_ns,
    may_wait,
    other_threads_wait_ns,
    unexplained_wait_ns,
    working_threads,
)
from overhead.traces.earlier_work import delay_by_earlier_work_ns
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.launches import Launches
from overhead.traces.losses import with_losses
from overhead.traces.marks import family, site_in
from overhead.traces.operations import outermost_operations
from overhead.traces.processes import ProcessId, ProcessTime
from overhead.traces.recording import Recording
from overhead.traces.slow_steps import slow_steps, step_times
from overhead.traces.sorted_events import SortedEvents
from overhead.traces.spans import Span, Spans, start_of, started_between
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.step_windows import FoundSteps, StepWindow
from overhead.traces.steps_taken import StepsTaken
from overhead.traces.stream_waits import stream_waits
from overhead.traces.trace import (
    CallSite,
    DeviceWork,
    HostCall,
    HostOperation,
    StepTrace,
    TimeRange,
    Trace,
    union_of_spans,
)
from overhead.traces.unmarked import trimmed_window, whole_window
from overhead.traces.windows import find_steps, marked_steps, steps_with_times
from overhead.traces.work_times import WorkTimes

_MOST_STREAMS = 1000
"""Most streams of all devices in a trace. Chosen, not measured; a file with more is not trusted."""
_LONGEST_LAUNCH_NS = 1e6
"""From the return of a launch to the start of its work on an idle device it takes less. Chosen, not
measured; the longest usual ones take some 100 µs.
"""
_LITTLE = 0.02
"""A share of a step that changes no result. Chosen, not measured."""
_MOST_NAME = 1000
_MOST_COLLECTIVE = 200
"""Most characters of the name of a piece of work, and of a collective."""

_ByCorrelation = Mapping[int, Sequence[DeviceWork]]
"""By the number of a call the device work that it issued."""


@dataclasses.dataclass(frozen=True)
class TraceSource:
    """What a file tells beside its events. ``unit_ns``: its times are floats in this unit.
    ``begin_ns``: the time in the file from which the times of the events count.

    ``device``: the name of the device. ``rank``: whose file it is, of ``ranks`` of the program; 0
    if unknown. ``processes``: those of which the reader chose one, if it did. ``names``: of
    processes. ``unreadable``: needed events that the reader could not read; ``mended``: events
    whose text it had to mend. ``is_cut``: whether the file ends in the middle. ``other_device``:
    the category of device work that is not read. ``not_read``: tables of a database that are not
    read. ``stacks``: whether it has calls of Python functions.
    """

    unit_ns: float = 1.0
    begin_ns: float = 0.0
    device: str = ""
    rank: str = ""
    ranks: int = 0
    processes: Sequence[ProcessTime] = ()
    names: Mapping[ProcessId, str] = dataclasses.field(default_factory=dict)
    unreadable: int = 0
    mended: int = 0
    is_cut: bool = False
    other_device: str = ""
    stacks: bool = False
    not_read: str = ""


def assemble(
    events: Iterable[TraceEvent],
    source: TraceSource,
    *,
    trimmed: bool = True,
    choice: StepChoice = ANY_STEPS,
) -> Trace:
    """The steps of a trace, each with the device work that it issued. The readers of all formats
    call this with what they have read.

    The steps are what the person named (``choice``), else marks, else what repeats. Without these,
    a trace is one step; where it is ``trimmed``, that step begins with the first launch and ends
    with the last device work. A trace that is not ``trimmed`` is of a profile of our own, which has
    marks or is one step.
    Raises ``BadFile`` for processes that cannot be told apart or a step that is not there, and
    ``ValueError`` for too many streams, or if no event can be read.
    """
    # ``SortedEvents`` leaves out events that cannot be, and counts them.
    by_kind = SortedEvents(events)
    # The reader may have chosen one process already, and handed over the events of that one alone.
    processes = source.processes
    if not processes:
        processes = by_kind.keep_one_process(choice.process, source.names)
    _refuse_unreadable(by_kind, source)
    by_kind.keep_outermost_calls()

    calls_seen = by_kind.of(EventKind.CALL)
    work = _device_work(by_kind)
    # Host and device have clocks of their own. All that follows compares their times.
    told = stream_waits(by_kind.of(EventKind.SYNC))
    clocks = compare_clocks(calls_seen, work, told)
    work = [_on_host_clock(piece, clocks[piece.device]) for piece in work]
    by_correlation = _by_correlation(work)
    launches = Launches(calls_seen, by_correlation)
    recorded = _recorded_time(by_kind, work)
    if trimmed:
        found = find_steps(by_kind, launches, recorded, choice)
    else:
        found = marked_steps(by_kind, launches)

    sites = _sites(by_kind)  # by the time in which each runs, the lines of the program
    operations = outermost_operations(_within_steps(by_kind, found), sites)
    # All that the host and the device did, also outside of the steps.
    calls = list(host_calls(calls_seen, operations, sites, by_correlation, told))
    activity = _Activity(
        operations=operations,
        calls=without_waits_beside(calls, operations, by_correlation),
        work=work,
        by_correlation=by_correlation,
    )
    if found is None:
        found = _as_one_step(activity, trimmed=trimmed)

    # Memory that is given back has a size below 0.
    allocated = [event for event in by_kind.of(EventKind.MEMORY) if event.size > 0]
    allocated.sort(key=start_of)
    busy = _BusyBefore(activity)
    windows = found.windows
    all_steps = [_step(window, activity, allocated, busy) for window in windows]
    if all_steps:
        all_steps[0] = _with_unrecorded_work(all_steps[0])
    slow = [] if choice.keeps_slow else slow_steps(all_steps)
    if slow:
        windows = _without_slow(windows, slow)
    recording = _recording_with_counts(by_kind, source, list(clocks.values()))
    if windows:
        windows, recording = _without_wait_for_earlier_work(windows, activity, recording)
        recording = _with_losses_and_doubts(recording, activity, windows)
        recording = _with_profiler_time(recording, activity, windows, by_kind)

    steps = [step for index, step in enumerate(all_steps) if index not in slow]
    if steps:
        # The first window may be shorter now. The steps have the numbers of their windows.
        steps[0] = _step(windows[0], activity, allocated, busy)
        if slow:
            steps = [
                dataclasses.replace(step, number=window.number)
                for step, window in zip(steps, windows, strict=True)
            ]
        steps[0] = _with_unrecorded_work(steps[0])
    return Trace(
        steps=steps,
        device=source.device,
        rank=source.rank,
        processes=processes,
        recording=recording,
        ranks=source.ranks,
        work=work,
        steps_taken=_steps_taken(found, all_steps, slow, launches, recorded, by_kind, work),
        is_recorded=trimmed,
    )


def _without_slow(windows: Sequence[StepWindow], slow: Sequence[int]) -> list[StepWindow]:
    """The windows without those at the positions ``slow``. Steps of several ranks are paired by
    number, so one without a number gets its position, as if no step were left out.
    """
    kept = []
    for index, window in enumerate(windows):
        if index not in slow:
            number = index if window.number is None else window.number
            kept.append(window._replace(number=number))
    return kept


@dataclasses.dataclass(frozen=True)
class _Activity:
    """What the program did in the whole recording. ``operations``: those of the library that no
    other operation called. ``operations`` and ``calls`` are sorted by start, ``work`` is not.
    ``by_correlation``: by the number of a call the work that it issued.
    """

    operations: Sequence[HostOperation]
    calls: Sequence[HostCall]
    work: Sequence[DeviceWork]
    by_correlation: _ByCorrelation


def _refuse_unreadable(by_kind: SortedEvents, source: TraceSource) -> None:
    """Raise ``ValueError`` if there are events and none can be read, or for more streams than a
    device has: such a file is damaged or hostile.
    """
    unreadable = source.unreadable + by_kind.unreadable
    if unreadable and not by_kind.count:
        raise ValueError("none of its events can be read")
    streams = {event.stream for event in by_kind.of(EventKind.WORK)}
    if len(streams) > _MOST_STREAMS:
        raise ValueError(f"more than {_MOST_STREAMS:,} streams")


def _recording_with_counts(
    by_kind: SortedEvents, source: TraceSource, clocks: Sequence[Clocks]
) -> Recording:
    """The recording with the counts of its events, and how the clocks of its devices differ from
    the host's. Later functions add what it has lost.
    """
    # The reader has met some of these, the sorting of the events the others.
    unreadable = source.unreadable + by_kind.unreadable
    return Recording(
        # Events that are there twice, and events that end before they begin.
        doubled=by_kind.doubled,
        backwards=by_kind.backwards,
        unreadable=unreadable,
        mended=source.mended,
        is_cut=source.is_cut,
        other_device=source.other_device,
        stacks=source.stacks,
        not_read=source.not_read,
        # ``by_kind`` holds only the events that can be used.
        events=by_kind.count + by_kind.backwards + unreadable,
        memory_recorded=bool(by_kind.of(EventKind.MEMORY)),
        rounded_ns=by_kind.rounded_ns(source.unit_ns, source.begin_ns),
        clocks=worst_of(clocks),
        clocks_of_devices=clocks,
    )


def _recorded_time(by_kind: SortedEvents, work: Iterable[DeviceWork]) -> TimeRange:
    """The time from the first to the last thing that the host or the device does."""
    starts: list[float] = []
    ends: list[float] = []
    for kind in (EventKind.STEP, EventKind.ANNOTATION, EventKind.OPERATION, EventKind.CALL):
        starts += [event.start for event in by_kind.of(kind)]
        ends += [event.end for event in by_kind.of(kind)]
    starts += [piece.start for piece in work]
    ends += [piece.end for piece in work]
    return min(starts, default=0.0), max(ends, default=0.0)


def _as_one_step(activity: _Activity, *, trimmed: bool) -> FoundSteps:
    """The only step of a recording in which nothing is marked and nothing repeats; without a
    window where the host does nothing.

    ``trimmed``: the step leaves out what the program does before its first launch and after its
    last device work.
    """
    whole = whole_window(activity.operations, activity.calls)
    if whole is None:
        return FoundSteps([], StepsTaken(how="recording", found=0))
    if not trimmed:
        return FoundSteps([whole], StepsTaken(how="recording"))
    one = trimmed_window(whole, activity.operations, activity.calls, activity.by_correlation)
    taken = StepsTaken(
        how="recording" if one.window == whole else "launches",
        first_call=one.start_up[:_MOST_NAME],
        first_call_ns=one.start_up_ns,
    )
    return FoundSteps([one.window], taken)


def _steps_taken(
    found: FoundSteps,
    steps: Sequence[StepTrace],
    slow: Sequence[int],
    launches: Launches,
    recorded: TimeRange,
    by_kind: SortedEvents,
    work: Iterable[DeviceWork],
) -> StepsTaken:
    """What was taken as the steps, and how much of the recording they are. ``slow``: the positions
    of those that are left out of all times.
    """
    if not found.windows:
        return found.taken
    taken = steps_with_times(found, launches, recorded)
    ranges = [*by_kind.of(EventKind.OPERATION), *by_kind.of(EventKind.ANNOTATION)]
    ranges += by_kind.of(EventKind.STEP)
    taken = _with_slow(taken, steps, slow)
    # A first step that loads or compiles says nothing of the time between the others.
    first = taken.slow if taken.slow_at_first else 0
    taken = with_time_between(taken, found.windows[first:], work, ranges)
    host_end = max(step.end for step in steps)
    device_end = host_end
    for step in steps:
        device_end = max([device_end, *(piece.end for piece in step.device)])
    behind_ns = max(0.0, device_end - host_end)
    lengths_ns = [step.end - step.start for index, step in enumerate(steps) if index not in slow]
    return msgspec.structs.replace(
        taken,
        behind_ns=behind_ns,
        # This work is of the last step, so it does not lie after the steps.
        after_ns=max(0.0, taken.after_ns - behind_ns),
        shortest_ns=min(lengths_ns),
        longest_ns=max(lengths_ns),
        already_busy=steps[0].busy_before - steps[0].start > _LITTLE * taken.longest_ns,
        earlier_ns=delay_by_earlier_work_ns(steps[0]),
    )


def _with_slow(taken: StepsTaken, steps: Sequence[StepTrace], slow: Sequence[int]) -> StepsTaken:
    """What was taken as steps, with the slow ones that are left out."""
    if not slow:
        return taken
    whole_ns = [time.whole for time in step_times(steps)]
    slow_ns = [whole_ns[index] for index in slow]
    usual_ns = [time for index, time in enumerate(whole_ns) if index not in slow]
    return msgspec.structs.replace(
        taken,
        slow=len(slow),
        slow_at_first=slow[-1] == len(slow) - 1,
        slow_number=steps[slow[0]].number,
        slow_shortest_ns=min(slow_ns),
        slow_longest_ns=max(slow_ns),
        usual_ns=statistics.median(usual_ns),
    )


def _without_wait_for_earlier_work(
    windows: Sequence[StepWindow], activity: _Activity, recording: Recording
) -> tuple[list[StepWindow], Recording]:
    """The times of the steps, where the first one begins after a wait for work that was issued
    before the recording: the profiler itself waits so when it starts. Beside them the recording,
    with how long that wait is.
    """
    waited_until = -math.inf
    waited_ns = 0.0
    for call in activity.calls:
        # From here on, waits are for work of the recording.
        if activity.by_correlation.get(call.correlation) and call.correlation:
            break
        if call.blocked > 0:
            waited_until = max(waited_until, call.end)
            waited_ns += call.end - call.start
    first = windows[0]
    # A wait after other work of the program is one of its own.
    operations = started_between(activity.operations, first.start, waited_until)
    if not first.start < waited_until < first.end or operations:
        return [*windows], recording
    recording = dataclasses.replace(recording, earlier_wait_ns=waited_ns)
    return [first._replace(start=waited_until), *windows[1:]], recording


def _device_work(by_kind: SortedEvents) -> list[DeviceWork]:
    """The device work, at the times of the device's clock.

    A collective is an exchange of data between several devices. Each piece of work has the name of
    its collective, if the event of the work or the range around its call tells one.
    """
    ranges = by_kind.of(EventKind.ANNOTATION) + by_kind.of(EventKind.OPERATION)
    of_calls = collectives_of_calls(ranges, by_kind.of(EventKind.CALL))
    none = IssuedCollective("", directly=False)
    work = []
    for event in by_kind.of(EventKind.WORK):
        issued = of_calls.get(event.correlation, none)
        collective = event.collective or issued.name
        work.append(
            DeviceWork(
                name=event.name[:_MOST_NAME],
                stream=event.stream,
                start=event.start,
                end=event.end,
                correlation=event.correlation,
                collective=collective[:_MOST_COLLECTIVE],
                # Which of the devices take part in the exchange.
                group=event.group,
                # PyTorch writes the name of a collective beside the kernel that exchanges alone.
                exchanges=bool(event.collective) or issued.directly,
            )
        )
    return work


def _on_host_clock(work: DeviceWork, clocks: Clocks) -> DeviceWork:
    """The device work at its times on the host's clock."""
    late_ns = clocks.late_at(work.start)
    if not late_ns:
        return work
    return msgspec.structs.replace(work, start=work.start - late_ns, end=work.end - late_ns)


def _by_correlation(work: Iterable[DeviceWork]) -> _ByCorrelation:
    by_correlation: dict[int, list[DeviceWork]] = defaultdict(list)
    for piece in work:
        by_correlation[piece.correlation].append(piece)
    return by_correlation


def _sites(by_kind: SortedEvents) -> Spans[CallSite]:
    """The lines of the program, by the ranges that are marked with them."""
    return Spans(
        Span(event.thread, event.start, event.end, site_in(event.name))
        for event in by_kind.of(EventKind.SITE)
    )


def _within_steps(by_kind: SortedEvents, found: FoundSteps | None) -> list[TraceEvent]:
    """The operations that are no longer than the longest step; all without steps. The ranges that
    are the steps are no operations.

    A longer one, such as the range of an epoch, holds steps. As the outermost operation it would
    stand for all that runs inside it.
    """
    operations = by_kind.of(EventKind.OPERATION)
    if found is None:
        return operations
    longest_ns = max(window.end - window.start for window in found.windows)
    kept = [event for event in operations if event.end - event.start <= longest_ns]
    if found.family:
        kept = [event for event in kept if family(event.name) != found.family]
    return kept


def _with_losses_and_doubts(
    recording: Recording, activity: _Activity, windows: Sequence[StepWindow]
) -> Recording:
    """The recording with counts of what it has lost, and of what in the steps cannot be true of a
    whole recording. Too much of these allows no verdict on what bounds the steps.

    ``windows``: the times of the steps, by start.
    """
    begin = windows[0].start
    end = max(window.end for window in windows)
    recording = with_losses(recording, activity.calls, activity.work, begin, end)

    work_times = WorkTimes((piece.start, piece.end) for piece in activity.work)
    calls = list(_started_in_steps(activity.calls, windows))
    unexplained_ns = []
    for call in calls:
        wait_ns = 0.0 if call.beside else unexplained_wait_ns(call, work_times)
        if wait_ns > 0:
            unexplained_ns.append(wait_ns)

    # By the name of a call: how long such calls last, which may be waits that nobody knows as such.
    may_wait_ns: dict[str, float] = defaultdict(float)
    # A watchdog's thread asks for the state of the device all the time, and holds nothing up.
    working = working_threads(activity.operations, calls)
    for call in calls:
        if call.thread in working and may_wait(call, work_times):
            # ``no_work``: the part of the call that is known as a wait.
            may_wait_ns[call.name] += call.end - call.start - call.no_work

    # How much work the replays of CUDA graphs have in the recording, and how much they lack.
    nodes = graph_nodes(calls, activity.by_correlation)
    return dataclasses.replace(
        recording,
        steps_ns=sum(window.end - window.start for window in windows),
        waits=len([call for call in calls if call.kind == "synchronisation"]),
        unexplained_waits=len(unexplained_ns),
        unexplained_ns=sum(unexplained_ns),
        nodes=nodes.recorded,
        nodes_missing=nodes.missing,
        # The name of the calls that last longest together.
        may_wait=max(may_wait_ns, key=may_wait_ns.__getitem__, default=""),
        may_wait_ns=sum(may_wait_ns.values()),
        beside_ns=other_threads_wait_ns(calls, activity.operations),
    )


def _with_profiler_time(
    recording: Recording,
    activity: _Activity,
    windows: Sequence[StepWindow],
    by_kind: SortedEvents,
) -> Recording:
    """The recording with how long the profiler, by work of its own, held up the calls of the
    steps. ``by_kind`` has the events that tell when the profiler worked.

    The steps count as one time, from the start of the first to the end of the last.
    """
    costs = [(event.start, event.end) for event in by_kind.of(EventKind.PROFILER_COST)]
    begin = windows[0].start
    end = max(window.end for window in windows)
    calls = started_between(activity.calls, begin, end)
    return dataclasses.replace(
        recording, profiler_ns=held_up_by_profiler_ns(union_of_spans(costs), calls)
    )


def _started_in_steps(
    calls: Sequence[HostCall], windows: Sequence[StepWindow]
) -> Iterator[HostCall]:
    """The calls that start in a step, each once also where steps overlap."""
    for start, end in union_of_spans((window.start, window.end) for window in windows):
        yield from started_between(calls, start, end)


class _BusyBefore:
    """Until when the device works on what was issued before a moment."""

    def __init__(self, activity: _Activity) -> None:
        called = {call.correlation: call.start for call in activity.calls if call.correlation}
        # Work whose call is not recorded was issued before it began.
        issued = [(called.get(work.correlation, work.start), work.end) for work in activity.work]
        issued.sort()
        self._issued = [moment for moment, _ in issued]
        self._ends = list(itertools.accumulate((end for _, end in issued), max))

    def until(self, moment: float) -> float:
        """When that work has ended; minus infinity if there is none."""
        before = bisect.bisect_left(self._issued, moment)
        return self._ends[before - 1] if before else -math.inf


def _issued_at(call: HostCall) -> float:
    """When a call has surely issued its work: at its end, since it may load a kernel first, and so
    may the operation that makes it. A copy loads nothing; if it lasts, it waits.
    """
    if call.kind in ("copy", "synchronisation"):
        return call.start
    return max(call.end, call.operation.end) if call.operation else call.end


def _with_unrecorded_work(step: StepTrace) -> StepTrace:
    """The first step, with the time until which the device works on something that the recording
    does not hold, such as the step before it.

    The first work of a stream begins long after its call has returned if the device is busy, and
    nothing is recorded that it works on. The loading of a kernel is part of the call.
    """
    issued = {call.correlation: _issued_at(call) for call in step.calls if call.correlation}
    busy_until = step.busy_before
    last_end = busy_until
    streams: set[str] = set()
    for work in step.device:
        issued_at = issued.get(work.correlation, math.inf)
        # It may wait for earlier work on another stream, if the recording has such work.
        ready = max(issued_at, last_end)
        # Later work of a stream may wait for anything that the step itself issued.
        if work.stream not in streams and work.start - ready > _LONGEST_LAUNCH_NS:
            busy_until = work.start
        streams.add(work.stream)
        last_end = max(last_end, work.end)
    unrecorded = busy_until if busy_until > step.busy_before else -math.inf
    return dataclasses.replace(
        step, busy_before=busy_until, is_first=True, unrecorded_until=unrecorded
    )


def _step(
    window: StepWindow,
    activity: _Activity,
    allocated: Sequence[TraceEvent],
    busy: _BusyBefore,
) -> StepTrace:
    """The step in the time of this window: what started in it on the host, and the device work that
    its calls issued, which may run after the window. ``allocated``: allocations, by start.
    """
    calls = started_between(activity.calls, window.start, window.end)
    issued: list[DeviceWork] = []
    for call in calls:
        if call.correlation:
            issued += activity.by_correlation.get(call.correlation, ())
    allocations = started_between(allocated, window.start, window.end)
    return StepTrace(
        start=window.start,
        end=window.end,
        operations=started_between(activity.operations, window.start, window.end),
        calls=calls,
        device=sorted(issued, key=start_of),
        allocations=[event.size for event in allocations],
        number=window.number,
        busy_before=busy.until(window.start),
    )
