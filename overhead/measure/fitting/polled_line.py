"""The line through times that a polling wait has rounded up.

A wait that looks every q ns returns at the first look after the work is done, so a sample of T says only that the work
was done within (T - q, T], or at any time before T if the wait returned at its first look. The line is the most likely
one given those intervals (probit, normal scatter that grows with T).
"""

from __future__ import annotations

import numpy as np

from overhead.measure.fitting.line import Floats, Line, sen_slope

LOST = np.log(0.005)
"""An interrupted sample may come out at any stair: its likelihood never falls below this."""
LEAST_SCATTER = 5e-4
"""Of the work's end, as a share of the quantum."""
EVEN = 0.05
"""The scatter of T(0) as a share of that of the longest sample: it grows with the work."""
EXACT = 0.02
"""So close to a stair, as a share of the quantum, a window opened right after a look."""
BUSY = 0.8
"""A look later than this, as a share of the quantum, may be the second of a window that opened after a look."""
INTERRUPTED_NS = 2e6
"""An interruption makes a look late by no more."""
SOON = 0.2
"""Of that: so soon after its work's end a busy thread looks."""

INTERCEPTS, SLOPES, SCATTERS = np.linspace(0, 1, 7), np.geomspace(0.4, 2.5, 64), np.log([0.01, 0.03, 0.1])
"""Where the most likely line is looked for first, since likelihoods of intervals are flat here and there: shares of the
shortest T and of about the slope."""


def censored_line(n: Floats, total: Floats, quantum: float) -> Line | None:
    """The most likely line of the unrounded T(n), ns; None where all samples lie on one stair.

    ``quantum``: about the ns between two looks of the wait; samples right on a stair tell it better. A sample far from
    a stair's edge weighs nothing, by itself. Those of the least n may have begun at any moment between two looks, the
    others began with one.
    """
    from scipy.optimize import minimize
    from scipy.special import log_ndtr

    if np.unique(n).size < 3 or np.ptp(total) < quantum / 2:
        return None
    low, high, quantum = _within(n, total, quantum)
    reach = float(n.max())
    x, low, high = n / reach, low / quantum, high / quantum
    far = x > 0.5
    about = float(np.median((low + high)[far] / (2 * x[far])))
    least = max(LEAST_SCATTER, _bracket(x, low) * about / 2)
    weight = EVEN + (1 - EVEN) * x

    def cost(parameters: Floats) -> Floats:
        a, b, log_scatter = parameters[..., np.newaxis]
        middle, scatter = a + b * x, least + np.exp(np.clip(log_scatter, -20.0, 3.0)) * weight
        upper, lower = (high - middle) / scatter, (low - middle) / scatter
        flip = lower > 0  # ln(Phi(upper) - Phi(lower)) from the tail where the difference does not cancel
        larger, smaller = log_ndtr(np.where(flip, -lower, upper)), log_ndtr(np.where(flip, -upper, lower))
        inside = larger + np.log1p(-np.exp(np.minimum(smaller - larger, -1e-12)))
        return np.asarray(-np.sum(np.logaddexp(inside, LOST), axis=-1))

    grid = np.stack(np.meshgrid(high.min() * INTERCEPTS, about * SLOPES, SCATTERS), axis=0).reshape(3, -1)
    start = grid[:, np.argmin(cost(grid))]
    at = minimize(cost, start, method="Nelder-Mead", options={"maxiter": 1500, "xatol": 1e-6, "fatol": 1e-6}).x
    return Line(float(at[1]) * quantum / reach, float(at[0]) * quantum)


def _within(n: Floats, total: Floats, quantum: float) -> tuple[Floats, Floats, float]:
    """Between which ns the work of each sample was done, and the ns between two looks.

    A first look that came later than an interruption explains came from a thread that was busy with the work itself,
    so it was hardly done before. The least n's windows open so long before a look as it takes, within a factor of two.
    """
    least = n == n.min()
    whole = total[least & (total > quantum)]
    first = float(np.median(whole)) if whole.size else quantum
    level = np.round((total - first) / quantum)
    exact = (level >= 0) & (np.abs(total - first - level * quantum) < EXACT * quantum)
    quantum = sen_slope(level[exact], total[exact]) or quantum
    slack = min(quantum / 2, INTERRUPTED_NS)
    later = total > first + slack
    late = ~least & (total < first + BUSY * quantum)
    low = np.where(later, total - np.where(late, SOON * slack, quantum), 0.0)
    return np.where(total < quantum / 2, total / 2, low), total, quantum


def _bracket(x: Floats, low: Floats) -> float:
    """The narrowest gap in x over which the wait went up a stair: no scatter below it can be told."""
    order = np.argsort(x)
    steps, gaps = np.diff(low[order]) > 0.5, np.diff(x[order])
    found = gaps[steps & (gaps > 0)]
    return float(found.min()) if found.size else 0.0
