"""Statistical tests of whether two sides differ: shift, standard error, degrees of freedom, and
Holm over the cases.

A side is a list of runs. A run is an array of ``ln(ns per unit)`` with one value per process.
docs/compare.md explains the choice of tests and constants.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fitting.interval import MEAN
from overhead.numerics import digamma, find_root, student_t_quantile, student_t_tail, trigamma

FloatArray = NDArray[np.float64]
Runs = Sequence[FloatArray]
Paces = tuple[FloatArray, FloatArray] | None
"""ln of the canary's time in each process of BASE and of NEW: how slow the processor was."""

PROMISED = 0.05
"""Highest probability of any false verdict in a comparison, over all its cases."""
ALPHA = 0.04
"""The level of the tests. They are exact for normal distributions only; the margin to ``PROMISED``
covers others.
"""
POWER = 0.95
"""The probability that the test detects the stated smallest shift."""
FLOOR = 0.015
"""Assumed standard deviation (relative) of a run's mean, if one run per side leaves the run-to-run
spread unknown.
"""
PACED_FLOOR = 0.0125
"""The same at the same speed of the processor, for fewer cases than ``MODERATE_FROM``: a test
without it must agree.
"""
PACED_UP_TO = 0.18
"""If ln(speed) differs by more than this between the sides, how the processes of a side follow it
does not count.
"""
PACED_COST = (0.5, 0.5)
"""How far a cost follows the time of the canary, before it is seen: mean and standard deviation.
Costs bound by the device do not follow it, others in proportion.
"""
LEAST_RUNS_DF = 2
"""The run-to-run spread is estimated from this many runs or more, not counting the first run of
each side.
"""
MODERATE = 4.0
"""Highest weight of the common spread of all cases, in runs. It is low because the cases share
disturbances.
"""
MODERATE_PAIRS = 2.0
"""The same for pairs of processes, in pairs."""
MODERATE_FROM = 20
"""Below this number of cases their common variance is uncertain: ``FLOOR`` replaces it, or it has
less or no weight.
"""
WIDEST_HALF = 300.0
"""The widest half-width, which as a ratio is still a finite number."""
TINY = 1e-12
"""A variance below this comes from the clock's resolution."""


@dataclass(frozen=True)
class Shift:
    """An estimate of ``ln(new / base)``, its standard error, and the degrees of freedom of the
    error.
    """

    centre: float
    error: float
    df: float

    def half(self, alpha: float) -> float:
        """The half-width of the two-sided interval with confidence ``1 - alpha``."""
        return min(student_t_quantile(1 - alpha / 2, self.df) * self.error, WIDEST_HALF)

    def p(self) -> float:
        """The two-sided p value of the hypothesis of no shift."""
        return self._doubled(abs(self.centre))

    def p_over(self, margin: float) -> float:
        """Twice the p value of the hypothesis that the shift is at most ``margin``.

        It is below alpha exactly if the whole interval with confidence ``1 - alpha`` is above
        ``margin``.
        """
        return self._doubled(self.centre - margin)

    def _doubled(self, away: float) -> float:
        return (
            min(1.0, 2 * student_t_tail(away / self.error, self.df))
            if self.error > 0
            else float(away <= 0)
        )


@dataclass(frozen=True)
class Shifts:
    """The shift of one case, with one or several standard errors (``ways``). A verdict must hold
    with all.

    ``within``: with the spread of the processes alone, without an allowance for the spread between
    runs.
    """

    ways: tuple[Shift, ...]
    within: Shift | None = None

    @property
    def centre(self) -> float:
        """``ln(new / base)``."""
        return self.ways[0].centre

    def interval(self, alpha: float) -> tuple[float, float]:
        """The widest ``1 - alpha`` interval of logarithms."""
        half = max(s.half(alpha) for s in self.ways)
        return self.centre - half, self.centre + half

    def p(self) -> float:
        """The largest p value of the ways."""
        return max(s.p() for s in self.ways)

    def p_over(self, margin: float) -> float:
        """The largest ``p_over`` of the ways."""
        return max(s.p_over(margin) for s in self.ways)

    def smallest(self, alpha: float) -> float:
        """The smallest shift, as a logarithm, that the test detects at level ``alpha`` with
        probability ``POWER``.
        """
        return max(s.half(alpha) + student_t_quantile(POWER, s.df) * s.error for s in self.ways)


