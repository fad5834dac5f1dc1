"""The picture of the front page: CUDA graph or one fused kernel, by workload, with ties and losses
beside wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.reading.chain_ways import ChainWay
from overhead.reading.chains import groups
from overhead.reading.graph_or_fused import WorkRow, rows
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.report.core.work_picture import WorkPicture, draw_narrow, draw_wide
from overhead.words.format import MICRO, factor_spread, number, positive_spread
from overhead.words.graph_or_fused import (
    answer,
    bullets,
    row_title,
    variant_label,
)
from overhead.words.report.graph_or_fused import (
    NO_FUSED,
    NOTHING_BESIDE,
    WORK_CAPTION,
    axis_label,
    caption_title,
    picture_note,
    picture_title,
    run_cell,
    table_alone,
    time_cell,
)


@register_across("graph-or-fused", "CUDA graph or one fused kernel?", 6, page="front", gpu=True)
def graph_or_fused(machines: Machines) -> Iterator[Part]:
    """A section of the front page: whether a chain of many steps runs faster as a CUDA graph or as
    one fused kernel. It has the answer, and a picture with a table. A machine whose GPU ran chains
    without a fused kernel gets a sentence; one without a GPU gets nothing.
    """
    # A row is a work, such as a workload in one size, with the time of each way to run it.
    found = rows(machines.own, machines.others)
    if not found:
        if _has_gpu_chains(machines):
            yield Text([NO_FUSED])
        return
    answered = answer(found) or NOTHING_BESIDE
    # The first is the answer, and stands out.
    yield Text([answered, *bullets(found)], lead=True)

    run = machines.own.fingerprint
    # ``graph``: the way to run a work as a CUDA graph; None without its time.
    with_graph = any(row.graph for row in found)
    # The others are in the table, and have a sentence below the picture.
    drawn = [row for row in found if _can_be_drawn(row, with_graph=with_graph)]
    if not drawn:
        yield _table(found, run.created, folded=False)
        return
    picture = WorkPicture(
        drawn,
        picture_title(run.machine, with_graph=with_graph),
        axis_label(with_graph=with_graph),
        picture_note(drawn, run.created),
    )
    yield Drawing(
        name="graph-or-fused",
        title=caption_title(run.machine, with_graph=with_graph),
        alt=answered,
        caption=WORK_CAPTION,
        draw=partial(draw_wide, picture),
        draw_narrow=partial(draw_narrow, picture),
        table=_table(found, run.created),
    )
    yield Text([table_alone(row) for row in found if row not in drawn], quiet=True)


def _has_gpu_chains(machines: Machines) -> bool:
    """Whether the machine has a GPU, and its run tried chains of steps."""
    own = machines.own
    if not own.has_gpu:
        return False
    tried = [group for group in own.once(groups) if group.arms or group.failed]
    return bool(tried)


def _can_be_drawn(row: WorkRow, *, with_graph: bool) -> bool:
    """Whether the picture shows the work: it has a fused kernel, and a graph if any work has one
    (``with_graph``), because the axis is the time relative to one kind of base.
    """
    if with_graph and not row.graph:
        return False
    return bool(row.of_kind("fused-cuda", "fused-wgsl"))


@dataclass(frozen=True)
class _VariantRow:
    """A row of the table: a variant of a work, and its numbers as text.

    ``relative``: its time over that of the base, such as the CUDA graph; ``= 1`` of the base
    itself. ``faster_from``: from how many steps on it is faster than the base.
    """

    work: str
    variant: Cell
    time: str
    relative: str
    step: str
    faster_from: str
    run: str


def _table(found: Sequence[WorkRow], shown_run: str, *, folded: bool = True) -> Table:
    """The numbers of the picture, and of what is not in it. ``shown_run``: when the run of the page
    began.
    """
    variants = []
    for row in found:
        in_order = row.by_time(row.ways)
        without_time = [way for way in row.ways if way not in in_order]
        for way in (*in_order, *without_time):
            variants.append(_variant_row(row, way, shown_run))
    return table_of("The same numbers", _COLUMNS, variants, folded=folded)


def _variant_row(row: WorkRow, variant: ChainWay, shown_run: str) -> _VariantRow:
    """A variant of a work with its numbers as text: its time, and how it compares with the base,
    the variant (such as the CUDA graph) that the times of this work are divided by.
    """
    is_base = row.base(variant) is variant
    time = time_cell(variant)
    relative = "= 1" if is_base else factor_spread(row.relative(variant))
    # ``step``: the time of one more step; None if the variant has no line. ``cheaper_from``: from
    # how many steps on it beats the base.
    step_ns = variant.step
    step = number(step_ns / 1e3) if step_ns is not None else ""
    steps = row.cheaper_from(variant)
    faster_from = positive_spread(steps) if steps is not None else ""
    return _VariantRow(
        work=row_title(row),
        variant=Cell(variant_label(variant), variant.stack),
        time=time,
        relative=relative,
        step=step,
        faster_from=faster_from,
        run=run_cell(variant, row, shown_run),
    )


_COLUMNS: list[Column[_VariantRow]] = [
    Column("work", attrgetter("work")),
    Column("variant", attrgetter("variant")),
    Column(MICRO, attrgetter("time"), is_number=True),
    Column("relative", attrgetter("relative"), is_number=True),
    Column(f"each step, {MICRO}", attrgetter("step"), is_number=True),
    Column("faster from n steps", attrgetter("faster_from"), is_number=True),
    Column("run", attrgetter("run"), only_if_filled=True),
]
