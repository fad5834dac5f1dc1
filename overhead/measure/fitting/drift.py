"""Whether a cost changes in the course of a process: its trend over the rounds (the equal parts of
its time).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats, sen_slope
from overhead.measure.fitting.one_process import Process
from overhead.numerics import student_t_quantile


@dataclass(frozen=True)
class _DriftRule:
    """When a cost drifts. Stricter values miss a drift; looser ones find one in noise."""

    rounds: int = 6
    """A process with fewer rounds shows no trend."""
    processes: int = 3
    upper_quantile: float = 0.9975
    """Upper end of the interval of the mean change over the processes: a higher one needs more
    processes.
    """
    most_medians: float = 1.5
    """A process's trend counts as at most this multiple of the median trend: one outlier must not
    hide the others.
    """


_RULE = _DriftRule()

ByRound = Sequence[Mapping[int, float]]
"""For each process a value by the number of its round."""


@dataclass(frozen=True)
class Drift:
    """The value in the first and in the last third of a process, in the unit of the values: means
    over processes.
    """

    early: float
    late: float


def find_drift(values: ByRound, least: float) -> Drift | None:
    """The trend of positive values over the rounds of a process; None unless it is clear in all
    processes together.

    The trend of one process is the Theil-Sen slope of the logarithms times the number of rounds. It
    is clear if the mean trend exceeds ``least``, and if its 99.5 % interval over the processes does
    not hold zero.
    """
    able = [own for own in values if len(own) >= _RULE.rounds and min(own.values()) > 0]
    count = len(able)
    if count < _RULE.processes:
        return None
    changes = np.array([_trend(own) for own in able])
    largest = _RULE.most_medians * abs(float(np.median(changes)))
    changes = np.clip(changes, -largest, largest)
    mean, error = float(changes.mean()), float(changes.std(ddof=1)) / math.sqrt(count)
    if abs(mean) <= max(least, student_t_quantile(_RULE.upper_quantile, count - 1) * error):
        return None
    ends = np.array([_ends(own) for own in able]).mean(axis=0)
    return Drift(float(ends[0]), float(ends[1]))


def can_show_drift(processes: Sequence[Process]) -> bool:
    """Whether enough processes have enough rounds for a trend."""
    return sum(len(process.rounds) >= _RULE.rounds for process in processes) >= _RULE.processes


def _trend(own: Mapping[int, float]) -> float:
    """The change of ln(value) from the first to the last round of a process."""
    numbers: Floats = np.array(list(own), dtype=np.float64)
    return (sen_slope(numbers, np.log(np.array(list(own.values())))) or 0.0) * float(
        np.ptp(numbers)
    )


def _ends(own: Mapping[int, float]) -> tuple[float, float]:
    """The medians of the first and of the last third of the rounds."""
    ordered = [own[number] for number in sorted(own)]
    third = len(ordered) // 3
    return float(np.median(ordered[:third])), float(np.median(ordered[-third:]))


def find_drift_beyond_canary(values: ByRound, canaries: ByRound, least: float) -> Drift | None:
    """The drift of values that the canary of the same rounds does not explain; None if there is
    none.

    The canary is a fixed loop: its time shows the processor's speed. Both the values and the values
    divided by their canary must drift: a cost that the device bounds does not follow the canary, so
    the division alone would give it the canary's drift.
    """
    found = find_drift(values, least)
    if found is None:
        return None
    both = zip(values, canaries, strict=True)
    beside = [{i: v / own[i] for i, v in each.items() if own.get(i)} for each, own in both]
    return found if not any(beside) or find_drift(beside, least) else None
