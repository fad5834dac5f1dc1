"""The knee of ``issue``, the time until the host has handed over n units: the n at which the queue
is full.

From there on the host waits for the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import LINE, MEDIAN_ERROR, Floats, lower_spread
from overhead.measure.fitting.spread import median


@dataclass(frozen=True)
class _KneeRule:
    """When ``issue`` has a knee. Stricter values miss a full queue; looser ones find one in
    noise.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
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


@dataclass(frozen=True)
class _Curve:
    """The median time of ``issue`` at each n, and the standard error of each median, ns."""

    sizes: Floats
    medians: Floats
    errors: Floats

    def part(self, which: slice) -> _Curve:
        """The curve at these sizes only."""
        return _Curve(self.sizes[which], self.medians[which], self.errors[which])


@dataclass(frozen=True)
class _Piece:
    """One straight piece: slope and its standard error, ns per unit; intercept, ns."""

    slope: float
    intercept: float
    error: float

    def at(self, n: Floats) -> Floats:
        """The time of each n on this piece, ns."""
        return self.intercept + self.slope * n


@dataclass(frozen=True)
class _Bend:
    """Two straight pieces that cross at the knee. ``misfit``: how badly they fit the curve."""

    knee: Knee
    misfit: float


def find_knee(n: Floats, issue: Floats) -> Knee | None:
    """Whether the device's queue was seen to be full: the *knee*, the n from which on ``issue``
    takes longer for each unit, since a call waits until the device takes an earlier one. None if
    one line fits the times of ``issue`` (ns) as well.

    Every place for the knee is tried with two straight pieces through the median times at each n;
    the best fit counts.
    """
    sizes = np.unique(n[n >= 1])
    # With fewer sizes on a side, one noisy n would make a knee.
    if sizes.size < _RULE.sizes_below + _RULE.sizes_above:
        return None
    # By n the times of ``issue``, their median and how uncertain that is.
    groups = [issue[n == size] for size in sizes]
    medians = [median(group) for group in groups]
    errors = [_error(group) for group in groups]
    curve = _Curve(sizes, np.array(medians), np.array(errors))

    bends: list[_Bend] = []
    # ``split``: how many of the sizes lie below the knee.
    last_split = sizes.size - _RULE.sizes_above
    for split in range(_RULE.sizes_below, last_split + 1):
        bend = _bend_at(curve, split)
        if bend is not None:
            bends.append(bend)
    if not bends:
        return None
    return min(bends, key=lambda bend: bend.misfit).knee


def _bend_at(curve: _Curve, split: int) -> _Bend | None:
    """The two straight pieces of the time of ``issue`` with a knee, where the device's queue gets
    full, between the ``split``-th size and the next, as one candidate; None if their slopes are too
    alike, or if they cross elsewhere.

    The depth counts the units issued but not finished at the knee. The device starts with the first
    unit, and its time per unit is the slope of ``issue`` above the knee: there, each call waits for
    the device.
    """
    sizes = curve.sizes
    low = _weighted_line(curve.part(slice(None, split)))
    high = _weighted_line(curve.part(slice(split, None)))
    # The upper piece must be clearly steeper, as a ratio and beyond the errors of both slopes.
    if low.slope <= 0 or high.slope < _RULE.slope_ratio * low.slope:
        return None
    change = high.slope - low.slope
    if change < _RULE.change_sigmas * (low.error + high.error):
        return None

    # The n at which both pieces give the same time.
    crossing = (low.intercept - high.intercept) / change
    # Else the sizes beside the crossing would not lie on the pieces that were fitted to them.
    least = sizes[split - 1] * (1 - _RULE.beside)
    most = sizes[split] * (1 + _RULE.beside)
    if not least <= crossing <= most:
        return None

    # How badly both pieces together fit the medians.
    model = np.concatenate([low.at(sizes[:split]), high.at(sizes[split:])])
    # By the time itself, so that long chains do not count more; a time below 1 ns counts as 1.
    relative_residuals = (curve.medians - model) / np.maximum(curve.medians, 1.0)
    # While the host issued the other units, the device finished this many of them.
    finished = (crossing - 1) * (low.slope / high.slope)
    # Units issued, less units finished, are those in flight (the depth of the queue).
    knee = Knee(float(crossing), float(crossing - finished), low.slope, high.slope)
    return _Bend(knee, float(np.sum(relative_residuals**2)))


def _error(issue: Floats) -> float:
    """The uncertainty of the median of these times, ns: its standard error, or 1 % of the median if
    there are too few samples for an estimate.
    """
    if issue.size < LINE.samples_per_n:
        return median(issue) / 100
    # The error of the mean of normal samples, times what a median's is larger by.
    error = MEDIAN_ERROR * lower_spread(issue) / issue.size**0.5
    # At least 1 ns: times that are all alike have no spread, but are no more exact than the clock.
    return max(error, 1.0)


def _weighted_line(curve: _Curve) -> _Piece:
    """The straight piece through a part of the curve, by weighted least squares on relative
    residuals, so that the long times do not count more than the short ones. The error of the slope
    follows from the errors of the medians.
    """
    # Weights of relative residuals: 1 / time². ``square`` is the weighted variance of n, not
    # divided.
    weights = 1 / np.maximum(curve.medians, 1.0) ** 2
    mean_n = np.average(curve.sizes, weights=weights)
    mean_time = np.average(curve.medians, weights=weights)
    centred = curve.sizes - mean_n
    square = float(np.sum(weights * centred**2))
    slope = float(np.sum(weights * centred * curve.medians)) / square
    # The slope is a weighted sum of the medians, so its error is the root of the sum of squares.
    errors = weights * centred * curve.errors
    slope_error = float(np.sqrt(np.sum(errors**2))) / square
    return _Piece(slope, float(mean_time - slope * mean_n), slope_error)
