"""Statistical tests of whether two sides differ: shift, standard error, degrees of freedom, and
Holm over the cases.

A side is a list of runs. A run is an array of ``ln(ns per unit)`` with one value per process.
docs/compare.md explains the choice of tests. ``make bench ARGS=compare`` and
tests/comparing/test_decide.py check the constants below: of 200 pairs of equal runs, 3 had a false
verdict (25 November 2026; ``PROMISED`` allows 10).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fitting.interval import MEAN
from overhead.numerics import digamma, find_root, student_t_quantile, student_t_tail, trigamma

FloatArray = NDArray[np.float64]
Runs = Sequence[FloatArray]

PROMISED = 0.05
"""Highest probability of any false verdict in a comparison, over all its cases."""
ALPHA = 0.04
"""The level of the tests. They are exact for normal distributions only; the margin to ``PROMISED``
covers others. Chosen, not measured.
"""
POWER = 0.95
"""The probability that the test detects the stated smallest shift. Chosen, not measured."""
FLOOR = 0.015
"""Assumed standard deviation (relative) of a run's mean, if one run per side leaves the run-to-run
spread unknown. In four pairs of committed runs, three of them on two boards, the ``ok`` cases
spread by 0.9 to 1.2 % at one speed of the processor. A lower floor gives more false verdicts.
"""
SAME_SPEED_FLOOR = 0.0125
"""The same at the same speed of the processor, for fewer cases than ``MODERATE_FROM``: a test
without it must agree. It is just above the largest spread of those four pairs, 1.2 %.
"""
SLOPE_SEEN_UP_TO = 0.18
"""If ln(speed) differs by more than this (a fifth) between the sides, the prior alone sets the
slope, not how the processes of a side follow their speed. Chosen, not measured.
"""
SLOPE_PRIOR_MEAN = 0.5
SLOPE_PRIOR_DEVIATION = 0.5
"""How far a cost follows the time of the reference loop, before it is seen. Costs bound by the
device do not follow it (slope 0), others do in proportion (1); the prior covers both. Chosen, not
measured.
"""
LEAST_RUNS_DF = 2
"""The run-to-run spread is estimated from this many runs or more, not counting the first run of
each side. Chosen, not measured: with 1, a variance would come from one degree of freedom.
"""
MODERATE = 4.0
"""Highest weight of the common spread of all cases, in runs. It is low because the cases of a run
share disturbances. On simulated machines with 20 cases, 3 runs a side gave a false verdict in 0 to
2 of 200 pairs (22 November 2026, ``scripts/bench/compare.py`` of commit 99442ad).
"""
MODERATE_PAIRS = 2.0
"""The same for pairs of processes, in pairs: 0 to 6 of 200 in the same simulation."""
MODERATE_FROM = 20
"""Below this number of cases their common variance is uncertain: ``FLOOR`` replaces it, or it has
less or no weight. Chosen, not measured; the simulations have 20 cases.
"""
WIDEST_HALF = 300.0
"""The widest half-width, which as a ratio is still a finite number."""
TINY = 1e-12
"""A variance below this comes from the clock's resolution."""


class LoopTimes(NamedTuple):
    """ln of the time of the reference loop in each process of BASE and of NEW: how slow the
    processor was.
    """

    base: FloatArray
    new: FloatArray


class Variance(NamedTuple):
    """An estimated variance, and how many degrees of freedom the estimate has."""

    value: float
    df: float


class SideRuns(NamedTuple):
    """The runs of one case on both sides."""

    base: Runs
    new: Runs


@dataclass(frozen=True)
class Shift:
    """An estimate of ``ln(new / base)``, its standard error, and the degrees of freedom of the
    error.
    """

    centre: float
    error: float
    df: float

    def half_width(self, alpha: float) -> float:
        """The half-width of the two-sided interval with confidence ``1 - alpha``."""
        half_width = student_t_quantile(1 - alpha / 2, self.df) * self.error
        return min(half_width, WIDEST_HALF)

    def p(self) -> float:
        """The two-sided p value of the hypothesis of no shift."""
        return self._doubled_tail(abs(self.centre))

    def p_over(self, margin: float) -> float:
        """Twice the p value of the hypothesis that the shift is at most ``margin``.

        It is below alpha exactly if the whole interval with confidence ``1 - alpha`` is above
        ``margin``.
        """
        return self._doubled_tail(self.centre - margin)

    def _doubled_tail(self, distance: float) -> float:
        """Twice the probability that chance alone puts the estimate this far above the
        hypothesis.
        """
        if self.error <= 0:
            return float(distance <= 0)
        return min(1.0, 2 * student_t_tail(distance / self.error, self.df))


