"""Draw the headline figure: what one dispatch costs through each stack, by who makes the calls,
with printed values. ``headline_narrow`` draws it for a phone.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import ROW_GROUPS, DispatchCosts, DispatchRow, Kind
from overhead.reading.headline import cheapest
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    MUTED,
    SMALL,
    WIDE_INCHES,
    new_figure,
    plain_log_ticks,
    style,
)
from overhead.report.core.headline_marks import (
    add_legend,
    caller_entries,
    draw_marks,
    ends_of_costs,
    sign_entries,
    with_other_boards,
)
from overhead.report.core.palette import CALL_COLOURS, LAYER_COLOURS
from overhead.results import Value
from overhead.words.dispatch_costs import GROUP_TITLES, notes, remarks, title
from overhead.words.format import MICRO, costs_text, number, percent
from overhead.words.report.headline_figure import (
    AXIS_TITLE,
    BAR,
    LIMIT_WORDS,
    SHARES_TITLE,
    about,
    part_of_bar,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 12
_MOST_COLUMNS = 5
"""Of the legend: so many of its entries fit beside each other."""
_PLACES: dict[Kind, dict[str, Any]] = {
    "python": {"xytext": (0, 4.5), "ha": "center", "va": "bottom"},
    "browser": {"xytext": (0, 4.5), "ha": "center", "va": "bottom"},
    "compiled": {"xytext": (0, -5.5), "ha": "center", "va": "top"},
    "batched": {"xytext": (-9, 0), "ha": "right", "va": "center"},
}
"""Where the value of a mark stands: each kind on a side of its own, so that no two overlap."""
_BELOW_A_RING = (0, -7)
_VALUE_TEXT = "value"
"""Marks the texts of values among those of the axes."""
_ROW_INCHES = 0.42
_HALF_STRIP = 0.15
"""Half the height of the range of other boards, in rows."""
_TITLE_ROWS, _TITLE_ABOVE = 0.6, 0.73
"""Height of the title of a group, and its distance from the middle of its first row, in rows."""
_TITLE_LETTERS, _ABOUT_LETTERS = 90, 160
_FONT, _SMALL = 9, 8
_BAND = "#f1f3f5"
_LEFT_ROOM = 6
"""Points between the left end of the axis and the text of a value."""
_POINTS_AN_INCH = 72
_LABEL_UP = 0.14
"""Part of a row by which the name of a stack stands higher if it has a note below it."""
_SHARES = (3.6, 1.0)
"""Widths of the panels of costs and of CPU time."""
_SHARES_ROOM = 48
"""Room left and right of the bars for texts, in per cent of their length."""


def rows_drawn(costs: DispatchCosts) -> tuple[DispatchRow, ...]:
    """The rows that the headline figure has room for, at most 12, by group and then by cost. A row
    is a stack, and a group has the stacks that a person chooses between.

    While there are more, one goes: a row without a cost, else one of the largest group. Of several
    that may go, the one with the highest ``rank`` goes, a number that says how dispensable a stack
    is; of equal ones the most expensive. The cheapest row of a group and the cheapest from Python
    stay.
    """
    kept = list(costs.rows)
    cheapest_row = cheapest(costs)
    while len(kept) > _MOST_ROWS:
        # ``marks``: the costs of a row by kind of caller; empty for a row without a cost.
        may_go = [row for row in kept if not row.marks]
        if not may_go:
            # Rows are sorted by cost, so the first one is the cheapest of its group.
            behind_first = _largest_group(kept)[1:]
            may_go = [row for row in behind_first if row is not cheapest_row]
        # max() returns the first of equal ones: reversed, that is the most expensive.
        kept.remove(max(reversed(may_go), key=lambda row: row.rank))
    return tuple(sorted(kept, key=lambda row: ROW_GROUPS.index(row.group)))


def _largest_group(rows: list[DispatchRow]) -> list[DispatchRow]:
    """The rows of the group that has most rows, so that one of them can go where the figure is
    full; of several such groups the first one in the figure.
    """
    largest: list[DispatchRow] = []
    for group in ROW_GROUPS:
        members = [row for row in rows if row.group == group]
        if len(members) > len(largest):
            largest = members
    return largest


@style()
def headline_figure(costs: DispatchCosts) -> Figure:
    """The headline figure, what one launch costs: a row for each stack, by group, with a mark and
    its printed value for each caller (Python, compiled code, a browser).

    A second panel shows Python's share of the CPU time where the run could split it for at least
    one row.
    """
    # ``layout``: where rows and titles of groups stand on the y axis.
    rows = rows_drawn(costs)
    drawn = with_other_boards(costs.view, rows)
    layout = _group_layout(rows)
    has_shares = any(row.python is not None for row in rows)
    # ``_SHARES``: the widths of both panels; the first alone where there is no second.
    panel_widths = _SHARES if has_shares else _SHARES[:1]
    last_place = layout.places[-1]
    figure, (ax, *share_axes) = new_figure(
        [_ROW_INCHES * (last_place + 1)],
        len(panel_widths),
        around=1.3,
        width=WIDE_INCHES,
        shares=panel_widths,
        sharey=True,
    )

    # First the marks and their bands; then the labels and the axis; last the legend.
    ax.set_xscale("log")
    low, high = ends_of_costs(drawn)
    # ``span``: how many times the smallest value the largest is. On the logarithmic axis: a tenth
    # of its length more at the left, for values, and less at the right.
    span = high / low
    ax.set_xlim(low / span**0.1, high * span**0.05)
    for y, each in zip(layout.places, drawn, strict=True):
        draw_marks(ax, each, y, _HALF_STRIP)
        _label_marks(ax, each.row, y)
    for y in _banded(rows, layout.places):
        _draw_band(ax, y)

    # The larger number first, so that y goes downwards and the first row is at the top.
    ax.set_ylim(last_place + 0.6, -0.6)
    _label_rows(ax, rows, layout)
    for panel in (ax, *share_axes):
        panel.tick_params(axis="y", length=0)
        panel.grid(False, axis="y")
        panel.spines["left"].set_visible(False)
        panel.patch.set_visible(False)
    plain_log_ticks(ax.xaxis, close=1e3)
    # A row at the top is far from the ticks at the bottom.
    ax.tick_params(axis="x", top=True, labeltop=True, length=3)
    ax.set_title(AXIS_TITLE, fontsize=_FONT)
    for panel in share_axes:  # one or none
        _draw_shares(panel, rows, layout.places)
    source = textwrap.fill(about(costs.view.fingerprint), _ABOUT_LETTERS)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=_SMALL, color=MUTED)
    entries = [*caller_entries(drawn), *sign_entries(drawn)]
    if has_shares:
        entries += _layer_entries()
    add_legend(
        figure,
        entries,
        loc="outside upper left",
        ncols=min(math.ceil(len(entries) / 2), _MOST_COLUMNS),
        columnspacing=1.1,
        handlelength=1.8,
        title=textwrap.fill(title(costs), _TITLE_LETTERS),
        title_fontproperties={"size": _FONT + 2.5, "weight": "bold"},
    )
    # Last, because it measures texts where they stand at the end.
    _make_room_at_left(figure, ax)
    return figure


def _banded(rows: Sequence[DispatchRow], places: Sequence[float]) -> list[float]:
    """The places (y) of the rows that get a grey band, so that an eye can follow a row: of each
    group the first, the third, and so on.
    """
    banded = []
    rows_before: dict[str, int] = {}
    for y, row in zip(places, rows, strict=True):
        before = rows_before.get(row.group, 0)
        if before % 2 == 0:
            banded.append(y)
        rows_before[row.group] = before + 1
    return banded


def _draw_band(ax: Axes, y: float) -> None:
    """Draw a grey band behind a row. It goes on beyond the axes, behind the name of the stack too,
    and takes no room in the layout.
    """
    # In y from half a row above to half a row below; in x, parts of the axis' width.
    band = ax.axhspan(
        y - 0.5,
        y + 0.5,
        xmin=-1,
        xmax=2,
        color=_BAND,
        linewidth=0,
        zorder=-2,
        clip_on=False,
    )
    band.set_in_layout(False)


def _label_rows(ax: Axes, rows: Sequence[DispatchRow], layout: _Layout) -> None:
    """Write the names of the rows at the left, and between them, in bold, those of the groups.
    ``layout``: where they stand.
    """
    labels = [row.label for row in rows]
    places = []
    for row, y in zip(rows, layout.places, strict=True):
        # A name with a note below it stands a little higher, so that both are in the row.
        places.append(y - _LABEL_UP if notes(row, BAR) else y)
    ax.set_yticks([*places, *layout.titles], [*labels, *layout.titles.values()], fontsize=_FONT)
    of_groups = ax.get_yticklabels()[len(rows) :]
    for label in of_groups:
        label.set(fontsize=_SMALL, fontweight="bold")


def _make_room_at_left(figure: Figure, ax: Axes) -> None:
    """Lower the left end of the axis until no value that is printed left of a mark lies over the
    stack's name.
    """
    from matplotlib.text import Annotation

    figure.draw_without_rendering()  # only now texts have a size
    width = ax.bbox.width
    # All as logarithms, in which the axis is even.
    low, high = (math.log(end) for end in ax.get_xlim())
    lowest = low
    for text in ax.texts:
        # ``_print_value`` marks the texts of values so.
        if not isinstance(text, Annotation) or text.get_gid() != _VALUE_TEXT:
            continue
        at = math.log(text.xy[0])
        # In pixels: where the mark is, and how much room the text left of it needs.
        mark_px = ax.bbox.x0 + width * (at - low) / (high - low)
        # ``_LEFT_ROOM`` is in points.
        room_px = _LEFT_ROOM * figure.dpi / _POINTS_AN_INCH
        needed_px = mark_px - text.get_window_extent().x0 + room_px
        # With another lower end, the mark lies width * (at - end) / (high - end) from the left.
        # This is solved for the end at which that is needed_px. A text as wide as half the axis
        # cannot be helped so.
        if needed_px < width / 2:
            end = (width * at - needed_px * high) / (width - needed_px)
            lowest = min(lowest, end)
    ax.set_xlim(left=math.exp(lowest))


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Where rows and titles stand on the y axis. ``titles``: of groups, by their places."""

    titles: Mapping[float, str]
    places: Sequence[float]


