"""Figures as text: as many digits as the interval allows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

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
_NOTHING_MICRO = 1e-4
"""A time of less than 0.1 ns is a rest of rounding."""
_FOUR_DIGITS_FROM = 999.5
"""A number from here on has four digits or more, all of which are shown."""
_POSITIVE = frozenset({
    "complete", "issue", "host", "device_busy", "device_span", "met", "legacy", "naive",
    "naive_idle", "empty_wait", "first", "prepare",
})  # fmt: skip
"""Times that cannot be negative. An intercept can, as can a difference of two times."""


def number(of: Value | float) -> str:
    """A value rounded to one or two digits of its interval's half-width; to two digits without an
    interval. What is surely above zero keeps one digit, however wide the interval.
    """
    of = _as_value(of)
    place = _place(of)
    if of.low is not None and of.low > 0:
        place = _place_with_a_digit(of.value, place)
    return printed(_fixed(of.value, place), of)


def held_range(figure: Figure | None) -> str:
    """For which n, the number of launches in a row, a cost was seen to hold: ``4,430 to 546,260``,
    or the largest n alone where it holds from one launch on; '' where that was not looked at.
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
    low, high = of.value * (1 - share), of.value * (1 + share)
    return Value(of.value, low, high, origin=formed("point", of.origin))


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
    """The parts of ``spread``."""
    if of.low is None or of.high is None:
        return _Spread(number(of.value), "", of)
    if of.low > 0:
        return _positive_spread(of)
    place = _place(of)
    interval = f"{_fixed(of.low, place)} to {_fixed(of.high, place)}"
    return _Spread(_fixed(of.value, place), interval, of)


def positive_spread(of: Value) -> str:
    """``value (low to high)`` of what cannot be negative, such as a time, a rate or a ratio.

    All have the digits that the interval allows. A lower end that these digits show as zero is not
    shown: ``30 (at most 110)``. This is so for most intervals of two processes.
    """
    return _positive_spread(of).text()


def _positive_spread(of: Value) -> _Spread:
    """The value and its interval as text, of what cannot be negative: see ``positive_spread``."""
    if of.low is None or of.high is None:
        return _Spread(number(of.value), "", of)
    if of.value < 0 or of.high <= 0:
        # Not what the caller promised, so all of it is shown.
        place = _place(of)
        interval = f"{_fixed(of.low, place)} to {_fixed(of.high, place)}"
        return _Spread(_fixed(of.value, place), interval, of)
    # Below zero there is nothing, so the interval begins there.
    place = _place(Value(of.value, max(of.low, 0.0), of.high))
    # The value keeps a digit, also where its interval is many times as wide as the value.
    value = _fixed(of.value, _place_with_a_digit(of.value, place))
    return _Spread(value, _positive_ends(of.low, of.high, place), of)


def _positive_ends(low: float, high: float, place: int) -> str:
    """``low to high`` of what cannot be negative, rounded to this power of ten; ``at most high``
    where the lower end is then zero.
    """
    if round(low, -place) <= 0:
        return f"at most {_fixed(high, place)}"
    return f"{_fixed(low, place)} to {_fixed(high, place)}"


def between(low: float, high: float) -> str:
    """``low to high``, both with the digits that the difference allows; one number if they are the
    same.
    """
    if low == high:
        return number(low)
    # As if both were the interval of the value between them.
    place = _place(Value((low + high) / 2, low, high))
    return f"{_fixed(low, place)} to {_fixed(high, place)}"


def ends_text(of: Value) -> str:
    """``between`` the ends of the interval; of a value without one, the value twice."""
    low = of.value if of.low is None else of.low
    high = of.value if of.high is None else of.high
    return printed(between(low, high), of)


def positive_ends_text(of: Value) -> str:
    """The ends alone of what cannot be negative: ``15 to 480``, ``at most 110``; of a value without
    an interval, the value.
    """
    if of.low is None or of.high is None:
        return number(of)
    place = _place(Value(of.value, max(of.low, 0.0), of.high))
    return printed(_positive_ends(of.low, of.high, place), of)


