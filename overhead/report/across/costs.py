"""What one more piece of work costs, by vendor, API and implementation."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.format import MICRO, count, listed, plain, unresolved
from overhead.reading.view import CALLER_WORDS
from overhead.report.core import machine_rows
from overhead.report.core.across_registry import register_across
from overhead.report.core.machine_rows import MachineRow
from overhead.report.core.machines import Machines
from overhead.report.core.run_summary import Way
from overhead.results import Value

QUANTITIES = {
    "dispatch": "a dispatch",
    "launch": "a launch or an operation",
    "node": "a node of a recording",
    "submit": "a submission, fitted",
}
"""What a panel shows, by the unit that it is per."""


@register_across("across-costs", "Cost by vendor, API and implementation", 20)
def costs(machines: Machines) -> Iterator[Part]:
    panels = {q: found for q in QUANTITIES if (found := machine_rows.lines(machines, q, time_of))}
    if not panels:
        yield Text(["No machine has a stack that runs its work."])
        return
    drawn = {f"{QUANTITIES[q]}: {MICRO} each": found for q, found in panels.items()}
    figure, _ = machine_rows.panels_figure(machines, drawn)
    yield Drawing(
        "across-costs",
        "Cost of one more unit, by vendor, API and implementation",
        f"Medians over {count(len(machines.summaries), 'machine')}: {machine_rows.finding(drawn)}",
        "The base case of each stack, 95 % intervals where there are few machines; hollow: noisy or two speeds. All "
        "panels share one axis. Published figures are on the page of claims: they hold other things than the cost "
        "of one more unit (an empty kernel, one call, one wait).",
        figure,
    )
    if lost := _unresolved(machines):
        yield Text([f"In no figure, because its interval reaches zero: {listed(lost)}."])
    yield table(panels)


def time_of(way: Way, name: str = "complete") -> Value | None:
    """A figure in microseconds; None where it is not resolved."""
    figure = way.figures.get(name)
    found = figure.measured if figure is not None else None
    return found / 1e3 if found is not None and found.resolved else None


def _unresolved(machines: Machines) -> list[str]:
    """The values that no panel has because their interval reaches zero: stack, machine and interval in us."""
    return [
        f"{plain(way.stack, 40)} on {plain(summary.name, 40)}: {unresolved(figure)} {MICRO}"
        for summary in machines.summaries
        for way in summary.ways
        if way.quantity in QUANTITIES and (figure := way.figures.get("complete"))
        if figure.measured and not figure.measured.resolved
    ]


def table(panels: dict[str, list[MachineRow]]) -> Table:
    rows: list[list[str | Cell]] = []
    for quantity, ours in panels.items():
        for one in ours:
            way = one.way
            rows.append(
                [
                    Cell(way.stack, way.stack),
                    one.vendor,
                    way.api,
                    CALLER_WORDS[way.caller],
                    quantity,
                    *machine_rows.said(one),
                ]
            )
    columns = [
        "implementation",
        "vendor",
        "API",
        "called",
        "unit",
        "machines",
        f"this machine, {MICRO}",
        f"all: median and range, {MICRO}",
    ]
    return Table("Cost of one more unit, measured", columns, rows, numeric=(5, 6, 7), folded=len(rows) > 30)
