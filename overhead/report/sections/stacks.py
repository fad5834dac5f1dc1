"""The table of stacks on the front page: a row for each stack and caller, with the intervals of its
figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, micro_cell
from overhead.reading.dispatch_costs import DispatchRow, Kind, dispatch_costs
from overhead.reading.view import View
from overhead.report.core.case_line import line_link
from overhead.report.core.registry import register
from overhead.words.dispatch_costs import KIND_WORDS, remark as row_remark
from overhead.words.format import ends_text
from overhead.words.next_run import next_run_text
from overhead.words.report.stacks import (
    COLUMNS_OF_STACKS,
    TABLE_TITLE,
    TIME_COLUMNS,
    called,
    remark,
)

_TIMES = range(2, 2 + len(TIME_COLUMNS))
"""The columns of times: behind the stack and its caller."""
_NO_FIGURES = [""] * (len(TIME_COLUMNS) + 1)
"""The cells of a case that was not measured: of its times, and of what bounds it."""


@register("stacks", "The stacks", 25)
def stacks(view: View) -> Iterator[Part]:
    """A table of the headline's cases with their intervals, one caller a row, to sort and to
    filter.
    """
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    yield Table(
        TABLE_TITLE,
        COLUMNS_OF_STACKS,
        [_row(row, kind, costs.view) for row in costs.rows for kind in row.kinds],
        numeric=_TIMES,
        sortable=True,
        folded=True,
    ).without_empty(2)


def _row(row: DispatchRow, kind: Kind, view: View) -> list[str | Cell]:
    name = Cell(row.label, row.stack)
    record = row.records.get(kind)
    if record is None:
        return [name, KIND_WORDS[kind], *_NO_FIGURES, row_remark(row, kind)]
    cost = micro_cell(record, "complete")
    met = record.measured("met")
    next_run = next_run_text(record, view.fingerprint.machine)
    figures = [cost, micro_cell(record, "host"), next_run, ends_text(met / 1e3) if met else ""]
    said = remark(row, kind, record)
    linked = Cell(said, path=line_link(view, record)) if said else ""
    return [name, called(kind, record), *figures, row.limit(kind), linked]
