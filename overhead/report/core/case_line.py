"""T(n) of one case with every process, the fitted line, and the residuals below it; and where a
page shows it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
from overhead.words.report.lines import NO_FIGURE, NOTHING_TIMED, QUARTILES_ONLY, beyond_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclasses.dataclass(frozen=True)
class _Dots:
    """Dots of a panel that belong together, such as those of a process.

    ``points``: n and T(n) in ns, of shape (dots, 2), never empty. ``look``: how matplotlib draws
    them.
    """

    points: NDArray[Any]
    look: Mapping[str, Any]


PAGE = "lines"
DOUBTED: tuple[Status, ...] = ("noisy", "nonlinear", "bimodal")
MOST_PANELS = 24
"""Panels on the page of a stack."""
_HEIGHTS = (0.5, 0.28)
"""Heights of both axes over the width of the figure."""
_MOST_OFF = 50.0
"""Percent of T(n) up to which the axis of residuals reaches."""


def panels_of(view: View, stack: str) -> list[tuple[TargetView, Record]]:
    """The cases whose T(n) the page of a stack draws, each with its target, in table order: base
    cases, and those that are noisy, nonlinear or bimodal, so that a reader can see why.
    """
    # By key, because a base case in doubt is in both lists.
    panels: dict[str, tuple[TargetView, Record]] = {}
    for target in view.without_floor:  # without the reference call, which does nothing
        if target.stack != stack:
            continue
        # ``by_patterns``: in the order of the tables.
        doubted = [record for record in target.records if record.status in DOUBTED]
        for record in by_patterns(base_cases(target) + doubted):
            # Without points there is nothing to draw.
            if measured_points(record):
                panels[record.key] = (target, record)
    return list(panels.values())


def line_link(view: View, record: Record) -> str:
    """The path of the panel of this record, with its anchor; '' where no page draws it."""
    return view.once(_links).get(record.key, "")


def _links(view: View) -> dict[str, str]:
    """The path of the panel of each record that a page draws, by the key of the record: tables link
    to these.
    """
    links: dict[str, str] = {}
    for stack in view.stacks:
        # Only so many panels have room on a page.
        for _, record in panels_of(view, stack)[:MOST_PANELS]:
            links[record.key] = f"{lines_path(record.stack)}#figure-{panel_name(record)}"
    return links


def lines_path(stack: str) -> str:
    """The path of the page with the lines of this stack."""
    return subpage(PAGE, slug(stack), "").path


def panel_name(record: Record) -> str:
    """A name for the panel of the record: the same in every run, for files and anchors."""
    return _name("line", record)


def case_anchor(record: Record) -> str:
    """The id of the row of the record in the table of all cases: the same in every run."""
    return _name("case", record)


def _name(kind: str, record: Record) -> str:
    """A name that is made of the key of the record alone, safe for files and ids."""
    digest = hashlib.sha256(record.key.encode()).hexdigest()[:6]
    return slug(" ".join([kind, record.stack, record.pattern, record.caller, digest]))


@dataclasses.dataclass(frozen=True)
class ShownLine:
    """The line that is drawn through T(n) of a case, in ns; None where there is none.

    ``is_of_figures``: whether it is that of the figures; else it only goes through the medians.
    """

    line: Line | None
    is_of_figures: bool


def line_of(record: Record) -> ShownLine:
    """The line to draw through T(n) of the case: that of its figures, the cost of a unit and the
    one-off cost. Where these have no value, one through the medians, or no line where fewer than
    two lengths n were measured.
    """
    cost, one_off = record.measured("complete"), record.measured("fixed")
    if cost is not None and one_off is not None:
        return ShownLine(Line(cost.value, one_off.value), is_of_figures=True)
    # ``theil_sen``: the median of the slopes between all pairs of points.
    medians = _rows([(point.n, point.total) for point in measured_points(record)])
    through_medians = theil_sen(medians[:, 0], medians[:, 1])
    return ShownLine(through_medians, is_of_figures=False)


def _rows(points: Iterable[tuple[int, float]]) -> NDArray[Any]:
    """The points as an array of shape (points, 2), also where there are none."""
    return np.array(list(points), float).reshape(-1, 2)


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
    """The figure of one case: above T(n), the time of a chain of n units, with the line through it;
    below how far each T(n) lies off the line, in percent.

    ``processes``: the medians of each process, from the samples; empty where the run has none, and
    then the medians over all processes are drawn.
    """
    # ``above``: T(n) and the line. ``below``: the distances from it.
    heights = [height * width for height in _HEIGHTS]
    figure, (above, below) = new_figure(heights, around=0.2, width=width, sharex=True)
    # A title has about 11 letters an inch.
    above.set(
        xscale="log",
        yscale="log",
        ylabel=f"T(n), {MICRO}",
        title=wrapped_label(title, int(width * 11)),
    )
    below.set(ylabel="off the line, %", xlabel=f"n, {plain(record.unit, 20)}")

    notes: list[str] = []
    # ``ladder``: by n, the medians of a process at the n that the line is fitted to.
    ladders = _dots((process.ladder for process in processes), colour, "o", 3)
    if not ladders:
        ladders = _medians(above, record, colour)
        if ladders:
            notes.append(QUARTILES_ONLY)
    # An anchor is one much longer chain that checks the line, which does not go through it.
    anchors = _dots((process.anchors for process in processes), colour, "x", 4.5)
    dots = [*ladders, *anchors]
    if not dots:
        notes.append(NOTHING_TIMED)
    for drawn in dots:
        above.plot(drawn.points[:, 0], drawn.points[:, 1] / 1e3, linestyle="", **drawn.look)

    # The line of the figures is solid; one that only goes through the medians is dashed.
    shown = line_of(record)
    line = shown.line
    if line is not None and ladders:
        if not shown.is_of_figures:
            notes.append(NO_FIGURE)
        _draw_line(above, line, dots, "-" if shown.is_of_figures else "--")
        # ``precision``: the half-width that the profile of the run wants, as a share.
        _draw_accepted(below, line, ladders, dots, profiles()[profile].precision)
        # The places are parts of the width and the height: the upper left corner.
        _note(below, _residuals(below, line, dots), 0.03, 0.95)
    wrapped_notes = [textwrap.fill(note, 24) for note in notes]
    _note(above, "\n".join(wrapped_notes), 0.97, 0.04)
    plain_log_ticks(above.xaxis)
    plain_log_ticks(above.yaxis)
    return figure


def _dots(
    of_processes: Iterable[Mapping[int, float]], colour: str, marker: str, size: float
) -> list[_Dots]:
    """The dots of each process that has any. ``of_processes``: T(n) in ns by n, of each process."""
    look = {"marker": marker, "markersize": size, "color": colour}
    return [_Dots(_rows(medians.items()), look) for medians in of_processes if medians]


def _medians(axes: Axes, record: Record, colour: str) -> list[_Dots]:
    """The dots of a case whose processes are not known: the medians over all of them; [] if the
    record has no points. Draws the quartiles as vertical lines.
    """
    points = measured_points(record)
    axes.vlines(
        [point.n for point in points],
        [point.q1 / 1e3 for point in points],
        [point.q3 / 1e3 for point in points],
        color=colour,
    )
    return _dots([{point.n: point.total for point in points}], colour, "o", 3)


def _fitted_over_n(line: Line, dots: Sequence[_Dots]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values of n from 1 to the largest that is drawn, and T(n) in ns of the line at each."""
    largest = max(drawn.points[-1, 0] for drawn in dots)
    n = np.geomspace(1, largest, 60)
    return n, line.intercept + line.slope * n


