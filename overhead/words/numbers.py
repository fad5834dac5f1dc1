"""Numbers in the template of a sentence, as ``reading.format`` writes them."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from overhead.reading.format import MICRO, count, micro_of, percent, percent_spread, positive_spread
from overhead.results import Value


def _micro_spread(ns: Value) -> str:
    return f"{positive_spread(ns / 1e3)} {MICRO}"


def _micro(ns: Value) -> str:
    return f"{micro_of(ns.value)} {MICRO}"


def _percent(share: Value) -> str:
    return percent(share.value)


_FORMATS: Mapping[str, Callable[[Value], str]] = {
    "micro": _micro,
    "micro-spread": _micro_spread,
    "percent": _percent,
    "percent-spread": percent_spread,
    "spread": positive_spread,
}
"""Formats of a number that a template may name: ``{enqueue:micro-spread}``."""


class Numbers(string.Formatter):
    """Fills a template. The formats are those of Python, those in ``_FORMATS``, and ``count`` with a noun.

    ``{cases:count case}`` gives ``1 case`` and ``3 cases``. A value ``of`` with an interval has it in the values
    ``of_low`` and ``of_high``.
    """

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value with this name, as a ``Value`` if it has an interval."""
        found, used = super().get_field(field_name, args, kwargs)
        low, high = kwargs.get(f"{field_name}_low"), kwargs.get(f"{field_name}_high")
        if low is not None or high is not None:
            found = Value(found, low, high)
        return found, used

    def format_field(self, value: Any, format_spec: str) -> str:
        """The value in this format."""
        kind, _, noun = format_spec.partition(" ")
        if kind == "count":
            return count(value, noun)
        if write := _FORMATS.get(format_spec):
            return write(value if isinstance(value, Value) else Value(value))
        if isinstance(value, Value):
            value = value.value
        return str(super().format_field(value, format_spec))
