"""T(n), the time of a chain of n units, of the base cases: how much a single timing overstates, and the fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, count, factor, factor_spread, micro, plain, resolved
from overhead.reading.key_figures import overstatement
from overhead.reading.view import TargetView, View
from overhead.report.core.draw import INK, MUTED
from overhead.report.core.lines import DrawnLine, LinePanel, fitted_line, line_panels, measured_points
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Value

_TITLES = {"naive": "T(1), warm", "naive_idle": "T(1) after 50 ms idle", "legacy": "T(100)/100"}


@register("naive", "How much a single timing overstates", 50, page="cases")
def single_timings(view: View) -> Iterator[Part]:
    """A table of T(1), T(1) after idling and T(100)/100 as multiples of the slope, hardware first."""
    shown = [t for t in view.without_floor if any(t.base.figure(name) for name in _TITLES)]
    shown.sort(key=lambda t: (t.software, t.first.api == "CPU", -_most(t)))
    if not shown:
        yield Text(["No base case has a one-shot figure."])
        return
    yield Text([f"Timing one unit and its wait overstates what one more costs by up to {factor(_most(shown[0]))}, "
                f"through {shown[0].short}. T(1) is what most benchmarks print, T(100)/100 the published “sequential” "
                "figure; both hold the fixed cost of the wait."])  # fmt: skip
    yield Table(
        "One-shot figures as multiples of the slope",
        ["target", "unit", f"slope, {MICRO}", *_TITLES.values()],
        [
            [
                Cell(t.short, t.stack),
                t.base.unit,
                micro_cell(t.base, "complete"),
                *(factor_spread(_overstated(t, name)) for name in _TITLES),
            ]
            for t in shown
        ],
        numeric=range(2, 6),
    )


def _most(target: TargetView) -> float:
    """By how much timing one unit overstates the cost of the base case; 0 where that is not known."""
    found = _overstated(target, "naive")
    return found.value if found is not None else 0.0


def _overstated(target: TargetView, name: str) -> Value | None:
    return overstatement(target.base, name) if resolved(target.base.figure("complete")) else None


@register("curves", "The line behind the number", 60, page="cases")
def curves(view: View) -> Iterator[Part]:
    """A panel for each base case: T(n) as measured, with its fit."""
    shown = [t for t in view.without_floor if any(p.n > 0 for p in t.base.curve)]
    if not shown:
        yield Text(["No base case gave a curve."])
        return
    yield Text(
        [
            "Nothing here divides a total by a count: a chain of n units is timed for several n, and the cost of one "
            "is the slope of the line through them. The flat part at the left is what a chain costs once, whatever "
            "its length."
        ]
    )
    yield Drawing(
        "curves",
        "Time of a chain of n units",
        f"Time against the number of units for {count(len(shown), 'base case')}: each follows its fitted line, flat "
        "where the fixed cost dominates, then rising by the slope.",
        "Filled dots: until everything has finished, medians of all processes with quartiles. Open dots: until the "
        "stack gave control back. Solid line: the fit, intercept plus slope times n, bent here because both axes are "
        "logarithmic. Dotted line: T(1) times n, what timing a single unit predicts.",
        partial(line_panels, [_panel(target) for target in shown], f"T(n), {MICRO}"),
        folded=True,
    )


def _panel(target: TargetView) -> LinePanel:
    record, own = target.base, colour(target.stack)
    points = measured_points(record)
    lines = [DrawnLine([(p.n, Value(p.total, p.q1, p.q3) / 1e3) for p in points], own)]
    if record.overlap != "serial":
        lines.append(DrawnLine([(p.n, Value(p.issue / 1e3)) for p in points], own, hollow=True))
    top = max((p.n for p in points), default=1)
    each, once = (record.measured(name) for name in ("complete", "fixed"))
    if each is not None and once is not None:
        lines.append(DrawnLine(fitted_line(once.value, each.value, top), INK, "-"))
    lines.append(DrawnLine(fitted_line(0.0, record.value("naive") or 0.0, top), MUTED, ":"))
    known = {"slope": record.figure("complete"), "fixed": record.figure("fixed")}
    said = [f"{name} {micro(figure)}" for name, figure in known.items() if figure is not None]
    knee = record.measured("knee_n")
    said += [f"knee at {knee.value:,.0f}"] if knee is not None and 0 < knee.value <= 4 * top else []
    return LinePanel(target.short, f"n, {plain(record.unit, 20)} ({record.pattern})", lines, "\n".join(said))
