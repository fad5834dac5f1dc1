"""The sentence of each reason: a code of ``results.Reason`` with its values.

A module of this folder holds the sentences of one package's codes, as templates. ``{name}`` stands for a value of the
reason, with a format behind a colon: one of Python's, or one of ``FORMATS``. Where the values have ``name_low`` and
``name_high`` too, ``{name}`` has an interval. A value that is a reason itself stands there as its sentence. ``{also}``
stands for the sentences of the further reasons, which come behind the others where a template does not name them.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overhead.errors import say_reasons_by
from overhead.reading.format import (
    count,
    factor,
    factor_spread,
    micro_of,
    number,
    percent,
    plain,
    positive_spread,
)
from overhead.results import Reason, Value, Why

_ALSO = "also"
"""What a template calls the sentences of the further reasons."""


@functools.cache
def templates() -> Mapping[str, str]:
    """The template of every code."""
    found = {"quoted": "{text}"}
    for module in pkgutil.iter_modules(__path__):
        own: dict[str, str] = importlib.import_module(f"{__name__}.{module.name}").TEMPLATES
        assert found.keys().isdisjoint(own), f"{module.name}: a code that another module has too"
        found |= own
    return found


def sentence(reason: Why) -> str:
    """The reason in words; a text from outside as it is. A code that is not known here is shown with its values."""
    if isinstance(reason, str):
        return reason
    also = [sentence(one) for one in reason.also]
    template = templates().get(reason.code, "")
    if not template:
        return "; ".join([_as_code(reason), *also])
    inside = any(name == _ALSO for _, name, _, _ in string.Formatter().parse(template))
    values = {name: sentence(value) if isinstance(value, Reason) else value for name, value in reason.values.items()}
    if inside:
        values[_ALSO] = "; ".join(also)
    try:
        own = _FORMATTER.format(template, **values)
    except (ArithmeticError, KeyError, TypeError, ValueError):  # a file of another version, or of another's hand
        return "; ".join([_as_code(reason), *also])
    return own if inside else "; ".join([own, *also])


say_reasons_by(sentence)


def _as_code(reason: Reason) -> str:
    return str(Reason(reason.code, reason.values))


def _at(line: str) -> str:
    return f" at {line}" if line else ""


def _more(text: str) -> str:
    return f"; {text}" if text else ""


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _micro_spread(time: Value | float) -> str:
    """A time that cannot be negative, in µs with its interval, without unit."""
    return positive_spread(time / 1e3) if isinstance(time, Value) else number(time / 1e3)


def _verb(subjects: float) -> str:
    return "is" if subjects == 1 else "are"


def _short(text: str) -> str:
    return plain(text, 60)


def _length(ns: float) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= _SECONDS_FROM_NS else f"{ns / 1e6:.3g} ms"


def _bound(kind: str) -> str:
    return _BOUNDS[kind]


_BOUNDS = {
    "host": "host-bound",
    "device": "device-bound",
    "synchronisation": "bound by synchronisation",
    "mixed": "mixed",
    "unclear": "unclear",
}
_SECONDS_FROM_NS = 0.9995e9
"""From so many ns on a length is said in seconds, rounded to three digits."""
FORMATS: Mapping[str, Callable[[Any], str]] = {
    "micro": micro_of,
    "micro-spread": _micro_spread,
    "factor": factor,
    "factor-spread": factor_spread,
    "percent": percent,
    "at": _at,
    "more": _more,
    "capital": _capital,
    "verb": _verb,
    "short": _short,
    "length": _length,
    "bound": _bound,
}
"""What may stand behind the colon, besides Python's formats, ``count NOUN`` or ``count NOUN/PLURAL``, and ``plain N``.

``micro``: nanoseconds in µs without unit. ``at``: a line, if there is one. ``more``: what follows a semicolon, if there
is anything. ``verb``: is or are. ``plain N``: a name in at most N characters; ``short``: in 60. ``length``: nanoseconds
with a unit. ``bound``: what bounds a step.
"""


class _Formatter(string.Formatter):
    """Formats the values of a reason."""

    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of this name, with its interval where there is one."""
        value = super().get_value(key, args, kwargs)
        low, high = (kwargs.get(f"{key}_{end}") for end in ("low", "high"))
        return value if low is None and high is None else Value(value, low, high)

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value as text."""
        how, _, noun = format_spec.partition(" ")
        if how == "count":
            one, _, many = noun.partition("/")
            return f"{value:,} {many}" if many and value != 1 else count(value, one)
        if how == "plain":
            return plain(value, int(noun))
        if format_spec in FORMATS:
            return FORMATS[format_spec](value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()
