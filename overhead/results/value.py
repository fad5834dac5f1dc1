"""A value with its interval, and arithmetic that keeps the widest interval that the operands'
intervals allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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

    def named(self, name: str) -> dict[str, float]:
        """The value and the known ends of its interval as values of a reason (``because``): by the
        name ``gain``, for example, ``gain``, ``gain_low`` and ``gain_high``.
        """
        values = {name: self.value}
        if self.low is not None:
            values[f"{name}_low"] = self.low
        if self.high is not None:
            values[f"{name}_high"] = self.high
        return values

    @property
    def resolved(self) -> bool:
        """Whether the value is above zero, and its interval, if it has one, too."""
        return self.value > 0 and (self.low is None or self.low > 0)

    @property
    def share_saved(self) -> Value:
        """Of a ratio ``first / second``, how much less the second is, as a share of the first: a
        ratio of 2 saves 0.5 (50 %).
        """
        return replace(
            self,
            value=1 - 1 / self.value,
            low=_share_saved(self.low),
            high=_share_saved(self.high),
            unit="share",
            origin=formed("share saved", self.origin),
        )

    def at_least(self, least: float) -> Value:
        """The value where it is known that it cannot be below ``least``: the value itself and the
        ends of its interval are raised to ``least`` where they are lower.
        """
        return replace(
            self,
            value=max(self.value, least),
            low=None if self.low is None else max(self.low, least),
            high=None if self.high is None else max(self.high, least),
            origin=formed("at least", self.origin, least),
        )

    def __add__(self, other: Value) -> Value:
        """The sum. Each end of its interval is the sum of these ends of both."""
        return replace(
            # Status, reason and source of both; raises if they are of different boards.
            self._with(other),
            value=self.value + other.value,
            low=_sum(self.low, other.low),
            high=_sum(self.high, other.high),
            origin=formed("+", self.origin, other.origin),
        )

    def __sub__(self, other: Value) -> Value:
        """The difference, whose interval is as wide as both together."""
        return self + other * -1

    def __mul__(self, by: float) -> Value:
        """The product with a number; a number below zero swaps the ends of the interval."""
        low, high = _product(self.low, by), _product(self.high, by)
        if by < 0:
            low, high = high, low
        origin = formed("*", self.origin, by)
        return replace(self, value=self.value * by, low=low, high=high, origin=origin)

    def __truediv__(self, by: Value | float) -> Value:
        """The quotient by a number or value above zero; no upper end where the divisor's interval
        reaches zero.
        """
        if not isinstance(by, Value):
            return replace(
                self,
                value=self.value / by,
                low=_product(self.low, 1 / by),
                high=_product(self.high, 1 / by),
                origin=formed("/", self.origin, by),
            )
        # The quotient is lowest where the divisor is highest, and the other way round. Of ns by ns
        # it is a ratio.
        return replace(
            # Status, reason and source of both; raises if they are of different boards.
            self._with(by),
            value=self.value / by.value,
            low=_quotient(self.low, by.high),
            high=_quotient(self.high, by.low),
            unit="ratio" if self.unit == by.unit else self.unit,
            origin=formed("/", self.origin, by.origin),
        )

    def _with(self, other: Value) -> Value:
        """This value, with status, reason and source for a result of both: the status is that of
        the one that is not ``ok``, the source is a board if one of them names its board.
        """
        if are_apart(self.source, other.source):
            raise DifferentBoardsError(f"different boards: {self.source}, {other.source}")
        unclear = other if self.status == "ok" else self
        # The longer text: the id of a board, where the other only numbers the devices of one name.
        source = max(self.source, other.source, key=len)
        return replace(self, status=unclear.status, reason=unclear.reason, source=source)


def _sum(end: float | None, other: float | None) -> float | None:
    """The end of an interval of a sum; None where one of the ends is unknown."""
    if end is None or other is None:
        return None
    return end + other


def _product(end: float | None, by: float) -> float | None:
    return None if end is None else end * by


def _quotient(end: float | None, divisor: float | None) -> float | None:
    """The end of an interval of a quotient; None where an end is unknown, and where the divisor may
    be zero, so that the quotient has no end.
    """
    if end is None or divisor is None or divisor <= 0:
        return None
    return end / divisor


def _share_saved(end: float | None) -> float | None:
    """The end of ``Value.share_saved``; None where the end of the ratio is unknown or no ratio."""
    if end is None or end <= 0:
        return None
    return 1 - 1 / end


def exactly(number: float, unit: str = "") -> Value:
    """A value without uncertainty: both ends of its interval are the number."""
    return Value(number, number, number, unit=unit, origin=formed("number", number))


def ratio(first: Value | None, second: Value | None) -> Value | None:
    """``first`` over ``second``, with the widest interval that both allow; None where either is
    unknown or not above zero, or where they come from different boards, which may not be compared.
    """
    if first is None or second is None or first.value <= 0 or second.value <= 0:
        return None
    if are_apart(first.source, second.source):
        return None
    return first / second


def hull(values: Sequence[Value]) -> Value:
    """The shortest interval that holds all of these and their intervals; its middle is no value.
    One value at least.
    """
    lows = [value.value if value.low is None else value.low for value in values]
    highs = [value.value if value.high is None else value.high for value in values]
    low, high = min(lows), max(highs)
    origin = formed("hull", *(value.origin for value in values))
    return Value((low + high) / 2, low, high, unit=values[0].unit, origin=origin)


def are_apart(first: str, second: str) -> bool:
    """Whether values of these two devices must not be subtracted or divided, since they are
    different boards.

    Two boards of one model differ by more than the intervals of either.
    """
    return first != second and len(first) == len(second) == BOARD


def is_plausible(value: float) -> bool:
    """Whether a measurement (ns, or a ratio) can have this size."""
    return value == 0 or _SMALLEST <= abs(value) <= _LARGEST
