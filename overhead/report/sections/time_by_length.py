"""T(n) of each target's base case with its fit: where one sees intercept, slope and knee."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.format import MICRO, count, micro, plain
from overhead.reading.view import TargetView, View
from overhead.report.core.draw import GRID_COLOUR, INK, MUTED, PAPER, SMALL, canvas, plain_log_ticks, two_lines
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL_COLUMNS = 2
_LONGEST_CHAIN_NS = 1e15
"""ns: a longer chain is no measurement, and drawing it overflows."""


@register("curves", "The line behind the number", 60, page="cases")
def curves(view: View) -> Iterator[Part]:
    shown = [t for t in view.stacked if any(p.n > 0 for p in t.base.curve)]
    if not shown:
        yield Text(["No base case gave a curve."])
        return
    yield Text(
        [
            "Nothing here divides a total by a count: a chain of n units is timed for several n, and the cost "
            "of one is "
            "the slope of the line through them. The flat part at the left is what a chain costs once, whatever "
            "its length."
        ]
    )
    rows = math.ceil(len(shown) / _PANEL_COLUMNS)
    figure, grid = canvas([1.7] * rows, _PANEL_COLUMNS, around=0.75)
    axes = [ax for row in grid for ax in row]
    for ax, target in zip(axes, shown, strict=False):
        _panel(ax, target, target.base)
    for row in grid:
        row[0].set_ylabel(f"T(n), {MICRO}", fontsize=7.5)
    for ax in axes[len(shown) :]:
        ax.set_visible(False)
    yield Drawing(
        "curves",
        "Time of a chain of n units",
        f"Time against the number of units for {count(len(shown), 'base case')}: each follows its fitted line, flat "
        "where the fixed cost dominates, then rising by the slope.",
        "Filled dots: until everything has finished, medians of all processes with quartiles. Open dots: until the "
        "stack gave control back. Solid line: the fit, intercept plus slope times n, bent here because both axes are "
        "logarithmic. Dotted line: T(1) times n, what timing a single unit predicts. A dashed upright marks the knee, "
        "where the queue is full.",
        figure,
        folded=True,
    )


def _panel(ax: Axes, target: TargetView, record: Record) -> None:
    own = colour(target.stack)
    points = [
        p
        for p in record.curve
        if p.n > 0 and 0 < p.total < _LONGEST_CHAIN_NS and p.q3 < _LONGEST_CHAIN_NS and p.issue < _LONGEST_CHAIN_NS
    ]
    ax.set_xscale("log", nonpositive="clip")
    ax.set_yscale("log", nonpositive="clip")
    ns, totals = [p.n for p in points], [p.total / 1e3 for p in points]
    ax.vlines(ns, [max(p.q1, 1) / 1e3 for p in points], [max(p.q3, 1) / 1e3 for p in points], color=own, linewidth=1.4)
    ax.plot(ns, totals, "o", markersize=4, color=own, zorder=3)
    issued = [(p.n, p.issue / 1e3) for p in points if p.issue > 0]
    if issued and record.overlap != "serial":
        ax.plot(
            *zip(*issued, strict=True),
            "o",
            markersize=3.2,
            markerfacecolor=PAPER,
            markeredgecolor=own,
            markeredgewidth=0.9,
            zorder=2,
        )
    _fit(ax, record, max(ns, default=1), min(totals, default=1.0), max(totals, default=1.0))
    ax.set_title(two_lines(target.short), fontsize=8.5)
    ax.set_xlabel(f"n, {plain(record.unit, 20)} ({record.pattern})", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    ax.grid(True, color=GRID_COLOUR)
    for axis in (ax.xaxis, ax.yaxis):
        plain_log_ticks(axis)


def _fit(ax: Axes, record: Record, top: int, floor: float, ceiling: float) -> None:
    slope, fixed = record.figure("complete"), record.figure("fixed")
    each, once, single = record.measured("complete"), record.measured("fixed"), record.value("naive")
    ns = [top ** (i / 60) for i in range(61)] if top > 1 else [1.0]
    if single is not None and single > 0:
        ax.plot(ns, [single * n / 1e3 for n in ns], ":", color=MUTED, linewidth=1, zorder=1)
    lines: list[str] = []
    if each is not None and once is not None:
        times = [(n, once.value + each.value * n) for n in ns]
        line = [(n, time / 1e3) for n, time in times if time > 0]
        if line:
            ax.plot(*zip(*line, strict=True), color=INK, linewidth=1, zorder=1)
    if slope is not None:
        lines.append(f"slope {micro(slope)}" + (f" {MICRO}" if each is not None else ""))
    if fixed is not None:
        lines.append(f"fixed {micro(fixed)}" + (f" {MICRO}" if once is not None else ""))
    knee = record.measured("knee_n")
    if knee is not None and 0 < knee.value <= 4 * top:
        ax.axvline(knee.value, color=MUTED, linewidth=0.9, linestyle="--", zorder=0)
        lines.append(f"knee at {knee.value:,.0f}")
    ax.set_ylim(floor / 3, ceiling * 3)
    ax.text(
        0.04,
        0.95,
        "\n".join(lines),
        transform=ax.transAxes,
        va="top",
        fontsize=7.5,
        color=INK,
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1.5},
    )
