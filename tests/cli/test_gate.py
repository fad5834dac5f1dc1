"""Test the exit codes of ``overhead compare --fail-over``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from overhead.cli import main
from overhead.loading import files
from overhead.loading.reduce import reduce_journal
from overhead.results import FailedEntry, JournalEntry, OneOffEntry, RoundEntry, encode_entry
from tests.fakes.runs import CASES, COSTS, MACHINE, TARGET, Made

SLOWER = {**COSTS, "large": 2 * COSTS["large"]}
OTHER_MACHINE = msgspec.structs.replace(MACHINE, id="f" * 12)


def pair(folder: Path, new: Made | None = None, *, samples: bool = True) -> list[str]:
    """The paths of two runs; ``samples``: with raw samples beside NEW."""
    base = Made(seed=1).write(folder / "a.json")
    return [str(base), str((new or Made(seed=2)).write(folder / "b.json", samples=samples))]


def with_failed_case(folder: Path, name: str, seed: int, case: str) -> str:
    """The path of a run in which one case failed."""
    target = TARGET.key
    failed = FailedEntry(
        target=target,
        case=CASES[case].key,
        worker=target,
        process=0,
        status="failed",
        reason="out of memory",
    )
    journal = Made(seed=seed).journal(folder / f"{name}.jsonl")
    lines = [line for line in files.read_journal(journal) if not _measured(line, CASES[case].key)]
    journal.write_bytes(b"".join(map(encode_entry, [*lines, failed])))
    files.write_fingerprint(folder / f"{name}.json", reduce_journal(journal))
    (folder / f"{name}.samples.jsonl.gz").write_bytes(gzip.compress(journal.read_bytes()))
    journal.unlink()
    return str(folder / f"{name}.json")


def _measured(line: JournalEntry, case: str) -> bool:
    return isinstance(line, RoundEntry | OneOffEntry) and line.case == case


def gate(paths: list[str], *more: str) -> int:
    return main(["compare", *paths, "--fail-over", "10", *more])


def test_overhead_compare_with_fail_over_passes_or_fails_if_every_case_was_tested(
    tmp_path: Path,
) -> None:
    assert gate(pair(tmp_path)) == 0
    assert gate(pair(tmp_path, Made(seed=2, costs=SLOWER))) == 1


@pytest.mark.parametrize("more", [(), ("--allow-missing",)])
@pytest.mark.parametrize(
    "new",
    [
        Made(seed=2, costs={}),
        Made(seed=2, processes=1),
        Made(seed=2, window={"submits": 2}),
        Made(seed=2, kernels={"step": "bb"}),
        Made(seed=2, machine=OTHER_MACHINE),
    ],
    ids=["no record", "one process", "another window", "another kernel", "another machine"],
)
def test_a_gate_that_tested_nothing_exits_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], new: Made, more: tuple[str, ...]
) -> None:
    assert gate(pair(tmp_path, new), *more) == 3
    assert "3 cases" in capsys.readouterr().err


def test_a_gate_with_untested_cases_exits_with_3_unless_they_may_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = pair(tmp_path, Made(seed=2, costs={"small": COSTS["small"]}))
    assert gate(paths) == 3
    assert "2 of 3" in capsys.readouterr().err
    assert gate(paths, "--allow-missing") == 0
    capsys.readouterr()
    assert gate(paths, "--json") == 3
    untested = json.loads(capsys.readouterr().out)["untested"]
    assert [name.rpartition("size=")[2] for name in untested] == ["middle", "large"]


def test_a_gate_that_cannot_detect_a_change_of_the_limit_exits_with_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = pair(tmp_path, Made(seed=2, drift={0: 1.06, 1: 0.94, 2: 1.03, 3: 0.96, 4: 1.05}))
    assert gate(paths) == 3
    capsys.readouterr()
    assert gate(paths, "--allow-missing", "--json") == 3
    found = json.loads(capsys.readouterr().out)
    assert len(found["untested"]) == 3
    assert all(case["smallest"] > 0.1 for case in found["cases"] if not case["missing"])


def test_a_case_that_one_side_could_not_measure_counts_as_untested(tmp_path: Path) -> None:
    base = str(Made(seed=1).write(tmp_path / "a.json"))
    failed = with_failed_case(tmp_path, "failed", 2, "middle")
    assert gate([base, failed]) == 3
    assert gate([failed, base]) == 3


def test_a_case_that_neither_side_could_measure_does_not_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate([with_failed_case(tmp_path, f"{seed}", seed, "middle") for seed in (1, 2)]) == 0
    assert "2 of 2" in capsys.readouterr().out


def test_a_slower_case_fails_the_gate_although_others_are_missing(tmp_path: Path) -> None:
    paths = pair(tmp_path, Made(seed=2, costs={"large": SLOWER["large"]}))
    assert gate(paths) == 1
    assert gate(paths, "--allow-missing") == 1


@pytest.mark.parametrize(
    "more",
    [("--fail-over", "-1"), ("--fail-over", "nan"), ("--fail-over", "x"), ("--allow-missing",)],
)
def test_a_gate_with_wrong_options_exits_with_2(tmp_path: Path, more: tuple[str, ...]) -> None:
    assert main(["compare", *pair(tmp_path), *more]) == 2


def test_a_gate_with_an_unreadable_file_exits_with_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    assert gate([str(bad), pair(tmp_path)[1]]) == 2
    assert gate([str(tmp_path / "absent.json"), pair(tmp_path)[1]]) == 2


def test_a_run_is_not_gated_against_itself_or_its_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, _ = pair(tmp_path)
    assert gate([base, base]) == 2
    assert base in capsys.readouterr().err
