"""From which n on T(n) is the line that was fitted: the line beside T(1), T(10), T(100) and the
sizes of the ladder.

A chain of one unit may differ from the line by an amount of its own (a wait that does not yet
sleep, the first unit after a wait), which T(1) itself tells. So the cost of one more unit is judged
by 10 units and more, and by what they add to T(1); the intercept is judged by T(1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from overhead.measure.fitting.line import LINE, Floats, Line, undisturbed_mask
from overhead.measure.fitting.one_process import LEGACY_N, Process, ProcessFit, clock_step
from overhead.measure.fitting.spread import MeanInterval, interval_of_mean, median, without_outliers


@dataclass(frozen=True)
class _StartRule:
    """When T(n) is off the line. Stricter values call noise a bend; looser ones leave short chains
    unsaid.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

    processes: int = 3
    """With fewer processes nothing is stated: the spread between two says little."""
    upper_quantile: float = 0.975
    """Upper end of the interval of the mean of the processes, which T(n) may be off in addition."""
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
_TEN = 10


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
class _SizeOfProcess:
    """One size of n in one process: its median time, ns."""

    n: int
    time: float


@dataclass(frozen=True)
class _Size:
    """One size of n in all processes that have it: by process ``n``, T(n) (``times``) and what its
    line gives (``on_line``), ns.
    """

    n: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    on_line: list[float] = field(default_factory=list)
    off: dict[int, float] = field(default_factory=dict)
    """T(n) less what the line gives, ns, by the position of the process; 0 where the clock cannot
    tell.
    """

    def add(self, process: int, at: _SizeOfProcess, line: Line, clock_step: float) -> None:
        """One more process, with its line."""
        on_line = line.intercept + line.slope * at.n
        off = at.time - on_line
        self.n.append(at.n)
        self.times.append(at.time)
        self.on_line.append(on_line)
        self.off[process] = off if abs(off) > clock_step else 0.0

    @property
    def largest_n(self) -> int:
        """The largest n of a process: drawn sizes differ between processes."""
        return max(self.n)

    @property
    def shares(self) -> Floats:
        """By process the share of T(n) by which it is off the line."""
        off_ns = np.array(list(self.off.values()))
        times_ns = np.maximum(np.array(self.times), 1.0)
        return off_ns / times_ns


@dataclass(frozen=True)
class _Sizes:
    """All sizes that enough processes have, in the order of n, with ``one`` (T(1)) apart.

    ``slopes``: of the lines, ns per unit, by the position of the process. ``allowed``: the share by
    which T(n) may be off, noise aside.
    """

    longer: list[_Size]
    one: _Size | None
    ten: _Size | None
    hundred: _Size | None
    slopes: Mapping[int, float]
    allowed: float

    def added(self, low: _Size, high: _Size) -> Floats:
        """By process the share by which T(high) adds more to T(low) than the line does."""
        units = high.largest_n - low.largest_n
        shares: list[float] = []
        for process, off_low in low.off.items():
            if process in high.off:
                added_by_line = self.slopes[process] * units
                shares.append((high.off[process] - off_low) / added_by_line)
        return np.asarray(shares, dtype=np.float64)


def line_start(
    processes: Sequence[Process],
    fits: Sequence[ProcessFit],
    precision: float,
    *,
    of_enqueue: bool = False,
) -> LineStart:
    """Where the line of ``complete`` begins, or, with ``of_enqueue``, that of ``issue``.
    ``precision``: the relative half-width of a figure that is ``ok``; T(n) may be off by as much,
    and by noise.
    """
    sizes = _sizes(processes, fits, max(precision, LINE.misfit), of_enqueue)
    if not sizes.longer:
        return LineStart()
    n = _first_n(sizes)
    one = sizes.one
    if one is None or not _is_clear(one.shares, sizes.allowed):
        return LineStart(n)
    return LineStart(n, single=median(one.times), expected=median(one.on_line))


