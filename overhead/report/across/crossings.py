"""From how many dependent steps on one way to run a chain beats another, by machine."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Drawing, Part, Table
from overhead.reading.format import count, number, plain, spread
from overhead.report.core.across_registry import register_across
from overhead.report.core.dots import DotRow, Mark, dot_rows, shared_axis
from overhead.report.core.draw import MUTED, ROW_INCHES, canvas, unit_below
from overhead.report.core.machines import Machines
from overhead.report.core.run_summary import Crossover, RunSummary
from overhead.results import Value

_Found = dict[str, dict[tuple[str, str], list[tuple[RunSummary, Crossover]]]]
"""By workload, then by the two ways."""
_MOST_WITH_INTERVAL = 4
"""Machines whose interval is drawn; more are dots."""
_LEAST_STEPS = 1.0
"""A chain has at least one step."""


@register_across("across-crossings", "Where one way passes another", 60)
def crossings(machines: Machines) -> Iterator[Part]:
    found: _Found = {}
    for summary in machines.summaries:
        for one in summary.crossovers:
            title = f"{plain(one.workload, 30)}, {one.elements:,} elements"
            found.setdefault(title, {}).setdefault((one.second, one.first), []).append((summary, one))
    if not found:
        return
    drawn = {
        title: {pair: group for pair, group in pairs.items() if any(p.steps is not None for _, p in group)}
        for title, pairs in found.items()
    }
    if drawn := {title: pairs for title, pairs in drawn.items() if len(pairs) > 1}:
        yield _drawing(machines, drawn)
    rows: list[list[str | Cell]] = [
        [title, f"{second} passes {first}", str(len(group)), _own(machines, group), _over(group)]
        for title, pairs in found.items()
        for (second, first), group in pairs.items()
    ]
    columns = ["workload", "which", "machines", "this machine, steps", "all: steps, median and range"]
    yield Table("From how many steps on", columns, rows, numeric=(2, 3), folded=len(rows) > 12)


def _drawing(machines: Machines, found: _Found) -> Drawing:
    figure, grid = canvas([ROW_INCHES * len(pairs) for pairs in found.values()])
    panels = [[_row(machines, *pair, group) for pair, group in pairs.items()] for pairs in found.values()]
    for (ax,), title, rows in zip(grid, found, panels, strict=True):
        dot_rows(ax, rows)
        ax.set_title(title)
        unit_below(ax, "dependent steps")
    shared_axis([ax for (ax,) in grid], panels)
    return Drawing(
        "across-crossings",
        "From how many dependent steps on the second way is cheaper",
        f"The number of steps from which on one way to run a chain is cheaper than another, on "
        f"{count(len(machines.summaries), 'machine')}; the numbers are in the table below.",
        "From each machine's own fits, fixed + slope × steps, at the size nearest to 4,096 elements; lines are all "
        "that the intervals of both fits allow. This machine's mark has a dark edge. A dot at 1 is cheaper from the "
        "first step on. Pairs of which one always or never wins, or that do not differ measurably, are in the table.",
        figure,
    )


def _row(machines: Machines, second: str, first: str, group: Sequence[tuple[RunSummary, Crossover]]) -> DotRow:
    found = [(summary, p.steps.at_least(_LEAST_STEPS)) for summary, p in group if p.steps is not None]
    few = len(found) <= _MOST_WITH_INTERVAL
    marks = [
        Mark(Value(of.value, of.low, of.high) if few else Value(of.value), MUTED, ring=summary is machines.own)
        for summary, of in sorted(found, key=lambda one: one[1].value)
    ]
    return DotRow(f"{second} over {first}", marks, _words(group))


def _words(group: Sequence[tuple[RunSummary, Crossover]]) -> str:
    verdicts = [p.verdict for _, p in group if p.verdict]
    return ", ".join(f"{v}{f' ({verdicts.count(v)})' if len(group) > 1 else ''}" for v in dict.fromkeys(verdicts))


def _own(machines: Machines, group: Sequence[tuple[RunSummary, Crossover]]) -> str:
    own = next((p for summary, p in group if summary is machines.own), None)
    if own is None or own.steps is None:
        return own.verdict if own is not None else ""
    return spread(own.steps.at_least(_LEAST_STEPS))


def _over(group: Sequence[tuple[RunSummary, Crossover]]) -> str:
    values = [max(p.steps.value, _LEAST_STEPS) for _, p in group if p.steps is not None]
    over = f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})" if values else ""
    return "; ".join(part for part in (over, _words(group)) if part)
