"""Find the step to explain: ``FILE.py:FUNCTION`` or ``module:function``, which returns a step, or is the step."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from overhead.errors import UsageError, check_text, one_line, unknown_name
from overhead.explain.call_spec import setup_of
from overhead.explain.record import CallSite
from overhead.explain.state import SUITE, is_own_code

_MOST_TEXT = 4000
"""What the file of an explanation can hold."""


class StepSource(Struct, frozen=True, kw_only=True):
    """Where a step comes from. ``setup``: Python text that defines ``step``, in any process. ``file``: for the reader.

    ``path``: entries of ``sys.path`` that the program needs. ``folder``: the program's; lines are relative to it.
    """

    setup: str
    file: str
    function: str
    arguments: dict[str, str] = {}
    path: list[str] = []
    folder: str = ""


def step_named(text: str, arguments: Sequence[str] = ()) -> StepSource:
    """The source of ``FILE.py:FUNCTION`` or ``module:function`` with ``NAME=VALUE`` arguments; or ``UsageError``."""
    place, colon, function = text.rpartition(":")
    if not (place and colon and all(part.isidentifier() for part in function.split("."))):
        raise UsageError(f"{text}: name a function, FILE.py:FUNCTION or module:function")
    check_text(text)
    given = dict(map(_argument, arguments))
    shown, folder = place, os.getcwd()
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UsageError(f"{place}: no such file")
        file = Path(place).resolve()
        place, shown, folder = str(file), file.name, str(file.parent)
    found = f"load_step({place!r}, {function!r}, literals({given!r}))"
    return StepSource(
        setup=f"from {__name__} import literals, load_step\nstep = {found}",
        file=shown,
        function=function,
        arguments=given,
        path=[folder, os.getcwd()],
        folder=folder,
    )


def step_given(step: Callable[[], object]) -> StepSource:
    """The source of a function of this process, which other processes can find again. Raises ``UsageError``."""
    module = sys.modules.get(getattr(step, "__module__", "") or "")
    file = getattr(module, "__file__", None) or getattr(step, "__module__", "") or "a notebook"
    folder = str(Path(file).resolve().parent) if os.path.isfile(file) else os.getcwd()
    return StepSource(
        setup=setup_of(step, "step"),
        file=os.path.basename(file),
        function=getattr(step, "__qualname__", type(step).__qualname__),
        path=list(sys.path),
        folder=folder,
    )


def _argument(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or len(text) > _MOST_TEXT:
        raise UsageError(f"--arg {text[:80]}: write NAME=VALUE, {_MOST_TEXT} characters at most")
    check_text(text)
    return name, value


def literals(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of arguments that are given as text: Python literals; any other text stands for itself."""
    found: dict[str, Any] = dict(given)
    for name, text in given.items():
        with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name] = ast.literal_eval(text)
    return found


def load_step(place: str, function: str, arguments: Mapping[str, Any]) -> Callable[[], Any]:
    """The step that a function of a file or module returns, else the function itself. Raises ``UsageError``."""
    found = _module(place)
    for name in function.split("."):
        if not hasattr(found, name):
            named = [each for each, value in vars(found).items() if callable(value) and not each.startswith("_")]
            raise unknown_name(f"function in {os.path.basename(place)}:", name, named)
        found = getattr(found, name)
    if not callable(found):
        raise UsageError(f"{function} is {type(found).__name__} and no function")
    lacking = _lacking(found, arguments)
    if lacking:
        raise UsageError(f"{function} needs {', '.join(lacking)}: give --arg {lacking[0]}=VALUE")
    step: Callable[[], Any] = functools.partial(found, **arguments) if arguments else found
    made = _checked(step)
    # What a step returns may be callable too, such as a module: a function of the program is meant.
    if isinstance(made, types.FunctionType | types.MethodType | functools.partial) or isinstance(found, type):
        if lacking := _lacking(made, {}):
            raise UsageError(f"the step that {function} returns needs {', '.join(lacking)}; a step takes no arguments")
        step = made
    return step


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        return _checked(functools.partial(importlib.import_module, place))
    name = Path(place).stem
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UsageError(f"{place}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    if str(Path(place).parent) not in sys.path:
        sys.path.insert(0, str(Path(place).parent))
    sys.modules.setdefault(name, module)
    _checked(functools.partial(spec.loader.exec_module, module))
    return module


def _lacking(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """The arguments without a default that are not given. Raises ``UsageError`` for one that does not exist."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a function written in C
        return []
    plain = [p for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [name for name in arguments if name not in parameters]
    if unknown and not any(p.kind == p.VAR_KEYWORD for p in parameters.values()):
        raise unknown_name("argument", unknown[0], [p.name for p in plain])
    return [p.name for p in plain if p.default is p.empty and p.name not in arguments]


def _checked(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except UsageError:
        raise
    except BaseException as error:  # sys.exit too
        raise UsageError(error_text(error)) from error


def error_text(error: BaseException, otherwise: Callable[[BaseException], str] = one_line) -> str:
    """One line with the program's line, ``train.py:12, in step: ValueError: no``; ``otherwise`` if there is none."""
    if isinstance(error.__cause__, StopIteration):  # a generator turns it into a RuntimeError
        error = error.__cause__
    line = program_line(error)
    return f"{line}: {one_line(error)}" if line else otherwise(error)


def program_line(error: BaseException, *, texts: bool = False) -> str:
    """The innermost line of the program that raised, ``train.py:12, in step``; ``texts``: also code without a file."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        if is_own_code(code) and (texts or not code.co_filename.startswith("<")):
            found = f"{os.path.basename(code.co_filename)}:{line}, in {code.co_name}"
    return found


def call_site(frame: types.FrameType | None, folder: str, libraries: Sequence[str]) -> CallSite:
    """The line of the program that leads to this frame, and the innermost line of a library outside ``libraries``."""
    inside = ""
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith((*libraries, SUITE, "<")):
            line = f"{_shown(code.co_filename, folder)}:{frame.f_lineno}"
            if is_own_code(code):
                return CallSite(line=line, inside=inside)
            inside = inside or line
        frame = frame.f_back
    return CallSite(inside=inside)


def _shown(file: str, folder: str) -> str:
    """A file without what names the machine: relative to the program, or below ``site-packages``."""
    if folder and file.startswith(folder + os.sep):
        return os.path.relpath(file, folder).replace(os.sep, "/")
    _, packages, rest = file.replace(os.sep, "/").rpartition("/site-packages/")
    return rest if packages else os.path.basename(file)
