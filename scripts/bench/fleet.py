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

_NODES, _TIMES, _S, _MIB, _MOST = 1_000, 4, 20.0, 1_024.0, 1.25


def fleet(options: argparse.Namespace, console: Console) -> bool:
    """Returns whether the time and memory were enough, and the time of more nodes no worse than in
    proportion.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        few, many = Path(folder) / "few", Path(folder) / "many"
        for number in range(_NODES * _TIMES):  # all differ: a copy of a run does not count
            write_node(many, str(number), node_run(number))
        for number in range(_NODES):
            (few / str(number)).mkdir(parents=True)
            os.link(many / str(number) / "0.json", few / str(number) / "0.json")
        (wall, cpu, mib), (_, more, _) = (cost_of("fleet", str(nodes)) for nodes in (few, many))
    ratio = more / cpu / _TIMES
    words = (
        f"{_NODES:,} nodes: {wall:.1f} s of {_S:.0f} s ({cpu:.1f} s of processor time), {mib:.0f}"
        f" MiB of {_MIB:.0f}"
    )
    held = [Requirement(words, wall <= _S and mib <= _MIB)]
    held.append(
        Requirement(
            f"{_TIMES} times as many: {ratio:.2f} times the processor time a node", ratio <= _MOST
        )
    )
    print_requirements(held, console)
    return all(one.holds for one in held)
