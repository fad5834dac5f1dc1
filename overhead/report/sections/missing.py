"""Every number that is missing, and why: stacks, cases, single figures, and what the planner left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import plain
from overhead.reading.missing_values import missing_case, missing_figures
from overhead.reading.summary import left_out
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.core.registry import register
from overhead.results import Caller, Record


@register("missing", "What is missing, and why", 95, page="cases")
def missing(view: View) -> Iterator[Part]:
    run = view.fingerprint
    if run.unavailable:
        rows = [
            (u.stack, u.reason, u.mend, " ".join(f"{k}={v}" for k, v in u.environment.items())) for u in run.unavailable
        ]
        yield Table(
            "Stacks and devices that are not available", ["stack", "reason", "how to add it", "environment"], rows
        )
    cases: list[list[str | Cell]] = []
    figures: list[list[str | Cell]] = []
    for record in run.records:
        target = view.target(record)
        head: list[str | Cell] = [
            Cell(target.label, target.stack),
            record.pattern,
            CALLER_WORDS[record.caller],
            _rest(record),
        ]
        if not any(f.measured for f in record.figures):
            cases.append([*head, record.status, missing_case(record).detail])
            continue
        figures += [[*head, ", ".join(names), m.status, m.detail] for m, names in missing_figures(record).items()]
    places = ["target", "pattern", "called", "parameters"]
    if cases:
        yield Table("Cases without a figure", [*places, "status", "reason"], cases)
    if figures:
        yield Table("Figures without a value", [*places, "figures", "status", "reason"], figures, folded=True)
    if not run.unavailable and not cases and not figures:
        yield Text(["Nothing is missing."])
    if said := left_out(len(run.left_out)):
        yield Text([said])
    if run.left_out:
        rows_left = [(x.target, *_parts(x.case), x.reason) for x in run.left_out]
        columns = ["target", "workload and pattern", "called", "parameters", "reason"]
        yield Table("Left out by the planner", columns, rows_left, folded=True)


def _parts(case: str) -> tuple[str, str, str]:
    """Workload and pattern, caller in words, and the rest of a case's key; other texts as they are."""
    words = case.split(" ", 3)
    called = CALLER_WORDS.get(cast("Caller", words[2])) if len(words) > 2 else None
    return (case, "", "") if called is None else (" ".join(words[:2]), called, " ".join(words[3:]))


def _rest(record: Record) -> str:
    return plain(record.case.key.split(" ", 3)[3], 120)
