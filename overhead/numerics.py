"""Student's t, the normal distribution, and searches for a root or a minimum, without SciPy, whose wheel has 35 MB.

Arguments and results have no unit, unless noted. The tests compare all with SciPy, over wide ranges.
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
_LEAST_PART = 1e-300
"""Stands for zero in a continued fraction, where a division by zero would follow."""
_MOST_PARTS = 10_000
"""The continued fractions end far earlier."""
_NEARLY_NORMAL = 1e4
"""From so many degrees of freedom on, the fraction of the tail loses digits; Hill's method does not."""
_MOST_STEPS = 200
"""Newton's method takes at most about 50 steps, and Brent's 60."""
_LARGEST_LOG = 700.0
"""exp of more than this is not finite."""


# Student's t and the normal distribution


def student_t_tail(t: float, degrees: float) -> float:
    """The probability that Student's t is above ``t``; the normal distribution's if ``degrees`` are infinite.

    Relative error below 1e-12 for ``degrees`` from 0.1 to 1e9, in the upper tail too. It is half of the regularised
    incomplete beta function I_x(degrees / 2, 1 / 2) with x = degrees / (degrees + t²): NIST Handbook of Mathematical
    Functions (DLMF), 8.17.
    """
    if math.isinf(degrees):
        return 0.5 * math.erfc(t / math.sqrt(2))
    if t < 0:
        return 1 - student_t_tail(-t, degrees)
    return math.exp(_log_tail(t, degrees)) if _is_in_tail(t, degrees) else 0.5 - _centre(t, degrees)


@functools.lru_cache(maxsize=4096)
def student_t_quantile(probability: float, degrees: float) -> float:
    """The value below which Student's t lies with this probability; the normal one's if ``degrees`` are infinite.

    Relative error below 1e-12 for ``degrees`` from 0.5 to 1e9. Newton's method, for the logarithm of t and of the
    tail: that function is concave, so each step after the first one comes from the same side.
    """
    if math.isnan(probability) or math.isnan(degrees) or not 0 <= probability <= 1:
        return math.nan
    if probability in (0, 1):
        return math.inf if probability else -math.inf
    if math.isinf(degrees):
        return _NORMAL.inv_cdf(probability)
    if probability < 0.5:
        return -_upper_quantile(probability, 0.5 - probability, degrees)
    return _upper_quantile(1 - probability, probability - 0.5, degrees)


def log_normal_cdf(x: _Floats) -> _Floats:
    """ln of the probability that a standard normal value is below ``x``, for an array. Relative error below 1e-12.

    From the complementary error function; below -35, where it loses digits, from the asymptotic series of DLMF 7.12.1.
    """
    x = np.asarray(x, dtype=np.float64)
    tails = np.fromiter(map(math.erfc, (np.abs(x) / math.sqrt(2)).ravel().tolist()), np.float64, x.size)
    tail = 0.5 * tails.reshape(x.shape)
    far = x < _FROM_SERIES
    with np.errstate(divide="ignore"):  # of zero, in the part that the series replaces
        found = np.where(x > 0, np.log1p(-tail), np.log(tail))
    at = x[far]
    square = at * at
    series = 1 - (1 - (3 - (15 - 105 / square) / square) / square) / square
    found[far] = np.log(series) - square / 2 - np.log(-at * math.sqrt(2 * math.pi))
    return found


_FROM_SERIES = -35.0


def _is_in_tail(t: float, degrees: float) -> bool:
    """Whether the continued fraction of the tail converges well at t, else that of the centre: DLMF 8.17.22."""
    return t * t * (degrees / 2 + 1) > 1.5 * degrees


def _log_tail(t: float, degrees: float) -> float:
    """ln of the probability of more than ``t``, in the tail: ln(I_x(a, 1/2) / 2) with a = degrees / 2."""
    if not _is_in_tail(t, degrees):
        return math.log(0.5 - _centre(t, degrees))
    if degrees >= _NEARLY_NORMAL:
        return float(log_normal_cdf(np.array(-_normal_value(t, degrees))))
    a = degrees / 2
    log_x, log_y = _log_parts(t, degrees)
    front = a * log_x + log_y / 2 + math.log(_gamma_ratio(a) / (math.sqrt(math.pi) * a))
    return front + math.log(_beta_fraction(a, 0.5, math.exp(log_x))) - math.log(2)


def _normal_value(t: float, degrees: float) -> float:
    """The value that a normal distribution exceeds as often as Student's t exceeds ``t``, for many degrees of freedom.

    G. W. Hill, Algorithm 395: Student's t-distribution, Communications of the ACM 13 (1970) 617.
    """
    a = degrees - 0.5
    b = 48 * a * a
    y = a * math.log1p(t * t / degrees)
    correction = (((-0.4 * y - 3.3) * y - 24) * y - 85.5) / (0.8 * y * y + 100 + b)
    return ((correction + y + 3) / b + 1) * math.sqrt(y)


