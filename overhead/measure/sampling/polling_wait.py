"""A wait that polls rarely makes T(n), the time of n units, a staircase: find its stairs."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import NamedTuple

from overhead.measure.sampling.chain import Samples
from overhead.measure.sampling.window import TrialSamples


@dataclass(frozen=True)
class _SearchRule:
    """How the stairs of a poll that nobody declared are told from a line. Stricter values miss
    stairs in noise; looser ones take a change of the machine's speed for a stair.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    points: tuple[float, ...] = (0.38, 0.62, 0.81, 0.24, 0.93)
    """Where between 1 and the top T is compared with a straight line. None is near a common
    fraction, where stairs could meet the line.
    """
    off_line: float = 0.03
    """A point is off the line from this share of the rise on."""
    jump: float = 0.05
    """A jump between two close n is a stair only from this share of the rise on."""
    steeper: float = 2.0
    """A jump must also exceed this multiple of the linear rise between the two n."""
    width: float = 0.015
    """An edge is bracketed to this share of n: a closer bracket takes more samples. The rounds draw
    n within twice that.
    """
    tread: float = 1.9
    """T must stay level from an edge to this multiple of its n: the next edge is at twice the n."""
    rise_of_tread: float = 0.25
    """T is level if it rises by less than this share of the jump."""
    levels: tuple[int, int] = (3, 8)
    """The upper stair is between these two: a higher one gives a better slope and takes longer
    samples.
    """
    short_issue_ns: float = 4e6
    """``issue`` of the short n: long against the clock's step, short against the time between
    interruptions.
    """


