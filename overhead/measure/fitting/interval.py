"""From one value per process to a figure: value, interval and status.

The canary is a fixed loop. Its time (the ``pace`` of a process) shows how fast the processor ran.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.line import Floats
from overhead.numerics import student_t_quantile
from overhead.results import Figure, Reason, Status, Why, because, together


@dataclass(frozen=True)
class MeanRule:
    """How wide the interval of a figure is."""

    canary_from: int = 5
    """With this many processes the fit removes what follows the canary: with fewer, that costs more
    than it removes.
    """
    upper_quantile: float = 0.975
    """Upper end of the interval: a higher one covers the truth more often, and more figures are
    ``noisy``.
    """
    negligible: float = 1e-4
    """A spread of canaries below this share of the largest counts as 0: it tells nothing of the
    clock.
    """


MEAN = MeanRule()


def mean_of_processes(
    name: str,
    values: Sequence[float] | Floats,
    target: float,
    *,
    scale: float | None = None,
    beside: float = 0.0,
    unit: str = "ns",
    paces: Sequence[float] | Floats = (),
) -> Figure:
    """The mean of one value per process, with its 95 % interval.

    The status is ``ok`` if the half-width is at most ``target * (scale + beside)``, else ``noisy``.
    ``scale`` is the size of the mean if None.

    ``paces``: the canary of each process, ns. From five processes on the figure is the cost at the
    mean canary: a cost that changes linearly with the canary follows the processor's clock and is
    no uncertainty (analysis of covariance).
    """
    count = len(values)
    if count == 0:
        return Figure(
            name=name, unit=unit, status="failed", reason=because("no-process-came-to-it")
        )
    if count == 1:
        return Figure(
            name=name,
            unit=unit,
            value=float(values[0]),
            status="noisy",
            reason=because("one-process-has-no-spread"),
            rule=because("one-process"),
            processes=1,
        )
    mean = float(np.mean(values))
    usual = 0.0
    residuals, free = np.asarray(values, dtype=np.float64) - mean, count - 1
    known = count >= MEAN.canary_from and len(paces) == count and all(paces)
    if known and max(paces) - min(paces) > MEAN.negligible * max(paces):
        usual = float(np.mean(paces))
        away = np.asarray(paces) / usual - 1
        residuals, free = residuals - away * float(away @ residuals) / float(away @ away), count - 2
    half = student_t_quantile(MEAN.upper_quantile, free) * math.sqrt(
        float(residuals @ residuals) / free / count
    )
    size = (abs(mean) if scale is None else scale) + beside
    share = half / size if size else (0.0 if half == 0 else math.inf)
    reason = "" if share <= target else _too_wide(share, target, count)
    return Figure(
        name=name,
        unit=unit,
        value=mean,
        low=mean - half,
        high=mean + half,
        status="noisy" if reason else "ok",
        reason=reason,
        rule=_rule(count, share, target, usual),
        processes=count,
    )


def _rule(count: int, share: float, target: float, canary: float) -> Reason:
    """How the interval was formed. ``canary``: at which time of the canary, ns; 0 for none."""
    finite = math.isfinite(share)  # a file cannot hold infinity
    if canary:
        canary_us = canary / 1e3
        if not finite:
            return because(
                "half-width-of-zero-at-canary", processes=count, canary_us=canary_us, target=target
            )
        return because(
            "half-width-at-canary", processes=count, canary_us=canary_us, share=share, target=target
        )
    if not finite:
        return because("half-width-of-zero", processes=count, target=target)
    return because("half-width", processes=count, share=share, target=target)


def _too_wide(share: float, target: float, count: int) -> Why:
    """The reason of a ``noisy`` figure, with the processes that would do: the half-width shrinks
    with their root.
    """
    if not math.isfinite(share):
        return because("too-wide-beside-zero", target=target)
    reason = because("too-wide", share=share, target=target)
    needed = math.ceil(count * (share / target) ** 2)
    return (
        together(reason, because("more-processes-would-do", processes=needed))
        if 0 < needed <= 200
        else reason
    )


def without_value(figure: Figure, status: Status, reason: Why) -> Figure:
    """The same figure with this status and reason instead of a value."""
    return replace(figure, status=status, reason=reason, value=None, low=None, high=None, modes=[])
