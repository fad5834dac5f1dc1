"""Sections of the front page: what one dispatch costs through each stack, as a figure and as a table, and findings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Listing, Part, Table, Text, micro_cell
from overhead.reading.dispatch_costs import (
    KIND_TITLES,
    KIND_WORDS,
    DispatchCosts,
    DispatchRow,
    Kind,
    dispatch_costs,
    mark_text,
    met_below,
    met_range,
)
from overhead.reading.dispatch_sentences import lead_sentences, limit_sentences, trust_sentences
from overhead.reading.findings import findings_of
from overhead.reading.format import MICRO, between, count, listed, plain
from overhead.reading.next_run import next_run_text
from overhead.reading.summary import missing_stacks, software_sentence, speed_change
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.case_line import line_link
from overhead.report.core.headline_figure import headline_figure, rows_drawn
from overhead.report.core.registry import register
from overhead.words.reasons import sentence

_TIMES = [f"{what}, {MICRO}" for what in ("one more", "CPU time", "next run", "met")]
_MOST_REASONS = 12
"""Missing stacks whose reasons stand on the front page where nothing was measured."""


@register("headline", "What one dispatch costs", 5)
def headline(view: View) -> Iterator[Part]:
    """The headline figure between sentences; sentences on the reasons where no cost is resolved."""
    costs = view.once(dispatch_costs)
    if costs is None or not any(row.marks for row in costs.rows):
        yield Text([_nothing(view, costs)], lead=True)
        rows = [f"{row.label}: {sentence(row.reasons)}." for row in costs.rows] if costs is not None else []
        lacking = view.fingerprint.unavailable
        absent = [f"{plain(one.stack, 32)}: {sentence(one.reason)}" for one in lacking[:_MOST_REASONS]]
        if len(lacking) > _MOST_REASONS:
            absent.append(f"{count(len(lacking) - _MOST_REASONS, 'more missing stack')}: under All cases.")
        if said := [*rows, *absent, *filter(None, [software_sentence(view)])]:
            yield Text(said, quiet=True)
        return
    if not any(row.is_resolved(kind) for row in costs.rows for kind in row.marks):
        yield Text([f"{_nothing(view, costs)} overhead doctor names what disturbs a measurement on this machine."])
    yield Text(lead_sentences(costs), lead=True)
    title = f"{costs.title}, {MICRO} per dispatch"
    yield Drawing("headline", title, _alternative(costs), _caption(costs), partial(headline_figure, costs))
    missing = missing_stacks(view, "under All cases")
    remarks = (*trust_sentences(costs), software_sentence(view), speed_change(view), missing)
    yield Text([*limit_sentences(costs), *filter(None, remarks)])


def _nothing(view: View, costs: DispatchCosts | None) -> str:
    if costs is not None:
        return "This run does not resolve the cost of a dispatch through any stack."
    if view.fingerprint.contention or any(r.value("complete") for t in view.executing for r in t.records):
        return "No stack ran single dispatches here; what was measured is on the other pages."
    return "No stack could be measured on this machine."


def _alternative(costs: DispatchCosts) -> str:
    """The finding of the figure, for screen readers: each row with its first cost."""
    rows = [
        f"{row.label} {mark_text(row.marks[row.first])} {KIND_TITLES[row.first]}" for row in costs.rows if row.marks
    ]
    return f"{costs.title}, {MICRO} per dispatch, from the cheapest to the dearest: {listed(rows)}."


def _caption(costs: DispatchCosts) -> str:
    said = [
        "All values of this picture are of one run"
        + (" on one GPU." if costs.hardware else "; software adapters and the CPU do the work."),
        "From compiled code: the calls of the same row without Python, of another operation where the row says so.",
        "A line through a mark is its interval. A dotted line joins a batch to single dispatches by the same caller.",
    ]
    if costs.has_met:
        said.append(
            "A strip shows what fresh processes met that were not pinned to a quiet processor, with the median."
        )
    if any(row.python for row in costs.rows):
        said.append(
            "CPU time is split where calls from Python and from compiled code alternated in one process; the table of "
            "stacks has the time of each caller over all processes."
        )
    drawn = rows_drawn(costs)
    if others := [row.label for row in costs.rows if row not in drawn]:
        said.append(f"The table of stacks also has {listed(others)}.")
    return " ".join(said)


@register("to-do", "What to do here", 10)
def to_do(view: View) -> Iterator[Part]:
    """The findings as a list, those that save most first."""
    found = view.once(findings_of)
    if not found:
        yield Text(
            ["No saving here is large (at least 1.2 times, by most rules 1.5) with two figures that are not noisy."]
        )
        return
    yield Listing([(finding.title, finding.detail) for finding in found])


@register("stacks", "The stacks", 25)
def stacks(view: View) -> Iterator[Part]:
    """A table of the headline's cases with their intervals, one caller a row, to sort and to filter."""
    costs = view.once(dispatch_costs)
    if costs is None:
        return
    yield Table(
        "One dispatch through each stack, with intervals; each row is one caller",
        ["stack", "called", *_TIMES, "bound", "remark"],
        [_row(row, kind, costs.view) for row in costs.rows for kind in {**row.records, **row.remarks}],
        numeric=range(2, 6),
        sortable=True,
        folded=True,
    ).without_empty(2)


def _row(row: DispatchRow, kind: Kind, view: View) -> list[str | Cell]:
    name, remark = Cell(row.label, row.stack), sentence(row.remarks.get(kind, ""))
    record = row.records.get(kind)
    if record is None:
        return [name, KIND_WORDS[kind], *[""] * 5, remark]
    called = ("batched, " if kind == "batched" else "") + CALLER_WORDS[record.caller]
    cost = micro_cell(record, "complete")
    met = met_range(record)
    next_run = next_run_text(record, view.fingerprint.machine)
    below = "met lies below the undisturbed cost" if met_below(record) else ""
    remark = "; ".join(filter(None, [remark, below, "" if kind == "batched" else row.other_unit]))
    figures = [cost, micro_cell(record, "host"), next_run, between(*met) if met else ""]
    linked = Cell(remark, path=line_link(view, record)) if remark else ""
    return [name, called, *figures, row.limit(kind), linked]
