"""``overhead explain`` and the comparison of its files on the command line: what is refused before anything runs,
and an interrupt."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import CannotWrite
from overhead.explain.explaining import explain
from overhead.explain.record import decode_explanation, read_explanation, save_explanation
from tests.fakes.explanations import DECODE, decode_explained, interrupted_timing, profile_of


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


def test_an_interrupt_prints_json_if_asked(interrupted_step: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", interrupted_step, "--no-alternatives", "--json"]) == 130
    printed = capsys.readouterr()
    assert decode_explanation(printed.out.encode()).step.wall.reason == "interrupted before it was measured"
    assert printed.err == "overhead: interrupted; the profile is in the output, without times and alternatives\n"
