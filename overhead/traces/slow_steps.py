"""Steps that take far longer than the others: a first one that compiles or loads, a pause in
between. No mean may hold them, so they are told apart. Pure; ns.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from overhead.traces.trace import StepTrace

_SLOW = 3
"""A step is slow from so many times the median of the others on. Chosen, not measured: a step of a
model that is trained on inputs of many lengths varies less, one that compiles takes 100 times as
long.
"""
_FIRST_SHARE = 1 / 3
"""Of the steps at most so many are left out at the beginning. Chosen, not measured."""
_OTHER_SHARE = 1 / 8
"""Of the steps at most so many are slow by chance. More of them are a part of the program, such as
an update after every fourth step. Chosen, not measured.
"""


class StepLength(NamedTuple):
    """How long a step takes beside the steps around it. ``on_host``: from its start to its end on
    the host, without its waits; ``whole``: until its device work has ended, from the end of that of
    the step before.
    """

    on_host: float
    whole: float


def step_times(steps: Sequence[StepTrace]) -> list[StepLength]:
    """How long each step takes. Steps are in order."""
    times = []
    ended = -math.inf
    for step in steps:
        own_end = max([step.end, *(work.end for work in step.device)])
        # The device may work on something from before the first step.
        begin = max(step.start, ended, min(step.busy_before, own_end))
        waits_ns = sum(call.no_work for call in step.calls)
        times.append(StepLength(step.end - step.start - waits_ns, max(0.0, own_end - begin)))
        ended = max(ended, own_end)
    return times


def slow_steps(steps: Sequence[StepTrace]) -> list[int]:
    """The positions of the steps that take far longer than the others: all at the beginning, and
    such that are rare. Nothing where they are so many that they are usual.
    """
    # Steps without device work are none of these, where others have some.
    positions = [index for index, step in enumerate(steps) if step.device]
    positions = positions or [*range(len(steps))]
    found = _slow([steps[index] for index in positions])
    return [positions[index] for index in found]


def _slow(steps: Sequence[StepTrace]) -> list[int]:
    """The positions of the slow ones of these steps."""
    if len(steps) < 2:
        return []
    times = step_times(steps)
    whole_ns = [time.whole for time in times]
    host_ns = [time.on_host for time in times]
    # Of two steps the shorter one is the usual one.
    usual_ns = statistics.median_low(whole_ns)
    usual_host_ns = statistics.median_low(host_ns)
    slow = []
    for index, time in enumerate(times):
        # A host that is slow while the device has enough to do slows no step.
        far_longer = time.whole > _SLOW * usual_ns
        if far_longer or (time.on_host > _SLOW * usual_host_ns and time.on_host > usual_ns):
            slow.append(index)
    first = 0
    while first in slow and first + 1 <= max(1, _FIRST_SHARE * len(steps)):
        first += 1
    later = [index for index in slow if index >= first]
    if len(later) > max(1, _OTHER_SHARE * len(steps)):
        # Then such steps are usual, and only a first one that is far longer than these is not.
        longest_ns = max(whole_ns[index] for index in later)
        return [index for index in range(first) if whole_ns[index] > _SLOW * longest_ns]
    return [*range(first), *later]
