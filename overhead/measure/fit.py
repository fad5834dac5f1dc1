"""The line through the samples of one process: T(n) = fixed + slope * n, by Theil-Sen.

P. K. Sen, Estimates of the regression coefficient based on Kendall's tau, JASA 63 (1968) 1379. The intercept is the
median of ``y - slope * n`` (the "joint" form of ``scipy.stats.theilslopes``). n = 0 never enters a fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MAX_PAIRS = 200_000
"""Pairs beyond this many are drawn at random (seeded): their median is good to a thousandth of their spread."""


@dataclass(frozen=True)
class Line:
    """ns per unit, ns."""

    slope: float
    intercept: float


def theil_sen(n: Floats, y: Floats) -> Line | None:
    """The median of the slopes over all pairs with different n; None with fewer than two different n."""
    left, right = _pairs(n)
    if left.size == 0:
        return None
    slope = float(np.median((y[right] - y[left]) / (n[right] - n[left])))
    return Line(slope, float(np.median(y - slope * n)))


def _pairs(n: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of pairs with different n, the smaller first."""
    count = n.size
    if count * (count - 1) // 2 <= MAX_PAIRS:
        left, right = np.triu_indices(count, 1)
    else:
        draw = np.random.default_rng(count)
        left, right = draw.integers(0, count, (2, MAX_PAIRS))
    keep = n[left] != n[right]
    left, right = left[keep], right[keep]
    swap = n[left] > n[right]
    return np.where(swap, right, left), np.where(swap, left, right)


@dataclass(frozen=True)
class Knee:
    """Where ``issue`` bends: the n, the units then in flight, and both slopes, ns per unit."""

    n: float
    depth: float
    below: float
    above: float


BEND = 1.5
"""``issue`` must grow this many times as steep to be called full."""


def medians(n: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The different n, ascending, and the median of y at each."""
    rungs = np.unique(n)
    return rungs, np.array([np.median(y[n == rung]) for rung in rungs])


def find_knee(n: Floats, issue: Floats, total: Floats) -> Knee | None:
    """Two straight pieces through the rungs' medians of ``issue``; None where one line serves.

    The depth is the units that were issued and not finished at the knee: n * (1 - below / above).
    """
    rungs, curve = medians(n, issue)
    keep = rungs >= 1
    rungs, curve = rungs[keep], curve[keep]
    if rungs.size < 5:
        return None
    best: tuple[float, Knee] | None = None
    for split in range(2, rungs.size - 1):
        low, high = np.polyfit(rungs[:split], curve[:split], 1), np.polyfit(rungs[split:], curve[split:], 1)
        if low[0] <= 0 or high[0] < BEND * low[0]:
            continue
        at = (low[1] - high[1]) / (high[0] - low[0])
        if not rungs[split - 1] * 0.8 <= at <= rungs[split] * 1.25:
            continue
        away = np.concatenate(
            [curve[:split] - np.polyval(low, rungs[:split]), curve[split:] - np.polyval(high, rungs[split:])]
        )
        misfit = float(np.sum((away / np.maximum(curve, 1.0)) ** 2))
        if best is None or misfit < best[0]:
            best = misfit, Knee(float(at), float(at * (1 - low[0] / high[0])), float(low[0]), float(high[0]))
    return best[1] if best else None
