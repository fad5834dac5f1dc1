"""The reading commands: which run they take, what they print where, and what they say of wrong names."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from overhead.blocks.parts import Table, Text
from overhead.blocks.terminal import show, terminal
from overhead.cli import main
from overhead.comparing import compare
from overhead.comparing.pairing import refusal
from overhead.comparing.sides import read_side
from overhead.errors import unknown
from overhead.reading.view import without_device
from overhead.report.brief import brief_blocks
from tests.fakes.report import fingerprint, record
from tests.fakes.runs import Made
from tests.terminal.test_goldens import compared, printed

TABLE = Table(
    "",
    ["stack", "cost", "host"],
    [["wgpu-native", "41.9 (40.7 to 43.1)", "41.7 (40.8 to 42.6)"]],
    numeric=(1, 2),
    optional={2: 1},
)


@pytest.fixture
def local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ``reports/local`` below the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "reports" / "local"
    folder.mkdir(parents=True)
    return folder


def test_show_without_a_file_takes_the_newest_run(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, name in ((1, "b"), (2, "a")):
        os.utime(Made(seed=seed).write(local / f"{name}.json"), (1_000_000_000 - seed,) * 2)
    assert main(["show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["created"].endswith("12:00:01Z")


def test_show_without_a_run_says_how_to_make_one(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show"]) == 2
    assert "overhead run makes one" in capsys.readouterr().err


def test_show_of_a_folder_names_its_newest_file(local: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Made().write(local / "a.json")
    assert main(["show", str(local)]) == 2
    said = capsys.readouterr().err
    assert "a folder; name one of its files, the newest is" in said
    assert said.rstrip().endswith("a.json")


@pytest.mark.parametrize("name", ["wgpu", "WGPU-native", "wgpu_native"])
def test_a_wrong_name_gets_the_nearest_one(name: str) -> None:
    assert "did you mean 'wgpu-native'?" in str(unknown("stack", name, ["torch", "wgpu-native", "dawn"]))


def test_a_name_unlike_any_other_gets_the_list_alone() -> None:
    assert str(unknown("stack", "xyz", ["torch", "dawn"])) == "unknown stack 'xyz'; known: dawn, torch"


def test_export_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Made(seed=1).write(tmp_path / "a.json")
    assert main(["export", str(tmp_path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"stack", "figure", "value", "low", "high"} <= rows[0].keys()


def test_completion_lists_stacks_patterns_and_workloads(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab", reason="pip install shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in ("wgpu-native", "per-submit", "recurrence"))


def test_completion_without_its_package_names_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "shtab", None)
    assert main(["completion", "zsh"]) == 2
    assert "pip install shtab" in capsys.readouterr().err


def test_a_narrow_console_loses_optional_columns_and_never_wraps_a_number() -> None:
    wide = printed([TABLE], 100)
    assert "41.9 (40.7 to 43.1)   41.7 (40.8 to 42.6)" in wide
    assert "host;" not in wide
    narrow = printed([TABLE], 45)
    assert "wgpu-native   41.9 (40.7 to 43.1)" in narrow
    assert "41.7" not in narrow
    assert "host;" in narrow, "the column that is missing is named"


def test_output_that_is_no_terminal_is_wide_unless_columns_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert terminal().width >= 200
    monkeypatch.setenv("COLUMNS", "90")
    assert terminal().width == 90


def test_a_sentence_wraps_in_a_terminal_only() -> None:
    for is_terminal, lines in ((False, 1), (True, 2)):
        out = io.StringIO()
        show([Text(["word " * 15])], Console(file=out, width=50, force_terminal=is_terminal, color_system=None))
        assert len(out.getvalue().splitlines()) == lines


def test_labels_lose_a_device_that_all_share() -> None:
    labels = ["torch", "torch on NVIDIA H200", "dawn on NVIDIA H200", "dawn on Null backend (runs nothing)"]
    assert without_device(labels) == (
        ["torch on CPU", "torch", "dawn", "dawn on Null backend (runs nothing)"],
        "NVIDIA H200",
    )
    assert without_device(["torch on A", "torch on B"]) == (["torch on A", "torch on B"], "")


def test_show_prints_base_cases_and_all_prints_the_others() -> None:
    base, varied = record(each=20_000.0), record(each=24_000.0, params={"wait": "map"})
    run = fingerprint(base, varied)
    short = printed(brief_blocks(run))
    assert "wait=map" not in short
    assert "1 more case: overhead show --all" in short
    assert "wait=map" in printed(brief_blocks(run, every=True))


@pytest.mark.parametrize("api", ["OpenCL", "SYCL", "threads"])
def test_show_prints_a_stack_of_any_api(api: str) -> None:
    text = printed(brief_blocks(fingerprint(record("my-stack", api=api), record())))
    assert "my-stack" in text


def test_a_reason_for_a_missing_cost_is_printed_once() -> None:
    broken = [
        record(caller=caller, each=None, status="failed", reason="signal 11") for caller in ("binding", "ffi", "native")
    ]
    text = printed(brief_blocks(fingerprint(*broken)))
    assert text.count("No cost of ") == 1


def test_a_comparison_gives_each_reason_once(tmp_path: Path) -> None:
    from overhead.comparing.show import reasons

    paths = [Made(seed=seed).write(tmp_path / f"{seed}.json", samples=False) for seed in (1, 2)]
    (only,) = reasons(compare(paths[0], paths[1]))
    assert only.startswith("Undecided, 3 cases: no raw samples")
    assert all(case.target for case in compared().cases)


def test_the_plural_of_an_older_file_is_no_difference(tmp_path: Path) -> None:
    paths = [
        Made(seed=seed, window={"captured": words}).write(tmp_path / f"{seed}.json")
        for seed, words in ((1, "kept as 1 nodes"), (2, "kept as 1 node"))
    ]
    base, new = (read_side(name, [path]) for name, path in zip(("BASE", "NEW"), paths, strict=True))
    assert {refusal(base, key, new, key) for key in base.keys} == {""}
