"""Rows of one quantity over machines, by vendor, API and implementation. Published points are hollow."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.claims import PublishedPoint, published_points
from overhead.reading.format import plain, spread
from overhead.report.core.dots import DotRow, Mark, dot_rows
from overhead.report.core.draw import INK, MARKER_SIZE, MUTED, PAPER, ROW_INCHES, canvas
from overhead.report.core.machines import Machines
from overhead.report.core.palette import colour
from overhead.report.core.run_summary import Way

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DRAWN_ALONE = 4
"""Machines of a row that are drawn one by one with their intervals; more are drawn as a cloud."""
_PUBLISHED_MARKER = "*"
"""The mark of a published point, hollow and grey."""
Value = tuple[float, float | None, float | None, bool]
"""Value, low and high in the axis' unit, and whether the status is ``ok``."""


@dataclasses.dataclass(frozen=True)
class MachineRow:
    """The values of one stack and API with their machine ids. ``own``: the value of the machine shown in full."""

    label: str
    vendor: str
    way: Way
    values: Sequence[tuple[str, Value]]
    own: Value | None


Panel = tuple[list[MachineRow], list[tuple[int, PublishedPoint]]]
"""Rows of machines, and published points with the numbers that cite them."""


def lines(machines: Machines, quantity: str, value: Callable[[Way], Value | None]) -> list[MachineRow]:
    """A row for each stack and API with this quantity, grouped by vendor, the cheapest of a vendor first."""
    found: dict[tuple[str, str, str, str], list[tuple[str, Way, Value]]] = {}
    for summary in machines.summaries:
        for way in summary.ways:
            if way.quantity == quantity and (own := value(way)) is not None and own[0] > 0:
                key = (way.vendor, way.stack, way.api, way.caller)
                found.setdefault(key, []).append((summary.machine.id, way, own))
    made = [_line(machines, rows) for rows in found.values()]
    return sorted(made, key=lambda one: (one.way.software, one.vendor, middle(one)))


def _line(machines: Machines, rows: Sequence[tuple[str, Way, Value]]) -> MachineRow:
    way = rows[0][1]
    api = "" if way.api == "CPU" else f", {way.api}"
    where = f"{way.vendor}{api}" if not way.software else f"software adapter{api} (software)"
    label = plain(f"{way.stack} on {where}", 80)
    own = next((v for machine, _, v in rows if machine == machines.own.machine.id), None)
    return MachineRow(label, way.vendor, way, [(machine, v) for machine, _, v in rows], own)


def middle(line: MachineRow) -> float:
    """The median of the values over the machines."""
    return statistics.median(v[0] for _, v in line.values)


def said(line: MachineRow) -> list[str]:
    """Table cells: the number of machines, the value of this machine, and the median with lowest and highest."""
    values = [v[0] for _, v in line.values]
    over = spread(middle(line), min(values), max(values)) if len(values) > 1 else ""
    own = spread(*line.own[:3]) if line.own is not None else ""
    return [str(len(values)), own, over]


def panels_figure(panels: Mapping[str, Panel]) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per title and a legend, and its axes in the order of the panels."""
    figure, grid = canvas([ROW_INCHES * (len(ours) + len(points)) for ours, points in panels.values()])
    axes = [ax for (ax,) in grid]
    for ax, (title, (ours, points)) in zip(axes, panels.items(), strict=True):
        _draw(ax, ours, points)
        ax.set_title(title)
    crowd = any(len(one.values) > _MOST_DRAWN_ALONE for ours, _ in panels.values() for one in ours)
    _legend(figure, many=crowd, points=any(points for _, points in panels.values()))
    return figure, axes


def _draw(ax: Axes, found: Sequence[MachineRow], points: Sequence[tuple[int, PublishedPoint]]) -> None:
    """Draw the rows, then the published points of that quantity. ``points``: with their citation numbers."""
    rows = [_row(one) for one in found]
    rows += [
        DotRow(_cited(number, p), [Mark(micro(p), None, None, MUTED, _PUBLISHED_MARKER, True)]) for number, p in points
    ]
    dot_rows(ax, rows)
    if found and points:
        ax.axhline(len(found) - 0.5, color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=1)
    for y, one in enumerate(found):
        if len(one.values) > _MOST_DRAWN_ALONE:
            _cloud(ax, y, one)


def micro(point: PublishedPoint) -> float:
    """A published time in microseconds."""
    return float(point.value) * {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}[point.unit]


def numbered(wanted: Callable[[PublishedPoint], bool]) -> list[tuple[int, PublishedPoint]]:
    """The published points of a kind, grouped by vendor, each with its citation number."""
    found = [(i, p) for i, p in enumerate(published_points(), 1) if wanted(p)]
    return sorted(found, key=lambda one: (one[1].vendor, micro(one[1])))


def _cited(number: int, point: PublishedPoint) -> str:
    return f"[{number}] {point.implementation} on {point.vendor} {point.adapter}, {point.api}, {point.contract}"


def _row(line: MachineRow) -> DotRow:
    """The marks of a row: a dot for each of a few machines, with a ring for this one; for many, the median and span."""
    own = colour(line.way.stack)
    if len(line.values) > _MOST_DRAWN_ALONE:
        values = sorted(v[0] for _, v in line.values)
        return DotRow(line.label, [Mark(middle(line), values[0], values[-1], own, "|")])
    marks = [
        Mark(v[0], v[1], v[2], own, "o", not v[3], ring=v is line.own)
        for _, v in sorted(line.values, key=lambda one: one[1][0])
    ]
    return DotRow(line.label, marks)


def _cloud(ax: Axes, y: int, line: MachineRow) -> None:
    ordered = [v for _, v in sorted(line.values, key=lambda one: one[1][0])]
    heights = [y + 0.08 + 0.26 * ((i * 0.618034) % 1.0) for i in range(len(ordered))]
    own = colour(line.way.stack)
    alpha = max(0.25, min(0.9, 20 / len(ordered)))
    for hollow in (False, True):
        kept = [(v[0], h) for v, h in zip(ordered, heights, strict=True) if v[3] is not hollow]
        if kept:
            ax.plot(*zip(*kept, strict=True), linestyle="", marker="o", markersize=3.4, alpha=alpha, color=own,
                    markerfacecolor=PAPER if hollow else own, markeredgewidth=0.8, zorder=2)  # fmt: skip
    if line.own is not None:
        ax.plot([line.own[0]], [y + 0.21], linestyle="", marker="o", markersize=MARKER_SIZE["o"] + 1, color=own,
                markeredgecolor=INK, markeredgewidth=1.3, zorder=4)  # fmt: skip


def _legend(figure: Figure, *, many: bool, points: bool) -> None:
    """Add the legend: this machine, other machines, a cloud of machines, and published points."""
    from matplotlib.lines import Line2D

    def key(label: str, marker: str, **more: Any) -> Line2D:
        kept: dict[str, Any] = {"linestyle": "", "color": MUTED, **more}
        return Line2D([], [], marker=marker, label=label, **kept)

    handles = [key("this machine", "o", markersize=6, markeredgecolor=INK, markeredgewidth=1.3)]
    handles += [key("another machine", "o", markersize=4.5)]
    handles += [key("median and range", "|", markersize=8, linestyle="-")] if many else []
    handles += [key("published elsewhere", _PUBLISHED_MARKER, markersize=8, markerfacecolor=PAPER)] if points else []
    figure.legend(handles=handles, loc="outside upper left", ncols=2, handletextpad=0.3)
