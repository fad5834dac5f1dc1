"""Student's t, the normal distribution, and the search for a root or a minimum. SciPy has them too,
in 35 MB.

Arguments and results have no unit, unless noted. The tests compare each function with SciPy's over
wide ranges. DLMF is the NIST Handbook of Mathematical Functions, https://dlmf.nist.gov; each number
is that of a formula there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_NORMAL = NormalDist()
_EPSILON = float(np.finfo(np.float64).eps)
_TINY = 1e-300
"""Stands for zero in a continued fraction, where a division by zero would follow."""
_MOST_PARTS = 10_000
"""So many parts of a continued fraction are tried. 56 were enough for degrees of freedom from 0.1
to 1e9.
"""
_NEARLY_NORMAL = 1e4
"""From so many degrees of freedom on, the fraction of the tail loses digits; Hill's method does
not.
"""
_MOST_STEPS = 200
"""Of a search. Newton's method took up to 37 steps, and Brent's up to 31 for the functions in the
tests.

Rounding can keep Newton's steps just above the size at which they end, here in 4 % of the
quantiles. All 200 are taken then, and the result is as exact.
"""
_LARGEST_LOG = 700.0
"""exp of more than 709 is not finite."""
_FROM_SERIES = -35.0
"""ln of the normal probability comes from a series below this value. The series is wrong by 3e-13
of the probability here. ``math.erfc`` loses its digits below -37.
"""


# Student's t and the normal distribution


def student_t_tail(t: float, degrees: float) -> float:
    """The probability that Student's t is above ``t``; the normal distribution's if ``degrees`` are
    infinite.

    Relative error below 1e-12 for ``degrees`` from 0.1 to 1e9, in the upper tail too. The
    probability is half of the regularised incomplete beta function I_x(a, b), DLMF 8.17, with a =
    degrees / 2, b = 1 / 2 and x = degrees / (degrees + t²). The functions below use these names.
    """
    if math.isinf(degrees):
        return 0.5 * math.erfc(t / math.sqrt(2))
    if t < 0:  # the distribution is symmetric
        return 1 - student_t_tail(-t, degrees)
    # Where the continued fraction of the tail converges well; elsewhere that of the centre does.
    if _is_in_tail(t, degrees):
        return math.exp(_log_tail(t, degrees))
    return 0.5 - _centre(t, degrees)


@functools.lru_cache(maxsize=4096)
def student_t_quantile(probability: float, degrees: float) -> float:
    """The value below which Student's t lies with this probability; the normal one's if ``degrees``
    are infinite.

    ``student_t_quantile(0.975, 10)``: 2.228. Relative error below 1e-12 for ``degrees`` from 0.5 to
    1e9. Results are kept: the same few degrees of freedom are asked for again and again, by each
    case of a run.
    """
    if math.isnan(probability) or math.isnan(degrees) or not 0 <= probability <= 1:
        return math.nan
    if probability in (0, 1):
        return math.inf if probability else -math.inf
    if math.isinf(degrees):
        return _NORMAL.inv_cdf(probability)
    # The arguments: the probability above the quantile, and that between zero and it.
    if probability < 0.5:
        return -_upper_quantile(probability, 0.5 - probability, degrees)
    return _upper_quantile(1 - probability, probability - 0.5, degrees)


def log_normal_cdf(x: _Floats) -> _Floats:
    """ln of the probability that a standard normal value is below ``x``, for an array. Relative
    error below 1e-12.

    From the complementary error function; below -35, where it loses digits, from the asymptotic
    series of DLMF 7.12.1.
    """
    x = np.asarray(x, dtype=np.float64)
    # NumPy has no erfc, so that of the standard library is called for each value.
    # ``erfc(|x| / √2) / 2`` is the probability of the tail beyond |x|.
    arguments = (np.abs(x) / math.sqrt(2)).ravel().tolist()
    both_tails = np.fromiter(map(math.erfc, arguments), np.float64, x.size)
    tail = 0.5 * both_tails.reshape(x.shape)
    with np.errstate(divide="ignore"):  # ln of zero, in the part that the series replaces
        log_tail = np.log(tail)
    # Above zero, the probability is 1 less the tail; below, the tail itself.
    log_cdf = np.where(x > 0, np.log1p(-tail), log_tail)

    # The tail is exp(-x²/2) / (-x √(2π)), times the series 1 - 1/x² + 3/x⁴ - 15/x⁶ + 105/x⁸.
    is_far = x < _FROM_SERIES
    far = x[is_far]
    square = far * far
    series = 1 - (1 - (3 - (15 - 105 / square) / square) / square) / square
    log_width = np.log(-far * math.sqrt(2 * math.pi))
    log_cdf[is_far] = np.log(series) - square / 2 - log_width
    return log_cdf


def _is_in_tail(t: float, degrees: float) -> bool:
    """Whether the continued fraction of the tail converges well at t; else that of the centre does.

    DLMF 8.17.22 says where: x < (a + 1) / (a + b + 2). This is the same condition, solved for t².
    """
    return t * t * (degrees / 2 + 1) > 1.5 * degrees


def _log_tail(t: float, degrees: float) -> float:
    """ln of the probability that Student's t is above ``t``: ln(I_x(a, 1/2) / 2), with x and a as
    in ``student_t_tail``. The logarithm, because a far tail itself would be rounded to zero.
    """
    if not _is_in_tail(t, degrees):
        return math.log(0.5 - _centre(t, degrees))
    # From 10,000 degrees on the fraction loses digits; Hill's normal value does not.
    if degrees >= _NEARLY_NORMAL:
        return float(log_normal_cdf(np.array(-_normal_value(t, degrees))))
    # I_x(a, 1/2) = x^a y^(1/2) / (a B(a, 1/2)) times the continued fraction, with y = 1 - x. 1 /
    # B(a, 1/2) is ``_gamma_ratio(a)`` / √π.
    a = degrees / 2
    log_x, log_y = _log_parts(t, degrees)
    factor = _gamma_ratio(a) / (math.sqrt(math.pi) * a)
    log_front = a * log_x + log_y / 2 + math.log(factor)
    fraction = _beta_fraction(a, 0.5, math.exp(log_x))
    return log_front + math.log(fraction) - math.log(2)


def _normal_value(t: float, degrees: float) -> float:
    """The value that a normal distribution exceeds as often as Student's t exceeds ``t``, for many
    degrees of freedom.

    G. W. Hill, Algorithm 395: Student's t-distribution, Communications of the ACM 13 (1970) 617.
    The names and the numbers are those of that paper.
    """
    a = degrees - 0.5
    b = 48 * a * a
    y = a * math.log1p(t * t / degrees)
    correction = (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)
    return ((correction + y + 3) / b + 1) * math.sqrt(y)


def _centre(t: float, degrees: float) -> float:
    """The probability that Student's t is between 0 and ``t``, for a ``t`` near the centre of the
    distribution: I_y(1/2, a) / 2 with y = 1 - x, and x and a as in ``student_t_tail``.
    """
    # As in ``_log_tail``, with x and y, and a and 1/2, exchanged.
    a = degrees / 2
    log_x, log_y = _log_parts(t, degrees)
    if t == 0:
        return 0.0
    powers = math.exp(a * log_x + log_y / 2)
    front = powers * _gamma_ratio(a) / (math.sqrt(math.pi) * 0.5)
    return front * _beta_fraction(0.5, a, math.exp(log_y)) / 2


def _log_parts(t: float, degrees: float) -> tuple[float, float]:
    """ln of x = degrees / (degrees + t²) and of y = 1 - x.

    Subtracting from 1 would lose the digits of a small y, or x, so each comes from the ratio of t²
    and degrees.
    """
    ratio = t / math.sqrt(degrees)
    if ratio == 0:
        return 0.0, -math.inf
    # With r for the ratio, x = 1 / (1 + r²) and y = r² x. For a large r, the same with 1 / r, whose
    # square cannot become too large for a float.
    if ratio < 1:
        log_x = -math.log1p(ratio * ratio)
        return log_x, 2 * math.log(ratio) + log_x
    log_y = -math.log1p(1 / ratio / ratio)
    return log_y - 2 * math.log(ratio), log_y


_GAMMA_RATIO = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)
"""The factors of 1, 1/a, 1/a² and so on in the series of Gamma(a + 1/2) / Gamma(a) / √a, DLMF
5.11.13.
"""


def _gamma_ratio(a: float) -> float:
    """Gamma(a + 1/2) / Gamma(a), a factor in the probability and in the density. From a = 100 on by
    the series, whose first left-out term is 1e-17 there.

    Gamma itself is too large for a float from 172 on.
    """
    if a < 100:
        return math.gamma(a + 0.5) / math.gamma(a)
    # ``_GAMMA_RATIO``: the coefficients of the series in 1 / a.
    return math.sqrt(a) * sum(factor / a**k for k, factor in enumerate(_GAMMA_RATIO))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, DLMF 8.17.22, by the modified method
    of Lentz.

    The method evaluates the fraction from its front: each part multiplies the value by ``c * d``,
    until that is 1 within rounding. Raises ``ArithmeticError`` where it does not converge; of NaN
    the result is NaN.
    """
    # ``c`` is the ratio of two successive numerators of the fraction, and ``d`` that of two
    # denominators, inverted. Each turn adds an even and an odd part.
    c = 1.0
    # ``_not_zero``: a tiny number in place of zero, as Lentz' method prescribes.
    d = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    # ``even``, ``odd``: the coefficients of the fraction, by DLMF 8.17.23.
    for m in range(1, _MOST_PARTS):
        k = a + 2 * m
        even = m * (b - m) * x / ((k - 1) * k)
        d = 1 / _not_zero(1 + even * d)
        c = _not_zero(1 + even / c)
        fraction *= c * d
        odd = -(a + m) * (a + b + m) * x / (k * (k + 1))
        d = 1 / _not_zero(1 + odd * d)
        c = _not_zero(1 + odd / c)
        change = c * d
        fraction *= change
        if abs(change - 1) < _EPSILON:
            return fraction
    if math.isnan(fraction):
        return fraction
    raise ArithmeticError("no convergence", a, b, x)


