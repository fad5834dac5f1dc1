"""CUDA graph or one fused kernel: how long each way takes for a whole chain. The CUDA driver's
graph is the base.

A row is a work: the steps of one workload with one wait, or a program. A slice adds rows of its
own. Without a graph the fused WGSL kernels stand beside a dispatch for each step, in the same
stack.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from overhead.reading.chain_ways import (
    ChainWay,
    MeasuredWork,
    WayGroup,
    measured_works,
    relative_to,
    timed_graph,
)
from overhead.reading.chains import Group, steps_of
from overhead.reading.view import View
from overhead.results import Value, exactly
from overhead.workloads import workloads

SAME_WITHIN = 0.05
"""A smaller difference is called a tie, because another run may reverse it. Chosen, not
measured.
"""
_MOST_SPREAD = 1.5
"""If the interval of a ratio is wider than this factor, a ratio near 1 is "unclear" and not a
"tie". Chosen, not measured.
"""
_LEAST_KERNEL_RATIO = 1.3
"""If a step in WGSL takes this many times as long as in CUDA, the slow kernel is given as the
reason. Chosen, not measured.
"""
_LITTLE = 0.1
"""If the graph adds a smaller share to a step, a fused kernel can save only little. Chosen, not
measured.
"""
_SAME_ROW: dict[WayGroup, WayGroup] = {"wgsl": "launches"}
"""Beside a CUDA graph both are the same: one launch of a kernel of this suite for each step."""


@dataclasses.dataclass(frozen=True)
class ChainWork:
    """The work of a chain: so many equal steps, each on so many elements."""

    steps: int
    elements: int


@dataclasses.dataclass(frozen=True)
class ProgramWork:
    """The work of a program of different kernels: its number of dispatches, and that when all are
    fused that can be.

    None where a number is not known.
    """

    name: str
    dispatches: int | None
    fused: int | None


@dataclasses.dataclass(frozen=True)
class StepTimes:
    """ns a step in the CUDA driver's graph, in fused CUDA, and in the cheapest fused WGSL
    kernel.
    """

    graph: Value
    cuda: Value
    wgsl: Value

    @property
    def added(self) -> Value:
        """What the graph adds to a step."""
        return self.graph - self.cuda


WayVerdict = Literal["cheaper", "tie", "dearer", "unclear"]
WhyLost = Literal["graph-adds-little", "slow-kernel"]
"""Why fused WGSL is not cheaper than the graph, where the times of a step show it."""


@dataclasses.dataclass(frozen=True)
class WayRow:
    """A row of the picture: the ways of one kind. ``first``: the fastest that keeps the checks of
    its library; ``others``: all others.
    """

    first: ChainWay
    others: tuple[ChainWay, ...]


@dataclasses.dataclass(frozen=True)
class WorkRow:
    """A row of the comparison: the work of one workload (a chain of steps, or a program), and the
    ``ways`` to do it, called from Python, on a GPU. ``run``: when the main run began that measured
    them, '' for the run shown. ``usual``: every run on a GPU measures it.

    ``more_ways``: those from compiled code, and those on the CPU. ``group``: of a chain, what its
    ways compute.
    """

    name: str
    work: ChainWork | ProgramWork
    run: str
    ways: tuple[ChainWay, ...]
    usual: bool = True
    more_ways: tuple[ChainWay, ...] = ()
    group: Group | None = None

    @property
    def is_chain(self) -> bool:
        """Whether the work is one of equal steps, whose times explain which way is cheaper."""
        return isinstance(self.work, ChainWork)

    @property
    def all_ways(self) -> tuple[ChainWay, ...]:
        """Every way that was measured, or tried, wherever it ran and from whatever code."""
        return (*self.ways, *self.more_ways)

    @property
    def graph(self) -> ChainWay | None:
        """The graph that the CUDA driver made of the steps; None without its time."""
        return timed_graph(self.ways)

    def base(self, way: ChainWay) -> ChainWay | None:
        """What the time of the way is divided by: the CUDA graph of the same steps. Without a graph
        it is the way of the same stack that dispatches each WGSL step by itself; None without both.
        """
        if self.graph is not None:
            return self.graph
        # "wgsl": a dispatch for each step.
        for other in self.ways:
            if other.kind == "wgsl" and other.stack == way.stack and other.cost is not None:
                return other
        return None

    def relative(self, way: ChainWay) -> Value | None:
        """The time of the way over that of what it is compared with (its base, such as the CUDA
        graph of the same steps); None where either is unknown.
        """
        base = self.base(way)
        # The base beside itself, without an interval.
        if way is base:
            return exactly(1.0, "ratio")
        # A way of another run is compared with the base there, which may be on another board.
        return relative_to(base, way)

    def verdict(self, way: ChainWay) -> WayVerdict | None:
        """Whether the way takes less time than what it is compared with (its base), by the ratio of
        both; None without times.

        ``cheaper`` and ``dearer`` need a ratio whose interval does not hold 1, and that lies so far
        from 1 that another run would not reverse it. A ratio near 1 is a ``tie``, unless its
        interval is wide. All others are ``unclear``.
        """
        times = self.relative(way)
        if times is None:
            return None
        # ``SAME_WITHIN``: a difference of 5 %, which another run may reverse.
        if times.ceiling < 1 and times.value < 1 / (1 + SAME_WITHIN):
            return "cheaper"
        if times.floor > 1 and times.value > 1 + SAME_WITHIN:
            return "dearer"
        # A ratio further from 1 is no tie, whatever its interval.
        is_near = 1 / (1 + SAME_WITHIN) <= times.value <= 1 + SAME_WITHIN
        # ``floor``, ``ceiling``: the ends of the interval; a width as a factor needs a low end
        # above 0.
        is_narrow = times.floor > 0 and times.ceiling < _MOST_SPREAD * times.floor
        return "tie" if is_near and is_narrow else "unclear"

    def cheaper_from(self, way: ChainWay) -> Value | None:
        """The smallest number of steps at which the way is cheaper than its base; None if a step of
        it is not surely cheaper.

        None also for a way of another run, which may be of another board.
        """
        base = self.base(way)
        if way.run or base is None:
            return None
        if base.step is None or base.fixed is None or way.step is None or way.fixed is None:
            return None
        # The whole interval of what a step saves must lie above zero.
        saved_a_step = base.step - way.step
        if saved_a_step.floor <= 0:
            return None
        # What the way costs more at the start must be saved by its steps. If it costs less there
        # too, it is cheaper from the first step on.
        paid_once = way.fixed - base.fixed
        # At least 1: no chain has fewer steps.
        return (paid_once.at_least(0.0) / saved_a_step).at_least(1)

    def of_kind(self, *kinds: str) -> list[ChainWay]:
        """The ways of these kinds that can be compared with their base, the fastest first.

        They keep the checks of their library, as usual, unless the work was done in no other way of
        this kind.
        """
        found = [way for way in self.ways if way.kind in kinds and self.relative(way) is not None]
        usual = [way for way in found if way.is_usual]
        return self._fastest_first(usual or found)

    def _fastest_first(self, ways: Sequence[ChainWay]) -> list[ChainWay]:
        """The ways by their time. A way of the main run stands before one of another run that is
        not surely faster, so that a row is of one run if it can be.
        """
        in_order = sorted(ways, key=self._compared_value)
        if not in_order or not in_order[0].run:
            return in_order
        least = self.compared_time(in_order[0])
        for place, way in enumerate(in_order):
            times = self.compared_time(way)
            not_slower = times is None or least is None or times.floor <= least.ceiling
            if not way.run and not_slower:
                return [way, *in_order[:place], *in_order[place + 1 :]]
        return in_order

    def _relative_value(self, way: ChainWay) -> float:
        times = self.relative(way)
        return times.value if times is not None else math.inf

    @property
    def shown(self) -> list[WayRow]:
        """The ways as a picture has them, the fastest first: ways of one kind in one row. At the
        end come the kinds that have no time, with their reasons.

        Without a CUDA graph a row has the ways of one stack, which has a base of its own.
        """
        by_kind: dict[tuple[str, str], list[ChainWay]] = {}
        for way in self.ways:
            kind = _SAME_ROW.get(way.kind, way.kind) if self.graph is not None else way.kind
            stack = "" if self.graph is not None else way.stack
            by_kind.setdefault((kind, stack), []).append(way)
        timed = []
        without_time = []
        for ways in by_kind.values():
            compared = [way for way in ways if self.relative(way) is not None]
            if compared:
                # A usual way stands for its kind, and not one without the checks of its library.
                usual = [way for way in compared if way.is_usual]
                first = self._fastest_first(usual or compared)[0]
                others = [way for way in compared if way is not first]
                timed.append(WayRow(first, tuple(others)))
            elif ways[0].run == "":
                without_time.append(WayRow(ways[0], ()))
        timed.sort(key=lambda row: self._relative_value(row.first))
        return [*timed, *without_time]

    @property
    def fastest(self) -> ChainWay | None:
        """The way that takes the least time relative to its base, as the first row of the picture
        has it; None without any.
        """
        first = next(iter(self.shown), None)
        if first is None or self.relative(first.first) is None:
            return None
        return first.first

    def by_time(self, ways: Sequence[ChainWay]) -> list[ChainWay]:
        """Those of the ways that have a time that can be compared, the fastest first: beside the
        CUDA graph of their own run, or without a graph those of the main run.
        """
        return self._fastest_first([way for way in ways if self.compared_time(way) is not None])

    def compared_time(self, way: ChainWay) -> Value | None:
        """What two ways are compared by: the time relative to the CUDA graph of the same run.
        Without a graph it is the time itself in ns, of the main run only.
        """
        if self.graph is not None:
            return self.relative(way)
        return way.cost if not way.run else None

    def _compared_value(self, way: ChainWay) -> float:
        times = self.compared_time(way)
        return times.value if times is not None else math.inf

    @property
    def has_fused_and_others(self) -> bool:
        """Whether there are times of one fused kernel and of other kinds of ways."""
        timed = self.by_time(self.ways)
        fused = [way for way in timed if way.kind in ("fused-cuda", "fused-wgsl")]
        return 0 < len(fused) < len(timed)

    def fastest_kinds(self) -> list[ChainWay]:
        """The fastest way of each kind that may be the fastest of all: the first, and the others
        whose intervals reach down to its interval.
        """
        first_of_kind: dict[str, ChainWay] = {}
        for way in self.by_time(self.ways):
            if way.is_usual:
                first_of_kind.setdefault(way.kind, way)
        ways = list(first_of_kind.values())
        if not ways:
            return []
        least = self.compared_time(ways[0])
        kept = []
        for way in ways:
            times = self.compared_time(way)
            if times is not None and least is not None and times.floor <= least.ceiling:
                kept.append(way)
        return kept

    @property
    def best_fused(self) -> ChainWay | None:
        """The fastest fused kernel; None without any."""
        return next(iter(self.of_kind("fused-cuda", "fused-wgsl")), None)

    @property
    def beats_fused(self) -> ChainWay | None:
        """The fastest way, if it is no fused kernel and surely faster than all of them; else
        None.
        """
        fastest, fused = self.fastest, self.best_fused
        if fastest is None or fused is None or fastest.kind in ("fused-cuda", "fused-wgsl"):
            return None
        least, of_fused = self.relative(fastest), self.relative(fused)
        if least is None or of_fused is None:
            return None
        return fastest if least.ceiling < of_fused.floor else None

    @property
    def fused_wgsl_wins(self) -> bool:
        """Whether every way in fused WGSL is cheaper than its base."""
        return all(self.verdict(way) == "cheaper" for way in self.of_kind("fused-wgsl"))

    @property
    def step_times(self) -> StepTimes | None:
        """The time of a step in the CUDA graph, in the fused CUDA kernel and in the cheapest fused
        WGSL kernel, which explain why one is cheaper; None if one is unknown.
        """
        graph = self.graph
        # Steps of two runs may be of two boards, which are not compared.
        of_cuda = [way for way in self.of_kind("fused-cuda") if not way.run]
        cuda = next(iter(of_cuda), None)
        of_wgsl = [way for way in self.of_kind("fused-wgsl") if not way.run]
        # ``step``: the time of one step; None for a way whose line is not known.
        wgsl = [way.step for way in of_wgsl if way.step is not None]
        if graph is None or graph.step is None or cuda is None or cuda.step is None or not wgsl:
            return None
        cheapest_wgsl = min(wgsl, key=lambda step: step.value)
        return StepTimes(graph.step, cuda.step, cheapest_wgsl)

    @property
    def why_lost(self) -> WhyLost | None:
        """Why no fused WGSL kernel beats the CUDA graph: the graph adds so little to a step that
        fusing can save only little, or a step of the WGSL kernel itself is slow. None where one
        beats it, or where the times do not show why.
        """
        times = self.step_times
        if times is None:
            return None
        if any(self.verdict(way) == "cheaper" for way in self.of_kind("fused-wgsl")):
            return None
        # ``added``: what the graph adds to a step, beside the time of a step of fused CUDA.
        # Less than a tenth of the latter (``_LITTLE``) is little.
        if times.added.floor < _LITTLE * times.cuda.value:
            return "graph-adds-little"
        kernel_ratio = times.wgsl / times.cuda
        # Surely 1.3 times as long as in CUDA.
        return "slow-kernel" if kernel_ratio.floor > _LEAST_KERNEL_RATIO else None

    @property
    def step_below_added(self) -> bool:
        """Whether a step of fused WGSL surely takes less than the graph adds to a step in CUDA."""
        times = self.step_times
        return times is not None and times.wgsl.ceiling < times.added.floor


MakeRows = Callable[[View], Iterable[WorkRow]]
_makers: list[MakeRows] = []


def register_rows(make: MakeRows) -> MakeRows:
    """Decorator for a function of a slice that makes more rows from a run; its module ``sections``
    uses it.
    """
    _makers.append(make)
    return make


def rows(own: View, others: Sequence[View] = ()) -> list[WorkRow]:
    """The rows of the comparison, one for each workload: chains with the largest gain of a fused
    kernel first, then the rows that features of the suite (slices) add.

    ``own``: the run shown. ``others``: runs of the same machine, the newest first.
    """
    found = _usual_sizes(chain_rows(own, others))
    for make in _makers:
        # The newest run that has such a row; '' in ``run`` marks the run shown.
        for row in make(own):
            found.append(dataclasses.replace(row, run=""))
        known = {row.name for row in found}
        for view in others:
            more = [row for row in make(view) if row.name not in known]
            found += more
            known |= {row.name for row in more}
    return sorted(found, key=_place_of_row)


def chain_rows(own: View, others: Sequence[View] = ()) -> list[WorkRow]:
    """A row for each workload, variant and size that a run measured, with every way to run it."""
    found = []
    for work in measured_works((own, *others)):
        found.append(_chain_row(work, own))
    return found


def _chain_row(work: MeasuredWork, own: View) -> WorkRow:
    group = work.group
    workload = workloads().get(group.workload)
    # Every run on a GPU measures it: it is not ``heavy``, or ``usual`` all the same.
    is_usual = workload is not None and (workload.usual or not workload.heavy)
    return WorkRow(
        name=group.name,
        work=ChainWork(steps_of(group.workload), group.elements),
        run="" if work.view is own else work.run,
        ways=tuple(way for way in work.ways if way.is_compared),
        usual=is_usual,
        more_ways=tuple(way for way in work.ways if not way.is_compared),
        group=group,
    )


def _usual_sizes(found: Sequence[WorkRow]) -> list[WorkRow]:
    """Of each workload one row, if it has the time of a fused kernel.

    It has the workload's usual size, the first in its definition, and of several variants of that
    size the one with most ways timed. Without that size it is the one of any size with most ways
    timed. Of other runs than the one shown only work counts that every run on a GPU measures.
    """
    by_workload: dict[str, list[WorkRow]] = {}
    for row in found:
        if row.group is not None:
            by_workload.setdefault(row.group.workload, []).append(row)
    chosen = []
    for name, sizes in by_workload.items():
        workload = workloads().get(name)
        usual_size = workload.elements[0] if workload else 0
        at_usual_size = [row for row in sizes if row.group and row.group.elements == usual_size]
        row = max(at_usual_size or sizes, key=_timed)
        has_fused = any(way.is_fused and way.cost is not None for way in row.ways)
        if has_fused and (row.usual or not row.run):
            chosen.append(_as_shown(row))
    return chosen


def _as_shown(row: WorkRow) -> WorkRow:
    """The row without the ways that only stand in for something that is there, and without those
    that are compared with nothing.

    With the time of the graph, a way without one is shown with its reason. Without that of the
    graph, only ways with a time are shown, and why the graph has none. Single dispatches in WGSL
    stand beside fused kernels where there is no graph.
    """
    kept = []
    for way in row.ways:
        if way.run:
            is_shown = row.relative(way) is not None
        elif row.graph is not None:
            is_shown = True
        else:
            is_shown = way.cost is not None or way.kind == "graph-driver"
        if is_shown:
            kept.append(way)
    return dataclasses.replace(row, ways=tuple(kept))


def _timed(row: WorkRow) -> int:
    """How many ways have a time with an interval above zero. How wide it is does not count: see
    ``precision``.
    """
    return len([way for way in row.ways if way.cost is not None and way.cost.resolved])


def _place_of_row(row: WorkRow) -> tuple[bool, float]:
    """What sorts the rows: chains first, and of them the largest gain of a fused kernel."""
    fused = row.best_fused
    times = row.relative(fused) if fused is not None else None
    return not row.is_chain, times.value if times is not None else math.inf
