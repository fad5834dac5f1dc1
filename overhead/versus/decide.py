"""Whether two sides differ, from one logarithm a process: shift, error, degrees of freedom, and Holm over the cases.

Pure numbers in and out. A side is a list of runs, a run an array of ``ln(ns per unit)``, one value a process. Why these
tests and these constants: docs/compare.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Runs = Sequence[FloatArray]

PROMISED = 0.05
"""Highest probability of any false verdict in a comparison, over all its cases."""
ALPHA = 0.04
"""The level of the tests. They are exact for normal distributions only; the margin to ``PROMISED`` covers others."""
POWER = 0.95
"""Probability with which the stated smallest shift is detected."""
FLOOR = 0.015
"""Standard deviation of a run's mean, as a share, where one run a side leaves the run-to-run spread unknown."""
LEAST_RUNS_DF = 2
"""Runs beyond the first of each side, together, from which the run-to-run spread is estimated."""
MODERATE = 4.0
"""The run-to-run spread of the other cases counts like at most so many runs of the case: they share disturbances."""
MODERATE_PAIRS = 2.0
"""The same for pairs of processes, whose cases share the disturbances between two windows."""
MODERATE_FROM = 20
"""With fewer cases their common variance is uncertain: ``FLOOR`` replaces it, or it counts less."""
TINY = 1e-12
"""A variance below this comes from the clock's resolution."""


@dataclass(frozen=True)
class Shift:
    """``ln(new / base)``, its standard error, and the degrees of freedom of the error."""

    centre: float
    error: float
    df: float

    def half(self, alpha: float) -> float:
        """Half-width of the two-sided interval at ``1 - alpha``."""
        return quantile(1 - alpha / 2, self.df) * self.error

    def p(self) -> float:
        """Two-sided p of no shift."""
        return self._doubled(abs(self.centre))

    def p_over(self, margin: float) -> float:
        """Twice the p of a shift of at most ``margin``: it falls under alpha where the interval lies wholly over it."""
        return self._doubled(self.centre - margin)

    def _doubled(self, away: float) -> float:
        return min(1.0, 2 * tail(away / self.error, self.df)) if self.error > 0 else float(away <= 0)


@dataclass(frozen=True)
class Shifts:
    """One case tested in several ways, the simplest first: a verdict must hold in each of them."""

    ways: tuple[Shift, ...]

    @property
    def centre(self) -> float:
        return self.ways[0].centre

    def interval(self, alpha: float) -> tuple[float, float]:
        """The smallest interval that contains those of all ways at ``1 - alpha``, as logarithms."""
        halves = [(s.centre, s.half(alpha)) for s in self.ways]
        return min(c - h for c, h in halves), max(c + h for c, h in halves)

    def p(self) -> float:
        """The largest p; 1 where the ways disagree in direction."""
        agree = len({s.centre > 0 for s in self.ways}) == 1
        return max(s.p() for s in self.ways) if agree else 1.0

    def p_over(self, margin: float) -> float:
        """The largest ``p_over``."""
        return max(s.p_over(margin) for s in self.ways)

    def smallest(self, alpha: float) -> float:
        """The logarithm of the smallest shift that is detected at level ``alpha`` with probability ``POWER``."""
        moved = max(s.centre for s in self.ways) - min(s.centre for s in self.ways)
        return moved + max(s.half(alpha) + quantile(POWER, s.df) * s.error for s in self.ways)


def tail(t: float, df: float) -> float:
    """Upper tail of Student's t; the normal's for infinite ``df``."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-t) if math.isinf(df) else stdtr(df, -t))


def quantile(q: float, df: float) -> float:
    """Quantile of Student's t; the normal's for infinite ``df``."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(q) if math.isinf(df) else stdtrit(df, q))


