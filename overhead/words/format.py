"""Figures as text: as many digits as the interval allows."""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.precision import mode_of, resolved, two_speeds
from overhead.results import Figure, Origin, Record, Value, formed
from overhead.words.printed import printed

MICRO = "\u00b5s"
"""The unit of every displayed time."""
TIMES = "\u00d7"
MINUS = "\u2212"
_DIGITS = 4
"""Most significant digits shown, however narrow the interval."""
_DIGITS_WITHOUT_INTERVAL = 2
_SECOND_DIGIT_BELOW = 3.55
"""A half-width with leading digits below this shows two digits (the Particle Data Group's rule), if
the number then has three digits at most.
"""
_FOUR_DIGITS_FROM = 999.5
"""A number from here on has four digits or more, all of which are shown."""
_POSITIVE = frozenset({
    "complete", "issue", "host", "device_busy", "device_span", "met", "legacy", "naive",
    "naive_idle", "empty_wait", "first", "prepare",
})  # fmt: skip
"""Times that cannot be negative. An intercept can, as can a difference of two times."""


def number(of: Value | float) -> str:
    """A value rounded to one or two digits of its interval's half-width; to two digits without an
    interval.
    """
    of = _as_value(of)
    return printed(_fixed(of.value, _place(of)), of)


def held_range(figure: Figure | None) -> str:
    """The n between which T(n) was seen to be the figure's line: ``4,430 to 546,260``, or the
    largest n alone where it holds from one unit on; '' where that was not looked at.
    """
    if figure is None or not figure.holds_to:
        return ""
    largest = f"{figure.holds_to:,}"
    return f"{figure.holds_from:,} to {largest}" if figure.holds_from > 1 else largest


def point(of: Value) -> str:
    """A value rounded to two digits, whatever its interval."""
    return printed(_fixed(of.value, _place(Value(of.value))), of)


def within(value: Value | float, share: float) -> Value:
    """The value with an interval of this share of it on both sides, for ``number``: 0.01 gives
    three digits.
    """
    of = _as_value(value)
    return Value(
        of.value, of.value * (1 - share), of.value * (1 + share), origin=formed("point", of.origin)
    )


@dataclasses.dataclass(frozen=True)
class _Spread:
    """A value and its interval as text; '' without one. ``of``: what they show."""

    value: str
    interval: str
    of: Value

    def text(self, sign: str = "") -> str:
        """Both, with a sign or a unit behind the value."""
        interval = f" ({self.interval})" if self.interval else ""
        return printed(f"{self.value}{sign}{interval}", self.of)


def spread(of: Value, sign: str = "") -> str:
    """``value (low to high)``, all with the digits that the interval allows; the value alone if it
    has no interval.

    ``sign``: a sign or a unit behind the value.
    """
    return _spread(of).text(sign)


def _spread(of: Value) -> _Spread:
    if of.low is None or of.high is None:
        return _Spread(number(of.value), "", of)
    place = _place(of)
    return _Spread(
        _fixed(of.value, place), f"{_fixed(of.low, place)} to {_fixed(of.high, place)}", of
    )


def positive_spread(of: Value) -> str:
    """``value (low to high)`` of what cannot be negative, such as a time, a rate or a ratio.

    Where the interval, rounded to its own digits, reaches zero, value and ends have two digits
    each, and an end at zero or below is not shown: ``28 (at most 110)``. This is so for most
    intervals of two processes.
    """
    return _positive_spread(of).text()


def _positive_spread(of: Value) -> _Spread:
    if of.low is None or of.high is None or of.value <= 0 or round(of.low, -_place(of)) > 0:
        return _spread(of)
    least = f"{number(of.low)} to" if of.low > 0 else "at most"
    return _Spread(number(of.value), f"{least} {number(of.high)}", of)


def between(low: float, high: float) -> str:
    """``low to high``, both with the digits that the difference allows; one number if they are the
    same.
    """
    if low == high:
        return number(low)
    place = _place(Value((low + high) / 2, low, high))
    return f"{_fixed(low, place)} to {_fixed(high, place)}"


def ends_text(of: Value) -> str:
    """``between`` the ends of the interval; of a value without one, the value twice."""
    low, high = (of.value if end is None else end for end in (of.low, of.high))
    return printed(between(low, high), of)


def micro(figure: Figure) -> str:
    """A time in microseconds without interval and unit: ``3.74``; the figure's status where it has
    no value.
    """
    return number(found / 1e3) if (found := figure.measured) else figure.status


def cost_text(record: Record) -> str:
    """The cost in microseconds without its unit: ``3.74``, or ``3.7 or 4.5`` if it has two speeds;
    '' without one.
    """
    figure = record.figure("complete")
    if figure is None:
        return ""
    found = two_speeds(figure)
    return (
        " or ".join(number(mode_of(figure, speed) / 1e3) for speed in found)
        if found
        else micro(figure)
    )


def micro_spread(figure: Figure | None) -> str:
    """A time in microseconds with its interval, without unit; its status where it has no value; ''
    for None.
    """
    if figure is None:
        return ""
    found = figure.measured
    if found is None:
        return figure.status
    if figure.processes == 1 and found.low == found.high:  # the range of one process has no width
        found = dataclasses.replace(found, low=None, high=None)
    return _micro_spread(figure.name, found).text()


def _micro_spread(name: str, ns: Value) -> _Spread:
    """A time in microseconds. ``name``: of its figure, which says whether it can be negative."""
    return (_positive_spread if name in _POSITIVE else _spread)(ns / 1e3)


