"""Where ``issue`` bends: the queue is full, and from there the host goes at the device's pace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import FEW, Floats, lower_spread

BEND = 1.5
"""``issue`` must grow this many times as steep to be called full."""
SURE = 4.0
"""The change of slope in units of both slopes' errors."""
BELOW, ABOVE = 3, 2
"""Rungs on either side of a bend, at least."""


@dataclass(frozen=True)
class Knee:
    """The n at the bend, the units then in flight, and both slopes of ``issue``, ns per unit."""

    n: float
    depth: float
    below: float
    above: float


def find_knee(n: Floats, issue: Floats) -> Knee | None:
    """Two straight pieces through the rungs' medians of ``issue``; None where one line serves.

    The depth is what was issued and not finished at the bend: the device, which began with the first unit, works at the
    pace that ``issue`` shows once the queue is full.
    """
    rungs = np.unique(n[n >= 1])
    if rungs.size < BELOW + ABOVE:
        return None
    groups = [issue[n == rung] for rung in rungs]
    curve = np.array([float(np.median(group)) for group in groups])
    error = np.array([_error(group) for group in groups])
    best: tuple[float, Knee] | None = None
    for split in range(BELOW, rungs.size - ABOVE + 1):
        low, high = (_line(rungs[part], curve[part], error[part]) for part in (slice(0, split), slice(split, None)))
        if low.slope <= 0 or high.slope < BEND * low.slope or high.slope - low.slope < SURE * (low.error + high.error):
            continue
        at = (low.intercept - high.intercept) / (high.slope - low.slope)
        if not rungs[split - 1] * 0.95 <= at <= rungs[split] * 1.05:
            continue
        model = np.where(np.arange(rungs.size) < split, low.at(rungs), high.at(rungs))
        misfit = float(np.sum(((curve - model) / np.maximum(curve, 1.0)) ** 2))
        if best is None or misfit < best[0]:
            ratio = low.slope / high.slope
            best = misfit, Knee(float(at), float(at - (at - 1) * ratio), low.slope, high.slope)
    return best[1] if best else None


def _error(issue: Floats) -> float:
    """ns: the standard error of the median; a hundredth of it where the rung has too few samples to say."""
    if issue.size < FEW:
        return float(np.median(issue)) / 100
    return max(1.2533 * lower_spread(issue) / issue.size**0.5, 1.0)


@dataclass(frozen=True)
class _Piece:
    slope: float
    intercept: float
    error: float

    def at(self, n: Floats) -> Floats:
        return self.intercept + self.slope * n


def _line(n: Floats, y: Floats, error: Floats) -> _Piece:
    """Least squares, each point weighted by the inverse of its size; the slope's error from the points' own."""
    weights = 1 / np.maximum(y, 1.0) ** 2
    centred = n - np.average(n, weights=weights)
    reach = float(np.sum(weights * centred**2))
    slope = float(np.sum(weights * centred * y)) / reach
    middle = float(np.average(y, weights=weights) - slope * np.average(n, weights=weights))
    return _Piece(slope, middle, float(np.sqrt(np.sum((weights * centred * error) ** 2))) / reach)
