"""The verdicts on nodes as blocks, and as the data of ``--json``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from overhead.blocks.parts import Cell, Part, Table, Text, Tone
from overhead.errors import shell_command
from overhead.fleet.collecting import Collected
from overhead.fleet.judging import (
    DividedNodes,
    FleetVerdicts,
    JudgedNode,
    NodeGroup,
    NodeVerdict,
    NotJudged,
    SlowTest,
)
from overhead.fleet.node_files import NodePart
from overhead.results import code_of, to_builtins
from overhead.words import fleet as words
from overhead.words.reasons import sentence

_TONES: dict[NodeVerdict, Tone] = {"slow": "bad", "suspect": "unsure", "ok": "good"}
_MOST_AGAIN = 10
"""The most suspects for which a command is shown."""


def fleet_blocks(found: FleetVerdicts) -> Iterator[Part]:
    """How many nodes are slow, a row for each one that is not ok, what could have been found, what
    to do next.
    """
    yield Text([words.all_nodes(found.nodes, found.false_alarms)])
    if shown := [node for node in found.nodes if node.slow]:
        rows = [_row(node) for node in sorted(shown, key=lambda node: (node.verdict, node.name))]
        _, _, _, _, healthy_so_slow, _ = range(6)
        yield Table(words.NODES_NOT_OK, words.NODE_COLUMNS, rows, optional=(healthy_so_slow,))
    told: list[str] = []
    for group in found.groups:
        told += _group_sentences(group)
    yield Text(told)
    if found.skipped:
        yield Text([words.skipped(found.skipped)])
    if suspects := found.named("suspect"):
        files = [str(_next_file(Path(found.folder, node))) for node in suspects[:_MOST_AGAIN]]
        again = ["overhead", "run", "--profile", "node", "--out"]
        commands = [shell_command([*again, file]) for file in files]
        yield Text([words.ONE_MORE_RUN, *commands])


def _next_file(folder: Path) -> Path:
    names = (f"again-{number}.json" for number in itertools.count(1))
    return next(folder / name for name in names if not (folder / name).exists())


def _row(node: JudgedNode) -> list[str | Cell]:
    return [
        node.name,
        Cell(node.verdict, tone=_TONES.get(node.verdict, "")),
        "; ".join(words.part(one.what) for one in node.slow),
        "; ".join(map(words.slower_by, node.slow)),
        "; ".join(map(words.healthy_so_slow, node.slow)),
        words.settings_apart(node.settings),
    ]


def _group_sentences(group: NodeGroup) -> Iterator[str]:
    """How many nodes are ok, the smallest slowdowns that their runs find, and what was not judged
    of which nodes.
    """
    yield words.group(group)
    yield from map(words.divided, group.divided)
    for runs in sorted({len(node.runs) for node in group.nodes if node.smallest}):
        smallest: dict[NodePart, float] = {}
        for node in group.nodes:
            if len(node.runs) == runs:
                smallest |= node.smallest
        yield words.found_with(runs, smallest)
    for reasons, names in _unknown(group.nodes).items():
        yield words.unknown(names, reasons)
    for one, names in _not_judged(group.nodes).items():
        assert one.part is not None
        yield words.not_judged(one.part, one.why, names)


def _unknown(nodes: Sequence[JudgedNode]) -> dict[tuple[NotJudged, ...], list[str]]:
    """The names of the nodes that are unknown, by the reasons."""
    found: dict[tuple[NotJudged, ...], list[str]] = {}
    for node in nodes:
        if node.unknown:
            found.setdefault(tuple(node.unknown), []).append(node.name)
    return found


def _not_judged(nodes: Sequence[JudgedNode]) -> dict[NotJudged, list[str]]:
    """The names of the nodes by what of them was not judged and why, without what makes them
    unknown as a whole.
    """
    found: dict[NotJudged, list[str]] = {}
    for node in nodes:
        of_node = [NotJudged(part, why) for part, why in node.not_judged.items()]
        for one in of_node:
            if one not in node.unknown:
                found.setdefault(one, []).append(node.name)
    return found


def fleet_data(found: FleetVerdicts) -> dict[str, Any]:
    """The verdicts as dicts and lists that ``json`` can write: what is said in words, and beside it
    its code.
    """
    return {
        "folder": found.folder,
        "false_alarms": found.false_alarms,
        "groups": [_group_data(group) for group in found.groups],
        "skipped": {path: sentence(why) for path, why in found.skipped.items()},
        "skipped_codes": {path: code_of(why) for path, why in found.skipped.items()},
    }


def _group_data(group: NodeGroup) -> dict[str, Any]:
    return {
        "name": words.kind(group.kind),
        "kind": to_builtins(group.kind),
        "nodes": [_node_data(node) for node in group.nodes],
        "divided": [to_builtins(one) | _part_data(one) for one in group.divided],
    }


def _node_data(node: JudgedNode) -> dict[str, Any]:
    return {
        "name": node.name,
        "verdict": node.verdict,
        "runs": list(node.runs),
        "why": words.why_unknown(node.unknown),
        "why_codes": [code_of(one.why) for one in node.unknown],
        "slow": [to_builtins(one) | _part_data(one) for one in node.slow],
        "settings": [words.setting_apart(one) for one in node.settings],
        "settings_apart": to_builtins(node.settings),
        "smallest": {words.part(part): share for part, share in node.smallest.items()},
        "not_judged": {words.part(part): sentence(why) for part, why in node.not_judged.items()},
        "not_judged_codes": {
            words.part(part): code_of(why) for part, why in node.not_judged.items()
        },
    }


def _part_data(of: SlowTest | DividedNodes) -> dict[str, Any]:
    return {"what": words.part(of.what), "stack": of.what.stack, "side": of.what.side}


def collected_table(folder: Path, found: Mapping[str, Collected]) -> Table:
    """The files that each node sent, and what was wrong."""
    rows = [(name, str(len(one.files)), sentence(one.reason)) for name, one in found.items()]
    return Table(words.collected_files(folder), words.COLLECTED_COLUMNS, rows)


def collected_data(found: Mapping[str, Collected]) -> dict[str, Any]:
    """The same as ``--json`` prints it."""
    return {
        name: {
            "files": one.files,
            "reason": sentence(one.reason),
            "reason_code": code_of(one.reason),
        }
        for name, one in found.items()
    }
