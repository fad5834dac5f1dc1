"""Whether T(n) bends: the slopes of both halves of the range of n, and an intercept below zero."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats, sen_slope, undisturbed_mask
from overhead.measure.fitting.spread import interval_of_mean
from overhead.results import Figure, Why, because


@dataclass(frozen=True)
class _BendRule:
    """When T(n) is no line. Stricter values accept a bent T(n); looser ones refuse a line with
    noise.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

    change: float = 0.5
    """Smallest change of slope that counts, in units of the wanted precision or of the figure's
    half-width if that is larger.
    """
    processes: int = 3
    """With fewer processes no bend is stated: the spread between two says little."""
    samples_per_n: int = 3
    """A process that takes fewer samples of an n has a wait of many ms, which may poll without
    being recognised.
    """
    upper_quantile: float = 0.995
    """Upper end of the interval of the mean change: a higher one needs more processes."""
    middle: float = 0.6
    """The n that parts the halves is at most this share of the top: a higher one leaves too short
    an upper half.
    """
    lower_from: float = 0.25
    """The lower half starts at this share of its end: a lower one takes in the first units, which
    may cost more.
    """
    negative_share: float = 0.01
    """An intercept below zero counts if it exceeds this share of the longest T(n); a smaller one
    may be an error.
    """


_RULE = _BendRule()


def slope_change(n: Floats, y: Floats) -> float | None:
    """How much steeper the times y are over the upper half of the range of n than over the lower
    half: the ratio of both slopes, minus 1. It is 0 for a line.

    None if a half has fewer than two n, if an n has too few samples, or if a slope is not above
    zero. n = 1 counts in neither half: a single unit may cost something else.
    """
    # Without interrupted samples; the n that are left, above 1, and how many samples each has.
    clear = undisturbed_mask(n, y)
    n = n[clear]
    y = y[clear]
    sizes, counts = np.unique(n[n > 1], return_counts=True)
    # A process with so few samples of an n has waits of many ms, which may poll unrecognised.
    if not sizes.size or counts.min() < _RULE.samples_per_n:
        return None
    largest_n = float(sizes.max())
    # Cut the range of n at the largest n that is at most 0.6 of the top: a larger one leaves too
    # short an upper half.
    middles = sizes[sizes <= _RULE.middle * largest_n]
    if not middles.size:
        return None

    # The n that parts the halves belongs to both.
    middle = float(middles.max())
    # From a quarter of the middle on: the first units may cost more than the later ones.
    least_n = _RULE.lower_from * middle
    in_lower = (n > 1) & (n >= least_n) & (n <= middle)
    in_upper = n >= middle
    lower_slope = sen_slope(n[in_lower], y[in_lower])
    upper_slope = sen_slope(n[in_upper], y[in_upper])
    if lower_slope is None or upper_slope is None or min(lower_slope, upper_slope) <= 0:
        return None
    return upper_slope / lower_slope - 1


def why_bent(changes: Sequence[float], precision: float) -> Why:
    """The reason that T(n) is not a line, from the ``slope_change`` of each process (by how much
    the upper half of the sizes of n is steeper); empty if it may be a line.

    The mean change must exceed half the ``precision`` (the wanted one, or the figure's relative
    half-width if that is larger), and its 99 % interval over the processes must not hold zero.
    """
    # Three: the spread between two processes says little.
    if len(changes) < _RULE.processes:
        return ""
    interval = interval_of_mean(changes, _RULE.upper_quantile)
    # A change counts beyond what the precision allows and beyond its own uncertainty.
    least = max(_RULE.change * precision, interval.half_width)
    if abs(interval.mean) <= least:
        return ""
    if interval.mean > 0:
        return because("upper-half-steeper", change=interval.mean)
    return because("upper-half-flatter", change=-interval.mean)


def why_intercept_too_low(fixed: Figure, longest: float) -> Why:
    """The reason that T(n) is not a line, because its intercept ``fixed`` is clearly below zero; ''
    if it may be one. ``longest``: the longest T(n), ns, to which the intercept is compared.

    No wait takes less than no time: an intercept below zero shows that T(n) is flatter at small n.
    """
    if fixed.value is None or fixed.high is None:
        return ""
    # Its whole interval lies below zero, and it is not tiny beside the longest T(n).
    if fixed.high >= 0 or -fixed.value <= _RULE.negative_share * longest:
        return ""
    return because("intercept-below-zero", intercept_us=fixed.value / 1e3)
