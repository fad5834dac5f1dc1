"""Where the steps of a recording begin and end, and how they were found."""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from overhead.errors import BadFile
from overhead.results import because, together
from overhead.traces.delimited import starts_of_parts
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.launches import Launches, NamedCalls
from overhead.traces.marked_steps import main_marks, until_the_next, without_cut_step
from overhead.traces.marks import PROFILER_STEP, family, step_number
from overhead.traces.named_ranges import (
    by_family,
    is_of_program,
    is_part_of_a_step,
    may_be_a_step,
    others_that_repeat,
    ranges_called,
    sequences,
    shown_name,
    together_ns,
)
from overhead.traces.operations import outermost_operations
from overhead.traces.period import repeating_part
from overhead.traces.rounds import rounds_of
from overhead.traces.sorted_events import SortedEvents
from overhead.traces.spans import Spans
from overhead.traces.step_choice import StepChoice
from overhead.traces.step_windows import FoundSteps, StepWindow
from overhead.traces.steps_taken import HowSteps, StepsTaken
from overhead.traces.trace import CallSite, HostOperation, TimeRange

_MOST = 0.8
"""Ranges that repeat are steps only if they hold this share of the launches since the first of
them. Chosen, not measured.
"""
_HALF = 0.5
"""Ranges without launches are steps only if they take this share of the time. Chosen, not
measured.
"""
_MOST_EXCHANGE = 0.9
"""This share of the repetitions must exchange something with the device, as a step does. The last
one may wait after all of them. Chosen, not measured.
"""
_LEAST_CALLS = 20
"""The repetitions must have this number of calls. A small program may launch one kernel four times
by chance. Chosen, not measured.
"""
_FEW_LAUNCHES = 3
"""A repetition of so few launches may be a turn of a loop inside of a step, also where the host
reads a value in it. Chosen, not measured.
"""
_MUCH = 0.1
"""If start-up, and other time outside of the loop, takes this share of the time, the loop alone is
taken. Chosen, not measured.
"""
_DEEPEST = 4
"""So deep in other ranges those are looked for that repeat. Chosen, not measured."""


_MOST_AT_THE_END = 3
"""So many waits and copies at the end are tried to be left out one by one. Chosen, not measured."""


def find_steps(
    by_kind: SortedEvents, launches: Launches, recorded: TimeRange, choice: StepChoice
) -> FoundSteps | None:
    """The steps of a recording; None if nothing marks them and nothing repeats.

    In this order: the ranges that the person names (``choice``); the marks of the program or of a
    library; ranges that repeat; launches that repeat; the time that the person names, as one step.
    ``recorded``: the time of the recording. Raises ``BadFile`` if the person names what is not
    there.
    """
    begin, end = _limits(recorded, choice)
    if choice.has_times:
        _refuse_without_launches(launches, begin, end, recorded)
    ranges = []
    for kind in (EventKind.STEP, EventKind.ANNOTATION, EventKind.OPERATION):
        # A step that is cut by the limits is no whole step.
        ranges += [event for event in by_kind.of(kind) if begin <= event.start <= event.end <= end]
    of_program = _of_program(ranges)
    families = by_family(of_program)

    found = None
    if choice.name:
        found = _named_steps(choice.name, ranges, families)
    if found is None:
        found = _marked_steps(families, launches)
    if found is None:
        found = _ranges_in_turn(of_program, launches, end)
    if found is None:
        operations = [event for event in ranges if event.kind is EventKind.OPERATION]
        found = _launches_in_turn(operations, launches, begin, end)
        if found is None:
            found = _rounds_without_start_up(operations, launches, begin, end)
    if found is None and choice.has_times:
        found = FoundSteps([StepWindow(begin, end)], StepsTaken(how="between"))
    if found is None:
        return None
    others = others_that_repeat(families, found.family)
    return dataclasses.replace(found, taken=msgspec.structs.replace(found.taken, others=others))


