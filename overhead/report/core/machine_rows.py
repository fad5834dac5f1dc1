"""Rows of one quantity over machines, by vendor, API and implementation."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.format import number, plain, spread
from overhead.report.core.dots import DotRow, Mark, dot_rows, shared_axis
from overhead.report.core.draw import INK, MARKER_SIZE, MUTED, PAPER, ROW_INCHES, canvas
from overhead.report.core.machines import Machines
from overhead.report.core.palette import colour
from overhead.report.core.run_summary import Way
from overhead.results import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_DRAWN_ALONE = 4
"""Machines of a row that are drawn one by one with their intervals; more are drawn as a cloud."""
_MACHINE_MARKERS = ("o", "D", "s", "^")
"""One for each machine, where there are so few: the legend names them."""


@dataclasses.dataclass(frozen=True)
class MachineRow:
    """The values of one stack and API with their machine ids, in the unit of the axis.

    ``own``: the value of the machine shown in full.
    """

    label: str
    vendor: str
    way: Way
    values: Sequence[tuple[str, Value]]
    own: Value | None


def lines(machines: Machines, quantity: str, value: Callable[[Way], Value | None]) -> list[MachineRow]:
    """A row for each stack and API with this quantity, grouped by vendor, the cheapest of a vendor first."""
    found: dict[tuple[str, str, str, str], list[tuple[str, Way, Value]]] = {}
    for summary in machines.summaries:
        for way in summary.ways:
            if way.quantity == quantity and (own := value(way)) is not None and own.value > 0:
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
    return statistics.median(v.value for _, v in line.values)


def said(line: MachineRow) -> list[str]:
    """Table cells: the number of machines, the value of this machine, and the median with lowest and highest."""
    values = [v.value for _, v in line.values]
    over = spread(Value(middle(line), min(values), max(values))) if len(values) > 1 else ""
    own = spread(line.own) if line.own is not None else ""
    return [str(len(values)), own, over]


def finding(panels: Mapping[str, list[MachineRow]]) -> str:
    """What the panels show, in words: the least and the greatest median of each, with its row."""
    said = []
    for title, rows in panels.items():
        hardware = [row for row in rows if not row.way.software] or rows
        ends = list(dict.fromkeys((min(hardware, key=middle).label, max(hardware, key=middle).label)))
        values = {row.label: number(middle(row)) for row in hardware}
        said.append(f"{title}, {' to '.join(f'{values[label]} by {label}' for label in ends)}")
    return f"{'; '.join(said)}."


def panels_figure(machines: Machines, panels: Mapping[str, list[MachineRow]]) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per title, all on one log axis, and a legend; and its axes in the order of the panels."""
    figure, grid = canvas([ROW_INCHES * len(found) for found in panels.values()])
    axes = [ax for (ax,) in grid]
    markers = _markers(machines)
    rows = [[_row(one, markers) for one in found] for found in panels.values()]
    for ax, (title, found), own in zip(axes, panels.items(), rows, strict=True):
        dot_rows(ax, own)
        for y, one in enumerate(found):
            if len(one.values) > _MOST_DRAWN_ALONE:
                _cloud(ax, y, one)
        ax.set_title(title)
    shared_axis(axes, rows)
    crowd = any(len(one.values) > _MOST_DRAWN_ALONE for found in panels.values() for one in found)
    _legend(figure, machines, markers, many=crowd)
    return figure, axes


def _markers(machines: Machines) -> dict[str, str]:
    """A marker for each machine by its id, the one shown in full first; empty where there are too many for that."""
    ids = [summary.machine.id for summary in machines.summaries]
    return dict(zip(ids, _MACHINE_MARKERS, strict=False)) if len(ids) <= len(_MACHINE_MARKERS) else {}


def _row(line: MachineRow, markers: Mapping[str, str]) -> DotRow:
    """The marks of a row: a dot for each of a few machines, with a ring for this one; for many, the median and span."""
    own = colour(line.way.stack)
    if len(line.values) > _MOST_DRAWN_ALONE:
        values = sorted(v.value for _, v in line.values)
        return DotRow(line.label, [Mark(Value(middle(line), values[0], values[-1]), own, "|", of="median and range")])
    marks = [
        Mark(
            v,
            own,
            markers.get(machine, "o"),
            ring=v is line.own,
            of="this machine" if v is line.own else machine,
        )
        for machine, v in sorted(line.values, key=lambda one: one[1].value)
    ]
    return DotRow(line.label, marks)


def _cloud(ax: Axes, y: int, line: MachineRow) -> None:
    ordered = [v for _, v in sorted(line.values, key=lambda one: one[1].value)]
    heights = [y + 0.08 + 0.26 * ((i * 0.618034) % 1.0) for i in range(len(ordered))]
    own = colour(line.way.stack)
    alpha = max(0.25, min(0.9, 20 / len(ordered)))
    for hollow in (False, True):
        kept = [(v.value, h) for v, h in zip(ordered, heights, strict=True) if (v.status != "ok") is hollow]
        if kept:
            ax.plot(
                *zip(*kept, strict=True),
                linestyle="",
                marker="o",
                markersize=3.4,
                alpha=alpha,
                color=own,
                markerfacecolor=PAPER if hollow else own,
                markeredgewidth=0.8,
                zorder=2,
            )
    if line.own is not None:
        ax.plot(
            [line.own.value],
            [y + 0.21],
            linestyle="",
            marker="o",
            markersize=MARKER_SIZE["o"] + 1,
            color=own,
            markeredgecolor=INK,
            markeredgewidth=1.3,
            zorder=4,
        )


def _legend(figure: Figure, machines: Machines, markers: Mapping[str, str], *, many: bool) -> None:
    """Add the legend: the machines by name where they are few, else this machine and a cloud of the others."""
    from matplotlib.lines import Line2D

    def key(label: str, marker: str, **more: Any) -> Line2D:
        kept: dict[str, Any] = {"linestyle": "", "color": MUTED, **more}
        return Line2D([], [], marker=marker, label=plain(label, 60), **kept)

    ring = {"markersize": 6, "markeredgecolor": INK, "markeredgewidth": 1.3}
    handles = []
    for summary in machines.summaries if markers else [machines.own]:
        own = summary is machines.own
        name = f"{summary.name}{' (this machine)' if own else ''}"
        handles.append(key(name, markers.get(summary.machine.id, "o"), **(ring if own else {"markersize": 4.5})))
    if not markers:
        handles.append(key("another machine", "o", markersize=4.5))
    handles += [key("median and range", "|", markersize=8, linestyle="-")] if many else []
    figure.legend(handles=handles, loc="outside upper left", ncols=1 if markers else 2, handletextpad=0.3)
