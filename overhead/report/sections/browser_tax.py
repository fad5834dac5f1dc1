"""What the browser adds: its slope, fixed cost and wait beside those of the library inside it, on one adapter."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, micro_cell
from overhead.reading.browser_tax import Tax, taxes
from overhead.reading.format import MICRO, factor_spread
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import register
from overhead.results import Record

_COMPARED_FIGURES = {"complete": "slope", "fixed": "fixed", "empty_wait": "empty wait", "naive": "T(1)"}


@register("browser-tax", "What the browser adds", 48, page="variants", any_run=True)
def browser_tax(view: View) -> Iterator[Part]:
    """A table for each browser; nothing without a browser."""
    yield from tax_tables(view)


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
        lacking = why(tax.record, "complete") if tax.record.value("complete") is None else ""
        rows.append([case, "the browser", *_numbers(tax.record), "", factor_spread(tax.single_ratio), lacking])
        for caller in sorted({*tax.against, *tax.refused}):
            numbers = _numbers(tax.against.get(caller))
            name = Cell(f"{tax.library}, {CALLER_WORDS[caller]}", tax.library)
            rows.append([case, name, *numbers, factor_spread(tax.slope_ratio(caller)), "", tax.refused.get(caller, "")])
    return Table(
        f"{found[0].target.label}, beside {found[0].library}",
        [
            "case",
            "through",
            *(f"{title}, {MICRO}" for title in _COMPARED_FIGURES.values()),
            "the browser's slope is",
            "T(1) overstates the slope",
            "remark",
        ],
        rows,
        numeric=range(2, 8),
        optional={3: 4, 4: 5, 5: 2, 7: 3, 8: 1},
    )


def _numbers(record: Record | None) -> list[str]:
    return [micro_cell(record, name) for name in _COMPARED_FIGURES]
