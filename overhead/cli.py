"""The command line: parse the arguments and run a command.

Each command imports the modules that it needs when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.errors import UsageError

if TYPE_CHECKING:
    from overhead.runner.output import Outcome
    from overhead.versus import Verdicts

_DONE, _GATE, _USAGE, _INTERRUPTED = 0, 1, 2, 130
_LOCAL, _REFERENCES = Path("reports/local"), Path("reports/data")


def main(argv: list[str] | None = None) -> int:
    """Run the command and return the exit code: 0 done, 1 gate failed, 2 wrong use or bad input, 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.call(arguments))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the program that reads our output has closed the pipe
        return _DONE
    except UsageError as error:
        print(f"overhead: {error}", file=sys.stderr)
        return _USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="overhead",
        description="What does one more piece of work on the device cost here, by stack, and who takes the time?",
        epilog="'make report' measures this machine and draws the page. docs/ explains the method and the file.",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="measure this machine and write its fingerprint")
    run.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="only this stack (repeatable)")
    run.add_argument("--pattern", action="append", default=[], help="only this pattern (repeatable)")
    run.add_argument("--workload", action="append", default=[], help="only this workload (repeatable)")
    run.add_argument("--software", action="store_true", help="software adapters too, where there is a GPU")
    run.add_argument("--require", metavar="STACK", action="append", default=[], help="exit 1 unless it gave a figure")
    run.add_argument("--resume", metavar="FILE", type=Path, help="go on with an interrupted run's journal")
    run.add_argument(
        "--python",
        metavar="PYTHON",
        action="append",
        default=[],
        help="measure under this interpreter; given twice, under both in turn, and compare",
    )
    _add_measuring_options(run)
    _add_plugin(run)
    _add_json(run)
    run.set_defaults(call=_run)

    listing = commands.add_parser("list", help="every stack and device here, or why not and what mends it")
    _add_plugin(listing)
    _add_json(listing)
    listing.set_defaults(call=_list)

    doctor = commands.add_parser("doctor", help="what would disturb a measurement on this machine")
    _add_json(doctor)
    doctor.set_defaults(call=_doctor)

    show = commands.add_parser("show", help="a run's figures as tables in the terminal")
    show.add_argument("file", metavar="FILE", type=Path, help="fingerprint or journal")
    _add_json(show)
    show.set_defaults(call=_show)

    browser = commands.add_parser("browser", help="measure in a real browser, or take in what a page measured by hand")
    browser.add_argument(
        "--browser", metavar="BROWSER", default="chromium", help="chromium, firefox, safari, a program, or open"
    )
    browser.add_argument("--import", dest="file", metavar="FILE", type=Path, help="a page's download")
    browser.add_argument("--page", metavar="FILE.html", type=Path, help="write the page as one file to open by hand")
    _add_measuring_options(browser)
    _add_json(browser)
    browser.set_defaults(call=_browser)

    report = commands.add_parser("report", help="draw the page and its figures, from files alone")
    report.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="files or folders (default reports/local and, behind it, reports/data)",
    )
    report.add_argument("--out", metavar="DIR", type=Path, default=Path("reports"), help="folder of index.html")
    report.set_defaults(call=_report)

    compare = commands.add_parser(
        "compare", help="two runs, or two sets of runs, case by case: faster, slower or the same"
    )
    compare.add_argument("base", metavar="BASE", type=Path, help="file, or folder of several runs of this side")
    compare.add_argument("new", metavar="NEW", type=Path)
    compare.add_argument("--fail-over", metavar="PCT", type=float, help="exit 1 if a case is surely this much slower")
    _add_markdown(compare)
    _add_json(compare)
    compare.set_defaults(call=_compare)

    claims = commands.add_parser("claims", help="published claims, judged by these measurements")
    claims.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default reports/local)")
    _add_markdown(claims)
    _add_json(claims)
    claims.set_defaults(call=_claims)

    export = commands.add_parser("export", help="a run's figures for other programs")
    export.add_argument("path", metavar="PATH", type=Path, help="fingerprint or journal")
    export.add_argument("--format", choices=["csv", "github", "pyperf"], default="csv")
    export.set_defaults(call=_export)
    return parser


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
        help="a Python file that registers a stack of your own (repeatable)",
    )


def _add_markdown(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="as Markdown, for a pull request")


def _add_measuring_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", choices=["quick", "default", "thorough"], default="default")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="fingerprint to write, or a folder (default reports/local)"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for machines, on standard output")


def _run(a: argparse.Namespace) -> int:
    return _measure(
        a,
        a.probe,
        patterns=a.pattern,
        workloads=a.workload,
        plugins=a.plugin,
        software=a.software,
        resume=a.resume,
        require=a.require,
        pythons=a.python,
    )


