"""Whether T(n) bends: the slopes of both halves of the ladder, and an intercept below zero."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from overhead.measure.fitting.line import Floats, sen_slope, undisturbed
from overhead.results import Figure

_MIN_CHANGE = 0.5
"""Smallest change of slope that counts, in units of the target or of the figure's half-width, the larger of both."""
_MIN_PROCESSES = 3
_MIN_SAMPLES_PER_RUNG = 3
"""A process that takes fewer samples of an n has a wait of many ms, which may poll without being recognised."""
_UPPER_QUANTILE = 0.995
"""Upper end of the interval of the mean change."""
_MIDDLE = (0.1, 0.6)
"""The rung that parts the halves lies between these shares of the top; above a queue's knee there may be none."""
_LOWER_FROM = 0.25
"""The lower half starts at this share of its end: the first units may cost something else."""
_MIN_NEGATIVE_SHARE = 0.01
"""An intercept below zero counts if it exceeds this share of the longest T(n)."""


def slope_change(n: Floats, y: Floats) -> float | None:
    """The slope of y over the upper half of the ladder divided by that over the lower half, minus 1.

    None if a half has fewer than two rungs, if a rung has too few samples, or
    if a slope is not above zero. n = 1 counts in neither half.
    """
    clear = undisturbed(n, y)
    n, y = n[clear], y[clear]
    rungs, counts = np.unique(n[n > 1], return_counts=True)
    if rungs.size and counts.min() < _MIN_SAMPLES_PER_RUNG:
        return None
    top = float(rungs.max()) if rungs.size else 0.0
    middles = rungs[(rungs >= _MIDDLE[0] * top) & (rungs <= _MIDDLE[1] * top)]
    if not middles.size:
        return None
    middle = float(middles.max())
    below = (n > 1) & (n >= _LOWER_FROM * middle) & (n <= middle)
    lower, upper = sen_slope(n[below], y[below]), sen_slope(n[n >= middle], y[n >= middle])
    return upper / lower - 1 if lower and upper and min(lower, upper) > 0 else None


def bend(changes: Sequence[float], precision: float) -> str:
    """Why T(n) is not a line, in words, from the ``slope_change`` of each process; empty if it may be one.

    The mean change must exceed half the ``precision`` (the target, or the figure's relative half-width if that is
    larger), and its 99 % interval over the processes must not hold zero.
    """
    from scipy.special import stdtrit

    count = len(changes)
    if count < _MIN_PROCESSES:
        return ""
    mean, error = float(np.mean(changes)), float(np.std(changes, ddof=1)) / math.sqrt(count)
    if abs(mean) <= max(_MIN_CHANGE * precision, float(stdtrit(count - 1, _UPPER_QUANTILE)) * error):
        return ""
    return f"the slope of the upper half of the ladder differs by {mean:+.1%} from that of the lower half"


def below_zero(fixed: Figure, longest: float) -> str:
    """Why T(n) is not a line, in words, from its intercept; empty if it may be one.

    ``longest``: the longest T(n), ns.
    """
    if fixed.value is None or fixed.high is None or fixed.high >= 0 or -fixed.value <= _MIN_NEGATIVE_SHARE * longest:
        return ""
    return f"the intercept is {fixed.value / 1e3:.4g} us, which no line of costs can have"
