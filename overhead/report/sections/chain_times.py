"""T(n), the time of a chain of n units, of the base cases, and the fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.format import MICRO, count, micro, plain
from overhead.reading.view import TargetView, View
from overhead.report.core.draw import INK, MUTED
from overhead.report.core.lines import DrawnLine, LinePanel, fitted_line, line_panels, measured_points
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Value


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
