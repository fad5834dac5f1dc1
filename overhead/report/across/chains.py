"""The page of chains: which kind of variant is the fastest for each workload, and every variant
that was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.reading.chain_ways import ChainWay
from overhead.reading.graph_or_fused import ChainWork, WorkRow, chain_rows
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.report.core.work_dots import (
    DotPicture,
    StepTime,
    WorkDots,
    draw_narrow_dots,
    draw_wide_dots,
)
from overhead.results import Record
from overhead.words.format import MICRO, number, spread
from overhead.words.graph_or_fused import time_text
from overhead.words.report.chains import (
    ABOUT,
    ALL_VARIANTS,
    CHEAPEST,
    DOTS_AXIS,
    DOTS_CAPTION,
    DOTS_TITLE,
    FASTEST,
    KIND_NAMES,
    METHOD_NOTE,
    OF_SEVERAL_RUNS,
    about,
    answer,
    beside_graph,
    case_reason,
    label,
    more_cases,
    next_label,
    over_graph,
    run,
    time,
    without_figure,
    without_gpu,
    work_name,
)

_MOST_REASONS = 20


@register_across("chains", "The fastest way to run many steps", 10, page="chains", gpu=True)
def chains_section(machines: Machines) -> Iterator[Part]:
    """The section on workloads of many steps: which kind of variant (a way to run the steps) is the
    fastest, a picture of the times of a step, a table of the fastest variant of each workload and
    size, and one of all variants. Where nothing was measured, the reasons.
    """
    found = sorted(chain_rows(machines.own, machines.others), key=_place)
    with_times = [row for row in found if row.by_time(row.all_ways)]
    if not with_times:
        yield _reasons(found)
        return
    # Where a GPU ran something, the picture and overview have no sizes that ran on the CPU alone.
    on_gpu = [row for row in with_times if row.by_time(row.ways)]
    shown_run = machines.own.fingerprint.created
    if on_gpu:
        compared = [row for row in on_gpu if row.has_fused_and_others]
        # The page asks for a graph or one fused kernel: where graphs were measured, the others have
        # no rival that could win.
        with_graph = [row for row in compared if row.graph is not None]
        answered = answer(with_graph or compared)
        if answered:
            yield Text([answered], lead=True)
        dots = [_dots(row) for row in on_gpu]
        # A workload with one kind of variant alone has nothing to compare.
        drawn = [each for each in dots if len(each.times) > 1] or dots
        picture = DotPicture(drawn, DOTS_AXIS, FASTEST, KIND_NAMES)
        yield Drawing(
            name="chains",
            title=DOTS_TITLE,
            alt=answered or DOTS_TITLE,
            caption=DOTS_CAPTION,
            draw=partial(draw_wide_dots, picture),
            draw_narrow=partial(draw_narrow_dots, picture),
        )
    yield _overview(on_gpu or with_times, shown_run)

    remarks = []
    on_cpu_only = len(with_times) - len(on_gpu)
    if on_gpu and on_cpu_only:
        remarks.append(without_gpu(on_cpu_only))
    remarks.append(METHOD_NOTE)
    if _has_ways_of_other_runs(found):
        remarks.append(OF_SEVERAL_RUNS)
    yield Text(remarks, quiet=True)
    # ``about``: a sentence on what the workload computes; '' if there is none.
    names = dict.fromkeys(_workload(row) for row in found)
    computed = [about(name) for name in names]
    yield Text([text for text in computed if text], folded=ABOUT)
    yield _all_variants(found, shown_run)


def _has_ways_of_other_runs(found: Sequence[WorkRow]) -> bool:
    """Whether a workload has variants of another run than its main one."""
    runs = set()
    for row in found:
        runs |= {way.run for way in row.all_ways}
    return runs != {""}


def _place(row: WorkRow) -> tuple[bool, str, str, int]:
    """What sorts the workloads: first those that every run measures; the sizes ascend."""
    elements = row.group.elements if row.group is not None else 0
    return not row.usual, _workload(row), row.name, elements


def _workload(row: WorkRow) -> str:
    return row.group.workload if row.group is not None else row.name


def _reasons(found: Sequence[WorkRow]) -> Text:
    """The text in place of the section's tables where no workload has a time: the first cases that
    failed, each with its reason, and how many more there are.
    """
    failed: list[Record] = []
    for row in found:
        failed += [way.failed for way in row.all_ways if way.failed is not None]
    paragraphs = [without_figure(measured=bool(found))]
    # ``_MOST_REASONS``: 20.
    paragraphs += [case_reason(record) for record in failed[:_MOST_REASONS]]
    if len(failed) > _MOST_REASONS:
        paragraphs.append(more_cases(len(failed) - _MOST_REASONS))
    return Text(paragraphs)


def _dots(row: WorkRow) -> WorkDots:
    """The row of a workload in the picture: of each kind the fastest variant."""
    first_of_kind: dict[str, ChainWay] = {}
    in_order = row.by_time(row.ways)
    # A variant without the checks of its library stands for its kind only if it is the only one.
    for way in sorted(in_order, key=_is_unusual):
        first_of_kind.setdefault(way.kind, way)
    times = []
    for way in first_of_kind.values():
        if way.cost is not None:
            times.append(StepTime(way.kind, way.cost / (_steps(row) * 1e3)))
    fastest = next(iter(first_of_kind.values()))
    return WorkDots(work_name(row), times, label(fastest))


def _is_unusual(way: ChainWay) -> bool:
    return not way.is_usual


def _steps(row: WorkRow) -> int:
    """The number of steps of the workload, which times are told for."""
    assert isinstance(row.work, ChainWork)
    return row.work.steps


@dataclass(frozen=True)
class _Fastest:
    """A row of the overview: the fastest variant of a workload, and that of the next stack, if
    there is one. ``relative``, ``next_relative``: how they compare with the CUDA graph.
    """

    row: WorkRow
    variant: Cell
    time: str
    relative: str
    next_variant: str | Cell
    next_time: str
    next_relative: str
    run: str


def _overview(found: Sequence[WorkRow], shown_run: str) -> Table:
    """A row for each workload and size: the fastest variant at the workload's own length, and that
    of the next stack. ``shown_run``: when the run of the page began.
    """
    return table_of(CHEAPEST, _OVERVIEW_COLUMNS, [_fastest(row, shown_run) for row in found])


def _fastest(row: WorkRow, shown_run: str) -> _Fastest:
    """The row of a workload in the overview: its fastest variant, and the fastest one through
    another stack (such as PyTorch or CUDA) than that one uses.
    """
    fastest, *slower = row.by_time(row.all_ways)
    variant = Cell(label(fastest), fastest.stack)
    its_time, relative = _short_time(fastest), beside_graph(row, fastest)
    next_variant: str | Cell = ""
    next_time = next_relative = ""
    # The first of another stack is the fastest of those.
    for way in slower:
        if way.stack != fastest.stack:
            next_variant = Cell(next_label(way, fastest), way.stack)
            next_time, next_relative = _short_time(way), beside_graph(row, way)
            break
    return _Fastest(
        row=row,
        variant=variant,
        time=its_time,
        relative=relative,
        next_variant=next_variant,
        next_time=next_time,
        next_relative=next_relative,
        run=run(fastest, row, shown_run),
    )


def _short_time(way: ChainWay) -> str:
    """The time of a chain in µs without its interval."""
    return time_text(way).removesuffix(f" {MICRO}")


def _row_elements(of: _Fastest) -> str:
    return _elements(of.row)


def _row_steps(of: _Fastest) -> str:
    return f"{_steps(of.row):,}"


def _elements(row: WorkRow) -> str:
    return f"{row.group.elements:,}" if row.group is not None else ""


_OVERVIEW_COLUMNS: list[Column[_Fastest]] = [
    Column("workload", attrgetter("row.name")),
    Column("elements", _row_elements, is_number=True),
    Column("steps", _row_steps, is_number=True),
    Column("fastest variant", attrgetter("variant")),
    Column(MICRO, attrgetter("time"), is_number=True),
    Column("vs. CUDA graph", attrgetter("relative"), only_if_filled=True),
    Column("fastest of another stack", attrgetter("next_variant")),
    Column(f"{MICRO} ", attrgetter("next_time"), is_number=True),
    Column("vs. CUDA graph ", attrgetter("next_relative"), only_if_filled=True),
    Column("run", attrgetter("run"), only_if_filled=True),
]


@dataclass(frozen=True)
class _VariantRow:
    """A row of the table of all variants, with its times as text. A variant without a time has its
    reason in place of the time.
    """

    row: WorkRow
    variant: Cell
    time: str
    relative: str
    step: str
    one_off: str
    run: str


def _all_variants(found: Sequence[WorkRow], shown_run: str) -> Table:
    """The table of all variants of all workloads, which a reader can sort and filter. Within a
    workload the fastest come first, and those without a time last.
    """
    variants = []
    for row in found:
        in_order = row.by_time(row.all_ways)
        others = [way for way in row.all_ways if way not in in_order]
        for way in (*in_order, *others):
            # A variant that was not tried has no case, and the page of cases tells the reason.
            if way.record is not None:
                variants.append(_variant_row(way, row, shown_run))
    return table_of(ALL_VARIANTS, _COLUMNS, variants, folded=True, sortable=True)


def _variant_row(way: ChainWay, row: WorkRow, shown_run: str) -> _VariantRow:
    """The row of a variant: the time of all steps, beside the CUDA graph, of each step, and of a
    chain beside its steps.
    """
    return _VariantRow(
        row=row,
        variant=Cell(label(way), way.stack),
        time=time(way),
        relative=over_graph(row, way),
        step=number(way.step / 1e3) if way.step is not None else "",
        one_off=spread(way.fixed / 1e3) if way.fixed is not None else "",
        run=run(way, row, shown_run),
    )


def _variant_elements(of: _VariantRow) -> str:
    return _elements(of.row)


def _variant_steps(of: _VariantRow) -> str:
    return f"{_steps(of.row):,}"


_COLUMNS: list[Column[_VariantRow]] = [
    Column("workload", attrgetter("row.name")),
    Column("elements", _variant_elements, is_number=True),
    Column("steps", _variant_steps, is_number=True),
    Column("variant", attrgetter("variant")),
    Column(f"all steps, {MICRO}", attrgetter("time"), is_number=True),
    Column("time \u00f7 CUDA graph", attrgetter("relative"), is_number=True, only_if_filled=True),
    Column(f"each step, {MICRO}", attrgetter("step"), is_number=True),
    Column(f"one-off, {MICRO}", attrgetter("one_off"), is_number=True),
    Column("run", attrgetter("run"), only_if_filled=True),
]
