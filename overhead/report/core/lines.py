"""Panels of lines and points: a time over the number of units, of dispatches or of sequences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    from matplotlib.figure import Figure

_PANEL_INCHES = 1.7
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
    """A figure of the panels in reading order. ``y``: the unit of the vertical axes."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    figure, axes = new_figure([_PANEL_INCHES] * rows, columns)
    for ax, panel in zip(axes, panels, strict=False):
        ax.set(xscale="log", yscale="log")
        for line in panel.lines:
            shown = [p for p in line.points if min(p[0], p[1].value) > 0]
            at = [x for x, _ in shown]
            values = [point.value for _, point in shown]
            ax.plot(at, values, "-", color=line.colour, linewidth=1.1)
            for x, y_at in shown:
                if y_at.low is not None and y_at.high is not None:
                    least = max(y_at.low, y_at.value / _FURTHEST)
                    ax.plot([x, x], [least, y_at.high], color=line.colour, linewidth=1.4)
                inside = line.colour if y_at.status == "ok" else PAPER
                ax.plot(
                    [x],
                    [y_at.value],
                    line.marker,
                    markersize=4.5,
                    color=line.colour,
                    markerfacecolor=inside,
                )
        plain_log_ticks(ax.xaxis)
        plain_log_ticks(ax.yaxis)
        ax.set_title(wrapped_label(panel.title, 68 // columns))
        ax.set_xlabel(plain(panel.x, 60))
        ax.tick_params(labelsize=SMALL)
    for ax in axes[::columns]:
        ax.set_ylabel(plain(y, 40))
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    return figure


def measured_points(record: Record) -> list[Point]:
    """The points (n, times in ns) of the record's curve that can be drawn."""
    return [
        p
        for p in record.curve
        if p.n > 0 and 0 < p.total < _LONGEST_NS and max(p.q3, p.issue) < _LONGEST_NS
    ]
