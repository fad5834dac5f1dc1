"""T(n) of one case with every process, the fitted line, and the residuals below it; and where a
page shows it.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from overhead.loading.samples import ProcessMedians
from overhead.measure.fitting.anchors import ANCHOR_MAY_DIFFER
from overhead.measure.fitting.line import LINE, Line, theil_sen
from overhead.profiles import profiles
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetView, View, base_cases, by_patterns
from overhead.report.core.draw import (
    GRID_COLOUR,
    INK,
    MUTED,
    SMALL,
    new_figure,
    plain_log_ticks,
    style,
    wrapped_label,
)
from overhead.report.core.lines import measured_points
from overhead.report.core.page_list import slug, subpage
from overhead.results import Profile, Record, Status
from overhead.words.format import MICRO
from overhead.words.report.lines import NO_FIGURE, QUARTILES_ONLY, beyond_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Rows = tuple[np.ndarray, dict[str, Any]]
"""n and T(n), shape (points, 2), ns; and how matplotlib draws them."""
PAGE = "lines"
DOUBTED: tuple[Status, ...] = ("noisy", "nonlinear", "bimodal")
MOST_PANELS = 24
"""Panels on the page of a stack."""
_HEIGHTS = (0.5, 0.28)
"""Heights of both axes over the width of the figure."""
_MOST_OFF = 50.0
"""Percent of T(n) up to which the axis of residuals reaches."""


def panels_of(view: View, stack: str) -> list[tuple[TargetView, Record]]:
    """The cases that the page of a stack draws, in table order: base cases, and those with a status
    of ``DOUBTED``.
    """
    found = {}
    for target in (t for t in view.without_floor if t.stack == stack):
        own = base_cases(target) + [r for r in target.records if r.status in DOUBTED]
        found.update({r.key: (target, r) for r in by_patterns(own) if measured_points(r)})
    return list(found.values())


def line_link(view: View, record: Record) -> str:
    """The path of the panel of this record, with its anchor; '' where no page draws it."""
    return view.once(_links).get(record.key, "")


def _links(view: View) -> dict[str, str]:
    drawn = [record for stack in view.stacks for _, record in panels_of(view, stack)[:MOST_PANELS]]
    return {r.key: f"{lines_path(r.stack)}#figure-{panel_name(r)}" for r in drawn}


def lines_path(stack: str) -> str:
    """The path of the page with the lines of this stack."""
    return subpage(PAGE, slug(stack), "").path


def panel_name(record: Record) -> str:
    """A name for the panel of the record: the same in every run, for files and anchors."""
    digest = hashlib.sha256(record.key.encode()).hexdigest()[:6]
    return slug(" ".join(["line", record.stack, record.pattern, record.caller, digest]))


def line_of(record: Record) -> tuple[Line | None, bool]:
    """The line of the record's figures, in ns; where they have no value, one through its medians,
    and then False.
    """
    each, once = record.measured("complete"), record.measured("fixed")
    if each is not None and once is not None:
        return Line(each.value, once.value), True
    points = np.array([(p.n, p.total) for p in measured_points(record)], float).reshape(-1, 2)
    return theil_sen(points[:, 0], points[:, 1]), False


@style()
def case_figure(
    record: Record,
    processes: Sequence[ProcessMedians],
    profile: Profile,
    colour: str,
    *,
    width: float,
    title: str = "",
) -> Figure:
    """T(n) above, and below how far each T(n) lies off the line, in percent. ``processes``: empty
    where not known.
    """
    figure, (above, below) = new_figure(
        [height * width for height in _HEIGHTS], around=0.2, width=width, sharex=True
    )
    above.set(
        xscale="log",
        yscale="log",
        ylabel=f"T(n), {MICRO}",
        title=wrapped_label(title, int(width * 11)),
    )
    below.set(ylabel="off the line, %", xlabel=f"n, {plain(record.unit, 20)}")
    own, points, notes = colour, measured_points(record), []
    ladders = [np.array(list(p.ladder.items())) for p in processes if p.ladder]
    anchors = [np.array(list(p.anchors.items())) for p in processes if p.anchors]
    if not ladders:
        notes.append(QUARTILES_ONLY)
        ladders = [np.array([(p.n, p.total) for p in points])]
        above.vlines(
            [p.n for p in points],
            [p.q1 / 1e3 for p in points],
            [p.q3 / 1e3 for p in points],
            color=own,
        )
    drawn: list[_Rows] = [
        (rows, {"marker": "o", "markersize": 3, "color": own}) for rows in ladders
    ]
    drawn += [(rows, {"marker": "x", "markersize": 4.5, "color": own}) for rows in anchors]
    for rows, look in drawn:
        above.plot(rows[:, 0], rows[:, 1] / 1e3, linestyle="", **look)
    line, of_figures = line_of(record)
    if line is not None:
        first, top = min(rows[0, 0] for rows in ladders), max(rows[-1, 0] for rows in ladders)
        n = np.geomspace(1, max(rows[-1, 0] for rows, _ in drawn), 60)
        fitted = line.intercept + line.slope * n
        above.plot(
            n,
            np.where(fitted > 0, fitted, np.nan) / 1e3,
            "-" if of_figures else "--",
            color=INK,
            linewidth=1,
        )
        notes += [] if of_figures else [NO_FIGURE]
        allowed = max(profiles()[profile].precision, LINE.misfit) * line.slope * (top - first)
        share = 100 * np.where(n <= top, allowed / np.maximum(fitted, 1e-9), ANCHOR_MAY_DIFFER)
        below.fill_between(n, -share, share, color=GRID_COLOUR, alpha=0.8, linewidth=0, zorder=0)
        _note(below, _residuals(below, line, drawn), 0.03, 0.95)
    _note(above, "\n".join(textwrap.fill(note, 24) for note in notes), 0.97, 0.04)
    plain_log_ticks(above.xaxis)
    plain_log_ticks(above.yaxis)
    return figure


def _residuals(ax: Axes, line: Line, drawn: Sequence[_Rows]) -> str:
    """Draw each T(n) over the line in percent, joined within a process; returns how many lie beyond
    the axis.
    """
    beyond, most = 0, 1.0
    for rows, look in drawn:
        predicted = line.intercept + line.slope * rows[:, 0]
        off = 100 * np.divide(
            rows[:, 1] - predicted, predicted, out=np.full(len(rows), np.nan), where=predicted > 0
        )
        ax.plot(rows[:, 0], off, linewidth=0.5, **look)
        inside = np.abs(off) <= _MOST_OFF
        beyond += int(np.count_nonzero(~inside))
        most = max([most, *np.abs(off[inside])])
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.set_ylim(-1.2 * most, 1.2 * most)
    return beyond_axis(beyond, _MOST_OFF)


def _note(ax: Axes, text: str, x: float, y: float) -> None:
    aligned: dict[str, Any] = {
        "ha": "left" if x < 0.5 else "right",
        "va": "bottom" if y < 0.5 else "top",
    }
    ax.annotate(text, (x, y), xycoords="axes fraction", fontsize=SMALL, color=MUTED, **aligned)
