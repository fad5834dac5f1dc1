"""What a CUDA graph costs: its name, the columns, and after how many replays it pays."""

from __future__ import annotations

from overhead.reading.graphs import Graph, NoBreakEven
from overhead.reading.missing_values import why
from overhead.reading.view import graph_maker
from overhead.words.format import spread
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import one_line

_FEWEST_REPLAYS = 0.01
"""A graph that pays off after less than this part of a replay pays off at once."""

_NO_BREAK_EVEN: dict[NoBreakEven, str] = {
    "no-eager-launch": "not known: no launch of the same kernel without a graph was measured",
    "saves-nothing": "never: a node costs no less than a launch",
    "no-making-time": "not known: the time to make the graph was not measured",
}


def graph_name(graph: Graph) -> str:
    """Who made the graph, and who replays it."""
    maker = graph_maker(graph.record, graph.target.facts)
    caller = CALLER_WORDS[graph.record.caller]
    return f"by {maker}, {caller}"


def pays_off_heading(nodes: int) -> str:
    """The heading of the column that says after how many replays a graph of so many nodes pays
    off.
    """
    return f"replays until {nodes:,} nodes pay off"


def pays_off(graph: Graph, nodes: int) -> str:
    """The cell that says after how many replays a CUDA graph of so many nodes has saved the time
    that making it took, or why that is not known.
    """
    # The time of making the graph, over what one replay saves.
    replays = graph.break_even(nodes)
    if replays is not None:
        pays_at_once = replays.value < _FEWEST_REPLAYS  # less than 0.01 of a replay
        return "the first" if pays_at_once else spread(replays)
    why_not = graph.no_break_even(nodes)
    # ``why_not`` is a code. Without a cost of its own, the graph's record has the reason.
    if why_not is None or why_not == "no-cost":
        return one_line(why(graph.record, "complete"))
    return _NO_BREAK_EVEN[why_not]
