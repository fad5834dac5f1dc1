"""The pages "Behind the figures": T(n) of each stack's base cases, and of its noisy, nonlinear and bimodal cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.loading.samples import ProcessMedians, medians_by_record
from overhead.reading.format import MICRO, count, micro_spread
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.case_line import (
    DOUBTED,
    MOST_PANELS,
    PAGE,
    QUARTILES_ONLY,
    case_figure,
    lines_path,
    panel_name,
    panels_of,
)
from overhead.report.core.page_list import page_named
from overhead.report.core.registry import register, register_each
from overhead.results import Record
from overhead.words.reasons import sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PANEL_INCHES = 2.9
_READ_AS = (
    "A chain of n units is timed for several n. The cost of one unit is the slope of the line through these times. The "
    "flat part at the left is what a chain costs once. Both axes are logarithmic, so the line looks bent.",
    "Dots: medians of a process. Open diamonds: anchors, longer chains that test the line beyond the n it was fitted "
    "to. Below: how far each of them lies off the line, in percent of T(n), joined within a process. Grey band: the "
    "method's tolerance. A case is called nonlinear where most processes lie outside it by more than their own spread. "
    "An anchor may be off where the processor was slower at that moment; the check allows for that.",
    f'Where a panel says "{QUARTILES_ONLY}", its dots are medians of all processes with their quartiles.',
)


@register(PAGE, "Behind the figures", 10, page=PAGE)
def lines(view: View) -> Iterator[Part]:
    """How to read the panels, and a table of the stacks with the number of cases by status."""
    rows: list[list[str | Cell]] = []
    for stack in (stack for stack in view.stacks if panels_of(view, stack)):
        statuses = Counter(r.status for t in view.executing if t.stack == stack for r in t.records)
        cases = Cell(str(statuses.total()), path=f"{page_named('cases').path}#filter={stack}")
        counts = [statuses["ok"], *(statuses[status] for status in DOUBTED), len(panels_of(view, stack)[:MOST_PANELS])]
        rows.append([Cell(stack, path=lines_path(stack)), cases, *map(str, counts)])
    if rows:
        yield Text(_READ_AS)
        columns = ["stack", "cases", "ok", *DOUBTED, "drawn"]
        yield Table("The cases of each stack, and how many its page draws", columns, rows, numeric=range(1, 7))


@register_each(PAGE, lambda view: [(stack, stack) for stack in view.stacks if panels_of(view, stack)])
def stack_lines(view: View, stack: str) -> Iterator[Part]:
    """A panel for each base case of the stack and for each case that is noisy, nonlinear or bimodal."""
    found = panels_of(view, stack)
    yield Text(_READ_AS, folded="How to read the panels")
    if (left := len(found) - MOST_PANELS) > 0:
        yield Text([f"{count(left, 'more case')} in doubt: overhead show FILE CASE --plot draws any case."])
    for target, record in found[:MOST_PANELS]:
        title = f"{target.short}: {target.pattern_label(record)}, {CALLER_WORDS[record.caller]}"
        alt = f"T(n) and residuals of a case that is {record.status}."
        yield Drawing(panel_name(record), title, alt, _said(record), partial(_draw, view, record))


def _said(record: Record) -> str:
    complete = record.figure("complete")
    value = f"{micro_spread(complete)} {MICRO} per {record.unit}" if record.measured("complete") else ""
    begins = f"from n = {complete.holds_from:,} " if complete and complete.holds_from > 1 else ""
    held = f"a line {begins}up to n = {complete.holds_to:,}" if complete and complete.holds_to else ""
    return f"{record.status}: {'; '.join(filter(None, [value, held, sentence(record.reason)]))}."


def _draw(view: View, record: Record) -> Figure:
    processes = view.once(_medians).get(record.key, [])
    return case_figure(record, processes, view.fingerprint.profile, width=_PANEL_INCHES)


def _medians(view: View) -> dict[str, list[ProcessMedians]]:
    return medians_by_record(view.fingerprint, view.path)
