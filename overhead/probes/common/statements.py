"""Python text of a user as a loop: SETUP runs once, then CALL n times for each ``issue(n)``, with
local names.

Where a text awaits, SETUP and all calls run in one task after another of one event loop. The calls
of an ``issue`` are one task, so that the cost of entering the loop is paid once for any number of
them.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import inspect
import itertools
import linecache
import os
import symtable
import textwrap
import traceback
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from types import CodeType
from typing import Any

from overhead.errors import BadValue, message_of

KEPT_RESULTS = 32
"""XLA's CPU client has at most 32 computations in flight for a device; on a GPU they end in
order.
"""
_NAMES = itertools.count()
_TEMPLATE = """
def statement(repeat, keep):
    SETUP
    n = yield
    while True:
        if n is None:
            FINISH
        elif n < 0:
            for i in repeat(None, -n):
                PLAIN
        else:
            for i in repeat(None, n):
                CALL
        n = yield
"""
_BEFORE = "before SETUP"
_OWN = "overhead's "
"""The names of the template begin with this. With the quote and the space no text of a user can
spell one.
"""


class StatementError(BadValue):
    """A text cannot be compiled, or raised. The message is one line that names the line of the
    text.
    """


class StatementLoop:
    """A loop of the statements ``call`` (CALL), after ``setup`` (SETUP). Raises ``StatementError``
    if one is invalid.

    ``before``: text of the suite that runs before SETUP, so that the lines of SETUP keep their
    numbers.

    ``wait_text``: statements that wait; they see the names of SETUP and CALL. ``keep``: keep the
    last ``KEPT_RESULTS`` results of CALL in ``results``. A result is the value of its last line if
    that is an expression, or of the name that it assigns.
    """

    def __init__(
        self,
        call: str,
        setup: str = "",
        wait_text: str = "",
        *,
        before: str = "",
        keep: bool = False,
    ) -> None:
        self.results: deque[Any] = deque(maxlen=KEPT_RESULTS)
        texts = {_BEFORE: before, "SETUP": setup, "CALL": call, "--wait": wait_text}
        self._parts = {part: _body(part, text) for part, text in texts.items()}
        if not self._parts["CALL"]:
            raise StatementError("CALL is empty")
        _check_globals(self._parts)
        self._lines: list[tuple[str, int, str]] = []
        self.file = f"<overhead statement {next(_NAMES)}>"
        self._awaits = any(map(_awaits, texts.values()))
        self._code = self._compile(texts, keep)
        self._loop: Generator[None, int | None, None] | AsyncGenerator[None, int | None] | None = (
            None
        )
        self._events: asyncio.Runner | None = None

    def open(self) -> None:
        """Run SETUP, and set ``issue``: ``issue(n)`` runs CALL n times. Raises what SETUP
        raises.
        """
        scope: dict[str, Any] = {"__name__": "__overhead__", "__builtins__": __builtins__}
        exec(self._code, scope)
        loop = self._loop = scope[f"{_OWN}statement"](itertools.repeat, self.results.append)
        self._send: Callable[[int | None], None] = (
            self._sending_in_event_loop(loop) if self._awaits else loop.send
        )
        self._send(None)
        self.issue: Callable[[int], None] = self._send

    def _sending_in_event_loop(
        self, loop: AsyncGenerator[None, int | None]
    ) -> Callable[[int | None], None]:
        self._events = asyncio.Runner()
        run = self._events.get_loop().run_until_complete
        return lambda n: run(loop.asend(n))

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that SETUP and CALL have bound so far, with their values."""
        found: Mapping[str, Any] = {}
        if inspect.isgenerator(self._loop):
            found = inspect.getgeneratorlocals(self._loop)
        elif inspect.isasyncgen(self._loop) and self._loop.ag_frame is not None:
            found = self._loop.ag_frame.f_locals
        return {name: value for name, value in found.items() if not name.startswith(_OWN)}

    def drop_results(self) -> None:
        """From now on ``issue`` keeps no results: kept ones give each call new memory for its
        own.
        """
        send = self._send
        self.issue = lambda n: send(-n)

    def wait(self) -> None:
        """Run the statements of ``wait_text``."""
        self._send(None)

    def close(self) -> None:
        """End the loop, and the event loop with what still runs in it, and drop the kept
        results.
        """
        if inspect.isgenerator(self._loop):
            self._loop.close()
        if self._events is not None:
            if inspect.isasyncgen(self._loop):
                self._events.get_loop().run_until_complete(self._loop.aclose())
            self._events.close()
        self.results.clear()

    def describe_error(self, error: BaseException) -> str:
        """An error that a text raised, as one line that begins with the part and the line of the
        text.
        """
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            error = error.__cause__
        words = f"{type(error).__name__}: {message_of(error)[:300]}".rstrip(": ")
        line = self._line_of(error)
        if line is None:
            return words
        part, number, text = line
        only = [one for one, _, _ in self._lines].count(part) == 1
        return f"{part if only else f'{part}, line {number}'}: {words}: {text[:120]}"

    def part_of_error(self, error: BaseException) -> str:
        """The part whose text raised an error, such as ``CALL``; '' if none did."""
        line = self._line_of(error)
        return line[0] if line is not None else ""

    def _line_of(self, error: BaseException) -> tuple[str, int, str] | None:
        """The last line of the texts that an error passed, as its part, number and text."""
        frames = traceback.walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == self.file]
        if not lines or not 0 < lines[-1] <= len(self._lines):
            return None
        return self._lines[lines[-1] - 1]

    def _compile(self, texts: Mapping[str, str], keep: bool) -> CodeType:
        first = {}
        for part, text in texts.items():
            first[part] = len(self._lines)
            lines = textwrap.dedent(text).strip("\n").splitlines()
            self._lines += [(part, number, line.strip()) for number, line in enumerate(lines, 1)]
        for part, body in self._parts.items():
            for node in body:
                ast.increment_lineno(node, first[part])
        plain = copy.deepcopy(self._parts["CALL"])
        kept = _keeping(self._parts["CALL"]) if keep else None
        self.keeps = kept is not None
        blocks = {
            "SETUP": [*self._parts[_BEFORE], *self._parts["SETUP"]],
            "PLAIN": plain,
            "CALL": [*self._parts["CALL"], *(kept or [])],
            "FINISH": self._parts["--wait"],
        }
        # Python takes an import from __future__ at the top of a file alone, and a setup may be a
        # whole file.
        futures: list[ast.stmt] = []
        for name, body in blocks.items():
            futures += filter(_is_of_future, body)
            blocks[name] = list(itertools.filterfalse(_is_of_future, body))
        template = _TEMPLATE.replace("def", "async def") if self._awaits else _TEMPLATE
        tree = _Splice(blocks).visit(ast.parse(template))
        tree.body[:0] = futures
        linecache.cache[self.file] = (
            0,
            None,
            [f"{text}\n" for _, _, text in self._lines],
            self.file,
        )
        try:
            return compile(ast.fix_missing_locations(tree), self.file, "exec")
        except SyntaxError as error:  # only what is wrong inside a function, such as "import *"
            raise StatementError(
                f"SETUP or CALL: {error.msg}; the text runs inside a function: name what you"
                " import, such as from module import name"
            ) from None


