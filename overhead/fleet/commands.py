"""The options of ``run`` that measure many nodes, and the command ``fleet``."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_markdown
from overhead.command_parser import Question
from overhead.commands import DONE, GATE, INTERRUPTED, UNTESTED, answer, complain
from overhead.errors import UsageError

_NOT_PASSED = ("plugin", "python", "env", "env_new")
_PASSED = ("probe", "pattern", "workload", "require")


def add_commands(commands: Any) -> None:
    """Add the parser of the command, and options to that of ``run``. ``commands``: what
    ``add_subparsers`` returns.
    """
    about = (
        "find the slow node (straggler) of a cluster from the files of its nodes: at what, and by"
        " how much"
    )
    fleet = commands.add_parser("fleet", help=about, question=Question.SLOWER)
    files = "folder with DIR/NODE/*.json or DIR/NODE.json for each node"
    fleet.add_argument("folder", metavar="DIR", type=Path, nargs="?", help=files)
    fleet.add_argument(
        "--fail",
        action="store_true",
        help="exit 1 if a node is slow, 3 if a node could not be judged in full",
    )
    fleet.add_argument(
        "--sbatch", action="store_true", help="print a script for Slurm's sbatch, and nothing else"
    )
    add_markdown(fleet)
    add_json(fleet)
    fleet.set_defaults(call=fleet_command)
    _add_run_options(commands.choices["run"])


def fleet_command(a: argparse.Namespace) -> int:
    """Judge the nodes and print the verdicts; with ``--fail``, the exit code is that of the
    gate.
    """
    from overhead.fleet.judging import judge_fleet
    from overhead.fleet.show import fleet_blocks, fleet_data
    from overhead.words.fleet import gate_not_passed

    if a.sbatch:
        print(Path(__file__).with_name("node.sbatch").read_text("utf-8"), end="")
        return DONE
    if a.folder is None:
        raise UsageError("fleet: name the folder with the files of the nodes: overhead fleet DIR")
    found = judge_fleet(a.folder)
    answer(a, lambda: fleet_data(found), fleet_blocks(found))
    if not a.fail:
        return DONE
    if found.named("slow"):
        return GATE
    untold = [node for node in found.nodes if node.verdict != "ok"]
    if not untold:
        return DONE
    complain(gate_not_passed(found.nodes, untold))
    return UNTESTED


def _add_run_options(run: argparse.ArgumentParser) -> None:
    """Add the options that measure many nodes to the parser of ``run``."""
    add = run.add_argument_group("many nodes, each in its own folder of --out").add_argument
    add(
        "--hosts",
        metavar="FILE",
        type=Path,
        help="measure these hosts by ssh; the file has host or user@host in each line",
    )
    add(
        "--ray",
        action="store_true",
        help="measure each node of a Ray cluster, with all of its GPUs",
    )
    add(
        "--ray-address",
        metavar="ADDRESS",
        help="address of the Ray cluster (default: the one that Ray finds)",
    )
    how = "command that runs overhead on a node (default: overhead; with --ray: python -m overhead)"
    add("--remote-command", metavar="COMMAND", help=how)
    add(
        "--node-limit",
        metavar="SECONDS",
        type=float,
        default=400.0,
        help="longest time for a node (default: 400)",
    )
    call = functools.partial(run_command, run.get_default("call"), run.get_default("profile"))
    run.set_defaults(call=call, profile=None)


def run_command(
    usual: Callable[[argparse.Namespace], int], profile: str, a: argparse.Namespace
) -> int:
    """Measure this machine, or the nodes that an option names; returns the exit code."""
    _check(a)
    if not (a.ray or a.hosts):
        a.profile = a.profile or profile
        return usual(a)
    from overhead.fleet.collecting import Measure, collect_files, node_script, was_interrupted
    from overhead.fleet.ray_nodes import COMMAND, ray_nodes
    from overhead.fleet.show import collected_data, collected_table
    from overhead.fleet.ssh_nodes import ssh_nodes

    words = ["run", f"--profile={a.profile or 'node'}", *(["--software"] if a.software else [])]
    words += [f"--{option}={value}" for option in _PASSED for value in getattr(a, option)]
    script = node_script(
        a.remote_command or (COMMAND if a.ray else "overhead"), words, a.node_limit
    )
    opened: AbstractContextManager[Mapping[str, Measure]]
    if a.ray:
        opened = ray_nodes(a.ray_address, script, a.node_limit)
    else:
        opened = nullcontext(ssh_nodes(a.hosts, script, a.node_limit))
    found = collect_files(a.out, a.node_limit, opened)
    answer(a, lambda: collected_data(found), [collected_table(a.out, found)])
    if was_interrupted(found):
        return INTERRUPTED
    failed = a.require and any(one.reason for one in found.values())
    return GATE if failed or not any(one.files for one in found.values()) else DONE


def _check(a: argparse.Namespace) -> None:
    """Raise ``UsageError`` for options that do not go together."""
    many = "--ray" if a.ray else "--hosts" if a.hosts else ""
    not_passed = [f"--{name.replace('_', '-')}" for name in _NOT_PASSED if getattr(a, name)]
    if a.ray and a.hosts:
        raise UsageError("--ray and --hosts: give one of them")
    if (a.ray_address and not a.ray) or (a.remote_command and not many):
        raise UsageError(
            "--ray-address: only with --ray; --remote-command: only with --ray or --hosts"
        )
    if many and not_passed:
        raise UsageError(f"{not_passed[0]}: not with {many}; nodes do not get it")
    if many and (
        a.out is None or a.out.suffix == ".json" or (a.out.exists() and not a.out.is_dir())
    ):
        raise UsageError(f"{many}: name a folder for the files of the nodes: --out DIR")
    if not 0 < a.node_limit < float("inf"):
        raise UsageError("--node-limit: give seconds above 0")
