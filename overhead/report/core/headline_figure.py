"""Draw the headline figure: what one dispatch costs through each stack, by who makes the calls,
with printed values.
"""

from __future__ import annotations

import dataclasses
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import (
    ROW_GROUPS,
    DispatchCosts,
    DispatchRow,
    Kind,
    doubt_of,
    unpinned_range,
)
from overhead.reading.headline import cheapest
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    INK,
    MUTED,
    PAPER,
    SMALL,
    WIDE_INCHES,
    new_figure,
    plain_log_ticks,
    style,
)
from overhead.report.core.palette import CALL_COLOURS, LAYER_COLOURS
from overhead.results import Value
from overhead.words.dispatch_costs import (
    GROUP_TITLES,
    KIND_TITLES,
    notes,
    remarks,
    title,
)
from overhead.words.format import costs_text, percent
from overhead.words.report.headline_figure import (
    AXIS_TITLE,
    HOLLOW,
    LIMIT_WORDS,
    STRIP,
    TWO_SPEEDS,
    about,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_ROWS = 12
MARKERS: dict[Kind, str] = {"python": "o", "browser": "^", "compiled": "D", "batched": "s"}
"""The marker of each kind of cost."""
_PLACES: dict[Kind, dict[str, Any]] = {
    "python": {"xytext": (0, 4.5), "ha": "center", "va": "bottom"},
    "browser": {"xytext": (0, 4.5), "ha": "center", "va": "bottom"},
    "compiled": {"xytext": (0, -6.5), "ha": "center", "va": "top"},
    "batched": {"xytext": (-9, 0), "ha": "right", "va": "center"},
}
"""Where the value of a mark stands: each kind on a side of its own, so that no two overlap."""
_BELOW_A_RING = (0, -8.5)
_NARROW = 1.1
"""The interval of an ``ok`` figure is drawn only if its high end is more than this many times its
low end.
"""
_VALUE_TEXT = "value"
"""Marks the texts of values among those of the axes."""
_FURTHEST = 4
"""An interval is drawn up to this multiple of its value, and down to this part of it."""
_UNPINNED_ALPHA = 0.3
_ROW_INCHES = 0.4
_TITLE_ROWS, _TITLE_ABOVE = 0.65, 0.75
"""Height of the title of a group, and its distance from the middle of its first row, in rows."""
_TITLE_LETTERS, _ABOUT_LETTERS = 90, 120
_FONT, _SMALL = 9, 8
_BAND = "#f1f3f5"
_LEFT_ROOM = 6
"""Points between the left end of the axis and the text of a value."""
_POINTS_AN_INCH = 72
_ROOM_FOR_SHARE = 35
"""Per cent from which on a bar has room for its share as text. Chosen by eye."""
_SHARES = (3.6, 1.0)
"""Widths of the panels of costs and of CPU time."""


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
    _limits(ax, rows)
    for y, row in zip(layout.places, rows, strict=True):
        _draw_row(ax, row, y)
    for y in _banded(rows, layout.places):
        _draw_band(ax, y)

    # Below the last row there is room for the value under a mark.
    # The larger number first, so that y goes downwards and the first row is at the top.
    ax.set_ylim(last_place + 0.75, -0.55)
    _label_rows(ax, rows, layout)
    for panel in (ax, *share_axes):
        panel.tick_params(axis="y", length=0)
        panel.grid(False, axis="y")
        panel.spines["left"].set_visible(False)
        panel.patch.set_visible(False)
    plain_log_ticks(ax.xaxis, close=1e3)
    ax.set_title(AXIS_TITLE, fontsize=_FONT)
    for panel in share_axes:  # one or none
        _draw_shares(figure, panel, rows, layout.places)
    source = textwrap.fill(about(costs.view.fingerprint), _ABOUT_LETTERS)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=_SMALL, color=MUTED)
    _legend(figure, title(costs), rows)
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
    places = [*layout.places, *layout.titles]
    ax.set_yticks(places, [*labels, *layout.titles.values()], fontsize=_FONT)
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


def _limits(ax: Axes, rows: Sequence[DispatchRow]) -> None:
    """Set the ends of the axis so that all values and unpinned costs (with the CPU core left to the
    operating system) are inside, and of wide intervals at most ``_FURTHEST`` times the value.

    The axis spans a factor of 10 at least, and has some room at both ends.
    """
    drawn: list[float] = []
    for row in rows:
        for record in row.records.values():
            # Lowest and highest of the costs without a pinned core; None where they were not
            # measured.
            drawn += unpinned_range(record) or ()
        for costs in row.marks.values():
            for cost in costs:
                drawn += _drawn_ends(cost)
    low, high = 1.0, 10.0
    if drawn:
        low = min(drawn)
        high = max(*drawn, 10 * low)
    # ``span``: how many times the smallest value the largest is. On the logarithmic axis: a tenth
    # of its length more at the left, for values, and less at the right.
    span = high / low
    ax.set_xlim(low / span**0.1, high * span**0.05)


