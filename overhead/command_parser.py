"""The parser of the command line: help by question, and errors that name what was probably meant."""

from __future__ import annotations

import argparse
import enum
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from overhead.errors import UsageError, nearest, unknown_name


class Question(enum.StrEnum):
    """What commands answer, in the order of the help. argparse puts a colon behind each."""

    COST = "what it costs on this machine"
    BOUND = "what limits your program"
    FOUND = "what a run found"
    SLOWER = "whether it is slower than before, or than elsewhere"
    HERE = "what can be measured here, and what would disturb it"
    OTHER = "other"


class WrongArguments(UsageError):
    """Arguments that do not fit. ``usage``: of the command that is meant. ``near``: the word that is probably meant."""

    def __init__(self, message: str, usage: str, near: str = "") -> None:
        super().__init__(message)
        self.usage = usage
        self.near = near


class CommandParser(argparse.ArgumentParser):
    """A parser that raises ``WrongArguments`` instead of ending the program.

    The whole command line has one, and each command has one with the ``question`` that it answers.
    """

    def __init__(self, *, question: Question = Question.OTHER, **options: Any) -> None:
        super().__init__(**options)
        self.question = question

    def error(self, message: str, near: str = "") -> NoReturn:
        """Raise ``WrongArguments`` with the usage of this command."""
        raise WrongArguments(message, self.format_usage(), near)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse, and refuse what is not known here: argparse would do that with the usage of the whole program.

        A misspelt option is found before argparse looks for arguments that are missing.
        """
        arguments = sys.argv[1:] if args is None else list(args)
        self._check_options(arguments)
        found, left = super().parse_known_args(arguments, namespace)
        if left:
            several = " ".join(left)
            raise WrongArguments(
                f"{several}: too many arguments; several must stand together, not around an option", self.format_usage()
            )
        return found, left

    def format_help(self) -> str:
        """The help; that of the whole program lists its commands by the questions that they answer."""
        commands = self._commands()
        if commands is None:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        listed = list(commands._get_subactions())
        for question in Question:
            formatter.start_section(question)
            formatter.add_arguments([one for one in listed if commands.choices[one.dest].question is question])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action is not commands])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Raise ``WrongArguments`` if the value is none of the choices of this argument."""
        if action.choices is None or value in action.choices:
            return
        if action is self._commands():
            if value == "help":  # as in other programs
                self.print_help()
                self.exit()
            commands: Any = action.choices
            unknown = unknown_name("command", value, commands)
            meant = commands[unknown.near] if unknown.near else self
            meant.error(str(unknown), unknown.near)
        name = "/".join(action.option_strings) or action.metavar or action.dest
        unknown = unknown_name(f"value of {name}", str(value), map(str, action.choices))
        self.error(str(unknown), unknown.near)

    def _commands(self) -> Any:
        """What holds the parsers of the commands; None if this is the parser of one of them."""
        found = (one for one in self._actions if isinstance(one, argparse._SubParsersAction))
        return next(found, None)

    def _check_options(self, arguments: Sequence[str]) -> None:
        """Raise ``WrongArguments`` for the first option that this parser does not know."""
        known = self._option_string_actions
        for name in self._option_names(arguments):
            is_begun = any(one.startswith(name) for one in known)
            has_value_behind = not name.startswith("--") and name[:2] in known
            if is_begun or has_value_behind:
                continue
            near = nearest(name, [one for one in known if one.startswith("--")])
            hint = f", did you mean {near!r}?" if near else ""
            self.error(f"unknown option {name!r}{hint}", near)

    def _option_names(self, arguments: Sequence[str]) -> Iterator[str]:
        """What argparse takes for options, without values; those of a command are left to its own parser."""
        for argument in arguments:
            looks_like_one = argument.startswith("-") and argument != "-" and " " not in argument
            if argument == "--" or not (looks_like_one or self._commands() is None):
                return
            if looks_like_one and not self._negative_number_matcher.match(argument):
                yield argument.partition("=")[0]
