"""Finding a step: names, arguments, what is a step and what returns one, and every refusal in one line."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.explain.steps import load_step, step_given, step_named

PROGRAM = """
calls = []

class Model:
    def __call__(self, x):
        return x

def step():
    calls.append(1)
    return Model()

def build(layers=2, name="a"):
    def one():
        return layers, name
    return one

def needs(size):
    return lambda: size

def returns_needing():
    return lambda x: x

def raises():
    raise ValueError("no  such\\nthing")

value = 3

class Group:
    @staticmethod
    def step():
        return 1
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "my_program.py"
    path.write_text(PROGRAM)
    monkeypatch.delitem(sys.modules, "my_program", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return str(path)


def made(program: str, function: str, *arguments: str) -> Any:
    source = step_named(f"{program}:{function}", arguments)
    scope: dict[str, Any] = {}
    exec(source.setup, scope)
    return scope["step"]


def test_a_function_that_returns_a_function_gives_that_function_as_the_step(program: str) -> None:
    assert made(program, "build")() == (2, "a")
    assert made(program, "build", "layers=[1, 2]", "name=wide")() == ([1, 2], "wide")


def test_a_function_that_returns_no_function_is_itself_the_step(program: str) -> None:
    assert type(made(program, "step")()).__name__ == "Model"
    assert made(program, "Group.step")() == 1


@pytest.mark.parametrize(
    ("function", "arguments", "line"),
    [
        ("stepp", (), "unknown function in my_program.py: 'stepp', did you mean 'step'?"),
        ("value", (), "value is int and no function"),
        ("needs", (), "needs needs size: give --arg size=VALUE"),
        ("build", ("layer=3",), "unknown argument 'layer', did you mean 'layers'?"),
        ("returns_needing", (), "the step that returns_needing returns needs x; a step takes no arguments"),
        ("raises", (), "my_program.py:24, in raises: ValueError: no such thing"),
    ],
)
def test_a_name_that_is_no_step_is_refused_in_one_line(
    program: str, function: str, arguments: tuple[str, ...], line: str
) -> None:
    with pytest.raises(UsageError) as caught:
        made(program, function, *arguments)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_a_program_that_does_not_compile_or_exits_is_refused_in_one_line(tmp_path: Path) -> None:
    for text, line in (("x = (", "SyntaxError"), ("raise SystemExit(3)", "exiting.py:1, in <module>: SystemExit: 3")):
        path = tmp_path / "exiting.py"
        path.write_text(text)
        sys.modules.pop("exiting", None)
        with pytest.raises(UsageError, match=line):
            load_step(str(path), "step", {})


def test_another_process_can_load_a_function_of_this_process() -> None:
    source = step_given(tempfile.gettempdir)
    assert (source.function, source.file) == ("gettempdir", "tempfile.py")
    scope: dict[str, Any] = {}
    exec(source.setup, scope)
    assert scope["step"]() == tempfile.gettempdir()


@pytest.mark.parametrize("value", ["1e999", "{[]: 1}", "-" * 3000 + "1", "text"])
def test_an_argument_with_any_characters_reaches_the_function_and_the_saved_file(program: str, value: str) -> None:
    source = step_named(f"{program}:build", [f"layers={value}"])
    assert source.arguments == {"layers": value}
    scope: dict[str, Any] = {}
    exec(source.setup.replace("step = load_step", "found = lambda place, function, given: given\nstep = found"), scope)
    assert list(scope["step"]) == ["layers"]
