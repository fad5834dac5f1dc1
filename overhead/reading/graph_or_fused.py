"""CUDA graph or one fused kernel: how long each way takes for a whole chain. The CUDA driver's
graph is the base.

A row is the work of one workload in one run: its own number of steps with one wait, called from
Python. A slice adds rows of its own. Without a graph the fused WGSL kernels stand beside a dispatch
for each step, in the same stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from overhead.reading.chains import ArmFit, Group, groups, measured_time, steps_of
from overhead.reading.missing_values import absent_stacks
from overhead.reading.plain_text import plain
from overhead.reading.precision import by_interval
from overhead.reading.view import View, with_fields
from overhead.results import (
    ChainWayFacts,
    Fingerprint,
    Origin,
    Record,
    Value,
    WayKind,
    Why,
    exactly,
    formed,
    ratio,
    time_of_units,
)
from overhead.workloads import workloads

SAME_WITHIN = 0.05
"""A smaller difference is called a tie, because another run may reverse it."""
_MOST_SPREAD = 1.5
"""If the interval of a ratio is wider than this factor and holds 1, the verdict is "unclear" and
not "tie".
"""
_LEAST_KERNEL_RATIO = 1.3
"""If a step in WGSL takes this many times as long as in CUDA, the slow kernel is given as the
reason.
"""
_LITTLE = 0.1
"""If the graph adds a smaller share to a step, a fused kernel can save only little."""
OTHER = "other"
"""The kind of a way that is in a row only because it is the cheapest that any run measured."""
_FIRST_KINDS: tuple[WayKind, ...] = ("eager", "launches", "graph-driver", "fused-cuda")
"""The kinds of ways that come first in the picture; then come the others, stack by stack."""


@dataclasses.dataclass(frozen=True)
class ChainWay:
    """A way to do the work of a row. ``cost``: ns for all of it; None where ``reason`` or
    ``failed`` says why.

    ``label``: the name of a known way, and ``through`` that of its stack; '' of one of kind
    ``other``, which has its ``arm``. ``failed``: a record that has no speed. ``step``, ``fixed``:
    ns of one step and of none; None if unknown. ``beyond``: the sizes of n end below the chain, so
    the cost is read off the line. ``run``: when the run began that measured it, if that is another
    than the row's; then ``run_base`` is the cost of its base there.
    """

    kind: str
    stack: str
    label: str
    cost: Value | None
    step: Value | None = None
    fixed: Value | None = None
    reason: Why = ""
    failed: Record | None = None
    beyond: bool = False
    run: str = ""
    run_base: Value | None = None
    arm: ArmFit | None = None
    through: str = ""

    @property
    def is_fused(self) -> bool:
        """Whether one kernel does all steps."""
        return self.kind in ("fused-cuda", "fused-wgsl")


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
class WorkRow:
    """The work of a workload in one run. ``run``: when it began, '' for the run shown.

    ``usual``: every run on a GPU measures it. ``shown_run``: when its run began, also of the run
    shown.
    """

    name: str
    work: ChainWork | ProgramWork
    run: str
    ways: tuple[ChainWay, ...]
    usual: bool = True
    shown_run: str = ""

    @property
    def is_chain(self) -> bool:
        """Whether the work is one of equal steps, whose times explain which way is cheaper."""
        return isinstance(self.work, ChainWork)

    @property
    def graph(self) -> ChainWay | None:
        """The graph that the CUDA driver made of the steps; None without its time."""
        return next((w for w in self.ways if w.kind == "graph-driver" and w.cost is not None), None)

    def base(self, way: ChainWay) -> ChainWay | None:
        """What the way is compared with: the graph, else a dispatch a step in the same stack; None
        without both.
        """
        unfused = (
            w for w in self.ways if (w.kind, w.stack) == ("wgsl", way.stack) and w.cost is not None
        )
        return self.graph or next(unfused, None)

    def relative(self, way: ChainWay) -> Value | None:
        """The time of the way over that of its base; None where either is unknown."""
        base = self.base(way)
        if way is base:
            return exactly(1.0, "ratio")
        cost = way.run_base if way.run_base is not None else base.cost if base is not None else None
        return ratio(way.cost, cost)

    def verdict(self, way: ChainWay) -> WayVerdict | None:
        """``cheaper``, ``tie``, ``dearer`` than its base, or ``unclear``, by the interval; None
        without times.
        """
        times = self.relative(way)
        if times is None:
            return None
        if times.ceiling < 1 and times.value < 1 / (1 + SAME_WITHIN):
            return "cheaper"
        if times.floor > 1 and times.value > 1 + SAME_WITHIN:
            return "dearer"
        return (
            "tie" if times.floor > 0 and times.ceiling < _MOST_SPREAD * times.floor else "unclear"
        )

    def cheaper_from(self, way: ChainWay) -> Value | None:
        """The smallest number of steps at which the way is cheaper than its base; None if it is not
        surely cheaper.

        None also for a way of another run, which may be of another board.
        """
        base = self.base(way)
        if (
            way.run_base is not None
            or base is None
            or base.step is None
            or way.step is None
            or base.fixed is None
            or way.fixed is None
        ):
            return None
        saved, paid = base.step - way.step, way.fixed - base.fixed
        return (paid.at_least(0.0) / saved).at_least(1) if saved.floor > 0 else None

    def of_kind(self, *kinds: str) -> list[ChainWay]:
        """The ways of these kinds that can be compared with their base."""
        return [way for way in self.ways if way.kind in kinds and self.relative(way) is not None]

    @property
    def fused_wgsl_wins(self) -> bool:
        """Whether every way in fused WGSL is cheaper than its base."""
        return all(self.verdict(way) == "cheaper" for way in self.of_kind("fused-wgsl"))

    @property
    def step_times(self) -> StepTimes | None:
        """The time of a step in each way; None if one is unknown."""
        graph, cuda = self.graph, next(iter(self.of_kind("fused-cuda")), None)
        wgsl = [way.step for way in self.of_kind("fused-wgsl") if way.step is not None]
        if graph is None or cuda is None or graph.step is None or cuda.step is None or not wgsl:
            return None
        return StepTimes(graph.step, cuda.step, min(wgsl, key=lambda step: step.value))

    @property
    def why_lost(self) -> WhyLost | None:
        """Why no way in fused WGSL is cheaper; None where one is, or where the times do not show
        it.
        """
        times = self.step_times
        if times is None or any(
            self.verdict(way) == "cheaper" for way in self.of_kind("fused-wgsl")
        ):
            return None
        if times.added.floor < _LITTLE * times.cuda.value:
            return "graph-adds-little"
        return "slow-kernel" if (times.wgsl / times.cuda).floor > _LEAST_KERNEL_RATIO else None

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
    """The rows of the run shown, the best for WGSL first, then those of slices.

    A row without fused WGSL in this run comes from the other that has it with most ways timed, of
    several the newest. Where another way of any run is surely cheaper than all ways of the row, the
    row has it too.
    """
    found: dict[str, list[WorkRow]] = {}
    for view in (own, *others):
        for row in (row for make in (chain_rows, *_makers) for row in make(view)):
            if view is own or row.usual:
                found.setdefault(row.name, []).append(
                    dataclasses.replace(row, run="") if view is own else row
                )

    def order(row: WorkRow) -> tuple[bool, float]:
        times = [row.relative(way) for way in row.of_kind("fused-wgsl")]
        return not row.is_chain, max(
            (t.value for t in times if t is not None), default=float("inf")
        )

    def shown(row: WorkRow) -> tuple[bool, bool, int]:
        return bool(row.of_kind("fused-wgsl")), not row.run, _timed(row.ways)

    chosen = [max(made, key=shown) for made in found.values()]
    return sorted((with_cheapest(row, (own, *others)) for row in chosen), key=order)


def with_cheapest(row: WorkRow, views: Sequence[View]) -> WorkRow:
    """The row, with the cheapest other way of these runs to do its work, if that is surely cheaper
    than all of its own.

    A way of another run is compared with the graph of that run.
    """
    own = [times for way in row.ways if (times := row.relative(way)) is not None]
    if not row.is_chain or row.graph is None or not own:
        return row
    least = min(times.floor for times in own)
    cheapest: tuple[float, ChainWay] | None = None
    for view in views:
        for way in _other_ways(view, row):
            times = ratio(way.cost, way.run_base)
            if (
                times is not None
                and times.ceiling < least
                and (cheapest is None or times.value < cheapest[0])
            ):
                cheapest = times.value, way
    if cheapest is None:
        return row
    _, way = cheapest
    if way.run == row.shown_run:
        way = dataclasses.replace(way, run="")
    return dataclasses.replace(row, ways=(way, *row.ways))


def _other_ways(view: View, row: WorkRow) -> Iterator[ChainWay]:
    """The ways from Python of this run to do the work of the row on a GPU, with the time of the
    run's own graph.
    """
    for group in view.once(groups):
        if (group.name, _work(group)) != (row.name, row.work):
            continue
        ways = _ways(view, group)
        graph = next(
            (way.cost for way in ways if way.kind == "graph-driver" and way.cost is not None), None
        )
        steps = steps_of(group.workload)
        for arm in group.arms if graph is not None else ():
            if arm.record.caller != "binding" or arm.processor != "gpu":
                continue
            way = _way(OTHER, "", arm.record, arm, steps)
            yield dataclasses.replace(way, run=view.fingerprint.created, run_base=graph, arm=arm)


def _work(group: Group) -> ChainWork:
    return ChainWork(steps_of(group.workload), group.elements)


def chain_rows(view: View) -> Iterator[WorkRow]:
    """A row for each workload with a fused kernel on a GPU, at the size that comes first among its
    sizes.
    """
    found: dict[str, list[tuple[Group, list[ChainWay]]]] = {}
    for group in view.once(groups):
        found.setdefault(group.workload, []).append((group, _ways(view, group)))
    for name, made in found.items():
        known = workloads().get(name)
        first = known.elements[0] if known else 0
        group, ways = max(made, key=lambda one: (one[0].elements == first, _timed(one[1])))
        if any(way.cost is not None for way in ways if way.is_fused):
            usual = known is not None and (known.usual or not known.heavy)
            created = view.fingerprint.created
            yield WorkRow(
                group.name, _work(group), created, tuple(ways), usual=usual, shown_run=created
            )


def _timed(ways: Sequence[ChainWay]) -> int:
    """How many ways have a time with an interval above zero. How wide it is does not count: see
    ``precision``.
    """
    return sum(way.cost is not None and way.cost.resolved for way in ways)


def _ways(view: View, group: Group) -> list[ChainWay]:
    """The ways of a workload, without the unfused dispatches where there is a graph to compare
    with.
    """
    arms = {id(arm.record): arm for arm in group.arms}
    records = [r for r in (*(a.record for a in group.arms), *group.failed) if not r.software]
    found = []
    for stack, known in _known_ways(view):
        kind, pattern, label = known.kind, known.pattern, plain(known.label, 60)
        fitting = [
            r
            for r in with_fields(records, stack=stack, pattern=pattern, caller="binding")
            if "checks" not in r.params
            and r.params.get("maker", "driver") == "driver"
            and r.api != "CPU"
        ]
        ways = [_way(kind, label, r, arms.get(id(r)), steps_of(group.workload)) for r in fitting]
        if not ways and kind not in ("launches", "wgsl"):
            reason = _left_out(view.fingerprint, stack, f"{group.workload} {pattern} binding ")
            ways = [ChainWay(kind, stack, label, None, reason=reason)] if reason else []
        if ways:
            cheapest = min(ways, key=lambda way: way.cost.value if way.cost else float("inf"))
            found.append(dataclasses.replace(cheapest, through=plain(view.facts(stack).label, 40)))
    kinds = {way.kind for way in found if way.cost}
    found = [way for way in found if way.kind != "launches" or "eager" not in kinds]
    has_graph = "graph-driver" in kinds
    return [
        way
        for way in found
        if (way.kind != "wgsl" if has_graph else way.cost or way.kind == "graph-driver")
    ]


def _known_ways(view: View) -> list[tuple[str, ChainWayFacts]]:
    """The ways of all known stacks, each with its stack, in the order of the picture."""
    found = [(stack, way) for stack, facts in view.known_stacks.items() for way in facts.ways]

    def order(one: tuple[str, ChainWayFacts]) -> int:
        kind = one[1].kind
        return _FIRST_KINDS.index(kind) if kind in _FIRST_KINDS else len(_FIRST_KINDS)

    return sorted(found, key=order)


def _way(kind: str, label: str, record: Record, arm: ArmFit | None, steps: int) -> ChainWay:
    if arm is not None:
        cost = by_interval(dataclasses.replace(arm.cost(steps), status=record.status))
        beyond = arm.is_extrapolated(steps)
        return ChainWay(kind, record.stack, label, cost, arm.slope, arm.fixed, beyond=beyond)
    figure, bent = record.figure("complete"), _read_off(record, steps)
    if figure is None or bent is None:
        return ChainWay(kind, record.stack, label, None, failed=record)
    modes = figure.modes
    origin = formed("ends of modes", Origin(figure=figure, mode=0), Origin(figure=figure, mode=-1))
    each = (
        Value(modes[0], min(modes), max(modes), unit="ns", source=record.device, origin=origin)
        if modes
        else None
    )
    beyond = measured_time(record, steps) is None
    return ChainWay(kind, record.stack, label, bent, each, reason=record.reason, beyond=beyond)


def _read_off(record: Record, steps: int) -> Value | None:
    """The time of so many steps where T(n) bends: between the measured lengths, with their
    quartiles.

    Beyond the longest the two costs of a step, from anchors, go on. None if these are unknown or
    not above 0.
    """
    figure = record.figure("complete")
    if figure is None or figure.status != "nonlinear" or not record.curve:
        return None
    measured = measured_time(record, steps)
    if measured is None and len(figure.modes) > 1:
        measured = _beyond(record, steps, figure.modes)
    if measured is None or measured.value <= 0:
        return None
    return dataclasses.replace(measured, status="nonlinear", reason=figure.reason)


def _beyond(record: Record, steps: int, modes: Sequence[float]) -> Value:
    """The time of more steps than were measured: the longest chain, and the cost of a step for the
    rest.
    """
    longest = max(record.curve, key=lambda point: point.n)
    more = steps - longest.n
    return Value(
        longest.total + more * modes[0],
        longest.q1 + more * min(modes),
        longest.q3 + more * max(modes),
        unit="ns",
        source=record.device,
        origin=time_of_units(record, steps),
    )


def _left_out(run: Fingerprint, stack: str, case: str) -> Why:
    """Why the run has no such case: the stack is missing, or the plan left the case out; '' if it
    says nothing.
    """
    left = (
        one
        for one in run.left_out
        if one.target.startswith(f"{stack}@") and one.case.startswith(case)
    )
    reasons = [absent.reason for absent in absent_stacks(run, [stack])] + [
        one.reason for one in left
    ]
    return reasons[0] if reasons else ""