def _not_zero(value: float) -> float:
    return value or _TINY


def _log_density(t: float, degrees: float) -> float:
    """ln of the density of Student's t at ``t``: Newton's method needs the slope of the
    probability.
    """
    # The density is x^(a + 1/2) times the density at zero.
    a = degrees / 2
    log_x, _ = _log_parts(t, degrees)
    at_zero = _gamma_ratio(a) / math.sqrt(math.pi * degrees)
    return (a + 0.5) * log_x + math.log(at_zero)


def _upper_quantile(tail: float, centre: float, degrees: float) -> float:
    """The t above zero with the probability ``tail`` above it, and ``centre`` between 0 and it.

    Both are given, since each loses digits if it is made from the other. Newton's method finds
    ln(t) from ln(tail), from the normal distribution's value on. That function is concave, so that
    all steps but the first come from the same side, and none goes too far.
    """
    if centre == 0:
        return 0.0
    if tail > 0.25:  # near the centre, where ``centre`` has more digits than ``tail``
        return _central_quantile(centre, degrees)
    wanted = math.log(tail)
    log_t = math.log(-_NORMAL.inv_cdf(tail))
    for _ in range(_MOST_STEPS):
        t = math.exp(log_t)
        log_tail = _log_tail(t, degrees)
        # Of ln(tail) by ln(t), without its sign: t times the density, by the tail.
        log_slope = log_t + _log_density(t, degrees) - log_tail
        slope = math.exp(log_slope)
        step = (log_tail - wanted) / slope
        log_t += step
        # exp of more than 709 is not finite.
        if log_t > _LARGEST_LOG:
            return math.inf
        # Within rounding; in a few searches steps stay just above that, so their number is bounded.
        if abs(step) < 4 * _EPSILON:
            break
    return math.exp(log_t)


