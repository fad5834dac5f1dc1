"""What one change to the base case does: dependency, bind groups, arguments, waits, bindings, allocation, ..."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from overhead.reading.format import MICRO, count, listed, plain
from overhead.reading.sources import Provenance, apart, source_of
from overhead.reading.synchronising import synchronises
from overhead.reading.view import CALLER_WORDS, TargetView, View, words
from overhead.report.core.draw import ONE_LINE_INCHES, DotRow, caller_legend, caller_row, canvas, dot_rows, small_titles
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.report.core.registry import register
from overhead.results import Record


@dataclasses.dataclass(frozen=True)
class _Varied:
    """A base case and the cases that differ from it by parameters alone, all of one run and board.

    ``run`` is the start of the run where it is another one than that of the target's own base case.
    """

    target: TargetView
    base: Record
    variants: list[Record]
    run: str = ""

    @property
    def records(self) -> list[Record]:
        return [self.base, *self.variants]

    @property
    def label(self) -> str:
        return f"{self.target.label}, {self.target.base.pattern}" + (f", run {self.run[5:16]}" if self.run else "")


@register("axes", "What one change does", 80, page="variants")
def axes(view: View) -> Iterator[Part]:
    found, refused = list[_Varied](), list[str]()
    for target in view.executing:
        own, reasons = _compared(view, target)
        found += own
        refused += reasons
    if not found:
        yield Text(["No case changes the base case by a parameter.", *refused])
        return
    figure, grid = canvas([ONE_LINE_INCHES * len(_rows(each)) for each in found], around=0.75)
    for (ax,), each in zip(grid, found, strict=True):
        dot_rows(ax, _rows(each))
        small_titles(ax, each.label, f"{MICRO} per {plain(each.base.unit, 20)}")
    callers = {r.caller for each in found for r in each.records}
    caller_legend(figure, callers)
    yield Drawing(
        "axes", "The base case and its variants",
        f"Dot plots on log axes: microseconds per unit of the base case and of each variant, for "
        f"{count(len({each.target.key for each in found}), 'target')}; the numbers are in the table below.",
        "One parameter changed at a time. Base and variants of a panel come from one run on one board; a panel of "
        "another run than the page's names its month, day and time (UTC). They are "
        "separate measurements, so small differences between rows mean nothing unless the intervals are apart.",
        figure,
    )  # fmt: skip
    if refused:
        yield Text(refused)
    yield Table(
        "The base case and its variants",
        ["target", "variant", "caller", f"complete, {MICRO}", f"host, {MICRO}", "remark"],
        [[Cell(each.label, each.target.stack), _variant(each.target, r), CALLER_WORDS[r.caller],
          micro_cell(r, "complete"), micro_cell(r, "host"), r.reason]
         for each in found for r in each.records],
        numeric=(3, 4), folded=True,
    )  # fmt: skip


def _compared(view: View, target: TargetView) -> tuple[list[_Varied], list[str]]:
    """The target's variants beside the base case of their own run, and sentences on those whose run has none."""
    by_run: dict[Provenance, list[Record]] = {}
    for record in target.records:
        if record is not target.base and _is_variant(target, record):
            by_run.setdefault(source_of(record), []).append(record)
    found, refused = list[_Varied](), list[str]()
    for source, variants in by_run.items():
        if not apart(variants[0], target.base):
            found.append(_Varied(target, target.base, variants))
            continue
        base = _same_case(view.own_run(variants[0]), variants[0], target.base)
        if base is not None:
            found.append(_Varied(target, base, variants, source.created))
        else:
            names = listed([_variant(target, r) for r in variants])
            refused.append(f"Not shown, {target.label}: {names}; {apart(variants[0], target.base)}.")
    return found, refused


def _same_case(own: View, variant: Record, base: Record) -> Record | None:
    """The base case in the run and on the board of the variant; None where that run did not measure it."""
    return next(
        (r for r in own.fingerprint.records
         if (r.stack, r.api, r.adapter, r.case) == (base.stack, base.api, base.adapter, base.case)
         and not apart(r, variant)),
        None,
    )  # fmt: skip


def _is_variant(target: TargetView, record: Record) -> bool:
    """Whether the record differs from the base case by parameters alone."""
    alike = record.pattern == target.base.pattern and record.workload == target.base.workload
    return alike and not synchronises(record) and bool(target.varied(record))


def _rows(each: _Varied) -> list[DotRow]:
    groups: dict[str, list[Record]] = {}
    for r in each.records:
        groups.setdefault(_variant(each.target, r), []).append(r)
    return [caller_row(name, [(each.target, r) for r in group]) for name, group in groups.items()]


def _variant(target: TargetView, record: Record) -> str:
    return " ".join(words(target.varied(record))) or "base"
