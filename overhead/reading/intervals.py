"""A value with its interval, and arithmetic that keeps the widest interval that the operands' intervals allow.

A value of a record carries the record's board. Arithmetic on values of two boards is refused here.
"""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.boards import why_apart
from overhead.reading.format import bounds, valued
from overhead.results import Figure, Record


class DifferentBoardsError(ValueError):
    """A difference, sum or ratio of values from two boards."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A value with its interval; an end is None where it is unknown or unbounded.

    ``board``: the device of the value; '' for a plain number or a comparison that a run formed itself.
    Operators raise ``DifferentBoardsError`` for operands of different boards.
    """

    value: float
    low: float | None = None
    high: float | None = None
    board: str = dataclasses.field(default="", compare=False, repr=False)

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
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.low is not None and self.high is not None

    @property
    def two_sided(self) -> Span:
        """The same where both ends are known, else the value without an interval."""
        return self if self.bounded else Span(self.value, board=self.board)

    @property
    def share_saved(self) -> Span:
        """Of a ratio: the share of the first (0.46 is 46 %) that the second does without, ``1 - second / first``."""
        low, high = (None if end is None or end <= 0 else 1 - 1 / end for end in (self.low, self.high))
        return Span(1 - 1 / self.value, low, high, self.board)

    def __add__(self, other: Span) -> Span:
        board = _common(self, other)
        return Span(self.value + other.value, _both(self.low, other.low), _both(self.high, other.high), board)

    def __sub__(self, other: Span) -> Span:
        return self + other * -1

    def __mul__(self, by: float) -> Span:
        low, high = (None if end is None else end * by for end in (self.low, self.high))
        return Span(self.value * by, *((low, high) if by >= 0 else (high, low)), self.board)

    def __truediv__(self, other: Span) -> Span:
        """The ratio of two values above zero; its upper end is None where the divisor's interval reaches zero."""
        low = None if self.low is None or other.high is None else self.low / other.high
        high = None if self.high is None or other.low is None or other.low <= 0 else self.high / other.low
        return Span(self.value / other.value, low, high, _common(self, other))


def span(figure: Figure | None) -> Span | None:
    """The figure's value and interval; None where it has no value."""
    value = valued(figure)
    return None if figure is None or value is None else Span(value, *bounds(figure))


def measured(record: Record | None, name: str) -> Span | None:
    """The record's figure of that name with its board; None where it has no value."""
    found = span(record.figure(name)) if record is not None else None
    return None if found is None or record is None else dataclasses.replace(found, board=record.device)


def ratio(first: Span | None, second: Span | None) -> Span | None:
    """``first`` over ``second``; None where either is unknown or not above zero, or they come from different boards."""
    if first is None or second is None or first.value <= 0 or second.value <= 0:
        return None
    return None if why_apart(first.board, second.board) else first / second


def _common(first: Span, second: Span) -> str:
    """The board of a result; raises ``DifferentBoardsError`` where the operands have different ones."""
    if reason := why_apart(first.board, second.board):
        raise DifferentBoardsError(f"no difference, sum or ratio: {reason}")
    return max(first.board, second.board, key=len)


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
