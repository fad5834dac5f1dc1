"""The knee of ``issue``, the time until the host has handed over n units: the n at which the queue
is full.

From there on the host waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import LINE, MEDIAN_ERROR, Floats, lower_spread


@dataclass(frozen=True)
class _KneeRule:
    """When ``issue`` has a knee. Stricter values miss a full queue; looser ones find one in
    noise.
    """

    slope_ratio: float = 1.5
    """Smallest ratio of the slope above the knee to the slope below it: a lower one takes cold
    caches for a queue.
    """
    change_sigmas: float = 4.0
    """Smallest change of slope, in units of the sum of both standard errors."""
    sizes_below: int = 3
    sizes_above: int = 2
    """The fewest n on either side: with fewer, one noisy n makes a knee; with more, a knee near the
    top is missed.
    """
    beside: float = 0.05
    """The pieces cross between their two n, or beyond by this share: the median at an n near the
    knee is on neither.
    """


_RULE = _KneeRule()


@dataclass(frozen=True)
class Knee:
    """The n of the knee, the units in flight there, and the slopes of ``issue`` below and above it,
    ns per unit.
    """

    n: float
    depth: float
    below: float
    above: float


def find_knee(n: Floats, issue: Floats) -> Knee | None:
    """The knee by the best fit of two straight pieces to the median ``issue`` (ns) at each n; None
    if one line will do.

    The depth counts the units issued but not finished at the knee. The device starts with the first
    unit, and its time per unit is the slope of ``issue`` above the knee.
    """
    sizes = np.unique(n[n >= 1])
    if sizes.size < _RULE.sizes_below + _RULE.sizes_above:
        return None
    groups = [issue[n == size] for size in sizes]
    curve = np.array([float(np.median(group)) for group in groups])
    error = np.array([_error(group) for group in groups])
    best: tuple[float, Knee] | None = None
    for split in range(_RULE.sizes_below, sizes.size - _RULE.sizes_above + 1):
        low = _weighted_line(sizes[:split], curve[:split], error[:split])
        high = _weighted_line(sizes[split:], curve[split:], error[split:])
        if low.slope <= 0 or high.slope < _RULE.slope_ratio * low.slope:
            continue
        if high.slope - low.slope < _RULE.change_sigmas * (low.error + high.error):
            continue
        at = (low.intercept - high.intercept) / (high.slope - low.slope)
        if not sizes[split - 1] * (1 - _RULE.beside) <= at <= sizes[split] * (1 + _RULE.beside):
            continue
        model = np.where(np.arange(sizes.size) < split, low.at(sizes), high.at(sizes))
        misfit = float(np.sum(((curve - model) / np.maximum(curve, 1.0)) ** 2))
        if best is None or misfit < best[0]:
            ratio = low.slope / high.slope
            best = misfit, Knee(float(at), float(at - (at - 1) * ratio), low.slope, high.slope)
    return best[1] if best else None


def _error(issue: Floats) -> float:
    """Standard error of the median, ns; 1 % of the median if there are too few samples for an
    estimate.
    """
    if issue.size < LINE.samples_per_n:
        return float(np.median(issue)) / 100
    return max(MEDIAN_ERROR * lower_spread(issue) / issue.size**0.5, 1.0)


@dataclass(frozen=True)
class _Piece:
    """One straight piece: slope and its standard error, ns per unit; intercept, ns."""

    slope: float
    intercept: float
    error: float

    def at(self, n: Floats) -> Floats:
        return self.intercept + self.slope * n


def _weighted_line(n: Floats, y: Floats, error: Floats) -> _Piece:
    """Least squares on relative residuals. ``error``: the standard error of each y, ns."""
    weights = 1 / np.maximum(y, 1.0) ** 2
    centred = n - np.average(n, weights=weights)
    reach = float(np.sum(weights * centred**2))
    slope = float(np.sum(weights * centred * y)) / reach
    middle = float(np.average(y, weights=weights) - slope * np.average(n, weights=weights))
    return _Piece(slope, middle, float(np.sqrt(np.sum((weights * centred * error) ** 2))) / reach)
