"""Rows of stacked bars: the pieces, a thinner bar below them, the text behind each bar, and the legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from overhead.reading.format import number, plain, within
from overhead.report.core.draw import INK, MUTED, PAPER, SMALL, canvas, style, tip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES, _WITH_BELOW_INCHES = 0.3, 0.52
_LABEL_LETTERS = 36
_MOST_COLUMNS = 3
"""Columns of the legend."""
BarPiece = tuple[str, float, str]
"""Title, length in the unit of the axis, and colour. Pieces in the colour of the page have an edge."""


@dataclasses.dataclass(frozen=True)
class BarRow:
    """A label, the pieces of a bar from left to right, and the text behind it; and a thinner bar ``below``."""

    label: str
    pieces: Sequence[BarPiece]
    note: str = ""
    below: Sequence[BarPiece] = ()
    below_note: str = ""


@style()
def bar_figure(panels: Sequence[tuple[str, Sequence[BarRow]]]) -> Figure:
    """Panels of bars, each with the unit below its own axis, which begins at zero."""
    heights = [sum(_WITH_BELOW_INCHES if row.below else _ROW_INCHES for row in rows) for _, rows in panels]
    figure, grid = canvas(heights, around=0.6)
    for (ax,), (unit, rows) in zip(grid, panels, strict=True):
        _panel(ax, unit, rows)
    _legend(figure, [piece for _, rows in panels for row in rows for piece in (*row.pieces, *row.below)])
    return figure


def _panel(ax: Axes, unit: str, rows: Sequence[BarRow]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    middles = []
    for y, row in enumerate(rows):
        height = 0.4 if row.below else 0.66
        end = _bar(ax, y, height, row.label, row.pieces)
        _note(ax, end, y, row.note, INK)
        if row.below:
            below = y + (height + 0.2) / 2
            _note(ax, _bar(ax, below, 0.2, row.label, row.below), below, row.below_note, MUTED)
        middles.append(y + (0.1 if row.below else 0.0))
    ax.set_yticks(middles, [fill(plain(row.label, 80), _LABEL_LETTERS) for row in rows], fontsize=SMALL)
    ax.set_ylim(len(rows) - 0.45, -0.5)
    ends = [sum(length for _, length, _ in pieces) for row in rows for pieces in (row.pieces, row.below)]
    ax.set_xlim(0, 1.02 * max(ends, default=0.0) or 1.0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlabel(plain(unit, 60))


def _bar(ax: Axes, y: float, height: float, label: str, pieces: Sequence[BarPiece]) -> float:
    """Draw the pieces and return where they end."""
    at = 0.0
    for title, length, colour in pieces:
        edge = MUTED if colour in (PAPER, MUTED) else PAPER
        (bar,) = ax.barh(y, length, left=at, height=height, facecolor=colour, edgecolor=edge, linewidth=0.8)
        tip(bar, f"{label}{f', {title}' if title else ''}: {number(within(length, 0.005))}")
        at += length
    return at


def _note(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    ax.annotate(plain(text, 60), (x, y), (4, 0), textcoords="offset points", va="center", fontsize=SMALL, color=colour)


def _legend(figure: Figure, pieces: Sequence[BarPiece]) -> None:
    from matplotlib.patches import Patch

    colours = {plain(title, 40): colour for title, _, colour in pieces if title}
    handles = [
        Patch(facecolor=colour, edgecolor=MUTED if colour == PAPER else colour, label=title)
        for title, colour in colours.items()
    ]
    if handles:
        figure.legend(handles=handles, loc="outside upper left", ncols=_MOST_COLUMNS)