class _Splice(ast.NodeTransformer):
    """Replaces a line that is the name of a block by the statements of the block, and hides the
    template's names.

    A statement that assigned a name of the template would change the loop that counts its calls.
    """

    def __init__(self, blocks: Mapping[str, list[ast.stmt]]) -> None:
        self._blocks = blocks

    def visit_Expr(self, node: ast.Expr) -> Any:
        """The statements of the block that the line names; ``pass`` for an empty block, and any
        other line itself.
        """
        if isinstance(node.value, ast.Name) and node.value.id in self._blocks:
            return self._blocks[node.value.id] or ast.Pass()
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        """The function of the template; those of the user's statements are not visited."""
        node.name = _OWN + node.name
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_arg(self, node: ast.arg) -> Any:
        """An argument of the template's function."""
        node.arg = _OWN + node.arg
        return node

    def visit_Name(self, node: ast.Name) -> Any:
        """A name of the template."""
        node.id = _OWN + node.id
        return node


def _body(part: str, text: str) -> list[ast.stmt]:
    """The statements of a text that is valid at the top level of a module. Raises
    ``StatementError``.
    """
    text = textwrap.dedent(text).strip("\n")
    _check_no_file(part, text)
    try:
        compile(text, part, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return ast.parse(text).body
    except SyntaxError as error:
        number = error.lineno or 1
        line = "".join(text.splitlines()[number - 1 : number]).strip()
        raise StatementError(f"{part}, line {number}: {error.msg}: {line[:120]}") from None
    except ValueError as error:  # a null character
        raise StatementError(f"{part}: {error}") from None


def scope_of(body: list[ast.stmt]) -> symtable.SymbolTable:
    """The names of statements inside a function. Raises ``SyntaxError`` for what no function may
    hold.
    """
    module = ast.parse("async def statement(): pass")
    function = module.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = body or [ast.Pass()]
    text = ast.unparse(ast.fix_missing_locations(module))
    return symtable.symtable(text, "statement", "exec").get_children()[0]


def inner_scopes(scope: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The functions, classes and comprehensions inside a scope, at any depth."""
    for inner in scope.get_children():
        yield inner
        yield from inner_scopes(inner)


def _check_globals(parts: Mapping[str, list[ast.stmt]]) -> None:
    """Raise ``StatementError`` if a function of a text declares a name global that is local to the
    texts.
    """
    every = [statement for body in parts.values() for statement in body]
    try:
        local = {symbol.get_name() for symbol in scope_of(every).get_symbols() if symbol.is_local()}
        for part, body in parts.items():
            for inner in inner_scopes(scope_of(body)):
                for symbol in inner.get_symbols():
                    if symbol.is_declared_global() and symbol.get_name() in local:
                        raise _declares_global(part, symbol.get_name())
    except SyntaxError:  # which ``compile`` tells with its line
        return


def _declares_global(part: str, name: str) -> StatementError:
    return StatementError(
        f"{part} declares global {name}: it runs inside a function, where {name} is a local name,"
        f" so this would be another variable; write nonlocal {name}"
    )


def _awaits(text: str) -> bool:
    """Whether a text that compiles awaits something itself, and not only in a function that it
    defines.
    """
    code = compile(textwrap.dedent(text).strip("\n"), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _is_of_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _check_no_file(part: str, text: str) -> None:
    """Raise ``StatementError`` with what to write if the text is the name of a file in place of
    Python.
    """
    file = text.strip().removeprefix("@")
    if "\n" in file or not file.endswith(".py") or not os.path.isfile(file):
        return
    if text.strip().startswith("@"):  # the command line has replaced this by the text
        raise StatementError(
            f"{part}: @FILE is for the command line; in Python give Path({file!r}).read_text()"
        )
    if part == "CALL":  # alone may name a function of a file
        raise StatementError(
            f"CALL is a file: name a function of it, {file}:FUNCTION, or run its text: @{file}"
        )
    if part != "SETUP":
        raise StatementError(f"{part} must be Python text, but {file} is a file: write a statement")
    if os.path.basename(file) == file:
        raise StatementError(
            f"{part} must be Python text, but {file} is a file. To run the file: -s @{file}. "
            f'To import a name from it: -s "from {file.removesuffix(".py")} import NAME"'
        )
    raise StatementError(
        f"{part} must be Python text, but {file} is a file. To run the file: -s @{file}"
    )


def _keeping(body: list[ast.stmt]) -> list[ast.stmt] | None:
    """The statements that keep the value of the last statement; None if it has none.

    An expression is wrapped in place, which needs no further statement.
    """
    last = body[-1]
    keep = ast.copy_location(ast.Name(f"{_OWN}keep", ast.Load()), last)
    match last:
        case ast.Expr():
            last.value = ast.copy_location(ast.Call(keep, [last.value], []), last)
            return []
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AugAssign(target=ast.Name(id=name))
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())
        ):
            value = ast.copy_location(ast.Name(name, ast.Load()), last)
            return [ast.copy_location(ast.Expr(ast.Call(keep, [value], [])), last)]
    return None
