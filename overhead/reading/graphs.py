"""CUDA graphs: what making one takes, what a node (a recorded launch) saves, after how many replays
that pays off.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from typing import Literal

from overhead.devices import same_device
from overhead.reading.view import TargetView, View, with_fields
from overhead.results import Record, Value

NoBreakEven = Literal["no-cost", "no-eager-launch", "saves-nothing", "no-making-time"]
"""Why it is not known after how many replays a graph pays off: a node has no cost, no eager launch
of the same kernel was measured, a node costs as much as the launch, or making the graph has no
figure.
"""
_PARTS = ("capture", "instantiate", "upload")
"""What happens before a graph's first launch. Torch's graphs upload during that launch instead."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """A CUDA graph that was replayed (``record``), and the launch without a graph that one of its
    nodes replaces.
    """

    target: TargetView
    record: Record
    eager_target: TargetView | None
    eager: Record | None

    @property
    def parts(self) -> list[str]:
        """What making the graph consists of; ``first_launch`` stands for the upload where that
        launch does it.
        """
        uploads = any(self.record.figure(f"making:upload{end}") for end in ("", ":fixed"))
        return [*_PARTS] if uploads else [*_PARTS[:-1], "first_launch"]

    def making_time(self, nodes: int) -> Value | None:
        """Time in ns to make a graph of so many nodes ready to launch; None where a part has no
        value.
        """
        own = [self._part(part, nodes) for part in self.parts]
        return None if None in own else functools.reduce(operator.add, own)

    def _part(self, part: str, nodes: int) -> Value | None:
        """Time in ns of one part; of the first launch only what it takes beyond a replay."""
        taken = self._line(f"making:{part}", f"making:{part}:fixed", nodes)
        if part != "first_launch" or taken is None:
            return taken
        replay = self._line("complete", "fixed", nodes)
        return None if replay is None else taken - replay

    def _line(self, slope: str, intercept: str, nodes: int) -> Value | None:
        each, once = self.record.measured(slope), self.record.measured(intercept)
        return None if each is None or once is None else each * nodes + once

    @property
    def saved_per_node(self) -> Value | None:
        """The cost of the launch less that of the node, in ns; None where either has no value."""
        eager, node = (
            self.eager.measured("complete") if self.eager else None,
            self.record.measured("complete"),
        )
        return None if eager is None or node is None else eager - node

    def break_even(self, nodes: int) -> Value | None:
        """How many replays of a graph of n nodes save the time of making it; None if unknown or
        never.
        """
        making, saved = self.making_time(nodes), self.saved_per_node
        if making is None or saved is None or saved.value <= 0:
            return None
        return making / (saved * nodes)

    def no_break_even(self, nodes: int) -> NoBreakEven | None:
        """Why ``break_even`` is None; None where it is known."""
        if self.break_even(nodes) is not None:
            return None
        if self.record.measured("complete") is None:
            return "no-cost"
        saved = self.saved_per_node
        if saved is None:
            return "no-eager-launch"
        return "saves-nothing" if saved.value <= 0 else "no-making-time"


def graphs(view: View) -> list[Graph]:
    """Every CUDA graph of steps in the run, with the launch that its nodes replace on the same
    device.
    """
    return [
        Graph(t, r, *_eager(view, r))
        for t in view.executing
        if t.facts.graphs
        for r in with_fields(t.records, pattern="replay", workload="step")
    ]


def _eager(view: View, graph: Record) -> tuple[TargetView | None, Record | None]:
    """The base case, from Python, of the stack whose launches the graph records, and its target; or
    None.
    """
    makers = view.facts(graph.stack).graphs
    maker = makers.get(str(graph.params.get("maker", next(iter(makers)))))
    for t in view.executing:
        if maker is not None and t.stack == maker.stack and same_device(t.first, graph):
            return t, next(
                (r for r in with_fields(t.records, caller="binding") if not t.varied(r)), None
            )
    return None, None
