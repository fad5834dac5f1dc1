"""``overhead explain`` and the comparison of its files on the command line: what is refused before anything runs,
and an interrupt."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path

import msgspec
import pytest

from overhead.cli import main
from overhead.errors import CannotWrite
from overhead.explain.explaining import explain
from overhead.explain.record import read_explanation, save_explanation
from tests.fakes.explained import explanation
from tests.fakes.explanations import DECODE, decode_explained, interrupted_timing, profile_of
from tests.fakes.report import H200


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_a_python_file_is_not_overwritten(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "train.py"
    program.write_text("def step(): pass\n")
    assert main(["explain", f"{program}:step", option, str(program)]) == 2
    assert program.read_text() == "def step(): pass\n"
    assert capsys.readouterr().err.endswith("a Python file is not overwritten; write FILE.json or FILE.html\n")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe stands for any file that is not regular")
def test_a_device_or_pipe_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "out.json"
    os.mkfifo(pipe)
    assert main(["explain", "train.py:step", "--out", str(pipe)]) == 2
    assert capsys.readouterr().err == f"overhead: {pipe}: exists and is no regular file\n"
    with pytest.raises(CannotWrite, match="exists and is no regular file"):
        save_explanation(pipe, decode_explained())
    assert pipe.is_fifo()


@pytest.fixture
def interrupted_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A step. Ctrl-C interrupts the process while it times this step."""
    (tmp_path / "decode.py").write_text("def step(): pass\n")
    stopped = functools.partial(explain, profiled=lambda *args, **more: profile_of(DECODE), timed=interrupted_timing)
    monkeypatch.setattr("overhead.explain.explaining.explain", stopped)
    return f"{tmp_path}/decode.py:step"


def test_an_interrupt_shows_and_writes_what_the_profile_tells(
    interrupted_step: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, html = tmp_path / "out.json", tmp_path / "out.html"
    assert main(["explain", interrupted_step, "--no-alternatives", "--out", str(out), "--html", str(html)]) == 130
    printed = capsys.readouterr()
    said = f"overhead: interrupted; the profile is in {out} and {html}, without times and alternatives\n"
    assert printed.err == said
    assert "Host-bound" in printed.out
    assert printed.out.endswith(f"explanation: {out}\npage: {html}\n")
    assert read_explanation(out).verdict.kind == "host"
    assert "Host-bound" in html.read_text()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "200")
    paths = [tmp_path / "base.json", tmp_path / "new.json"]
    for path in paths:
        save_explanation(path, msgspec.structs.replace(explanation(), machine=H200))
    return [str(path) for path in paths]


def test_compare_takes_two_explanations(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files]) == 0
    printed = capsys.readouterr().out
    assert "BASE base.json: host-bound. NEW new.json: host-bound." in printed
    assert "no difference: another run may differ by" in printed


def test_compare_prints_json(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files, "--json"]) == 0
    assert {pair["name"] for pair in json.loads(capsys.readouterr().out)["pairs"]} >= {"wall", "launches"}