def _drawn_ends(cost: Value) -> list[float]:
    """The places of a cost on the axis: its value, and how far each end of its interval is drawn,
    at most 4 times the value, at least a quarter.
    """
    value = cost.value
    ends = [value]
    for end in (cost.low, cost.high):
        if end is not None:
            at_least = max(end, value / _FURTHEST)
            ends.append(min(at_least, value * _FURTHEST))
    return ends


def _legend(figure: Figure, title: str, rows: tuple[DispatchRow, ...]) -> None:
    """Add the legend with the title of the figure above it. It explains what the rows have and
    nothing else: kinds of callers, hollow marks, two speeds, rings (what the device limits) and
    strips (unpinned costs).
    """
    from matplotlib.legend_handler import HandlerLine2D
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    # A handle for each thing that some row has, with an empty line of its look.
    look: dict[str, Any] = {"linestyle": "", "markersize": 7}
    handles: list[Any] = []
    for kind, label in KIND_TITLES.items():
        if any(kind in row.marks for row in rows):
            marker, colour = MARKERS[kind], CALL_COLOURS[kind]
            handles.append(Line2D([], [], marker=marker, color=colour, label=label, **look))

    # Each mark by its row and the kind of its caller.
    drawn: list[tuple[DispatchRow, Kind]] = []
    for row in rows:
        drawn += [(row, kind) for kind in row.marks]
    if any(_is_hollow(row, kind) for row, kind in drawn):
        hollow: dict[str, Any] = {"markerfacecolor": PAPER, "markeredgewidth": 1.6}
        handles.append(Line2D([], [], marker="o", color=MUTED, label=HOLLOW, **hollow, **look))
    # Made before it is known if it is needed: the legend is told below how to draw it.
    two_speeds = Line2D([], [], marker="s", color=MUTED, label=TWO_SPEEDS, **look)
    if any(len(row.marks[kind]) > 1 for row, kind in drawn):
        handles.append(two_speeds)
    for bound, label in LIMIT_WORDS.items():
        if any(row.limit(kind) == bound for row, kind in drawn):
            ring_look = {**look, **_ring(bound), "markersize": 9}
            handles.append(Line2D([], [], label=label, **ring_look))
    if any(unpinned_range(row.records[kind]) for row, kind in drawn):
        handles.append(Patch(facecolor=MUTED, alpha=_UNPINNED_ALPHA, label=STRIP))

    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=4,
        title=textwrap.fill(title, _TITLE_LETTERS),
        title_fontproperties={"size": _FONT + 2.5, "weight": "bold"},
        alignment="left",
        columnspacing=1.4,
        # The legend shows the mark of two speeds twice.
        handler_map={two_speeds: HandlerLine2D(numpoints=2)},
    )


def _is_hollow(row: DispatchRow, kind: Kind) -> bool:
    """Whether the mark is hollow. Two speeds have two marks, which say enough."""
    return not row.is_resolved(kind) and doubt_of(row.records[kind]) != "two-speeds"


def _ring(bound: str) -> dict[str, Any]:
    """The look of the ring around the mark of a cost that the device limits; half a ring where the
    device and the CPU take as long as each other.
    """
    from matplotlib.path import Path

    # The arc is the right half of a circle.
    shape: Any = "o" if bound == "device" else Path.arc(-90, 90)
    return {
        "marker": shape,
        "markersize": 13,
        "markerfacecolor": "none",
        "markeredgecolor": INK,
        "markeredgewidth": 1,
    }


def _draw_row(ax: Axes, row: DispatchRow, y: float) -> None:
    """Draw a row, one stack: its marks with their intervals and values, the line that joins a batch
    to its single launch, and its notes below its name. A row without a cost has the reasons in
    place of marks.
    """
    _join_to_batch(ax, row, y)
    for kind, costs in row.marks.items():
        _draw_unpinned(ax, row, kind, y)
        for cost in costs:
            _draw_mark(ax, row, kind, cost, y)
        _print_value(ax, row, kind, costs, y)
    # Left of the axis, below the name of the stack: the notes.
    across = ax.get_yaxis_transform()
    if not row.marks:
        reasons = plain(remarks(row), 110)
        ax.text(0.01, y, reasons, transform=across, va="center", fontsize=_SMALL)
    # In points: to the left of the axis and below the row's line.
    ax.annotate(
        notes(row),
        (0, y),
        (-4, -7.5),
        xycoords=across,
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL,
        color=MUTED,
    )


def _join_to_batch(ax: Axes, row: DispatchRow, y: float) -> None:
    """Draw a thin line from the cost of a launch in a batch to that of a single launch by the same
    caller: what batching saves.
    """
    batch = row.records.get("batched")
    if batch is None or "batched" not in row.marks:
        return
    # A row may have two costs of a kind: the line is drawn to the first. The batch itself, which is
    # among the marks too, gives a line of no length.
    batched_cost = row.marks["batched"][0].value
    colour = CALL_COLOURS["batched"]
    for kind, costs in row.marks.items():
        if row.records[kind].caller == batch.caller:
            # From the single launch to the batch, on the row's own line.
            ends = [costs[0].value, batched_cost]
            ax.plot(ends, [y, y], "-", color=colour, linewidth=0.7, zorder=1)


