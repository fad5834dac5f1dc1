"""What the browser adds: its cost, one-off cost and wait beside those of the library inside it, on one adapter."""

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
    """A table for each browser: each of its cases, and the same case by each caller of the library inside it."""
    groups: dict[str, list[Tax]] = {}
    for tax in view.once(taxes):
        groups.setdefault(tax.target.label, []).append(tax)
    return [_table(group) for group in groups.values()]


def _table(found: list[Tax]) -> Table:
    rows: list[list[str | Cell]] = []
    for tax in found:
        case = Cell(tax.target.pattern_label(tax.record), tax.target.stack)
        lacking = one_line(why(tax.record, "complete")) if tax.record.value("complete") is None else ""
        rows.append([case, "the browser", *_numbers(tax.record), "", factor_spread(tax.single_ratio), lacking])
        for caller in sorted({*tax.against, *tax.refused}):
            numbers = _numbers(tax.against.get(caller))
            name = Cell(through_library(tax, caller), tax.library)
            refused = sentence(tax.refused.get(caller, ""))
            rows.append([case, name, *numbers, factor_spread(tax.slope_ratio(caller)), "", refused])
    return Table(
        table_title(found[0]),
        [
            "case",
            "through",
            *BROWSER_FIGURES.values(),
            "browser over it",
            "single-shot over cost",
            "remark",
        ],
        rows,
        numeric=range(2, 8),
        optional={3: 4, 4: 5, 5: 2, 7: 3, 8: 1},
    )


def _numbers(record: Record | None) -> list[str]:
    return [micro_cell(record, name) for name in BROWSER_FIGURES]
