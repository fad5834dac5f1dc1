"""A wait that polls rarely makes T(n), the time of n units, a staircase: find its stairs."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from overhead.measure.sampling.chain import Samples
from overhead.measure.sampling.window import TrialSamples


@dataclass(frozen=True)
class _SearchRule:
    """How the stairs of a poll that nobody declared are told from a line. Stricter values miss
    stairs in noise; looser ones take a change of the machine's speed for a stair.
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
    """T(n) as a staircase, for a wait that polls. ``quantum_ns``: between two polls. ``edges``: the
    n where two end.

    ``short``: an n with a short ``issue``. ``width``: the precision of the upper edge, as a share
    of n. ``levels``: the upper edge is the end of this many polls. ``shorts``, ``nears``: how often
    a pass contains the short n, and an n near each edge.
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
        across = self.edges[1] - self.edges[0]
        return (
            self.quantum_ns * (self.levels - 1) / across
            if across
            else self.quantum_ns / self.edges[0]
        )

    @property
    def pass_ns(self) -> float:
        """An estimate of a pass, ns: half of the samples at an edge wait for one more poll."""
        return self.quantum_ns * (self.nears * (self.levels + 2) + self.shorts)

    def draw(self, dice: random.Random) -> list[int]:
        """The n of a pass, in random order: some near either edge, where a sample says most, and
        short ones.
        """
        apart = 2 * self.width
        near = [
            max(1, round(edge * (1 + dice.uniform(-apart, apart))))
            for edge in self.edges * self.nears
        ]
        ns = [*near, *[self.short] * self.shorts]
        return dice.sample(ns, len(ns))


def find_stairs(
    trial: TrialSamples,
    flat: int,
    rise: int,
    fixed: float,
    top: float,
    noise: float,
    sample_ns: int,
) -> Stairs | None:
    """The stairs between the n ``flat`` and ``rise`` with T ``fixed`` and ``top``, ns; None if T
    rises smoothly.

    A few points decide whether to search; then bisection shows whether T jumps between neighbouring
    n.
    """
    height = top - fixed
    slack = max(_SEARCH.off_line * height, 2 * noise)
    if rise - flat < 16 or height <= 0 or _straight(trial, rise, fixed, height, slack):
        return None
    first = _edge(trial, flat, rise, fixed + max(height / 16, 5 * noise))
    # By new samples: a change of the machine's speed does not repeat.
    quantum = _shortest(trial, first + _away(first)) - _shortest(
        trial, max(1, first - _away(first))
    )
    straight = 2 * _away(first) * height / (rise - flat)
    if quantum < max(_SEARCH.jump * height, 8 * noise, _SEARCH.steeper * straight) or _climbs(
        trial, first, quantum
    ):
        return None
    least, most = _SEARCH.levels
    level = max(least, min(most, round(sample_ns / quantum)))
    line = fixed + (level - 0.5) * quantum
    low, high = _around(trial, line, round(first * level * 0.96), round(first * level * 1.12))
    if high > trial.chain.max_n:
        return None
    return Stairs(
        round(quantum), (first, _edge(trial, low, high, line)), _short(trial, first), levels=level
    )


def find_known_stairs(trial: TrialSamples, poll_ns: float, target: float) -> Stairs | None:
    """The stairs of a wait that polls about every ``poll_ns``, found with few of its long samples.

    None if T(1) or a larger n shows no such stairs. ``target``: the relative half-width wanted of
    the slope.

    Each sample gives one bit: whether the work was done at the poll. A sample takes one quantum
    whatever n is, so T(1) and the n that takes one quantum give the best slope for the time. T(1)
    is bracketed by windows that open just before a poll; if it takes too long for that, a second
    stair is used instead. The search starts at an n that differs between processes, so that the
    errors of their brackets are independent.
    """
    quantum = float(
        min(row[2] for row in trial.run([1, 1, 1])[1:])
    )  # the first of a list may begin between two polls
    if quantum < poll_ns / 2:
        return None
    dice = random.Random(str(trial.seen))
    trial.seen.clear()
    done_at_once = _bracket_one(trial, quantum, dice)
    about = _first_edge(trial, quantum, dice)
    if about is None:
        return None
    trial.seen[:] = done_at_once
    width = max(KNOWN_POLL.narrowest, KNOWN_POLL.width * target)
    level = KNOWN_POLL.level if done_at_once else _SEARCH.levels[0]
    first = _edge_by_walk(trial, about, quantum, 1, KNOWN_POLL.step, width)
    upper = (
        first
        if level == 1
        else _edge_by_walk(trial, first * level, quantum, level, KNOWN_POLL.step / 4, width)
    )
    if not 1 < upper <= trial.chain.max_n:
        return None
    short = _short(trial, first)
    shorts = (
        2 if short < first // 2 else 0
    )  # where ``issue`` is always short, every sample measures it
    return Stairs(round(quantum), (first, upper), short, width, level, shorts, nears=2)


def _bracket_one(trial: TrialSamples, quantum: float, dice: random.Random) -> Samples:
    """The samples of n = 1 that began shortly before a poll and were done at it; the lead is
    doubled until one was.
    """
    lead = KNOWN_POLL.first_lead * quantum * dice.uniform(*KNOWN_POLL.lead_spread)
    most = KNOWN_POLL.most_lead * quantum
    while (
        min(row[2] for row in trial.run_after_idle([1, 1], quantum - lead)) > quantum / 2
        and lead < most
    ):
        lead *= 2
    return [row for row in trial.seen if row[2] < quantum / 2]


def _first_edge(trial: TrialSamples, quantum: float, dice: random.Random) -> float | None:
    """Roughly the n that takes one quantum; None if no n up to the stack's limit misses a poll."""
    n, most = round(dice.uniform(*KNOWN_POLL.first_n)), trial.chain.max_n
    while True:
        taken = trial.run_after_idle([n], quantum * (1 - KNOWN_POLL.climb_lead))[0][2] / quantum
        if (
            taken >= KNOWN_POLL.missed
            and not 1 - KNOWN_POLL.climb_lead < taken < KNOWN_POLL.second_poll
        ):
            # A poll within the quantum came late, when the work was done.
            return n / (taken * (taken - 1 if taken > KNOWN_POLL.second_poll else taken)) ** 0.5
        if n >= most:
            return None
        n = min(KNOWN_POLL.climb_factor * n, most)


