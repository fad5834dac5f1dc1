"""Statements in one notation, as source text for WGSL, CUDA C and Triton.

A statement is a line ``name = expression``. An expression has the operators that all three
languages share, numbers like ``0.5``, indices like ``3u``, and the functions below.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Literal

Language = Literal["wgsl", "cuda", "triton"]
DECLARE: dict[Language, str] = {"wgsl": "let", "cuda": "const float"}
"""How a statement declares a number with a fraction; Triton needs no declaration."""
_DECLARE_WHOLE: dict[Language, str] = {"wgsl": "let", "cuda": "const unsigned int"}
_FUNCTIONS: dict[str, dict[Language, str]] = {
    "sin": {"wgsl": "sin", "cuda": "sinf", "triton": "tl.sin"},
    "cos": {"wgsl": "cos", "cuda": "cosf", "triton": "tl.cos"},
    "tanh": {"wgsl": "tanh", "cuda": "tanhf"},
    "floor": {"wgsl": "floor", "cuda": "floorf", "triton": "tl.floor"},
    "min": {"wgsl": "min", "cuda": "fminf", "triton": "tl.minimum"},
    "max": {"wgsl": "max", "cuda": "fmaxf", "triton": "tl.maximum"},
    "rsqrt": {"wgsl": "inverseSqrt", "cuda": "rsqrtf", "triton": "tl.rsqrt"},
}
_CALL = re.compile(rf"\b({'|'.join(_FUNCTIONS)})\(")
_DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+")
_INDEX = re.compile(r"\b(\d+)u\b")


def statements(
    language: Language, text: str, changed: Collection[str] = (), *, whole: bool = False
) -> str:
    """Statements in a language, from lines ``name = expression`` in the notation of this module.

    ``changed``: names of variables that exist already and get new values. All other names are
    declared. ``whole``: numbers are unsigned integers of 32 bits, not fractions.
    """
    # The word before a new name, such as ``let``; none in Triton.
    declare = (_DECLARE_WHOLE if whole else DECLARE).get(language, "")
    lines = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, value = line.strip().split(" = ", 1)
        if name not in changed:
            name = f"{declare} {name}".strip()
        lines.append(_statement(language, name, value))
    return "\n".join(lines)


def _statement(language: Language, name: str, value: str) -> str:
    """One assignment in a language. ``name``: with its declaration, if it has one. ``value``: the
    expression in the notation of this module.
    """
    # Each function gets its name in the language: ``sin`` is ``sinf`` in CUDA C.
    value = _CALL.sub(lambda call: f"{_FUNCTIONS[call[1]][language]}(", value)
    # Triton is Python, in which an index has no ``u``.
    if language == "triton":
        without_u = _INDEX.sub(r"\1", value)
        return f"{name} = {without_u}"
    if language == "cuda":
        # Without the ``f`` CUDA C would compute in double precision.
        value = _DECIMAL.sub(r"\g<0>f", value)
    return f"{name} = {value};"
