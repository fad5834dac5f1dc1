"""Tables in GitHub-flavoured Markdown, safe for text from files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def escaped(text: str) -> str:
    """The text with every character escaped that has a meaning in Markdown or HTML."""
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$!@" else "&amp;" if c == "&" else c for c in text)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The table's lines, every cell escaped."""
    rule = "|" + " --- |" * len(headings)
    return [_line(headings), rule, *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(escaped, cells)) + " |"
