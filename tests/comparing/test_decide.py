"""Test the statistics of a comparison: error rates and power with few processes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from overhead.comparing import decide
from overhead.comparing.decide import (
    ALPHA,
    FloatArray,
    LoopTimes,
    Shift,
    Shifts,
    holm_levels,
    paired_shifts,
    side_shifts,
)

TRIALS = 800


def processes(dice: np.random.Generator, count: int, spread: float, run: float) -> FloatArray:
    return np.asarray(dice.normal(0, run) + dice.normal(0, spread, count))


@pytest.mark.needs("scipy")
def test_one_run_per_side_without_an_assumed_spread_of_runs_gives_welchs_test() -> None:
    from scipy import stats

    dice = np.random.default_rng(1)
    base, new = dice.normal(0, 0.01, 4), dice.normal(0.02, 0.03, 5)
    (found,) = side_shifts([[base]], [[new]], floor=0.0)
    assert found.p() == pytest.approx(float(stats.ttest_ind(base, new, equal_var=False).pvalue))
    assert found.centre == pytest.approx(new.mean() - base.mean())


@pytest.mark.parametrize(
    ("count", "spread"), [(3, 0.002), (3, 0.01), (3, 0.05), (3, 0.2), (5, 0.01), (5, 0.1)]
)
def test_one_run_per_side_gives_no_more_false_verdicts_than_promised(
    count: int, spread: float
) -> None:
    """With three to five processes of any spread, and a run-to-run spread equal to the floor."""
    dice = np.random.default_rng(count)
    p = []
    for _ in range(TRIALS):
        base, new = ([processes(dice, count, spread, decide.FLOOR)] for _ in "ab")
        p.append(side_shifts([base], [new])[0].p())
    for level in (ALPHA, ALPHA / 10):
        error = math.sqrt(level * (1 - level) / TRIALS)
        assert np.mean(np.array(p) <= level) <= level + 3 * error


@pytest.mark.parametrize("count", [3, 5])
def test_one_run_per_side_of_many_unlike_cases_gives_no_more_false_verdicts_than_promised(
    count: int,
) -> None:
    """The spreads of 25 cases differ by a factor of ten; all follow the processor's speed, each in
    its own way.
    """
    dice = np.random.default_rng(count)
    wrong = 0
    for _ in range(200):
        sizes, follows = 0.01 * np.exp(dice.normal(0, 1, 25)), dice.uniform(0, 1, 25)
        paces = dice.normal(0, 0.03, count), dice.normal(0.05, 0.03, count)
        base, new = (
            [
                [f * pace + processes(dice, count, size, decide.FLOOR)]
                for size, f in zip(sizes, follows, strict=True)
            ]
            for pace in paces
        )
        p = [trial.p() for trial in side_shifts(base, new, loop_times=[LoopTimes(*paces)] * 25)]
        wrong += any(one <= level for one, level in zip(p, holm_levels(p), strict=True))
    assert wrong / 200 <= decide.PROMISED + 3 * math.sqrt(
        decide.PROMISED * (1 - decide.PROMISED) / 200
    )


@pytest.mark.slow
@pytest.mark.parametrize(("run", "cases"), [(0.0, 20), (0.03, 20), (0.003, 40)])
def test_several_runs_per_side_give_no_more_false_verdicts_than_promised(
    run: float, cases: int
) -> None:
    """The spreads of the cases differ by a factor of three, and all cases of a run share a
    disturbance.
    """
    dice = np.random.default_rng(cases)
    wrong = 0
    for _ in range(200):
        sizes = np.exp(dice.normal(0, 0.5, cases))
        sides: list[list[list[FloatArray]]] = [[[] for _ in range(cases)] for _ in "ab"]
        for side in sides:
            for _ in range(3):
                shared = dice.normal(0, run)
                for case, size in enumerate(sizes):
                    side[case].append(shared + processes(dice, 3, 0.005 * size, run * size))
        p = [trial.p() for trial in side_shifts(sides[0], sides[1])]
        wrong += any(one <= level for one, level in zip(p, holm_levels(p), strict=True))
    assert wrong / 200 <= decide.PROMISED + 3 * math.sqrt(
        decide.PROMISED * (1 - decide.PROMISED) / 200
    )


@pytest.mark.parametrize(
    ("cases", "common"), [(1, 0.0), (5, 0.02), (20, 0.0), (20, 0.02), (30, 0.005)]
)
@pytest.mark.parametrize("pairs", [3, 5])
def test_pairs_of_processes_give_no_more_false_verdicts_than_promised(
    pairs: int, cases: int, common: float
) -> None:
    """Both processes of a pair share one disturbance, and all cases of a process share another."""
    dice = np.random.default_rng([pairs, cases, round(1e3 * common)])
    wrong = 0
    for _ in range(400):
        size = 0.005 * np.exp(dice.normal(0, 0.5, cases))
        weather = dice.normal(0, 0.2, (pairs, 1))
        base, new = (
            weather
            + dice.normal(0, common, (pairs, 1))
            + size * dice.standard_normal((pairs, cases))
            for _ in "ab"
        )
        p = [trial.p() for trial in paired_shifts(list((new - base).T))]
        wrong += any(one <= level for one, level in zip(p, holm_levels(p), strict=True))
    assert wrong / 400 <= decide.PROMISED + 3 * math.sqrt(
        decide.PROMISED * (1 - decide.PROMISED) / 400
    )


def test_one_very_noisy_case_does_not_hide_shifts_of_the_others() -> None:
    dice = np.random.default_rng(8)
    quiet = [dice.normal(0, 0.01, 3) for _ in range(5)]
    alone, beside = paired_shifts(quiet), paired_shifts([*quiet, dice.normal(0, 1.0, 3)])
    for one, other in zip(alone, beside, strict=False):
        assert other.smallest_detectable(ALPHA) < 2 * one.smallest_detectable(ALPHA)


@pytest.mark.needs("scipy")
def test_pairs_of_one_case_give_students_paired_test() -> None:
    from scipy import stats

    dice = np.random.default_rng(5)
    base, new = dice.normal(0, 0.1, 6), dice.normal(0.05, 0.1, 6)
    (found,) = paired_shifts([new - base])
    assert found.p() == pytest.approx(float(stats.ttest_rel(new, base).pvalue))
    assert paired_shifts([]) == []


@pytest.mark.parametrize("runs", [1, 3])
def test_the_stated_smallest_shift_is_detected_as_often_as_promised(runs: int) -> None:
    dice = np.random.default_rng(runs)
    cases, called = 5, []
    for _ in range(TRIALS // 4):
        sides = [
            [[processes(dice, 3, 0.01, 0.01) for _ in range(runs)] for _ in range(cases)]
            for _ in "ab"
        ]
        for trial in side_shifts(sides[0], sides[1]):
            smallest = trial.smallest_detectable(ALPHA / cases)
            slower = Shifts(
                tuple(Shift(s.centre + smallest, s.error, s.df) for s in trial.estimates)
            )
            called.append(slower.p() <= ALPHA / cases)
    assert np.mean(called) >= 0.9


def test_holm_raises_the_level_after_each_rejection() -> None:
    p = [0.04, 0.001, 0.02, 0.5]
    levels = holm_levels(p, 0.05)
    assert levels == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert [a <= b for a, b in zip(p, levels, strict=True)] == [False, True, False, False]
    assert [a <= b for a, b in zip([0.01, 0.04], holm_levels([0.01, 0.04], 0.05), strict=True)] == [
        True,
        True,
    ]
    assert holm_levels([]) == []


def test_the_interval_excludes_a_ratio_of_one_exactly_if_the_test_rejects() -> None:
    for centre in np.linspace(-0.1, 0.1, 41):
        shift = Shift(float(centre), 0.02, 7.0)
        low, high = Shifts((shift,)).interval(ALPHA)
        assert (not low <= 0 <= high) == (shift.p() <= ALPHA)


def test_a_case_tested_in_two_ways_is_different_only_if_both_agree() -> None:
    clear, unclear = Shift(0.7, 0.01, math.inf), Shift(0.7, 0.5, math.inf)
    assert Shifts((clear,)).p() < 1e-6
    assert Shifts((clear, unclear)).p() == Shifts((unclear,)).p() > ALPHA
    assert Shifts((clear, unclear)).interval(ALPHA)[0] < 0
    assert Shifts((clear, unclear)).smallest_detectable(ALPHA) > 0.7
    assert Shifts((clear, clear)).p() == Shifts((clear,)).p()


def test_equal_processes_get_a_small_positive_error_instead_of_zero() -> None:
    still = [np.zeros(3)]
    (trial,) = side_shifts([still], [still], floor=0.0)
    assert trial.p() == 1.0
    runs = [np.zeros(3), np.zeros(3)]
    assert all(
        math.isfinite(s.error) and s.error > 0
        for t in side_shifts([runs] * 30, [runs] * 30)
        for s in t.estimates
    )
