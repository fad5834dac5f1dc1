"""Sections of the page of all cases: every figure, the machine, and what is missing and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import cast

from overhead.blocks.parts import Cell, Column, Part, Table, Text, table_of
from overhead.reading.missing_values import missing_case, missing_figures
from overhead.reading.plain_text import plain
from overhead.reading.summary import missing_stacks
from overhead.reading.view import TargetView, View, boards_of
from overhead.report.core.case_line import case_anchor, line_link
from overhead.report.core.registry import register
from overhead.results import Caller, Figure, Fingerprint, LeftOut, Record, Scalar
from overhead.words.format import held_range, micro_spread, spread
from overhead.words.glossary import figure_column, figure_name
from overhead.words.names import CALLER_WORDS
from overhead.words.next_run import next_run_text
from overhead.words.reasons import notes_said, sentence
from overhead.words.report.cases import (
    CASES_READ_AS,
    HOW_TO_READ_TABLES,
    NEEDS_NVIDIA,
    NO_CASE,
    NOTHING_MISSING,
    OTHER_FIGURES,
    answer,
    number_of_cases,
    targets_title,
    to_know,
    versions,
    why_no_cost,
)
from overhead.words.report.machines import gpu_names, memory
from overhead.words.summary import left_out_sentence

_FIRST_FIGURES = ("complete", "met", "host")
_MORE_FIGURES = (
    "issue",
    "fixed",
    "device_busy",
    "device_span",
    "empty_wait",
    "naive",
    "naive_idle",
    "legacy",
    "prepare",
    "first",
)


@register("machine", "The machine", 90, page="cases")
def machine(view: View) -> Iterator[Part]:
    """A section of tables on what the figures of a run depend on: the machine, its state while it
    was measured, the targets (each a stack on a device), versions of software, and kernels.
    """
    run = view.fingerprint
    yield Table("The machine and the run", ["", ""], _machine_rows(run))
    state = [(name, _as_text(value)) for name, value in sorted(run.volatile.items())]
    yield Table("State while measuring", ["", ""], state, folded=True)
    # ``flags``: what disturbed the run.
    if run.flags:
        yield Text([to_know(notes_said(run.flags))])
    yield _targets_table(view)
    yield Table("Versions", ["what", "version"], sorted(run.versions.items()), folded=True)
    yield Table(
        "Kernel sources (SHA-256)", ["kernel", "hash"], sorted(run.kernels.items()), folded=True
    )


def _machine_rows(run: Fingerprint) -> list[tuple[str, str]]:
    """The rows of the table of the machine and the run: a name, and the value as text."""
    return [
        ("processor", run.machine.cpu),
        ("cores", str(run.machine.cores)),
        ("memory", memory(run.machine)),
        ("GPUs", gpu_names(run.machine) or "none"),
        ("machine id", run.machine.id),
        ("GPU boards", ", ".join(boards_of(run.records)) or "not known"),
        ("measured", run.created),
        ("profile", run.profile),
        ("cases", number_of_cases(run)),
        ("method and file version", versions(run)),
    ]


def _targets_table(view: View) -> Table:
    """The targets: what each computes on, and the variables that were set. The adapter of most of
    them stands in the title alone.
    """
    adapters = Counter(target.first.adapter for target in view.targets)
    (usual, number_of), *_ = [*adapters.most_common(1), ("", 0)]
    if number_of < 2:
        usual = ""
    rows: list[list[str | Cell]] = []
    for target in view.targets:
        first = target.first
        adapter = "" if first.adapter == usual else first.adapter
        name = Cell(target.short, target.stack)
        variables = _pairs(first.environment)
        rows.append([name, first.api, adapter, first.device, _target_kind(target), variables])
    columns = ["target", "API", "adapter", "device", "kind", "environment"]
    return Table(targets_title(usual), columns, rows, folded=True).without_empty(1)


def _target_kind(target: TargetView) -> str:
    if not target.executes:
        return "runs nothing"
    return "software" if target.software else "hardware"


def _as_text(value: Scalar | list[str]) -> str:
    """A value of the machine's state as a reader expects it: ``yes`` for True, six digits."""
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _pairs(values: Mapping[str, object]) -> str:
    """``name=value`` for each, with spaces between."""
    return " ".join(f"{name}={value}" for name, value in values.items())


