"""The parser of the command line: help by question, and errors that name what was probably
meant.
"""

from __future__ import annotations

import argparse
import enum
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from overhead.errors import UsageError, nearest, unknown_name


class Question(enum.StrEnum):
    """What a command answers. Help lists the commands below these headings, in this order; argparse
    adds a colon.
    """

    COST = "what it costs on this machine"
    BOUND = "what limits your program"
    FOUND = "what a run found"
    SLOWER = "whether it is slower than before, or than elsewhere"
    HERE = "what can be measured here, and what would disturb it"
    OTHER = "other"


class WrongArguments(UsageError):
    """Arguments that do not fit. ``usage``: how to call the command that is meant.

    ``near``: the word that is probably meant, such as ``report`` where ``reprot`` was given; '' if
    none is near.
    """

    def __init__(self, message: str, usage: str, near: str = "") -> None:
        super().__init__(message)
        self.usage = usage
        self.near = near


class CommandParser(argparse.ArgumentParser):
    """A parser that raises ``WrongArguments``, where that of argparse prints and ends the program.

    The whole command line has one such parser, and each command has one with the ``question`` that
    it answers. Python gives no public way to the names that begin with ``_`` here; Python 3.11 to
    3.13 have them.
    """

    def __init__(self, *, question: Question = Question.OTHER, **options: Any) -> None:
        super().__init__(**options)
        self.question = question

    def error(self, message: str, near: str = "") -> NoReturn:
        """Raise ``WrongArguments`` with the usage of this command."""
        raise WrongArguments(message, self.format_usage(), near)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, and refuse what is not known.

        argparse would leave what is not known to the parser of the whole program, whose usage names
        no option of the command. And it would first name arguments that are missing, where an
        option is only misspelt.
        """
        arguments = sys.argv[1:] if args is None else list(args)
        # Options are checked first, so that a misspelt one is named. ``left``: what no argument of
        # this parser took, such as a second group of words behind an option.
        self._check_options(arguments)
        found, left = super().parse_known_args(arguments, namespace)
        if left:
            surplus = " ".join(left)
            raise WrongArguments(
                f"{surplus}: too many arguments; several must stand together, not around an option",
                self.format_usage(),
            )
        return found, left

    def format_help(self) -> str:
        """The help. That of the whole program lists its commands below the questions that they
        answer.

        argparse can list all commands in one group only, so this makes the help from argparse's own
        pieces.
        """
        commands = self._commands()
        if commands is None:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        # The name and the help of each command; its parser, which has the question, is found by the
        # name.
        names_with_help = list(commands._get_subactions())
        # A section for each question. ``dest`` of such a pseudo-action is the name of the command,
        # and ``choices`` has the parser by that name.
        for question in Question:
            formatter.start_section(question)
            of_question = [
                one for one in names_with_help if commands.choices[one.dest].question is question
            ]
            formatter.add_arguments(of_question)
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action is not commands])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ``WrongArguments`` if the value is none of the choices of this argument. argparse
        calls it.

        A command is such a value too: it is one of the choices of the argument that holds all
        commands.
        """
        if action.choices is None or value in action.choices:
            return
        # A wrong command is answered by the command that is meant; any other value by its choices.
        # ``unknown_name`` makes the message, with the name that is probably meant as ``near``.
        if action is self._commands():
            if value == "help":  # as in other programs
                self.print_help()
                self.exit()
            commands: Any = action.choices
            unknown = unknown_name("command", value, commands)
            # ``error`` raises; it shows the usage of the command that is probably meant.
            meant = commands[unknown.near] if unknown.near else self
            meant.error(str(unknown), unknown.near)
        name = "/".join(action.option_strings) or action.metavar or action.dest
        unknown = unknown_name(f"value of {name}", str(value), map(str, action.choices))
        self.error(str(unknown), unknown.near)

    def _commands(self) -> Any:
        """The argument that holds the parsers of all commands; None if this is the parser of one
        command.
        """
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return action
        return None

    def _check_options(self, arguments: Sequence[str]) -> None:
        """Raise ``WrongArguments`` for the first option that this parser does not know."""
        known = self._option_string_actions
        for name in self._option_names(arguments):
            # argparse allows --verb for --verbose. The dict has all options of this parser as keys.
            is_start_of_one = any(one.startswith(name) for one in known)
            is_short = not name.startswith("--")
            is_short_with_value = is_short and name[:2] in known  # -p5 for -p 5
            if is_start_of_one or is_short_with_value:
                continue
            long_options = [one for one in known if one.startswith("--")]
            near = nearest(name, long_options)
            hint = f", did you mean {near!r}?" if near else ""
            self.error(f"unknown option {name!r}{hint}", near)

    def _option_names(self, arguments: Sequence[str]) -> Iterator[str]:
        """The arguments that argparse takes for options: ``--out`` of ``--out=run.json``.

        The parser of the whole program stops at the name of the command: what follows is for the
        command's own parser.
        """
        for argument in arguments:
            if argument == "--":  # what follows is no option
                return
            # As argparse decides it: "-" is a file, and a text with a space is a value.
            is_option = argument.startswith("-") and argument != "-" and " " not in argument
            is_command = not is_option and self._commands() is not None
            if is_command:
                return
            is_number = self._negative_number_matcher.match(argument) is not None  # such as -5
            if is_option and not is_number:
                yield argument.partition("=")[0]