def micro(figure: Figure) -> str:
    """A time in microseconds without interval and unit: ``3.74``; the figure's status where it has
    no value.
    """
    ns = figure.measured
    return number(ns / 1e3) if ns is not None else figure.status


def cost_text(record: Record) -> str:
    """The cost of a case in microseconds without its unit: ``3.74``, or ``3.7 or 4.5`` if processes
    measured two different speeds; '' without a cost.
    """
    figure = record.figure("complete")  # the cost of one more call with its work done
    if figure is None:
        return ""
    # ``two_speeds``: both values, or none of a figure with one. ``mode_of``: one as a value.
    speeds_us = [mode_of(figure, speed) / 1e3 for speed in two_speeds(figure)]
    return costs_text(speeds_us) if speeds_us else micro(figure)


def costs_text(costs_us: Sequence[Value]) -> str:
    """The costs of a mark in microseconds without their unit, with the digits that the intervals
    allow: one, or both of two speeds, ``3.7 or 4.5``.
    """
    return " or ".join(number(cost) for cost in costs_us)


def micro_spread(figure: Figure | None) -> str:
    """A time in microseconds with its interval, without unit; its status where it has no value; ''
    for None.
    """
    if figure is None:
        return ""
    ns = figure.measured
    if ns is None:
        return figure.status
    if figure.processes == 1 and ns.low == ns.high:  # the range of one process has no width
        ns = dataclasses.replace(ns, low=None, high=None)
    # The name tells whether such a figure can be negative.
    return _micro_spread(figure.name, ns).text()


def _micro_spread(name: str, ns: Value) -> _Spread:
    """A time in microseconds. ``name``: of its figure, which says whether it can be negative."""
    micros = ns / 1e3
    return _positive_spread(micros) if name in _POSITIVE else _spread(micros)


def time(figure: Figure) -> str:
    """A time with unit and interval, ``26.3 µs (25.9 to 26.7)``; the figure's status, such as
    ``failed``, where it has no value.
    """
    ns = figure.measured
    if ns is None:
        return figure.status
    return _micro_spread(figure.name, ns).text(f" {MICRO}")


def time_spread(ns: Value) -> str:
    """A value in ns, which may be below zero, with unit and interval: ``-3.1 µs (-4.0 to
    -2.2)``.
    """
    return _spread(ns / 1e3).text(f" {MICRO}")


def micro_of(ns: Value | float) -> str:
    """Nanoseconds as text in microseconds without unit, to three digits, ``3.74``; to whole ones
    from 1,000 on.
    """
    micros = _as_value(ns) / 1e3
    if abs(micros.value) < _NOTHING_MICRO:
        text = "0.00"
    elif micros.value < _FOUR_DIGITS_FROM:
        # The "#" keeps zeros at the end, which are digits, but leaves a point behind 123.
        text = f"{micros.value:#,.3g}".rstrip(".")
    else:
        text = f"{micros.value:,.0f}"
    # printed() returns the text, and notes of which value it is, for the check of a page's numbers.
    return printed(text, micros)


def unresolved(figure: Figure | None) -> str:
    """What a cell says in place of a time whose interval is not above zero: ``not resolved (-11 to
    35)`` (µs), or the status of a figure without a value.
    """
    if figure is None:
        return "not measured"
    ns = figure.measured
    if ns is None:
        return figure.status
    if ns.low is None or ns.high is None:
        return "not above zero"
    ends = between(ns.low / 1e3, ns.high / 1e3)
    return f"not resolved ({printed(ends, ns / 1e3)})"


def micro_or_why(figure: Figure) -> str:
    """``micro_spread`` of a figure above zero, else ``unresolved`` of it."""
    return micro_spread(figure) if resolved(figure) else unresolved(figure)


def percent(share: Value | float) -> str:
    """A share (0.46) in per cent (``46 %``), whole from 10 % up and with at most one decimal
    below.
    """
    return printed(f"{_percent_number(share)} %", _as_value(share) * 100)


def _percent_number(share: Value | float) -> str:
    """The number of ``percent``, without its sign."""
    share = _as_value(share)
    finest = 0 if abs(share.value) >= 0.1 else -1
    place = max(_place(share * 100), finest)
    return _fixed(100 * share.value, place)


