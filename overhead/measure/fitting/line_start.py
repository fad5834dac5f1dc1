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
    """One size of n in one process, and the median time of its samples, ns."""

    n: int
    time: float


@dataclass(frozen=True)
class _Size:
    """One size of n in all processes that have it. By process: ``n``, T(n) (``times``) and what its
    line gives (``on_line``), ns. Each process draws its own sizes, so ``n`` may differ from process
    to process.
    """

    n: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    on_line: list[float] = field(default_factory=list)
    off: dict[int, float] = field(default_factory=dict)
    """T(n) less what the line gives, ns, by the position of the process; 0 where the clock cannot
    tell.
    """

    def add(self, process: int, at: _SizeOfProcess, line: Line, clock_step: float) -> None:
        """Add this size of one more process, with its line. What the line is off by less than a
        step of the clock counts as 0.
        """
        # What the line gives at this n, ns.
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
    def shares_off(self) -> Floats:
        """By process the share of T(n) by which T(n) lies above the line."""
        off_ns = np.array(list(self.off.values()))
        times_ns = np.maximum(np.array(self.times), 1.0)
        return off_ns / times_ns


@dataclass(frozen=True)
class _Sizes:
    """All sizes of n that enough processes have: ``above_one`` in the order of n, and T(1), T(10),
    T(100) as ``n_1``, ``n_10``, ``n_100``, None where too few have it. ``n_1`` stands apart since a
    single unit may differ from the line by an amount of its own.

    ``slopes``: of the lines, ns per unit, by the position of the process. ``allowed``: the share by
    which T(n) may be off its line, noise aside.
    """

    above_one: list[_Size]
    n_1: _Size | None
    n_10: _Size | None
    n_100: _Size | None
    slopes: Mapping[int, float]
    allowed: float

    def excess_between(self, low: _Size, high: _Size) -> Floats:
        """By process how much more the units between two sizes cost than the line says, as a share
        of what it says. An amount of its own that T(n) contains at both sizes cancels.
        """
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
    """From which n on the line of a case holds, from 1 if possible: short chains may cost something
    else than the line, which was fitted mostly to long ones. Also whether T(1) is clearly off it.

    The line is that of ``complete`` or, with ``of_enqueue``, of ``issue``. ``precision``: the
    relative half-width of a figure that is ``ok``; T(n) may be off by as much, and by noise.
    """
    sizes = _sizes(processes, fits, max(precision, LINE.misfit), of_enqueue)
    # No size above 1 that enough processes have: where the line begins is not known.
    if not sizes.above_one:
        return LineStart()
    # First where the line begins; then whether T(1) is off it (``n_1``: the single units of all
    # processes, apart from the larger sizes).
    n = _first_n(sizes)
    single = sizes.n_1
    if single is None or not _is_clearly_off(single.shares_off, sizes.allowed):
        return LineStart(n)
    # ``times``: by process the measured T(1); ``on_line``: what the line of that process gives at
    # 1.
    return LineStart(n, single=median(single.times), expected=median(single.on_line))


def _sizes(
    processes: Sequence[Process], fits: Sequence[ProcessFit], allowed: float, of_enqueue: bool
) -> _Sizes:
    """Each size of n with its times and what the lines give there, from all processes whose line
    rises; sizes that too few processes have are left out.

    Sizes belong together by a label, since each process draws its own n: see ``_medians``.
    ``allowed``: the share by which T(n) may be off.
    """
    # First gather the sizes of all processes. A process is known by its position in ``processes``.
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

    # Then keep the sizes that enough processes have, and take T(1) apart.
    enough: dict[int, _Size] = {}
    for label, size in by_label.items():
        # Three: the spread between two processes says little.
        if len(size.n) >= _RULE.processes:
            enough[label] = size
    above_one = [size for label, size in enough.items() if label != 1]
    above_one.sort(key=lambda size: size.largest_n)
    return _Sizes(
        above_one,
        n_1=enough.get(1),
        n_10=enough.get(_TEN),
        n_100=enough.get(LEGACY_N),
        slopes=slopes,
        allowed=allowed,
    )


def _first_n(sizes: _Sizes) -> int:
    """The smallest n from which on T(n) is the line: 1, or the first of the larger sizes that lies
    on the line as all above it do or may do.
    """
    above_one = sizes.above_one
    # For each size: "on" the line, "shifted" beside it by what T(1) is, "open" (unclear) or "off".
    places = [_place(size, sizes) for size in above_one]
    first = _first_on_line(sizes, places)
    # T(10) may meet the line by chance: the units up to 100 then cost something else.
    # ``_jumps_to_hundred``: T(100) is far off from what the line adds to T(10). So T(100) is among
    # the sizes, and T(10) is not the last of them.
    if above_one[first] is sizes.n_10 and _jumps_to_hundred(sizes):
        first += 1
    if _begins_at_one(sizes, places, first):
        return 1
    return above_one[first].largest_n