def _sizes(
    processes: Sequence[Process], fits: Sequence[ProcessFit], allowed: float, of_enqueue: bool
) -> _Sizes:
    """The sizes of n beside the lines of the processes whose line rises."""
    by_label: dict[int, _Size] = {}
    slopes: dict[int, float] = {}
    for position, (process, fit) in enumerate(zip(processes, fits, strict=True)):
        line = fit.line(of_enqueue=of_enqueue)
        if line is None or line.slope <= 0:
            continue
        slopes[position] = line.slope
        for label, at in _medians(process, fit, line, of_enqueue).items():
            size = by_label.setdefault(label, _Size())
            size.add(position, at, line, clock_step(process))

    enough: dict[int, _Size] = {}
    for label, size in by_label.items():
        if len(size.n) >= _RULE.processes:
            enough[label] = size
    longer = [size for label, size in enough.items() if label != 1]
    longer.sort(key=lambda size: size.largest_n)
    return _Sizes(
        longer,
        one=enough.get(1),
        ten=enough.get(_TEN),
        hundred=enough.get(LEGACY_N),
        slopes=slopes,
        allowed=allowed,
    )


def _first_n(sizes: _Sizes) -> int:
    """The smallest n from which on T(n) is the line: 1, or the first of the longer sizes that lies
    on the line as all larger ones do or may do.
    """
    longer = sizes.longer
    places = [_place(size, sizes) for size in longer]
    first = _first_on_line(sizes, places)
    if longer[first] is sizes.ten and _jumps_to_hundred(sizes):
        first += 1
    if _begins_at_one(sizes, places, first):
        return 1
    return longer[first].largest_n


def _jumps_to_hundred(sizes: _Sizes) -> bool:
    """Whether T(100) is far off from what the line adds to T(10): then the line begins later."""
    if sizes.ten is None or sizes.hundred is None:
        return False
    return _is_clear(sizes.added(sizes.ten, sizes.hundred), _RULE.increment)


def _begins_at_one(sizes: _Sizes, places: Sequence[_Place], first: int) -> bool:
    """Whether the line begins at one unit, although ``first`` is the smallest size seen on it.

    All shorter sizes must be too uncertain to tell, and nothing may say that the units below cost
    something else.
    """
    for size, place in zip(sizes.longer[:first], places[:first], strict=True):
        if place != "open" or size.largest_n > _RULE.few:
            return False
    if not _reaches_one(sizes):
        return False
    if first == 0:
        return True
    # Noise hides whether the few units of T(10) are on the line; what this size adds to T(1) tells
    # of them too.
    if sizes.one is None:
        return False
    added = sizes.added(sizes.one, sizes.longer[first])
    return _is_near(added, sizes.allowed)


def _medians(
    process: Process, fit: ProcessFit, line: Line, of_enqueue: bool
) -> dict[int, _SizeOfProcess]:
    """By size of n: n, and its median time without interrupted samples, ns.

    The label of a size that all processes have is its n. Other sizes are drawn by each process:
    their label is below zero, and counts from the largest one.
    """
    samples = fit.samples(of_enqueue=of_enqueue)
    if not samples.n.size:
        return {}
    clear = undisturbed_mask(samples.n, samples.times)
    medians: dict[int, float] = {}
    for n in np.unique(samples.n):
        clear_at_n = clear & (samples.n == n)
        medians[int(n)] = median(samples.times[clear_at_n])
    for short_n, time in _short_chains(process, line, of_enqueue).items():
        if short_n <= samples.n.max():
            medians.setdefault(short_n, time)

    sizes: dict[int, _SizeOfProcess] = {}
    drawn: list[int] = []
    for n, time in medians.items():
        if n <= _RULE.own_size or n in (_TEN, LEGACY_N):
            sizes[n] = _SizeOfProcess(n, time)
        else:
            drawn.append(n)
    for place, n in enumerate(sorted(drawn, reverse=True), start=1):
        sizes[-place] = _SizeOfProcess(n, medians[n])
    return sizes


def _short_chains(process: Process, line: Line, of_enqueue: bool) -> dict[int, float]:
    """T of 1, 10 and 100 units that were sampled beside the rounds, ns: by the anchors, else as
    one-off values.
    """
    times = _beside_anchors(process, line, of_enqueue)
    if of_enqueue:
        return times
    for name, n in (("naive", 1), ("legacy", LEGACY_N)):
        values = process.values(name)
        if n not in times and values:
            times[n] = median(values)
    return times


