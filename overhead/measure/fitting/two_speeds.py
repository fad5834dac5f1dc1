"""Two speeds: whether the rounds fall into two groups that one value cannot describe, and the group
of each round.

The reference loop is a fixed loop that is timed in every round: it shows the processor's speed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fitting.line import MAD, Floats, Mask
from overhead.measure.fitting.spread import median
from overhead.results import Figure, Reason, because

Owners = NDArray[np.intp]
"""For each value the number of its process."""


@dataclass(frozen=True)
class SpeedRule:
    """When rounds have two speeds. Stricter values give one value for both; looser ones split noise
    in two.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    ratio: float = 1.10
    """Smallest ratio between the medians of two groups if some process has rounds in both."""
    ratio_of_processes: float = 1.4
    """The same if no process has rounds in both: a few processes may differ by chance."""
    gap_sigmas: float = 8.0
    """Smallest gap between two groups, in units of the larger spread within them."""
    share: float = 0.10
    """Smallest share of the rounds in a group."""
    reference_share: float = 0.125
    """Smallest share of the rounds at each of the reference loop's two speeds; fewer slow rounds
    are an interruption.
    """
    rounds: int = 4
    """Smallest number of rounds in a group: with fewer, their spread is unknown."""
    rounds_of_process: int = 3
    """Smallest number of rounds at a speed for a process to count at that speed: fewer give no
    slope.
    """
    reference_change: float = 0.05
    """A reference loop further than this share from the median of the run is mentioned in the rule
    of a figure.
    """


SPEEDS = SpeedRule()
_MANY_DIGITS_US = 1e4
"""Costs from here on are written without a fraction, so they have a sentence of their own."""


@dataclass(frozen=True)
class SpeedSplit:
    """Which rounds are of the slower group, and by which values: those of the ``rounds`` or of the
    reference loop (``canary``).
    """

    slow: Mask
    by: str


def two_groups(values: Floats, owners: Owners, least: float = SPEEDS.share) -> Mask | None:
    """Whether positive values, one per round, fall into two groups that are clearly apart, as where
    a machine has two speeds: for each value, True in the upper group; None if the values are one
    group.

    ``owners``: the process of each value; ``least``: the smallest share of a group. The groups must
    be further apart if no process has values of both: a few processes may differ by chance.
    """
    count = values.size
    not_positive = np.count_nonzero(values <= 0)
    # Noise may make a few slopes zero or less: up to one in twenty, which count as the lowest
    # values.
    if count < 2 * SPEEDS.rounds or not_positive > count / 20:
        return None
    # In logarithms a gap is a ratio. Clipped, so that outliers do not decide where the cut is.
    logs = np.log(np.maximum(values, 1e-9))
    lowest, highest = np.percentile(logs, [5, 95])
    clipped = np.sort(np.clip(logs, lowest, highest))
    # Both groups in logarithms, with their true values.
    low, high = np.split(np.sort(logs), [_best_cut(clipped)])

    # The smaller group must be no accident, and the gap wide against the scatter in the groups.
    smaller_group = min(low.size, high.size)
    if smaller_group < max(SPEEDS.rounds, least * count):
        return None
    low_median = np.median(low)
    high_median = np.median(high)
    gap = float(high_median - low_median)
    larger_spread = max(_spread(low), _spread(high))
    if gap < SPEEDS.gap_sigmas * larger_spread:
        return None

    # A value belongs to the nearer median. The ratio of the medians must be large enough too.
    upper = np.asarray(logs > (low_median + high_median) / 2)
    # 1.4, or 1.1 where a process was seen at both speeds.
    least_ratio = SPEEDS.ratio_of_processes
    if _some_process_has_both(upper, owners):
        least_ratio = SPEEDS.ratio
    if gap < np.log(least_ratio):
        return None
    return upper


def _best_cut(ordered: Floats) -> int:
    """Where to cut ordered values into two groups: how many of them belong to the lower one.

    The cut minimises the variance within both groups, which is where the variance between them is
    largest: N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9
    (1979) 62.
    """
    count = ordered.size
    # For each cut the size of the lower group and the means below and above it.
    sizes = np.arange(1, count)
    sums = np.cumsum(ordered)[:-1]
    mean_below = sums / sizes
    mean_above = (ordered.sum() - sums) / (count - sizes)
    # The variance between the groups, times the square of the count.
    between = (mean_below - mean_above) ** 2 * sizes * (count - sizes)
    return int(np.argmax(between)) + 1


