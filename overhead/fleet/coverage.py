"""What of a node can be judged: the figures that equal nodes have, and what a node lacks of them,
with the reason.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from overhead.fleet.model import LEAST_NODES
from overhead.fleet.node_files import JudgedFigure, NodePart, NodeRun
from overhead.measure.fitting.line import Mask
from overhead.results import Why, because

SHARED = 0.8
"""Of a stack the figures count that this share of the nodes with the stack has; of the versions,
this share of all.
"""
_ENOUGH = 0.5
"""A node is judged by a test if its newest run has this share of the figures of the test."""
_BEST_NODES = 0.1
"""A stack has as many figures as the best nodes have of it: this share of the nodes, and at least
two.
"""


@dataclass(frozen=True)
class NodeCoverage:
    """Equal nodes and their figures. ``runs``: of each node, the newest first. ``keys``: of the
    figures. ``counted``: which of them count. ``newest``: by node and figure whether the newest run
    has it, whatever side bounds it there.
    """

    runs: Sequence[Sequence[NodeRun]]
    keys: Sequence[JudgedFigure]
    counted: Mask
    newest: Mask

    def not_judged(self, tests: Sequence[NodePart]) -> list[dict[NodePart, Why]]:
        """For each node, by test or stack why it is not judged there."""
        found: list[dict[NodePart, Why]] = [{} for _ in self.runs]
        for part, columns in _by_part(self.keys).items():
            self._note_stack(part, columns, found)
        for test in tests:
            self._note_test(test, found)
        of_others = {(key.stack, key.case) for key in itertools.compress(self.keys, self.counted)}
        for node, own in enumerate(found):
            newest = self.runs[node][0]
            for (stack, case), why in newest.failed.items():
                if (stack, case) in of_others:
                    own.setdefault(NodePart(stack), because("case-without-its-work", why=why))
            for stack in newest.refused:
                if not self.newest[node, [key.stack == stack for key in self.keys]].any():
                    own.setdefault(NodePart(stack), why_missing(newest, stack))
        return found

    def _note_stack(
        self, part: NodePart, columns: Sequence[int], found: Sequence[dict[NodePart, Why]]
    ) -> None:
        """Note the nodes that have far fewer figures of the stack than others, and those of a stack
        without a test.
        """
        # The host-bound and the device-bound figure of a case count once.
        cases = {self.keys[column].case: column for column in columns}
        has = self.newest[:, [*cases.values()]].sum(axis=1)
        having = int((has > 0).sum())
        best_nodes = max(2, round(_BEST_NODES * has.size))
        usual = int(np.sort(has)[-best_nodes])
        why_nobody: Why = ""
        if having < LEAST_NODES:
            why_nobody = because("few-nodes-with-stack", having=having, least=LEAST_NODES)
        elif not self.counted[columns].any():
            why_nobody = because("no-common-figure", share=SHARED)
        for node, own in enumerate(found):
            if why_nobody and has[node]:
                own[part] = why_nobody
            # A node without any figure gets the reason of its own run instead.
            elif having >= LEAST_NODES and has[node] < _ENOUGH * usual:
                missing = why_missing(self.runs[node][0], part.stack)
                figures = int(has[node])
                if figures:
                    own[part] = because(
                        "few-figures-of-stack", figures=figures, usual=usual, why=missing
                    )
                else:
                    own[part] = missing

    def _note_test(self, test: NodePart, found: Sequence[dict[NodePart, Why]]) -> None:
        """Note the nodes whose newest run has too few figures of the test."""
        of_test = np.array(
            [key.side == test.side and test.stack in ("", key.stack) for key in self.keys]
        )
        has = self.newest[:, of_test & self.counted]
        usual = has.shape[1]
        for node, own in enumerate(found):
            figures = int(has[node].sum())
            is_noted = bool(test.stack) and NodePart(test.stack) in own
            if not is_noted and figures < _ENOUGH * usual:
                own[test] = because("few-figures-of-test", figures=figures, usual=usual)


def why_missing(run: NodeRun, stack: str) -> Why:
    """Why the run lacks figures of the stack."""
    return run.refused.get(stack) or run.absent.get(stack) or because("stack-not-measured")


def figures_that_count(has: Mask, keys: Sequence[JudgedFigure]) -> Mask:
    """Which figures count. ``has``: by node and figure. A stack counts that ``LEAST_NODES`` nodes
    have.
    """
    counted = np.zeros(len(keys), bool)
    for columns in _by_part(keys).values():
        own = has[:, columns]
        with_part = own.any(axis=1)
        if with_part.sum() >= LEAST_NODES:
            counted[columns] = own[with_part].mean(axis=0) >= SHARED
    return counted


def on_either_side(has: Mask, keys: Sequence[JudgedFigure]) -> Mask:
    """The same, where a figure also counts as there if the other of host and device bounds it on
    this node.
    """
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for column, key in enumerate(keys):
        alike[key.stack, key.case].append(column)
    found = has.copy()
    for columns in alike.values():
        if len(columns) > 1:
            on_one = np.any(has[:, columns], axis=1, keepdims=True)
            found[:, columns] = on_one
    return found


def _by_part(keys: Sequence[JudgedFigure]) -> Mapping[NodePart, list[int]]:
    """The positions of the figures of each stack, and of those of all devices together."""
    found: dict[NodePart, list[int]] = defaultdict(list)
    for column, key in enumerate(keys):
        part = NodePart() if key.side == "together" else NodePart(key.stack)
        found[part].append(column)
    return found
