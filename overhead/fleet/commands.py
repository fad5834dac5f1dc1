"""The command ``fleet``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_markdown
from overhead.commands import DONE, GATE, UNTESTED, answer, complain


def add_commands(commands: Any) -> None:
    """Add the parser of the command. ``commands``: what ``add_subparsers`` of argparse returns."""
    fleet = commands.add_parser("fleet", help="tell which of many nodes is slow, at what and by how much, from files")
    fleet.add_argument("folder", metavar="DIR", type=Path, help="DIR/NODE/*.json, or DIR/NODE.json, of each node")
    fleet.add_argument("--fail", action="store_true", help="exit 1 if a node is slow, 3 if that cannot be told of one")
    add_markdown(fleet)
    add_json(fleet)
    fleet.set_defaults(call=fleet_command)


def fleet_command(a: argparse.Namespace) -> int:
    """Judge the nodes and print the verdicts; with ``--fail``, the exit code is that of the gate."""
    from overhead.fleet.judging import judge_fleet
    from overhead.fleet.show import fleet_blocks
    from overhead.results import to_builtins

    found = judge_fleet(a.folder)
    answer(a, lambda: to_builtins(found), fleet_blocks(found))
    if not a.fail:
        return DONE
    if found.named("slow"):
        return GATE
    if unknown := found.named("suspect", "unknown"):
        complain(f"the gate did not pass: {len(unknown)} of the nodes cannot be told, the first: {unknown[0]}")
    return UNTESTED if unknown else DONE
