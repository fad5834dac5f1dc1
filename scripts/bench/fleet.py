"""``main.py fleet``: the time and memory of judging 1,000 nodes, and in proportion 4,000."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from rich.console import Console

from scripts.bench.report import cost_of
from scripts.bench.requirement import Requirement, print_requirements
from tests.fakes.nodes import node_run, write_node

_NODES = 1_000
_TIMES = 4
"""The second fleet has so many times as many nodes."""
_MOST_S = 20.0
_MOST_MIB = 1_024.0
"""The longest time and the largest memory for the first fleet. Chosen, not measured."""
_MOST_GROWTH = 1.25
"""The largest processor time a node in the second fleet, over that in the first. Chosen, not
measured: 1 is in proportion, 4 would be quadratic.
"""


def fleet(options: argparse.Namespace, console: Console) -> bool:
    """Judge fleets of 1,000 and of 4,000 nodes; return whether the time and memory of the first
    were small enough, and the processor time grew no more than in proportion.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        few = Path(folder) / "few"
        many = Path(folder) / "many"
        _write_fleets(few, many)
        cost = cost_of("fleet", str(few))
        cost_of_many = cost_of("fleet", str(many))
    growth = cost_of_many.cpu_s / cost.cpu_s / _TIMES
    of_few = (
        f"{_NODES:,} nodes: {cost.wall_s:.1f} s of {_MOST_S:.0f} s ({cost.cpu_s:.1f} s of processor"
        f" time), {cost.peak_mib:.0f} MiB of {_MOST_MIB:.0f}"
    )
    of_many = f"{_TIMES} times as many: {growth:.2f} times the processor time a node"
    requirements = [
        Requirement(of_few, cost.is_within(_MOST_S, _MOST_MIB)),
        Requirement(of_many, growth <= _MOST_GROWTH),
    ]
    print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _write_fleets(few: Path, many: Path) -> None:
    """Write the runs of both fleets. The nodes of the small one are links to some of the large
    one's.
    """
    for number in range(_NODES * _TIMES):
        # All runs differ: a copy of a run does not count.
        write_node(many, str(number), node_run(number))
    for number in range(_NODES):
        node = few / str(number)
        node.mkdir(parents=True)
        os.link(many / str(number) / "0.json", node / "0.json")