def _jumps_to_hundred(sizes: _Sizes) -> bool:
    """Whether T(100) is far off from what the line adds to T(10): then the line begins later."""
    if sizes.n_10 is None or sizes.n_100 is None:
        return False
    return _is_clearly_off(sizes.excess_between(sizes.n_10, sizes.n_100), _RULE.increment)


def _begins_at_one(sizes: _Sizes, places: Sequence[_Place], first: int) -> bool:
    """Whether the line begins at one unit, although ``first`` is the position of the smallest size
    that was seen on it.

    Noise may hide whether shorter chains are on the line. So all shorter sizes must be too
    uncertain to tell, and nothing may say that the units below cost something else.
    """
    # The sizes below the first one on the line: each must be too uncertain to tell ("open"), and of
    # so few units (10) that it can stand for one.
    for size, place in zip(sizes.above_one[:first], places[:first], strict=True):
        if place != "open" or size.largest_n > _RULE.few:
            return False
    # What T(1) adds must not contradict it either.
    if not _may_reach_one(sizes):
        return False
    if first == 0:
        return True
    # Noise hides whether the few units of T(10) are on the line; what this size adds to T(1) tells
    # of them too.
    if sizes.n_1 is None:
        return False
    # Per process the share by which the units from the second one up to this size cost more than
    # the line says. What the first unit costs in addition cancels.
    excess = sizes.excess_between(sizes.n_1, sizes.above_one[first])
    # Close: the mean is not clearly off, and most processes or the whole interval are near.
    return _is_close(excess, sizes.allowed)


def _medians(
    process: Process, fit: ProcessFit, line: Line, of_enqueue: bool
) -> dict[int, _SizeOfProcess]:
    """The median time of each size of n in one process, without interrupted samples: those of the
    rounds, and 1, 10 and 100 units if only sampled beside them. By label, which says which sizes of
    different processes belong together.

    The label of a size that all processes have is its n. Other sizes are drawn by each process, as
    halvings of its largest one: their label is below zero, and counts from the largest one.
    """
    samples = fit.samples(of_enqueue=of_enqueue)
    if not samples.n.size:
        return {}
    # ``clear``: for each sample whether nothing interrupted it.
    clear = undisturbed_mask(samples.n, samples.times)
    medians: dict[int, float] = {}
    for n in np.unique(samples.n):
        clear_at_n = clear & (samples.n == n)
        medians[int(n)] = median(samples.times[clear_at_n])
    # Short chains that were sampled beside the rounds fill in what these lack.
    for short_n, time in _short_chains(process, line, of_enqueue).items():
        if short_n <= samples.n.max():
            medians.setdefault(short_n, time)

    # Then label each n: as itself, or -1, -2, ... for drawn ones from the largest down.
    sizes: dict[int, _SizeOfProcess] = {}
    drawn: list[int] = []
    for n, time in medians.items():
        # Up to 8, 10 and 100: the sizes that are not drawn.
        if n <= _RULE.own_size or n in (_TEN, LEGACY_N):
            sizes[n] = _SizeOfProcess(n, time)
        else:
            drawn.append(n)
    for place, n in enumerate(sorted(drawn, reverse=True), start=1):
        sizes[-place] = _SizeOfProcess(n, medians[n])
    return sizes


def _short_chains(process: Process, line: Line, of_enqueue: bool) -> dict[int, float]:
    """The times of 1, 10 and 100 units that a process sampled beside its rounds, ns by n: those
    beside its anchors (very long chains, timed last), which are set against the processor's speed
    at that moment; else single-shot values (``naive``, ``legacy``), which exist for the total
    alone.
    """
    times = _beside_anchors(process, line, of_enqueue)
    if of_enqueue:
        return times
    for name, n in (("naive", 1), ("legacy", LEGACY_N)):
        # ``naive``: single units with a wait each; ``legacy``: chains of 100.
        values = process.values(name)
        if n not in times and values:
            times[n] = median(values)
    return times


def _beside_anchors(process: Process, line: Line, of_enqueue: bool) -> dict[int, float]:
    """The times of the short chains that a process took together with its anchors (very long
    chains), at its end, ns by n. The processor may have run at another speed then than in the
    rounds, which the line is from. T(top) of that moment, top being the line's largest n, tells by
    how much: the times are divided by that.
    """
    name = "anchor_near_issue" if of_enqueue else "anchor_near"
    times = np.asarray(process.values(name), dtype=np.float64)
    if not times.size:
        return {}
    # The n of each of these times.
    ns = np.asarray(process.one_off[name].at)
    top = int(ns.max())
    top_on_line = line.intercept + line.slope * top
    # Above 1: the processor is slower now than it was in the rounds.
    slowdown = 1.0
    if top_on_line > 0:
        slowdown = median(times[ns == top]) / top_on_line
    at_usual_speed: dict[int, float] = {}
    for n in np.unique(ns[ns < top]):
        at_usual_speed[int(n)] = median(times[ns == n]) / slowdown
    return at_usual_speed


