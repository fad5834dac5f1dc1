"""Blocks in the terminal, each printed as it comes, and tables that fit its width."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text as RichText

from overhead.blocks.layout import Layout, broken_number, broken_text, laid_out, row_texts
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
    Tone,
    column_name,
    without_pictures,
)
from overhead.reading.plain_text import plain
from overhead.words.blocks import hidden_columns, more_rows, named_column

_WIDTH_OFF_A_TERMINAL = 240
"""Characters per line in a file or a pipe, unless the variable COLUMNS gives a number."""
_MOST_TEXT = 2000
"""A longer text is cut, so that a text of the user cannot fill the terminal."""
_COLOURS: Mapping[Tone, str] = {"": "", "good": "green", "unsure": "yellow", "bad": "red"}


def show(blocks: Iterable[Part], console: Console | None = None) -> None:
    """Print the blocks (headings, texts, tables, lists) that a command yields to the console, by
    default standard output. Control characters and blocks that a page folds are left out.
    """
    if console is None:
        console = _standard_output()
    follows_text = False
    for block in without_pictures(blocks):
        # A table has an empty line below it already. Text has none, so a captioned table gets one.
        if follows_text and isinstance(block, Table) and block.caption:
            console.print()
        # The printer of this kind of block; it tells whether columns are the last thing printed.
        ends_with_table = _PRINTERS[type(block)](console, block)
        follows_text = not ends_with_table


def _standard_output() -> Console:
    """A console as wide as the terminal, or as COLUMNS says; wide in a file or a pipe."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return Console()
    return Console(width=_WIDTH_OFF_A_TERMINAL)


def _heading(console: Console, block: Heading) -> None:
    console.print()
    _say(console, block.text, "bold")


def _text(console: Console, block: Text) -> None:
    """Print the paragraphs of a text; none of one that a page folds."""
    if block.folded:
        return
    style = ""
    if block.quiet:
        style = "dim"
    elif block.lead:
        style = "bold"
    for paragraph in block.paragraphs:
        _say(console, paragraph, style)


def _listing(console: Console, block: Listing) -> None:
    for number, (title, detail) in enumerate(block.items, 1):
        _say(console, f"{number}. {title}")
        if detail:
            _say(console, detail, "dim", indent=3)


def _advice(console: Console, block: GroupedAdvice) -> None:
    """Print all advice below a line for each kind of reader. A terminal folds none."""
    for group in block.groups:
        _say(console, group.reader, "bold")
        items = [(advice.title, advice.detail) for advice in (*group.first, *group.more)]
        _listing(console, Listing(items))


def _terms(console: Console, block: Terms) -> None:
    for term in block.terms:
        _say(console, f"{term.name}: {term.meaning}")


def _any_table(console: Console, block: Table) -> bool:
    """Print a table: one of prose (its cells are sentences) as paragraphs, another as columns, and
    none that a page folds (shows only on a click).
    Returns whether columns are the last thing printed, with no sentence below them, because then an
    empty line follows already.
    """
    if block.prose:
        _records(console, block)
        return False
    if block.folded:
        return False
    return _table(console, block)


def _say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print a sentence. It wraps in a terminal only."""
    indented = " " * indent + plain(text, _MOST_TEXT)
    console.print(RichText(indented, style), soft_wrap=not console.is_terminal)


def _status(console: Console, line: StatusLine, indent: int = 0) -> None:
    """Print a status word in its colour, the sentence after it, and its details below it.
    ``names``: the word is a name with a colon, after which one space is enough.
    """
    colour = _COLOURS[line.tone] or "bold"
    printed = RichText(" " * indent + plain(line.head), colour)
    if line.text:
        gap = " " if line.names else "  "
        printed += RichText(gap + plain(line.text, _MOST_TEXT))
    # In a file or a pipe a sentence stays one line, however long it is.
    console.print(printed, soft_wrap=not console.is_terminal)
    for detail in line.details:
        if isinstance(detail, StatusLine):
            _status(console, detail, indent + 4)
        else:
            _say(console, detail, "dim", indent + 2)


def _style(cell: str | Cell) -> str:
    """The colour of a cell that says how something stands; '' for others."""
    return _COLOURS[cell.tone] if isinstance(cell, Cell) else ""


def _records(console: Console, table: Table) -> None:
    """Print a table whose cells are sentences, too long for columns: each row as a paragraph, with
    the first cell in bold, and below it each cell after the heading of its column.
    """
    for first, *others in row_texts(table):
        console.print()
        _say(console, first, "bold")
        for heading, text in zip(table.columns[1:], others, strict=True):
            if text:
                _say(console, f"{heading}: {text}", indent=2)


def _table(console: Console, table: Table) -> bool:
    """Print a table. Below it sentences say which rows and columns it leaves out because they do
    not fit, and what columns mean. Returns whether there is no such sentence. ``row_texts`` gives
    no more rows than the table allows (``most``); ``laid_out`` chooses columns and their widths.
    """
    rows = row_texts(table)
    layout = laid_out(table, rows, console.width)
    if table.caption:
        _say(console, table.caption, "bold")
    console.print(_drawn(table, rows, layout))

    # Below it what is left out, and what the columns mean.
    said_below = []
    rows_left_out = len(table.rows) - len(rows)
    if rows_left_out:
        said_below.append(more_rows(rows_left_out))
    hidden = [_name(table, i) for i in range(len(table.columns)) if i not in layout.shown]
    if hidden:
        said_below.append(hidden_columns(hidden))
    for i, meaning in sorted(table.meanings.items()):
        if i in layout.shown:
            said_below.append(meaning)
    for sentence in said_below:
        _say(console, sentence, "dim")
    return not said_below


def _drawn(table: Table, rows: Sequence[Sequence[str]], layout: Layout) -> RichTable:
    """The table for Rich, with the columns and widths of ``layout``. Cells are broken into lines
    here, because Rich would break numbers and names elsewhere.

    ``rows``: the texts of the cells. ``ends``: the rows of the table with a line below them.
    """
    # Rich adds a character between two columns, and one more at the right of each cell.
    # So two of the gap are there already. At the top, right, bottom and left.
    padding = (0, layout.gap - 2, 0, 1)
    has_headings = any(table.columns[i] for i in layout.shown)
    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_header=has_headings, padding=padding)
    for i, width in zip(layout.shown, layout.widths, strict=True):
        lines = broken_text(plain(table.columns[i]), width)
        heading = RichText("\n".join(lines))
        side: Literal["left", "right"] = "right" if i in table.numeric else "left"
        drawn.add_column(heading, justify=side, overflow="fold", width=width)

    for row_number, row in enumerate(rows):
        cells = []
        for i, width in zip(layout.shown, layout.widths, strict=True):
            break_cell = broken_number if i in table.numeric else broken_text
            lines = break_cell(row[i], width)
            cells.append(RichText("\n".join(lines), _style(table.rows[row_number][i])))
        drawn.add_row(*cells, end_section=row_number in table.ends)
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
    GroupedAdvice: _advice,
    Terms: _terms,
}
