"""What one more piece of work costs, by vendor, API and implementation; published points hollow beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.claims import PublishedPoint
from overhead.reading.format import MICRO, count, in_micro, valued
from overhead.report.core import machine_rows
from overhead.report.core.across_registry import register_across
from overhead.report.core.machine_rows import Panel, Value
from overhead.report.core.machines import Machines
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.run_summary import Way

QUANTITIES = {
    "dispatch": "a dispatch", "launch": "a launch or an operation", "node": "a node of a recording",
    "submit": "a submission, fitted",
}  # fmt: skip
"""What a panel shows, by the unit that it is per."""
_LAUNCH_APIS = ("CUDA", "HIP", "MPS", "LevelZero", "CPU")
"""APIs whose published dispatches are launches in our words."""


@register_across("across-costs", "Cost by vendor, API and implementation", 20)
def costs(machines: Machines) -> Iterator[Part]:
    panels = {
        q: (machine_rows.lines(machines, q, complete), machine_rows.numbered(partial(_is_of, panel=q)))
        for q in QUANTITIES
    }
    panels = {q: (ours, points) for q, (ours, points) in panels.items() if ours}
    if not panels:
        yield Text(["No machine has a stack that runs its work."])
        return
    figure, _ = machine_rows.panels_figure({f"{QUANTITIES[q]}: {MICRO} each": panel for q, panel in panels.items()})
    yield Drawing(
        "across-costs", "Cost of one more unit, by vendor, API and implementation",
        f"Dot plots on log axes over {count(len(machines.summaries), 'machine')}: microseconds per dispatch, launch "
        "and node by implementation, vendor and API, with published figures of other machines; all are in the tables.",
        "The slope of each machine's base case, 95 % intervals where there are few machines; a hollow mark is noisy or "
        "bimodal. Stars are what others published, each under the contract in its label and with the number "
        "of its source: even of a GPU that was measured here they hold other things than a slope (an empty kernel, one "
        "call, no Python), and enter no fit and no ratio.",
        figure,
    )  # fmt: skip
    yield table(panels)


def complete(way: Way) -> Value | None:
    """The slope in microseconds."""
    figure = way.figures.get("complete")
    if figure is None or valued(figure) is None:
        return None
    return (*in_micro(figure), figure.status == "ok")


def _is_of(point: PublishedPoint, panel: str) -> bool:
    if point.quantity in ("dispatch", "operation"):
        return panel == ("launch" if point.api in _LAUNCH_APIS else "dispatch")
    return panel == point.quantity


def table(panels: dict[str, Panel]) -> Table:
    rows: list[list[str | Cell]] = []
    for quantity, (ours, _) in panels.items():
        for one in ours:
            way = one.way
            rows.append(
                [Cell(way.stack, way.stack), one.vendor, way.api, way.caller, quantity, *machine_rows.said(one)]
            )
    columns = ["implementation", "vendor", "API", "caller", "unit", "machines", f"this machine, {MICRO}",
               f"all: median and range, {MICRO}"]  # fmt: skip
    return Table("Cost of one more unit, measured", columns, rows, numeric=(5, 6, 7), folded=len(rows) > 30)
