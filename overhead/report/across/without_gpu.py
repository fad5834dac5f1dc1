"""The first page of a machine without a GPU: what a call costs on its CPU, and what a page with a
GPU looks like.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Drawing, Part, Text
from overhead.reading.dispatch_costs import (
    DispatchCosts,
    DispatchRow,
    Kind,
    dispatch_costs,
    doubt_of,
)
from overhead.report.core.dots import DotLook, DotRow, Mark, dot_figure, narrow_dot_figure
from overhead.report.core.draw import WIDE_INCHES
from overhead.report.core.headline_marks import MARKERS
from overhead.report.core.machines import EXAMPLE_PAGE, Machines
from overhead.report.core.palette import CALL_COLOURS
from overhead.report.core.registry import register_across
from overhead.report.sections.front import without_costs
from overhead.results import Value
from overhead.words.report.example_run import example_link
from overhead.words.report.headline_figure import HOLLOW
from overhead.words.report.without_gpu import (
    AXIS,
    NO_GPU,
    ON_CPU,
    ON_SOFTWARE,
    SECTION_TITLE,
    WITHOUT_GPU_CAPTION,
    WITHOUT_GPU_TITLE,
    alternative,
    costs_sentence,
    kind_title,
    rounded,
    row_label,
    why_no_mark,
)
from overhead.words.summary import missing_sentences, rough_sentence


@register_across("without-gpu", SECTION_TITLE, 0, page="front", gpu=False)
def without_gpu(machines: Machines) -> Iterator[Part]:
    """The first section of the first page of a machine without a GPU: that the program works here,
    a link to the example, and a picture of what a call costs on the CPU. Software adapters have a
    panel of their own.
    """
    view = machines.own
    costs = view.once(dispatch_costs)
    has_costs = costs is not None and any(row.marks for row in costs.rows)
    if has_costs:
        yield Text([NO_GPU], lead=True)
    if machines.example is not None:
        yield Text([example_link(machines.example.fingerprint)], path=EXAMPLE_PAGE)
    if costs is None or not has_costs:
        yield from without_costs(view, costs)
        yield Text([missing_sentences(view, "on the page All cases")])
        return

    on_cpu = [row for row in costs.rows if not row.software]
    said = [costs_sentence(on_cpu), rough_sentence(view)]
    yield Text(list(filter(None, said)))
    yield _drawing(costs)
    yield Text([missing_sentences(view, "on the page All cases")])


def _drawing(costs: DispatchCosts) -> Drawing:
    """The picture: a row for each stack and caller, those of software adapters apart."""
    panels: dict[str, list[DotRow]] = {}
    kinds: set[Kind] = set()
    is_any_hollow = False
    for row in costs.rows:
        title = ON_SOFTWARE if row.software else ON_CPU
        for kind in row.records:
            panels.setdefault(title, []).append(_dot_row(row, kind))
            if kind in row.marks:
                kinds.add(kind)
                is_any_hollow = is_any_hollow or _is_hollow(row, kind)
    shapes = {}
    for kind, marker in MARKERS.items():
        if kind in kinds:
            shapes[kind_title(kind)] = (marker, CALL_COLOURS[kind])
    # The CPU first: it is what was measured here.
    in_order = {title: panels[title] for title in (ON_CPU, ON_SOFTWARE) if title in panels}
    look = DotLook(hollow=HOLLOW if is_any_hollow else "")
    return Drawing(
        name="without-gpu",
        title=WITHOUT_GPU_TITLE,
        alt=alternative(costs),
        caption=WITHOUT_GPU_CAPTION,
        draw=partial(dot_figure, in_order, AXIS, shapes, width=WIDE_INCHES, look=look),
        draw_narrow=partial(narrow_dot_figure, in_order, AXIS, shapes, look=look),
    )


def _dot_row(row: DispatchRow, kind: Kind) -> DotRow:
    """The row of a stack by one caller: its cost, or both of two, or why there is none."""
    costs = row.marks.get(kind, ())
    is_hollow = kind in row.marks and _is_hollow(row, kind)
    marks = []
    for cost in costs:
        at = dataclasses.replace(cost, status="noisy" if is_hollow else "ok")
        marks.append(Mark(at, CALL_COLOURS[kind], MARKERS[kind]))
    note = "" if costs else why_no_mark(row.records[kind])
    return DotRow(row_label(row, kind), marks, note=note, end=_values(costs))


def _values(costs: Sequence[Value]) -> str:
    return rounded(costs) if costs else ""


def _is_hollow(row: DispatchRow, kind: Kind) -> bool:
    """Whether the cost is doubtful. Two speeds have two marks, which say enough."""
    return not row.is_resolved(kind) and doubt_of(row.records[kind]) != "two-speeds"
