"""The command line: parse the arguments and run a command.

Each command imports the modules that it needs when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from overhead import scratch
from overhead.errors import UsageError, one_line, require_extra
from overhead.runner.ending import ending_on_signals
from overhead.terminal.streams import Streams

if TYPE_CHECKING:
    from overhead.runner.output import Outcome
    from overhead.versus import Verdicts

_DONE, _GATE, _USAGE, _UNTESTED, _OWN_ERROR, _INTERRUPTED = 0, 1, 2, 3, 70, 130
_LOCAL, _REFERENCES = Path("reports/local"), Path("reports/data")


def main(argv: list[str] | None = None) -> int:
    """Run the command and return the exit code.

    0 done; 1 a gate failed, a required stack is missing, or nothing was measured; 2 wrong use or bad input; 3 a gate
    could not test enough; 70 an error of overhead itself; 74 standard output cannot be written; 130 interrupted;
    141 the reader of the output is gone. The result of a gate has precedence over an error of the output.
    """
    arguments = argparse.Namespace()
    with Streams() as streams:
        code = _command(argv, arguments)
    return code if _is_gate(arguments) else streams.exit_code(code)


def program() -> NoReturn:
    """Run the command and end the process.

    Threads and exit handlers of stacks in other packages are not waited for, because they may never end.
    """
    code = main()
    scratch.remove()
    os._exit(code)


def _command(argv: list[str] | None, arguments: argparse.Namespace) -> int:
    try:
        _parser().parse_args(argv, arguments)
    except SystemExit as end:  # --help, or wrong use
        return end.code if isinstance(end.code, int) else _DONE
    try:
        with ending_on_signals():
            return int(arguments.call(arguments))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except UsageError as error:
        _complain(str(error))
        return _USAGE
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else one_line(error))
        return _USAGE
    except ImportError as error:  # a library that is broken, or that finds too little memory
        _complain(one_line(error))
        return _USAGE
    except MemoryError:
        _complain("out of memory; free some or raise the limit; a run's journal holds what it measured")
        return _USAGE
    except Exception:  # Python would exit with 1, the code of a gate that failed
        import traceback

        traceback.print_exc()
        _complain("this is an error of overhead itself; please report it with the lines above")
        return _OWN_ERROR


def _complain(text: str) -> None:
    from overhead.reading.format import plain

    print(f"overhead: {plain(text, 4000)}", file=sys.stderr)


def _is_gate(arguments: argparse.Namespace) -> bool:
    """Whether the exit code is the result that was asked for."""
    return getattr(arguments, "fail_over", None) is not None or bool(getattr(arguments, "require", ()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="overhead",
        description="Measure what one more dispatch, launch or operation costs on this machine, through each GPU "
        "stack, and who takes the time: Python, the library, the driver or the device.",
        epilog="'make report' measures this machine and draws the page. docs/ explains the method and the file.",
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run", help="measure this machine and write a fingerprint: one JSON file with all figures"
    )
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
    run.add_argument("--resume", metavar="FILE", type=Path, help="continue the interrupted run of this journal")
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
    _add_json(run)
    run.set_defaults(call=_run)

    time = commands.add_parser("time", help="measure one call of your own, or several in turn, in about a minute")
    time.add_argument("calls", metavar="CALL", nargs="+", help="a Python statement; several are compared in turn")
    time.add_argument(
        "-s", "--setup", metavar="STATEMENT", action="append", default=[],
        help="runs once in each process, before CALL (repeatable: one line each)",
    )  # fmt: skip
    time.add_argument(
        "--wait",
        metavar="WAIT",
        default="",
        help="torch, cupy, jax, wgpu-native, dawn, numba, none, or a statement that waits (default: that of the "
        "library in use)",
    )
    _add_json(time)
    time.set_defaults(call=_time)

    listing = commands.add_parser("list", help="list stacks and devices; what is missing and how to add it")
    listing.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="only this stack")
    _add_plugin(listing)
    _add_json(listing)
    listing.set_defaults(call=_list)

    check = commands.add_parser("check", help="test a stack of your own, or a built-in one, in about ten seconds")
    check.add_argument("-p", "--probe", metavar="STACK", action="append", default=[], help="this stack (repeatable)")
    check.add_argument("--all", action="store_true", help="every case, however long it takes")
    _add_plugin(check)
    _add_json(check)
    check.set_defaults(call=_check)

    doctor = commands.add_parser("doctor", help="check what would disturb a measurement on this machine")
    _add_json(doctor)
    doctor.set_defaults(call=_doctor)

    show = commands.add_parser("show", help="print the figures of a run as tables")
    show.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        type=Path,
        help="fingerprint or journal (default: the newest in reports/local)",
    )
    show.add_argument("--all", action="store_true", dest="every", help="print all cases, not only the base cases")
    _add_json(show)
    show.set_defaults(call=_show)

    browser = commands.add_parser("browser", help="measure in a real browser, or import what a page measured")
    browser.add_argument(
        "--browser",
        metavar="BROWSER",
        default="chromium",
        help="chromium (default), firefox, safari, the path of a program, or open: the desktop's default browser",
    )
    browser.add_argument(
        "--import", dest="file", metavar="FILE", type=Path, help="convert the file that a page offered for download"
    )
    browser.add_argument(
        "--page", metavar="FILE.html", type=Path, help="write the page as one file that you can open in any browser"
    )
    _add_measuring_options(browser)
    _add_json(browser)
    browser.set_defaults(call=_browser)

    report = commands.add_parser("report", help="draw the pages from files; measures nothing")
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
    _add_json(report)
    report.set_defaults(call=_report)

    explain = commands.add_parser(
        "explain", help="find what bounds a step of your own program, and measure what would change it"
    )
    explain.add_argument("step", metavar="STEP", help="FILE.py:FUNCTION or module:function; returns a step, or is one")
    explain.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument of FUNCTION (repeatable)"
    )
    explain.add_argument("--against", metavar="STEP", default="", help="your own alternative, compared with the step")
    explain.add_argument("--no-compile", action="store_true", help="do not try torch.compile: ends within a minute")
    explain.add_argument("--no-alternatives", action="store_true", help="measure the step as it is, and nothing else")
    explain.add_argument("--source", action="store_true", help="include the program's source lines in the result")
    explain.add_argument("--out", metavar="FILE.json", type=Path, help="write the result, for overhead compare")
    explain.add_argument("--html", metavar="FILE.html", type=Path, help="write a page with charts and all lines")
    _add_json(explain)
    explain.set_defaults(call=_explain)

    compare = commands.add_parser(
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
        help="exit 1 if a case is slower by more than this, with its whole interval; 3 if a case has no test",
    )
    compare.add_argument("--allow-missing", action="store_true", help="--fail-over passes although cases have no test")
    _add_markdown(compare)
    _add_json(compare)
    compare.set_defaults(call=_compare)

    claims = commands.add_parser("claims", help="judge published claims by measured runs")
    claims.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default: reports/local)")
    claims.add_argument("-v", "--verbose", action="store_true", help="print the reasons and values too")
    _add_markdown(claims)
    _add_json(claims)
    claims.set_defaults(call=_claims)

    export = commands.add_parser("export", help="convert the figures of runs for other programs")
    export.add_argument("path", metavar="PATH", type=Path, help="file, or a folder of files (csv and json only)")
    export.add_argument("--format", choices=["csv", "json", "github", "pyperf"], default="csv", help="default: csv")
    export.add_argument("--json", dest="format", action="store_const", const="json", help="print JSON: --format json")
    export.set_defaults(call=_export)

    completion = commands.add_parser("completion", help="print a script that completes commands and names in a shell")
    completion.add_argument("shell", choices=["bash", "zsh", "tcsh"])
    completion.set_defaults(call=_completion)
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
        help="a Python file with a stack or workload of your own (repeatable)",
    )


def _add_markdown(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="print Markdown, for a pull request")


def _add_measuring_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", choices=["quick", "default", "thorough"], default="default",
                        help="quick: under 4 minutes; default: under 10; thorough: as long as it takes")  # fmt: skip
    parser.add_argument("--out", metavar="FILE", type=Path, help="file to write, or a folder (default: reports/local)")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


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
        env=a.env,
        env_new=a.env_new,
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
        given = {"--python": "pythons", "--env": "env", "--env-new": "env_new", "--plugin": "plugins"}
        for option, name in given.items():
            again += [word for value in more.get(name, ()) for word in (option, str(value))]
        print(f"overhead: interrupted; everything measured is in {where}", file=sys.stderr)
        print(f"overhead: go on with: {shlex.join(again)}", file=sys.stderr)
        return _INTERRUPTED
    _show_outcome(a, outcome)
    both = [outcome, outcome.second] if outcome.second else [outcome]
    missing = {name: reason for one in both for name, reason in one.without_figure(require).items()}
    for name, reason in missing.items():
        _complain(f"required stack {name} gave no figure: {reason}")
    if not outcome.measured:
        print(f"overhead: no case was measured; {outcome.path} says why", file=sys.stderr)
    return _GATE if missing or not outcome.measured else _DONE


def _time(a: argparse.Namespace) -> int:
    from overhead.explain.timing import time
    from overhead.runner.progress import Progress

    found = time(*a.calls, setup="\n".join(a.setup), wait=a.wait, listener=Progress())
    if a.json:
        _print_json(found.to_dict())
    else:
        from overhead.terminal.timing import show

        show(found)
    return _DONE


def _explain(a: argparse.Namespace) -> int:
    from overhead.explain.explaining import explain
    from overhead.explain.record import encode_explanation, save_explanation
    from overhead.loading.files import check_writable
    from overhead.report.explained import save_explained_page
    from overhead.runner.progress import Progress

    if a.html is not None:
        require_extra("report", "jinja2")
    if a.out is not None and a.out == a.html:
        raise UsageError(f"{a.out}: --out and --html name the same file")
    for path in filter(None, (a.out, a.html)):
        if path.suffix == ".py":
            raise UsageError(f"{path}: a Python file is not overwritten; write FILE.json or FILE.html")
        check_writable(path)
    found = explain(
        a.step, arguments=a.arg, against=a.against, compiled=not a.no_compile, alternatives=not a.no_alternatives,
        source_lines=a.source, listener=Progress(),
    )  # fmt: skip
    if a.out is not None:
        save_explanation(a.out, found)
    if a.html is not None:
        save_explained_page(a.html, found)
    if a.json:
        print(encode_explanation(found).decode(), end="")
    else:
        from overhead.terminal.explained_step import show_explanation

        show_explanation(found)
        if a.out is not None:
            print(f"explanation: {a.out}")
        if a.html is not None:
            print(f"page: {a.html}")
    return _DONE


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
        from overhead.terminal.fingerprint import show_end

        show_end(outcome.fingerprint)
        print(f"fingerprint: {outcome.path}")
    return _DONE


def _list(a: argparse.Namespace) -> int:
    from overhead import results
    from overhead.terminal.stacks import listing, show_listing

    found = listing(a.plugin, a.probe)
    if a.json:
        _print_json([results.to_builtins(row) for row in found])
    else:
        show_listing(found)
    return _DONE


def _check(a: argparse.Namespace) -> int:
    from overhead.checking.check import SECONDS, check
    from overhead.terminal.check import CheckPrinter

    printer = CheckPrinter()
    answered = (lambda row: None) if a.json else printer.show
    found = check(a.plugin, a.probe, seconds=0 if a.all else SECONDS, answered=answered)
    if a.json:
        from overhead import results

        _print_json(results.to_builtins(found.rows))
    else:
        printer.summarise(found.rows)
    return _GATE if found.failed else _DONE


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
    from overhead.loading.files import newest
    from overhead.loading.reduce import load

    if a.file is not None and os.path.isdir(a.file):
        raise UsageError(f"{a.file}: a folder; name one of its files, the newest is {newest(a.file)}")
    fingerprint = load(a.file or newest(_LOCAL))
    if a.json:
        _print_json(results.to_builtins(fingerprint))
    else:
        from overhead.terminal.fingerprint import show

        show(fingerprint, every=a.every)
    return _DONE


def _report(a: argparse.Namespace) -> int:
    from overhead.report import build

    page = build(a.paths or [p for p in (_LOCAL, _REFERENCES) if p.is_dir()] or [_LOCAL], a.out)
    if a.json:
        _print_json({"page": str(page)})
    else:
        print(f"page: {page}")
    return _DONE


def _compare(a: argparse.Namespace) -> int:
    from overhead.explain.comparing import are_explanations
    from overhead.versus import compare

    if a.allow_missing and a.fail_over is None:
        raise UsageError("--allow-missing: only with --fail-over")
    if a.new is not None and are_explanations(a.base, a.new):
        return _compare_explanations(a)
    found = compare(a.base, a.new, a.fail_over, across=a.across)
    _show_verdicts(a, found, markdown=a.markdown)
    if a.fail_over is None:
        return _DONE
    if found.failed:
        return _GATE
    if found.tested_enough(allow_missing=a.allow_missing):
        return _DONE
    untested = f"{len(found.untested)} of {sum(case.measured for case in found.cases)} cases could not be tested"
    hint = "" if a.allow_missing else "; --allow-missing lets them pass if others were tested"
    print(f"overhead: the gate did not pass: {untested}{hint}", file=sys.stderr)
    return _UNTESTED


def _compare_explanations(a: argparse.Namespace) -> int:
    from overhead.explain.comparing import compare_explanations
    from overhead.terminal.explanations import show_explained

    if a.fail_over is not None or a.markdown or a.across is not None:
        raise UsageError(
            f"{a.base.name} and {a.new.name}: explanations have no --fail-over, no --markdown and no --across"
        )
    found = compare_explanations(a.base, a.new)
    if a.json:
        _print_json(found.to_dict())
    else:
        show_explained(found)
    return _DONE


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
        claims.show(found, verbose=a.verbose)
    return _DONE


def _export(a: argparse.Namespace) -> int:
    from overhead.export import export

    print(export(a.path, a.format), end="")
    return _DONE


def _completion(a: argparse.Namespace) -> int:
    from overhead.terminal.completion import script

    print(script(_parser(), a.shell), end="")
    return _DONE


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=1, allow_nan=False))
