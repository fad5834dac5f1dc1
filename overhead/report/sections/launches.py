"""What a node of a CUDA graph costs against a launch, what making the graph costs, and when that
pays.
"""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, micro_cell
from overhead.reading.graphs import graphs
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.words.format import spread
from overhead.words.report.launches import (
    COSTS,
    graph_name,
    launch_instead,
    pays_off,
    pays_off_heading,
)

_NODES = (10, 100, 1000)
"""Sizes of graphs whose break-even is told."""


@register("launches", "What a CUDA graph costs", 25, page="chains", any_run=True)
def launches(view: View) -> Iterator[Part]:
    """A row for each CUDA graph: a node, the launch that it replaces, its making, and when that
    pays; else nothing.
    """
    rows: list[list[str | Cell]] = []
    for g in graphs(view):
        costs = [micro_cell(g.record, "complete"), launch_instead(g), micro_cell(g.record, "fixed")]
        making = g.making_time(100)
        made = spread(making / 1e3) if making is not None else ""
        pays = [pays_off(g, nodes) for nodes in _NODES]
        rows.append([Cell(graph_name(g), g.target.stack), *costs, made, *pays])
    if rows:
        columns = ["graph", *COSTS, *map(pays_off_heading, _NODES)]
        yield Table("CUDA graphs", columns, rows, numeric=range(1, 8))
