"""Draw the headline figure: what one dispatch costs through each stack, by who makes the calls, with printed values."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import KIND_TITLES, DispatchCosts, DispatchRow, Kind
from overhead.reading.format import MICRO, between, number, plain, within
from overhead.report.core.draw import GRID_COLOUR, INK, MUTED, PAPER, new_figure, plain_log_ticks, style
from overhead.report.core.palette import CALL_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS: dict[Kind, str] = {"python": "o", "browser": "^", "compiled": "D", "batched": "|"}
_PLACES: dict[Kind, dict[str, Any]] = {
    "python": {"xytext": (0, 6), "ha": "center", "va": "bottom"},
    "browser": {"xytext": (0, 6), "ha": "center", "va": "bottom"},
    "compiled": {"xytext": (0, -6), "ha": "center", "va": "top"},
    "batched": {"xytext": (-6, 0), "ha": "right", "va": "center"},
}
"""Where the value of a mark stands: each kind on a side of its own, so that no two overlap."""
_MET_TITLE = "met: range over fresh processes, not pinned; the caller's colour"
_MET_ALPHA = 0.25
_ROW_INCHES = 0.47
_NOTE_ROWS = 0.38
"""Rows that a line of notes takes."""
_NOTE_LETTERS, _TITLE_LETTERS, _ABOUT_LETTERS = 72, 60, 112
_WIDTH_INCHES = 7.0
_FONT, _SMALL = 9.5, 8


@style()
def headline_figure(costs: DispatchCosts) -> Figure:
    """The headline figure: a row for each stack, a dot with its printed value for each caller, notes below the row."""
    notes = [textwrap.wrap("; ".join(row.notes), _NOTE_LETTERS) for row in costs.rows]
    places, height = [], 0.0
    for lines in notes:
        places.append(height)
        height += 1 + _NOTE_ROWS * len(lines) + (0.2 if lines else 0.0)
    figure, (ax,) = new_figure([_ROW_INCHES * height], around=1.1, width=_WIDTH_INCHES)
    ax.set_xscale("log")
    for row, y, lines in zip(costs.rows, places, notes, strict=True):
        _draw_row(ax, row, y, lines)
    values = [v for row in costs.rows for v in (*row.marks.values(), *(row.met or ()))]
    low, high = (min(values), max(*values, 10 * min(values))) if values else (1.0, 10.0)
    ax.set_xlim(low / (high / low) ** 0.16, high * (high / low) ** 0.2)
    ax.set_ylim(height - 0.4, -0.6)
    ax.set_yticks(places, [row.label for row in costs.rows], fontsize=_FONT)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    plain_log_ticks(ax.xaxis, close=1e3)
    run = costs.view.fingerprint
    about = (
        f"The cost of one more dispatch in a chain, waiting not included. overhead, {run.profile} run of "
        f"{run.created[:10]}, {plain(run.machine.cpu, 40)}."
    )
    figure.supxlabel(textwrap.fill(about, _ABOUT_LETTERS), x=0.01, ha="left", fontsize=_SMALL, color=MUTED)
    _legend(figure, costs)
    return figure


def _legend(figure: Figure, costs: DispatchCosts) -> None:
    """The kinds of marks, with the title of the figure above them."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    kinds = [kind for kind in KIND_TITLES if any(kind in row.marks for row in costs.rows)]
    handles: list[Any] = [
        Line2D([], [], linestyle="", marker=_MARKERS[kind], markersize=7, markeredgewidth=2, color=CALL_COLOURS[kind],
               label=KIND_TITLES[kind])
        for kind in kinds
    ]  # fmt: skip
    if any(row.met for row in costs.rows):
        handles.append(Patch(facecolor=MUTED, alpha=_MET_ALPHA, label=_MET_TITLE))
    title = textwrap.fill(f"{costs.title}, {MICRO} per dispatch", _TITLE_LETTERS)
    font = {"size": _FONT + 2.5, "weight": "bold"}
    figure.legend(handles=handles, loc="outside upper left", ncols=2, title=title, title_fontproperties=font,
                  alignment="left")  # fmt: skip


def _draw_row(ax: Axes, row: DispatchRow, y: float, notes: list[str]) -> None:
    if len(row.marks) > 1:
        ax.plot([min(row.marks.values()), max(row.marks.values())], [y, y], color=GRID_COLOUR, linewidth=3, zorder=1)
    for kind, value in row.marks.items():
        own, batched = CALL_COLOURS[kind], kind == "batched"
        ax.plot([value], [y], _MARKERS[kind], markersize=14 if batched else 8, color=own, zorder=3,
                markeredgecolor=own if batched else PAPER, markeredgewidth=3 if batched else 0.8)  # fmt: skip
        ax.annotate(
            number(within(value, 0.01)),
            (value, y),
            textcoords="offset points",
            fontsize=_FONT,
            color=own,
            **_PLACES[kind],
        )
    if row.met is not None:
        ax.fill_betweenx([y - 0.22, y + 0.22], *row.met, color=CALL_COLOURS[next(iter(row.records))], alpha=_MET_ALPHA,
                         linewidth=0)  # fmt: skip
        end = max(row.met[1], *row.marks.values(), 0)
        ax.annotate(f"met {between(*row.met)}", (end, y), (7, 0), textcoords="offset points", va="center",
                    fontsize=_FONT - 1, color=MUTED)  # fmt: skip
    for i, line in enumerate(notes):
        ax.text(0.01, y + 0.64 + _NOTE_ROWS * i, line, transform=ax.get_yaxis_transform(), va="center", fontsize=_SMALL,
                color=INK if not row.marks and row.met is None else MUTED)  # fmt: skip
