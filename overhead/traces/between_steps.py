"""What passes between the steps of a recording, where the program does not mark all it does. Pure.

A program may mark its training steps and load data between the marks. Then a step alone may be
bound by its device, and the program by what runs between the steps.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from overhead.traces.events import TraceEvent
from overhead.traces.marks import family
from overhead.traces.named_ranges import is_of_program
from overhead.traces.spans import start_of
from overhead.traces.step_windows import StepWindow
from overhead.traces.steps_taken import StepsTaken
from overhead.traces.trace import DeviceWork, TimeRange
from overhead.traces.work_times import WorkTimes

_MUCH = 0.02
"""Ranges are looked for only if the device is idle between the steps for this share of the time.
Chosen, not measured; less is not said.
"""
_MOST_NAME = 200


def with_time_between(
    taken: StepsTaken,
    windows: Sequence[StepWindow],
    work: Iterable[DeviceWork],
    ranges: Sequence[TraceEvent],
) -> StepsTaken:
    """The steps, with how long no device works between them, and the range of the program that
    takes most of that time. ``windows``: the steps. ``ranges``: of the host, in any order.
    """
    gaps = _gaps(windows)
    whole_ns = max(window.end for window in windows) - windows[0].start
    busy = WorkTimes((piece.start, piece.end) for piece in work)
    idle_ns = sum(end - start - busy.busy_between(start, end) for start, end in gaps)
    if idle_ns < _MUCH * whole_ns:
        return taken
    most, most_ns = _longest_in(gaps, ranges)
    return msgspec.structs.replace(
        taken,
        idle_between_ns=idle_ns,
        whole_ns=whole_ns,
        most_between=most[:_MOST_NAME],
        most_between_ns=most_ns,
    )


def _gaps(windows: Sequence[StepWindow]) -> list[TimeRange]:
    """The times between two steps; none where steps overlap."""
    gaps = []
    for window, following in itertools.pairwise(windows):
        if following.start > window.end:
            gaps.append((window.end, following.start))
    return gaps


def _longest_in(gaps: Sequence[TimeRange], ranges: Iterable[TraceEvent]) -> tuple[str, float]:
    """The name of the ranges in these times that take longest together, and how long: the outer
    ones where some lie in others. '' without any.
    """
    ordered = sorted(ranges, key=start_of)
    starts = np.array([event.start for event in ordered])
    length_by_name: dict[str, float] = defaultdict(float)
    shown: dict[str, str] = {}
    for begin, end in gaps:
        first, after = np.searchsorted(starts, [begin, end])
        for event in ordered[first:after]:
            # One that lasts into the next step is that of another thread.
            if event.end <= end and is_of_program(event.name):
                name = family(event.name)
                length_by_name[name] += event.end - event.start
                shown.setdefault(name, event.name)
    most = max(length_by_name, key=length_by_name.__getitem__, default="")
    return shown.get(most, ""), length_by_name.get(most, 0.0)
