"""Rows of stacked bars: the pieces, the text behind each bar, and the legend."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from overhead.reading.format import plain
from overhead.report.core.draw import PAPER, SMALL, canvas, legend, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES = 0.3
_LABEL_LETTERS = 36
BarPiece = tuple[str, float, str]
"""Title, length in the unit of the axis, and colour."""


@dataclasses.dataclass(frozen=True)
class BarRow:
    """A label, the pieces of a bar from left to right, and the text behind it."""

    label: str
    pieces: Sequence[BarPiece]
    note: str = ""


@style()
def bar_figure(panels: Sequence[tuple[str, Sequence[BarRow]]]) -> Figure:
    """Panels of bars, each with the unit below its own axis, which begins at zero."""
    from matplotlib.patches import Patch

    figure, axes = canvas([_ROW_INCHES * len(rows) for _, rows in panels])
    for ax, (unit, rows) in zip(axes, panels, strict=True):
        _panel(ax, unit, rows)
    pieces = [piece for _, rows in panels for row in rows for piece in row.pieces]
    colours = {plain(title, 40): colour for title, _, colour in pieces if title}
    legend(figure, [Patch(facecolor=colour, label=title) for title, colour in colours.items()])
    return figure


def _panel(ax: Axes, unit: str, rows: Sequence[BarRow]) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

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
