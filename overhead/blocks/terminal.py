"""Blocks in the terminal, each printed as it comes, and tables that fit its width."""

from __future__ import annotations

import dataclasses
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
    Tone,
    cell_text,
    column_name,
    without_pictures,
)
from overhead.reading.plain_text import plain
from overhead.words.blocks import hidden_columns, more_rows, named_column

_WIDTH_OFF_A_TERMINAL = 240
"""Characters per line in a file or a pipe, unless the variable COLUMNS gives a number."""
_GAP = 3
"""Characters between two columns. One more stands before the first and after the last."""
_NARROWEST_TEXT = 16
"""Longer words than this are cut where the terminal is narrow; shorter ones are not."""
_COMFORTABLE_TEXT = 24
"""Optional columns are left out until each text column can have this many characters."""
_COLOURS: Mapping[Tone, str] = {"": "", "good": "green", "unsure": "yellow", "bad": "red"}


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


@dataclasses.dataclass(frozen=True)
class _Column:
    """How wide a column can be. ``narrowest``: no number, no word of its heading and no short word is cut."""

    longest: int
    narrowest: int

    @property
    def comfortable(self) -> int:
        return max(self.narrowest, min(self.longest, _COMFORTABLE_TEXT))


def _table(console: Console, table: Table) -> bool:
    """Print a table without what does not fit, and say what that is; returns whether all fits."""
    rows = [_row_texts(row) for row in table.rows][: table.most or None]
    columns = _columns(table)
    kept = _that_fit(console.width, table, columns)
    drawn = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_header=any(table.columns[i] for i in kept))
    for i, width in zip(kept, _widths(console.width, [columns[i] for i in kept]), strict=True):
        heading = RichText(table.columns[i], no_wrap=False)
        number = i in table.numeric
        drawn.add_column(heading, justify="right" if number else "left", no_wrap=number, overflow="fold", width=width)
    for n, row in enumerate(rows):
        cells = [RichText(row[i], _style(table.rows[n][i])) for i in kept]
        drawn.add_row(*cells, end_section=n in table.ends)
    if table.caption:
        _say(console, table.caption, "bold")
    console.print(drawn)
    if more := len(table.rows) - len(rows):
        _say(console, more_rows(more), "dim")
    hidden = [_name(table, i) for i in range(len(columns)) if i not in kept]
    if hidden:
        _say(console, hidden_columns(hidden), "dim")
    meanings = [meaning for i, meaning in sorted(table.meanings.items()) if i in kept]
    for meaning in meanings:
        _say(console, meaning, "dim")
    return not (more or hidden or meanings)


def columns_shown(table: Table, width: int) -> list[int]:
    """Indices of the columns of a table that a terminal of this width shows."""
    return _that_fit(width, table, _columns(table))


def _columns(table: Table) -> list[_Column]:
    rows = [_row_texts(row) for row in table.rows][: table.most or None]
    found = []
    for i, heading in enumerate(table.columns):
        found.append(_column(heading, [row[i] for row in rows], i in table.numeric))
    return found


def _name(table: Table, i: int) -> str:
    """How a sentence names the column: its heading without a unit, or its number where it has none."""
    return named_column(plain(column_name(table.columns[i])), i)


def _column(heading: str, cells: Sequence[str], number: bool) -> _Column:
    """The widths of a column: a number never wraps, a heading and a text do so between words."""
    words = [cell_len(word) for word in heading.split()]
    longest = max(map(cell_len, [heading, *cells]))
    if number:
        return _Column(longest, max([1, *words, *map(cell_len, cells)]))
    in_cells = max((cell_len(word) for cell in cells for word in cell.split()), default=1)
    return _Column(longest, max([1, *words, min(_NARROWEST_TEXT, in_cells)]))


def _that_fit(width: int, table: Table, columns: Sequence[_Column]) -> list[int]:
    """Indices of the columns to show: all if they fit, else without some, as ``Table.optional`` says."""
    kept = list(range(len(columns)))
    ranks = sorted(set(table.optional.values()), reverse=True)
    for rank in ranks:
        needed = [columns[i].comfortable if rank else columns[i].narrowest for i in kept]
        if _drawn_width(needed) <= width:
            return kept
        kept = [i for i in kept if table.optional.get(i) != rank]
    while len(kept) > 1 and _drawn_width([columns[i].narrowest for i in kept]) > width:
        kept.pop()
    return kept


def _drawn_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1) + 2


def _widths(width: int, columns: Sequence[_Column]) -> list[int]:
    """The width of each column: the narrowest, and what is left in equal parts for those that can use it."""
    widths = [column.narrowest for column in columns]
    left = width - _drawn_width(widths)
    while left > 0:
        growing = [i for i, column in enumerate(columns) if widths[i] < column.longest][:left]
        if not growing:
            break
        for i in growing:
            widths[i] += 1
        left -= len(growing)
    return widths


_PRINTERS: Mapping[type, Callable[[Console, Any], object]] = {
    Heading: _heading,
    Text: _text,
    Table: _any_table,
    StatusLine: _status,
    Listing: _listing,
    Terms: _terms,
}
