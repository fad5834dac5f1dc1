"""The command ``claims``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_markdown
from overhead.command_parser import Question
from overhead.commands import LOCAL, answer
from overhead.errors import UsageError


def add_commands(commands: Any) -> None:
    """Add the parser of ``overhead claims``. ``commands``: what ``add_subparsers`` of argparse
    returns. ``question``: below which heading the help lists the command. ``add_markdown`` and
    ``add_json`` add the options by which ``commands.answer`` prints in another form.
    """
    claims = commands.add_parser(
        "claims",
        help="compare published figures with measured runs: reproduced, partial or refuted",
        question=Question.FOUND,
    )
    claims.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="files of runs, or folders (default: reports/local)",
    )
    claims.add_argument(
        "-v", "--verbose", action="store_true", help="print also the reasons and the values"
    )
    add_markdown(claims)
    add_json(claims)
    claims.set_defaults(call=claims_command)


def claims_command(a: argparse.Namespace) -> int:
    """Run ``overhead claims``: print the verdict on each published claim, from the files named or
    those in the local folder; returns the exit code. Markdown, which goes into a document, always
    has the reasons.
    """
    from overhead.claims.judging import judge
    from overhead.claims.show import claim_data, overview_blocks, verdict_blocks
    from overhead.loading.files import files_in_folder
    from overhead.words.report.example_run import NO_RUN_YET

    # Without files named, the local folder is meant: it must hold a run.
    if not a.paths and not files_in_folder(LOCAL):
        raise UsageError(f"{NO_RUN_YET} To judge by files of others: overhead claims FILE")
    judged_claims = judge(a.paths or [LOCAL])
    blocks = overview_blocks(judged_claims)
    if a.verbose or a.markdown:
        blocks = verdict_blocks(judged_claims)
    return answer(a, lambda: [claim_data(judged) for judged in judged_claims], blocks)