def _group_layout(rows: Sequence[DispatchRow]) -> _Layout:
    """Where on the y axis each row stands, and the title above each group of rows. A single group
    has no title.
    """
    titles: dict[float, str] = {}
    places: list[float] = []
    has_titles = len({row.group for row in rows}) > 1
    # One step for each row, and some more for the title of a new group.
    y = 0.0
    for row in rows:
        group_title = GROUP_TITLES[row.group]
        if has_titles and group_title not in titles.values():
            # The title takes a part of a row, and stands above its first row.
            y += _TITLE_ROWS
            titles[y - _TITLE_ABOVE] = group_title
        places.append(y)
        y += 1
    return _Layout(titles, places)


def _label_marks(ax: Axes, row: DispatchRow, y: float) -> None:
    """Write the values of a row beside its marks, and its notes below its name. A row without a
    cost has the reasons in place of marks.
    """
    for kind, costs in row.marks.items():
        _print_value(ax, row, kind, costs, y)
    # Left of the axis, below the name of the stack: the notes.
    across = ax.get_yaxis_transform()
    if not row.marks:
        reasons = plain(remarks(row), 110)
        ax.text(0.01, y, reasons, transform=across, va="center", fontsize=_SMALL)
    # In points: to the left of the axis and below the row's line.
    ax.annotate(
        notes(row, BAR),
        (0, y),
        (-4, -2),
        xycoords=across,
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL,
        color=MUTED,
    )


