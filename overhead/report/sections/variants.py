"""What one change to the base case does: dependency, bind groups, arguments, waits, allocation, ..."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, factor_spread, listed
from overhead.reading.synchronising import synchronises
from overhead.reading.view import CALLER_WORDS, TargetView, View, with_fields, words
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.draw import CALLER_MARKERS, caller_legend
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record, Value, ratio, why_apart
from overhead.workloads import OPERATIONS


@dataclasses.dataclass(frozen=True)
class _Change:
    """A case that differs from ``base`` by parameters alone; both have one caller and one board."""

    target: TargetView
    base: Record
    record: Record

    @property
    def what(self) -> str:
        """What changed: ``arguments=32``."""
        return " ".join(words(self.target.varied(self.record)))

    @property
    def label(self) -> str:
        """The target and the change: ``dawn, arguments=32``."""
        return f"{self.target.short}, {self.what}"

    @property
    def times(self) -> Value | None:
        """The cost with the change over the cost without it; None where one of them has no value."""
        return ratio(self.record.measured("complete"), self.base.measured("complete"))

    @property
    def matters(self) -> bool:
        """Whether the interval of the ratio leaves out 1."""
        found = self.times
        return found is not None and (found.floor > 1 or found.ceiling < 1)


@register("axes", "What one change does", 20, page="variants")
def one_change(view: View) -> Iterator[Part]:
    """Each case that differs from the base case by parameters: a figure of its cost as a multiple, and a table."""
    found, refused = list[_Change](), list[str]()
    for target in view.executing:
        own, reasons = _changes(view, target)
        found += own
        refused += reasons
    if not found:
        yield Text(["No case changes the base case by a parameter.", *refused])
        return
    drawn = [c for c in found if c.matters]
    yield _drawing(drawn, _table(found)) if drawn else _table(found)
    if refused:
        yield Text(refused, quiet=True)


def _drawing(found: list[_Change], table: Table) -> Drawing:
    rows: dict[str, list[_Change]] = {}
    for change in found:
        rows.setdefault(change.label, []).append(change)
    drawn = [DotRow(label, [_mark(c) for c in changes]) for label, changes in rows.items()]
    shapes = caller_legend(c.record.caller for c in found)
    draw = partial(dot_figure, {"": drawn}, "times the cost of the base case", shapes, line_at_one=True)
    most = max(found, key=lambda c: c.times.value if c.times else 0.0)
    least = min(found, key=lambda c: c.times.value if c.times else 1.0)
    ends = [most] if most is least else [most, least]
    said = [f"{c.label} {factor_spread(c.times)}" for c in ends if c.times]
    return Drawing(
        "axes",
        "What one change does to the cost of one more unit",
        f"The cost with one change as a multiple of the base case, at the ends {'; '.join(said)}.",
        "One parameter changed at a time; left of the line a unit is cheaper with the change. Base case and variant "
        "come from one run on one board and have one caller. The interval is all that both intervals allow; overhead "
        "compare RUN --across compares them process by process. Changes whose interval holds 1 are in the table only.",
        draw,
        table=table,
    )


def _mark(change: _Change) -> Mark:
    return Mark(change.times or Value(1.0), colour(change.target.stack), CALLER_MARKERS[change.record.caller])


def _table(found: list[_Change]) -> Table:
    return Table(
        "Every change",
        ["target", "change", "called", "per", f"base case, {MICRO}", f"with the change, {MICRO}", "multiple", "remark"],
        [[Cell(c.target.short, c.target.stack), c.what, CALLER_WORDS[c.record.caller], c.record.unit,
          micro_cell(c.base, "complete"), micro_cell(c.record, "complete"),
          factor_spread(c.times), c.record.reason] for c in found],
        numeric=(4, 5, 6), folded=True,
    )  # fmt: skip


def _changes(view: View, target: TargetView) -> tuple[list[_Change], list[str]]:
    """The target's variants, each with the base case of its caller, and a sentence on those without one."""
    variants = [r for r in target.records if _is_variant(target, r)]
    found = [_Change(target, base, r) for r in variants if (base := _base(view, target, r)) is not None]
    known = {change.record.key for change in found}
    lacking = list(dict.fromkeys(" ".join(words(target.varied(r))) for r in variants if r.key not in known))
    reason = "the base case was not measured by the same caller on the same board"
    return found, [f"Not compared, {target.short}: {listed(lacking)}; {reason}."] if lacking else []


def _base(view: View, target: TargetView, variant: Record) -> Record | None:
    """The base case by the variant's caller on its board; None where it was not measured."""
    like = ("stack", "api", "adapter", "pattern", "workload", "dependency", "params")
    fields = {name: getattr(target.base, name) for name in like}
    same = with_fields(view.fingerprint.records, caller=variant.caller, **fields)
    return next((r for r in same if not why_apart(r.device, variant.device)), None)


def _is_variant(target: TargetView, record: Record) -> bool:
    """Whether the record differs from the base case by parameters alone, or by parameters and caller."""
    alike = record.pattern == target.base.pattern and record.workload == target.base.workload
    alike = alike and not record.is_ufunc_loop
    return alike and record.workload != OPERATIONS and not synchronises(record) and bool(target.varied(record))
