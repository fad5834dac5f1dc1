"""Environment variables that the command line sets for the workers, and how the files and messages write them."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec

from overhead import machine
from overhead.errors import UsageError
from overhead.fields import is_utf8
from overhead.results import EnvironmentVariables
from overhead.runner.interpreter import Interpreter

_CHOOSE_PACKAGES = {"PYTHONPATH", "PYTHONHOME"}
"""With these, the workers would have other packages than the versions in the file say."""


def with_variables(given: Sequence[Interpreter], both: Sequence[str], new: Sequence[str]) -> list[Interpreter]:
    """The interpreters with the variables ``both`` (``NAME=VALUE``) for every side, and ``new`` for the last one too.

    With ``new``, a single interpreter becomes both sides. Raises ``UsageError``.
    """
    common, own = _parsed("--env", both), _parsed("--env-new", new)
    if own and len(given) == 1:
        given = [given[0], given[0]]
    last = len(given) - 1
    return [_set(one, common | (own if side == last else {})) for side, one in enumerate(given)]


def recorded(interpreter: Interpreter) -> dict[str, str]:
    """The variables as the files hold them: without secrets, host, user and absolute paths."""
    return {name: machine.redact(machine.hide_secrets(name, value)) for name, value in interpreter.variables.items()}


def hidden(text: str) -> str:
    """``NAME=VALUE`` with secrets hidden; other text unchanged."""
    name, equals, value = text.partition("=")
    return f"{name}={machine.hide_secrets(name, value)}" if equals else text


def in_words(variables: Mapping[str, str]) -> str:
    """The variables as ``A=1 B=2``, or "no variables"."""
    return " ".join(f"{name}={value}" for name, value in variables.items()) or "no variables"


def _parsed(option: str, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals or not is_utf8(text):
            raise UsageError(f"{option} {name}{equals}: not of the form NAME=VALUE, in UTF-8")
        if any(unicodedata.category(character) == "Cc" for character in text):
            raise UsageError(f"{option} {name!r}: its name or value has a control character, such as a line feed")
        if name in _CHOOSE_PACKAGES:
            raise UsageError(f"{option} {name}: this variable changes the packages; use --python for that")
        found[name] = value
    return found


def _set(interpreter: Interpreter, variables: Mapping[str, str]) -> Interpreter:
    environment = {**interpreter.environment, **variables}
    result = dataclasses.replace(interpreter, environment=environment, variables=variables)
    try:
        msgspec.convert(recorded(result), EnvironmentVariables)
    except msgspec.ValidationError as error:
        raise UsageError(f"--env: too many or too long variables: {error}") from None
    return result
