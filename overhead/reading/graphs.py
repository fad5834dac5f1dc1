"""Recorded graphs: what it takes to make one, what a node saves, and after how many replays that pays off."""

from __future__ import annotations

import dataclasses
import functools
import operator

from overhead.devices import same_device
from overhead.reading.format import plain
from overhead.reading.intervals import Span, span
from overhead.reading.view import TargetView, View
from overhead.results import Record

PARTS = ("capture", "instantiate", "upload")
"""What must happen before a graph's first launch; torch's graphs upload with that launch instead."""


@dataclasses.dataclass(frozen=True)
class Graph:
    """A recording that was replayed, and the launch in eager mode that a node of it stands for."""

    target: TargetView
    record: Record
    eager_target: TargetView | None
    eager: Record | None

    @property
    def maker(self) -> str:
        return plain(str(self.record.params.get("maker", "")), 20)

    @property
    def parts(self) -> list[str]:
        """What its making consists of; ``first_launch`` for what that takes beyond a replay, where it uploads."""
        uploads = any(self.record.figure(f"making:upload{end}") for end in ("", ":fixed"))
        return [*PARTS] if uploads else [*PARTS[:-1], "first_launch"]

    def making(self, nodes: int) -> Span | None:
        """ns of making a graph of so many nodes ready to launch; None where a part has no value."""
        own = [self._part(part, nodes) for part in self.parts]
        return None if None in own else functools.reduce(operator.add, own)

    def _part(self, part: str, nodes: int) -> Span | None:
        """ns of one part of the making; of the first launch, what it takes beyond a replay."""
        taken = self._line(f"making:{part}", f"making:{part}:fixed", nodes)
        if part != "first_launch" or taken is None:
            return taken
        replay = self._line("complete", "fixed", nodes)
        return None if replay is None else taken - replay

    def _line(self, slope: str, intercept: str, nodes: int) -> Span | None:
        each, once = span(self.record.figure(slope)), span(self.record.figure(intercept))
        return None if each is None or once is None else each * nodes + once

    @property
    def saved(self) -> Span | None:
        """ns that a node takes less than an eager launch; None where either has no value."""
        eager = span(self.eager.figure("complete")) if self.eager else None
        node = span(self.record.figure("complete"))
        return None if eager is None or node is None else eager - node

    def break_even(self, nodes: int) -> Span | None:
        """Replays after which a graph of so many nodes has paid for its making; None where it is not known or never."""
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
    """The base case of the stack whose launch the graph holds, from Python."""
    stack = "torch" if graph.params.get("maker") == "torch" else "cuda-driver"
    for t in view.executing:
        if t.stack == stack and same_device(t.first, graph):
            return t, next((r for r in t.records if r.caller == "binding" and not t.varied(r)), None)
    return None, None
