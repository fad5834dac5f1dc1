"""The figure of a way: what a unit costs each of K peers, and how much all of them do together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from overhead.blocks.parts import Drawing, Table
from overhead.contention.rows import PeersRow, counts_of
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

_PANEL_INCHES, _MOST_LINES, _LEAST_RANGE = 3.3, 16, 5.0
_GAP = 0.055
"""Least distance of two labels, as a share of the height of a panel."""
_STYLES = {"native": ":", "ffi": "-."}
_MOST_PASSES = 300
"""Passes in which labels move apart. Chosen, not measured: with fewer some may still overlap."""


class _End(NamedTuple):
    """The end of a line: its label and colour, its most peers, and its value there."""

    label: str
    colour: str
    peers: int
    value: float


def drawing(way: Way, rows: Sequence[PeersRow], table: Table) -> Drawing | None:
    """The figure of one way to run many peers at once: the cost of each case over the number of
    peers, with ``table`` below it. None if no case has costs at two numbers of peers, so that there
    is no line to draw.

    A case that was measured both unpinned (``free``) and pinned to CPU cores is drawn once,
    unpinned.
    """
    # ``row.first``: the record of the fewest peers of the row. A figure has at most ``_MOST_LINES``
    # lines: calls from Python come first (``row.order``).
    free = {row.first.key for row in rows if row.first.placement == "free"}
    drawn = []
    for row in rows:
        is_shown = row.first.placement == "free" or row.first.key not in free
        has_line = len(row.values("cost")) > 1
        if is_shown and has_line:
            drawn.append(row)
    drawn = sorted(drawn, key=lambda row: row.order)[:_MOST_LINES]
    if not drawn:
        return None
    title = words.title(way)
    spoken = " ".join(finding_sentences(way, rows)) or title
    # Called later, and only where pictures are drawn.
    draw = partial(_draw, way, drawn)
    return Drawing(f"contention-{way}", title, spoken, words.PEERS_CAPTION, draw, table=table)


@style()
def _draw(way: Way, rows: Sequence[PeersRow]) -> Figure:
    """Two panels over the number of peers: on the left what a launch costs each peer, on the right
    the work, which is how much all do together, relative to one alone.
    """
    figure, (left, right) = new_figure([_PANEL_INCHES], 2, width=WIDE_INCHES, around=0.5)
    # ``counts``: all numbers of peers with a cost, in rising order; the last are the most.
    counts = counts_of(rows, "cost")

    left.set_title(words.cost_title(way))
    _make_logarithmic(left, way)
    ends = []
    for row in rows:
        costs_us = {peers: cost / 1e3 for peers, cost in row.values("cost").items()}
        ends.append(_line(left, row, costs_us))
    _set_ticks(left, counts)
    _names(left, ends, counts[-1])

    right.set_title(words.WORK_TITLE)
    # Two lines to compare with: as much work as one alone, and as many times as much as peers.
    right.axhline(1, color=INK, linewidth=0.9, zorder=1)
    right.plot(counts, counts, "--", color=MUTED, linewidth=1.1, zorder=1)
    _make_logarithmic(right, way)
    ends = []
    for row in rows:
        # One peer does as much as one: 1, without a record that says it.
        work = row.values("work")
        if work:
            ends.append(_line(right, row, {1: exactly(1.0)} | work))
    ends.append(_End(words.PROPORTIONAL, MUTED, counts[-1], counts[-1]))
    _set_ticks(right, counts)
    _names(right, ends, counts[-1])
    return figure


def _make_logarithmic(ax: Axes, way: Way) -> None:
    """Make both axes logarithmic, before lines are drawn, as these set the ends of the axes."""
    ax.set(xscale="log", yscale="log", xlabel=words.peers_axis(way))


def _set_ticks(ax: Axes, counts: Sequence[int]) -> None:
    """Mark each number of peers, and show a range of values that is not too small."""
    ax.set_xticks(counts, [f"{peers:,}" for peers in counts])
    ax.minorticks_off()
    lowest, highest = ax.get_ylim()
    ax.set_ylim(top=max(highest, _LEAST_RANGE * lowest))
    plain_log_ticks(ax.yaxis)


def _line(ax: Axes, row: PeersRow, points: Mapping[int, Value]) -> _End:
    """Draw the values of a row by number of peers as a line, with their intervals, and return its
    end, where its name will stand. A noisy value is hollow.
    """
    colour = row.facts.colour
    values = [point.value for point in points.values()]
    line_style = _STYLES.get(row.first.case.caller, "-")
    ax.plot([*points], values, line_style, color=colour, linewidth=1.4)
    for peers, point in points.items():
        if point.low is not None and point.high is not None:
            # The axis is logarithmic, and an interval may begin at zero: then it is drawn from a
            # tenth of the value on.
            ends = [max(point.low, point.value / 10), point.high]
            ax.plot([peers, peers], ends, color=colour, linewidth=1.4, zorder=3)
        inside = colour if point.status == "ok" else PAPER
        ax.plot(
            [peers],
            [point.value],
            "o",
            markersize=5,
            color=colour,
            markerfacecolor=inside,
            zorder=4,
        )
    # The end of the line, where its name will stand.
    most = max(points)
    return _End(words.line(row), colour, most, points[most].value)


def _names(ax: Axes, ends: Sequence[_End], last: int) -> None:
    """Write the name of each line beside its end, moved up or down where two would overlap.

    ``last``: the most peers of the panel. A line that ends before has no arrow from its name to its
    end; its name says up to how many peers it goes.
    """
    ends = sorted(ends, key=lambda end: end.value)
    # As logarithms, because the axis is logarithmic: equal distances there are equal on paper. The
    # names stand at 1.05 of the width of the panel, just right of it.
    places = _moved_apart([math.log(end.value) for end in ends], ax)
    for end, place in zip(ends, places, strict=True):
        reaches_last = end.peers == last
        # A line without a head, 1 and 4 points away from the name and from the end of the curve; it
        # begins at the left of the name, at half its height.
        arrow = {
            "arrowstyle": "-",
            "color": end.colour,
            "linewidth": 0.6,
            "shrinkA": 1,
            "shrinkB": 4,
            "relpos": (0, 0.5),
        }
        ax.annotate(
            end.label if reaches_last else words.line_up_to(end.label, end.peers),
            (end.peers, end.value),
            (1.05, math.exp(place)),
            textcoords=ax.get_yaxis_transform(),
            va="center",
            fontsize=8,
            color=end.colour,
            arrowprops=arrow if reaches_last else None,
        )


def _moved_apart(places: list[float], ax: Axes) -> list[float]:
    """The places of labels, moved apart until none overlap. As logarithms, in rising order.

    Each pass moves two neighbours that are too near by half of what is missing, which may bring
    them too near to the next ones. So there are many passes.
    """
    low, high = ax.get_ylim()
    # The least distance of two labels, as a difference of logarithms.
    gap = _GAP * math.log(high / low)
    # A pass without a move changes nothing, so the number only has to be large enough.
    for _ in range(_MOST_PASSES):
        for i in range(1, len(places)):
            missing = max(0.0, gap - (places[i] - places[i - 1]))
            places[i - 1] -= missing / 2
            places[i] += missing / 2
        # No label leaves the panel.
        places[0] = max(places[0], math.log(low))
        places[-1] = min(places[-1], math.log(high))
    return places
