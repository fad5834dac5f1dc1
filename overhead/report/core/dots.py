"""Rows of dots with intervals: the marks, and their values at the end of the row."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel
from overhead.report.core.draw import (
    FIGURE_WIDTH_INCHES,
    GRID_COLOUR,
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
_NARROW_ROW_INCHES, _NARROWEST_ROW_INCHES = 0.58, 0.42
_BELOW_THE_LABEL = 0.26
"""Where the marks of a narrow row stand, in rows below its middle."""
_SMALL_LETTERS_AN_INCH = 18
_HALF_ROW, _HALF_NARROW_ROW = 0.42, 0.2
"""Half of the height of the area that is drawn behind the marks of a row, in rows."""
_COLUMN_GAP_POINTS = 8
_LETTER_POINTS = 4.4
"""Mean width of a letter of the smallest text."""
_BOLD = 1.2
"""How many times as wide a bold letter is."""
_BOLD_LETTERS = 0.65
"""Letters of a title that fit where one letter of the smallest text does: it is bold and larger."""
_SIGNS = {"o": "●", "s": "■", "D": "◆", "^": "▲", "v": "▼", "P": "✚"}
"""Letters that look like the markers."""
_HIGH_INCHES = 2.4
"""A figure with higher panels has ticks at the top too: about 11 rows. Chosen by eye."""
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
_LEAST_SPAN = 10
"""An axis of costs spans this factor at least."""
_MOST_ROWS = 40
"""Rows of a panel: more than these cannot be compared by eye."""
_FURTHEST = 10
"""An interval is drawn up to this multiple of its value, and down to this part of it; an arrow says
that it goes on.
"""


@dataclasses.dataclass(frozen=True)
class Mark:
    """A dot with its interval, ``at`` a value in the unit of the axis; hollow if not ``ok``.
    ``small``: published. ``hollow``: hollow for another reason, which the legend names.
    """

    at: Value
    colour: str
    marker: str = "o"
    small: bool = False
    hollow: bool = False


@dataclasses.dataclass(frozen=True)
class DotRow:
    """A row of dots, with their values at its end. ``note``: text in place of missing dots;
    ``end``: of the values; ``columns``: the same in columns, one for each head of the figure.

    ``band``: a factor; where the dots are ratios, an area around 1 reaches up to it and down to its
    inverse.
    """

    label: str
    marks: Sequence[Mark]
    note: str = ""
    end: str = ""
    band: float | None = None
    columns: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Head:
    """What stands above a column of values at the end of the rows. ``marker``, ``colour``: of the
    marks that the column has the values of; '' for values without a mark.
    """

    text: str
    marker: str
    colour: str


@dataclasses.dataclass(frozen=True)
class DotLook:
    """How rows of dots look. ``heads``: above the columns of values; ``hollow``, ``band``: what a
    hollow mark and the coloured area mean, in the legend; ``line_at``: a dashed line at this value;
    ``joined``: a bar between the marks of a row; ``row_inches``: the height of a row.
    """

    heads: Sequence[Head] = ()
    hollow: str = ""
    band: str = ""
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
    are drawn; a row between them tells how many are left out.
    """
    # By title, the rows that have room; a panel is as high as its rows.
    drawn = {title: _first_and_last(rows) for title, rows in panels.items()}
    heights = [look.row_inches * len(rows) for rows in drawn.values()]
    places = _column_places(look.heads, drawn.values())
    figure, axes = new_figure(heights, width=width, sharex=share_axis)
    letters = int(_LETTERS_AN_INCH * width)
    for ax, (title, rows) in zip(axes, drawn.items(), strict=True):
        _panel(ax, rows, look.joined, letters, places)
        ax.set_title(wrapped_label(title, letters))
        # matplotlib labels the ticks of the last panel alone where panels share an axis.
        ax.tick_params(axis="x", labelbottom=True)
        if not share_axis or ax is axes[-1]:
            ax.set_xlabel(textwrap.fill(plain(unit, 200), letters))
        if line_at_one:
            _draw_line_at_one(ax)
        if look.line_at is not None:
            ax.axvline(look.line_at, color=INK, linewidth=0.9, linestyle="--", zorder=1)
    if share_axis and sum(heights) > _HIGH_INCHES:
        axes[0].tick_params(axis="x", labeltop=True)
    if axes:
        _draw_heads(axes[0], look.heads, places)
    # Panels that share an axis get their ticks through the first one.
    with_own_axis = axes[:1] if share_axis else axes
    # Of ratios: at powers of two; else at powers of ten.
    set_ticks = ratio_ticks if line_at_one else plain_log_ticks
    for ax in with_own_axis:
        if not line_at_one:
            _widen(ax)
        set_ticks(ax.xaxis)
    area = (look.band, BAND_COLOUR) if look.band else None
    add_marker_legend(figure, shapes or {}, hollow=look.hollow, area=area)
    return figure


