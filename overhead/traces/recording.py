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

import numpy as np

from overhead.results import Reason, Why, because, together

MOST_LOST = 0.02
"""The largest share of launches or of device time without its other half that still allows a
verdict.
"""
MOST_BESIDE = 0.1
"""The largest share of a step that may be unclear to the replay: from a tenth on, synchronisations
are named too.
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
"""Times that differ by less are the same to the fit of a drifting clock."""
_WINDOWS = 200
"""The clocks are compared in so many parts of the recording."""
_MANY, _ALONE_NS = 20, 20_000.0
"""A time is a bad record if, of so many, at most one in fifty lies so far from the others; drift
and jitter do not.
"""
_COARSE_NS = 500.0
"""Times that are rounded to more than this cannot tell a kernel of a few µs."""


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
    waits, odd_waits = _without_outliers(waits, 1)
    starts, odd_starts = _without_outliers(starts, -1)
    outliers = odd_waits + odd_starts
    lowest = max((later for _, later in waits), default=-math.inf)
    highest = min((later for _, later in starts), default=math.inf)
    checked = bool(waits)
    if lowest <= SKEW_NS and highest >= -SKEW_NS:
        return Clocks(checked=checked, outliers=outliers)
    if lowest <= highest:
        inside = min((highest - lowest) / 2, _WAKE_NS)
        late = lowest + inside if lowest > SKEW_NS else highest - inside
        return Clocks(late, checked=checked, outliers=outliers)
    found = _drifting(_extremes(waits, max), _extremes(starts, min), checked)
    return dataclasses.replace(found, outliers=outliers)


def _without_outliers(
    bounds: Sequence[tuple[float, float]], sign: int
) -> tuple[Sequence[tuple[float, float]], int]:
    """The bounds without a few that contradict equal clocks and all others too; how many these are.

    ``sign``: 1 where a larger bound is the tighter one, else -1. One bad record must not move all
    others.
    """
    ordered = sorted((sign * later for _, later in bounds), reverse=True)
    most = max(1, int(MOST_LOST * len(ordered)))
    if len(ordered) < _MANY:
        return bounds, 0
    for odd in range(most, 0, -1):
        alone = ordered[odd - 1] - ordered[odd] > _ALONE_NS
        if alone and ordered[odd - 1] > SKEW_NS:
            return [bound for bound in bounds if sign * bound[1] <= ordered[odd]], odd
    return bounds, 0


def _extremes(
    bounds: Sequence[tuple[float, float]], extreme: Callable[..., tuple[float, float]]
) -> np.ndarray:
    """The tightest bound of each part of the recording, with its time."""
    if not bounds:
        return np.empty((0, 2))
    first, last = min(bounds)[0], max(bounds)[0]
    length = max(last - first, 1.0) / _WINDOWS
    parts: dict[int, tuple[float, float]] = {}
    for at, later in bounds:
        part = int((at - first) / length)
        parts[part] = extreme(parts.get(part, (at, later)), (at, later), key=_later)
    return np.array(sorted(parts.values()))


def _later(bound: tuple[float, float]) -> float:
    return bound[1]


def _drifting(lower: np.ndarray, upper: np.ndarray, checked: bool) -> Clocks:
    """The clock as a straight line between both kinds of bounds, as far from each as can be, up to
    ``_WAKE_NS``.
    """
    times = np.concatenate([lower[:, 0], upper[:, 0]])
    middle, length = (times.min() + times.max()) / 2, max(np.ptp(times), 1.0)
    # The line is a + b * x with x from -0.5 to 0.5.
    bounds = _Bounds(
        (lower[:, 0] - middle) / length, lower[:, 1], (upper[:, 0] - middle) / length, upper[:, 1]
    )
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
        limit the other.
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
        above, below = self.lower - slope * self.x_lower, self.upper - slope * self.x_upper
        first, last = int(above.argmax()), int(below.argmin())
        late, crossed = (above[first] + below[last]) / 2, (above[first] - below[last]) / 2
        change = (self.x_upper[last] - self.x_lower[first]) / 2
        return _Sloped(slope, float(late), float(crossed), float(change))


def _best_slope(bounds: _Bounds, most: float) -> _Sloped | None:
    """The line that crosses the bounds least; None if it is steeper than ``most``.

    Of lines that stay ``_WAKE_NS`` away from all bounds it is the flattest.
    """
    flat = bounds.best(0.0)
    if flat.change == 0:
        return flat
    lowest = _lowest_between(flat, bounds.best(math.copysign(most, -flat.change)), bounds)
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
        if between.crossed <= down.crossed + down.change * (slope - down.slope) + _SAME_NS:
            return between
        if between.change * down.change > 0:
            down = between
        else:
            up = between
    return up


def why_no_verdict(found: Recording) -> Why:
    """Why the recording allows no verdict; '' if it does."""
    return together(*_reasons(found))


def _reasons(found: Recording) -> Iterator[Reason]:
    yield from _lost(found)
    yield from _contradictions(found)
    if found.backwards > MOST_LOST * max(found.events, 1):
        yield because("many-events-backwards", backwards=found.backwards, events=found.events)
    if found.unreadable > MOST_LOST * max(found.events, 1):
        yield because("many-events-unreadable", unreadable=found.unreadable, events=found.events)
    if found.rounded_ns > _COARSE_NS:
        yield because("times-rounded", rounded_ns=found.rounded_ns)


def _lost(found: Recording) -> Iterator[Reason]:
    """What is missing, by the other half of it."""
    launches = max(found.launches, 1)
    if found.launches_without_work > MOST_LOST * launches:
        share = found.launches_without_work / launches
        yield because(
            "many-launches-without-work",
            lost=found.launches_without_work,
            launches=launches,
            share=share,
        )
    elif found.lost_ns > MOST_LOST * found.steps_ns:
        share = found.lost_ns / found.steps_ns
        yield because("much-work-lost", calls=_calls_without_work(found), share=share)
    if found.work_without_call_ns > MOST_LOST * found.work_ns:
        pieces, share = found.work_without_call, found.work_without_call_ns / found.work_ns
        if found.migrations == pieces:
            yield because("many-migrations-without-call", pieces=pieces, share=share)
        else:
            yield because("much-work-without-call", pieces=pieces, share=share)
    if found.shared > MOST_LOST * launches:
        yield because("many-launch-numbers-shared", kernels=found.shared)


def _calls_without_work(found: Recording) -> Reason:
    """Which calls have no device work in the recording: launches, copies and fills, or both."""
    launches = max(found.launches, 1)
    of_launches = because("calls-of-launches", lost=found.launches_without_work, launches=launches)
    of_copies = because("calls-of-copies", lost=found.copies_without_work, copies=found.copies)
    if found.launches_without_work and found.copies_without_work:
        return because("calls-of-both", launches=of_launches, copies=of_copies)
    return of_launches if found.launches_without_work else of_copies


def _contradictions(found: Recording) -> Iterator[Reason]:
    """What cannot be true together, if nothing is missing and the clocks are one."""
    launches = max(found.launches, 1)
    nodes = found.nodes + found.nodes_missing
    if found.nodes_missing > MOST_LOST * nodes:
        yield because("replays-differ", missing=found.nodes_missing, nodes=nodes)
    if found.unexplained_ns > MOST_LOST * found.steps_ns:
        share = found.unexplained_ns / found.steps_ns
        yield because("many-waits-unexplained", waits=found.unexplained_waits, share=share)
    if found.beside_ns > MOST_BESIDE * found.steps_ns:
        yield because("threads-side-by-side", share=found.beside_ns / found.steps_ns)
    if found.clocks.wrong_ns:
        yield because("clocks-contradict", wrong_ns=found.clocks.wrong_ns)
    if found.clocks.outliers > MOST_LOST * launches:
        yield because("many-times-contradict", pieces=found.clocks.outliers, launches=launches)


def caveats(found: Recording, shown_ns: float) -> list[Reason]:
    """What a reader must know before the verdict. ``shown_ns``: how long the steps take
    together.
    """
    said = []
    if not found.marked and shown_ns < 0.98 * found.recorded_ns:
        said.append(
            because("part-taken-as-one-step", shown_ns=shown_ns, recorded_ns=found.recorded_ns)
        )
    elif not found.marked:
        said.append(because("taken-as-one-step", recorded_ns=found.recorded_ns))
    if found.start_up:
        said.append(
            because("start-up-left-out", operation=found.start_up, took_ns=found.start_up_ns)
        )
    if found.steps_without_work:
        said.append(because("steps-without-work-left-out", steps=found.steps_without_work))
    if found.profiler_ns > MOST_LOST * found.steps_ns:
        said.append(because("profiler-holds-up-calls", share=found.profiler_ns / found.steps_ns))
    late, drift = found.clocks.late_ns, found.clocks.drift
    if drift:
        apart = {"apart_ns": abs(late), "side": _side(late), "drift_us": 1e6 * abs(drift)}
        said.append(because("device-clock-drifts", **apart))
    elif late:
        said.append(because("device-clock-apart", apart_ns=abs(late), side=_side(late)))
    return said


def _side(late_ns: float) -> str:
    return "late" if late_ns > 0 else "early"


def left_out(found: Recording) -> Iterator[Reason]:
    """What is left out; nothing where it is so much that the verdict says it."""
    if why_no_verdict(found):
        return
    yield from _little_doubts(found)
    if found.work_without_call:
        pieces = found.work_without_call
        share = found.work_without_call_ns / found.work_ns if found.work_ns else 0.0
        if found.migrations:
            yield because(
                "migrations-left-out", pieces=pieces, share=share, migrations=found.migrations
            )
        else:
            yield because("work-without-call-left-out", pieces=pieces, share=share)
    if found.shared:
        yield because("launch-numbers-shared", kernels=found.shared)
    if found.earlier:
        yield because("earlier-work-left-out", pieces=found.earlier)
    if found.doubled:
        yield because("doubled-events-left-out", events=found.doubled)
    if bad := found.backwards + found.unreadable:
        yield because("bad-events-left-out", events=bad)


def _little_doubts(found: Recording) -> Iterator[Reason]:
    """What is missing or contradicts the rest, and is too little to change a verdict."""
    if found.launches_without_work:
        yield because(
            "launches-without-work", lost=found.launches_without_work, launches=found.launches
        )
    if found.copies_without_work:
        yield because("copies-without-work", lost=found.copies_without_work, copies=found.copies)
    if found.nodes_missing:
        yield because("nodes-missing", missing=found.nodes_missing)
    if found.unexplained_waits:
        share = found.unexplained_ns / found.steps_ns
        yield because("waits-unexplained", waits=found.unexplained_waits, share=share)
    if found.clocks.outliers:
        yield because("times-contradict", pieces=found.clocks.outliers)