_Place = Literal["on", "shifted", "open", "off"]
"""Where T(n) lies: on the line, beside it by what T(1) is beside it, too uncertain to tell, or
elsewhere.
"""


def _place(size: _Size, sizes: _Sizes) -> _Place:
    """Where T(n) of a size lies: ``on`` the line; ``shifted``, if it adds to T(1) what the line
    adds, so that all units after the first cost what the line says; clearly ``off``; or ``open``,
    if the processes disagree too much to tell.
    """
    if _is_close(size.shares_off, sizes.allowed):
        return "on"
    if sizes.n_1 is not None:
        # Per process the share by which the units after the first cost more than the line says.
        excess = sizes.excess_between(sizes.n_1, size)
        if _is_close(excess, sizes.allowed):
            return "shifted"
    if _is_clearly_off(size.shares_off, sizes.allowed):
        return "off"
    return "open"


def _first_on_line(sizes: _Sizes, places: Sequence[_Place]) -> int:
    """The position in ``sizes.above_one`` of the smallest size that lies on the line, as all larger
    ones do or may do. ``places``: where each size lies, as ``_place`` says. Sizes are looked at
    from the largest down, up to the first that is clearly off; the largest counts in any case.
    """
    first = len(sizes.above_one) - 1
    # "open" sizes are passed over: they count if a smaller one is on the line again.
    for position in reversed(range(len(sizes.above_one))):
        if places[position] == "off" or _jumps_above(sizes, places, position):
            break
        if places[position] != "open":
            first = position
    return first


def _jumps_above(sizes: _Sizes, places: Sequence[_Place], position: int) -> bool:
    """Whether T(n) jumps above the size at this position: it lies beside the line by as much as
    T(1) (``shifted``), the next larger one does not, and the units in between cost something far
    off the line. The line then begins above the jump.
    """
    is_last = position + 1 == len(sizes.above_one)
    if is_last or places[position] != "shifted" or places[position + 1] == "shifted":
        return False
    # Per process the share by which the units between the two sizes cost more than the line says.
    excess = sizes.excess_between(sizes.above_one[position], sizes.above_one[position + 1])
    # By half: with a smaller share, a wait that first spins and then sleeps looks like a jump.
    return _is_clearly_off(excess, _RULE.increment)


def _may_reach_one(sizes: _Sizes) -> bool:
    """Whether nothing says that the units of the shortest chains cost something else than the line
    says.

    T(1) may be off the line by an amount of its own, such as a wait that does not yet sleep, if
    that is lost in what 100 units, or fewer where these are the largest, add to it. Without T(1)
    chains of up to 10 units must stand for it.
    """
    short = [size for size in sizes.above_one if size.largest_n <= _RULE.short]
    single = sizes.n_1
    if single is None:
        return bool(short) and short[0].largest_n <= _RULE.few
    # T(1) itself is on the line, or too uncertain to tell.
    if not _is_clearly_off(single.shares_off, sizes.allowed):
        return True
    if not short:
        return False
    # T(1) is off. Do the units that follow it, up to the largest short chain, cost what the line
    # says? Then only the first unit differs.
    excess = sizes.excess_between(single, short[-1])
    return not _is_clearly_off(excess, sizes.allowed)


def _is_clearly_off(shares: Floats, allowed: float) -> bool:
    """Whether these shares, by which each process is off its line, show that T(n) is off: their
    mean is further from zero than ``allowed`` and the half-width of its interval together. False
    with too few processes to tell.
    """
    interval = _mean(shares)
    if interval is None:
        return False
    return abs(interval.mean) > allowed + interval.half_width


def _is_close(shares: Floats, allowed: float) -> bool:
    """Whether these shares, by which each process is off its line, show that T(n) is on it: their
    mean is not clearly off by more than ``allowed``, and either its whole interval or most
    processes lie within a multiple of that. False where they are too uncertain to tell.
    """
    interval = _mean(shares)
    if interval is None or _is_clearly_off(shares, allowed):
        return False
    # Two measures of how far T(n) may be off: the far end of the interval of the mean, and the
    # distance within which most processes (three of four) lie. The smaller one counts, since a
    # single disturbed process widens the interval.
    end_of_interval = abs(interval.mean) + interval.half_width
    distances = np.abs(shares)
    most = float(np.quantile(distances, _RULE.most_processes, method="inverted_cdf"))
    # The multiple is 2: sizes of simulated straight lines stay within 1.6.
    return min(end_of_interval, most) <= _RULE.near * allowed


def _mean(shares: Floats) -> MeanInterval | None:
    """The mean share of the processes with its interval, where an outlier counts as little more
    than the median size of the shares; None of few processes.
    """
    if shares.size < _RULE.processes:
        return None
    return interval_of_mean(without_outliers(shares), _RULE.upper_quantile)
