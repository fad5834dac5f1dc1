"""Finding a step: names, arguments, what is a step and what returns one, and every refusal in one
line.
"""

from __future__ import annotations

import functools
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.timing.steps import (
    find_step,
    literals,
    refuse_long,
    step_from,
    step_given,
    step_named,
    telling_first_call,
)

PROGRAM = """
calls = []

class Model:
    def __call__(self, x):
        return x

def step():
    calls.append(1)
    return len(calls)

def takes_an_input():
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

class Counter:
    def __call__(self):
        return "called"

def build_object():
    return Counter()

def build_partial():
    import functools
    return functools.partial(pow, 2, 5)

def build_bound():
    return [1, 2].copy

def build_builtin():
    import time
    return time.perf_counter_ns

def build_builtin_type():
    return dict

async def waits():
    return 1

def build_async():
    return waits

def returns_coroutine():
    return waits()

def counts():
    yield 1

def build_generator():
    return counts

def returns_generator():
    return counts()

class Awaited:
    async def __call__(self):
        return 1

def build_awaited():
    return Awaited()

def runs_coroutine():
    import asyncio
    import functools
    return functools.wraps(waits)(lambda: asyncio.run(waits()))

from collections import OrderedDict, deque

class Group:
    @staticmethod
    def step():
        return 1
"""


