"""Draw the headline figure for a phone: for each stack a line with its name and its costs as
columns, and below it the marks on an axis over the whole width.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, Kind
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    GRID_COLOUR,
    MUTED,
    NARROW_INCHES,
    SMALL,
    plain_log_ticks,
    style,
)
from overhead.report.core.headline_figure import rows_drawn
from overhead.report.core.headline_marks import (
    MARKERS,
    DrawnRow,
    add_legend,
    draw_marks,
    ends_of_costs,
    is_hollow,
    sign_entries,
    with_other_boards,
)
from overhead.report.core.palette import CALL_COLOURS
from overhead.words.dispatch_costs import GROUP_TITLES, notes, remarks, title
from overhead.words.report.headline_figure import (
    AXIS_TITLE,
    COLUMN_TITLES,
    COLUMNS_TITLE,
    CPU_TIME,
    HOLLOW_NARROW,
    share_note,
    stacked_costs_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths are in inches; the figure is drawn as large as a phone shows it.
_LINE = 0.17
"""Height of a line of text."""
_NOTE_LINE = 0.14
_LANE = 0.2
"""Height of the strip with the marks of a row."""
_HALF_STRIP = 0.06
"""Half the height of the range of other boards."""
_GAP = 0.07
_TITLE_LINE = 0.24
"""Height of the title of a group."""
_EDGE = 0.04
"""Room at both sides."""
_COLUMN = 0.53
"""Width of a column of costs."""
_LEGEND_LINE = 0.18
_HEADS, _BELOW = 0.38, 0.4
"""Room for the heads of columns above the rows, and for ticks below them."""
_HEAD_UP, _SIGN_UP = 0.08, 0.22
"""How far above the rows a head and its mark stand."""
_FONT = 8.5
_LETTER, _VALUE = 0.069, 0.42
"""Width of a letter of a stack's name, and of a cost, as drawn."""
_TITLE_LETTERS = 36


@dataclasses.dataclass(frozen=True)
class _Row:
    """Where a row stands, in inches from the top. ``name``: the middle of the line with its name;
    ``costs``: of the line with its costs, which is the same where both have room; ``notes``: of the
    first line of notes; ``lane``: of its marks; ``end``: where the next row begins.
    """

    drawn: DrawnRow
    start: float
    name: float
    costs: float
    notes: Sequence[float]
    lane: float
    end: float


@style()
def narrow_headline_figure(costs: DispatchCosts) -> Figure:
    """The headline figure in a layout for a phone. Python's share of the CPU time stands as text
    below the name of the stack.
    """
    from matplotlib.figure import Figure

    drawn = with_other_boards(costs.view, rows_drawn(costs))
    columns = _columns(drawn)
    titles, rows = _placed(drawn, columns)
    height = rows[-1].end
    heading = textwrap.wrap(title(costs), _TITLE_LETTERS)
    # The heads of the columns explain the kinds of callers.
    entries = sign_entries(drawn, HOLLOW_NARROW)
    above = _LINE * len(heading) + _LEGEND_LINE * len(entries) + _HEADS
    whole = above + height + _BELOW
    figure = Figure(figsize=(NARROW_INCHES, whole))
    add_legend(
        figure,
        entries,
        loc="upper left",
        bbox_to_anchor=(0, 1),
        borderpad=0.1,
        borderaxespad=0.1,
        labelspacing=0.55,
        handletextpad=0.4,
        handlelength=2,
        fontsize=SMALL,
        title="\n".join(heading),
        title_fontproperties={"size": _FONT + 0.5, "weight": "bold"},
    )

    # The axes are as high as the rows, and as wide as the figure.
    ax = figure.add_axes((0, _BELOW / whole, 1, height / whole))
    ax.set_ylim(height, 0)
    ax.set_xscale("log")
    _set_ends(ax, drawn)
    plain_log_ticks(ax.xaxis, close=1e3)
    # Ticks at the top would look like values below the heads of the columns.
    ax.tick_params(axis="x", length=2, pad=1, labelsize=SMALL)
    ax.tick_params(axis="y", left=False, labelleft=False)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.patch.set_visible(False)
    ax.set_xlabel(AXIS_TITLE, fontsize=SMALL, labelpad=2)
    for y, text in titles.items():
        _write(ax, _EDGE, y, text, fontsize=SMALL, fontweight="bold")
    for i, row in enumerate(rows):
        _draw_row(ax, row, columns, is_shaded=i % 2 == 0)
    _draw_heads(ax, columns)
    return figure


