"""What every name of the Python API has: errors of wrong use in short, and results that print as tables."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from overhead.errors import UsageError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Shown:
    """A result that reads as the tables of its command: with ``print``, in IPython and in a notebook.

    ``repr`` is one line. ``overhead.display`` knows how each class is shown. It stands above the results, and Python
    asks a result itself for its text, so that module is found by its name.
    """

    __slots__ = ()

    def __str__(self) -> str:
        return str(_display().text(self))

    def __repr__(self) -> str:
        return f"<overhead {_display().short(self)}>"

    def _repr_html_(self) -> str | None:
        """What a notebook shows; None for what is one line."""
        html: str | None = _display().html(self)
        return html

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython shows in a terminal."""
        printer.text(repr(self) if cycle else str(self))


def _display() -> Any:
    return importlib.import_module("overhead.display")


def public_function(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function as the Python API has it.

    Wrong use and Ctrl-C raise with the line of the caller, and not with all the lines of this suite below it. An
    argument that does not exist raises ``TypeError`` with those that do.
    """
    known = inspect.signature(function).parameters

    @functools.wraps(function)
    def called(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        for name in named:
            if name not in known:
                raise TypeError(f"{function.__name__}() has no argument {name!r}; it has {', '.join(known)}")
        importlib.import_module("overhead.words.reasons")  # so that errors say their reasons in words
        try:
            return function(*given, **named)
        except (UsageError, KeyboardInterrupt) as error:
            raised = error
        raise raised.with_traceback(None) from None

    return called
