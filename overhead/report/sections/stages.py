"""Each call's own time inside the chain, timed one by one, and whether the calls add up to the unstaged figure."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.checks import stages_check, verdict
from overhead.reading.format import MICRO, micro, micro_spread, number, plain
from overhead.reading.host_shares import staged
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.dots import DotRow, dot_panels, mark
from overhead.report.core.draw import CALLER_MARKERS, ONE_LINE_INCHES, caller_shapes
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Figure, Record

_LEAST_DRAWN = 2
"""Calls of a panel at least."""
_Group = list[tuple[Record, list[Figure]]]


@register("stages", "Each call's own time", 75, page="cases", any_run=True)
def stages(view: View) -> Iterator[Part]:
    found: list[tuple[TargetView, str, _Group]] = []
    for target in view.executing:
        groups: dict[str, _Group] = {}
        for record, figures in staged(target):
            groups.setdefault(target.pattern_label(record), []).append((record, figures))
        found += [(target, pattern, group) for pattern, group in groups.items()]
    if not found:
        yield Text(["No case was timed call by call."])
        return
    if drawn := [(t, pattern, group) for t, pattern, group in found if len(_calls(group)) >= _LEAST_DRAWN]:
        yield _drawing(drawn)
    yield Table(
        f"Do the calls add up to what issuing costs? {MICRO} per unit",
        ["target", "pattern", "called", "sum of the calls", "issue, in the same rounds", "verdict"],
        [_adds_up(t, pattern, r) for t, pattern, group in found for r, _ in group],
        numeric=(3, 4),
        folded=True,
    )
    rows: list[list[str | Cell]] = [
        [Cell(t.short, t.stack), pattern, CALLER_WORDS[r.caller], _call(f), micro_spread(f), f.reason]
        for t, pattern, group in found
        for r, figures in group
        for f in figures
    ]
    columns = ["target", "pattern", "called", "call", f"{MICRO} per unit", "remark"]
    yield Table("Calls, timed one by one", columns, rows, numeric=(4,), folded=True)


def _drawing(found: list[tuple[TargetView, str, _Group]]) -> Drawing:
    panels = []
    for target, pattern, group in found:
        rows = [
            DotRow(
                call,
                [
                    m
                    for r, figures in group
                    for f in figures
                    if _call(f) == call
                    for m in mark(f, colour(target.stack), CALLER_MARKERS[r.caller], CALLER_WORDS[r.caller])
                ],
            )
            for call in _calls(group)
        ]
        panels.append((f"{target.short}, {pattern}", f"{MICRO} per {plain(group[0][0].unit, 20)}", rows))
    callers = {r.caller for _, _, group in found for r, _ in group}
    figure = dot_panels(panels, caller_shapes(callers), row=ONE_LINE_INCHES)
    return Drawing(
        "stages",
        "Calls, timed one by one",
        f"The dearest call of each chain, in microseconds: {'; '.join(_dearest(*one) for one in found)}.",
        "A clock reading stands between the calls; its own measured cost is subtracted. All panels share one axis.",
        figure,
    )


def _dearest(target: TargetView, pattern: str, group: _Group) -> str:
    found = max((f for _, figures in group for f in figures), key=lambda f: f.measured.value if f.measured else 0.0)
    return f"{target.short}, {pattern}: {_call(found)} {micro(found)}"


def _calls(group: _Group) -> list[str]:
    return list(dict.fromkeys(_call(f) for _, figures in group for f in figures))


def _call(figure: Figure) -> str:
    return figure.name.removeprefix("stage:")


def _adds_up(target: TargetView, pattern: str, record: Record) -> list[str | Cell]:
    check, issue = stages_check(record), record.figure("unstaged")
    sums = [number(check.predicted / 1e3)] if check is not None else [""]
    sums += [micro_spread(issue) if issue is not None else "missing"]
    said = verdict(check) if check is not None else "a part has no figure"
    return [Cell(target.short, target.stack), pattern, CALLER_WORDS[record.caller], *sums, said]
