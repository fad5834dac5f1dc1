"""What waiting costs, by vendor, API and implementation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table
from overhead.reading.format import MICRO, count
from overhead.report.across.costs import time_of
from overhead.report.core import machine_rows
from overhead.report.core.across_registry import register_across
from overhead.report.core.machine_rows import MachineRow
from overhead.report.core.machines import Machines
from overhead.report.core.run_summary import Way
from overhead.results import Value

_WAIT_TITLES = {
    "empty_wait": "the wait alone, nothing issued",
    "naive": "one unit and its wait, warm",
    "naive_idle": "one unit and its wait, after 50 ms idle",
}
_UNITS = ("dispatch", "launch", "node")


@register_across("across-waits", "What waiting costs, by implementation", 50)
def waits(machines: Machines) -> Iterator[Part]:
    panels: dict[str, list[MachineRow]] = {}
    for state in _WAIT_TITLES:
        ours = [one for unit in _UNITS for one in machine_rows.lines(machines, unit, partial(_time, name=state))]
        if ours:
            panels[state] = ours
    if not panels:
        return
    native = {state: [one for one in ours if one.way.caller != "browser"] for state, ours in panels.items()}
    drawn = {f"{_WAIT_TITLES[state]}: {MICRO}": ours for state, ours in native.items() if ours}
    if drawn:
        yield _drawing(machines, drawn)
    yield _table(panels)


def _drawing(machines: Machines, drawn: dict[str, list[MachineRow]]) -> Drawing:
    figure, _ = machine_rows.panels_figure(machines, drawn)
    return Drawing(
        "across-waits",
        "Waits, by vendor, API and implementation",
        f"Medians over {count(len(machines.summaries), 'machine')}: {machine_rows.finding(drawn)}",
        "Each implementation with its cheapest direct wait. All panels share one axis. Browsers are in the table: "
        "their only wait is the page's.",
        figure,
    )


def _table(panels: dict[str, list[MachineRow]]) -> Table:
    rows: list[list[str | Cell]] = [
        [Cell(one.way.stack, one.way.stack), one.vendor, one.way.api, _WAIT_TITLES[state], *machine_rows.said(one)]
        for state, ours in panels.items()
        for one in ours
    ]
    columns = [
        "implementation",
        "vendor",
        "API",
        "what",
        "machines",
        f"this machine, {MICRO}",
        f"all: median and range, {MICRO}",
    ]
    return Table("Waits, measured", columns, rows, numeric=(4, 5, 6), folded=len(rows) > 12)


def _time(way: Way, name: str) -> Value | None:
    return None if way.api == "CPU" else time_of(way, name)
