"""What the browser adds: its cost, one-off cost and wait beside those of the library inside it, on
one adapter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, micro_cell
from overhead.reading.browser_tax import Tax, taxes
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.registry import register
from overhead.results import Record
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

_CASE, _THROUGH, _COST, _RATIO, _SINGLE_SHOT, _OVERSTATES, _ONE_OFF, _EMPTY_WAIT, _REMARK = range(9)
"""The columns of the table."""


@register("browser-tax", "What the browser adds", 80, page="machines", any_run=True)
def browser_tax(view: View) -> Iterator[Part]:
    """A figure of ratios and a table for each browser; nothing without a browser."""
    compared = [tax for tax in view.once(taxes) if "native" in tax.against]
    if compared:
        panels = {"": [_row(tax) for tax in compared]}
        draw = partial(dot_figure, panels, "times the cost from compiled code", line_at_one=True)
        yield Drawing("browser-tax", BROWSER_TITLE, alternative(compared), BROWSER_CAPTION, draw)
    yield from (dataclasses.replace(table, folded=True) for table in tax_tables(view))


def _row(tax: Tax) -> DotRow:
    times = tax.slope_ratio("native")
    marks = [Mark(times, tax.target.facts.colour)] if times is not None else []
    return DotRow(row_label(tax), marks, sentence(tax.refused.get("native", "")) or "not resolved")


def tax_tables(view: View) -> list[Table]:
    """A table for each browser: each of its cases, and the same case by each caller of the library
    inside it.
    """
    groups: dict[str, list[Tax]] = {}
    for tax in view.once(taxes):
        groups.setdefault(tax.target.label, []).append(tax)
    return [_table(group) for group in groups.values()]


def _table(found: list[Tax]) -> Table:
    rows: list[list[str | Cell]] = []
    for tax in found:
        case = Cell(tax.target.pattern_label(tax.record), tax.target.stack)
        lacking = (
            one_line(why(tax.record, "complete")) if tax.record.value("complete") is None else ""
        )
        rows.append(
            [case, "the browser", *_cells(tax.record, "", factor_spread(tax.single_ratio)), lacking]
        )
        for caller in sorted({*tax.against, *tax.refused}):
            cells = _cells(tax.against.get(caller), factor_spread(tax.slope_ratio(caller)), "")
            name = Cell(through_library(tax, caller), tax.library)
            refused = sentence(tax.refused.get(caller, ""))
            rows.append([case, name, *cells, refused])
    return Table(
        table_title(found[0]),
        [
            "case",
            "through",
            BROWSER_FIGURES["complete"],
            "browser over it",
            BROWSER_FIGURES["naive"],
            "single-shot over cost",
            BROWSER_FIGURES["fixed"],
            BROWSER_FIGURES["empty_wait"],
            "remark",
        ],
        rows,
        numeric=range(_COST, _REMARK),
        optional=(_EMPTY_WAIT, _ONE_OFF, _SINGLE_SHOT, _OVERSTATES, _REMARK),
    )


def _cells(record: Record | None, ratio: str, single_ratio: str) -> list[str]:
    """The cells of numbers. ``ratio``: of the slopes; ``single_ratio``: of a single dispatch to the
    slope.
    """
    return [
        micro_cell(record, "complete"),
        ratio,
        micro_cell(record, "naive"),
        single_ratio,
        micro_cell(record, "fixed"),
        micro_cell(record, "empty_wait"),
    ]
