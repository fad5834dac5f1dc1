"""The reference of the plugin interface, from the signatures and docstrings of the code, for
``write_docs.py``.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import get_args

from overhead import results
from overhead.probes.base import Probe

_SHOWN = {
    "Probe": (
        "name title mend distributions on_request same_calls cost facts environments targets space"
        " open"
    ),
    "Chain": (
        "overlap recorded max_n wait_spins synchronous latency prepare issue wait executed device"
        " window close"
    ),
}
"""The attributes and methods that most plugins need, by class. Of all others the reference has the
name only.
"""


def plugin_interface() -> str:
    """The classes of the plugin interface, in short. ``pydoc`` prints the whole docstrings."""
    from overhead.measure.sampling.chain import Chain, DeviceTime
    from overhead.probes.base import Space
    from overhead.probes.in_order import InOrderChain

    kinds = {
        "pattern": results.Pattern,
        "caller": results.Caller,
        "dependency": results.Dependency,
        "role": results.StackRole,
        "group": results.RowGroup,
    }
    words = []
    for name, kind in kinds.items():
        allowed = [f"`{value}`" for value in get_args(kind)]
        words.append(f"- {name}: {', '.join(allowed)}")
    classes = (
        Probe,
        results.StackFacts,
        results.StackRow,
        results.Target,
        results.Case,
        Space,
        Chain,
        InOrderChain,
        DeviceTime,
    )
    return "\n\n".join(["## Allowed words", "\n".join(words), *map(_class_reference, classes)])


def _class_reference(cls: type) -> str:
    """A section for a class: its docstring, or the first sentence of it, of its attributes and of
    its methods.
    """
    shown = _SHOWN.get(cls.__name__, "").split()
    if not shown:
        return f"## {cls.__name__}\n\n{_prose(cls.__doc__)}"
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    lines: list[str] = []
    others: list[str] = []
    # The docstring of an attribute is the statement after it.
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        described = _text_of(after)
        if isinstance(node, ast.AnnAssign) and described:
            name = ast.unparse(node.target)
            text = _attribute_reference(node, described)
        elif isinstance(node, ast.FunctionDef):
            name = node.name
            text = _method_reference(node)
        else:
            continue
        if name in shown:
            lines.append(text)
        elif not name.startswith("_"):
            others.append(f"`{name}`")
    rare = f"Needed rarely: {', '.join(others)}."
    return "\n\n".join([f"## {cls.__name__}", _first_sentence(cls.__doc__), "\n".join(lines), rare])


def _text_of(statement: ast.stmt | None) -> str:
    """The text of a statement that is a string alone; '' for another statement."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return str(statement.value.value)
    return ""


def _attribute_reference(node: ast.AnnAssign, docstring: str) -> str:
    """The line of an attribute, with its default if it has one."""
    default = f" = {ast.unparse(node.value)}" if node.value else ""
    return f"- `{ast.unparse(node.target)}{default}`: {_first_sentence(docstring)}"


def _method_reference(node: ast.FunctionDef) -> str:
    """The line of a method, with the names of its arguments."""
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    required = " (required)" if "abc.abstractmethod" in decorators else ""
    names = [argument.arg for argument in node.args.args]
    arguments = ", ".join(name for name in names if name not in ("self", "cls"))
    docstring = ast.get_docstring(node)
    return f"- `{node.name}({arguments})`{required}: {_first_sentence(docstring)}"


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown, without its examples."""
    paragraphs = inspect.cleandoc(docstring or "").replace("``", "`").split("\n\n")
    return "\n\n".join(text for text in paragraphs if not text.startswith(">>>"))


def _first_sentence(docstring: str | None) -> str:
    """The text until a sentence begins with a capital letter; so a list of values stays whole."""
    text = " ".join(_prose(docstring).partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0]
