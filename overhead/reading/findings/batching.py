"""Rules on batches: many dispatches in one pass, and many launches in one graph."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    of_webgpu_or_all,
    variant,
)
from overhead.reading.graphs import graphs
from overhead.reading.view import TargetView, View, graph_maker
from overhead.results import Value

_LEAST_TIMES = 1.5
"""A batch must be surely this many times as cheap. Chosen, not measured."""
_NODES = 100
"""Nodes of the graph whose making is weighed against its replays. Chosen, not measured."""


@dataclasses.dataclass(frozen=True)
class OnePassPays:
    """A pass of many dispatches costs less than a submit for each: the largest saving first."""

    changes: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class ReplayPays:
    """A node of a CUDA graph costs less than the launch that it replaces. The first change is the
    one to name.

    ``maker``: who made its graph. ``pays_after``: the number of replays after which a graph of
    ``nodes`` nodes has paid for its making; None where that is not known.
    """

    changes: tuple[Change, ...]
    maker: str
    nodes: int
    pays_after: Value | None


@rule("batch", "webgpu", place=1)
def one_pass(view: View) -> Finding | None:
    """Advise one pass with many dispatches where it surely costs less than a submit for each; else
    None.
    """

    def batched(target: TargetView) -> Change | None:
        # Only where the usual case submits each dispatch does a pass spare submits.
        if target.base.pattern != "per-submit":
            return None
        one_pass = variant(target, pattern="one-pass")
        # The change from the usual case to one pass, if that is surely 1.5 times as cheap.
        return change_above(_LEAST_TIMES, target, target.base, one_pass)

    # Over all stacks of the headline figure, the largest saving first.
    found = of_webgpu_or_all(changes(view, batched))
    return changes_finding(OnePassPays(tuple(found)), found)


@rule("graph", place=1, page="chains")
def replay(view: View) -> Finding | None:
    """Advise a CUDA graph where one of its nodes surely costs less than the launch that the node
    replaces (``eager``), with the number of replays that pay for making the graph; else None.
    """
    found: list[_GraphChange] = []
    for graph in graphs(view):
        target = graph.eager_target
        if target is None:
            continue
        # ``eager``: the launch that a node replaces; ``graph.record``: the node.
        # The change from launch to node, if a node is surely 1.5 times as cheap.
        change = change_above(_LEAST_TIMES, target, graph.eager, graph.record)
        if change is not None:
            # How many replays of a graph of ``_NODES`` nodes pay for making it.
            pays_after = graph.break_even(_NODES)
            # The graph may never pay off within the interval: then no number is told.
            if pays_after is not None and not math.isfinite(pays_after.ceiling):
                pays_after = None
            found.append(_GraphChange(change, pays_after))
    if not found:
        return None
    # First the graphs whose number of replays until they pay off is known; of these, the one that
    # saves most.
    found.sort(key=_place_of_graph)
    first = found[0]
    graph_record = first.change.after
    # Who made the first graph, in words.
    maker = graph_maker(graph_record, view.facts(graph_record.stack))
    changes_found = [each.change for each in found]
    facts = ReplayPays(tuple(changes_found), maker, _NODES, first.pays_after)
    return changes_finding(facts, changes_found)


class _GraphChange(NamedTuple):
    """A graph in place of launches, and after how many replays it pays off; None where that is not
    known.
    """

    change: Change
    pays_after: Value | None


def _place_of_graph(graph: _GraphChange) -> tuple[bool, float]:
    """What sorts the graphs: those of which it is known when they pay off, the largest factor
    first.
    """
    return graph.pays_after is None, -graph.change.times.value
