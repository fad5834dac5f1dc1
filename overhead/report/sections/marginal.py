"""What a submit, a pass, a dispatch and a bind-group change each add, fitted from the patterns together."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import MICRO, micro_spread, valued
from overhead.reading.view import CALLER_WORDS, TargetView, View, named
from overhead.report.core.draw import (
    CALLER_MARKERS,
    INK,
    ROW_INCHES,
    DotRow,
    Mark,
    caller_legend,
    canvas,
    dot_rows,
)
from overhead.report.core.draw import mark as marked
from overhead.report.core.palette import colour
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register
from overhead.results import Comparison, Record

_MARGINAL_TITLES = {
    "per_submit": "a submit",
    "per_pass": "a pass",
    "per_dispatch": "a dispatch",
    "per_bind": "a bind-group change",
}


@register("marginal", "What a submit, a pass, a dispatch and a bind group add", 40, page="variants")
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
    yield _drawing(found)
    yield _table(found)


def _drawing(found: list[tuple[TargetView, Record, Comparison]]) -> Drawing:
    labels = list(dict.fromkeys(t.label for t, _, _ in found))
    figure, grid = canvas([ROW_INCHES * len(labels)] * 2, 2)
    for index, (ax, (name, title)) in enumerate(zip([*grid[0], *grid[1]], _MARGINAL_TITLES.items(), strict=True)):
        rows = [_row(label, [(t, r, c) for t, r, c in found if t.label == label], name) for label in labels]
        dot_rows(ax, rows, log=False)
        ax.axvline(0, color=INK, linewidth=0.8, zorder=1)
        ax.set_title(title)
        if index % 2:
            ax.set_yticklabels([])
        if index > 1:
            ax.set_xlabel(f"{MICRO} each")
    caller_legend(figure, {r.caller for _, r, _ in found})
    return Drawing(
        "marginal", "Marginal costs",
        f"Four dot plots of microseconds for {', '.join(_MARGINAL_TITLES.values())}, by stack; numbers in the "
        "table below.",
        "Fitted over the patterns of one stack together. An interval that reaches zero means that these samples cannot "
        "tell the cost from nothing; such marks are hollow, as are noisy ones. The four scales differ.",
        figure,
    )  # fmt: skip


def _row(label: str, found: list[tuple[TargetView, Record, Comparison]], name: str) -> DotRow:
    marks: list[Mark] = []
    notes: list[str] = []
    for target, record, comparison in found:
        figure = named(comparison, name)
        marks += [
            Mark(m.value, m.low, m.high, m.colour, m.marker, m.hollow or (m.low is not None and m.low <= 0))
            for m in marked(figure, colour(target.stack), CALLER_MARKERS[record.caller])
        ]
        notes += (
            [f"{CALLER_WORDS[record.caller]} {figure.status if figure else 'not fitted'}"]
            if valued(figure) is None
            else []
        )
    return DotRow(label, marks, ", ".join(dict.fromkeys(notes)))


def _table(found: list[tuple[TargetView, Record, Comparison]]) -> Table:
    rows: list[list[str | Cell]] = []
    for target, record, comparison in found:
        figures = [named(comparison, name) for name in _MARGINAL_TITLES]
        reasons = list(dict.fromkeys(f.reason for f in figures if f is not None and f.reason))
        numbers = [micro_spread(f) if f is not None else "" for f in figures]
        rows.append([Cell(target.label, target.stack), CALLER_WORDS[record.caller], *numbers, "; ".join(reasons)])
    columns = ["target", "caller", *(f"{title}, {MICRO}" for title in _MARGINAL_TITLES.values()), "remark"]
    return Table("Marginal costs", columns, rows, numeric=(2, 3, 4, 5))
