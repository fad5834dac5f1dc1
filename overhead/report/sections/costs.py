"""Cost per unit by pattern, stack and caller: dots with intervals on a log axis, a panel for each pattern and unit."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import MICRO, count, micro_spread, valued
from overhead.reading.missing_values import why
from overhead.reading.next_run import next_run_text
from overhead.reading.synchronising import adds_only_an_act, representative_act, varied_for_label
from overhead.reading.view import TargetView, View, by_patterns, words
from overhead.report.core.draw import ROW_INCHES, caller_legend, caller_row, canvas, dot_rows
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register
from overhead.results import Record

_Panels = dict[tuple[str, str], dict[str, list[tuple[TargetView, Record]]]]
"""Pattern and unit, then the target's label with what the pattern needs: its records, one a caller."""


@register("costs", "Cost by stack and pattern", 20, page="cases")
def costs(view: View) -> Iterator[Part]:
    panels = _panels(view)
    if not panels:
        yield Text(["No stack that runs its work was measured."])
        return
    yield _drawing(panels)
    yield _table(panels)


def in_pattern_chart(target: TargetView, record: Record) -> bool:
    """Whether the record differs from its base case by pattern and caller alone, or by what its pattern needs (k).

    Of acts that synchronise one of each pattern stands for all, after every step if there is such: they have a section
    of their own.
    """
    varied = target.varied(record)
    if not varied or record.pattern == target.base.pattern:
        return not varied
    if adds_only_an_act(target, record):
        shown = representative_act(target, record.pattern)
        return shown is not None and record.params == shown.params
    return set(varied) == set(target.added(record))


def _label(target: TargetView, record: Record) -> str:
    return ", ".join([target.label, *words(varied_for_label(target, record))])


def _panels(view: View) -> _Panels:
    panels: _Panels = {}
    records = {r.key: (t, r) for t in view.executing for r in t.records if in_pattern_chart(t, r)}
    for record in by_patterns(r for _, r in records.values()):
        target = records[record.key][0]
        panel = panels.setdefault((record.pattern, record.unit), {})
        panel.setdefault(_label(target, record), []).append((target, record))
    return panels


def _drawing(panels: _Panels) -> Drawing:
    heights = [ROW_INCHES * len(rows) for rows in panels.values()]
    figure, grid = canvas(heights)
    for (ax,), ((pattern, unit), rows) in zip(grid, panels.items(), strict=True):
        dot_rows(ax, [caller_row(label, records) for label, records in rows.items()])
        ax.set_title(f"{pattern}: {MICRO} per {unit}")
    callers = {r.caller for rows in panels.values() for records in rows.values() for _, r in records}
    caller_legend(figure, callers)
    stacks = {t.stack for rows in panels.values() for records in rows.values() for t, _ in records}
    return Drawing(
        "costs", "Cost of one more unit",
        f"Dot plot on log axes: microseconds per unit for {count(len(stacks), 'stack')} in "
        f"{count(len(panels), 'pattern')}; the numbers are in the table below.",
        "The slope of the wall time until everything has finished, so the fixed cost of waiting is not in it. Each "
        "panel is one pattern and one unit and has a log axis of its own; lines are 95 % intervals; a hollow mark is "
        "noisy or bimodal; shapes tell who makes the calls. Where a case has no figure its status stands instead.",
        figure,
    )  # fmt: skip


def _table(panels: _Panels) -> Table:
    rows: list[list[str | Cell]] = []
    for (pattern, unit), by_target in panels.items():
        for label, records in by_target.items():
            rows += [[Cell(label, t.stack), pattern, r.caller, unit, *_numbers(r)] for t, r in records]
    columns = ["target", "pattern", "caller", "unit", f"complete, {MICRO}", f"next run, {MICRO}", f"host, {MICRO}",
               f"issue, {MICRO}", f"fixed, {MICRO}", "bound", "remark"]  # fmt: skip
    return Table("All figures by pattern", columns, rows, numeric=(4, 5, 6, 7, 8), folded=True)


def _numbers(record: Record) -> list[str]:
    figures = [record.figure(name) for name in ("complete", "host", "issue", "fixed")]
    complete, *others = [micro_spread(f) if f is not None and valued(f) is not None else "" for f in figures]
    unclear = [f"{f.name} {f.status}" for f in figures if f is not None and f.status != "ok"]
    remark = why(record, "complete") if record.value("complete") is None else ", ".join(unclear)
    return [complete, next_run_text(record), *others, record.bound, remark]
