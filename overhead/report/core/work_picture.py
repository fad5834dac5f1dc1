"""The picture of works (chains of steps, and programs): the ways to do each, relative to a CUDA
graph, in a layout for a page and in one for a phone.

The axes are placed by hand, in inches, so that labels, times and verdicts keep their columns
whatever the texts are.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overhead.reading.graph_or_fused import WayRow, WorkRow
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    GRID_COLOUR,
    INK,
    MUTED,
    NARROW_INCHES,
    PAPER,
    SMALL,
    WIDE_INCHES,
    style,
)
from overhead.results import Value
from overhead.words.format import TIMES
from overhead.words.graph_or_fused import row_label, row_title, run_marks, time_text
from overhead.words.report.graph_or_fused import direction, nothing_beside, verdict_at_end

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS: dict[str, str] = {"cheaper": "#00785a", "dearer": "#b84a00"}
_LINE_INCHES = 0.15
"""Height of a line of text."""
_TITLE_LINE_INCHES = 0.14
"""Height of a further line of the title of a group."""
_TICK_INCHES = 0.2
"""Height of the labels of the axis."""
_FURTHEST = 1e3
"""An interval is drawn down to this part of its value: a logarithmic axis has no zero."""
_IN_A_MOMENT = re.compile(r"(?<=\d{4}-\d\d-\d\d) (?=\d\d:)|(?<=\d\d:\d\d) (?=UTC)")
"""The spaces in the moment of a run."""
_BAR_POINTS, _MARK_POINTS, _SMALL_MARK_POINTS = 3.5, 5.5, 3.2


@dataclass(frozen=True)
class WorkPicture:
    """What the picture shows: a group of rows for each work. ``axis``: what its axis measures;
    ``note``: the runs that it is of.
    """

    works: Sequence[WorkRow]
    title: str
    axis: str
    note: str


@dataclass(frozen=True)
class _Layout:
    """Where things stand, in inches from the left: the plot between its two ends; a label ends at
    ``label_right``, and a time at ``time_right``, with the verdict behind it.

    None: the label stands above its bar, and time and verdict end at the right edge; then each
    group has the numbers of the axis, because the axis itself is far away. ``bar_place``: how far
    down in its row a bar is. ``title_place``: the inches from the top of a group to the middle of
    a title of one line. ``letters``: of a label; ``line_letters``: of a line of text across the
    whole picture.
    """

    width: float
    plot_left: float
    plot_right: float
    row_inches: float
    group_inches: float
    title_points: float
    letters: int
    line_letters: int
    most_ticks: int
    bar_place: float
    title_place: float
    label_right: float | None = None
    time_right: float | None = None


_WIDE = _Layout(
    width=WIDE_INCHES,
    plot_left=3.65,
    plot_right=7.4,
    row_inches=0.134,
    group_inches=0.245,
    title_points=11.0,
    letters=64,
    line_letters=174,
    most_ticks=9,
    bar_place=0.5,
    title_place=0.135,
    label_right=3.57,
    time_right=8.3,
)
_NARROW = _Layout(
    width=NARROW_INCHES,
    plot_left=0.06,
    plot_right=1.3,
    row_inches=0.31,
    group_inches=0.47,
    title_points=9.0,
    letters=54,
    line_letters=50,
    most_ticks=4,
    bar_place=0.58,
    title_place=0.18,
)


def draw_wide(picture: WorkPicture) -> Figure:
    """The picture, as wide as a page."""
    return _draw(picture, _WIDE)


def draw_narrow(picture: WorkPicture) -> Figure:
    """The picture for a phone: the label of a row stands above its bar."""
    return _draw(picture, _NARROW)


@style()
def _draw(picture: WorkPicture, layout: _Layout) -> Figure:
    """Draw a group of rows for each work. A row has a mark at the time of its fastest variant
    divided by that of the base (the CUDA graph where there is one), small marks for the others of
    its kind, and the time and verdict of the fastest.
    """
    from matplotlib.figure import Figure

    # Heights in inches: title, groups of rows, and the texts below the axis.
    title_letters = int(layout.line_letters * SMALL / layout.title_points)
    title = _wrapped(picture.title, title_letters)
    foot = f"{_wrapped(picture.axis, layout.line_letters)}\n"
    foot += _wrapped(picture.note, layout.line_letters)
    # On a page the directions stand beside the name of the first work, and else above it.
    directions_inches = 0.0 if layout.label_right is not None else 0.17
    title_inches = 0.19 * _lines(title) + 0.1 + directions_inches
    rows_inches = 0.0
    for work in picture.works:
        rows_inches += _inches_above_rows(work, layout) + layout.row_inches * len(work.shown)
    foot_inches = _TICK_INCHES + _LINE_INCHES * _lines(foot) + 0.05
    height = title_inches + rows_inches + foot_inches

    figure = Figure(figsize=(layout.width, height))
    plot_inches = layout.plot_right - layout.plot_left
    ax = figure.add_axes(
        (
            layout.plot_left / layout.width,
            foot_inches / height,
            plot_inches / layout.width,
            rows_inches / height,
        )
    )
    # In this axes y counts inches downwards from the first group.
    ax.set_ylim(rows_inches, 0)
    ax.set_xscale("log", base=2)
    ax.set_xlim(*_ends(picture.works))
    drawer = _Drawer(ax, layout, run_marks(picture.works), _set_ticks(ax, layout.most_ticks))
    top = 0.0
    for work in picture.works:
        top = drawer.draw_work(work, top)
    bold: dict[str, Any] = {"weight": "bold", "fontsize": layout.title_points}
    drawer.text(0.05, 0.05 - title_inches, title, va="top", **bold)
    drawer.draw_directions()
    below: dict[str, Any] = {"fontsize": SMALL, "color": MUTED}
    drawer.text(0.05, rows_inches + _TICK_INCHES, foot, va="top", **below)
    return figure


def _wrapped(text: str, letters: int) -> str:
    """The text in lines, of which none ends within a moment such as ``2026-11-24 22:24 UTC``."""
    # ``textwrap`` breaks at no such space.
    kept = _IN_A_MOMENT.sub("\u00a0", plain(text, 1200))
    filled = textwrap.fill(kept, letters, break_on_hyphens=False)
    return filled.replace("\u00a0", " ")


def _lines(text: str) -> int:
    return text.count("\n") + 1


def _work_title(work: WorkRow, layout: _Layout) -> str:
    """The name of a work, which stands above its rows."""
    return _wrapped(row_title(work), int(layout.line_letters * SMALL / 9.5))


def _inches_above_rows(work: WorkRow, layout: _Layout) -> float:
    """The height of a group of rows above the first: its title, of one line or more."""
    more_lines = _lines(_work_title(work, layout)) - 1
    return layout.group_inches + _TITLE_LINE_INCHES * more_lines


def _ends(works: Sequence[WorkRow]) -> tuple[float, float]:
    """The ends of the axis, with room beside the furthest interval."""
    low, high = 1.0, 1.0
    for work in works:
        for shown in work.shown:
            for way in (shown.first, *shown.others):
                times = work.relative(way)
                if times is None:
                    continue
                low = min(low, times.value)
                high = max(high, times.value, times.high or 0.0)
    # On a logarithmic axis this is the same room at both ends.
    return low / 1.5, high * 1.5


def _set_ticks(ax: Axes, most: int) -> list[float]:
    """Ticks at powers of two, at most so many; returned, because each group has grid lines of its
    own.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = ax.get_xlim()
    powers = [power for power in range(-20, 21) if low <= 2.0**power <= high]
    # Every second, fourth, ... power, and always 1.
    apart = 1
    while len(powers) > most * apart:
        apart *= 2
    ticks = [2.0**power for power in powers if power % apart == 0]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(_times_tick))
    ax.tick_params(axis="x", length=3, pad=1, labelsize=SMALL)
    ax.set_yticks([])
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    return ticks