def _of_program(ranges: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The ranges that the program named, as far as a recording tells.

    PyTorch's profiler tells ranges from operations; Nsight Systems has ranges only, and versions of
    PyTorch before 1.12 had operations only.
    """
    tells = any(event.kind is EventKind.ANNOTATION for event in ranges)
    found = []
    for event in ranges:
        if event.kind is EventKind.OPERATION and tells:
            continue
        if event.kind is EventKind.STEP or is_of_program(event.name):
            found.append(event)
    return found


def marked_steps(by_kind: SortedEvents, launches: Launches) -> FoundSteps | None:
    """The steps that marks tell, where nothing else is asked for; None without marks."""
    return _marked_steps(by_family(by_kind.of(EventKind.STEP)), launches)


def _limits(recorded: TimeRange, choice: StepChoice) -> TimeRange:
    """The time in which steps are looked for. Raises ``BadFile`` where the person names a time
    that the recording does not have.
    """
    begin, end = recorded
    if choice.begin_s is not None:
        begin = recorded[0] + 1e9 * choice.begin_s
    if choice.end_s is not None:
        end = min(end, recorded[0] + 1e9 * choice.end_s)
    if choice.has_times and begin >= end:
        raise BadFile(because("no-such-time", recorded_ns=recorded[1] - recorded[0]))
    return begin, end


def _refuse_without_launches(
    launches: Launches, begin: float, end: float, recorded: TimeRange
) -> None:
    """Raise ``BadFile`` if the program launches something, but nothing in the time that the person
    names.
    """
    if not len(launches.starts) or launches.count(begin, end):
        return
    first_s = (float(launches.starts[0]) - recorded[0]) / 1e9
    last_s = (float(launches.starts[-1]) - recorded[0]) / 1e9
    raise BadFile(because("no-launch-between", first_s=first_s, last_s=last_s))


def _named_steps(
    name: str,
    ranges: Sequence[TraceEvent],
    families: Mapping[str, Sequence[TraceEvent]],
) -> FoundSteps:
    """The ranges that the person names as steps. Raises ``BadFile`` if there are none."""
    chosen = ranges_called(name, ranges)
    if not chosen:
        others = others_that_repeat(families, "")
        if not others:
            raise BadFile(because("no-such-range-and-none-repeats", name=name))
        ranges_there = [
            because("range-that-repeats", name=other.name, times=other.times) for other in others
        ]
        raise BadFile(because("no-such-range", name=name, ranges=together(*ranges_there)))
    return _steps_of_ranges(chosen, "named")


def _steps_of_ranges(chosen: Sequence[TraceEvent], how: HowSteps) -> FoundSteps:
    """Each of these ranges as a step."""
    windows = []
    for event, number in zip(chosen, _numbers(chosen), strict=True):
        windows.append(StepWindow(event.start, event.end, number))
    taken = StepsTaken(how=how, name=shown_name(chosen))
    return FoundSteps(windows, taken, family(chosen[0].name))


def _numbers(chosen: Sequence[TraceEvent]) -> list[int | None]:
    """The numbers of the steps by their marks. Numbers that do not grow are none of steps: in
    ``execute_context_0(0)_generation_5(5)`` and ``batch=32`` they are counts.
    """
    numbers = [step_number(event.name) for event in chosen]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or (len(numbers) > 1 and len(set(known)) == 1):
        return [None] * len(numbers)
    return numbers


def _marked_steps(
    families: Mapping[str, Sequence[TraceEvent]], launches: Launches
) -> FoundSteps | None:
    """The steps by their marks: ranges that say by their name that they are steps. None without
    marks.

    A program may mark several kinds. The marks of PyTorch's profiler count before all others; else
    those that ``main_marks`` tells.
    """
    marks = {}
    for name, ranges in families.items():
        if ranges[0].kind is EventKind.STEP:
            marks[name] = ranges
    if not marks:
        return None
    of_profiler = family(f"{PROFILER_STEP}0")
    chosen = of_profiler if of_profiler in marks else main_marks(marks, launches)
    others = [ranges for name, ranges in marks.items() if name != chosen]
    return until_the_next(_steps_of_ranges(marks[chosen], "marks"), others, launches)


def _ranges_in_turn(
    ranges: Sequence[TraceEvent], launches: Launches, end: float
) -> FoundSteps | None:
    """The steps by ranges that repeat in turn, such as ``forward`` and ``Optimizer.step``, three
    times or more until the end: from one start to the next. None if none do so, or if much is
    launched outside.
    """
    candidates = [event for event in ranges if may_be_a_step(event.name)]
    for level in sequences(candidates)[:_DEEPEST]:
        numbers: dict[str, int] = {}
        names = [numbers.setdefault(family(event.name), len(numbers)) for event in level]
        period = repeating_part(np.array(names, dtype=np.int32))
        if period is None:
            continue
        starts = [level[index].start for index in period.starts]
        last_end = level[-1].end
        windows = _from_start_to_start(starts, last_end, end)
        since = launches.count(starts[0], end)
        if launches.count(starts[0], windows[-1].end) < _MOST * since:
            continue
        if since and not all(launches.count(each.start, each.end) for each in windows):
            continue
        in_turn = level[period.start : period.start + period.length]
        # A range may be that of a layer of a model.
        of_a_step = any(is_part_of_a_step(event.name) for event in in_turn)
        is_operation = level[-1].kind is EventKind.OPERATION
        if not of_a_step and (is_operation or not _exchange(windows, launches)):
            continue
        # Without launches, only time tells whether the ranges are most of the program.
        if not since and together_ns(level[period.start :]) < _HALF * (last_end - starts[0]):
            continue
        called = ", ".join(dict.fromkeys(family(event.name)[:80] for event in in_turn))
        taken = StepsTaken(how="range" if period.length == 1 else "ranges", name=called[:400])
        own = family(in_turn[0].name) if period.length == 1 else ""
        return FoundSteps(without_cut_step(windows, launches), taken, own)
    return None


def _from_start_to_start(starts: Sequence[float], last_end: float, end: float) -> list[StepWindow]:
    """The time from each start to the next one. The last one ends after the usual time, but not
    before ``last_end`` nor after ``end``.
    """
    windows = [StepWindow(start, following) for start, following in itertools.pairwise(starts)]
    usual_ns = statistics.median(window.end - window.start for window in windows)
    last = max(last_end, min(end, starts[-1] + usual_ns))
    return [*windows, StepWindow(starts[-1], last)]


def _launches_in_turn(
    operations: Iterable[TraceEvent], launches: Launches, begin: float, end: float
) -> FoundSteps | None:
    """The steps by the launches of kernels that repeat; None if none do so.

    The layers of a model repeat too. So each repetition must also exchange data with the device,
    wait for it, or update a model.
    """
    kernels = launches.kernels.between(begin, end)
    if not len(kernels.starts):
        return None
    candidates = [*_ends(launches.all_calls.between(begin, end), kernels), kernels]
    # Without the sites of the program: only times are needed here.
    around = _Around(outermost_operations(operations, Spans[CallSite]([])))
    parts = _parts_with_one_exchange(around, launches, begin, end)
    for calls in candidates:
        period = repeating_part(calls.names)
        if period is None or len(calls.names) - period.start < _LEAST_CALLS:
            continue
        begins = [around.start_of(float(calls.starts[index])) for index in period.starts]
        if len(set(begins)) < len(begins):
            continue  # one operation launches all of them
        windows = _from_start_to_start(begins, float(calls.starts[-1]) + 1, end)
        # One step that differs in the middle ends what repeats; those before it are steps too.
        if parts is not None and len(parts.windows) > len(windows):
            return parts
        if _exchange(windows, launches) and all(
            launches.count(window.start, window.end) for window in windows
        ):
            in_each = len(launches.kernels.between(windows[0].start, windows[0].end).starts)
            taken = StepsTaken(
                how="period", launches=in_each, may_be_parts=in_each <= _FEW_LAUNCHES
            )
            return FoundSteps(windows, taken)
    return parts


def _parts_with_one_exchange(
    around: _Around, launches: Launches, begin: float, end: float
) -> FoundSteps | None:
    """The steps by one exchange with the device that each of them has, where steps begin alike and
    end differently; None without.
    """
    calls = launches.all_calls.between(begin, end)
    exchanges = np.isin(calls.starts, launches.exchanges)
    parts = starts_of_parts(calls.names, np.unique(calls.names[exchanges]).tolist())
    if parts is None:
        return None
    begins = [around.start_of(float(calls.starts[index])) for index in parts]
    if len(set(begins)) < len(begins):
        return None  # one operation launches all of them
    windows = _from_start_to_start(begins, float(calls.starts[-1]) + 1, end)
    if not _exchange(windows, launches):
        return None
    counts = []
    for window in windows:
        counts.append(len(launches.kernels.between(window.start, window.end).starts))
    return FoundSteps(windows, StepsTaken(how="period", launches=int(statistics.median(counts))))


def _rounds_without_start_up(
    operations: Iterable[TraceEvent], launches: Launches, begin: float, end: float
) -> FoundSteps | None:
    """The rounds of a loop whose launches repeat and exchange nothing with the host. None without
    such a loop. None also if the loop is all that the program does: then the whole recording as one
    step tells as much.
    """
    kernels = launches.kernels.between(begin, end)
    rounds = rounds_of(kernels.names)
    if rounds is None:
        return None
    first, last = float(kernels.starts[0]), float(kernels.starts[-1])
    loop_begin = float(kernels.starts[rounds.start])
    loop_end = float(kernels.starts[min(rounds.end, len(kernels.starts) - 1)])
    if loop_end - loop_begin > (1 - _MUCH) * (last - first):
        return None
    around = _Around(outermost_operations(operations, Spans[CallSite]([])))
    begins = [around.start_of(float(kernels.starts[index])) for index in rounds.starts]
    if len(set(begins)) < len(begins):
        return None  # one operation launches all of them
    last_end = float(kernels.starts[rounds.end - 1]) + 1
    windows = _from_start_to_start(begins, last_end, end)
    taken = StepsTaken(how="period", launches=rounds.length, may_be_parts=True)
    return FoundSteps(windows, taken)


def _ends(calls: NamedCalls, kernels: NamedCalls) -> list[NamedCalls]:
    """The calls, and the same without the last ones, up to the last kernel: at the end the program
    or the profiler may wait once more, or read a result.
    """
    after_kernels = int(np.searchsorted(calls.starts, kernels.starts[-1], side="right"))
    last = len(calls.starts)
    ends = []
    for end in range(last, max(after_kernels, last - _MOST_AT_THE_END) - 1, -1):
        ends.append(NamedCalls(calls.starts[:end], calls.names[:end]))
    if after_kernels < last - _MOST_AT_THE_END:
        ends.append(NamedCalls(calls.starts[:after_kernels], calls.names[:after_kernels]))
    return ends


def _exchange(windows: Sequence[StepWindow], launches: Launches) -> bool:
    """Whether nearly all of these repetitions exchange something with the device."""
    exchanging = [each for each in windows if launches.exchanges_between(each.start, each.end)]
    return len(exchanging) >= _MOST_EXCHANGE * len(windows)


class _Around:
    """Finds the start of the operation that holds a moment."""

    def __init__(self, operations: Sequence[HostOperation]) -> None:
        self._operations = operations
        self._starts = np.array([operation.start for operation in operations])

    def start_of(self, moment: float) -> float:
        """When the operation began that made a call at this moment; the moment itself without."""
        after = int(np.searchsorted(self._starts, moment, side="right"))
        # Operations of other threads may begin in between.
        for operation in reversed(self._operations[max(0, after - 4) : after]):
            if operation.start <= moment < operation.end:
                return operation.start
        return moment


def steps_with_times(found: FoundSteps, launches: Launches, recorded: TimeRange) -> StepsTaken:
    """What was taken as the steps, with how much of the recording they are."""
    windows = found.windows
    first, last = windows[0], max(windows, key=_end_of)
    lengths_ns = [window.end - window.start for window in windows]
    pauses_ns = []
    for window, following in itertools.pairwise(windows):
        pauses_ns.append(max(0.0, following.start - window.end))
    inside = sum(launches.count(window.start, window.end) for window in windows)
    launched = len(launches.starts)
    return msgspec.structs.replace(
        found.taken,
        found=len(windows),
        before_ns=max(0.0, first.start - recorded[0]),
        after_ns=max(0.0, recorded[1] - last.end),
        recorded_ns=recorded[1] - recorded[0],
        between_ns=sum(pauses_ns),
        # Overlapping steps count a launch twice.
        outside=max(0.0, 1 - inside / launched) if launched else 0.0,
        shortest_ns=min(lengths_ns),
        longest_ns=max(lengths_ns),
    )


def _end_of(window: StepWindow) -> float:
    return window.end
