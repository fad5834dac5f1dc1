"""What a recording holds beside its steps, what it has lost, and whether its two clocks agree.
Pure.

What is said of a step is true only if the recording is whole. So everything that is left out is
counted, and above a share the recording allows no verdict.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from overhead.results import Reason, Why, because, together

MOST_LOST = 0.02
"""The largest share of launches or of device time without its other half that still allows a
verdict. Chosen, not measured; a higher share lets a verdict stand on a recording that may lack what
bounds the step.
"""
MOST_BESIDE = 0.1
"""The largest share of a step that may be unclear to the replay: from a tenth on, synchronisations
are named too (``verdict``). Chosen, not measured.
"""
SKEW_NS = 2000.0
"""How far the clocks of host and device may differ without a correction: recordings on healthy
machines differ so.
"""
_WAKE_NS = 6000.0
"""At most so long after its work a wait returns that waited for it: 6.1 µs in a recorded training
step on an H200.
"""
_MOST_DRIFT = 1e-3
"""Quartz clocks differ by less than 1e-4; more is no drift of a clock."""
_SAME_NS = 1e-3
"""Times that differ by less are the same to the fit of a drifting clock: it ends the search. It is
far below any time of a recording.
"""
_WINDOWS = 200
"""A drifting clock is fitted to the tightest bound of each of so many parts of the recording.
Chosen, not measured.
"""
_MANY, _ALONE_NS = 20, 20_000.0
"""A time is a bad record if, of so many, at most one in fifty lies so far from the others; drift
and jitter do not. Chosen, not measured.
"""
_COARSE_NS = 500.0
"""Times that are rounded to more than this cannot tell a kernel of a few µs. Chosen, not
measured.
"""
_NEARLY_WHOLE = 0.98
"""The steps are the whole recording if they take this share of it or more."""


class _Bound(NamedTuple):
    """What one call tells of the device's clock. ``at``: when, ns. ``late_ns``: how late the clock
    is at least (a wait) or at most (a start).
    """

    at: float
    late_ns: float


@dataclass(frozen=True)
class Clocks:
    """How late the device's clock is against the host's. ``late_ns``: in the middle; ``drift``: ns
    for each ns.

    ``checked``: whether a wait for the device was there, without which a late clock cannot be seen.
    ``wrong_ns``: by how much times contradict each other that no clock explains; 0 if none do.
    ``outliers``: times that contradict all others, and were not compared.
    """

    late_ns: float = 0.0
    drift: float = 0.0
    middle_ns: float = 0.0
    checked: bool = False
    wrong_ns: float = 0.0
    outliers: int = 0

    def late_at(self, at_ns: float) -> float:
        """How late the device's clock is at this time, ns."""
        return self.late_ns + self.drift * (at_ns - self.middle_ns)


@dataclass(frozen=True)
class Recording:
    """Counts of a recording. ``marked``: whether it has marks of steps. ``recorded_ns``: its whole
    length.

    ``launches``: in the steps; ``launches_without_work``: of these. ``work_ns``: of the device in
    the time of the steps; ``work_without_call``, ``work_without_call_ns``: of that, what no
    recorded call issued. ``migrations``: how many of these pieces move managed memory. ``earlier``:
    work that was issued before the recording began. ``shared``: kernels that share the number of a
    launch with another kernel. ``doubled``: events that are there twice. ``backwards``: events that
    end before they begin; ``unreadable``: other events that cannot be read. ``steps_without_work``:
    marked steps that are left out. ``start_up``, ``start_up_ns``: the operation before an unmarked
    step whose first call took so much longer than the others. ``steps_ns``: how long the steps take
    together; the next times are of these. ``copies``: calls that copy or fill;
    ``copies_without_work``: of these. ``lost_ns``: the longest time that the work of launches,
    copies and fills may have taken that is not in the recording. ``waits``: calls that wait;
    ``unexplained_waits``, ``unexplained_ns``: of these, where no recorded work ends for which they
    can have waited. ``nodes``: pieces of work of replayed graphs; ``nodes_missing``: what replays
    have less than others of the same graph. ``may_wait``, ``may_wait_ns``: calls that last while
    the device works and are not known as waits. ``beside_ns``: waits of one thread while another
    works. ``profiler_ns``: how long the profiler itself held up calls.
    """

    marked: bool = True
    recorded_ns: float = 0.0
    launches: int = 0
    launches_without_work: int = 0
    work_ns: float = 0.0
    work_without_call: int = 0
    work_without_call_ns: float = 0.0
    migrations: int = 0
    earlier: int = 0
    shared: int = 0
    doubled: int = 0
    backwards: int = 0
    unreadable: int = 0
    events: int = 0
    memory_recorded: bool = True
    steps_without_work: int = 0
    start_up: str = ""
    start_up_ns: float = 0.0
    rounded_ns: float = 0.0
    steps_ns: float = 0.0
    copies: int = 0
    copies_without_work: int = 0
    lost_ns: float = 0.0
    waits: int = 0
    unexplained_waits: int = 0
    unexplained_ns: float = 0.0
    nodes: int = 0
    nodes_missing: int = 0
    may_wait: str = ""
    may_wait_ns: float = 0.0
    beside_ns: float = 0.0
    profiler_ns: float = 0.0
    clocks: Clocks = Clocks()


