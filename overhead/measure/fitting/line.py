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
    """Which samples the line goes through, and when T(n) is no line.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

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
    to the largest n, and more than the wanted precision: a lower share refuses good lines, a higher
    one accepts bent ones.
    """
    misfit_sigmas: float = 4.0
    """A misfit within this many standard errors of the median at its n is noise."""
    spread_parts: int = 30
    """The spread at an n counts as at least the largest spread divided by this: a few samples that
    agree by chance must not carry the whole intercept. Chosen, not measured.
    """


LINE = LineRule()


@dataclass(frozen=True)
class Line:
    """A straight line T(n): ``slope`` in ns per unit, ``intercept`` in ns."""

    slope: float
    intercept: float


def theil_sen(n: Floats, y: Floats) -> Line | None:
    """The Theil-Sen line of y (ns) over n, which a few disturbed samples do not tilt: the median of
    the slopes between all pairs. None with fewer than two different n.

    Its intercept is the weighted median of ``y - slope * n``: the value at which half of the
    weights is reached. A sample counts less at an n where samples scatter more.
    """
    slope = sen_slope(n, y)
    if slope is None:
        return None
    intercepts = y - slope * n
    # The weighted median: sort, add up the weights, take the value where half is reached.
    order = np.argsort(intercepts)
    # ``_spreads``: for each sample the spread of the samples at its n.
    weights = 1 / _spreads(n, y)
    weight_so_far = np.cumsum(weights[order])
    middle = np.searchsorted(weight_so_far, weight_so_far[-1] / 2)
    return Line(slope, float(intercepts[order][middle]))