@register("missing", "What is missing, and why", 95, page="cases")
def missing(view: View) -> Iterator[Part]:
    """A section of tables of everything that has no value, with the reasons: stacks, cases (a
    stack's measured variants), single figures of cases, and cases that the plan of the run left
    out. A sentence where nothing is missing.
    """
    run = view.fingerprint
    # Stacks, then cases, then single figures. ``mend``: the step that adds what is missing.
    # No command adds a GPU, so these have none.
    for_nvidia = missing_stacks(view).for_nvidia
    stacks = []
    for absent in run.unavailable:
        reason = sentence(absent.reason)
        mend = NEEDS_NVIDIA if absent in for_nvidia else sentence(absent.mend)
        stacks.append((absent.stack, reason, mend, _pairs(absent.environment)))

    cases: list[list[str | Cell]] = []
    figures: list[list[str | Cell]] = []
    for record in run.records:
        # A case with some values gets rows for the figures that it lacks, one without any gets a
        # single row.
        if any(figure.measured for figure in record.figures):
            figures += _missing_figures(view, record)
        else:
            reason = sentence(missing_case(record).detail)
            cases.append([*_case_cells(view, record), record.status, reason])

    stack_columns = ["stack", "reason", "how to add it", "environment"]
    case_columns = ["target", "pattern", "called", "parameters"]
    tables = [
        Table("Stacks and devices that are not available", stack_columns, stacks),
        Table("Cases without a figure", [*case_columns, "status", "reason"], cases),
        Table(
            "Figures without a value",
            [*case_columns, "figures", "status", "reason"],
            figures,
            folded=True,
        ),
    ]
    filled = [table for table in tables if table.rows]
    yield from filled
    if not filled:
        yield Text([NOTHING_MISSING])
    if run.left_out:
        yield Text([left_out_sentence(len(run.left_out))])
        yield _left_out_table(run.left_out)


def _missing_figures(view: View, record: Record) -> list[list[str | Cell]]:
    """The rows of a case in the table of missing figures: one for each reason, with the names of
    all its figures that have no value for this reason.
    """
    rows = []
    for missing_value, names in missing_figures(record).items():
        figures = ", ".join(map(figure_name, names))
        reason = sentence(missing_value.detail)
        rows.append([*_case_cells(view, record), figures, missing_value.status, reason])
    return rows


def _left_out_table(left_out: Sequence[LeftOut]) -> Table:
    """The table of the cases that the plan of the run left out, each with the reason."""
    rows = []
    for case in left_out:
        pattern, called, parameters = _split_key(case.case)
        rows.append((case.target, pattern, called, parameters, sentence(case.reason)))
    columns = ["target", "workload and pattern", "called", "parameters", "reason"]
    return Table("Left out of this run", columns, rows, folded=True)


def _split_key(case: str) -> tuple[str, str, str]:
    """The key of a case, such as ``step per-submit binding dependent``, as three cells: workload
    and pattern, the caller in words, and the rest.

    A text that is no key, such as ``all`` for all cases of a target, stands in the first cell as it
    is.
    """
    # At most three cuts: dependency and parameters stay one text.
    words = case.split(" ", 3)
    if len(words) < 3:
        return case, "", ""
    workload, pattern, caller, *rest = words
    called = CALLER_WORDS.get(cast("Caller", caller))
    if called is None:
        return case, "", ""
    return f"{workload} {pattern}", called, " ".join(rest)


def _case_cells(view: View, record: Record) -> list[str | Cell]:
    """The cells that say which case a row is about: target, pattern, caller and parameters."""
    target = view.target(record)
    name = Cell(target.label, target.stack)
    parameters = plain(_parameters(record), 120)
    return [name, record.pattern, CALLER_WORDS[record.caller], parameters]


def _parameters(record: Record) -> str:
    """The dependency and the parameters: what is left of the case's key after workload, pattern and
    caller.
    """
    return record.case.key.split(" ", 3)[3]


@dataclass(frozen=True)
class _CaseRow:
    """A row of a table of all cases: a case, and its numbers as text.

    ``figures``: by the names of the figures that have a column. ``others``: figures without a
    column, each with its name.
    """

    record: Record
    figures: Mapping[str, str]
    next_run: str = ""
    others: str = ""


