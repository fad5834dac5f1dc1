"""What a submit, a pass, a dispatch and a bind-group change each add, fitted from the patterns together."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.format import MICRO, listed, micro_spread, resolved, unresolved
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.dots import DotRow, Mark, dot_panels, mark
from overhead.report.core.draw import CALLER_MARKERS, caller_shapes
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Comparison, Record

_MARGINAL_TITLES = {
    "per_submit": "a submit",
    "per_pass": "a pass",
    "per_dispatch": "a dispatch",
    "per_bind": "a bind-group change",
}
_LEAST_DRAWN = 2
"""Stacks of a panel at least; the table says the same of one."""


@register("marginal", "What a submit, a pass, a dispatch and a bind group add", 40, page="variants", any_run=True)
def marginal(view: View) -> Iterator[Part]:
    found = [
        (view.target(record), record, c)
        for c in view.comparisons("marginal")
        if (record := view.record(c.of)) is not None and record.executes and record.workload == "step"
    ]
    if not found:
        yield Text(
            ["The fit needs per-submit, per-k, per-pass and one-pass of one target in one worker; it has none here."]
        )
        return
    drawn = [one for one in found if any(resolved(one[2].figure(name)) for name in _MARGINAL_TITLES)]
    if figure := _drawing([one for one in drawn if not one[0].software] or drawn):
        yield figure
    yield _table(found)


def _drawing(found: list[tuple[TargetView, Record, Comparison]]) -> Drawing | None:
    """A panel for each cost that several stacks have, all on one axis; None where there is none."""
    found_rows = {title: _rows(found, name) for name, title in _MARGINAL_TITLES.items()}
    panels = [(title, f"{MICRO} each", rows) for title, rows in found_rows.items() if len(rows) >= _LEAST_DRAWN]
    if not panels:
        return None
    figure = dot_panels(panels, caller_shapes({r.caller for _, r, _ in found}))
    return Drawing(
        "marginal",
        "What each part of a submission adds",
        f"Microseconds that {listed([title for title, _, _ in panels])} add, by stack; the numbers are in the table "
        "below.",
        "Fitted over the patterns of one stack together. All panels share one axis. Costs whose interval reaches zero "
        "are in the table only. Hollow: noisy.",
        figure,
    )


def _rows(found: list[tuple[TargetView, Record, Comparison]], name: str) -> list[DotRow]:
    rows: dict[str, list[Mark]] = {}
    for target, record, comparison in found:
        caller = record.caller
        marks = mark(comparison.figure(name), colour(target.stack), CALLER_MARKERS[caller], CALLER_WORDS[caller])
        if marks:
            rows.setdefault(target.short, []).extend(marks)
    return [DotRow(label, marks) for label, marks in rows.items()]


def _table(found: list[tuple[TargetView, Record, Comparison]]) -> Table:
    rows: list[list[str | Cell]] = []
    for target, record, comparison in found:
        figures = [comparison.figure(name) for name in _MARGINAL_TITLES]
        reasons = list(dict.fromkeys(f.reason for f in figures if f is not None and f.reason))
        numbers = [micro_spread(f) if resolved(f) and f is not None else unresolved(f) for f in figures]
        rows.append([Cell(target.short, target.stack), CALLER_WORDS[record.caller], *numbers, "; ".join(reasons)])
    columns = ["target", "called", *(f"{title}, {MICRO}" for title in _MARGINAL_TITLES.values()), "remark"]
    return Table("Marginal costs", columns, rows, numeric=(2, 3, 4, 5))
