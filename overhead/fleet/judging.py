"""Judge the nodes in a folder: groups of equal nodes, and the verdict on each node."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from overhead.fleet.model import FALSE_ALARMS, LEAST_NODES, RUNS_OF_A_NODE, NodeTests, tests_of
from overhead.fleet.node_files import NodeFigure, NodeRun, read_nodes
from overhead.fleet.settings import settings_apart
from overhead.reading.format import count, listed

NodeVerdict = Literal["slow", "suspect", "ok", "unknown"]
SHARED = 0.8
"""Figures and versions count that this share of the nodes has."""
_VARYING = ("kernel", "os", "overhead")
"""Versions in which equal nodes may differ."""


@dataclass(frozen=True)
class SlowTest:
    """A test in which a node is slow or suspect. ``slower``: a share; ``low``, ``high``: less and more the spread of
    95 % of the healthy nodes. ``chance``: at most this share of the healthy nodes is so far beyond a limit."""

    what: str
    slower: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True)
class JudgedNode:
    """The verdict on a node. ``runs``: the files that count. ``why`` it is unknown. ``settings``: what sets it apart.

    ``smallest``: by test the smallest slowdown, as a share, that its runs find with 95 % power.
    """

    name: str
    verdict: NodeVerdict
    runs: Sequence[str] = ()
    why: str = ""
    slow: Sequence[SlowTest] = ()
    settings: Sequence[str] = ()
    smallest: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class NodeGroup:
    """Equal nodes. ``name``: the machine, and the versions in which it differs from other groups."""

    name: str
    nodes: Sequence[JudgedNode]


@dataclass(frozen=True)
class FleetVerdicts:
    """The result of ``overhead fleet``. ``false_alarms``: at most so many slow nodes are expected if all are healthy.
    ``skipped``: the reason by file."""

    folder: str
    false_alarms: float
    groups: Sequence[NodeGroup]
    skipped: Mapping[str, str]

    def named(self, *verdicts: NodeVerdict) -> list[str]:
        """The names of the nodes with one of these verdicts."""
        return [node.name for group in self.groups for node in group.nodes if node.verdict in verdicts]


def judge_fleet(folder: Path) -> FleetVerdicts:
    """The verdicts on all nodes that have a file in the folder. Raises ``BadFile`` if no file can be read."""
    files = read_nodes(folder)
    runs = [sorted(own, key=lambda run: run.created, reverse=True) for own in files.runs.values() if own]
    groups = [NodeGroup(name, judge_nodes(nodes, [*files.keys])) for name, nodes in _groups(runs)]
    unread = [JudgedNode(node, "unknown", why="no usable file") for node, own in files.runs.items() if not own]
    groups += [NodeGroup("Unknown machine", unread)] * bool(unread)
    judged = sum(node.verdict != "unknown" for group in groups for node in group.nodes)
    return FleetVerdicts(str(folder), FALSE_ALARMS * judged, groups, files.skipped)


def _groups(nodes: Sequence[Sequence[NodeRun]]) -> Iterator[tuple[str, list[Sequence[NodeRun]]]]:
    """The name of each group of equal nodes, and the newest runs of its nodes. ``nodes``: of each all runs."""
    by_machine: dict[str, list[Sequence[NodeRun]]] = defaultdict(list)
    for runs in nodes:
        by_machine[_machine(runs[0])].append(runs)
    for machine, own in by_machine.items():
        having = Counter(name for runs in own for name in runs[0].versions if name not in _VARYING)
        names = [name for name, times in having.items() if times >= SHARED * len(own)]
        by_versions: dict[tuple[str, ...], list[Sequence[NodeRun]]] = defaultdict(list)
        for runs in own:
            kinds = [(_machine(run), tuple(run.versions.get(name, "absent") for name in names)) for run in runs]
            equal = [run for run, kind in zip(runs, kinds, strict=True) if kind == kinds[0]]
            by_versions[kinds[0][1]].append(equal[:RUNS_OF_A_NODE])
        for versions, group in by_versions.items():
            differs = [len({*values}) > 1 for values in zip(*by_versions, strict=True)]
            words = map(" ".join, zip(names, versions, strict=True))
            yield ", ".join([machine, *itertools.compress(words, differs)]), group


def _machine(run: NodeRun) -> str:
    """Devices, processor and cores."""
    gpus = Counter(gpu.name for gpu in run.machine.gpus if not gpu.software)
    devices = [f"{times} × {name}" if times > 1 else name for name, times in sorted(gpus.items())]
    return listed([*devices, f"{run.machine.cpu} ({count(run.machine.cores, 'core')})"])


def judge_nodes(nodes: Sequence[Sequence[NodeRun]], keys: Sequence[NodeFigure]) -> list[JudgedNode]:
    """The verdicts on equal nodes. ``nodes``: the newest runs of each; ``keys``: what their figures are."""
    names, files = [runs[0].node for runs in nodes], [[run.path for run in runs] for runs in nodes]
    if len(nodes) < LEAST_NODES:
        why = f"too few nodes of a kind, at least {LEAST_NODES} are needed"
        return [JudgedNode(name, "unknown", own, why) for name, own in zip(names, files, strict=True)]
    tests = _tests(nodes, keys)
    beyond = tests.deviations > tests.limits[:, None, None]
    twice, once, tested = np.all(beyond, axis=1), np.any(beyond, axis=1), np.any(np.isfinite(tests.deviations), axis=1)
    verdicts = [_verdict(*(bool(at[:, i].any()) for at in (twice, once, tested))) for i in range(len(nodes))]
    healthy = [runs[0] for runs, verdict in zip(nodes, verdicts, strict=True) if verdict == "ok"]
    judged = []
    for i, verdict in enumerate(verdicts):
        why = "too few figures that the others have" if verdict == "unknown" else ""
        at_tests = np.flatnonzero((twice if verdict == "slow" else once)[:, i]).tolist()
        slow = [_slow_test(tests, test, i) for test in at_tests]
        settings = settings_apart(nodes[i][0], healthy) if slow else []
        found = zip(tests.names, tests.smallest[len(files[i]) - 1], tested[:, i], strict=True)
        smallest = {what: math.expm1(least) for what, least, measured in found if measured}
        judged.append(JudgedNode(names[i], verdict, files[i], why, slow, settings, smallest))
    return judged


def _verdict(twice: bool, once: bool, tested: bool) -> NodeVerdict:
    return "slow" if twice else "suspect" if once else "ok" if tested else "unknown"


def _tests(nodes: Sequence[Sequence[NodeRun]], keys: Sequence[NodeFigure]) -> NodeTests:
    """The tests on the figures that most nodes have."""
    logs = np.full((RUNS_OF_A_NODE, len(nodes), len(keys)), np.nan)
    for i, runs in enumerate(nodes):
        for number, run in enumerate(runs):
            logs[number, i, run.figures] = run.logs
    usual = np.isfinite(logs).any(axis=0).mean(axis=0) >= SHARED
    return tests_of(logs[:, :, usual], [*itertools.compress(keys, usual)])


def _slow_test(tests: NodeTests, test: int, node: int) -> SlowTest:
    """What a test says of a node that is beyond its limit."""
    runs = tests.deviations[test, :, node]
    middle, half = float(np.nanmean(runs)), float(tests.half_widths[test])
    slower, low, high = (math.expm1(at) for at in (middle, middle - half, middle + half))
    nearest = float(runs[runs > tests.limits[test]].min())
    return SlowTest(tests.names[test], slower, low, high, tests.chance(test, nearest))
