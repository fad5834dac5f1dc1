"""What a reader of the file derives from several figures: values with the widest interval that all of theirs allow."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Iterable

from overhead.devices import same_device
from overhead.reading.format import bounds, plain, valued
from overhead.reading.view import ACTING, TargetView, View, named
from overhead.results import Comparison, Figure, Record

PARTS = ("capture", "instantiate", "upload")
"""What must happen before a graph's first launch; torch's graphs upload with that launch instead."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A value with its interval; an end is None where it is unknown or unbounded."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def floor(self) -> float:
        """The lower end; minus infinity where it is not known."""
        return -math.inf if self.low is None else self.low

    @property
    def ceiling(self) -> float:
        """The upper end; infinity where it is not known."""
        return math.inf if self.high is None else self.high

    def over(self, unit: float) -> tuple[float, float | None, float | None]:
        """Value, low and high, as what prints them takes them: ``over(1)`` as they are, ``over(1e3)`` ns in us."""
        low, high = (None if end is None else end / unit for end in (self.low, self.high))
        return self.value / unit, low, high

    def __add__(self, other: Span) -> Span:
        return Span(self.value + other.value, _both(self.low, other.low), _both(self.high, other.high))

    def __sub__(self, other: Span) -> Span:
        return self + other * -1

    def __mul__(self, by: float) -> Span:
        low, high = (None if end is None else end * by for end in (self.low, self.high))
        return Span(self.value * by, *((low, high) if by >= 0 else (high, low)))

    def __truediv__(self, other: Span) -> Span:
        """For values above zero; the upper end is None where the divisor's interval reaches zero."""
        low = None if self.low is None or other.high is None else self.low / other.high
        high = None if self.high is None or other.low is None or other.low <= 0 else self.high / other.low
        return Span(self.value / other.value, low, high)


def span(figure: Figure | None) -> Span | None:
    """The figure's value and interval, None where it has no value."""
    value = valued(figure)
    return None if figure is None or value is None else Span(value, *bounds(figure))


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


@dataclasses.dataclass(frozen=True)
class Synchronised:
    """A step with an act of the host after every so many, and the same step without."""

    target: TargetView
    record: Record
    plain: Record | None
    paired: Comparison | None = None
    """Of the two, round by round; files from before there was one have none."""

    @property
    def act(self) -> str:
        return str(self.record.params["sync"])

    @property
    def every(self) -> int:
        return int(self.record.params["every"])

    @property
    def cost(self) -> Span | None:
        """ns that one act adds; None where either has no value."""
        if self.paired:
            return span(named(self.paired, "difference"))
        unit, steps = self._parts()
        return None if unit is None or steps is None else unit - steps

    @property
    def slowdown(self) -> Span | None:
        """How many times the steps alone the steps with the act take; None where either has no value."""
        if self.paired:
            return span(named(self.paired, "ratio"))
        unit, steps = self._parts()
        return None if unit is None or steps is None or steps.value <= 0 else unit / steps

    def _parts(self) -> tuple[Span | None, Span | None]:
        plain = span(self.plain.figure("complete")) if self.plain else None
        return span(self.record.figure("complete")), None if plain is None else plain * self.every


def synchronised(view: View) -> list[Synchronised]:
    """Every torch record that synchronises after every so many steps, in the file's order."""
    return [
        Synchronised(t, r, _plain(t.records, r), view.comparison("sync-cost", r.key))
        for t in view.executing
        for r in t.records
        if t.stack == "torch" and "sync" in r.params and _positive(r.params.get("every"))
    ]


def _plain(records: Iterable[Record], acting: Record) -> Record | None:
    wanted = {k: v for k, v in acting.params.items() if k not in ACTING}
    return next(
        (r for r in records
         if r.params == wanted and (r.workload, r.caller, r.dependency) == (
             acting.workload, acting.caller, acting.dependency) and r.pattern == "per-submit"),
        None,
    )  # fmt: skip


def _positive(value: object) -> bool:
    return isinstance(value, int) and 0 < value <= 1_000_000


def _both(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
