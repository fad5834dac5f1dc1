"""The functions that stand for SciPy's agree with them over wide ranges. SciPy is needed here
alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from overhead.numerics import (
    digamma,
    find_minimum,
    find_root,
    log_normal_cdf,
    student_t_quantile,
    student_t_tail,
    trigamma,
)

DEGREES = (
    0.5,
    0.7,
    1.5,
    2,
    2.7,
    3,
    4,
    5,
    8,
    10,
    29.3,
    60,
    199,
    200,
    201,
    999.5,
    9_999,
    10_000,
    1e5,
    1e6,
    1e9,
)
CLOSE = 1e-12


@pytest.mark.needs("scipy")
@pytest.mark.parametrize("degrees", DEGREES)
def test_the_tail_of_students_t_is_that_of_scipy(degrees: float) -> None:
    from scipy.special import stdtr

    for t in [0.0, *np.geomspace(1e-9, 37, 200), *-np.geomspace(1e-6, 37, 50)]:
        assert student_t_tail(float(t), degrees) == pytest.approx(
            stdtr(degrees, -t), rel=CLOSE, abs=1e-300
        ), t


@pytest.mark.needs("scipy")
@pytest.mark.parametrize("degrees", [1, *DEGREES])
def test_the_quantile_of_students_t_is_that_of_scipy(degrees: float) -> None:
    from scipy.special import stdtrit

    near_one = 1 - np.geomspace(1e-15, 0.5, 100)
    for share in [*np.geomspace(1e-30, 0.5, 100), *near_one, 0.25, 0.75, 0.7499999, 0.975, 0.995]:
        found = student_t_quantile(float(share), degrees)
        assert found == pytest.approx(stdtrit(degrees, share), rel=CLOSE, abs=1e-15), share


@pytest.mark.parametrize("share", [1e-300, 1e-12, 0.01, 0.3, 0.4999, 0.6, 0.95, 0.9999])
@pytest.mark.parametrize("degrees", [1, 2])
def test_quantiles_with_a_formula_are_those_of_the_formula(share: float, degrees: int) -> None:
    """With one degree of freedom it is Cauchy's distribution; with two the quantile is
    algebraic.
    """
    odds = share * (1 - share)
    expected = (
        -1 / math.tan(math.pi * share) if degrees == 1 else (2 * share - 1) / math.sqrt(2 * odds)
    )
    assert student_t_quantile(share, degrees) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("degrees", [*DEGREES, math.inf])
@pytest.mark.parametrize("share", [1e-200, 1e-20, 1e-6, 0.02, 0.2499, 0.2501, 0.49])
def test_the_tail_at_a_quantile_is_the_share(share: float, degrees: float) -> None:
    assert student_t_tail(-student_t_quantile(share, degrees), degrees) == pytest.approx(
        share, rel=1e-10
    )


@pytest.mark.needs("scipy")
def test_with_infinite_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    from scipy.special import ndtr, ndtri

    # Beyond 37 standard deviations the share is near the smallest number of a float.
    for x in np.linspace(-37, 37, 200):
        assert student_t_tail(float(x), math.inf) == pytest.approx(ndtr(-x), rel=CLOSE)
    for share in [*np.geomspace(1e-300, 0.5, 100), *(1 - np.geomspace(1e-15, 0.5, 50))]:
        assert student_t_quantile(float(share), math.inf) == pytest.approx(
            ndtri(share), rel=CLOSE, abs=1e-15
        )


def test_impossible_probabilities_have_no_quantile_and_certain_ones_an_infinite_one() -> None:
    assert student_t_quantile(0, 5) == -math.inf
    assert student_t_quantile(1, 5) == math.inf
    assert student_t_quantile(0.5, 5) == 0
    for share in (-0.1, 1.1, math.nan):
        assert math.isnan(student_t_quantile(share, 5))
    assert math.isnan(student_t_quantile(0.9, math.nan))


@pytest.mark.needs("scipy")
def test_the_logarithm_of_the_normal_distribution_is_that_of_scipy() -> None:
    from scipy.special import log_ndtr

    x = np.concatenate([np.linspace(-60, 37, 5_000), -np.geomspace(1e-9, 1e6, 298)])
    assert log_normal_cdf(x) == pytest.approx(log_ndtr(x), rel=CLOSE, abs=1e-300)
    assert log_normal_cdf(x.reshape(2, -1)).shape == (2, x.size // 2)


@pytest.mark.needs("scipy")
def test_the_derivatives_of_the_gamma_function_are_those_of_scipy() -> None:
    from scipy.special import digamma as digamma_of_scipy, polygamma

    for x in [*np.geomspace(1e-6, 1e22, 500), 0.5, 1.0, 11.999, 12.0]:
        assert digamma(float(x)) == pytest.approx(digamma_of_scipy(x), rel=1e-14, abs=1e-14), x
        assert trigamma(float(x)) == pytest.approx(polygamma(1, x), rel=1e-14), x


@pytest.mark.needs("scipy")
@pytest.mark.parametrize(
    ("function", "low", "high", "tolerance"),
    [
        (lambda x: math.cos(x) - x, 0.0, 1.0, 1e-12),
        (lambda x: x**3 - 2, -5.0, 5e3, 1e-9),
        (lambda x: x**3 - 2, 0.0, 5e3, 10.0),
        (lambda x: math.floor(x) - 7.5, 0.0, 1e6, 10.0),
        (lambda x: math.exp(-x) - 1e-3, -50.0, 50.0, 1e-12),
        (lambda x: x - 3, 3.0, 9.0, 1e-9),
    ],
)
def test_a_root_is_that_of_scipy(
    function: Callable[[float], float], low: float, high: float, tolerance: float
) -> None:
    from scipy.optimize import brentq

    assert find_root(function, low, high, tolerance) == brentq(function, low, high, xtol=tolerance)


def test_ends_with_the_same_sign_have_no_root() -> None:
    with pytest.raises(ValueError):
        find_root(lambda x: x * x + 1, -1, 1, 1e-9)


@pytest.mark.needs("scipy")
@pytest.mark.parametrize("start", [[0.0, 5.0, 1.0], [-1.0, 2.0, 0.0], [3.0, 3.0, 3.0]])
def test_a_minimum_is_that_of_scipy(start: list[float]) -> None:
    from scipy.optimize import minimize

    def valley(at: np.ndarray) -> float:
        """A curved valley with the minimum at (1, 1, 3)."""
        return float((1 - at[0]) ** 2 + 100 * (at[1] - at[0] ** 2) ** 2 + (at[2] - 3) ** 2)

    options = {"maxiter": 1500, "xatol": 1e-6, "fatol": 1e-6}
    expected = minimize(valley, start, method="Nelder-Mead", options=options).x
    found = find_minimum(valley, start, tolerance=1e-6, most_steps=1500)
    assert found == pytest.approx(expected, abs=1e-6)
    assert found == pytest.approx([1, 1, 3], abs=1e-5)


def test_a_search_for_a_minimum_ends_after_the_most_steps() -> None:
    assert find_minimum(lambda at: -float(at[0]), [1.0], tolerance=1e-9, most_steps=3)[0] < 20
