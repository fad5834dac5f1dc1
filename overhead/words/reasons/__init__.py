"""The sentence of each reason: a code of ``results.Reason`` with its values.

A module of this folder holds the sentences of one package's codes, as templates. ``{name}`` stands for a value of the
reason, with a format of Python's behind a colon, and ``{0}`` for another reason inside it.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import string
from collections.abc import Mapping

from overhead.results.reason import Reason, Why


@functools.cache
def templates() -> Mapping[str, str]:
    """The template of every code."""
    found = {
        "quoted": "{text}",
        "raised": "{kind}: {0}",
        "raised-at": "{kind}: {0} ({where})",
        "with-mend": "{0} (to add it: {1})",
        "with-text": "{0}: {text}",
    }
    for module in pkgutil.iter_modules(__path__):
        own: dict[str, str] = importlib.import_module(f"{__name__}.{module.name}").TEMPLATES
        assert found.keys().isdisjoint(own), f"{module.name}: a code that another module has too"
        found |= own
    return found


def sentence(reason: Why) -> str:
    """The reason in words; a text from outside as it is. A code that is not known here is shown with its values."""
    if isinstance(reason, str):
        return reason
    parts = [sentence(one) for one in reason.also]
    template = templates().get(reason.code)
    try:
        own = template.format(*parts, **reason.values) if template is not None else _as_code(reason)
    except (IndexError, KeyError, ValueError):  # a file of another version, or of another's hand
        return "; ".join([_as_code(reason), *parts])
    inside = 0 if template is None else parts_in(template)
    return "; ".join([own, *parts[inside:]])


@functools.cache
def parts_in(template: str) -> int:
    """How many other reasons a sentence contains, which it names by their places: ``{0}``."""
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return max((int(name) + 1 for name in names if name.isdecimal()), default=0)


def _as_code(reason: Reason) -> str:
    return str(Reason(reason.code, reason.values))