def _draw_line(axes: Axes, line: Line, dots: Sequence[_Dots], style: str) -> None:
    """Draw the line where it is above zero, because the axis is logarithmic."""
    n, fitted = _fitted_over_n(line, dots)
    above_zero = np.where(fitted > 0, fitted, np.nan)
    axes.plot(n, above_zero / 1e3, style, color=INK, linewidth=1)


def _draw_accepted(
    axes: Axes, line: Line, ladders: Sequence[_Dots], dots: Sequence[_Dots], precision: float
) -> None:
    """Shade how far T(n) may lie off the line, in percent, before the method calls it nonlinear.

    Up to the last n that the line was fitted to (``ladders``) this is a share of the line's rise.
    Beyond it, where only anchors lie, it is a share of T(n). ``precision``: the wanted half-width
    of the run's profile, as a share; the method accepts no less than that.
    """
    # Points are sorted by n, so the first and the last row have the ends.
    first = min(drawn.points[0, 0] for drawn in ladders)
    last = max(drawn.points[-1, 0] for drawn in ladders)
    # The line's rise from the first n to the last one, times the share that may be off.
    # ``LINE.misfit``: the share of the rise that the method accepts at least.
    accepted_ns = max(precision, LINE.misfit) * line.slope * (last - first)

    n, fitted = _fitted_over_n(line, dots)
    above_zero = np.maximum(fitted, 1e-9)  # a line with a negative intercept begins below zero
    # As a share of the line at each n; beyond ``last`` the share is fixed.
    percent = 100 * np.where(n <= last, accepted_ns / above_zero, ANCHOR_MAY_DIFFER)
    axes.fill_between(n, -percent, percent, color=GRID_COLOUR, alpha=0.8, linewidth=0, zorder=0)


def _residuals(axes: Axes, line: Line, dots: Sequence[_Dots]) -> str:
    """Draw how far each T(n) lies off the line in percent, joined within a process. Returns the
    sentence that says how many lie beyond the axis, which ends at 50 %; '' for none.
    """
    beyond = 0
    largest = 1.0  # so that the axis of a perfect line has a height
    for drawn in dots:
        # Columns of the dots: n, and T(n) in ns.
        n, total = drawn.points[:, 0], drawn.points[:, 1]
        predicted = line.intercept + line.slope * n
        # Where the line is not above zero, a share of it means nothing: such a dot is not drawn,
        # and counts as one beyond the axis.
        undefined = np.full(len(n), np.nan)
        share = np.divide(total - predicted, predicted, out=undefined, where=predicted > 0)
        percent = 100 * share
        axes.plot(n, percent, linewidth=0.5, **drawn.look)

        # What lies beyond the axis is only counted.
        is_inside = np.abs(percent) <= _MOST_OFF
        beyond += int(np.count_nonzero(~is_inside))
        largest = max([largest, *np.abs(percent[is_inside])])
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_ylim(-1.2 * largest, 1.2 * largest)
    return beyond_axis(beyond, _MOST_OFF)


def _note(axes: Axes, text: str, x: float, y: float) -> None:
    """Write a small text into the corner of the axes that is nearest to this place. ``x``, ``y``:
    from 0 (left, bottom) to 1.
    """
    axes.annotate(
        text,
        (x, y),
        xycoords="axes fraction",
        fontsize=SMALL,
        color=MUTED,
        ha="left" if x < 0.5 else "right",
        va="bottom" if y < 0.5 else "top",
    )
