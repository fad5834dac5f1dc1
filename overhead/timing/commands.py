"""The command ``time``; it imports what it needs when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from overhead.arguments import add_json
from overhead.command_parser import Question
from overhead.commands import DONE, INTERRUPTED, answer


def add_commands(commands: Any) -> None:
    """Add the parser of the command. ``commands``: what ``add_subparsers`` of argparse returns."""
    about = "measure one call of your own, or several in turn, in about a minute"
    time = commands.add_parser("time", help=about, question=Question.COST)
    call = (
        "a Python statement, FILE.py:FUNCTION or module:function; @FILE or - reads statements from"
        " a file or from standard input; several are compared in turn"
    )
    time.add_argument("calls", metavar="CALL", nargs="+", help=call)
    time.add_argument(
        "-s",
        "--setup",
        metavar="STATEMENT",
        action="append",
        default=[],
        help=(
            "a statement that runs once in each process, before CALL; @FILE or - reads it from a"
            " file or standard input (repeatable: one line each)"
        ),
    )
    time.add_argument(
        "--wait",
        metavar="WAIT",
        default="",
        help=(
            "how to wait until the work is done: torch, cupy, jax, mlx, wgpu-native, dawn, cuda,"
            " none, or a statement that waits (default: the wait of the library in use)"
        ),
    )
    time.add_argument(
        "--quick",
        action="store_true",
        help="give only the first answer, from one process, in seconds",
    )
    time.add_argument(
        "--label",
        metavar="NAME",
        dest="names",
        action="append",
        default=[],
        help=(
            "the name of a call in the table; give as many names as calls, in their order"
            " (repeatable)"
        ),
    )
    time.add_argument(
        "--vary",
        metavar="NAME=VALUE,VALUE",
        default="",
        help="measure with each value of this variable of --setup",
    )
    time.add_argument(
        "--threads",
        metavar="N,N",
        default="",
        help="measure with each of these numbers of library threads",
    )
    python = (
        "measure with this Python; give the option twice to measure with two Pythons in turn and"
        " compare them"
    )
    time.add_argument(
        "--python", metavar="PYTHON", dest="pythons", action="append", default=[], help=python
    )
    argument = (
        "one argument of the function, where CALL is FILE.py:FUNCTION or module:function"
        " (repeatable)"
    )
    time.add_argument(
        "--arg", metavar="NAME=VALUE", dest="arguments", action="append", default=[], help=argument
    )
    add_json(time)
    time.set_defaults(call=time_command)


def time_command(a: argparse.Namespace) -> int:
    """Run ``overhead time`` and print its result; returns the exit code."""
    from overhead.runner.progress import Progress
    from overhead.timing.given_text import given_texts
    from overhead.timing.timing import TimeInterrupted, time

    interrupted = False
    # The options that ``time`` takes under the same name.
    chosen = ("wait", "names", "quick", "vary", "threads", "pythons", "arguments")
    options = {name: getattr(a, name) for name in chosen}
    calls, setup = given_texts(a.calls, a.setup)
    # A text from a file may be long, so the table shows the file's name instead.
    if any(call.place for call in calls) and not a.names:
        options["names"] = [call.label for call in calls]
    statements = [call.text for call in calls]
    setup_text = "\n".join(part.text for part in setup)
    with Progress() as listener:
        try:
            timing = time(*statements, setup=setup_text, progress=listener, **options)
        except TimeInterrupted as stopped:  # what was measured until then is printed all the same
            timing = stopped.timing
            interrupted = True
    # This import takes a tenth of a second, so it waits until the answer has come.
    from overhead.timing.show import timing_blocks

    # ``is_file``: with --json, reasons stay codes, because the answer can be saved and read again.
    answer(a, timing.to_dict, timing_blocks(timing), is_file=True)
    if interrupted:
        print("overhead: interrupted; this is what was measured until then", file=sys.stderr)
    return INTERRUPTED if interrupted else DONE
