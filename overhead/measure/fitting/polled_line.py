"""The line through times that a polling wait has rounded up.

A wait that polls every q ns returns at the first poll after the work is done. A sample T therefore
shows only that the work ended within (T - q, T], or before T if the wait returned at its first
poll. The line is the maximum-likelihood fit to those intervals (interval-censored regression:
normal scatter that grows with T).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats, Line, sen_slope
from overhead.numerics import find_minimum, log_normal_cdf


@dataclass(frozen=True)
class _PollRule:
    """What a sample says of the end of its work. Shares are of the time between two polls unless
    noted.
    """

    lowest_log_likelihood: float = float(np.log(0.005))
    """Lower bound for one sample: an interrupted one may end at any poll, and would tilt the line
    with a lower one.
    """
    least_scatter: float = 5e-4
    """Smallest scatter of the end of the work: with none, the likelihood has no maximum."""
    scatter_at_zero: float = 0.05
    """Scatter of T(0) as a share of the scatter of the longest sample."""
    on_step: float = 0.02
    """A sample this close to a multiple of the quantum began right after a poll."""
    surely_first: float = 0.8
    """A sample that ended later than this past the first poll may have ended at the second poll."""
    longest_interruption_ns: float = 2e6
    """An interruption delays a poll by at most this: a longer one is taken for work."""
    busy_delay: float = 0.2
    """A thread that is busy with the work polls within this share of ``longest_interruption_ns``
    after its end.
    """


_RULE = _PollRule()
# The likelihood has flat regions, so a grid search chooses where the minimiser starts.
_GRID_INTERCEPTS = np.linspace(0, 1, 7)
"""As shares of the shortest T."""
_GRID_SLOPES = np.geomspace(0.4, 2.5, 64)
"""As multiples of a rough slope."""
_GRID_LOG_SCATTERS = np.log([0.01, 0.03, 0.1])


def censored_line(n: Floats, total: Floats, quantum: float) -> Line | None:
    """The maximum-likelihood line of the unrounded T(n), ns; None if all samples ended at the same
    poll.

    ``quantum``: approximate time between two polls, ns; it is refined from the samples. Samples at
    the smallest n may begin at any time between two polls, the others begin right after one.
    """
    if np.unique(n).size < 3 or np.ptp(total) < quantum / 2:
        return None
    low, high, quantum = _bounds(n, total, quantum)
    reach = float(n.max())
    x, low, high = n / reach, low / quantum, high / quantum
    far = x > 0.5
    about = float(np.median((low + high)[far] / (2 * x[far])))
    least = max(_RULE.least_scatter, _narrowest_step(x, low) * about / 2)
    weight = _RULE.scatter_at_zero + (1 - _RULE.scatter_at_zero) * x

    def cost(parameters: Floats) -> Floats:
        a, b, log_scatter = parameters[..., np.newaxis]
        middle, scatter = a + b * x, least + np.exp(np.clip(log_scatter, -20.0, 3.0)) * weight
        upper, lower = (high - middle) / scatter, (low - middle) / scatter
        flip = (
            lower > 0
        )  # ln(Phi(upper) - Phi(lower)) from the tail where the difference does not cancel
        larger, smaller = (
            log_normal_cdf(np.where(flip, -lower, upper)),
            log_normal_cdf(np.where(flip, -upper, lower)),
        )
        inside = larger + np.log1p(-np.exp(np.minimum(smaller - larger, -1e-12)))
        return np.asarray(-np.sum(np.logaddexp(inside, _RULE.lowest_log_likelihood), axis=-1))

    axes = np.meshgrid(high.min() * _GRID_INTERCEPTS, about * _GRID_SLOPES, _GRID_LOG_SCATTERS)
    grid = np.stack(axes, axis=0).reshape(3, -1)
    start = grid[:, np.argmin(cost(grid))]

    def cost_of_one(parameters: Floats) -> float:
        return float(cost(parameters))

    best = find_minimum(cost_of_one, start, tolerance=1e-6, most_steps=1500)
    return Line(float(best[1]) * quantum / reach, float(best[0]) * quantum)


def _bounds(n: Floats, total: Floats, quantum: float) -> tuple[Floats, Floats, float]:
    """For each sample the earliest and latest end of its work, and the time between two polls, all
    in ns.

    A first poll that is later than an interruption explains was delayed by the work itself, so the
    work ended shortly before it. For the smallest n the window opens before the poll by about the
    work's duration (within 2x).
    """
    least = n == n.min()
    whole = total[least & (total > quantum)]
    first = float(np.median(whole)) if whole.size else quantum
    level = np.round((total - first) / quantum)
    exact = (level >= 0) & (np.abs(total - first - level * quantum) < _RULE.on_step * quantum)
    quantum = sen_slope(level[exact], total[exact]) or quantum
    slack = min(quantum / 2, _RULE.longest_interruption_ns)
    later = total > first + slack
    late = ~least & (total < first + _RULE.surely_first * quantum)
    low = np.where(later, total - np.where(late, _RULE.busy_delay * slack, quantum), 0.0)
    return np.where(total < quantum / 2, total / 2, low), total, quantum


def _narrowest_step(x: Floats, low: Floats) -> float:
    """The narrowest gap in x between samples that ended at different polls; a smaller scatter
    cannot be measured.
    """
    order = np.argsort(x)
    steps, gaps = np.diff(low[order]) > 0.5, np.diff(x[order])
    found = gaps[steps & (gaps > 0)]
    return float(found.min()) if found.size else 0.0
