"""A value with its interval, and arithmetic that keeps the widest interval that the operands' intervals allow."""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.format import bounds, valued
from overhead.results import Figure


@dataclasses.dataclass(frozen=True)
class Span:
    """A value with its interval; an end is None where it is unknown or unbounded."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def floor(self) -> float:
        """The lower end; minus infinity where it is not known."""
        return -math.inf if self.low is None else self.low

    @property
    def ceiling(self) -> float:
        """The upper end; infinity where it is not known."""
        return math.inf if self.high is None else self.high

    def over(self, unit: float) -> tuple[float, float | None, float | None]:
        """Value, low and high divided by ``unit``: ``over(1)`` as they are, ``over(1e3)`` from ns to us."""
        low, high = (None if end is None else end / unit for end in (self.low, self.high))
        return self.value / unit, low, high

    @property
    def two_sided(self) -> Span:
        """The same where both ends are known, else the value without an interval."""
        return self if self.low is not None and self.high is not None else Span(self.value)

    @property
    def share_saved(self) -> Span:
        """Of a ratio: the share of the first (0.46 is 46 %) that the second does without, ``1 - second / first``."""
        low, high = (None if end is None or end <= 0 else 1 - 1 / end for end in (self.low, self.high))
        return Span(1 - 1 / self.value, low, high)

    def __add__(self, other: Span) -> Span:
        return Span(self.value + other.value, _both(self.low, other.low), _both(self.high, other.high))

    def __sub__(self, other: Span) -> Span:
        return self + other * -1

    def __mul__(self, by: float) -> Span:
        low, high = (None if end is None else end * by for end in (self.low, self.high))
        return Span(self.value * by, *((low, high) if by >= 0 else (high, low)))

    def __truediv__(self, other: Span) -> Span:
        """The ratio of two values above zero; its upper end is None where the divisor's interval reaches zero."""
        low = None if self.low is None or other.high is None else self.low / other.high
        high = None if self.high is None or other.low is None or other.low <= 0 else self.high / other.low
        return Span(self.value / other.value, low, high)


def span(figure: Figure | None) -> Span | None:
    """The figure's value and interval; None where it has no value."""
    value = valued(figure)
    return None if figure is None or value is None else Span(value, *bounds(figure))


def ratio(first: Span | None, second: Span | None) -> Span | None:
    """``first`` over ``second``; None where either is unknown or not above zero."""
    if first is None or second is None or first.value <= 0 or second.value <= 0:
        return None
    return first / second


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