def holm(p: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level at which each hypothesis is tested by Holm's step-down: rejected where its p is at most its level.

    S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979) 65.
    """
    order = sorted(range(len(p)), key=p.__getitem__)
    levels = [0.0] * len(p)
    left = len(p)
    for i in order:
        levels[i] = alpha / left
        if p[i] <= levels[i]:
            left -= 1
    return levels


def trials(base: Sequence[Runs], new: Sequence[Runs], floor: float = FLOOR) -> list[Shifts]:
    """The test of each case. The replicates are the runs if a side has several, else the processes.

    Each case needs two processes per side.
    """
    free = [_runs_df(b) + _runs_df(n) for b, n in zip(base, new, strict=True)]
    several = [i for i, d in enumerate(free) if d >= LEAST_RUNS_DF]
    variances = [between(base[i], new[i]) for i in several]
    expected = [floor**2 + _within([*base[i], *new[i]]) for i in several]
    spread = dict(zip(several, moderated(variances, [free[i] for i in several], expected), strict=True))
    return [
        Shifts((_by_runs(b, n, *spread[i]),) if i in spread else (_by_processes(b, n, floor), _by_processes(b, n, 0.0)))
        for i, (b, n) in enumerate(zip(base, new, strict=True))
    ]


def paired(differences: Sequence[FloatArray]) -> list[Shifts]:
    """The test of each case from ``ln(new / base)`` of processes measured in turn, one value a pair.

    A difference between runs affects both of a pair. Each case needs two pairs.
    """
    variances = [float(d.var(ddof=1)) for d in differences]
    spread = moderated(variances, [d.size - 1 for d in differences], most=MODERATE_PAIRS)
    return [
        Shifts((Shift(float(d.mean()), math.sqrt(variance / d.size), df),))
        for d, (variance, df) in zip(differences, spread, strict=True)
    ]


def moderated(
    variances: Sequence[float], df: Sequence[int], expected: Sequence[float] | None = None, most: float = MODERATE
) -> list[tuple[float, float]]:
    """Each variance, moved towards the common variance of all cases, and its degrees of freedom then.

    G. K. Smyth, Linear models and empirical Bayes methods for assessing differential expression in microarray
    experiments, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3, with the prior's weight bounded by ``most``. With few
    cases the variance ``expected`` of each is the prior, or, without it, what they have in common weighs less.
    """
    v = np.maximum(np.array(variances, dtype=np.float64), TINY)
    d = np.array(df, dtype=np.float64)
    if expected is not None and v.size < MODERATE_FROM:
        prior, common = most, np.array(expected, dtype=np.float64)
    elif v.size < 2:
        return list(zip(v.tolist(), d.tolist(), strict=True))
    else:
        prior, common = _in_common(v, d)
        prior = min(prior, most * min(1.0, (v.size - 1) / (MODERATE_FROM - 1)))
    return list(zip(((prior * common + d * v) / (prior + d)).tolist(), (prior + d).tolist(), strict=True))


def _in_common(v: FloatArray, d: FloatArray) -> tuple[float, FloatArray]:
    """The prior's degrees of freedom, infinite where the variances are as alike as can be, and its variance.

    By the moments of the log variances.
    """
    from scipy.special import digamma, polygamma

    e = np.log(v) - digamma(d / 2) + np.log(d / 2)
    excess = float(e.var(ddof=1) - polygamma(1, d / 2).mean())
    if excess <= 0:
        return math.inf, np.full(v.size, math.exp(float(e.mean())))
    half = _inverse_trigamma(excess)
    return 2 * half, np.full(v.size, math.exp(float(e.mean()) + float(digamma(half)) - math.log(half)))


def _inverse_trigamma(y: float) -> float:
    """x with trigamma(x) = y, by Newton's method on 1/trigamma (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / y
    for _ in range(50):
        step = float(polygamma(1, x) * (1 - polygamma(1, x) / y) / polygamma(2, x))
        x += step
        if abs(step) < 1e-9 * x:
            break
    return float(x)


def _within(runs: Runs) -> float:
    """The share of the variance of a run's mean that comes from the spread of its processes."""
    several = [run for run in runs if run.size > 1]
    free = sum(run.size - 1 for run in several)
    squares = sum(float(run.var()) * run.size for run in several)
    return squares / free / float(np.mean([run.size for run in runs])) if free else 0.0


def _means(runs: Runs) -> FloatArray:
    return np.array([run.mean() for run in runs])


def _runs_df(runs: Runs) -> int:
    return len(runs) - 1


def between(base: Runs, new: Runs) -> float:
    """Variance of the runs' means about their own side's mean, both sides together; needs two runs on one side."""
    squares = sum(float(((m - m.mean()) ** 2).sum()) for m in map(_means, (base, new)))
    return squares / (_runs_df(base) + _runs_df(new))


def _by_runs(base: Runs, new: Runs, variance: float, df: float) -> Shift:
    b, n = _means(base), _means(new)
    return Shift(float(n.mean() - b.mean()), math.sqrt(variance * (1 / b.size + 1 / n.size)), df)


def _by_processes(base: Runs, new: Runs, floor: float) -> Shift:
    """Welch's test with a third component for what differs between runs and no single run can show.

    The component is taken for known, so where it dominates, three processes that agree by chance look like a small
    error: the test without it (``floor`` 0) must agree.
    """
    b, n = np.concatenate(base), np.concatenate(new)
    parts = [(float(x.var(ddof=1)) / x.size, x.size - 1) for x in (b, n)]
    between = floor**2 * (1 / len(base) + 1 / len(new))
    square = sum(part for part, _ in parts) + between
    unsure = sum(part**2 / df for part, df in parts)
    df = square**2 / unsure if unsure > 0 else math.inf
    return Shift(float(_means(new).mean() - _means(base).mean()), math.sqrt(square), df)
