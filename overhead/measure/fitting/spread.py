"""The median of values, and the mean of one value per process with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from overhead.measure.fitting.line import Floats
from overhead.numerics import student_t_quantile

MOST_MEDIANS = 1.5
"""A process counts as at most this multiple of the median process, so that one outlier does not
hide the others. Chosen, not measured: a larger multiple lets an outlier widen the interval.
"""


def median(values: Sequence[float] | Floats) -> float:
    """The median as a number of Python."""
    return float(np.median(values))


class MeanInterval(NamedTuple):
    """The mean of one value per process, and half the width of its interval."""

    mean: float
    half_width: float


def interval_of_mean(values: Sequence[float] | Floats, upper_quantile: float) -> MeanInterval:
    """The mean of at least two values, and half the width of its interval by Student's t;
    ``upper_quantile`` is its upper end, such as 0.975 for 95 %.
    """
    count = len(values)
    standard_error = float(np.std(values, ddof=1)) / math.sqrt(count)
    half_width = student_t_quantile(upper_quantile, count - 1) * standard_error
    return MeanInterval(float(np.mean(values)), half_width)


def without_outliers(values: Floats) -> Floats:
    """The values, each clipped to ``MOST_MEDIANS`` times the size of their median."""
    largest = MOST_MEDIANS * abs(median(values))
    return np.clip(values, -largest, largest)
