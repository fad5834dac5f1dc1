"""A worker's death costs its own process: whole processes keep their figures, and the record says
what happened.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from overhead import results
from overhead.cli import main
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.results import (
    DiedEntry,
    EndedEntry,
    FailedEntry,
    Fingerprint,
    JournalEntry,
    RoundEntry,
    Status,
    because,
)
from tests.fakes.runs import CASES, TARGET, Made
from tests.fakes.workers import run_with, runs_changed
from tests.runner.test_runner import PLAN, PLUGIN

KEY = TARGET.key
DIED = DiedEntry(worker=KEY, process=4, reason="the worker was killed by SIGKILL (while opening)")


def failed(process: int, status: Status = "failed") -> FailedEntry:
    return FailedEntry(
        target=KEY,
        case=CASES["small"].key,
        worker=KEY,
        process=process,
        status=status,
        reason="it crashed",
    )


def cut(made: Made, *extra: JournalEntry) -> list[JournalEntry]:
    """The lines of a run whose last process did not end, then ``extra``."""
    lines = made.lines()
    last = max(line.process for line in lines if isinstance(line, EndedEntry))
    return [
        line for line in lines if not (isinstance(line, EndedEntry) and line.process == last)
    ] + list(extra)


def reduced(tmp_path: Path, lines: list[JournalEntry]) -> Fingerprint:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"".join(map(results.encode_entry, lines)))
    return reduce_journal(path)


def test_a_case_has_the_figures_of_its_complete_processes_when_a_later_one_dies(
    tmp_path: Path,
) -> None:
    whole = reduced(tmp_path, Made(processes=4).lines())
    found = reduced(tmp_path, cut(Made(processes=5), DIED, failed(process=5)))
    small, *others = found.records
    assert small.status == "ok"
    assert [figure.value for figure in small.figures] == [
        figure.value for figure in whole.records[0].figures
    ]
    assert {figure.processes for figure in small.figures if figure.name == "complete"} == {4}
    assert {"worker-died", "failed-later"} <= set(small.flags)
    assert all(other.flags == ["worker-died"] for other in others)
    assert because("worker-died", worker=KEY, why=DIED.reason) in found.flags


def test_a_case_that_crashed_in_every_process_or_once_had_wrong_values_has_no_figures(
    tmp_path: Path,
) -> None:
    crashed = reduced(tmp_path, cut(Made(processes=1), DIED, failed(process=0)))
    assert crashed.records[0].status == "failed"
    assert crashed.records[0].reason == "it crashed"
    wrong_once = reduced(tmp_path, [*Made().lines(), failed(process=4, status="unverified")])
    assert wrong_once.records[0].status == "unverified"


def test_a_process_in_which_a_case_failed_does_not_count_for_that_case(tmp_path: Path) -> None:
    found = reduced(tmp_path, [*Made(processes=5).lines(), failed(process=4)])
    by_size = {}
    for record in found.records:
        cost = record.figure("complete")
        assert cost is not None
        by_size[record.params["size"]] = cost.processes
    assert by_size == {"small": 4, "middle": 5, "large": 5}


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_once_has_all_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTS", "once")
    monkeypatch.setenv("FAULT_FILE", str(tmp_path / "done"))
    outcome = run_with(
        ["faulty"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json", plan=PLAN
    )
    assert {record.status for record in outcome.fingerprint.records} <= results.VALUED
    assert all("worker-died" in record.flags for record in outcome.fingerprint.records)
    lines = list(files.read_journal(outcome.samples))
    assert sum(isinstance(line, DiedEntry) for line in lines) == 1
    assert sum(isinstance(line, EndedEntry) for line in lines) == PLAN.processes
    assert not any(isinstance(line, FailedEntry) for line in lines)
    assert any(isinstance(line, RoundEntry) for line in lines)


def test_a_run_in_which_every_case_failed_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTS", "")
    monkeypatch.setenv("BASE_FAULT", "open")
    arguments = ["run", "--profile", "quick", "--plugin", str(PLUGIN), "-p", "faulty"]
    with runs_changed(PLAN):
        assert main([*arguments, "--out", str(tmp_path / "r.json")]) == 1
    assert f"overhead show {tmp_path / 'r.json'}" in capsys.readouterr().err
