"""What a CUDA graph costs: its name, the columns, and after how many replays it pays."""

from __future__ import annotations

from overhead.blocks.parts import micro_cell
from overhead.reading.graphs import Graph, NoBreakEven
from overhead.reading.missing_values import why
from overhead.reading.view import graph_maker
from overhead.words.format import MICRO, spread
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import one_line

COSTS = [
    f"{name}, {MICRO}"
    for name in ("each node", "a launch instead", "each replay, one-off", "making 100 nodes")
]
_FEWEST_REPLAYS = 0.01
"""A graph that pays off after less than this part of a replay pays off at once."""

_NO_BREAK_EVEN: dict[NoBreakEven, str] = {
    "no-eager-launch": "not known: no launch of the same kernel without a graph was measured",
    "saves-nothing": "never: a node costs no less than a launch",
    "no-making-time": "not known: the time to make the graph was not measured",
}


def graph_name(graph: Graph) -> str:
    """Who made the graph, and who replays it."""
    return (
        f"made by {graph_maker(graph.record, graph.target.facts)}, replayed"
        f" {CALLER_WORDS[graph.record.caller]}"
    )


def launch_instead(graph: Graph) -> str:
    """The cost of the launch that a node replaces, and its stack; '' where it was not measured."""
    return f"{micro_cell(graph.eager, 'complete')} ({graph.eager.stack})" if graph.eager else ""


def pays_off_heading(nodes: int) -> str:
    """The heading of the column that says after how many replays a graph of so many nodes pays
    off.
    """
    return f"{nodes:,} nodes pay off after"


def pays_off(graph: Graph, nodes: int) -> str:
    """After how many replays making a graph of so many nodes has paid off, or why that is not
    known.
    """
    even = graph.break_even(nodes)
    if even is not None:
        return f"{spread(even)} replays" if even.value >= _FEWEST_REPLAYS else "the first replay"
    why_not = graph.no_break_even(nodes)
    if why_not is None or why_not == "no-cost":
        return one_line(why(graph.record, "complete"))
    return _NO_BREAK_EVEN[why_not]
