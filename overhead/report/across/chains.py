"""The page of chains: the fastest variant of each workload, and every variant that was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from overhead.blocks.parts import Cell, Column, Part, Table, Text, table_of
from overhead.reading.chains import ArmFit, Group, groups, steps_of
from overhead.reading.graph_or_fused import rows
from overhead.reading.plain_text import plain
from overhead.reading.view import View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Record
from overhead.words.chains import arm_label, why_no_speed
from overhead.words.format import MICRO, number, run_time, spread
from overhead.words.report.chains import (
    CHEAPEST,
    METHOD_NOTE,
    about,
    beyond,
    case_reason,
    columns,
    failed_way,
    more_cases,
    of_two_runs,
    relative,
    table_title,
    time,
    way,
    without_figure,
    without_gpu,
)

_MOST_REASONS = 20


@dataclass(frozen=True)
class _Shown:
    """A workload in one size, and the run that it is shown of."""

    view: View
    group: Group

    @property
    def created(self) -> str:
        """When the run began."""
        return self.view.fingerprint.created

    @property
    def steps(self) -> int:
        """The number of steps of the workload, which costs are told for."""
        return steps_of(self.group.workload)

    @property
    def cheapest_first(self) -> list[ArmFit]:
        """The variants by the time that they take for all steps."""
        return sorted(self.group.arms, key=lambda arm: arm.cost(self.steps).value)


@register_across("chains", "The fastest way to run many steps", 10, page="chains")
def chains_section(machines: Machines) -> Iterator[Part]:
    """The fastest variant of each workload and size, or why there is no figure; then a table of all
    variants for each.
    """
    shown = _chosen((machines.own, *machines.others))
    with_times = [one for one in shown if one.group.arms]
    if not with_times:
        yield _reasons(shown)
        return
    on_gpu = [one for one in with_times if one.group.on_gpu]
    own_run = machines.own.fingerprint.created
    yield _overview(on_gpu or with_times, own_run)

    remarks = []
    if on_gpu and len(on_gpu) < len(with_times):
        remarks.append(without_gpu(len(with_times) - len(on_gpu)))
    for workload in dict.fromkeys(one.group.workload for one in shown):
        computes = about(workload)
        if computes:
            remarks.append(computes)
    remarks.append(METHOD_NOTE)
    remarks += _other_runs(machines, shown)
    yield Text(remarks, quiet=True)

    for one in shown:
        other_run = "" if one.created == own_run else one.created
        yield _table(one, other_run)


def _reasons(shown: Sequence[_Shown]) -> Text:
    """Why no workload has a figure: the first cases that failed, each with its reason."""
    failed: list[Record] = []
    for one in shown:
        failed += one.group.failed
    paragraphs = [without_figure(measured=bool(shown))]
    paragraphs += [case_reason(record) for record in failed[:_MOST_REASONS]]
    if len(failed) > _MOST_REASONS:
        paragraphs.append(more_cases(len(failed) - _MOST_REASONS))
    return Text(paragraphs)


def _chosen(views: Sequence[View]) -> list[_Shown]:
    """All sizes of each workload from one run: that with the most variants on a GPU, else with the
    most.

    The run shown, which is the first, needs half as many.
    """
    by_workload: dict[str, list[_Shown]] = {}
    for view in views:
        for group in view.once(groups):
            by_workload.setdefault(group.workload, []).append(_Shown(view, group))

    def variants(one: _Shown) -> tuple[bool, int]:
        weight = 2 if one.view is views[0] else 1
        return one.group.on_gpu, weight * len(one.group.arms)

    chosen = []
    for measured in by_workload.values():
        run = max(measured, key=variants).view
        chosen += [one for one in measured if one.view is run]
    return chosen


def _other_runs(machines: Machines, shown: Sequence[_Shown]) -> list[str]:
    """A sentence on the workloads that the picture of the first page takes from another run than
    this page; none where there is no such workload.
    """
    run_here = {one.group.workload: one.created for one in shown}
    run_on_first_page = {}
    for row in rows(machines.own, machines.others):
        if row.shown_run:
            run_on_first_page[row.name] = row.shown_run
    differ = []
    for workload, run in run_here.items():
        if run_on_first_page.get(workload, run) != run:
            differ.append(workload)
    return [of_two_runs(differ)] if differ else []


@dataclass(frozen=True)
class _Fastest:
    """A row of the overview: the fastest variant of a workload, and that of the next stack, if
    there is one. ``next_takes``: its time over that of the fastest.
    """

    group: Group
    steps: int
    variant: Cell
    time: str
    next_variant: str | Cell
    next_takes: str
    other_run: str


def _overview(shown: Sequence[_Shown], own_run: str) -> Table:
    """A row for each workload and size: the fastest variant at the workload's own length, and that
    of the next stack. ``own_run``: when the run of the page began.
    """
    return table_of(CHEAPEST, _OVERVIEW_COLUMNS, [_fastest(one, own_run) for one in shown])


def _fastest(one: _Shown, own_run: str) -> _Fastest:
    fastest, *slower = one.cheapest_first
    next_variant: str | Cell = ""
    next_takes = ""
    for arm in slower:
        if arm.record.stack != fastest.record.stack:
            next_variant = Cell(way(arm), arm.record.stack)
            next_takes = relative(arm, fastest, one.steps)
            break
    return _Fastest(
        group=one.group,
        steps=one.steps,
        variant=Cell(way(fastest), fastest.record.stack),
        time=time(fastest, one.steps),
        next_variant=next_variant,
        next_takes=next_takes,
        other_run="" if one.created == own_run else run_time(one.created),
    )


def _elements(row: _Fastest) -> str:
    return f"{row.group.elements:,}"


def _steps(row: _Fastest) -> str:
    return f"{row.steps:,}"


def _number_of_variants(row: _Fastest) -> str:
    return f"{len(row.group.arms):,}"


_OVERVIEW_COLUMNS: list[Column[_Fastest]] = [
    Column("workload", attrgetter("group.name")),
    Column("elements", _elements, is_number=True),
    Column("steps", _steps, is_number=True),
    Column("fastest variant", attrgetter("variant")),
    Column(MICRO, attrgetter("time"), is_number=True),
    Column("fastest of another stack", attrgetter("next_variant")),
    Column("takes", attrgetter("next_takes"), is_number=True),
    Column("variants", _number_of_variants, is_number=True, only_if_filled=True),
    Column("run", attrgetter("other_run"), only_if_filled=True),
]


def _table(one: _Shown, other_run: str) -> Table:
    """All variants of a workload, with those that failed at the end. ``other_run``: when their run
    began, if that is not the run of the page.
    """
    steps = one.steps
    arms = one.cheapest_first
    rows: list[list[str | Cell]] = []
    for arm in arms:
        total = beyond(arm, steps) + spread(arm.cost(steps) / 1e3)
        rows.append([
            Cell(plain(arm_label(arm), 90), arm.record.stack),
            number(arm.slope / 1e3),
            total,
            relative(arm, arms[0], steps),
            spread(arm.fixed / 1e3),
        ])  # fmt: skip
    for record in one.group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append([Cell(failed_way(record), record.stack), reason, "", "", ""])
    headings = columns(steps)
    numeric = range(1, len(headings))
    title = table_title(one.group, steps, other_run)
    return Table(title, headings, rows, numeric=numeric, folded=True)
