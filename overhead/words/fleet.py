"""The verdicts on the nodes of a fleet in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import get_args

from overhead.fleet.judging import (
    DividedNodes,
    JudgedNode,
    MachineKind,
    NodeGroup,
    NodeKind,
    NodeVerdict,
    NotJudged,
    SlowTest,
)
from overhead.fleet.node_files import NodePart
from overhead.fleet.settings import SettingApart
from overhead.results import Value, Why
from overhead.words.format import TIMES, count, listed, number, percent, percent_spread, spread
from overhead.words.reasons import sentence

NODE_COLUMNS = ("node", "verdict", "slow at", "slower by", "healthy nodes as slow", "differs in")
NODES_NOT_OK = "Nodes that are not ok"
ONE_MORE_RUN = "Run this on the node to learn whether it is slow:"
COLLECTED_COLUMNS = ("node", "files", "")
_ALL_DEVICES = "all devices together"
_UNKNOWN_MACHINE = "Unknown machine"
_NAMED = 10
"""The most nodes or files that a sentence names."""


def part(of: NodePart) -> str:
    """What of a node is judged: ``host``, ``torch (host)``, or ``torch`` on all sides."""
    if of.side is None:
        return of.stack or _ALL_DEVICES
    return f"{of.stack} ({of.side})" if of.stack else of.side


def machine(of: MachineKind) -> str:
    """A kind of machine in words: its devices, its processor and its cores."""
    parts = []
    for name, number_of in Counter(of.gpus).items():
        parts.append(f"{number_of} × {name}" if number_of > 1 else name)
    cores = count(of.cores, "core")
    parts.append(f"{of.cpu} ({cores})")
    return listed(parts)


def kind(of: NodeKind | None) -> str:
    """The machine of a group, and the versions in which it differs from other groups."""
    if of is None:
        return _UNKNOWN_MACHINE
    versions = [f"{name} {version}" for name, version in of.versions.items()]
    return ", ".join([machine(of.machine), *versions])


def counted(nodes: Sequence[JudgedNode]) -> str:
    """How many nodes have each verdict."""
    counts = Counter(node.verdict for node in nodes)
    verdicts = [verdict for verdict in get_args(NodeVerdict) if counts[verdict]]
    return listed([f"{counts[verdict]} {verdict}" for verdict in verdicts])


def all_nodes(nodes: Sequence[JudgedNode], false_alarms: float) -> str:
    """The verdicts on all nodes (machines) of a fleet, and how many false alarms to expect.
    ``false_alarms``: how many nodes at most would be called slow if all were healthy.
    """
    verdicts = f"{count(len(nodes), 'node')}: {counted(nodes)}."
    if not false_alarms:  # no node was judged
        return verdicts
    # A test of many nodes calls a healthy one slow now and then.
    expected = (
        f"If all were healthy, {number(false_alarms)} of them or less would be called slow"
        " (expected false alarms)."
    )
    return f"{verdicts} {expected}"


def slower_by(test: SlowTest) -> str:
    """By how much a node is slower in a test."""
    return percent_spread(Value(test.slower, test.low, test.high))


def healthy_so_slow(test: SlowTest) -> str:
    """How many healthy nodes are as slow in a test: ``1 of 30,000``."""
    # ``chance``: at most this share of the healthy nodes is so slow; 0 cannot be divided by.
    nodes = 1 / max(test.chance, 1e-9)
    one_digit = float(f"{nodes:.1g}")
    return f"1 of {one_digit:,.0f}"


def setting_apart(of: SettingApart) -> str:
    """A setting of a node that sets it apart."""
    return f"{of.name} {of.own} (others {of.others})"


def settings_apart(of: Sequence[SettingApart]) -> str:
    """All settings that set a node apart."""
    return "; ".join(map(setting_apart, of)) or "no recorded setting"


def group(of: NodeGroup) -> str:
    """The verdicts on the nodes of a group."""
    return f"{kind(of.kind)}: {counted(of.nodes)}."


def divided(of: DividedNodes) -> str:
    """That the nodes, which should be alike, are two groups by one test, and how much slower one
    is.
    """
    # ``times``: how many times as long the slower nodes take, with its interval.
    times = spread(Value(of.times, of.low, of.high)) + TIMES
    slower, faster = _named_nodes(of.slower), _named_nodes(of.faster)
    return (
        f"There are two groups of nodes, {part(of.what)}: {slower} take {times} as long as"
        f" {faster}."
    )


def _named_nodes(names: Sequence[str]) -> str:
    """``3 nodes (a, b and c)``."""
    nodes = count(len(names), "node")
    return f"{nodes} ({named(names)})"


def found_with(runs: int, smallest: Mapping[NodePart, float]) -> str:
    """How sensitive the test is: the smallest slowdowns that ``runs`` runs of a node reveal, of the
    whole node, and of its stacks the least and the greatest. ``smallest``: all, as shares.
    """
    # Tests of a side of the node, or of all of its devices, name no stack.
    whole_node = [test for test in smallest if not test.stack]
    stacks = [test for test in smallest if test.stack]
    # Of all stacks, the one with the smallest slowdown and the one with the greatest are named.
    stacks.sort(key=lambda test: smallest[test])
    least_and_most = dict.fromkeys([*stacks[:1], *stacks[-1:]])  # one, if there is one stack
    texts = []
    for test in (*whole_node, *least_and_most):
        # part(): the name of what the test judges.
        texts.append(f"{part(test)} {percent(smallest[test])}")
    verdict = "slow" if runs > 1 else "suspect"  # one run alone does not prove it
    with_runs = count(runs, "run")
    return (
        f"With {with_runs}, a node that is this much slower is called {verdict} in 95 % of cases:"
        f" {', '.join(texts)}."
    )


def why_unknown(reasons: Sequence[NotJudged]) -> str:
    """Why a node is unknown; '' without a reason."""
    return "; ".join(_of_part(reason.part, reason.why) for reason in reasons)


def _of_part(of: NodePart | None, why: Why) -> str:
    """The reason, and what of the node it is about, if that is not the whole node."""
    return f"{part(of)}: {sentence(why)}" if of else sentence(why)


def unknown(names: Sequence[str], reasons: Sequence[NotJudged]) -> str:
    """Which nodes are unknown for these reasons."""
    return f"Unknown: {named(names)}, because {why_unknown(reasons)}."


def not_judged(of: NodePart, why: Why, names: Sequence[str]) -> str:
    """What of these nodes was not judged, and why."""
    return f"Not judged, {part(of)} of {named(names)}: {sentence(why)}."


def skipped(files: Mapping[str, Why]) -> str:
    """The files that do not count, and why."""
    texts = [f"{path} ({sentence(why)})" for path, why in files.items()]
    return f"Skipped: {named(texts)}."


def named(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    shown = list(names[:_NAMED])
    left_out = len(names) - len(shown)
    if left_out:
        shown.append(f"{left_out} more")
    return listed(shown)


def gate_not_passed(nodes: Sequence[JudgedNode], not_in_full: Sequence[JudgedNode]) -> str:
    """Why ``overhead fleet`` fails although no node is slow: nodes that could not be judged in
    full. Only the first one's reason is told.
    """
    first = not_in_full[0]
    many = f"{len(not_in_full)} of {len(nodes)} nodes could not be judged in full"
    why = _why_not_in_full(first)
    return f"the gate did not pass: {many}; the first: {first.name}, {first.verdict}: {why}"


def _why_not_in_full(node: JudgedNode) -> str:
    """Why a node is not judged in full: why nothing is known of it, else why the first part of it
    (its CPU, a stack) is not judged.
    """
    why = why_unknown(node.unknown)
    if why:
        return why
    for of, reason in node.not_judged.items():  # only the first
        return _of_part(of, reason)
    # All of it was judged, and it is only suspect.
    return "one more run on it is needed"


def collected_files(folder: object) -> str:
    """The title of the table of collected files."""
    return f"Files of the nodes, in {folder}"
