"""How a sentence shows a value: ``{ns:micro}``, ``{share:percent}``, ``{steps:count step}`` in a
template.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overhead.extras import install_command
from overhead.reading.plain_text import plain
from overhead.results import Value
from overhead.words.format import (
    MICRO,
    count,
    factor,
    factor_spread,
    micro_of,
    number,
    percent,
    percent_spread,
    positive_ends_text,
    positive_spread,
)
from overhead.words.names import CALLER_WORDS

_SECONDS_FROM_NS = 0.9995e9
"""A length of this many ns or more is said in seconds, rounded to three digits."""
_MILLI_TIME_FROM_NS, _SECOND_TIME_FROM_NS = 1e7, 1e10
"""A ``time`` of this many ns or more is said in ms, and in s. 9,999 is the longest number that is
read at a glance. Chosen, not measured.
"""
_SMALL_IN_UNIT = 0.1
"""Below this a time has a unit of its own. Chosen, not measured: 0.011 ms beside 105 ms is harder
to read than 11 µs.
"""
_MOST_TIMES = 1000.0
"""A larger ratio says no more than that."""


class _TimeOfSentence(float):
    """A time in ns that knows the longest time of its sentence: all have one unit."""

    longest: float


_MICROSECONDS_BELOW_NS = 1e5
"""Lengths below 0.1 ms are said in µs."""


def length(ns: float) -> str:
    """A length of time with its unit, to three digits: ``12.3 ms``, ``4.5 s``, ``63.1 µs``."""
    if ns >= _SECONDS_FROM_NS:
        return f"{ns / 1e9:.3g} s"
    if 0 < ns < _MICROSECONDS_BELOW_NS:
        return f"{ns / 1e3:.3g} {MICRO}"
    return f"{ns / 1e6:.3g} ms"


def micro_interval(time: Value) -> str:
    """The interval of a time in ns, in µs without unit: ``4 to 66``, or ``at most 66`` where it
    reaches zero, as no time is below; '' where it says nothing.
    """
    if not time.bounded or time.ceiling <= 0:
        return ""
    return positive_ends_text(time / 1e3)


def _as_value(value: Any) -> Value:
    return value if isinstance(value, Value) else Value(value)


def _micro(value: Any, more: str) -> str:
    return micro_of(value)


def _micro_spread(value: Any, more: str) -> str:
    """A time with its interval, or both of two speeds, which ``Formatter`` gives as a tuple."""
    if isinstance(value, tuple):
        return " or ".join(number(speed / 1e3) for speed in value)
    if isinstance(value, Value):
        return positive_spread(value / 1e3)
    return number(value / 1e3)


def _micro_interval(value: Any, more: str) -> str:
    interval = micro_interval(value) if isinstance(value, Value) else ""
    return f" ({interval} {MICRO})" if interval else ""


def _percent(value: Any, more: str) -> str:
    return percent(value)


def _four_digits(value: Any, more: str) -> str:
    """A number with four digits, and never with an exponent: ``0.9838``, ``-147,200``."""
    return f"{float(f'{value:.4g}'):,.10g}"


def _factor(value: Any, more: str) -> str:
    return factor(value)


def _factor_or_many(value: Any, more: str) -> str:
    if value > _MOST_TIMES:
        return "over 1,000×"
    return factor(value) if value else "many times"


def _time(value: Any, more: str) -> str:
    """A time with its unit, which is the one of the longest time of the sentence: ``84.5 ms``."""
    ns = float(value)
    longest = getattr(value, "longest", ns)
    unit_ns, unit = _unit_of(longest)
    if ns < _SMALL_IN_UNIT * unit_ns:
        unit_ns, unit = _unit_of(ns)
    if ns == 0:
        return f"0 {unit}"
    # As ``micro_of``: three digits, and whole numbers from 1,000 on.
    in_thousandths = 1e3 * ns / unit_ns
    return f"{micro_of(in_thousandths)} {unit}"


def _unit_of(ns: float) -> tuple[float, str]:
    """The unit for a time of so many ns: its ns, and its name."""
    if ns >= _SECOND_TIME_FROM_NS:
        return 1e9, "s"
    if ns >= _MILLI_TIME_FROM_NS:
        return 1e6, "ms"
    return 1e3, MICRO


def _share(value: Any, more: str) -> str:
    """A share in per cent that is 100 % only where it is all, and 0 only where it is none:
    ``99.97 %``.
    """
    if 0 < value < 0.001:
        return "under 0.1 %"
    if not 0.995 <= value < 1:
        return percent(value)
    if value >= 0.9999:
        return "over 99.99 %"
    # Two digits behind the last 9.
    return f"{100 * value:.2f} %"


def _factor_spread(value: Any, more: str) -> str:
    return factor_spread(_as_value(value))


def _percent_spread(value: Any, more: str) -> str:
    return percent_spread(_as_value(value))


def _spread(value: Any, more: str) -> str:
    return positive_spread(_as_value(value))


def _length(value: Any, more: str) -> str:
    return length(value)


def _count(value: Any, more: str) -> str:
    """``more``: the noun, or the noun and its plural with a slash between."""
    noun, _, plural = more.partition("/")
    if plural and value != 1:
        return f"{value:,} {plural}"
    return count(value, noun)


def _verb(value: Any, more: str) -> str:
    return "is" if value == 1 else "are"


def _wait(value: Any, more: str) -> str:
    return "waits" if value == 1 else "wait"


def _in_processes(value: Any, more: str) -> str:
    return f", in {value} processes" if value > 1 else ""


def _plain(value: Any, more: str) -> str:
    return plain(str(value), int(more))


def _short(value: Any, more: str) -> str:
    return plain(str(value), 60)


def _and_more(value: Any, more: str) -> str:
    return f"; and {value:,} more" if value else ""


def _at(value: Any, more: str) -> str:
    return f" at {value}" if value else ""


def _more(value: Any, more: str) -> str:
    return f"; {value}" if value else ""


def _capital(value: Any, more: str) -> str:
    return f"{value[:1].upper()}{value[1:]}"


def _bound(value: Any, more: str) -> str:
    return _BOUNDS[value]


def _install(value: Any, more: str) -> str:
    return install_command(*value.split(","))


def _called(value: Any, more: str) -> str:
    return CALLER_WORDS.get(value, str(value))


def _told_by(value: Any, more: str) -> str:
    return "reference loop" if value == "canary" else str(value)


_BOUNDS = {
    "host": "host-bound",
    "device": "device-bound",
    "synchronisation": "bound by synchronisation",
    "ranks": "bound by other ranks",
    "mixed": "mixed",
    "unclear": "unclear",
}
VALUE_FORMATS: Mapping[str, Callable[[Any, str], str]] = {
    "micro": _micro,
    "micro-spread": _micro_spread,
    "micro-interval": _micro_interval,
    "percent": _percent,
    "percent-spread": _percent_spread,
    "spread": _spread,
    "4-digits": _four_digits,
    "factor": _factor,
    "factor-or-many": _factor_or_many,
    "factor-spread": _factor_spread,
    "length": _length,
    "time": _time,
    "share": _share,
    "count": _count,
    "verb": _verb,
    "wait": _wait,
    "in-processes": _in_processes,
    "plain": _plain,
    "short": _short,
    "bound": _bound,
    "called": _called,
    "told-by": _told_by,
    "install": _install,
    "and-more": _and_more,
    "at": _at,
    "more": _more,
    "capital": _capital,
}
"""By the first word of a format: the text of a value and of what follows this word. Others are
Python's own.

