"""From one value per process to a figure: value, interval and status.

The reference loop is a fixed loop. Its time (the ``pace`` of a process) shows how fast the
processor ran.
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
    """How wide the interval of a figure is.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    reference_from: int = 5
    """With this many processes the fit removes what follows the reference loop: with fewer, that
    costs more than it removes, since the interval has one degree of freedom less.
    """
    upper_quantile: float = 0.975
    """Upper end of the interval, of a 95 % interval: a higher one covers the truth more often, and
    more figures are ``noisy``. ``make bench ARGS=known-truth`` counts how many contain it.
    """
    negligible: float = 1e-4
    """A spread of the reference loops below this share of the largest counts as 0: it tells nothing
    of the clock.
    """


MEAN = MeanRule()


def mean_of_processes(
    name: str,
    values: Sequence[float] | Floats,
    precision: float,
    *,
    scale: float | None = None,
    beside: float = 0.0,
    unit: str = "ns",
    paces: Sequence[float] | Floats = (),
) -> Figure:
    """The figure of one value per process: their mean, with its 95 % interval by Student's t.

    The status is ``ok`` if the half-width is at most ``precision * (scale + beside)``, else
    ``noisy``. ``scale`` is the size of the mean if None; ``beside`` a time that is added to it,
    where a value may be about zero.

    ``paces``: the time of each process's reference loop (fixed work that shows the processor's
    speed), ns. From five processes on the figure is the cost at the mean reference loop: a cost
    that changes linearly with the reference loop follows the processor's clock and is no
    uncertainty (analysis of covariance, Fisher 1932).
    """
    count = len(values)
    if count == 0:
        no_process = because("no-process-came-to-it")
        return Figure(name=name, unit=unit, status="failed", reason=no_process)
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
    # What each process differs from the mean by, and how many of these are independent.
    residuals = np.asarray(values, dtype=np.float64) - mean
    degrees_of_freedom = count - 1
    mean_pace = 0.0
    if len(paces) == count and _tell_of_clock(paces):
        # Subtract the line through the values and the reference loops: the slope of the values
        # over ``away`` by least squares, which costs a degree of freedom.
        mean_pace = float(np.mean(paces))
        away = np.asarray(paces) / mean_pace - 1
        square = float(away @ away)
        residuals = residuals - away * float(away @ residuals) / square
        degrees_of_freedom = count - 2

    # Half-width: Student's t times the standard error of the mean.
    variance = float(residuals @ residuals) / degrees_of_freedom
    standard_error = math.sqrt(variance / count)
    half_width = student_t_quantile(MEAN.upper_quantile, degrees_of_freedom) * standard_error
    # The half-width as a share of the size of the figure decides between ``ok`` and ``noisy``.
    size = beside + (abs(mean) if scale is None else scale)
    share = _share(half_width, size)
    reason: Why = ""
    if share > precision:
        reason = _too_wide(share, precision, count)
    return Figure(
        name=name,
        unit=unit,
        value=mean,
        low=mean - half_width,
        high=mean + half_width,
        status="noisy" if reason else "ok",
        reason=reason,
        rule=_rule(count, share, precision, mean_pace),
        processes=count,
    )


def _tell_of_clock(paces: Sequence[float] | Floats) -> bool:
    """Whether to fit how the costs of processes follow the processor's speed, which the times of
    their reference loops show (fixed work; ``paces``, ns). That needs enough processes, since the
    fit uses one degree of freedom of the interval, and loops that all were timed and differ.
    """
    if len(paces) < MEAN.reference_from or not all(paces):
        return False
    # Loops that differ by less than a ten-thousandth tell nothing of the clock.
    largest = max(paces)
    return bool(largest - min(paces) > MEAN.negligible * largest)


def _share(half_width: float, size: float) -> float:
    """The half-width as a share of the size; infinite beside a size of 0."""
    if size:
        return half_width / size
    return 0.0 if half_width == 0 else math.inf


def _rule(count: int, share: float, precision: float, pace: float) -> Reason:
    """The sentence about how the interval was formed, which stands beside the figure. ``share``:
    its half-width over the size of the figure. ``pace``: the time of the reference loop (fixed
    work), in ns, at which the figure is the cost; 0 if it was not reduced to one.
    """
    finite = math.isfinite(share)  # a file cannot hold infinity
    # "canary" is the reference loop. Of each sentence there is one without a share, beside zero.
    if pace:
        canary_us = pace / 1e3
        if not finite:
            return because(
                "half-width-of-zero-at-canary",
                processes=count,
                canary_us=canary_us,
                target=precision,
            )
        return because(
            "half-width-at-canary",
            processes=count,
            canary_us=canary_us,
            share=share,
            target=precision,
        )
    if not finite:
        return because("half-width-of-zero", processes=count, target=precision)
    return because("half-width", processes=count, share=share, target=precision)


_MOST_PROCESSES = 200
"""More processes than this are not suggested: chosen, a run of them takes hours."""


def _too_wide(share: float, precision: float, count: int) -> Why:
    """The reason of a ``noisy`` figure whose half-width exceeds ``precision``. It suggests how many
    processes would do, since the half-width shrinks with the root of their number; unless these are
    so many that nobody would run them.
    """
    if not math.isfinite(share):
        return because("too-wide-beside-zero", target=precision)
    reason = because("too-wide", share=share, target=precision)
    # Half as wide needs four times as many processes.
    needed = math.ceil(count * (share / precision) ** 2)
    # A run of more than 200 takes hours.
    if needed > _MOST_PROCESSES:
        return reason
    return together(reason, because("more-processes-would-do", processes=needed))


def without_value(figure: Figure, status: Status, reason: Why) -> Figure:
    """The same figure with this status and reason instead of a value."""
    return replace(figure, status=status, reason=reason, value=None, low=None, high=None, modes=[])
