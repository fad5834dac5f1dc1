"""Which marks of a program are its steps, and when these end. Pure."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from overhead.traces.events import TraceEvent
from overhead.traces.launches import Launches
from overhead.traces.named_ranges import together_ns
from overhead.traces.step_windows import FoundSteps, StepWindow

_LITTLE = 0.02
"""A share of launches that changes no result. Chosen, not measured."""
_PART = 0.1
"""Marks are steps only if they hold this share of the launches, where others do. Chosen, not
measured: a program that trains for most of the time and evaluates now and then has both above.
"""
_MOST_INSIDE = 0.9
"""Marks are parts of others if so many of them lie in these. Chosen, not measured."""
_LEAST_OF_LAST = 0.9
"""The last step is whole if it launches so much as the others. Chosen, not measured."""
_LEAST_STEPS = 3
"""Of fewer steps nobody knows which one is the usual one."""


def main_marks(marks: Mapping[str, Sequence[TraceEvent]], launches: Launches) -> str:
    """The family of marks that are the steps: those that hold launches, lie in no others, and are
    most.

    A program may mark batches inside of steps, and also steps of training beside steps of
    evaluation, which are fewer.
    """
    known = _with_launches(marks, launches)
    outer = []
    for name, ranges in known.items():
        around = [others for other, others in known.items() if other != name]
        if not any(_lies_in(ranges, others) for others in around):
            outer.append(name)
    candidates = outer or list(known)
    return max(candidates, key=lambda name: (len(known[name]), together_ns(known[name])))


def _with_launches(
    marks: Mapping[str, Sequence[TraceEvent]], launches: Launches
) -> Mapping[str, Sequence[TraceEvent]]:
    """The marks that hold a part of the launches; all of them if none do."""
    least = _PART * len(launches.starts)
    found = {}
    for name, ranges in marks.items():
        held = sum(launches.count(event.start, event.end) for event in ranges)
        if held >= least:
            found[name] = ranges
    return found or marks


def _lies_in(ranges: Sequence[TraceEvent], around: Sequence[TraceEvent]) -> bool:
    """Whether these ranges are parts of those ``around``."""
    starts = [event.start for event in around]
    inside = 0
    for event in ranges:
        index = bisect.bisect_right(starts, event.start) - 1
        if index >= 0 and event.end <= around[index].end:
            inside += 1
    if inside < _MOST_INSIDE * len(ranges):
        return False
    # Two names for the same ranges: the longer ones lie around the others.
    return together_ns(around) > together_ns(ranges)


def until_the_next(
    found: FoundSteps, others: Iterable[Sequence[TraceEvent]], launches: Launches
) -> FoundSteps:
    """The steps, each until the next one starts, if the program launches work between the marks:
    an engine may mark its model alone, and sample the next tokens after it.

    ``others``: marks of other kinds; what they hold is of other steps. A pause that is longer than
    a step stays outside: then the program did something else.
    """
    windows = found.windows
    if len(windows) < 2:
        return found
    begins = _starts_outside(others, windows)
    ends = _next_starts(windows, begins)
    inside = sum(launches.count(window.start, window.end) for window in windows)
    behind = [launches.count(window.end, end) for window, end in zip(windows, ends, strict=False)]
    if sum(behind) <= _LITTLE * (inside + sum(behind)):
        return found
    usual_ns = statistics.median(window.end - window.start for window in windows)
    longer = []
    pauses_ns = []
    for window, end in zip(windows, ends, strict=False):
        pause_ns = end - window.end
        if 0 <= pause_ns <= usual_ns:
            pauses_ns.append(pause_ns)
            window = window._replace(end=end)
        longer.append(window)
    if not pauses_ns:
        return found
    # How long the last one goes on after its mark is not known; it goes on as long as the others.
    last = windows[-1]
    longer.append(last._replace(end=last.end + statistics.median(pauses_ns)))
    taken = msgspec.structs.replace(found.taken, joined=True)
    return dataclasses.replace(found, windows=without_cut_step(longer, launches), taken=taken)


def without_cut_step(windows: Sequence[StepWindow], launches: Launches) -> Sequence[StepWindow]:
    """The steps, without the last one if it launches less than the others: a recording may end
    before the last step does.
    """
    if len(windows) < _LEAST_STEPS:
        return windows
    *others, last = windows
    usual = statistics.median(launches.count(each.start, each.end) for each in others)
    if launches.count(last.start, last.end) >= _LEAST_OF_LAST * usual:
        return windows
    return others


def _starts_outside(
    others: Iterable[Sequence[TraceEvent]], windows: Sequence[StepWindow]
) -> list[float]:
    """When marks of other kinds start which lie in none of the steps."""
    starts = [window.start for window in windows]
    begins = []
    for ranges in others:
        for event in ranges:
            index = bisect.bisect_right(starts, event.start) - 1
            if index < 0 or event.start >= windows[index].end:
                begins.append(event.start)
    return sorted(begins)


def _next_starts(windows: Sequence[StepWindow], begins: Sequence[float]) -> list[float]:
    """For each step but the last one, when the next mark starts, of whatever kind."""
    ends = []
    for window, following in itertools.pairwise(windows):
        end = following.start
        index = bisect.bisect_left(begins, window.end)
        if index < len(begins):
            end = min(end, begins[index])
        ends.append(end)
    return ends
