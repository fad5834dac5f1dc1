"""The results of the Python API in one line, for ``repr``."""

from __future__ import annotations

from typing import get_args

from overhead.comparing.verdicts import CaseVerdict, Verdict, Verdicts
from overhead.results import (
    Comparison,
    Contention,
    Figure,
    Fingerprint,
    Machine,
    Record,
    WithFigures,
)
from overhead.runner.output import Outcome
from overhead.words.comparing import case_label, verdict_cell, verdict_word
from overhead.words.format import count, factor_spread, spread, time
from overhead.words.reasons import sentence
from overhead.words.report.machines import gpu_names


def fingerprint_line(run: Fingerprint) -> str:
    """Which machine was measured, and how many cases."""
    cases = count(len(run.records), "case")
    return f"{_device(run.machine)}, {cases}, {run.created}"


def outcome_line(outcome: Outcome) -> str:
    """What a run has measured, and its files."""
    run = outcome.fingerprint
    cases = count(len(run.records), "case")
    return f"{_device(run.machine)}, {cases}, {files_of(outcome)}"


def files_of(outcome: Outcome) -> str:
    """Where the figures of a run are."""
    if outcome.second is not None:
        return f"files: {outcome.path} and {outcome.second.path}"
    return f"file: {outcome.path}"


def record_line(record: Record) -> str:
    """The case and its cost, or why it has none."""
    cost = _cost(record, "complete")
    return f"{record.key}: {cost or _why_missing(record)}"


def _cost(of: WithFigures, name: str) -> str:
    """The figure of that name; '' where it has no value."""
    figure = of.figure(name)
    if figure is None or figure.measured is None:
        return ""
    return _value(figure)


def _why_missing(record: Record) -> str:
    """The status of a case without a cost, and the reason: its own, else that of the cost."""
    reason = record.reason
    figure = record.figure("complete")
    if not reason and figure is not None:
        reason = figure.reason
    return f"{record.status}: {sentence(reason)}" if reason else record.status


def figure_line(figure: Figure) -> str:
    """The ``repr`` of a figure: its value with the interval, or why it has none."""
    texts = [f"{figure.name}: {_value(figure)}"]
    if figure.measured is not None and figure.status != "ok":
        texts.append(figure.status)
    if figure.reason:
        texts.append(sentence(figure.reason))
    return ", ".join(texts)


def _value(figure: Figure) -> str:
    """The value of a figure with its unit and interval, or its status where it has none."""
    value = figure.measured
    if value is None:
        return figure.status
    match figure.unit:
        case "ns":
            return time(figure)
        case "ratio":
            return factor_spread(value)
        case _:
            return f"{spread(value)} {figure.unit}"


def comparison_line(compared: Comparison) -> str:
    """What is compared inside a run, and the figures of it."""
    figures = ", ".join(f"{figure.name} {_value(figure)}" for figure in compared.figures)
    others = ", ".join(compared.against)
    return f"{compared.name}: {compared.of} against {others}: {figures}"


def contention_line(found: Contention) -> str:
    """The case that several ran at once, and what it cost each."""
    cost = _cost(found, "cost") or found.status
    limit = f", limit: {found.limit}" if found.limit else ""
    return f"{found.key}, {found.way} {found.peers}: {cost}{limit}"


def verdicts_line(found: Verdicts) -> str:
    """The ``repr`` of a comparison: how many cases have each verdict."""
    verdicts: tuple[Verdict, ...] = get_args(Verdict)
    counts = []
    for verdict in verdicts:
        if found.count(verdict):
            counts.append(f"{found.count(verdict)} {verdict_word(verdict)}")
    return ", ".join(counts) or "no case"


def case_verdict_line(case: CaseVerdict) -> str:
    """The verdict on a case, and its ratio."""
    ratio = f", {factor_spread(case.ratio)}" if case.ratio is not None else ""
    return f"{case_label(case)}: {verdict_cell(case)}{ratio}"


def _device(machine: Machine) -> str:
    """The GPUs of a machine, or its processor."""
    return gpu_names(machine) or machine.cpu
