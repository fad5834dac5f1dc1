"""Find the step to explain: ``FILE.py:FUNCTION`` or ``module:function``, which returns a step, or
is the step.

Whatever can be called and is returned is the step: a function, an object with ``__call__``, a
PyTorch module, what ``jax.jit`` gives.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from overhead.errors import UsageError, check_text, one_line, unknown_name
from overhead.results import because
from overhead.timing.call_spec import setup_of
from overhead.timing.own_code import is_own_code

_MOST_NAMED = 8
"""If the user names no function, an error names at most so many functions of the file."""
CALLING_THE_FUNCTION = because("calling-the-function")
_told_before_first_call: list[Callable[[], None]] = []
_MOST_TEXT = 4000
"""What the file of an explanation can hold."""


class StepSource(Struct, frozen=True, kw_only=True):
    """Where a step comes from, the function that is measured or explained. ``setup``: Python text
    that defines ``step``, in any process. ``file``: for the reader.

    ``path``: entries of ``sys.path`` that the program needs. ``folder``: the program's; lines are
    relative to it.
    """

    setup: str
    file: str
    function: str
    arguments: dict[str, str] = {}
    path: list[str] = []
    folder: str = ""


@dataclass(frozen=True)
class FoundStep:
    """The step, and how it was found. ``function``: the name of the function that was given.

    ``returned``: the type of what that function returned; "" for None. ``is_returned``: that is the
    step, else the function itself is. ``first_s``: how long the first call of the function took.
    """

    call: Callable[[], Any]
    function: str
    returned: str
    is_returned: bool
    first_s: float


def step_named(text: str, arguments: Sequence[str] = (), variable: str = "") -> StepSource:
    """How other processes find the function ``FILE.py:FUNCTION`` or ``module:function``, which they
    call with these ``NAME=VALUE`` arguments. Raises ``UsageError``.

    The result holds Python text that defines ``step``. ``variable``: a variable that is defined
    where the text runs, and that the function gets as an argument of this name.
    """
    place, colon, function = text.rpartition(":")
    is_name = all(part.isidentifier() for part in function.split("."))
    if not (place and colon and is_name):
        raise _error_without_function(text)
    # Refuses text that is not valid in the encoding of the locale: a file cannot hold it as it is.
    check_text(text)
    given = {}
    for argument in arguments:
        name, value = _name_and_value(argument)
        given[name] = value
    shown = place
    folder = os.getcwd()
    # A worker may run in another folder, so it gets the whole path.
    if place.endswith(".py"):
        if not Path(place).is_file():
            raise UsageError(f"{place}: no such file")
        file = Path(place).resolve()
        place = str(file)
        shown = file.name
        folder = str(file.parent)
    if variable in given:
        raise UsageError(f"--arg {variable} and --vary {variable}: give one of them")
    values = f"literals({given!r})"
    # Python text of two dictionaries joined: the variable is read where the text runs.
    if variable:
        values += f" | {{{variable!r}: {variable}}}"
    setup = (
        f"from {__name__} import find_step, literals\n"
        f"found_step = find_step({place!r}, {function!r}, {values})\n"
        "step = found_step.call"
    )
    return StepSource(
        setup=setup,
        file=shown,
        function=function,
        arguments=given,
        # For ``sys.path``: the folder of the file first, as Python has it for a script.
        path=[folder, os.getcwd()],
        folder=folder,
    )


def _error_without_function(text: str) -> UsageError:
    """The error for a text that names no function. If the text is a file, with or without ``.py``,
    the error names the functions of that file.
    """
    file = text if text.endswith(".py") else f"{text}.py"
    if not os.path.isfile(file):
        return UsageError(f"{text}: name a function, FILE.py:FUNCTION or module:function")
    try:
        body = ast.parse(Path(file).read_bytes()).body
    except SyntaxError as error:
        return UsageError(f"{file}, line {error.lineno}: {error.msg}")
    except ValueError as error:  # a null character
        return UsageError(f"{file}: {error}")
    functions = [statement for statement in body if isinstance(statement, ast.FunctionDef)]
    defined = [each.name for each in functions if not each.name.startswith("_")]
    if not defined:
        return UsageError(
            f"{file} defines no function: put one iteration into a function that returns step();"
            " see docs/explain.md"
        )
    named = [f"{file}:{name}" for name in defined[:_MOST_NAMED]]
    more = ""
    if len(defined) > _MOST_NAMED:
        more = f" and {len(defined) - _MOST_NAMED} more"
    return UsageError(
        f"{text}: name a function of the file, one iteration of it: {', '.join(named)}{more}"
    )


def step_given(step: Callable[[], object]) -> StepSource:
    """How other processes find a function of this process again: Python text that defines ``step``,
    what the function returns or the function itself. Raises ``UsageError``.
    """
    module_name = getattr(step, "__module__", "") or ""
    module = sys.modules.get(module_name)
    file = getattr(module, "__file__", None) or module_name or "a notebook"
    folder = str(Path(file).resolve().parent) if os.path.isfile(file) else os.getcwd()
    name = str(getattr(step, "__qualname__", type(step).__qualname__))
    _refuse_call_without_body(step, name)
    setup = (
        f"from {__name__} import step_from\n"
        f"{setup_of(step, 'given_step')}\n"
        f"found_step = step_from(given_step, {name!r})\n"
        "step = found_step.call"
    )
    return StepSource(
        setup=setup,
        file=os.path.basename(file),
        function=name,
        path=list(sys.path),
        folder=folder,
    )


def _name_and_value(text: str) -> tuple[str, str]:
    """The two parts of an argument ``NAME=VALUE``. Raises ``UsageError`` for other text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier() or len(text) > _MOST_TEXT:
        raise UsageError(f"--arg {text[:80]}: write NAME=VALUE, {_MOST_TEXT} characters at most")
    check_text(text)
    return name, value


