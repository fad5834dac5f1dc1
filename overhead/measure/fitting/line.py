"""The line through the samples of one process: T(n) = fixed + slope * n, by Theil-Sen.

P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968) 1379. The intercept is the
median of ``y - slope * n`` (the "joint" form of ``scipy.stats.theilslopes``), each sample weighted by the inverse of
the spread at its n. n = 0 never enters a fit.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_PAIRS = 100_000
"""Pairs beyond this many are drawn at random (seeded): their median is good to half a per cent of their spread."""
FEW = 8
"""Fewer samples at one n than this say too little of their spread to call one of them disturbed."""
SIGMAS = 1.2816
"""Standard deviations from the median of a normal distribution down to its tenth."""
MAD = 1.4826
"""Standard deviations of a normal distribution in its median absolute deviation."""
FAR = 3.5
"""A sample this many standard deviations over its n's median was interrupted."""

LINE = 0.03
"""A rung further from the line than this share of the ladder's rise (or than the target) is a bend, not noise."""


@dataclass(frozen=True)
class Line:
    """ns per unit, ns."""

    slope: float
    intercept: float


def theil_sen(n: Floats, y: Floats) -> Line | None:
    """The median of the slopes over all pairs with different n; None with fewer than two different n."""
    slope = sen_slope(n, y)
    return None if slope is None else Line(slope, _weighted_median(y - slope * n, 1 / _spreads(n, y)))


def siegel_slope(n: Floats, y: Floats) -> float | None:
    """The slope of few samples, up to half of them disturbed: the median over all of the median slope to the others.

    A. F. Siegel, Robust regression using repeated medians, Biometrika 69 (1982) 242; ``scipy.stats.siegelslopes``.
    """
    if n.size == 0 or n.min() == n.max():
        return None
    across = np.subtract.outer(n, n)
    apart = across != 0
    slopes = np.full(across.shape, np.inf)
    np.divide(np.subtract.outer(y, y), across, out=slopes, where=apart)
    slopes.sort(axis=1)
    others, row = np.count_nonzero(apart, axis=1), np.arange(n.size)
    return float(np.median((slopes[row, (others - 1) // 2] + slopes[row, others // 2]) / 2))


@functools.lru_cache(maxsize=32)
def _every_pair(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    left, right = np.triu_indices(size, 1)
    return left, right


def sen_slope(n: Floats, y: Floats) -> float | None:
    """The slope alone."""
    left, right = _pairs(n)
    return float(np.median((y[right] - y[left]) / (n[right] - n[left]))) if left.size else None


def _spreads(n: Floats, y: Floats) -> Floats:
    """For each sample the spread of y at its n, from the half below the median; at least a thirtieth of the largest."""
    spreads = np.ones(n.size)
    for rung in np.unique(n):
        here = n == rung
        spreads[here] = lower_spread(y[here])
    return np.maximum(spreads, max(float(spreads.max()) / 30, 1e-9))


def lower_spread(y: Floats) -> float:
    """Standard deviation told by the half below the median (down to its tenth), which an interruption cannot widen."""
    return _lower_spread(np.sort(y))


def _lower_spread(y: Floats) -> float:
    """``lower_spread`` of an ascending list."""
    return (_quantile(y, 0.5) - _quantile(y, 0.1)) / SIGMAS


def _quantile(y: Floats, share: float) -> float:
    """``numpy.quantile`` of an ascending list, without sorting it again."""
    at = (y.size - 1) * share
    below = int(at)
    return float(y[below] + (y[min(below + 1, y.size - 1)] - y[below]) * (at - below))


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def _pairs(n: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of pairs with different n."""
    if n.size * (n.size - 1) // 2 <= MAX_PAIRS:
        left, right = _every_pair(n.size)
    else:
        left, right = np.random.default_rng(n.size).integers(0, n.size, (2, MAX_PAIRS))
    keep = n[left] != n[right]
    return left[keep], right[keep]


def undisturbed(n: Floats, y: Floats) -> Mask:
    """False where a sample lies so far above its n's median that something else held the processor.

    The spread is taken from the half below the median, which an interruption cannot widen. Interruptions hit a sample
    in proportion to its length, so leaving them in the fit tilts it: at 50 a second and 4 ms a sample Theil-Sen over
    everything is 0.2 to 0.3 % too high, without them under 0.1 %. The samples stay in the file; 3.5 standard
    deviations cut so few clear ones (1 in 4,300) that the median does not feel it.
    """
    clear = np.ones(n.size, dtype=np.bool_)
    steps = np.diff(np.unique(y))
    resolution = float(steps.min()) if steps.size else 1.0
    for rung in np.unique(n):
        here = n == rung
        if np.count_nonzero(here) >= FEW:
            clear[here] = y[here] <= _ceiling(np.sort(y[here]), resolution)
    return clear


def _ceiling(y: Floats, resolution: float) -> float:
    """The highest undisturbed value of an ascending list: what lies too far above is left out until nothing does."""
    while True:
        highest = _quantile(y, 0.5) + FAR * max(_lower_spread(y), resolution)
        kept = int(np.searchsorted(y, highest, side="right"))
        if kept == y.size or kept < FEW // 2:
            return highest
        y = y[:kept]


def robust_line(n: Floats, y: Floats, *told_by: Floats) -> Line | None:
    """Theil-Sen over the samples that are undisturbed in y and in every other time given for them."""
    clear = undisturbed(n, y)
    for other in told_by:
        clear &= undisturbed(n, other)
    return theil_sen(n[clear], y[clear])


@dataclass(frozen=True)
class Misfit:
    """How far the rungs' medians lie from the line: the worst, as a share of what the slope adds over the ladder.

    ``sigmas``: that rung's distance in standard errors of its own median.
    """

    share: float
    sigmas: float
    at: int


def misfit(n: Floats, y: Floats, line: Line) -> Misfit:
    """Lack of fit relative to each n's own spread: the rung furthest from the line, as share of slope * (top - 1)."""
    clear = undisturbed(n, y)
    n, y = n[clear], y[clear]
    reach = abs(line.slope) * max(float(n.max() - n.min()), 1.0)
    worst = Misfit(0.0, 0.0, 0)
    for rung in np.unique(n):
        here = y[n == rung]
        if here.size < FEW:
            continue
        away = float(np.median(here)) - (line.intercept + line.slope * float(rung))
        error = 1.2533 * max(lower_spread(here), 1.0) / float(np.sqrt(here.size))
        if abs(away) / reach > abs(worst.share) and abs(away) / error > 4:
            worst = Misfit(away / reach, away / error, int(rung))
    return worst