def _centre(t: float, degrees: float) -> float:
    """The probability of a value between 0 and ``t``, near the centre: I_y(1/2, a) / 2 with y = 1 - x."""
    a = degrees / 2
    log_x, log_y = _log_parts(t, degrees)
    if t == 0:
        return 0.0
    front = math.exp(a * log_x + log_y / 2) * _gamma_ratio(a) / (math.sqrt(math.pi) * 0.5)
    return front * _beta_fraction(0.5, a, math.exp(log_y)) / 2


def _log_parts(t: float, degrees: float) -> tuple[float, float]:
    """ln of x = degrees / (degrees + t²) and of 1 - x, each without a loss of digits."""
    ratio = t / math.sqrt(degrees)
    if ratio == 0:
        return 0.0, -math.inf
    if ratio < 1:
        log_x = -math.log1p(ratio * ratio)
        return log_x, 2 * math.log(ratio) + log_x
    log_y = -math.log1p(1 / ratio / ratio)
    return log_y - 2 * math.log(ratio), log_y


_GAMMA_RATIO = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)


def _gamma_ratio(a: float) -> float:
    """Gamma(a + 1/2) / Gamma(a). From a = 100 on by the asymptotic series of DLMF 5.11.13."""
    if a < 100:
        return math.gamma(a + 0.5) / math.gamma(a)
    return math.sqrt(a) * sum(factor / a**k for k, factor in enumerate(_GAMMA_RATIO))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, DLMF 8.17.22, by the modified method of Lentz."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or _LEAST_PART)
    found = d
    for m in range(1, _MOST_PARTS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / (1 + even * d or _LEAST_PART)
        c = 1 + even / c or _LEAST_PART
        found *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + odd * d or _LEAST_PART)
        c = 1 + odd / c or _LEAST_PART
        change = c * d
        found *= change
        if abs(change - 1) < _EPSILON:
            break
    return found


def _log_density(t: float, degrees: float) -> float:
    a = degrees / 2
    log_x, _ = _log_parts(t, degrees)
    return (a + 0.5) * log_x + math.log(_gamma_ratio(a) / math.sqrt(math.pi * degrees))


def _upper_quantile(tail: float, centre: float, degrees: float) -> float:
    """The t above zero with the probability ``tail`` above it, and ``centre`` between 0 and it."""
    if centre == 0:
        return 0.0
    if tail > 0.25:
        return _central_quantile(centre, degrees)
    wanted = math.log(tail)
    log_t = math.log(-_NORMAL.inv_cdf(tail))
    for _ in range(_MOST_STEPS):
        t = math.exp(log_t)
        log_tail = _log_tail(t, degrees)
        slope = math.exp(log_t + _log_density(t, degrees) - log_tail)
        step = (log_tail - wanted) / slope
        log_t += step
        if log_t > _LARGEST_LOG:
            return math.inf
        if abs(step) < 4 * _EPSILON:
            break
    return math.exp(log_t)


def _central_quantile(centre: float, degrees: float) -> float:
    """The t with the probability ``centre`` between 0 and it.

    The probability is a concave function of t, so Newton's steps all come from below.
    """
    t = centre / math.exp(_log_density(0.0, degrees))
    for _ in range(_MOST_STEPS):
        found = 0.5 - math.exp(_log_tail(t, degrees)) if _is_in_tail(t, degrees) else _centre(t, degrees)
        step = (centre - found) / math.exp(_log_density(t, degrees))
        t += step
        if abs(step) < 4 * _EPSILON * t:
            break
    return t


# The derivatives of ln Gamma

_SHIFTED_TO = 12.0
"""The asymptotic series hold to 1e-16 from here on; smaller arguments are shifted by the recurrence."""
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def digamma(x: float) -> float:
    """The derivative of ln Gamma at ``x`` > 0. Absolute error below 1e-14 times the larger of 1 and the value.

    DLMF 5.5.2 and 5.11.2.
    """
    shifted = 0.0
    while x < _SHIFTED_TO:
        shifted -= 1 / x
        x += 1
    square = 1 / x / x
    series = sum(number / (2 * k) * square**k for k, number in enumerate(_BERNOULLI, 1))
    return shifted + math.log(x) - 0.5 / x - series


def trigamma(x: float) -> float:
    """The second derivative of ln Gamma at ``x`` > 0. Relative error below 1e-14. DLMF 5.15.5 and 5.15.8."""
    shifted = 0.0
    while x < _SHIFTED_TO:
        shifted += 1 / (x * x)
        x += 1
    square = 1 / x / x
    series = sum(number * square**k for k, number in enumerate(_BERNOULLI, 1))
    return shifted + (1 + 0.5 / x + series) / x


