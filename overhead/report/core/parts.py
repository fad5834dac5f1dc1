"""The kinds of parts in a section. The template draws each kind and escapes every text."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from overhead.reading.format import micro_spread
from overhead.reading.glossary import Term
from overhead.reading.key_figures import KeyFigure
from overhead.results import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Text:
    """Paragraphs of text. ``quiet``: a remark in small type; ``lead``: the opening of the page.

    ``folded``: the title of a block that the reader can open.
    """

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]
    quiet: bool = False
    lead: bool = False
    folded: str = ""


@dataclasses.dataclass(frozen=True)
class Cards:
    """A row of cards with one key figure each."""

    kind: ClassVar[str] = "cards"
    figures: Sequence[KeyFigure]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A table cell: the colour of a stack before its text, a link to the page of a machine, or a shade behind it.

    ``path``: a link to the page with this path; ``shade``: 0 (the page's colour) to 1 (the darkest); ``hover``: text
    that a pointer shows.
    """

    text: str
    stack: str = ""
    machine: str = ""
    path: str = ""
    shade: float | None = None
    hover: str = ""


def micro_cell(record: Record, name: str) -> str:
    """The figure of the record in microseconds with its interval, or its status; empty if it was not measured."""
    figure = record.figure(name)
    return micro_spread(figure) if figure is not None else ""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table. The first cell of a row is its heading. ``numeric``: columns that align right.

    ``folded``: the reader can open the table. ``prose``: cells hold sentences, so a phone shows a row as a block.
    ``sortable``: a script lets the reader sort and filter it.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numeric: Sequence[int] = ()
    folded: bool = False
    prose: bool = False
    sortable: bool = False


@dataclasses.dataclass(frozen=True)
class Listing:
    """A numbered list: for each item a sentence that stands out, and details in small type."""

    kind: ClassVar[str] = "listing"
    items: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Terms:
    """Terms with their meanings; the first place of each term on the pages links to it."""

    kind: ClassVar[str] = "terms"
    terms: Sequence[Term]


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure, in the page and as files ``<name>.svg`` and ``<name>.png``. ``alt``: its finding, for screen readers.

    ``folded``: the reader can open the figure.
    """

    kind: ClassVar[str] = "drawing"
    name: str
    title: str
    alt: str
    caption: str
    figure: Figure
    folded: bool = False


Part = Text | Cards | Table | Listing | Terms | Drawing
"""What a section may yield."""