@dataclass(frozen=True)
class Shifts:
    """The shift of one case, ``ln(new / base)``, with one or several standard errors
    (``estimates``). A verdict must hold with all of them.

    ``within``: with the spread of the processes alone, without an allowance for the spread between
    runs. It tells whether only that allowance hides a change.
    """

    estimates: tuple[Shift, ...]
    within: Shift | None = None

    @property
    def centre(self) -> float:
        """``ln(new / base)``."""
        return self.estimates[0].centre

    def interval(self, alpha: float) -> tuple[float, float]:
        """The widest ``1 - alpha`` interval of logarithms."""
        half_width = max(shift.half_width(alpha) for shift in self.estimates)
        return self.centre - half_width, self.centre + half_width

    def p(self) -> float:
        """The largest p value of the estimates."""
        return max(shift.p() for shift in self.estimates)

    def p_over(self, margin: float) -> float:
        """The largest ``p_over`` of the estimates."""
        return max(shift.p_over(margin) for shift in self.estimates)

    def smallest_detectable(self, alpha: float) -> float:
        """The smallest shift, as a logarithm, that the test detects at level ``alpha`` with
        probability ``POWER``: the estimate must exceed the half-width of its interval although it
        may fall short of the true shift.
        """
        detectable = []
        for shift in self.estimates:
            # An estimate falls short of the true shift by this at most, with probability POWER.
            # ``df``: the degrees of freedom of the standard error.
            shortfall = student_t_quantile(POWER, shift.df) * shift.error
            # The shift must exceed both together: what the test asks for, and what chance may take
            # off.
            detectable.append(shift.half_width(alpha) + shortfall)
        return max(detectable)


def holm_levels(p_values: Sequence[float], alpha: float = ALPHA) -> list[float]:
    """The significance level of each hypothesis when many are tested together, so that the chance
    of any false rejection stays at most ``alpha``: Holm's step-down procedure rejects a hypothesis
    if its p is at most its level.

    The smallest p gets the strictest level. Each rejection raises the level of the hypotheses that
    are left. S. Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6
    (1979) 65.
    """
    # The positions of the hypotheses, that with the smallest p first.
    smallest_first = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels = [0.0] * len(p_values)
    not_rejected = len(p_values)
    for position in smallest_first:
        # ``alpha`` is shared by all hypotheses that are not rejected so far.
        levels[position] = alpha / not_rejected
        # Without a rejection the count stays, so all that follow have this level. They have larger
        # p values, and none of them is rejected either.
        if p_values[position] <= levels[position]:
            not_rejected -= 1
    return levels


def df_between_runs(base_runs: int, new_runs: int) -> int:
    """The degrees of freedom of the spread between runs: one run of each side fixes its mean."""
    return base_runs + new_runs - 2


def shows_spread_of_runs(base_runs: int, new_runs: int) -> bool:
    """Whether so many runs on each side tell how much runs vary, so that runs and not processes are
    what a test counts.
    """
    return df_between_runs(base_runs, new_runs) >= LEAST_RUNS_DF


def side_shifts(
    base: Sequence[Runs],
    new: Sequence[Runs],
    floor: float = FLOOR,
    loop_times: Sequence[LoopTimes | None] = (),
) -> list[Shifts]:
    """By how much each case differs between BASE and NEW, two sides whose runs were not measured in
    turn; each side needs two processes. A shift is ``ln(new / base)`` with its standard error; all
    runs hold logarithms of costs, an array for each run with a value for each process.

    If the runs of both sides are enough to tell how much runs vary, the test of a case counts runs,
    else processes. ``floor``: the assumed spread between runs where it cannot be seen, as
    ``FLOOR``. ``loop_times``: for each case the times of the reference loop (fixed work) in the
    processes of BASE and of NEW, to compare at the same speed of the processor; None to compare at
    the speed that each side had.
    """
    # First part the cases by what their test can count. Positions keep the order of the result.
    cases = [SideRuns(*sides) for sides in zip(base, new, strict=True)]
    by_runs: list[int] = []
    by_processes: list[int] = []
    for position, case in enumerate(cases):
        if shows_spread_of_runs(len(case.base), len(case.new)):
            by_runs.append(position)
        else:
            by_processes.append(position)

    shifts_of_runs = _shifts_by_runs([cases[i] for i in by_runs], floor)
    of_one_run = []
    for position in by_processes:
        times = loop_times[position] if loop_times else None
        of_one_run.append(_OneRunEach.of(cases[position], times))
    shifts_of_processes = _shifts_by_processes(of_one_run, floor)

    # Then put both kinds back in the order of the cases.
    shifts = dict(zip(by_runs, shifts_of_runs, strict=True))
    shifts.update(zip(by_processes, shifts_of_processes, strict=True))
    return [shifts[position] for position in range(len(cases))]


