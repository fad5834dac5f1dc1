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
from overhead.measure.fitting.spread import median
from overhead.numerics import find_minimum, log_normal_cdf


@dataclass(frozen=True)
class _PollRule:
    """What a sample says of the end of its work. Shares are of the time between two polls unless
    noted.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
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
    """The line of T(n) where the wait polls rarely, ns. Such a wait returns at the first poll after
    the work is done, so a total tells only between which two polls that was; the line is the one
    that makes all these intervals most likely. None if all samples ended at the same poll.

    ``quantum``: approximate time between two polls, ns; it is refined from the samples. Samples at
    the smallest n may begin at any time between two polls, the others begin right after one.
    """
    # Fewer than three sizes, or all at one poll: many lines would fit.
    if np.unique(n).size < 3 or np.ptp(total) < quantum / 2:
        return None
    # First between which times each sample's work ended, in polls.
    ends = _bounds(n, total, quantum)
    # Then scale: times in quanta, n as a share of the largest. A grid finds a start for the
    # minimiser.
    largest_n = float(n.max())
    earliest = ends.earliest / ends.quantum
    latest = ends.latest / ends.quantum
    likelihood = _Likelihood(n / largest_n, earliest, latest)
    start = likelihood.best_of_grid()
    best = find_minimum(likelihood.cost_of_one, start, tolerance=1e-6, most_steps=1500)
    # ``best``: intercept, slope, and the logarithm of the scatter, which only the fit needs.
    intercept = float(best[0])
    slope = float(best[1])
    # Back to ns, and to ns per unit.
    return Line(slope * ends.quantum / largest_n, intercept * ends.quantum)


class _Likelihood:
    """How likely the samples of a polling wait are, given a line and a scatter. Times are in quanta
    here (the time between two polls), and n is a share of the largest n (``x``).

    ``low``, ``high``: for each sample the earliest and the latest end of its work. The parameters
    are the intercept, the slope over ``x``, and the logarithm of the scatter of the longest sample.
    """

    def __init__(self, x: Floats, low: Floats, high: Floats) -> None:
        # ``low`` and ``high``: between which times the work of each sample ended.
        self.x = x
        self.low = low
        self.high = high
        # The longer samples: their intercept is a small part of them.
        far = x > 0.5
        # The middle of both ends over x, with the intercept neglected, is about the slope.
        low_plus_high = (low + high)[far]
        self.rough_slope = median(low_plus_high / (2 * x[far]))
        # A scatter below half of what the narrowest step between samples adds cannot be measured.
        narrowest = _narrowest_step(x, low) * self.rough_slope / 2
        self.least_scatter = max(_RULE.least_scatter, narrowest)
        # At n = 0 the work scatters by a twentieth of what it does at the largest n.
        self.scatter_weight = _RULE.scatter_at_zero + (1 - _RULE.scatter_at_zero) * x

    def cost(self, parameters: Floats) -> Floats:
        """The negative logarithm of the likelihood, for one set of parameters or for many: the
        first axis of ``parameters`` is intercept, slope, log scatter. The end of the work scatters
        normally around the line, and by more the longer it takes.
        """
        # The new last axis is that of the samples.
        intercept, slope, log_scatter = parameters[..., np.newaxis]
        middle = intercept + slope * self.x
        # The scatter of each sample: a floor, and a part that grows with x. Clipped, so that
        # ``exp`` stays finite.
        free_scatter = np.exp(np.clip(log_scatter, -20.0, 3.0))
        scatter = self.least_scatter + free_scatter * self.scatter_weight
        # The ends in standard deviations from where the line puts the end of the work.
        upper = (self.high - middle) / scatter
        lower = (self.low - middle) / scatter
        inside = _log_probability_between(lower, upper)
        # A lower bound for each sample: an interrupted one must not tilt the line.
        bounded = np.logaddexp(inside, _RULE.lowest_log_likelihood)
        return np.asarray(-np.sum(bounded, axis=-1))

    def cost_of_one(self, parameters: Floats) -> float:
        """``cost`` of a single set of parameters."""
        return float(self.cost(parameters))

    def best_of_grid(self) -> Floats:
        """The parameters, of a fixed grid around rough values, that make the samples most likely:
        where the minimiser starts. The likelihood has flat regions, in which it would not find its
        way.
        """
        # Intercepts as shares of the shortest time, slopes as multiples of the rough one.
        intercepts = self.high.min() * _GRID_INTERCEPTS
        slopes = self.rough_slope * _GRID_SLOPES
        axes = np.meshgrid(intercepts, slopes, _GRID_LOG_SCATTERS)
        # Shape (3, points): all combinations.
        grid = np.stack(axes, axis=0).reshape(3, -1)
        most_likely = np.argmin(self.cost(grid))
        return np.asarray(grid[:, most_likely])


def _log_probability_between(lower: Floats, upper: Floats) -> Floats:
    """The logarithm of the probability that a normal value lies between ``lower`` and ``upper``, in
    standard deviations: ln(Phi(upper) - Phi(lower)).

    Above the mean, both values of Phi are near 1 and their difference would cancel. So the interval
    is mirrored there: the difference is formed in the lower tail.
    """
    above_mean = lower > 0
    # The logarithms of both tails, the larger one first.
    larger = log_normal_cdf(np.where(above_mean, -lower, upper))
    smaller = log_normal_cdf(np.where(above_mean, -upper, lower))
    # ln(a - b) = ln(a) + ln(1 - b / a); an empty interval gets a tiny probability, not ln(0).
    log_ratio = np.minimum(smaller - larger, -1e-12)
    return np.asarray(larger + np.log1p(-np.exp(log_ratio)))


@dataclass(frozen=True)
class _Ends:
    """For each sample the earliest and the latest end of its work, and the time between two polls;
    all in ns.
    """

    earliest: Floats
    latest: Floats
    quantum: float


def _bounds(n: Floats, total: Floats, quantum: float) -> _Ends:
    """Between which times the work of each sample ended, from the poll at which its wait returned:
    after the poll before, and before this one.

    A first poll that is later than an interruption explains was delayed by the work itself, so the
    work ended shortly before it. For the smallest n the window opens before the poll by about the
    work's duration (within 2x).
    """
    is_least = n == n.min()
    # The smallest n is done long before the first poll: its full waits tell when that comes.
    whole_waits = total[is_least & (total > quantum)]
    first_poll = median(whole_waits) if whole_waits.size else quantum
    quantum = _refined_quantum(total, first_poll, quantum)

    # Times up to this much after a poll are of that poll: an interruption delayed it.
    slack = min(quantum / 2, _RULE.longest_interruption_ns)
    after_first_poll = total > first_poll + slack
    # A wait that returned after the slack, but less than 0.8 of a quantum after the first poll, saw
    # a first poll that the work delayed; later than that it may have been the second poll.
    latest_first_poll = first_poll + _RULE.surely_first * quantum
    at_late_first_poll = ~is_least & (total < latest_first_poll)
    # The work ended at most so long before the poll that was seen: a quantum, or little if the work
    # itself delayed the poll.
    # A thread that is busy with the work polls soon after its end, within a fifth of the slack.
    before_poll = np.where(at_late_first_poll, _RULE.busy_delay * slack, quantum)
    # A wait that returned at the first poll tells only that the work ended before that.
    earliest = np.where(after_first_poll, total - before_poll, 0.0)
    # The smallest n, in a window that opened shortly before a poll.
    earliest = np.where(total < quantum / 2, total / 2, earliest)
    return _Ends(earliest, total, quantum)


def _refined_quantum(total: Floats, first_poll: float, quantum: float) -> float:
    """The time between two polls, ns, more exactly than ``quantum``: the slope of the totals over
    the number of their poll, through the samples that ended close to a whole number of polls, since
    these began right after one.
    """
    # The number of the poll at which each sample ended, and how far it is from that poll.
    poll = np.round((total - first_poll) / quantum)
    away = np.abs(total - first_poll - poll * quantum)
    # Within 2 % of a quantum; others began between two polls, or were interrupted.
    exact = (poll >= 0) & (away < _RULE.on_step * quantum)
    return sen_slope(poll[exact], total[exact]) or quantum


def _narrowest_step(x: Floats, low: Floats) -> float:
    """The narrowest gap in x (the n of a sample as a share of the largest) between neighbours that
    ended at different polls; 0 without any. A scatter smaller than that cannot be measured.
    """
    order = np.argsort(x)
    # Times are in quanta: more than half of one apart means another poll.
    at_other_poll = np.diff(low[order]) > 0.5
    gaps = np.diff(x[order])
    narrow = gaps[at_other_poll & (gaps > 0)]
    return float(narrow.min()) if narrow.size else 0.0
