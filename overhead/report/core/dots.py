"""Rows of dots with intervals: the marks, their values at the end of the row and on hover, and the axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from overhead.reading.format import number, plain, resolved, spread, unresolved
from overhead.reading.view import CALLER_WORDS, TargetView
from overhead.report.core.draw import (
    CALLER_MARKERS,
    INK,
    MARKER_SIZE,
    MUTED,
    PAPER,
    SMALL,
    canvas,
    marker_legend,
    plain_log_ticks,
    small_titles,
    style,
    tip,
    two_lines,
)
from overhead.report.core.palette import colour as stack_colour
from overhead.results import Figure as Number, Record, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES = 0.27
_MOST_VALUES_PRINTED = 3
"""Values that stand at the end of a row; rows with more have them on hover alone."""


_MOST_ROWS = 40
"""Rows of a figure: more than these cannot be compared by eye."""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A dot with its interval, ``at`` a value in the unit of the axis; hollow if its status is not ``ok``.

    ``ring``: highlighted. ``of``: what the mark stands for in its row, such as the caller; it is shown on hover.
    """

    at: Value
    colour: str
    marker: str = "o"
    ring: bool = False
    of: str = ""


@dataclasses.dataclass(frozen=True)
class DotRow:
    """A row of dots, with their values at its end. ``note``: text beside the dots, or in place of missing ones."""

    label: str
    marks: Sequence[Mark]
    note: str = ""


def mark(figure: Number | None, colour: str, marker: str = "o", of: str = "") -> list[Mark]:
    """The figure as a list of one dot in microseconds; an empty list if it is not resolved."""
    found = figure.measured if figure is not None else None
    if found is None or not found.resolved:
        return []
    said = ", ".join(word for word in (of, found.status) if word not in ("", "ok"))
    return [Mark(found / 1e3, colour, marker, of=said)]


def caller_row(label: str, records: Sequence[tuple[TargetView, Record]], name: str = "complete") -> DotRow:
    """A row with the figure ``name`` of each record, one marker per caller. The note names callers without a mark."""
    marks = [
        m
        for t, r in records
        for m in mark(r.figure(name), stack_colour(t.stack), CALLER_MARKERS[r.caller], CALLER_WORDS[r.caller])
    ]
    absent = [
        f"{CALLER_WORDS[r.caller]}: {unresolved(found) if (found := r.figure(name)) is not None else r.status}"
        for _, r in records
        if not resolved(r.figure(name))
    ]
    return DotRow(label, marks, ", ".join(absent))


@style()
def dot_figure(
    rows: Sequence[DotRow], unit: str, shapes: Mapping[str, str] | None = None, *, one: float | None = None
) -> Figure:
    """The rows in one panel.

    ``unit``: below the axis; ``shapes``: the legend, markers by what they stand for; ``one``: a line at this value.
    Of very many rows the first and the last are drawn; a row between them tells how many are left out.
    """
    rows = _first_and_last(rows)
    figure, [[ax]] = canvas([_ROW_INCHES * len(rows)], around=0.75)
    dot_rows(ax, rows)
    ax.set_xlabel(unit)
    if one is not None:
        ax.axvline(one, color=INK, linewidth=0.9, zorder=1)
    if shapes:
        marker_legend(figure, dict(shapes))
    return figure


@style()
def dot_panels(
    panels: Sequence[tuple[str, str, Sequence[DotRow]]],
    shapes: Mapping[str, str] | None = None,
    *,
    row: float = _ROW_INCHES,
    shared: bool = True,
) -> Figure:
    """Panels of rows, each with its title and unit. ``row``: inches of a row; ``shared``: one axis for all panels."""
    figure, grid = canvas([row * len(rows) for _, _, rows in panels], around=0.75)
    for (ax,), (title, unit, rows) in zip(grid, panels, strict=True):
        dot_rows(ax, rows)
        small_titles(ax, title, unit)
    if shared:
        shared_axis([ax for (ax,) in grid], [rows for _, _, rows in panels])
    if shapes:
        marker_legend(figure, dict(shapes))
    return figure


def _first_and_last(rows: Sequence[DotRow]) -> Sequence[DotRow]:
    left_out = len(rows) - _MOST_ROWS
    if left_out <= 0:
        return rows
    half = _MOST_ROWS // 2
    return [*rows[:half], DotRow(f"{left_out:,} more", [], "in the table"), *rows[-half:]]


