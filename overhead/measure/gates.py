"""From one value a process to a figure: the interval, and the status that says what it is worth."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from overhead.measure.figures import Estimate
from overhead.measure.fit import Floats
from overhead.measure.modes import Split

BOOTSTRAP_FROM = 10
"""Processes from which resampling them is trusted; with three a bootstrap that says 95 % covers about 80."""
RESAMPLES = 2000


def across(
    values: Sequence[float],
    target: float,
    *,
    scale: float | None = None,
    unit: str = "ns",
    rounds: Sequence[Floats] = (),
) -> Estimate:
    """Mean over processes with its 95 % interval; ``ok`` when the half-width is within ``target`` of ``scale``.

    ``scale`` is the mean's own size where None. Student's t below ten processes; from ten up, where each process's
    values by round are given, a hierarchical bootstrap of the t statistic (processes, then rounds within each).
    """
    count = len(values)
    if count == 0:
        return Estimate(status="failed", reason="no process came to this figure", unit=unit)
    mean = float(np.mean(values))
    if count == 1:
        reason = "one process says nothing of how far another would differ"
        return Estimate(mean, status="noisy", reason=reason, rule="1 process", processes=1, unit=unit)
    if count >= BOOTSTRAP_FROM and len(rounds) == count:
        low, high = _bootstrap(np.asarray(values), rounds)
        how = "hierarchical bootstrap of t"
    else:
        low, high = _student(np.asarray(values))
        how = "Student's t"
    size = abs(mean) if scale is None else scale
    share = (high - low) / 2 / size if size else (0.0 if high == low else math.inf)
    rule = f"{count} processes, {how}: half-width {share:.2%}, target {target:.0%}"
    if share <= target:
        return Estimate(mean, low, high, "ok", "", rule, count, unit=unit)
    return Estimate(mean, low, high, "noisy", _too_wide(share, target, count), rule, count, unit=unit)


def _too_wide(share: float, target: float, count: int) -> str:
    """Why it is noisy, and how many processes would probably do (pyperf's rule: the spread scales with their root)."""
    words = f"half-width {share:.1%}, target {target:.0%}"
    needed = math.ceil(count * (share / target) ** 2) if math.isfinite(share) else 0
    return f"{words}; about {needed} processes would do" if 0 < needed <= 200 else words


def _student(values: Floats) -> tuple[float, float]:
    from scipy.special import stdtrit

    mean = float(values.mean())
    half = float(stdtrit(values.size - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean - half, mean + half


def _bootstrap(values: Floats, rounds: Sequence[Floats]) -> tuple[float, float]:
    """Kalibera and Jones' resampling on two levels; the interval is the bootstrap-t, which keeps its word at ten.

    A process's estimate moves with the median of its resampled rounds.
    """
    draw = np.random.default_rng(values.size)
    count = values.size
    moved = np.empty((count, RESAMPLES))
    for row, (value, own) in enumerate(zip(values, rounds, strict=True)):
        picks = own[draw.integers(0, own.size, (RESAMPLES, own.size))] if own.size else np.zeros((RESAMPLES, 1))
        moved[row] = value + np.median(picks, axis=1) - (np.median(own) if own.size else 0.0)
    chosen = moved[draw.integers(0, count, (RESAMPLES, count)), np.arange(RESAMPLES)[:, None]]
    errors = chosen.std(axis=1, ddof=1) / math.sqrt(count)
    usable = errors > 0
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(count)
    if not usable.any():
        return mean, mean
    statistic = (chosen.mean(axis=1)[usable] - mean) / errors[usable]
    low, high = np.percentile(statistic, [2.5, 97.5])
    return mean - float(high) * error, mean - float(low) * error


def modes(fast: Estimate, slow: Estimate, two: Split, processes: int) -> Estimate:
    """A figure with two speeds: the value is that of most rounds, the interval holds both, ``modes`` gives each."""
    assert fast.value is not None
    assert slow.value is not None
    most = slow.value if two.slow.mean() > 0.5 else fast.value
    ends = [v for e in (fast, slow) for v in (e.value, e.low, e.high) if v is not None]
    reason = f"two speeds, {fast.value:.4g} and {slow.value:.4g} ns, told apart by the {two.by}"
    rule = f"{processes} processes: {two.slow.mean():.0%} of the rounds are of the slower speed"
    return Estimate(most, min(ends), max(ends), "bimodal", reason, rule, processes, (fast.value, slow.value))


def without_value(estimate: Estimate, status: str, reason: str) -> Estimate:
    """The figure refused: status and reason, no number."""
    return Estimate(status=status, reason=reason, rule=estimate.rule, processes=estimate.processes, unit=estimate.unit)
