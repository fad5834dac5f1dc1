"""The reference of the plugin interface, from the signatures and docstrings of the code, for ``write_docs.py``."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any, get_args

from overhead import results
from overhead.probes.base import Probe


def plugin_interface() -> str:
    """The classes of the plugin interface: each attribute with its default, each method with its docstring."""
    from overhead.measure.sampling.chain import Chain, DeviceTime, StartLatency
    from overhead.probes.base import Space, device_id, whole_units
    from overhead.probes.in_order import InOrderChain
    from overhead.probes.workload_chain import WorkChain, WorkloadArm, kernels_of, step_of, verified, with_workloads

    classes = (Probe, results.Target, results.Case, Space, Chain, InOrderChain, DeviceTime, StartLatency)
    functions: tuple[Callable[..., Any], ...] = (with_workloads, verified, step_of, kernels_of, whole_units, device_id)
    of_workloads = [*map(_class_reference, (WorkloadArm, WorkChain)), *map(_function_reference, functions)]
    words = [
        f"- {name}: {', '.join(f'`{value}`' for value in get_args(kind))}"
        for name, kind in (
            ("pattern", results.Pattern),
            ("caller", results.Caller),
            ("dependency", results.Dependency),
            ("overlap", results.Overlap),
        )
    ]
    words.append(f"- api: any name; the spelling of known ones is {', '.join(f'`{n}`' for n in results.KNOWN_APIS)}")
    return "\n\n".join(["## Allowed words", "\n".join(words), *map(_class_reference, classes), *of_workloads])


def _function_reference(function: Callable[..., Any]) -> str:
    """A section with the signature and the docstring of a function."""
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    return f"## `{_signature(node)}`\n\n{_prose(function.__doc__)}"


def _signature(node: ast.FunctionDef) -> str:
    return f"{node.name}({ast.unparse(node.args)})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")


def _class_reference(cls: type) -> str:
    """A section with the docstring of a class, its attributes and its methods."""
    parts = [f"## {cls.__name__}", _prose(cls.__doc__)]
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    for node, after in zip(body.body, [*body.body[1:], None], strict=True):
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and str(after.value.value)
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            parts.append(f"- `{ast.unparse(node)}`" + (f": {_prose(told).replace(chr(10), ' ')}" if told else ""))
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
            required = " (required)" if "abc.abstractmethod" in map(ast.unparse, node.decorator_list) else ""
            parts.append(f"### `{_signature(node)}`{required}")
            parts.append(_prose(ast.get_docstring(node)))
    return "\n\n".join(parts)


def _prose(docstring: str | None) -> str:
    """A docstring as Markdown: its literals in single backticks, its examples as code blocks."""
    text = inspect.cleandoc(docstring or "").replace("``", "`")
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```python\n{p}\n```" if p.startswith(">>>") else p for p in paragraphs)
