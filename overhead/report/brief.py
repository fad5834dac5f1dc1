"""A fingerprint in short, for the terminal: key figures, base cases, the host's time by layer, what
is missing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from overhead.blocks.parts import (
    Column,
    Heading,
    InMicroseconds,
    Part,
    Table,
    Text,
    cell_text,
    micro_cell,
    table_of,
)
from overhead.reading.dispatch_costs import dispatch_costs, unpinned_range
from overhead.reading.findings import RunsAtHand
from overhead.reading.key_figures import key_figures
from overhead.reading.missing_values import why
from overhead.reading.summary import missing_stacks
from overhead.reading.view import TargetView, View, base_cases, by_patterns, without_device
from overhead.report.across.beside import key_figure_table
from overhead.report.sections.browser_tax import tax_tables
from overhead.report.sections.host_shares import layers
from overhead.report.sections.to_do import answers
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
from overhead.words.report.to_do import TO_DO
from overhead.words.summary import left_out_sentence, missing_sentences, software_sentence


@dataclasses.dataclass(frozen=True)
class _TargetCases:
    """A target, and the cases of it that are shown."""

    target: TargetView
    records: Sequence[Record]


@dataclasses.dataclass(frozen=True)
class _Case:
    """A row of the table of cases. ``stack``: empty below the first case of a target."""

    stack: str
    target: TargetView
    record: Record


def brief_blocks(fingerprint: Fingerprint, all_cases: bool = False) -> Iterator[Part]:
    """What ``overhead show`` prints of a run: key figures, findings, a table of cases, the CPU time
    by layer, and what is missing.

    The table has, for each way to launch and each caller, the case that is nearest to the target's
    base case; with ``all_cases`` it has all cases.
    """
    view = View(fingerprint)
    machine = fingerprint.machine
    yield Text([*example_lines(fingerprint), machine_line(machine), measured_line(fingerprint)])
    costs = view.once(dispatch_costs)
    if costs is not None:
        yield Text(lead_sentences(costs))
    yield from _key_figures(view)
    yield from _of_features(view)
    yield from _findings(view)
    remarks = [software_sentence(view), missing_sentences(view)]
    yield Text(list(filter(None, remarks)))

    title = ALL_CASES if all_cases else BASE_CASES
    shown = []
    for target in view.targets:
        records = by_patterns(target.records) if all_cases else base_cases(target)
        shown.append(_TargetCases(target, records))
    # ``--all`` is said only where cases are left out.
    yield from _cases(title, view, shown, " --all")
    yield from layers(view)
    yield from _browser(view)
    yield from _missing(fingerprint)


def _key_figures(view: View) -> Iterator[Part]:
    """The table of key figures, what its range means, and why others are missing; nothing where no
    key figure was measured.
    """
    machine = view.fingerprint.machine
    figures = view.once(key_figures)
    if all(figure.measured is None for figure in figures):
        return
    about_range = next_run_sentence(machine)
    table = key_figure_table(view, next_run_meaning=about_range)
    yield table
    # A table without the column of the range does not show its meaning: here it says why there is
    # no range.
    if not table.meanings:
        yield Text([about_range])
    # Each with the reason why it has no value.
    missing = [(label(figure), figure.reason) for figure in figures if figure.measured is None]
    yield Text(reasons_said(missing, "Missing:"), quiet=True)


def _browser(view: View) -> Iterator[Part]:
    """What the browser adds, where a case of it has a number."""
    tables = [_filled_rows_first(table) for table in tax_tables(view)]
    tables = [table for table in tables if table.most]
    if tables:
        yield Heading("What the browser adds")
    yield from tables


def _filled_rows_first(table: Table) -> Table:
    """A table of the page as a terminal shows it: the rows with a number, and below them only how
    many rows have none. Columns that are empty are left out.
    """
    filled = []
    others = []
    for row in table.rows:
        # ``numeric``: the columns with numbers.
        has_number = any(cell_text(row[i]) for i in table.numeric)
        if has_number:
            filled.append(row)
        else:
            others.append(row)
    rows = [*filled, *others]
    # ``most``: how many rows are printed; of the others only their number.
    shown = dataclasses.replace(table, rows=rows, most=len(filled), folded=False)
    return shown.without_empty()


def end_blocks(fingerprint: Fingerprint) -> Iterator[Part]:
    """What a run prints at its end: each target's base case, what to do, and which chosen stacks
    are missing.
    """
    view = View(fingerprint)
    shown = []
    for target in view.targets:
        # Without a plain step, the workloads that were measured stand in its place.
        records = [target.base] if target.has_step else base_cases(target)
        shown.append(_TargetCases(target, records))
    yield from _cases(BASE_CASES, view, shown)
    yield from _of_features(view)
    yield from _findings(view)
    yield from _missing(fingerprint)


def _of_features(view: View) -> Iterator[Part]:
    """What each feature of the suite, such as contention, adds to the text."""
    for feature in of_features("brief"):
        yield from feature.brief(view)


def _findings(view: View) -> Iterator[Part]:
    """What to do here, by kind of reader."""
    parts = list(answers(RunsAtHand(view)))
    if parts:
        yield Heading(TO_DO)
    yield from parts


def _cases(
    title: str, view: View, shown: Sequence[_TargetCases], option: str = ""
) -> Iterator[Part]:
    """One table of these cases of all targets, why some have no cost, and how many cases of the run
    it leaves out. ``option``: what must be added to ``overhead show`` to see these.
    """
    if not shown:
        return
    # A device that all targets have in common stands in the title alone.
    labels, device = without_device([of_target.target.named for of_target in shown])
    cases: list[_Case] = []
    first_rows = []
    for stack, of_target in zip(labels, shown, strict=True):
        # Only the first row of a target names its stack.
        if of_target.records:
            first_rows.append(len(cases))
        for record in of_target.records:
            is_first = record is of_target.records[0]
            cases.append(_Case(stack if is_first else "", of_target.target, record))
    # A line between two targets. Above the first one there is no row, and no line.
    line_below = [row - 1 for row in first_rows]
    yield table_of(cases_title(title, device), _COLUMNS, cases, ends=line_below)
    yield Text(_reasons(cases), quiet=True)
    # Cases of the run that this table does not have.
    left_out = len(view.fingerprint.records) - len(cases)
    if left_out:
        yield Text([more_cases(left_out, option)], quiet=True)


def _stack(case: _Case) -> str:
    return case.stack


def _case(case: _Case) -> str:
    return case.target.pattern_label(case.record)


def _called(case: _Case) -> str:
    return CALLER_WORDS[case.record.caller]


def _status(case: _Case) -> str:
    return doubts(case.record)


def _unpinned(case: _Case) -> str:
    """The range of the unpinned costs of several processes; their median where there is none."""
    time = _time("met", case)
    ends = unpinned_range(case.record)
    return between(*ends) if ends is not None else time


def _time(figure: str, case: _Case) -> str:
    """The figure in microseconds; nothing where it has no value."""
    return micro_cell(case.record, figure) if case.record.measured(figure) else ""


def _held_range(case: _Case) -> str:
    return held_range(case.record.figure("complete"))


def _unit(case: _Case) -> str:
    return case.record.unit


def _time_column(figure: str, hidden: int = 0) -> Column[_Case]:
    """The column of a figure, which docs/method.md defines; ``hidden`` as ``Column`` has it."""
    cell = _unpinned if figure == "met" else partial(_time, figure)
    heading = InMicroseconds(figure_column(figure))
    return Column(heading, cell, is_number=True, only_if_filled=True, hidden=hidden)


_COLUMNS: list[Column[_Case]] = [
    Column("stack", _stack, only_if_filled=True),
    Column("case", _case, only_if_filled=True),
    Column("called", _called, only_if_filled=True),
    _time_column("complete"),
    Column("status", _status, only_if_filled=True, is_important=True),
    _time_column("met", hidden=6),
    _time_column("host", hidden=5),
    _time_column("fixed", hidden=2),
    _time_column("naive", hidden=4),
    Column("up to n", _held_range, is_number=True, only_if_filled=True, hidden=3),
    Column("per", _unit, only_if_filled=True, hidden=1),
]
"""What is left on a narrow terminal says which case has which cost."""


def _reasons(cases: Sequence[_Case]) -> list[str]:
    """A sentence for each reason why cases have no cost, with the names of these cases."""
    missing = []
    for case in cases:
        if case.record.value("complete") is None:
            reason = why(case.record, "complete")
            missing.append((case_name(case.target, case.record), reason))
    return reasons_said(missing, "No cost of")


def _missing(run: Fingerprint) -> Iterator[Part]:
    """Which stacks are missing and why, the notes of the run, and how many cases its plan left
    out.
    """
    for_nvidia = missing_stacks(View(run)).for_nvidia
    unavailable = []
    for missing in run.unavailable:
        # No command adds a stack of an NVIDIA GPU to a machine that has none.
        needs_nvidia = missing in for_nvidia
        unavailable.append(msgspec.structs.replace(missing, mend="") if needs_nvidia else missing)
    yield from missing_blocks(unavailable)
    # ``flags``: codes of what was unusual in this run; each becomes a sentence.
    remarks = [note(text) for text in notes_said(run.flags)]
    left_out = left_out_sentence(len(run.left_out))
    if left_out:
        remarks.append(left_out)
    yield Text(remarks)
