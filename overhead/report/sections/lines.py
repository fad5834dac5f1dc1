"""The pages "Behind the figures": T(n) of each stack's base cases, and of its noisy, nonlinear and
bimodal cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.loading.samples import ProcessMedians, medians_by_record
from overhead.reading.view import View
from overhead.report.core.case_line import (
    DOUBTED,
    MOST_PANELS,
    PAGE,
    case_figure,
    lines_path,
    panel_name,
    panels_of,
)
from overhead.report.core.page_list import page_named
from overhead.report.core.registry import register, register_each
from overhead.results import Record
from overhead.words.report.cases import case_title
from overhead.words.report.lines import LINES_READ_AS, alternative, caption, more_in_doubt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL_INCHES = 2.9


@register(PAGE, "Behind the figures", 10, page=PAGE)
def lines(view: View) -> Iterator[Part]:
    """How to read the panels, and a table of the stacks with the number of cases by status."""
    rows: list[list[str | Cell]] = []
    for stack in (stack for stack in view.stacks if panels_of(view, stack)):
        statuses = Counter(r.status for t in view.executing if t.stack == stack for r in t.records)
        cases = Cell(str(statuses.total()), path=f"{page_named('cases').path}#filter={stack}")
        counts = [
            statuses["ok"],
            *(statuses[status] for status in DOUBTED),
            len(panels_of(view, stack)[:MOST_PANELS]),
        ]
        rows.append([Cell(stack, path=lines_path(stack)), cases, *map(str, counts)])
    if rows:
        yield Text(LINES_READ_AS)
        columns = ["stack", "cases", "ok", *DOUBTED, "drawn"]
        yield Table(
            "The cases of each stack, and how many its page draws",
            columns,
            rows,
            numeric=range(1, 7),
        )


@register_each(
    PAGE, lambda view: [(stack, stack) for stack in view.stacks if panels_of(view, stack)]
)
def stack_lines(view: View, stack: str) -> Iterator[Part]:
    """A panel for each base case of the stack and for each case that is noisy, nonlinear or
    bimodal.
    """
    found = panels_of(view, stack)
    yield Text(LINES_READ_AS, folded="How to read the panels")
    if (left := len(found) - MOST_PANELS) > 0:
        yield Text([more_in_doubt(left)])
    for target, record in found[:MOST_PANELS]:
        draw = partial(_draw, view, record)
        yield Drawing(
            panel_name(record),
            case_title(target, record),
            alternative(record),
            caption(record),
            draw,
        )


def _draw(view: View, record: Record) -> Figure:
    processes = view.once(_medians).get(record.key, [])
    colour = view.facts(record.stack).colour
    return case_figure(record, processes, view.fingerprint.profile, colour, width=_PANEL_INCHES)


def _medians(view: View) -> dict[str, list[ProcessMedians]]:
    return medians_by_record(view.fingerprint, view.path)
