"""From one value a process to a figure: the interval, and the status that says what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from overhead.measure.fitting.data import Estimate
from overhead.measure.fitting.line import MAD, Floats
from overhead.measure.fitting.two_speeds import Split

LATER_FROM = 5
"""Processes from which their spread tells what of it goes with the canary, and of which some may be further ones."""
ROBUST_FROM = 10
"""Processes from which their spread tells which of them stand apart."""
HUBER = 1.5
"""Standard deviations from the line up to which a process counts in full."""
SIDE, LATER_SIDE = 0.975, 0.98
"""Where a side of the interval ends, and from five processes on: a noisy case is looked at again after every further
process, which costs the interval's word 2 to 4 points where processes differ by twice the target; a little more width
pays for it."""
STEPS, ALIKE, EXACT = 30, 1e-4, 1e-9
"""Reweightings; values, or canaries, that differ by less than this share of the middle one tell nothing apart, nor by
less than this of the largest."""


def across(
    values: Sequence[float] | Floats,
    target: float,
    *,
    scale: float | None = None,
    beside: float = 0.0,
    unit: str = "ns",
    paces: Sequence[float] | Floats = (),
) -> Estimate:
    """Mean over processes with its 95 % interval; ``ok`` when the half-width is within ``target`` of ``scale``.

    ``scale`` is the figure's own size where None, and ``beside`` what it is judged together with. ``paces``: each
    process's canary, ns. From five processes on the interval is that of the cost at their mean canary: what goes with
    the canary in a straight line is the machine's clock and no uncertainty (analysis of covariance). From ten up a
    process that stands apart counts less, so the figure is the usual process's and not the mean.
    """
    count = len(values)
    if count == 0:
        return Estimate(status="failed", reason="no process came to this figure", unit=unit)
    if count == 1:
        reason = "one process says nothing of how far another would differ"
        return Estimate(float(values[0]), status="noisy", reason=reason, rule="1 process", processes=1, unit=unit)
    columns, at = [np.ones(count)], ""
    if count >= LATER_FROM and len(paces) == count and all(paces) and max(paces) - min(paces) > ALIKE * max(paces):
        usual = float(np.mean(paces))
        columns.append(np.asarray(paces) / usual - 1)
        at = f" where the canary's loop takes {usual / 1e3:.1f} us"
    mean, half, how = _located(np.asarray(values, dtype=np.float64), np.column_stack(columns))
    size = (abs(mean) if scale is None else scale) + beside
    share = half / size if size else (0.0 if half == 0 else math.inf)
    rule = f"{count} processes, {how}{at}: half-width {share:.2%}, target {target:.0%}"
    if share <= target:
        return Estimate(mean, mean - half, mean + half, "ok", "", rule, count, unit=unit)
    reason = _too_wide(share, target, count)
    return Estimate(mean, mean - half, mean + half, "noisy", reason, rule, count, unit=unit)


def _too_wide(share: float, target: float, count: int) -> str:
    """Why it is noisy, and how many processes would probably do (pyperf's rule: the spread scales with their root)."""
    words = f"half-width {share:.1%}, target {target:.0%}"
    needed = math.ceil(count * (share / target) ** 2) if math.isfinite(share) else 0
    return f"{words}; about {needed} processes would do" if 0 < needed <= 200 else words


def _located(values: Floats, design: Floats) -> tuple[float, float, str]:
    """The first coefficient of the linear model, the half-width of its interval, and by which estimate.

    Least squares; from ``ROBUST_FROM`` values up Huber's estimate with the scale by the median deviation, and its
    standard error: P. J. Huber, Robust Statistics (1981), section 7.6.
    """
    from scipy.special import stdtrit

    count, columns = design.shape
    answer, off = _weighted(values, design, np.ones(count))
    clipped, inflation, how = off, 1.0, "Student's t"
    if count >= ROBUST_FROM and (bent := _robust(values, design, off)):
        (answer, clipped, inflation), how = bent, "Huber's estimate"
    error = inflation * math.sqrt(float(clipped @ clipped) / (count - columns) * np.linalg.inv(design.T @ design)[0, 0])
    side = LATER_SIDE if count >= LATER_FROM else SIDE
    return float(answer[0]), float(stdtrit(count - columns, side)) * error, how


def _robust(values: Floats, design: Floats, off: Floats) -> tuple[Floats, Floats, float] | None:
    """Huber's coefficients, what is left of each value within his bend, and what that inflates the error by.

    None where most values are alike: their spread would say that the others are none of them.
    """
    count, columns = design.shape
    answer, limit = np.zeros(columns), math.inf
    none = max(ALIKE * float(np.median(np.abs(values))), EXACT * float(np.abs(values).max()))
    for _ in range(STEPS):
        spread = MAD * float(np.median(np.sort(np.abs(off))[columns - 1 :]))
        if spread <= none:
            return None
        limit = HUBER * spread
        answer, off = _weighted(values, design, limit / np.maximum(np.abs(off), limit))
    near = float(np.mean(np.abs(off) <= limit))
    return answer, np.clip(off, -limit, limit), (1 + columns * (1 - near) / (near * count)) / near


def _weighted(values: Floats, design: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted least squares: the coefficients, and what is left of each value."""
    weighted = design * weights[:, None]
    answer = np.asarray(np.linalg.solve(weighted.T @ design, weighted.T @ values), dtype=np.float64)
    return answer, values - design @ answer


def modes(fast: Estimate, slow: Estimate, two: Split, processes: int) -> Estimate:
    """A figure with two speeds: the value is that of most rounds, the interval holds both, ``modes`` gives each."""
    assert fast.value is not None
    assert slow.value is not None
    most = slow.value if two.slow.mean() > 0.5 else fast.value
    ends = [v for e in (fast, slow) for v in (e.value, e.low, e.high) if v is not None]
    speeds = " and ".join(f"{us:.4g}" if us < 1e4 else f"{us:,.0f}" for us in (fast.value / 1e3, slow.value / 1e3))
    reason = f"two speeds, {speeds} us, told apart by the {two.by}"
    rule = f"{processes} processes: {two.slow.mean():.0%} of the rounds are of the slower speed"
    return Estimate(most, min(ends), max(ends), "bimodal", reason, rule, processes, (fast.value, slow.value))


def without_value(estimate: Estimate, status: str, reason: str) -> Estimate:
    """The figure refused: status and reason, no number."""
    return Estimate(status=status, reason=reason, rule=estimate.rule, processes=estimate.processes, unit=estimate.unit)
