"""CALL and SETUP as a command line gives them: Python text, or ``@FILE``, or ``-`` for standard
input.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.errors import UsageError
from overhead.timing.call_syntax import named_function, shown_statement

_STANDARD_INPUT = ("-", "@-")
_MOST_BYTES = 1_000_000
"""Of a file. A larger one is no program text, but a wrong file, such as data or a device without an
end.
"""
_LONGEST_SHOWN = 60
"""A longer text of standard input is not shown in a table; its row says ``standard input``."""


@dataclass(frozen=True)
class GivenText:
    """A text of CALL or SETUP, and where it was read: a file, or ``-`` for standard input;
    ``place`` is empty where the command line holds the text itself.
    """

    text: str
    place: str = ""

    @property
    def label(self) -> str:
        """What a table calls the text.

        | given | label |
        |---|---|
        | ``-``, with ``f(x)`` on standard input | ``f(x)`` |
        | ``-``, with a text of more than 60 characters | ``standard input`` |
        | ``@steps/train.py`` | ``train.py`` |
        | the name of a function: ``train.py:step`` | ``train.py:step`` |
        | another text: ``f(x)`` | ``f(x)`` |
        """
        if self.place in _STANDARD_INPUT:
            shown = shown_statement(self.text)
            return shown if len(shown) <= _LONGEST_SHOWN else "standard input"
        if self.place:
            return Path(self.place).name
        return named_function(self.text) or shown_statement(self.text)


def given_texts(
    calls: Sequence[str], setup: Sequence[str]
) -> tuple[list[GivenText], list[GivenText]]:
    """The texts of CALL and those of SETUP, read from where the arguments say: ``@FILE``, ``-`` for
    standard input, else the argument is the text.

    Raises ``OSError`` for a file that cannot be read, and ``UsageError`` for one that is no Python:
    it names the line.
    """
    arguments = [*calls, *setup]
    from_standard_input = [one for one in arguments if one in _STANDARD_INPUT]
    if len(from_standard_input) > 1:
        raise UsageError(
            "-: standard input can be read once; put one of the texts into a file: @FILE"
        )
    return [_read_argument(one) for one in calls], [_read_argument(one) for one in setup]


def _read_argument(argument: str) -> GivenText:
    """The text of one argument: the argument itself, or what the file ``@FILE`` or standard input
    holds. Not more of these is read than shows that they are too long.
    """
    one_too_many = _MOST_BYTES + 1
    if argument in _STANDARD_INPUT:
        content = sys.stdin.buffer.read(one_too_many)
        return _checked_python(content, argument, "standard input")
    # A decorator begins with the same sign, but has a line below it. And the name of a function may
    # begin with it: ``@FILE.py:FUNCTION`` names a file with that sign.
    is_function = "\n" in argument or bool(named_function(argument))
    if argument.startswith("@") and not is_function:
        file = argument[1:]
        with open(file, "rb") as opened:
            content = opened.read(one_too_many)
        return _checked_python(content, file, file)
    return GivenText(argument)


def _checked_python(content: bytes, place: str, name: str) -> GivenText:
    """The text of a file, if it is Python; else raises ``UsageError``. ``place``: the file as the
    command line gives it; ``name``: what an error calls it.

    The text is compiled here only to find mistakes: an error of the child process that runs it
    would name no line.
    """
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{name}: longer than {_MOST_BYTES:,} bytes")
    try:
        # ``-sig``: also without the mark that some editors write at the beginning of a file.
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: no text in UTF-8") from None
    if not text.strip():
        raise UsageError(f"{name}: empty; write Python statements into it")
    try:
        # As it will run: the whole text may be indented, and may use ``await`` outside a function.
        compile(textwrap.dedent(text), name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        number = error.lineno or 1
        lines = text.splitlines()
        line = lines[number - 1].strip() if number <= len(lines) else ""
        raise UsageError(f"{name}, line {number}: {error.msg}: {line[:120]}") from None
    except ValueError as error:  # a null character
        raise UsageError(f"{name}: {error}") from None
    return GivenText(text, place)
