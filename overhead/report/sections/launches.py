"""What a node of a CUDA graph costs against a launch, what making the graph costs, and when that pays."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, micro_cell
from overhead.reading.format import MICRO, plain, spread
from overhead.reading.graphs import Graph, graphs
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, TargetView, View, graph_maker, with_fields
from overhead.report.core.registry import register
from overhead.results import Record, Value

_MAKING_PARTS = {
    "capture": "capture",
    "instantiate": "instantiate",
    "upload": "upload",
    "first_launch": "first launch and its wait",
    "update": "update of the parameters",
}
_BREAK_EVEN_NODES = (10, 100, 1000)
"""Graphs whose break-even is told."""
_LAUNCH_FIGURES = ("complete", "host", "device_busy")


@register("launches", "What a CUDA graph costs", 25, page="chains", any_run=True)
def launches(view: View) -> Iterator[Part]:
    """For each CUDA graph what its nodes save, when making it pays, what launching it costs; nothing without one."""
    if found := graphs(view):
        yield _making_table(found)
    targets = [t for t in view.executing if t.first.api == "CUDA" and t.stack == "cuda-graph"]
    whole = [(t, r) for t in targets for r in with_fields(t.records, pattern="launches", workload="step")]
    if whole:
        yield _graph_launch_table(whole)


def _replays(even: Value) -> str:
    return f"{spread(even)} replays" if even.value >= 0.01 else "its first replay"


def _why_no_break_even(graph: Graph) -> str:
    if graph.record.measured("complete") is None:
        return why(graph.record, "complete")
    saved = graph.saved_per_node
    if saved is None:
        return "unknown: no eager launch of the same kernel was measured here"
    return "not applicable: saves nothing per node" if saved.value <= 0 else "unknown: making it has no figure here"


def _making_table(found: list[Graph]) -> Table:
    rows: list[list[str | Cell]] = []
    for g in found:
        name = Cell(f"{g.target.short}, made by {g.maker}", g.target.stack)
        node = [micro_cell(g.record, "complete"), micro_cell(g.record, "fixed")]
        rows.append([name, f"replay {CALLER_WORDS[g.record.caller]}", *node])
        if g.eager is not None:
            rows.append([name, f"a launch through {g.eager.stack} instead", micro_cell(g.eager, "complete"), ""])
        for part, title in _MAKING_PARTS.items():
            if g.record.figure(f"making:{part}") is not None:
                figures = [micro_cell(g.record, f"making:{part}{end}") for end in ("", ":fixed")]
                rows.append([name, title, *figures])
        for nodes in _BREAK_EVEN_NODES:
            even = g.break_even(nodes)
            pays = _replays(even) if even is not None else _why_no_break_even(g)
            rows.append([name, f"break-even of {nodes:,} nodes", pays, ""])
    columns = ["graph", "part", f"a node, {MICRO}", f"once a graph, {MICRO}"]
    return Table("Making a graph", columns, rows, numeric=(2, 3))


def _graph_launch_table(found: list[tuple[TargetView, Record]]) -> Table:
    rows: list[list[str | Cell]] = [
        [
            Cell(f"{t.short}, made by {graph_maker(r)}", t.stack),
            CALLER_WORDS[r.caller],
            plain(str(r.params.get("nodes", "")), 12),
            *(micro_cell(r, n) for n in _LAUNCH_FIGURES),
        ]
        for t, r in found
    ]
    columns = ["graph", "called", "nodes", *(f"{n}, {MICRO}" for n in _LAUNCH_FIGURES)]
    return Table("Launching a graph", columns, rows, numeric=(2, 3, 4, 5))
