"""A fingerprint in short, for the terminal: key figures, base cases, the host's time by layer, what
is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Heading, InMicroseconds, Part, Table, Text, cell_text, micro_cell
from overhead.reading.dispatch_costs import dispatch_costs, met_range
from overhead.reading.findings import findings_of
from overhead.reading.key_figures import key_figures
from overhead.reading.missing_values import why
from overhead.reading.view import TargetView, View, base_cases, by_patterns, without_device
from overhead.report.across.beside import key_figure_table
from overhead.report.sections.browser_tax import tax_tables
from overhead.report.sections.front import to_do
from overhead.report.sections.host_shares import layers
from overhead.results import Fingerprint, Record
from overhead.runner.listing import missing_blocks
from overhead.slices import of_features
from overhead.words.format import between, held_range
from overhead.words.glossary import figure_column
from overhead.words.headline import lead_sentences
from overhead.words.key_figures import label
from overhead.words.names import CALLER_WORDS
from overhead.words.next_run import next_run_sentence
from overhead.words.reasons import notes_said, reasons_said
from overhead.words.report.brief import ALL_CASES, BASE_CASES, cases_title, doubts, more_cases, note
from overhead.words.report.cases import case_name
from overhead.words.report.example_run import example_lines
from overhead.words.report.machines import machine_line, measured_line
from overhead.words.summary import left_out_sentence, missing_sentences, software_sentence

_FIGURES = ("met", "host", "fixed", "naive")
"""The columns of times beside the cost; ``docs/method.md`` defines each figure."""
_COLUMNS = [
    "stack",
    "case",
    "called",
    InMicroseconds(figure_column("complete")),
    "status",
    *(InMicroseconds(figure_column(name)) for name in _FIGURES),
    "up to n",
    "per",
]
(
    _STACK,
    _CASE,
    _CALLED,
    _COST,
    _STATUS,
    _UNPINNED,
    _CPU_TIME,
    _ONE_OFF,
    _SINGLE_SHOT,
    _UP_TO_N,
    _PER,
) = range(11)
_NUMERIC = (_COST, _UNPINNED, _CPU_TIME, _ONE_OFF, _SINGLE_SHOT, _UP_TO_N)
_OPTIONAL = (_PER, _ONE_OFF, _UP_TO_N, _SINGLE_SHOT, _CPU_TIME, _UNPINNED)
_IMPORTANT = (_STATUS,)
"""What a narrow terminal hides, as ``Table`` says. What is left says which case has which cost."""


def brief_blocks(fingerprint: Fingerprint, all_cases: bool = False) -> Iterator[Part]:
    """What ``overhead show`` prints of a run: the base cases, or with ``all_cases`` all cases."""
    view, machine = View(fingerprint), fingerprint.machine
    yield Text([*example_lines(fingerprint), machine_line(machine), measured_line(fingerprint)])
    if costs := view.once(dispatch_costs):
        yield Text(lead_sentences(costs))
    figures = view.once(key_figures)
    if any(figure.measured is not None for figure in figures):
        said = next_run_sentence(machine)
        table = key_figure_table(view, next_run_meaning=said)
        yield table
        if not table.meanings:
            yield Text([said])
        missing = ((label(k), k.reason) for k in figures if k.measured is None)
        yield Text(reasons_said(missing, "Missing:"), quiet=True)
    yield from _of_features(view)
    yield from _findings(view)
    yield Text([*filter(None, (software_sentence(view), missing_sentences(view)))])
    shown = [(t, by_patterns(t.records) if all_cases else base_cases(t)) for t in view.targets]
    yield from _cases(ALL_CASES if all_cases else BASE_CASES, view, shown, " --all")
    yield from layers(view)
    if tables := [table for table in map(_filled_rows_first, tax_tables(view)) if table.most]:
        yield Heading("What the browser adds")
        yield from tables
    yield from _missing(fingerprint)


def _filled_rows_first(table: Table) -> Table:
    """The table of a page for a terminal, which counts the rows without a number and does not show
    them.
    """
    filled = [row for row in table.rows if any(cell_text(row[i]) for i in table.numeric)]
    others = [row for row in table.rows if row not in filled]
    return dataclasses.replace(
        table, rows=[*filled, *others], most=len(filled), folded=False
    ).without_empty()


def end_blocks(fingerprint: Fingerprint) -> Iterator[Part]:
    """What a run prints at its end: each target's base case, what to do, and which chosen stacks
    are missing.
    """
    view = View(fingerprint)
    yield from _cases(
        BASE_CASES, view, [(t, [t.base] if t.has_step else base_cases(t)) for t in view.targets]
    )
    yield from _of_features(view)
    yield from _findings(view)
    yield from _missing(fingerprint)


def _of_features(view: View) -> Iterator[Part]:
    for feature in of_features("brief"):
        yield from feature.brief(view)


def _findings(view: View) -> Iterator[Part]:
    if view.once(findings_of):
        yield Heading("What to do here")
        yield from to_do(view)


def _cases(
    title: str, view: View, shown: Sequence[tuple[TargetView, list[Record]]], option: str = ""
) -> Iterator[Part]:
    """One table of these cases of all targets, why some have no cost, and how many cases it leaves
    out.
    """
    if not shown:
        return
    labels, device = without_device([target.named for target, _ in shown])
    cases = [(target, record) for target, records in shown for record in records]
    rows = [
        ["" if n else label, *_row(target, record)]
        for label, (target, records) in zip(labels, shown, strict=True)
        for n, record in enumerate(records)
    ]
    starts = [n for n, row in enumerate(rows) if row[0]]
    yield Table(
        cases_title(title, device),
        _COLUMNS,
        rows,
        _NUMERIC,
        optional=_OPTIONAL,
        important=_IMPORTANT,
        ends=[n - 1 for n in starts],
    ).without_empty()
    yield Text(_reasons(cases), quiet=True)
    if left := len(view.fingerprint.records) - len(cases):
        yield Text([more_cases(left, option)], quiet=True)


def _row(target: TargetView, record: Record) -> list[str]:
    met = met_range(record)
    cells = {
        name: micro_cell(record, name) if record.measured(name) else ""
        for name in ("complete", *_FIGURES)
    }
    if met:
        cells["met"] = between(*met)
    return [
        target.pattern_label(record),
        CALLER_WORDS[record.caller],
        cells["complete"],
        doubts(record),
        *(cells[name] for name in _FIGURES),
        held_range(record.figure("complete")),
        record.unit,
    ]


def _reasons(cases: Sequence[tuple[TargetView, Record]]) -> list[str]:
    """Each reason for a missing cost once, with the cases that it explains."""
    missing = [
        (case_name(target, record), why(record, "complete"))
        for target, record in cases
        if record.value("complete") is None
    ]
    return reasons_said(missing, "No cost of")


def _missing(run: Fingerprint) -> Iterator[Part]:
    yield from missing_blocks(run.unavailable)
    notes = map(note, notes_said(run.flags))
    yield Text([*notes, *filter(None, [left_out_sentence(len(run.left_out))])])
