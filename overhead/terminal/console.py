"""The console that the commands print to, and tables that fit its width."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from overhead.reading.format import plain

_WIDTH_OFF_A_TERMINAL = 240
"""Characters per line in a file or a pipe, unless the variable COLUMNS gives a number."""
_GAP = 3
"""Characters that each column needs beside its text."""
_NARROWEST_TEXT = 16
"""A text column wraps at words down to this many characters."""
_COMFORTABLE_TEXT = 24
"""Optional columns are left out until each text column can have this many characters."""


@dataclass(frozen=True)
class Column:
    """A column of a table. ``number``: right-aligned and never wrapped. ``optional``: left out where space is short,
    the highest number first; 0 for a column that always stays."""

    heading: str
    number: bool = False
    optional: int = 0


def terminal() -> Console:
    """A console on standard output: as wide as the terminal, and wide enough for the tables where there is none."""
    wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_WIDTH_OFF_A_TERMINAL if wide else None)


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, without control characters. It wraps in a terminal only."""
    console.print(Text(plain(text, 2000), style), soft_wrap=not console.is_terminal)


def print_table(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    sections: Iterable[int] = (),
    styles: Sequence[str] = (),
    one_line: bool = False,
) -> list[str]:
    """Print a table and return the headings of the columns that did not fit.

    ``sections``: indices of rows with a line below. ``styles``: a style for each row. ``one_line``: cut the text
    of the only column without numbers instead of wrapping it.
    """
    kept = _that_fit(console.width, columns, rows)
    table = Table(
        title=Text(title, "bold") if title else None,
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        show_header=any(columns[i].heading for i in kept),
    )
    numbers = sum(_narrowest(i, columns, rows) + _GAP for i in kept if columns[i].number)
    for i in kept:
        number = columns[i].number
        justify: Literal["left", "right"] = "right" if number else "left"
        table.add_column(
            columns[i].heading,
            justify=justify,
            no_wrap=number or one_line,
            overflow="ellipsis" if one_line else "fold",
            min_width=_narrowest(i, columns, rows),
            max_width=console.width - numbers - _GAP if one_line and not number else None,
        )
    ends = set(sections)
    for n, row in enumerate(rows):
        cells = [cell if isinstance(cell, Text) else Text(plain(cell, 1000)) for cell in row]
        table.add_row(
            *(cells[i] for i in kept), style=Style.parse(styles[n]) if styles else None, end_section=n in ends
        )
    console.print(table)
    return [column.heading for i, column in enumerate(columns) if i not in kept]


def _that_fit(width: int, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> list[int]:
    """Indices of the columns to show: all if they fit, else without the optional ones, one after another."""
    longest = [max(map(cell_len, _texts(i, columns, rows))) for i in range(len(columns))]
    least = [n if c.number else min(n, _COMFORTABLE_TEXT) for n, c in zip(longest, columns, strict=True)]
    kept = list(range(len(columns)))
    while sum(least[i] + _GAP for i in kept) > width:
        droppable = [i for i in kept if columns[i].optional]
        if not droppable:
            break
        kept.remove(max(droppable, key=lambda i: columns[i].optional))
    return kept


def _narrowest(i: int, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> int:
    """The fewest characters for a column: all of its longest number, or its longest word if that is short."""
    if columns[i].number:
        return max(map(cell_len, _texts(i, columns, rows)))
    words = [word for text in _texts(i, columns, rows) for word in text.split()]
    return min(_NARROWEST_TEXT, max(map(cell_len, words), default=1))


def _texts(i: int, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]]) -> list[str]:
    return [columns[i].heading, *(str(row[i]) for row in rows)]
