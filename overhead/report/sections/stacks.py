"""The table of stacks: the cases of the headline with their intervals, one caller a row, to sort and to filter."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.dispatch_costs import KIND_WORDS, DispatchRow, Kind, dispatch_costs, met_range
from overhead.reading.format import MICRO, between, micro_spread
from overhead.reading.next_run import next_run_sentence, next_run_text
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import register
from overhead.results import Machine


@register("stacks", "The stacks", 25, brief=True)
def stacks(view: View) -> Iterator[Part]:
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    machine = costs.view.fingerprint.machine
    columns = [
        "stack",
        "called",
        "unit",
        f"one more, {MICRO}",
        f"CPU time of it, {MICRO}",
        f"next run, {MICRO}",
        f"met, {MICRO}",
        "bound",
        "remark",
    ]
    rows = [_row(row, kind, machine) for row in costs.rows for kind in {**row.records, **row.remarks}]
    kept = [i for i in range(len(columns)) if i < 3 or any(row[i] for row in rows)]
    yield Table(
        "One dispatch through each stack, with intervals; each row is one caller",
        [columns[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        numeric=[at for at, i in enumerate(kept) if 3 <= i < 7],
        sortable=True,
    )
    yield Text([next_run_sentence(machine)], quiet=True)


def _row(row: DispatchRow, kind: Kind, machine: Machine) -> list[str | Cell]:
    name, remark = Cell(row.label, row.stack), row.remarks.get(kind, "")
    record = row.records.get(kind)
    if record is None:
        return [name, KIND_WORDS[kind], *[""] * 6, remark]
    called = ("batched, " if kind == "batched" else "") + CALLER_WORDS[record.caller]
    cost, host = (record.figure(figure) for figure in ("complete", "host"))
    met = met_range(record)
    return [
        name,
        called,
        record.unit,
        micro_spread(cost) if cost is not None and kind in row.marks else "",
        micro_spread(host) if host is not None else "",
        next_run_text(record, machine),
        between(*met) if met else "",
        record.bound,
        remark,
    ]
