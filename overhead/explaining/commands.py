"""The command ``explain``; it imports what it needs when it runs, so that ``--help`` is fast."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from overhead.arguments import add_json
from overhead.command_parser import Question
from overhead.commands import DONE, INTERRUPTED, answer, complain
from overhead.errors import UsageError, require_extra

if TYPE_CHECKING:
    from overhead.explaining.explaining import Alternatives
    from overhead.explaining.record import Explanation

BAD_USE = 2
"""The exit code if a file that was asked for could not be written; ``cli.main`` describes the
codes.
"""


def add_commands(commands: Any) -> None:
    """Add the parser of the command. ``commands``: what ``add_subparsers`` of argparse returns."""
    explain = commands.add_parser(
        "explain",
        help=(
            "find what limits a step of your program (host-bound or device-bound), and measure what"
            " would change it"
        ),
        question=Question.BOUND,
    )
    explain.add_argument(
        "step",
        metavar="STEP",
        nargs="?",
        help=(
            "FILE.py:FUNCTION or module:function: a function that returns the step, or the step"
            " itself"
        ),
    )
    trace = (
        "instead of STEP, traces of a run: JSON of PyTorch's profiler or SQLite of Nsight Systems,"
        " one for each rank"
    )
    explain.add_argument("--trace", metavar="FILE", nargs="+", type=Path, default=[], help=trace)
    explain.add_argument(
        "--step-ms",
        metavar="MS",
        type=float,
        help="with --trace: the time of a step without a profiler, which checks the trace",
    )
    explain.add_argument(
        "--process",
        metavar="PID",
        default="",
        help="with --trace: the process to explain, if the trace holds several",
    )
    explain.add_argument(
        "--step",
        dest="step_name",
        metavar="NAME",
        help="with --trace: a step is a range of this name; numbers in it may vary",
    )
    explain.add_argument(
        "--from",
        dest="from_s",
        metavar="S",
        type=float,
        help="with --trace: look for steps from so many seconds after the recording began",
    )
    explain.add_argument(
        "--to",
        dest="to_s",
        metavar="S",
        type=float,
        help="with --trace: look for steps up to so many seconds after the recording began",
    )
    explain.add_argument(
        "--chrome", metavar="FILE.json", type=Path, help="write a timeline of the step for Perfetto"
    )
    explain.add_argument(
        "--arg",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="an argument of FUNCTION (repeatable)",
    )
    explain.add_argument(
        "--against",
        metavar="STEP",
        default="",
        help="compare the step with STEP, an alternative of your own",
    )
    explain.add_argument(
        "--no-compile",
        action="store_true",
        help="do not try torch.compile; then explain ends within a minute",
    )
    explain.add_argument(
        "--no-alternatives", action="store_true", help="measure only the step as it is"
    )
    explain.add_argument(
        "--seconds",
        metavar="S",
        type=float,
        default=90.0,
        help="longest time, not counting compilation (default: 90)",
    )
    explain.add_argument(
        "--out", metavar="FILE.json", type=Path, help="write the result to this file"
    )
    explain.add_argument(
        "--html",
        metavar="FILE.html",
        type=Path,
        help="write the result as a page, with the lines of the program",
    )
    add_json(explain)
    explain.set_defaults(call=explain_command)


def explain_command(a: argparse.Namespace) -> int:
    """Run ``overhead explain``, write its files and print the result; returns the exit code."""
    from overhead.explaining.explaining import ExplainInterrupted, explain
    from overhead.explaining.show import explanation_blocks
    from overhead.explaining.trace_file import explain_traces
    from overhead.runner.progress import Progress
    from overhead.traces.step_choice import StepChoice

    # What would fail at the end is checked first: the measurement takes minutes.
    if a.html is not None:
        require_extra("report", "jinja2")
    _check_options(a)
    interrupted = False
    # To see at the end whether this run wrote the file, or only found it there.
    replay_before = _identity(a.chrome)
    try:
        if a.trace:
            choice = StepChoice(a.step_name or "", a.from_s, a.to_s, a.process)
            explanation = explain_traces(a.trace, a.step_ms or 0.0, a.chrome, choice)
        else:
            with Progress() as listener:
                explanation = explain(
                    a.step,
                    arguments=a.arg,
                    against=a.against,
                    alternatives=_alternatives(a),
                    seconds=a.seconds,
                    chrome=a.chrome,
                    listener=listener,
                )
    except ExplainInterrupted as stopped:
        explanation = stopped.explanation
        interrupted = True

    # What was measured is printed first: a file that cannot be written loses nothing. ``is_file``:
    # the JSON can be saved and read again, so its reasons stay codes.
    answer(a, explanation.to_dict, explanation_blocks(explanation), is_file=True)
    # The replay is written while the step is measured. That fails where there is no device work.
    has_replay = a.chrome is not None and _identity(a.chrome) != replay_before
    written = [f"replay: {a.chrome}"] if has_replay else []
    all_written = _write_files(a, explanation, written)
    if interrupted:
        print("overhead: interrupted; this is what was measured until then", file=sys.stderr)
        return INTERRUPTED
    # A file that was asked for and is not there counts as a fault.
    lacks_replay = a.chrome is not None and not has_replay
    return DONE if all_written and not lacks_replay else BAD_USE


def _alternatives(a: argparse.Namespace) -> Alternatives:
    """Which alternatives the options ask for."""
    if a.no_alternatives:
        return "none"
    return "eager" if a.no_compile else "all"


class _Saver(NamedTuple):
    """How one file of a result is written. ``name``: what the file is, for the reader."""

    name: str
    path: Path
    save: Callable[[Path, Explanation], None]


def _write_files(a: argparse.Namespace, explanation: Explanation, written: list[str]) -> bool:
    """Write the files that the options ask for: the explanation as JSON (``--out``), and its page
    (``--html``). Print the lines ``written`` (of files that exist already) and one for each of
    these. Returns whether all could be written.
    """
    from overhead.explaining.record import save_explanation

    # For each file its name in messages, its path, and the function that writes it.
    savers = []
    if a.out is not None:
        savers.append(_Saver("explanation", a.out, save_explanation))
    if a.html is not None:
        from overhead.explaining.page import save_explained_page  # not in the base install

        savers.append(_Saver("page", a.html, save_explained_page))
    refused = []
    for saver in savers:
        try:
            saver.save(saver.path, explanation)
            written.append(f"{saver.name}: {saver.path}")
        except UsageError as error:
            refused.append(str(error))
    if not a.json:  # else the output is JSON, and nothing else may stand in it
        for text in written:
            print(text)
    for text in refused:
        complain(text)
    return not refused


def _identity(path: Path | None) -> tuple[int, int] | None:
    """What tells a file from one that is written later under its name (its number in the file
    system and when it was changed); None if there is no file. Compared before and after a run, it
    tells whether the run wrote the file.
    """
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _check_options(a: argparse.Namespace) -> None:
    """Raise ``UsageError`` for options that do not go together, and for an output that would
    replace a file of the user's, one that this command did not make.
    """
    from overhead.loading.outputs import Output, begins_with, check_outputs, page_of

    if not a.step and not a.trace:
        raise UsageError("name a STEP, or traces by --trace")
    if a.step and a.trace:
        # ``--json`` takes no file, so a name after it is the STEP.
        raise UsageError(
            f"STEP and --trace exclude each other, and {a.step} is the STEP; a file is written by"
            " --out FILE.json"
        )
    if a.trace and (a.arg or a.against):
        raise UsageError("--arg and --against are for a STEP")
    if a.step_ms is not None and not (a.trace and 0 < a.step_ms < 1e9):
        raise UsageError("--step-ms: milliseconds above zero, with --trace")
    if a.process and len(a.trace) != 1:
        raise UsageError("--process chooses a process of one --trace")
    _check_step_choice(a)
    # The bounds also refuse what is no number ("nan") and infinity.
    if not 0 < a.seconds < 1e9:
        raise UsageError("--seconds: seconds above zero")
    # For each file: how to recognise an earlier result of this command under its name.
    outputs = []
    if a.out is not None:
        outputs.append(Output(a.out, begins_with(b'{\n "format": "overhead-explain",\n')))
    if a.html is not None:
        outputs.append(Output(a.html, page_of("explain")))
    if a.chrome is not None:
        begins = begins_with(b'{"madeBy":"overhead explain --chrome",')
        outputs.append(Output(a.chrome, begins))
    check_outputs(outputs, a.trace)


def _check_step_choice(a: argparse.Namespace) -> None:
    """Raise ``UsageError`` for a choice of steps without a trace, or for times that are none."""
    if not a.trace and (a.step_name is not None or a.from_s is not None or a.to_s is not None):
        raise UsageError("--step, --from and --to choose the steps of a --trace")
    if a.step_name is not None and not a.step_name.strip():
        raise UsageError("--step: the name of a range is empty")
    begin = 0.0 if a.from_s is None else a.from_s
    end = 1e9 if a.to_s is None else a.to_s
    # The bounds also refuse what is no number ("nan") and infinity.
    if not 0 <= begin < end <= 1e9:
        raise UsageError("--from and --to: seconds since the recording began, --from before --to")
