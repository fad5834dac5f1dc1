"""The sentence of each reason: a code of ``results.Reason`` with its values.

A module of this folder holds the sentences of one package's codes, as templates. ``{name}`` stands for a value of the
reason, with a format of Python's or of ``words.formats`` behind a colon. ``{also}`` stands for the reasons that hold
too; without it they follow the sentence.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping

from overhead.results.reason import Reason, Why
from overhead.words.formats import Formatter, joined, names_others


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
    others = [sentence(one) for one in reason.also]
    template = templates().get(reason.code)
    if template is None:
        return joined([_as_code(reason), *others])
    try:
        own = Formatter().vformat(template, (), {**reason.values, "also": others})
    except (KeyError, TypeError, ValueError):  # a file of another version, or of another's hand
        return joined([_as_code(reason), *others])
    return own if names_others(template) else joined([own, *others])


def _as_code(reason: Reason) -> str:
    return str(Reason(reason.code, reason.values))
