"""The line through the samples of one process: T(n) = fixed + slope * n, the time of a chain of n
units, by Theil-Sen.

P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968) 1379. The
intercept is the median of ``y - slope * n`` (the "joint" form of ``scipy.stats.theilslopes``), each
sample weighted by the inverse of the spread at its n. n = 0 never enters a fit.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SIGMAS_TO_10TH_PERCENTILE = 1.2816
"""Distance from the median of a normal distribution to its 10th percentile, in standard
deviations.
"""
MAD = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation."""
MEDIAN_ERROR = 1.2533
"""Standard error of the median of normal samples divided by that of their mean."""


@dataclass(frozen=True)
class LineRule:
    """Which samples the line goes through, and when T(n) is no line."""

    most_pairs: int = 100_000
    """With more pairs than this, as many are drawn at random (seeded). The median's error is then
    0.5 % of their spread; more pairs take longer.
    """
    samples_per_n: int = 8
    """With fewer samples at one n their spread is too uncertain to call a sample disturbed."""
    outlier_sigmas: float = 3.5
    """A sample this many standard deviations above the median at its n was interrupted: a lower
    limit leaves out good samples, with a higher one interruptions tilt the line.
    """
    misfit: float = 0.03
    """T(n) is nonlinear if it leaves the line by more than this share of the rise from the smallest
    to the largest n, and more than the target: a lower share refuses good lines, a higher one
    accepts bent ones.
    """
    misfit_sigmas: float = 4.0
    """A misfit within this many standard errors of the median at its n is noise."""


LINE = LineRule()


@dataclass(frozen=True)
class Line:
    """A straight line T(n): ``slope`` in ns per unit, ``intercept`` in ns."""

    slope: float
    intercept: float


def theil_sen(n: Floats, y: Floats) -> Line | None:
    """The Theil-Sen line of y (ns) over n; None with fewer than two different n."""
    slope = sen_slope(n, y)
    if slope is None:
        return None
    values = y - slope * n
    order = np.argsort(values)
    reached = np.cumsum((1 / _spreads(n, y))[order])
    return Line(slope, float(values[order][np.searchsorted(reached, reached[-1] / 2)]))


def siegel_slope(n: Floats, y: Floats) -> float | None:
    """The slope of y (ns) over n by repeated medians, ns per unit; None with fewer than two
    different n.

    The median, over all samples, of the median slope to the other samples: up to half of them may
    be disturbed. A. F. Siegel, Robust regression using repeated medians, Biometrika 69 (1982) 242;
    ``scipy.stats.siegelslopes``.
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
    """The Theil-Sen slope, ns per unit: the median over all pairs with different n; None without
    such a pair.
    """
    if n.size * (n.size - 1) // 2 <= LINE.most_pairs:
        left, right = _every_pair(n.size)
    else:
        left, right = np.random.default_rng(n.size).integers(0, n.size, (2, LINE.most_pairs))
    keep = n[left] != n[right]
    left, right = left[keep], right[keep]
    return float(np.median((y[right] - y[left]) / (n[right] - n[left]))) if left.size else None


def _spreads(n: Floats, y: Floats) -> Floats:
    """For each sample the ``lower_spread`` of y at its n, ns; at least 1/30 of the largest."""
    spreads = np.ones(n.size)
    for rung in np.unique(n):
        here = n == rung
        spreads[here] = lower_spread(y[here])
    return np.maximum(spreads, max(float(spreads.max()) / 30, 1e-9))


def lower_spread(y: Floats) -> float:
    """Standard deviation of the values, from their 10th percentile and median, which interruptions
    cannot widen.
    """
    return _lower_spread(np.sort(y))


def _lower_spread(y: Floats) -> float:
    """``lower_spread`` of sorted values."""
    return (_quantile(y, 0.5) - _quantile(y, 0.1)) / _SIGMAS_TO_10TH_PERCENTILE


def _quantile(y: Floats, share: float) -> float:
    """``numpy.quantile`` of sorted values, without sorting them again."""
    at = (y.size - 1) * share
    below = int(at)
    return float(y[below] + (y[min(below + 1, y.size - 1)] - y[below]) * (at - below))


def undisturbed_mask(n: Floats, y: Floats) -> Mask:
    """A mask of the samples y (ns): False for one far above the median at its n, which was
    interrupted.

    Long samples are interrupted more often than short ones, which makes the fitted slope too high:
    with 50 interruptions a second and samples of 4 ms by 0.2 to 0.3 %; without the interrupted
    samples by less than 0.1 %.
    """
    clear = np.ones(n.size, dtype=np.bool_)
    steps = np.diff(np.unique(y))
    resolution = float(steps.min()) if steps.size else 1.0
    for rung in np.unique(n):
        here = n == rung
        if np.count_nonzero(here) >= LINE.samples_per_n:
            clear[here] = y[here] <= _ceiling(np.sort(y[here]), resolution)
    return clear


def _ceiling(y: Floats, resolution: float) -> float:
    """The highest undisturbed value of sorted values: outliers are removed until none is left."""
    while True:
        highest = _quantile(y, 0.5) + LINE.outlier_sigmas * max(_lower_spread(y), resolution)
        kept = int(np.searchsorted(y, highest, side="right"))
        if kept == y.size or kept < LINE.samples_per_n // 2:
            return highest
        y = y[:kept]


def robust_line(n: Floats, y: Floats, *also: Floats) -> Line | None:
    """The Theil-Sen line of y (ns) through the samples undisturbed in y and in each of ``also``;
    None without one.
    """
    clear = undisturbed_mask(n, y)
    for other in also:
        clear &= undisturbed_mask(n, other)
    return theil_sen(n[clear], y[clear])


@dataclass(frozen=True)
class Misfit:
    """The largest distance of a median T(n) from the line, and the n where it is (``at``).

    ``share``: of the line's rise from the smallest to the largest n. ``sigmas``: in standard errors
    of that median.
    """

    share: float
    sigmas: float
    at: int


def worst_misfit(n: Floats, y: Floats, line: Line) -> Misfit:
    """The largest misfit of y (ns) that is not noise; zeros if there is none. The slope must not be
    0.
    """
    clear = undisturbed_mask(n, y)
    n, y = n[clear], y[clear]
    reach = abs(line.slope) * max(float(n.max() - n.min()), 1.0)
    worst = Misfit(0.0, 0.0, 0)
    for rung in np.unique(n):
        here = y[n == rung]
        if here.size < LINE.samples_per_n:
            continue
        away = float(np.median(here)) - (line.intercept + line.slope * float(rung))
        error = MEDIAN_ERROR * max(lower_spread(here), 1.0) / float(np.sqrt(here.size))
        if abs(away) / reach > abs(worst.share) and abs(away) / error > LINE.misfit_sigmas:
            worst = Misfit(away / reach, away / error, int(rung))
    return worst