def _shifts_by_runs(cases: Sequence[SideRuns], floor: float) -> list[Shifts]:
    """The shift of each case whose runs show how much runs vary: the test counts runs. The variance
    of each case is moved towards that of all, since a few runs tell it badly.
    """
    # ``df``: degrees of freedom, the number of runs less one for each side.
    variances = []
    expected = []
    for case in cases:
        df = df_between_runs(len(case.base), len(case.new))
        between_runs = variance_between_runs(case.base, case.new)
        variances.append(Variance(between_runs, df))
        within_runs = _variance_within_runs([*case.base, *case.new])
        # What the variance of a run's mean is expected to be: the assumed spread between runs, and
        # what the processes inside a run alone cause.
        expected.append(floor**2 + within_runs)
    moderated = moderated_variances(variances, expected)

    shifts = []
    for case, variance in zip(cases, moderated, strict=True):
        base_means = _means(case.base)
        new_means = _means(case.new)
        # The standard error of a difference of two means, with a variance common to both sides.
        inverse_runs = 1 / base_means.size + 1 / new_means.size
        error = math.sqrt(variance.value * inverse_runs)
        centre = float(new_means.mean() - base_means.mean())
        shifts.append(Shifts((Shift(centre, error, variance.df),)))
    return shifts


def _shifts_by_processes(cases: Sequence[_OneRunEach], floor: float) -> list[Shifts]:
    """The shift of each case whose runs are too few to tell how much runs vary: the test counts
    processes, and assumes ``floor`` for the spread between runs.

    Many cases tell their common variance, towards which that of each side of a case is moved.
    """
    # So few cases do not tell it: each side keeps its own variance.
    if len(cases) < MODERATE_FROM:
        return [case.shifts(None, floor) for case in cases]
    # Two variances for each case, BASE then NEW: they come back in this order.
    variances = []
    for case in cases:
        variances += [case.base.variance, case.new.variance]
    moderated = iter(moderated_variances(variances))
    shifts = []
    for case in cases:
        base_variance = next(moderated)
        new_variance = next(moderated)
        shifts.append(case.shifts((base_variance, new_variance), floor))
    return shifts


def paired_shifts(differences: Sequence[FloatArray]) -> list[Shifts]:
    """The shift of each case from ``differences``, the ``ln(new / base)`` of its pairs of processes
    measured in turn; needs two pairs. Student's paired test.

    What differs between runs affects both processes of a pair, so it needs no allowance.
    """
    # The variance of each case is moved towards that of all cases, which weighs as much as
    # ``MODERATE_PAIRS`` pairs at most.
    variances = []
    for pairs in differences:
        df = pairs.size - 1
        variances.append(Variance(float(pairs.var(ddof=1)), df))
    moderated = moderated_variances(variances, most=MODERATE_PAIRS)
    shifts = []
    # The mean of the differences; its standard error has the moderated variance.
    for pairs, variance in zip(differences, moderated, strict=True):
        error = math.sqrt(variance.value / pairs.size)
        shift = Shift(float(pairs.mean()), error, variance.df)
        shifts.append(Shifts((shift,)))
    return shifts


