"""The picture of the front page: CUDA graph or one fused kernel, by workload, with ties and losses
beside wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
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
from overhead.words.format import MICRO, TIMES, factor_spread, number, positive_spread
from overhead.words.graph_or_fused import lead, remarks, row_title, time_text, variant_title
from overhead.words.report.graph_or_fused import (
    NO_FUSED,
    NOTHING_BESIDE,
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
_GROUP_LINES = 1.35
"""Lines that the name of a work takes, with the gap above."""
_COLOURS: dict[str, str] = {"cheaper": "#00785a", "dearer": "#b84a00"}


@register_across("graph-or-fused", "CUDA graph or one fused kernel?", 6, page="front", gpu=True)
def graph_or_fused(machines: Machines) -> Iterator[Part]:
    """A section of the front page: whether a chain of many steps runs faster as a CUDA graph or as
    one fused kernel. It has sentences, and a picture with a table. A machine whose GPU ran chains
    without a fused kernel gets a sentence; one without a GPU gets nothing.
    """
    # A row is a work, such as a workload in one size, with the time of each way to run it.
    found = rows(machines.own, machines.others)
    if not found:
        if _has_gpu_chains(machines):
            yield Text([NO_FUSED])
        return
    sentences = [*lead(found), *remarks(found)] or [NOTHING_BESIDE]
    yield Text(sentences)

    run = machines.own.fingerprint
    # ``graph``: the way to run a work as a CUDA graph; None without its time.
    with_graph = any(row.graph for row in found)
    # The others are in the table, and have a sentence below the picture.
    drawn = [row for row in found if _can_be_drawn(row, with_graph=with_graph)]
    if not drawn:
        yield _table(found, folded=False)
        return
    title = picture_title(run.machine, with_graph=with_graph)
    below = axis_label(source(run.created, drawn), with_graph=with_graph)
    yield Drawing(
        name="graph-or-fused",
        title=caption_title(run.machine, with_graph=with_graph),
        alt=sentences[0],
        caption=WAYS_CAPTION,
        draw=partial(_draw, drawn, title, below),
        table=_table(found),
    )
    yield Text([table_alone(row) for row in found if row not in drawn], quiet=True)


def _has_gpu_chains(machines: Machines) -> bool:
    """Whether the machine has a GPU, and its run tried chains of steps."""
    own = machines.own
    if not own.has_gpu:
        return False
    tried = [group for group in own.once(groups) if group.arms or group.failed]
    return bool(tried)


def _can_be_drawn(row: WorkRow, *, with_graph: bool) -> bool:
    """Whether the picture shows the work: it has a fused kernel, and a graph if any work has one
    (``with_graph``), because the axis is the time relative to one kind of base.
    """
    if with_graph and not row.graph:
        return False
    return bool(row.of_kind("fused-cuda", "fused-wgsl"))


@dataclass(frozen=True)
class _VariantRow:
    """A row of the table: a variant of a work, and its numbers as text.

    ``relative``: its time over that of the base, such as the CUDA graph; ``= 1`` of the base
    itself. ``faster_from``: from how many steps on it is faster than the base.
    """

    work: str
    variant: Cell
    time: str
    relative: str
    step: str
    faster_from: str


def _table(found: Sequence[WorkRow], *, folded: bool = True) -> Table:
    """The numbers of the picture, and of what is not in it."""
    variants = []
    for row in found:
        variants += [_variant_row(row, variant) for variant in row.ways]
    return table_of("The same numbers", _COLUMNS, variants, folded=folded)


def _variant_row(row: WorkRow, variant: ChainWay) -> _VariantRow:
    """A variant of a work with its numbers as text: its time, and how it compares with the base,
    the variant (such as the CUDA graph) that the times of this work are divided by.
    """
    is_base = row.base(variant) is variant
    relative = "= 1" if is_base else factor_spread(row.relative(variant))
    # ``step``: the time of one more step; None if the variant has no line. ``cheaper_from``: from
    # how many steps on it beats the base.
    step_ns = variant.step
    step = number(step_ns / 1e3) if step_ns is not None else ""
    steps = row.cheaper_from(variant)
    faster_from = positive_spread(steps) if steps is not None else ""
    return _VariantRow(
        work=row_title(row),
        variant=Cell(variant_title(variant), variant.stack),
        time=time_cell(variant),
        relative=relative,
        step=step,
        faster_from=faster_from,
    )


_COLUMNS: list[Column[_VariantRow]] = [
    Column("work", attrgetter("work")),
    Column("variant", attrgetter("variant")),
    Column(MICRO, attrgetter("time"), is_number=True),
    Column("relative", attrgetter("relative"), is_number=True),
    Column(f"each step, {MICRO}", attrgetter("step"), is_number=True),
    Column("faster from n steps", attrgetter("faster_from"), is_number=True),
]


@style()
def _draw(found: Sequence[WorkRow], title: str, below: str) -> Figure:
    """Draw the picture: a group of lines for each work, and a line for each variant of it. A line
    has a mark at the variant's time divided by that of the base (the CUDA graph where there is
    one), and at its end the time and the verdict.

    ``below``: the words below the axis, which say what it measures.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    # Height of the figure: a line for each variant, and for the name of each work.
    # ``_GROUP_LINES``: the lines that the name of a work takes.
    lines = sum(_GROUP_LINES + len(row.ways) for row in found)
    figure, (ax,) = new_figure([_LINE_INCHES * lines], width=WIDE_INCHES, around=0.9)
    ax.set_xscale("log", base=2)
    _draw_directions(ax)
    y = 0.0
    labels: dict[float, str] = {}
    relative_times = [1.0]  # of the base, which each group has
    for row in found:
        _draw_title(ax, row, y)
        for i, variant in enumerate(row.ways, 1):
            labels[y + i] = plain(variant_title(variant), 48)
            times = row.relative(variant)
            if times is not None and variant.cost is not None:
                relative_times.append(times.value)
                _line(ax, y + i, row, variant, times, variant.cost)
            else:
                _draw_reason(ax, variant, y + i)
        # The base, at 1, over all lines of the group.
        last = y + len(row.ways)
        _draw_base(ax, y + 0.5, last + 0.5)
        y = last + _GROUP_LINES

    ax.set_yticks(list(labels), list(labels.values()))
    # On a logarithmic axis this is the same room at both ends.
    ax.set_xlim(min(relative_times) / 1.6, max(relative_times) * 1.6)
    ax.set_ylim(y - 0.7, -1.2)  # downwards, with room at the top for the directions
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.xaxis.set_major_locator(LogLocator(base=2, subs=(1.0,), numticks=9))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(_times_tick))
    ax.set_xlabel(below)
    figure.suptitle(plain(title, 120), x=0.01, ha="left", fontsize=11, weight="bold")
    return figure


