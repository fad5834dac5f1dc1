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
from typing import Literal, NamedTuple, get_args

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
    """The verdict on one node of a cluster. ``runs``: the files that count. ``unknown``: why it is
    that, each reason for itself. ``slow``: the tests in which it is slow or suspect.

    ``settings``: what sets it apart from healthy nodes. ``smallest``: by test the smallest
    slowdown, as a share, that its runs find with 95 % power. ``not_judged``: by test or stack why
    the node was not judged there.
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
    """The verdicts on all nodes of a cluster whose files are in the folder. Only equal nodes are
    compared, so they are judged group by group. ``now``: no run is from a later time; None for the
    time of the call.

    Raises ``BadFile`` if no file can be read.
    """
    files = read_nodes(folder, now)
    with_runs = [runs for runs in files.runs.values() if runs]
    # Groups of equal nodes, then one of all nodes without a run that counts.
    groups = []
    for kind, nodes in _groups(with_runs):
        # ``keys``: what the figures are, in the order of the indices by which the runs name them.
        group = judge_nodes(nodes, [*files.keys])
        judged = []
        for node, runs in zip(group.nodes, nodes, strict=True):
            judged.append(_with_unread(node, runs[0], files))
        groups.append(dataclasses.replace(group, kind=kind, nodes=judged))
    # A node without a run is unknown, and says why.
    without_runs = [_without_runs(name, files) for name, runs in files.runs.items() if not runs]
    if without_runs:
        groups.append(NodeGroup(None, without_runs))

    # Each node that was judged may be a false alarm with the same small probability.
    judged_nodes = 0
    for group in groups:
        judged_nodes += len([node for node in group.nodes if node.verdict != "unknown"])
    return FleetVerdicts(str(folder), FALSE_ALARMS * judged_nodes, groups, files.skipped)


def _with_unread(node: JudgedNode, newest: NodeRun, files: NodeFiles) -> JudgedNode:
    """The node; but unknown in place of ok or partly ok if a file of it could not be read or does
    not count, and may hold a newer run: that may show that the node has become slow. ``newest``:
    its newest run that counts. A node that is slow or suspect already stays so.
    """
    if node.verdict in ("slow", "suspect"):
        return node
    # Files without a date may be newer than any.
    may_be_newer = []
    for file in files.unread.get(node.name, ()):
        if not file.created or file.created >= newest.created:
            may_be_newer.append(file)
    if not may_be_newer:
        return node
    # The last one that was read stands for all.
    last = may_be_newer[-1]
    why = because("newest-run-unread", file=Path(last.path).name, why=last.reason)
    return dataclasses.replace(node, verdict="unknown", unknown=[NotJudged(None, why)])


def _without_runs(name: str, files: NodeFiles) -> JudgedNode:
    """A node of which no run counts, with the reason."""
    why: Why = because("no-run-in-folder")
    unread = files.unread.get(name, ())
    if unread:
        why = because("no-run-counts", why=unread[-1].reason)
    return JudgedNode(name, "unknown", unknown=[NotJudged(None, why)])


class _EqualNodes(NamedTuple):
    """Nodes that are compared with each other: of each the newest runs, the newest first."""

    kind: NodeKind
    nodes: list[Sequence[NodeRun]]


def _groups(nodes: Sequence[Sequence[NodeRun]]) -> Iterator[_EqualNodes]:
    """The groups of nodes that are compared with each other: with the same devices, processor and
    versions of packages. ``nodes``: of each all runs, the newest first; a group has the few newest
    of each.
    """
    # First by machine; then by equal versions of the packages that most nodes of a machine have.
    by_machine: dict[MachineKind, list[Sequence[NodeRun]]] = defaultdict(list)
    for runs in nodes:
        by_machine[MachineKind.of(runs[0])].append(runs)
    for machine, nodes_of_machine in by_machine.items():
        # ``names``: of these packages. The versions of kernel, operating system and this suite may
        # differ, so they are not among them.
        names = _common_versions(nodes_of_machine)
        by_versions: dict[tuple[str, ...], list[Sequence[NodeRun]]] = defaultdict(list)
        for runs in nodes_of_machine:
            # The versions of the packages ``names`` in this run, "absent" for one that it lacks.
            newest_versions = _versions_of(runs[0], names)
            # An older run on another machine, or with other versions, says nothing of this node.
            equal = []
            for run in runs:
                if MachineKind.of(run) == machine and _versions_of(run, names) == newest_versions:
                    equal.append(run)
            by_versions[newest_versions].append(equal[:NEWEST_RUNS])
        for versions, group in by_versions.items():
            # A group is named only by the versions in which groups of this machine differ.
            differing = {}
            for column, name in enumerate(names):
                if len({others[column] for others in by_versions}) > 1:
                    differing[name] = versions[column]
            yield _EqualNodes(NodeKind(machine, differing), group)


def _common_versions(nodes: Sequence[Sequence[NodeRun]]) -> list[str]:
    """The packages whose versions make nodes equal or not: those that most of the nodes have."""
    having: Counter[str] = Counter()
    for runs in nodes:
        having.update(name for name in runs[0].versions if name not in _VARYING)
    return [name for name, times in having.items() if times >= SHARED * len(nodes)]


def _versions_of(run: NodeRun, names: Sequence[str]) -> tuple[str, ...]:
    return tuple(run.versions.get(name, "absent") for name in names)


def judge_nodes(nodes: Sequence[Sequence[NodeRun]], keys: Sequence[JudgedFigure]) -> NodeGroup:
    """The verdicts on equal nodes: slow if each of its newest runs is beyond the limit of one test.
    ``nodes``: the newest runs of each, the newest first; ``keys``: what the figures are to which
    the indices of the runs refer.
    """
    if len(nodes) < LEAST_NODES:
        too_few = NotJudged(None, because("too-few-nodes", least=LEAST_NODES))
        return NodeGroup(None, [_unknown_node(runs, too_few) for runs in nodes])
    # First the data (ln of each figure by run, node and figure; NaN where a run lacks it), which
    # figures count, and the tests over them.
    logs = _logs(nodes, len(keys))
    has_figure: Mask = np.isfinite(logs)
    in_any_run: Mask = np.any(has_figure, axis=0)
    # ``counted``: a mask, by figure.
    counted = figures_that_count(in_any_run, keys)
    tests = tests_of(logs[:, :, counted], [*itertools.compress(keys, counted)])
    # A node must have a figure in its newest run: an older one does not show the node as it is.
    # ``[0]``: the newest run.
    coverage = NodeCoverage(nodes, keys, counted, on_either_side(has_figure[0], keys))

    # Then the answers of the tests, and the verdict on each node (by its position ``i``).
    names = [runs[0].node for runs in nodes]
    # ``once``: by test and node, whether any of its runs is beyond the limit.
    answers = _Answers.of(tests)
    divided = _divided(tests, answers.once, names)
    # Tests that judge no node: they are noted for every node, in addition to its own reasons.
    judges_no_node = _not_judged_anywhere(tests, divided)
    not_judged = []
    for of_node in coverage.not_judged(tests.parts):
        # Where both have a reason, that of the node stays.
        not_judged.append(judges_no_node | of_node)
    verdicts = [answers.verdict(i, not_judged[i]) for i in range(len(nodes))]

    # Settings of slow nodes are compared with those of the others.
    healthy = []
    for runs, verdict in zip(nodes, verdicts, strict=True):
        if verdict in ("ok", "partly ok"):
            healthy.append(runs[0])
    judged = []
    for i, (runs, verdict) in enumerate(zip(nodes, verdicts, strict=True)):
        # The tests in which it is slow, and by test the smallest slowdown that so many runs find.
        slow = [_slow_test(tests, test, i) for test in answers.slow_tests(i, verdict)]
        smallest = {}
        for test in np.flatnonzero(answers.tested[:, i]).tolist():
            # The row is by number of runs, from 1 on; it is ln(1 + slowdown).
            log_smallest = tests.smallest[len(runs) - 1, test]
            smallest[tests.parts[test]] = math.expm1(log_smallest)
        node = JudgedNode(
            names[i],
            verdict,
            [run.path for run in runs],
            unknown=_why_unknown(not_judged[i]) if verdict == "unknown" else [],
            slow=slow,
            settings=settings_apart(runs[0], healthy) if slow else [],
            smallest=smallest,
            not_judged=not_judged[i],
        )
        judged.append(node)
    return NodeGroup(None, judged, divided)


def _unknown_node(runs: Sequence[NodeRun], why: NotJudged) -> JudgedNode:
    return JudgedNode(runs[0].node, "unknown", [run.path for run in runs], [why])


@dataclass(frozen=True)
class _Answers:
    """What the tests say of the nodes, by test and node. ``tested``: a run of the node has a
    result; ``once``: a run is beyond the limit of the test, that is, slow; ``twice``: all of its
    runs are.
    """

    tested: Mask
    once: Mask
    twice: Mask

    @classmethod
    def of(cls, tests: NodeTests) -> _Answers:
        # Axes of the deviations: test, run, node. A limit for each test; over the runs any, or all.
        beyond = tests.deviations > tests.limits[:, None, None]
        tested: Mask = np.any(np.isfinite(tests.deviations), axis=1)
        return cls(tested, np.any(beyond, axis=1), np.all(beyond, axis=1))

    def verdict(self, node: int, not_judged: Mapping[NodePart, Why]) -> NodeVerdict:
        """The verdict on a node, by its position. One slow run makes it suspect, since it may be
        chance; only if all are slow in the same test, it is slow. ``not_judged``: the parts of it
        that were not judged, and why; a whole side among them leaves it unknown.
        """
        # A run that is missing is beyond no limit, so a node with one run is suspect at most.
        if self.twice[:, node].any():
            return "slow"
        if self.once[:, node].any():
            return "suspect"
        lacks_side = any(part.is_whole_side for part in not_judged)
        if lacks_side or not self.tested[:, node].any():
            return "unknown"
        return "partly ok" if not_judged else "ok"

    def slow_tests(self, node: int, verdict: NodeVerdict) -> list[int]:
        """The tests that made the verdict: of a slow node only those that all runs fail."""
        beyond = self.twice if verdict == "slow" else self.once
        tests: list[int] = np.flatnonzero(beyond[:, node]).tolist()
        return tests


def _why_unknown(not_judged: Mapping[NodePart, Why]) -> list[NotJudged]:
    """The reasons of a node that is unknown: the whole sides (host, device, all devices together)
    that were not judged; without one, no test had enough figures of it.
    """
    reasons = []
    for side in get_args(NodeSide):
        whole_side = NodePart(side=side)
        if whole_side in not_judged:
            reasons.append(NotJudged(whole_side, not_judged[whole_side]))
    return reasons or [NotJudged(None, because("too-few-common-figures"))]


def _logs(nodes: Sequence[Sequence[NodeRun]], figures: int) -> Floats:
    """ln(figure) by run, node and figure, NaN where there is none."""
    logs = np.full((NEWEST_RUNS, len(nodes), figures), np.nan)
    for i, runs in enumerate(nodes):
        for number, run in enumerate(runs):
            logs[number, i, run.figures] = run.logs
    return logs


def _divided(tests: NodeTests, beyond: Mask, names: Sequence[str]) -> list[DividedNodes]:
    """The tests by which the nodes are not equal, but two groups: of nodes that no limit names, or
    a few that are far faster than the rest. Either group may be the usual one, so such a test
    judges no node. ``beyond``: by test and node whether the node is slow; ``names``: of the nodes.
    """
    divided = []
    for test, part in enumerate(tests.parts):
        # Two groups among the nodes that no limit names; or a few far faster than all the others.
        groups = tests.two_groups(test, ~beyond[test])
        far_faster = tests.far_faster(test)
        if groups is not None:
            slower = [names[i] for i in sorted(groups.slower)]
            faster = [names[i] for i in sorted(groups.faster)]
            # Logarithms of the ratio of both groups and its interval.
            log_times = (groups.log, groups.low, groups.high)
            divided.append(DividedNodes(part, slower, faster, *map(math.exp, log_times)))
        elif far_faster.any():
            divided.append(_few_fast(tests, test, far_faster, names))
    return divided


def _few_fast(tests: NodeTests, test: int, fast: Mask, names: Sequence[str]) -> DividedNodes:
    """The division of the nodes into a few that are far faster and the rest, in one test. The rest
    may be the slow ones, such as 9 of 10 nodes, which no limit finds, since limits are set by the
    most nodes. ``fast``: by node.
    """
    # The others are at the level, 0, so the fast ones are below it by ln of the ratio. Over all
    # runs of the fast nodes.
    log_times = -float(np.nanmean(tests.deviations[test][:, fast]))
    half_width = float(tests.half_widths[test])
    measured = np.any(np.isfinite(tests.deviations[test]), axis=0)
    slower = list(itertools.compress(names, measured & ~fast))
    faster = list(itertools.compress(names, fast))
    return DividedNodes(
        tests.parts[test],
        slower,
        faster,
        times=math.exp(log_times),
        low=math.exp(log_times - half_width),
        high=math.exp(log_times + half_width),
    )


def _not_judged_anywhere(tests: NodeTests, divided: Sequence[DividedNodes]) -> dict[NodePart, Why]:
    """By test why it judges no node: the nodes differ so much that a slow one cannot be told, or
    they are two groups, of which either may be the slow one. ``divided``: the latter tests.
    """
    reasons: dict[NodePart, Why] = {}
    for test, part in enumerate(tests.parts):
        log_spread = tests.too_wide(test)
        if log_spread:
            # From logarithms to shares: exp(x) - 1.
            spread = math.expm1(log_spread)
            usual = math.expm1(FLOORS[tests.kinds[test]])
            reasons[part] = because("nodes-differ-too-much", spread=spread, usual=usual)
    for groups in divided:
        reasons[groups.what] = because(
            "two-groups-of-nodes", slower=len(groups.slower), faster=len(groups.faster)
        )
    return reasons


def _slow_test(tests: NodeTests, test: int, node: int) -> SlowTest:
    """How much slower a node is in a test whose limit a run of it exceeds: the mean of its runs
    with a range, as shares. ``chance`` is computed from the run that is nearest to the limit, the
    weakest evidence.
    """
    # Of each run of the node, NaN where it has no result.
    deviations = tests.deviations[test, :, node]
    log_slower = float(np.nanmean(deviations))
    half_width = float(tests.half_widths[test])
    nearest_to_limit = float(deviations[deviations > tests.limits[test]].min())
    return SlowTest(
        tests.parts[test],
        slower=math.expm1(log_slower),
        low=math.expm1(log_slower - half_width),
        high=math.expm1(log_slower + half_width),
        chance=tests.chance(test, nearest_to_limit),
    )
