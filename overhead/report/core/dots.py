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
    NARROW_INCHES,
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
_LABEL_INCHES = 0.2
"""Height of a label above its row."""
_LABEL_ABOVE = 0.42
"""Parts of a row by which its label is above its marks: nearer to these than to those before."""
_NARROW_LETTERS = 46
"""Letters of the smallest text that have room across a phone. Counted on drawings."""
_SEPARATOR = " \u00b7 "
"""What stands between the values at the end of a row."""
_HIGH_INCHES = 2.4
"""A figure with higher panels has ticks at the top too: about 11 rows. Chosen by eye."""
_POINTS_A_LETTER, _LETTERS_BETWEEN = 4.4, 2
"""Points of a letter of the smallest text, and letters between two columns. Chosen by eye."""
BAND_COLOUR = "#d5e3f0"
_LONG_RATIO = 8
_TICKS_BETWEEN = (0.67, 0.8, 1.25, 1.5)
"""An axis of ratios whose ends are further apart than this factor has ticks at powers of two alone;
a shorter one has these between them.
"""
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
    ``end``: of the values; ``columns``: in its place a text for each heading of the figure.

    ``band``: a factor; where the dots are ratios, an area around 1 reaches up to it and down to its
    inverse.
    """

    label: str
    marks: Sequence[Mark]
    note: str = ""
    end: str = ""
    columns: Sequence[str] = ()
    band: float | None = None


@dataclasses.dataclass(frozen=True)
class DotLook:
    """How rows of dots look. ``headings``: above the columns at the end of the rows; ``line_at``: a
    dashed line at this value; ``joined``: a bar between the marks of a row.
    """

    headings: Sequence[str] = ()
    line_at: float | None = None
    joined: bool = False
    row_inches: float = _ROW_INCHES


_PLAIN_LOOK = DotLook()


@style()
def dot_figure(
    panels: Mapping[str, Sequence[DotRow]] | Mapping[TargetLabel, Sequence[DotRow]],
    unit: str,
    shapes: Mapping[str, str | tuple[str, str]] | None = None,
    *,
    line_at_one: bool = False,
    share_axis: bool = True,
    width: float = FIGURE_WIDTH_INCHES,
    look: DotLook = _PLAIN_LOOK,
) -> Figure:
    """A figure with a panel of rows of dots for each title. All panels have one logarithmic axis,
    or, unless ``share_axis``, each its own. An axis of many rows has its ticks at both ends.

    ``unit``: the words below an axis; ``shapes``: the legend, as ``add_marker_legend`` takes it;
    ``line_at_one``: the dots are ratios, with a line at 1. Of very many rows the first and the last
    are drawn; a row between them tells how many are left out. ``width``: at that of a phone, a
    label stands above its row.
    """
    # By title, the rows that have room; a panel is as high as its rows.
    drawn = {title: _first_and_last(rows) for title, rows in panels.items()}
    is_narrow = width <= NARROW_INCHES
    row_inches = look.row_inches + _LABEL_INCHES if is_narrow else look.row_inches
    heights = [row_inches * len(rows) for rows in drawn.values()]
    figure, axes = new_figure(heights, width=width, sharex=share_axis)
    letters = int(_LETTERS_AN_INCH * width)
    for ax, (title, rows) in zip(axes, drawn.items(), strict=True):
        # The part of a row over which its marks lie below each other: half of what is no label.
        spread = 0.5 * look.row_inches / row_inches
        _panel(ax, rows, 0.0 if look.joined else spread, joined=look.joined)
        if is_narrow:
            _labels_above(ax, rows, _LABEL_INCHES / row_inches)
        else:
            _labels_beside(ax, rows, look.headings, letters)
        ax.set_title(wrapped_label(title, letters))
        if not share_axis or ax is axes[-1]:
            ax.set_xlabel(plain(unit, 60))
        if look.line_at is not None:
            ax.axvline(look.line_at, color=INK, linewidth=0.9, linestyle="--", zorder=1)
        if line_at_one:
            ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
            # Invisible: it makes the axis reach so far at least.
            ax.axvspan(*LEAST_RATIOS, alpha=0)
    # Panels that share an axis get their ticks through the first one.
    with_own_axis = axes[:1] if share_axis else axes
    # Of ratios: at powers of two; else at powers of ten.
    set_ticks = ratio_ticks if line_at_one else plain_log_ticks
    for ax in with_own_axis:
        set_ticks(ax.xaxis)
    if share_axis and sum(heights) > _HIGH_INCHES:
        axes[0].tick_params(axis="x", labeltop=True)
    add_marker_legend(figure, shapes or {})
    return figure


def _first_and_last(rows: Sequence[DotRow]) -> Sequence[DotRow]:
    """The rows of a panel that are drawn: of more than 40 the first 20 and the last 20, with a row
    between them that tells how many are left out.
    """
    left_out = len(rows) - _MOST_ROWS
    if left_out <= 0:
        return rows
    half = _MOST_ROWS // 2
    # This row has no marks; its text stands in their place.
    return [*rows[:half], DotRow(f"{left_out:,} more", [], "in the table"), *rows[-half:]]


def ratio_ticks(axis: Any) -> None:
    """Put the ticks of a logarithmic axis of ratios at powers of two, and on a short axis at 0.8,
    1.25 and the like too. ``axis``: of matplotlib.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    # Short: its ends are at most a factor of 8 apart, so that more labels have room.
    is_short = high <= _LONG_RATIO * low
    ticks = [2.0**power for power in range(-9, 10)]
    if is_short:
        ticks += _TICKS_BETWEEN
    axis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_ratio_tick))