``micro``: ns as µs, without unit; ``micro-spread``: with its interval; ``micro-interval``: that
alone with its unit, in brackets. ``percent``: of a share; ``percent-spread``: with its interval.
``spread``: a number with its interval; ``4-digits``: one without. ``factor``: a ratio;
``factor-or-many``: 0 stands for one that is too large; ``factor-spread``: with its interval.
``length``: ns with a unit; ``time``: the same, in one unit for all times of a sentence.
``share``: a share in per cent that is 100 % only where it is all. ``count NOUN``, ``count
NOUN/PLURAL``: a number with its noun. ``verb``: is or are, for so many; ``wait``: waits or wait.
``in-processes``: nothing for one process. ``plain N``, ``short``: a name from outside in one line,
of at most N or 60 characters. ``and-more``: how many names are left out. ``at``: a line, if it is
known. ``more``: what follows a semicolon, if there is anything. ``capital``: with a capital letter.
``bound``: what bounds a step. ``called``: who makes the calls. ``told-by``: what tells two speeds
apart. ``install``: the command for extras with commas between.
"""


def _longest_time(values: Mapping[str, Any]) -> float:
    """The longest of the times in ns among the values of a reason."""
    times = [
        value
        for name, value in values.items()
        if name.endswith("_ns") and isinstance(value, int | float)
    ]
    return max(times, default=0.0)


class Formatter(string.Formatter):
    """Fills a template.

    Of the values ``ns``, ``ns_low`` and ``ns_high`` it makes one value with its interval, and of
    ``ns`` and ``ns_other`` a time with two speeds.
    """

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a field of a template. Other values can belong to it: of ``cost`` the ends
        of its interval are ``cost_low`` and ``cost_high``, and ``cost_other`` is a second speed.
        """
        value = super().get_value(key, args, kwargs)  # as Python's ``format`` finds it
        if f"{key}_other" in kwargs:
            return (value, kwargs[f"{key}_other"])  # as "3.7 or 4.5" in the text
        low = kwargs.get(f"{key}_low")
        high = kwargs.get(f"{key}_high")
        if low is not None or high is not None:
            return Value(value, low, high)
        if isinstance(value, int | float) and str(key).endswith("_ns"):
            of_sentence = _TimeOfSentence(value)
            of_sentence.longest = _longest_time(kwargs)
            return of_sentence
        return value

    def format_field(self, value: Any, format_spec: str) -> str:
        """The text of one value, by what follows the colon in its field: ``{n:count step}``. That
        is a format of ``VALUE_FORMATS``, such as ``micro`` for ns in µs, or one of Python's own.
        """
        # "count step": the name of a format, and what follows it.
        name, _, more = format_spec.partition(" ")
        if name in VALUE_FORMATS:
            return VALUE_FORMATS[name](value, more)
        found: str = super().format_field(value, format_spec)
        return found
