"""What the browser adds: its slope, fixed cost and wait beside those of the library inside it, on one adapter."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, micro_cell
from overhead.reading.browser_tax import Tax, taxes
from overhead.reading.format import MICRO, factor_spread, resolved
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, View, words
from overhead.report.core.dots import DotRow, Mark, dot_figure, resolved_mark
from overhead.report.core.draw import CALLER_MARKERS, caller_legend
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record

_COMPARED_FIGURES = {"complete": "slope", "fixed": "fixed", "empty_wait": "empty wait", "naive": "T(1)"}


@register("browser-tax", "What the browser adds", 48, page="variants", any_run=True)
def browser_tax(view: View) -> Iterator[Part]:
    """A figure, and a table for each browser; nothing without a browser."""
    groups = _by_browser(view).items()
    drawn = {label: [t for t in group if resolved(t.record.figure("complete"))] for label, group in groups}
    if drawn := {label: group for label, group in drawn.items() if group}:
        yield _drawing(drawn)
    yield from tax_tables(view)


def tax_tables(view: View) -> list[Table]:
    """A table for each browser: each of its cases, and the same case by each caller of the library inside it."""
    return [_table(group) for group in _by_browser(view).values()]


def _by_browser(view: View) -> dict[str, list[Tax]]:
    groups: dict[str, list[Tax]] = {}
    for tax in view.once(taxes):
        groups.setdefault(tax.target.label, []).append(tax)
    return groups


def _drawing(groups: dict[str, list[Tax]]) -> Drawing:
    panels = {
        f"{label} and {group[0].library}": [DotRow(_short(tax), _marks(tax), "not resolved") for tax in group]
        for label, group in groups.items()
    }
    callers = {c for group in groups.values() for tax in group for c in ("browser", *tax.against)}
    return Drawing(
        "browser-tax",
        "A browser and the library inside it",
        "The cost of one more unit in the browser and through its library; the numbers are in the table below.",
        "Chromium holds Dawn and Firefox holds wgpu; each is set against that library alone, on the same adapter. "
        "Drawn: the cost of one more unit. The table has T(1), which in a browser is mostly its wait.",
        partial(dot_figure, panels, f"slope, {MICRO} per unit", caller_legend(callers)),
    )


def _marks(tax: Tax) -> list[Mark]:
    found = [("browser", tax.target.stack, tax.record), *((c, tax.library, r) for c, r in tax.against.items())]
    return [m for c, stack, r in found for m in resolved_mark(r.figure("complete"), colour(stack), CALLER_MARKERS[c])]


def _short(tax: Tax) -> str:
    """The case without the names of what speaks for itself: ``per-submit rotated``."""
    varied = tax.target.varied(tax.record)
    shown = zip(words(varied), varied.values(), strict=True)
    return " ".join([tax.record.pattern, *(w.partition("=")[2] if isinstance(v, str) else w for w, v in shown)])


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
        folded=True,
        optional={3: 4, 4: 5, 5: 2, 7: 3, 8: 1},
    )


def _numbers(record: Record | None) -> list[str]:
    return [micro_cell(record, name) for name in _COMPARED_FIGURES]
