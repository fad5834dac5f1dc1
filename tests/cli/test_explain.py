"""``overhead explain`` on the command line: what is refused before anything runs,
and what is written."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from overhead.cli import main
from overhead.errors import CannotWrite
from overhead.explaining import explaining
from overhead.explaining.profiling import StepProfile
from overhead.explaining.record import Explanation, save_explanation
from overhead.explaining.saved import read_explanation
from overhead.results import codes_of
from overhead.runner.run import Interrupted
from overhead.timing.call_spec import FoundCall
from overhead.timing.timing import Timing
from overhead.words.explaining.verdict import verdict_sentences
from overhead.words.reasons import sentence
from tests.fakes.explanations import DECODE, decode_explained, profile_of, timing_of
from tests.fakes.reasons import by_code


@pytest.mark.parametrize("option", ["--out", "--html"])
def test_explain_overwrites_no_python_file(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "train.py"
    program.write_text("def step(): pass\n")
    assert main(["explain", f"{program}:step", option, str(program)]) == 2
    assert program.read_text() == "def step(): pass\n"
    assert capsys.readouterr().err.endswith(
        "a Python file is not overwritten; write FILE.json or FILE.html\n"
    )


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="a pipe stands for any file that is not regular"
)
def test_explain_replaces_no_device_or_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "out.json"
    os.mkfifo(pipe)
    assert main(["explain", "train.py:step", "--out", str(pipe)]) == 2
    assert capsys.readouterr().err == f"overhead: {pipe}: exists and is no regular file\n"
    with pytest.raises(CannotWrite, match="exists and is no regular file"):
        save_explanation(pipe, decode_explained())
    assert pipe.is_fifo()


def test_explain_writes_its_files_and_prints_their_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = decode_explained()
    monkeypatch.setattr("overhead.explaining.explaining.explain", lambda step, **more: found)
    out, html = tmp_path / "out.json", tmp_path / "out.html"
    assert main(["explain", "decode.py:step", "--out", str(out), "--html", str(html)]) == 0
    printed = capsys.readouterr()
    assert found.verdict.kind == "host"
    first = verdict_sentences(found)[0]
    assert first in " ".join(printed.out.split())
    assert printed.out.endswith(f"explanation: {out}\npage: {html}\n")
    assert read_explanation(out).verdict.kind == "host"
    assert first in html.read_text("utf-8")
    assert main(["explain", "decode.py:step", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(out.read_text("utf-8"))


def test_explain_interrupted_after_the_profile_shows_and_writes_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*given: Any, **more: Any) -> Timing:
        raise Interrupted([tmp_path / "r.jsonl"])

    monkeypatch.setattr(explaining, "profile_step", lambda source, **more: profile_of(DECODE))
    monkeypatch.setattr(explaining, "time_statements", interrupted)
    (tmp_path / "decode.py").write_text("def step(): pass\n")
    out = tmp_path / "explained.json"
    assert (
        main(["explain", f"{tmp_path}/decode.py:step", "--no-alternatives", "--out", str(out)])
        == 130
    )
    printed, whole, found = capsys.readouterr(), decode_explained(), read_explanation(out)
    missing = by_code(found.not_seen)["interrupted"]
    assert sentence(missing) in " ".join(printed.out.split())
    assert printed.err
    assert found.verdict.kind == whole.verdict.kind
    for name in ("replay", "per_step", "operations", "synchronisations", "gaps", "profiled_steps"):
        assert getattr(found, name) == getattr(whole, name)
    for figure in (found.step.wall, found.step.issue, found.step.fixed):
        assert codes_of(figure.reason) == {"interrupted-before"}


def on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step without device work is profiled and timed."""
    found = FoundCall(one_ns=1e6, waits=["none"], said="", api="CPU", adapter="CPU")
    profile = StepProfile(found, "none", "", reason="a step without PyTorch is not profiled")
    monkeypatch.setattr(explaining, "profile_step", lambda source, **more: profile)
    monkeypatch.setattr(
        explaining, "time_statements", lambda *given, **more: timing_of(1e6, 1e6, on="CPU")
    )
    monkeypatch.setattr(explaining, "device_lock", lambda waiting: contextlib.nullcontext())


def test_a_replay_that_cannot_be_written_loses_no_other_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_the_processor(monkeypatch)
    (tmp_path / "a.py").write_text("def step(): pass\n")
    out, html, chrome = tmp_path / "o.json", tmp_path / "o.html", tmp_path / "c.json"
    files = ["--out", str(out), "--html", str(html), "--chrome", str(chrome)]
    assert main(["explain", f"{tmp_path}/a.py:step", "--no-alternatives", *files]) == 2
    printed = capsys.readouterr()
    assert read_explanation(out).verdict.kind == "host"
    assert "The times of a step" in printed.out
    assert html.exists()
    assert not chrome.exists()
    assert f"replay: {chrome}" not in printed.out
    assert [line for line in printed.err.splitlines() if str(chrome) in line]
    assert "no-replay" in by_code(read_explanation(out).not_seen)


def test_a_file_that_cannot_be_written_loses_neither_the_table_nor_the_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_the_processor(monkeypatch)
    (tmp_path / "a.py").write_text("def step(): pass\n")
    out, html = tmp_path / "o.json", tmp_path / "o.html"

    def full(path: Path, found: Explanation) -> None:
        raise CannotWrite(f"{path}: No space left on device")

    monkeypatch.setattr("overhead.explaining.record.save_explanation", full)
    files = ["--out", str(out), "--html", str(html)]
    assert main(["explain", f"{tmp_path}/a.py:step", "--no-alternatives", *files]) == 2
    printed = capsys.readouterr()
    assert "The times of a step" in printed.out
    assert html.exists()
    assert printed.err == f"overhead: {out}: No space left on device\n"
