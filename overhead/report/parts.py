"""What a section is made of. The template draws each kind; every text is escaped there."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from overhead.reading.keyfigures import KeyFigure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class Text:
    """Sentences, a paragraph each; ``quiet`` for remarks."""

    kind: ClassVar[str] = "text"
    paragraphs: Sequence[str]
    quiet: bool = False


@dataclasses.dataclass(frozen=True)
class Cards:
    """Key figures, a card each."""

    kind: ClassVar[str] = "cards"
    figures: Sequence[KeyFigure]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A table cell with a stack's colour before its text."""

    text: str
    stack: str


@dataclasses.dataclass(frozen=True)
class Table:
    """``numeric`` columns align right; ``folded`` tables open on request. A row's first cell is its heading."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    numeric: Sequence[int] = ()
    folded: bool = False


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A figure, in the page and as files ``<name>.svg`` and ``<name>.png``. ``alt`` says what a reader would see."""

    kind: ClassVar[str] = "drawing"
    name: str
    title: str
    alt: str
    caption: str
    figure: Figure


Part = Text | Cards | Table | Drawing
