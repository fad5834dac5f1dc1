"""The options of ``run`` that measure many nodes, and the command ``fleet``."""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from overhead.arguments import add_json, add_markdown
from overhead.command_parser import Question
from overhead.commands import DONE, GATE, INTERRUPTED, UNTESTED, answer, complain
from overhead.errors import UsageError

_NOT_PASSED = ("plugin", "python", "env", "env_new")
"""Options of ``run`` that name things of this machine, so that nodes do not get them."""
_PASSED = ("probe", "pattern", "workload", "require")
"""Options of ``run`` that are passed to the nodes; each may be given several times."""


def add_commands(commands: Any) -> None:
    """Add the parser of ``overhead fleet``, and to that of ``run`` the options that measure many
    nodes. ``commands``: what ``add_subparsers`` of argparse returns.
    """
    about = (
        "find the slow node (straggler) of a cluster from the files of its nodes: at what, and by"
        " how much"
    )
    # ``question``: the heading below which the help lists the command.
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
    """Run ``overhead fleet``: judge the nodes by the files in a folder and print the verdicts;
    returns the exit code. With ``--fail`` it is a gate: a slow node fails it, and a node that could
    not be judged in full has an exit code of its own.
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
    # Prints the data with ``--json``, else the blocks.
    answer(a, lambda: fleet_data(found), fleet_blocks(found))
    # Only with ``--fail`` do the verdicts decide about the exit code: slow nodes first.
    if not a.fail:
        return DONE
    if found.named("slow"):
        return GATE
    # No node is slow; one that was not judged in full may be.
    not_ok = [node for node in found.nodes if node.verdict != "ok"]
    if not not_ok:
        return DONE
    complain(gate_not_passed(found.nodes, not_ok))
    return UNTESTED


def _add_run_options(run: argparse.ArgumentParser) -> None:
    """Add the options that measure many nodes to the parser of ``run``, and let it call
    ``run_command``. Without ``--ray`` that calls what ``run`` called before, which measures this
    machine.
    """
    add = run.add_argument_group("many nodes, each in its own folder of --out").add_argument
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
    add(
        "--remote-command",
        metavar="COMMAND",
        help="command that runs overhead on a node (default: python -m overhead)",
    )
    add(
        "--node-limit",
        metavar="SECONDS",
        type=float,
        default=400.0,
        help="longest time for a node (default: 400)",
    )
    measure_here = run.get_default("call")
    call = functools.partial(run_command, measure_here, run.get_default("profile"))
    # None tells whether the user named a profile: many nodes have another default.
    run.set_defaults(call=call, profile=None)


def run_command(
    measure_here: Callable[[argparse.Namespace], int], profile: str, a: argparse.Namespace
) -> int:
    """Run ``overhead run``: measure this machine by ``measure_here``, or with ``--ray`` the nodes
    of a cluster; returns the exit code. ``profile``: the default on this machine; nodes have
    another one.
    """
    _check(a)
    if not a.ray:
        a.profile = a.profile or profile
        return measure_here(a)
    from overhead.fleet.collecting import collect_files, node_script, was_interrupted
    from overhead.fleet.ray_nodes import COMMAND, ray_nodes
    from overhead.fleet.show import collected_data, collected_table

    # With ``--ray``: the same options as here, as a script that each node runs.
    script = node_script(a.remote_command or COMMAND, _words_for_nodes(a), a.node_limit)
    cluster = ray_nodes(a.ray_address, script, a.node_limit)
    collected = collect_files(a.out, a.node_limit, cluster)
    answer(a, lambda: collected_data(collected), [collected_table(a.out, collected)])
    if was_interrupted(collected):
        return INTERRUPTED
    # With --require each node must have sent all; else files of some nodes are enough.
    any_lacks = any(node.reason for node in collected.values())
    any_files = any(node.files for node in collected.values())
    if not any_files or (a.require and any_lacks):
        return GATE
    return DONE


def _words_for_nodes(a: argparse.Namespace) -> list[str]:
    """The arguments with which each node calls overhead: the options of this call that mean the
    same on every node.
    """
    # The default profile of many nodes is another one.
    words = ["run", f"--profile={a.profile or 'node'}"]
    if a.software:
        words.append("--software")
    # Options such as ``--probe``; each may be given several times.
    for option in _PASSED:
        for value in getattr(a, option):
            words.append(f"--{option}={value}")
    return words


def _check(a: argparse.Namespace) -> None:
    """Raise ``UsageError`` for options of ``run`` that do not go together: some need a cluster,
    some name things of this machine alone, and the files of many nodes need a folder.
    """
    if not a.ray and (a.ray_address or a.remote_command):
        raise UsageError("--ray-address, --remote-command: only with --ray")
    if a.ray:
        # Options such as ``--plugin``, whose files are on this machine.
        for option in _NOT_PASSED:
            if getattr(a, option):
                name = option.replace("_", "-")
                raise UsageError(f"--{name}: not with --ray; nodes do not get it")
        # ``--out`` must be a folder, or free to become one.
        is_file = a.out is not None and a.out.exists() and not a.out.is_dir()
        if a.out is None or a.out.suffix == ".json" or is_file:
            raise UsageError("--ray: name a folder for the files of the nodes: --out DIR")
    if not 0 < a.node_limit < math.inf:
        raise UsageError("--node-limit: give seconds above 0")