def dot_rows(ax: Axes, rows: Sequence[DotRow], *, log: bool = True, values: bool = True) -> None:
    """Draw the rows from top to bottom with their labels. The marks of a row are slightly offset.

    ``values``: print the values of each row at its right end; on hover they are always there.
    """
    if log:
        ax.set_xscale("log", nonpositive="clip")
    for y, row in enumerate(rows):
        shown = _shown(row, log)
        for offset, m in zip(_offsets(len(shown)), shown, strict=True):
            _dot(ax, y + offset, m, row.label)
        hidden = len(row.marks) - len(shown)
        note = "; ".join(n for n in (row.note, "not above zero" if hidden else "") if n)
        if note:
            _note(ax, y, note, beside=bool(shown))
        if values and 0 < len(shown) <= _MOST_VALUES_PRINTED:
            text = " · ".join(number(m.at) for m in shown)
            ax.text(1.01, y, text, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL, color=INK)
    ax.set_yticks(range(len(rows)), [two_lines(row.label) for row in rows], fontsize=SMALL, linespacing=1.15)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    if log:
        log_axis(ax, rows)
    _arrows(ax, rows, log)


def shared_axis(axes: Sequence[Axes], rows: Sequence[Sequence[DotRow]]) -> None:
    """Give panels that hold the same quantity one log axis, so that they can be compared by eye."""
    every = [row for panel in rows for row in panel]
    for ax, own in zip(axes, rows, strict=True):
        log_axis(ax, every)
        _arrows(ax, own, log=True)


def _shown(row: DotRow, log: bool) -> list[Mark]:
    return [m for m in row.marks if not log or m.at.value > 0]


def _offsets(marks: int) -> list[float]:
    """The height of each mark of a row above or below its middle."""
    step = 0.5 / max(marks, 2)
    return [(index - (marks - 1) / 2) * step for index in range(marks)]


def _arrows(ax: Axes, rows: Sequence[DotRow], log: bool) -> None:
    """An arrow at the edge of the axis for each interval that goes on beyond it."""
    for old in [line for line in ax.lines if line.get_label() == "arrow"]:
        old.remove()
    left, right = ax.get_xlim()
    for y, row in enumerate(rows):
        shown = _shown(row, log)
        for offset, m in zip(_offsets(len(shown)), shown, strict=True):
            for end, edge, shape in ((m.at.low, left, "<"), (m.at.high, right, ">")):
                if end is not None and (end < left if shape == "<" else end > right):
                    ax.plot(
                        [edge],
                        [y + offset],
                        linestyle="",
                        marker=shape,
                        markersize=5,
                        color=m.colour,
                        clip_on=False,
                        zorder=3,
                        label="arrow",
                    )


def log_axis(ax: Axes, rows: Sequence[DotRow]) -> None:
    """Set the limits of the axis around the marks, at least one decade, with plain numbers at the ticks."""
    ends = [v for row in rows for m in row.marks for v in (m.at.low, m.at.value, m.at.high) if v is not None and v > 0]
    values = [m.at.value for row in rows for m in row.marks if m.at.value > 0]
    if values:
        low, high = max(min(ends), min(values) / 10), min(max(ends), max(values) * 10)
        middle, half = math.sqrt(low * high), max(math.sqrt(high / low) * 1.35, 3.3)
        ax.set_xlim(middle / half, middle * half)
    plain_log_ticks(ax.xaxis)


def _dot(ax: Axes, y: float, m: Mark, label: str) -> None:
    at = m.at
    if at.low is not None and at.high is not None:
        low = max(at.low, at.value / 1e3) if ax.get_xscale() == "log" else at.low
        ax.plot([low, at.high], [y, y], color=m.colour, linewidth=1.6, zorder=2)
    (dot,) = ax.plot(
        [at.value],
        [y],
        linestyle="",
        marker=m.marker,
        markersize=MARKER_SIZE.get(m.marker, 5),
        markeredgecolor=INK if m.ring else m.colour,
        markerfacecolor=PAPER if at.status != "ok" else m.colour,
        markeredgewidth=1.2,
        zorder=4 if m.ring else 3,
    )
    tip(dot, f"{label}{f', {m.of}' if m.of else ''}: {spread(at)}")


def _note(ax: Axes, y: float, note: str, *, beside: bool) -> None:
    x, side = (0.995, "right") if beside else (0.01, "left")
    ax.text(
        x,
        y - (0.3 if beside else 0.0),
        plain(note, 60),
        transform=ax.get_yaxis_transform(),
        va="center",
        ha=side,
        fontsize=SMALL,
        color=MUTED,
        zorder=1,
    )
