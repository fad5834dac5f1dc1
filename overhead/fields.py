"""Check the values that a stack hands over, field by field. A NumPy scalar becomes a plain Python
value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

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
    """A value that a stack gave (a library that is measured, such as PyTorch), if it is of the type
    ``kind``; a NumPy scalar as the plain value.

    Raises ``BadValue``: one line that names the field ``where``, the value, and what is allowed.
    A file of results could not hold a number that is not finite, or an integer of over 64 bits.
    """
    # ``convert`` raises where the type does not fit. ``_plain``: of a NumPy scalar the value of
    # Python.
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
    """The mapping that a stack (a library that is measured) gave as the field ``where``, as a dict
    from text to the type ``kind``. Raises ``BadValue`` for another type, and for the first wrong
    key or value.
    """
    if not isinstance(values, Mapping):
        raise BadValue(f"{where} is {_short(values)}; it must be a dict")
    plain = {}
    for key, value in values.items():
        plain_key = checked(f"a key of {where}", key, str)
        plain[plain_key] = checked(f"{where}[{key!r}]", value, kind)
    return plain


def check_struct(made: msgspec.Struct) -> None:
    """Check the type of every field of a struct, and replace NumPy scalars by plain values; called
    from its ``__post_init__``, because msgspec checks only what it decodes. Raises ``BadValue``.
    """
    for field in _fields_of(type(made)):
        given = getattr(made, field.name)
        where = f"{type(made).__name__}.{field.name}"
        # A dict is checked value by value; then the whole field.
        value = given
        if field.value_kind is not None:
            value = checked_mapping(where, value, field.value_kind)
        value = checked(where, value, field.kind)
        if value is not given:
            msgspec.structs.force_setattr(made, field.name, value)  # the struct may be frozen


class _Field(NamedTuple):
    """A field of a struct. ``value_kind``: the type of its values if it is a dict, else None."""

    name: str
    kind: Any
    value_kind: Any


@functools.cache
def _fields_of(cls: type[msgspec.Struct]) -> list[_Field]:
    """The fields of a struct, read once for each class: every figure of a run is checked."""
    fields = []
    for field in msgspec.structs.fields(cls):
        kind = field.type
        # Of ``Annotated[dict[str, int], ...]`` the type itself, which stands first. Only
        # ``Annotated`` has metadata.
        bare = get_args(kind)[0] if hasattr(kind, "__metadata__") else kind
        value_kind = get_args(bare)[1] if get_origin(bare) is dict else None
        fields.append(_Field(field.name, kind, value_kind))
    return fields


def _plain(value: Any) -> Any:
    """A NumPy scalar as the plain value; every other value unchanged."""
    if type(value) in (str, int, float, bool):
        return value
    is_scalar_of_numpy = hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    return value.item() if is_scalar_of_numpy else value


def _allowed(kind: Any, error: Exception) -> str:
    """What the type allows, in words: ``it must be an integer, or text``. From the message of
    msgspec's ``error``, such as "Expected `int | str`, got `float`".
    """
    # A ``Literal`` names all values that are allowed.
    if get_origin(kind) is Literal:
        return f"allowed: {', '.join(get_args(kind))}"
    # The words of msgspec before what it got: the type, in the names of Python.
    words = str(error).partition(", got ")[0].removeprefix("Expected ")
    for name, word in _WORDS.items():
        words = words.replace(f"`{name}`", word)
        # Of a type such as ``int | str``: "an integer, or text".
        words = words.replace(f"{name} |", f"{word},")
        words = words.replace(f"| {name}", f"or {word}")
    without_quotes = words.replace("`", "")
    return f"it must be {without_quotes}"


def _short(value: Any) -> str:
    """The value in one line; of another type than text or a number, also the type's name."""
    text = " ".join(repr(value).split())
    if len(text) > _MOST_TEXT:
        text = f"{text[: _MOST_TEXT - 3]}..."
    if isinstance(value, str | int | float | None):
        return text
    return f"{text} ({type(value).__name__})"
