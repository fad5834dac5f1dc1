"""What the text of a CALL says before it runs: a function by its name, a statement that does
nothing, a list of values.

A statement that does nothing would get a figure of some nanoseconds, which looks like a cost.
"""

from __future__ import annotations

import ast
import dis
import keyword
import re
import textwrap
from collections.abc import Sequence
from types import CodeType

from overhead.errors import UsageError
from overhead.probes.common.statements import inner_scopes, scope_of
from overhead.results import Reason, because

_FILE = re.compile(r"(?P<place>[^\n'\"()\[\]{}=]+\.py):(?P<function>[A-Za-z_][\w.]*)")
_MODULE = re.compile(r"(?P<place>[\w.]+):(?P<function>[A-Za-z_][\w.]*)")
_DOES_NOTHING = frozenset(
    {
        "CACHE",
        "COPY_FREE_VARS",
        "LOAD_CONST",
        "LOAD_DEREF",
        "LOAD_FAST",
        "LOAD_FAST_BORROW",
        "LOAD_FAST_CHECK",
        "LOAD_GLOBAL",
        "LOAD_NAME",
        "LOAD_SMALL_INT",
        "MAKE_CELL",
        "NOP",
        "NOT_TAKEN",
        "POP_TOP",
        "RESUME",
        "RETURN_CONST",
        "RETURN_VALUE",
    }
)
"""Instructions of the interpreter, of Python 3.11 to 3.14, that neither compute nor store
anything.
"""
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_HIDING = ("eval", "exec", "locals", "vars")
"""Functions through which statements may read any name."""


def named_function(call: str) -> str:
    """``FILE.py:FUNCTION`` or ``module:function`` if the whole CALL is one of these; else an empty
    text. CALL is what the user gives to measure: a Python statement, or the name of a function.

    As a Python statement such a text is an annotation, or no statement at all. So it is safe to
    take it for a name.
    """
    text = call.strip()
    # ``_FILE``: FILE.py:FUNCTION; ``_MODULE``: module:function.
    if _FILE.fullmatch(text):
        return text
    names = _MODULE.fullmatch(text)
    if names is None:
        return ""
    # The pattern also fits ``lambda:x`` and ``1:x``, which name no module.
    for part in names["place"].split("."):
        if not part.isidentifier() or keyword.iskeyword(part):
            return ""
    return text


def _statements(text: str) -> list[ast.stmt]:
    """The statements of a text that may be indented as a whole. Raises ``SyntaxError`` or
    ``ValueError``.
    """
    return ast.parse(textwrap.dedent(text).strip("\n")).body


def check_does_something(call: str) -> None:
    """Raise ``UsageError`` for a statement that does nothing by its syntax, with what to type: its
    figure, some nanoseconds, would look like a cost.

    ``pass`` is allowed: it measures the loop. A text that does not compile is left to
    ``StatementLoop``, which compiles it to run it.
    """
    try:
        body = _statements(call)
    except (SyntaxError, ValueError):
        return
    if not body or all(isinstance(statement, ast.Pass) for statement in body):
        return
    last = body[-1]
    _refuse_single_without_work(body)
    if all(isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) for statement in body):
        name = getattr(last, "name", "f")
        raise UsageError(
            f"CALL defines {name} and does not call it: put the def into --setup, and write"
            f" {name}()"
        )
    if _compiles_to_nothing(body):
        raise UsageError(because("call-does-nothing", why=_why_idle(last)))


def _refuse_single_without_work(body: Sequence[ast.stmt]) -> None:
    """Raise ``UsageError`` for one statement that makes a function or generator and does not run
    it, or that Python computes before it runs, such as ``2 * 3``.
    """
    if len(body) != 1:  # of several statements another one may do the work
        return
    value = getattr(body[0], "value", None)
    if isinstance(value, ast.Lambda):
        raise UsageError(
            "CALL makes a function and does not call it: write its body, or (lambda: ...)()"
        )
    if isinstance(value, ast.GeneratorExp):
        raise UsageError(
            "CALL makes a generator and does not run it: write list(...) or sum(...) around it"
        )
    if isinstance(value, ast.BinOp | ast.Compare | ast.Subscript) and _is_constant(value):
        shown = ast.unparse(value)[:80]
        raise UsageError(
            f"Python computes {shown} once, before CALL runs; give its parts names in --setup:"
            " x + y"
        )