def moderated_variances(
    variances: Sequence[Variance],
    expected: Sequence[float] | None = None,
    most: float = MODERATE,
) -> list[Variance]:
    """The variance of each case, moved towards the common variance of all cases, with more degrees
    of freedom: a variance from a few runs is uncertain, and many cases together tell what is usual.

    ``most`` limits the weight of the common variance, the prior. With few cases ``expected`` is the
    prior variance of each case; if there is none, the common variance has less weight. G. K. Smyth,
    Linear models and empirical Bayes methods for assessing differential expression in microarray
    experiments, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3; the symbols are those of the paper:
    ``s2`` and ``d`` are the variance of a case and its degrees of freedom, ``s0_2`` and ``d0``
    those of the prior.
    """
    values = np.array([variance.value for variance in variances], dtype=np.float64)
    # Less than ``TINY`` comes from the clock's resolution, and 0 would have no logarithm.
    s2 = np.maximum(values, TINY)
    d = np.array([variance.df for variance in variances], dtype=np.float64)
    # Few cases do not tell their common variance: the expected one takes its place.
    if expected is not None and s2.size < MODERATE_FROM:
        d0 = most
        s0_2 = np.array(expected, dtype=np.float64)
    # One case has no others to be moved towards.
    elif s2.size < 2:
        return _variances_of(s2, d)
    else:
        prior = _prior_of_all(s2, d)
        # Fewer cases tell the prior less surely, so it weighs less.
        share_of_weight = min(1.0, (s2.size - 1) / (MODERATE_FROM - 1))
        # The prior has at most the weight that ``most`` allows.
        d0 = min(prior.df, most * share_of_weight)
        s0_2 = np.full(s2.size, prior.value)
    # The posterior variance of the paper, and its degrees of freedom.
    moderated_df = d0 + d
    moderated = (d0 * s0_2 + d * s2) / moderated_df
    return _variances_of(moderated, moderated_df)


def _variances_of(values: FloatArray, df: FloatArray) -> list[Variance]:
    return list(map(Variance, values.tolist(), df.tolist()))


def _prior_of_all(s2: FloatArray, d: FloatArray) -> Variance:
    """The variance common to all cases, and the degrees of freedom that it is worth: Smyth's
    estimate from the mean and the variance of the logarithms ``ln s2`` (section 6.2 of the paper
    named in ``moderated_variances``). ``s2``: the variance of each case; ``d``: its degrees of
    freedom.

    The degrees of freedom are infinite if the variances differ by no more than chance.
    """
    halves = (d / 2).tolist()
    # e has the mean ln(s0_2) - digamma(d0/2) + ln(d0/2) and the variance trigamma(d/2) +
    # trigamma(d0/2): chance explains the first part, the second tells d0.
    digammas = [digamma(half) for half in halves]
    # One e for each case, as the paper names it.
    e = np.log(s2) - digammas + np.log(d / 2)
    mean_e = float(e.mean())
    trigammas = [trigamma(half) for half in halves]
    by_chance = float(np.mean(trigammas))
    excess = float(e.var(ddof=1)) - by_chance
    if excess <= 0:
        return Variance(math.exp(mean_e), math.inf)

    # The d0 for which trigamma(d0/2) is this excess, searched over the logarithm of d0/2.
    def too_much(log_half: float) -> float:
        return trigamma(math.exp(log_half)) - excess

    # ``trigamma`` falls from infinity to 0, so between these far ends there is one such d0.
    half_d0 = math.exp(find_root(too_much, -50, 50, tolerance=1e-12))
    # From the mean of e, solved for s0_2.
    s0_2 = math.exp(mean_e + digamma(half_d0) - math.log(half_d0))
    return Variance(s0_2, 2 * half_d0)


def _variance_within_runs(runs: Runs) -> float:
    """The variance of a run's mean that the spread of its processes alone causes, pooled over the
    runs; 0 if each run has one process. The spread between runs comes on top of it.
    """
    several = [run for run in runs if run.size > 1]
    # Each run fixes its own mean, which costs a degree of freedom.
    df = sum(run.size - 1 for run in several)
    if not df:
        return 0.0
    # The variance of a process, divided by how many of them a mean is of. ``var`` is the mean of
    # the squares, so times ``size`` it is their sum.
    squares = sum(float(run.var()) * run.size for run in several)
    processes_a_run = float(np.mean([run.size for run in runs]))
    return squares / df / processes_a_run


def _means(runs: Runs) -> FloatArray:
    return np.array([run.mean() for run in runs])


def variance_between_runs(base: Runs, new: Runs) -> float:
    """The variance of the run means around the mean of their side, over both sides; one side needs
    two runs.
    """
    from_side_mean = [_deviations(_means(base)), _deviations(_means(new))]
    squares = sum(float((deviations**2).sum()) for deviations in from_side_mean)
    return squares / df_between_runs(len(base), len(new))


