"""Whether the clocks of host and device agree in a recording, and by how much they differ. Pure.

Device work cannot begin before the call that issues it, nor end after the wait for it. So each call
and each wait bounds how late the device's clock can be.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

SKEW_NS = 2000.0
"""How far the clocks of host and device may differ without a correction: recordings on healthy
machines differ so.
"""
_WAKE_NS = 6000.0
"""At most so long after its work a wait returns that waited for it: 6.1 µs in a recorded training
step on an H200.
"""
_LEAST_WAKE_NS = 2500.0
LEAST_WAKE_OF_HIP_NS = 250.0
"""A wait returns so long after its work at least: 3.5 µs or more in public recordings of CUDA, 0.4
µs or more in those of HIP. A shorter time makes a late clock likely.
"""
_LEAST_LATENCY_NS = 2000.0
"""Work begins so long after its call at least: 3.8 µs or more in 44 of 45 public recordings, 1.8 µs
in one. A shorter time makes an early clock likely.
"""
_CHECKED_NS = 20_000.0
"""The clocks are compared closely if the fastest wait and the fastest launch leave so much room for
a difference, at most: 8 to 19 µs in 12 public recordings with waits that spin. Where the host
sleeps in its waits, it is 60 µs and more.
"""
_MOST_DRIFT = 1e-3
"""Quartz clocks differ by less than 1e-4; more is no drift of a clock."""
_SAME_NS = 1e-3
"""Times that differ by less are the same to the fit of a drifting clock: it ends the search. It is
far below any time of a recording.
"""
_PERIODS = 200
"""The clocks are compared in so many periods of the recording. Chosen, not measured; more of them
cost time and let single records weigh more.
"""
_MANY = 20
_MOST_OUTLIERS = 0.02
_ALONE_NS = 20_000.0
"""Of ``_MANY`` times or more, at most ``_MOST_OUTLIERS`` are bad records, if they lie so far from
all others; drift and jitter do not. Chosen, not measured.
"""


@dataclass(frozen=True)
class Clocks:
    """How late the device's clock is against the host's. ``late_ns``: in the middle; ``drift``: ns
    for each ns.

    ``checked``: whether a wait for the device was there, without which a late clock cannot be seen.
    ``wrong_ns``: by how much times contradict each other that no clock explains; 0 if none do.
    ``outliers``: times that contradict all others, and were not compared.

    ``least_ns``, ``most_ns``: the clock is late at least, and at most, by so much, if the
    difference is the same all the time; None where nothing bounds it. ``least_wake_ns``: a wait
    returns so long after its work at least. ``device``: whose clock it is, where there are several.
    """

    late_ns: float = 0.0
    drift: float = 0.0
    middle_ns: float = 0.0
    checked: bool = False
    wrong_ns: float = 0.0
    outliers: int = 0
    least_ns: float | None = None
    most_ns: float | None = None
    least_wake_ns: float = _LEAST_WAKE_NS
    device: str = ""

    def late_at(self, at_ns: float) -> float:
        """How late the device's clock is at this time, ns."""
        return self.late_ns + self.drift * (at_ns - self.middle_ns)

    @property
    def agreement(self) -> ClockAgreement:
        """Whether a time of a few µs from the host to the device can be read: the clocks ``agree``,
        or they are ``apart``, also where that was corrected, since a correction is known to a few
        µs only; or nothing shows that they agree to some µs (``unchecked``).
        """
        if self.wrong_ns or self.outliers or self.late_ns or self.drift:
            return "apart"
        least_ns, most_ns = self.bounds
        # Launches and waits are faster than they can be.
        if least_ns > -self.least_wake_ns or most_ns < _LEAST_LATENCY_NS:
            return "apart"
        return "agree" if most_ns - least_ns <= _CHECKED_NS else "unchecked"

    @property
    def bounds(self) -> tuple[float, float]:
        """``least_ns`` and ``most_ns``, infinite where nothing bounds the clock. A file holds no
        infinity.
        """
        least_ns = -math.inf if self.least_ns is None else self.least_ns
        most_ns = math.inf if self.most_ns is None else self.most_ns
        return least_ns, most_ns


class ClockBound(NamedTuple):
    """A bound for how late the device's clock is. ``at``: when, ns; ``late_ns``: the bound.

    From a wait it is a lower one: the clock is late at least by what the awaited work ends after
    the wait. From a call that issues work it is an upper one: late at most by what the work begins
    after the call.
    """

    at: float
    late_ns: float


ClockAgreement = Literal["agree", "unchecked", "apart"]
_Side = Literal["lower", "upper"]


def _finite(value_ns: float) -> float | None:
    return value_ns if math.isfinite(value_ns) else None