def factor(times: Value | float) -> str:
    """A ratio with the multiplication sign, rounded as its interval allows, but with at least one
    significant digit, so that none is ``0×``.
    """
    times = _as_value(times)
    place = _place(times)  # the power of ten of the last digit shown
    # A wide interval may round all digits away; then the first one is shown all the same.
    if 0 < times.value < math.inf:
        place = min(place, _first_digit(times.value))
    return printed(_fixed(times.value, place) + TIMES, times)


def rounds_to_one(times: Value | float) -> bool:
    """Whether ``factor`` shows this ratio as 1."""
    times = _as_value(times)
    digits = -min(_place(times), 0)
    return times.value > 0 and round(times.value, digits) == 1


def factor_spread(times: Value | None) -> str:
    """A ratio with its interval: ``3× (2 to 4)``; '' for None."""
    return _positive_spread(times).text(TIMES) if times is not None else ""


def percent_spread(share: Value | None) -> str:
    """A share (0.46) in per cent with its interval: ``46 % (44 to 48)``, ``46 % (at most 48)``; ''
    for None.
    """
    if share is None:
        return ""
    # Only the upper end is known: the share may be as small as zero.
    if share.low is None and share.high is not None:
        return _positive_spread(dataclasses.replace(share, low=0.0) * 100).text(" %")
    return _spread(share * 100).text(" %")


def count(number_of: int, noun: str, origin: Origin | None = None) -> str:
    """A number with its noun: ``1 case``, ``1,200 cases``.

    ``origin``: what was counted, with which the check of the numbers of a page counts it again.
    """
    text = f"{number_of:,} {noun}"
    if number_of != 1:
        text += "s"
    if origin is None:
        return text
    return printed(text, Value(number_of, origin=origin))


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
    if len(words) <= 1:
        return "".join(words)
    *others, end = words
    return f"{', '.join(others)} {last} {end}"


def few(names: list[str], most: int = 3) -> str:
    """The first names, and how many more there are: ``a; b; c; and 2 more``."""
    shown = names[:most]
    left_out = len(names) - most
    if left_out > 0:
        shown = [*shown, f"and {left_out:,} more"]
    return "; ".join(shown)


def _as_value(of: Value | float) -> Value:
    return of if isinstance(of, Value) else Value(of)


def _place(of: Value) -> int:
    """Where to round a value: the power of ten of the last digit shown, 0 for ones, -1 for tenths.

    It is the first digit of the interval's half-width, or the second one where the half-width
    begins with a small digit, as the Particle Data Group rounds. Never more than four digits.
    """
    known = [end for end in (of.value, of.low, of.high) if end is not None]
    largest = max(abs(end) for end in known)
    if not math.isfinite(largest) or largest == 0:
        return 0
    first = math.floor(math.log10(largest))  # the power of ten of the first digit
    if of.low is None or of.high is None:
        return first - _DIGITS_WITHOUT_INTERVAL + 1

    finest = first - _DIGITS + 1  # the place of the fourth digit
    # An interval without width would allow any number of digits.
    half_width = (of.high - of.low) / 2
    if half_width <= 0 or not math.isfinite(half_width):
        return finest
    place = math.floor(math.log10(half_width))
    begins_low = half_width < _SECOND_DIGIT_BELOW * 10.0**place
    # The number has ``first - place + 1`` digits so far: here one or two.
    has_few_digits = first - place < 2
    if begins_low and has_few_digits:
        place -= 1
    return max(finest, place)


def _place_with_a_digit(value: float, place: int) -> int:
    """The power of ten to round to: ``place``, or that of the first digit of a value above zero
    which ``place`` would round to zero.
    """
    if 0 < value < math.inf and round(value, -place) == 0:
        return _first_digit(value)
    return place


def _first_digit(value: float) -> int:
    """The power of ten of the first digit of a number above zero."""
    return math.floor(math.log10(value))


def _fixed(value: float, place: int) -> str:
    """A number rounded to this power of ten, ``1,234`` for ones or ``−0.12`` for hundredths; what
    rounds to zero has no sign.
    """
    rounded = round(value, -place)
    decimals = max(0, -place)
    text = f"{rounded:,.{decimals}f}"
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS)