@dataclass(frozen=True)
class KnownPollRule:
    """How the stairs of a declared poll are found with few of its long samples. Times are shares of
    the quantum.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    first_lead: float = 0.015
    """The first windows for T(1) open so long before a poll; the lead is doubled, to ``most_lead``,
    until T(1) fits.
    """
    most_lead: float = 1 / 8
    lead_spread: tuple[float, float] = (0.7, 1.4)
    """The first lead is drawn within these factors, and the first n within ``first_n``, so that
    processes differ.
    """
    first_n: tuple[float, float] = (5.0, 11.0)
    climb_factor: int = 8
    climb_lead: float = 0.2
    """While n is raised by ``climb_factor``, windows open this long before a poll. The first n that
    is not done at that poll is done at the next one, and the edge is within ``climb_factor`` of it.
    """
    missed: float = 0.3
    """A T above this missed that poll: an interruption lengthens T, but hardly beyond this. If the
    way to the page takes longer than the lead, or the page wakes late, the poll was missed and T is
    nearly a quantum.
    """
    second_poll: float = 1.05
    """A T above this ended at the second poll."""
    step: float = 0.5
    """The first step towards an edge, in ln n; towards the edge of a higher stair a quarter of
    it.
    """
    tries: int = 12
    steps_before_doubling: int = 4
    width: float = 0.4
    """An edge is bracketed to this share of the target; a closer bracket would only take time."""
    narrowest: float = 0.03
    """The narrowest bracket, as a share of n: below it the scatter of the work dominates."""
    level: int = 1
    """The upper stair: on a higher one both the scatter and the time of a sample grow."""


_SEARCH = _SearchRule()
KNOWN_POLL = KnownPollRule()


@dataclass(frozen=True)
class Stairs:
    """T(n), the time of n units, as a staircase: a wait that polls rarely returns at the first poll
    after the work is done, so T(n) stays level and jumps where one more poll is needed.

    ``quantum_ns``: between two polls. ``edges``: two n at which T jumps. ``short``: an n with a
    short ``issue``. ``width``: the precision of the upper edge, as a share of n. ``levels``: at the
    upper edge the work takes this many times the quantum. ``shorts``, ``nears``: how often a pass
    contains the short n, and an n near each edge.
    """

    quantum_ns: int
    edges: tuple[int, int]
    short: int
    width: float = _SEARCH.width
    levels: int = _SEARCH.levels[0]
    shorts: int = 1
    nears: int = 1

    @property
    def unit_ns(self) -> float:
        """An estimate of one more unit, ns."""
        units = self.edges[1] - self.edges[0]
        if not units:
            return self.quantum_ns / self.edges[0]
        return self.quantum_ns * (self.levels - 1) / units

    @property
    def pass_ns(self) -> float:
        """An estimate of a pass, ns: half of the samples at an edge wait for one more poll."""
        return self.quantum_ns * (self.nears * (self.levels + 2) + self.shorts)

    def draw(self, dice: random.Random) -> list[int]:
        """The n of a pass (one turn of samples), in random order: some near either edge, an n at
        which T jumps, where whether the work was done at the poll says most about the cost of a
        unit, and short ones, which measure ``issue``.
        """
        ns: list[int] = []
        # ``nears``: how many samples near each edge a pass has; ``shorts``: how many of the short
        # n.
        for edge in self.edges * self.nears:
            # As a share of the edge's n: up to twice the precision to which the edge is known.
            away = dice.uniform(-2 * self.width, 2 * self.width)
            ns.append(max(1, round(edge * (1 + away))))
        ns += [self.short] * self.shorts
        return dice.sample(ns, len(ns))


class RisingPart(NamedTuple):
    """Between which n T(n) rises: up to ``n_without_rise`` it does not clearly, at ``top_n`` it
    does. ``fixed_ns``: T(1); ``top_ns``: T(top_n).
    """

    n_without_rise: int
    top_n: int
    fixed_ns: float
    top_ns: float

    @property
    def height_ns(self) -> float:
        """By how much T(n) rises, ns."""
        return self.top_ns - self.fixed_ns


def find_stairs(
    trial: TrialSamples, rising: RisingPart, noise: float, sample_ns: int
) -> Stairs | None:
    """Find out whether the wait polls rarely, where the stack does not say so: T(n) is then a
    staircase, which jumps where one more poll is needed. Returns its stairs, or None if T rises
    smoothly.

    A few points decide whether to search. Then bisection finds the first n at which T has risen,
    and whether T jumps there and stays level after. ``noise``: standard deviation of one sample,
    ns; ``sample_ns``: the longest sample.
    """
    height = rising.height_ns
    # ``height``: by how much T rises in all. Over fewer than 16 units stairs are not looked for.
    if rising.top_n - rising.n_without_rise < 16 or height <= 0:
        return None
    # What a point may be off a straight line: a share of the rise, and noise.
    slack_ns = max(_SEARCH.off_line * height, 2 * noise)
    if _is_straight(trial, rising, slack_ns=slack_ns):
        return None

    # The first edge: the n at which T leaves T(1) by more than noise.
    first_step_ns = rising.fixed_ns + max(height / 16, 5 * noise)
    first = _edge(trial, rising.n_without_rise, rising.top_n, first_step_ns)
    # By new samples: a change of the machine's speed does not repeat.
    # ``_away``: twice the precision of the edge, so that T is surely below or above it there.
    above_ns = trial.shortest_total(first + _away(first))
    below_ns = trial.shortest_total(max(1, first - _away(first)))
    quantum = above_ns - below_ns
    units = rising.top_n - rising.n_without_rise
    # What a straight line would rise by between the two n beside the edge. A jump must exceed a
    # multiple of that, a share of the whole rise, and what noise may be.
    linear_rise = 2 * _away(first) * height / units
    least_jump = max(_SEARCH.jump * height, 8 * noise, _SEARCH.steeper * linear_rise)
    if quantum < least_jump or _climbs(trial, first, quantum):
        return None

    # A second edge, ``level`` stairs up, gives a better slope. The level is as high as the longest
    # sample allows, within 3 and 8; the n of the edge is about that many times the first.
    least, most = _SEARCH.levels
    level = max(least, min(most, round(sample_ns / quantum)))
    # In the middle of the stair above: T crosses it at the edge that is looked for.
    # ``fixed_ns``: T(1). ``quantum``: what T jumps by at an edge, the time between two polls.
    line_ns = rising.fixed_ns + (level - 0.5) * quantum
    guess = first * level
    # The guess is rough: the range begins a little below it and ends further above.
    bracket = bracket_crossing(trial, line_ns, low=round(guess * 0.96), high=round(guess * 1.12))
    if bracket.high > trial.chain.max_n:
        return None
    upper = _edge(trial, bracket.low, bracket.high, line_ns)
    return Stairs(round(quantum), (first, upper), _short(trial, first), levels=level)


def find_known_stairs(trial: TrialSamples, poll_ns: float, precision: float) -> Stairs | None:
    """The stairs of T(n) where the wait polls about every ``poll_ns`` (the quantum): T stays level
    and jumps where one more poll is needed. Found with few of its long samples.

    None if T(1) or a larger n shows no such stairs. ``precision``: the relative half-width wanted
    of the slope.

    Each sample gives one bit: whether the work was done at the poll. A sample takes one quantum
    whatever n is, so T(1) and the n that takes one quantum give the best slope for the time. T(1)
    is bracketed by windows that open just before a poll; if it takes too long for that, a second
    stair is used instead. The search starts at an n that differs between processes, so that the
    errors of their brackets are independent.
    """
    # The first of a list may begin between two polls; the others begin right after one.
    rows = trial.run([1, 1, 1])[1:]
    # The shortest of two full waits for one unit is about the time between two polls.
    quantum = float(min(row[2] for row in rows))
    # Shorter than half of the declared time: the wait does not poll as the stack says.
    if quantum < poll_ns / 2:
        return None
    # Seeded by measured times: processes differ, and the same samples give the same search.
    dice = random.Random(str(trial.seen))
    # ``seen``: the rows of all samples so far, of which some become part of the fit.
    trial.seen.clear()
    # First samples of one unit that were done at the first poll, then the n that takes one quantum.
    done_at_once = _bracket_one(trial, quantum, dice)
    rough_edge = _first_edge(trial, quantum, dice)
    if rough_edge is None:
        return None
    # Samples become part of the fit, but not those of the climb to the edge.
    trial.seen[:] = done_at_once

    # How closely the edges are bracketed, as a share of n.
    width = max(KNOWN_POLL.narrowest, KNOWN_POLL.width * precision)
    step = KNOWN_POLL.step
    first = _edge_by_walk(trial, rough_edge, _Poll(1, quantum), step, width)
    # Without a bracket of T(1) the slope comes from two edges: a higher one is needed.
    level = KNOWN_POLL.level if done_at_once else _SEARCH.levels[0]
    upper = first
    if level > 1:
        poll = _Poll(level, quantum)
        # A quarter of the step: the first edge tells about where a higher one is.
        upper = _edge_by_walk(trial, first * level, poll, step / 4, width)
    if not 1 < upper <= trial.chain.max_n:
        return None
    short = _short(trial, first)
    # Where ``issue`` is always short, every sample measures it: no short n is needed.
    shorts = 2 if short < first // 2 else 0
    return Stairs(round(quantum), (first, upper), short, width, level, shorts, nears=2)


def _bracket_one(trial: TrialSamples, quantum: float, dice: random.Random) -> Samples:
    """Samples of n = 1 that show how short T(1) is although the wait polls rarely: an idle time
    lets each window open shortly before a poll (the lead), and T(1) was shorter than the lead if
    the work is done at that poll. The lead is doubled until one sample was.
    """
    # 1.5 % of a quantum, times a random factor so that processes differ; at most an eighth.
    lead = KNOWN_POLL.first_lead * quantum * dice.uniform(*KNOWN_POLL.lead_spread)
    while True:
        # Two windows that open ``lead`` before a poll.
        rows = trial.run_after_idle([1, 1], quantum - lead)
        # A sample that took longer than half the time between two polls ended at a later one.
        missed_both = min(row[2] for row in rows) > quantum / 2
        if not missed_both or lead >= KNOWN_POLL.most_lead * quantum:
            break
        lead *= 2
    return [row for row in trial.seen if row[2] < quantum / 2]


def _first_edge(trial: TrialSamples, quantum: float, dice: random.Random) -> float | None:
    """Roughly the n whose work takes one quantum, the time between two polls; None if no n up to
    the stack's limit misses a poll. Here n is raised by large factors, in windows that open shortly
    before a poll, until the work is no longer done at it.
    """
    n = round(dice.uniform(*KNOWN_POLL.first_n))
    most = trial.chain.max_n
    lead = KNOWN_POLL.climb_lead
    while True:
        # Index 2: T(n). In quanta, it tells at which poll the wait returned.
        row = trial.run_after_idle([n], quantum * (1 - lead))[0]
        quanta = row[2] / quantum
        # Nearly a quantum: the window opened after the poll, which tells nothing of the work.
        # ``lead``: a fifth of a quantum. ``second_poll``: 1.05 quanta.
        opened_late = 1 - lead < quanta < KNOWN_POLL.second_poll
        # 0.3: an interruption lengthens a time that met its poll, but hardly beyond that.
        if quanta >= KNOWN_POLL.missed and not opened_late:
            # The work ended in the quantum before the poll. Below one quantum, the poll itself came
            # late, when the work was done. The edge is taken in the middle, in factors.
            least = quanta - 1 if quanta > KNOWN_POLL.second_poll else quanta
            return n / (quanta * least) ** 0.5
        if n >= most:
            return None
        n = min(KNOWN_POLL.climb_factor * n, most)


class _Poll(NamedTuple):
    """The poll of this number after the start of a window (``level``), and the time between two
    polls, ns.
    """

    level: int
    quantum: float

    def is_after(self, total_ns: float) -> bool:
        """Whether a wait that took this long returned at this poll or before."""
        quanta = self.level - 1 + KNOWN_POLL.second_poll
        return total_ns < quanta * self.quantum


def _edge_by_walk(trial: TrialSamples, n: float, poll: _Poll, step: float, width: float) -> int:
    """The n at which half of the samples are done at this poll. One sample tells only whether n is
    too small or too large, so n walks towards the edge; a step is halved after a turn and doubled
    after several steps one way. ``n``: where to begin. ``step``: the first step, in ln n.
    ``width``: the share of n at which to end.

    H. Kesten, Accelerated stochastic approximation, Annals of Mathematical Statistics 29 (1958) 41.
    """
    before = 0
    steps_this_way = 0
    for _ in range(KNOWN_POLL.tries):
        total_ns = trial.run([max(1, round(n))])[0][2]
        # Done at this poll: n is too small, so up; else down.
        direction = 1 if poll.is_after(total_ns) else -1
        steps_this_way = steps_this_way + 1 if direction == before else 1
        turned = steps_this_way == 1 and before != 0
        if turned:
            step /= 2
        # Four steps one way: the edge is far, so longer steps.
        elif steps_this_way >= KNOWN_POLL.steps_before_doubling:
            step *= 2
        before = direction
        # Steps are in ln n, so that they are factors.
        n *= math.exp(direction * step)
        if step < 2 * width:
            break
    return max(1, round(n))


def _is_straight(trial: TrialSamples, rising: RisingPart, *, slack_ns: float) -> bool:
    """Whether T at a few points between 1 and ``rising.top_n`` lies on the straight line between
    both, within ``slack_ns``: then there are no stairs to search for.
    """
    units = rising.top_n - 1
    # None is near a common fraction, at which stairs could meet the line.
    for share in _SEARCH.points:
        n = round(1 + units * share)
        total_ns = trial.total(n).median
        # T less what the line through both ends gives at this n.
        off_line = total_ns - rising.fixed_ns - rising.height_ns * (n - 1) / units
        if abs(off_line) > slack_ns:
            return False
    return True


def _climbs(trial: TrialSamples, edge: int, quantum: float) -> bool:
    """Whether T rises soon after an edge, the n at which T jumps by about ``quantum``. A wait that
    polls keeps T level until the next edge, so this jump was not caused by a poll.
    """
    # The next edge would be at twice the n: up to 1.9 times it T must stay level.
    end = min(round(_SEARCH.tread * edge), trial.chain.max_n)
    end_ns = trial.shortest_total(end)
    # ``_away``: a distance from the edge at which T is surely above it. A quarter of the jump is
    # allowed.
    rise = end_ns - trial.shortest_total(edge + _away(edge))
    return rise > _SEARCH.rise_of_tread * quantum


def _away(edge: int) -> int:
    """A distance from an edge at which T is certainly below or above it."""
    return round(2 * _SEARCH.width * edge) + 1


class Bracket(NamedTuple):
    """Two n, the lower one with a T below a wanted time, the higher one with a T above it."""

    low: int
    high: int


def bracket_crossing(trial: TrialSamples, line_ns: float, low: int, high: int) -> Bracket:
    """Two n between which T crosses ``line_ns``, for a bisection: ``low`` and ``high``, a guess,
    are moved until T of the first is below and T of the second above. ``high`` exceeds the largest
    n of the chain if no T is above.
    """
    # First move down until T is below, then up until T is above.
    while low > 1 and trial.shortest_total(low) > line_ns:
        high = low
        low = min(low - 1, round(low * 0.85))  # 2 and 3 are rounded to themselves
    while high <= trial.chain.max_n and trial.shortest_total(high) < line_ns:
        low = high
        high = max(high + 1, round(high * 1.2))  # so are 1 and 2 here
    return Bracket(low, high)


def _short(trial: TrialSamples, most: int) -> int:
    """An n whose ``issue`` takes about ``short_issue_ns``."""
    unit_times = [row[1] / row[0] for row in trial.seen if row[0] >= most // 16]
    fastest_ns = max(min(unit_times, default=1.0), 1.0)
    n = round(_SEARCH.short_issue_ns / fastest_ns)
    return max(2, min(most // 2, n))


def _edge(
    trial: TrialSamples, low: int, high: int, line_ns: float, width: float = _SEARCH.width
) -> int:
    """The n where T crosses ``line_ns`` between ``low`` and ``high``, by bisection, to a share
    ``width`` of n. Earlier samples narrow the range first.
    """
    totals = trial.shortest_totals()
    # Samples taken before tell of some n already; T rises with n.
    known = [n for n in totals if low <= n <= high]
    low = max([n for n in known if totals[n] < line_ns], default=low)
    known_above = [n for n in known if n > low]
    high = min([n for n in known_above if totals[n] >= line_ns], default=high)
    # To 1.5 % of n, or to neighbours: a closer bracket takes more samples.
    while high - low > max(1, width * high):
        middle = (low + high) // 2
        # Over a wide range, halve the ratio: the precision wanted is a share of n.
        if high > 2 * low:
            middle = round((low * high) ** 0.5)
        if trial.shortest_total(middle) < line_ns:
            low = middle
        else:
            high = middle
    return (low + high) // 2
