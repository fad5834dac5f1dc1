"""Draw the marks of the headline figure: costs with their intervals, the range of the same costs on
other boards, and unpinned costs. Its wide and its narrow layout share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import DispatchRow, Kind, doubt_of
from overhead.reading.headline import unpinned_apart
from overhead.reading.typical_run import OtherBoards, other_boards
from overhead.reading.view import View
from overhead.report.core.draw import INK, MUTED, PAPER
from overhead.report.core.palette import CALL_COLOURS
from overhead.results import Value
from overhead.words.dispatch_costs import KIND_TITLES
from overhead.words.report.headline_figure import (
    HOLLOW,
    LIMIT_WORDS,
    OTHER_BOARDS,
    TWO_SPEEDS,
    UNPINNED_TICK,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS: dict[Kind, str] = {"python": "o", "browser": "^", "compiled": "D", "batched": "s"}
_MARKER_POINTS = 7
_NARROW = 1.1
"""The interval of an ``ok`` figure is drawn only if its high end is more than this many times its
low end.
"""
_FURTHEST = 4
"""An interval is drawn up to this multiple of its value, and down to this part of it."""
_BOARDS_ALPHA = 0.22


@dataclasses.dataclass(frozen=True)
class DrawnRow:
    """A row of the figure. ``others``: by kind of caller, what the same case costs on other boards,
    where that is known.
    """

    row: DispatchRow
    others: Mapping[Kind, OtherBoards]


def with_other_boards(view: View, rows: Sequence[DispatchRow]) -> list[DrawnRow]:
    """The rows with what their costs are on other boards. ``view``: of their run."""
    drawn = []
    for row in rows:
        others = {}
        for kind in row.marks:
            of_others = other_boards(view, row.records[kind])
            if of_others is not None:
                others[kind] = of_others
        drawn.append(DrawnRow(row, others))
    return drawn


def ends_of_costs(rows: Sequence[DrawnRow]) -> tuple[float, float]:
    """The ends of what the axis must show, in µs: all values, ticks and ranges of other boards, and
    of wide intervals at most ``_FURTHEST`` times the value. The ends are a factor of 10 apart at
    least, so that the axis has three ticks.
    """
    drawn: list[float] = []
    for each in rows:
        for kind, costs in each.row.marks.items():
            unpinned_us = unpinned_apart(each.row.records[kind])
            if unpinned_us is not None:
                drawn.append(unpinned_us)
            for cost in costs:
                drawn += _drawn_ends(cost)
        for others in each.others.values():
            drawn += (others.low_us, others.high_us)
    if not drawn:
        return 1.0, 10.0
    low = min(drawn)
    return low, max(*drawn, 10 * low)


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


def draw_marks(ax: Axes, drawn: DrawnRow, y: float, half: float) -> None:
    """Draw the marks of a row at the height ``y``: the line that joins a batch to its single
    launch, ranges of other boards, unpinned costs, and costs with their intervals. ``half``: half
    the height of a range, in units of the y axis.
    """
    _join_to_batch(ax, drawn.row, y)
    for kind, others in drawn.others.items():
        _draw_other_boards(ax, kind, others, y, half)
    for kind, costs in drawn.row.marks.items():
        _draw_unpinned(ax, drawn.row, kind, y, half)
        for cost in costs:
            _draw_mark(ax, drawn.row, kind, cost, y)


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


def _draw_other_boards(ax: Axes, kind: Kind, others: OtherBoards, y: float, half: float) -> None:
    """Draw a strip from the lowest to the highest cost of the same case on other boards."""
    ax.fill_betweenx(
        [y - half, y + half],
        others.low_us,
        others.high_us,
        color=CALL_COLOURS[kind],
        alpha=_BOARDS_ALPHA,
        linewidth=0,
        zorder=0.5,
    )


def _draw_unpinned(ax: Axes, row: DispatchRow, kind: Kind, y: float, half: float) -> None:
    """Draw a tick at the median of the unpinned costs, those of fresh processes whose CPU core the
    operating system chooses, where it differs from the cost.
    """
    unpinned_us = unpinned_apart(row.records[kind])
    if unpinned_us is not None:
        colour = CALL_COLOURS[kind]
        ax.vlines(unpinned_us, y - half, y + half, color=colour, linewidth=1.8, zorder=2)


def _draw_mark(ax: Axes, row: DispatchRow, kind: Kind, cost: Value, y: float) -> None:
    """Draw a mark, hollow where the cost is doubtful; its interval where the mark is hollow or the
    interval is wide enough to see; and a ring where the device limits the cost. ``kind``: who
    calls.
    """
    colour = CALL_COLOURS[kind]
    # The interval first, then the mark over it, then the ring around it.
    hollow = is_hollow(row, kind)
    if cost.low is not None and cost.high is not None:
        # ``_NARROW``: 1.1 times the low end.
        is_wide = cost.high > _NARROW * cost.low
        if hollow or is_wide:
            lowest, highest = ax.get_xlim()
            ends = [max(cost.low, lowest), min(cost.high, highest)]
            look: dict[str, Any] = {"linewidth": 1.4, "markersize": 7, "markeredgewidth": 1.4}
            ax.plot(ends, [y, y], "|-", color=colour, zorder=3, **look)
    ax.plot(
        [cost.value],
        [y],
        MARKERS[kind],
        markersize=_MARKER_POINTS,
        color=colour,
        zorder=4,
        markeredgecolor=colour if hollow else PAPER,
        markeredgewidth=1.6 if hollow else 0.8,
        markerfacecolor=PAPER if hollow else colour,
    )
    bound = row.limit(kind)
    if bound in LIMIT_WORDS:
        ax.plot([cost.value], [y], linestyle="", zorder=5, **_ring(bound))


def is_hollow(row: DispatchRow, kind: Kind) -> bool:
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


_TWO_MARKS = "two marks"
"""Marks the entry of the legend that shows its mark twice."""
_LOOK: dict[str, Any] = {"linestyle": "", "markersize": _MARKER_POINTS}
"""An entry of the legend that is a mark without a line."""


def caller_entries(rows: Sequence[DrawnRow]) -> list[Any]:
    """An entry of the legend for each kind of caller that a row has."""
    from matplotlib.lines import Line2D

    entries = []
    for kind, label in KIND_TITLES.items():
        if any(kind in each.row.marks for each in rows):
            marker, colour = MARKERS[kind], CALL_COLOURS[kind]
            entries.append(Line2D([], [], marker=marker, color=colour, label=label, **_LOOK))
    return entries


def sign_entries(rows: Sequence[DrawnRow], hollow_label: str = HOLLOW) -> list[Any]:
    """An entry of the legend for each sign that a row has: ranges of other boards, ticks (unpinned
    costs), hollow marks, two speeds, and rings (what the device limits).
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    # Each mark by its row and the kind of its caller.
    drawn: list[tuple[DispatchRow, Kind]] = []
    for each in rows:
        drawn += [(each.row, kind) for kind in each.row.marks]
    entries: list[Any] = []
    if any(each.others for each in rows):
        entries.append(Patch(facecolor=MUTED, alpha=2 * _BOARDS_ALPHA, label=OTHER_BOARDS))
    if any(unpinned_apart(row.records[kind]) is not None for row, kind in drawn):
        tick = {**_LOOK, "marker": "|", "markersize": 9, "markeredgewidth": 1.8}
        entries.append(Line2D([], [], color=MUTED, label=UNPINNED_TICK, **tick))
    if any(is_hollow(row, kind) for row, kind in drawn):
        hollow = {**_LOOK, "marker": "o", "markerfacecolor": PAPER, "markeredgewidth": 1.6}
        entries.append(Line2D([], [], color=MUTED, label=hollow_label, **hollow))
    if any(len(row.marks[kind]) > 1 for row, kind in drawn):
        two = Line2D([], [], marker="s", color=MUTED, label=TWO_SPEEDS, gid=_TWO_MARKS, **_LOOK)
        entries.append(two)
    for bound, label in LIMIT_WORDS.items():
        if any(row.limit(kind) == bound for row, kind in drawn):
            ring = {**_LOOK, **_ring(bound), "markersize": 9}
            entries.append(Line2D([], [], label=label, **ring))
    return entries


def add_legend(figure: Figure, entries: Sequence[Any], **options: Any) -> None:
    """Add the legend with these entries. ``options``: of matplotlib's legend."""
    from matplotlib.legend_handler import HandlerLine2D

    twice = {}
    for entry in entries:
        if entry.get_gid() == _TWO_MARKS:
            twice[entry] = HandlerLine2D(numpoints=2)
    figure.legend(handles=entries, alignment="left", handler_map=twice, **options)