def _columns(rows: Sequence[DrawnRow]) -> dict[Kind, float]:
    """By kind of caller that a row has, where its column of costs ends, from the left."""
    kinds: list[Kind] = []
    for kind in COLUMN_TITLES:
        if any(kind in each.row.marks for each in rows):
            kinds.append(kind)
    columns: dict[Kind, float] = {}
    for i, kind in enumerate(reversed(kinds)):
        columns[kind] = NARROW_INCHES - _EDGE - i * _COLUMN
    return columns


def _placed(
    rows: Sequence[DrawnRow], columns: Mapping[Kind, float]
) -> tuple[dict[float, str], list[_Row]]:
    """The titles of groups by their places, and where each row stands."""
    titles: dict[float, str] = {}
    placed: list[_Row] = []
    has_titles = len({each.row.group for each in rows}) > 1
    room = min(columns.values(), default=NARROW_INCHES) - _VALUE - _EDGE
    y = _GAP
    for each in rows:
        group_title = GROUP_TITLES[each.row.group]
        if has_titles and group_title not in titles.values():
            titles[y + _TITLE_LINE / 2] = group_title
            y += _TITLE_LINE
        start = y
        name = y + _GAP / 2 + _LINE / 2
        y = name + _LINE / 2
        costs = name
        # A long name has a line of its own.
        if len(each.row.label) * _LETTER > room:
            costs = y + _LINE / 2
            y += _LINE
        # Two speeds stand below each other.
        if any(len(of_kind) > 1 for of_kind in each.row.marks.values()):
            costs += _LINE / 2
            y = costs + _LINE
        notes_at = []
        for _ in _notes(each.row):
            notes_at.append(y + _NOTE_LINE / 2)
            y += _NOTE_LINE
        lane = y + _LANE / 2
        y += _LANE + _GAP / 2
        placed.append(_Row(each, start, name, costs, notes_at, lane, y))
    return titles, placed


def _notes(row: DispatchRow) -> list[str]:
    """The lines below the name of a row."""
    if not row.marks:
        return textwrap.wrap(plain(remarks(row), 110), 44)
    lines = [notes(row, CPU_TIME)]
    if row.python is not None and row.python.resolved and row.cpu_time is not None:
        lines.append(share_note(row.python, row.cpu_time))
    return [line for line in lines if line]


def _set_ends(ax: Axes, rows: Sequence[DrawnRow]) -> None:
    """Set the ends of the axis, with room for half a mark at both."""
    low, high = ends_of_costs(rows)
    room = (high / low) ** 0.05
    ax.set_xlim(low / room, high * room)


def _write(ax: Axes, x: float, y: float, text: str, **look: Any) -> None:
    """Write a text at ``x`` and ``y``, in inches from the left and the top of the rows."""
    options: dict[str, Any] = {"fontsize": _FONT, "va": "center", **look}
    ax.text(x / NARROW_INCHES, y, text, transform=ax.get_yaxis_transform(), **options)


def _draw_row(ax: Axes, row: _Row, columns: Mapping[Kind, float], *, is_shaded: bool) -> None:
    """Draw a row: name, costs, notes and marks."""
    if is_shaded:
        ax.axhspan(row.start, row.end, color="#f1f3f5", linewidth=0, zorder=-2)
    of_stack = row.drawn.row
    _write(ax, _EDGE, row.name, of_stack.label)
    for kind, costs in of_stack.marks.items():
        text = stacked_costs_text(costs, is_noisy=is_hollow(of_stack, kind))
        _write(ax, columns[kind], row.costs, text, ha="right", color=CALL_COLOURS[kind])
    for y, line in zip(row.notes, _notes(of_stack), strict=True):
        _write(ax, _EDGE, y, line, fontsize=SMALL, color=MUTED)
    low, high = ax.get_xlim()
    # The grid is drawn behind the marks alone: through texts it would make them hard to read.
    for tick in ax.get_xticks():
        if low < tick < high:
            ends = (row.lane - _LANE / 2, row.lane + _LANE / 2)
            ax.vlines(tick, *ends, color=GRID_COLOUR, linewidth=0.7, zorder=-1)
    draw_marks(ax, row.drawn, row.lane, _HALF_STRIP)


def _draw_heads(ax: Axes, columns: Mapping[Kind, float]) -> None:
    """Write the heads of the columns above the first row, each below the mark that it explains."""
    across = ax.get_yaxis_transform()
    _write(ax, _EDGE, -_HEAD_UP, COLUMNS_TITLE, fontsize=SMALL)
    for kind, x in columns.items():
        colour = CALL_COLOURS[kind]
        _write(ax, x, -_HEAD_UP, COLUMN_TITLES[kind], ha="right", color=colour, fontsize=SMALL)
        place = (x - 0.17) / NARROW_INCHES
        ax.plot(
            [place],
            [-_SIGN_UP],
            MARKERS[kind],
            color=colour,
            markersize=6,
            transform=across,
            clip_on=False,
        )