def read_only(call: str) -> str:
    """The text of a CALL that is nothing but an attribute, such as ``x.sum``; else an empty one. If
    the attribute is a function, its ``()`` has been forgotten.
    """
    try:
        body = _statements(call)
    except (SyntaxError, ValueError):
        return ""
    match body:
        case [ast.Expr(value=ast.Attribute() as value)]:
            return ast.unparse(value)
    return ""


def _why_idle(last: ast.stmt) -> Reason:
    """What a statement is that does nothing, for the error: an annotation, a name, a text in
    quotes, a number. ``last``: the last statement of CALL.
    """
    match last:
        case ast.AnnAssign():
            return because("call-is-an-annotation")
        case ast.Expr(value=ast.Name(id=name)):
            return because("call-is-a-name", name=name)
        case ast.Expr(value=ast.Constant(value=str())):
            return because("call-is-quoted")
        case ast.Expr(value=ast.Constant()):
            return because("call-is-a-constant")
    return because("call-compiles-to-nothing")


def _compiles_to_nothing(body: list[ast.stmt]) -> bool:
    """Whether these statements, inside a function, compile to no instruction that computes or
    stores anything, so that they do nothing when they run. Statements that do not compile count as
    doing something: their error is raised elsewhere.
    """
    try:
        code = _code_in_function(body)
    except (SyntaxError, ValueError):
        return False
    return _does_nothing(code)


def _does_nothing(code: CodeType) -> bool:
    return all(instruction.opname in _DOES_NOTHING for instruction in dis.get_instructions(code))


def _code_in_function(body: list[ast.stmt]) -> CodeType:
    """The compiled code of a function that has these statements as its body. The callers look
    whether an instruction of it computes or stores something.

    In a function, names are local variables, which it loads and stores without a look-up that could
    do something.
    """
    tree = ast.parse("def call(): pass")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    module = compile(ast.fix_missing_locations(tree), "CALL", "exec")
    # The code of the function is a constant in the code of the module.
    return next(value for value in module.co_consts if isinstance(value, CodeType))


def _is_constant(node: ast.expr) -> bool:
    """Whether the interpreter computes an expression when it compiles it, such as ``2 * 3``."""
    try:
        code = compile(ast.Expression(node), "CALL", "eval")
    except (SyntaxError, ValueError, TypeError):  # a target, such as x[1] = 2
        return False
    return _does_nothing(code)


def assignments(vary: str) -> list[dict[str, str]]:
    """``NAME=VALUE,VALUE`` as one assignment for each value; an empty one for an empty text. Raises
    ``UsageError``.

    Commas inside brackets and quotes belong to a value: ``n=[1,2],[3]`` has two.
    """
    if not vary:
        return [{}]  # each statement is measured once, with nothing assigned before
    name_text, _, values_text = vary.partition("=")
    name = name_text.strip()
    values = _split_at_commas(values_text)
    is_name = name.isidentifier() and not keyword.iskeyword(name)
    if not is_name or "" in values:
        raise UsageError(f"--vary {vary}: not of the form NAME=VALUE,VALUE, such as n=64,256")
    return [{name: value} for value in values]


def uses(text: str, name: str) -> bool:
    """Whether statements read a name that is defined before them. Also True where that is not
    known: they do not compile, or they read names by ``eval`` and its like.

    A function of theirs may have an argument or a variable of this name, which is another one.
    """
    try:
        body = _statements(text)
        # ``_HIDING``: ``eval`` and its like, through which statements may read any name.
        return any(_uses(body, used) for used in (name, *_HIDING))
    except (SyntaxError, ValueError):
        return True


def _uses(body: list[ast.stmt], name: str) -> bool:
    """Whether statements read a name that is defined before them, also in a function of theirs."""
    # With a definition before them, the name counts as free in a function of theirs that reads it.
    defined = ast.parse(f"{name} = None").body
    scope = scope_of([*defined, *body])
    if scope.lookup(name).is_referenced():
        return True
    # ``name += 1`` reads the name too, which ``symtable`` does not count.
    if any(_adds_to(statement, name) for statement in body):
        return True
    # Free means that an inner function reads the name, and does not define it.
    for inner in inner_scopes(scope):
        if name in inner.get_identifiers() and inner.lookup(name).is_free():
            return True
    return False