def siegel_slope(n: Floats, y: Floats) -> float | None:
    """The slope of y (ns) over n by repeated medians, ns per unit, for the few samples of one
    round: the median, over all samples, of the median slope to the other samples, so that up to
    half of them may be disturbed. None with fewer than two different n.

    A. F. Siegel, Robust regression using repeated medians, Biometrika 69 (1982) 242;
    ``scipy.stats.siegelslopes``.
    """
    if n.size == 0 or n.min() == n.max():
        return None
    # Matrices with a row and a column for each sample: the slope of every pair.
    distances = np.subtract.outer(n, n)
    apart = distances != 0
    # A pair at the same n has no slope. It is infinite here, so that it sorts behind the others.
    slopes = np.full(distances.shape, np.inf)
    rises = np.subtract.outer(y, y)
    np.divide(rises, distances, out=slopes, where=apart)
    slopes.sort(axis=1)

    # The median of each row, over the finite slopes alone: ``others`` of them come first.
    sample = np.arange(n.size)
    others = np.count_nonzero(apart, axis=1)
    below_middle = slopes[sample, (others - 1) // 2]
    above_middle = slopes[sample, others // 2]
    return float(np.median((below_middle + above_middle) / 2))


@dataclass(frozen=True)
class _Pairs:
    """Pairs of samples: the positions of the first and of the second sample of each."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]


@functools.lru_cache(maxsize=32)
def _every_pair(size: int) -> _Pairs:
    """All pairs of this number of samples. Kept, because many fits have the same number."""
    first, second = np.triu_indices(size, 1)
    return _Pairs(first, second)


def _pairs_to_fit(size: int) -> _Pairs:
    """All pairs of this number of samples, or ``LINE.most_pairs`` random ones if there are more."""
    if size * (size - 1) // 2 <= LINE.most_pairs:
        return _every_pair(size)
    dice = np.random.default_rng(size)
    first, second = dice.integers(0, size, (2, LINE.most_pairs))
    return _Pairs(first, second)


def sen_slope(n: Floats, y: Floats) -> float | None:
    """The Theil-Sen slope of y over n, ns per unit: the median of the slopes of all pairs of
    samples with different n (of random pairs, if there are very many); None without such a pair.
    """
    # Positions of the first and the second sample of each pair: all pairs, or 100,000 random ones.
    pairs = _pairs_to_fit(n.size)
    # A pair at the same n has no slope.
    apart = n[pairs.first] != n[pairs.second]
    first = pairs.first[apart]
    second = pairs.second[apart]
    if not first.size:
        return None
    rises = y[second] - y[first]
    units = n[second] - n[first]
    return float(np.median(rises / units))


def _spreads(n: Floats, y: Floats) -> Floats:
    """For each sample the spread of the samples y at its n, ns, for its weight in the intercept
    (``lower_spread``, which interruptions cannot widen). It is at least a small part
    (``LINE.spread_parts``) of the largest, so that no few samples that agree by chance carry all
    the weight.
    """
    spreads = np.ones(n.size)
    for size in np.unique(n):
        at_size = n == size
        spreads[at_size] = lower_spread(y[at_size])
    # The second bound only avoids a division by zero, where no n has any spread.
    least = max(float(spreads.max()) / LINE.spread_parts, 1e-9)
    return np.maximum(spreads, least)


def lower_spread(y: Floats) -> float:
    """Standard deviation of the values, from their 10th percentile and median, which interruptions
    cannot widen.
    """
    return _lower_spread(np.sort(y))


def _lower_spread(y: Floats) -> float:
    """``lower_spread`` of sorted values."""
    return (_quantile(y, 0.5) - _quantile(y, 0.1)) / _SIGMAS_TO_10TH_PERCENTILE


def _quantile(y: Floats, share: float) -> float:
    """The value below which this share of sorted values lies, linear between the two values beside
    the position: ``numpy.quantile`` without sorting them again.
    """
    # The position in the list, which may lie between two values.
    position = (y.size - 1) * share
    below = int(position)
    above = min(below + 1, y.size - 1)
    return float(y[below] + (y[above] - y[below]) * (position - below))


def undisturbed_mask(n: Floats, y: Floats) -> Mask:
    """Which samples y (ns) count: False for one far above the median at its n, which was
    interrupted.

    Long samples are interrupted more often than short ones, which makes the fitted slope too high:
    with 50 interruptions a second and samples of 4 ms by 0.2 to 0.3 %; without the interrupted
    samples by less than 0.1 %. At an n with few samples all count, since their spread is uncertain.
    """
    clear = np.ones(n.size, dtype=np.bool_)
    # The smallest difference of two values stands for the resolution of the clock.
    steps = np.diff(np.unique(y))
    resolution = float(steps.min()) if steps.size else 1.0
    for size in np.unique(n):
        at_size = n == size
        if np.count_nonzero(at_size) >= LINE.samples_per_n:
            # The highest of these times that does not count as interrupted.
            ceiling = _ceiling(np.sort(y[at_size]), resolution)
            clear[at_size] = y[at_size] <= ceiling
    return clear


def _ceiling(y: Floats, resolution: float) -> float:
    """The highest value of the sorted samples at one n that does not count as interrupted. Outliers
    above it raise the median and the spread, so they are removed and it is computed again, until
    none is left or very few samples would be.

    ``resolution``: the smallest step between two values. The spread counts as at least that, or
    values that are all alike would make any other value an outlier.
    """
    while True:
        # From the median and the 10th percentile, so that interruptions do not widen it.
        spread = max(_lower_spread(y), resolution)
        # The median and some standard deviations (``LINE.outlier_sigmas``).
        highest = _quantile(y, 0.5) + LINE.outlier_sigmas * spread
        # How many of the sorted values lie at or below that.
        kept = int(np.searchsorted(y, highest, side="right"))
        if kept == y.size or kept < LINE.samples_per_n // 2:
            return highest
        y = y[:kept]


def robust_line(n: Floats, y: Floats, *also: Floats) -> Line | None:
    """The Theil-Sen line of y (ns) over n, through the samples that were interrupted neither in y
    nor in any of the times ``also``, such as those of ``issue``; None with fewer than two different
    n.
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
    """Where the median of the times y (ns) at some n is farthest from this line, which was fitted
    to them, unless noise explains it; zeros if no n is clearly off. The slope must not be 0.
    """
    clear = undisturbed_mask(n, y)
    n = n[clear]
    y = y[clear]
    range_of_n = max(float(n.max() - n.min()), 1.0)
    # What the line rises by in all, ns: distances are given as a share of it.
    rise = abs(line.slope) * range_of_n
    worst = Misfit(0.0, 0.0, 0)
    for size in np.unique(n):
        times = y[n == size]
        # Their spread would be too uncertain.
        if times.size < LINE.samples_per_n:
            continue
        on_line = line.intercept + line.slope * float(size)
        away = float(np.median(times)) - on_line
        # At least 1 ns: times that are all alike would make any distance a clear one.
        spread = max(lower_spread(times), 1.0)
        # The standard error of the median: noise alone may move it by a few of these.
        error = MEDIAN_ERROR * spread / float(np.sqrt(times.size))
        misfit = Misfit(away / rise, away / error, int(size))
        is_noise = abs(misfit.sigmas) <= LINE.misfit_sigmas
        if not is_noise and abs(misfit.share) > abs(worst.share):
            worst = misfit
    return worst
