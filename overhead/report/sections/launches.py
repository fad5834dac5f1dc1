"""What a node of a CUDA graph costs against a launch, what making the graph costs, and when that pays."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, listed, micro_spread, number, plain, spread
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
_MAKING_PHRASES = {"first_launch": "what the first launch takes beyond a replay"}
_BREAK_EVEN_NODES = (10, 100, 1000)
"""Graphs whose break-even is told."""
_SENTENCE_NODES = 100
_LAUNCH_FIGURES = ("complete", "host", "device_busy")


@register("launches", "What a CUDA graph costs", 25, page="variants", any_run=True)
def launches(view: View) -> Iterator[Part]:
    """For each CUDA graph what its nodes save, when making it pays, what launching it costs; nothing without one."""
    if found := graphs(view):
        yield Text([graph_sentence(g) for g in found])
        yield _making_table(found)
    targets = [t for t in view.executing if t.first.api == "CUDA" and t.stack == "cuda-graph"]
    whole = [(t, r) for t in targets for r in with_fields(t.records, pattern="launches", workload="step")]
    if whole:
        yield _graph_launch_table(whole)


def graph_sentence(graph: Graph) -> str:
    """What a node saves over a launch and after how many replays making the graph has paid off, or what is unknown."""
    node, eager = graph.record.figure("complete"), graph.eager.figure("complete") if graph.eager else None
    if node is None or not node.measured:
        return f"A node of a CUDA graph made by {graph.maker} has no figure: {why(graph.record, 'complete')}."
    called = CALLER_WORDS[graph.record.caller]
    start = f"A node of a CUDA graph made by {graph.maker} costs {micro_spread(node)} {MICRO} {called}"
    if eager is None or not eager.measured or graph.eager_target is None:
        return f"{start}; no eager launch of the same kernel was measured here to compare it with."
    against = f"{start}, a launch through {graph.eager_target.stack} {micro_spread(eager)} {MICRO}"
    saved, making = graph.saved_per_node, graph.making_time(_SENTENCE_NODES)
    if saved is None or saved.value <= 0:
        return f"{against}: a graph saves nothing per node, so a break-even does not apply."
    even = graph.break_even(_SENTENCE_NODES)
    if making is None or even is None:
        return f"{against}; what making the graph costs has no figure here, so the break-even is unknown."
    parts = listed([_MAKING_PHRASES.get(part, part) for part in graph.parts])
    open_end = "" if even.high is not None else "; the intervals set it no upper limit"
    return (
        f"{against}. Making a graph of {_SENTENCE_NODES} nodes ({parts}) takes {number(making / 1e3)} {MICRO}, "
        f"which it has saved after {_replays(even)}{open_end}."
    )


def _replays(even: Value) -> str:
    return f"{spread(even)} replays" if even.value >= 0.01 else "its first replay"


def _making_table(found: list[Graph]) -> Table:
    rows: list[list[str | Cell]] = []
    for g in found:
        name = Cell(f"{g.target.short}, made by {g.maker}", g.target.stack)
        for part, title in _MAKING_PARTS.items():
            if g.record.figure(f"making:{part}") is not None:
                figures = [micro_cell(g.record, f"making:{part}{end}") for end in ("", ":fixed")]
                rows.append([name, title, *figures])
        for nodes in _BREAK_EVEN_NODES:
            even = g.break_even(nodes)
            never = "not applicable" if g.saved_per_node and g.saved_per_node.value <= 0 else "unknown"
            pays = _replays(even) if even is not None else never
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
