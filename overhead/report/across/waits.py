"""What waiting costs, by vendor, API and implementation; published waits hollow beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.claims import PublishedPoint
from overhead.reading.format import MICRO, count, in_micro, valued
from overhead.report.core import machine_rows
from overhead.report.core.across_registry import register_across
from overhead.report.core.machine_rows import Panel, Value
from overhead.report.core.machines import Machines
from overhead.report.core.parts import Cell, Drawing, Part, Table
from overhead.report.core.run_summary import Way

_WAIT_TITLES = {
    "empty_wait": "the wait alone, nothing issued", "naive": "one unit and its wait, warm",
    "naive_idle": "one unit and its wait, after 50 ms idle",
}  # fmt: skip
_PUBLISHED_QUANTITIES = {"empty_wait": "wait", "naive": "single"}
_UNITS = ("dispatch", "launch", "node")


@register_across("across-waits", "What waiting costs, by implementation", 50)
def waits(machines: Machines) -> Iterator[Part]:
    panels: dict[str, Panel] = {}
    for state in _WAIT_TITLES:
        ours = [one for unit in _UNITS for one in machine_rows.lines(machines, unit, partial(_time, name=state))]
        points = machine_rows.numbered(partial(_is_published, state=state))
        if ours:
            panels[state] = (ours, points)
    if not panels:
        return
    figure, _ = machine_rows.panels_figure({f"{_WAIT_TITLES[s]}: {MICRO}": panel for s, panel in panels.items()})
    yield Drawing(
        "across-waits", "Waits, by vendor, API and implementation",
        f"Dot plots on log axes over {count(len(machines.summaries), 'machine')}: microseconds of an empty wait, of "
        "one unit with its wait, and of the same after idling; the numbers are in the table below.",
        "Each implementation with its cheapest direct wait; a browser's only wait is the page's. Stars are published "
        "figures, with the wait of their source, numbered as in the list of published points.",
        figure,
    )  # fmt: skip
    rows: list[list[str | Cell]] = [
        [Cell(one.way.stack, one.way.stack), one.vendor, one.way.api, _WAIT_TITLES[state], *machine_rows.said(one)]
        for state, (ours, _) in panels.items()
        for one in ours
    ]
    columns = ["implementation", "vendor", "API", "what", "machines", f"this machine, {MICRO}",
               f"all: median and range, {MICRO}"]  # fmt: skip
    yield Table("Waits, measured", columns, rows, numeric=(4, 5, 6), folded=len(rows) > 12)


def _is_published(point: PublishedPoint, state: str) -> bool:
    return point.quantity == _PUBLISHED_QUANTITIES.get(state)


def _time(way: Way, name: str) -> Value | None:
    if way.api == "CPU":
        return None
    figure = way.figures.get(name)
    return None if figure is None or valued(figure) is None else (*in_micro(figure), figure.status == "ok")
