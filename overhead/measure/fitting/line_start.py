"""From which n on T(n) is the line that was fitted: the line beside T(1), T(10), T(100) and the
sizes of the ladder.

A chain of one unit may differ from the line by an amount of its own (a wait that does not yet
sleep, the first unit after a wait), which T(1) itself tells. So the cost of one more unit is judged
by 10 units and more, and by what they add to T(1); the intercept is judged by T(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from overhead.measure.fitting.line import LINE, Floats, Line, undisturbed_mask
from overhead.measure.fitting.one_process import LEGACY_N, Process, ProcessFit, clock_step
from overhead.numerics import student_t_quantile


@dataclass(frozen=True)
class _StartRule:
    """When T(n) is off the line. Stricter values call noise a bend; looser ones leave short chains
    unsaid.
    """

    processes: int = 3
    """With fewer processes nothing is stated: the spread between two says little."""
    upper_quantile: float = 0.975
    """Upper end of the interval of the mean of the processes, which T(n) may be off in addition."""
    most_medians: float = 1.5
    """A process counts as at most this multiple of the median: one outlier must not hide the
    others.
    """
    near: float = 2.0
    """The whole interval of a size on the line lies within this multiple of what it may be off. Of
    520 sizes of simulated straight lines the widest reaches 1.6 times (November 2026); a higher one
    calls bends lines.
    """
    most_processes: float = 0.75
    """It also lies on the line if so many processes are that close: one disturbed process widens
    the interval.
    """
    increment: float = 0.5
    """What T(100) adds to T(10) may differ by this share of 90 units. With a smaller share the end
    of a short spin in the wait (40 us on an H100, November 2026) makes cheap units seem to start at
    100.
    """
    short: int = 100
    """Where T(1) alone is off, so many units or fewer must add to it what the line says."""
    own_size: int = 8
    """Sizes up to this one are the same in all processes; larger ones are drawn, except 10 and
    100.
    """
    few: int = 10
    """Without T(1), chains of so many units stand for one."""


_RULE = _StartRule()


@dataclass(frozen=True)
class LineStart:
    """``n``: the smallest n from which on T(n) was seen to be this line; 0 where that was not
    looked at.

    ``single``: the median T(1), ns, and ``expected``: what the line gives, where these are clearly
    apart; else 0.
    """

    n: int = 0
    single: float = 0.0
    expected: float = 0.0


@dataclass(frozen=True)
class _Size:
    """One size of n in all processes that have it: by process ``n``, T(n) (``times``) and what its
    line gives, ns.
    """

    n: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    given: list[float] = field(default_factory=list)
    off: dict[int, float] = field(default_factory=dict)
    """T(n) less what the line gives, ns, by the position of the process; 0 where the clock cannot
    tell.
    """

    def add(self, process: int, n: int, time: float, given: float, clock_step: float) -> None:
        """One more process."""
        self.n.append(n)
        self.times.append(time)
        self.given.append(given)
        self.off[process] = time - given if abs(time - given) > clock_step else 0.0

    @property
    def shares(self) -> Floats:
        """By process the share of T(n) by which it is off the line."""
        return np.array(list(self.off.values())) / np.maximum(np.array(self.times), 1.0)


def line_start(
    processes: Sequence[Process],
    fits: Sequence[ProcessFit],
    target: float,
    *,
    issue: bool = False,
) -> LineStart:
    """Where the line of ``complete`` begins, or, with ``issue``, that of ``issue``. ``target``: the
    relative half-width of a figure that is ``ok``; T(n) may be off by as much, and by noise.
    """
    allowed = max(target, LINE.misfit)
    sizes: dict[int, _Size] = {}
    slopes: dict[int, float] = {}
    for position, (process, fit) in enumerate(zip(processes, fits, strict=True)):
        line = fit.issue if issue else fit.complete
        if line is None or line.slope <= 0:
            continue
        slopes[position] = line.slope
        for label, (n, time) in _medians(process, fit, line, issue).items():
            size = sizes.setdefault(label, _Size())
            size.add(position, n, time, line.intercept + line.slope * n, clock_step(process))
    enough = {label: size for label, size in sizes.items() if len(size.n) >= _RULE.processes}
    longer = sorted(
        (size for label, size in enough.items() if label != 1), key=lambda size: max(size.n)
    )
    if not longer:
        return LineStart()
    one = enough.get(1)
    places = [_place(size, one, slopes, allowed) for size in longer]
    first = _first_on_line(longer, places, slopes)
    ten, hundred = enough.get(10), enough.get(LEGACY_N)
    if (
        ten
        and hundred
        and longer[first] is ten
        and _is_clear(_added(ten, hundred, slopes), _RULE.increment)
    ):
        first += 1
    only_noise = all(
        place == "open" and max(size.n) <= _RULE.few
        for size, place in zip(longer[:first], places[:first], strict=True)
    )
    begins_at_one = only_noise and _reaches_one(longer, one, slopes, allowed)
    if first and begins_at_one:
        # Noise hides whether the few units of T(10) are on the line; what this size adds to T(1)
        # tells of them too.
        begins_at_one = one is not None and _is_near(_added(one, longer[first], slopes), allowed)
    start = 1 if begins_at_one else max(longer[first].n)
    if one is None or not _is_clear(one.shares, allowed):
        return LineStart(start)
    return LineStart(start, float(np.median(one.times)), float(np.median(one.given)))


def _medians(
    process: Process, fit: ProcessFit, line: Line, issue: bool
) -> dict[int, tuple[int, float]]:
    """By size of n: n, and its median time without interrupted samples, ns. The label of a drawn
    size is below zero: it counts from the largest one.
    """
    samples = fit.wall[fit.below] if issue else fit.wall
    if not samples.size:
        return {}
    ns, times = samples[:, 0], samples[:, 1 if issue else 2]
    clear = undisturbed_mask(ns, times)
    medians = {int(n): float(np.median(times[clear & (ns == n)])) for n in np.unique(ns)}
    for n, time in _short_chains(process, line, issue).items():
        medians.setdefault(n, time)
    medians = {n: time for n, time in medians.items() if n <= ns.max()}
    common = [n for n in medians if n <= _RULE.own_size or n in (10, LEGACY_N)]
    drawn = sorted((n for n in medians if n not in common), reverse=True)
    found = {n: (n, medians[n]) for n in common}
    return found | {-1 - place: (n, medians[n]) for place, n in enumerate(drawn)}


def _short_chains(process: Process, line: Line, issue: bool) -> dict[int, float]:
    """T of 1, 10 and 100 units that were sampled beside the rounds, ns: by the anchors, else as
    one-off values.

    T(top) beside the anchors tells how fast the processor was at that moment.
    """
    found: dict[int, float] = {}
    name = "anchor_near_issue" if issue else "anchor_near"
    times = np.asarray(process.values(name), dtype=np.float64)
    if times.size:
        at = np.asarray(process.one_off[name].at)
        top = int(at.max())
        expected = line.intercept + line.slope * top
        pace = float(np.median(times[at == top])) / expected if expected > 0 else 1.0
        for n in np.unique(at[at < top]):
            found[int(n)] = float(np.median(times[at == n])) / pace
    if issue:
        return found
    for name, n in (("naive", 1), ("legacy", LEGACY_N)):
        if n not in found and process.values(name):
            found[n] = float(np.median(process.values(name)))
    return found


_Place = Literal["on", "shifted", "open", "off"]
"""Where T(n) lies: on the line, beside it by what T(1) is beside it, too uncertain to tell, or
elsewhere.
"""


def _place(size: _Size, one: _Size | None, slopes: dict[int, float], allowed: float) -> _Place:
    """Whether T(n) is what the line gives, or adds to T(1) what the line adds.

    It lies there only if the whole interval says so: the more the processes disagree, the less is
    known.
    """
    if _is_near(size.shares, allowed):
        return "on"
    if one is not None and _is_near(_added(one, size, slopes), allowed):
        return "shifted"
    return "off" if _is_clear(size.shares, allowed) else "open"


def _first_on_line(
    longer: Sequence[_Size], places: Sequence[_Place], slopes: dict[int, float]
) -> int:
    """The position of the smallest size that lies on the line, as all larger ones do or may do."""
    first = len(longer) - 1
    for position in range(len(longer) - 1, -1, -1):
        if places[position] == "off" or _jumps(longer, places, position, slopes):
            break
        if places[position] != "open":
            first = position
    return first


def _jumps(
    longer: Sequence[_Size], places: Sequence[_Place], position: int, slopes: dict[int, float]
) -> bool:
    """Whether T(n) jumps above this size: it is shifted, the next one is not, and what that adds is
    far off.
    """
    if (
        places[position] != "shifted"
        or position + 1 == len(longer)
        or places[position + 1] == "shifted"
    ):
        return False
    return _is_clear(_added(longer[position], longer[position + 1], slopes), _RULE.increment)


def _reaches_one(
    longer: Sequence[_Size], one: _Size | None, slopes: dict[int, float], allowed: float
) -> bool:
    """Whether nothing says that the units below the shortest of the ``longer`` chains cost
    something else.

    T(1) may differ by an amount of its own if that is lost in what 100 units, or fewer where these
    are the largest, add to it.
    """
    short = [size for size in longer if max(size.n) <= _RULE.short]
    if one is None:
        return bool(short) and max(short[0].n) <= _RULE.few
    if not _is_clear(one.shares, allowed):
        return True
    return bool(short) and not _is_clear(_added(one, short[-1], slopes), allowed)


def _added(low: _Size, high: _Size, slopes: dict[int, float]) -> Floats:
    """By process the share by which T(high) adds more to T(low) than the line does."""
    units = max(high.n) - max(low.n)
    both = [position for position in low.off if position in high.off]
    added = [(high.off[p] - low.off[p]) / (slopes[p] * units) for p in both]
    return np.asarray(added, dtype=np.float64)


def _is_clear(shares: Floats, allowed: float) -> bool:
    """Whether the mean of the processes is further from zero than is ``allowed``, noise
    included.
    """
    found = _mean(shares)
    return found is not None and abs(found.mean) > allowed + found.noise


def _is_near(shares: Floats, allowed: float) -> bool:
    """Whether the mean of the processes is not clearly further from zero, and its whole interval or
    most processes are close to it.
    """
    found = _mean(shares)
    if found is None or _is_clear(shares, allowed):
        return False
    most = float(np.quantile(np.abs(shares), _RULE.most_processes, method="inverted_cdf"))
    return min(abs(found.mean) + found.noise, most) <= _RULE.near * allowed


@dataclass(frozen=True)
class _Mean:
    """The mean share of the processes, and half the width of its interval."""

    mean: float
    noise: float


def _mean(shares: Floats) -> _Mean | None:
    """The mean, where an outlier counts as little more than the median size of the shares; None of
    few processes.
    """
    count = shares.size
    if count < _RULE.processes:
        return None
    middle = abs(float(np.median(shares)))
    clipped = np.clip(shares, -_RULE.most_medians * middle, _RULE.most_medians * middle)
    factor = student_t_quantile(_RULE.upper_quantile, count - 1)
    return _Mean(float(clipped.mean()), factor * float(clipped.std(ddof=1)) / count**0.5)
