"""Blocks as GitHub-flavoured Markdown, safe for text from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from overhead.blocks.parts import (
    Cell,
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


def markdown(blocks: Iterable[Part]) -> str:
    """The blocks as Markdown, every text escaped, with an empty line between two."""
    return "\n\n".join(text for block in without_pictures(blocks) for text in _texts(block)) + "\n"


def escaped(text: str) -> str:
    """The text on one line, with every character escaped that has a meaning in Markdown or HTML."""
    line = plain(text, 4000)
    return "".join(
        f"\\{c}" if c in "\\`*_{}[]<>#|~$!@" else "&amp;" if c == "&" else c for c in line
    )


def _texts(block: Part) -> Iterator[str]:
    match block:
        case Heading():
            yield f"## {escaped(block.text)}"
        case Text():
            yield from map(escaped, block.paragraphs)
        case Table():
            if block.caption:
                yield f"**{escaped(block.caption)}**"
            rule = "|" + " --- |" * len(block.columns)
            yield "\n".join([_row(block.columns), rule, *map(_row, block.rows)])
            yield from (escaped(meaning) for _, meaning in sorted(block.meanings.items()))
        case StatusLine():
            yield "\n".join(_status(block))
        case Listing():
            yield "\n".join(
                f"{n}. **{escaped(title)}** {escaped(said)}"
                for n, (title, said) in enumerate(block.items, 1)
            )
        case Terms():
            yield "\n".join(
                f"- **{escaped(term.name)}**: {escaped(term.meaning)}" for term in block.terms
            )


def _row(cells: Sequence[str | Cell]) -> str:
    return "| " + " | ".join(escaped(cell_text(cell)) for cell in cells) + " |"


def _status(line: StatusLine | str, indent: int = 0) -> Iterator[str]:
    said = (
        escaped(line)
        if isinstance(line, str)
        else f"**{escaped(line.head)}** {escaped(line.text)}".rstrip()
    )
    yield " " * indent + f"- {said}"
    for detail in () if isinstance(line, str) else line.details:
        yield from _status(detail, indent + 2)
