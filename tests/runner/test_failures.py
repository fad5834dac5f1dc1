"""Failures of one cause are told once, in the progress of a run and in its tables."""

from __future__ import annotations

from overhead.report.brief import brief_blocks
from overhead.results import FailedEntry, Why, because
from overhead.runner.campaign import InterpreterRun
from overhead.runner.events import CaseFailed, MoreFailedAlike, RunNote
from overhead.words.reasons import sentence
from tests.fakes.report import fingerprint, record
from tests.fakes.workers import FakeJournal, Notes
from tests.terminal.test_goldens import printed


def failed(case: str, reason: Why) -> FailedEntry:
    return FailedEntry(
        target="a@CPU:CPU", case=case, worker="a@CPU:CPU", process=0, status="failed", reason=reason
    )


def told(lines: list[FailedEntry]) -> list[RunNote]:
    notes, run = Notes(), InterpreterRun(FakeJournal(), [])  # type: ignore[arg-type]
    for line in lines:
        run.store(line, notes)
    return notes.notes


def test_failures_of_one_cause_are_printed_once() -> None:
    reason = "KeyError: 'n={}' (my_stack.py:57, in open)"
    assert told([failed(f"n={n}", reason.format(n)) for n in range(5)]) == [
        CaseFailed("a@CPU:CPU", "n=0", "failed", "KeyError: 'n=0' (my_stack.py:57, in open)"),
        MoreFailedAlike("a@CPU:CPU", "failed"),
    ]


def test_failures_of_one_code_are_printed_once_whatever_their_numbers() -> None:
    reasons = [because("units-differ", issued=n, executed=0) for n in range(3)]
    assert len(told([failed(f"n={n}", reason) for n, reason in enumerate(reasons)])) == 2
    other = because("chain-without-reference")
    assert len(told([failed("x", reasons[0]), failed("y", other)])) == 2


def test_failures_at_different_lines_or_with_other_words_are_printed_each() -> None:
    assert len(told([failed("x", reason) for reason in ("out of memory", "no device")])) == 2
    same_words = "KeyError: 'k' (my_stack.py:{line}, in open)"
    assert len(told([failed("x", same_words.format(line=line)) for line in (57, 58)])) == 2


def test_a_table_has_one_row_for_a_cause_with_the_number_of_its_cases() -> None:
    made = fingerprint(
        *(
            record(
                each=None,
                status="unverified",
                reason=because("units-differ", issued=n, executed=0),
                params={"n": n},
            )
            for n in range(1, 6)
        )
    )
    (said,) = [
        line
        for line in printed(brief_blocks(made, all_cases=True), 300).splitlines()
        if line.startswith("No cost of")
    ]
    assert "2 more" in said
    assert sentence(because("units-differ", issued=1, executed=0)) in said
