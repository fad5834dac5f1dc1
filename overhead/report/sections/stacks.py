"""The table of stacks on the front page: a row for each stack and caller, with the intervals of its
figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from overhead.blocks.parts import Cell, Column, Part, micro_cell, table_of
from overhead.reading.dispatch_costs import DispatchRow, Kind, dispatch_costs
from overhead.reading.view import View
from overhead.report.core.case_line import line_link
from overhead.report.core.registry import register
from overhead.words.dispatch_costs import KIND_WORDS, kind_remark
from overhead.words.format import MICRO, ends_text
from overhead.words.next_run import next_run_text
from overhead.words.report.stacks import TABLE_TITLE, called, full_remark


@dataclass(frozen=True)
class _Row:
    """A row of the table: a stack with one of the ways to call it, and its times as text; these are
    empty where it was not measured.
    """

    stack: Cell
    called: str
    remark: str | Cell
    cost: str = ""
    cpu_time: str = ""
    next_run: str = ""
    unpinned: str = ""
    limit: str = ""


_COLUMNS: list[Column[_Row]] = [
    Column("stack", attrgetter("stack")),
    Column("called", attrgetter("called")),
    Column(f"cost, {MICRO}", attrgetter("cost"), is_number=True, only_if_filled=True),
    Column(f"CPU time, {MICRO}", attrgetter("cpu_time"), is_number=True, only_if_filled=True),
    Column(f"run-to-run, {MICRO}", attrgetter("next_run"), is_number=True, only_if_filled=True),
    Column(f"unpinned, {MICRO}", attrgetter("unpinned"), is_number=True, only_if_filled=True),
    Column("limit", attrgetter("limit"), only_if_filled=True),
    Column("remark", attrgetter("remark"), only_if_filled=True),
]


@register("stacks", "The stacks", 25)
def stacks(view: View) -> Iterator[Part]:
    """A section with a table of what the headline figure shows, with intervals, to sort and to
    filter. Each row is a stack with one of the ways to call it.
    """
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    rows = []
    for row in costs.rows:
        # A kind: a call from Python, from compiled code or from a browser, or one launch of a
        # batch.
        rows += [_row(row, kind, costs.view) for kind in row.kinds]
    yield table_of(TABLE_TITLE, _COLUMNS, rows, sortable=True, folded=True)


def _row(row: DispatchRow, kind: Kind, view: View) -> _Row:
    """The table's row of a stack with one of the ways to call it (``kind``). Its remark links to
    the times behind the cost.
    """
    stack = Cell(row.label, row.stack)
    record = row.records.get(kind)
    # A stack that can batch launches, in a run that did not measure that.
    if record is None:
        return _Row(stack, KIND_WORDS[kind], kind_remark(row, kind))
    cost = micro_cell(record, "complete")
    next_run = next_run_text(record, view.fingerprint.machine)
    cpu_time = micro_cell(record, "host")
    # "met": the unpinned cost, with the CPU core left to the operating system.
    unpinned_ns = record.measured("met")
    unpinned = ends_text(unpinned_ns / 1e3) if unpinned_ns is not None else ""
    remark = full_remark(row, kind, record)
    return _Row(
        stack=stack,
        called=called(kind, record),
        remark=Cell(remark, path=line_link(view, record)) if remark else "",
        cost=cost,
        cpu_time=cpu_time,
        next_run=next_run,
        unpinned=unpinned,
        limit=row.limit(kind),
    )
