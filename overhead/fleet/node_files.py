"""The files of nodes. Of each run only the judged figures and the settings are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overhead.errors import BadFile
from overhead.loading.files import read_fingerprint
from overhead.reading.next_run import class_of
from overhead.results import METHOD_VERSION, Contention, Fingerprint, Machine, Record, Value, same_figures
from overhead.results.records import case_key

NodeSide = Literal["host", "device", "together"]
"""``host``, ``device``: what bounds the figure. ``together``: how much slower all devices of the node are at once."""
_USABLE = ("ok", "noisy")


class JudgedFigure(NamedTuple):
    """What is the same figure in the runs of all nodes; one that another side bounds is another figure."""

    stack: str
    side: NodeSide
    case: str


@dataclass(frozen=True, slots=True)
class NodeRun:
    """One run of a node. ``settings``: the state of the machine; ``figures``: indices into ``NodeFiles.keys``;
    ``logs``: ln of these figures (ns, or ratios)."""

    node: str
    path: str
    created: str
    machine: Machine
    versions: Mapping[str, str]
    settings: Mapping[str, object]
    figures: NDArray[np.int32]
    logs: NDArray[np.float64]


@dataclass
class NodeFiles:
    """The runs of each node, the figures that they have, and the files that are skipped, each with the reason."""

    runs: dict[str, list[NodeRun]] = field(default_factory=dict)
    keys: dict[JudgedFigure, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, node: str, path: Path) -> None:
        """Read a file and keep the figures that are judged; a file that cannot be used goes to ``skipped``."""
        own = self.runs.setdefault(node, [])
        try:
            run = read_fingerprint(path)
        except BadFile as error:
            self.skipped[str(path)] = str(error).removeprefix(f"{path}: ")
            return
        if not same_figures(run.method_version, METHOD_VERSION):
            self.skipped[str(path)] = f"figures of method version {run.method_version} cannot be compared"
        elif any(run.created == one.created for one in own):
            self.skipped[str(path)] = "a copy of another run of the node"
        else:
            own.append(self._kept(node, path, run))

    def _kept(self, node: str, path: Path, run: Fingerprint) -> NodeRun:
        slowest: dict[JudgedFigure, float] = {}
        for key, value in figures_of(run):
            slowest[key] = max(value.value, slowest.get(key, 0.0))
        figures = np.array([self.keys.setdefault(key, len(self.keys)) for key in slowest], np.int32)
        logs = np.log(list(slowest.values()))
        return NodeRun(node, str(path), run.created, run.machine, run.versions, run.volatile, figures, logs)


def read_nodes(folder: Path) -> NodeFiles:
    """The runs of all nodes: ``folder/NODE/*.json``, and ``folder/NODE.json``. Raises ``BadFile`` if there is none."""
    if not folder.is_dir():
        raise BadFile(f"{folder}: not a folder")
    found = NodeFiles()
    for path in sorted([*folder.glob("*.json"), *folder.glob("*/*.json")]):
        found.add(path.stem if path.parent == folder else path.parent.name, path)
    if not any(found.runs.values()):
        raise BadFile(f"{folder}: no fingerprint of a node here that can be read; name nodes as files or folders")
    return found


def figures_of(run: Fingerprint) -> Iterator[tuple[JudgedFigure, Value]]:
    """The figures of a run that are judged.

    A node with several devices has a figure for each of them under one key: the slowest counts.
    """
    for record in run.records:
        for figure in ("complete", "issue", "host"):
            found = class_of(record, figure)
            if found and (value := _usable(record, figure)):
                side: NodeSide = "host" if found == "host" or record.software else "device"
                case = f"{record.api} {case_key(record, record.caller)} {figure}"
                yield JudgedFigure(record.stack, side, case), value
    most: dict[tuple[str, str], Contention] = {}
    for one in run.contention:
        if one.way == "devices" and one.status in _USABLE:
            case = f"{one.target.api} {one.case.key} {one.placement}"
            if one.peers == 1:
                yield from _alone(one, case)
            elif one.peers > getattr(most.get((one.target.stack, case)), "peers", 1):
                most[one.target.stack, case] = one
    for (stack, case), one in most.items():
        if value := _usable(one, "slowdown"):
            yield JudgedFigure(stack, "together", case), value


def _alone(one: Contention, case: str) -> Iterator[tuple[JudgedFigure, Value]]:
    """The figures of a case that ran alone. If the issue is less than half of the cost, the device bounds the cost."""
    cost, issue = _usable(one, "cost"), _usable(one, "issue")
    if issue:
        yield JudgedFigure(one.target.stack, "host", f"{case} alone issue"), issue
    if cost and issue:
        waits = issue.value < cost.value / 2 and not one.target.software
        yield JudgedFigure(one.target.stack, "device" if waits else "host", f"{case} alone cost"), cost


def _usable(of: Record | Contention, figure: str) -> Value | None:
    value = of.measured(figure)
    return value if value is not None and value.status in _USABLE and value.value > 0 else None
