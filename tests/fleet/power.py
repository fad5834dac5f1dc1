"""Errors and power of ``overhead fleet`` on made nodes: ``python -m tests.fleet.power``;
``--write`` for the copy.

A made node is a whole committed run: the deviation of each of its figures from the median of its
kind of machine, with all its stacks. The run's own host factor is taken off, and one is drawn in
its place: Student's t with 8 degrees of freedom times 3.6 % (a standard deviation of 4.2 %). The
first run of a node and the second have the same factor, but for 1.1 % that two runs on one board
differ by. The second run is one of two:

``same``: the same committed run, with noise of the width of each figure's own interval: all that
sets a run apart stays with the node. ``other``: another committed run: all that sets a run apart is
new in each run. Two runs on one board lie between these.

The thresholds were chosen on the H100 runs; the H200 runs only tell the errors and the power.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from overhead.fleet.coverage import SHARED
from overhead.fleet.model import NodeTests, median_of, tests_of
from overhead.fleet.node_files import JudgedFigure, NodePart, figures_of
from overhead.loading.files import read_fingerprint
from overhead.measure.fitting.line import Floats
from overhead.reading.view import boards_of
from overhead.results import Value

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = ROOT / "tests" / "data" / "fleet_power.json"
RUNS = {
    "H100": (
        "nvidia-h100",
        "nvidia-h100-default",
        "nvidia-h100-all",
        "again/nvidia-h100",
        "again/nvidia-h100-2",
        "again/nvidia-h100-3",
        "again/nvidia-h100-default-2",
        "again/nvidia-h100-default-3",
        "again/nvidia-h100-default-interrupted",
        "again/nvidia-h100-quick-without-vulkan",
        "again/nvidia-h100-all-1",
        "again/nvidia-h100-all-2",
    ),
    "H200": (
        "nvidia-h200",
        "nvidia-h200-default",
        "again/nvidia-h200",
        "again/nvidia-h200-2",
        "again/nvidia-h200-default",
        "again/nvidia-h200-default-2",
    ),
}
"""The committed runs of usual profiles with ten stacks or more."""
Second = Literal["same", "other"]
SIZES = (5, 10, 30, 100)
FACTOR_SCALE = 0.036
FACTOR_DEGREES = 8
BETWEEN_RUNS = 0.011
"""What sets hosts apart, as the text above says."""
HEALTHY = 100_000
FLEETS = 400
UNTOLD_FLEETS = 1_000
PASSING_FLEETS = 200
"""How many healthy nodes, and how many fleets, each share is counted on."""
HOST = NodePart(side="host")
SLOWER = {"host": 1.35, "device": 1.10, "stack": 1.24, "stack, host side": 1.24}
"""What is planted in one node of each fleet. A stack on both sides, or on the host's alone; each
stack in turn.
"""
MANY = (0.3, 0.4, 0.5, 0.6)
MANY_SLOWER = 1.5
"""Shares of the nodes whose host is slower, and how many times."""


@dataclass(frozen=True)
class Pool:
    """The committed runs of one kind of machine: by run and figure the deviation, and the noise of
    its interval.
    """

    keys: Sequence[JudgedFigure]
    deviations: Floats
    noise: Floats
    boards: int

    @classmethod
    def of(cls, kind: str) -> Pool:
        runs = [read_fingerprint(ROOT / "reports" / "data" / f"{name}.json") for name in RUNS[kind]]
        figures = [dict(figures_of(run)) for run in runs]
        times: Counter[JudgedFigure] = Counter()
        for of_run in figures:
            times.update(of_run.keys())
        keys = sorted(key for key in times if times[key] >= SHARED * len(runs))
        logs, noise = np.full((2, len(runs), len(keys)), np.nan)
        for run, of_run in enumerate(figures):
            for column, key in enumerate(keys):
                if key in of_run:
                    logs[run, column] = math.log(of_run[key].value)
                    noise[run, column] = _noise_of(of_run[key])
        deviations = logs - median_of(logs, 0)
        host = [key.side == "host" for key in keys]
        deviations[:, host] -= median_of(deviations[:, host], 1)[:, None]
        boards: set[str] = set()
        for fingerprint in runs:
            boards.update(boards_of(fingerprint.records))
        return cls(keys, deviations, noise, len(boards))

    def made(self, nodes: int, second: Second, dice: np.random.Generator) -> Floats:
        """ln(figure) by run, node and figure, of healthy nodes with two runs."""
        of_node = FACTOR_SCALE * dice.standard_t(FACTOR_DEGREES, nodes)
        of_run = BETWEEN_RUNS * dice.standard_normal((2, nodes))
        factor = of_node + of_run
        which = dice.integers(len(self.deviations), size=(2, nodes))
        if second == "same":
            which[1] = which[0]
        own_noise = self.noise[which] * dice.standard_normal((*which.shape, len(self.keys)))
        logs = self.deviations[which] + own_noise
        on_host = [key.side == "host" for key in self.keys]
        return logs + np.where(on_host, factor[:, :, None], 0.0)


def _noise_of(value: Value) -> float:
    """The standard deviation of ln(figure) that its own interval shows; 0 without an interval."""
    if not value.low or not value.high or value.low <= 0:
        return 0.0
    return min(0.3, math.log(value.high / value.low) / 2 / 1.96)


def slow(tests: NodeTests) -> Any:
    """By test and node whether both runs are beyond the limit."""
    return np.all(tests.deviations > tests.limits[:, None, None], axis=1)


def false_alarms(pool: Pool, nodes: int, second: Second, healthy: int = HEALTHY) -> float:
    """The number of 1,000 healthy nodes that are called slow."""
    dice = np.random.default_rng(nodes)
    fleets = healthy // nodes
    called_slow = 0
    for _ in range(fleets):
        tests = tests_of(pool.made(nodes, second, dice), pool.keys)
        called_slow += int(slow(tests).any(axis=0).sum())
    return round(1000 * called_slow / (fleets * nodes), 2)


def power(
    pool: Pool, nodes: int, second: Second, what: str, fleets: int = FLEETS
) -> dict[str, float]:
    """The share of planted nodes that are called slow, by what was planted."""
    dice = np.random.default_rng(nodes)
    tried: Counter[str] = Counter()
    told: Counter[str] = Counter()
    stacks = np.array([key.stack for key in pool.keys])
    sides = np.array([key.side for key in pool.keys])
    names = sorted({*stacks[sides == "host"].tolist()})
    for number in range(fleets):
        logs = pool.made(nodes, second, dice)
        stack = names[number % len(names)]
        if what in ("host", "device"):
            slowed = sides == what
        else:
            slowed = stacks == stack
        if what == "stack, host side":
            slowed &= sides == "host"
        if np.isnan(logs[:, 0, slowed]).all(axis=1).any():
            continue
        logs[:, 0, slowed] += math.log(SLOWER[what])
        tests = tests_of(logs, pool.keys)
        wanted = []
        for part in tests.parts:
            is_side = part.side == what and part.is_whole_side
            wanted.append(part.stack == stack or is_side)
        tried[stack] += 1
        told[stack] += bool(slow(tests)[wanted, 0].any())
    shares = {"all": round(told.total() / tried.total(), 3)}
    if "stack" in what:
        for name in names:
            if tried[name]:
                shares[name] = round(told[name] / tried[name], 3)
    return shares


@dataclass(frozen=True)
class Untold:
    """What of a fleet is not judged."""

    side: bool
    stack: bool


def untold(tests: NodeTests) -> Untold:
    """Whether a whole side is not judged, as there are two groups of nodes or they differ too much;
    and a stack.
    """
    beyond = np.any(tests.deviations > tests.limits[:, None, None], axis=1)
    side = False
    stack = False
    for test, kind in enumerate(tests.kinds):
        divided = tests.two_groups(test, ~beyond[test]) is not None
        if divided or tests.too_wide(test):
            if kind == "stacks":
                stack = True
            else:
                side = True
    return Untold(side, stack)


def healthy_untold(
    pool: Pool, nodes: int, second: Second, fleets: int = UNTOLD_FLEETS
) -> dict[str, float]:
    """The number of 1,000 healthy fleets of which a side, or a stack, is not judged."""
    dice = np.random.default_rng(nodes + 1)
    sides = 0
    stacks = 0
    for _ in range(fleets):
        answer = untold(tests_of(pool.made(nodes, second, dice), pool.keys))
        sides += answer.side
        stacks += answer.stack
    return {"sides": round(1000 * sides / fleets, 2), "stacks": round(1000 * stacks / fleets, 2)}


def passing(
    pool: Pool, nodes: int, second: Second, share: float, fleets: int = PASSING_FLEETS
) -> float:
    """The share of fleets that pass although the hosts of many nodes are slow: none is slow, all
    are judged.
    """
    dice = np.random.default_rng(nodes + 2)
    passed = 0
    on_host = [key.side == "host" for key in pool.keys]
    for _ in range(fleets):
        logs = pool.made(nodes, second, dice)
        logs[:, : round(share * nodes), on_host] += math.log(MANY_SLOWER)
        tests = tests_of(logs, pool.keys)
        any_beyond = bool(np.any(tests.deviations > tests.limits[:, None, None]))
        not_judged = untold(tests)
        if not any_beyond and not not_judged.side and not not_judged.stack:
            passed += 1
    return round(passed / fleets, 3)


def stated(pool: Pool, nodes: int, second: Second, fleets: int = FLEETS) -> float:
    """The share of nodes found whose host is slower by the smallest slowdown that another fleet of
    the kind states.
    """
    dice = np.random.default_rng(nodes + 3)
    told = 0
    on_host = [key.side == "host" for key in pool.keys]
    for _ in range(fleets):
        stating = tests_of(pool.made(nodes, second, dice), pool.keys)
        logs = pool.made(nodes, second, dice)
        with_two_runs = 1
        logs[:, 0, on_host] += stating.smallest[with_two_runs, stating.parts.index(HOST)]
        finding = tests_of(logs, pool.keys)
        told += bool(slow(finding)[finding.parts.index(HOST), 0])
    return round(told / fleets, 3)


def row(pool: Pool, nodes: int, second: Second) -> dict[str, Any]:
    """False alarms and power for fleets of so many nodes."""
    found = {what: power(pool, nodes, second, what) for what in SLOWER}
    many = {f"{share:g}": passing(pool, nodes, second, share) for share in MANY}
    return {
        "false": false_alarms(pool, nodes, second),
        "untold": healthy_untold(pool, nodes, second),
        **found,
        "stated": stated(pool, nodes, second),
        "many pass": many,
    }


def table() -> dict[str, Any]:
    """All rows, by kind of machine, second run and number of nodes."""
    found: dict[str, Any] = {}
    for kind in RUNS:
        pool = Pool.of(kind)
        found[kind] = {
            "runs": len(pool.deviations),
            "boards": pool.boards,
            "figures": len(pool.keys),
        }
        for second in ("same", "other"):
            rows = {str(nodes): row(pool, nodes, second) for nodes in SIZES}
            found[kind][second] = rows
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the committed copy")
    write = parser.parse_args().write
    text = json.dumps(table(), indent=1) + "\n"
    if write:
        COMMITTED.write_text(text, "utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