def _some_process_has_both(upper: Mask, owners: Owners) -> bool:
    """Whether some process switched: it has more than a few values in either group."""
    for owner in np.unique(owners):
        share = upper[owners == owner].mean()
        if SPEEDS.share < share < 1 - SPEEDS.share:
            return True
    return False


def split_speeds(values: Floats, reference: Floats, owners: Owners) -> SpeedSplit | None:
    """Which rounds ran at the slower of two speeds, by their own values or, if these follow it, by
    the reference loop, which shows the processor's speed. None for one speed.

    ``values``: of the figure, one per round of all processes; ``reference``: ns, same length or
    empty; ``owners``: the process of each round.
    """
    by_values = two_groups(values, owners)
    if by_values is not None:
        return SpeedSplit(by_values, "rounds")
    # Noise may hide two speeds in the values that the reference loop shows clearly.
    # Not where a round lacks its loop: ``reference`` is then empty.
    if reference.size != values.size:
        return None
    slow = two_groups(reference, owners, SPEEDS.reference_share)
    if slow is None:
        return None

    # The figure must follow the reference loop: its own values at both speeds are clearly apart.
    upper = values[slow]
    lower = values[~slow]
    low = median(lower)
    high = median(upper)
    # The standard error of the mean of a group stands for that of its median.
    error_of_low = _spread(lower) / np.sqrt(lower.size)
    error_of_high = _spread(upper) / np.sqrt(upper.size)
    least_gap = SPEEDS.gap_sigmas * float(error_of_high + error_of_low)
    if high < SPEEDS.ratio * low or high - low < least_gap:
        return None
    return SpeedSplit(slow, "canary")


def both_speeds(fast: Figure, slow: Figure, speeds: SpeedSplit, processes: int) -> Figure:
    """The ``bimodal`` figure from its values at both speeds: the value at the speed of most rounds,
    an interval that covers both, and both values as ``modes``. ``processes``: how many the rounds
    are from.
    """
    assert fast.value is not None
    assert slow.value is not None
    slow_share = speeds.slow.mean()
    # The interval goes from the lowest to the highest end of both.
    ends = [fast.value, fast.low, fast.high, slow.value, slow.low, slow.high]
    known_ends = [end for end in ends if end is not None]
    rule = because("rounds-of-two-speeds", processes=processes, slow_share=slow_share)
    return Figure(
        name=fast.name,
        value=slow.value if slow_share > 0.5 else fast.value,
        low=min(known_ends),
        high=max(known_ends),
        status="bimodal",
        reason=_two_speeds(fast.value / 1e3, slow.value / 1e3, speeds.by),
        rule=rule,
        processes=processes,
        modes=[fast.value, slow.value],
    )


def _two_speeds(fast_us: float, slow_us: float, by: str) -> Reason:
    """The reason of a ``bimodal`` figure, with both values in us. Those of many digits have codes
    of their own, since their sentences write them without a fraction. ``by``: by which values the
    rounds were split.
    """
    # Times of 10 ms and more.
    if fast_us >= _MANY_DIGITS_US:
        return because("two-long-speeds", fast_us=fast_us, slow_us=slow_us, by=by)
    if slow_us >= _MANY_DIGITS_US:
        return because("two-speeds-one-long", fast_us=fast_us, slow_us=slow_us, by=by)
    return because("two-speeds", fast_us=fast_us, slow_us=slow_us, by=by)


def reference_changed(times: Floats) -> Mask:
    """For each time of the reference loop (fixed work), True if the processor then ran at another
    speed than usual: it is further than ``SPEEDS.reference_change`` from the median. Empty for
    none.
    """
    if not times.size:
        return times.astype(bool)
    change = np.abs(times / np.median(times) - 1)
    return np.asarray(change > SPEEDS.reference_change)


def _spread(values: Floats) -> float:
    """How far the values of a group scatter: their standard deviation, estimated from the median
    absolute deviation, which outliers do not widen; half the range if there are few values.
    """
    # With few values a median of deviations is too uncertain.
    if values.size < 2 * SPEEDS.rounds:
        return float(np.ptp(values)) / 2
    deviations = np.abs(values - np.median(values))
    return MAD * median(deviations)
