"""What every name of the Python API has: short errors for wrong use, and results that print as
tables.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from overhead.errors import UsageError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Shown:
    """A result that reads as the tables of its command: with ``print``, in IPython and in a
    notebook.

    ``repr`` is one line. ``overhead.display`` knows how each class is shown. It imports the
    results, so they cannot import it: it is imported by its name when a text is asked for.
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
    """The function as the Python API has it, with errors that name the caller's own line.

    - An argument that does not exist: ``TypeError``, with the names of those that do.
    - An argument of a wrong type: ``UsageError``.
    - Other wrong use, and Ctrl-C: the error of the function, without the lines of this package in
      its traceback.
    """
    signature = inspect.signature(function)
    known = signature.parameters

    @functools.wraps(function)
    def called(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        # First names that do not exist, then types, then the call.
        for name in named:
            if name not in known:
                names = ", ".join(known)
                raise TypeError(f"{function.__name__}() has no argument {name!r}; it has {names}")
        # So that errors say their reasons in words.
        importlib.import_module("overhead.words.reasons")
        try:
            # ``bind`` gives each argument its name, and raises ``TypeError`` if one is missing.
            _check_types(signature.bind(*given, **named), known)
            return function(*given, **named)
        except (UsageError, KeyboardInterrupt) as error:
            # Python then shows the caller's line last, and not the lines of this package below it.
            raise error.with_traceback(None) from None

    return called


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or _is_text(value)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether it is a number; True and False are numbers to Python, but not here."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_number_or_none(value: object) -> bool:
    return value is None or _is_number(value)


def _is_fingerprint(value: object) -> bool:
    # By name: the class has ``Shown`` of this module as its base, so this module cannot import it.
    return type(value).__name__ == "Fingerprint"


@dataclass(frozen=True)
class _Wanted:
    """What the value of an argument must be. ``said``: in an error."""

    is_met_by: Callable[[object], bool]
    said: str


_BY_ANNOTATION: Mapping[str, _Wanted] = {
    "str": _Wanted(_is_text, "a text"),
    "str | None": _Wanted(_is_text_or_none, "a text, or None"),
    "Sequence[str]": _Wanted(_is_list_of_texts, "a list of texts"),
    "bool": _Wanted(_is_bool, "True or False"),
    "float": _Wanted(_is_number, "a number"),
    "float | None": _Wanted(_is_number_or_none, "a number, or None"),
    "Fingerprint": _Wanted(_is_fingerprint, "what overhead.load returns"),
}
"""By the annotation of an argument, as it is written. Arguments with other annotations are not
checked here.

Without a check, a function would misread some values and not refuse them: a text, for example, is a
list of letters.
"""


def _check_types(given: inspect.BoundArguments, known: Mapping[str, inspect.Parameter]) -> None:
    """Raise ``UsageError`` for an argument of a wrong type. ``given``: the arguments by name;
    ``known``: the parameters of the function, with their annotations as texts.
    """
    for name, value in given.arguments.items():
        parameter = known[name]
        # ``_BY_ANNOTATION``: what a value must be; other annotations are not checked here.
        wanted = _BY_ANNOTATION.get(parameter.annotation)
        # The value of ``*calls`` is a tuple, and its annotation is that of one of them.
        is_tuple_of_values = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        if wanted is None or is_tuple_of_values:
            continue
        if not wanted.is_met_by(value):
            # At most 50 letters of the value.
            raise UsageError(f"{name}={value!r:.50}: must be {wanted.said}")
