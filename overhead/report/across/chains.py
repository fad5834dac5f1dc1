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
    failed_variant,
    more_cases,
    of_two_runs,
    relative,
    table_title,
    time,
    variant_text,
    without_figure,
    without_gpu,
)

_MOST_REASONS = 20


@dataclass(frozen=True)
class _WorkloadSize:
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


@register_across("chains", "The fastest way to run many steps", 10, page="chains", gpu=True)
def chains_section(machines: Machines) -> Iterator[Part]:
    """The section on workloads of many steps: an overview of the fastest variant (a way to run the
    steps) of each workload and size, and then a table of all variants of each. Where nothing was
    measured, the reasons.
    """
    sizes = _chosen((machines.own, *machines.others))
    # ``arms``: the variants with a time; the others are in ``failed``.
    with_times = [size for size in sizes if size.group.arms]
    if not with_times:
        yield _reasons(sizes)
        return
    # Where a GPU ran something, the overview has no sizes that ran on the CPU alone.
    on_gpu = [size for size in with_times if size.group.on_gpu]
    own_run = machines.own.fingerprint.created
    yield _overview(on_gpu or with_times, own_run)

    remarks = []
    on_cpu_only = len(with_times) - len(on_gpu)
    if on_gpu and on_cpu_only:
        remarks.append(without_gpu(on_cpu_only))
    # ``about``: a sentence on what the workload computes; '' if there is none.
    for workload in dict.fromkeys(size.group.workload for size in sizes):
        computes = about(workload)
        if computes:
            remarks.append(computes)
    remarks.append(METHOD_NOTE)
    remarks += _other_runs(machines, sizes)
    yield Text(remarks, quiet=True)

    for size in sizes:
        other_run = "" if size.created == own_run else size.created
        yield _table(size, other_run)


def _reasons(sizes: Sequence[_WorkloadSize]) -> Text:
    """The text in place of the section's tables where no workload has a time: the first cases that
    failed, each with its reason, and how many more there are.
    """
    failed: list[Record] = []
    for size in sizes:
        failed += size.group.failed
    paragraphs = [without_figure(measured=bool(sizes))]
    # ``_MOST_REASONS``: 20.
    paragraphs += [case_reason(record) for record in failed[:_MOST_REASONS]]
    if len(failed) > _MOST_REASONS:
        paragraphs.append(more_cases(len(failed) - _MOST_REASONS))
    return Text(paragraphs)


def _chosen(views: Sequence[View]) -> list[_WorkloadSize]:
    """For each workload, all its sizes from one run, so that their times compare: the run that
    measured the most variants of a size, on a GPU if any run did.

    The first view is the run that the page shows. Its variants count double, so that another run
    takes its place only with more than twice as many.
    """
    by_workload: dict[str, list[_WorkloadSize]] = {}
    for view in views:
        for group in view.once(groups):
            by_workload.setdefault(group.workload, []).append(_WorkloadSize(view, group))

    def rank(size: _WorkloadSize) -> tuple[bool, int]:
        weight = 2 if size.view is views[0] else 1
        # ``max`` compares the first first: True is more than False.
        return size.group.on_gpu, weight * len(size.group.arms)

    chosen = []
    for measured in by_workload.values():
        # The best size of the workload decides the run; all its sizes of that run are shown.
        run = max(measured, key=rank).view
        chosen += [size for size in measured if size.view is run]
    return chosen


def _other_runs(machines: Machines, sizes: Sequence[_WorkloadSize]) -> list[str]:
    """A sentence that warns of workloads whose times differ between this page and the picture of
    the first page, because the two take them from different runs; [] where there are none.
    """
    run_here = {size.group.workload: size.created for size in sizes}
    # ``shown_run``: when the run began whose times the first page shows; '' if it shows none.
    run_on_first_page = {}
    for row in rows(machines.own, machines.others):
        if row.shown_run:
            run_on_first_page[row.name] = row.shown_run
    # A workload that the first page does not show cannot differ.
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


def _overview(sizes: Sequence[_WorkloadSize], own_run: str) -> Table:
    """A row for each workload and size: the fastest variant at the workload's own length, and that
    of the next stack. ``own_run``: when the run of the page began.
    """
    return table_of(CHEAPEST, _OVERVIEW_COLUMNS, [_fastest(size, own_run) for size in sizes])


def _fastest(size: _WorkloadSize, own_run: str) -> _Fastest:
    """The row of a workload in the overview: its fastest variant, and the fastest one through
    another stack (such as PyTorch or CUDA) than that one uses. ``own_run``: when the run of the
    page began; a row of another run names it.
    """
    fastest, *slower = size.cheapest_first
    next_variant: str | Cell = ""
    next_takes = ""
    # The first of another stack is the fastest of those.
    for arm in slower:
        if arm.record.stack != fastest.record.stack:
            next_variant = Cell(variant_text(arm), arm.record.stack)
            next_takes = relative(arm, fastest, size.steps)
            break
    return _Fastest(
        group=size.group,
        steps=size.steps,
        variant=Cell(variant_text(fastest), fastest.record.stack),
        time=time(fastest, size.steps),
        next_variant=next_variant,
        next_takes=next_takes,
        other_run="" if size.created == own_run else run_time(size.created),
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


@dataclass(frozen=True)
class _VariantRow:
    """A row of the table of a workload: a variant with its times as text. A variant that failed has
    its reason in place of the time of a step, and nothing else.
    """

    variant: Cell
    step: str
    total: str = ""
    relative: str = ""
    one_off: str = ""


def _table(size: _WorkloadSize, other_run: str) -> Table:
    """The table of all variants of a workload in one size, the fastest first, with those that
    failed and their reasons at the end. ``other_run``: when their run began, if that is not the run
    of the page.
    """
    steps = size.steps
    columns: list[Column[_VariantRow]] = [
        Column("variant", attrgetter("variant")),
        Column(f"each step, {MICRO}", attrgetter("step"), is_number=True),
        Column(f"{steps:,} steps, {MICRO}", attrgetter("total"), is_number=True),
        Column("vs. the fastest", attrgetter("relative"), is_number=True),
        Column(f"one-off, {MICRO}", attrgetter("one_off"), is_number=True),
    ]
    rows = [_measured_row(arm, size) for arm in size.cheapest_first]
    for record in size.group.failed:
        reason = plain(why_no_speed(record), 120)
        rows.append(_VariantRow(Cell(failed_variant(record), record.stack), reason))
    return table_of(table_title(size.group, steps, other_run), columns, rows, folded=True)


def _measured_row(arm: ArmFit, size: _WorkloadSize) -> _VariantRow:
    """The row of a variant that has a time: of each step, of all steps, and relative to the
    fastest.
    """
    # A sign stands before a time that was calculated and not measured.
    total = beyond(arm, size.steps) + spread(arm.cost(size.steps) / 1e3)
    # ``slope``: the time of one more step; ``fixed``: that of a chain beside its steps.
    return _VariantRow(
        variant=Cell(plain(arm_label(arm), 90), arm.record.stack),
        step=number(arm.slope / 1e3),
        total=total,
        relative=relative(arm, size.cheapest_first[0], size.steps),
        one_off=spread(arm.fixed / 1e3),
    )
