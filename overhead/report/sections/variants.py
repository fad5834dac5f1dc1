"""What one change to the base case does: dependency, bind groups, arguments, waits, bindings, allocation, ..."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import MICRO, count, plain
from overhead.reading.synchronising import synchronises
from overhead.reading.view import TargetView, View, words
from overhead.report.core.draw import ONE_LINE_INCHES, DotRow, caller_legend, caller_row, canvas, dot_rows, small_titles
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.report.core.registry import register
from overhead.results import Record


@register("axes", "What one change does", 80)
def axes(view: View) -> Iterator[Part]:
    found = [(t, _changed(t)) for t in view.executing]
    found = [(t, records) for t, records in found if len(records) > 1]
    if not found:
        yield Text(["No case changes the base case by a parameter."])
        return
    figure, grid = canvas([ONE_LINE_INCHES * len(_rows(t, records)) for t, records in found], around=0.75)
    for (ax,), (target, records) in zip(grid, found, strict=True):
        dot_rows(ax, _rows(target, records))
        small_titles(ax, f"{target.label}, {target.base.pattern}", f"{MICRO} per {plain(target.base.unit, 20)}")
    callers = {r.caller for _, records in found for r in records}
    caller_legend(figure, callers)
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
        [[Cell(t.label, t.stack), _variant(t, r), r.caller, micro_cell(r, "complete"), micro_cell(r, "host"), r.reason]
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
    return [caller_row(name, [(target, r) for r in group]) for name, group in groups.items()]


def _variant(target: TargetView, record: Record) -> str:
    return " ".join(words(target.varied(record))) or "base"
