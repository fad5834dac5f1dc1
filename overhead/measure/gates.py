"""From one value a process to a figure: the interval, and the status that says what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from overhead.measure.figures import Estimate


def across(values: Sequence[float], target: float, scale: float | None = None, unit: str = "ns") -> Estimate:
    """Mean over processes and its 95 % interval by Student's t.

    ``ok`` when the half-width is within ``target`` of ``scale`` (the mean's size where None), else ``noisy``.
    """
    from scipy.stats import t

    count = len(values)
    if count == 0:
        return Estimate(status="failed", reason="no process came to this figure", unit=unit)
    mean = float(np.mean(values))
    if count == 1:
        return Estimate(mean, None, None, "noisy", "one process gives no interval", "1 process", 1, unit=unit)
    half = float(t.ppf(0.975, count - 1)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    size = abs(mean) if scale is None else scale
    share = half / size if size else math.inf
    rule = f"mean of {count} processes, Student's t: half-width {share:.1%}, target {target:.0%}"
    status, reason = (
        ("ok", "") if share <= target else ("noisy", f"half-width {share:.0%} is over the target of {target:.0%}")
    )
    return Estimate(mean, mean - half, mean + half, status, reason, rule, count, unit=unit)