def _times_tick(times: float, _position: int | None = None) -> str:
    """The label of a tick: ``2×``, ``1/4``; matplotlib gives its position too."""
    return f"{times:,g}{TIMES}" if times >= 1 else f"1/{1 / times:,g}"


def _draw_directions(ax: Axes) -> None:
    """At the top, to which side faster and slower variants lie."""
    look: dict[str, Any] = {"weight": "bold", "fontsize": 8.5}
    ax.text(0.9, -0.95, direction("cheaper"), ha="right", color=_COLOURS["cheaper"], **look)
    ax.text(1.1, -0.95, direction("dearer"), ha="left", color=_COLOURS["dearer"], **look)


def _draw_title(ax: Axes, row: WorkRow, y: float) -> None:
    """The name of a work, with a line above."""
    across = ax.get_yaxis_transform()
    name = plain(row_title(row), 110)
    ax.text(0.0, y, name, transform=across, va="center", fontsize=8.5, weight="bold")
    ax.axhline(y - 0.62, color=GRID_COLOUR, linewidth=0.8)


def _draw_reason(ax: Axes, variant: ChainWay, y: float) -> None:
    """Why a variant has no place on the axis."""
    across = ax.get_yaxis_transform()
    reason = nothing_beside(variant)
    look: dict[str, Any] = {"va": "center", "ha": "right", "fontsize": SMALL, "color": MUTED}
    ax.text(0.99, y, reason, transform=across, **look)


def _draw_base(ax: Axes, top: float, bottom: float) -> None:
    """A vertical line at the base of a work, and grey where a time counts as equal to it."""
    ends = [top, bottom]
    ax.plot([1, 1], ends, color=INK, linewidth=1.0, zorder=1)
    # ``SAME_WITHIN``: up to this share of difference two times count as equal.
    low, high = 1 / (1 + SAME_WITHIN), 1 + SAME_WITHIN
    ax.fill_betweenx(ends, low, high, color=GRID_COLOUR, linewidth=0)


def _line(ax: Axes, y: float, row: WorkRow, variant: ChainWay, times: Value, cost: Value) -> None:
    """Draw the line of a variant: its mark at ``times`` with the interval, and its time and verdict
    at the end. Fused kernels, the answer to the section's question, have a thicker bar.

    ``times``: the variant's time over that of the base; ``cost``: its time in ns.
    """
    is_base = row.base(variant) is variant
    is_fused = variant.is_fused
    # Green for a faster variant, orange for a slower one, grey for any other verdict.
    colour = INK if is_base else _COLOURS.get(row.verdict(variant) or "", MUTED)
    # A bar from the base to the mark; the base itself has a tick in place of a mark.
    if not is_base:
        bar: dict[str, Any] = {"linewidth": 5 if is_fused else 2, "alpha": 0.25, "zorder": 1}
        ax.plot([1, times.value], [y, y], color=colour, **bar)
    # ``bounded``: both ends of the interval are known.
    if times.bounded:
        # A low end at zero or below has no place on a logarithmic axis.
        ends = [max(times.floor, times.value / 1e3), times.ceiling]
        ax.plot(ends, [y, y], color=colour, linewidth=1.4, zorder=2)
    marker = "|" if is_base else "o"
    size = 6.5 if is_fused else 5.0
    ax.plot(
        [times.value],
        [y],
        marker,
        markersize=12.0 if is_base else size,
        color=colour,
        markerfacecolor=colour if cost.status == "ok" else PAPER,
        markeredgewidth=1.3,
        zorder=3,
    )
    # Behind the axis: the time, and then the verdict.
    # Places at the side are parts of the axis' width: 0 at the left, 1 at the right.
    at_end: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "va": "center", "fontsize": 8}
    ax.text(1.10, y, time_text(variant), ha="right", **at_end)
    verdict = verdict_at_end(row, variant, times)
    weight = "bold" if is_fused else "normal"
    ax.text(1.115, y, verdict, color=colour, weight=weight, **at_end)
