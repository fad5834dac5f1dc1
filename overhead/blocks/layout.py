"""How a table fits a terminal: which columns it shows, how wide each one is, and where a cell breaks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence

from rich.cells import cell_len, chop_cells

from overhead.blocks.parts import Table, cell_text, columns_of
from overhead.reading.plain_text import plain

_WIDE_GAP, _NARROW_GAP = 3, 2
"""Characters between two columns: where a table fits with room to spare, and elsewhere."""
_EDGES = 2
"""Characters before the first column and after the last."""
_NARROWEST_TEXT = 16
"""A text column is not so narrow that a shorter word is cut. Longer words are cut where the terminal is narrow."""
_COMFORTABLE_TEXT, _COMFORTABLE_WORD = 24, 32
"""Optional columns are hidden until each text column can have this many characters, and words of so many stay whole."""
_BROKEN_NUMBER = 3
"""A number in two lines reads worse than a text in two, so it counts as more lines when the room is shared."""
_JOINT = re.compile(r"(?<=[=._/:,-])(?=[^=._/:,-])")
"""Where a long word may break: after such a sign."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a table that a terminal shows, by index, and how wide each is. ``gap``: between two of them."""

    shown: Sequence[int]
    widths: Sequence[int]
    gap: int


@dataclasses.dataclass(frozen=True)
class _Column:
    """The texts of a column, the heading first, and how wide it can be.

    ``narrowest``: no number, no word of its heading and no short word is cut. ``longest``: nothing wraps.
    """

    texts: Sequence[str]
    number: bool
    narrowest: int
    comfortable: int
    longest: int


def row_texts(table: Table) -> list[list[str]]:
    """The cells of the rows that a terminal shows."""
    rows = table.rows[: table.most or None]
    return [[plain(cell_text(cell), 2000) for cell in row] for row in rows]


def laid_out(table: Table, rows: Sequence[Sequence[str]], width: int) -> Layout:
    """Choose the columns that fit into ``width`` characters, and share the room among them."""
    columns = []
    for i, heading in enumerate(table.columns):
        columns.append(_column(plain(heading), [row[i] for row in rows], i in table.numeric))
    shown = _chosen(table, columns, width)
    chosen = [columns[i] for i in shown]
    is_roomy = len(shown) == len(columns) and _needed([one.comfortable for one in chosen], _WIDE_GAP) <= width
    gap = _WIDE_GAP if is_roomy else _NARROW_GAP
    return Layout(shown, _widths(chosen, width - _needed([0] * len(chosen), gap)), gap)


def broken_text(text: str, width: int) -> list[str]:
    """The lines of a text: it breaks between words, and in a word only where that is longer than a line."""
    lines = [""]
    for word in text.split(" "):
        first, *others = [word] if cell_len(word) <= width else _pieces_in(word, width)
        joined = f"{lines[-1]} {first}" if lines[-1] else first
        if cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(first)
        lines += others
    return lines


def broken_number(text: str, width: int) -> list[str]:
    """The lines of a number: its interval stands below it where both are too long for a line."""
    return [text] if cell_len(text) <= width else text.replace(" (", "\n(").split("\n")


def _pieces_in(word: str, width: int) -> list[str]:
    """A word that is longer than a line in pieces of at most a line, which end after a joint if they can."""
    pieces = [""]
    for part in _JOINT.split(word):
        if cell_len(pieces[-1] + part) <= width:
            pieces[-1] += part
        else:
            pieces += chop_cells(part, width)
    return [piece for piece in pieces if piece]