def _ratio_tick(ratio: float, _position: int | None = None) -> str:
    """The label of a tick; matplotlib gives its position too."""
    return f"{ratio:.3g}"


def _panel(ax: Axes, rows: Sequence[DotRow], spread: float, *, joined: bool) -> None:
    """Draw the rows of a panel from top to bottom, without their labels. ``spread``: the part of a
    row over which its marks lie below each other; ``joined``: a bar between the marks of a row.
    """
    ax.set_xscale("log")
    for y, row in enumerate(rows):
        _draw_row(ax, y, row, spread, joined=joined)
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first row at the top
    ax.tick_params(axis="y", length=0)


def _labels_beside(ax: Axes, rows: Sequence[DotRow], headings: Sequence[str], letters: int) -> None:
    """Write the label of each row at its left, and its values at its right: under ``headings`` in
    columns, where the rows have these. ``letters``: how many a line of a label has at most.
    """
    labels = [wrapped_label(row.label, letters) for row in rows]
    ax.set_yticks(range(len(rows)), labels)
    for y, row in enumerate(rows):
        if not row.columns:
            _write_beside(ax, y, _values_of(row), 0, "left")

    right_end = 0.0
    for i, heading in enumerate(headings):
        texts = [heading, *(row.columns[i] for row in rows if row.columns)]
        right_end += _POINTS_A_LETTER * (max(map(len, texts)) + _LETTERS_BETWEEN)
        # Above the first row, where the next row would stand.
        _write_beside(ax, -1, heading, right_end, "right")
        for y, row in enumerate(rows):
            if row.columns:
                _write_beside(ax, y, row.columns[i], right_end, "right")


def _write_beside(ax: Axes, y: float, text: str, points: float, side: str) -> None:
    """Write a text at the right of a row, which begins or ends so many points from the axis.
    ``side``: the side of the text that is there.
    """
    ax.annotate(
        plain(text, 60),
        (1.01, y),
        xycoords=ax.get_yaxis_transform(),
        xytext=(points, 0),
        textcoords="offset points",
        ha=side,
        va="center",
        fontsize=SMALL,
        annotation_clip=False,
    )