def build_here() -> Any:
    return lambda: "the step"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "my_program.py"
    path.write_text(PROGRAM)
    monkeypatch.delitem(sys.modules, "my_program", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return str(path)


@pytest.mark.parametrize("suffix", [".py", ""])
def test_a_file_without_a_function_is_told_with_the_functions_that_it_defines(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "from collections import deque\ndef main(): pass\ndef _own(): pass\nclass Model: pass\nstep"
        " = deque\n"
    )
    Path("train.py").write_text(text, "utf-8")
    with pytest.raises(UsageError) as refused:
        step_named(f"train{suffix}")
    assert re.findall(r"train\.py:(\w+)", str(refused.value)) == ["main"]


@pytest.mark.parametrize(
    ("text", "place"), [("x = 1\ndef f(:", "a.py, line 2: "), ("x = 1", "a.py"), ("\0", "a.py")]
)
def test_a_file_without_a_function_that_can_be_named_is_told_too(
    text: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(text, "utf-8")
    with pytest.raises(UsageError) as refused:
        step_named("a.py")
    assert str(refused.value).startswith(place)
    assert "\n" not in str(refused.value)


def made(program: str, function: str, *arguments: str) -> Any:
    source = step_named(f"{program}:{function}", arguments)
    scope: dict[str, Any] = {}
    exec(source.setup, scope)
    return scope["step"]


def test_a_function_that_returns_a_function_gives_that_function_as_the_step(program: str) -> None:
    assert made(program, "build")() == (2, "a"), "the defaults of its arguments"
    assert made(program, "build", "layers=[1, 2]", "name=wide")() == ([1, 2], "wide")


@pytest.mark.parametrize(
    ("function", "returned", "result"),
    [
        ("build_object", "Counter", "called"),
        ("build_partial", "partial", 32),
        ("build_bound", "builtin_function_or_method", [1, 2]),
        ("build_builtin_type", "type", {}),
        ("runs_coroutine", "function", 1),
    ],
)
def test_whatever_can_be_called_and_is_returned_is_the_step(
    program: str, function: str, returned: str, result: Any
) -> None:
    found = find_step(program, function, {})
    assert found.is_returned
    assert found.returned == returned
    assert found.call() == result


def test_the_first_call_of_a_function_is_told_after_its_file_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", list(sys.path))
    told: list[str] = []
    path = tmp_path / "slow_import.py"
    path.write_text(
        "imported = True\ndef build():\n    assert told == ['call']\n    return lambda: None\n"
    )

    def tell() -> None:
        module = next(
            one for one in sys.modules.values() if getattr(one, "__file__", None) == str(path)
        )
        assert module.imported
        told.append("call")
        module.__dict__["told"] = told

    with telling_first_call(tell):
        find_step(str(path), "build", {})
    assert told == ["call"]
    step_from(time.perf_counter_ns, "build")
    assert told == ["call"], "nobody is told after the block"


def test_a_builtin_that_is_returned_is_the_step(program: str) -> None:
    assert find_step(program, "build_builtin", {}).call is time.perf_counter_ns


@pytest.mark.needs("torch")
def test_a_module_of_pytorch_is_a_step_if_its_forward_needs_nothing() -> None:
    torch: Any = pytest.importorskip("torch")
    module: Any = torch.nn.Module

    class Fixed(module):  # type: ignore[misc]
        def forward(self, x: Any = 3) -> Any:
            return x

    fixed = Fixed()
    assert step_from(lambda: fixed, "build").call is fixed
    with pytest.raises(UsageError, match=r"\bLinear\b.*\bbuild\b.*\binput\b"):
        step_from(lambda: torch.nn.Linear(2, 2), "build")


@pytest.mark.needs("jax")
def test_a_function_that_jax_compiles_is_a_step_if_it_needs_nothing() -> None:
    jax = pytest.importorskip("jax")
    compiled = jax.jit(lambda: 3)
    assert step_from(lambda: compiled, "build").call is compiled
    with pytest.raises(UsageError, match=r"\bbuild\b.*\bx\b"):
        step_from(lambda: jax.jit(lambda x: x), "build")


def test_a_function_that_returns_nothing_that_can_be_called_is_itself_the_step(
    program: str,
) -> None:
    found = find_step(program, "step", {})
    assert not found.is_returned
    assert found.returned == "int"
    assert found.call() == 2, "the first call was made to see what it returns"
    assert find_step(program, "Group.step", {}).call() == 1
    nothing = step_from(list[int]().clear, "clear")
    assert not nothing.is_returned
    assert nothing.returned == ""


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        ("waits", "asyncio.run"),
        ("build_async", "asyncio.run"),
        ("build_awaited", "asyncio.run"),
        ("returns_coroutine", "asyncio.run"),
        ("counts", "next()"),
        ("build_generator", "next()"),
        ("returns_generator", "next()"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_work_that_a_call_does_not_run_is_refused_with_what_to_do(
    program: str, function: str, remedy: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(remedy)) as caught:
        find_step(program, function, {})
    assert "\n" not in str(caught.value)


def test_a_function_of_this_process_that_is_asynchronous_is_refused() -> None:
    async def waits() -> int:
        return 1

    with pytest.raises(UsageError, match=r"asyncio\.run"):
        step_given(waits)


def taking(times_s: list[float], monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A program whose next calls take these times, which are removed from the list."""
    now = [0.0]
    monkeypatch.setattr("overhead.timing.steps.time.perf_counter", lambda: now[0])

    def main() -> None:
        now[0] += times_s.pop(0)

    return main


def test_a_program_that_is_named_in_place_of_a_step_is_refused_after_two_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times_s = [3.0, 2.8]
    found = step_from(taking(times_s, monkeypatch), "main")
    with pytest.raises(UsageError, match=r"\bmain\b.*2\.8 s"):
        refuse_long(found, longest_s=1.0)
    assert times_s == []


@pytest.mark.parametrize(
    "times_s", [[3.0, 0.1], [0.1]], ids=["long first call", "short first call"]
)
def test_a_step_with_a_short_call_among_the_first_two_is_not_refused(
    times_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_long(step_from(taking([*times_s], monkeypatch), "main"), longest_s=1.0)


def test_a_step_that_is_returned_is_timed_and_not_the_function_that_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr("overhead.timing.steps.time.perf_counter", lambda: now[0])

    def spend(seconds: float) -> None:
        now[0] += seconds

    def build(load_s: float, step_s: float) -> Any:
        spend(load_s)
        return functools.partial(spend, step_s)

    refuse_long(step_from(lambda: build(load_s=20.0, step_s=0.1), "build"), longest_s=1.0)
    with pytest.raises(UsageError, match=r"\bbuild\b.*\b2 s"):
        refuse_long(step_from(lambda: build(load_s=0.1, step_s=2.0), "build"), longest_s=1.0)


def test_an_unknown_function_lists_those_of_the_file_and_not_what_it_imports(program: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_step(program, "buidl", {})
    assert "build_object" in str(caught.value)
    assert "OrderedDict" not in str(caught.value)
    assert find_step(program, "deque", {}).returned == "deque", "what is imported can be named"


def test_a_function_of_this_process_that_returns_a_step_gives_that_step() -> None:
    scope: dict[str, Any] = {}
    exec(step_given(build_here).setup, scope)
    assert scope["step"]() == "the step"
    assert scope["found_step"].is_returned


@pytest.mark.parametrize(
    ("function", "arguments", "named"),
    [
        ("stepp", (), ["my_program.py", "'stepp'", "'step'"]),
        ("value", (), ["value", "int"]),
        ("needs", (), ["needs", "--arg size=VALUE"]),
        ("build", ("layer=3",), ["'layer'", "'layers'"]),
        ("returns_needing", (), ["function", "returns_needing", "x"]),
        ("takes_an_input", (), ["Model", "takes_an_input", "x"]),
        ("raises", (), ["my_program.py:27", "raises: ValueError: no such thing"]),
    ],
)
def test_a_name_that_is_no_step_is_refused_in_one_line(
    program: str, function: str, arguments: tuple[str, ...], named: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        made(program, function, *arguments)
    said = str(caught.value)
    assert all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said) for name in named), said
    assert "\n" not in said


def test_a_program_that_does_not_compile_or_exits_is_refused_in_one_line(tmp_path: Path) -> None:
    for text, line in (
        ("x = (", "SyntaxError"),
        ("raise SystemExit(3)", "exiting.py:1, in <module>: SystemExit: 3"),
    ):
        path = tmp_path / "exiting.py"
        path.write_text(text)
        sys.modules.pop("exiting", None)
        with pytest.raises(UsageError, match=line):
            find_step(str(path), "step", {})


def test_another_process_can_load_a_function_of_this_process() -> None:
    source = step_given(tempfile.gettempdir)
    assert source.function == "gettempdir"
    assert source.file == "tempfile.py"
    scope: dict[str, Any] = {}
    exec(source.setup, scope)
    assert scope["step"]() == tempfile.gettempdir()


@pytest.mark.parametrize("value", ["1e999", "{[]: 1}", "-" * 3000 + "1", "text"])
def test_an_argument_with_any_characters_reaches_the_function_and_the_saved_file(
    program: str, value: str
) -> None:
    source = step_named(f"{program}:build", [f"layers={value}"])
    assert source.arguments == {"layers": value}
    scope: dict[str, Any] = {}
    exec(source.setup, scope)
    assert repr(scope["step"]()[0]) == repr(literals({"layers": value})["layers"])


@pytest.mark.parametrize(
    "returned",
    [
        (len, len),
        [len],
        {"step": len},
        {len},
        (3, len),
        type("Step", (), {"__call__": lambda self: 1}),
    ],
    ids=["tuple", "list", "dict", "set", "beside a number", "class"],
)
def test_functions_in_a_container_and_a_class_are_no_step(returned: Any) -> None:
    with pytest.raises(UsageError) as refused:
        step_from(lambda: returned, "build")
    assert re.search(r"\bbuild\b", str(refused.value))


@pytest.mark.parametrize("returned", [(1, 2), [], {"loss": 0.5}, {1.0}], ids=repr)
def test_a_function_that_returns_values_is_itself_the_step(returned: Any) -> None:
    found = step_from(lambda: returned, "step")
    assert not found.is_returned
    assert found.returned == type(returned).__qualname__
