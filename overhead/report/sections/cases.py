"""Sections of the page of all cases: every figure, the machine, and what is missing and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.missing_values import missing_case, missing_figures
from overhead.reading.plain_text import plain
from overhead.reading.view import View, boards_of
from overhead.report.core.case_line import line_link
from overhead.report.core.registry import register
from overhead.results import Caller, Figure, Record, Scalar
from overhead.words.format import held_range, micro_spread, spread
from overhead.words.glossary import figure_column, figure_name
from overhead.words.names import CALLER_WORDS
from overhead.words.next_run import next_run_text
from overhead.words.reasons import notes_said, sentence
from overhead.words.report.cases import (
    CASES_READ_AS,
    NO_CASE,
    NOTHING_MISSING,
    number_of_cases,
    status,
    to_know,
    versions,
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
    """The machine, its state while it was measured, and the versions of everything below a
    figure.
    """
    run = view.fingerprint
    rows: list[tuple[str, str]] = [
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
    yield Table("The machine and the run", ["", ""], rows)
    yield Table(
        "State while measuring", ["", ""], [(k, _said(v)) for k, v in sorted(run.volatile.items())]
    )
    if run.flags:
        yield Text([to_know(notes_said(run.flags))])
    targets: list[list[str | Cell]] = []
    for t in view.targets:
        kind = "runs nothing" if not t.executes else "software" if t.software else "hardware"
        first, variables = t.first, _pairs(t.first.environment)
        targets.append(
            [Cell(t.label, t.stack), first.api, first.adapter, first.device, kind, variables]
        )
    yield Table("Targets", ["target", "API", "adapter", "device", "kind", "environment"], targets)
    yield Table("Versions", ["what", "version"], sorted(run.versions.items()), folded=True)
    yield Table(
        "Kernel sources (SHA-256)", ["kernel", "hash"], sorted(run.kernels.items()), folded=True
    )


def _said(value: Scalar | list[str]) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _pairs(values: Mapping[str, object]) -> str:
    return " ".join(f"{k}={v}" for k, v in values.items())


@register("missing", "What is missing, and why", 95, page="cases")
def missing(view: View) -> Iterator[Part]:
    """Tables of everything without a value, with reasons: stacks, cases, figures, and what the
    planner left out.
    """
    run = view.fingerprint
    stacks = [
        (u.stack, sentence(u.reason), sentence(u.mend), _pairs(u.environment))
        for u in run.unavailable
    ]
    cases: list[list[str | Cell]] = []
    figures: list[list[str | Cell]] = []
    for record in run.records:
        head = [*_place(view, record), plain(_rest(record), 120)]
        if any(f.measured for f in record.figures):
            for missed, names in missing_figures(record).items():
                figures.append(
                    [
                        *head,
                        ", ".join(map(figure_name, names)),
                        missed.status,
                        sentence(missed.detail),
                    ]
                )
        else:
            cases.append([*head, record.status, sentence(missing_case(record).detail)])
    places = ["target", "pattern", "called", "parameters"]
    columns = ["stack", "reason", "how to add it", "environment"]
    tables = [
        Table("Stacks and devices that are not available", columns, stacks),
        Table("Cases without a figure", [*places, "status", "reason"], cases),
        Table(
            "Figures without a value",
            [*places, "figures", "status", "reason"],
            figures,
            folded=True,
        ),
    ]
    shown: list[Part] = [table for table in tables if table.rows]
    yield from shown or [Text([NOTHING_MISSING])]
    if run.left_out:
        yield Text([left_out_sentence(len(run.left_out))])
        rows = [(x.target, *_parts(x.case), sentence(x.reason)) for x in run.left_out]
        columns = ["target", "workload and pattern", "called", "parameters", "reason"]
        yield Table("Left out of this run", columns, rows, folded=True)


def _parts(case: str) -> tuple[str, str, str]:
    """Workload and pattern, caller in words, and the rest of a case's key; other texts as they
    are.
    """
    words = case.split(" ", 3)
    called = CALLER_WORDS.get(cast("Caller", words[2])) if len(words) > 2 else None
    return (case, "", "") if called is None else (" ".join(words[:2]), called, " ".join(words[3:]))


def _place(view: View, record: Record) -> list[str | Cell]:
    """The target, the pattern and the caller."""
    target = view.target(record)
    return [Cell(target.label, target.stack), record.pattern, CALLER_WORDS[record.caller]]


def _rest(record: Record) -> str:
    """The dependency and the parameters."""
    return record.case.key.split(" ", 3)[3]


@register("records", "All cases", 5, page="cases")
def records(view: View) -> Iterator[Part]:
    """A table with every figure of every case."""
    if not view.fingerprint.records:
        yield Text([NO_CASE])
        return
    shown = (*_FIRST_FIGURES, *_MORE_FIGURES)
    rows: list[list[str | Cell]] = []
    for record in view.fingerprint.records:
        first, more = (
            [_number(record.figure(name)) for name in names]
            for names in (_FIRST_FIGURES, _MORE_FIGURES)
        )
        next_run = next_run_text(record, view.fingerprint.machine)
        others = "; ".join(
            f"{figure_name(f.name)} {_number(f)}" for f in record.figures if f.name not in shown
        )
        to = held_range(record.figure("complete"))
        target = view.target(record)
        name, case = Cell(target.short, target.stack), target.pattern_label(record)
        said = Cell(status(record), path=line_link(view, record))
        rest = [f"{record.workload} {_rest(record)}", others, _pairs(record.window)]
        called = CALLER_WORDS[record.caller]
        rows.append(
            [
                name,
                case,
                called,
                said,
                *first,
                next_run,
                to,
                record.bound,
                record.unit,
                *more,
                *rest,
            ]
        )
    yield Text([CASES_READ_AS], quiet=True)
    first_columns, more_columns = (
        map(figure_column, names) for names in (_FIRST_FIGURES, _MORE_FIGURES)
    )
    columns = [
        "target",
        "case",
        "called",
        "status",
        *first_columns,
        "run-to-run",
        "up to n",
        "limit",
        "per",
        *more_columns,
        "workload and parameters",
        "other figures",
        "timed",
    ]
    numeric = [*range(4, 9), *range(11, 11 + len(_MORE_FIGURES))]
    yield Table("All cases", columns, rows, numeric=numeric, sortable=True)


def _number(figure: Figure | None) -> str:
    if figure is not None and figure.unit != "ns" and (found := figure.measured):
        return spread(found)
    return micro_spread(figure)
