"""The arguments of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from overhead import commands
from overhead.slices import of_slices


def parser() -> argparse.ArgumentParser:
    """The parser of the command line; ``call`` of what it parses is the command."""
    whole = argparse.ArgumentParser(
        prog="overhead",
        description="Measure what one more dispatch, launch or operation costs on this machine, through each GPU "
        "stack, and who takes the time: Python, the library, the driver or the device.",
        epilog="'make report' measures this machine and draws the page. docs/ explains the method and the file.",
    )
    whole.add_argument("--version", action="version", version=_version())
    added = whole.add_subparsers(metavar="COMMAND", required=True)

    for add in (
        _add_run,
        _add_listing,
        _add_check,
        _add_doctor,
        _add_show,
        _add_browser,
        _add_report,
        _add_compare,
        _add_export,
    ):
        add(added)
    for slice in of_slices("commands"):
        slice.add_commands(added)

    completion = added.add_parser("completion", help="print a script that completes commands and names in a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    completion.set_defaults(call=commands.completion_command, parser=whole)
    return whole


def _add_run(added: Any) -> None:
    run = added.add_parser("run", help="measure this machine and write a fingerprint: one JSON file with all figures")
    run.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="only this stack (repeatable)")
    run.add_argument("--pattern", metavar="PATTERN", action="append", default=[], help="only this pattern (repeatable)")
    run.add_argument(
        "--workload", metavar="WORKLOAD", action="append", default=[], help="only this workload (repeatable)"
    )
    run.add_argument("--software", action="store_true", help="measure software adapters too on a machine with a GPU")
    run.add_argument(
        "--require",
        metavar="STACK",
        action="append",
        default=[],
        help="exit 1 unless this stack gave a figure (repeatable)",
    )
    run.add_argument(
        "--python",
        metavar="PYTHON",
        action="append",
        default=[],
        help="measure with this Python; given twice: measure with both in turn, and compare",
    )
    run.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set this variable for the workers (repeatable)",
    )
    run.add_argument(
        "--env-new",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="measure in turn without and with this variable, and compare (repeatable)",
    )
    _add_measuring_options(run)
    _add_plugin(run)
    add_json(run)
    run.set_defaults(call=commands.run_command)


def _add_listing(added: Any) -> None:
    listing = added.add_parser("list", help="list stacks and devices; what is missing and how to add it")
    listing.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="only this stack")
    _add_plugin(listing)
    add_json(listing)
    listing.set_defaults(call=commands.list_command)


def _add_check(added: Any) -> None:
    check = added.add_parser("check", help="test a stack of your own, or a built-in one, in about ten seconds")
    check.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="this stack (repeatable)")
    check.add_argument("--all", action="store_true", help="every case, however long it takes")
    _add_plugin(check)
    add_json(check)
    check.set_defaults(call=commands.check_command)


def _add_doctor(added: Any) -> None:
    doctor = added.add_parser("doctor", help="check what would disturb a measurement on this machine")
    add_json(doctor)
    doctor.set_defaults(call=commands.doctor_command)


def _add_show(added: Any) -> None:
    show = added.add_parser("show", help="print the figures of a run as tables")
    show.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        help="fingerprint or journal (default: the newest in reports/local)",
    )
    show.add_argument("--all", action="store_true", dest="every", help="print all cases, not only the base cases")
    add_json(show)
    show.set_defaults(call=commands.show_command)


def _add_browser(added: Any) -> None:
    browser = added.add_parser("browser", help="measure in a real browser, or import what a page measured")
    browser.add_argument(
        "--browser",
        metavar="BROWSER",
        default="chromium",
        help="chromium (default), firefox, or the path of a program",
    )
    browser.add_argument(
        "--import", dest="file", metavar="FILE", type=Path, help="convert the file that a page offered for download"
    )
    browser.add_argument(
        "--page", metavar="FILE.html", type=Path, help="write the page as one file that you can open in any browser"
    )
    _add_measuring_options(browser)
    add_json(browser)
    browser.set_defaults(call=commands.browser_command)


def _add_report(added: Any) -> None:
    report = added.add_parser("report", help="draw the pages from files; measures nothing")
    report.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="files or folders (default: reports/local, compared with reports/data)",
    )
    report.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("reports"), help="folder to write index.html to"
    )
    add_json(report)
    report.set_defaults(call=commands.report_command)


def _add_compare(added: Any) -> None:
    compare = added.add_parser(
        "compare", help="compare two runs, or variants inside one run, case by case: faster, slower or no difference"
    )
    compare.add_argument("base", metavar="BASE", type=Path, help="fingerprint, journal, or folder of runs")
    compare.add_argument("new", metavar="NEW", nargs="?", type=Path, help="the same; ratios are NEW over BASE")
    compare.add_argument(
        "--across",
        metavar="AXIS=VALUE,VALUE",
        help="in place of NEW: compare variants inside one run with the first, such as wait=stream,event",
    )
    compare.add_argument(
        "--fail-over",
        metavar="PCT",
        type=float,
        help="exit 1 if a case is slower by more than this, with its whole interval; 3 if a case could not detect it",
    )
    compare.add_argument("--allow-missing", action="store_true", help="forgive cases without a value on one side")
    add_markdown(compare)
    add_json(compare)
    compare.set_defaults(call=commands.compare_command)


def _add_export(added: Any) -> None:
    export = added.add_parser("export", help="convert the figures of runs for other programs")
    export.add_argument("path", metavar="PATH", type=Path, help="file, or a folder of files (csv and json only)")
    export.add_argument("--format", choices=["csv", "json", "github", "pyperf"], default="csv", help="default: csv")
    export.add_argument("--json", dest="format", action="store_const", const="json", help="print JSON: --format json")
    export.set_defaults(call=commands.export_command)


def _version() -> str:
    from overhead import __version__

    return f"overhead {__version__}"


def _add_plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        metavar="FILE.py",
        action="append",
        default=[],
        type=Path,
        help="a Python file with a stack or workload of your own (repeatable)",
    )


def add_markdown(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--markdown``."""
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")


def _add_measuring_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        choices=["quick", "default", "thorough"],
        default="default",
        help="quick: under 4 minutes; default: under 10; thorough: as long as it takes",
    )
    parser.add_argument("--out", metavar="FILE", type=Path, help="file to write, or a folder (default: reports/local)")


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print JSON")
