"""The line through times that a polling wait has rounded up.

A wait that looks every q ns returns at the first look after the work is done, so a sample of T says only that the work
was done within (T - q, T], or at any time before T if the wait returned at its first look. The line is the most likely
one given those intervals (probit, normal scatter).
"""

from __future__ import annotations

import numpy as np

from overhead.measure.fit import Floats, Line, sen_slope

LOST = np.log(0.005)
"""An interrupted sample may come out at any stair: its likelihood never falls below this."""
LEAST_SCATTER = 5e-4
"""Of the work's end, as a share of the quantum."""


def censored_line(n: Floats, total: Floats, quantum: float) -> Line | None:
    """The most likely line of the unrounded T(n), ns; None where all samples lie on one stair.

    ``quantum``: about the ns between two looks of the wait; the samples' own levels tell it better. A sample far from
    a stair's edge weighs nothing, by itself.
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    if np.unique(n).size < 3 or np.ptp(total) < quantum / 2:
        return None
    level = np.maximum(np.round((total - np.median(total[n == n.min()])) / quantum), 0.0)
    quantum = sen_slope(level, total) or quantum
    reach = float(n.max())
    x, high = n / reach, total / quantum
    slope, intercept = np.polyfit(x, high - 0.5, 1)
    least = max(LEAST_SCATTER, _bracket(x, high) * float(slope) / 2)

    def cost(parameters: Floats) -> float:
        a, b, log_scatter = parameters
        scatter = least + np.exp(np.clip(log_scatter, -20.0, 3.0))
        upper, lower = (high - a - b * x) / scatter, (high - 1.0 - a - b * x) / scatter
        lower = np.where(level > 0, lower, -np.inf)
        flip = lower > 0  # ln(Phi(upper) - Phi(lower)) from the tail where the difference does not cancel
        larger, smaller = log_ndtr(np.where(flip, -lower, upper)), log_ndtr(np.where(flip, -upper, lower))
        inside = larger + np.log1p(-np.exp(np.minimum(smaller - larger, -1e-12)))
        return float(-np.sum(np.logaddexp(inside, LOST)))

    at = np.array([intercept, slope])
    for scatter in (0.3, 0.1, 0.02):
        start = [*at, np.log(scatter)]
        at = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 1500, "xatol": 1e-6, "fatol": 1e-6}).x[:2]
    return Line(float(at[1]) * quantum / reach, float(at[0]) * quantum)


def _bracket(x: Floats, high: Floats) -> float:
    """The narrowest gap in x over which the wait went up a stair: no scatter below it can be told."""
    order = np.argsort(x)
    steps, gaps = np.diff(high[order]) > 0.5, np.diff(x[order])
    found = gaps[steps & (gaps > 0)]
    return float(found.min()) if found.size else 0.0
