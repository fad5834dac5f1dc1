"""Two speeds: whether the rounds fall into two groups that one value cannot describe, and the group
of each round.

The canary is a fixed loop that is timed in every round: it shows the processor's speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fitting.line import MAD, Floats, Mask
from overhead.results import Figure, Reason, because

Owners = NDArray[np.intp]
"""For each value the number of its process."""


@dataclass(frozen=True)
class SpeedRule:
    """When rounds have two speeds. Stricter values give one value for both; looser ones split noise
    in two.
    """

    ratio: float = 1.10
    """Smallest ratio between the medians of two groups if some process has rounds in both."""
    ratio_of_processes: float = 1.4
    """The same if no process has rounds in both: a few processes may differ by chance."""
    gap_sigmas: float = 8.0
    """Smallest gap between two groups, in units of the larger spread within them."""
    share: float = 0.10
    """Smallest share of the rounds in a group."""
    canary_share: float = 0.125
    """Smallest share of the rounds at each of the canary's two speeds; fewer slow rounds are an
    interruption.
    """
    rounds: int = 4
    """Smallest number of rounds in a group: with fewer, their spread is unknown."""
    rounds_of_process: int = 3
    """Smallest number of rounds at a speed for a process to count at that speed: fewer give no
    slope.
    """
    canary_change: float = 0.05
    """A canary further than this share from the median of the run is mentioned in the rule of a
    figure.
    """


SPEEDS = SpeedRule()
_MANY_DIGITS_US = 1e4


@dataclass(frozen=True)
class SpeedSplit:
    """Which rounds are of the slower group, and by which values: those of the ``rounds`` or of the
    ``canary``.
    """

    slow: Mask
    by: str


def two_groups(values: Floats, owners: Owners, least: float = SPEEDS.share) -> Mask | None:
    """For each value, True in the upper of two groups; None if the values are one group.

    ``owners``: the process of each value; ``least``: the smallest share of a group. The cut
    minimises the variance of the logarithms within both groups: N. Otsu, A threshold selection
    method from gray-level histograms, IEEE Trans. SMC 9 (1979) 62. Values outside the 5th and 95th
    percentile are clipped, so that outliers do not decide.
    """
    logs = np.log(np.maximum(values, 1e-9))
    clipped = np.sort(np.clip(logs, *np.percentile(logs, [5, 95]))) if logs.size else logs
    count = clipped.size
    if count < 2 * SPEEDS.rounds or np.count_nonzero(values <= 0) > count / 20:
        return None
    sizes = np.arange(1, count)
    sums = np.cumsum(clipped)[:-1]
    between = (
        (sums / sizes - (clipped.sum() - sums) / (count - sizes)) ** 2 * sizes * (count - sizes)
    )
    cut = int(np.argmax(between)) + 1
    low, high = np.split(np.sort(logs), [cut])
    gap = float(np.median(high) - np.median(low))
    if min(low.size, high.size) < max(SPEEDS.rounds, least * count):
        return None
    if gap < SPEEDS.gap_sigmas * max(_spread(low), _spread(high)):
        return None
    upper = np.asarray(logs > (np.median(low) + np.median(high)) / 2)
    shares = np.array([upper[owners == owner].mean() for owner in np.unique(owners)])
    switched = np.any((shares > SPEEDS.share) & (shares < 1 - SPEEDS.share))
    return upper if gap >= np.log(SPEEDS.ratio if switched else SPEEDS.ratio_of_processes) else None


def split_speeds(values: Floats, canaries: Floats, owners: Owners) -> SpeedSplit | None:
    """Which rounds ran at the slower of two speeds, by their values or, if the figure follows it,
    by the canary.

    ``values``: one per round of all processes; ``canaries``: ns, same length or empty; ``owners``:
    their processes. None for one speed.
    """
    own = two_groups(values, owners)
    if own is not None:
        return SpeedSplit(own, "rounds")
    slow = (
        two_groups(canaries, owners, SPEEDS.canary_share) if canaries.size == values.size else None
    )
    if slow is None:
        return None
    upper, lower = values[slow], values[~slow]
    low, high = float(np.median(lower)), float(np.median(upper))
    error = float(_spread(upper) / np.sqrt(upper.size) + _spread(lower) / np.sqrt(lower.size))
    if high < SPEEDS.ratio * low or high - low < SPEEDS.gap_sigmas * error:
        return None
    return SpeedSplit(slow, "canary")


def both_speeds(fast: Figure, slow: Figure, speeds: SpeedSplit, processes: int) -> Figure:
    """A ``bimodal`` figure: the value at the speed of most rounds, an interval that covers both,
    and both values.
    """
    assert fast.value is not None
    assert slow.value is not None
    most = slow.value if speeds.slow.mean() > 0.5 else fast.value
    ends = [v for e in (fast, slow) for v in (e.value, e.low, e.high) if v is not None]
    rule = because("rounds-of-two-speeds", processes=processes, slow_share=speeds.slow.mean())
    return Figure(
        name=fast.name,
        value=most,
        low=min(ends),
        high=max(ends),
        status="bimodal",
        reason=_two_speeds(fast.value / 1e3, slow.value / 1e3, speeds.by),
        rule=rule,
        processes=processes,
        modes=[fast.value, slow.value],
    )


def _two_speeds(fast_us: float, slow_us: float, by: str) -> Reason:
    """Both values. Those of many digits have codes of their own, since they are written in another
    way.
    """
    if fast_us >= _MANY_DIGITS_US:
        return because("two-long-speeds", fast_us=fast_us, slow_us=slow_us, by=by)
    if slow_us >= _MANY_DIGITS_US:
        return because("two-speeds-one-long", fast_us=fast_us, slow_us=slow_us, by=by)
    return because("two-speeds", fast_us=fast_us, slow_us=slow_us, by=by)


def canary_changed(canaries: Floats) -> Mask:
    """For each canary time, True if it is further than ``SPEEDS.canary_change`` from the median;
    empty for none.
    """
    return (
        np.abs(canaries / np.median(canaries) - 1) > SPEEDS.canary_change
        if canaries.size
        else canaries.astype(bool)
    )


def _spread(values: Floats) -> float:
    """Standard deviation from the median absolute deviation; half the range if there are few
    values.
    """
    if values.size < 2 * SPEEDS.rounds:
        return float(np.ptp(values)) / 2
    return MAD * float(np.median(np.abs(values - np.median(values))))
