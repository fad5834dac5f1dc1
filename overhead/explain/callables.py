"""A function of this process as a SETUP that gives another process the same function."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import os
import pickle
import runpy
import sys
from collections.abc import Callable
from typing import Any

from overhead.errors import UsageError, one_line
from overhead.explain.call_spec import VARIABLE

SCRIPT = "__overhead_script__"
"""``__name__`` of a script that is run again to find one of its functions."""


def setup_of(function: Callable[[], object], name: str) -> str:
    """A SETUP after which ``name`` is this function, in another process.

    A function that can be imported is imported; any other is pickled by value, which needs the package ``cloudpickle``,
    except that one of a script is found by running the script again, under the name ``SCRIPT``. Raises ``UsageError``.
    """
    if not callable(function):
        raise UsageError(f"{function!r:.100}: neither a statement (text) nor a function")
    if os.environ.get(VARIABLE):
        raise UsageError(
            "a script that is measured runs again: put its own measurement under if __name__ == '__main__'"
        )
    module, path = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    if module != "__main__" and _found(module, path) is function:
        return _setup(name, "imported", module, path)
    if importlib.util.find_spec("cloudpickle") is not None:
        return _setup(name, "unpickled", base64.b64encode(_pickled(function, path)).decode())
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if module == "__main__" and file and _found(module, path) is function:
        return _setup(name, "from_script", os.path.abspath(file), path)
    raise UsageError(
        f"{path or repr(function)[:100]}: other processes cannot import it; define it at the top of a module, give a "
        "statement as text, or install cloudpickle: pip install cloudpickle"
    )


def imported(module: str, path: str) -> Any:
    """The function with this qualified name in a module."""
    return _part(importlib.import_module(module), path)


def unpickled(text: str) -> Any:
    """The function in a pickle, base64."""
    return pickle.loads(base64.b64decode(text))


def from_script(file: str, path: str) -> Any:
    """The function with this qualified name in a script, which runs without its ``if __name__ == "__main__"``."""
    scope = runpy.run_path(file, run_name=SCRIPT)
    first, _, rest = path.partition(".")
    return _part(scope[first], rest)


def _setup(name: str, how: str, *arguments: str) -> str:
    given = ", ".join(map(repr, arguments))
    return f"from {__name__} import {how} as _overhead_find\n{name} = _overhead_find({given})"


def _pickled(function: Callable[[], object], path: str) -> bytes:
    import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]

    try:
        return bytes(cloudpickle.dumps(function))
    except Exception as error:  # an object that it holds may raise anything
        raise UsageError(f"{path}: cannot be handed to another process: {one_line(error)}") from None


def _found(module: str, path: str) -> Any:
    try:
        return imported(module, path)
    except (ImportError, AttributeError, ValueError):
        return None


def _part(value: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        value = getattr(value, name)
    return value
