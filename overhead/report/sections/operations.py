"""What an operation of PyTorch costs, by kind: a table for each device."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, factor_spread, plain
from overhead.reading.missing_values import why
from overhead.reading.view import TargetView, View, with_fields
from overhead.report.core.registry import register
from overhead.results import Record, ratio
from overhead.workloads import OPERATIONS

_ABOUT = (
    "Each operation is called from Python on small tensors (256 elements, matrices of 16 x 16 and 64 x 64), so its "
    "cost is overhead. Complete is one more call with its work done; to the first is its multiple of the first row. "
    "The last values of each round are compared with the same operation in float64 on the processor."
)
_FIGURES = {"complete": f"complete, {MICRO}", "device_busy": f"device, {MICRO}", "naive": f"a single call, {MICRO}"}


@register("operations", "What an operation costs, by kind", 10, page="operations", any_run=True)
def operations(view: View) -> Iterator[Part]:
    """A table for each device with a row for each operation, GPUs first; nothing where none was measured."""
    found = [(target, own) for target in view.executing if (own := with_fields(target.records, workload=OPERATIONS))]
    if found:
        yield Text([_ABOUT])
    yield from (_table(*one) for one in sorted(found, key=lambda one: one[0].first.api == "CPU"))


def _table(target: TargetView, records: list[Record]) -> Table:
    figures = [name for name in _FIGURES if any(micro_cell(record, name) for record in records)]
    columns = ["operation", "statement", *(_FIGURES[name] for name in figures), "to the first", "remark"]
    rows = [_row(target, records[0], record, figures) for record in records]
    where = " on the processor" if target.first.api == "CPU" and "CPU" not in target.label else ""
    title = f"Operations of {target.label}{where}"
    return Table(title, columns, rows, numeric=range(2, 3 + len(figures)), sortable=True)


def _row(target: TargetView, first: Record, record: Record, figures: list[str]) -> list[str | Cell]:
    times = ratio(record.measured("complete"), first.measured("complete"))
    name = Cell(plain(str(record.params.get("operation", ""))), target.stack)
    statement = plain(str(record.window.get("operation", "")), 80)
    numbers = [micro_cell(record, figure) for figure in figures]
    doubt = why(record, "complete") if record.value("complete") is None else record.status
    return [name, statement, *numbers, factor_spread(times), "" if doubt == "ok" else doubt]
