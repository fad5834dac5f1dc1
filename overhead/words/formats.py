"""How a sentence shows a value: ``{ns:micro}``, ``{share:percent}``, ``{steps:count step}`` in a template."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any

from overhead.reading.format import count, factor, micro_of, percent, plain

_SECONDS_FROM_NS = 0.9995e9
"""From so many ns on a length is said in seconds, rounded to three digits."""


def length(ns: float) -> str:
    """A length of time with its unit, to three digits: ``12.3 ms``, ``4.5 s``."""
    return f"{ns / 1e9:.3g} s" if ns >= _SECONDS_FROM_NS else f"{ns / 1e6:.3g} ms"


def _micro(value: Any, more: str) -> str:
    return micro_of(value)


def _percent(value: Any, more: str) -> str:
    return percent(value)


def _times(value: Any, more: str) -> str:
    return factor(value)


def _length(value: Any, more: str) -> str:
    return length(value)


def _count(value: Any, more: str) -> str:
    return count(value, more)


def _plain(value: Any, more: str) -> str:
    return plain(str(value), int(more))


FORMATS: Mapping[str, Callable[[Any, str], str]] = {
    "micro": _micro,
    "percent": _percent,
    "times": _times,
    "length": _length,
    "count": _count,
    "plain": _plain,
}
"""By the first word of a format: the text of a value and of what follows this word. Others are Python's own.

``micro``: ns as µs, without unit. ``percent``: of a share. ``times``: a ratio. ``length``: ns with a unit. ``count
NOUN``: a number with its noun. ``plain N``: a name from outside, in one line of at most N characters.
"""


class Formatter(string.Formatter):
    """Fills a template."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """The text of one value."""
        name, _, more = format_spec.partition(" ")
        if name in FORMATS:
            return FORMATS[name](value, more)
        found: str = super().format_field(value, format_spec)
        return found
