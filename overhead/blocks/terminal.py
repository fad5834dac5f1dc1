"""Blocks in the terminal, each printed as it comes, and tables that fit its width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from overhead.blocks.layout import Layout, broken_number, broken_text, laid_out, row_texts
from overhead.blocks.parts import (
    Cell,
    Heading,
    Listing,
    Part,
    StatusLine,
    Table,
    Terms,
    Text,
    Tone,
    column_name,
    without_pictures,
)
from overhead.reading.plain_text import plain
from overhead.words.blocks import hidden_columns, more_rows, named_column

_WIDTH_OFF_A_TERMINAL = 240
"""Characters per line in a file or a pipe, unless the variable COLUMNS gives a number."""
_COLOURS: Mapping[Tone, str] = {"": "", "good": "green", "unsure": "yellow", "bad": "red"}


def show(blocks: Iterable[Part], console: Console | None = None) -> None:
    """Print the blocks to the console (by default on standard output) without control characters
    and folded blocks.
    """
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
    console.print(
        RichText(" " * indent + plain(text, 2000), style), soft_wrap=not console.is_terminal
    )


def _status(console: Console, line: StatusLine, indent: int = 0) -> None:
    word = RichText(" " * indent + plain(line.head), _COLOURS[line.tone] or "bold")
    gap = " " if line.names else "  "
    said = gap * bool(line.text) + plain(line.text, 2000)
    console.print(word + RichText(said), soft_wrap=not console.is_terminal)
    for detail in line.details:
        if isinstance(detail, StatusLine):
            _status(console, detail, indent + 4)
        else:
            _say(console, detail, "dim", indent + 2)


def _style(cell: str | Cell) -> str:
    """The colour of a cell that says how something stands; '' for others."""
    return _COLOURS[cell.tone] if isinstance(cell, Cell) else ""


def _records(console: Console, table: Table) -> None:
    """A table of sentences: its rows one below the other, each cell after the heading of its
    column.
    """
    for first, *others in row_texts(table):
        console.print()
        _say(console, first, "bold")
        for heading, text in zip(table.columns[1:], others, strict=True):
            if text:
                _say(console, f"{heading}: {text}", indent=2)


def _table(console: Console, table: Table) -> bool:
    """Print a table without what does not fit, and say what that is; returns whether all fits."""
    rows = row_texts(table)
    layout = laid_out(table, rows, console.width)
    if table.caption:
        _say(console, table.caption, "bold")
    console.print(_drawn(table, rows, layout))
    if more := len(table.rows) - len(rows):
        _say(console, more_rows(more), "dim")
    hidden = [_name(table, i) for i in range(len(table.columns)) if i not in layout.shown]
    if hidden:
        _say(console, hidden_columns(hidden), "dim")
    meanings = [meaning for i, meaning in sorted(table.meanings.items()) if i in layout.shown]
    for meaning in meanings:
        _say(console, meaning, "dim")
    return not (more or hidden or meanings)


def _drawn(table: Table, rows: Sequence[Sequence[str]], layout: Layout) -> RichTable:
    """The columns that fit, each line of a cell as it is."""
    drawn = RichTable(
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_header=any(table.columns[i] for i in layout.shown),
        padding=(0, layout.gap - 2, 0, 1),
    )
    for i, width in zip(layout.shown, layout.widths, strict=True):
        heading = RichText("\n".join(broken_text(plain(table.columns[i]), width)))
        drawn.add_column(
            heading, justify="right" if i in table.numeric else "left", overflow="fold", width=width
        )
    for n, row in enumerate(rows):
        cells = []
        for i, width in zip(layout.shown, layout.widths, strict=True):
            lines = (
                broken_number(row[i], width) if i in table.numeric else broken_text(row[i], width)
            )
            cells.append(RichText("\n".join(lines), _style(table.rows[n][i])))
        drawn.add_row(*cells, end_section=n in table.ends)
    return drawn


def columns_shown(table: Table, width: int) -> Sequence[int]:
    """Indices of the columns of a table that a terminal of this width shows."""
    return laid_out(table, row_texts(table), width).shown


def _name(table: Table, i: int) -> str:
    """How a sentence names the column: its heading without a unit, or its number where it has
    none.
    """
    return named_column(plain(column_name(table.columns[i])), i)


_PRINTERS: Mapping[type, Callable[[Console, Any], object]] = {
    Heading: _heading,
    Text: _text,
    Table: _any_table,
    StatusLine: _status,
    Listing: _listing,
    Terms: _terms,
}
