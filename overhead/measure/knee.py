"""Where ``issue`` bends: the queue is full, and from there the host goes at the device's pace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fit import FEW, Floats

BEND = 1.5
"""``issue`` must grow this many times as steep to be called full."""


@dataclass(frozen=True)
class Knee:
    """The n at the bend, the units then in flight, and both slopes of ``issue``, ns per unit."""

    n: float
    depth: float
    below: float
    above: float


def find_knee(n: Floats, issue: Floats) -> Knee | None:
    """Two straight pieces through the rungs' medians of ``issue``; None where one line serves.

    The depth is what was issued and not finished at the bend, ``n * (1 - below / above)``: the device works at the
    pace that ``issue`` shows once the queue is full.
    """
    rungs = np.unique(n[n >= 1])
    if rungs.size < 5:
        return None
    curve = np.array([_level(issue[n == rung]) for rung in rungs])
    best: tuple[float, Knee] | None = None
    for split in range(2, rungs.size - 1):
        low = _line(rungs[:split], curve[:split])
        high = _line(rungs[split:], curve[split:])
        if low[0] <= 0 or high[0] < BEND * low[0]:
            continue
        at = (low[1] - high[1]) / (high[0] - low[0])
        if not rungs[split - 1] * 0.95 <= at <= rungs[split] * 1.05:
            continue
        model = np.where(np.arange(rungs.size) < split, low[1] + low[0] * rungs, high[1] + high[0] * rungs)
        error = float(np.sum(((curve - model) / np.maximum(curve, 1.0)) ** 2))
        if best is None or error < best[0]:
            best = error, Knee(float(at), float(at * (1 - low[0] / high[0])), low[0], high[0])
    return best[1] if best else None


def _level(issue: Floats) -> float:
    """The rung's value: the median, the lower quartile of so few that an interruption could make up half of them."""
    return float(np.percentile(issue, 50 if issue.size >= FEW else 25))


def _line(n: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept by least squares, each point weighted by the inverse of its size."""
    slope, intercept = np.polyfit(n, y, 1, w=1 / np.maximum(y, 1.0))
    return float(slope), float(intercept)
