"""Blocks as GitHub-flavoured Markdown, safe for text from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from overhead.blocks.parts import (
    Cell,
    GroupedAdvice,
    Heading,
    Listing,
    Part,
    StatusLine,
    Table,
    Terms,
    Text,
    cell_text,
    without_pictures,
)
from overhead.reading.plain_text import plain

_ESCAPED = {sign: f"\\{sign}" for sign in "\\`*_{}[]<>#|~$!@"}
_ESCAPED["&"] = "&amp;"
"""What stands for a character that has a meaning in Markdown or HTML."""


def markdown(blocks: Iterable[Part]) -> str:
    """The blocks as Markdown, every text escaped, with an empty line between two."""
    texts: list[str] = []
    for block in without_pictures(blocks):
        texts += _texts(block)
    return "\n\n".join(texts) + "\n"


def escaped(text: str) -> str:
    """The text on one line, with every character escaped that has a meaning in Markdown or HTML."""
    line = plain(text, 4000)
    return "".join(_ESCAPED.get(character, character) for character in line)


def _texts(block: Part) -> Iterator[str]:
    """The Markdown of a block, as texts between which an empty line is put. A ``Listing`` has
    numbered items with a title each, ``Terms`` has words with their meanings, and a ``StatusLine``
    is a word such as ``failed`` with a sentence. ``escaped``: so that Markdown shows the text as it
    is.
    """
    match block:
        case Heading():
            yield f"## {escaped(block.text)}"
        case Text():
            yield from map(escaped, block.paragraphs)
        case Table():
            yield from _table(block)
        case StatusLine():
            yield "\n".join(_status(block))
        case Listing():
            yield _listing(block.items)
        case GroupedAdvice():
            for group in block.groups:
                yield f"**{escaped(group.reader)}**"
                found = (*group.first, *group.more)
                yield _listing([(advice.title, advice.detail) for advice in found])
        case Terms():
            terms = [f"- **{escaped(term.name)}**: {escaped(term.meaning)}" for term in block.terms]
            yield "\n".join(terms)


def _listing(items: Sequence[tuple[str, str]]) -> str:
    """A numbered list: of each item its title, which stands out, and its details."""
    lines = []
    for number, (title, detail) in enumerate(items, 1):
        lines.append(f"{number}. **{escaped(title)}** {escaped(detail)}".rstrip())
    return "\n".join(lines)


def _table(table: Table) -> Iterator[str]:
    """A table in Markdown as texts: its caption, its rows, and below it what its columns mean."""
    if table.caption:
        yield f"**{escaped(table.caption)}**"
    # The line below the heading, by which Markdown knows a table.
    rule = "|" + " --- |" * len(table.columns)
    lines = [_row(table.columns), rule]
    for row in table.rows:
        lines.append(_row(row))
    yield "\n".join(lines)
    for _, meaning in sorted(table.meanings.items()):
        yield escaped(meaning)


def _row(cells: Sequence[str | Cell]) -> str:
    texts = [escaped(cell_text(cell)) for cell in cells]
    return f"| {' | '.join(texts)} |"


def _status(line: StatusLine | str, indent: int = 0) -> Iterator[str]:
    """The lines of a status in a list: the status with its sentence, and its details, which may
    have details themselves, as lists inside of it. ``indent``: spaces before the line.
    """
    margin = " " * indent
    if isinstance(line, str):
        yield f"{margin}- {escaped(line)}"
        return
    item = f"**{escaped(line.head)}** {escaped(line.text)}"
    yield f"{margin}- {item.rstrip()}"
    for detail in line.details:
        yield from _status(detail, indent + 2)
