"""By how much a single timed unit overstates the slope, by vendor, API and implementation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table
from overhead.reading.format import TIMES, count, resolved
from overhead.reading.key_figures import ratio_of
from overhead.report.core import machine_rows
from overhead.report.core.across_registry import register_across
from overhead.report.core.draw import INK
from overhead.report.core.machines import Machines
from overhead.report.core.run_summary import Way
from overhead.results import Value

_RATIO_TITLES = {"naive": "T(1), warm, over the slope", "legacy": "T(100)/100 over the slope"}
_UNITS = ("dispatch", "launch", "node")


@register_across("across-naive", "What timing a single unit would report, by implementation", 40)
def naive(machines: Machines) -> Iterator[Part]:
    panels = {
        shot: [one for unit in _UNITS for one in machine_rows.lines(machines, unit, partial(overstated, shot=shot))]
        for shot in _RATIO_TITLES
    }
    panels = {shot: found for shot, found in panels.items() if found}
    if not panels:
        return
    titled = {f"{_RATIO_TITLES[shot]} (1 is right)": found for shot, found in panels.items()}
    figure, axes = machine_rows.panels_figure(machines, titled)
    for ax in axes:
        ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
    yield Drawing(
        "across-naive",
        "What one-shot figures make of it, by implementation",
        f"Medians over {count(len(machines.summaries), 'machine')}: {machine_rows.finding(titled)}",
        "T(1) is what most benchmarks print, T(100)/100 the published “sequential” figure: both hold the wait. Each "
        "ratio is of two figures of one case on one machine, its line all that both intervals allow.",
        figure,
    )
    rows: list[list[str | Cell]] = [
        [
            Cell(one.way.stack, one.way.stack),
            one.vendor,
            one.way.api,
            one.way.quantity,
            _RATIO_TITLES[shot],
            *machine_rows.said(one),
        ]
        for shot, found in panels.items()
        for one in found
    ]
    columns = [
        "implementation",
        "vendor",
        "API",
        "unit",
        "ratio",
        "machines",
        f"this machine, {TIMES}",
        f"all: median and range, {TIMES}",
    ]
    yield Table("One-shot figures over the slope", columns, rows, numeric=(5, 6, 7), folded=len(rows) > 12)


def overstated(way: Way, shot: str) -> Value | None:
    """The one-shot figure as a multiple of the slope; None where the slope is not resolved."""
    slope = way.figures.get("complete")
    return ratio_of(way.figures.get(shot), slope) if resolved(slope) else None