# Searches


@dataclass
class _Point:
    """An argument of a function, and its value there."""

    at: float
    value: float


def find_root(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    """A root between ``low`` and ``high``, where the values have different signs, else ``ValueError``.

    ``tolerance``: how far the root may be away, in the unit of the argument.
    R. P. Brent, Algorithms for Minimization Without Derivatives (1973), chapter 4.
    """
    before, now = _Point(low, function(low)), _Point(high, function(high))
    if before.value == 0:
        return before.at
    if before.value * now.value > 0:
        raise ValueError("the function has the same sign at both ends")
    other, last_step, step = before, high - low, high - low
    for _ in range(_MOST_STEPS):
        if now.value * other.value > 0:
            other, last_step, step = before, now.at - before.at, now.at - before.at
        if abs(other.value) < abs(now.value):
            before, now, other = now, other, now
        least = (tolerance + 4 * _EPSILON * abs(now.at)) / 2
        half = (other.at - now.at) / 2
        if now.value == 0 or abs(half) < least:
            break
        proposed = _interpolated(before, now, other) if _narrows(before, now, last_step, least) else half
        is_good = 2 * abs(proposed) < min(abs(last_step), 3 * abs(half) - least)
        last_step, step = (step, proposed) if is_good else (half, half)
        before = now
        at = now.at + (step if abs(step) > least else math.copysign(least, half))
        now = _Point(at, function(at))
    return now.at


def _narrows(before: _Point, now: _Point, last_step: float, least: float) -> bool:
    """Whether an interpolation may help: the step before the last was not too small, and the value got smaller."""
    return abs(last_step) > least and abs(now.value) < abs(before.value)


def _interpolated(before: _Point, now: _Point, other: _Point) -> float:
    """The step to the root of a line through two points, or of the inverse quadratic function through three."""
    if before.at == other.at:
        return -now.value * (now.at - before.at) / (now.value - before.value)
    slope = (before.value - now.value) / (before.at - now.at)
    slope_of_other = (other.value - now.value) / (other.at - now.at)
    above = other.value * slope_of_other - before.value * slope
    return -now.value * above / (slope_of_other * slope * (other.value - before.value))


def find_minimum(
    function: Callable[[_Floats], float], start: _Floats | Sequence[float], tolerance: float, most_steps: int
) -> _Floats:
    """Where a function of a few parameters is least, near ``start``, by the simplex method.

    It ends when all corners of the simplex, and the values there, agree within ``tolerance``, or after ``most_steps``.
    J. A. Nelder and R. Mead, A simplex method for function minimization, Computer J. 7 (1965) 308. The first simplex
    has 1.05 times each parameter.
    """
    corners = _first_simplex(np.asarray(start, dtype=np.float64))
    values = np.array([function(corner) for corner in corners])
    for _ in range(most_steps):
        order = np.argsort(values, kind="stable")
        corners, values = corners[order], values[order]
        spread = np.max(np.abs(corners[1:] - corners[0]))
        if spread <= tolerance and np.max(np.abs(values[1:] - values[0])) <= tolerance:
            break
        found = _better_corner(function, corners, values)
        if found is not None:
            corners[-1], values[-1] = found
            continue
        corners[1:] = corners[0] + 0.5 * (corners[1:] - corners[0])
        values[1:] = [function(corner) for corner in corners[1:]]
    best: _Floats = corners[np.argmin(values)]
    return best


def _first_simplex(start: _Floats) -> _Floats:
    corners = np.tile(start, (start.size + 1, 1))
    for i, parameter in enumerate(start):
        corners[i + 1, i] = 1.05 * parameter if parameter else 0.00025
    return corners


def _better_corner(
    function: Callable[[_Floats], float], corners: _Floats, values: _Floats
) -> tuple[_Floats, float] | None:
    """A corner in place of the last one, which is the worst: reflected, expanded or contracted.

    None if none of these is better.
    """
    middle = corners[:-1].mean(axis=0)
    away = middle - corners[-1]
    reflected = middle + away
    value = function(reflected)
    if value < values[0]:
        expanded = middle + 2 * away
        further = function(expanded)
        return (expanded, further) if further < value else (reflected, value)
    if value < values[-2]:
        return reflected, value
    is_outside = value < values[-1]
    contracted = middle + (0.5 if is_outside else -0.5) * away
    nearer = function(contracted)
    limit = value if is_outside else values[-1]
    is_better = nearer <= limit if is_outside else nearer < limit
    return (contracted, nearer) if is_better else None
