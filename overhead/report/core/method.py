"""The page of the method: T(n) and the ways to read a cost from it, explained with one measured curve."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Drawing, Part, Table, Text
from overhead.profiles import PROFILES
from overhead.reading.format import MICRO, factor, listed, number, plain, time, within
from overhead.reading.key_figures import overstatement
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.draw import INK, MUTED
from overhead.report.core.lines import DrawnLine, LinePanel, fitted_line, line_panels, measured_points
from overhead.report.core.palette import colour
from overhead.report.core.registry import MakeSection
from overhead.results import Point, Record, Value

_POOR_FIT_SHARE = 0.05
"""A curve with a point further off its line (as a share of its time) is a worse example."""
_PROCESSES = listed([str(plan.processes) for plan in PROFILES.values()], "or")


def method_sections(view: View) -> list[MakeSection]:
    """The sections of the page of the method, which explain a measured curve of this run."""
    rules = Table("What is checked", ["rule", "how"], _RULES, prose=True)
    return [
        ("idea", "Nothing is divided by a count", lambda: [Text(_IDEA, lead=True)]),
        ("curve", "One real curve", lambda: _curve(_example(view))),
        ("valid", "What makes a number valid", lambda: [rules]),
    ]


def _example(view: View) -> TargetView | None:
    """The target to explain: a base case with a fit and a curve of at least five points; None if there is none.

    Hardware and clear slopes come first, then the case where timing a single unit overstates the cost most.
    """

    def able(t: TargetView) -> bool:
        known = all(t.base.measured(name) for name in ("complete", "fixed", "naive"))
        return known and len(measured_points(t.base)) >= 5

    def rank(t: TargetView) -> tuple[bool, bool, bool, float]:
        slope = t.base.figure("complete")
        unclear = _off(t.base) > _POOR_FIT_SHARE or slope is None or slope.status != "ok"
        ratio = overstatement(t.base, "naive")
        return t.first.api == "CPU", t.software, unclear, -(ratio.value if ratio else 0.0)

    return min(filter(able, view.without_floor), key=rank, default=None)


def _off(record: Record) -> float:
    """The largest relative distance from the line, over the half of the points with the largest n."""
    each, once, points = record.value("complete") or 0.0, record.value("fixed") or 0.0, measured_points(record)
    return max(abs(p.total - once - each * p.n) / p.total for p in points[len(points) // 2 :])


def _curve(target: TargetView | None) -> Iterator[Part]:
    if target is None:
        yield Text(["No case of this run gave a curve."])
        return
    base = target.base
    points = measured_points(base)
    each, once = (found.value if (found := base.measured(name)) else 0.0 for name in ("complete", "fixed"))
    yield Text(_story(target, points))
    rows = [
        [
            f"{p.n:,}",
            number(p.total / 1e3),
            f"{number(p.q1 / 1e3)} to {number(p.q3 / 1e3)}",
            _each(p.total / p.n),
            _each((once + each * p.n) / p.n),
            number(p.issue / 1e3),
        ]
        for p in points
    ]
    columns = [
        "n",
        f"T(n), {MICRO}, median",
        "quartiles",
        f"T(n)/n, {MICRO}",
        f"by the fit, {MICRO}",
        f"control back, {MICRO}",
    ]
    yield _drawing(target, points, each, once, Table("The rungs of this ladder", columns, rows, numeric=range(6)))


def _each(ns: float) -> str:
    return number(within(ns / 1e3, 0.005))


def _story(target: TargetView, points: Sequence[Point]) -> list[str]:
    base = target.base
    said = [
        f"{plain(target.label, 60)}, pattern {base.pattern}, {CALLER_WORDS[base.caller]}: chains of 1 to "
        f"{points[-1].n:,} units, each chain issued, waited for and timed whole."
    ]
    slope, fixed = base.figure("complete"), base.figure("fixed")
    if slope is not None and fixed is not None:
        said.append(
            f"The line through them has the slope {time(slope)}: that is what one more {base.unit} costs. It starts "
            f"at {time(fixed)}: what one wait costs, whatever was issued."
        )
    if found := overstatement(base, "naive"):
        said.append(f"Timing one {base.unit} gives T(1), {factor(found)} the slope, because the wait is in it.")
    if found := overstatement(base, "legacy"):
        said.append(f"Timing a hundred and dividing gives {factor(found)} the slope: a hundredth of the wait is in it.")
    return said


def _drawing(target: TargetView, points: Sequence[Point], each: float, once: float, table: Table) -> Drawing:
    own, top, unit = colour(target.stack), points[-1].n, f"n, in units: {plain(target.base.unit, 20)}"
    fit = DrawnLine(fitted_line(once, each, top), INK, "-")
    single = DrawnLine(fitted_line(0.0, target.base.value("naive") or 0.0, max(1, top // 4)), MUTED, ":")
    totals = DrawnLine([(p.n, Value(p.total / 1e3)) for p in points], own)
    panels = [
        LinePanel("T(n): a line with an intercept", unit, [totals, fit, single], log=False),
        LinePanel("T(n)/n: a quotient that falls with n", unit, [_quotient(line) for line in (totals, fit)]),
    ]
    return Drawing(
        "method",
        "The same measurements, as a line and as a quotient",
        f"Time grows along a line of {number(each / 1e3)} microseconds a unit that starts at {number(once / 1e3)}; "
        "time divided by the number of units falls towards the slope as n grows.",
        "Dots: medians of all processes. Solid: the fit. Dotted: what timing one unit predicts. Beside it, the "
        "quotient that benchmarks print falls with n and reaches the slope only where the wait has been spread thin.",
        partial(line_panels, panels, MICRO),
        table=table,
    )


def _quotient(line: DrawnLine) -> DrawnLine:
    return dataclasses.replace(line, points=[(n, total / n) for n, total in line.points])


_IDEA = (
    "A case is a chain of identical units of work. It is timed for several n, and a line is fitted with its intercept: "
    "T(n) = fixed + slope × n. The slope is what one more unit costs. The intercept is what a submission and a wait "
    "cost, whatever they hold.",
    "Dividing a total by a count mixes the two, and by how much depends on the count and on the wait.",
)
_RULES = (
    ("The work happened", "Values read back prove the number and the order of the units, once a round, outside every "
     "window."),
    ("It is a line", "The medians of the rungs are held against the line; one that bends is called nonlinear and "
     "carries no value."),
    ("It stands clear", "The ladder climbs until what the slope adds stands clear of the clock and of the wait's own "
     "step."),
    ("It repeats", f"{_PROCESSES} fresh processes by profile, fewer if they would end after the profile's time limit; "
     "the interval is over processes, at their canary, and a figure whose interval is wider than the profile's target "
     "is called noisy. Another run may meet another clock."),
    ("Drift cancels", "What is subtracted or divided alternated within each round in one process; differences are "
     "formed per round. A canary tells rounds of a slow processor or of another clock; they are left out of the fit."),
    ("One at a time", "A worker measures only while its run holds the lock of the machine's devices."),
    ("The window is known", "Each record says what its window holds; a ratio is refused where windows differ in "
     "anything but the named axis."),
    ("Nothing is dropped", "A missing number has its reason in words; raw samples are kept, outliers labelled."),
)  # fmt: skip
