"""Draw the headline figure: what one dispatch costs through each stack, by who makes the calls, with printed values."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.dispatch_costs import KIND_TITLES, DispatchCosts, DispatchRow, Kind
from overhead.reading.format import MICRO, between, number, plain, within
from overhead.report.core.draw import GRID_COLOUR, INK, MUTED, PAPER
from overhead.report.core.palette import CALL_COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

_MARKERS: dict[Kind, str] = {"python": "o", "browser": "^", "compiled": "D", "batched": "|"}
_SIZES: dict[Kind, float] = {"python": 9, "browser": 9, "compiled": 7.5, "batched": 15}
_MET_TITLE = "met: range over fresh processes, not pinned; the caller's colour"
_CLOSE_TICKS = 1e3
"""Up to this ratio of the ends, the axis has ticks at 2 and 5 too. On a longer one their labels would overlap."""
_MET_ALPHA = 0.25
_LETTER_INCHES = 0.0088
"""Width of a letter of a label by points of its font."""
_PIXEL_GAP = 4
"""Least distance between two printed values, pixels at 100 dpi."""


_WIDTH, _LABELS, _ROW, _NOTE = 7.0, 1.95, 0.37, 0.17
"""Inches of the figure, of the labels at least, of a row and of a line of its notes."""
_FONT, _VALUE, _SMALL, _ABOUT = 10.5, 10, 9, 7.5
"""Points of labels, of printed values, of notes and of the line at the foot."""
_NOTE_LETTERS, _ABOUT_LETTERS, _LEGEND_COLUMNS = 66, 200, 2


def headline_figure(costs: DispatchCosts) -> Figure:
    """The figure, for a page and for link previews."""
    from matplotlib.figure import Figure

    notes = [textwrap.wrap("; ".join(row.notes), _NOTE_LETTERS) for row in costs.rows]
    tops, height = [], 0.0
    for lines in notes:
        tops.append(height)
        height += _ROW + _NOTE * len(lines)
    kinds = [kind for kind in KIND_TITLES if any(kind in row.marks for row in costs.rows)]
    handles = _handles(kinds, met=any(row.met for row in costs.rows))
    legend = 0.2 * -(-len(handles) // _LEGEND_COLUMNS) + 0.1
    head = legend + 0.36
    run = costs.view.fingerprint
    about = textwrap.wrap(
        f"The cost of one more dispatch in a chain, waiting not included. overhead, {run.profile} run of "
        f"{run.created[:10]}, {plain(run.machine.cpu, 40)}.",
        _ABOUT_LETTERS,
    )
    foot = 0.48 + 0.14 * len(about)
    figure = Figure(figsize=(_WIDTH, head + height + foot))
    total = head + height + foot
    longest = max((len(row.label) for row in costs.rows), default=0)
    left = max(_LABELS, longest * _FONT * _LETTER_INCHES)
    ax = figure.add_axes((left / _WIDTH, foot / total, 1 - (left + 0.12) / _WIDTH, height / total))
    _axis(ax, costs, height)
    for row, top, lines in zip(costs.rows, tops, notes, strict=True):
        _draw_row(ax, row, top, lines)
    title = figure.text(
        0.012,
        1 - 0.1 / total,
        f"{costs.title}, {MICRO} per dispatch",
        fontsize=_FONT + 2.5,
        fontweight="bold",
        color=INK,
        va="top",
    )
    _shrink(title, 0.976)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 1 - (head - legend - 0.02) / total),
        ncols=_LEGEND_COLUMNS,
        fontsize=_SMALL,
        handletextpad=0.3,
        columnspacing=1.0,
        borderpad=0.3,
        labelspacing=0.35,
    )
    figure.text(0.012, 0.08 / total, "\n".join(about), fontsize=_ABOUT, color=MUTED)
    return figure


def _handles(kinds: Sequence[Kind], *, met: bool) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    made: list[Any] = [
        Line2D(
            [],
            [],
            linestyle="",
            marker=_MARKERS[kind],
            markersize=_SIZES[kind] * 0.75,
            markeredgewidth=2,
            color=CALL_COLOURS[kind],
            label=KIND_TITLES[kind],
        )
        for kind in kinds
    ]
    if met:
        made.append(Patch(facecolor=MUTED, alpha=_MET_ALPHA, label=_MET_TITLE))
    return made


def _axis(ax: Axes, costs: DispatchCosts, height: float) -> None:
    """A log axis around all marks, with room for a value at each end. ``height``: of all rows, inches."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    values = [v for row in costs.rows for v in (*row.marks.values(), *(row.met or ()))]
    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    high = max(high, low * 10)
    room = (high / low) ** 0.09
    ax.set_xscale("log")
    ax.set_xlim(low / room, high * room)
    ax.set_ylim(height, 0)
    ax.set_yticks([])
    close = (1.0, 2.0, 5.0) if high <= _CLOSE_TICKS * low else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=close, numticks=12))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    ax.tick_params(axis="x", labelsize=9, length=3, pad=2)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(visible=True, axis="x", color=GRID_COLOUR, linewidth=0.7)


