"""Check the values that a stack hands over, field by field. A NumPy scalar becomes a plain Python
value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec

from overhead.errors import BadValue

_MOST_TEXT = 80
_LARGEST_INT = 2**63
_WORDS = {
    "bool": "True or False",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "array": "a list",
}


def is_utf8(text: str) -> bool:
    """Whether a file can hold the text: bytes of the command line or of a file name need not be
    UTF-8.
    """
    return text == text.encode(errors="ignore").decode()


def checked(where: str, value: Any, kind: Any) -> Any:
    """The value as the type ``kind``; a NumPy scalar as the plain value.

    Raises ``BadValue``: one line that names the field ``where``, the value, and what is allowed.
    """
    value = _plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise BadValue(f"{where} is {value}; it must be finite")
    if isinstance(value, int) and abs(value) >= _LARGEST_INT:
        raise BadValue(f"{where} is {value}; it must fit into 64 bits")
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise BadValue(f"{where} is {_short(value)}; {_allowed(kind, error)}") from None


def checked_mapping(where: str, values: Any, kind: Any) -> dict[str, Any]:
    """The mapping as a dict of text to ``kind``, each value ``checked``. Raises ``BadValue``."""
    if not isinstance(values, Mapping):
        raise BadValue(f"{where} is {_short(values)}; it must be a dict")
    return {
        checked(f"a key of {where}", key, str): checked(f"{where}[{key!r}]", value, kind)
        for key, value in values.items()
    }


def check_struct(made: msgspec.Struct) -> None:
    """Check every field of a struct; called from its ``__post_init__``. Raises ``BadValue``."""
    for name, kind, value_kind in _fields_of(type(made)):
        value = getattr(made, name)
        where = f"{type(made).__name__}.{name}"
        good = checked_mapping(where, value, value_kind) if value_kind else value
        good = checked(where, good, kind)
        if good is not value:
            msgspec.structs.force_setattr(made, name, good)


@functools.cache
def _fields_of(cls: type[msgspec.Struct]) -> list[tuple[str, Any, Any]]:
    """For each field its name, its type, and the type of its values if it is a dict."""
    found = []
    for field in msgspec.structs.fields(cls):
        bare = get_args(field.type)[0] if hasattr(field.type, "__metadata__") else field.type
        found.append(
            (field.name, field.type, get_args(bare)[1] if get_origin(bare) is dict else None)
        )
    return found


def _plain(value: Any) -> Any:
    """A NumPy scalar as the plain value; every other value unchanged."""
    if (
        type(value) in (str, int, float, bool)
        or not hasattr(value, "dtype")
        or getattr(value, "shape", None) != ()
    ):
        return value
    return value.item()


def _allowed(kind: Any, error: Exception) -> str:
    """What the type allows, in words."""
    if get_origin(kind) is Literal:
        return f"allowed: {', '.join(get_args(kind))}"
    words = str(error).partition(", got ")[0].removeprefix("Expected ")
    for name, word in _WORDS.items():
        words = (
            words.replace(f"`{name}`", word)
            .replace(f"{name} |", f"{word},")
            .replace(f"| {name}", f"or {word}")
        )
    return f"it must be {words.replace('`', '')}"


def _short(value: Any) -> str:
    """The value in one line; of another type than text or a number, also the type's name."""
    text = " ".join(repr(value).split())
    text = text if len(text) <= _MOST_TEXT else f"{text[: _MOST_TEXT - 3]}..."
    return (
        text if isinstance(value, str | int | float | None) else f"{text} ({type(value).__name__})"
    )