def _beside_anchors(process: Process, line: Line, of_enqueue: bool) -> dict[int, float]:
    """T of the short chains beside the anchors, ns, by n.

    T(top) beside them, top being the line's largest n, tells how fast the processor was at that
    moment: the times are divided by that.
    """
    name = "anchor_near_issue" if of_enqueue else "anchor_near"
    times = np.asarray(process.values(name), dtype=np.float64)
    if not times.size:
        return {}
    ns = np.asarray(process.one_off[name].at)
    top = int(ns.max())
    expected = line.intercept + line.slope * top
    pace = 1.0
    if expected > 0:
        pace = median(times[ns == top]) / expected
    at_usual_pace: dict[int, float] = {}
    for n in np.unique(ns[ns < top]):
        at_usual_pace[int(n)] = median(times[ns == n]) / pace
    return at_usual_pace


_Place = Literal["on", "shifted", "open", "off"]
"""Where T(n) lies: on the line, beside it by what T(1) is beside it, too uncertain to tell, or
elsewhere.
"""


def _place(size: _Size, sizes: _Sizes) -> _Place:
    """Whether T(n) is what the line gives, or adds to T(1) what the line adds.

    It lies there only if the whole interval says so: the more the processes disagree, the less is
    known.
    """
    if _is_near(size.shares, sizes.allowed):
        return "on"
    if sizes.one is not None:
        added = sizes.added(sizes.one, size)
        if _is_near(added, sizes.allowed):
            return "shifted"
    if _is_clear(size.shares, sizes.allowed):
        return "off"
    return "open"


def _first_on_line(sizes: _Sizes, places: Sequence[_Place]) -> int:
    """The position of the smallest size that lies on the line, as all larger ones do or may do."""
    first = len(sizes.longer) - 1
    for position in reversed(range(len(sizes.longer))):
        if places[position] == "off" or _jumps_above(sizes, places, position):
            break
        if places[position] != "open":
            first = position
    return first


def _jumps_above(sizes: _Sizes, places: Sequence[_Place], position: int) -> bool:
    """Whether T(n) jumps above this size: it is shifted, the next one is not, and what that adds is
    far off.
    """
    is_last = position + 1 == len(sizes.longer)
    if is_last or places[position] != "shifted" or places[position + 1] == "shifted":
        return False
    added = sizes.added(sizes.longer[position], sizes.longer[position + 1])
    return _is_clear(added, _RULE.increment)


def _reaches_one(sizes: _Sizes) -> bool:
    """Whether nothing says that the units below the shortest of the longer chains cost something
    else.

    T(1) may differ by an amount of its own if that is lost in what 100 units, or fewer where these
    are the largest, add to it.
    """
    short = [size for size in sizes.longer if size.largest_n <= _RULE.short]
    one = sizes.one
    if one is None:
        return bool(short) and short[0].largest_n <= _RULE.few
    if not _is_clear(one.shares, sizes.allowed):
        return True
    if not short:
        return False
    added = sizes.added(one, short[-1])
    return not _is_clear(added, sizes.allowed)


def _is_clear(shares: Floats, allowed: float) -> bool:
    """Whether the mean of the processes is further from zero than is ``allowed``, noise
    included.
    """
    interval = _mean(shares)
    if interval is None:
        return False
    return abs(interval.mean) > allowed + interval.half_width


def _is_near(shares: Floats, allowed: float) -> bool:
    """Whether the mean of the processes is not clearly further from zero, and its whole interval or
    most processes are close to it.
    """
    interval = _mean(shares)
    if interval is None or _is_clear(shares, allowed):
        return False
    end_of_interval = abs(interval.mean) + interval.half_width
    distances = np.abs(shares)
    most = float(np.quantile(distances, _RULE.most_processes, method="inverted_cdf"))
    return min(end_of_interval, most) <= _RULE.near * allowed


def _mean(shares: Floats) -> MeanInterval | None:
    """The mean share of the processes with its interval, where an outlier counts as little more
    than the median size of the shares; None of few processes.
    """
    if shares.size < _RULE.processes:
        return None
    return interval_of_mean(without_outliers(shares), _RULE.upper_quantile)
