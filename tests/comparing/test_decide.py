"""Test the statistics of a comparison: error rates and power with few processes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from overhead.comparing import decide
from overhead.comparing.decide import (
    ALPHA,
    FloatArray,
    LoopTimes,
    Runs,
    Shift,
    Shifts,
    holm_levels,
    paired_shifts,
    side_shifts,
)

TRIALS = 800


def processes(
    dice: np.random.Generator, count: int, *, spread: float, run_spread: float
) -> FloatArray:
    """A run without any shift: ln of the cost in each process, around a mean of the run. The
    spreads are standard deviations.
    """
    mean = dice.normal(0, run_spread)
    return np.asarray(mean + dice.normal(0, spread, count))


def has_verdict(trials: Sequence[Shifts]) -> bool:
    """Whether any case gets a verdict, as a comparison of these cases gives it."""
    p_values = [trial.p() for trial in trials]
    levels = holm_levels(p_values)
    return any(p <= level for p, level in zip(p_values, levels, strict=True))


def highest_share_by_chance(promised: float, trials: int) -> float:
    """Above this share of false verdicts, the promise is broken: three standard deviations of a
    binomial share.
    """
    return promised + 3 * math.sqrt(promised * (1 - promised) / trials)


@pytest.mark.needs("scipy")
def test_one_run_per_side_without_an_assumed_spread_of_runs_gives_welchs_test() -> None:
    from scipy import stats

    dice = np.random.default_rng(1)
    base = dice.normal(loc=0, scale=0.01, size=4)
    new = dice.normal(loc=0.02, scale=0.03, size=5)
    (found,) = side_shifts([[base]], [[new]], floor=0.0)
    welch = stats.ttest_ind(base, new, equal_var=False)
    assert found.p() == pytest.approx(float(welch.pvalue))
    assert found.centre == pytest.approx(new.mean() - base.mean())


@pytest.mark.parametrize(
    ("count", "spread"), [(3, 0.002), (3, 0.01), (3, 0.05), (3, 0.2), (5, 0.01), (5, 0.1)]
)
def test_one_run_per_side_gives_no_more_false_verdicts_than_promised(
    count: int, spread: float
) -> None:
    """With three to five processes of any spread, and a run-to-run spread equal to the floor."""
    dice = np.random.default_rng(count)
    p_values = []
    for _ in range(TRIALS):
        base = processes(dice, count, spread=spread, run_spread=decide.FLOOR)
        new = processes(dice, count, spread=spread, run_spread=decide.FLOOR)
        (found,) = side_shifts([[base]], [[new]])
        p_values.append(found.p())
    of_one_case, of_one_of_ten_cases = ALPHA, ALPHA / 10
    for level in (of_one_case, of_one_of_ten_cases):
        share_of_false_verdicts = np.mean(np.array(p_values) <= level)
        assert share_of_false_verdicts <= highest_share_by_chance(level, TRIALS)


@pytest.mark.parametrize("count", [3, 5])
def test_one_run_per_side_of_many_unlike_cases_gives_no_more_false_verdicts_than_promised(
    count: int,
) -> None:
    """The spreads of 25 cases differ by a factor of ten; all follow the processor's speed, each in
    its own way.
    """
    dice = np.random.default_rng(count)
    cases = 25
    comparisons = 200
    wrong = 0
    for _ in range(comparisons):
        spreads = 0.01 * np.exp(dice.normal(0, 1, cases))
        follows_speed = dice.uniform(0, 1, cases)
        # The reference loop: the processor is 5 % slower during the new run.
        base_times = dice.normal(loc=0, scale=0.03, size=count)
        new_times = dice.normal(loc=0.05, scale=0.03, size=count)
        times = LoopTimes(base_times, new_times)
        sides: list[list[Runs]] = []
        for side_times in times:
            runs: list[Runs] = []
            for spread, slope in zip(spreads, follows_speed, strict=True):
                noise = processes(dice, count, spread=spread, run_spread=decide.FLOOR)
                runs.append([slope * side_times + noise])
            sides.append(runs)
        wrong += has_verdict(side_shifts(sides[0], sides[1], loop_times=[times] * cases))
    assert wrong / comparisons <= highest_share_by_chance(decide.PROMISED, comparisons)


@pytest.mark.slow
@pytest.mark.parametrize(("run_spread", "cases"), [(0.0, 20), (0.03, 20), (0.003, 40)])
def test_several_runs_per_side_give_no_more_false_verdicts_than_promised(
    run_spread: float, cases: int
) -> None:
    """The spreads of the cases differ by a factor of three, and all cases of a run share a
    disturbance.
    """
    dice = np.random.default_rng(cases)
    comparisons = 200
    wrong = 0
    for _ in range(comparisons):
        sizes = np.exp(dice.normal(0, 0.5, cases))
        base = runs_with_common_disturbance(dice, run_spread, sizes)
        new = runs_with_common_disturbance(dice, run_spread, sizes)
        wrong += has_verdict(side_shifts(base, new))
    assert wrong / comparisons <= highest_share_by_chance(decide.PROMISED, comparisons)


def runs_with_common_disturbance(
    dice: np.random.Generator, run_spread: float, sizes: FloatArray
) -> list[Runs]:
    """Three runs of a side, by case. ``sizes``: how much each case spreads."""
    by_case: list[list[FloatArray]] = [[] for _ in sizes]
    for _ in range(3):
        disturbance = dice.normal(0, run_spread)
        for runs, size in zip(by_case, sizes, strict=True):
            own = processes(dice, 3, spread=0.005 * size, run_spread=run_spread * size)
            runs.append(disturbance + own)
    return [*by_case]


@pytest.mark.parametrize(
    ("cases", "common"), [(1, 0.0), (5, 0.02), (20, 0.0), (20, 0.02), (30, 0.005)]
)
@pytest.mark.parametrize("pairs", [3, 5])
def test_pairs_of_processes_give_no_more_false_verdicts_than_promised(
    pairs: int, cases: int, common: float
) -> None:
    """Both processes of a pair share one disturbance, and all cases of a process share another
    (``common``: its spread).
    """
    dice = np.random.default_rng([pairs, cases, round(1e3 * common)])
    comparisons = 400
    wrong = 0
    for _ in range(comparisons):
        spreads = 0.005 * np.exp(dice.normal(0, 0.5, cases))
        of_pair = dice.normal(loc=0, scale=0.2, size=(pairs, 1))
        sides = []
        for _side in ("base", "new"):
            of_process = dice.normal(loc=0, scale=common, size=(pairs, 1))
            own = spreads * dice.standard_normal((pairs, cases))
            sides.append(of_pair + of_process + own)
        differences = sides[1] - sides[0]
        wrong += has_verdict(paired_shifts(list(differences.T)))
    assert wrong / comparisons <= highest_share_by_chance(decide.PROMISED, comparisons)


def test_one_very_noisy_case_does_not_hide_shifts_of_the_others() -> None:
    dice = np.random.default_rng(8)
    quiet = [dice.normal(loc=0, scale=0.01, size=3) for _ in range(5)]
    noisy = dice.normal(loc=0, scale=1.0, size=3)
    without_noisy = paired_shifts(quiet)
    beside_noisy = paired_shifts([*quiet, noisy])
    for before, after in zip(without_noisy, beside_noisy, strict=False):
        # The noisy case spreads 100 times as much; the others do not even lose a factor of 2.
        assert after.smallest_detectable(ALPHA) < 2 * before.smallest_detectable(ALPHA)


@pytest.mark.needs("scipy")
def test_pairs_of_one_case_give_students_paired_test() -> None:
    from scipy import stats

    dice = np.random.default_rng(5)
    base = dice.normal(loc=0, scale=0.1, size=6)
    new = dice.normal(loc=0.05, scale=0.1, size=6)
    (found,) = paired_shifts([new - base])
    assert found.p() == pytest.approx(float(stats.ttest_rel(new, base).pvalue))


def test_no_case_has_no_shift() -> None:
    assert paired_shifts([]) == []


@pytest.mark.parametrize("runs", [1, 3])
def test_the_stated_smallest_shift_is_detected_as_often_as_promised(runs: int) -> None:
    """That is, in nine of ten comparisons."""
    dice = np.random.default_rng(runs)
    cases = 5
    level = ALPHA / cases
    detected = []
    for _ in range(TRIALS // 4):
        sides: list[list[Runs]] = []
        for _side in ("base", "new"):
            by_case: list[Runs] = []
            for _case in range(cases):
                by_case.append(
                    [processes(dice, 3, spread=0.01, run_spread=0.01) for _ in range(runs)]
                )
            sides.append(by_case)
        for trial in side_shifts(sides[0], sides[1]):
            slower = shifted(trial, trial.smallest_detectable(level))
            detected.append(slower.p() <= level)
    assert np.mean(detected) >= 0.9


def shifted(shifts: Shifts, by: float) -> Shifts:
    """The same with this much added to ``ln(new / base)``."""
    return Shifts(tuple(Shift(s.centre + by, s.error, s.df) for s in shifts.estimates))


def rejected(p_values: Sequence[float]) -> list[bool]:
    levels = holm_levels(p_values, 0.05)
    return [p <= level for p, level in zip(p_values, levels, strict=True)]


def test_holm_raises_the_level_after_each_rejection() -> None:
    # The smallest p value is tested at a quarter of the level; after it three remain.
    levels = holm_levels([0.04, 0.001, 0.02, 0.5], 0.05)
    assert levels == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert rejected([0.04, 0.001, 0.02, 0.5]) == [False, True, False, False]
    assert rejected([0.01, 0.04]) == [True, True]
    assert holm_levels([]) == []


def test_the_interval_excludes_a_ratio_of_one_exactly_if_the_test_rejects() -> None:
    for centre in np.linspace(-0.1, 0.1, 41):
        shift = Shift(centre=float(centre), error=0.02, df=7.0)
        low, high = Shifts((shift,)).interval(ALPHA)
        excludes_one = not low <= 0 <= high
        assert excludes_one == (shift.p() <= ALPHA)


def test_a_case_with_two_estimates_is_different_only_if_both_agree() -> None:
    clear = Shift(centre=0.7, error=0.01, df=math.inf)
    unclear = Shift(centre=0.7, error=0.5, df=math.inf)
    assert Shifts((clear,)).p() < 1e-6
    assert Shifts((clear, clear)).p() == Shifts((clear,)).p()
    both = Shifts((clear, unclear))
    assert both.p() == Shifts((unclear,)).p() > ALPHA
    low, _ = both.interval(ALPHA)
    assert low < 0
    assert both.smallest_detectable(ALPHA) > 0.7


def test_equal_processes_of_one_run_are_no_shift() -> None:
    equal_processes = [np.zeros(3)]
    (trial,) = side_shifts([equal_processes], [equal_processes], floor=0.0)
    assert trial.p() == 1.0


def test_equal_processes_get_a_small_positive_error_instead_of_zero() -> None:
    equal_runs = [np.zeros(3), np.zeros(3)]
    for trial in side_shifts([equal_runs] * 30, [equal_runs] * 30):
        for shift in trial.estimates:
            assert 0 < shift.error < math.inf
