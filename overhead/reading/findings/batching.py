"""Rules on batches: many dispatches in one pass, and many launches in one graph."""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    variant,
)
from overhead.reading.graphs import graphs
from overhead.reading.view import TargetView, View, graph_maker
from overhead.results import Value

_LEAST_TIMES = 1.5
"""A batch must be surely this many times as cheap."""
_NODES = 100
"""Nodes of the graph whose making is weighed against its replays."""


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


@rule("batch")
def one_pass(view: View) -> Finding | None:
    """Advise one pass with many dispatches where it surely costs less than a submit for each; else
    None.
    """

    def batched(target: TargetView) -> Change | None:
        after = variant(target, pattern="one-pass") if target.base.pattern == "per-submit" else None
        return change_above(_LEAST_TIMES, target, target.base, after)

    found = changes(view, batched)
    return changes_finding(OnePassPays(tuple(found)), found)


@rule("graph")
def replay(view: View) -> Finding | None:
    """Advise a CUDA graph where a node costs less than a launch, by their intervals; else None."""
    found: list[tuple[Change, Value | None]] = []
    for graph in graphs(view):
        target = graph.eager_target
        one = (
            change_above(_LEAST_TIMES, target, graph.eager, graph.record)
            if target is not None
            else None
        )
        if one is not None:
            replays = graph.break_even(_NODES)
            found.append(
                (one, replays if replays is not None and math.isfinite(replays.ceiling) else None)
            )
    if not found:
        return None
    found.sort(key=lambda pair: (pair[1] is None, -pair[0].times.value))
    first, pays_after = found[0]
    own = [one for one, _ in found]
    maker = graph_maker(first.after, view.facts(first.after.stack))
    return changes_finding(ReplayPays(tuple(own), maker, _NODES, pays_after), own)
