"""Names from files as one line of text."""

from __future__ import annotations

import unicodedata


def plain(text: str, limit: int = 200) -> str:
    """One line without control, format or private characters, cut at ``limit``: safe for terminals
    and drawings.
    """
    # ``_printable``: white space as a space, and other unsafe characters as nothing.
    if not text.isprintable():
        text = "".join(_printable(character) for character in text)
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"


def _printable(character: str) -> str:
    """The character; a space for white space, and '' for a control, format or private character."""
    if character.isspace():
        return " "
    is_control = unicodedata.category(character).startswith("C")
    return "" if is_control else character