@style()
def narrow_dot_figure(
    panels: Mapping[str, Sequence[DotRow]] | Mapping[TargetLabel, Sequence[DotRow]],
    unit: str,
    shapes: Mapping[str, str | tuple[str, str]] | None = None,
    *,
    line_at_one: bool = False,
    look: DotLook = _PLAIN_LOOK,
) -> Figure:
    """The same rows for a phone: the label of a row and its values stand above its marks, so that
    the marks have the whole width. All panels share one logarithmic axis. Arguments: as those of
    ``dot_figure``.
    """
    drawn = {title: _first_and_last(rows) for title, rows in panels.items()}
    # Values of several columns have a line of their own; a single one stands behind the label.
    row_inches = _NARROW_ROW_INCHES if look.heads else _NARROWEST_ROW_INCHES
    heights = [row_inches * len(rows) for rows in drawn.values()]
    figure, axes = new_figure(heights, width=NARROW_INCHES, around=0.5, sharex=True)
    letters = int(_SMALL_LETTERS_AN_INCH * NARROW_INCHES)
    for ax, (title, rows) in zip(axes, drawn.items(), strict=True):
        ax.set_xscale("log")
        for y, row in enumerate(rows):
            _draw_narrow_row(ax, y, row, look, letters)
            # Lines at a value are drawn beside the marks alone, because one through the figure
            # would go through the texts.
            middle = y + _BELOW_THE_LABEL
            ends = [middle - _HALF_NARROW_ROW, middle + _HALF_NARROW_ROW]
            if line_at_one:
                ax.plot([1, 1], ends, color=INK, linewidth=0.9, zorder=1)
            if look.line_at is not None:
                ax.plot([look.line_at] * 2, ends, "--", color=INK, linewidth=0.9, zorder=1)
        if line_at_one:
            ax.axvspan(*LEAST_RATIOS, alpha=0)
        ax.set_yticks([])
        ax.grid(False)  # a line would go through the texts
        ax.spines["left"].set_visible(False)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        # A title in bold has fewer letters.
        ax.set_title(wrapped_label(title, int(_BOLD_LETTERS * letters)))
        ax.tick_params(axis="x", labelbottom=True, bottom=True)
    axes[-1].set_xlabel(textwrap.fill(plain(unit, 200), int(0.8 * letters)))
    set_ticks = ratio_ticks if line_at_one else plain_log_ticks
    if not line_at_one:
        _widen(axes[0])
    set_ticks(axes[0].xaxis)
    if sum(heights) > _HIGH_INCHES:
        axes[0].tick_params(axis="x", labeltop=True)
    of_heads = {}
    for head in look.heads:
        if head.marker:
            of_heads[head.text.replace("\n", ", ")] = (head.marker, head.colour)
    area = (look.band, BAND_COLOUR) if look.band else None
    entries = {**(shapes or {}), **of_heads}
    add_marker_legend(figure, entries, hollow=look.hollow, area=area)
    return figure


def _draw_narrow_row(ax: Axes, y: float, row: DotRow, look: DotLook, letters: int) -> None:
    """Draw a row of a narrow figure: its label, its values or the note, and below them its marks.
    Without heads the value stands behind the label.
    """
    across = ax.get_yaxis_transform()
    written: dict[str, Any] = {"transform": across, "va": "center", "fontsize": SMALL}
    # A text may be longer than the axis, which must not become shorter for it.
    written["in_layout"] = False
    label = textwrap.shorten(plain(row.label, 120), letters, placeholder="…")
    middle = y + _BELOW_THE_LABEL
    if look.heads:
        ax.text(0, y - 0.36, label, **written)
        _write_values(ax, y - 0.1, row, look.heads)
    else:
        values = row.end or _values_of_marks(row)
        room = letters - len(values) - 2
        ax.text(0, y - 0.22, textwrap.shorten(label, room, placeholder="…"), **written)
        ax.text(1, y - 0.22, values, ha="right", **written)
    if not row.marks:
        note = textwrap.shorten(plain(row.note, 120), letters, placeholder="…")
        ax.text(0, middle, note, color=MUTED, **written)
        return
    ax.plot([0, 1], [middle] * 2, transform=across, color=GRID_COLOUR, linewidth=0.7, zorder=0)
    # The values have their line above the marks, so the row draws none.
    marks_alone = dataclasses.replace(row, end=" ", columns=())
    _draw_row(ax, middle, marks_alone, look.joined, half=_HALF_NARROW_ROW)


def _write_values(ax: Axes, y: float, row: DotRow, heads: Sequence[Head]) -> None:
    """Write the values of a row on one line, each behind the sign of its marks and in their colour.
    Without columns: those of all marks.
    """
    look: dict[str, Any] = {"va": "center", "fontsize": SMALL}
    across = ax.get_yaxis_transform()
    if not any(row.columns):
        text = row.end or _values_of_marks(row)
        ax.text(0, y, text, transform=across, color=MUTED, in_layout=False, **look)
        return
    colours = {mark.marker: mark.colour for mark in row.marks}
    before = None
    for head, value in zip(heads, row.columns, strict=False):
        if not value:
            continue
        text = f"{_SIGNS.get(head.marker, head.text)} {value}"
        look["color"] = colours.get(head.marker, MUTED)
        if before is None:
            before = ax.annotate(text, (0, y), xycoords=across, **look)
        else:
            # Behind the text before, wherever that ends.
            place: dict[str, Any] = {"xycoords": before, "textcoords": "offset points"}
            before = ax.annotate(text, (1, 0.5), (_COLUMN_GAP_POINTS, 0), **place, **look)
        before.set_in_layout(False)


