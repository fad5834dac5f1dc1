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
    """Devices, processor and cores."""
    devices = [
        f"{times} × {name}" if times > 1 else name for name, times in Counter(of.gpus).items()
    ]
    return listed([*devices, f"{of.cpu} ({count(of.cores, 'core')})"])


def kind(of: NodeKind | None) -> str:
    """The machine of a group, and the versions in which it differs from other groups."""
    if of is None:
        return _UNKNOWN_MACHINE
    return ", ".join(
        [machine(of.machine), *(f"{name} {version}" for name, version in of.versions.items())]
    )


def counted(nodes: Sequence[JudgedNode]) -> str:
    """How many nodes have each verdict."""
    counts = Counter(node.verdict for node in nodes)
    return listed(
        [f"{counts[verdict]} {verdict}" for verdict in get_args(NodeVerdict) if counts[verdict]]
    )


def all_nodes(nodes: Sequence[JudgedNode], false_alarms: float) -> str:
    """The verdicts on all nodes. ``false_alarms``: the number of slow ones that is expected if all
    are healthy.
    """
    told = f"{count(len(nodes), 'node')}: {counted(nodes)}."
    if not false_alarms:  # no node was judged
        return told
    expected = (
        f"If all were healthy, {number(false_alarms)} of them or less would be called slow"
        " (expected false alarms)."
    )
    return f"{told} {expected}"


def slower_by(test: SlowTest) -> str:
    """By how much a node is slower in a test."""
    return percent_spread(Value(test.slower, test.low, test.high))


def healthy_so_slow(test: SlowTest) -> str:
    """How many healthy nodes are as slow in a test: ``1 of 30,000``."""
    return f"1 of {float(f'{1 / max(test.chance, 1e-9):.1g}'):,.0f}"


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
    """Two groups of nodes where one was expected."""
    times = spread(Value(of.times, of.low, of.high)) + TIMES
    slower, faster = (
        f"{count(len(names), 'node')} ({named(names)})" for names in (of.slower, of.faster)
    )
    return (
        f"There are two groups of nodes, {part(of.what)}: {slower} take {times} as long as"
        f" {faster}."
    )


def found_with(runs: int, smallest: Mapping[NodePart, float]) -> str:
    """The smallest slowdowns that so many runs of a node find: of the whole node, and of a stack
    the least and most.
    """
    stacks = sorted((test for test in smallest if test.stack), key=smallest.__getitem__)
    whole = [test for test in smallest if not test.stack]
    shown = [*whole, *dict.fromkeys([*stacks[:1], *stacks[-1:]])]
    told = ", ".join(f"{part(test)} {percent(smallest[test])}" for test in shown)
    called = "slow" if runs > 1 else "suspect"
    return (
        f"With {count(runs, 'run')}, a node that is this much slower is called {called} in 95 % of"
        f" cases: {told}."
    )


def why_unknown(reasons: Sequence[NotJudged]) -> str:
    """Why a node is unknown; '' without a reason."""
    return "; ".join(_of_part(one.part, one.why) for one in reasons)


def _of_part(of: NodePart | None, why: Why) -> str:
    return f"{part(of)}: {sentence(why)}" if of else sentence(why)


def unknown(names: Sequence[str], reasons: Sequence[NotJudged]) -> str:
    """Which nodes are unknown for these reasons."""
    return f"Unknown: {named(names)}, because {why_unknown(reasons)}."


def not_judged(of: NodePart, why: Why, names: Sequence[str]) -> str:
    """What of these nodes was not judged, and why."""
    return f"Not judged, {part(of)} of {named(names)}: {sentence(why)}."


def skipped(files: Mapping[str, Why]) -> str:
    """The files that do not count, and why."""
    return f"Skipped: {named([f'{path} ({sentence(why)})' for path, why in files.items()])}."


def named(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = len(names) - _NAMED
    return listed([*names[:_NAMED], f"{more} more"] if more > 0 else [*names])


def gate_not_passed(nodes: Sequence[JudgedNode], not_in_full: Sequence[JudgedNode]) -> str:
    """Why the gate did not pass, although no node is slow: the nodes that are not judged in
    full.
    """
    first = not_in_full[0]
    why = why_unknown(first.unknown)
    if not why:
        why = next(
            (_of_part(of, one) for of, one in first.not_judged.items()),
            "one more run on it is needed",
        )
    many = f"{len(not_in_full)} of {len(nodes)} nodes could not be judged in full"
    return f"the gate did not pass: {many}; the first: {first.name}, {first.verdict}: {why}"


def collected_files(folder: object) -> str:
    """The title of the table of collected files."""
    return f"Files of the nodes, in {folder}"
