"""Runs of real workers on a faulty stack: only the faulty case is lost, and its reason is in the
file.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overhead import results
from overhead.cli import main
from overhead.errors import UsageError
from overhead.loading import files
from overhead.loading.reduce import load, reduce_journal
from overhead.measure.fitting.undisturbed_rounds import UNDISTURBED
from overhead.profiles import Plan
from overhead.results import (
    Case,
    EndedEntry,
    Fingerprint,
    HeaderEntry,
    OpenedEntry,
    PlannedEntry,
    Reason,
    RoundEntry,
    StackFacts,
    StackRole,
    Why,
    codes_of,
)
from overhead.runner.campaign import WorkerLimits
from overhead.runner.output import Journal, Outcome
from tests.fakes.machine import Disturbance
from tests.fakes.runs import CASES, TARGET, Made
from tests.fakes.workers import Unlocked, run_with, runs_changed

PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "faulty.py"
PLAN = Plan(processes=2, precision=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.05)
short_run = functools.partial(run_with, plan=PLAN)
"""A run with a small budget that does not wait for other runs on this machine: its figures do not
matter.
"""


def measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faults: str, limits: WorkerLimits | None = None
) -> Outcome:
    monkeypatch.setenv("FAULTS", faults)

    def campaign(*given: Any) -> Unlocked:
        return Unlocked(*[*given[:-1], limits or given[-1]])

    return short_run(
        ["faulty"], profile="quick", plugins=[PLUGIN], out=tmp_path / "r.json", campaign=campaign
    )


def status(fingerprint: Fingerprint, fault: str) -> tuple[str, Why]:
    record = next(r for r in fingerprint.records if r.params["fault"] == fault)
    return record.status, record.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "expected", "said"),
    [
        ("open", "failed", "no such file"),
        ("unsupported", "unavailable", "this device has no such thing"),
        ("issue", "failed", "the device went away"),
        ("lie", "unverified", "executed"),
        ("segfault", "failed", "SIGSEGV" if os.name == "posix" else "exit_code=11"),
        ("kill", "failed", "SIGKILL" if os.name == "posix" else "exit_code=15"),
        ("exit", "failed", "exit_code=3"),
        ("rubbish", "failed", "pipe-of-answers-written"),
    ],
)
def test_a_faulty_case_does_not_affect_the_other_cases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, expected: str, said: str
) -> None:
    outcome = measure(tmp_path, monkeypatch, fault)
    assert status(outcome.fingerprint, "none")[0] in results.VALUED
    got, reason = status(outcome.fingerprint, fault)
    assert got == expected
    assert said in str(reason)
    assert str(Path.home()) not in str(reason)


@pytest.mark.slow
def test_a_worker_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = measure(tmp_path, monkeypatch, "hang", WorkerLimits(silence_s=8.0))
    assert status(outcome.fingerprint, "none")[0] in results.VALUED
    assert "process-silent" in codes_of(status(outcome.fingerprint, "hang")[1])


@pytest.mark.slow
def test_a_worker_over_its_memory_limit_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = measure(tmp_path, monkeypatch, "hog", WorkerLimits(memory_bytes=600 << 20))
    assert status(outcome.fingerprint, "none")[0] in results.VALUED
    reason = status(outcome.fingerprint, "hog")[1]
    assert isinstance(reason, Reason)
    killed = reason.values["why"]
    assert isinstance(killed, Reason)
    assert killed.code == "process-out-of-memory"
    assert 0.6 <= float(str(killed.values["gib"])) < 2.0, (
        "it takes 0.2 GiB more every 50 ms, and is looked at every 100 ms"
    )


def test_the_journal_and_its_samples_reduce_to_the_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = measure(tmp_path, monkeypatch, "")
    assert reduce_journal(outcome.samples) == outcome.fingerprint
    assert load(outcome.path) == outcome.fingerprint
    assert not outcome.path.with_suffix(".jsonl").exists()


def test_the_file_of_a_run_has_the_processor_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = measure(tmp_path, monkeypatch, "").fingerprint.volatile
    least, middle, most = (state[f"canary_us{name}"] for name in ("_least", "", "_most"))
    assert 0 < least <= middle <= most  # type: ignore[operator]


def test_the_rule_of_a_figure_has_the_processor_speed_of_its_processes(tmp_path: Path) -> None:
    journal = Made(processes=6, disturbance=Disturbance(spread=0.05, preemptions=0.0)).journal(
        tmp_path / "r.jsonl"
    )
    canaries: dict[int, list[int]] = {}
    for line in files.read_journal(journal):
        if isinstance(line, results.RoundEntry):
            canaries.setdefault(line.process, []).append(line.canary[0])
    # The canary is a loop of fixed work, timed in each round (ns). Its low percentile in a process
    # tells the speed of the processor; the rule has the mean over processes.
    best_ns = [np.percentile(own, UNDISTURBED.best_percentile) for own in canaries.values()]
    usual_us = np.mean(best_ns) / 1e3
    for record in reduce_journal(journal).records:
        rule = next(figure.rule for figure in record.figures if figure.name == "complete")
        assert isinstance(rule, Reason)
        assert rule.values["canary_us"] == pytest.approx(usual_us)


@pytest.mark.parametrize("roles", [[], ["without-passes"]])
def test_two_patterns_give_the_cost_of_a_submission_only_for_an_api_without_passes(
    tmp_path: Path, roles: list[StackRole]
) -> None:
    """A run with two sizes is relabelled: large becomes one dispatch per submission, small all in
    one submission.
    """
    made = Made(costs={"small": 1_000.0, "large": 20_000.0})
    large, whole = CASES["large"], Case(pattern="one-pass", params=CASES["small"].params)
    small, each = CASES["small"], Case(pattern="per-submit", params=CASES["small"].params)
    lines = []
    for line in made.lines():
        if isinstance(line, HeaderEntry):
            line = msgspec.structs.replace(line, stacks={TARGET.stack: StackFacts(roles=roles)})
        elif isinstance(line, PlannedEntry):
            line = msgspec.structs.replace(
                line, case={large.key: each, small.key: whole}[line.case.key]
            )
        elif isinstance(line, OpenedEntry | RoundEntry):
            line = msgspec.structs.replace(
                line, case={large.key: each.key, small.key: whole.key}[line.case]
            )
        lines.append(line)
    journal = tmp_path / "r.jsonl"
    journal.write_bytes(b"".join(map(results.encode_entry, lines)))
    (found,) = reduce_journal(journal).comparisons
    figures = {figure.name: figure for figure in found.figures}
    assert found.name == "marginal"
    assert (figures["per_submit"].value is not None) == bool(roles)
    assert figures["per_dispatch"].value == pytest.approx(1_000.0, rel=0.02)


def test_an_interrupted_process_counts_only_if_there_are_too_few_complete_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = measure(tmp_path, monkeypatch, "")
    lines = list(files.read_journal(outcome.samples))
    (planned,) = (line for line in lines if isinstance(line, PlannedEntry))
    rounds = [line for line in lines if isinstance(line, RoundEntry) and line.process == 0]
    cut = []
    for line in rounds[:2]:
        slower = [[n, issue_ns, 9 * total_ns] for n, issue_ns, total_ns, *_ in line.samples]
        cut.append(msgspec.structs.replace(line, process=7, samples=slower))

    def processes(path: Path, kept: list[results.JournalEntry]) -> int:
        path.write_bytes(b"".join(map(results.encode_entry, kept)))
        record = next(r for r in reduce_journal(path).records if r.key.endswith(planned.case.key))
        return next(f.processes for f in record.figures if f.name == "complete")

    ended = [line for line in lines if isinstance(line, EndedEntry)]
    # Both processes of the run are complete: process 7, which was interrupted, does not count.
    assert processes(tmp_path / "more.jsonl", [*lines, *cut]) == 2
    # Without the end of one of them only one is complete: all three count.
    one_unended = [line for line in lines if line is not ended[-1]]
    assert processes(tmp_path / "cut.jsonl", [*one_unended, *cut]) == 3


def test_a_missing_stack_is_reported_with_its_reason_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"absent: the library is not installed \(to add it: pip install absent\)"
    ):
        short_run(["absent"], profile="quick", plugins=[PLUGIN], out=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_run_on_a_full_disk_has_the_lines_written_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Journal.sync
    calls = []

    def sync(self: Journal) -> None:
        calls.append(1)
        if len(calls) > 6:
            with self._raising():
                raise OSError(28, "No space left on device")
        real(self)

    monkeypatch.setattr(Journal, "sync", sync)
    with pytest.raises(UsageError, match="No space left on device"):
        measure(tmp_path, monkeypatch, "")
    assert reduce_journal(tmp_path / "r.jsonl").records


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "-p", "nonesuch"], "unknown stack 'nonesuch'"),
        (["run", "-p", "numpy", "--require", "nonesuch"], "unknown stack 'nonesuch'"),
        (["run", "-p", "numpy", "--require", "torch"], "does not measure it; add -p torch"),
        (["run", "-p", "numpy", "--out", "{tmp}/loop"], "Too many levels of symbolic links"),
        (["run", "-p", "numpy", "--out", "{tmp}/loop/r.json"], "Too many levels of symbolic links"),
        (["run", "--pattern", "sideways"], "unknown pattern 'sideways'"),
        (
            ["run", "-p", "numpy", "--workload", "nowhere"],
            "unknown workload 'nowhere'; known: acrobot",
        ),
        (["run", "--plugin", "{tmp}/raises.py"], "raises.py: ZeroDivisionError"),
        (["run", "--plugin", "{tmp}/missing.py"], "missing.py: no such file"),
        (["run", "--plugin", "{tmp}/empty.py"], "registers no stack"),
        (["run", "-p", "numpy", "--out", "{tmp}/raises.py/x"], "Not a directory"),
        (["run", "-p", "numpy", "--out", "{tmp}/foreign.json"], "exists"),
        (["show", "{tmp}/nowhere.json"], "No such file"),
        (["show", "{tmp}/foreign.json"], "not the file of a run"),
        (["show", "{tmp}/cut.json"], "not the file of a run"),
        (["show", "{tmp}/foreign.jsonl"], "line 1"),
        (["show", "{tmp}"], "a folder; name one of its files"),
        (["report", "{tmp}/foreign.json"], "not the file of a run"),
    ],
)
def test_a_run_with_invalid_arguments_prints_one_line_and_exits_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "foreign.json").write_text('{"hello": "world"}')
    (tmp_path / "foreign.jsonl").write_text('{"hello": "world"}\n')
    (tmp_path / "cut.json").write_text('{"schema_version": 1, "method_ver')
    assert main([a.replace("{tmp}", str(tmp_path)) for a in arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert words in said


def test_a_run_without_figures_of_a_required_stack_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAULTS", "")
    arguments = [
        "run",
        "--profile",
        "quick",
        "--plugin",
        str(PLUGIN),
        "-p",
        "faulty",
        "-p",
        "absent",
        "--json",
    ]
    with runs_changed(PLAN):
        assert main([*arguments, "--out", str(tmp_path / "a.json"), "--require", "absent"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["records"]
    assert "required stack absent gave no figure: the library is not installed" in err
    with runs_changed(PLAN):
        assert main([*arguments, "--out", str(tmp_path / "b.json"), "--require", "faulty"]) == 0
