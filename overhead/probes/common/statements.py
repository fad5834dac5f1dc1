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
from dataclasses import dataclass
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
_Loop = Generator[None, int | None, None] | AsyncGenerator[None, int | None]
"""The running template. n sent to it runs CALL n times and keeps the results; -n runs CALL n times
and keeps none; None waits.
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


@dataclass(frozen=True)
class _SourceLine:
    """A line of the user's texts: its part, such as ``CALL``, its number in that part, and its
    text without the spaces around it.
    """

    part: str
    number: int
    text: str


class StatementLoop:
    """Python text of a user as a loop that can be timed: SETUP runs once, then CALL as often as
    asked. All texts are parts of one generator function (the template), so that they share local
    names. Raises ``StatementError`` if a text is invalid.

    ``call``, ``setup``: the texts CALL and SETUP. ``before``: text of the suite that runs before
    SETUP, so that the lines of SETUP keep their numbers. ``wait_text``: statements that wait; they
    see the names of SETUP and CALL. ``keep``: keep the last ``KEPT_RESULTS`` results of CALL in
    ``results``. A result is the value of its last line if that is an expression, or of the name
    that it assigns. ``keeps``: whether CALL has such a result, and it is kept.
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
        """Compile the texts, and run nothing yet: ``open`` runs SETUP.

        ``before``: text of the suite that runs before SETUP. ``keep``: keep the last results of
        CALL in ``results``.
        """
        self.results: deque[Any] = deque(maxlen=KEPT_RESULTS)
        # By the name that messages give each: "--wait" is the option of the command line.
        texts = {_BEFORE: before, "SETUP": setup, "CALL": call, "--wait": wait_text}
        self._parts = {part: _parsed(part, text) for part, text in texts.items()}
        if not self._parts["CALL"]:
            raise StatementError("CALL is empty")
        _check_globals(self._parts)
        self._lines: list[_SourceLine] = []
        self.file = f"<overhead statement {next(_NAMES)}>"  # a name for tracebacks; no such file
        # Then the loop is an asynchronous generator, and ``_events`` its event loop.
        self._awaits = any(_awaits(text) for text in texts.values())
        self._code = self._compile(texts, keep)
        self._loop: _Loop | None = None
        self._events: asyncio.Runner | None = None

    def open(self) -> None:
        """Run SETUP, and set ``issue``: ``issue(n)`` runs CALL n times. Raises what SETUP
        raises.

        The loop is a generator, which keeps the local names of the texts from one ``issue`` to the
        next. To send n to it runs CALL n times. A text with ``await`` makes it an asynchronous
        generator, which needs an event loop.
        """
        scope: dict[str, Any] = {"__name__": "__overhead__", "__builtins__": __builtins__}
        exec(self._code, scope)  # defines the generator function
        # ``_OWN``: how the names of the template begin, so that no text of a user can use them.
        make_loop = scope[f"{_OWN}statement"]
        # The two objects that the template uses: what counts the turns, and what keeps a result.
        loop = self._loop = make_loop(itertools.repeat, self.results.append)
        self._send: Callable[[int | None], None]
        if self._awaits:
            self._send = self._sending_in_event_loop(loop)
        else:
            self._send = loop.send
        self._send(None)  # starts the generator, which runs SETUP
        # ``send`` itself, since a function around it would be timed too.
        self.issue: Callable[[int], None] = self._send

    def _sending_in_event_loop(
        self, loop: AsyncGenerator[None, int | None]
    ) -> Callable[[int | None], None]:
        """A function that sends n to an asynchronous generator, in a new event loop, and returns
        when the generator has run its calls.
        """
        self._events = asyncio.Runner()
        run = self._events.get_loop().run_until_complete
        # ``asend``: as ``send`` of a plain generator, but it has to be awaited in the event loop.
        return lambda n: run(loop.asend(n))

    @property
    def names(self) -> Mapping[str, Any]:
        """The names that SETUP and CALL have bound so far, with their values, without the names of
        the template, which begin with ``_OWN``. Empty before ``open`` and after ``close``.
        """
        local_names: Mapping[str, Any] = {}
        if inspect.isgenerator(self._loop):
            local_names = inspect.getgeneratorlocals(self._loop)
        elif inspect.isasyncgen(self._loop) and self._loop.ag_frame is not None:
            local_names = self._loop.ag_frame.f_locals
        return {name: value for name, value in local_names.items() if not name.startswith(_OWN)}

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
        """End the generator that runs the texts, then the event loop (of texts that await) with
        what still runs in it, and drop the kept results.
        """
        # Not yet a generator before ``open``.
        if inspect.isgenerator(self._loop):
            self._loop.close()
        if self._events is not None:
            if inspect.isasyncgen(self._loop):  # it ends only inside an event loop
                self._events.get_loop().run_until_complete(self._loop.aclose())
            self._events.close()
        self.results.clear()

    def describe_error(self, error: BaseException) -> str:
        """An error that a text raised, as one line for the user: the part (such as CALL) and the
        line in it, the error, and the text of the line. Without part and text if the error did not
        pass a line of the texts.
        """
        # Python makes a RuntimeError of a StopIteration that a generator raises. The text raised
        # the StopIteration.
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            error = error.__cause__
        # Of an error without a message the name alone is left.
        message = f"{type(error).__name__}: {message_of(error)[:300]}".rstrip(": ")
        line = self._line_of(error)
        if line is None:
            return message
        # A text of one line needs no line number.
        lines_of_part = [other for other in self._lines if other.part == line.part]
        place = line.part
        if len(lines_of_part) > 1:
            place = f"{line.part}, line {line.number}"
        return f"{place}: {message}: {line.text[:120]}"

    def part_of_error(self, error: BaseException) -> str:
        """The part whose text raised an error, such as ``CALL``; '' if none did."""
        line = self._line_of(error)
        return "" if line is None else line.part

    def _line_of(self, error: BaseException) -> _SourceLine | None:
        """The innermost line of the texts in the error's traceback; None if it has none.

        ``_lines`` holds all lines of the texts, in the order of the numbers that ``_number_lines``
        gave them, from 1.
        """
        numbers = []
        for frame, number in traceback.walk_tb(error.__traceback__):
            # The other frames are of the suite, or of libraries that the texts call.
            if frame.f_code.co_filename == self.file:
                numbers.append(number)
        if not numbers:
            return None
        innermost = numbers[-1]
        if not 0 < innermost <= len(self._lines):  # a line of the template
            return None
        return self._lines[innermost - 1]

    def _compile(self, texts: Mapping[str, str], keep: bool) -> CodeType:
        """The code of the template, a generator function, with the texts in place of its block
        names. CALL is put in twice: a copy that keeps its result, if ``keep``, and one that does
        not (``PLAIN``), to which the method ``drop_results`` changes. ``FINISH``: the statements
        that wait.

        ``_number_lines`` comes first: so both copies of CALL have the same line numbers.
        """
        self._number_lines(texts)
        call = self._parts["CALL"]
        # Copied first, because ``_keeping`` changes ``call`` itself.
        plain_call = copy.deepcopy(call)
        keeping = _keeping(call) if keep else None
        self.keeps = keeping is not None
        blocks = {
            "SETUP": [*self._parts[_BEFORE], *self._parts["SETUP"]],
            "PLAIN": plain_call,
            "CALL": [*call, *(keeping or [])],
            "FINISH": self._parts["--wait"],
        }

        # Python takes an import from __future__ at the top of a file alone, and a setup may be a
        # whole file. So these imports move to the top.
        futures: list[ast.stmt] = []
        for name, body in blocks.items():
            futures += [statement for statement in body if _imports_future(statement)]
            blocks[name] = [statement for statement in body if not _imports_future(statement)]

        # ``_Splice`` puts the blocks in place of their names.
        template = _TEMPLATE.replace("def", "async def") if self._awaits else _TEMPLATE
        tree = _Splice(blocks).visit(ast.parse(template))
        # In front of the template's function.
        tree.body[:0] = futures
        try:
            return compile(ast.fix_missing_locations(tree), self.file, "exec")
        except SyntaxError as error:  # only what is wrong inside a function, such as "import *"
            raise StatementError(
                f"SETUP or CALL: {error.msg}; the text runs inside a function: name what you"
                " import, such as from module import name"
            ) from None

    def _number_lines(self, texts: Mapping[str, str]) -> None:
        """Number the lines of all parts (the user's texts) as if the parts were one file, in this
        order, and note the lines in ``_lines``. ``node``: a statement of a part, whose lines are
        counted from the part's own first line until now.

        So a line number in a traceback tells the part and its line. ``linecache`` is where Python
        looks for the text of the lines that it shows in a traceback.
        """
        for part, text in texts.items():
            lines_before = len(self._lines)
            for node in self._parts[part]:
                ast.increment_lineno(node, lines_before)
            lines = textwrap.dedent(text).strip("\n").splitlines()
            for number, line in enumerate(lines, 1):
                self._lines.append(_SourceLine(part, number, line.strip()))
        shown = [f"{line.text}\n" for line in self._lines]
        # Size, time of change (None: the entry is never checked against a file), lines, name.
        linecache.cache[self.file] = (0, None, shown, self.file)


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


