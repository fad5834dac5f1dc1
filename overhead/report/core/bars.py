"""Rows of stacked bars: the pieces, the text behind each bar, and the legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from overhead.reading.format import plain
from overhead.report.core.draw import PAPER, SMALL, add_legend, new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW_INCHES = 0.3
_LABEL_LETTERS = 36
BarPiece = tuple[str, float, str]
"""Title ('' for none in the legend), length in the unit of the axis, and colour."""


@dataclasses.dataclass(frozen=True)
class BarRow:
    """A label, the pieces of a bar from left to right, and the text (``note``) behind it."""

    label: str
    pieces: Sequence[BarPiece]
    note: str = ""


@style()
def bar_figure(rows: Sequence[BarRow], unit: str) -> Figure:
    """A stacked bar for each row on one axis, which begins at zero, with its unit below; a legend of the pieces."""
    from matplotlib.patches import Patch
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    figure, (ax,) = new_figure([_ROW_INCHES * len(rows)])
    for y, row in enumerate(rows):
        end = 0.0
        for _, length, colour in row.pieces:
            ax.barh(y, length, left=end, height=0.66, color=colour, edgecolor=PAPER, linewidth=0.8)
            end += length
        ax.annotate(plain(row.note, 60), (end, y), (4, 0), textcoords="offset points", va="center", fontsize=SMALL)
    ax.set_yticks(range(len(rows)), [fill(plain(row.label, 80), _LABEL_LETTERS) for row in rows])
    ax.set_ylim(len(rows) - 0.45, -0.5)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.set_xlabel(plain(unit, 60))
    colours = {plain(title, 40): colour for row in rows for title, _, colour in row.pieces if title}
    add_legend(figure, [Patch(facecolor=colour, label=title) for title, colour in colours.items()])
    return figure
