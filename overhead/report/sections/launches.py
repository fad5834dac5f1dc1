"""What a node of a CUDA graph costs against a launch, what making the graph costs, and when that
pays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Column, InMicroseconds, Part, micro_cell, table_of
from overhead.reading.graphs import Graph, graphs
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.words.format import spread
from overhead.words.report.launches import (
    graph_name,
    pays_off,
    pays_off_heading,
)

_MADE_NODES = 100
"""Size of the graph whose making is told."""
_NODES = (10, 100, 1000)
"""Sizes of graphs whose break-even is told."""


@register("launches", "What a CUDA graph costs", 25, page="chains", any_run=True, gpu=True)
def launches(view: View) -> Iterator[Part]:
    """A section on when a CUDA graph, a recorded sequence of launches (nodes), pays: a table with
    the costs of a node, of the launch that it replaces, of making the graph, and after how many
    replays the making has paid for itself. Nothing where no graph was measured.
    """
    measured = list(graphs(view))
    if not measured:
        return
    columns: list[Column[Graph]] = [
        Column("graph", _name),
        Column(InMicroseconds("each node"), _node_cost, is_number=True),
        Column(InMicroseconds("a launch instead"), _launch_instead, is_number=True),
        Column(InMicroseconds("one-off"), _one_off_cost, is_number=True),
        Column(InMicroseconds(f"making {_MADE_NODES} nodes"), _making_time, is_number=True),
    ]
    # For graphs of 10, 100 and 1000 nodes: after how many replays making one has paid.
    for nodes in _NODES:
        heading = pays_off_heading(nodes)
        columns.append(Column(heading, partial(_pays_off, nodes), is_number=True))
    yield table_of("CUDA graphs", columns, measured)


def _name(graph: Graph) -> Cell:
    return Cell(graph_name(graph), graph.target.stack)


def _node_cost(graph: Graph) -> str:
    return micro_cell(graph.record, "complete")


def _launch_instead(graph: Graph) -> str | Cell:
    """The cost of the launch that a node replaces; '' where it was not measured."""
    launch = graph.eager
    return Cell(micro_cell(launch, "complete"), launch.stack) if launch is not None else ""


def _one_off_cost(graph: Graph) -> str:
    return micro_cell(graph.record, "fixed")


def _making_time(graph: Graph) -> str:
    """Time to make a graph of 100 nodes ready to launch."""
    time_ns = graph.making_time(_MADE_NODES)
    return spread(time_ns / 1e3) if time_ns is not None else ""


def _pays_off(nodes: int, graph: Graph) -> str:
    """From how many replays on a graph of so many nodes is faster than launches."""
    return pays_off(graph, nodes)
