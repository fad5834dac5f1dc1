"""Whether a cost changes in the course of a process: its trend over the rounds (the equal parts of
its time).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats, sen_slope
from overhead.measure.fitting.one_process import Process
from overhead.measure.fitting.spread import interval_of_mean, median, without_outliers


@dataclass(frozen=True)
class _DriftRule:
    """When a cost drifts. Stricter values miss a drift; looser ones find one in noise.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

    rounds: int = 6
    """A process with fewer rounds shows no trend."""
    processes: int = 3
    """Fewer processes show no drift: the spread between two says little."""
    upper_quantile: float = 0.9975
    """Upper end of the interval of the mean change over the processes: a higher one needs more
    processes.
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
    """Whether positive values rise or fall over the rounds, in all processes together: the means of
    the first and of the last third if they clearly do, else None.

    The trend of one process is the Theil-Sen slope of the logarithms times the number of rounds. It
    is clear if the mean trend exceeds ``least``, and if its 99.5 % interval over the processes does
    not hold zero.
    """
    # Only processes with enough rounds, all of a value above zero (the logarithm needs that).
    long_enough: list[Mapping[int, float]] = []
    for by_round in values:
        all_positive = all(value > 0 for value in by_round.values())
        if len(by_round) >= _RULE.rounds and all_positive:
            long_enough.append(by_round)
    if len(long_enough) < _RULE.processes:
        return None

    # Rows: processes; columns: the first and the last third.
    trends = np.array([_trend(by_round) for by_round in long_enough])
    # An outlier is clipped, so that one process does not hide the others.
    # ``interval_of_mean``: the mean, and half the width of its interval by Student's t.
    interval = interval_of_mean(without_outliers(trends), _RULE.upper_quantile)
    if abs(interval.mean) <= max(least, interval.half_width):
        return None

    ends = np.array([_first_and_last_third(by_round) for by_round in long_enough])
    early, late = ends.mean(axis=0)
    return Drift(float(early), float(late))


def can_show_drift(processes: Sequence[Process]) -> bool:
    """Whether enough processes have enough rounds for a trend."""
    long_enough = [process for process in processes if len(process.rounds) >= _RULE.rounds]
    return len(long_enough) >= _RULE.processes


def _trend(by_round: Mapping[int, float]) -> float:
    """The change of ln(value) from the first to the last round of a process, which is about its
    relative change: the robust slope over the rounds, times the range of their numbers.
    """
    numbers: Floats = np.array(list(by_round), dtype=np.float64)
    values = np.array(list(by_round.values()))
    logs = np.log(values)
    # The Theil-Sen slope, the median of the slopes of all pairs; None with a single round.
    slope = sen_slope(numbers, logs) or 0.0
    return slope * float(np.ptp(numbers))


def _first_and_last_third(by_round: Mapping[int, float]) -> list[float]:
    """The median over the first third of the rounds, and that over the last third."""
    ordered = [by_round[number] for number in sorted(by_round)]
    third = len(ordered) // 3
    return [median(ordered[:third]), median(ordered[-third:])]


def find_drift_beyond_reference(values: ByRound, reference: ByRound, least: float) -> Drift | None:
    """The drift of values over the rounds that the processor's speed does not explain; None if
    there is none. ``reference``: by round the time of the reference loop, a fixed loop which shows
    that speed.

    Both the values and the values divided by their reference loop must drift. A cost that the
    device bounds does not follow the reference loop, so the division alone would give it the drift
    of the processor.
    """
    drift = find_drift(values, least)
    if drift is None:
        return None

    # By process and round, the value over its reference loop, where that was timed.
    relative: list[dict[int, float]] = []
    for by_round, times in zip(values, reference, strict=True):
        relative_by_round: dict[int, float] = {}
        for number, value in by_round.items():
            time = times.get(number)
            if time:
                relative_by_round[number] = value / time
        relative.append(relative_by_round)
    # Without a reference loop in any round, the values alone decide.
    if any(relative) and find_drift(relative, least) is None:
        return None
    return drift
