"""The verdicts on nodes as blocks."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from overhead.blocks.parts import Part, Table, Text
from overhead.errors import shell_command
from overhead.fleet.judging import FleetVerdicts, JudgedNode, NodeGroup, NodeVerdict
from overhead.reading.format import TIMES, count, listed, number, percent, percent_spread, spread
from overhead.results import Value, Why, about, parts_of
from overhead.words.reasons import sentence

_NAMED = 10
"""The most nodes or files that a sentence names."""


def fleet_blocks(found: FleetVerdicts) -> Iterator[Part]:
    """How many nodes are slow, a row for each one that is not ok, what could have been found, what to do next."""
    nodes = [node for group in found.groups for node in group.nodes]
    expected = f"If all were healthy, at most {number(found.false_alarms)} would be expected to be called slow."
    yield Text([f"{count(len(nodes), 'node')}: {_counts(nodes)}. {expected}"])
    if shown := [node for node in nodes if node.slow]:
        columns = ["node", "verdict", "slow at", "slower by", "healthy nodes so slow", "what sets it apart"]
        rows = [_row(node) for node in sorted(shown, key=lambda node: (node.verdict, node.name))]
        yield Table("Nodes that are not ok", columns, rows, status=1, optional={4: 1})
    yield Text([sentence for group in found.groups for sentence in _group_sentences(group)])
    if found.skipped:
        yield Text([f"Skipped: {_named([f'{path} ({why})' for path, why in found.skipped.items()])}."])
    if suspects := found.named("suspect"):
        files = [str(_next_file(Path(found.folder, node))) for node in suspects[:_NAMED]]
        again = ["overhead", "run", "--profile", "node", "--out"]
        commands = [shell_command([*again, file]) for file in files]
        yield Text(["One more run on the node tells whether it is slow:", *commands])


def _next_file(folder: Path) -> Path:
    names = (f"again-{number}.json" for number in itertools.count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def _counts(nodes: Sequence[JudgedNode]) -> str:
    counts = Counter(node.verdict for node in nodes)
    return listed([f"{counts[verdict]} {verdict}" for verdict in get_args(NodeVerdict) if counts[verdict]])


def _row(node: JudgedNode) -> list[str]:
    cells = [
        [one.what for one in node.slow],
        [percent_spread(Value(one.slower, one.low, one.high)) for one in node.slow],
        [f"1 of {float(f'{1 / max(one.chance, 1e-9):.1g}'):,.0f}" for one in node.slow],
        node.settings or ["nothing in its files"],
    ]
    return [node.name, node.verdict, *map("; ".join, cells)]


def _group_sentences(group: NodeGroup) -> Iterator[str]:
    """How many nodes are ok, the smallest slowdowns that their runs find, and what was not judged of which nodes."""
    yield f"{group.name}: {_counts(group.nodes)}."
    for one in group.divided:
        times = spread(Value(one.times, one.low, one.high)) + TIMES
        slower, faster = (f"{count(len(names), 'node')} ({_named(names)})" for names in (one.slower, one.faster))
        yield f"Two groups of nodes, {one.what}: {slower} take {times} as long as {faster}."
    for runs in sorted({len(node.runs) for node in group.nodes if node.smallest}):
        own = {what: share for n in group.nodes if len(n.runs) == runs for what, share in n.smallest.items()}
        called = f"With {count(runs, 'run')} a node is called {'slow' if runs > 1 else 'suspect'}"
        yield f"{called} in 95 % from this slowdown: {_smallest(own)}."
    for why in dict.fromkeys(node.why for node in group.nodes if node.why):
        yield f"Unknown, {_named([node.name for node in group.nodes if node.why == why])}: {sentence(why)}."
    for (what, why), names in _not_judged(group.nodes).items():
        yield f"Not judged, {what}: {_named(names)}: {sentence(why)}."


def _not_judged(nodes: Sequence[JudgedNode]) -> dict[tuple[str, Why], list[str]]:
    """The names of the nodes by what of them was not judged and why, without what makes them unknown as a whole."""
    found: dict[tuple[str, Why], list[str]] = {}
    for node in nodes:
        for what, why in node.not_judged.items():
            if about(what, why) not in parts_of(node.why):
                found.setdefault((what, why), []).append(node.name)
    return found


def _smallest(shares: dict[str, float]) -> str:
    """The slowdowns of the whole node, and the least and the largest of a stack."""
    stacks = sorted((what for what in shares if "(" in what), key=shares.__getitem__)
    shown = [*(what for what in shares if "(" not in what), *dict.fromkeys([*stacks[:1], *stacks[-1:]])]
    return ", ".join(f"{what} {percent(shares[what])}" for what in shown)


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return listed([*names[:_NAMED], f"{more} more"] if more > 0 else [*names])
