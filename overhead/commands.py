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


def first_steps_command(options: argparse.Namespace) -> int:
    """Print what the program is for, and what to type first."""
    from overhead.first_steps import first_steps
    from overhead.words.first_steps import first_steps_text

    print(first_steps_text(first_steps()))
    return DONE


def run_command(options: argparse.Namespace) -> int:
    """Measure this machine as the options say, write the files, and print the figures. With two
    Pythons (``--python``), or with a variable that only a second run has (``--env-new``), two runs
    are measured in turn and compared.
    """
    chosen = {
        "patterns": options.pattern,
        "workloads": options.workload,
        "plugins": options.plugin,
        "software": options.software,
    }
    return measure_and_show(
        options,
        options.probe,
        options.require,
        **chosen,
        pythons=options.python,
        env=options.env,
        env_new=options.env_new,
    )


def browser_command(options: argparse.Namespace) -> int:
    """Measure in a browser, import what a page measured (``--import``), or write that page
    (``--page``).
    """
    from overhead.probes.browser import launch, page_files
    from overhead.probes.browser.importing import import_file
    from overhead.words import commands as words

    if options.page is not None:
        from overhead.loading.files import save_file
        from overhead.loading.outputs import Output, check_outputs, page_of

        # Raises for a path that must not be written, such as a file that this command did not make.
        check_outputs([Output(options.page, page_of("browser"))])
        save_file(options.page, page_files.single_file_page().encode())
        print(words.page_is_at(str(options.page)))
        return DONE
    if options.file is not None:
        from overhead.runner.output import write_entries

        return _show_outcome(options, write_entries(import_file(options.file), options.out))
    return measure_and_show(options, [launch.choose_browser(options.browser)])


def measure_and_show(
    options: argparse.Namespace, stacks: list[str], require: Sequence[str] = (), **more: Any
) -> int:
    """Measure what these options request, and print the figures. Returns the exit code: 1 if no
    case has a figure, or if a stack of ``require`` has none.

    ``stacks``: those that are measured, all if empty. ``more``: further arguments of
    ``runner.run.request_of``. A run that was interrupted keeps what it measured in its journals.
    """
    from overhead.runner.progress import Progress
    from overhead.runner.run import Interrupted, measure, request_of
    from overhead.words import commands as words

    request = request_of(stacks, profile=options.profile, out=options.out, require=require, **more)
    # ``Progress`` shows how far the run is.
    try:
        with Progress() as listener:
            outcome = measure(request, listener)
    except Interrupted as stopped:
        journals = [str(journal) for journal in stopped.journals]
        shown_by = shell_command(["overhead", "show", journals[0]])
        print(f"overhead: {words.interrupted(journals, shown_by)}", file=sys.stderr)
        return INTERRUPTED
    _show_outcome(options, outcome)
    missing = dict(outcome.without_figure(require))
    if outcome.second:  # two Pythons, or two environments, were measured in turn
        missing.update(outcome.second.without_figure(require))
    # Required stacks of which no case has a value, each with the reason.
    for name, reason in missing.items():
        complain(words.required_stack_missing(name, reason))
    if not outcome.measured:
        print(f"overhead: {words.nothing_measured(str(outcome.path))}", file=sys.stderr)
    return GATE if missing or not outcome.measured else DONE


def _show_outcome(options: argparse.Namespace, outcome: Outcome) -> int:
    """Print what a run gave, and the names of the files that it wrote."""
    from overhead.display import outcome_blocks
    from overhead.words.display import files_of

    # ``answer`` prints the data with ``--json``, else the blocks. JSON is to be read by a program,
    # so no names of files stand below it.
    answer(options, lambda: _outcome_data(outcome), outcome_blocks(outcome))
    if not options.json:
        print(files_of(outcome))
    return DONE


def _outcome_data(outcome: Outcome) -> Any:
    """What ``run --json`` prints: the fingerprint (all results of a run), or the comparison of two
    fingerprints, where two variants were measured in turn.
    """
    if outcome.second is None:
        from overhead.results import to_builtins

        return to_builtins(outcome.fingerprint)
    from overhead.comparing import compare
    from overhead.comparing.show import comparison_data

    return comparison_data(compare(outcome, outcome.second))