class _ProcessScatter(NamedTuple):
    """How much the processes of one side differ, and how many they are."""

    variance: Variance
    processes: int


@dataclass(frozen=True)
class _CommonSlope:
    """How far a cost follows the speed of the processor, one slope for both sides.

    ``gap``: ln of how many times as slow the processor was in NEW. ``variance_share``: the
    variance of the slope, as a multiple of the variance of a process.
    """

    slope: float
    gap: float
    variance_share: float


@dataclass(frozen=True)
class _OneRunEach:
    """A case with one run a side, or so few that the test counts processes.

    ``centre``: ``ln(new / base)``. ``base``, ``new``: how much the processes of each side differ.
    ``lever``: the variance that the fit to the speed of the processor adds to ``centre``, as a
    multiple of the variance of a process; 0 without such a fit. ``inverse_runs``: 1 / runs of BASE
    + 1 / runs of NEW, by which the spread between runs counts.
    """

    centre: float
    base: _ProcessScatter
    new: _ProcessScatter
    lever: float
    inverse_runs: float

    @classmethod
    def of(cls, case: SideRuns, loop_times: LoopTimes | None) -> _OneRunEach:
        """The case as the difference of the means of both sides (Welch's test). With
        ``loop_times``, the times of the reference loop in each process, the difference at the same
        speed of the processor: one line through the costs of a side and these times, with the same
        slope for both sides, is subtracted (analysis of covariance).
        """
        # ln(cost) of each process of a side less the mean of the side; all runs of a side together.
        deviations = [_deviations(np.concatenate(side)) for side in case]
        base_mean = _means(case.base).mean()
        new_mean = _means(case.new).mean()
        centre = float(new_mean - base_mean)
        # ``df_used``: degrees of freedom that the fit took of each side (its mean). ``lever``: the
        # variance that the slope adds to ``centre``, as a multiple of that of a process.
        lever = 0.0
        df_used = 1.0
        if loop_times is not None:
            # The same for ln(time of the reference loop), which is longer on a slower processor.
            # ``gap``: how much slower NEW's processors were.
            speeds = [_deviations(times) for times in loop_times]
            gap = float(loop_times.new.mean() - loop_times.base.mean())
            fitted = _common_slope(speeds, deviations, gap)
            # Subtract what the speed explains: of each process from the costs, of the means from
            # the shift.
            base_costs, new_costs = deviations
            base_speeds, new_speeds = speeds
            deviations = [
                base_costs - fitted.slope * base_speeds,
                new_costs - fitted.slope * new_speeds,
            ]
            centre = centre - fitted.slope * fitted.gap
            lever = fitted.variance_share
            df_used = 1.5  # the mean of a side, and half of the slope that both sides share
        # The variance of the processes of each side, with its degrees of freedom, and their number.
        base, new = (_scatter_of(side, df_used) for side in deviations)
        inverse_runs = 1 / len(case.base) + 1 / len(case.new)
        return cls(centre, base, new, lever, inverse_runs)

    def shifts(self, moderated: tuple[Variance, Variance] | None, floor: float) -> Shifts:
        """The shift with all that makes it uncertain: the processes of each side, the fit to the
        speed, and as a third part the spread between runs, which one run cannot show and ``floor``
        replaces.

        That part counts as exactly known. If it dominates, processes that agree by chance give a
        small error with many degrees of freedom. So the test without it must agree, except with the
        variances of BASE and NEW ``moderated`` by many cases.
        """
        variances = moderated or (self.base.variance, self.new.variance)
        sizes = self.base.processes, self.new.processes
        # The variance of a process over both sides, each weighted by its degrees of freedom.
        pooled_df = sum(variance.df for variance in variances)
        pooled = sum(variance.value * variance.df for variance in variances) / pooled_df
        # What the mean of each side, and the slope, add to the variance of the shift.
        components = []
        for variance, size in zip(variances, sizes, strict=True):
            components.append(Variance(variance.value / size, variance.df))
        # ``lever``: what the slope adds, as a multiple of the variance of a process.
        components.append(Variance(pooled * self.lever, pooled_df))
        # At the same speed of the processor runs differ less, so a lower spread is assumed. Not
        # with ``moderated``: then the test without any such spread, the guard below, is left out.
        between_runs = floor
        if self.lever and not moderated:
            between_runs = min(floor, SAME_SPEED_FLOOR)

        # Both variances of the shift: without and with the assumed spread between runs. That spread
        # has no uncertainty of its own, so it is missing from the third sum.
        of_processes = sum(part.value for part in components)
        of_runs = between_runs**2 * self.inverse_runs
        uncertainty = sum(part.value**2 / part.df for part in components)
        # ``_shift`` takes the variance, and forms the degrees of freedom from both sums, as Welch
        # and Satterthwaite do: variance² / uncertainty.
        within = self._shift(of_processes, uncertainty)
        with_runs = self._shift(of_processes + of_runs, uncertainty)
        if moderated:
            return Shifts((with_runs,), within)
        return Shifts((with_runs, within), within)

    def _shift(self, variance: float, uncertainty: float) -> Shift:
        """The shift with this variance; its degrees of freedom are those of Welch and
        Satterthwaite. ``uncertainty``: the sum of (variance of a component)² / degrees of freedom.
        """
        df = variance**2 / uncertainty if uncertainty > 0 else math.inf
        return Shift(self.centre, math.sqrt(variance), df)


