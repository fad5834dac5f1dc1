"""A wait that polls rarely makes T(n) a staircase: find the height of its steps and the n at which it rises."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from overhead.measure.sampling.chain import Samples
from overhead.measure.sampling.trial_samples import TrialSamples

_STRAIGHT_SHARE = 0.03
"""A point is on the straight line if it deviates by less than this share of the rise."""
_POINTS = (0.38, 0.62, 0.81, 0.24, 0.93)
"""Where between 1 and the top T is compared with the straight line. None is near a common fraction, where stairs could
meet the line."""
_JUMP_SHARE = 0.05
"""A jump of T between two close n is a stair only if it exceeds this share of the rise."""
_STEEPER = 2.0
"""A jump must also exceed this multiple of the linear rise between the two n: the machine may change its speed."""
_WIDTH = 0.015
"""An edge is bracketed to this share of n; the rounds then draw n within twice that."""
_KNOWN_WIDTH = 0.4
"""The same for stairs known beforehand, as a share of the target; a closer bracket would only take time."""
_NARROWEST = 0.03
"""The narrowest bracket for stairs known beforehand: below it the scatter of the work dominates."""
KNOWN_LEVEL = 1
"""The upper stair for stairs known beforehand: on a higher one both the scatter and the time of a sample grow."""
_FIRST_LEAD = 0.015
"""The first windows for T(1) open this share of the quantum before a poll."""
_CLIMB_LEAD = 0.2
"""While n is raised, windows open this share of the quantum before a poll. The first n that is not done at that poll is
done at the next one, and the edge is within a factor of eight of it."""
_CLIMB_MISSED = 0.3
"""T above this share of the quantum means that the work was not done at that poll; an interruption lengthens T, but
hardly beyond this. If the way to the page takes longer than the lead, or the page wakes late, the poll was missed and T
is nearly a quantum."""
_SECOND_POLL = 1.05
"""A T above this many quanta ended at the second poll."""
_FIRST_STEP = 0.5
"""The first step towards an edge, in ln n."""
_TRIES = 12
_STEPS_BEFORE_DOUBLING = 4
_SHORT_ISSUE_NS = 4e6
_TREAD = 1.9
"""T must stay level from an edge to this multiple of its n: the next edge is at twice the n."""
_LEVEL_TREAD = 0.25
"""T is level if it rises by less than this share of the jump."""
_LEAST_LEVEL = 3
"""The upper stair is between these two: a higher one gives a better slope and takes longer samples."""
_MOST_LEVEL = 8


@dataclass(frozen=True)
class Stairs:
    """A staircase. ``quantum_ns``: between two polls of the wait. ``edges``: the n at which two stairs end.

    ``short``: an n with a short ``issue``. ``width``: the precision of the upper edge, as a share of n. ``levels``: the
    upper edge is the end of this many polls. ``shorts``, ``nears``: how often a pass contains the short n, and an n
    near each edge.
    """

    quantum_ns: int
    edges: tuple[int, int]
    short: int
    width: float = _WIDTH
    levels: int = _LEAST_LEVEL
    shorts: int = 1
    nears: int = 1

    @property
    def unit_ns(self) -> float:
        """An estimate of one more unit, ns."""
        across = self.edges[1] - self.edges[0]
        return self.quantum_ns * (self.levels - 1) / across if across else self.quantum_ns / self.edges[0]

    @property
    def pass_ns(self) -> float:
        """An estimate of a pass, ns: half of the samples at an edge wait for one more poll."""
        return self.quantum_ns * (self.nears * (self.levels + 2) + self.shorts)

    def draw(self, dice: random.Random) -> list[int]:
        """The n of a pass: some close to either edge, where a sample says most about T, and the short ones for
        ``issue``."""
        apart = 2 * self.width
        near = [max(1, round(edge * (1 + dice.uniform(-apart, apart)))) for edge in self.edges * self.nears]
        ns = [*near, *[self.short] * self.shorts]
        return dice.sample(ns, len(ns))


def find_stairs(
    trial: TrialSamples, flat: int, rise: int, fixed: float, top: float, noise: float, sample_ns: int
) -> Stairs | None:
    """The stairs between the n ``flat`` and ``rise`` with T ``fixed`` and ``top``, ns; None if T rises smoothly.

    A few points decide whether to search; then bisection shows whether T jumps between neighbouring n.
    """
    height = top - fixed
    slack = max(_STRAIGHT_SHARE * height, 2 * noise)
    if rise - flat < 16 or height <= 0 or _straight(trial, rise, fixed, height, slack):
        return None
    first = _edge(trial, flat, rise, fixed + max(height / 16, 5 * noise))
    quantum = _jump(trial, first)
    straight = 2 * _away(first) * height / (rise - flat)
    if quantum < max(_JUMP_SHARE * height, 8 * noise, _STEEPER * straight) or _climbs(trial, first, quantum):
        return None
    level = max(_LEAST_LEVEL, min(_MOST_LEVEL, round(sample_ns / quantum)))
    line = fixed + (level - 0.5) * quantum
    low, high = _around(trial, line, round(first * level * 0.96), round(first * level * 1.12))
    if high > trial.chain.max_n:
        return None
    return Stairs(round(quantum), (first, _edge(trial, low, high, line)), _short(trial, first), levels=level)


def known_stairs(trial: TrialSamples, poll_ns: float, target: float) -> Stairs | None:
    """The stairs of a wait that polls about every ``poll_ns``, found with few of its long samples.

    None if T(1) or a larger n shows no such stairs. ``target``: the relative half-width wanted of the slope.

    Each sample gives one bit: whether the work was done at the poll. A sample takes one quantum whatever n is, so T(1)
    and the n that takes one quantum give the best slope for the time. T(1) is bracketed by windows that open just
    before a poll; if it takes too long for that, a second stair is used instead. The search starts at an n that differs
    between processes, so that the errors of their brackets are independent.
    """
    most = trial.chain.max_n
    quantum = float(min(row[2] for row in trial.run([1, 1, 1])[1:]))  # the first of a list may begin between two polls
    if quantum < poll_ns / 2:
        return None
    dice = random.Random(str(trial.seen))
    trial.seen.clear()
    before = _FIRST_LEAD * quantum * dice.uniform(0.7, 1.4)
    while min(row[2] for row in trial.run_after_idle([1, 1], quantum - before)) > quantum / 2 and before < quantum / 8:
        before *= 2
    kept = [row for row in trial.seen if row[2] < quantum / 2]
    n = round(dice.uniform(5, 11))
    idle_ns = quantum * (1 - _CLIMB_LEAD)
    while (
        taken := trial.run_after_idle([n], idle_ns)[0][2] / quantum
    ) < _CLIMB_MISSED or 1 - _CLIMB_LEAD < taken < _SECOND_POLL:
        if n >= most:
            return None
        n = min(8 * n, most)
    trial.seen[:] = kept
    # A poll within the quantum came late, when the work was done.
    about = (taken * (taken - 1 if taken > _SECOND_POLL else taken)) ** 0.5
    width, level = max(_NARROWEST, _KNOWN_WIDTH * target), KNOWN_LEVEL if kept else _LEAST_LEVEL
    first = _edge_by_walk(trial, n / about, quantum, 1, _FIRST_STEP, width)
    upper = first if level == 1 else _edge_by_walk(trial, first * level, quantum, level, _FIRST_STEP / 4, width)
    if not 1 < upper <= most:
        return None
    short = _short(trial, first)
    shorts = 2 if short < first // 2 else 0  # where ``issue`` is always short, every sample measures it
    return Stairs(round(quantum), (first, upper), short, width, level, shorts, nears=2)


def _edge_by_walk(trial: TrialSamples, n: float, quantum: float, level: int, step: float, width: float) -> int:
    """The n at which half of the samples are done at the poll of this number.

    A walk: its step is halved when it turns and doubled when it has not turned for long, so that later steps correct a
    wrong one (an interrupted sample).

    H. Kesten, Accelerated stochastic approximation, Annals of Mathematical Statistics 29 (1958) 41.
    """
    before = straight = 0
    for _ in range(_TRIES):
        done = 1 if trial.run([max(1, round(n))])[0][2] < (level - 1 + _SECOND_POLL) * quantum else -1
        straight = straight + 1 if done == before else 1
        if straight == 1 and before:
            step /= 2
        elif straight >= _STEPS_BEFORE_DOUBLING:
            step *= 2
        before = done
        n *= math.exp(done * step)
        if step < 2 * width:
            break
    return max(1, round(n))


def _straight(trial: TrialSamples, rise: int, fixed: float, height: float, slack: float) -> bool:
    """Whether T at points between 1 and ``rise`` lies on the straight line between both."""
    points = [round(1 + (rise - 1) * share) for share in _POINTS]
    return all(abs(trial.total(n)[0] - fixed - height * (n - 1) / (rise - 1)) <= slack for n in points)


def _climbs(trial: TrialSamples, edge: int, quantum: float) -> bool:
    """Whether T rises after an edge instead of staying level until the next: then the jump was not caused by a poll."""
    end = min(round(_TREAD * edge), trial.chain.max_n)
    return _shortest(trial, end) - _shortest(trial, edge + _away(edge)) > _LEVEL_TREAD * quantum


def _jump(trial: TrialSamples, edge: int) -> float:
    """ns between T on both sides of an n, by new samples: a change of the machine's speed does not repeat."""
    return _shortest(trial, edge + _away(edge)) - _shortest(trial, max(1, edge - _away(edge)))


def _away(edge: int) -> int:
    """A distance from an edge at which T is certainly below or above it."""
    return round(2 * _WIDTH * edge) + 1


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
    """An n whose ``issue`` takes about 4 ms: long against the clock's step, short against the time between
    interruptions."""
    paces = [row[1] / row[0] for row in trial.seen if row[0] >= most // 16]
    return max(2, min(most // 2, round(_SHORT_ISSUE_NS / max(min(paces, default=1.0), 1.0))))


def _edge(trial: TrialSamples, low: int, high: int, line: float, width: float = _WIDTH) -> int:
    """The n where T crosses ``line``, to ``width``, by bisection. Earlier samples narrow the search."""
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


def rows_of(samples: Samples) -> tuple[tuple[int, int, int], ...]:
    """``(n, issue_ns, total_ns)`` of each sample."""
    return tuple((row[0], row[1], row[2]) for row in samples)
