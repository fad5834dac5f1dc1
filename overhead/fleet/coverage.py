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
this share of all. Chosen, not measured: with less, figures of few nodes set the level.
"""
_ENOUGH = 0.5
"""A node is judged by a test if its newest run has this share of the figures of the test. Chosen,
not measured: with more, more nodes are not judged in full.
"""
_BEST_NODES = 0.1
"""A stack has as many figures as the best nodes have of it: this share of the nodes, and at least
two. Chosen, not measured.
"""


@dataclass(frozen=True)
class NodeCoverage:
    """Which of a group of equal nodes can be judged at what. A node that lacks figures that the
    others have must not pass as ok there.

    ``runs``: of each node, the newest first. ``keys``: what each figure is (stack, side, case).
    ``counted``: which of them are judged, since enough nodes have them. ``newest``: by node and
    figure whether the newest run has it, whichever of host and device bounds it there.
    """

    runs: Sequence[Sequence[NodeRun]]
    keys: Sequence[JudgedFigure]
    counted: Mask
    newest: Mask

    def not_judged(self, tests: Sequence[NodePart]) -> list[dict[NodePart, Why]]:
        """For each node, by test or stack why it is not judged there: it has too few figures, the
        work of a case was not done, or its figures were refused. ``tests``: the parts of a node
        that have a test.

        A stack is a library that launches work on a device, such as PyTorch; a case is one way to
        launch work through it, which has a few figures.
        """
        not_judged: list[dict[NodePart, Why]] = [{} for _ in self.runs]
        # First by stack and by test: too few figures. A part with a stack alone is the stack,
        # whether host or device bounds its figures.
        for part, columns in _by_part(self.keys).items():
            self._note_stack(part, columns, not_judged)
        for test in tests:
            self._note_test(test, not_judged)
        # Then by case: one that works on other nodes but failed here.
        counted_keys = itertools.compress(self.keys, self.counted)
        # A case that fails on all nodes has no counted figure: it sets none of them apart.
        works_elsewhere = {(key.stack, key.case) for key in counted_keys}
        for node, of_node in enumerate(not_judged):
            newest = self.runs[node][0]
            for (stack, case), why in newest.failed.items():
                if (stack, case) in works_elsewhere:
                    of_node.setdefault(NodePart(stack), because("case-without-its-work", why=why))
            for stack in newest.refused:
                # A stack of which the newest run has no figure, since all were refused.
                of_stack = [key.stack == stack for key in self.keys]
                if not self.newest[node, of_stack].any():
                    of_node.setdefault(NodePart(stack), why_missing(newest, stack))
        return not_judged

    def _note_stack(
        self, part: NodePart, columns: Sequence[int], not_judged: Sequence[dict[NodePart, Why]]
    ) -> None:
        """Note for each node why it is not judged at one stack: it has far fewer figures of the
        stack than the best nodes, or too few nodes have the stack, or figures in common, for a
        test. ``columns``: the positions of the stack's figures; ``not_judged``: where to note it,
        by node.
        """
        # The host-bound and the device-bound figure of a case count once.
        cases = {self.keys[column].case: column for column in columns}
        # By node how many cases of the stack its newest run has.
        figures_of = self.newest[:, [*cases.values()]].sum(axis=1)
        nodes_with_stack = int((figures_of > 0).sum())
        # A tenth of the nodes, two at least.
        best_nodes = max(2, round(_BEST_NODES * figures_of.size))
        # The number that each of the best nodes has at least.
        usual = int(np.sort(figures_of)[-best_nodes])
        # Why no node at all is judged at this stack, if that is so.
        why_nobody: Why = ""
        if nodes_with_stack < LEAST_NODES:
            why_nobody = because("few-nodes-with-stack", having=nodes_with_stack, least=LEAST_NODES)
        elif not self.counted[columns].any():
            why_nobody = because("no-common-figure", share=SHARED)
        for node, of_node in enumerate(not_judged):
            figures = int(figures_of[node])
            # Nobody is judged, so a node that has figures gets this reason.
            if why_nobody and figures:
                of_node[part] = why_nobody
                continue
            # Where so few nodes have the stack, one without it lacks nothing. Else half of the
            # usual number is enough.
            if nodes_with_stack < LEAST_NODES or figures >= _ENOUGH * usual:
                continue
            # A node without any figure gets the reason of its own run instead.
            missing = why_missing(self.runs[node][0], part.stack)
            of_node[part] = missing
            if figures:
                of_node[part] = because(
                    "few-figures-of-stack", figures=figures, usual=usual, why=missing
                )

    def _note_test(self, test: NodePart, not_judged: Sequence[dict[NodePart, Why]]) -> None:
        """Note the nodes whose newest run has too few figures for a test. A test is computed from
        the figures of one side (host or device), or of one stack on that side. If the whole stack
        is noted already, nothing is added.
        """
        # A mask of the figures that the test is computed from: of its side, and of its stack if it
        # has one.
        of_test = []
        for key in self.keys:
            of_test.append(key.side == test.side and test.stack in ("", key.stack))
        # Rows: nodes; columns: figures of the test that are judged.
        has_figure = self.newest[:, np.array(of_test) & self.counted]
        usual = has_figure.shape[1]
        for node, of_node in enumerate(not_judged):
            figures = int(has_figure[node].sum())
            is_noted = bool(test.stack) and NodePart(test.stack) in of_node
            # Less than half of them is too few.
            if not is_noted and figures < _ENOUGH * usual:
                of_node[test] = because("few-figures-of-test", figures=figures, usual=usual)


def why_missing(run: NodeRun, stack: str) -> Why:
    """Why the run lacks figures of the stack."""
    return run.refused.get(stack) or run.absent.get(stack) or because("stack-not-measured")


def figures_that_count(has: Mask, keys: Sequence[JudgedFigure]) -> Mask:
    """Which figures the nodes are judged by. ``has``: by node and figure whether the node has it;
    ``keys``: what each figure is. At least ``LEAST_NODES`` nodes must have the stack, and most of
    these the figure: else few nodes would set its usual value.
    """
    counted = np.zeros(len(keys), bool)
    for columns in _by_part(keys).values():
        # Rows: nodes; columns: the figures of this part.
        has_of_part = has[:, columns]
        nodes_with_part = has_of_part.any(axis=1)
        if nodes_with_part.sum() >= LEAST_NODES:
            # By figure the share of the nodes with the stack that have it.
            shares = has_of_part[nodes_with_part].mean(axis=0)
            # Four of five of them must have it.
            counted[columns] = shares >= SHARED
    return counted


def on_either_side(has: Mask, keys: Sequence[JudgedFigure]) -> Mask:
    """By node and figure whether the node has it, on the side of the figure or on the other one.
    The same case is another figure where the device bounds it instead of the host, and a node on
    which that changed does not lack the case.
    """
    # The columns of each case: one for each side that bounds it on some node.
    columns_of_case: dict[tuple[str, str], list[int]] = defaultdict(list)
    for column, key in enumerate(keys):
        columns_of_case[key.stack, key.case].append(column)
    on_either = has.copy()
    for columns in columns_of_case.values():
        if len(columns) > 1:
            on_either[:, columns] = np.any(has[:, columns], axis=1, keepdims=True)
    return on_either


def _by_part(keys: Sequence[JudgedFigure]) -> Mapping[NodePart, list[int]]:
    """The positions of the figures of each stack, and of those of all devices together."""
    columns: dict[NodePart, list[int]] = defaultdict(list)
    for column, key in enumerate(keys):
        part = NodePart() if key.side == "together" else NodePart(key.stack)
        columns[part].append(column)
    return columns