def _parsed(part: str, text: str) -> list[ast.stmt]:
    """The statements of a user's text. ``part``: its name for messages, such as CALL. Raises
    ``StatementError`` if it is not valid at the top level of a module, where ``await`` is allowed
    here.
    """
    # A text may be indented as a whole, as one in a Python program often is.
    text = textwrap.dedent(text).strip("\n")
    _check_no_file(part, text)
    try:
        # Finds more than ``ast.parse`` does, such as a ``return`` outside of a function.
        compile(text, part, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return ast.parse(text).body
    except SyntaxError as error:
        # Some errors have no line, or one behind the last.
        number = error.lineno or 1
        lines = text.splitlines()
        line = lines[number - 1].strip() if number <= len(lines) else ""
        raise StatementError(f"{part}, line {number}: {error.msg}: {line[:120]}") from None
    except ValueError as error:  # a null character
        raise StatementError(f"{part}: {error}") from None


def scope_of(body: list[ast.stmt]) -> symtable.SymbolTable:
    """Which names are local, global, ... if these statements are the body of a function, as they
    are in the loop that is timed. Raises ``SyntaxError`` for what no function may hold, such as
    ``from module import *``.
    """
    module = ast.parse("async def statement(): pass")  # async: the statements may await
    function = module.body[0]
    assert isinstance(function, ast.AsyncFunctionDef)
    function.body = body or [ast.Pass()]
    text = ast.unparse(ast.fix_missing_locations(module))  # symtable reads text alone
    # The first child of the module's scope is that of the only function in it.
    return symtable.symtable(text, "statement", "exec").get_children()[0]


def inner_scopes(scope: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """The functions, classes and comprehensions inside a scope, at any depth."""
    for inner in scope.get_children():
        yield inner
        yield from inner_scopes(inner)


def _check_globals(parts: Mapping[str, list[ast.stmt]]) -> None:
    """Raise ``StatementError`` if a function in a user's text declares a name ``global`` that the
    texts assign outside of it. ``parts``: the statements of each text, by its name, such as CALL.

    In a module both would be the same variable. But all texts run inside one function, where the
    assigned name is local, and the global one another variable.
    """
    all_statements: list[ast.stmt] = []
    for body in parts.values():
        all_statements += body
    try:
        symbols = scope_of(all_statements).get_symbols()
        # Names that the texts assign outside of their own functions.
        local = {symbol.get_name() for symbol in symbols if symbol.is_local()}
        declared_global = {part: _declared_global(body) for part, body in parts.items()}
    except SyntaxError:  # ``_compile`` raises it again, with its line
        return
    for part, names in declared_global.items():
        for name in names:
            if name in local:
                raise StatementError(
                    f"{part} declares global {name}: it runs inside a function, where {name} is a"
                    f" local name, so this would be another variable; write nonlocal {name}"
                )


def _declared_global(body: list[ast.stmt]) -> list[str]:
    """The names that functions of these statements declare global, in order. ``inner_scopes``: the
    functions, classes and comprehensions in them, at any depth.
    """
    names = []
    for inner in inner_scopes(scope_of(body)):
        for symbol in inner.get_symbols():
            if symbol.is_declared_global():
                names.append(symbol.get_name())
    return names


def _awaits(text: str) -> bool:
    """Whether a text that compiles awaits something itself, and not only in a function that it
    defines.
    """
    code = compile(textwrap.dedent(text).strip("\n"), "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return bool(code.co_flags & inspect.CO_COROUTINE)


def _imports_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _check_no_file(part: str, text: str) -> None:
    """Raise ``StatementError`` if the user gave the name of an existing file where Python text is
    wanted. ``part``: what the text was given as, such as CALL. The message says what to write: on
    the command line ``@FILE`` stands for the text of a file.
    """
    file = text.strip().removeprefix("@")
    # Several lines, or no existing Python file: it is Python text.
    if "\n" in file or not file.endswith(".py") or not os.path.isfile(file):
        return
    # The command line replaces @FILE by the text. One that is still there came through Python.
    if text.strip().startswith("@"):
        raise StatementError(
            f"{part}: @FILE is for the command line; in Python give Path({file!r}).read_text()"
        )
    if part == "CALL":  # alone may name a function of a file
        raise StatementError(
            f"CALL is a file: name a function of it, {file}:FUNCTION, or run its text: @{file}"
        )
    if part != "SETUP":
        raise StatementError(f"{part} must be Python text, but {file} is a file: write a statement")
    is_in_this_folder = os.path.basename(file) == file
    if is_in_this_folder:  # so it can be imported as a module too
        raise StatementError(
            f"{part} must be Python text, but {file} is a file. To run the file: -s @{file}. "
            f'To import a name from it: -s "from {file.removesuffix(".py")} import NAME"'
        )
    raise StatementError(
        f"{part} must be Python text, but {file} is a file. To run the file: -s @{file}"
    )


def _keeping(body: list[ast.stmt]) -> list[ast.stmt] | None:
    """The statements to append to a user's CALL (``body``), so that each run passes its result to
    the template's function ``keep``; None if the last statement of the body has no value.

    The result is the value of the last statement. An expression is wrapped in place, ``keep(x)``
    instead of ``x``, and needs no further statement. After ``y = x``, ``keep(y)`` is appended.
    """
    last = body[-1]
    # ``copy_location``: the new node gets the line of the last statement, for tracebacks.
    keep = ast.copy_location(ast.Name(f"{_OWN}keep", ast.Load()), last)
    if isinstance(last, ast.Expr):
        last.value = ast.copy_location(ast.Call(keep, [last.value], []), last)
        return []
    name = _assigned_name(last)
    if name is None:
        return None
    value = ast.copy_location(ast.Name(name, ast.Load()), last)
    call = ast.Call(keep, [value], [])
    return [ast.copy_location(ast.Expr(call), last)]


def _assigned_name(statement: ast.stmt) -> str | None:
    """The one name that the statement gives a value, as ``x = 1``, ``x += 1`` and ``x: int = 1``
    do; None for any other statement, such as one with several targets or a declaration without a
    value.
    """
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)])
            | ast.AugAssign(target=ast.Name(id=name))
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())
        ):
            return name
    return None
