"""Blocks in the terminal, each printed as it comes, and tables that fit its width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

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
from overhead.reading.format import listed, plain

_WIDTH_OFF_A_TERMINAL = 240
"""Characters per line in a file or a pipe, unless the variable COLUMNS gives a number."""
_GAP = 3
"""Characters that each column needs beside its text."""
_NARROWEST_TEXT = 16
"""A text column wraps at words down to this many characters."""
_COMFORTABLE_TEXT = 24
"""Optional columns are left out until each text column can have this many characters."""
_COLOURS = {
    "green": "faster ok opened reproduced verified",
    "yellow": "noted partial suspect warn warning",
    "red": "bad crashed error failed hung refuted slow slower",
}
_STYLES = {word: colour for colour, words in _COLOURS.items() for word in words.split()}


def show(blocks: Iterable[Part], console: Console | None = None) -> None:
    """Print the blocks to the console (by default on standard output) without control characters and folded blocks."""
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    console = console or Console(width=_WIDTH_OFF_A_TERMINAL if wide else None)
    after_text = False
    for block in without_pictures(blocks):
        if after_text and isinstance(block, Table) and block.caption:
            console.print()
        after_text = not _PRINTERS[type(block)](console, block)


def _heading(console: Console, block: Heading) -> None:
    console.print()
    _say(console, block.text, "bold")


def _text(console: Console, block: Text) -> None:
    for paragraph in () if block.folded else block.paragraphs:
        _say(console, paragraph, "dim" if block.quiet else "bold" if block.lead else "")


def _listing(console: Console, block: Listing) -> None:
    for number, (title, detail) in enumerate(block.items, 1):
        _say(console, f"{number}. {title}")
        _say(console, detail, "dim", indent=3)


def _terms(console: Console, block: Terms) -> None:
    for term in block.terms:
        _say(console, f"{term.name}: {term.meaning}")


def _any_table(console: Console, block: Table) -> bool:
    """Print a table that a page does not fold; returns whether nothing is said below it."""
    if block.prose:
        _records(console, block)
    return not block.prose and not block.folded and _table(console, block)


def _say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print a sentence. It wraps in a terminal only."""
    console.print(RichText(" " * indent + plain(text, 2000), style), soft_wrap=not console.is_terminal)


def _status(console: Console, line: StatusLine, indent: int = 0) -> None:
    word = RichText(" " * indent + plain(line.status), _style(line.status) or "bold")
    gap = " " if line.status.endswith(":") else "  "
    said = gap * bool(line.text) + plain(line.text, 2000)
    console.print(word + RichText(said), soft_wrap=not console.is_terminal)
    for detail in line.details:
        if isinstance(detail, StatusLine):
            _status(console, detail, indent + 4)
        else:
            _say(console, detail, "dim", indent + 2)


def _style(words: str) -> str:
    """The colour of a word that says how something stands; '' for others."""
    return _STYLES.get(words.partition(" ")[0], "")


def _row_texts(row: Sequence[str | Cell]) -> list[str]:
    return [plain(cell_text(cell), 2000) for cell in row]


def _records(console: Console, table: Table) -> None:
    """A table of sentences: its rows one below the other, each cell after the heading of its column."""
    for row in table.rows:
        first, *others = _row_texts(row)
        console.print()
        _say(console, first, "bold")
        for heading, text in zip(table.columns[1:], others, strict=True):
            if text:
                _say(console, f"{heading}: {text}", indent=2)


def _table(console: Console, table: Table) -> bool:
    """Print a table without what does not fit, and say what that is; returns whether all fits."""
    rows = [_row_texts(row) for row in table.rows][: table.most or None]
    texts = [[heading, *(row[i] for row in rows)] for i, heading in enumerate(table.columns)]
    kept = _that_fit(console.width, table, texts)
    drawn = RichTable(
        title=RichText(table.caption, "bold") if table.caption else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_header=any(table.columns[i] for i in kept),
    )
    for i in kept:
        number = i in table.numeric
        drawn.add_column(
            table.columns[i],
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
            min_width=_narrowest(texts[i], number),
        )
    for n, row in enumerate(rows):
        cells = [RichText(row[i], _style(row[i]) if i == table.status else "") for i in kept]
        drawn.add_row(*cells, end_section=n in table.ends)
    console.print(drawn)
    if more := len(table.rows) - len(rows):
        _say(console, f"{more} more; --json has them.", "dim")
    if hidden := [heading for i, heading in enumerate(table.columns) if i not in kept]:
        _say(console, f"Too narrow for {listed(hidden)}; a wider terminal, a file or --json has them.", "dim")
    return not more and not hidden


def _that_fit(width: int, table: Table, texts: Sequence[Sequence[str]]) -> list[int]:
    """Indices of the columns to show: all if they fit, else without the optional ones, one after another."""
    longest = [max(map(cell_len, column)) for column in texts]
    kept = list(range(len(texts)))
    while droppable := [i for i in kept if i in table.optional]:
        next_one = max(droppable, key=lambda i: table.optional[i])
        text = _COMFORTABLE_TEXT if table.optional[next_one] else _NARROWEST_TEXT
        if sum((longest[i] if i in table.numeric else min(longest[i], text)) + _GAP for i in kept) <= width:
            break
        kept.remove(next_one)
    return kept


def _narrowest(texts: Sequence[str], number: bool) -> int:
    """The fewest characters for a column: all of its longest number, or its longest word if that is short."""
    if number:
        return max(map(cell_len, texts))
    return min(_NARROWEST_TEXT, max((cell_len(word) for text in texts for word in text.split()), default=1))


_PRINTERS: Mapping[type, Callable[[Console, Any], object]] = {
    Heading: _heading,
    Text: _text,
    Table: _any_table,
    StatusLine: _status,
    Listing: _listing,
    Terms: _terms,
}