def _draw_mark(ax: Axes, row: DispatchRow, kind: Kind, cost: Value, y: float) -> None:
    """Draw a mark, hollow where the cost is doubtful; its interval where the mark is hollow or the
    interval is wide enough to see; and a ring where the device limits the cost. ``kind``: who
    calls.
    """
    colour = CALL_COLOURS[kind]
    # The interval first, then the mark over it, then the ring around it.
    is_hollow = _is_hollow(row, kind)
    if cost.low is not None and cost.high is not None:
        # ``_NARROW``: 1.1 times the low end.
        is_wide = cost.high > _NARROW * cost.low
        if is_hollow or is_wide:
            lowest, highest = ax.get_xlim()
            ends = [max(cost.low, lowest), min(cost.high, highest)]
            look: dict[str, Any] = {"linewidth": 1.4, "markersize": 7, "markeredgewidth": 1.4}
            ax.plot(ends, [y, y], "|-", color=colour, zorder=3, **look)
    ax.plot(
        [cost.value],
        [y],
        MARKERS[kind],
        markersize=7,
        color=colour,
        zorder=4,
        markeredgecolor=colour if is_hollow else PAPER,
        markeredgewidth=1.6 if is_hollow else 0.8,
        markerfacecolor=PAPER if is_hollow else colour,
    )
    bound = row.limit(kind)
    if bound in LIMIT_WORDS:
        ax.plot([cost.value], [y], linestyle="", zorder=5, **_ring(bound))


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
    elif cost.low is not None and kind == "batched":
        x = cost.low  # this text stands at the left, so it begins where the interval does
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


def _draw_unpinned(ax: Axes, row: DispatchRow, kind: Kind, y: float) -> None:
    """Draw a strip over the range of the unpinned costs, those of fresh processes whose CPU core
    the operating system chooses, with a tick at their median.
    """
    record = row.records[kind]
    unpinned = unpinned_range(record)
    median_ns = record.value("met")
    if unpinned is None or median_ns is None:
        return
    low, high = unpinned
    # ``unpinned_range`` is in us, as the axis is; the figure ``met`` in ns.
    top, bottom = y - 0.13, y + 0.13
    colour = CALL_COLOURS[kind]
    look: dict[str, Any] = {"color": colour, "zorder": 2}
    ax.fill_betweenx([top, bottom], low, high, alpha=_UNPINNED_ALPHA, linewidth=0, **look)
    ax.vlines(median_ns / 1e3, top, bottom, linewidth=1.6, **look)


def _draw_shares(
    figure: Figure, ax: Axes, rows: Sequence[DispatchRow], places: Sequence[float]
) -> None:
    """Draw the second panel: for each row a bar of the CPU time of a call from Python, divided into
    Python's share and the rest; or why there is none.
    """
    from matplotlib.patches import Patch

    for y, row in zip(places, rows, strict=True):
        # ``python``: Python's share of the CPU time; None where the run could not split it.
        if row.python is not None and row.python.resolved:
            _draw_share(ax, row.python, y)
        else:
            why = "not split" if row.python is None else "too uncertain"
            ax.text(0, y, why, va="center", fontsize=_SMALL, color=MUTED)
    ax.set_xlim(0, 100)
    ax.set_xticks([0, 50, 100], ["0", "50", "100 %"])
    ax.grid(False)
    ax.set_title("CPU time from Python", fontsize=_FONT)
    handles = [Patch(facecolor=colour, label=layer) for layer, colour in LAYER_COLOURS.items()]
    figure.legend(
        handles=handles, loc="outside lower right", ncols=2, handlelength=1, columnspacing=1
    )


def _draw_share(ax: Axes, share: Value, y: float) -> None:
    """Draw a bar of a launch's CPU time, divided into Python's share and the rest, with the share
    in per cent: inside of its part where that has room for the text, else behind it.
    """
    # Two bars behind each other, together 100 per cent.
    python_colour, rest_colour = LAYER_COLOURS.values()
    per_cent = 100 * share.value
    ax.barh(y, per_cent, height=0.5, color=python_colour)
    ax.barh(y, 100 - per_cent, left=per_cent, height=0.5, color=rest_colour)
    # ``_ROOM_FOR_SHARE``: 35 per cent, chosen by eye.
    is_inside = per_cent > _ROOM_FOR_SHARE
    # 3 per cent from the end of the bar's part.
    ax.text(
        per_cent - 3 if is_inside else per_cent + 3,
        y,
        percent(share),
        va="center",
        fontsize=_FONT,
        ha="right" if is_inside else "left",
        color=PAPER,
    )