def list_command(options: argparse.Namespace) -> int:
    """Print the stacks and their devices here, and what is missing."""
    from overhead import results
    from overhead.runner.listing import list_stacks, listing_blocks
    from overhead.runner.progress import Progress

    with Progress() as progress:
        found = list_stacks(options.plugin, options.probe, progress.working)
    return answer(options, lambda: results.to_builtins(found), listing_blocks(found))


def check_command(options: argparse.Namespace) -> int:
    """Test stacks and print a row for each case; the exit code is 1 if one failed."""
    from overhead import results
    from overhead.blocks.terminal import show
    from overhead.checking.check import SECONDS, check
    from overhead.checking.findings import CheckRow
    from overhead.checking.show import row_blocks, summary_blocks

    # Findings that were shown: where one comes again, its row points to the first.
    told: set[tuple[str, Why, str]] = set()

    def show_row(row: CheckRow) -> None:
        if not options.json:
            show(row_blocks(row, told))

    # 0 seconds: no limit, so every case is checked.
    seconds = 0 if options.all else SECONDS
    report = check(options.plugin, options.probe, seconds=seconds, answered=show_row)
    answer(options, lambda: results.to_builtins(report.rows), summary_blocks(report.rows))
    return GATE if report.failed else DONE


def doctor_command(options: argparse.Namespace) -> int:
    """Print what would disturb a measurement on this machine."""
    import dataclasses

    from overhead.blocks.parts import Cell, Table, Tone
    from overhead.machine.doctor import CheckStatus, run_checks
    from overhead.words import doctor as words

    tones: dict[CheckStatus, Tone] = {"ok": "good", "warn": "unsure", "bad": "bad"}
    checks = [words.told(check) for check in run_checks()]  # what was found, in sentences
    rows = []
    for check in checks:
        status = Cell(check.status, tone=tones[check.status])
        rows.append((status, check.name, check.found, check.advice))
    table = Table(words.DISTURBANCES, ["", "check", "found", "advice"], rows)
    return answer(options, lambda: [dataclasses.asdict(check) for check in checks], [table])


def show_command(options: argparse.Namespace) -> int:
    """Print the figures of a file, or of one case of it, which ``--plot`` draws."""
    from overhead import results
    from overhead.display import blocks_of
    from overhead.loading.answers import saved_answer
    from overhead.loading.example_run import example_path, example_run
    from overhead.loading.files import OtherAnswer, files_in_folder, newest_file
    from overhead.loading.reduce import load
    from overhead.report.brief import brief_blocks
    from overhead.report.one_case import case_blocks, find_case, save_plot

    file, case = _file_and_case(options.what)
    if file is not None and os.path.isdir(file):
        raise UsageError(
            f"{file}: a folder; name one of its files, the newest is {newest_file(file)}"
        )
    # Where nothing was named and nothing was measured, the committed run is an example.
    is_example = file is None and not files_in_folder(LOCAL)
    path = example_path() if is_example else file or newest_file(LOCAL)
    try:
        fingerprint = example_run() if is_example else load(path)
    except OtherAnswer as answered:  # the file is the saved answer of another command
        if case or options.plot is not None:  # such a file has no cases
            raise
        # ``is_file``: the data is what the file holds, so ``--json`` prints it in that form.
        saved = saved_answer(path, answered)
        return answer(options, saved.to_dict, blocks_of(saved), is_file=True)
    if not case:
        if options.plot is not None:
            raise UsageError("--plot: name a case before it: overhead show FILE CASE --plot")
        return answer(
            options,
            lambda: results.to_builtins(fingerprint),
            brief_blocks(fingerprint, options.every),
        )
    record = find_case(fingerprint, case)
    # So that ``--json`` says that the figures are those of the example.
    as_example = {"example": True} if is_example else {}
    drawn = save_plot(fingerprint, path, record, options.plot) if options.plot is not None else None
    answer(
        options,
        lambda: {**results.to_builtins(record), **as_example},
        case_blocks(fingerprint, path, record),
    )
    if drawn and not options.json:
        print(f"plot: {drawn}")
    return DONE


