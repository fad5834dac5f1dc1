"""How a table fits a terminal: which columns it shows, how wide each one is, and where a cell
breaks.
"""

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

# No measurement gave the next four numbers: they were chosen by reading the tables. Another value
# changes which columns a terminal hides. tests/terminal/test_widths.py draws all tables of all
# commands at 60 and 80 characters.
_NARROWEST_TEXT = 16
"""A word of a text column stays whole up to this many characters. A longer word may break."""
_COMFORTABLE_TEXT, _COMFORTABLE_WORD = 24, 32
"""A text column is comfortable with this many characters, or with more for a word: up to so many it
stays whole.
"""
_BREAK_IN_NUMBER = 2
"""A number in two lines reads worse than a text in two. So each break in a number counts as so many
lines.
"""
_MOST_TEXT = 2000
"""A longer cell is cut, so that a text of the user cannot fill the terminal."""
_JOINT = re.compile(r"(?<=[=._/:,-])(?=[^=._/:,-])")
"""Where a long word may break: after such a sign, as in ``torch.nn.|functional.|relu`` or
``dtype=|float32``.
"""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The columns of a table that a terminal shows, by index, and how wide each is. ``gap``:
    between two of them.
    """

    shown: Sequence[int]
    widths: Sequence[int]
    gap: int


@dataclasses.dataclass(frozen=True)
class _Column:
    """The texts of a column, the heading first, and four widths that it can have, in characters.

    - ``tight``: in a text, words break after a joint or at 16 characters; in a column of numbers,
      intervals stand below their numbers, and break.
    - ``narrowest``: no word of up to 16 characters breaks; intervals stand below their numbers.
    - ``comfortable``: a text has 24 characters, or a word of up to 32; of numbers nothing wraps but
      the heading.
    - ``longest``: nothing wraps.

    A column is ``tight`` only where the table's answer has no room otherwise. The words of a
    heading never break.
    """

    texts: Sequence[str]
    number: bool
    tight: int
    narrowest: int
    comfortable: int
    longest: int
    known: dict[int, list[int]] = dataclasses.field(default_factory=dict)
    """The lines of each text, by width: to share the room asks for the same widths again and
    again.
    """

    def heights(self, width: int) -> list[int]:
        """How many lines each text needs in a column of this width, the heading first. A number
        that breaks counts as more lines than it has, because it reads badly. ``known`` keeps the
        answers by width, since ``_widths`` asks for the same ones again and again.
        """
        if width not in self.known:
            heading, *cells = self.texts
            cell_height = _number_height if self.number else _text_height
            heights = [_text_height(heading, width)]
            for cell in cells:
                heights.append(cell_height(cell, width))
            self.known[width] = heights
        return self.known[width]


def _text_height(text: str, width: int) -> int:
    """Lines of a text in so many characters."""
    return len(broken_text(text, width))


def _number_height(text: str, width: int) -> int:
    """Lines of a number in so many characters. A break counts as more than one line, since it reads
    worse than one in a text.
    """
    breaks = len(broken_number(text, width)) - 1
    return 1 + _BREAK_IN_NUMBER * breaks


def row_texts(table: Table) -> list[list[str]]:
    """The cells of the rows that a terminal shows, as text without control characters."""
    rows = table.rows[: table.most] if table.most else table.rows
    texts = []
    for row in rows:
        texts.append([plain(cell_text(cell), _MOST_TEXT) for cell in row])
    return texts


def laid_out(table: Table, rows: Sequence[Sequence[str]], width: int) -> Layout:
    """Choose the columns of the table that fit into ``width`` characters of a terminal, and share
    the room among them. ``rows``: the texts of the cells. ``comfortable``: the width of a column at
    which a number does not wrap, and a text has 24 characters or its longest word.
    """
    columns = []
    for i, heading in enumerate(table.columns):
        cells = [row[i] for row in rows]
        is_number = i in table.numeric
        make = _number_column if is_number else _text_column
        columns.append(make(plain(heading), cells))
    shown = _chosen(table, columns, width)
    chosen = [columns[i] for i in shown]

    # Wider gaps only where no column is hidden and none wraps more than it should.
    comfortable = [column.comfortable for column in chosen]
    wide_line = _line_width(comfortable, _WIDE_GAP)
    is_roomy = len(shown) == len(columns) and wide_line <= width
    gap = _WIDE_GAP if is_roomy else _NARROW_GAP
    gaps_and_edges = _line_width([0] * len(chosen), gap)  # of columns without width
    room = width - gaps_and_edges
    return Layout(shown, _widths(chosen, room), gap)


def broken_text(text: str, width: int) -> list[str]:
    """The lines of a text. It breaks between words, and inside a word only where the word is longer
    than a line.

    ``broken_text("one torch.nn.functional", 10)``: ``["one", "torch.nn.", "functional"]``
    """
    # ``cell_len``: how many characters of a terminal a text takes; some signs take two.
    lines = [""]
    for word in text.split(" "):
        # The first piece may join the last line; further pieces get lines of their own.
        fits_a_line = cell_len(word) <= width
        first, *others = [word] if fits_a_line else _pieces_in(word, width)
        line = lines[-1]
        longer_line = f"{line} {first}" if line else first
        if cell_len(longer_line) <= width:
            lines[-1] = longer_line
        else:
            lines.append(first)
        lines += others
    return lines


def broken_number(text: str, width: int) -> list[str]:
    """The lines of a number. Its interval stands below it where both are too long for a line, and
    breaks between words where it alone is too long.

    ``broken_number("1.23 (1.20 to 1.26)", 14)``: ``["1.23", "(1.20 to 1.26)"]``
    """
    if cell_len(text) <= width:
        return [text]
    lines = []
    for part in _number_and_interval(text):
        lines += broken_text(part, width)
    return lines


def _number_and_interval(text: str) -> list[str]:
    """``1.23 (1.20 to 1.26)`` in two parts; a number without an interval is one."""
    return text.replace(" (", "\n(").split("\n")


def _pieces_in(word: str, width: int) -> list[str]:
    """A word that is longer than a line, in pieces that fit a line. A piece ends after a joint (a
    dot, a slash, ``=``) where it can, and else in the middle of a name: ``chop_cells`` of Rich cuts
    after so many characters.
    """
    pieces = [""]
    for part in _JOINT.split(word):
        if cell_len(pieces[-1] + part) <= width:
            pieces[-1] += part
        else:
            pieces += chop_cells(part, width)
    # The empty first piece is still there if the first part had to be cut.
    return [piece for piece in pieces if piece]


def _number_column(heading: str, cells: Sequence[str]) -> _Column:
    """A column of numbers with the four widths that it may get in a terminal, from ``tight``, where
    numbers break between words, to ``longest``, where nothing wraps.
    """
    texts = [heading, *cells]
    tight = max(_longest_word(text) for text in texts)
    # The interval, ``(1.20 to 1.26)``, may stand below its number.
    parts = [_longest(_number_and_interval(cell)) for cell in cells]
    narrowest = max([tight, *parts])
    comfortable = max(narrowest, _longest(cells))  # only the heading wraps
    # True: it is a column of numbers, whose cells break as ``broken_number`` says.
    return _Column(texts, True, tight, narrowest, comfortable, _longest(texts))


def _text_column(heading: str, cells: Sequence[str]) -> _Column:
    """A column of texts with the four widths that it may get in a terminal: ``tight``, where long
    words break; ``narrowest``, where words up to 16 characters stay whole; ``comfortable``, with 24
    characters or a longer word; and ``longest``, where nothing wraps.
    """
    texts = [heading, *cells]
    longest = _longest(texts)
    longest_word = max(map(_longest_word, cells), default=1)
    longest_piece = max(map(_longest_piece, cells), default=1)

    # A piece is what stands between two joints of a word, as in ``torch.nn.|functional``.
    whole_piece = min(_NARROWEST_TEXT, longest_piece)
    tight = max(_longest_word(heading), whole_piece)
    whole_word = min(_NARROWEST_TEXT, longest_word)
    narrowest = max(tight, whole_word)
    # 24 characters, or as many as the longest word has, up to 32; but no more than the longest
    # text.
    wanted = max(_COMFORTABLE_TEXT, min(_COMFORTABLE_WORD, longest_word))
    comfortable = max(narrowest, min(longest, wanted))
    return _Column(texts, False, tight, narrowest, comfortable, longest)


def _longest(texts: Sequence[str]) -> int:
    """Characters of the longest text; 1 of none, since a column has a width."""
    return max(map(cell_len, texts), default=1)


def _longest_word(text: str) -> int:
    """Characters of the longest word."""
    return _longest(text.split())


def _longest_piece(text: str) -> int:
    """Characters of the longest piece of a word that breaks at its joints."""
    words = text.split()
    return max((_longest(_JOINT.split(word)) for word in words), default=1)


def _line_width(widths: Sequence[int], gap: int) -> int:
    """Characters of a line with columns of these widths."""
    gaps = len(widths) - 1
    return sum(widths) + gap * gaps + _EDGES


def _fits(widths: Sequence[int], width: int) -> bool:
    """Whether a line with columns of these widths has at most ``width`` characters."""
    return _line_width(widths, _NARROW_GAP) <= width


def _chosen(table: Table, columns: Sequence[_Column], width: int) -> list[int]:
    """Indices of the columns that a terminal of ``width`` characters shows: all if they fit, else
    without some.

    First the columns that the table calls optional go, group after group, until the rest has a
    comfortable width. Then its important ones go, until the rest fits at its narrowest. A group is
    a column, or several that go together; the columns in no group are the answer of the table.
    """
    kept = _without_optional(table, columns, width)
    for group in table.important:
        narrowest = [columns[i].narrowest for i in kept]
        if _fits(narrowest, width):
            break
        kept = [i for i in kept if i not in columns_of(group)]

    # What is left is the answer. It has room in 60 characters; in fewer, its last columns go.
    # ``tight``: the width at which also long words break.
    tight = [columns[i].tight for i in kept]
    while len(kept) > 1 and not _fits(tight, width):
        kept.pop()
        tight.pop()
    return kept


def _without_optional(table: Table, columns: Sequence[_Column], width: int) -> list[int]:
    """Indices of the columns that are left when ``Table.optional`` ones go, group after group,
    until the rest has a comfortable width in ``width`` characters.
    """

    def fits_comfortably(indices: Sequence[int]) -> bool:
        comfortable = [columns[i].comfortable for i in indices]
        return _fits(comfortable, width)

    kept = list(range(len(columns)))
    hidden: list[tuple[int, ...]] = []
    for group in table.optional:
        if fits_comfortably(kept):
            break
        # A group is one column, or several that go together.
        together = columns_of(group)
        hidden.append(together)
        kept = [i for i in kept if i not in together]

    # A column that was hidden early can have room where a wider one went after it.
    for hidden_group in reversed(hidden):
        with_group = sorted([*kept, *hidden_group])
        if fits_comfortably(with_group):
            kept = with_group
    return kept


def _widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The width of each column, in sum at most ``room`` characters where that is possible.

    Each column gets its narrowest width. Then, again and again, that column grows in which a
    character more saves most lines of the table, until no room is left or no line is saved.
    """
    # Where nothing has to wrap, each column is as wide as its longest text.
    longest = [column.longest for column in columns]
    if sum(longest) <= room:
        return longest

    widths = _least_widths(columns, room)
    left = max(0, room - sum(widths))

    # Columns that are tighter than their narrowest width grow to it first, so that whole words fit.
    for i, column in enumerate(columns):
        growth = min(left, column.narrowest - widths[i])
        widths[i] += growth
        left -= growth

    while left > 0:
        possible = []
        for i in range(len(columns)):
            step = _step(columns, widths, i, left)
            if step is not None:
                possible.append(step)
        if not possible:
            break
        # ``gain``: lines saved for each character.
        best = max(possible, key=_Step.gain)
        left -= best.characters
        widths[best.column] += best.characters
    return widths