def holm_levels(p: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The level of each hypothesis in Holm's step-down procedure, which rejects it if its p is at
    most its level.

    S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979)
    65.
    """
    order = sorted(range(len(p)), key=p.__getitem__)
    levels = [0.0] * len(p)
    left = len(p)
    for i in order:
        levels[i] = alpha / left
        if p[i] <= levels[i]:
            left -= 1
    return levels


def side_shifts(
    base: Sequence[Runs], new: Sequence[Runs], floor: float = FLOOR, paces: Sequence[Paces] = ()
) -> list[Shifts]:
    """The shift of each case, from the runs of BASE and NEW; each side needs two processes.

    The replicates are the runs if a side has several, else the processes. ``floor``: as ``FLOOR``.
    ``paces``: for each case those of the processes of BASE and of NEW, or None to compare at the
    speed that each side had.
    """
    free = [len(b) + len(n) - 2 for b, n in zip(base, new, strict=True)]
    several = [i for i, d in enumerate(free) if d >= LEAST_RUNS_DF]
    variances = [variance_between_runs(base[i], new[i]) for i in several]
    expected = [floor**2 + _within([*base[i], *new[i]]) for i in several]
    spread = dict(
        zip(
            several,
            moderated_variances(variances, [free[i] for i in several], expected),
            strict=True,
        )
    )
    single = [i for i, d in enumerate(free) if d < LEAST_RUNS_DF]
    alone = [_OneRun.of(base[i], new[i], paces[i] if paces else None) for i in single]
    scatter = [one for each in alone for one in each.scatter] if len(alone) >= MODERATE_FROM else []
    both = moderated_variances([v for v, *_ in scatter], [d for _, d, _ in scatter])
    ways = {
        i: one.ways(both[2 * n : 2 * n + 2], floor)
        for n, (i, one) in enumerate(zip(single, alone, strict=True))
    }
    return [
        Shifts((_by_runs(b, n, *spread[i]),)) if i in spread else ways[i]
        for i, (b, n) in enumerate(zip(base, new, strict=True))
    ]


def paired_shifts(differences: Sequence[FloatArray]) -> list[Shifts]:
    """The shift of each case, from ``ln(new / base)`` of its pairs of processes measured in turn;
    needs two pairs.

    A difference between runs affects both processes of a pair, so it needs no allowance.
    """
    variances = [float(d.var(ddof=1)) for d in differences]
    spread = moderated_variances(variances, [d.size - 1 for d in differences], most=MODERATE_PAIRS)
    return [
        Shifts((Shift(float(d.mean()), math.sqrt(variance / d.size), df),))
        for d, (variance, df) in zip(differences, spread, strict=True)
    ]


def moderated_variances(
    variances: Sequence[float],
    df: Sequence[float],
    expected: Sequence[float] | None = None,
    most: float = MODERATE,
) -> list[tuple[float, float]]:
    """Each variance, moved towards the common variance of all cases, with its new degrees of
    freedom.

    ``most`` limits the weight of the prior. With few cases ``expected`` is the prior variance of
    each case; if there is none, the common variance has less weight. G. K. Smyth, Linear models and
    empirical Bayes methods for assessing differential expression in microarray experiments, Stat.
    Appl. Genet. Mol. Biol. 3 (2004) 3.
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
    return list(
        zip(((prior * common + d * v) / (prior + d)).tolist(), (prior + d).tolist(), strict=True)
    )


def _in_common(v: FloatArray, d: FloatArray) -> tuple[float, FloatArray]:
    """The degrees of freedom and the variance of the prior, from the moments of the log variances.

    The degrees of freedom are infinite if the variances differ by no more than chance.
    """
    halves = (d / 2).tolist()
    e = np.log(v) - [digamma(half) for half in halves] + np.log(d / 2)
    excess = float(e.var(ddof=1)) - float(np.mean([trigamma(half) for half in halves]))
    if excess <= 0:
        return math.inf, np.full(v.size, math.exp(float(e.mean())))
    half = math.exp(find_root(lambda x: trigamma(math.exp(x)) - excess, -50, 50, tolerance=1e-12))
    return 2 * half, np.full(v.size, math.exp(float(e.mean()) + digamma(half) - math.log(half)))