def clocks_of(
    waits: Sequence[tuple[float, float]], starts: Sequence[tuple[float, float]]
) -> Clocks:
    """Compare the clocks. ``waits``: when a wait ends, and how much later than that the work ends
    that it waited for.

    ``starts``: when a call begins that issues work, and how much later the work begins. Both in ns.
    Work must not begin before its call, nor end after the wait for it; so each gives a bound for
    how late the device's clock is.
    """
    lower, odd_waits = _without_outliers([_Bound(*wait) for wait in waits], 1)
    upper, odd_starts = _without_outliers([_Bound(*start) for start in starts], -1)
    outliers = odd_waits + odd_starts
    lowest = max((bound.late_ns for bound in lower), default=-math.inf)
    highest = min((bound.late_ns for bound in upper), default=math.inf)
    checked = bool(lower)
    if lowest <= SKEW_NS and highest >= -SKEW_NS:
        return Clocks(checked=checked, outliers=outliers)

    if lowest <= highest:
        # One correction satisfies all bounds. It lies inside of them, since a wait returns up to
        # ``_WAKE_NS`` after its work.
        inside = min((highest - lowest) / 2, _WAKE_NS)
        late = lowest + inside if lowest > SKEW_NS else highest - inside
        return Clocks(late, checked=checked, outliers=outliers)

    clocks = _drifting(_extremes(lower, max), _extremes(upper, min), checked)
    return dataclasses.replace(clocks, outliers=outliers)


def _without_outliers(bounds: Sequence[_Bound], sign: int) -> tuple[Sequence[_Bound], int]:
    """The bounds without a few that contradict equal clocks and all others too; how many these are.

    ``sign``: 1 where a larger bound is the tighter one, else -1. One bad record must not move all
    others.
    """
    if len(bounds) < _MANY:
        return bounds, 0
    tightest_first = sorted((sign * bound.late_ns for bound in bounds), reverse=True)
    most_odd = max(1, int(MOST_LOST * len(bounds)))
    for odd in range(most_odd, 0, -1):
        last_odd = tightest_first[odd - 1]
        first_good = tightest_first[odd]
        stands_apart = last_odd - first_good > _ALONE_NS
        if stands_apart and last_odd > SKEW_NS:
            return [bound for bound in bounds if sign * bound.late_ns <= first_good], odd
    return bounds, 0


def _extremes(bounds: Sequence[_Bound], extreme: Callable[..., _Bound]) -> np.ndarray:
    """The tightest bound of each part of the recording, in rows of its time and value. ``extreme``:
    ``max`` or ``min``, which finds the tightest.
    """
    if not bounds:
        return np.empty((0, 2))
    first = min(bounds).at
    last = max(bounds).at
    length = max(last - first, 1.0) / _WINDOWS
    tightest: dict[int, _Bound] = {}
    for bound in bounds:
        part = int((bound.at - first) / length)
        tightest[part] = extreme(tightest.get(part, bound), bound, key=_late_ns)
    return np.array(sorted(tightest.values()))


def _late_ns(bound: _Bound) -> float:
    return bound.late_ns


def _drifting(lower: np.ndarray, upper: np.ndarray, checked: bool) -> Clocks:
    """The clock as a straight line between both kinds of bounds, as far from each as can be, up to
    ``_WAKE_NS``.
    """
    times = np.concatenate([lower[:, 0], upper[:, 0]])
    middle = (times.min() + times.max()) / 2
    length = max(np.ptp(times), 1.0)
    # The line is a + b * x with x from -0.5 to 0.5.
    x_lower = (lower[:, 0] - middle) / length
    x_upper = (upper[:, 0] - middle) / length
    bounds = _Bounds(x_lower, lower[:, 1], x_upper, upper[:, 1])
    best = _best_slope(bounds, _MOST_DRIFT * length)
    if best is None or best.crossed > SKEW_NS:
        return Clocks(checked=checked, wrong_ns=float(lower[:, 1].max() - upper[:, 1].min()))
    return Clocks(best.late, best.slope / length, float(middle), checked)


