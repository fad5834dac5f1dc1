"""The commands of the command line. Each takes the parsed arguments and returns the exit code.

Each command imports the modules that it needs when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.errors import UsageError

if TYPE_CHECKING:
    from overhead.comparing import Verdicts
    from overhead.runner.output import Outcome

DONE, GATE, UNTESTED, INTERRUPTED = 0, 1, 3, 130
"""Exit codes; ``cli.main`` describes them."""
LOCAL, _REFERENCES = Path("reports/local"), Path("reports/data")
comparers: list[Callable[[argparse.Namespace], int | None]] = []
"""Comparisons of other files than runs, which slices add. Each returns its exit code; None if the files are others."""


def complain(text: str) -> None:
    """Print one line to standard error."""
    from overhead.reading.format import plain

    print(f"overhead: {plain(text, 4000)}", file=sys.stderr)


def run_command(a: argparse.Namespace) -> int:
    return _measure(
        a,
        a.probe,
        patterns=a.pattern,
        workloads=a.workload,
        plugins=a.plugin,
        software=a.software,
        require=a.require,
        pythons=a.python,
        env=a.env,
        env_new=a.env_new,
    )


def browser_command(a: argparse.Namespace) -> int:
    from overhead.probes.browser import launch, page_files
    from overhead.probes.browser.importing import import_file

    if a.page is not None:
        page_files.write_page(a.page)
        print(f"page: {a.page}; open it, let it measure, then: overhead browser --import FILE")
        return DONE
    if a.file is not None:
        from overhead.runner.output import write_lines

        return _show_outcome(a, write_lines(import_file(a.file), a.out))
    return _measure(a, [launch.choose(a.browser)])


def _measure(a: argparse.Namespace, stacks: list[str], require: Sequence[str] = (), **more: Any) -> int:
    from overhead.runner.progress import Progress
    from overhead.runner.run import Interrupted, run

    try:
        with Progress() as listener:
            outcome = run(stacks, profile=a.profile, out=a.out, listener=listener, require=require, **more)
    except Interrupted as stopped:
        where = " and ".join(map(str, stopped.journals))
        shown = shlex.join(["overhead", "show", str(stopped.journals[0])])
        print(f"overhead: interrupted; everything measured is in {where}; to see it: {shown}", file=sys.stderr)
        return INTERRUPTED
    _show_outcome(a, outcome)
    both = [outcome, outcome.second] if outcome.second else [outcome]
    missing = {name: reason for one in both for name, reason in one.without_figure(require).items()}
    for name, reason in missing.items():
        complain(f"required stack {name} gave no figure: {reason}")
    if not outcome.measured:
        print(f"overhead: no case was measured; {outcome.path} says why", file=sys.stderr)
    return GATE if missing or not outcome.measured else DONE


def _show_outcome(a: argparse.Namespace, outcome: Outcome) -> int:
    if outcome.second is not None:
        from overhead.comparing import compare

        found = compare(outcome.path, outcome.second.path)
        _show_verdicts(a, found)
        if not a.json:
            print(f"fingerprints: {outcome.path} and {outcome.second.path}")
    elif a.json:
        from overhead import results

        print_json(results.to_builtins(outcome.fingerprint))
    else:
        from overhead.terminal.fingerprint import show_end

        show_end(outcome.fingerprint)
        print(f"fingerprint: {outcome.path}")
    return DONE


def list_command(a: argparse.Namespace) -> int:
    from overhead import results
    from overhead.runner.progress import Progress
    from overhead.terminal.stacks import listing, show_listing

    with Progress() as progress:
        found = listing(a.plugin, a.probe, progress.working)
    if a.json:
        print_json([results.to_builtins(row) for row in found])
    else:
        show_listing(found)
    return DONE


def check_command(a: argparse.Namespace) -> int:
    from overhead.checking.check import SECONDS, check
    from overhead.terminal.check import CheckPrinter

    printer = CheckPrinter()
    answered = (lambda row: None) if a.json else printer.show
    found = check(a.plugin, a.probe, seconds=0 if a.all else SECONDS, answered=answered)
    if a.json:
        from overhead import results

        print_json(results.to_builtins(found.rows))
    else:
        printer.summarise(found.rows)
    return GATE if found.failed else DONE


def doctor_command(a: argparse.Namespace) -> int:
    import dataclasses

    from overhead.machine.doctor import checks
    from overhead.terminal.stacks import show_checks

    found = checks()
    if a.json:
        print_json([dataclasses.asdict(check) for check in found])
    else:
        show_checks(found)
    return DONE


def show_command(a: argparse.Namespace) -> int:
    from overhead import results
    from overhead.loading.files import newest
    from overhead.loading.reduce import load

    if a.file is not None and os.path.isdir(a.file):
        raise UsageError(f"{a.file}: a folder; name one of its files, the newest is {newest(a.file)}")
    fingerprint = load(a.file or newest(LOCAL))
    if a.json:
        print_json(results.to_builtins(fingerprint))
    else:
        from overhead.terminal.fingerprint import show

        show(fingerprint, every=a.every)
    return DONE


def report_command(a: argparse.Namespace) -> int:
    from overhead.report import build

    page = build(a.paths or [p for p in (LOCAL, _REFERENCES) if p.is_dir()] or [LOCAL], a.out)
    if a.json:
        print_json({"page": str(page)})
    else:
        print(f"page: {page}")
    return DONE


def compare_command(a: argparse.Namespace) -> int:
    from overhead.comparing import compare

    if a.allow_missing and a.fail_over is None:
        raise UsageError("--allow-missing: only with --fail-over")
    for other in comparers:
        if (code := other(a)) is not None:
            return code
    found = compare(a.base, a.new, a.fail_over, across=a.across)
    _show_verdicts(a, found, markdown=a.markdown)
    if a.fail_over is None:
        return DONE
    if found.failed:
        return GATE
    if found.tested_enough(allow_missing=a.allow_missing):
        return DONE
    untested = f"{len(found.untested)} of {found.measured} cases could not detect {found.fail_over:g} %"
    hint = "; --allow-missing forgives them" if found.tested_enough(allow_missing=True) else ""
    print(f"overhead: the gate did not pass: {untested}{hint}", file=sys.stderr)
    return UNTESTED


def _show_verdicts(a: argparse.Namespace, found: Verdicts, markdown: bool = False) -> None:
    from overhead.terminal import comparison

    if a.json:
        print_json(found.to_dict())
    elif markdown:
        print(comparison.markdown(found), end="")
    else:
        comparison.show(found)


def export_command(a: argparse.Namespace) -> int:
    from overhead.export import export

    print(export(a.path, a.format), end="")
    return DONE


def completion_command(a: argparse.Namespace) -> int:
    from overhead.terminal.completion import script

    print(script(a.parser, a.shell), end="")
    return DONE


def print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=1, allow_nan=False))