def _values_of_marks(row: DotRow) -> str:
    return " · ".join(number(mark.at) for mark in row.marks if mark.at.value > 0)


def _widen(ax: Axes) -> None:
    """Make a logarithmic axis span a factor of 10 at least, so that it has several ticks and small
    differences look small.
    """
    low, high = ax.get_xlim()
    if 0 < high < _LEAST_SPAN * low:
        middle = math.sqrt(low * high)
        ax.set_xlim(middle / math.sqrt(_LEAST_SPAN), middle * math.sqrt(_LEAST_SPAN))


def _draw_line_at_one(ax: Axes) -> None:
    """Where two values are equal, on an axis of ratios."""
    ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
    # Invisible: it makes the axis reach so far at least.
    ax.axvspan(*LEAST_RATIOS, alpha=0)


def _column_places(heads: Sequence[Head], panels: Iterable[Sequence[DotRow]]) -> list[float]:
    """How many points right of the axes each column of values begins."""
    places = []
    place: float = _COLUMN_GAP_POINTS
    rows: list[DotRow] = []
    for panel in panels:
        rows += panel
    for index, head in enumerate(heads):
        places.append(place)
        head_letters = 2 + max(map(len, head.text.split("\n")))
        values = [row.columns[index] for row in rows if row.columns]
        value_letters = max(map(len, values), default=0)
        # The head is bold.
        letters = max(head_letters * _BOLD, value_letters)
        place += letters * _LETTER_POINTS + _COLUMN_GAP_POINTS
    return places


def _draw_heads(ax: Axes, heads: Sequence[Head], places: Sequence[float]) -> None:
    """Write above each column of values whose they are, with the sign of its marks."""
    for head, place in zip(heads, places, strict=True):
        ax.annotate(
            f"{_SIGNS.get(head.marker, '')} {head.text}".lstrip(),
            (1, 1),
            (place, 4),
            xycoords="axes fraction",
            textcoords="offset points",
            va="bottom",
            fontsize=SMALL,
            weight="bold",
            color=head.colour,
        )


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


def _panel(
    ax: Axes, rows: Sequence[DotRow], joined: bool, letters: int, columns: Sequence[float]
) -> None:
    """Draw the rows of a panel from top to bottom with their labels. ``joined``: a bar between the
    marks of a row; ``letters``: how many a line of a label has at most; ``columns``: how many
    points right of the axes the columns of values begin.
    """
    ax.set_xscale("log")
    for y, row in enumerate(rows):
        _draw_row(ax, y, row, joined)
        for place, value in zip(columns, row.columns, strict=False):
            ax.annotate(
                value,
                (1, y),
                (place, 0),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=SMALL,
            )
    labels = [wrapped_label(row.label, letters) for row in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first row at the top
    ax.tick_params(axis="y", length=0)


def _draw_row(ax: Axes, y: float, row: DotRow, joined: bool, *, half: float = _HALF_ROW) -> None:
    """Draw a row: its band (the coloured area of usual ratios), its marks, slightly below each
    other, and their values at its end. ``half``: half of the height that they have.

    A row without a mark has its note in their place. ``joined``: the marks stand on one line, and a
    bar reaches from the first to the last.
    """
    # A logarithmic axis has no place for what is not above zero.
    shown = [mark for mark in row.marks if mark.at.value > 0]
    if row.band is not None:
        reach = [y - half, y + half]
        # A factor up and down from 1, as the dots are ratios.
        ax.fill_betweenx(reach, 1 / row.band, row.band, color=BAND_COLOUR, linewidth=0)
    if joined and shown:
        first, last = shown[0], shown[-1]
        ends = [first.at.value, last.at.value]
        ax.plot(ends, [y, y], color=first.colour, linewidth=5, alpha=0.25)

    # Several marks lie below each other within half a row, around its middle; joined ones on one
    # line.
    step = 0.0 if joined else half * 1.2 / max(len(shown), 2)
    middle = (len(shown) - 1) / 2
    for i, mark in enumerate(shown):
        _dot(ax, y + (i - middle) * step, mark)

    # Places at the side are parts of the axis' width: 0 at the left, 1 at the right.
    across = ax.get_yaxis_transform()
    if not shown:
        note = plain(row.note or "not above zero", 80)
        ax.text(0.01, y, note, transform=across, va="center", fontsize=SMALL, color=MUTED)
        return
    if row.columns:
        return
    values = row.end
    # More values than a few would not fit beside the row; the table has them.
    if not values and len(shown) <= _MOST_VALUES_PRINTED:
        values = " · ".join(number(mark.at) for mark in shown)
    if values:
        ax.text(1.01, y, values, transform=across, va="center", fontsize=SMALL)


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
        markerfacecolor=PAPER if mark.hollow or at.status != "ok" else mark.colour,
        markeredgewidth=1.2,
    )