def _times_tick(times: float, _position: int | None = None) -> str:
    """The label of a tick: ``2×``, ``1/4``; matplotlib gives its position too."""
    return f"{times:,g}{TIMES}" if times >= 1 else f"1/{1 / times:,g}"


class _Drawer:
    """Draws on the axes of the picture. ``marks``: those of other runs."""

    def __init__(
        self, ax: Axes, layout: _Layout, marks: Mapping[str, str], ticks: Sequence[float]
    ) -> None:
        self._ax = ax
        self._layout = layout
        self._marks = marks
        self._ticks = ticks

    def text(self, x_inches: float, y_inches: float, text: str, **look: Any) -> None:
        """Write at a place of the page: inches from its left edge, and below the first group."""
        layout = self._layout
        # Of the width of the axes: 0 at its left end, 1 at its right end.
        x = (x_inches - layout.plot_left) / (layout.plot_right - layout.plot_left)
        self._ax.text(x, y_inches, text, transform=self._ax.get_yaxis_transform(), **look)

    def draw_work(self, work: WorkRow, top: float) -> float:
        """Draw the group of a work, and return where the next one begins."""
        layout = self._layout
        shown = work.shown
        first_row = top + _inches_above_rows(work, layout)
        end = first_row + layout.row_inches * len(shown)
        self._draw_title(work, top)
        if layout.label_right is not None:
            self._draw_grid(first_row - 0.02, end)
        else:
            self._draw_tick_labels(first_row - 0.09)
        for place, row in enumerate(shown):
            row_top = first_row + place * layout.row_inches
            y = row_top + layout.bar_place * layout.row_inches
            if layout.label_right is None:
                # Beside the bar alone, so that no line runs through a label.
                self._draw_grid(y - 0.055, y + 0.055)
            self._draw_row(work, row, y)
            if place == 0 and work.relative(row.first) is not None:
                self._draw_label(work, row, row_top, weight="bold")
            else:
                self._draw_label(work, row, row_top, weight="normal")
        return end

    def draw_directions(self) -> None:
        """At the top, to which side faster and slower variants lie."""
        is_wide = self._layout.label_right is not None
        y = self._layout.title_place if is_wide else -0.06
        look: dict[str, Any] = {"weight": "bold", "fontsize": SMALL, "va": "center"}
        for verdict, x, side in (("cheaper", 0.85, "right"), ("dearer", 1.18, "left")):
            colour = _COLOURS[verdict]
            self._ax.text(x, y, direction(verdict), ha=side, color=colour, **look)

    def _draw_title(self, work: WorkRow, top: float) -> None:
        """The name of a work, left of everything, with a line above."""
        look: dict[str, Any] = {"fontsize": 8.5, "weight": "bold", "va": "center"}
        title = _work_title(work, self._layout)
        more_inches = _TITLE_LINE_INCHES * (_lines(title) - 1)
        middle = top + self._layout.title_place + more_inches / 2
        self.text(0.05, middle, title, **look)
        if top > 0:
            ends = []
            for inches in (0.05, self._layout.width - 0.05):
                plot_inches = self._layout.plot_right - self._layout.plot_left
                ends.append((inches - self._layout.plot_left) / plot_inches)
            across = self._ax.get_yaxis_transform()
            line: dict[str, Any] = {"color": GRID_COLOUR, "linewidth": 0.8, "clip_on": False}
            self._ax.plot(ends, [top + 0.05] * 2, transform=across, **line)

    def _draw_tick_labels(self, y: float) -> None:
        """The numbers of the axis above the rows of one group."""
        look: dict[str, Any] = {"fontsize": SMALL, "color": MUTED, "va": "center", "ha": "center"}
        for tick in self._ticks:
            self._ax.text(tick, y, _times_tick(tick), **look)

    def _draw_grid(self, top: float, bottom: float) -> None:
        """The lines of the axis over the rows of one group, and the base at 1."""
        for tick in self._ticks:
            line: dict[str, Any] = {"color": GRID_COLOUR, "linewidth": 0.6, "zorder": 0}
            self._ax.plot([tick, tick], [top, bottom], **line)
        self._ax.plot([1, 1], [top, bottom], color=INK, linewidth=1.0, zorder=1)

    def _draw_label(self, work: WorkRow, row: WayRow, row_top: float, weight: str) -> None:
        """The label of a row, with the mark of its run if that is not the main one."""
        layout = self._layout
        mark = self._marks.get(row.first.run, "")
        is_short = layout.label_right is None
        name = plain(row_label(work, row, is_short=is_short), layout.letters)
        label = f"{name} {mark}".strip()
        look: dict[str, Any] = {"fontsize": SMALL, "weight": weight}
        if layout.label_right is not None:
            middle = row_top + layout.row_inches / 2
            self.text(layout.label_right, middle, label, ha="right", va="center", **look)
        else:
            self.text(layout.plot_left, row_top + 0.07, label, va="center", **look)

    def _draw_row(self, work: WorkRow, row: WayRow, y: float) -> None:
        """A row: bar, interval and mark of its fastest variant, small marks for the others, and the
        time and verdict at its end.
        """
        way = row.first
        times = work.relative(way)
        if times is None or way.cost is None:
            look: dict[str, Any] = {"fontsize": SMALL, "color": MUTED, "va": "center"}
            reason = nothing_beside(way)
            self.text(self._layout.width - 0.05, y, reason, ha="right", **look)
            return
        is_base = work.base(way) is way
        colour = _colour(work, row)
        for other in row.others:
            relative = work.relative(other)
            if relative is not None:
                self._ax.plot(
                    [relative.value],
                    [y],
                    "o",
                    markersize=_SMALL_MARK_POINTS,
                    color=MUTED,
                    zorder=2,
                )
        # A bar from the base to the mark; the base itself has a tick in place of a mark.
        if not is_base:
            bar: dict[str, Any] = {"linewidth": _BAR_POINTS, "alpha": 0.3, "zorder": 1}
            self._ax.plot([1, times.value], [y, y], color=colour, **bar)
        self._draw_interval(times, y, colour)
        self._ax.plot(
            [times.value],
            [y],
            "|" if is_base else "o",
            markersize=10.0 if is_base else _MARK_POINTS,
            color=colour,
            markerfacecolor=colour if way.cost.status == "ok" else PAPER,
            markeredgewidth=1.3,
            zorder=4,
        )
        self._draw_end(work, row, times, y, colour)

    def _draw_interval(self, times: Value, y: float, colour: str) -> None:
        """The interval of a ratio as a line with caps, so that it is seen beside a mark."""
        if not times.bounded:
            return
        # A low end at zero or below has no place on a logarithmic axis.
        ends = [max(times.floor, times.value / _FURTHEST), times.ceiling]
        self._ax.plot(ends, [y, y], color=colour, linewidth=1.1, zorder=3)
        caps: dict[str, Any] = {"markersize": 6.0, "markeredgewidth": 1.1, "zorder": 3}
        self._ax.plot(ends, [y, y], "|", color=colour, **caps)

    def _draw_end(self, work: WorkRow, row: WayRow, times: Value, y: float, colour: str) -> None:
        """The time of the fastest variant of a row, and how it compares with the base."""
        layout = self._layout
        verdict = verdict_at_end(work, row.first, times)
        time = time_text(row.first)
        look: dict[str, Any] = {"fontsize": SMALL, "va": "center"}
        if layout.time_right is not None:
            self.text(layout.time_right, y, time, ha="right", **look)
            self.text(layout.time_right + 0.1, y, verdict, color=colour, **look)
        else:
            together = f"{time}, {verdict}"
            self.text(layout.width - 0.04, y, together, ha="right", color=colour, **look)


def _colour(work: WorkRow, row: WayRow) -> str:
    """Green for a faster variant, orange for a slower one, grey for any other verdict."""
    if work.base(row.first) is row.first:
        return INK
    return _COLOURS.get(work.verdict(row.first) or "", MUTED)