def _deviations(values: FloatArray) -> FloatArray:
    """The values minus their mean."""
    deviations: FloatArray = values - values.mean()
    return deviations


def _scatter_of(deviations: FloatArray, df_used: float) -> _ProcessScatter:
    """The variance of the processes of a side from their deviations. ``df_used``: the degrees of
    freedom that the fit took.
    """
    df = max(deviations.size - df_used, 1.0)
    squares = float(deviations @ deviations)
    return _ProcessScatter(Variance(squares / df, df), deviations.size)


def _common_slope(
    speeds: Sequence[FloatArray], costs: Sequence[FloatArray], gap: float
) -> _CommonSlope:
    """How far the cost of a process follows the speed of its processor, which the reference loop
    (fixed work) shows: the slope of ln(cost) over ln(time of the loop), from both sides at once.

    ``speeds``, ``costs``: by side the deviations of their logarithms from the mean of the side.
    ``gap``: by how much the mean speed differs between the sides. A normal prior limits the slope
    where the speed hardly varies within a side: the result is the mean of the posterior, (S_xy +
    mean * w) / (S_xx + w), where ``w`` is the weight of the prior.
    """
    # Sums of squares and products, as in a regression: x is the speed, y the cost.
    s_xx = sum(float(speed @ speed) for speed in speeds)
    s_xy = sum(float(speed @ cost) for speed, cost in zip(speeds, costs, strict=True))
    s_yy = sum(float(cost @ cost) for cost in costs)
    # ``s_xx`` is above 0: times of the loop that do not vary were refused before.
    left_by_fit = s_yy - s_xy**2 / s_xx
    # Two means and one slope were fitted.
    # At least 1, to divide by.
    df = max(sum(cost.size for cost in costs) - 3, 1)
    # The variance of a process around the line, and with it the weight of the prior: the worse the
    # line fits, the more the prior counts.
    noise = max(left_by_fit / df, TINY)
    prior_weight = noise / SLOPE_PRIOR_DEVIATION**2
    # Over so large a gap the slope seen within a side would be extended too far: the prior decides.
    if abs(gap) > SLOPE_SEEN_UP_TO:
        s_xy = 0.0
        s_xx = 0.0
    slope = (s_xy + SLOPE_PRIOR_MEAN * prior_weight) / (s_xx + prior_weight)
    # The slope's variance is noise / (s_xx + w); what it adds to the shift is gap² times that.
    return _CommonSlope(slope, gap, gap**2 / (s_xx + prior_weight))


def comparable_loop_times(base: FloatArray, new: FloatArray) -> LoopTimes | None:
    """The times of the reference loop (fixed work) in both sides, with which the sides can be
    compared at the same speed of the processor; None if a time is unknown, or if they do not vary
    between the processes of a side, so that no slope over them can be fitted.
    """
    base_range = float(np.ptp(base))
    new_range = float(np.ptp(new))
    widest_range = max(base_range, new_range)
    # A loop that was not timed has the logarithm -inf. ``negligible``: a range of logarithms below
    # it counts as none. One of the two sides with a wider range is enough.
    is_known = np.isfinite([*base, *new]).all()
    if widest_range > MEAN.negligible and is_known:
        return LoopTimes(base, new)
    return None
