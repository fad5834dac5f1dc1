"""The commands of the command line. Each takes the parsed arguments and returns the exit code (see
``cli.main``).

Each command imports the modules that it needs when it runs, so that ``--help`` is fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.errors import UsageError, shell_command

if TYPE_CHECKING:
    from overhead.blocks.parts import Part
    from overhead.results import Why
    from overhead.runner.output import Outcome

DONE, GATE, UNTESTED, INTERRUPTED = 0, 1, 3, 130
"""Exit codes; ``cli.main`` describes them."""
LOCAL, _REFERENCES = Path("reports/local"), Path("reports/data")


def complain(text: str) -> None:
    """Print one line to standard error."""
    from overhead.reading.plain_text import plain

    print(f"overhead: {plain(text, 4000)}", file=sys.stderr)


def first_steps_command(a: argparse.Namespace) -> int:
    """Print what the program is for, and what to type first."""
    from overhead.first_steps import first_steps
    from overhead.words.first_steps import first_steps_text

    print(first_steps_text(first_steps()))
    return DONE


def run_command(a: argparse.Namespace) -> int:
    """Measure this machine, write the files, and print the figures."""
    chosen = {
        "patterns": a.pattern,
        "workloads": a.workload,
        "plugins": a.plugin,
        "software": a.software,
    }
    return measure_and_show(
        a, a.probe, a.require, **chosen, pythons=a.python, env=a.env, env_new=a.env_new
    )


def browser_command(a: argparse.Namespace) -> int:
    """Measure in a browser, import what a page measured (``--import``), or write that page
    (``--page``).
    """
    from overhead.probes.browser import launch, page_files
    from overhead.probes.browser.importing import import_file
    from overhead.words import commands as words

    if a.page is not None:
        from overhead.loading.files import save_file
        from overhead.loading.outputs import Output, check_outputs, page_of

        check_outputs([Output(a.page, page_of("browser"))])
        save_file(a.page, page_files.single_file_page().encode())
        print(words.page_is_at(str(a.page)))
        return DONE
    if a.file is not None:
        from overhead.runner.output import write_entries

        return _show_outcome(a, write_entries(import_file(a.file), a.out))
    return measure_and_show(a, [launch.choose_browser(a.browser)])


def measure_and_show(
    a: argparse.Namespace, stacks: list[str], require: Sequence[str] = (), **more: Any
) -> int:
    """Measure what these options request, and print the figures. Returns the exit code.

    ``more``: further arguments of ``runner.run.request_of``.
    """
    from overhead.runner.progress import Progress
    from overhead.runner.run import Interrupted, measure, request_of
    from overhead.words import commands as words

    request = request_of(stacks, profile=a.profile, out=a.out, require=require, **more)
    try:
        with Progress() as listener:
            outcome = measure(request, listener)
    except Interrupted as stopped:
        shown = shell_command(["overhead", "show", str(stopped.journals[0])])
        print(
            f"overhead: {words.interrupted(list(map(str, stopped.journals)), shown)}",
            file=sys.stderr,
        )
        return INTERRUPTED
    _show_outcome(a, outcome)
    both = [outcome, outcome.second] if outcome.second else [outcome]
    missing = {name: reason for one in both for name, reason in one.without_figure(require).items()}
    for name, reason in missing.items():
        complain(words.required_stack_missing(name, reason))
    if not outcome.measured:
        print(f"overhead: {words.nothing_measured(str(outcome.path))}", file=sys.stderr)
    return GATE if missing or not outcome.measured else DONE


def _show_outcome(a: argparse.Namespace, outcome: Outcome) -> int:
    from overhead.display import outcome_blocks
    from overhead.words.display import files_of

    answer(a, lambda: _outcome_data(outcome), outcome_blocks(outcome))
    if not a.json:
        print(files_of(outcome))
    return DONE


def _outcome_data(outcome: Outcome) -> Any:
    """The data of ``--json``: the fingerprint of a run, or the comparison of its two runs."""
    if outcome.second is None:
        from overhead.results import to_builtins

        return to_builtins(outcome.fingerprint)
    from overhead.comparing import compare
    from overhead.comparing.show import comparison_data

    return comparison_data(compare(outcome, outcome.second))


def list_command(a: argparse.Namespace) -> int:
    """Print the stacks and their devices here, and what is missing."""
    from overhead import results
    from overhead.runner.listing import list_stacks, listing_blocks
    from overhead.runner.progress import Progress

    with Progress() as progress:
        found = list_stacks(a.plugin, a.probe, progress.working)
    return answer(a, lambda: results.to_builtins(found), listing_blocks(found))


def check_command(a: argparse.Namespace) -> int:
    """Test stacks and print a row for each case; the exit code is 1 if one failed."""
    from overhead import results
    from overhead.blocks.terminal import show
    from overhead.checking.check import SECONDS, check
    from overhead.checking.show import row_blocks, summary_blocks

    told: set[tuple[str, Why, str]] = set()
    answered = (lambda row: None) if a.json else lambda row: show(row_blocks(row, told))
    found = check(a.plugin, a.probe, seconds=0 if a.all else SECONDS, answered=answered)
    answer(a, lambda: results.to_builtins(found.rows), summary_blocks(found.rows))
    return GATE if found.failed else DONE


def doctor_command(a: argparse.Namespace) -> int:
    """Print what would disturb a measurement on this machine."""
    import dataclasses

    from overhead.blocks.parts import Cell, Table, Tone
    from overhead.machine.doctor import CheckStatus, run_checks
    from overhead.words import doctor as words

    tones: dict[CheckStatus, Tone] = {"ok": "good", "warn": "unsure", "bad": "bad"}
    checks = [words.told(check) for check in run_checks()]
    rows = [
        (Cell(check.status, tone=tones[check.status]), check.name, check.found, check.advice)
        for check in checks
    ]
    table = Table(words.DISTURBANCES, ["", "check", "found", "advice"], rows)
    return answer(a, lambda: [dataclasses.asdict(check) for check in checks], [table])


def show_command(a: argparse.Namespace) -> int:
    """Print the figures of a file, or of one case of it, which ``--plot`` draws."""
    from overhead import results
    from overhead.display import blocks_of
    from overhead.loading.answers import saved_answer
    from overhead.loading.example_run import example_path, example_run
    from overhead.loading.files import OtherAnswer, files_in_folder, newest_file
    from overhead.loading.reduce import load
    from overhead.report.brief import brief_blocks
    from overhead.report.one_case import case_blocks, find_case, save_plot

    named = bool(a.what) and (
        os.path.exists(a.what[0]) or a.what[0].endswith((".json", ".jsonl", ".gz"))
    )
    file, case = (Path(a.what[0]) if named else None), " ".join(a.what[named:])
    if file is not None and os.path.isdir(file):
        raise UsageError(
            f"{file}: a folder; name one of its files, the newest is {newest_file(file)}"
        )
    is_example = file is None and not files_in_folder(LOCAL)
    path = example_path() if is_example else file or newest_file(LOCAL)
    try:
        fingerprint = example_run() if is_example else load(path)
    except OtherAnswer as answered:
        if case or a.plot is not None:
            raise
        found = saved_answer(path, answered)
        return answer(a, found.to_dict, blocks_of(found), is_file=True)
    if not case:
        if a.plot is not None:
            raise UsageError("--plot: name a case before it: overhead show FILE CASE --plot")
        return answer(
            a, lambda: results.to_builtins(fingerprint), brief_blocks(fingerprint, a.every)
        )
    record = find_case(fingerprint, case)
    said = {"example": True} if is_example else {}
    drawn = save_plot(fingerprint, path, record, a.plot) if a.plot is not None else None
    answer(
        a, lambda: {**results.to_builtins(record), **said}, case_blocks(fingerprint, path, record)
    )
    if drawn and not a.json:
        print(f"plot: {drawn}")
    return DONE


def report_command(a: argparse.Namespace) -> int:
    """Write the pages from files, and print where."""
    from overhead.blocks.parts import Text
    from overhead.loading.example_run import example_run
    from overhead.loading.files import files_in_folder
    from overhead.report import build, render
    from overhead.words.report.example_run import example_lines

    if a.paths or files_in_folder(LOCAL):
        page = build(
            a.paths or [path for path in (LOCAL, _REFERENCES) if path.is_dir()],
            a.out,
            reference=a.reference,
        )
        return answer(a, lambda: {"page": str(page)}, [Text([f"page: {page}"])])
    if a.reference:
        raise UsageError(
            f"--reference {a.reference}: nothing was measured here to set beside it: overhead run"
        )
    example = example_run()
    page = render([example], a.out)
    return answer(
        a,
        lambda: {"page": str(page), "example": True},
        [Text([*example_lines(example), f"page: {page}"])],
    )


def compare_command(a: argparse.Namespace) -> int:
    """Compare two runs and print the verdicts; with ``--fail-over``, the exit code is that of the
    gate.
    """
    from overhead.comparing import compare
    from overhead.comparing.show import comparison_blocks, comparison_data
    from overhead.words.comparing import gate_untested

    if a.base is None:
        raise UsageError(
            "compare: name two runs: overhead compare BASE.json NEW.json; overhead run makes one"
        )
    if a.allow_missing and a.fail_over is None:
        raise UsageError("--allow-missing: only with --fail-over")
    found = compare(a.base, a.new, a.fail_over, across=a.across)
    answer(a, lambda: comparison_data(found), comparison_blocks(found))
    if a.fail_over is None:
        return DONE
    if found.failed:
        return GATE
    if found.tested_enough(allow_missing=a.allow_missing):
        return DONE
    may_forgive = found.tested_enough(allow_missing=True)
    complain(gate_untested(found, may_forgive=may_forgive))
    return UNTESTED


def export_command(a: argparse.Namespace) -> int:
    """Print the figures of runs as CSV or JSON."""
    from overhead.export import export

    print(export(a.path, a.format), end="")
    return DONE


def completion_command(a: argparse.Namespace) -> int:
    from overhead.terminal import completion_script

    print(completion_script(a.parser, a.shell), end="")
    return DONE


def answer(
    a: argparse.Namespace, data: Callable[[], Any], blocks: Iterable[Part], *, is_file: bool = False
) -> int:
    """Print the data with ``--json``, else the blocks, as Markdown with ``--markdown``. Returns
    exit code 0.

    ``is_file``: the data can be saved and read again, so their reasons stay codes.
    """
    if a.json:
        import json

        from overhead.words.reasons import in_words

        found = data()
        print(json.dumps(found if is_file else in_words(found), indent=1, allow_nan=False))
    elif getattr(a, "markdown", False):
        from overhead.blocks.markdown import markdown

        print(markdown(blocks), end="")
    else:
        from overhead.blocks.terminal import show

        show(blocks)
    return DONE
