"""How a table fits a terminal: which columns it shows, how wide each one is, and where a cell breaks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from rich.cells import cell_len, chop_cells

from overhead.blocks.parts import Table, cell_text, columns_of
from overhead.reading.plain_text import plain

_WIDE_GAP, _NARROW_GAP = 3, 2
"""Characters between two columns: where a table fits with room to spare, and elsewhere."""
_EDGES = 2
"""Characters before the first column and after the last."""
_NARROWEST_TEXT = 16
"""A text column has room for words up to here, and for pieces of longer ones."""
_COMFORTABLE_TEXT, _COMFORTABLE_WORD = 24, 32
"""Optional columns are hidden until each text column can have this many characters, and words of so many stay whole."""
_BREAK_IN_NUMBER = 2
"""A number in two lines reads worse than a text in two, so its breaks count as more lines when the room is shared."""
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

    ``tight``: short words break too, after a joint, and intervals before their ends; a column is so narrow only if the
    answer has no room without. ``narrowest``: no short word and no interval breaks. ``longest``: nothing wraps.
    """

    texts: Sequence[str]
    number: bool
    tight: int
    narrowest: int
    comfortable: int
    longest: int
    known: dict[int, list[int]] = dataclasses.field(default_factory=dict)
    """By width, the lines of each text."""

    def heights(self, width: int) -> list[int]:
        """The lines of each text in a column that is so wide."""
        if width not in self.known:
            heading, *cells = self.texts
            lines = [len(broken_text(heading, width))]
            if self.number:
                lines += [1 + _BREAK_IN_NUMBER * (len(broken_number(cell, width)) - 1) for cell in cells]
            else:
                lines += [len(broken_text(cell, width)) for cell in cells]
            self.known[width] = lines
        return self.known[width]


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
    if cell_len(text) <= width:
        return [text]
    return [line for part in _number_and_interval(text) for line in broken_text(part, width)]


def _number_and_interval(text: str) -> list[str]:
    return text.replace(" (", "\n(").split("\n")


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
    words = [word for cell in cells for word in cell.split()]
    longest_word = max(map(cell_len, words), default=1)
    if number:
        parts = [part for cell in cells for part in _number_and_interval(cell)]
        tight = max(1, in_heading, longest_word)
        narrowest = max(tight, *map(cell_len, parts), 1)
        whole = max(map(cell_len, cells), default=1)
        return _Column(texts, number, tight, narrowest, max(narrowest, whole), longest)
    longest_part = max((cell_len(part) for word in words for part in _JOINT.split(word)), default=1)
    tight = max(1, in_heading, min(_NARROWEST_TEXT, longest_part))
    narrowest = max(tight, min(_NARROWEST_TEXT, longest_word))
    comfortable = min(longest, max(_COMFORTABLE_TEXT, min(_COMFORTABLE_WORD, longest_word)))
    return _Column(texts, number, tight, narrowest, max(narrowest, comfortable), longest)


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
    while len(kept) > 1 and _needed([columns[i].tight for i in kept], _NARROW_GAP) > width:
        kept.pop()
    return kept


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The width of each column: the narrowest, and what is left where it saves most lines for each character."""
    if sum(column.longest for column in columns) <= room:
        return [column.longest for column in columns]
    widths = [column.narrowest for column in columns]
    if sum(widths) > room:
        widths = [column.narrowest if column.number else column.tight for column in columns]
    if sum(widths) > room:
        widths = [column.tight for column in columns]
    left = max(0, room - sum(widths))
    for i, column in enumerate(columns):
        whole_words = min(left, column.narrowest - widths[i])
        widths[i] += whole_words
        left -= whole_words
    while left > 0:
        steps = [_step(columns, widths, i, left) for i in range(len(columns))]
        possible = [step for step in steps if step is not None]
        if not possible:
            break
        best = max(possible, key=_Step.gain)
        left -= best.characters
        widths[best.column] += best.characters
    return widths


@dataclasses.dataclass(frozen=True)
class _Step:
    """A column may grow by some ``characters``. ``saved``: lines of the table; ``shorter``: of its cells."""

    column: int
    characters: int
    saved: int
    shorter: int

    def gain(self) -> float:
        """Lines saved for each character. Those of cells count too, since a row is shorter once all its cells are."""
        return (self.saved + self.shorter) / self.characters


def _step(columns: Sequence[_Column], widths: Sequence[int], i: int, left: int) -> _Step | None:
    """How much column ``i`` must grow until its cells need fewer lines; None if it cannot."""
    heights = [column.heights(width) for column, width in zip(columns, widths, strict=True)]
    for width in range(widths[i] + 1, min(widths[i] + left, columns[i].longest) + 1):
        grown = columns[i].heights(width)
        shorter = sum(heights[i]) - sum(grown)
        if shorter > 0:
            saved = _lines(heights) - _lines([*heights[:i], grown, *heights[i + 1 :]])
            return _Step(i, width - widths[i], saved, shorter)
    return None


def _lines(heights: Sequence[Sequence[int]]) -> int:
    """The lines of a table, from those of each cell by column."""
    return sum(map(max, zip(*heights, strict=True)))