def _adds_to(statement: ast.stmt, name: str) -> bool:
    """Whether this is ``name += ...`` or its like, which ``symtable`` does not count as a use."""
    return isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == name


def check_varied(
    name: str, calls: Sequence[str], setup: str, wait: str, *, reaches_functions: bool
) -> None:
    """Raise ``UsageError`` if the values of ``--vary`` would not reach what is measured, so that
    all rows were alike.

    ``name``: the variable, which gets a value before SETUP runs. ``calls``: the statements.
    ``reaches_functions``: a function that is named gets the value as an argument, so no text needs
    to use the name.
    """
    if _is_overwritten(setup, name):
        raise UsageError(
            f"--vary {name}: SETUP gives {name} another value afterwards; take that out of --setup"
        )
    if any(_binds(call, name) for call in calls):
        raise UsageError(f"--vary {name}: CALL gives {name} another value; use another name there")
    is_used = any(uses(text, name) for text in (setup, wait, *calls))
    if not reaches_functions and not is_used:
        raise UsageError(
            f"--vary {name}: neither CALL nor SETUP uses {name}, so all rows would measure the same"
        )


def _is_overwritten(setup: str, name: str) -> bool:
    """Whether a statement of SETUP assigns a name without using it, so that the value of ``--vary``
    is lost: ``n = int(n)`` still depends on what it was, ``n = 5`` does not.
    """
    try:
        for statement in _statements(setup):
            if _assigns([statement], name) and not _uses([statement], name):
                return True
    except (SyntaxError, ValueError):
        return False
    return False


def _binds(call: str, name: str) -> bool:
    """Whether a statement assigns or imports a name; False for a text that does not compile."""
    try:
        return _assigns(_statements(call), name)
    except (SyntaxError, ValueError):
        return False


def _assigns(body: list[ast.stmt], name: str) -> bool:
    scope = scope_of(body)
    if name not in scope.get_identifiers():
        return False
    return scope.lookup(name).is_assigned() or scope.lookup(name).is_imported()


def _split_at_commas(text: str) -> list[str]:
    """The values of ``--vary``: the parts of a text between commas that stand in no brackets and no
    quotes. Raises ``UsageError`` for a bracket or quote that is not closed.
    """
    parts = [""]
    closing: list[str] = []  # what closes the open brackets, the innermost last
    quote = ""  # the quote that is open
    escaped = False
    for character in text:
        if character == "," and not quote and not closing:
            parts.append("")
            continue
        parts[-1] += character
        if quote:
            # A backslash before a quote keeps it open, unless another backslash escapes that one.
            if character == quote and not escaped:
                quote = ""
            escaped = character == "\\" and not escaped
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            closing.append(_CLOSING[character])
        elif character in _CLOSING.values():
            if not closing or character != closing[-1]:
                raise UsageError(f"--vary: {text}: the bracket {character} closes none")
            closing.pop()
    if quote or closing:
        missing = quote or closing[-1]
        raise UsageError(f"--vary: {text}: {missing} is missing at the end")
    return [part.strip() for part in parts]


def shown_statement(call: str) -> str:
    """A statement in one line, for a table: lines of one block are joined by ``;``, as a reader
    would type them, others by the sign ⏎.

    Only with one block is that Python again: after a nested block, ``;`` would put the next line
    into that block.
    """
    lines = [line for line in textwrap.dedent(call).strip("\n").splitlines() if line.strip()]
    if len(lines) < 2:
        return call.strip()
    joint = "; " if _is_one_block(lines) else " \u23ce "
    return joint.join(line.strip() for line in lines)


def _is_one_block(lines: Sequence[str]) -> bool:
    """Whether each line is a statement of its own, and none is nested in another, so that ``;`` can
    join them.
    """
    indents = {len(line) - len(line.lstrip()) for line in lines}
    if len(indents) > 1:
        return False
    # Equal indents are not enough: a statement in brackets may go over several lines.
    try:
        return len(ast.parse("\n".join(lines)).body) == len(lines)
    except (SyntaxError, ValueError):
        return False
