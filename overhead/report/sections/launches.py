"""What a launch costs on CUDA, by stack and caller; a graph's node against it, its making, and when that pays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, count, listed, micro, micro_spread, number, plain, spread
from overhead.reading.graphs import Graph, graphs
from overhead.reading.missing_values import why
from overhead.reading.stack_names import graph_maker
from overhead.reading.view import CALLER_WORDS, TargetView, View, words
from overhead.report.core.dots import DotRow, Mark, caller_row, dot_figure, dot_panels, mark
from overhead.report.core.draw import ONE_LINE_INCHES, caller_shapes
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record, Value

_PARAMETERS_SHOWN_ELSEWHERE = {"wait", "stream", "arguments", "loops", "sync", "dependency", "workload"}
"""Axes that other sections show: their rows would hide the stacks."""
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
_GRAPHS_DRAWN = 6
"""Panels of the figure of graphs; the table has all graphs."""
_LAUNCH_FIGURES = ("complete", "host", "device_busy")
"""Of a launch, in either table."""
_Rows = dict[str, list[tuple[TargetView, Record]]]


@register("launches", "What a launch costs", 25, page="variants", any_run=True)
def launches(view: View) -> Iterator[Part]:
    targets = [t for t in view.executing if t.first.api == "CUDA"]
    rows = _rows(targets)
    found = graphs(view)
    if rows:
        yield _launch_drawing(rows)
        yield _launch_table(rows)
    if found:
        yield Text([sentence(g) for g in found])
        yield _graph_drawing(found[:_GRAPHS_DRAWN], len(found))
        yield _making_table(found)
    graph_launches = [(t, r) for t in targets for r in t.records if _is_graph_launch(r)]
    if graph_launches:
        if said := two_speeds([r for _, r in graph_launches]):
            yield Text([said])
        yield _graph_launch_table(graph_launches)


def _is_graph_launch(record: Record) -> bool:
    return record.stack == "cuda-graph" and record.pattern == "launches" and record.workload == "step"


def _rows(targets: list[TargetView]) -> _Rows:
    """By label, a record a caller: eager launches, and graphs of one node; the cheapest way first."""
    rows: _Rows = {}
    for t in targets:
        for r in t.records:
            eager = (
                r.pattern == "per-submit"
                and r.workload == "step"
                and not _PARAMETERS_SHOWN_ELSEWHERE & set(t.varied(r))
            )
            single = _is_graph_launch(r) and r.params.get("nodes") == 1
            if r.unit == "launch" and (eager or single):
                shown = {k: v for k, v in r.params.items() if k not in _PARAMETERS_SHOWN_ELSEWHERE}
                rows.setdefault(", ".join([t.short, *words(shown)]), []).append((t, r))
    return dict(sorted(rows.items(), key=lambda row: min(r.value("complete") or math.inf for _, r in row[1])))


def _launch_drawing(rows: _Rows) -> Drawing:
    shapes = caller_shapes({r.caller for records in rows.values() for _, r in records})
    figure = dot_figure([_row(records) for records in rows.values()], f"{MICRO} per launch", shapes)
    ends = [next(iter(rows.values()))[0], list(rows.values())[-1][0]]
    said = [
        f"{t.short} {micro(f)} {CALLER_WORDS[r.caller]}" for t, r in ends if (f := r.figure("complete")) is not None
    ]
    return Drawing(
        "launches",
        "One more launch, by stack and caller",
        f"Microseconds per launch for {count(len(rows), 'way')} to launch: from {' to '.join(said)}.",
        "The slope of the wall time until everything has finished. A launch of a graph with one node stands beside the "
        "eager ones. The values stand at the right, in the order of the marks.",
        figure,
    )


def _row(records: list[tuple[TargetView, Record]]) -> DotRow:
    """The way in a few words."""
    target, first = records[0]
    shown = {k: v for k, v in first.params.items() if k not in _PARAMETERS_SHOWN_ELSEWHERE}
    way = [
        word if isinstance(v, bool | int) else word.partition("=")[2]
        for word, v in zip(words(shown), shown.values(), strict=True)
    ]
    return caller_row(" ".join([target.short, *way]), records)


def _launch_table(rows: _Rows) -> Table:
    return Table(
        "Launches",
        ["target", "called", *(f"{n}, {MICRO}" for n in _LAUNCH_FIGURES), "bound"],
        [
            [Cell(label, t.stack), CALLER_WORDS[r.caller], *(micro_cell(r, n) for n in _LAUNCH_FIGURES), r.bound]
            for label, records in rows.items()
            for t, r in records
        ],
        numeric=(2, 3, 4),
        folded=True,
    )


def sentence(graph: Graph) -> str:
    """What a node saves over a launch, and after how many replays the making has paid for itself."""
    node, eager = graph.record.figure("complete"), graph.eager.figure("complete") if graph.eager else None
    if node is None or not node.measured:
        return f"A node of a CUDA graph made by {graph.maker} has no figure: {why(graph.record, 'complete')}."
    called = CALLER_WORDS[graph.record.caller]
    start = f"A node of a CUDA graph made by {graph.maker} costs {micro_spread(node)} {MICRO} {called}"
    if eager is None or not eager.measured or graph.eager_target is None:
        return f"{start}; no eager launch of the same kernel was measured here to compare it with."
    against = f"{start}, a launch through {graph.eager_target.stack} {micro_spread(eager)} {MICRO}"
    saved, making = graph.saved, graph.making(_SENTENCE_NODES)
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


def _graph_drawing(found: list[Graph], measured: int) -> Drawing:
    """A panel for each graph of ``found``; ``measured``: the number of all graphs."""
    panels = [(f"{g.target.short}, made by {g.maker}", f"{MICRO} per node", _graph_rows(g)) for g in found]
    figure = dot_panels(panels, row=ONE_LINE_INCHES)
    return Drawing(
        "graphs",
        "A graph's node against a launch, and what making it costs",
        " ".join(sentence(g) for g in found),
        "What one more node adds to each part, beside the eager launch that it stands for. What a part costs once for "
        "a graph, whatever its size, is in the table."
        + (f" Of {measured} graphs the first {len(found)} are drawn." if measured > len(found) else ""),
        figure,
    )


def _graph_rows(graph: Graph) -> list[DotRow]:
    own = colour(graph.target.stack)
    eager: list[Mark] = []
    if graph.eager is not None and graph.eager_target is not None:
        eager = mark(graph.eager.figure("complete"), colour(graph.eager_target.stack))
    name = graph.eager_target.stack if graph.eager_target else "eager"
    rows = [DotRow(f"a launch, {name}", eager, "" if eager else "no figure")]
    rows.append(DotRow("a node, replayed", mark(graph.record.figure("complete"), own)))
    for part, title in _MAKING_PARTS.items():
        figure = graph.record.figure(f"making:{part}")
        if figure is not None:
            rows.append(DotRow(title, mark(figure, own), "" if figure.measured else figure.status))
    return rows


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
            if even is not None:
                pays = _replays(even)
            else:
                pays = "not applicable" if g.saved is not None and g.saved.value <= 0 else "unknown"
            rows.append([name, f"break-even of {nodes:,} nodes", pays, ""])
    return Table(
        "Making a graph",
        ["graph", "part", f"a node, {MICRO}", f"once a graph, {MICRO}"],
        rows,
        numeric=(2, 3),
        folded=True,
    )


def two_speeds(found: Sequence[Record]) -> str:
    """How much longer a node took where the device's own time was taken, '' where that lies above no ``complete``."""
    longer: dict[int, list[float]] = {}
    for record in found:
        busy, complete = (record.measured(name) for name in ("device_busy", "complete"))
        nodes = record.params.get("nodes")
        if busy and complete and isinstance(nodes, int) and nodes > 0 and (more := busy - complete).floor > 0:
            longer.setdefault(nodes, []).append(more.value / nodes / 1e3)
    if not longer:
        return ""
    ends = min(map(min, longer.values())), max(map(max, longer.values()))
    by = " to ".join(dict.fromkeys(map(number, ends)))
    return (
        f"Where the device's own time was taken, a node of graphs of {listed([f'{n:,}' for n in sorted(longer)])} took "
        f"{by} {MICRO} longer than in complete, and device_busy lies above it: a node has two speeds (docs/cuda.md)."
    )


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
    return Table(
        "Launching a graph",
        ["graph", "called", "nodes", *(f"{n}, {MICRO}" for n in _LAUNCH_FIGURES)],
        rows,
        numeric=(2, 3, 4, 5),
    )