def _column(heading: str, cells: Sequence[str], number: bool) -> _Column:
    texts = [heading, *cells]
    longest = max(map(cell_len, texts))
    in_heading = max((cell_len(word) for word in heading.split()), default=1)
    if number:
        in_cells = max((cell_len(line) for cell in cells for line in broken_number(cell, 1)), default=1)
        narrowest = max(1, in_heading, in_cells)
        whole = max(map(cell_len, cells), default=1)
        return _Column(texts, number, narrowest, max(narrowest, whole), longest)
    words = [word for cell in cells for word in cell.split()]
    longest_word = max(map(cell_len, words), default=1)
    narrowest = max(1, in_heading, min(_NARROWEST_TEXT, longest_word))
    comfortable = min(longest, max(_COMFORTABLE_TEXT, min(_COMFORTABLE_WORD, longest_word)))
    return _Column(texts, number, narrowest, max(narrowest, comfortable), longest)


def _needed(widths: Sequence[int], gap: int) -> int:
    """Characters of a line with columns of these widths."""
    return sum(widths) + gap * (len(widths) - 1) + _EDGES


def _chosen(table: Table, columns: Sequence[_Column], width: int) -> list[int]:
    """Indices of the columns to show: all if they fit, else without some, as the table says."""

    def fits_well(kept: Sequence[int]) -> bool:
        return _needed([columns[i].comfortable for i in kept], _NARROW_GAP) <= width

    def fits(kept: Sequence[int]) -> bool:
        return _needed([columns[i].narrowest for i in kept], _NARROW_GAP) <= width

    kept = list(range(len(columns)))
    hidden: list[tuple[int, ...]] = []
    for group in table.optional:
        if fits_well(kept):
            break
        hidden.append(columns_of(group))
        kept = [i for i in kept if i not in hidden[-1]]
    # A column that was hidden early can have room where a wider one went after it.
    for group in reversed(hidden):
        if fits_well(with_it := sorted([*kept, *group])):
            kept = with_it
    for group in table.important:
        if fits(kept):
            break
        kept = [i for i in kept if i not in columns_of(group)]
    while len(kept) > 1 and not fits(kept):
        kept.pop()
    return kept


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The width of each column: the narrowest, and what is left where it saves most lines for each character."""
    if sum(column.longest for column in columns) <= room:
        return [column.longest for column in columns]
    widths = [column.narrowest for column in columns]
    heights = [_heights(column, width) for column, width in zip(columns, widths, strict=True)]
    left = room - sum(widths)
    while left > 0:
        steps = [step for i in range(len(columns)) for step in _steps(columns, widths, heights, i, left)]
        if not steps:
            break
        best = max(steps, key=_Step.gain)
        left -= best.width - widths[best.column]
        widths[best.column] = best.width
        heights[best.column] = best.heights
    return widths


@dataclasses.dataclass(frozen=True)
class _Step:
    """A column may grow by some ``characters`` to this width. ``saved``: lines of the table; ``shorter``: of cells."""

    column: int
    width: int
    heights: Sequence[int]
    characters: int
    saved: int
    shorter: int

    def gain(self) -> float:
        """Lines saved for each character. Shorter cells count a little, since another column may follow."""
        return (self.saved + 0.1 * self.shorter) / self.characters


def _steps(
    columns: Sequence[_Column], widths: Sequence[int], heights: Sequence[Sequence[int]], i: int, left: int
) -> Iterator[_Step]:
    """The widths to which column ``i`` may grow, up to the first at which cells need fewer lines."""
    now = sum(map(max, zip(*heights, strict=True)))
    for width in range(widths[i] + 1, min(widths[i] + left, columns[i].longest) + 1):
        grown = _heights(columns[i], width)
        shorter = sum(heights[i]) - sum(grown)
        if shorter > 0:
            then = sum(map(max, zip(*heights[:i], grown, *heights[i + 1 :], strict=True)))
            yield _Step(i, width, grown, width - widths[i], now - then, shorter)
            return


def _heights(column: _Column, width: int) -> list[int]:
    """The lines of each text of a column that is so wide."""
    heading, *cells = column.texts
    first = len(broken_text(heading, width))
    if not column.number:
        return [first, *(len(broken_text(cell, width)) for cell in cells)]
    return [first, *(_BROKEN_NUMBER if cell_len(cell) > width else 1 for cell in cells)]