def _edge_by_walk(
    trial: TrialSamples, n: float, quantum: float, level: int, step: float, width: float
) -> int:
    """The n at which half of the samples are done at the poll of this number, by a walk with halved
    and doubled steps.

    H. Kesten, Accelerated stochastic approximation, Annals of Mathematical Statistics 29 (1958) 41.
    """
    before = straight = 0
    for _ in range(KNOWN_POLL.tries):
        done = (
            1
            if trial.run([max(1, round(n))])[0][2] < (level - 1 + KNOWN_POLL.second_poll) * quantum
            else -1
        )
        straight = straight + 1 if done == before else 1
        if straight == 1 and before:
            step /= 2
        elif straight >= KNOWN_POLL.steps_before_doubling:
            step *= 2
        before = done
        n *= math.exp(done * step)
        if step < 2 * width:
            break
    return max(1, round(n))


def _straight(trial: TrialSamples, rise: int, fixed: float, height: float, slack: float) -> bool:
    """Whether T at points between 1 and ``rise`` lies on the straight line between both."""
    points = [round(1 + (rise - 1) * share) for share in _SEARCH.points]
    return all(
        abs(trial.total(n)[0] - fixed - height * (n - 1) / (rise - 1)) <= slack for n in points
    )


def _climbs(trial: TrialSamples, edge: int, quantum: float) -> bool:
    """Whether T rises after an edge instead of staying level until the next: then the jump was not
    caused by a poll.
    """
    end = min(round(_SEARCH.tread * edge), trial.chain.max_n)
    return (
        _shortest(trial, end) - _shortest(trial, edge + _away(edge))
        > _SEARCH.rise_of_tread * quantum
    )


def _away(edge: int) -> int:
    """A distance from an edge at which T is certainly below or above it."""
    return round(2 * _SEARCH.width * edge) + 1


def _shortest(trial: TrialSamples, n: int) -> float:
    """The minimum of T(n) over a few samples, ns: interruptions only lengthen a sample."""
    before = len(trial.seen)
    trial.total(n)
    return float(min(row[2] for row in trial.seen[before:]))


def _around(trial: TrialSamples, line: float, low: int, high: int) -> tuple[int, int]:
    """Two n whose T are below and above ``line``, starting from a guess."""
    while low > 1 and _shortest(trial, low) > line:
        low, high = round(low * 0.85), low
    while high <= trial.chain.max_n and _shortest(trial, high) < line:
        low, high = high, round(high * 1.2)
    return low, high


def _short(trial: TrialSamples, most: int) -> int:
    """An n whose ``issue`` takes about ``short_issue_ns``."""
    paces = [row[1] / row[0] for row in trial.seen if row[0] >= most // 16]
    return max(2, min(most // 2, round(_SEARCH.short_issue_ns / max(min(paces, default=1.0), 1.0))))


def _edge(
    trial: TrialSamples, low: int, high: int, line: float, width: float = _SEARCH.width
) -> int:
    """The n where T crosses ``line``, to ``width``, by bisection. Earlier samples narrow the
    search.
    """
    seen = {n: at for n, at in trial.shortest_totals().items() if low <= n <= high}
    low = max((n for n, at in seen.items() if at < line), default=low)
    high = min((n for n, at in seen.items() if at >= line and n > low), default=high)
    while high - low > max(1, width * high):
        middle = round((low * high) ** 0.5) if high > 2 * low else (low + high) // 2
        if _shortest(trial, middle) < line:
            low = middle
        else:
            high = middle
    return (low + high) // 2
