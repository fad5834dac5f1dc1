"""``overhead explain`` and the comparison of its files on the command line: what is refused before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import CannotWrite
from overhead.explain.record import save_explanation
from tests.fakes.explanations import decode_explained


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_a_python_file_is_not_overwritten(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "train.py"
    program.write_text("def step(): pass\n")
    assert main(["explain", f"{program}:step", option, str(program)]) == 2
    assert program.read_text() == "def step(): pass\n"
    assert capsys.readouterr().err.endswith("a Python file is not overwritten; write FILE.json or FILE.html\n")


def test_one_file_for_both_outputs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out.json")
    assert main(["explain", "train.py:step", "--out", out, "--html", out]) == 2
    assert capsys.readouterr().err == f"overhead: {out}: --out and --html name the same file\n"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a pipe stands for any file that is not regular")
def test_a_device_or_pipe_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipe = tmp_path / "out.json"
    os.mkfifo(pipe)
    assert main(["explain", "train.py:step", "--out", str(pipe)]) == 2
    assert capsys.readouterr().err == f"overhead: {pipe}: exists and is no regular file\n"
    with pytest.raises(CannotWrite, match="exists and is no regular file"):
        save_explanation(pipe, decode_explained())
    assert pipe.is_fifo()


@pytest.mark.parametrize("more", [("--across", "wait=a,b"), ("--markdown",), ("--fail-over", "5")])
def test_options_of_runs_are_refused_for_explanations(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    save_explanation(file, decode_explained())
    assert main(["compare", str(file), str(file), *more]) == 2
    assert "explanations have no --fail-over, no --markdown and no --across" in capsys.readouterr().err
