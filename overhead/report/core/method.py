"""The page of the method: T(n) and the ways to read a cost from it, explained with one measured curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Drawing, Part, Table, Text
from overhead.profiles import PROFILES
from overhead.reading.format import MICRO, factor, listed, micro, number, plain, time, within
from overhead.reading.key_figures import overstatement
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.draw import INK, MUTED, PAPER, canvas, plain_log_ticks
from overhead.report.core.palette import colour
from overhead.results import Point, Record

_POOR_FIT_SHARE = 0.05
"""A curve with a point further off its line (as a share of its time) is a worse example."""
_LONGEST_CHAIN_NS = 1e15
"""A longer chain is not a measurement."""
_PROCESSES = listed([str(plan.processes) for plan in PROFILES.values()], "or")


def method(view: View) -> list[tuple[str, str, list[Part]]]:
    """The sections of the page: name, title and parts."""
    found = _example(view)
    curve: list[Part] = list(_curve(found)) if found is not None else [Text(["No case of this run gave a curve."])]
    return [
        ("idea", "Nothing is divided by a count", [Text(_IDEA, lead=True)]),
        ("curve", "One real curve", curve),
        ("valid", "What makes a number valid", [Table("What is checked", ["rule", "how"], _RULES, prose=True)]),
    ]


def _example(view: View) -> TargetView | None:
    """The record to explain: a base case with a fit and a curve of at least five points; None if there is none.

    Hardware and clear slopes come first, then the case where timing a single unit overstates the cost most, by the
    lower end of the ratio."""

    def able(t: TargetView) -> bool:
        return all(t.base.measured(n) for n in ("complete", "fixed", "naive")) and len(_points(t.base)) >= 5

    def rank(t: TargetView) -> tuple[bool, bool, bool, float]:
        slope = t.base.figure("complete")
        unclear = _off(t.base) > _POOR_FIT_SHARE or slope is None or slope.status != "ok"
        ratio = overstatement(t.base, "naive")
        least = 0.0 if ratio is None else ratio.value if ratio.low is None else ratio.low
        return t.first.api == "CPU", t.software, unclear, -least

    return min(filter(able, view.stacked), key=rank, default=None)


def _off(record: Record) -> float:
    """The largest relative distance from the line, over the half of the points with the largest n."""
    each, once, points = record.value("complete") or 0.0, record.value("fixed") or 0.0, _points(record)
    return max(abs(p.total - once - each * p.n) / p.total for p in points[len(points) // 2 :])


def _points(record: Record) -> list[Point]:
    return [p for p in record.curve if p.n > 0 and 0 < p.total < _LONGEST_CHAIN_NS and p.q3 < _LONGEST_CHAIN_NS]


def _curve(target: TargetView) -> Iterator[Part]:
    base = target.base
    points = _points(base)
    each, once = (found.value if (found := base.measured(name)) else 0.0 for name in ("complete", "fixed"))
    yield Text(_story(target, points))
    yield _drawing(target, points, each, once)
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
    yield Table(
        "The rungs of this ladder",
        [
            "n",
            f"T(n), {MICRO}, median",
            "quartiles",
            f"T(n)/n, {MICRO}",
            f"by the fit, {MICRO}",
            f"control back, {MICRO}",
        ],
        rows,
        numeric=range(6),
    )


def _each(ns: float) -> str:
    return number(within(ns / 1e3, 0.005))


def _story(target: TargetView, points: Sequence[Point]) -> list[str]:
    base = target.base
    slope, fixed, naive, legacy = (base.figure(n) for n in ("complete", "fixed", "naive", "legacy"))
    each, single, hundred = (base.measured(n) for n in ("complete", "naive", "legacy"))
    said = [
        f"{plain(target.label, 60)}, pattern {base.pattern}, {CALLER_WORDS[base.caller]}: chains of 1 to "
        f"{points[-1].n:,} units, each chain issued, waited for and timed whole."
    ]
    if slope is not None and fixed is not None:
        said.append(
            f"The line through them has the slope {time(slope)}: that is what one more {base.unit} costs. It starts "
            f"at {time(fixed)}: what one wait costs, whatever was issued."
        )
    if naive is not None and each and single and each.value > 0:
        said.append(
            f"Timing one {base.unit} gives T(1) = {micro(naive)} {MICRO}, {factor(single.value / each.value)} "
            "the slope, because the wait is in it."
        )
    if legacy is not None and each and hundred and each.value > 0:
        said.append(
            f"Timing a hundred and dividing gives {micro(legacy)} {MICRO}, which holds a hundredth of the wait: "
            f"{factor(within(hundred.value / each.value, 0.01))} the slope."
        )
    return said


def _drawing(target: TargetView, points: Sequence[Point], each: float, once: float) -> Drawing:
    own = colour(target.stack)
    figure, [[line], [ratio]] = canvas([2.3, 1.9], around=0.75)
    top = points[-1].n
    line.plot([p.n for p in points], [p.total / 1e3 for p in points], "o", markersize=5, color=own, zorder=3)
    line.plot([0, top], [once / 1e3, (once + each * top) / 1e3], color=INK, linewidth=1.1, zorder=2)
    naive = target.base.value("naive")
    if naive is not None and naive > 0:
        end = min(top, 1.25 * (once + each * top) / naive)
        line.plot([0, end], [0, naive * end / 1e3], ":", color=MUTED, linewidth=1.3, zorder=1)
        line.annotate(
            "T(1) × n",
            (end, naive * end / 1e3),
            (-6, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7.5,
            color=MUTED,
        )
    line.annotate(
        f"slope: {number(each / 1e3)} {MICRO}",
        (0.6 * top, (once + each * 0.6 * top) / 1e3),
        (6, -12),
        textcoords="offset points",
        fontsize=8,
    )
    line.set_xlim(0, top * 1.05)
    line.set_ylim(0, 1.3 * (once + each * top) / 1e3)
    line.set_title(f"T(n), {MICRO}: a line with an intercept")
    line.set_xlabel(f"n, in {plain(target.base.unit, 20)}es" if target.base.unit == "dispatch" else "n", fontsize=8)
    ratio.set_xscale("log")
    ratio.set_yscale("log")
    ns = [n for i in range(81) if once / (n := max(top, 2) ** (i / 80)) + each > 0]
    ratio.plot(ns, [(once / n + each) / 1e3 for n in ns], color=INK, linewidth=1.1)
    ratio.plot([p.n for p in points], [p.total / p.n / 1e3 for p in points], "o", markersize=5, color=own, zorder=3)
    if each > 0:
        ratio.axhline(each / 1e3, color=MUTED, linewidth=1, linestyle="--")
        ratio.text(
            0.99,
            each / 1e3,
            "the slope",
            transform=ratio.get_yaxis_transform(),
            ha="right",
            va="bottom",
            fontsize=7.5,
            color=MUTED,
            bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1},
        )
    ratio.set_title(f"T(n)/n, {MICRO}: a quotient that depends on n")
    ratio.set_xlabel("n", fontsize=8)
    for axis in (ratio.xaxis, ratio.yaxis):
        plain_log_ticks(axis)
    return Drawing(
        "method",
        "The same measurements, as a line and as a quotient",
        f"Time grows along a line of {number(each / 1e3)} microseconds a unit that starts at {number(once / 1e3)}; "
        "time divided by the number of units falls towards the slope as n grows.",
        "Dots: medians of all processes. Solid: the fit. Dotted: what timing one unit predicts. Below, the quotient "
        "that benchmarks print falls with n and reaches the slope (dashed) only where the wait has been spread thin.",
        figure,
    )


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
