"""Rules on batches: many dispatches in one pass, and many launches in one graph."""

from __future__ import annotations

import math

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, change_above, changes, finding, variant
from overhead.reading.format import between, count
from overhead.reading.graphs import graphs
from overhead.reading.view import TargetView, View, graph_maker
from overhead.results import Value

_LEAST_TIMES = 1.5
"""A batch must be surely this many times as cheap."""
_NODES = 100
"""Nodes of the graph whose making is weighed against its replays."""


@rule("batch")
def one_pass(view: View) -> Finding | None:
    """Advise one pass with many dispatches where it surely costs less than a submit for each; else None."""

    def batched(target: TargetView) -> Change | None:
        after = variant(target, pattern="one-pass") if target.base.pattern == "per-submit" else None
        return change_above(_LEAST_TIMES, target, target.base, after)

    return finding(
        changes(view, batched),
        lambda first: f"Batch: one pass instead of a submit per dispatch, through {first.name} {first.instead}.",
        "It applies where the CPU needs nothing back between the dispatches.",
    )


@rule("graph")
def replay(view: View) -> Finding | None:
    """Advise a CUDA graph where a node costs less than a launch, by their intervals; else None."""
    found: list[tuple[Change, Value | None]] = []
    for graph in graphs(view):
        target = graph.eager_target
        one = change_above(_LEAST_TIMES, target, graph.eager, graph.record) if target is not None else None
        if one is not None:
            replays = graph.break_even(_NODES)
            found.append((one, replays if replays is not None and math.isfinite(replays.ceiling) else None))
    if not found:
        return None
    found.sort(key=lambda pair: (pair[1] is None, -pair[0].times.value))
    first, replays = found[0]
    repaid, interval = "", ""
    if replays is not None:
        after = count(max(1, math.ceil(replays.value)), "replay")
        repaid = f"; a graph of {_NODES} nodes pays for itself after {after}"
        interval = f" Making it costs as much as {between(replays.floor, replays.ceiling)} replays save."
    maker = graph_maker(first.after, view.facts(first.after.stack))
    title = f"Replay a CUDA graph made by {maker}: {first.instead}{repaid}."
    condition = f"It applies where the same launches come again with the same shapes and addresses.{interval}"
    return finding([one for one, _ in found], lambda _: title, condition)
