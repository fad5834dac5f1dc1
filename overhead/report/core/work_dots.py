"""A row for each workload in one size, with a mark for each kind of variant at its time of a step:
in a layout for a page, and in one for a phone.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overhead.reading.chain_ways import WayGroup
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    GRID_COLOUR,
    INK,
    MUTED,
    NARROW_INCHES,
    PAPER,
    SMALL,
    WIDE_INCHES,
    plain_log_ticks,
    style,
)
from overhead.results import Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOOKS: dict[WayGroup, tuple[str, str]] = {
    "fused-cuda": ("o", "#00785a"),
    "fused-wgsl": ("s", "#0067a5"),
    "graph-driver": ("|", INK),
    "graph-compiled": ("D", "#7d1f7d"),
    "graph-captured": ("d", "#a63d9c"),
    "loop": ("^", "#7a5c00"),
    "launches": (">", "#b84a00"),
    "wgsl": ("<", "#2b6f8f"),
    "per-step": ("v", "#8a5a44"),
    "eager": ("X", "#b5304f"),
}
"""By kind of variant its marker and colour: fused kernels are green and blue, graphs black and
purple.
"""
_ROW_INCHES, _NARROW_ROW_INCHES = 0.21, 0.34
_LEGEND_LINE_INCHES = 0.19
_NARROW_LETTERS = 51
"""Letters of a label across the picture for a phone. Chosen by eye."""


@dataclass(frozen=True)
class StepTime:
    """The time of a step of one kind of variant, in µs."""

    kind: WayGroup
    time: Value


@dataclass(frozen=True)
class WorkDots:
    """A row: the workload, the times, the fastest first, and at its end which is the fastest."""

    label: str
    times: Sequence[StepTime]
    end: str


@dataclass(frozen=True)
class DotPicture:
    """What the picture shows. ``axis``: what its axis measures; ``kinds``: their names in the
    legend.
    """

    rows: Sequence[WorkDots]
    axis: str
    end_heading: str
    kinds: Mapping[WayGroup, str]


def draw_wide_dots(picture: DotPicture) -> Figure:
    """The picture, as wide as a page."""
    return _draw(picture, is_narrow=False)


def draw_narrow_dots(picture: DotPicture) -> Figure:
    """The picture for a phone: the label of a row stands above its marks."""
    return _draw(picture, is_narrow=True)


@style()
def _draw(picture: DotPicture, *, is_narrow: bool) -> Figure:
    from matplotlib.figure import Figure

    width = NARROW_INCHES if is_narrow else WIDE_INCHES
    left, right = (0.2, 2.8) if is_narrow else (3.2, 7.45)
    row_inches = _NARROW_ROW_INCHES if is_narrow else _ROW_INCHES
    columns = 2 if is_narrow else 5
    kinds = _drawn_kinds(picture)
    legend_lines = -(-len(kinds) // columns)
    above = _LEGEND_LINE_INCHES * legend_lines + (0.05 if is_narrow else 0.3)
    axis = textwrap.fill(picture.axis, 50 if is_narrow else 150)
    below = 0.3 + 0.15 * (axis.count("\n") + 1)
    rows_inches = row_inches * len(picture.rows)
    height = above + rows_inches + below

    figure = Figure(figsize=(width, height))
    ax = figure.add_axes(
        (left / width, below / height, (right - left) / width, rows_inches / height)
    )
    ax.set_xscale("log")
    ax.set_ylim(len(picture.rows) - 0.5, -0.5)
    for place, row in enumerate(picture.rows):
        # Where the label stands above the marks, these are in the lower half of the row.
        y = place + 0.22 if is_narrow else place
        _draw_row(ax, row, y)
        label_look: dict[str, Any] = {"fontsize": SMALL, "va": "center"}
        across = ax.get_yaxis_transform()
        if is_narrow:
            label = row.label
            if len(label) > _NARROW_LETTERS:
                # The number says enough, as that of the rows above.
                label = plain(label.removesuffix(" elements"), _NARROW_LETTERS)
            ax.text(-0.06, place - 0.25, label, transform=across, **label_look)
        else:
            label = plain(row.label, 58)
            ax.text(-0.02, place, label, transform=across, ha="right", **label_look)
            ax.text(1.03, place, plain(row.end, 60), transform=across, **label_look)
    if not is_narrow:
        heading: dict[str, Any] = {"fontsize": SMALL, "weight": "bold", "va": "bottom"}
        ax.text(1.03, -0.6, picture.end_heading, transform=ax.get_yaxis_transform(), **heading)
    _finish_axis(ax, axis)
    if is_narrow:
        _grid_below_labels(ax, len(picture.rows))
    _add_legend(figure, picture, kinds, columns)
    return figure


def _drawn_kinds(picture: DotPicture) -> list[WayGroup]:
    """The kinds that have a mark, in the order of the legend."""
    drawn = set()
    for row in picture.rows:
        drawn |= {step.kind for step in row.times}
    return [kind for kind in _LOOKS if kind in drawn]


def _draw_row(ax: Axes, row: WorkDots, y: float) -> None:
    """A thin line from the fastest to the slowest, and the marks, the fastest on top."""
    values = [time.time.value for time in row.times]
    ax.plot([min(values), max(values)], [y, y], color=GRID_COLOUR, linewidth=1.2, zorder=1)
    for place, step in enumerate(reversed(row.times)):
        marker, colour = _LOOKS[step.kind]
        time = step.time
        if time.bounded and time.floor > 0 and time.status != "ok":
            # Only a noisy interval is longer than its mark.
            ends = [time.floor, time.ceiling]
            ax.plot(ends, [y, y], color=colour, linewidth=1.2, zorder=2)
        ax.plot(
            [time.value],
            [y],
            marker,
            markersize=9.0 if marker == "|" else 5.0,
            color=colour,
            markerfacecolor=colour if time.status == "ok" else PAPER,
            markeredgewidth=2.0 if marker == "|" else 1.1,
            zorder=3 + place,
        )


def _finish_axis(ax: Axes, axis: str) -> None:
    plain_log_ticks(ax.xaxis)
    ax.set_yticks([])
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(axis, color=MUTED, loc="left")


def _grid_below_labels(ax: Axes, rows: int) -> None:
    """The lines of the grid where marks are, so that none runs through a label."""
    ax.grid(False)
    low, high = ax.get_xlim()
    ax.set_xlim(low, high)
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    for place in range(rows):
        line: dict[str, Any] = {"color": GRID_COLOUR, "linewidth": 0.6, "zorder": 0}
        ax.vlines(ticks, place, place + 0.45, **line)


def _add_legend(
    figure: Figure, picture: DotPicture, kinds: Sequence[WayGroup], columns: int
) -> None:
    """The kinds above the rows, in the order in which they read: fused kernels first."""
    from matplotlib.lines import Line2D

    handles = []
    for kind in kinds:
        marker, colour = _LOOKS[kind]
        handles.append(
            Line2D(
                [],
                [],
                marker=marker,
                color=colour,
                label=picture.kinds[kind],
                linestyle="",
                markersize=8 if marker == "|" else 5,
                markeredgewidth=2.0 if marker == "|" else 1.1,
            )
        )
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        fontsize=SMALL,
        handletextpad=0.2,
        columnspacing=1.0,
        labelspacing=0.35,
        borderaxespad=0.1,
    )
