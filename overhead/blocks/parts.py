"""The kinds of blocks: the parts of a section of a page, and of what a command prints. Renderers
escape every text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar

from overhead.results import Record
from overhead.words.format import MICRO, micro_spread
from overhead.words.glossary import Term

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_Value = TypeVar("_Value")
Item = TypeVar("Item")
"""What a row of a table is about."""
Tone = Literal["", "good", "unsure", "bad"]
"""How something stands, as its presenter judges it from facts. A terminal colours by it, never by
what is printed.
"""


@dataclasses.dataclass(frozen=True)
class Heading:
    """A heading inside a section of a page, or of a part of what a command prints."""

    kind: ClassVar[str] = "heading"
    text: str


@dataclasses.dataclass(frozen=True)
class Text:
    """Paragraphs of text. ``quiet``: a remark in small type; ``lead``: the answer that a page opens
    with.

    ``folded``: the title of a block that the reader can open. A terminal does not show it.
    ``path``: the page that the paragraphs link to.
    """

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]
    quiet: bool = False
    lead: bool = False
    folded: str = ""
    path: str = ""


@dataclasses.dataclass(frozen=True)
class Cell:
    """A table cell with more than text. ``stack``: its colour stands before the text.

    ``path``: a link to the page with this path; ``url``: a link to this https address; ``hover``:
    text that a pointer shows; ``tone``: how what the cell names stands. ``anchor``: in the first
    cell of a row, the id of the row on its page. It is made of a name or a key, and not of a
    position, so that a link to the row stays right. ``details``: paragraphs that a page shows when
    the reader opens the text.
    """

    text: str
    stack: str = ""
    path: str = ""
    url: str = ""
    hover: str = ""
    tone: Tone = ""
    anchor: str = ""
    details: Sequence[str] = ()


class InMicroseconds(str):
    """The heading of a column of times, with their unit. ``name``: what a sentence calls the
    column.
    """

    name: str

    def __new__(cls, name: str, between: str = ", ") -> InMicroseconds:
        """The heading ``name, µs``. ``between``: what stands before the unit."""
        made = super().__new__(cls, f"{name}{between}{MICRO}")
        made.name = name
        return made


def column_name(heading: str) -> str:
    """What a sentence calls a column with this heading: its name without a unit."""
    return heading.name if isinstance(heading, InMicroseconds) else heading


def cell_text(cell: str | Cell) -> str:
    """The text of the cell."""
    return cell if isinstance(cell, str) else cell.text


def micro_cell(record: Record | None, name: str) -> str:
    """The figure of that name in microseconds with its interval, or its status; '' if there is no
    record or figure.
    """
    return micro_spread(record.figure(name) if record is not None else None)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table. The first cell of a row is its heading. ``numeric``: columns of numbers, which align
    right.

    ``folded``: the reader can open the table. ``prose``: cells hold sentences, so a phone and a
    terminal show a row as a block. ``sortable``: a script lets the reader sort and filter it.

    A narrow terminal hides columns, and says which. ``optional``: it hides these so that the others
    have room, the first of them first; columns in a tuple go together. ``important``: it hides
    these last, in their order, if the rest does not fit even with narrow text. The columns in
    neither are the answer: no terminal of 60 characters or more hides them.

    ``meanings``: what a column means; it is said below the table wherever the column is shown.
    ``ends``: rows with a line below. ``most``: rows that a terminal shows, 0 for all. ``file``:
    path of the same table as CSV.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numeric: Sequence[int] = ()
    folded: bool = False
    prose: bool = False
    sortable: bool = False
    optional: Sequence[int | tuple[int, ...]] = ()
    important: Sequence[int | tuple[int, ...]] = ()
    meanings: Mapping[int, str] = dataclasses.field(default_factory=dict)
    ends: Collection[int] = ()
    most: int = 0
    file: str = ""

    def without_empty(self, first: int = 0) -> Table:
        """A table without the columns that are empty in every row; the columns before index
        ``first`` stay.
        """
        kept = [i for i in range(len(self.columns)) if i < first or self._has_text(i)]
        # Other fields name columns by index, and these change.
        new_places = {old: new for new, old in enumerate(kept)}

        columns = _picked(self.columns, kept)
        rows = [_picked(row, kept) for row in self.rows]
        numeric = [new for old, new in new_places.items() if old in self.numeric]
        optional = _moved(self.optional, new_places)
        important = _moved(self.important, new_places)
        meanings = {}
        for old, new in new_places.items():
            if old in self.meanings:
                meanings[new] = self.meanings[old]

        return dataclasses.replace(
            self,
            columns=columns,
            rows=rows,
            numeric=numeric,
            optional=optional,
            important=important,
            meanings=meanings,
        )

    def _has_text(self, column: int) -> bool:
        """Whether a cell of the column is not empty. A ``Cell`` counts as text, even one without
        any.
        """
        return any(row[column] for row in self.rows)


def _picked(values: Sequence[_Value], kept: Sequence[int]) -> list[_Value]:
    return [values[i] for i in kept]


def _moved(
    groups: Sequence[int | tuple[int, ...]], new_places: Mapping[int, int]
) -> list[tuple[int, ...]]:
    """The groups of columns (those that a narrow terminal hides together), after some columns of
    the table are gone. ``new_places``: by the old index of a column its new one; a column that is
    not there is gone. ``columns_of``: the indices of a group, which may be a single one.
    """
    moved = []
    for group in groups:
        kept = [i for i in columns_of(group) if i in new_places]
        moved.append(tuple(new_places[i] for i in kept))
    return moved


def columns_of(group: int | tuple[int, ...]) -> tuple[int, ...]:
    """The columns that a terminal hides together."""
    return (group,) if isinstance(group, int) else group


@dataclasses.dataclass(frozen=True)
class Column(Generic[Item]):
    """A column of a table: all that a table knows about it, so that one is added in one place.

    ``cell`` returns the cell of the item that a row is about. ``is_number``: the cells are numbers,
    which align right. ``only_if_filled``: the table has the column only if a cell of it is not
    empty. ``meaning``: what the column means, said below the table.

    ``hidden``: a narrow terminal hides the columns 1, 2, ... in this order so that others have
    room; 0 is not hidden for that. ``is_important``: hidden last, only if the rest does not fit
    even with narrow text.
    """

    heading: str
    cell: Callable[[Item], str | Cell]
    is_number: bool = False
    only_if_filled: bool = False
    hidden: int = 0
    is_important: bool = False
    meaning: str = ""


def table_of(
    caption: str, columns: Sequence[Column[Item]], items: Iterable[Item], **options: Any
) -> Table:
    """A table with a row for each item, whose cells the columns make. ``options``: fields of
    ``Table`` that are not about single columns, such as ``folded``.
    """
    # Row after row: the code that finds the figures again in the finished page (page_facts) expects
    # them to become text in the order in which they are read.
    rows = []
    for item in items:
        rows.append([column.cell(item) for column in columns])

    kept = []
    for i, column in enumerate(columns):
        if not column.only_if_filled or any(row[i] for row in rows):
            kept.append(i)
    shown = _picked(columns, kept)

    # What the columns say of themselves, as the table says it: by their indices.
    numeric = []
    hidden_at: dict[int, int] = {}
    important = []
    meanings = {}
    for place, column in enumerate(shown):
        if column.is_number:
            numeric.append(place)
        if column.hidden:
            # ``hidden``: its turn to be hidden in a narrow terminal, from 1 on; 0 for never.
            hidden_at[column.hidden] = place
        if column.is_important:
            important.append(place)
        if column.meaning:
            meanings[place] = column.meaning

    return Table(
        caption,
        [column.heading for column in shown],
        [_picked(row, kept) for row in rows],
        numeric=numeric,
        optional=[hidden_at[turn] for turn in sorted(hidden_at)],  # the first to be hidden first
        important=important,
        meanings=meanings,
        **options,
    )


@dataclasses.dataclass(frozen=True)
class StatusLine:
    """A sentence after a word for its status, such as ``failed``; ``details`` stand below it.

    ``tone``: how it stands. ``names``: ``status`` is the name of what the text is about, so a colon
    follows it.
    """

    kind: ClassVar[str] = "status"
    status: str
    text: str
    details: Sequence[str | StatusLine] = ()
    tone: Tone = ""
    names: bool = False

    @property
    def head(self) -> str:
        """What stands before the text."""
        return f"{self.status}:" if self.names else self.status


@dataclasses.dataclass(frozen=True)
class Listing:
    """A numbered list: for each item a sentence that stands out, and details in small type."""

    kind: ClassVar[str] = "listing"
    items: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Advice:
    """What to do, in a sentence that stands out, and details in small type. ``path``: of the page
    with more about it, whose title is ``page``.
    """

    title: str
    detail: str = ""
    path: str = ""
    page: str = ""


@dataclasses.dataclass(frozen=True)
class AdviceGroup:
    """Advice for one kind of reader, numbered. ``more``: further advice, which a page folds below
    the words ``more_title``.
    """

    reader: str
    first: Sequence[Advice]
    more: Sequence[Advice] = ()
    more_title: str = ""


@dataclasses.dataclass(frozen=True)
class GroupedAdvice:
    """Advice for several kinds of readers, in columns beside each other where there is room."""

    kind: ClassVar[str] = "advice"
    groups: Sequence[AdviceGroup]


@dataclasses.dataclass(frozen=True)
class Terms:
    """Terms with their meanings; the first place of each term on the pages links to it."""

    kind: ClassVar[str] = "terms"
    terms: Sequence[Term]


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure, in the page and as files ``<name>.svg`` and ``<name>.png``. ``alt``: its finding,
    for screen readers.

    ``draw``: makes the figure; a renderer without pictures never calls it. ``draw_narrow``: makes
    it in another layout, as wide as a phone; None where ``draw`` is legible there, or scrolls.
    ``folded``: the reader can open the figure. ``table``: the same numbers; it stands below the
    figure, or in its place where nothing is drawn.
    """

    kind: ClassVar[str] = "drawing"
    name: str
    title: str
    alt: str
    caption: str
    draw: Callable[[], Figure]
    draw_narrow: Callable[[], Figure] | None = None
    folded: bool = False
    table: Table | None = None


Part = Heading | Text | Table | StatusLine | Listing | GroupedAdvice | Terms | Drawing
"""What a section may yield."""


def without_pictures(blocks: Iterable[Part]) -> Iterator[Part]:
    """The blocks for a terminal, Markdown or a notebook, which show no drawings: in place of a
    drawing its table, or a sentence with its finding (``alt``, which a page reads to those who do
    not see the drawing). A page folds the table below a drawing; alone it is shown.
    """
    for block in blocks:
        if not isinstance(block, Drawing):
            yield block
        elif block.table is None:
            yield Text([f"{block.title}: {block.alt}"], quiet=True)
        else:
            yield dataclasses.replace(block.table, folded=False)