@dataclass(frozen=True)
class _Sloped:
    """The best line with a slope. ``late``: at x = 0. ``crossed``: by how much it crosses a bound,
    below 0 if by none.

    ``change``: of ``crossed`` for each unit of slope.
    """

    slope: float
    late: float
    crossed: float
    change: float

    def slope_for(self, crossed: float) -> float:
        """The slope at which the two bounds that limit this line would be crossed by so much."""
        return self.slope + (crossed - self.crossed) / self.change

    def slope_as(self, other: _Sloped) -> float:
        """The slope at which the bounds that limit this line are crossed as much as those that
        limit the other: where two straight lines, crossed over slope, meet.
        """
        apart = other.crossed - self.crossed + self.change * self.slope - other.change * other.slope
        return apart / (self.change - other.change)


@dataclass(frozen=True)
class _Bounds:
    """The line must be above ``lower`` at ``x_lower``, and below ``upper`` at ``x_upper``."""

    x_lower: np.ndarray
    lower: np.ndarray
    x_upper: np.ndarray
    upper: np.ndarray

    def best(self, slope: float) -> _Sloped:
        """The line with this slope that crosses the bounds least: in the middle of the two that
        limit it.
        """
        # At each bound: how high a line with this slope must or may be at x = 0.
        must = self.lower - slope * self.x_lower
        may = self.upper - slope * self.x_upper
        highest = int(must.argmax())
        lowest = int(may.argmin())
        late = (must[highest] + may[lowest]) / 2
        crossed = (must[highest] - may[lowest]) / 2
        change = (self.x_upper[lowest] - self.x_lower[highest]) / 2
        return _Sloped(slope, float(late), float(crossed), float(change))


def _best_slope(bounds: _Bounds, most: float) -> _Sloped | None:
    """The line that crosses the bounds least; None if it is steeper than ``most``.

    Of lines that stay ``_WAKE_NS`` away from all bounds it is the flattest.
    """
    flat = bounds.best(0.0)
    if flat.change == 0:
        return flat
    steepest = bounds.best(math.copysign(most, -flat.change))
    lowest = _lowest_between(flat, steepest, bounds)
    if lowest.crossed > -_WAKE_NS:
        return lowest if abs(lowest.slope) < most else None
    while flat.crossed > _SAME_NS - _WAKE_NS:
        flat = bounds.best(flat.slope_for(-_WAKE_NS))
    return flat


def _lowest_between(down: _Sloped, up: _Sloped, bounds: _Bounds) -> _Sloped:
    """The line that crosses the bounds least, between two slopes; ``up`` if the minimum is not
    between them.

    How much a line crosses is a convex function of its slope, made of straight pieces. Two pieces
    on different sides of the minimum are followed to where they meet; the piece that is there
    replaces one of them, until none is above.
    """
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


def why_no_verdict(recording: Recording) -> Why:
    """Why the recording allows no verdict; '' if it does."""
    return together(*_reasons(recording))


def _reasons(recording: Recording) -> Iterator[Reason]:
    """Each reason why the recording allows no verdict."""
    yield from _lost(recording)
    yield from _contradictions(recording)
    if recording.backwards > MOST_LOST * max(recording.events, 1):
        yield because(
            "many-events-backwards", backwards=recording.backwards, events=recording.events
        )
    if recording.unreadable > MOST_LOST * max(recording.events, 1):
        yield because(
            "many-events-unreadable", unreadable=recording.unreadable, events=recording.events
        )
    if recording.rounded_ns > _COARSE_NS:
        yield because("times-rounded", rounded_ns=recording.rounded_ns)


def _lost(recording: Recording) -> Iterator[Reason]:
    """What is missing, by the other half of it."""
    launches = max(recording.launches, 1)
    if recording.launches_without_work > MOST_LOST * launches:
        share = recording.launches_without_work / launches
        yield because(
            "many-launches-without-work",
            lost=recording.launches_without_work,
            launches=launches,
            share=share,
        )
    elif recording.lost_ns > MOST_LOST * recording.steps_ns:
        share = recording.lost_ns / recording.steps_ns
        yield because("much-work-lost", calls=_calls_without_work(recording), share=share)
    if recording.work_without_call_ns > MOST_LOST * recording.work_ns:
        pieces = recording.work_without_call
        share = recording.work_without_call_ns / recording.work_ns
        if recording.migrations == pieces:
            yield because("many-migrations-without-call", pieces=pieces, share=share)
        else:
            yield because("much-work-without-call", pieces=pieces, share=share)
    if recording.shared > MOST_LOST * launches:
        yield because("many-launch-numbers-shared", kernels=recording.shared)


def _calls_without_work(recording: Recording) -> Reason:
    """Which calls have no device work in the recording: launches, copies and fills, or both."""
    launches = max(recording.launches, 1)
    of_launches = because(
        "calls-of-launches", lost=recording.launches_without_work, launches=launches
    )
    of_copies = because(
        "calls-of-copies", lost=recording.copies_without_work, copies=recording.copies
    )
    if recording.launches_without_work and recording.copies_without_work:
        return because("calls-of-both", launches=of_launches, copies=of_copies)
    return of_launches if recording.launches_without_work else of_copies


