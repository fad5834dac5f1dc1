"""From one value per process to a figure: value, interval and status."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from overhead.measure.fitting.data import Estimate
from overhead.measure.fitting.line import MAD, Floats

CANARY_FROM_PROCESSES = 5
"""With this many processes the fit removes what follows the canary, and some of the processes may be further ones."""
HUBER_FROM_PROCESSES = 10
"""With this many processes the spread shows which of them are outliers."""
_HUBER_SIGMAS = 1.5
"""A process within this many standard deviations of the fit has full weight."""
_UPPER_QUANTILE = 0.975
"""Upper end of the interval."""
_UPPER_QUANTILE_REPEATED = 0.98
"""The same from ``CANARY_FROM_PROCESSES`` on. A noisy case is tested again after each further process, which lowers the
coverage by 2 to 4 points if the processes differ by twice the target; the wider interval compensates for that."""
_ITERATIONS = 30
"""Of the reweighting in Huber's estimate."""
_NEGLIGIBLE_SHARE = 1e-4
"""A spread of values below this share of their median, or of canaries below this share of the largest, counts as 0."""
_ROUNDING = 1e-9
"""A spread of values below this share of the largest value counts as 0."""


def mean_of_processes(
    values: Sequence[float] | Floats,
    target: float,
    *,
    scale: float | None = None,
    beside: float = 0.0,
    unit: str = "ns",
    paces: Sequence[float] | Floats = (),
) -> Estimate:
    """The mean of one value per process, with its 95 % interval.

    The status is ``ok`` if the half-width is at most ``target * (scale + beside)``, else ``noisy``. ``scale`` is the
    size of the mean if None.

    ``paces``: the canary of each process, ns. From five processes on the figure is the cost at the mean canary: a cost
    that changes linearly with the canary follows the processor's clock and is no uncertainty (analysis of covariance).
    From ten processes on outliers have less weight, so the figure is that of the usual process.
    """
    count = len(values)
    if count == 0:
        return Estimate(status="failed", reason="no process came to this figure", unit=unit)
    if count == 1:
        reason = "one process says nothing of how far another would differ"
        return Estimate(float(values[0]), status="noisy", reason=reason, rule="1 process", processes=1, unit=unit)
    columns, at_canary = [np.ones(count)], ""
    known = count >= CANARY_FROM_PROCESSES and len(paces) == count and all(paces)
    if known and max(paces) - min(paces) > _NEGLIGIBLE_SHARE * max(paces):
        usual = float(np.mean(paces))
        columns.append(np.asarray(paces) / usual - 1)
        at_canary = f" where the canary's loop takes {usual / 1e3:.1f} us"
    mean, half, method = _fit(np.asarray(values, dtype=np.float64), np.column_stack(columns))
    size = (abs(mean) if scale is None else scale) + beside
    share = half / size if size else (0.0 if half == 0 else math.inf)
    rule = f"{count} processes, {method}{at_canary}: half-width {share:.2%}, target {target:.0%}"
    if share <= target:
        return Estimate(mean, mean - half, mean + half, "ok", "", rule, count, unit=unit)
    reason = _too_wide(share, target, count)
    return Estimate(mean, mean - half, mean + half, "noisy", reason, rule, count, unit=unit)


def _too_wide(share: float, target: float, count: int) -> str:
    """The reason of a ``noisy`` figure, with the number of processes that would probably be enough.

    As in pyperf, the half-width shrinks with the square root of that number.
    """
    words = f"half-width {share:.1%}, target {target:.0%}"
    needed = math.ceil(count * (share / target) ** 2) if math.isfinite(share) else 0
    return f"{words}; about {needed} processes would do" if 0 < needed <= 200 else words


def _fit(values: Floats, design: Floats) -> tuple[float, float, str]:
    """The first coefficient of the linear model, the half-width of its interval, and the name of the method.

    Least squares; from ``HUBER_FROM_PROCESSES`` values on Huber's estimate, with the scale from the median absolute
    deviation. Its standard error: P. J. Huber, Robust Statistics (1981), section 7.6.
    """
    from scipy.special import stdtrit

    count, columns = design.shape
    coefficients, residuals = _least_squares(values, design, np.ones(count))
    inflation, method = 1.0, "Student's t"
    if count >= HUBER_FROM_PROCESSES and (robust := _huber(values, design, residuals)):
        (coefficients, residuals, inflation), method = robust, "Huber's estimate"
    variance = float(residuals @ residuals) / (count - columns)
    error = inflation * math.sqrt(variance * np.linalg.inv(design.T @ design)[0, 0])
    quantile = _UPPER_QUANTILE_REPEATED if count >= CANARY_FROM_PROCESSES else _UPPER_QUANTILE
    return float(coefficients[0]), float(stdtrit(count - columns, quantile)) * error, method


def _huber(values: Floats, design: Floats, residuals: Floats) -> tuple[Floats, Floats, float] | None:
    """Huber's coefficients, the clipped residuals, and the factor by which the clipping increases the standard error.

    ``residuals``: those of least squares. None if most values are alike: the others would then have no weight.
    """
    count, columns = design.shape
    coefficients, limit = np.zeros(columns), math.inf
    negligible = max(_NEGLIGIBLE_SHARE * float(np.median(np.abs(values))), _ROUNDING * float(np.abs(values).max()))
    for _ in range(_ITERATIONS):
        spread = MAD * float(np.median(np.sort(np.abs(residuals))[columns - 1 :]))
        if spread <= negligible:
            return None
        limit = _HUBER_SIGMAS * spread
        coefficients, residuals = _least_squares(values, design, limit / np.maximum(np.abs(residuals), limit))
    near = float(np.mean(np.abs(residuals) <= limit))
    inflation = (1 + columns * (1 - near) / (near * count)) / near
    return coefficients, np.clip(residuals, -limit, limit), inflation


def _least_squares(values: Floats, design: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares: the coefficients and the residuals."""
    weighted = design * weights[:, None]
    coefficients = np.asarray(np.linalg.solve(weighted.T @ design, weighted.T @ values), dtype=np.float64)
    return coefficients, values - design @ coefficients


def without_value(estimate: Estimate, status: str, reason: str) -> Estimate:
    """The same figure with this status and reason instead of a value."""
    return Estimate(status=status, reason=reason, rule=estimate.rule, processes=estimate.processes, unit=estimate.unit)
