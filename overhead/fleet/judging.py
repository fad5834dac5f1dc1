"""Judge the nodes in a folder: groups of equal nodes, and the verdict on each node."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from overhead.fleet.coverage import SHARED, NodeCoverage, figures_that_count, on_either_side
from overhead.fleet.model import FALSE_ALARMS, FLOORS, LEAST_NODES, NEWEST_RUNS, NodeTests, tests_of
from overhead.fleet.node_files import (
    JudgedFigure,
    NodeFiles,
    NodePart,
    NodeRun,
    NodeSide,
    read_nodes,
)
from overhead.fleet.settings import SettingApart, settings_apart
from overhead.measure.fitting.line import Floats, Mask
from overhead.results import Why, because

NodeVerdict = Literal["slow", "suspect", "partly ok", "unknown", "ok"]
"""``partly ok``: ok in what was judged, and some of it was not. ``unknown``: a whole side was not
judged.
"""
_VARYING = ("kernel", "os", "overhead")
"""Versions in which equal nodes may differ."""


@dataclass(frozen=True)
class SlowTest:
    """A test in which a node is slow or suspect. ``slower``: a share; ``low``, ``high``: less and
    more the spread of 95 % of the healthy nodes. ``chance``: at most this share of the healthy
    nodes is so far beyond a limit.
    """

    what: NodePart
    slower: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True)
class NotJudged:
    """Why a node is unknown: a part that was not judged, or a reason that is of the whole node
    (None).
    """

    part: NodePart | None
    why: Why


@dataclass(frozen=True)
class JudgedNode:
    """The verdict on a node. ``runs``: the files that count. ``unknown``: why it is that, each
    reason for itself.

    ``settings``: what sets it apart. ``smallest``: by test the smallest slowdown, as a share, that
    its runs find with 95 % power. ``not_judged``: by test or stack why the node was not judged
    there.
    """

    name: str
    verdict: NodeVerdict
    runs: Sequence[str] = ()
    unknown: Sequence[NotJudged] = ()
    slow: Sequence[SlowTest] = ()
    settings: Sequence[SettingApart] = ()
    smallest: Mapping[NodePart, float] = field(default_factory=dict)
    not_judged: Mapping[NodePart, Why] = field(default_factory=dict)


@dataclass(frozen=True)
class MachineKind:
    """What makes machines equal. ``gpus``: the names of the devices, each as often as it is
    there.
    """

    gpus: tuple[str, ...]
    cpu: str
    cores: int

    @classmethod
    def of(cls, run: NodeRun) -> MachineKind:
        """That of the machine of a run."""
        gpus = sorted(gpu.name for gpu in run.machine.gpus if not gpu.software)
        return cls(tuple(gpus), run.machine.cpu, run.machine.cores)


@dataclass(frozen=True)
class NodeKind:
    """What a group of nodes has in common. ``versions``: those in which it differs from other
    groups.
    """

    machine: MachineKind
    versions: Mapping[str, str]


@dataclass(frozen=True)
class NodeGroup:
    """Equal nodes. ``kind``: None where no file tells it. ``divided``: the tests by which they are
    not equal: two groups of nodes.
    """

    kind: NodeKind | None
    nodes: Sequence[JudgedNode]
    divided: Sequence[DividedNodes] = ()


@dataclass(frozen=True)
class DividedNodes:
    """A test by which the nodes are two groups, of which either may be the usual one. ``times``,
    with its 95 % interval: how many times as long the slower group takes.
    """

    what: NodePart
    slower: Sequence[str]
    faster: Sequence[str]
    times: float
    low: float
    high: float


@dataclass(frozen=True)
class FleetVerdicts:
    """The result of ``overhead fleet``. ``false_alarms``: at most so many slow nodes are expected
    if all are healthy. ``skipped``: the reason by file.
    """

    folder: str
    false_alarms: float
    groups: Sequence[NodeGroup]
    skipped: Mapping[str, Why]

    @property
    def nodes(self) -> list[JudgedNode]:
        """The nodes of all groups."""
        return list(itertools.chain.from_iterable(group.nodes for group in self.groups))

    def named(self, *verdicts: NodeVerdict) -> list[str]:
        """The names of the nodes with one of these verdicts."""
        return [node.name for node in self.nodes if node.verdict in verdicts]


def judge_fleet(folder: Path, now: datetime | None = None) -> FleetVerdicts:
    """The verdicts on all nodes in the folder. ``now``: no run is from a later time; None for the
    time of the call.

    Raises ``BadFile`` if no file can be read.
    """
    files = read_nodes(folder, now)
    runs = [own for own in files.runs.values() if own]
    groups = []
    for kind, nodes in _groups(runs):
        group = judge_nodes(nodes, [*files.keys])
        known = [
            _with_unread(node, own[0], files) for node, own in zip(group.nodes, nodes, strict=True)
        ]
        groups.append(dataclasses.replace(group, kind=kind, nodes=known))
    unread = [_without_runs(name, files) for name, own in files.runs.items() if not own]
    if unread:
        groups.append(NodeGroup(None, unread))
    judged = sum(node.verdict != "unknown" for group in groups for node in group.nodes)
    return FleetVerdicts(str(folder), FALSE_ALARMS * judged, groups, files.skipped)


def _with_unread(node: JudgedNode, newest: NodeRun, files: NodeFiles) -> JudgedNode:
    """The node, unknown instead of ok if a file that does not count may hold a newer run."""
    unread = files.unread.get(node.name, ())
    newer = [one for one in unread if not one.created or one.created >= newest.created]
    if not newer or node.verdict in ("slow", "suspect"):
        return node
    why = because("newest-run-unread", file=Path(newer[-1].path).name, why=newer[-1].reason)
    return dataclasses.replace(node, verdict="unknown", unknown=[NotJudged(None, why)])


def _without_runs(name: str, files: NodeFiles) -> JudgedNode:
    unread = files.unread.get(name, ())
    why = because("no-run-counts", why=unread[-1].reason) if unread else because("no-run-in-folder")
    return JudgedNode(name, "unknown", unknown=[NotJudged(None, why)])


def _groups(
    nodes: Sequence[Sequence[NodeRun]],
) -> Iterator[tuple[NodeKind, list[Sequence[NodeRun]]]]:
    """The kind of each group of equal nodes, and the newest runs of its nodes. ``nodes``: of each
    all runs.
    """
    by_machine: dict[MachineKind, list[Sequence[NodeRun]]] = defaultdict(list)
    for runs in nodes:
        by_machine[MachineKind.of(runs[0])].append(runs)
    for machine, own in by_machine.items():
        having = Counter(name for runs in own for name in runs[0].versions if name not in _VARYING)
        names = [name for name, times in having.items() if times >= SHARED * len(own)]
        by_versions: dict[tuple[str, ...], list[Sequence[NodeRun]]] = defaultdict(list)
        for runs in own:
            kinds = [
                (MachineKind.of(run), tuple(run.versions.get(name, "absent") for name in names))
                for run in runs
            ]
            equal = [run for run, kind in zip(runs, kinds, strict=True) if kind == kinds[0]]
            by_versions[kinds[0][1]].append(equal[:NEWEST_RUNS])
        for versions, group in by_versions.items():
            differs = [len({*values}) > 1 for values in zip(*by_versions, strict=True)]
            own_versions = dict(itertools.compress(zip(names, versions, strict=True), differs))
            yield NodeKind(machine, own_versions), group


def judge_nodes(nodes: Sequence[Sequence[NodeRun]], keys: Sequence[JudgedFigure]) -> NodeGroup:
    """The verdicts on equal nodes. ``nodes``: the newest runs of each; ``keys``: what their figures
    are.
    """
    names, files = [runs[0].node for runs in nodes], [[run.path for run in runs] for runs in nodes]
    if len(nodes) < LEAST_NODES:
        why = [NotJudged(None, because("too-few-nodes", least=LEAST_NODES))]
        return NodeGroup(
            None,
            [JudgedNode(name, "unknown", own, why) for name, own in zip(names, files, strict=True)],
        )
    logs = _logs(nodes, len(keys))
    has: Mask = np.isfinite(logs)
    in_any_run: Mask = np.any(has, axis=0)
    counted = figures_that_count(in_any_run, keys)
    tests = tests_of(logs[:, :, counted], [*itertools.compress(keys, counted)])
    coverage = NodeCoverage(nodes, keys, counted, on_either_side(has[0], keys))

    beyond = tests.deviations > tests.limits[:, None, None]
    twice, once, tested = (
        np.all(beyond, axis=1),
        np.any(beyond, axis=1),
        np.any(np.isfinite(tests.deviations), axis=1),
    )
    divided = [*_divided(tests, once, names)]
    of_all = _not_judged_anywhere(tests, divided)
    not_judged = [of_all | of_node for of_node in coverage.not_judged(tests.parts)]
    verdicts = [
        _verdict(
            bool(twice[:, i].any()), bool(once[:, i].any()), bool(tested[:, i].any()), not_judged[i]
        )
        for i in range(len(nodes))
    ]
    healthy = [
        runs[0]
        for runs, verdict in zip(nodes, verdicts, strict=True)
        if verdict in ("ok", "partly ok")
    ]
    judged = []
    for i, verdict in enumerate(verdicts):
        at_tests = np.flatnonzero((twice if verdict == "slow" else once)[:, i]).tolist()
        slow = [_slow_test(tests, test, i) for test in at_tests]
        settings = settings_apart(nodes[i][0], healthy) if slow else []
        found = zip(tests.parts, tests.smallest[len(files[i]) - 1], tested[:, i], strict=True)
        smallest = {part: math.expm1(least) for part, least, measured in found if measured}
        unknown = _why_unknown(not_judged[i]) if verdict == "unknown" else []
        judged.append(
            JudgedNode(
                names[i], verdict, files[i], unknown, slow, settings, smallest, not_judged[i]
            )
        )
    return NodeGroup(None, judged, divided)


def _verdict(
    twice: bool, once: bool, tested: bool, not_judged: Mapping[NodePart, Why]
) -> NodeVerdict:
    if twice:
        return "slow"
    if once:
        return "suspect"
    if not tested or any(part.is_whole_side for part in not_judged):
        return "unknown"
    return "partly ok" if not_judged else "ok"


def _why_unknown(not_judged: Mapping[NodePart, Why]) -> list[NotJudged]:
    sides = [NodePart(side=side) for side in get_args(NodeSide)]
    found = [NotJudged(side, not_judged[side]) for side in sides if side in not_judged]
    return found or [NotJudged(None, because("too-few-common-figures"))]


def _logs(nodes: Sequence[Sequence[NodeRun]], figures: int) -> Floats:
    """ln(figure) by run, node and figure, NaN where there is none."""
    logs = np.full((NEWEST_RUNS, len(nodes), figures), np.nan)
    for i, runs in enumerate(nodes):
        for number, run in enumerate(runs):
            logs[number, i, run.figures] = run.logs
    return logs


def _divided(tests: NodeTests, beyond: Mask, names: Sequence[str]) -> Iterator[DividedNodes]:
    """The tests by which the nodes are two groups. ``beyond``: by test and node whether a limit
    names the node.
    """
    for test, what in enumerate(tests.parts):
        found = tests.two_groups(test, ~beyond[test])
        if found is not None:
            slower, faster = (
                [names[i] for i in sorted(group)] for group in (found.slower, found.faster)
            )
            yield DividedNodes(
                what, slower, faster, *map(math.exp, (found.log, found.low, found.high))
            )
        elif (fast := tests.far_faster(test)).any():
            yield _few_fast(tests, test, fast, names)


def _few_fast(tests: NodeTests, test: int, fast: Mask, names: Sequence[str]) -> DividedNodes:
    """Few nodes that are far faster than the rest: as well may the rest be slow, such as 9 of 10
    nodes.
    """
    runs = tests.deviations[test][:, fast]
    log, half = -float(np.nanmean(runs)), float(tests.half_widths[test])
    faster = list(itertools.compress(names, fast))
    measured = np.any(np.isfinite(tests.deviations[test]), axis=0)
    slower = list(itertools.compress(names, measured & ~fast))
    return DividedNodes(
        tests.parts[test], slower, faster, *map(math.exp, (log, log - half, log + half))
    )


def _not_judged_anywhere(tests: NodeTests, divided: Sequence[DividedNodes]) -> dict[NodePart, Why]:
    """By test why it judges no node: there are two groups of nodes, or the nodes differ too
    much.
    """
    found: dict[NodePart, Why] = {}
    for test, what in enumerate(tests.parts):
        if spread := tests.too_wide(test):
            usual = math.expm1(FLOORS[tests.kinds[test]])
            found[what] = because("nodes-differ-too-much", spread=math.expm1(spread), usual=usual)
    for one in divided:
        found[one.what] = because(
            "two-groups-of-nodes", slower=len(one.slower), faster=len(one.faster)
        )
    return found


def _slow_test(tests: NodeTests, test: int, node: int) -> SlowTest:
    """What a test says of a node that is beyond its limit."""
    runs = tests.deviations[test, :, node]
    middle, half = float(np.nanmean(runs)), float(tests.half_widths[test])
    slower, low, high = (math.expm1(at) for at in (middle, middle - half, middle + half))
    nearest = float(runs[runs > tests.limits[test]].min())
    return SlowTest(tests.parts[test], slower, low, high, tests.chance(test, nearest))
