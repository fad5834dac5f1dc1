"""The command ``contention``."""

from __future__ import annotations

import argparse
import dataclasses
import functools
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_plugin
from overhead.command_parser import Question
from overhead.commands import measure_and_show
from overhead.errors import UsageError


def add_commands(commands: Any) -> None:
    """Add the parser of the command ``contention``. ``commands``: what ``add_subparsers`` of
    argparse returns. ``question``: below which heading the help lists it. ``add_plugin`` and
    ``add_json`` add the options of these names.
    """
    contention = commands.add_parser(
        "contention",
        help="measure what a launch costs while several processes or threads launch at once",
        question=Question.COST,
    )
    add = contention.add_argument
    add(
        "-p",
        "--probe",
        metavar="STACK",
        action="append",
        default=[],
        help="measure only this stack (repeatable)",
    )
    ways = (
        "processes on one device, threads of one process, a process for each device, or while other"
        " processes are busy (repeatable)"
    )
    add(
        "--way",
        choices=["processes", "threads", "devices", "busy"],
        action="append",
        default=[],
        help=ways,
    )
    add(
        "--at-once",
        metavar="K,K",
        type=_numbers,
        default=(1, 2, 4, 8),
        help="how many at once (default: 1,2,4,8)",
    )
    add(
        "--seconds",
        metavar="S",
        type=float,
        default=900.0,
        help=(
            "time for the whole measurement (default: 900); what does not fit is left out and named"
        ),
    )
    add(
        "--software",
        action="store_true",
        help="on a machine with a GPU, measure software adapters and CPUs too",
    )
    add(
        "--out",
        metavar="FILE",
        type=Path,
        help="file to write, or a folder (default: reports/local)",
    )
    add_plugin(contention)
    add_json(contention)
    contention.set_defaults(call=contention_command, profile="contention")


def contention_command(a: argparse.Namespace) -> int:
    """Run ``overhead contention``, which measures a launch while several processes or threads
    launch at once; write the files and print the figures. Returns the exit code.

    It is a run without cases of its own (the profile ``contention``), after which this is measured.
    """
    from overhead.contention.measuring import measure_contention
    from overhead.contention.plan import WAYS, ContentionPlan
    from overhead.profiles import scope_of

    if not a.seconds > 0:
        raise UsageError(f"--seconds {a.seconds:g}: must be above 0")
    chosen = a.way or WAYS
    ways = [way for way in WAYS if way in chosen]  # each once, in the usual order
    plan = ContentionPlan(ways=ways, numbers=a.at_once, seconds=a.seconds)
    # ``after``: called by the run when its cases, of which there are none, are measured.
    measure_as_asked = functools.partial(measure_contention, plan)
    scope = dataclasses.replace(scope_of("contention"), after=measure_as_asked)
    return measure_and_show(a, a.probe, plugins=a.plugin, software=a.software, scope=scope)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers in ``1,2,4``, sorted, with 1 among them. Raises ``ArgumentTypeError`` outside 1
    to 256.
    """
    # With 1: the figures of several are compared with one alone.
    numbers = {1}
    for word in text.split(","):
        if not word.isdecimal() or not 1 <= int(word) <= 256:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a list of numbers from 1 to 256, such as 1,2,4,8"
            )
        numbers.add(int(word))
    return tuple(sorted(numbers))