def clocks_of(waits: Sequence[ClockBound], starts: Sequence[ClockBound]) -> Clocks:
    """Compare the clocks of host and device: they agree, or one correction makes them agree, or one
    that grows with time (a drift), or nothing does.

    ``waits``: for each wait, when it returns, and how much later the work ends that it waited for:
    the device's clock is late by that at least. ``starts``: for each call that issues work, when it
    begins, and how much later the work begins: the clock is late by that at most.
    """
    lower, odd_lower = _without_outliers(waits, "lower")
    upper, odd_upper = _without_outliers(starts, "upper")
    outliers = odd_lower + odd_upper
    checked = bool(lower)  # only a wait can show that the clock is late
    lowest_ns = max((bound.late_ns for bound in lower), default=-math.inf)
    highest_ns = min((bound.late_ns for bound in upper), default=math.inf)

    found = Clocks(
        checked=checked, outliers=outliers, least_ns=_finite(lowest_ns), most_ns=_finite(highest_ns)
    )
    # The usual case: no bound contradicts clocks that are equal but for what is normal.
    if lowest_ns <= SKEW_NS and highest_ns >= -SKEW_NS:
        return found

    if lowest_ns <= highest_ns:
        # One correction satisfies all bounds. It lies inside of them, since a wait returns up to
        # ``_WAKE_NS`` after its work: by that, or in the middle if there is less room. It is
        # measured from the bound that contradicts equal clocks.
        inside_ns = min((highest_ns - lowest_ns) / 2, _WAKE_NS)
        late_ns = highest_ns - inside_ns
        if lowest_ns > SKEW_NS:
            late_ns = lowest_ns + inside_ns
        return dataclasses.replace(found, late_ns=late_ns)

    # A bound of one time contradicts one of another time: the difference must change. Of each
    # period of the recording only the tightest bounds matter.
    drifting = _drifting(_tightest(lower, max), _tightest(upper, min), checked)
    return dataclasses.replace(drifting, outliers=outliers)


def worst_of(clocks: Sequence[Clocks]) -> Clocks:
    """Of the clocks of several devices the one that contradicts most, else differs most; it counts
    the outliers of all.
    """
    if not clocks:
        return Clocks()
    worst = max(clocks, key=_distrust)
    return dataclasses.replace(worst, outliers=sum(each.outliers for each in clocks))


def _distrust(clocks: Clocks) -> tuple[float, float, float, bool]:
    """In what order clocks are distrusted: by their contradictions, then by how far they are apart,
    then those of which less is known.
    """
    apart = clocks.agreement == "apart"
    return clocks.wrong_ns, abs(clocks.late_ns), abs(clocks.drift), apart or not clocks.checked


class _Kept(NamedTuple):
    """The bounds that are compared, and how many others are bad records."""

    bounds: Sequence[ClockBound]
    outliers: int


def _without_outliers(bounds: Sequence[ClockBound], side: _Side) -> _Kept:
    """The bounds without a few that contradict equal clocks, and that lie far from all others: one
    bad record would otherwise move the times of the whole recording.

    ``side``: whether the device's clock is late at least by these bounds (``lower``) or at most.
    """
    # Of a few bounds nobody can say which are usual.
    if len(bounds) < _MANY:
        return _Kept(bounds, 0)
    # A larger lower bound is the tighter one. With the sign turned this holds for upper ones too.
    sign = 1 if side == "lower" else -1
    tightest_first = sorted((sign * bound.late_ns for bound in bounds), reverse=True)
    most = max(1, int(_MOST_OUTLIERS * len(bounds)))
    # The odd ones are the tightest, beyond a wide gap to the others. The largest such group goes.
    for odd in range(most, 0, -1):
        # Only a bound beyond ``SKEW_NS`` contradicts equal clocks; others need not go.
        last_odd, first_usual = tightest_first[odd - 1], tightest_first[odd]
        if last_odd - first_usual > _ALONE_NS and last_odd > SKEW_NS:
            kept = [bound for bound in bounds if sign * bound.late_ns <= first_usual]
            return _Kept(kept, odd)
    return _Kept(bounds, 0)


def _tightest(bounds: Sequence[ClockBound], tighter: Callable[..., ClockBound]) -> np.ndarray:
    """The tightest bound of each of 200 periods of the recording: rows of time and bound, by time.
    So that a line is fitted to few bounds, from all of the recording.

    ``tighter``: ``max`` for lower bounds, ``min`` for upper ones.
    """
    if not bounds:
        return np.empty((0, 2))
    first = min(bound.at for bound in bounds)
    last = max(bound.at for bound in bounds)
    period_ns = max(last - first, 1.0) / _PERIODS
    by_period: dict[int, ClockBound] = {}
    for bound in bounds:
        period = int((bound.at - first) / period_ns)
        best = by_period.get(period, bound)
        by_period[period] = tighter(best, bound, key=_late_ns)
    return np.array(sorted(by_period.values()))


def _late_ns(bound: ClockBound) -> float:
    return bound.late_ns


