"""A value with its interval, and arithmetic that keeps the widest interval that the operands'
intervals allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from overhead.results.origin import Origin, formed
from overhead.results.reason import Why
from overhead.results.vocabulary import BOARD, Status

_SMALLEST, _LARGEST = 1e-9, 1e18
"""Bounds in ns of a plausible measurement; drawing values beyond them overflows."""


class DifferentBoardsError(ValueError):
    """A difference, sum or ratio of values from two boards."""


@dataclass(frozen=True)
class Value:
    """A value with its interval; an end is None where it is unknown or unbounded. Equal ones have
    the same numbers.

    A ``Figure`` is what a file holds: one measured number by its name, or the reason why there is
    none. A ``Value`` is what is calculated with: it always has a number, and a difference or a
    ratio of figures, which no file has, is one too. ``Figure.measured`` makes the value of a
    figure.

    ``status``, ``reason``: of the figure; a result has those of its first operand that is not
    ``ok``. ``unit``: of a quotient ``ratio`` where both have one unit. ``source``: the device that
    was measured; '' for a plain number or a comparison that a run formed itself. ``origin``: what
    it was formed from; None where that is not known. Operators raise ``DifferentBoardsError`` for
    values of two boards.
    """

    value: float
    low: float | None = None
    high: float | None = None
    status: Status = field(default="ok", compare=False)
    reason: Why = field(default="", compare=False, repr=False)
    unit: str = field(default="", compare=False)
    source: str = field(default="", compare=False, repr=False)
    origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def floor(self) -> float:
        """The lower end; minus infinity where it is not known."""
        return -math.inf if self.low is None else self.low

    @property
    def ceiling(self) -> float:
        """The upper end; infinity where it is not known."""
        return math.inf if self.high is None else self.high

    @property
    def bounded(self) -> bool:
        """Whether both ends of the interval are known."""
        return self.low is not None and self.high is not None

    @property
    def resolved(self) -> bool:
        """Whether the value is above zero, and its interval, if it has one, too."""
        return self.value > 0 and (self.low is None or self.low > 0)

    @property
    def share_saved(self) -> Value:
        """Of a ratio ``first / second``: the share of ``first`` (0.46 is 46 %) that ``second``
        saves.
        """
        low, high = (
            None if end is None or end <= 0 else 1 - 1 / end for end in (self.low, self.high)
        )
        return replace(
            self,
            value=1 - 1 / self.value,
            low=low,
            high=high,
            unit="share",
            origin=formed("share saved", self.origin),
        )

    def at_least(self, least: float) -> Value:
        """The same with all that is below ``least`` raised to ``least``: the value and the ends of
        its interval.
        """
        low, high = (None if end is None else max(end, least) for end in (self.low, self.high))
        return replace(
            self,
            value=max(self.value, least),
            low=low,
            high=high,
            origin=formed("at least", self.origin, least),
        )

    def __add__(self, other: Value) -> Value:
        low = None if self.low is None or other.low is None else self.low + other.low
        high = None if self.high is None or other.high is None else self.high + other.high
        return replace(
            self._with(other),
            value=self.value + other.value,
            low=low,
            high=high,
            origin=formed("+", self.origin, other.origin),
        )

    def __sub__(self, other: Value) -> Value:
        return self + other * -1

    def __mul__(self, by: float) -> Value:
        low, high = (
            None if end is None else end * by
            for end in (self.low, self.high)[:: 1 if by >= 0 else -1]
        )
        return replace(
            self, value=self.value * by, low=low, high=high, origin=formed("*", self.origin, by)
        )

    def __truediv__(self, by: Value | float) -> Value:
        """The quotient by a number or value above zero; no upper end where the divisor's interval
        reaches zero.
        """
        if not isinstance(by, Value):
            low, high = (None if end is None else end * (1 / by) for end in (self.low, self.high))
            return replace(
                self, value=self.value / by, low=low, high=high, origin=formed("/", self.origin, by)
            )
        low = None if self.low is None or by.high is None else self.low / by.high
        high = None if self.high is None or by.low is None or by.low <= 0 else self.high / by.low
        unit = "ratio" if self.unit == by.unit else self.unit
        return replace(
            self._with(by),
            value=self.value / by.value,
            low=low,
            high=high,
            unit=unit,
            origin=formed("/", self.origin, by.origin),
        )

    def _with(self, other: Value) -> Value:
        """This value, with status, reason and source for a result of both."""
        if are_apart(self.source, other.source):
            raise DifferentBoardsError(f"different boards: {self.source}, {other.source}")
        unclear = other if self.status == "ok" else self
        source = max(self.source, other.source, key=len)
        return replace(self, status=unclear.status, reason=unclear.reason, source=source)


def exactly(number: float, unit: str = "") -> Value:
    """A value without uncertainty: both ends of its interval are the number."""
    return Value(number, number, number, unit=unit, origin=formed("number", number))


def ratio(first: Value | None, second: Value | None) -> Value | None:
    """``first`` over ``second``; None where either is unknown or not above zero, or they come from
    different boards.
    """
    if first is None or second is None or first.value <= 0 or second.value <= 0:
        return None
    return None if are_apart(first.source, second.source) else first / second


def are_apart(first: str, second: str) -> bool:
    """Whether values of these two devices must not be subtracted or divided, since they are
    different boards.

    Two boards of one model differ by more than the intervals of either.
    """
    return first != second and len(first) == len(second) == BOARD


def is_plausible(value: float) -> bool:
    """Whether a measurement (ns, or a ratio) can have this size."""
    return value == 0 or _SMALLEST <= abs(value) <= _LARGEST