def _print_value(ax: Axes, row: DispatchRow, kind: Kind, costs: Sequence[Value], y: float) -> None:
    """Write the costs of one kind of caller beside its mark, on the side that ``_PLACES`` gives the
    kind. ``costs``: one, or both of two speeds.
    """
    # The text stands beside the lower of two speeds.
    lowest, _ = ax.get_xlim()
    cost = min(costs, key=lambda cost: cost.value)
    x = cost.value
    # ``_PLACES``: on which side of the mark, as options of ``annotate``.
    place = _PLACES[kind]
    if cost.low is not None and cost.low <= lowest:
        # The interval reaches the left end: no room for a text at its left.
        # So it stands above the mark.
        place = _PLACES["python"]
    elif kind == "batched":
        # This text stands at the left, so it begins where the intervals around the mark do.
        x = max(_left_of_intervals(row, x), lowest)
    if kind == "compiled" and row.limit(kind) in LIMIT_WORDS:
        # Such a mark has a ring, so its text stands a little further below it.
        place = {**place, "xytext": _BELOW_A_RING}
    ax.annotate(
        costs_text(costs),
        (x, y),
        textcoords="offset points",
        fontsize=_FONT,
        color=CALL_COLOURS[kind],
        zorder=6,
        gid=_VALUE_TEXT,
        **place,
    )


