"""The figure of a way: for each case, how K peers compare with one alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Drawing, Table
from overhead.contention.rows import (
    PeersRow,
    RatioAt,
    meetings,
    ratio_name,
    shown_rows,
)
from overhead.report.core.draw import (
    GRID_COLOUR,
    INK,
    MUTED,
    NARROW_INCHES,
    PAPER,
    SMALL,
    WIDE_INCHES,
    new_figure,
    plain_log_ticks,
    style,
    wrapped_label,
)
from overhead.report.core.palette import CALL_COLOURS
from overhead.results import Caller, Value, Way
from overhead.words.contention import figure as words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_ROW_INCHES, _NARROW_ROW_INCHES = 0.3, 0.5
_MOST_ROWS = 24
"""Rows of a figure; the table has all. Chosen by eye: more fill more than a screen."""
_LARGEST, _SMALLEST = 7.5, 3.0
"""Points of the marks of the most and of the fewest peers."""
_FURTHEST = 8.0
"""An interval is drawn up to this multiple of its value, and down to this part of it."""
_NARROW_LETTERS = 52
_SHORT_AXIS = 3000.0
"""An axis up to this many times as long has ticks at 2 and 5 too. Chosen by eye."""


@dataclass(frozen=True)
class _Look:
    colour: str
    marker: str


_LOOKS: dict[Caller, _Look] = {
    "binding": _Look(CALL_COLOURS["python"], "o"),
    "ffi": _Look(CALL_COLOURS["python"], "P"),
    "browser": _Look(CALL_COLOURS["browser"], "^"),
    "native": _Look(CALL_COLOURS["compiled"], "D"),
}
"""As on the first page: a circle for Python, a diamond for compiled code, a triangle for
JavaScript.
"""


@dataclass(frozen=True)
class _Line:
    """A line of the figure: a row with the times of a unit of all peers together, µs, by rising
    number of peers; the first is of one alone. ``ratio``: how the most peers compare with one
    alone. ``at_device``: the time that the device allows, µs, where it is known.
    """

    row: PeersRow
    times_us: Mapping[int, Value]
    ratio: RatioAt
    at_device: tuple[float, float] | None = None


def drawing(way: Way, rows: Sequence[PeersRow], table: Table, answer: str) -> Drawing | None:
    """The figure of one way to run many peers at once: a line for each case with a mark for each
    number of peers, and ``table`` below it. None without a case that has two numbers of peers.

    ``answer``: the sentence that the section opens with, which a screen reader reads.
    """
    lines = _lines(way, rows)
    if not lines:
        return None
    limits = list(dict.fromkeys(words.limit_of(line.ratio) for line in lines))
    return Drawing(
        f"contention-{way}",
        words.title(way),
        answer or words.title(way),
        words.caption(way, limits, has_device=any(line.at_device for line in lines)),
        # Called later, and only where pictures are drawn.
        partial(_draw, way, lines),
        partial(_draw_narrow, way, lines),
        table=table,
    )


def _lines(way: Way, rows: Sequence[PeersRow]) -> list[_Line]:
    """The lines of the figure: those with the same limit beside each other, and of these the
    fastest first.
    """
    at_device = {}
    for meeting in meetings(rows):
        for row in meeting.rows:
            at_device[row.first.key] = meeting.low / 1e3, meeting.high / 1e3
    lines = []
    for row in shown_rows(rows):
        times_us = {}
        for peers, cost_ns in row.values("cost").items():
            # A peer does a unit in each of its costs, and K peers K units. Busy processes do none.
            done = 1 if way == "busy" else peers
            times_us[peers] = cost_ns / (1e3 * done)
        ratios = [one for one in row.ratios(ratio_name(way)) if one.peers in times_us]
        if len(times_us) > 1 and ratios:
            lines.append(_Line(row, times_us, ratios[-1], at_device.get(row.first.key)))
    limits = list(dict.fromkeys(words.limit(line.ratio) for line in lines))
    return sorted(lines, key=partial(_place, limits))[:_MOST_ROWS]


def _place(limits: Sequence[str], line: _Line) -> tuple[int, float]:
    """Sort key: by limit, then the fastest first."""
    return limits.index(words.limit(line.ratio)), line.times_us[line.ratio.peers].value


@style()
def _draw(way: Way, lines: Sequence[_Line]) -> Figure:
    """The figure as wide as a page: the lines with their names on the left, and on the right the
    ratio of the most peers, the time of a unit of all together, and the limit.
    """
    figure, (ax, side) = new_figure(
        [_ROW_INCHES * (len(lines) + 1)], 2, width=WIDE_INCHES, shares=(3, 1.6), sharey=True
    )
    handles = _draw_axis(ax, way, lines)
    figure.legend(handles=handles, loc="outside upper left", ncols=len(handles), handletextpad=0.2)
    ax.set_yticks(range(len(lines)), [words.line(line.row) for line in lines])
    # The columns of text: their places in the panel, from its left to its right end.
    side.axis("off")
    side.set_xlim(0, 1)
    look: dict[str, Any] = {"va": "center", "fontsize": 8}
    for place, heading in zip(_COLUMNS, words.columns(way, _most(lines)), strict=True):
        side.text(place, -0.95, heading, fontweight="bold", **look)
    for y, line in enumerate(lines):
        time_us = line.times_us[line.ratio.peers]
        for place, text in zip(_COLUMNS, words.cells(line.ratio, time_us), strict=True):
            side.text(place, y, text, **look)
    return figure


_COLUMNS = (0.0, 0.36, 0.68)
"""Where the columns of text begin, as parts of their panel. Chosen by eye."""


@style()
def _draw_narrow(way: Way, lines: Sequence[_Line]) -> Figure:
    """The figure as wide as a phone: the name, the ratio and the limit of a line stand above it."""
    heights = [_NARROW_ROW_INCHES * (len(lines) + 0.6)]
    figure, (ax,) = new_figure(heights, width=NARROW_INCHES)
    handles = _draw_axis(ax, way, lines)
    figure.legend(handles=handles, loc="outside upper left", ncols=2, handletextpad=0.2)
    ax.set_yticks([])
    for y, line in enumerate(lines):
        text = wrapped_label(words.narrow_line(line.ratio), _NARROW_LETTERS)
        # At the left end of the panel, above the marks of the line.
        ax.text(
            0.0, y - 0.42, text, transform=ax.get_yaxis_transform(), va="center", fontsize=SMALL
        )
    return figure


def _most(lines: Sequence[_Line]) -> int:
    return max(line.ratio.peers for line in lines)


def _draw_axis(ax: Axes, way: Way, lines: Sequence[_Line]) -> list[Line2D]:
    """Draw the marks of all lines. A legend tells which mark is of how many peers, and of which
    caller: returns its entries.
    """
    from matplotlib.lines import Line2D

    counts: list[int] = []
    for line in lines:
        counts += [peers for peers in line.times_us if peers not in counts]
    counts.sort()
    ax.set_xscale("log")
    for y, line in enumerate(lines):
        ax.axhline(y + 0.5, color=GRID_COLOUR, linewidth=0.5, zorder=0)
        _draw_line(ax, way, y, line, counts)
    # The first line at the top; a row above it for the headings.
    ax.set_ylim(len(lines) - 0.45, -0.75)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    plain_log_ticks(ax.xaxis, _SHORT_AXIS)
    ax.set_xlabel(words.axis(way))
    handles = []
    for peers in counts:
        size = _mark_size(counts, peers)
        look: dict[str, Any] = {"marker": "o", "linestyle": "", "color": MUTED, "markersize": size}
        handles.append(Line2D([], [], label=words.count(way, peers), **look))
    for caller in dict.fromkeys(line.row.first.case.caller for line in lines):
        known = _LOOKS[caller]
        look = {"marker": known.marker, "linestyle": "", "color": known.colour, "markersize": 6}
        handles.append(Line2D([], [], label=words.caller(caller), **look))
    return handles


def _mark_size(counts: Sequence[int], peers: int) -> float:
    """Points of a mark: the more peers, the larger."""
    if len(counts) < 2:
        return _LARGEST
    step = (_LARGEST - _SMALLEST) / (len(counts) - 1)
    return _SMALLEST + step * counts.index(peers)


def _draw_line(ax: Axes, way: Way, y: float, line: _Line, counts: Sequence[int]) -> None:
    """Draw the times of a line, the fewest peers highest, each with its interval; a hollow mark is
    noisy. A grey area is what the device allows; a short bar is where the most peers would be if
    they did not slow each other.
    """
    look = _LOOKS[line.row.first.case.caller]
    if line.at_device is not None:
        ax.fill_betweenx([y - 0.5, y + 0.5], *line.at_device, color=MUTED, alpha=0.35, linewidth=0)
    step = 0.6 / max(len(counts), 2)
    middle = (len(counts) - 1) / 2
    places = {peers: y + (i - middle) * step for i, peers in enumerate(counts)}
    drawn = [time.value for time in line.times_us.values()]
    ax.plot(drawn, [places[k] for k in line.times_us], color=look.colour, linewidth=0.6, alpha=0.5)
    alone, most = min(line.times_us), max(line.times_us)
    if way != "busy":
        unhindered = line.times_us[alone].value / most
        ax.plot([unhindered], [places[most]], "|", color=INK, markersize=9, markeredgewidth=1.4)
    for peers, time in line.times_us.items():
        at = places[peers]
        if time.low is not None and time.high is not None:
            low, high = (
                max(time.low, time.value / _FURTHEST),
                min(time.high, time.value * _FURTHEST),
            )
            ax.plot([low, high], [at, at], color=look.colour, linewidth=1.1, alpha=0.8, zorder=2)
        ax.plot(
            [time.value],
            [at],
            look.marker,
            color=look.colour,
            markersize=_mark_size(counts, peers),
            markerfacecolor=look.colour if time.status == "ok" else PAPER,
            markeredgewidth=1.2,
            zorder=3,
        )
