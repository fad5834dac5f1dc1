"""What one change to the base case does: dependency, bind groups, arguments, waits, bindings, allocation, ..."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import MICRO, count, micro_spread, plain
from overhead.reading.synchronising import synchronises
from overhead.reading.view import CALLERS, TargetView, View, words
from overhead.report.core.draw import LINE, MARKERS, DotRow, canvas, dot_rows, mark, marker_legend, two_lines
from overhead.report.core.palette import colour
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register
from overhead.results import Record


@register("axes", "What one change does", 80)
def axes(view: View) -> Iterator[Part]:
    found = [(t, _changed(t)) for t in view.executing]
    found = [(t, records) for t, records in found if len(records) > 1]
    if not found:
        yield Text(["No case changes the base case by a parameter."])
        return
    figure, grid = canvas([LINE * len(_rows(t, records)) for t, records in found], around=0.75)
    for (ax,), (target, records) in zip(grid, found, strict=True):
        dot_rows(ax, _rows(target, records))
        ax.set_title(two_lines(f"{target.label}, {target.base.pattern}"), fontsize=8)
        ax.set_xlabel(f"{MICRO} per {plain(target.base.unit, 20)}", fontsize=7.5, labelpad=1)
    callers = {r.caller for _, records in found for r in records}
    marker_legend(figure, {c: MARKERS[c] for c in CALLERS if c in callers})
    yield Drawing(
        "axes", "The base case and its variants",
        f"Dot plots on log axes: microseconds per unit of the base case and of each variant, for "
        f"{count(len(found), 'target')}; the numbers are in the table below.",
        "One parameter changed at a time. The variants are separate measurements, so small differences between rows "
        "mean nothing unless the intervals are apart.",
        figure,
    )  # fmt: skip
    yield Table(
        "The base case and its variants",
        ["target", "variant", "caller", f"complete, {MICRO}", f"host, {MICRO}", "remark"],
        [[Cell(t.label, t.stack), _variant(t, r), r.caller, _number(r, "complete"), _number(r, "host"), r.reason]
         for t, records in found for r in records],
        numeric=(3, 4), folded=True,
    )  # fmt: skip


def _changed(target: TargetView) -> list[Record]:
    """The base case first, then the cases that differ from it by parameters alone."""
    same = [r for r in target.records if r.pattern == target.base.pattern and r.workload == target.base.workload
            and not synchronises(r)]  # fmt: skip
    return sorted(
        (r for r in same if r is target.base or target.varied(r)), key=lambda r: _variant(target, r) != "base"
    )


def _rows(target: TargetView, records: list[Record]) -> list[DotRow]:
    groups: dict[str, list[Record]] = {}
    for r in records:
        groups.setdefault(_variant(target, r), []).append(r)
    return [_row(target, name, group) for name, group in groups.items()]


def _row(target: TargetView, name: str, records: list[Record]) -> DotRow:
    marks = [m for r in records for m in mark(r.figure("complete"), colour(target.stack), MARKERS[r.caller])]
    absent = [f"{r.caller} {(r.figure('complete') or r).status}" for r in records if r.value("complete") is None]
    return DotRow(name, marks, ", ".join(absent))


def _variant(target: TargetView, record: Record) -> str:
    return " ".join(words(target.varied(record))) or "base"


def _number(record: Record, name: str) -> str:
    figure = record.figure(name)
    return micro_spread(figure) if figure is not None else ""