def _draw_row(ax: Axes, row: DispatchRow, top: float, notes: Sequence[str]) -> None:
    """Draw a row that begins ``top`` inches below the axes' upper end."""
    y = top + _ROW * 0.66
    where = ax.get_yaxis_transform()
    ax.text(-0.02, y, row.label, transform=where, fontsize=_FONT, color=INK, ha="right", va="center")
    if row.met is not None:
        ax.fill_betweenx(
            [y - 0.09, y + 0.09], *row.met, color=CALL_COLOURS[next(iter(row.records))], alpha=_MET_ALPHA, linewidth=0
        )
    if len(row.marks) > 1:
        ax.plot([min(row.marks.values()), max(row.marks.values())], [y, y], color=GRID_COLOUR, linewidth=3, zorder=1)
    for kind, value in row.marks.items():
        ax.plot(
            [value],
            [y],
            linestyle="",
            marker=_MARKERS[kind],
            markersize=_SIZES[kind],
            color=CALL_COLOURS[kind],
            markeredgecolor=CALL_COLOURS[kind] if kind == "batched" else PAPER,
            markeredgewidth=3 if kind == "batched" else 0.8,
            zorder=3,
        )
    _print_values(ax, row, y - 0.1)
    for i, line in enumerate(notes):
        ax.text(
            0.01,
            top + _ROW + _NOTE * (i + 0.4),
            line,
            transform=where,
            fontsize=_SMALL,
            color=MUTED,
            va="center",
        )


def _print_values(ax: Axes, row: DispatchRow, y: float) -> None:
    """Print the value of each mark above it, moved sideways where two would overlap."""
    texts = [
        ax.text(
            value,
            y,
            number(within(value, 0.01)),
            ha="center",
            va="bottom",
            fontsize=_VALUE,
            color=CALL_COLOURS[kind],
            zorder=4,
        )
        for kind, value in sorted(row.marks.items(), key=lambda one: one[1])
    ]
    if row.met is not None:
        end = max([row.met[1], *row.marks.values()])
        texts.append(ax.text(end, y, f"met {between(*row.met)}", ha="center", va="bottom", fontsize=_VALUE - 1,
                             color=MUTED, zorder=4))  # fmt: skip
    _move_apart(ax, texts)


def _move_apart(ax: Axes, texts: Sequence[Text]) -> None:
    """Move the texts of a row, given from left to right, sideways until none overlaps the next or leaves the axes."""
    if not texts:
        return
    boxes = [_extent(text) for text in texts]
    widths = [box.width + _PIXEL_GAP for box in boxes]
    centres = spaced([(box.x0 + box.x1) / 2 for box in boxes], widths, ax.bbox.x0 - 2, ax.figure.bbox.x1)
    for text, centre in zip(texts, centres, strict=True):
        text.set_x(ax.transData.inverted().transform((centre, 0))[0])


def _extent(text: Text) -> Any:
    """The box of the text in pixels."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    return text.get_window_extent(FigureCanvasAgg(text.figure).get_renderer())


def _shrink(text: Text, share: float) -> None:
    """Make the text smaller until it takes at most this share of the figure's width."""
    assert text.figure is not None
    text.set_fontsize(text.get_fontsize() * min(1.0, share * text.figure.bbox.width / _extent(text).width))


def spaced(centres: Sequence[float], widths: Sequence[float], low: float, high: float) -> list[float]:
    """Positions near ``centres`` (ascending) at which intervals of these widths do not overlap, inside low to high.

    Intervals that touch form a group; a group is centred on the mean of what its members ask for.
    """
    groups: list[tuple[list[int], float]] = []
    for i, centre in enumerate(centres):
        members, middle = [i], centre
        while True:
            width = sum(widths[j] for j in members)
            middle = min(max(middle, low + width / 2), high - width / 2)
            if not groups:
                break
            before, other = groups[-1]
            if other + sum(widths[j] for j in before) / 2 <= middle - width / 2:
                break
            groups.pop()
            members = [*before, *members]
            middle = sum(centres[j] for j in members) / len(members)
        groups.append((members, middle))
    found = [0.0] * len(centres)
    for members, middle in groups:
        at = middle - sum(widths[j] for j in members) / 2
        for j in members:
            found[j] = at + widths[j] / 2
            at += widths[j]
    return found