def _within(runs: Runs) -> float:
    """The variance of a run's mean that the spread of its processes alone causes, pooled over the
    runs.
    """
    several = [run for run in runs if run.size > 1]
    free = sum(run.size - 1 for run in several)
    squares = sum(float(run.var()) * run.size for run in several)
    return squares / free / float(np.mean([run.size for run in runs])) if free else 0.0


def _means(runs: Runs) -> FloatArray:
    return np.array([run.mean() for run in runs])


def variance_between_runs(base: Runs, new: Runs) -> float:
    """The variance of the run means around the mean of their side, over both sides; one side needs
    two runs.
    """
    squares = sum(float(((m - m.mean()) ** 2).sum()) for m in map(_means, (base, new)))
    return squares / (len(base) + len(new) - 2)


def _by_runs(base: Runs, new: Runs, variance: float, df: float) -> Shift:
    b, n = _means(base), _means(new)
    return Shift(float(n.mean() - b.mean()), math.sqrt(variance * (1 / b.size + 1 / n.size)), df)


@dataclass(frozen=True)
class _OneRun:
    """One run a side. ``scatter``: variance of the processes, degrees of freedom, and processes,
    for BASE and for NEW.

    ``lever``: the variance of ``centre`` from the fit to the speed, as a multiple of the variance
    of a process. ``runs``: 1 / BASE's + 1 / NEW's.
    """

    centre: float
    scatter: list[tuple[float, float, int]]
    lever: float
    runs: float

    @classmethod
    def of(cls, base: Runs, new: Runs, paces: Paces) -> _OneRun:
        """Without ``paces`` for Welch's test; with them one slope on the speed for both sides
        (covariance analysis).

        A normal prior, ``PACED_COST``, limits the slope where the speed hardly varies within a
        side.
        """
        sides = [np.concatenate(side) for side in (base, new)]
        centre, lever = float(_means(new).mean() - _means(base).mean()), 0.0
        away = [side - side.mean() for side in sides]
        if paces is not None:
            speeds = [pace - pace.mean() for pace in paces]
            ran = float(paces[1].mean() - paces[0].mean())
            square = sum(float(own @ own) for own in speeds)
            both = sum(float(own @ off) for own, off in zip(speeds, away, strict=True))
            left = sum(float(off @ off) for off in away) - both**2 / square
            usual, spread = PACED_COST
            known = max(left / max(sum(side.size for side in sides) - 3, 1), TINY) / spread**2
            if abs(ran) > PACED_UP_TO:
                both = square = 0.0
            slope = (both + usual * known) / (square + known)
            away = [off - slope * own for own, off in zip(speeds, away, strict=True)]
            centre, lever = centre - slope * ran, ran**2 / (square + known)
        free = [max(off.size - (1.5 if paces else 1.0), 1.0) for off in away]
        scatter = [
            (float(off @ off) / df, df, off.size) for off, df in zip(away, free, strict=True)
        ]
        return cls(centre, scatter, lever, 1 / len(base) + 1 / len(new))

    def ways(self, moderated: Sequence[tuple[float, float]], floor: float) -> Shifts:
        """The shift with a third variance component: the spread between runs, which one run cannot
        show.

        The component counts as exactly known. If it dominates, processes that agree by chance give
        a small error with many degrees of freedom. So the test without it must agree, except with
        variances ``moderated`` by many cases.
        """
        own = moderated or [(v, d) for v, d, _ in self.scatter]
        parts = [(v / size, d) for (v, d), (*_, size) in zip(own, self.scatter, strict=True)]
        df = sum(d for _, d in own)
        parts.append((sum(v * d for v, d in own) / df * self.lever, df))
        square, unsure = sum(part for part, _ in parts), sum(part**2 / d for part, d in parts)
        between = min(floor, PACED_FLOOR) if self.lever and not moderated else floor
        found, within = (
            Shift(self.centre, math.sqrt(of_all), of_all**2 / unsure if unsure > 0 else math.inf)
            for of_all in (square + between**2 * self.runs, square)
        )
        return Shifts((found,) if moderated else (found, within), within)


def comparable_paces(base: FloatArray, new: FloatArray) -> Paces:
    """Both, if they are known and vary between the processes of a side; else None."""
    varied = max(float(np.ptp(base)), float(np.ptp(new))) > MEAN.negligible
    return (base, new) if varied and np.isfinite([*base, *new]).all() else None