def literals(given: Mapping[str, str]) -> dict[str, Any]:
    """The values of arguments that are given as text: ``4`` and ``[1, 2]`` as Python reads them;
    any other text, such as ``cuda``, stands for itself.
    """
    values: dict[str, Any] = dict(given)
    for name, text in given.items():
        # All that ``literal_eval`` raises for other text.
        with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            values[name] = ast.literal_eval(text)
    return values


def find_step(place: str, function: str, arguments: Mapping[str, Any]) -> FoundStep:
    """The step: what a function of a file or module returns, if that can be called, else the
    function itself. Calls the function once. Raises ``UsageError``.

    ``place``: the file or module; ``function``: its name there, perhaps with dots, as in
    ``Class.function``.
    """
    module = _loaded_module(place)
    named: Any = module
    for name in function.split("."):
        if not hasattr(named, name):
            kind = f"function in {os.path.basename(place)}:"
            raise unknown_name(kind, name, _functions_of(named, module))
        named = getattr(named, name)
    if not callable(named):
        raise UsageError(f"{function} is {type(named).__name__} and no function")
    lacking = _missing_arguments(named, arguments)
    # ``Class.method`` would need an object, which no argument can give.
    if "." in function and lacking[:1] == ["self"]:
        raise UsageError(
            f"{function} is a method: name a function that makes the object and returns its method"
        )
    if lacking:
        raise UsageError(f"{function} needs {', '.join(lacking)}: give --arg {lacking[0]}=VALUE")
    given = functools.partial(named, **arguments) if arguments else named
    return step_from(given, function)


@contextlib.contextmanager
def telling_first_call(tell: Callable[[], None]) -> Iterator[None]:
    """A ``with`` block in which ``tell`` is called each time before ``step_from`` first calls the
    user's function. That may be a whole program, which takes long; ``tell`` says what runs.
    """
    _told_before_first_call.append(tell)
    try:
        yield
    finally:
        _told_before_first_call.remove(tell)


