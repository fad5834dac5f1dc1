"""CUDA graphs: what making one takes, what a node (a recorded launch) saves, after how many replays
that pays off.
"""

from __future__ import annotations

import dataclasses
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
    nodes replaces: the case ``eager`` of the stack ``eager_target``.
    """

    target: TargetView
    record: Record
    eager_target: TargetView | None
    eager: Record | None

    @property
    def parts(self) -> list[str]:
        """The names of the steps that make the graph ready to replay, as the record's figures
        ``making:NAME`` have them.

        Where the upload to the device was not timed by itself, the first launch does it, and stands
        for it.
        """
        # Making has a cost a node (the slope) and one for the whole graph (``:fixed``).
        # ``_PARTS``: capture, instantiate, and the upload, which is the last.
        has_slope = self.record.figure("making:upload") is not None
        has_intercept = self.record.figure("making:upload:fixed") is not None
        if has_slope or has_intercept:
            return [*_PARTS]
        return [*_PARTS[:-1], "first_launch"]

    def making_time(self, nodes: int) -> Value | None:
        """Time in ns to make a graph with this number of nodes ready to launch: the sum of all
        parts of making it; None where a part has no value.
        """
        total: Value | None = None
        # A missing part makes the sum unknown.
        for part in self.parts:
            # ``_part``: what one part takes for so many nodes.
            time = self._part(part, nodes)
            if time is None:
                return None
            total = time if total is None else total + time
        return total

    def _part(self, part: str, nodes: int) -> Value | None:
        """Time in ns of one part; of the first launch only what it takes beyond a replay."""
        taken = self._line(f"making:{part}", f"making:{part}:fixed", nodes)
        if part != "first_launch" or taken is None:
            return taken
        replay = self._line("complete", "fixed", nodes)
        return None if replay is None else taken - replay

    def _line(self, slope: str, intercept: str, nodes: int) -> Value | None:
        """A point of the fitted line, ns; None where slope or intercept has no value."""
        each = self.record.measured(slope)
        once = self.record.measured(intercept)
        if each is None or once is None:
            return None
        return each * nodes + once

    @property
    def saved_per_node(self) -> Value | None:
        """The cost of the launch less that of the node, in ns; None where either has no value."""
        launch = self.eager.measured("complete") if self.eager else None
        node = self.record.measured("complete")
        if launch is None or node is None:
            return None
        return launch - node

    def break_even(self, nodes: int) -> Value | None:
        """How many replays of a graph with this number of nodes save as much time as making it
        takes; None if that is unknown, or if a node saves nothing.
        """
        making = self.making_time(nodes)
        saved = self.saved_per_node
        if making is None or saved is None or saved.value <= 0:
            return None
        # A replay of all nodes saves what one node saves, times their number.
        return making / (saved * nodes)

    def no_break_even(self, nodes: int) -> NoBreakEven | None:
        """Why it is not known after how many replays the graph pays off; None where it is known."""
        if self.break_even(nodes) is not None:
            return None
        # The saving needs the cost of a node, so a missing one is told first.
        if self.record.measured("complete") is None:
            return "no-cost"
        saved = self.saved_per_node
        if saved is None:
            return "no-eager-launch"
        return "saves-nothing" if saved.value <= 0 else "no-making-time"


def graphs(view: View) -> list[Graph]:
    """Every case of the run that replays a CUDA graph of steps, each beside the launch without a
    graph that a node of it replaces (``eager``) on the same device.
    """
    found = []
    for target in view.executing:
        # The makers of the graphs that the stack replays; a stack without graphs has none.
        if not target.facts.graphs:
            continue
        for record in with_fields(target.records, pattern="replay", workload="step"):
            eager = _eager_target(view, record)
            found.append(Graph(target, record, eager, _usual_launch(eager)))
    return found


def _eager_target(view: View, graph: Record) -> TargetView | None:
    """Where the launches were measured that this graph replaces: the stack whose launches it
    records, on the same device; None if they were not measured.

    A stack of graphs may have several makers, such as the CUDA driver and a library. The parameter
    ``maker`` of the graph names one; without it the first is meant.
    """
    # By maker, whose launches such a graph records.
    makers = view.facts(graph.stack).graphs
    usual_maker = next(iter(makers))
    maker = makers.get(str(graph.params.get("maker", usual_maker)))
    if maker is None:
        return None
    for target in view.executing:
        if target.stack == maker.stack and same_device(target.first, graph):
            return target
    return None


def _usual_launch(target: TargetView | None) -> Record | None:
    """The target's usual launch from Python: the case with all parameters as in its base case."""
    if target is None:
        return None
    for record in with_fields(target.records, caller="binding"):
        if not target.varied(record):
            return record
    return None
