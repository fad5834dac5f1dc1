"""What the commands that read files do with a saved answer of ``overhead time`` and of ``overhead
explain``.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explaining.conditions import CONDITIONS_BY_OLDER_NAME, WITHOUT_COLLECTION
from overhead.explaining.record import save_explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.verdict import verdict_reasons
from overhead.results import Figure, Reason
from overhead.timing.saved import read_timing
from overhead.words.explaining.alternatives import alternative_name
from overhead.words.reasons import sentence
from tests.fakes.explanations import decode_explained
from tests.fakes.reasons import by_code
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


@pytest.mark.parametrize(
    "command", [["compare", "FILE", "FILE"], ["export", "FILE"], ["show", "FILE", "a case"]]
)
def test_other_commands_refuse_it_in_one_line_that_names_what_it_is(
    answer: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    named = "overhead time" if "overhead-time" in answer.read_text("utf-8") else "overhead explain"
    assert main([word.replace("FILE", str(answer)) for word in command]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert named in said
    assert "overhead show" in said


@pytest.mark.parametrize("name", CONDITIONS_BY_OLDER_NAME)
def test_a_condition_of_an_older_file_is_known_by_its_name(tmp_path: Path, name: str) -> None:
    """Its gain decides what is said of the collector, as it does in a file with the code."""
    path = tmp_path / "older.json"
    found = decode_explained()
    gain = Figure(name="gain", unit="ratio", value=1.0, low=0.99, high=1.01)
    older = msgspec.structs.replace(found.alternatives[1], name=name, kind="condition", gain=gain)
    named = msgspec.structs.replace(older, name="a name of another version")
    host = [
        Figure(name="collector", unit="ratio", value=0.2),
        Figure(name="longest_pause", value=4e6),
    ]
    save_explanation(path, msgspec.structs.replace(found, alternatives=[older, named], host=host))
    read = read_explanation(path)
    assert [one.condition for one in read.alternatives] == [CONDITIONS_BY_OLDER_NAME[name], None]
    # A gain of 1.0 without collection: to freeze the collector would not help.
    is_useless = CONDITIONS_BY_OLDER_NAME[name] == WITHOUT_COLLECTION
    said = by_code(verdict_reasons(read))
    assert ("collects-garbage" in said) == is_useless
    assert ("collects-garbage-freeze-it" in said) != is_useless


def test_a_condition_is_saved_and_shown_with_its_code_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "conditions.json"
    found = decode_explained()
    condition = Reason("beside-busy-processes", {"number": 7})
    saved = msgspec.structs.replace(
        found.alternatives[1], name=condition.code, kind="condition", condition=condition
    )
    save_explanation(path, msgspec.structs.replace(found, alternatives=[saved]))
    (read,) = read_explanation(path).alternatives
    assert read == saved
    assert alternative_name(read) == sentence(condition)


@pytest.mark.parametrize("change", [{"version": 9}, {"calls": []}, {"calls": 1}])
def test_a_damaged_answer_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(two_calls().to_dict() | change), "utf-8")
    with pytest.raises(BadFile):
        read_timing(path)
    assert main(["show", str(path)]) == 2
