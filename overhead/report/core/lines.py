"""Lines through points: a time over the sequences of a batch; and the points of a case's T(n)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    NARROW_INCHES,
    PAPER,
    SMALL,
    new_figure,
    plain_log_ticks,
    style,
)
from overhead.results import Point, Record, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_CHART_INCHES = 3.0
_NARROW_CHART_INCHES = 2.4
"""Inches of the height of a chart, and of one on a phone. Chosen by eye."""
_FURTHEST = 10
"""An interval is drawn down to this part of its value."""
_LABEL_POINTS = 11
"""Points between the labels of two lines, so that they do not touch."""
_LONGEST_NS = 1e15
"""ns: a longer time is no measurement, and drawing it overflows."""
LinePoint = tuple[float, Value]
"""x, and y with its interval."""


@dataclasses.dataclass(frozen=True)
class DrawnLine:
    """Points that a line joins. ``marker``: of each point, hollow where its value is not ``ok``."""

    label: str
    points: Sequence[LinePoint]
    colour: str
    marker: str = "o"


@style()
def line_chart(lines: Sequence[DrawnLine], x: str, y: str, *, width: float) -> Figure:
    """A figure of lines on one pair of logarithmic axes, each with its label at its right end. At
    the width of a phone the labels stand in a legend below.

    ``x``, ``y``: what the axes count. The ticks of ``x`` are at the points.
    """
    is_narrow = width <= NARROW_INCHES
    height = _NARROW_CHART_INCHES if is_narrow else _CHART_INCHES
    figure, (ax,) = new_figure([height], width=width)
    ax.set(xscale="log", yscale="log")
    for line in lines:
        _draw_line(ax, line)
    _ticks_at_points(ax, lines)
    plain_log_ticks(ax.yaxis)
    ax.set_xlabel(plain(x, 60))
    ax.set_ylabel(plain(y, 60))
    ax.tick_params(labelsize=SMALL)
    if is_narrow:
        figure.legend(loc="outside lower left", fontsize=SMALL)
    else:
        _label_ends(ax, lines, height)
    return figure


def _ticks_at_points(ax: Axes, lines: Sequence[DrawnLine]) -> None:
    """Put the ticks of the horizontal axis where the points are."""
    places: set[float] = set()
    for line in lines:
        places.update(x for x, _ in line.points)
    ax.set_xticks(sorted(places), [f"{place:,.10g}" for place in sorted(places)])
    ax.minorticks_off()


def _label_ends(ax: Axes, lines: Sequence[DrawnLine], height: float) -> None:
    """Write the label of each line behind its last point. A label that would touch the one below it
    moves up. ``height``: of the axes, in inches.
    """
    low, high = ax.get_ylim()
    points_high = 72 * height
    previous = float("-inf")
    for line in sorted(lines, key=_last_y):
        x, y = line.points[-1]
        # Points from the lower end of the axis, which is logarithmic.
        place = points_high * math.log(y.value / low) / math.log(high / low)
        moved = max(place, previous + _LABEL_POINTS)
        previous = moved
        ax.annotate(
            plain(line.label, 60),
            (x, y.value),
            xytext=(9, moved - place),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=line.colour,
            annotation_clip=False,
        )


def _last_y(line: DrawnLine) -> float:
    _, y = line.points[-1]
    return y.value


def _draw_line(ax: Axes, line: DrawnLine) -> None:
    """A line with a mark at each point, and its interval. What is not above zero has no place on a
    logarithmic axis.
    """
    shown = [(x, y) for x, y in line.points if x > 0 and y.value > 0]
    xs = [x for x, _ in shown]
    values = [y.value for _, y in shown]
    look: dict[str, Any] = {"color": line.colour, "markersize": 5}
    # For the legend: the line with its mark.
    ax.plot(xs, values, line.marker + "-", label=plain(line.label, 60), linewidth=1.1, **look)
    for x, y in shown:
        if y.low is not None and y.high is not None:
            # A low end near zero would reach endlessly far down: the line ends at a tenth of the
            # value (``_FURTHEST``).
            least = max(y.low, y.value / _FURTHEST)
            ax.plot([x, x], [least, y.high], color=line.colour, linewidth=1.4)
        # The mark of a figure in doubt is hollow: filled with the colour of the paper.
        if y.status != "ok":
            ax.plot([x], [y.value], line.marker, markerfacecolor=PAPER, **look)


def measured_points(record: Record) -> list[Point]:
    """The points (n, times in ns) of the record's curve that can be drawn."""
    return [point for point in record.curve if _can_be_drawn(point)]


def _can_be_drawn(point: Point) -> bool:
    longest = max(point.total, point.q3, point.issue)
    return point.n > 0 and point.total > 0 and longest < _LONGEST_NS