def _file_and_case(words: Sequence[str]) -> tuple[Path | None, str]:
    """The file and the case that the words after ``show`` name. The file is None if the words begin
    with a case; the case is '' if no words follow the file.
    """
    if not words:
        return None, ""
    first, *others = words
    # A file that does not exist is named too, so that the message tells of the file.
    is_file = os.path.exists(first) or first.endswith((".json", ".jsonl", ".gz"))
    if is_file:
        return Path(first), " ".join(others)
    return None, " ".join(words)


def report_command(options: argparse.Namespace) -> int:
    """Write the pages of a report from the files that were named, or else from those of this
    machine and the committed ones; where there are none of this machine, from an example. Print
    where the pages are.
    """
    from overhead.blocks.parts import Text
    from overhead.loading.example_run import example_run
    from overhead.loading.files import files_in_folder
    from overhead.report import build, render
    from overhead.words.report.example_run import example_lines

    # The parser takes only one of both.
    one_file = options.one_file is not None
    out = options.one_file if one_file else options.out
    # Files that were named, or else runs of this machine with the committed ones (``_REFERENCES``)
    # beside them. ``build`` reads files and draws their pages; ``render`` draws runs in memory.
    if options.paths or files_in_folder(LOCAL):
        page = build(
            options.paths or [path for path in (LOCAL, _REFERENCES) if path.is_dir()],
            out,
            reference=options.reference,
            example=not one_file,
            one_file=one_file,
        )
        return answer(options, lambda: {"page": str(page)}, [Text([f"page: {page}"])])
    if options.reference:
        raise UsageError(
            f"--reference {options.reference}: nothing was measured here to set beside it:"
            " overhead run"
        )
    example = example_run()
    page = render([example], out, one_file=one_file)
    return answer(
        options,
        lambda: {"page": str(page), "example": True},
        [Text([*example_lines(example), f"page: {page}"])],
    )


def compare_command(options: argparse.Namespace) -> int:
    """Compare two runs and print the verdicts.

    With ``--fail-over``, the exit code says whether the new run passes: 0; 1 if a case is surely
    slower by more than the limit; 3 if too few cases could be tested to say that none is.
    """
    from overhead.comparing import compare
    from overhead.comparing.show import comparison_blocks, comparison_data
    from overhead.words.comparing import gate_untested

    if options.base is None:
        raise UsageError(
            "compare: name two runs: overhead compare BASE.json NEW.json; overhead run makes one"
        )
    if options.allow_missing and options.fail_over is None:
        raise UsageError("--allow-missing: only with --fail-over")
    found = compare(options.base, options.new, options.fail_over, across=options.across)
    answer(options, lambda: comparison_data(found), comparison_blocks(found))
    if options.fail_over is None:
        return DONE
    if found.failed:
        return GATE
    if found.tested_enough(allow_missing=options.allow_missing):
        return DONE
    # Whether --allow-missing would let the run pass, so that the message can name the option.
    may_forgive = found.tested_enough(allow_missing=True)
    complain(gate_untested(found, may_forgive=may_forgive))
    return UNTESTED


def export_command(options: argparse.Namespace) -> int:
    """Print the figures of runs as CSV or JSON."""
    from overhead.export import export

    print(export(options.path, options.format), end="")
    return DONE


def completion_command(options: argparse.Namespace) -> int:
    from overhead.terminal import completion_script

    print(completion_script(options.parser, options.shell), end="")
    return DONE


def answer(
    options: argparse.Namespace,
    data: Callable[[], Any],
    blocks: Iterable[Part],
    *,
    is_file: bool = False,
) -> int:
    """Print the answer of a command: with ``--json`` the ``data``, else the ``blocks`` (tables and
    texts), as Markdown with ``--markdown``. Returns exit code 0.

    ``is_file``: the data can be saved and read again, so the reasons in them stay codes; else
    they become sentences.
    """
    if options.json:
        import json

        from overhead.words.reasons import in_words

        found = data()
        print(json.dumps(found if is_file else in_words(found), indent=1, allow_nan=False))
    elif getattr(options, "markdown", False):
        from overhead.blocks.markdown import markdown

        print(markdown(blocks), end="")
    else:
        from overhead.blocks.terminal import show

        show(blocks)
    return DONE
