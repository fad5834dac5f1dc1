"""Panels of lines and points: a time over the number of units, of dispatches or of sequences."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel
from overhead.report.core.draw import (
    PAPER,
    SMALL,
    new_figure,
    plain_log_ticks,
    style,
    wrapped_label,
)
from overhead.results import Point, Record, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANEL_INCHES = 1.7
_TITLE_LETTERS = 68
"""Letters of a title over the whole width of the figure."""
_FURTHEST = 10
"""An interval is drawn down to this part of its value."""
_LONGEST_NS = 1e15
"""ns: a longer time is no measurement, and drawing it overflows."""
LinePoint = tuple[float, Value]
"""x, and y with its interval."""


@dataclasses.dataclass(frozen=True)
class DrawnLine:
    """Points that a line joins. ``marker``: of each point, hollow where its value is not ``ok``."""

    points: Sequence[LinePoint]
    colour: str
    marker: str = "o"


@dataclasses.dataclass(frozen=True)
class LinePanel:
    """Lines on one pair of logarithmic axes. ``x``: what the horizontal axis counts."""

    title: str | TargetLabel
    x: str
    lines: Sequence[DrawnLine]


@style()
def line_panels(panels: Sequence[LinePanel], y: str, *, columns: int = 2) -> Figure:
    """A figure of the panels in reading order, at most ``columns`` in a row. ``y``: the unit of the
    vertical axes.
    """
    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure, axes = new_figure([_PANEL_INCHES] * rows, columns)
    for ax, panel in zip(axes, panels, strict=False):
        ax.set(xscale="log", yscale="log")
        for line in panel.lines:
            _draw_line(ax, line)
        plain_log_ticks(ax.xaxis)
        plain_log_ticks(ax.yaxis)
        # The panels of a row share the letters that fit over the whole figure. ``plain``: a text of
        # a file made safe to draw, and cut at so many letters.
        ax.set_title(wrapped_label(panel.title, _TITLE_LETTERS // columns))
        ax.set_xlabel(plain(panel.x, 60))
        ax.tick_params(labelsize=SMALL)
    first_of_rows = axes[::columns]
    for ax in first_of_rows:
        ax.set_ylabel(plain(y, 40))
    # The last row of the grid may have more axes than there are panels.
    without_panel = axes[len(panels) :]
    for ax in without_panel:
        ax.set_visible(False)
    return figure


def _draw_line(ax: Axes, line: DrawnLine) -> None:
    """A line with a mark at each point, and its interval. What is not above zero has no place on a
    logarithmic axis.
    """
    shown = [(x, y) for x, y in line.points if x > 0 and y.value > 0]
    xs = [x for x, _ in shown]
    values = [y.value for _, y in shown]
    ax.plot(xs, values, "-", color=line.colour, linewidth=1.1)
    for x, y in shown:
        if y.low is not None and y.high is not None:
            # A low end near zero would reach endlessly far down: the line ends at a tenth of the
            # value (``_FURTHEST``).
            least = max(y.low, y.value / _FURTHEST)
            ax.plot([x, x], [least, y.high], color=line.colour, linewidth=1.4)
        # The mark of a figure in doubt is hollow: filled with the colour of the paper.
        inside = line.colour if y.status == "ok" else PAPER
        look: dict[str, Any] = {"color": line.colour, "markersize": 4.5, "markerfacecolor": inside}
        ax.plot([x], [y.value], line.marker, **look)


def measured_points(record: Record) -> list[Point]:
    """The points (n, times in ns) of the record's curve that can be drawn."""
    return [point for point in record.curve if _can_be_drawn(point)]


def _can_be_drawn(point: Point) -> bool:
    longest = max(point.total, point.q3, point.issue)
    return point.n > 0 and point.total > 0 and longest < _LONGEST_NS
