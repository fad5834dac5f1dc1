"""The figure of a way: what a unit costs each of K peers, and how much all of them do together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Drawing, Table
from overhead.contention.rows import PeersRow
from overhead.contention.show import finding_sentences
from overhead.report.core.draw import (
    INK,
    MUTED,
    PAPER,
    WIDE_INCHES,
    new_figure,
    plain_log_ticks,
    style,
)
from overhead.results import Value, Way, exactly
from overhead.words.contention import figure as words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_End = tuple[str, str, int, float]
_PANEL_INCHES, _MOST_LINES, _LEAST_RANGE = 3.3, 16, 5.0
_GAP = 0.055
"""Least distance of two labels, as a share of the height of a panel."""
_STYLES = {"native": ":", "ffi": "-."}


def drawing(way: Way, rows: Sequence[PeersRow], table: Table) -> Drawing | None:
    """The figure with its table, a pinned case only where it has no free one; None without two
    numbers of peers.
    """
    free = {row.first.key for row in rows if row.first.placement == "free"}
    own = [row for row in rows if row.first.placement == "free" or row.first.key not in free]
    own = sorted((row for row in own if len(row.values("cost")) > 1), key=lambda row: row.order)[
        :_MOST_LINES
    ]
    if not own:
        return None
    title = words.title(way)
    said = " ".join(finding_sentences(way, rows)) or title
    return Drawing(
        f"contention-{way}", title, said, words.PEERS_CAPTION, partial(_draw, way, own), table=table
    )


@style()
def _draw(way: Way, rows: Sequence[PeersRow]) -> Figure:
    """Two panels: the cost and the work over the number of peers."""
    figure, (left, right) = new_figure([_PANEL_INCHES], 2, width=WIDE_INCHES, around=0.5)
    counts = sorted({k for row in rows for k in row.values("cost")})
    left.set_title(words.cost_title(way))
    right.set_title(words.WORK_TITLE)
    right.axhline(1, color=INK, linewidth=0.9, zorder=1)
    right.plot(counts, counts, "--", color=MUTED, linewidth=1.1, zorder=1)
    costs = [(row, {k: cost / 1e3 for k, cost in row.values("cost").items()}) for row in rows]
    works = [(row, {1: exactly(1.0)} | work) for row in rows if (work := row.values("work"))]
    for ax, lines in ((left, costs), (right, works)):
        ax.set(xscale="log", yscale="log", xlabel=words.peers_axis(way))
        ends = [_line(ax, row, points) for row, points in lines]
        ax.set_xticks(counts, [f"{k:,}" for k in counts])
        ax.minorticks_off()
        ax.set_ylim(top=max(ax.get_ylim()[1], _LEAST_RANGE * ax.get_ylim()[0]))
        plain_log_ticks(ax.yaxis)
        if ax is right:
            ends.append((words.PROPORTIONAL, MUTED, counts[-1], counts[-1]))
        _names(ax, ends, counts[-1])
    return figure


def _line(ax: Axes, row: PeersRow, points: Mapping[int, Value]) -> _End:
    """Draw a line with its intervals; returns its label and colour, its most peers, and its value
    there.
    """
    caller, own, label = row.first.case.caller, row.facts.colour, words.line(row)
    ax.plot(
        [*points],
        [v.value for v in points.values()],
        _STYLES.get(caller, "-"),
        color=own,
        linewidth=1.4,
    )
    for k, value in points.items():
        if value.low is not None and value.high is not None:
            ax.plot(
                [k, k],
                [max(value.low, value.value / 10), value.high],
                color=own,
                linewidth=1.4,
                zorder=3,
            )
        inside = own if value.status == "ok" else PAPER
        ax.plot([k], [value.value], "o", markersize=5, color=own, markerfacecolor=inside, zorder=4)
    return label, own, max(points), points[max(points)].value


def _names(ax: Axes, ends: Sequence[_End], last: int) -> None:
    """Write the name of each line beside its end, moved up or down where two would overlap."""
    low, high = ax.get_ylim()
    gap = _GAP * math.log(high / low)
    ends = sorted(ends, key=lambda end: end[3])
    at = [math.log(y) for *_, y in ends]
    for _ in range(300):
        for i in range(1, len(at)):
            missing = max(0.0, gap - (at[i] - at[i - 1]))
            at[i - 1], at[i] = at[i - 1] - missing / 2, at[i] + missing / 2
        at[0], at[-1] = max(at[0], math.log(low)), min(at[-1], math.log(high))
    for (label, own, x, y), place in zip(ends, at, strict=True):
        arrow = {
            "arrowstyle": "-",
            "color": own,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 4,
            "relpos": (0, 0.5),
        }
        text = label if x == last else words.line_up_to(label, x)
        ax.annotate(
            text,
            (x, y),
            (1.05, math.exp(place)),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=own,
            arrowprops=arrow if x == last else None,
        )