def _drifting(lower: np.ndarray, upper: np.ndarray, checked: bool) -> Clocks:
    """The clock as a straight line over time between both kinds of bounds, as far from each as can
    be, up to ``_WAKE_NS``. If no line fits, the result says by how much the bounds contradict each
    other.

    ``lower``, ``upper``: rows of a time and of how late the device's clock is then at least or at
    most. ``checked`` is passed on: whether the recording has a wait to check the clock by.
    """
    times = np.concatenate([lower[:, 0], upper[:, 0]])
    middle = (times.min() + times.max()) / 2
    length = max(np.ptp(times), 1.0)
    # The line is a + b * x with x from -0.5 to 0.5, the first and the last time: so a slope is the
    # change over the whole recording.
    bounds = _Bounds(
        x_lower=(lower[:, 0] - middle) / length,
        lower=lower[:, 1],
        x_upper=(upper[:, 0] - middle) / length,
        upper=upper[:, 1],
    )
    best = _best_line(bounds, _MOST_DRIFT * length)
    # ``crossed``: by how much the line is on the wrong side of a bound.
    if best is None or best.crossed > SKEW_NS:
        return Clocks(checked=checked, wrong_ns=float(lower[:, 1].max() - upper[:, 1].min()))
    return Clocks(best.late, float(best.slope / length), float(middle), checked)


@dataclass(frozen=True)
class _Line:
    """The line with this slope that crosses its bounds least: how late the device's clock is, over
    time. ``late``: at x = 0. ``crossed``: by how much the line is on the wrong side of a bound;
    below 0 if it keeps that distance from all. ``change``: by how much ``crossed`` grows for each
    unit of slope, while the same two bounds limit the line.
    """

    slope: float
    late: float
    crossed: float
    change: float

    def slope_for(self, crossed: float) -> float:
        """The slope at which the two bounds that limit this line would be crossed by so much."""
        return self.slope + (crossed - self.crossed) / self.change

    def slope_as(self, other: _Line) -> float:
        """The slope at which the bounds that limit this line are crossed as much as those that
        limit the other: where the two straight pieces of ``crossed`` over the slope meet.
        """
        # A piece is straight: at the slope s it is ``crossed + change * (s - slope)``. This is how
        # far apart the two pieces are, if both go on to a slope of 0.
        apart_at_zero = other.crossed - self.crossed
        apart_at_zero += self.change * self.slope
        apart_at_zero -= other.change * other.slope
        return apart_at_zero / (self.change - other.change)


@dataclass(frozen=True)
class _Bounds:
    """Points between which a line should pass: above ``lower`` at ``x_lower``, and below ``upper``
    at ``x_upper``.
    """

    x_lower: np.ndarray
    lower: np.ndarray
    x_upper: np.ndarray
    upper: np.ndarray

    def best(self, slope: float) -> _Line:
        """The line with this slope that crosses the bounds least: in the middle between the lower
        and the upper bound that limit it.
        """
        # What each bound demands of the line's value at x = 0.
        above = self.lower - slope * self.x_lower
        below = self.upper - slope * self.x_upper
        highest, lowest = int(above.argmax()), int(below.argmin())
        late = (above[highest] + below[lowest]) / 2
        crossed = (above[highest] - below[lowest]) / 2
        # The derivative of ``crossed`` by the slope, while the same two bounds limit the line.
        change = (self.x_upper[lowest] - self.x_lower[highest]) / 2
        return _Line(slope, float(late), float(crossed), float(change))


def _best_line(bounds: _Bounds, steepest: float) -> _Line | None:
    """The line that crosses the bounds least; None if it is steeper than ``steepest``, since no
    clock drifts so fast.

    Of lines that stay ``_WAKE_NS`` away from all bounds it is the flattest.
    """
    flat = bounds.best(0.0)
    # ``change``: by how much a line crosses more for each unit of slope.
    # Both bounds that limit the line are at the same x, so no slope is better.
    if flat.change == 0:
        return flat
    # The best slope has the sign that makes the line cross less.
    steep = bounds.best(math.copysign(steepest, -flat.change))
    lowest = _least_crossing_between(flat, steep, bounds)
    # No line keeps that distance, so the one that crosses least is taken.
    if lowest.crossed > -_WAKE_NS:
        return lowest if abs(lowest.slope) < steepest else None
    # There is more room than a line needs: turn the flat one until it has just enough. Each turn
    # may meet another bound, so it is done until it suffices, but for ``_SAME_NS``.
    while flat.crossed > _SAME_NS - _WAKE_NS:
        # slope_for(): the slope at which its present bounds are that far away.
        flat = bounds.best(flat.slope_for(-_WAKE_NS))
    return flat


def _least_crossing_between(down: _Line, up: _Line, bounds: _Bounds) -> _Line:
    """The line that crosses the bounds least, between the slopes of two lines; ``up`` if the
    minimum is not between them. From ``down`` towards ``up`` a line crosses less at first.

    How much a line crosses is a convex function of its slope, made of straight pieces. Two pieces
    on different sides of the minimum are followed to where they meet; the piece that is there
    replaces one of them, until none is above.
    """
    # The signs differ as long as the minimum is between the two.
    while down.change * up.change < 0:
        slope = down.slope_as(up)
        between = bounds.best(slope)
        where_they_meet = down.crossed + down.change * (slope - down.slope)
        if between.crossed <= where_they_meet + _SAME_NS:
            return between
        if between.change * down.change > 0:
            down = between
        else:
            up = between
    return up