def step_from(given: Callable[[], Any], function: str) -> FoundStep:
    """The step, which is what will be measured: what the function ``given`` returns, if that can be
    called, else that function itself. ``function``: its name, for errors.

    Calls the function once. Raises ``UsageError`` for a step whose call would not run its code, or
    would need arguments.
    """
    _refuse_call_without_body(given, function)
    # The call may take long, so whoever asked for it (``telling_first_call``) is told before.
    for tell in _told_before_first_call:
        tell()
    began = time.perf_counter()
    returned = _result_in_program(given)
    first_s = time.perf_counter() - began
    # A coroutine or generator is what an async or generator function returns: none of it has run.
    refuse_unfinished(returned, function)
    _refuse_several(returned, function)
    kind = "" if returned is None else type(returned).__qualname__
    if not callable(returned):
        return FoundStep(given, function, kind, is_returned=False, first_s=first_s)
    _refuse_call_without_body(returned, function, is_returned=True)
    lacking = _missing_arguments(returned, {})
    if lacking:
        raise UsageError(
            f"the {kind} that {function} returns needs {', '.join(lacking)}; a step takes no"
            " arguments: return a function that calls it with them"
        )
    return FoundStep(returned, function, kind, is_returned=True, first_s=first_s)


def _refuse_several(returned: Any, function: str) -> None:
    """Raise ``UsageError`` if the user's function returns functions in a container, or a class
    whose objects can be called: it is not clear what it means as the step.
    """
    if isinstance(returned, type) and _defines_call(returned):
        name = returned.__qualname__
        raise UsageError(
            f"{function} returns the class {name}, whose call makes an object: return {name}(...)"
        )

    kind = type(returned).__qualname__
    parts = list(returned.values()) if isinstance(returned, dict) else returned
    # What can be called is the step, also if it is a container.
    if callable(returned) or not isinstance(parts, list | tuple | set | frozenset):
        return
    functions = [part for part in parts if callable(part)]
    if functions:
        several = "s" if len(functions) > 1 else ""
        raise UsageError(
            f"{function} returns a {kind} with {len(functions)} function{several}, so the step is"
            " not known: return one function, which is the step"
        )


def _defines_call(kind: type) -> bool:
    """Whether objects of a class can be called."""
    return any("__call__" in vars(base) for base in kind.__mro__)


def _functions_of(owner: Any, module: types.ModuleType) -> list[str]:
    """The names of what can be called in a module or class, for an error that suggests one: those
    that this module defines, if there are any, and not what it imports.
    """
    public = []
    defined_here = []
    for name, value in vars(owner).items():
        if not callable(value) or name.startswith("_"):
            continue
        public.append(name)
        if getattr(value, "__module__", "") == module.__name__:
            defined_here.append(name)
    return defined_here or public


def _refuse_call_without_body(
    function: Callable[..., Any], name: str, *, is_returned: bool = False
) -> None:
    """Raise ``UsageError`` for an async or generator function, whose call does not run its body: it
    would be measured as nearly free. ``is_returned``: the function ``name`` returned it.
    """
    named = _named_step(name, is_returned=is_returned)
    # The call of an object runs a function of its class.
    for body in (function, type(function).__call__):
        if inspect.iscoroutinefunction(body):
            raise UsageError(
                f"{named} is an async function, whose call runs nothing: name a function"
                " that runs it, such as asyncio.run(step()), or loop.run_until_complete(step());"
                ' overhead time takes "await step()" itself'
            )
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            raise UsageError(
                f"{named} is a generator function, whose call runs nothing: explain a"
                " function that calls next() on it"
            )


def _named_step(function: str, *, is_returned: bool) -> str:
    """The step in the words of an error: the function itself, or what it returns."""
    if not is_returned:
        return function
    return " ".join(["the step that", function, "returns"])


def refuse_unfinished(result: Any, name: str) -> None:
    """Raise ``UsageError`` if what a call returned is work that has not run: a generator or a
    coroutine. ``name``: the function that was called.
    """
    # What can be awaited and called too can be a step; the caller takes it for one.
    if inspect.isawaitable(result) and not callable(result):
        if inspect.iscoroutine(result):
            result.close()  # it would warn that nobody has awaited it
        raise UsageError(
            f"{name} returns a {type(result).__name__}, which has not run: explain a function that"
            " runs it, such as asyncio.run(step()), or loop.run_until_complete(step())"
        )
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        raise UsageError(
            f"{name} returns a generator, which has not run: explain a function that calls next()"
            " on it"
        )


