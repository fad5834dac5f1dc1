"""Rows of dots with intervals: the marks, and their values at the end of the row."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel
from overhead.report.core.draw import (
    FIGURE_WIDTH_INCHES,
    INK,
    MUTED,
    PAPER,
    SMALL,
    add_marker_legend,
    new_figure,
    plain_log_ticks,
    style,
    wrapped_label,
)
from overhead.results import Value
from overhead.words.format import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW_INCHES = 0.22
_MOST_VALUES_PRINTED = 3
"""Values that stand at the end of a row; the table has those of a row with more."""
_LETTERS_AN_INCH = 7.2
BAND_COLOUR = "#d5e3f0"
_LONG_RATIO = 8
_MARK, _SMALL_MARK = 5.5, 2.5
"""Points of a mark: of what was measured, and of what was published."""
LEAST_RATIOS = (0.75, 1.35)
"""An axis of ratios shows these at least."""
_MOST_ROWS = 40
"""Rows of a panel: more than these cannot be compared by eye."""
_FURTHEST = 10
"""An interval is drawn up to this multiple of its value, and down to this part of it; an arrow says
that it goes on.
"""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A dot with its interval, ``at`` a value in the unit of the axis; hollow if not ``ok``.
    ``small``: published.
    """

    at: Value
    colour: str
    marker: str = "o"
    small: bool = False


@dataclasses.dataclass(frozen=True)
class DotRow:
    """A row of dots, with their values at its end. ``note``: text in place of missing dots;
    ``end``: of the values.

    ``band``: a factor; where the dots are ratios, an area around 1 reaches up to it and down to its
    inverse.
    """

    label: str
    marks: Sequence[Mark]
    note: str = ""
    end: str = ""
    band: float | None = None


@style()
def dot_figure(
    panels: Mapping[str, Sequence[DotRow]] | Mapping[TargetLabel, Sequence[DotRow]],
    unit: str,
    shapes: Mapping[str, str | tuple[str, str]] | None = None,
    *,
    line_at_one: bool = False,
    joined: bool = False,
    share_axis: bool = True,
    width: float = FIGURE_WIDTH_INCHES,
) -> Figure:
    """A panel of rows below each title, on one log axis or, unless ``share_axis``, each on its own.

    ``unit``: below each axis; ``shapes``: the legend, as ``add_marker_legend`` takes it;
    ``line_at_one``: a line at 1; ``joined``: a bar between the marks of a row. Of very many rows
    the first and the last are drawn; a row between them tells how many are left out.
    """
    drawn = {title: _first_and_last(rows) for title, rows in panels.items()}
    heights = [_ROW_INCHES * len(rows) for rows in drawn.values()]
    figure, axes = new_figure(heights, width=width, sharex=share_axis)
    for ax, (title, rows) in zip(axes, drawn.items(), strict=True):
        _panel(ax, rows, joined, int(_LETTERS_AN_INCH * width))
        ax.set_title(wrapped_label(title, int(_LETTERS_AN_INCH * width)))
        if not share_axis or ax is axes[-1]:
            ax.set_xlabel(plain(unit, 60))
        if line_at_one:
            ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
            ax.axvspan(*LEAST_RATIOS, alpha=0)
    for ax in axes[:1] if share_axis else axes:
        (ratio_ticks if line_at_one else plain_log_ticks)(ax.xaxis)
    add_marker_legend(figure, shapes or {})
    return figure


def _first_and_last(rows: Sequence[DotRow]) -> Sequence[DotRow]:
    left_out = len(rows) - _MOST_ROWS
    if left_out <= 0:
        return rows
    half = _MOST_ROWS // 2
    return [*rows[:half], DotRow(f"{left_out:,} more", [], "in the table"), *rows[-half:]]


def ratio_ticks(axis: Any) -> None:
    """Put ticks of the log axis at powers of two, between them on a short one."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    between = () if high > _LONG_RATIO * low else (0.67, 0.8, 1.25, 1.5)
    axis.set_major_locator(FixedLocator(sorted((*(2.0**i for i in range(-9, 10)), *between))))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:.3g}"))


def _panel(ax: Axes, rows: Sequence[DotRow], joined: bool, letters: int) -> None:
    """The rows from top to bottom with their labels. The marks of a row are slightly offset."""
    ax.set_xscale("log")
    ends = ax.get_yaxis_transform()
    for y, row in enumerate(rows):
        shown = [m for m in row.marks if m.at.value > 0]
        if row.band is not None:
            ax.fill_betweenx(
                [y - 0.42, y + 0.42], 1 / row.band, row.band, color=BAND_COLOUR, linewidth=0
            )
        step = 0.0 if joined else 0.5 / max(len(shown), 2)
        if joined and shown:
            ax.plot(
                [shown[0].at.value, shown[-1].at.value],
                [y, y],
                color=shown[0].colour,
                linewidth=5,
                alpha=0.25,
            )
        for i, m in enumerate(shown):
            _dot(ax, y + (i - (len(shown) - 1) / 2) * step, m)
        if not shown:
            note = plain(row.note or "not above zero", 60)
            ax.text(0.01, y, note, transform=ends, va="center", fontsize=SMALL, color=MUTED)
        elif row.end or len(shown) <= _MOST_VALUES_PRINTED:
            values = row.end or " · ".join(number(m.at) for m in shown)
            ax.text(1.01, y, values, transform=ends, va="center", fontsize=SMALL)
    ax.set_yticks(range(len(rows)), [wrapped_label(row.label, letters) for row in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _dot(ax: Axes, y: float, m: Mark) -> None:
    at = m.at
    low, high = at.value / _FURTHEST, at.value * _FURTHEST
    if at.low is not None and at.high is not None:
        ax.plot(
            [max(at.low, low), min(at.high, high)], [y, y], color=m.colour, linewidth=1.6, zorder=2
        )
        beyond = [(low, "<")] * (at.low < low) + [(high, ">")] * (at.high > high)
        for end, arrow in beyond:
            ax.plot([end], [y], arrow, markersize=4, color=m.colour)
    inside = m.colour if at.status == "ok" else PAPER
    size = _SMALL_MARK if m.small else _MARK
    ax.plot(
        [at.value],
        [y],
        m.marker,
        markersize=size,
        color=m.colour,
        markerfacecolor=inside,
        markeredgewidth=1.2,
    )
