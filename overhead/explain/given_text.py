"""CALL and SETUP as a command line gives them: Python text, or ``@FILE``, or ``-`` for standard input."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.errors import UsageError
from overhead.explain.call_syntax import named_function, shown_statement

_STANDARD_INPUT = ("-", "@-")
_MOST_BYTES = 1_000_000
_LONGEST_SHOWN = 60
"""A longer text of standard input is not shown in a table."""


@dataclass(frozen=True)
class GivenText:
    """A text, and where it was read; ``place`` is empty where the command line holds the text itself."""

    text: str
    place: str = ""

    @property
    def label(self) -> str:
        """What a table calls the text."""
        if self.place in _STANDARD_INPUT:
            shown = shown_statement(self.text)
            return shown if len(shown) <= _LONGEST_SHOWN else "standard input"
        if self.place:
            return Path(self.place).name
        return named_function(self.text) or shown_statement(self.text)


def given_texts(calls: Sequence[str], setup: Sequence[str]) -> tuple[list[GivenText], list[GivenText]]:
    """The texts of CALL and those of SETUP. Raises ``UsageError``, also with the line of a file that does not compile.

    Raises ``OSError`` for a file that cannot be read.
    """
    if sum(one in _STANDARD_INPUT for one in (*calls, *setup)) > 1:
        raise UsageError("-: standard input can be read once; put one of the texts into a file: @FILE")
    return [_given(one) for one in calls], [_given(one) for one in setup]


def _given(argument: str) -> GivenText:
    if argument in _STANDARD_INPUT:
        return _checked(sys.stdin.buffer.read(_MOST_BYTES + 1), argument, "standard input")
    # A decorator begins with the same sign, and stands above a function.
    if argument.startswith("@") and "\n" not in argument and not named_function(argument):
        file = argument[1:]
        with open(file, "rb") as opened:
            return _checked(opened.read(_MOST_BYTES + 1), file, file)
    return GivenText(argument)


def _checked(content: bytes, place: str, name: str) -> GivenText:
    """The text of a file, if it is Python. ``name``: of the file, in an error."""
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{name}: longer than {_MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: no text in UTF-8") from None
    if not text.strip():
        raise UsageError(f"{name}: empty; write Python statements into it")
    try:
        compile(textwrap.dedent(text), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        number = error.lineno or 1
        line = "".join(text.splitlines()[number - 1 : number]).strip()
        raise UsageError(f"{name}, line {number}: {error.msg}: {line[:120]}") from None
    except ValueError as error:  # a null character
        raise UsageError(f"{name}: {error}") from None
    return GivenText(text, place)
