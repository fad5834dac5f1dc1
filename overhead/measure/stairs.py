"""A wait that looks only every so often makes T(n) a staircase: find its step and the n at which it rises."""

from __future__ import annotations

import random
from dataclasses import dataclass

from overhead.measure.sampler import Samples
from overhead.measure.trial import Trial

STRAIGHT = 0.03
"""A point within this share of the rise of the straight line is on it."""
POINTS = (0.38, 0.62, 0.81, 0.24, 0.93)
"""Where on the way up T is held against the straight line: no two are near a common fraction, as stairs would be."""
JUMP = 0.05
"""A jump of T between neighbouring n under this share of the rise is no stair."""
WIDTH = 0.015
"""How closely, as a share of n, an edge is bracketed; the rounds then draw within twice that."""
SHORT_NS = 2.5e6
LEVELS = 3, 8
"""The upper stair: the more levels apart the better is the slope, the longer a sample."""


@dataclass(frozen=True)
class Stairs:
    """``quantum_ns``: between two looks of the wait. ``edges``: n at two stairs; ``short``: n of a short ``issue``."""

    quantum_ns: int
    edges: tuple[int, int]
    short: int

    def draw(self, dice: random.Random) -> list[int]:
        """A pass: an n close to either edge, where a sample tells most of T, and the short one for ``issue``."""
        near = [max(1, round(edge * (1 + dice.uniform(-2 * WIDTH, 2 * WIDTH)))) for edge in self.edges]
        return dice.sample([*near, self.short], 3)


def find_stairs(
    trial: Trial, flat: int, rise: int, fixed: float, top: float, noise: float, sample_ns: int
) -> Stairs | None:
    """Stairs between the n ``flat`` and ``rise`` with T ``fixed`` and ``top``, ns; None where T climbs smoothly.

    A few points decide whether it is worth looking; then halving shows whether T jumps between neighbours.
    """
    height = top - fixed
    if rise - flat < 16 or height <= 0 or _straight(trial, rise, fixed, height, max(STRAIGHT * height, 2 * noise)):
        return None
    first, quantum = _edge(trial, flat, rise, fixed + max(height / 16, 5 * noise))
    if quantum < JUMP * height or quantum < 8 * noise:
        return None
    level = max(LEVELS[0], min(LEVELS[1], round(sample_ns / quantum)))
    line = fixed + (level - 0.5) * quantum
    low, high = _around(trial, line, round(first * level * 0.96), round(first * level * 1.12))
    if high > trial.chain.max_n:
        return None
    last, _ = _edge(trial, low, high, line)
    return Stairs(round(quantum), (first, last), _short(trial, first))


def _straight(trial: Trial, rise: int, fixed: float, height: float, slack: float) -> bool:
    """Whether points between 1 and ``rise`` lie on the line between their T."""
    points = [round(1 + (rise - 1) * share) for share in POINTS]
    return all(abs(trial.total(n)[0] - fixed - height * (n - 1) / (rise - 1)) <= slack for n in points)


def _around(trial: Trial, line: float, low: int, high: int) -> tuple[int, int]:
    """Two n whose T lie below and above ``line``, starting from a guess."""
    while low > 1 and trial.total(low)[0] > line:
        low, high = round(low * 0.85), low
    while high <= trial.chain.max_n and trial.total(high)[0] < line:
        low, high = high, round(high * 1.2)
    return low, high


def _short(trial: Trial, most: int) -> int:
    """An n whose ``issue`` takes about 2.5 ms: long for the clock, short for what interrupts."""
    paces = [row[1] / row[0] for row in trial.seen if row[0] >= most // 16]
    return max(2, min(most // 2, round(SHORT_NS / max(min(paces, default=1.0), 1.0))))


def _edge(trial: Trial, low: int, high: int, line: float) -> tuple[int, float]:
    """Halve until the n where T crosses ``line`` is known to 1.5 %: that n, and the jump of T there in ns.

    What was sampled before narrows the search.
    """
    seen = [(row[0], float(row[2])) for row in trial.seen if low <= row[0] <= high]
    low, below = max(((n, at) for n, at in seen if at < line), default=(low, line))
    high, above = min(((n, at) for n, at in seen if at >= line and n > low), default=(high, line))
    while high - low > max(1, WIDTH * high):
        middle = (low + high) // 2
        at = trial.total(middle)[0]
        if at < line:
            low, below = middle, at
        else:
            high, above = middle, at
    return (low + high) // 2, above - below


def rows_of(samples: Samples) -> tuple[tuple[int, int, int], ...]:
    """``n, issue, total`` of each sample."""
    return tuple((row[0], row[1], row[2]) for row in samples)
