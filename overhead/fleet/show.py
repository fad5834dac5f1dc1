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
_HEALTHY_SO_SLOW = words.NODE_COLUMNS.index("healthy nodes as slow")
"""The column that a narrow terminal hides first."""
_MOST_AGAIN = 10
"""The most suspects for which a command is shown."""


def fleet_blocks(found: FleetVerdicts) -> Iterator[Part]:
    """The verdicts on the nodes as the terminal and Markdown show them: how many nodes are slow, a
    row for each that is slow or suspect, for each group what could have been found and what was not
    judged, and the commands that measure suspects once more.
    """
    yield Text([words.all_nodes(found.nodes, found.false_alarms)])
    # ``slow``: the tests in which a node is slow or suspect.
    not_ok = [node for node in found.nodes if node.slow]
    if not_ok:
        # "slow" comes before "suspect".
        not_ok.sort(key=lambda node: (node.verdict, node.name))
        rows = [_row(node) for node in not_ok]
        # ``optional``: the column that a narrow terminal leaves out first.
        yield Table(words.NODES_NOT_OK, words.NODE_COLUMNS, rows, optional=(_HEALTHY_SO_SLOW,))
    sentences: list[str] = []
    for group in found.groups:
        sentences += _group_sentences(group)
    yield Text(sentences)
    if found.skipped:
        yield Text([words.skipped(found.skipped)])
    suspects = found.named("suspect")
    if suspects:
        folder = Path(found.folder)
        # A second run tells: a node that is slow in both is slow.
        commands = [_command_for_again(folder / node) for node in suspects[:_MOST_AGAIN]]
        yield Text([words.ONE_MORE_RUN, *commands])


def _command_for_again(folder: Path) -> str:
    """The command that measures a node once more, into the next free file of its folder."""
    for number in itertools.count(1):
        file = folder / f"again-{number}.json"
        if not file.exists():
            break
    return shell_command(["overhead", "run", "--profile", "node", "--out", str(file)])


def _row(node: JudgedNode) -> list[str | Cell]:
    verdict = Cell(node.verdict, tone=_TONES.get(node.verdict, ""))
    slow_at = "; ".join(words.part(test.what) for test in node.slow)
    slower_by = "; ".join(map(words.slower_by, node.slow))
    healthy_so_slow = "; ".join(map(words.healthy_so_slow, node.slow))
    differs_in = words.settings_apart(node.settings)
    return [node.name, verdict, slow_at, slower_by, healthy_so_slow, differs_in]


def _group_sentences(group: NodeGroup) -> Iterator[str]:
    """What is to say of a group of equal nodes: how many are ok, the smallest slowdowns that their
    runs find, and what was not judged of which nodes. A smallest slowdown depends on the number of
    runs of a node, so nodes with as many runs share a sentence.
    """
    yield words.group(group)
    # ``divided``: the tests by which the nodes are two groups, of which either may be the slow one.
    yield from map(words.divided, group.divided)
    # By number of runs of a node: in each test the smallest slowdown found.
    smallest_by_runs: dict[int, dict[NodePart, float]] = {}
    for node in group.nodes:
        if node.smallest:
            smallest_by_runs.setdefault(len(node.runs), {}).update(node.smallest)
    for runs in sorted(smallest_by_runs):
        yield words.found_with(runs, smallest_by_runs[runs])
    for reasons, names in _unknown(group.nodes).items():
        yield words.unknown(names, reasons)
    for not_judged, names in _not_judged(group.nodes).items():
        assert not_judged.part is not None
        yield words.not_judged(not_judged.part, not_judged.why, names)


def _unknown(nodes: Sequence[JudgedNode]) -> dict[tuple[NotJudged, ...], list[str]]:
    """The names of the nodes that are unknown, by the reasons."""
    names: dict[tuple[NotJudged, ...], list[str]] = {}
    for node in nodes:
        if node.unknown:
            names.setdefault(tuple(node.unknown), []).append(node.name)
    return names


def _not_judged(nodes: Sequence[JudgedNode]) -> dict[NotJudged, list[str]]:
    """The names of the nodes by what of them was not judged and why, so that nodes with the same
    gap share a sentence. What makes a node unknown as a whole is said elsewhere.
    """
    names: dict[NotJudged, list[str]] = {}
    for node in nodes:
        for part, why in node.not_judged.items():
            not_judged = NotJudged(part, why)
            if not_judged not in node.unknown:
                names.setdefault(not_judged, []).append(node.name)
    return names


def fleet_data(found: FleetVerdicts) -> dict[str, Any]:
    """The verdicts as ``--json`` prints them: dicts and lists, what is said in words, and beside it
    the code that a program can rely on.
    """
    groups = [_group_data(group) for group in found.groups]
    return {
        "folder": found.folder,
        "false_alarms": found.false_alarms,
        "groups": groups,
        "skipped": {path: sentence(why) for path, why in found.skipped.items()},
        "skipped_codes": {path: code_of(why) for path, why in found.skipped.items()},
    }


def _group_data(group: NodeGroup) -> dict[str, Any]:
    return {
        "name": words.kind(group.kind),
        "kind": to_builtins(group.kind),
        "nodes": [_node_data(node) for node in group.nodes],
        "divided": [_with_part(test) for test in group.divided],
    }


def _node_data(node: JudgedNode) -> dict[str, Any]:
    """One node as ``--json`` prints it: its verdict, the reasons in words and as codes, the tests
    in which it is slow, and what was not judged.
    """
    data: dict[str, Any] = {"name": node.name, "verdict": node.verdict, "runs": list(node.runs)}
    data["why"] = words.why_unknown(node.unknown)
    data["why_codes"] = [code_of(reason.why) for reason in node.unknown]
    data["slow"] = [_with_part(test) for test in node.slow]
    data["settings"] = [words.setting_apart(setting) for setting in node.settings]
    data["settings_apart"] = to_builtins(node.settings)
    # By test the smallest slowdown that the runs of this node find.
    data["smallest"] = {words.part(part): share for part, share in node.smallest.items()}
    not_judged = {}
    not_judged_codes = {}
    for part, why in node.not_judged.items():
        not_judged[words.part(part)] = sentence(why)
        not_judged_codes[words.part(part)] = code_of(why)
    data["not_judged"] = not_judged
    data["not_judged_codes"] = not_judged_codes
    return data


def _with_part(test: SlowTest | DividedNodes) -> dict[str, Any]:
    """A test as a dict, with what it is of in words and as stack and side."""
    data: dict[str, Any] = to_builtins(test)
    part = test.what
    return data | {"what": words.part(part), "stack": part.stack, "side": part.side}


def collected_table(folder: Path, found: Mapping[str, Collected]) -> Table:
    """The files that each node sent, and what was wrong."""
    rows = []
    for name, node in found.items():
        rows.append((name, str(len(node.files)), sentence(node.reason)))
    return Table(words.collected_files(folder), words.COLLECTED_COLUMNS, rows)


def collected_data(found: Mapping[str, Collected]) -> dict[str, Any]:
    """The files that each node sent, and what was wrong, as ``--json`` prints them."""
    data = {}
    for name, node in found.items():
        reason = {"reason": sentence(node.reason), "reason_code": code_of(node.reason)}
        data[name] = {"files": node.files, **reason}
    return data
