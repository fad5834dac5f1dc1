"""Draw the headline figure: what one dispatch costs through each stack, by who makes the calls,
with printed values.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import (
    ROW_GROUPS,
    DispatchCosts,
    DispatchRow,
    Kind,
    doubt_of,
    met_range,
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
from overhead.words.dispatch_costs import (
    GROUP_TITLES,
    KIND_TITLES,
    mark_text,
    notes,
    remarks,
    title,
)
from overhead.words.format import percent
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
_MARKERS: dict[Kind, str] = {"python": "o", "browser": "^", "compiled": "D", "batched": "s"}
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
_MET_ALPHA = 0.3
_ROW_INCHES = 0.4
_TITLE_ROWS, _TITLE_ABOVE = 0.65, 0.75
"""Height of the title of a group, and its distance from the middle of its first row, in rows."""
_TITLE_LETTERS, _ABOUT_LETTERS = 90, 120
_FONT, _SMALL = 9, 8
_BAND = "#f1f3f5"
_LEFT_ROOM = 6
"""Points between the left end of the axis and the text of a value."""
_SHARES = (3.6, 1.0)
"""Widths of the panels of costs and of CPU time."""


def rows_drawn(costs: DispatchCosts) -> tuple[DispatchRow, ...]:
    """At most 12 rows, by group and then by cost.

    While there are more, a row without a cost goes; else one of the largest group, of several the
    first. It is that of the highest rank, of several the most expensive. The cheapest row of a
    group and the cheapest from Python stay.
    """
    kept, first = list(costs.rows), cheapest(costs)
    while len(kept) > _MOST_ROWS:
        groups = [[row for row in kept if row.group == group] for group in ROW_GROUPS]
        later = [row for row in max(groups, key=len)[1:] if row is not first]
        others = [row for row in kept if not row.marks] or later
        kept.remove(max(reversed(others), key=lambda row: row.rank))
    return tuple(sorted(kept, key=lambda row: ROW_GROUPS.index(row.group)))


@style()
def headline_figure(costs: DispatchCosts) -> Figure:
    """The headline figure: rows of stacks by group, a mark with its printed value for each caller.

    A second panel shows Python's share of the CPU time where the run resolves it for at least one
    row.
    """
    rows = rows_drawn(costs)
    titles, places = _group_layout(rows)
    split = any(row.python is not None for row in rows)
    shares = _SHARES if split else _SHARES[:1]
    figure, (ax, *others) = new_figure(
        [_ROW_INCHES * (places[-1] + 1)],
        len(shares),
        around=1.3,
        width=WIDE_INCHES,
        shares=shares,
        sharey=True,
    )
    ax.set_xscale("log")
    _limits(ax, rows)
    for number, (y, row) in enumerate(zip(places, rows, strict=True)):
        _draw_row(ax, row, y)
        if sum(one.group == row.group for one in rows[:number]) % 2 == 0:
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
    # Below the last row there is room for the value under a mark.
    ax.set_ylim(places[-1] + 0.75, -0.55)
    ax.set_yticks(
        [*places, *titles], [*(row.label for row in rows), *titles.values()], fontsize=_FONT
    )
    for label in ax.get_yticklabels()[len(rows) :]:
        label.set(fontsize=_SMALL, fontweight="bold")
    for own in (ax, *others):
        own.tick_params(axis="y", length=0)
        own.grid(False, axis="y")
        own.spines["left"].set_visible(False)
        own.patch.set_visible(False)
    plain_log_ticks(ax.xaxis, close=1e3)
    ax.set_title(AXIS_TITLE, fontsize=_FONT)
    for own in others:
        _draw_shares(figure, own, rows, places)
    source = textwrap.fill(about(costs.view.fingerprint), _ABOUT_LETTERS)
    figure.supxlabel(source, x=0.01, ha="left", fontsize=_SMALL, color=MUTED)
    _legend(figure, title(costs), rows)
    _make_room_at_left(figure, ax)
    return figure


def _make_room_at_left(figure: Figure, ax: Axes) -> None:
    """Lower the left end of the axis until the value left of the leftmost mark does not lie over
    the stack's name.
    """
    from matplotlib.text import Annotation

    figure.draw_without_rendering()
    width = ax.bbox.width
    low, high = (math.log(end) for end in ax.get_xlim())
    least = low
    for text in ax.texts:
        if not isinstance(text, Annotation) or text.get_gid() != _VALUE_TEXT:
            continue
        at = math.log(text.xy[0])
        mark = ax.bbox.x0 + width * (at - low) / (high - low)
        needed = mark - text.get_window_extent().x0 + _LEFT_ROOM * figure.dpi / 72
        # Of a lower end, the mark lies width * (at - end) / (high - end) from the left.
        if needed < width / 2:
            least = min(least, (width * at - needed * high) / (width - needed))
    ax.set_xlim(left=math.exp(least))


def _group_layout(rows: tuple[DispatchRow, ...]) -> tuple[dict[float, str], list[float]]:
    """The titles of groups by their places on the y axis, and the places of the rows. One group has
    no title.
    """
    titles: dict[float, str] = {}
    places: list[float] = []
    y, several = 0.0, len({row.group for row in rows}) > 1
    for row in rows:
        if several and GROUP_TITLES[row.group] not in titles.values():
            y += _TITLE_ROWS
            titles[y - _TITLE_ABOVE] = GROUP_TITLES[row.group]
        places.append(y)
        y += 1
    return titles, places


def _limits(ax: Axes, rows: tuple[DispatchRow, ...]) -> None:
    """The ends of the axis: all values and met costs, and of wide intervals at most ``_FURTHEST``
    times the value.
    """
    marks = [cost for row in rows for costs in row.marks.values() for cost in costs]
    values = [
        end for row in rows for record in row.records.values() for end in met_range(record) or ()
    ]
    ends = [
        (cost.value, end)
        for cost in marks
        for end in (cost.value, cost.low, cost.high)
        if end is not None
    ]
    values += [min(max(end, value / _FURTHEST), value * _FURTHEST) for value, end in ends]
    low, high = (min(values), max(*values, 10 * min(values))) if values else (1.0, 10.0)
    ax.set_xlim(low / (high / low) ** 0.1, high * (high / low) ** 0.05)


def _legend(figure: Figure, title: str, rows: tuple[DispatchRow, ...]) -> None:
    """The kinds of marks, with the title of the figure above them."""
    from matplotlib.legend_handler import HandlerLine2D
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look: dict[str, Any] = {"linestyle": "", "markersize": 7}
    kinds = [kind for kind in KIND_TITLES if any(kind in row.marks for row in rows)]
    handles: list[Any] = [
        Line2D(
            [], [], marker=_MARKERS[kind], color=CALL_COLOURS[kind], label=KIND_TITLES[kind], **look
        )
        for kind in kinds
    ]
    drawn = [(row, kind) for row in rows for kind in row.marks]
    if any(_is_hollow(row, kind) for row, kind in drawn):
        handles.append(
            Line2D(
                [],
                [],
                marker="o",
                color=MUTED,
                markerfacecolor=PAPER,
                markeredgewidth=1.6,
                label=HOLLOW,
                **look,
            )
        )
    two_speeds = Line2D([], [], marker="s", color=MUTED, label=TWO_SPEEDS, **look)
    if any(len(row.marks[kind]) > 1 for row, kind in drawn):
        handles.append(two_speeds)
    for bound, words in LIMIT_WORDS.items():
        if any(row.limit(kind) == bound for row, kind in drawn):
            handles.append(Line2D([], [], label=words, **{**look, **_ring(bound), "markersize": 9}))
    if any(met_range(row.records[kind]) for row, kind in drawn):
        handles.append(Patch(facecolor=MUTED, alpha=_MET_ALPHA, label=STRIP))
    font = {"size": _FONT + 2.5, "weight": "bold"}
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=4,
        title=textwrap.fill(title, _TITLE_LETTERS),
        title_fontproperties=font,
        alignment="left",
        columnspacing=1.4,
        handler_map={two_speeds: HandlerLine2D(numpoints=2)},
    )


def _is_hollow(row: DispatchRow, kind: Kind) -> bool:
    """Whether the mark is hollow. Two speeds have two marks, which say enough."""
    return not row.is_resolved(kind) and doubt_of(row.records[kind]) != "two-speeds"


def _ring(bound: str) -> dict[str, Any]:
    """The look of the ring around a mark that the device limits, and of the half ring where both
    do.
    """
    from matplotlib.path import Path

    shape: Any = "o" if bound == "device" else Path.arc(-90, 90)
    return {
        "marker": shape,
        "markersize": 13,
        "markerfacecolor": "none",
        "markeredgecolor": INK,
        "markeredgewidth": 1,
    }


def _draw_row(ax: Axes, row: DispatchRow, y: float) -> None:
    batch = row.records.get("batched")
    for kind in row.marks if "batched" in row.marks else ():
        if batch is not None and row.records[kind].caller == batch.caller:
            ends = [row.marks[one][0].value for one in (kind, "batched")]
            ax.plot(ends, [y, y], "-", color=CALL_COLOURS["batched"], linewidth=0.7, zorder=1)
    for kind, costs in row.marks.items():
        own, solid, bound = CALL_COLOURS[kind], not _is_hollow(row, kind), row.limit(kind)
        _draw_met(ax, row, kind, y)
        lowest, highest = ax.get_xlim()
        for cost in costs:
            if (
                cost.low is not None
                and cost.high is not None
                and (not solid or cost.high > _NARROW * cost.low)
            ):
                ends = [max(cost.low, lowest), min(cost.high, highest)]
                ax.plot(
                    ends,
                    [y, y],
                    "|-",
                    color=own,
                    linewidth=1.4,
                    markersize=7,
                    markeredgewidth=1.4,
                    zorder=3,
                )
            ax.plot([cost.value], [y], _MARKERS[kind], markersize=7, color=own, zorder=4,
                    markeredgecolor=PAPER if solid else own, markeredgewidth=0.8 if solid else 1.6,
                    markerfacecolor=own if solid else PAPER)  # fmt: skip
            if bound in LIMIT_WORDS:
                ax.plot([cost.value], [y], linestyle="", zorder=5, **_ring(bound))
        at = min(costs, key=lambda cost: cost.value)
        wide = at.low is not None and at.low <= lowest
        left = at.low if kind == "batched" and at.low is not None and not wide else at.value
        place = dict(_PLACES["python" if wide else kind])
        if kind == "compiled" and bound in LIMIT_WORDS:
            place["xytext"] = _BELOW_A_RING
        ax.annotate(
            mark_text(costs),
            (left, y),
            textcoords="offset points",
            fontsize=_FONT,
            color=own,
            zorder=6,
            gid=_VALUE_TEXT,
            **place,
        )
    if not row.marks:
        ax.text(
            0.01,
            y,
            plain(remarks(row), 110),
            transform=ax.get_yaxis_transform(),
            va="center",
            fontsize=_SMALL,
        )
    ax.annotate(
        notes(row),
        (0, y),
        (-4, -7.5),
        xycoords=ax.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=SMALL,
        color=MUTED,
    )


def _draw_met(ax: Axes, row: DispatchRow, kind: Kind, y: float) -> None:
    """A strip over the unpinned costs of fresh processes, with a tick at their median."""
    found = met_range(row.records[kind])
    middle = row.records[kind].value("met")
    if found is not None and middle is not None:
        ends, own = [y - 0.13, y + 0.13], CALL_COLOURS[kind]
        ax.fill_betweenx(ends, *found, color=own, alpha=_MET_ALPHA, linewidth=0, zorder=2)
        ax.vlines(middle / 1e3, *ends, color=own, linewidth=1.6, zorder=2)


def _draw_shares(
    figure: Figure, ax: Axes, rows: tuple[DispatchRow, ...], places: list[float]
) -> None:
    """A bar of the CPU time of a call from Python: Python's share, and the rest."""
    from matplotlib.patches import Patch

    python, rest = LAYER_COLOURS.values()
    for y, row in zip(places, rows, strict=True):
        if row.python is None or not row.python.resolved:
            why = "not split" if row.python is None else "too uncertain"
            ax.text(0, y, why, va="center", fontsize=_SMALL, color=MUTED)
            continue
        share = 100 * row.python.value
        ax.barh(y, share, height=0.5, color=python)
        ax.barh(y, 100 - share, left=share, height=0.5, color=rest)
        inside = share > 35
        ax.text(
            share - 3 if inside else share + 3,
            y,
            percent(row.python),
            va="center",
            fontsize=_FONT,
            ha="right" if inside else "left",
            color=PAPER,
        )
    ax.set_xlim(0, 100)
    ax.set_xticks([0, 50, 100], ["0", "50", "100 %"])
    ax.grid(False)
    ax.set_title("CPU time from Python", fontsize=_FONT)
    handles = [Patch(facecolor=c, label=t) for t, c in LAYER_COLOURS.items()]
    figure.legend(
        handles=handles, loc="outside lower right", ncols=2, handlelength=1, columnspacing=1
    )