def _labels_above(ax: Axes, rows: Sequence[DotRow], share: float) -> None:
    """Write the label of each row above its marks, with its values at the end of the same line.
    ``share``: the part of a row that the label takes.
    """
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    # The marks are in the middle of what the labels leave of a row.
    ax.set_ylim(len(rows) - 0.4, -0.6 - share / 2)
    for y, row in enumerate(rows):
        look: dict[str, Any] = {
            "transform": ax.get_yaxis_transform(),
            "va": "center",
            "fontsize": SMALL,
            # So that no line of the grid runs through the text.
            "bbox": {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6},
        }
        label = plain(row.label, 60)
        ax.text(0, y - _LABEL_ABOVE, label, ha="left", **look)
        values = _SEPARATOR.join(filter(None, row.columns)) or _values_of(row)
        # Beside a long label there is no room; the table has the values.
        if len(label) + len(values) <= _NARROW_LETTERS:
            ax.text(1, y - _LABEL_ABOVE, values, ha="right", **look)


def _values_of(row: DotRow) -> str:
    """The values at the end of a row. More than a few would not fit there; the table has them."""
    shown = [mark for mark in row.marks if mark.at.value > 0]
    if row.end or len(shown) > _MOST_VALUES_PRINTED:
        return row.end
    return _SEPARATOR.join(number(mark.at) for mark in shown)


def _draw_row(ax: Axes, y: float, row: DotRow, spread: float, *, joined: bool) -> None:
    """Draw a row: its band (the coloured area of usual ratios) and its marks, slightly below each
    other.

    A row without a mark has its note in their place. ``joined``: the marks stand on one line, and a
    bar reaches from the first to the last.
    """
    # A logarithmic axis has no place for what is not above zero.
    shown = [mark for mark in row.marks if mark.at.value > 0]
    if row.band is not None:
        reach = [y - 0.42, y + 0.42]
        # A factor up and down from 1, as the dots are ratios.
        ax.fill_betweenx(reach, 1 / row.band, row.band, color=BAND_COLOUR, linewidth=0)
    if joined and shown:
        first, last = shown[0], shown[-1]
        ends = [first.at.value, last.at.value]
        ax.plot(ends, [y, y], color=first.colour, linewidth=5, alpha=0.25)

    # Several marks lie below each other, around the middle of the row.
    step = spread / max(len(shown), 2)
    middle = (len(shown) - 1) / 2
    for i, mark in enumerate(shown):
        _dot(ax, y + (i - middle) * step, mark)

    if not shown:
        note = plain(row.note or "not above zero", 60)
        # A part of the width of the axis: 0 is its left end.
        across = ax.get_yaxis_transform()
        ax.text(0.01, y, note, transform=across, va="center", fontsize=SMALL, color=MUTED)


def _dot(ax: Axes, y: float, mark: Mark) -> None:
    """Draw a mark with its interval, hollow unless its value is ``ok``. Where the interval reaches
    further than a tenth or ten times the value, it is cut, and an arrow says so.
    """
    at = mark.at
    # How far an interval is drawn at most.
    lowest, highest = at.value / _FURTHEST, at.value * _FURTHEST
    if at.low is not None and at.high is not None:
        ends = [max(at.low, lowest), min(at.high, highest)]
        ax.plot(ends, [y, y], color=mark.colour, linewidth=1.6, zorder=2)
        if at.low < lowest:
            ax.plot([lowest], [y], "<", markersize=4, color=mark.colour)
        if at.high > highest:
            ax.plot([highest], [y], ">", markersize=4, color=mark.colour)
    ax.plot(
        [at.value],
        [y],
        mark.marker,
        markersize=_SMALL_MARK if mark.small else _MARK,
        color=mark.colour,
        markerfacecolor=mark.colour if at.status == "ok" else PAPER,
        markeredgewidth=1.2,
    )