def refuse_long(found: FoundStep, longest_s: float) -> None:
    """Raise ``UsageError`` if two calls in a row show that a step takes longer than ``longest_s``.
    One call is not enough: the first one may load and compile.
    """
    # If the function itself is the step, ``step_from`` has called it and timed that.
    first_s = _seconds(found.call) if found.is_returned else found.first_s
    if first_s <= longest_s:
        return
    second_s = _seconds(found.call)
    if second_s <= longest_s:
        return
    step_s = min(first_s, second_s)
    named = _named_step(found.function, is_returned=found.is_returned)
    raise UsageError(
        f"{named} takes {step_s:.2g} s; steps of up to {longest_s:g} s are"
        " explained: name one iteration: a function that returns step(); see docs/explain.md"
    )


def _seconds(call: Callable[[], Any]) -> float:
    """How long one call takes, s. Raises ``UsageError`` for whatever it raises."""
    began = time.perf_counter()
    _result_in_program(call)
    return time.perf_counter() - began


def _loaded_module(place: str) -> Any:
    """The module of this name, or the one that a file holds; its code runs now. Raises
    ``UsageError`` for whatever that code raises.
    """
    if not place.endswith(".py"):
        return _result_in_program(functools.partial(importlib.import_module, place))
    name = Path(place).stem
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise UsageError(f"{place}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    # As Python does for a script: the file may import its neighbours, and pickle finds its classes.
    folder = str(Path(place).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # A module that was loaded under this name before keeps it.
    sys.modules.setdefault(name, module)
    _result_in_program(functools.partial(spec.loader.exec_module, module))
    return module


def _missing_arguments(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """The names of the arguments without a default that are not among those given (``arguments``).
    Raises ``UsageError`` for a given one that the function does not have.
    """
    try:
        # ``_with_signature``: of a PyTorch module ``forward``, since its own call takes anything.
        parameters = inspect.signature(_with_signature(function)).parameters
    except (TypeError, ValueError):  # a function written in C, which does not tell its arguments
        return []
    named = []
    takes_any_name = False
    for parameter in parameters.values():
        if parameter.kind == parameter.VAR_KEYWORD:  # **options
            takes_any_name = True
        elif parameter.kind != parameter.VAR_POSITIONAL:
            named.append(parameter)

    unknown = [name for name in arguments if name not in parameters]
    if unknown and not takes_any_name:
        raise unknown_name("argument", unknown[0], [parameter.name for parameter in named])
    needed = [parameter.name for parameter in named if parameter.default is parameter.empty]
    return [name for name in needed if name not in arguments]


def _with_signature(function: Callable[..., Any]) -> Callable[..., Any]:
    """What tells the arguments of a function: of a PyTorch module ``forward``, since its
    ``__call__`` takes any.
    """
    torch = sys.modules.get("torch")
    is_module = torch is not None and isinstance(function, torch.nn.Module)
    return function.forward if is_module else function  # type: ignore[attr-defined]


def _result_in_program(call: Callable[[], Any]) -> Any:
    """What a call of the user's program returns. Whatever it raises becomes a ``UsageError``, which
    is shown as one line and names the line of the program.
    """
    try:
        return call()
    except UsageError:
        raise
    except BaseException as error:  # sys.exit too
        raise UsageError(error_text(error)) from error


def error_text(error: BaseException, otherwise: Callable[[BaseException], str] = one_line) -> str:
    """An error in one line with the line of the user's program that raised it: ``train.py:12, in
    step: ValueError: no``. ``otherwise`` words an error that comes from no such line.
    """
    if isinstance(error.__cause__, StopIteration):  # a generator turns it into a RuntimeError
        error = error.__cause__
    line = program_line(error)
    return f"{line}: {one_line(error)}" if line else otherwise(error)


def program_line(error: BaseException, *, texts: bool = False) -> str:
    """The innermost line of the user's program that raised, ``train.py:12, in step``, and not that
    of a library which it called; '' if there is none. ``texts``: also code without a file, such as
    a statement that was given as text.
    """
    innermost = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        has_file = not code.co_filename.startswith("<")
        if is_own_code(code) and (texts or has_file):
            file = os.path.basename(code.co_filename)
            innermost = f"{file}:{number}, in {code.co_name}"
    return innermost
