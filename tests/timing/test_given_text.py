"""CALL and SETUP from files and from standard input."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from overhead.errors import UsageError
from overhead.timing.given_text import GivenText, given_texts


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def standard_input(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))


def test_a_statement_stands_for_itself() -> None:
    assert given_texts(["x @ y"], ["x = 1", "y = 2"]) == (
        [GivenText("x @ y")],
        [GivenText("x = 1"), GivenText("y = 2")],
    )


def test_a_decorator_is_no_file() -> None:
    text = "@cache\ndef f(): pass"
    assert given_texts(["f()"], [text])[1] == [GivenText(text)]


def test_a_file_gives_its_text_and_its_name_as_the_label() -> None:
    Path("call.py").write_bytes(b"\xef\xbb\xbfx += 1\r\nawait f(x)\r\n")
    ((call,), (setup,)) = given_texts(["@call.py"], ["@call.py"])
    assert call == setup == GivenText("x += 1\nawait f(x)\n", "call.py")
    assert call.label == "call.py"


@pytest.mark.parametrize("sign", ["-", "@-"])
def test_standard_input_is_the_call_or_the_setup(
    sign: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    standard_input(monkeypatch, b"f(x)\n")
    assert given_texts([sign], [])[0][0].label == "f(x)"
    standard_input(monkeypatch, b"x = 1")
    assert given_texts(["f(x)"], [sign])[1][0].text == "x = 1"


def test_standard_input_is_read_once() -> None:
    with pytest.raises(UsageError):
        given_texts(["-"], ["@-"])


def test_the_label_of_a_function_is_its_name() -> None:
    assert GivenText(" train.py:step ").label == "train.py:step"


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"x = 1\ny = (2\n", "text.py, line 2: "),
        (b"x = 1\n  y = 2\n", "text.py, line 2: "),
        (b"", "text.py: "),
        (b"x = 1\0", "text.py"),
        (b"x = '\xff'", "text.py: "),
        (b"#" * 1_000_001, "text.py: "),
    ],
)
def test_a_file_that_is_no_python_is_refused_with_its_place(content: bytes, place: str) -> None:
    Path("text.py").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        given_texts(["@text.py"], [])
    assert str(refused.value).startswith(place)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_missing_is_an_error_of_the_system() -> None:
    with pytest.raises(FileNotFoundError):
        given_texts(["x"], ["@gone.py"])
