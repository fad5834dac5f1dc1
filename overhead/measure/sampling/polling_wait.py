"""A wait that looks only every so often makes T(n) a staircase: find its step and the n at which it rises."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from overhead.measure.sampling.trial_samples import TrialSamples
from overhead.measure.sampling.window import Samples

STRAIGHT = 0.03
"""A point within this share of the rise of the straight line is on it."""
POINTS = (0.38, 0.62, 0.81, 0.24, 0.93)
"""Where on the way up T is held against the straight line: no two are near a common fraction, as stairs would be."""
JUMP = 0.05
"""A jump of T between close n under this share of the rise is no stair."""
STEEPER = 2.0
"""Nor is one under so many times what the straight line rises between them, on a machine that may change its speed."""
WIDTH = 0.015
"""How closely, as a share of n, an edge is bracketed; the rounds then draw within twice that."""
WIDENING = 0.4
"""The width for stairs that are known beforehand, as a share of the target: a closer bracket would only cost time."""
NARROWEST = 0.03
"""A closer bracket than the work scatters tells less, not more."""
KNOWN_LEVEL = 1
"""The upper stair where they are known beforehand: the work's scatter grows with it, and so does a sample's time."""
EARLY = 0.3
"""Where between two stairs T is told from the lower: a window that begins late after a look ends that much early."""
SOON = 0.015
"""T(1) is tried first so long before a look, as a share of the quantum."""
CLIMB, CLIMBED = 0.2, 0.3
"""The climb's windows open so long before a look, less the way to the page and back: the first n that is not done by
that look is done at the next, and the edge lies within eight times of it. Where the way takes longer, or the page wakes
late, the look was missed and T is nearly a quantum; an interruption makes T longer, but hardly over the second."""
DONE = 1.05
"""A look that comes later than this, in quanta, is the second."""
STEP = 0.5
"""The first step towards an edge, of ln n."""
TRIES, STRAIGHT_ON = 12, 4
SHORT_NS = 4e6
TREAD, LEVEL_TREAD = 1.9, 0.25
"""A stair stands until nearly twice the n of the first: where T rises by over this share of a jump before, it is no
stair."""
LEVELS = 3, 8
"""The upper stair: the more levels apart the better is the slope, the longer a sample."""


@dataclass(frozen=True)
class Stairs:
    """``quantum_ns``: between two looks of the wait. ``edges``: n at two stairs; ``short``: n of a short ``issue``.

    ``width``: how closely, as a share of n, the upper edge is known; ``levels``: it ends that many looks. ``shorts``:
    how often the short n comes in a pass.
    """

    quantum_ns: int
    edges: tuple[int, int]
    short: int
    width: float = WIDTH
    levels: int = LEVELS[0]
    shorts: int = 1
    nears: int = 1

    @property
    def unit_ns(self) -> float:
        """About what a unit adds."""
        across = self.edges[1] - self.edges[0]
        return self.quantum_ns * (self.levels - 1) / across if across else self.quantum_ns / self.edges[0]

    @property
    def pass_ns(self) -> float:
        """About what a pass takes: half the samples at an edge wait for one look more."""
        return self.quantum_ns * (self.nears * (self.levels + 2) + self.shorts)

    def draw(self, dice: random.Random) -> list[int]:
        """A pass: an n close to either edge, where a sample tells most of T, and the short ones for ``issue``."""
        apart = 2 * self.width
        near = [max(1, round(edge * (1 + dice.uniform(-apart, apart)))) for edge in self.edges * self.nears]
        ns = [*near, *[self.short] * self.shorts]
        return dice.sample(ns, len(ns))


def find_stairs(
    trial: TrialSamples, flat: int, rise: int, fixed: float, top: float, noise: float, sample_ns: int
) -> Stairs | None:
    """Stairs between the n ``flat`` and ``rise`` with T ``fixed`` and ``top``, ns; None where T climbs smoothly.

    A few points decide whether it is worth looking; then halving shows whether T jumps between neighbours.
    """
    height = top - fixed
    if rise - flat < 16 or height <= 0 or _straight(trial, rise, fixed, height, max(STRAIGHT * height, 2 * noise)):
        return None
    first = _edge(trial, flat, rise, fixed + max(height / 16, 5 * noise))
    quantum = _jump(trial, first)
    straight = 2 * _away(first) * height / (rise - flat)
    if quantum < max(JUMP * height, 8 * noise, STEEPER * straight) or _climbs(trial, first, quantum):
        return None
    level = max(LEVELS[0], min(LEVELS[1], round(sample_ns / quantum)))
    line = fixed + (level - 0.5) * quantum
    low, high = _around(trial, line, round(first * level * 0.96), round(first * level * 1.12))
    if high > trial.chain.max_n:
        return None
    return Stairs(round(quantum), (first, _edge(trial, low, high, line)), _short(trial, first), levels=level)


def known_stairs(trial: TrialSamples, poll_ns: float, target: float) -> Stairs | None:
    """The stairs of a wait that is known to look every ``poll_ns`` or so, by as few of its long samples as will do.

    None where T(1) or the climb shows no such stairs. ``target``: the relative half-width wanted of the slope.

    A wait so long tells of a sample one bit, whether the work was done by the look, and a look costs as much whatever n
    is: the slope is told best, for its time, by T(1) and by the n that takes one quantum. T(1) is bracketed by windows
    that open just before the look; where it takes too long for that, a second stair takes its place. The search for n
    begins at one of each process's own: were the same n tried in all, their brackets would err alike.
    """
    most = trial.chain.max_n
    quantum = float(min(row[2] for row in trial.run([1, 1, 1])[1:]))  # the first of a list may begin between two looks
    if quantum < poll_ns / 2:
        return None
    dice = random.Random(str(trial.seen))
    trial.seen.clear()
    before = SOON * quantum * dice.uniform(0.7, 1.4)
    while min(row[2] for row in trial.late([1, 1], quantum - before)) > quantum / 2 and before < quantum / 8:
        before *= 2
    kept = [row for row in trial.seen if row[2] < quantum / 2]
    n = round(dice.uniform(5, 11))
    while (told := trial.late([n], quantum * (1 - CLIMB))[0][2] / quantum) < CLIMBED or 1 - CLIMB < told < DONE:
        if n >= most:
            return None
        n = min(8 * n, most)
    trial.seen[:] = kept
    about = (told * (told - 1 if told > DONE else told)) ** 0.5  # a look within the quantum came late, with the end
    width, level = max(NARROWEST, WIDENING * target), KNOWN_LEVEL if kept else LEVELS[0]
    first = _settle(trial, n / about, quantum, 1, STEP, width)
    upper = first if level == 1 else _settle(trial, first * level, quantum, level, STEP / 4, width)
    if not 1 < upper <= most:
        return None
    short = _short(trial, first)
    shorts = 2 if short < first // 2 else 0  # where ``issue`` is always short, each sample tells it
    return Stairs(round(quantum), (first, upper), short, width, level, shorts, nears=2)


def _settle(trial: TrialSamples, n: float, quantum: float, level: int, step: float, width: float) -> int:
    """The n at which half the samples are done by the look of this number, by a walk: its step halves when it turns and
    doubles where it has not turned for long, so a wrong step because of an interruption is mended by the next.

    H. Kesten, Accelerated stochastic approximation, Annals of Mathematical Statistics 29 (1958) 41.
    """
    before = straight = 0
    for _ in range(TRIES):
        done = 1 if trial.run([max(1, round(n))])[0][2] < (level - 1 + DONE) * quantum else -1
        straight = straight + 1 if done == before else 1
        if straight == 1 and before:
            step /= 2
        elif straight >= STRAIGHT_ON:
            step *= 2
        before = done
        n *= math.exp(done * step)
        if step < 2 * width:
            break
    return max(1, round(n))


def _straight(trial: TrialSamples, rise: int, fixed: float, height: float, slack: float) -> bool:
    """Whether points between 1 and ``rise`` lie on the line between their T."""
    points = [round(1 + (rise - 1) * share) for share in POINTS]
    return all(abs(trial.total(n)[0] - fixed - height * (n - 1) / (rise - 1)) <= slack for n in points)


def _climbs(trial: TrialSamples, edge: int, quantum: float) -> bool:
    """Whether T rises on from an edge instead of standing until the next: then it jumped once, and not at a look."""
    end = min(round(TREAD * edge), trial.chain.max_n)
    return _shortest(trial, end) - _shortest(trial, edge + _away(edge)) > LEVEL_TREAD * quantum


def _jump(trial: TrialSamples, edge: int) -> float:
    """ns by which T differs on both sides of an n, looked at afresh: a machine that changed its speed jumps once."""
    return _shortest(trial, edge + _away(edge)) - _shortest(trial, max(1, edge - _away(edge)))


def _away(edge: int) -> int:
    """So far from an edge T is certainly below or above it."""
    return round(2 * WIDTH * edge) + 1


def _shortest(trial: TrialSamples, n: int) -> float:
    """ns: of a few samples the least, which no interruption lengthened."""
    before = len(trial.seen)
    trial.total(n)
    return float(min(row[2] for row in trial.seen[before:]))


def _around(trial: TrialSamples, line: float, low: int, high: int) -> tuple[int, int]:
    """Two n whose T lie below and above ``line``, starting from a guess."""
    while low > 1 and _shortest(trial, low) > line:
        low, high = round(low * 0.85), low
    while high <= trial.chain.max_n and _shortest(trial, high) < line:
        low, high = high, round(high * 1.2)
    return low, high


def _short(trial: TrialSamples, most: int) -> int:
    """An n whose ``issue`` takes about 4 ms: long for the clock, short for what interrupts."""
    paces = [row[1] / row[0] for row in trial.seen if row[0] >= most // 16]
    return max(2, min(most // 2, round(SHORT_NS / max(min(paces, default=1.0), 1.0))))


def _edge(trial: TrialSamples, low: int, high: int, line: float, width: float = WIDTH) -> int:
    """Halve until the n where T crosses ``line`` is known to ``width``. What was sampled before narrows the search."""
    seen = {n: at for n, at in trial.least().items() if low <= n <= high}
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
    """``n, issue, total`` of each sample."""
    return tuple((row[0], row[1], row[2]) for row in samples)
