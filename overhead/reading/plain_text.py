"""Names from files as one line of text."""

from __future__ import annotations

import unicodedata


def plain(text: str, limit: int = 200) -> str:
    """One line without control, format or private characters, cut at ``limit``: safe for terminals and drawings."""
    if not text.isprintable():
        text = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"
