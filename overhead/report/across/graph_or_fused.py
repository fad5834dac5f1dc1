"""The picture of the front page: CUDA graph or one fused kernel, by workload, with ties and losses
beside wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.chains import groups
from overhead.reading.graph_or_fused import SAME_WITHIN, ChainWay, WorkRow, rows
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    GRID_COLOUR,
    INK,
    MUTED,
    PAPER,
    SMALL,
    WIDE_INCHES,
    new_figure,
    style,
)
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Value
from overhead.words.format import TIMES, factor_spread, number, positive_spread
from overhead.words.graph_or_fused import lead, remarks, row_title, time_text, way_title
from overhead.words.report.graph_or_fused import (
    NO_FUSED,
    NOTHING_BESIDE,
    WAY_COLUMNS,
    WAYS_CAPTION,
    axis_label,
    caption_title,
    direction,
    nothing_beside,
    picture_title,
    source,
    table_alone,
    time_cell,
    verdict_at_end,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE_INCHES = 0.17
_COLOURS: dict[str, str] = {"cheaper": "#00785a", "dearer": "#b84a00"}


@register_across("graph-or-fused", "CUDA graph or one fused kernel?", 6, page="front")
def graph_or_fused(machines: Machines) -> Iterator[Part]:
    """Sentences and the picture; a line with the reason where a GPU has no such chains; nothing
    without a GPU.
    """
    found = rows(machines.own, machines.others)
    if not found:
        has_gpu = any(not gpu.software for gpu in machines.own.fingerprint.machine.gpus)
        if has_gpu and any(group.arms or group.failed for group in machines.own.once(groups)):
            yield Text([NO_FUSED])
        return
    run, with_graph = machines.own.fingerprint, any(row.graph for row in found)
    drawn = [
        row
        for row in found
        if row.of_kind("fused-cuda", "fused-wgsl") and (row.graph or not with_graph)
    ]
    said = [*lead(found), *remarks(found)] or [NOTHING_BESIDE]
    yield Text(said)
    if not drawn:
        yield _table(found, folded=False)
        return
    title = picture_title(run.machine, with_graph=with_graph)
    below = axis_label(source(run.created, drawn), with_graph=with_graph)
    yield Drawing(
        "graph-or-fused",
        caption_title(run.machine, with_graph=with_graph),
        said[0],
        WAYS_CAPTION,
        partial(_draw, drawn, title, below),
        table=_table(found),
    )
    yield Text([table_alone(row) for row in found if row not in drawn], quiet=True)


def _table(found: Sequence[WorkRow], *, folded: bool = True) -> Table:
    cells: list[list[str | Cell]] = []
    for row in found:
        for way in row.ways:
            times = "= 1" if row.base(way) is way else factor_spread(row.relative(way))
            step = number(way.step / 1e3) if way.step else ""
            least = positive_spread(at) if (at := row.cheaper_from(way)) else ""
            cells.append(
                [
                    row_title(row),
                    Cell(way_title(way), way.stack),
                    time_cell(way),
                    times,
                    step,
                    least,
                ]
            )
    return Table("The same numbers", WAY_COLUMNS, cells, numeric=range(2, 6), folded=folded)


@style()
def _draw(found: Sequence[WorkRow], title: str, below: str) -> Figure:
    """A group of lines for each row. A line has a mark at the time divided by the base's, the time
    and a verdict.

    ``below``: what the axis measures.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    lines = sum(1.35 + len(row.ways) for row in found)
    figure, (ax,) = new_figure([_LINE_INCHES * lines], width=WIDE_INCHES, around=0.9)
    ax.set_xscale("log", base=2)
    for at, side, verdict in ((0.9, "right", "cheaper"), (1.1, "left", "dearer")):
        ax.text(
            at,
            -0.95,
            direction(verdict),
            ha=side,
            color=_COLOURS[verdict],
            weight="bold",
            fontsize=8.5,
        )
    y, ticks, labels, values = 0.0, [], [], [1.0]
    for row in found:
        ends, first = ax.get_yaxis_transform(), y
        ax.text(
            0.0,
            y,
            plain(row_title(row), 110),
            transform=ends,
            va="center",
            fontsize=8.5,
            weight="bold",
        )
        ax.axhline(y - 0.62, color=GRID_COLOUR, linewidth=0.8)
        for way in row.ways:
            y += 1
            ticks.append(y)
            labels.append(plain(way_title(way), 48))
            if (times := row.relative(way)) is not None and way.cost is not None:
                values.append(times.value)
                _line(ax, y, row, way, times, way.cost)
            else:
                ax.text(
                    0.99,
                    y,
                    nothing_beside(way),
                    transform=ends,
                    va="center",
                    ha="right",
                    fontsize=SMALL,
                    color=MUTED,
                )
        ax.plot([1, 1], [first + 0.5, y + 0.5], color=INK, linewidth=1.0, zorder=1)
        ax.fill_betweenx(
            [first + 0.5, y + 0.5],
            1 / (1 + SAME_WITHIN),
            1 + SAME_WITHIN,
            color=GRID_COLOUR,
            linewidth=0,
        )
        y += 1.35
    ax.set_yticks(ticks, labels)
    ax.set_xlim(min(values) / 1.6, max(values) * 1.6)
    ax.set_ylim(y - 0.7, -1.2)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=9))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda v, _: f"{v:,g}{TIMES}" if v >= 1 else f"1/{1 / v:,g}")
    )
    ax.set_xlabel(below)
    figure.suptitle(plain(title, 120), x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def _line(ax: Axes, y: float, row: WorkRow, way: ChainWay, times: Value, cost: Value) -> None:
    """The mark of a way with its whisker; its time and verdict at the end. Fused kernels stand
    out.
    """
    is_base, strong = row.base(way) is way, way.is_fused
    own = INK if is_base else _COLOURS.get(row.verdict(way) or "", MUTED)
    if not is_base:
        ax.plot(
            [1, times.value], [y, y], color=own, linewidth=5 if strong else 2, alpha=0.25, zorder=1
        )
    if times.bounded:
        ax.plot(
            [max(times.floor, times.value / 1e3), times.ceiling],
            [y, y],
            color=own,
            linewidth=1.4,
            zorder=2,
        )
    marker, size = ("|", 12.0) if is_base else ("o", 6.5 if strong else 5.0)
    inside = own if cost.status == "ok" else PAPER
    ax.plot([times.value], [y], marker, markersize=size, color=own, markerfacecolor=inside,
            markeredgewidth=1.3, zorder=3)  # fmt: skip
    ends: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8}
    ax.text(1.10, y, time_text(way), ha="right", **ends)
    ax.text(
        1.115,
        y,
        verdict_at_end(row, way, times),
        color=own,
        weight="bold" if strong else "normal",
        **ends,
    )
