"""The table of stacks on the front page: a row for each stack and caller, with the intervals of its
figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from overhead.blocks.parts import Cell, Column, Part, micro_cell, table_of
from overhead.reading.dispatch_costs import DispatchRow, Kind, dispatch_costs
from overhead.reading.view import View
from overhead.report.core.case_line import line_link
from overhead.report.core.registry import register
from overhead.results import Record
from overhead.words.dispatch_costs import KIND_WORDS, kind_remark
from overhead.words.format import MICRO, ends_text
from overhead.words.next_run import next_run_text
from overhead.words.report.stacks import TABLE_TITLE, called, full_remark


@dataclass(frozen=True)
class _Case:
    """A row of the table: a stack with one of the ways to call it. ``record``: None where that was
    not measured.
    """

    row: DispatchRow
    kind: Kind
    record: Record | None


@register("stacks", "The stacks", 25)
def stacks(view: View) -> Iterator[Part]:
    """A table of the headline's cases with their intervals, one caller a row, to sort and to
    filter.
    """
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    cases = []
    for row in costs.rows:
        cases += [_Case(row, kind, row.records.get(kind)) for kind in row.kinds]
    yield table_of(TABLE_TITLE, _columns(costs.view), cases, sortable=True, folded=True)


def _columns(view: View) -> list[Column[_Case]]:
    """The columns; those that are empty for every stack are left out, except the first two."""
    next_run = partial(_next_run, view)
    remark = partial(_linked_remark, view)
    return [
        Column("stack", _stack),
        Column("called", _called),
        Column(f"cost, {MICRO}", _cost, is_number=True, only_if_filled=True),
        Column(f"CPU time, {MICRO}", _cpu_time, is_number=True, only_if_filled=True),
        Column(f"run-to-run, {MICRO}", next_run, is_number=True, only_if_filled=True),
        Column(f"unpinned, {MICRO}", _unpinned, is_number=True, only_if_filled=True),
        Column("limit", _limit, only_if_filled=True),
        Column("remark", remark, only_if_filled=True),
    ]


def _stack(case: _Case) -> Cell:
    return Cell(case.row.label, case.row.stack)


def _called(case: _Case) -> str:
    if case.record is None:
        return KIND_WORDS[case.kind]
    return called(case.kind, case.record)


def _cost(case: _Case) -> str:
    return micro_cell(case.record, "complete")


def _cpu_time(case: _Case) -> str:
    return micro_cell(case.record, "host")


def _next_run(view: View, case: _Case) -> str:
    if case.record is None:
        return ""
    return next_run_text(case.record, view.fingerprint.machine)


def _unpinned(case: _Case) -> str:
    """The range of the unpinned costs of several processes."""
    unpinned_ns = case.record.measured("met") if case.record is not None else None
    return ends_text(unpinned_ns / 1e3) if unpinned_ns is not None else ""


def _limit(case: _Case) -> str:
    """What bounds the cost: the host, the device, or both."""
    return case.row.limit(case.kind) if case.record is not None else ""


def _linked_remark(view: View, case: _Case) -> str | Cell:
    """The remark, with a link to the times behind the cost."""
    if case.record is None:
        return kind_remark(case.row, case.kind)
    remark = full_remark(case.row, case.kind, case.record)
    if not remark:
        return ""
    return Cell(remark, path=line_link(view, case.record))
