"""What the commands that read files do with a saved answer of ``overhead time`` and of ``overhead explain``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explain.record import save_explanation
from overhead.explain.saved import read_timing
from tests.fakes.explanations import decode_explained
from tests.fakes.timings import two_calls


@pytest.fixture(params=["time", "explain"])
def answer(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The saved answer of one of the two commands."""
    path = tmp_path / "answer.json"
    if request.param == "time":
        path.write_text(json.dumps(two_calls().to_dict()), "utf-8")
    else:
        save_explanation(path, decode_explained())
    return path


def test_show_prints_the_answer_again(answer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(answer)]) == 0
    assert capsys.readouterr().out.strip()
    assert main(["show", str(answer), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(answer.read_text("utf-8"))


@pytest.mark.parametrize("command", [["compare", "FILE", "FILE"], ["export", "FILE"], ["show", "FILE", "a case"]])
def test_other_commands_refuse_it_in_one_line_that_names_what_it_is(
    answer: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    named = "overhead time" if "overhead-time" in answer.read_text("utf-8") else "overhead explain"
    assert main([word.replace("FILE", str(answer)) for word in command]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert named in said
    assert "overhead show" in said


@pytest.mark.parametrize("change", [{"version": 9}, {"calls": []}, {"calls": 1}])
def test_a_damaged_answer_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(two_calls().to_dict() | change), "utf-8")
    with pytest.raises(BadFile):
        read_timing(path)
    assert main(["show", str(path)]) == 2