def _contradictions(recording: Recording) -> Iterator[Reason]:
    """What cannot be true together, if nothing is missing and the clocks are one."""
    launches = max(recording.launches, 1)
    nodes = recording.nodes + recording.nodes_missing
    if recording.nodes_missing > MOST_LOST * nodes:
        yield because("replays-differ", missing=recording.nodes_missing, nodes=nodes)
    if recording.unexplained_ns > MOST_LOST * recording.steps_ns:
        share = recording.unexplained_ns / recording.steps_ns
        yield because("many-waits-unexplained", waits=recording.unexplained_waits, share=share)
    if recording.beside_ns > MOST_BESIDE * recording.steps_ns:
        yield because("threads-side-by-side", share=recording.beside_ns / recording.steps_ns)
    if recording.clocks.wrong_ns:
        yield because("clocks-contradict", wrong_ns=recording.clocks.wrong_ns)
    if recording.clocks.outliers > MOST_LOST * launches:
        yield because("many-times-contradict", pieces=recording.clocks.outliers, launches=launches)


def caveats(recording: Recording, shown_ns: float) -> list[Reason]:
    """What a reader must know before the verdict. ``shown_ns``: how long the steps take
    together.
    """
    reasons = []
    if not recording.marked:
        reasons.append(_taken_as_one_step(recording, shown_ns))
    if recording.start_up:
        reasons.append(
            because(
                "start-up-left-out", operation=recording.start_up, took_ns=recording.start_up_ns
            )
        )
    if recording.steps_without_work:
        reasons.append(because("steps-without-work-left-out", steps=recording.steps_without_work))
    if recording.profiler_ns > MOST_LOST * recording.steps_ns:
        share = recording.profiler_ns / recording.steps_ns
        reasons.append(because("profiler-holds-up-calls", share=share))
    late_ns = recording.clocks.late_ns
    drift_us = 1e6 * abs(recording.clocks.drift)  # µs for each second
    apart = {"apart_ns": abs(late_ns), "side": _side(late_ns)}
    if drift_us:
        reasons.append(because("device-clock-drifts", **apart, drift_us=drift_us))
    elif late_ns:
        reasons.append(because("device-clock-apart", **apart))
    return reasons


def _taken_as_one_step(recording: Recording, shown_ns: float) -> Reason:
    """That a recording without marks counts as one step: all of it, or its part with device
    work.
    """
    recorded_ns = recording.recorded_ns
    if shown_ns < _NEARLY_WHOLE * recorded_ns:
        return because("part-taken-as-one-step", shown_ns=shown_ns, recorded_ns=recorded_ns)
    return because("taken-as-one-step", recorded_ns=recorded_ns)


def _side(late_ns: float) -> str:
    return "late" if late_ns > 0 else "early"


def left_out(recording: Recording) -> Iterator[Reason]:
    """What is left out; nothing where it is so much that the verdict says it."""
    if why_no_verdict(recording):
        return
    yield from _little_doubts(recording)
    if recording.work_without_call:
        pieces = recording.work_without_call
        share = recording.work_without_call_ns / recording.work_ns if recording.work_ns else 0.0
        if recording.migrations:
            yield because(
                "migrations-left-out", pieces=pieces, share=share, migrations=recording.migrations
            )
        else:
            yield because("work-without-call-left-out", pieces=pieces, share=share)
    if recording.shared:
        yield because("launch-numbers-shared", kernels=recording.shared)
    if recording.earlier:
        yield because("earlier-work-left-out", pieces=recording.earlier)
    if recording.doubled:
        yield because("doubled-events-left-out", events=recording.doubled)
    bad_events = recording.backwards + recording.unreadable
    if bad_events:
        yield because("bad-events-left-out", events=bad_events)


def _little_doubts(recording: Recording) -> Iterator[Reason]:
    """What is missing or contradicts the rest, and is too little to change a verdict."""
    if recording.launches_without_work:
        yield because(
            "launches-without-work",
            lost=recording.launches_without_work,
            launches=recording.launches,
        )
    if recording.copies_without_work:
        yield because(
            "copies-without-work", lost=recording.copies_without_work, copies=recording.copies
        )
    if recording.nodes_missing:
        yield because("nodes-missing", missing=recording.nodes_missing)
    if recording.unexplained_waits:
        share = recording.unexplained_ns / recording.steps_ns
        yield because("waits-unexplained", waits=recording.unexplained_waits, share=share)
    if recording.clocks.outliers:
        yield because("times-contradict", pieces=recording.clocks.outliers)
