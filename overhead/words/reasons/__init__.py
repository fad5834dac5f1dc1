"""The sentence of each reason: a code of ``results.Reason`` with its values.

A module of this folder holds the sentences of one package's codes, as templates. ``{name}`` stands for a value of the
reason, with a format of Python's behind a colon.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from overhead.results.reason import Reason, Why
from overhead.words.numbers import Numbers

_NUMBERS = Numbers()


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
    template = templates().get(reason.code)
    try:
        values = {name: sentence(v) if isinstance(v, Reason) else v for name, v in reason.values.items()}
        own = _NUMBERS.format(template, **values) if template is not None else _as_code(reason)
    except (KeyError, ValueError):  # a file of another version, or of another's hand
        own = _as_code(reason)
    return "; ".join([own, *(sentence(one) for one in reason.also)])


def _as_code(reason: Reason) -> str:
    return str(Reason(reason.code, reason.values))
