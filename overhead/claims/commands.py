"""The command ``claims``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_markdown
from overhead.commands import DONE, LOCAL, print_json


def add_commands(commands: Any) -> None:
    """Add the parser of the command. ``commands``: what ``add_subparsers`` of argparse returns."""
    claims = commands.add_parser("claims", help="judge published claims by measured runs")
    claims.add_argument("paths", metavar="PATH", nargs="*", type=Path, help="files or folders (default: reports/local)")
    claims.add_argument("-v", "--verbose", action="store_true", help="print the reasons and values too")
    add_markdown(claims)
    add_json(claims)
    claims.set_defaults(call=claims_command)


def claims_command(a: argparse.Namespace) -> int:
    from overhead.claims import printed
    from overhead.claims.judging import judge

    found = judge(a.paths or [LOCAL])
    if a.json:
        print_json([one.to_dict() for one in found])
    elif a.markdown:
        print(printed.markdown(found), end="")
    else:
        printed.show(found, verbose=a.verbose)
    return DONE
