"""What a section is made of. The template draws each kind; every text is escaped there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from overhead.reading.format import micro_spread
from overhead.reading.key_figures import KeyFigure
from overhead.results import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Text:
    """Sentences, a paragraph each; ``quiet`` for remarks, ``lead`` for what the page opens with.

    ``folded``: a title under which they open on request.
    """

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]
    quiet: bool = False
    lead: bool = False
    folded: str = ""


@dataclasses.dataclass(frozen=True)
class Cards:
    """Key figures, a card each."""

    kind: ClassVar[str] = "cards"
    figures: Sequence[KeyFigure]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A table cell with a stack's colour before its text, or with a link to the page of a machine of that id."""

    text: str
    stack: str = ""
    machine: str = ""


def micro_cell(record: Record, name: str) -> str:
    """The record's figure in microseconds with its interval, or its status; empty where it was not measured."""
    figure = record.figure(name)
    return micro_spread(figure) if figure is not None else ""


@dataclasses.dataclass(frozen=True)
class Table:
    """``numeric`` columns align right; ``folded`` tables open on request. A row's first cell is its heading.

    ``prose``: cells hold sentences, so on a phone a row becomes a block and nothing scrolls sideways.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numeric: Sequence[int] = ()
    folded: bool = False
    prose: bool = False


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure, in the page and as files ``<name>.svg`` and ``<name>.png``. ``alt`` says what a reader would see."""

    kind: ClassVar[str] = "drawing"
    name: str
    title: str
    alt: str
    caption: str
    figure: Figure


@dataclasses.dataclass(frozen=True)
class Sketch:
    """A figure that is SVG text (``report.core.template_figures``), in the page and as the file ``<name>.svg``."""

    kind: ClassVar[str] = "sketch"
    name: str
    title: str
    alt: str
    caption: str
    svg: str


Part = Text | Cards | Table | Drawing | Sketch
