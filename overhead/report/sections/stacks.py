"""The table of stacks: the figures of the headline with their intervals, to sort and to filter."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.dispatch_costs import DispatchRow, Kind, dispatch_costs
from overhead.reading.format import MICRO, between, micro_spread
from overhead.reading.next_run import NEXT_RUN_SENTENCE
from overhead.reading.view import View
from overhead.report.core.parts import Cell, Part, Table, Text
from overhead.report.core.registry import register

_COLUMNS: tuple[tuple[Kind, str], ...] = (
    ("python", "from Python"), ("compiled", "from compiled code"), ("browser", "from JavaScript"),
    ("batched", "batched"),
)  # fmt: skip


@register("stacks", "The stacks", 25)
def stacks(view: View) -> Iterator[Part]:
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    shown = [(kind, title) for kind, title in _COLUMNS if any(kind in row.records for row in costs.rows)]
    met = any(row.met for row in costs.rows)
    columns = ["stack", "API", "unit", *(f"{title}, {MICRO}" for _, title in shown), f"next run, {MICRO}",
               *([f"met, {MICRO}"] if met else []), "bound", "remark"]  # fmt: skip
    yield Table(
        "One dispatch through each stack, with intervals", columns,
        [_row(row, [kind for kind, _ in shown], met=met) for row in costs.rows],
        numeric=range(3, 4 + len(shown) + met), sortable=True,
    )  # fmt: skip
    if any(row.next_run for row in costs.rows):
        yield Text([NEXT_RUN_SENTENCE], quiet=True)


def _row(row: DispatchRow, kinds: list[Kind], *, met: bool) -> list[str | Cell]:
    first = next(iter(row.records.values()))
    figures = [row.records[kind].figure("complete") if kind in row.marks else None for kind in kinds]
    band = [between(*row.met) if row.met else ""] if met else []
    return [
        Cell(row.label, row.stack), first.api, first.unit, *(micro_spread(f) if f is not None else "" for f in figures),
        row.next_run, *band, first.bound, "; ".join(row.notes),
    ]  # fmt: skip
