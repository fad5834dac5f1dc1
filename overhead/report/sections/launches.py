"""What a node of a CUDA graph costs against a launch, what making the graph costs, and when that pays."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, micro_cell
from overhead.reading.format import MICRO, spread
from overhead.reading.graphs import Graph, graphs
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, View, graph_maker
from overhead.report.core.registry import register
from overhead.words.reasons import one_line

_NODES = (10, 100, 1000)
"""Sizes of graphs whose break-even is told."""


@register("launches", "What a CUDA graph costs", 25, page="chains", any_run=True)
def launches(view: View) -> Iterator[Part]:
    """A row for each CUDA graph: a node, the launch that it replaces, its making, and when that pays; else nothing."""
    rows: list[list[str | Cell]] = []
    for g in graphs(view):
        instead = f"{micro_cell(g.eager, 'complete')} ({g.eager.stack})" if g.eager else ""
        costs = [micro_cell(g.record, "complete"), instead, micro_cell(g.record, "fixed")]
        made = spread(making / 1e3) if (making := g.making_time(100)) is not None else ""
        name = f"made by {graph_maker(g.record)}, replayed {CALLER_WORDS[g.record.caller]}"
        rows.append([Cell(name, g.target.stack), *costs, made, *(_pays(g, nodes) for nodes in _NODES)])
    costs = ["a node", "a launch instead", "once a replay", "making 100 nodes"]
    pays = [f"pays off after, {nodes:,} nodes" for nodes in _NODES]
    if rows:
        columns = ["graph", *(f"{name}, {MICRO}" for name in costs), *pays]
        yield Table("CUDA graphs", columns, rows, numeric=range(1, 8))


def _pays(graph: Graph, nodes: int) -> str:
    """After how many replays making a graph of so many nodes has paid off, or why that is not known."""
    if (even := graph.break_even(nodes)) is not None:
        return f"{spread(even)} replays" if even.value >= 0.01 else "its first replay"
    if graph.record.measured("complete") is None:
        return one_line(why(graph.record, "complete"))
    if (saved := graph.saved_per_node) is None:
        return "unknown: no eager launch of the same kernel was measured here"
    return "not applicable: saves nothing per node" if saved.value <= 0 else "unknown: making it has no figure here"