def _least_widths(columns: Sequence[_Column], room: int) -> list[int]:
    """The widths that columns have before they share what room is left: the narrowest if they fit
    into the room, else texts tight, so that long words break, else numbers tight too.
    """
    narrowest = [column.narrowest for column in columns]
    if sum(narrowest) <= room:
        return narrowest
    with_tight_texts = [column.narrowest if column.number else column.tight for column in columns]
    if sum(with_tight_texts) <= room:
        return with_tight_texts
    return [column.tight for column in columns]


@dataclasses.dataclass(frozen=True)
class _Step:
    """A column may grow by so many ``characters``. ``saved``: lines of the table; ``shorter``:
    lines of its cells.
    """

    column: int
    characters: int
    saved: int
    shorter: int

    def gain(self) -> float:
        """Lines saved for each character.

        Lines of cells count too. A row gets shorter only when all its long cells have, so the first
        of them saves no line of the table by itself.
        """
        return (self.saved + self.shorter) / self.characters


def _step(columns: Sequence[_Column], widths: Sequence[int], i: int, left: int) -> _Step | None:
    """By how much column ``i`` must grow until its cells need fewer lines, and how many lines that
    saves, both in the table and in the cells of the column alone; None if the ``left`` characters
    of room are not enough for it. The second number counts because a row gets lower only when its
    highest cell does, so the first of several high cells saves no line of the table.
    """
    heights = []  # lines of each cell, by column
    for column, width in zip(columns, widths, strict=True):
        heights.append(column.heights(width))

    own_width = widths[i]
    widest = min(own_width + left, columns[i].longest)
    for width in range(own_width + 1, widest + 1):
        grown = columns[i].heights(width)
        shorter = sum(heights[i]) - sum(grown)
        if shorter > 0:
            # The table with this column in the new width.
            heights_then = [*heights[:i], grown, *heights[i + 1 :]]
            saved = _lines(heights) - _lines(heights_then)
            return _Step(i, width - own_width, saved, shorter)
    return None


def _lines(heights: Sequence[Sequence[int]]) -> int:
    """The lines of a table: each row is as high as its highest cell. ``heights``: of each column's
    cells.
    """
    rows = zip(*heights, strict=True)
    return sum(max(row) for row in rows)
