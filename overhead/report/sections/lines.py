"""The pages "Behind the figures": T(n) of each stack's base cases, and of its noisy, nonlinear and
bimodal cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Column, Drawing, Heading, Part, Text, table_of
from overhead.loading.samples import ProcessMedians, medians_by_record
from overhead.profiles import profiles
from overhead.reading.view import TargetView, View
from overhead.report.core.case_line import (
    DOUBTED,
    MOST_PANELS,
    PAGE,
    case_figure,
    lines_path,
    panel_name,
    panels_of,
)
from overhead.report.core.dots import DotLook, DotRow, Mark, dot_figure, narrow_dot_figure
from overhead.report.core.draw import WIDE_INCHES
from overhead.report.core.lines import measured_points
from overhead.report.core.page_list import page_named
from overhead.report.core.registry import register, register_each
from overhead.results import Record, Status, Value
from overhead.words.report.cases import case_title, not_counted
from overhead.words.report.lines import (
    HOW_TO_READ_PANELS,
    LINES_READ_AS,
    NO_INTERVAL,
    PRECISION_AXIS,
    PRECISION_CAPTION,
    PRECISION_TITLE,
    WIDEST_CASES,
    alternative,
    at_end,
    caption,
    more_in_doubt,
    sure_cases,
    why_noisy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MatplotlibFigure

_PANEL_INCHES = 2.9
_MOST_WIDEST = 3
"""Cases whose T(n) the first of these pages draws: so many stand beside each other."""


@dataclass(frozen=True)
class _Stack:
    """A row of the table: a stack, its cases, and how many panels its page draws."""

    name: str
    cases: Sequence[Record]
    panels: int

    @property
    def statuses(self) -> Counter[Status]:
        """How many cases have each status."""
        return _statuses(self.cases)


@register(PAGE, "Behind the figures", 10, page=PAGE)
def lines(view: View) -> Iterator[Part]:
    """The section of the page "Behind the figures": how many figures are ``ok`` and why others are
    noisy, a picture of how precise each is, T(n) of the noisiest, and a table of the stacks, each
    with a page of its T(n).
    """
    rows = []
    for name in _stacks_with_panels(view):
        # A page draws the first 24 of its panels (``MOST_PANELS``), in the order of the tables.
        panels = panels_of(view, name)[:MOST_PANELS]
        rows.append(_Stack(name, _cases(view, name), len(panels)))
    if not rows:
        return

    every = view.counted
    precision = profiles()[view.fingerprint.profile].precision
    noisy = [record for record in every if record.status == "noisy"]
    sure = " ".join(filter(None, [sure_cases(_statuses(every), precision), not_counted(view)]))
    answers = [sure, why_noisy(noisy)]
    answers = [answer for answer in answers if answer]
    yield Text(answers, lead=True)
    drawn = {"": [_precision_row(view, row) for row in rows]}
    look = DotLook(line_at=100 * precision)
    title = "The cases of each stack, and how many its page draws"
    yield Drawing(
        "precision",
        PRECISION_TITLE,
        " ".join(answers),
        PRECISION_CAPTION,
        partial(dot_figure, drawn, PRECISION_AXIS, width=WIDE_INCHES, look=look),
        draw_narrow=partial(narrow_dot_figure, drawn, PRECISION_AXIS, look=look),
        table=table_of(title, _columns(), rows),
    )
    yield from _widest(view, noisy)
    yield Text(LINES_READ_AS, folded=HOW_TO_READ_PANELS)


def _precision_row(view: View, stack: _Stack) -> DotRow:
    """A row for a stack with a mark for each case: half of the interval of its cost, in percent of
    the cost.
    """
    colour = view.facts(stack.name).colour
    marks = []
    for record in stack.cases:
        percent = _half_width_percent(record)
        if percent is not None:
            marks.append(Mark(Value(percent, status=record.status), colour))
    return DotRow(stack.name, marks, note=NO_INTERVAL, end=at_end(stack.statuses))


def _half_width_percent(record: Record) -> float | None:
    """Half of the interval of the cost, in percent of the cost; None without an interval."""
    cost = record.measured("complete")
    if cost is None or cost.low is None or cost.high is None or cost.value <= 0:
        return None
    return 100 * (cost.high - cost.low) / 2 / cost.value


def _widest(view: View, noisy: Sequence[Record]) -> Iterator[Part]:
    """T(n) of the noisy cases with the widest intervals."""
    drawn = []
    for record in noisy:
        if _half_width_percent(record) is not None and measured_points(record):
            drawn.append(record)
    drawn.sort(key=lambda record: _half_width_percent(record) or 0.0, reverse=True)
    if drawn:
        yield Heading(WIDEST_CASES)
    for record in drawn[:_MOST_WIDEST]:
        # The page of the stack has the same panel by its own name, to which tables link.
        yield _panel(view, view.target(record), record, f"widest {panel_name(record)}")


def _stacks_with_panels(view: View) -> list[str]:
    return [stack for stack in view.stacks if panels_of(view, stack)]


def _cases(view: View, stack: str) -> list[Record]:
    """All cases of the stack."""
    cases: list[Record] = []
    for target in view.executing:
        if target.stack == stack:
            cases += target.records
    return cases


def _statuses(cases: Iterable[Record]) -> Counter[Status]:
    """How many of the cases have each status."""
    return Counter(record.status for record in cases)


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
    return Cell(str(len(row.cases)), path=path)


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
    yield Text(LINES_READ_AS, folded=HOW_TO_READ_PANELS)
    not_drawn = len(panels) - MOST_PANELS
    if not_drawn > 0:
        yield Text([more_in_doubt(not_drawn)])
    for target, record in panels[:MOST_PANELS]:
        yield _panel(view, target, record, panel_name(record))


def _panel(view: View, target: TargetView, record: Record, name: str) -> Drawing:
    """T(n) of one case. ``name``: of its files and its anchor."""
    return Drawing(
        name=name,
        title=case_title(target, record),
        alt=alternative(record),
        caption=caption(record),
        draw=partial(_draw, view, record),
    )


def _draw(view: View, record: Record) -> MatplotlibFigure:
    """T(n) of the case, with every process whose samples lie beside the run."""
    processes = view.once(_medians).get(record.key, [])
    colour = view.facts(record.stack).colour
    return case_figure(record, processes, view.fingerprint.profile, colour, width=_PANEL_INCHES)


def _medians(view: View) -> dict[str, list[ProcessMedians]]:
    return medians_by_record(view.fingerprint, view.path)