def time(figure: Figure) -> str:
    """A time with unit and interval: ``26.3 µs (25.9 to 26.7)``; the figure's status where it has
    no value.
    """
    found = figure.measured
    return figure.status if found is None else _micro_spread(figure.name, found).text(f" {MICRO}")


def time_spread(ns: Value) -> str:
    """A value in ns, which may be below zero, with unit and interval: ``-3.1 µs (-4.0 to
    -2.2)``.
    """
    return _spread(ns / 1e3).text(f" {MICRO}")


def micro_of(ns: Value | float) -> str:
    """Nanoseconds as text in microseconds without unit, to three digits: ``3.74``."""
    time = _as_value(ns) / 1e3
    said = (
        f"{time.value:#,.3g}".rstrip(".")
        if time.value < _FOUR_DIGITS_FROM
        else f"{time.value:,.0f}"
    )
    return printed(said, time)


def unresolved(figure: Figure | None) -> str:
    """What stands in place of a time that is not resolved: ``not resolved (-11 to 35)`` (µs), or
    its status.
    """
    if figure is None:
        return "not measured"
    found = figure.measured
    if found is None:
        return figure.status
    if found.low is None or found.high is None:
        return "not above zero"
    ends = between(found.low / 1e3, found.high / 1e3)
    return f"not resolved ({printed(ends, found / 1e3)})"


def micro_or_why(figure: Figure) -> str:
    """``micro_spread`` of a figure above zero, else ``unresolved`` of it."""
    return micro_spread(figure) if resolved(figure) else unresolved(figure)


def percent(share: Value | float) -> str:
    """A share (0.46) in per cent (``46 %``), whole from 10 % up and with at most one decimal
    below.
    """
    return printed(f"{_percent_number(share)} %", _as_value(share) * 100)


def _percent_number(share: Value | float) -> str:
    share = _as_value(share)
    finest = 0 if abs(share.value) >= 0.1 else -1
    return _fixed(100 * share.value, max(_place(share * 100), finest))


def factor(times: Value | float) -> str:
    """A ratio with the multiplication sign, with at least one significant digit, so that none is
    ``0×``.
    """
    times = _as_value(times)
    place, value = _place(times), times.value
    least = math.floor(math.log10(value)) if 0 < value < math.inf else place
    return printed(_fixed(value, min(place, least)) + TIMES, times)


def rounds_to_one(times: Value | float) -> bool:
    """Whether ``factor`` shows this ratio as 1."""
    times = _as_value(times)
    return times.value > 0 and round(times.value, -min(_place(times), 0)) == 1


def factor_spread(times: Value | None) -> str:
    """A ratio with its interval: ``3× (2 to 4)``; '' for None."""
    return _positive_spread(times).text(TIMES) if times is not None else ""


def percent_spread(share: Value | None) -> str:
    """A share (0.46) in per cent with its interval: ``46 % (44 to 48)``, ``46 % (at most 48)``; ''
    for None.
    """
    if share is None:
        return ""
    if share.low is None and share.high is not None:
        said = percent(Value(share.value, 0.0, share.high))
        return _Spread(said, f"at most {_percent_number(share.high)}", share * 100).text()
    return _spread(share * 100).text(" %")


def count(number_of: int, noun: str, origin: Origin | None = None) -> str:
    """A number with its noun: ``1 case``, ``1,200 cases``. ``origin``: what was counted, if a
    checker can know it.
    """
    said = f"{number_of:,} {noun}" + ("" if number_of == 1 else "s")
    return printed(said, Value(number_of, origin=origin)) if origin is not None else said


def whole(number_of: int, origin: Origin | None) -> str:
    """A number that was counted; ``origin``: of what."""
    return printed(f"{number_of:,}", Value(number_of, origin=origin))


def run_time(created: str) -> str:
    """The time of a run to the minute: ``2026-11-24 02:06 UTC``. ``created``:
    ``2026-11-24T02:06:31Z``.
    """
    return f"{created[:16].replace('T', ' ')} UTC"


def listed(words: list[str], last: str = "and") -> str:
    """``a, b and c``, or ``a, b or c`` with ``last="or"``; '' for no words."""
    return (
        words[0]
        if len(words) == 1
        else f"{', '.join(words[:-1])} {last} {words[-1]}"
        if words
        else ""
    )


def few(names: list[str], most: int = 3) -> str:
    """The first names, and how many more there are: ``a; b; c; and 2 more``."""
    left = len(names) - most
    return "; ".join([*names[:most], *[f"and {left:,} more"] * (left > 0)])


def _as_value(of: Value | float) -> Value:
    return of if isinstance(of, Value) else Value(of)


def _place(of: Value) -> int:
    """The power of ten of the last digit shown."""
    low, high = of.low, of.high
    top = max(abs(v) for v in (of.value, low, high) if v is not None)
    if not math.isfinite(top) or top == 0:
        return 0
    first = math.floor(math.log10(top))
    if low is None or high is None:
        return first - _DIGITS_WITHOUT_INTERVAL + 1
    half = (high - low) / 2
    finest = first - _DIGITS + 1
    if half <= 0 or not math.isfinite(half):
        return finest
    place = math.floor(math.log10(half))
    second = half < _SECOND_DIGIT_BELOW * 10.0**place and first - place < 2
    return max(finest, place - second)


def _fixed(value: float, place: int) -> str:
    rounded = round(value, -place)
    text = f"{rounded:,.{max(0, -place)}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)