def _left_of_intervals(row: DispatchRow, cost_us: float) -> float:
    """The left end of the intervals that hold the cost, of all costs of the row."""
    left = cost_us
    for costs in row.marks.values():
        for cost in costs:
            if cost.low is not None and cost.low <= cost_us <= cost.ceiling:
                left = min(left, cost.low)
    return left


def _draw_shares(ax: Axes, rows: Sequence[DispatchRow], places: Sequence[float]) -> None:
    """Draw the second panel: for each row whose CPU time was split a bar of the CPU time of a call
    from Python, divided into Python's share and the rest. Other rows have none.
    """
    for y, row in zip(places, rows, strict=True):
        # ``python``: Python's share of the CPU time; None where the run could not split it.
        if row.python is not None and row.python.resolved and row.cpu_time is not None:
            _draw_share(ax, row.python, row.cpu_time, y)
    # Texts stand left and right of the bars.
    ax.set_xlim(-_SHARES_ROOM, 100 + _SHARES_ROOM)
    ax.set_xticks([])
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    ax.set_title(SHARES_TITLE, fontsize=_FONT, loc="center")


def _layer_entries() -> list[Any]:
    """An entry of the legend for each part of a bar."""
    from matplotlib.patches import Patch

    entries = []
    for layer, colour in LAYER_COLOURS.items():
        entries.append(Patch(facecolor=colour, label=part_of_bar(layer)))
    return entries


def _draw_share(ax: Axes, share: Value, cpu_time: Value, y: float) -> None:
    """Draw a bar of a launch's CPU time, divided into Python's share and the rest: left of it the
    share in per cent, in the colour of Python's part, which begins there; right of it the time.
    """
    # Two bars behind each other, together 100 per cent.
    python_colour, rest_colour = LAYER_COLOURS.values()
    per_cent = 100 * share.value
    ax.barh(y, per_cent, height=0.45, color=python_colour)
    ax.barh(y, 100 - per_cent, left=per_cent, height=0.45, color=rest_colour)
    look: dict[str, Any] = {"va": "center", "fontsize": _FONT}
    ax.text(-4, y, percent(share), ha="right", color=python_colour, **look)
    ax.text(104, y, f"{number(cpu_time)} {MICRO}", ha="left", **look)