def _browser(a: argparse.Namespace) -> int:
    from overhead.probes._support.browser import command
    from overhead.probes._support.browser.importing import import_file

    if a.page is not None:
        command.write_page(a.page)
        print(f"page: {a.page}; open it, let it measure, then: overhead browser --import FILE")
        return _DONE
    if a.file is not None:
        from overhead.runner.output import write_lines

        return _show_outcome(a, write_lines(import_file(a.file), a.out))
    return _measure(a, [command.choose(a.browser)])


def _measure(a: argparse.Namespace, stacks: list[str], require: Sequence[str] = (), **more: Any) -> int:
    from overhead.runner.progress import Progress
    from overhead.runner.run import Interrupted, run

    try:
        outcome = run(stacks, profile=a.profile, out=a.out, listener=Progress(), **more)
    except Interrupted as stopped:
        where = " and ".join(map(str, stopped.journals))
        again = ["overhead", "run", "--resume", str(stopped.journals[0])]
        for option, values in (("--python", more.get("pythons", ())), ("--plugin", more.get("plugins", ()))):
            again += [word for value in values for word in (option, str(value))]
        print(f"overhead: interrupted; everything measured is in {where}", file=sys.stderr)
        print(f"overhead: go on with: {shlex.join(again)}", file=sys.stderr)
        return _INTERRUPTED
    _show_outcome(a, outcome)
    both = [outcome, outcome.second] if outcome.second else [outcome]
    missing = {name: reason for one in both for name, reason in one.without_figure(require).items()}
    for name, reason in missing.items():
        print(f"overhead: required stack {name} gave no figure: {reason}", file=sys.stderr)
    if not outcome.measured:
        print(f"overhead: no case was measured; {outcome.path} says why", file=sys.stderr)
    return _GATE if missing or not outcome.measured else _DONE


def _show_outcome(a: argparse.Namespace, outcome: Outcome) -> int:
    if outcome.second is not None:
        from overhead.versus import compare

        found = compare(outcome.path, outcome.second.path)
        _show_verdicts(a, found)
        if not a.json:
            print(f"fingerprints: {outcome.path} and {outcome.second.path}")
    elif a.json:
        from overhead import results

        _print_json(results.to_builtins(outcome.fingerprint))
    else:
        from overhead.terminal.fingerprint import show_key_figures

        show_key_figures(outcome.fingerprint)
        print(f"fingerprint: {outcome.path}")
    return _DONE


def _list(a: argparse.Namespace) -> int:
    from overhead import results
    from overhead.terminal.stacks import listing, show_listing

    found = listing(a.plugin)
    if a.json:
        _print_json([results.to_builtins(row) for row in found])
    else:
        show_listing(found)
    return _DONE


def _doctor(a: argparse.Namespace) -> int:
    import dataclasses

    from overhead.machine.doctor import checks
    from overhead.terminal.stacks import show_checks

    found = checks()
    if a.json:
        _print_json([dataclasses.asdict(check) for check in found])
    else:
        show_checks(found)
    return _DONE


def _show(a: argparse.Namespace) -> int:
    from overhead import results
    from overhead.loading.reduce import load

    fingerprint = load(a.file)
    if a.json:
        _print_json(results.to_builtins(fingerprint))
    else:
        from overhead.terminal.fingerprint import show

        show(fingerprint)
    return _DONE


def _report(a: argparse.Namespace) -> int:
    from overhead.report import build

    page = build(a.paths or [p for p in (_LOCAL, _REFERENCES) if p.is_dir()] or [_LOCAL], a.out)
    print(f"page: {page}")
    return _DONE


def _compare(a: argparse.Namespace) -> int:
    from overhead.versus import compare

    found = compare(a.base, a.new, a.fail_over)
    _show_verdicts(a, found, markdown=a.markdown)
    return _GATE if found.failed else _DONE


def _show_verdicts(a: argparse.Namespace, found: Verdicts, markdown: bool = False) -> None:
    from overhead.terminal import comparison

    if a.json:
        _print_json(found.to_dict())
    elif markdown:
        print(comparison.markdown(found), end="")
    else:
        comparison.show(found)


def _claims(a: argparse.Namespace) -> int:
    from overhead.claims import judge
    from overhead.terminal import claims

    found = judge(a.paths or [_LOCAL])
    if a.json:
        _print_json([one.to_dict() for one in found])
    elif a.markdown:
        print(claims.markdown(found), end="")
    else:
        claims.show(found)
    return _DONE


def _export(a: argparse.Namespace) -> int:
    from overhead.export import export

    print(export(a.path, a.format), end="")
    return _DONE


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=1, allow_nan=False))
