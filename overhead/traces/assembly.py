"""Assemble the steps of a program from the events of a trace, of whatever format."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from overhead.traces.calls import host_calls
from overhead.traces.clock_bounds import compare_clocks
from overhead.traces.clocks import Clocks
from overhead.traces.doubts import (
    graph_nodes,
    held_up_by_profiler_ns,
    may_wait,
    other_threads_wait_ns,
    unexplained_wait_ns,
    working_threads,
)
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.losses import with_losses
from overhead.traces.marks import collective_in, site_in
from overhead.traces.operations import outermost_operations
from overhead.traces.recording import Recording
from overhead.traces.sorted_events import SortedEvents
from overhead.traces.spans import Span, Spans, start_of, started_between
from overhead.traces.trace import (
    CallSite,
    DeviceWork,
    HostCall,
    HostOperation,
    StepTrace,
    Trace,
    union_of_spans,
)
from overhead.traces.windows import (
    StepWindow,
    marked_windows,
    trimmed_window,
    whole_window,
)
from overhead.traces.work_times import WorkTimes

_MOST_STREAMS = 1000
"""Most streams of all devices in a trace. Chosen, not measured; a file with more is not trusted."""
_MOST_NAME = 1000
_MOST_COLLECTIVE = 200
"""Most characters of the name of a piece of work, and of a collective."""

_ByCorrelation = Mapping[int, Sequence[DeviceWork]]
"""By the number of a call the device work that it issued."""


@dataclasses.dataclass(frozen=True)
class TraceSource:
    """What a file tells beside its events. ``unit_ns``: its times are floats in this unit.

    ``device``: the name of the device. ``rank``: whose file it is, of ``ranks`` of the program; 0
    if unknown. ``processes``: of how many the reader chose one. ``unreadable``: needed events that
    the reader could not read; ``mended``: events whose text it had to mend. ``is_cut``: whether the
    file ends in the middle. ``other_device``: the category of device work that is not read.
    ``not_read``: tables of a database that are not read.
    """

    unit_ns: float = 1.0
    device: str = ""
    rank: str = ""
    ranks: int = 0
    processes: int = 1
    unreadable: int = 0
    mended: int = 0
    is_cut: bool = False
    other_device: str = ""
    not_read: str = ""


def assemble(events: Iterable[TraceEvent], source: TraceSource, *, trimmed: bool = True) -> Trace:
    """The steps of a trace, each with the device work that it issued. The readers of all formats
    call this with what they have read.

    A program can mark its steps by named ranges. A trace without such marks is one step; where it
    is ``trimmed``, that step begins with the first launch and ends with the last device work.
    Raises ``BadFile`` for processes that cannot be told apart, and ``ValueError`` for too many
    streams, or if no event can be read.
    """
    # ``SortedEvents`` leaves out events that cannot be, and counts them.
    by_kind = SortedEvents(events)
    # The reader may have chosen one process already, and handed over the events of that one alone.
    processes = max(source.processes, by_kind.keep_one_process())
    _refuse_unreadable(by_kind, source)

    calls_seen = by_kind.of(EventKind.CALL)
    work = _device_work(by_kind)
    # Host and device have clocks of their own. All that follows compares their times.
    clocks = compare_clocks(calls_seen, work)
    work = [_on_host_clock(piece, clocks) for piece in work]
    marked = marked_windows(by_kind.of(EventKind.STEP))
    sites = _sites(by_kind)  # by the time in which each runs, the lines of the program
    operations = outermost_operations(_within_steps(by_kind, marked), sites)
    by_correlation = _by_correlation(work)
    # All that the host and the device did, also outside of the steps.
    activity = _Activity(
        operations=operations,
        calls=list(host_calls(calls_seen, operations, sites, by_correlation)),
        work=work,
        by_correlation=by_correlation,
    )

    recording = _recording_with_counts(by_kind, source, clocks)
    windows = marked
    if not marked:
        windows, recording = _window_without_marks(activity, recording, trimmed=trimmed)
    if windows:
        recording = _with_losses_and_doubts(recording, activity, windows)
        recording = _with_profiler_time(recording, activity, windows, by_kind)

    # Memory that is given back has a size below 0.
    allocated = [event for event in by_kind.of(EventKind.MEMORY) if event.size > 0]
    allocated.sort(key=start_of)
    return Trace(
        steps=[_step(window, activity, allocated) for window in windows],
        device=source.device,
        rank=source.rank,
        processes=processes,
        recording=recording,
        ranks=source.ranks,
    )


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


def _recording_with_counts(by_kind: SortedEvents, source: TraceSource, clocks: Clocks) -> Recording:
    """The recording with the counts of its events, and how its clocks differ. Later functions add
    what it has lost.
    """
    # The reader has met some of these, the sorting of the events the others.
    unreadable = source.unreadable + by_kind.unreadable
    return Recording(
        marked=bool(by_kind.of(EventKind.STEP)),
        # Events that are there twice, and events that end before they begin.
        doubled=by_kind.doubled,
        backwards=by_kind.backwards,
        unreadable=unreadable,
        mended=source.mended,
        is_cut=source.is_cut,
        other_device=source.other_device,
        not_read=source.not_read,
        # ``by_kind`` holds only the events that can be used.
        events=by_kind.count + by_kind.backwards + unreadable,
        memory_recorded=bool(by_kind.of(EventKind.MEMORY)),
        rounded_ns=by_kind.rounded_ns(source.unit_ns),
        clocks=clocks,
    )


def _window_without_marks(
    activity: _Activity, recording: Recording, *, trimmed: bool
) -> tuple[list[StepWindow], Recording]:
    """The time of the only step of a recording without marks of steps; none where the host does
    nothing. Beside it the recording, with its length and with the start-up that was left out.

    ``trimmed``: the step leaves out what the program does before its first launch and after its
    last device work.
    """
    whole = whole_window(activity.operations, activity.calls)
    if whole is None:
        return [], recording
    # Device work may end after all that the host does; the recording is as long as both.
    last_end = max([whole.end, *(piece.end for piece in activity.work)])
    recording = dataclasses.replace(recording, recorded_ns=last_end - whole.start)
    if not trimmed:
        return [whole], recording
    found = trimmed_window(whole, activity.operations, activity.calls, activity.by_correlation)
    recording = dataclasses.replace(
        recording, start_up=found.start_up, start_up_ns=found.start_up_ns
    )
    return [found.window], recording


def _device_work(by_kind: SortedEvents) -> list[DeviceWork]:
    """The device work, at the times of the device's clock.

    A collective is an exchange of data between several devices. Each piece of work has the name of
    its collective, if the event of the work or the range around its call tells one.
    """
    of_calls = _collectives_of_calls(by_kind)
    work = []
    for event in by_kind.of(EventKind.WORK):
        collective = event.collective or of_calls.get(event.correlation, "")
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
            )
        )
    return work


def _collectives_of_calls(by_kind: SortedEvents) -> dict[int, str]:
    """The name of the collective by the number of the call that issues it. A collective is an
    exchange of data between several devices.

    A thread issues a collective within a range or an operation that tells its name.
    """
    spans: list[Span[str]] = []
    for event in by_kind.of(EventKind.ANNOTATION) + by_kind.of(EventKind.OPERATION):
        collective = event.collective or collective_in(event.name)
        if collective:
            spans.append(Span(event.thread, event.start, event.end, collective))
    if not spans:
        return {}
    ranges = Spans(spans)
    by_call: dict[int, str] = {}
    for call in by_kind.of(EventKind.CALL):
        around = ranges.around(call.thread, call.start)
        # A call without a number has no device work in the recording.
        if call.correlation and around:
            by_call[call.correlation] = around
    return by_call


def _on_host_clock(work: DeviceWork, clocks: Clocks) -> DeviceWork:
    """The device work at its times on the host's clock."""
    late_ns = clocks.late_at(work.start)
    if not late_ns:
        return work
    return dataclasses.replace(work, start=work.start - late_ns, end=work.end - late_ns)


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


def _within_steps(by_kind: SortedEvents, windows: Sequence[StepWindow]) -> list[TraceEvent]:
    """The operations that are no longer than the longest marked step; all without marks.

    A longer one, such as the range of an epoch, holds steps. As the outermost operation it would
    stand for all that runs inside it.
    """
    longest_ns = max((window.end - window.start for window in windows), default=math.inf)
    return [
        event for event in by_kind.of(EventKind.OPERATION) if event.end - event.start <= longest_ns
    ]


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
        wait_ns = unexplained_wait_ns(call, work_times)
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


def _step(window: StepWindow, activity: _Activity, allocated: Sequence[TraceEvent]) -> StepTrace:
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
    )
