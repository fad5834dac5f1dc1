"""Recorded graphs: what it takes to make one, what a node saves, and after how many replays that pays off."""

from __future__ import annotations

import dataclasses
import functools
import operator

from overhead.devices import same_device
from overhead.reading.stack_names import graph_maker
from overhead.reading.view import TargetView, View
from overhead.results import Record, Value

_PARTS = ("capture", "instantiate", "upload")
"""What happens before a graph's first launch. Torch's graphs upload during that launch instead."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """A recorded chain that was replayed, and the eager launch that one of its nodes replaces."""

    target: TargetView
    record: Record
    eager_target: TargetView | None
    eager: Record | None

    @property
    def maker(self) -> str:
        return graph_maker(self.record)

    @property
    def parts(self) -> list[str]:
        """The parts of making the graph; ``first_launch`` stands for the upload where that launch does it."""
        uploads = any(self.record.figure(f"making:upload{end}") for end in ("", ":fixed"))
        return [*_PARTS] if uploads else [*_PARTS[:-1], "first_launch"]

    def making(self, nodes: int) -> Value | None:
        """Time in ns to make a graph of so many nodes ready to launch; None where a part has no value."""
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
    def saved(self) -> Value | None:
        """Eager launch minus graph node, in ns; None where either has no value."""
        eager, node = self.eager.measured("complete") if self.eager else None, self.record.measured("complete")
        return None if eager is None or node is None else eager - node

    def break_even(self, nodes: int) -> Value | None:
        """Number of replays that save the time that making the graph takes; None if unknown or never."""
        making, saved = self.making(nodes), self.saved
        if making is None or saved is None or saved.value <= 0:
            return None
        return making / (saved * nodes)


def graphs(view: View) -> list[Graph]:
    """Every recorded chain of steps with its eager counterpart on the same device."""
    return [
        Graph(t, r, *_eager(view, r))
        for t in view.executing
        for r in t.records
        if t.stack == "cuda-graph" and r.pattern == "replay" and r.workload == "step"
    ]


def _eager(view: View, graph: Record) -> tuple[TargetView | None, Record | None]:
    """The base case, from Python, of the stack whose launches the graph records, and its target; or None."""
    stack = "torch" if graph.params.get("maker") == "torch" else "cuda-driver"
    for t in view.executing:
        if t.stack == stack and same_device(t.first, graph):
            return t, next((r for r in t.records if r.caller == "binding" and not t.varied(r)), None)
    return None, None
