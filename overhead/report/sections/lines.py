"""The pages "Behind the figures": T(n) of each stack's base cases, and of its noisy, nonlinear and
bimodal cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Column, Drawing, Part, Text, table_of
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
from overhead.results import Record, Status
from overhead.words.report.cases import case_title
from overhead.words.report.lines import LINES_READ_AS, alternative, caption, more_in_doubt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL_INCHES = 2.9


@dataclass(frozen=True)
class _Stack:
    """A row of the table: a stack, the cases by status, and how many panels its page draws."""

    name: str
    statuses: Counter[Status]
    panels: int


@register(PAGE, "Behind the figures", 10, page=PAGE)
def lines(view: View) -> Iterator[Part]:
    """The section of the page "Behind the figures": how to read the pages of T(n), and a table of
    the stacks that have such a page, with the number of their cases by status.
    """
    rows = []
    for name in _stacks_with_panels(view):
        # A page draws the first 24 of its panels (``MOST_PANELS``), in the order of the tables.
        panels = panels_of(view, name)[:MOST_PANELS]
        rows.append(_Stack(name, _statuses(view, name), len(panels)))
    if rows:
        yield Text(LINES_READ_AS)
        title = "The cases of each stack, and how many its page draws"
        yield table_of(title, _columns(), rows)


def _stacks_with_panels(view: View) -> list[str]:
    return [stack for stack in view.stacks if panels_of(view, stack)]


def _statuses(view: View, stack: str) -> Counter[Status]:
    """How many cases of the stack have each status."""
    statuses: Counter[Status] = Counter()
    for target in view.executing:
        if target.stack == stack:
            statuses.update(record.status for record in target.records)
    return statuses


def _columns() -> list[Column[_Stack]]:
    """The columns of the table of stacks: how many cases a stack has, how many of these are ``ok``
    and how many in doubt (noisy, nonlinear, bimodal), and how many its page draws.
    """
    by_status = []
    for status in ("ok", *DOUBTED):
        by_status.append(Column(status, partial(_with_status, status), is_number=True))
    return [
        Column("stack", _linked_stack),
        Column("cases", _all_cases, is_number=True),
        *by_status,
        Column("drawn", _drawn_panels, is_number=True),
    ]


def _linked_stack(row: _Stack) -> Cell:
    """The stack, with a link to the page of its panels."""
    return Cell(row.name, path=lines_path(row.name))


def _all_cases(row: _Stack) -> Cell:
    """How many cases there are, with a link to the table of all cases, filtered by the stack."""
    path = f"{page_named('cases').path}#filter={row.name}"
    return Cell(str(row.statuses.total()), path=path)


def _with_status(status: Status, row: _Stack) -> str:
    return str(row.statuses[status])


def _drawn_panels(row: _Stack) -> str:
    return str(row.panels)


def _names(view: View) -> list[tuple[str, str]]:
    """Name and title of each stack's page, which are the same."""
    return [(stack, stack) for stack in _stacks_with_panels(view)]


@register_each(PAGE, _names)
def stack_lines(view: View, stack: str) -> Iterator[Part]:
    """The section of a stack's own page: a panel with T(n) for each base case of the stack and for
    each case that is noisy, nonlinear or bimodal.
    """
    panels = panels_of(view, stack)
    yield Text(LINES_READ_AS, folded="How to read the panels")
    not_drawn = len(panels) - MOST_PANELS
    if not_drawn > 0:
        yield Text([more_in_doubt(not_drawn)])
    for target, record in panels[:MOST_PANELS]:
        yield Drawing(
            name=panel_name(record),
            title=case_title(target, record),
            alt=alternative(record),
            caption=caption(record),
            draw=partial(_draw, view, record),
        )


def _draw(view: View, record: Record) -> Figure:
    """T(n) of the case, with every process whose samples lie beside the run."""
    processes = view.once(_medians).get(record.key, [])
    colour = view.facts(record.stack).colour
    return case_figure(record, processes, view.fingerprint.profile, colour, width=_PANEL_INCHES)


def _medians(view: View) -> dict[str, list[ProcessMedians]]:
    return medians_by_record(view.fingerprint, view.path)