def _central_quantile(centre: float, degrees: float) -> float:
    """The t with the probability ``centre`` between 0 and it, by Newton's method.

    The probability is a concave function of t, so all steps come from below, and none goes too far.
    """
    t = centre / math.exp(_log_density(0.0, degrees))  # Newton's first step, from zero
    for _ in range(_MOST_STEPS):
        if _is_in_tail(t, degrees):
            below_t = 0.5 - math.exp(_log_tail(t, degrees))
        else:
            below_t = _centre(t, degrees)
        # Newton's step: what is missing of the probability, over the density.
        density = math.exp(_log_density(t, degrees))
        step = (centre - below_t) / density
        t += step
        if abs(step) < 4 * _EPSILON * t:
            break
    return t


# The derivatives of ln Gamma

_SHIFTED_TO = 12.0
"""The asymptotic series hold to 1e-16 from here on. A smaller x is raised in steps of 1: DLMF
5.5.2, 5.15.5 say what each step changes.
"""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""The Bernoulli numbers B2, B4 and so on."""


def digamma(x: float) -> float:
    """The derivative of ln Gamma at ``x`` > 0. Absolute error below 1e-14 times the larger of 1 and
    the value.

    The series is DLMF 5.11.2.
    """
    shifted = 0.0  # the sum of what the steps up change
    # The series holds from 12 on; a smaller x is raised, which changes the value by 1 / x each.
    while x < _SHIFTED_TO:
        shifted -= 1 / x
        x += 1
    # ``B_2k / (2k x^2k)``, summed over k.
    square = 1 / x / x
    series = sum(bernoulli / (2 * k) * square**k for k, bernoulli in enumerate(_BERNOULLI, 1))
    return shifted + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """The second derivative of ln Gamma at ``x`` > 0. Relative error below 1e-14. The series is
    DLMF 5.15.8.
    """
    shifted = 0.0  # the sum of what the steps up change
    # The series holds from 12 on; a smaller x is raised, which changes the value by 1 / x² each.
    while x < _SHIFTED_TO:
        shifted += 1 / (x * x)
        x += 1
    # ``B_2k / x^2k``, summed over k; all is over x once more.
    square = 1 / x / x
    series = sum(bernoulli * square**k for k, bernoulli in enumerate(_BERNOULLI, 1))
    return shifted + (1 + 0.5 / x + series) / x


# Searches


@dataclass
class _Point:
    """An argument of a function, and its value there."""

    at: float
    value: float


def find_root(
    function: Callable[[float], float], low: float, high: float, tolerance: float
) -> float:
    """A root between ``low`` and ``high``, where the values have different signs, else
    ``ValueError``.

    ``tolerance``: how far the root may be away, in the unit of the argument. R. P. Brent,
    Algorithms for Minimization Without Derivatives (1973), chapter 4. Each step is equal, to the
    last digit, to that of SciPy's ``brentq``, with which earlier releases formed their figures.
    """
    # ``now``: the best point so far. ``before``: the one before it. ``other``: a point on the other
    # side of the root.
    before, now = _Point(low, function(low)), _Point(high, function(high))
    if before.value == 0:
        return before.at
    if before.value * now.value > 0:
        raise ValueError("the function has the same sign at both ends")
    other = before
    # ``step``: the last step; ``last_step``: the one before it.
    last_step = step = high - low
    # In tests 31 steps were the most; 200 end the search in any case.
    for _ in range(_MOST_STEPS):
        if now.value * other.value > 0:  # both on one side: the root is between now and before
            other = before
            last_step = step = now.at - before.at
        if abs(other.value) < abs(now.value):  # the better of the two becomes ``now``
            before, now, other = now, other, now
        # Below this step, rounding and ``tolerance`` leave nothing to gain.
        least_step = (tolerance + 4 * _EPSILON * abs(now.at)) / 2
        half_way = (other.at - now.at) / 2
        if now.value == 0 or abs(half_way) < least_step:
            break
        # A step by interpolation where that may help, else half the way to the other end.
        # ``_narrows``: the step before was not too short, and the last one made the value less.
        may_interpolate = _narrows(before, now, last_step, least_step)
        proposed = _interpolated(before, now, other) if may_interpolate else half_way
        limit = min(abs(last_step), 3 * abs(half_way) - least_step)
        # Taken only if it is shorter than half of the step before the last, and stays inside of
        # three quarters of the way to the other end.
        if 2 * abs(proposed) < limit:
            last_step, step = step, proposed
        else:
            # The proposed step is longer than half of the step before the last, or leads too near
            # to the other end.
            last_step = step = half_way
        # At least the shortest step, towards the other end.
        before = now
        shortest = math.copysign(least_step, half_way)
        at = now.at + (step if abs(step) > least_step else shortest)
        now = _Point(at, function(at))
    return now.at


def _narrows(before: _Point, now: _Point, last_step: float, least_step: float) -> bool:
    """Whether an interpolation may help: the step before was not too short, and the last one made
    the value less.
    """
    return abs(last_step) > least_step and abs(now.value) < abs(before.value)


def _interpolated(before: _Point, now: _Point, other: _Point) -> float:
    """The step to the root of a line through two points, or of the inverse quadratic function
    through three.
    """
    # Only two different points are known: the line through them.
    if before.at == other.at:
        return -now.value * (now.at - before.at) / (now.value - before.value)
    # The inverse quadratic function through the three points, at value zero.
    slope = (before.value - now.value) / (before.at - now.at)
    slope_of_other = (other.value - now.value) / (other.at - now.at)
    above = other.value * slope_of_other - before.value * slope
    return -now.value * above / (slope_of_other * slope * (other.value - before.value))


def find_minimum(
    function: Callable[[_Floats], float],
    start: _Floats | Sequence[float],
    tolerance: float,
    most_steps: int,
) -> _Floats:
    """Where a function of a few parameters is least, near ``start``, by the simplex method.

    A simplex has one corner more than there are parameters. Each step moves the corner with the
    largest value, or shrinks the simplex. The search ends when all corners, and the values there,
    agree within ``tolerance``, or after ``most_steps``. J. A. Nelder and R. Mead, A simplex method
    for function minimization, Computer J. 7 (1965) 308.
    """
    corners = _first_simplex(np.asarray(start, dtype=np.float64))
    values = np.array([function(corner) for corner in corners])
    for _ in range(most_steps):
        order = np.argsort(values, kind="stable")  # the best corner first
        corners, values = corners[order], values[order]
        # ``size``: how far the corners lie from the best one; ``rise``: how much larger their
        # values are.
        size = np.max(np.abs(corners[1:] - corners[0]))
        rise = np.max(np.abs(values[1:] - values[0]))
        if size <= tolerance and rise <= tolerance:
            break
        better = _better_corner(function, corners, values)
        if better is None:  # half the size, towards the best corner
            corners[1:] = corners[0] + 0.5 * (corners[1:] - corners[0])
            values[1:] = [function(corner) for corner in corners[1:]]
        else:
            # In place of the worst corner, which is the last.
            corners[-1], values[-1] = better
    best: _Floats = corners[np.argmin(values)]
    return best


def _first_simplex(start: _Floats) -> _Floats:
    """The corners with which ``find_minimum`` begins: the start, and for each parameter a corner
    where it is 1.05 times as large, or 0.00025 if it is zero.

    SciPy has the same simplex, so the search finds the minimum that earlier releases found by
    SciPy.
    """
    corners = np.tile(start, (start.size + 1, 1))
    for i, parameter in enumerate(start):
        corners[i + 1, i] = 1.05 * parameter if parameter else 0.00025
    return corners


def _better_corner(
    function: Callable[[_Floats], float], corners: _Floats, values: _Floats
) -> tuple[_Floats, float] | None:
    """A corner in place of the last one, which is the worst, and its value; None if none is better.

    The tries lie on the line from the worst corner through the middle of the others, in units of
    their distance:

    - Reflected, 1 behind the middle: taken if it is better than the second worst corner.
    - Expanded, 2 behind the middle: tried if the reflected one is the best of all, and taken if it
      is better than that.
    - Contracted outside, 1/2 behind the middle: tried if the reflected one is better than the worst
      corner alone, and taken if it is as good as that.
    - Contracted inside, 1/2 before the middle: tried if the reflected one is the worst of all, and
      taken if it is better than the worst corner.
    """
    # ``corners``: rows, the best first. ``away``: from the worst corner to the middle of the
    # others.
    middle = corners[:-1].mean(axis=0)
    away = middle - corners[-1]
    best, second_worst, worst = values[0], values[-2], values[-1]
    reflected = middle + away
    value = function(reflected)
    if value < best:
        expanded = middle + 2 * away
        expanded_value = function(expanded)
        return (expanded, expanded_value) if expanded_value < value else (reflected, value)
    if value < second_worst:
        return reflected, value
    if value < worst:
        outside = middle + 0.5 * away
        outside_value = function(outside)
        return (outside, outside_value) if outside_value <= value else None
    inside = middle + -0.5 * away
    inside_value = function(inside)
    return (inside, inside_value) if inside_value < worst else None
