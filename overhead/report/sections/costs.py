"""Cost per unit by stack and pattern: a shaded table, cheap cells light and dear ones dark; and every figure of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import MICRO, micro, micro_spread, unresolved
from overhead.reading.missing_values import why
from overhead.reading.synchronising import adds_only_an_act, representative_act
from overhead.reading.view import CALLER_WORDS, TargetView, View, by_patterns, words
from overhead.report.core.registry import register
from overhead.results import Record, Scalar

_Row = tuple[str, str, str]
"""Target with the parameters that its pattern does not need, caller in words, and unit."""
_Column = tuple[str, tuple[tuple[str, Scalar], ...]]
"""Pattern, and the parameters that it needs, such as k."""
_SHADED_DECADES = 3.0
"""A cost so many powers of ten below the dearest has no shade."""
_READ_AS = (
    "Times are per unit of work until everything has finished, without the fixed cost of a wait. A row is a stack and "
    "a caller, a column a pattern. The darker a cell, the more one unit costs; a pointer shows the interval."
)


@register("costs", "Cost by stack and pattern", 20, page="cases")
def costs(view: View) -> Iterator[Part]:
    """A table of the cost of one more unit by stack (rows) and pattern (columns), the cheap cells light."""
    found = {r.key: (t, r) for t in view.executing for r in t.records if is_in_pattern_table(t, r)}
    ordered = [found[r.key] for r in by_patterns(r for _, r in found.values())]
    if not ordered:
        yield Text(["No stack that runs its work was measured."])
        return
    yield Text([_READ_AS])
    yield _shaded(ordered)


def is_in_pattern_table(target: TargetView, record: Record) -> bool:
    """Whether the table has the record: it differs from the base case only by pattern, caller and what a pattern needs.

    Of acts that synchronise one of each pattern stands for all, after every step if there is such: they have a section
    of their own.
    """
    varied = target.varied(record)
    if not varied or record.pattern == target.base.pattern:
        return not varied
    if adds_only_an_act(target, record):
        shown = representative_act(target, record.pattern)
        return shown is not None and record.params == shown.params
    return set(varied) == set(target.pattern_params(record))


def _shaded(found: Sequence[tuple[TargetView, Record]]) -> Table:
    """Stacks by patterns."""
    rows: dict[_Row, tuple[TargetView, dict[_Column, Record]]] = {}
    columns: dict[_Column, None] = {}
    for target, record in found:
        if record.pattern == "launches":  # graphs of several sizes have a table of their own
            continue
        column = (record.pattern, tuple(sorted(_needed(target, record).items())))
        row = (target.short, CALLER_WORDS[record.caller], record.unit)
        rows.setdefault(row, (target, {}))[1][column] = record
        columns[column] = None
    patterns = [pattern for pattern, _ in columns]
    ordered = sorted(columns, key=lambda c: (patterns.index(c[0]), *(v for _, v in c[1] if isinstance(v, int | float))))
    high = max((v for _, cells in rows.values() for r in cells.values() if (v := _cost(r)) is not None), default=1.0)

    def rank(row: _Row) -> tuple[bool, bool, int, float]:
        """Hardware first, then the rows with the first column, the cheapest of them first."""
        target, cells = rows[row]
        first = next(i for i, column in enumerate(ordered) if column in cells)
        cost = _cost(cells[ordered[first]])
        return target.software, target.first.api == "CPU", first, math.inf if cost is None else cost

    def cell(record: Record | None) -> str | Cell:
        if record is None:
            return ""
        figure, value = record.figure("complete"), _cost(record)
        if figure is None or value is None:
            return Cell(record.status if figure is None else unresolved(figure), hover=why(record, "complete"))
        unclear = "" if figure.status == "ok" else f" {figure.status}"
        shade = max(0.0, 1 + math.log10(value / high) / _SHADED_DECADES)
        return Cell(micro(figure) + unclear, shade=shade, hover=f"{micro_spread(figure)} {MICRO} per {record.unit}")

    return Table(
        f"Cost of one more unit, {MICRO}, by stack and pattern",
        ["target", "called", "per", *(" ".join([pattern, *words(dict(needed))]) for pattern, needed in ordered)],
        [
            [Cell(row[0], rows[row][0].stack), *row[1:], *(cell(rows[row][1].get(c)) for c in ordered)]
            for row in sorted(rows, key=rank)
        ],
        numeric=range(3, 3 + len(ordered)),
    )


def _needed(target: TargetView, record: Record) -> dict[str, Scalar]:
    """The parameters that the pattern needs; a synchronisation that stands for others is not told apart."""
    if record.pattern == target.base.pattern or adds_only_an_act(target, record):
        return {}
    return {k: v for k, v in target.pattern_params(record).items() if k not in ("sync", "every")}


def _cost(record: Record) -> float | None:
    """The cost in ns; None where it is not resolved."""
    found = record.measured("complete")
    return found.value if found is not None and found.resolved else None
