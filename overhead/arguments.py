"""The arguments of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from overhead import __version__, commands
from overhead.command_parser import CommandParser, Question
from overhead.profiles import PROFILES, Plan, profiles
from overhead.slices import of_features

_STACK = ("-p", "--probe")


def make_parser() -> CommandParser:
    """Make the parser of the command line. ``call`` of what it parses is the function that runs the
    command; without a command, the one that prints the first steps.
    """
    whole = CommandParser(
        prog="overhead",
        description=(
            "Measure kernel launch overhead on this machine: what one more launch, dispatch or"
            " operation costs through each GPU stack, and who takes the time: Python, the library,"
            " the driver or the device."
        ),
        epilog=(
            "'make report' measures this machine and draws a report. The folder docs explains the"
            " method."
        ),
    )
    whole.add_argument("--version", action="version", version=f"overhead {__version__}")
    whole.set_defaults(call=commands.first_steps_command)
    # ``added`` holds the parsers of all commands. Help lists these by question (``Question``), so
    # the order here only counts inside a question.
    added = whole.add_subparsers(metavar="COMMAND")
    for add in (_add_measuring, _add_looking, _add_reading, _add_compare):
        add(added)
    for feature in of_features("commands"):  # the modules in which features define their commands
        feature.add_commands(added)
    completion = added.add_parser(
        "completion", help="print a script that completes commands and names in a shell"
    )
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    # The script is made from the parser of the whole program, which holds all names.
    completion.set_defaults(call=commands.completion_command, parser=whole)
    return whole


def _add_measuring(added: Any) -> None:
    """Add the commands that measure to ``added``, which holds the parsers of all commands: ``run``
    and ``browser``.
    """
    run = added.add_parser(
        "run",
        help="measure this machine and write one JSON file with all figures",
        question=Question.COST,
    )
    _repeatable(run, *_STACK, metavar="STACK", help="measure only this stack (repeatable)")
    _repeatable(run, "--pattern", metavar="PATTERN", help="measure only this pattern (repeatable)")
    _repeatable(
        run, "--workload", metavar="WORKLOAD", help="measure only this workload (repeatable)"
    )
    run.add_argument(
        "--software",
        action="store_true",
        help="on a machine with a GPU, measure software adapters and CPUs too",
    )
    _repeatable(
        run,
        "--require",
        metavar="STACK",
        help="exit with code 1 if this stack gives no figure (repeatable)",
    )
    python = (
        "measure with this Python; give the option twice to measure with two Pythons in turn and"
        " compare them"
    )
    _repeatable(run, "--python", metavar="PYTHON", help=python)
    _repeatable(
        run,
        "--env",
        metavar="NAME=VALUE",
        help="set this environment variable while measuring (repeatable)",
    )
    env_new = "measure in turn without and with this variable, and compare (repeatable)"
    _repeatable(run, "--env-new", metavar="NAME=VALUE", help=env_new)
    _add_measuring_options(run, profiles())
    add_plugin(run)
    _answers(run, commands.run_command)

    browser = added.add_parser(
        "browser",
        help="measure WebGPU in a real browser, or import what a page measured",
        question=Question.COST,
    )
    add = browser.add_argument
    add(
        "--browser",
        default="chromium",
        help="chromium (default), firefox, or the path of a program",
    )
    imported = "convert the file that the page offered for download"
    add("--import", dest="file", metavar="FILE", type=Path, help=imported)
    add(
        "--page",
        metavar="FILE.html",
        type=Path,
        help="write the page as one file that you can open in any browser",
    )
    _add_measuring_options(browser)
    _answers(browser, commands.browser_command)


def _add_looking(added: Any) -> None:
    """Add the commands that look at this machine: ``list``, ``check`` and ``doctor``. ``added``
    holds the parsers of all commands. ``question``: below which heading the help lists a command.
    ``_repeatable`` adds an option whose value is a list, and ``_answers`` adds ``--json`` and names
    the function that runs the command.
    """
    listing = added.add_parser(
        "list",
        help="list the stacks and devices of this machine, and how to add missing stacks",
        question=Question.HERE,
    )
    _repeatable(listing, *_STACK, metavar="STACK", help="list only this stack")
    add_plugin(listing)
    _answers(listing, commands.list_command)

    check = added.add_parser(
        "check",
        help="test a stack of your own or a built-in stack for mistakes, in about ten seconds",
        question=Question.HERE,
    )
    _repeatable(check, *_STACK, metavar="STACK", help="check this stack (repeatable)")
    check.add_argument("--all", action="store_true", help="check every case, however long it takes")
    add_plugin(check)
    _answers(check, commands.check_command)

    doctor = added.add_parser(
        "doctor",
        help="check what would disturb a measurement on this machine",
        question=Question.HERE,
    )
    _answers(doctor, commands.doctor_command)


def _add_reading(added: Any) -> None:
    """Add the commands that read files of runs: ``show``, ``report`` and ``export``. ``added``
    holds the parsers of all commands. ``question``: below which heading the help lists a command.
    ``_answers`` adds ``--json`` and names the function that runs the command.
    """
    show = added.add_parser(
        "show", help="print the figures of a run as tables", question=Question.FOUND
    )
    what = (
        "file of a run (default: the newest in reports/local, or an example where there is none);"
        " after the file, the key of a case, or words of the key"
    )
    show.add_argument("what", metavar="FILE CASE", nargs="*", help=what)
    plot = (
        "draw the measured times of CASE beside the fitted line (default: a PNG named after the"
        " case)"
    )
    # ``const``: the value of ``--plot`` alone, an empty path; without the option it is None.
    show.add_argument(
        "--plot", metavar="FILE.png|svg", nargs="?", type=Path, const=Path(), help=plot
    )
    show.add_argument(
        "--all", action="store_true", dest="every", help="print all cases, not only the base cases"
    )
    _answers(show, commands.show_command)

    report = added.add_parser(
        "report",
        help="draw the pages of a report from files; measures nothing",
        question=Question.FOUND,
    )
    paths = (
        "files of runs, or folders (default: reports/local, compared with reports/data, or an"
        " example)"
    )
    report.add_argument("paths", metavar="PATH", nargs="*", type=Path, help=paths)
    out = "folder to write index.html to"
    # A folder or a file: with both, argparse says that one is not allowed with the other.
    written = report.add_mutually_exclusive_group()
    written.add_argument("--out", metavar="DIR", type=Path, default=Path("reports"), help=out)
    one_file = "write all pages to this one file instead, which opens without any other file"
    written.add_argument("--one-file", metavar="FILE.html", type=Path, help=one_file)
    reference = (
        "compare the machine with this reference: the file of a run, or the id or name of a machine"
        " in PATH"
    )
    report.add_argument("--reference", metavar="RUN", default="", help=reference)
    _answers(report, commands.report_command)

    export = added.add_parser(
        "export", help="convert the figures of runs for other programs", question=Question.FOUND
    )
    export.add_argument("path", metavar="PATH", type=Path, help="file, or a folder of files")
    export.add_argument("--format", choices=["csv", "json"], default="csv", help="default: csv")
    export.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="print JSON: --format json",
    )
    # Without ``_answers``: here ``--json`` is a format of the figures, as just defined.
    export.set_defaults(call=commands.export_command)


def _add_compare(added: Any) -> None:
    """Add the command ``compare``. ``added`` holds the parsers of all commands. ``BASE`` is
    optional for argparse; without it the command itself says how to make a run.
    """
    compare = added.add_parser(
        "compare",
        help=(
            "compare two runs, or variants inside one run, case by case: faster, slower or no"
            " difference"
        ),
        question=Question.SLOWER,
    )
    compare.add_argument(
        "base", metavar="BASE", nargs="?", type=Path, help="file of a run, or folder of runs"
    )
    compare.add_argument(
        "new",
        metavar="NEW",
        nargs="?",
        type=Path,
        help="file or folder, as BASE; a ratio is NEW divided by BASE, so above 1 is slower",
    )
    across = (
        "instead of NEW: compare variants inside the run BASE with the first variant, such as"
        " wait=stream,event"
    )
    compare.add_argument("--across", metavar="AXIS=VALUE,VALUE", help=across)
    limit = (
        "exit with code 1 if a case is surely slower by more than PCT percent, with code 3 if a"
        " case does not tell"
    )
    compare.add_argument("--fail-over", metavar="PCT", type=float, help=limit)
    compare.add_argument(
        "--allow-missing", action="store_true", help="accept cases that have no value on one side"
    )
    add_markdown(compare)
    _answers(compare, commands.compare_command)


def _repeatable(
    parser: argparse.ArgumentParser, *names: str, metavar: str, help: str, type: Any = str
) -> None:
    """Add an option that may be given several times; its value is the list of what was given."""
    parser.add_argument(*names, metavar=metavar, action="append", default=[], type=type, help=help)


def add_plugin(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--plugin`` to the parser of a command that measures."""
    a_file = "a Python file with a stack or workload of your own (repeatable)"
    _repeatable(parser, "--plugin", metavar="FILE.py", type=Path, help=a_file)


def _add_measuring_options(
    parser: argparse.ArgumentParser, plans: Mapping[str, Plan] = PROFILES
) -> None:
    """Add the options of a command that measures: how long (``--profile``, one of ``plans``), and
    where the file goes (``--out``).
    """
    about = "; ".join(f"{name}: {plan.help}" for name, plan in plans.items())
    parser.add_argument("--profile", choices=[*plans], default="default", help=about)
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="file to write, or a folder (default: reports/local)",
    )


def _answers(parser: argparse.ArgumentParser, call: Any) -> None:
    """Let this parser's command call ``call``, which prints its answer as text, or as JSON with the
    option ``--json``.
    """
    add_json(parser)
    parser.set_defaults(call=call)


def add_markdown(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--markdown`` to the parser of a command that calls ``commands.answer``."""
    parser.add_argument(
        "--markdown", action="store_true", help="print Markdown, for a pull request"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json`` to the parser of a command that calls ``commands.answer``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
