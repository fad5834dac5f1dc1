"""What the browser adds: its cost, one-off cost and wait beside those of the library inside it, on
one adapter.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, micro_cell, table_of
from overhead.reading.browser_tax import Tax, taxes
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.registry import register
from overhead.results import Caller, Record
from overhead.words.format import factor_spread
from overhead.words.reasons import one_line, sentence
from overhead.words.report.browser_tax import (
    BROWSER_CAPTION,
    BROWSER_FIGURES,
    BROWSER_TITLE,
    alternative,
    row_label,
    table_title,
    through_library,
)


@register("browser-tax", "What the browser adds", 80, page="machines", any_run=True)
def browser_tax(view: View) -> Iterator[Part]:
    """A section on what a browser adds to the cost of its WebGPU library: a figure of ratios, and a
    table for each browser. Nothing where no browser was measured.
    """
    # Drawn are cases that compiled code ran through the library too. ``once``: computed once for
    # all that ask this view; ``against``: by caller, the library's case.
    compared = [tax for tax in view.once(taxes) if "native" in tax.against]
    if compared:
        # A single panel needs no title.
        panels = {"": [_row(tax) for tax in compared]}
        draw = partial(dot_figure, panels, "times the cost from compiled code", line_at_one=True)
        yield Drawing("browser-tax", BROWSER_TITLE, alternative(compared), BROWSER_CAPTION, draw)
    # ``folded``: the reader opens the table.
    for table in tax_tables(view):
        yield dataclasses.replace(table, folded=True)


def _row(tax: Tax) -> DotRow:
    """The ratio of a browser's case to the same case from compiled code; without one, why."""
    ratio = tax.slope_ratio("native")
    marks = [Mark(ratio, tax.target.facts.colour)] if ratio is not None else []
    reason = sentence(tax.refused.get("native", ""))
    return DotRow(row_label(tax), marks, reason or "not resolved")


def tax_tables(view: View) -> list[Table]:
    """A table for each browser: each of its cases, and the same case by each caller (Python,
    compiled code) of the WebGPU library inside the browser.
    """
    groups: dict[str, list[Tax]] = {}
    for tax in view.once(taxes):
        groups.setdefault(tax.target.label, []).append(tax)
    return [_table(group) for group in groups.values()]


@dataclasses.dataclass(frozen=True)
class _Row:
    """A row of the table: a case through the browser, or through the library inside it.

    ``ratio``: the browser's cost over that of this row, for rows of the library. ``single_ratio``:
    a single dispatch over the cost, for rows of the browser.
    """

    case: Cell
    through: str | Cell
    record: Record | None
    ratio: str = ""
    single_ratio: str = ""
    remark: str = ""


def _table(found: Sequence[Tax]) -> Table:
    """The table of one browser: a row for each of its cases, and below it a row for each caller of
    the library inside the browser.

    ``found``: the browser's cases, each with the library's cases beside it (``against``) or the
    reasons why these may not be compared (``refused``), by caller.
    """
    # ``tax``: what a browser adds in one of its cases.
    rows = []
    for tax in found:
        rows.append(_browser_row(tax))
        for caller in sorted({*tax.against, *tax.refused}):
            rows.append(_library_row(tax, caller))
    return table_of(table_title(found[0]), _COLUMNS, rows)


def _case(tax: Tax) -> Cell:
    return Cell(tax.target.pattern_label(tax.record), tax.target.stack)


def _browser_row(tax: Tax) -> _Row:
    """The row of a case through the browser: its times, and why it has no cost if it has none."""
    has_cost = tax.record.value("complete") is not None
    return _Row(
        case=_case(tax),
        through="the browser",
        record=tax.record,
        # The time of one dispatch with its wait, over the cost of one more dispatch.
        single_ratio=factor_spread(tax.single_ratio),
        remark="" if has_cost else one_line(why(tax.record, "complete")),
    )


def _library_row(tax: Tax, caller: Caller) -> _Row:
    """The row below it: the same case by one caller of the library inside the browser, and how many
    times as long the browser takes, or why both are not compared.
    """
    return _Row(
        case=_case(tax),
        through=Cell(through_library(tax, caller), tax.library),
        record=tax.against.get(caller),
        # The browser's cost of one more dispatch, over the library's.
        ratio=factor_spread(tax.slope_ratio(caller)),
        remark=sentence(tax.refused.get(caller, "")),
    )


def _time(name: str, row: _Row) -> str:
    return micro_cell(row.record, name)


def _time_column(name: str, hidden: int = 0) -> Column[_Row]:
    """The column of the figure of that name; ``hidden`` as ``Column`` has it."""
    return Column(BROWSER_FIGURES[name], partial(_time, name), is_number=True, hidden=hidden)


_COLUMNS: list[Column[_Row]] = [
    Column("case", operator.attrgetter("case")),
    Column("through", operator.attrgetter("through")),
    _time_column("complete"),
    Column("browser over it", operator.attrgetter("ratio"), is_number=True),
    _time_column("naive", hidden=3),
    Column("single-shot over cost", operator.attrgetter("single_ratio"), is_number=True, hidden=4),
    _time_column("fixed", hidden=2),
    _time_column("empty_wait", hidden=1),
    Column("remark", operator.attrgetter("remark"), hidden=5),
]
"""The cost and its ratio are the answer, so a narrow terminal hides all others first."""