@register("records", "All cases", 5, page="cases")
def records(view: View) -> Iterator[Part]:
    """A section with every figure of every case of the run: the main ones in one table, and all
    others in a folded one.
    """
    if not view.fingerprint.records:
        yield Text([NO_CASE])
        return
    yield Text([answer(view)], lead=True)
    rows = [_case_row(view, record) for record in view.fingerprint.records]
    yield table_of("All cases", _columns(view), rows, sortable=True)
    others = [_others_row(record) for record in view.fingerprint.records]
    yield table_of(OTHER_FIGURES, _other_columns(view), others, folded=True)
    yield Text(CASES_READ_AS, folded=HOW_TO_READ_TABLES)


def _case_row(view: View, record: Record) -> _CaseRow:
    """The row of a case with its main figures as text. They become text in the order of the
    columns, because ``page_facts``, which says what each number of the page is, finds them in this
    order.
    """
    figures = {name: _with_interval(record.figure(name)) for name in _FIRST_FIGURES}
    # The range in which 9 of 10 runs on another machine of this kind put the cost.
    next_run = next_run_text(record, view.fingerprint.machine)
    return _CaseRow(record, figures, next_run)


def _others_row(record: Record) -> _CaseRow:
    """The row of a case with its other figures: those with a column, and the rest in one cell."""
    figures = {name: _with_interval(record.figure(name)) for name in _MORE_FIGURES}
    others = []
    for figure in record.figures:
        if figure.name not in figures and figure.name not in _FIRST_FIGURES:
            others.append(f"{figure_name(figure.name)} {_with_interval(figure)}")
    return _CaseRow(record, figures, others="; ".join(others))


def _with_interval(figure: Figure | None) -> str:
    """A figure with its interval in its unit, a time in microseconds; its status if it has no
    value, and '' if there is no figure.
    """
    if figure is None:
        return ""
    value = figure.measured
    # What is no time, such as a ratio or a share, stands in its own unit.
    if figure.unit != "ns" and value is not None:
        return spread(value)
    return micro_spread(figure)


def _columns(view: View) -> list[Column[_CaseRow]]:
    """The columns of the table of all cases: which case, and its main figures. Some need the
    ``view``, to name a case among those of its target or to link to its page.
    """
    return [
        Column("target", partial(_linked_target, view)),
        Column("case", partial(_pattern_label, view)),
        Column("called", _caller),
        Column("status", partial(_linked_status, view)),
        *[_figure_column(name) for name in _FIRST_FIGURES],
        Column("run-to-run", attrgetter("next_run"), is_number=True),
        Column("limit", attrgetter("record.bound")),
    ]


def _other_columns(view: View) -> list[Column[_CaseRow]]:
    """The columns of the table of the other figures."""
    return [
        Column("target", partial(_short_target, view)),
        Column("case", partial(_pattern_label, view)),
        Column("called", _caller),
        Column("per", attrgetter("record.unit")),
        # Up to which length of a chain the cost was seen to hold.
        Column("up to n", _held_range, is_number=True),
        *[_figure_column(name) for name in _MORE_FIGURES],
        Column("workload and parameters", _workload_and_parameters),
        Column("other figures", attrgetter("others")),
        Column("timed", _timed),
    ]


def _figure_column(name: str) -> Column[_CaseRow]:
    """The column of the figure of that name."""
    return Column(figure_column(name), partial(_figure_cell, name), is_number=True)


def _figure_cell(name: str, row: _CaseRow) -> str:
    return row.figures[name]


def _linked_target(view: View, row: _CaseRow) -> Cell:
    """The target, with the id of the row."""
    target = view.target(row.record)
    return Cell(target.short, target.stack, anchor=case_anchor(row.record))


def _short_target(view: View, row: _CaseRow) -> Cell:
    target = view.target(row.record)
    return Cell(target.short, target.stack)


def _pattern_label(view: View, row: _CaseRow) -> str:
    return view.target(row.record).pattern_label(row.record)


def _caller(row: _CaseRow) -> str:
    return CALLER_WORDS[row.record.caller]


def _linked_status(view: View, row: _CaseRow) -> Cell:
    """The status, with a link to the times behind the figure. A pointer shows why there is no
    cost.
    """
    path = line_link(view, row.record)
    return Cell(row.record.status, path=path, hover=why_no_cost(row.record))


def _held_range(row: _CaseRow) -> str:
    """Between which n the cost was seen to hold."""
    return held_range(row.record.figure("complete"))


def _workload_and_parameters(row: _CaseRow) -> str:
    return f"{row.record.workload} {_parameters(row.record)}"


def _timed(row: _CaseRow) -> str:
    """What the timed part of the case has, as the file says."""
    return _pairs(row.record.window)
