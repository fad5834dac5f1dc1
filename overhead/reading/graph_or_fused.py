"""CUDA graph or one fused kernel: how long each way takes for a whole chain. The CUDA driver's
graph is the base.

A row is the work of one workload in one run: its own number of steps with one wait, called from
Python. A slice adds rows of its own. Without a graph the fused WGSL kernels stand beside a dispatch
for each step, in the same stack.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from overhead.reading.chains import ArmFit, Group, groups, measured_time, steps_of
from overhead.reading.missing_values import absent_stacks
from overhead.reading.plain_text import plain
from overhead.reading.precision import by_interval
from overhead.reading.view import View, with_fields
from overhead.results import (
    ChainWayFacts,
    Figure,
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
"""A smaller difference is called a tie, because another run may reverse it. Chosen, not
measured.
"""
_MOST_SPREAD = 1.5
"""If the interval of a ratio is wider than this factor and holds 1, the verdict is "unclear" and
not "tie". Chosen, not measured.
"""
_LEAST_KERNEL_RATIO = 1.3
"""If a step in WGSL takes this many times as long as in CUDA, the slow kernel is given as the
reason. Chosen, not measured.
"""
_LITTLE = 0.1
"""If the graph adds a smaller share to a step, a fused kernel can save only little. Chosen, not
measured.
"""
OTHER = "other"
"""The kind of a way that is in a row only because it is the cheapest that any run measured."""
_FIRST_KINDS: tuple[WayKind, ...] = ("eager", "launches", "graph-driver", "fused-cuda")
"""The kinds of ways that come first in the picture; then come the others, stack by stack."""


@dataclasses.dataclass(frozen=True)
class ChainWay:
    """A way to do the work of a row (a whole chain of steps): a dispatch for each step, a CUDA
    graph, or one fused kernel. ``cost``: ns for all of it; None where ``reason`` or ``failed`` says
    why.

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
    """A row of the comparison: the work of one workload (a chain of steps, or a program), and the
    ``ways`` to do it that one run measured. ``run``: when that run began, '' for the run shown.
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
        return _timed_graph(self.ways)

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
        if way.run_base is not None:
            return ratio(way.cost, way.run_base)
        # ``cost``: the time of all steps, ns.
        return ratio(way.cost, base.cost if base is not None else None)

    def verdict(self, way: ChainWay) -> WayVerdict | None:
        """Whether the way takes less time than what it is compared with (its base), by the ratio of
        both; None without times.

        ``cheaper`` and ``dearer`` need a ratio whose interval does not hold 1, and that lies so far
        from 1 that another run would not reverse it. Else it is a ``tie``, or ``unclear`` if the
        interval is wide.
        """
        times = self.relative(way)
        if times is None:
            return None
        # ``SAME_WITHIN``: a difference of 5 %, which another run may reverse.
        if times.ceiling < 1 and times.value < 1 / (1 + SAME_WITHIN):
            return "cheaper"
        if times.floor > 1 and times.value > 1 + SAME_WITHIN:
            return "dearer"
        # The ratio is near 1 or its interval holds 1: a tie, if the interval is narrow.
        # ``floor``, ``ceiling``: the ends of the interval; a width as a factor needs a low end
        # above 0.
        is_narrow = times.floor > 0 and times.ceiling < _MOST_SPREAD * times.floor
        return "tie" if is_narrow else "unclear"

    def cheaper_from(self, way: ChainWay) -> Value | None:
        """The smallest number of steps at which the way is cheaper than its base; None if a step of
        it is not surely cheaper.

        None also for a way of another run, which may be of another board.
        """
        base = self.base(way)
        if way.run_base is not None or base is None:
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
        """The ways of these kinds that can be compared with their base."""
        return [way for way in self.ways if way.kind in kinds and self.relative(way) is not None]

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
        cuda = next(iter(self.of_kind("fused-cuda")), None)
        # ``step``: the time of one step; None for a way whose line is not known.
        wgsl = [way.step for way in self.of_kind("fused-wgsl") if way.step is not None]
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
    """The rows of the comparison, one for each work: chains with the best for WGSL first, then the
    rows that features of the suite (slices) add.

    ``own``: the run shown. ``others``: runs of the same machine, the newest first; a row without
    fused WGSL in the run shown comes from the one of them that has it with most ways timed. Where
    another way of any run is surely cheaper than all ways of the row, the row has it too.
    """
    # By name of the work its rows in all runs; '' in ``run`` marks the run shown.
    by_name: dict[str, list[WorkRow]] = {}
    for row in _rows_of(own):
        row_shown = dataclasses.replace(row, run="")
        by_name.setdefault(row.name, []).append(row_shown)
    for view in others:
        for row in _rows_of(view):
            # Of other runs only work counts that every run on a GPU measures.
            if row.usual:
                by_name.setdefault(row.name, []).append(row)

    # Of equal ones ``max`` takes the first, which is of the newest run.
    # ``_worth_showing``: first a row with fused WGSL, then that of the run shown, then most ways
    # timed.
    chosen = [max(same_work, key=_worth_showing) for same_work in by_name.values()]
    completed = [with_cheapest(row, (own, *others)) for row in chosen]
    return sorted(completed, key=_place_of_row)


def _rows_of(view: View) -> list[WorkRow]:
    """The rows of a run: those of chains, and those that slices add."""
    made: list[WorkRow] = []
    for make in (chain_rows, *_makers):
        made += make(view)
    return made


def _worth_showing(row: WorkRow) -> tuple[bool, bool, int]:
    """What chooses among the rows of one name: fused WGSL, the run shown, the most ways timed."""
    is_of_run_shown = not row.run
    return bool(row.of_kind("fused-wgsl")), is_of_run_shown, _timed(row.ways)


def _place_of_row(row: WorkRow) -> tuple[bool, float]:
    """What sorts the rows: chains first, and of them the best for WGSL."""
    times = [row.relative(way) for way in row.of_kind("fused-wgsl")]
    values = [each.value for each in times if each is not None]
    return not row.is_chain, max(values, default=math.inf)


def with_cheapest(row: WorkRow, views: Sequence[View]) -> WorkRow:
    """The row, and in front of its ways the cheapest other way to do its work in any of these runs,
    if that is surely cheaper than all that the row has.

    Runs may be of other boards, so times of two runs are not compared. What is compared is how many
    times the CUDA graph of its own run each way takes.
    """
    if not row.is_chain or row.graph is None:
        return row
    # How many times the graph's time each way takes. A new way must lie below all their intervals.
    relative = [row.relative(way) for way in row.ways]
    floors = [times.floor for times in relative if times is not None]
    if not floors:
        return row
    lowest_floor = min(floors)
    # Of the ways that do, the one with the lowest ratio to the graph of its own run.
    cheapest: ChainWay | None = None
    least_times = math.inf
    for view in views:
        for way in _other_ways(view, row):
            times = ratio(way.cost, way.run_base)
            surely_cheaper = times is not None and times.ceiling < lowest_floor
            if times is None or not surely_cheaper:
                continue
            if cheapest is None or times.value < least_times:
                cheapest = way
                least_times = times.value
    if cheapest is None:
        return row
    # A way of the row's own run is told without the date of its run.
    if cheapest.run == row.shown_run:
        cheapest = dataclasses.replace(cheapest, run="")
    return dataclasses.replace(row, ways=(cheapest, *row.ways))


def _other_ways(view: View, row: WorkRow) -> Iterator[ChainWay]:
    """Every measured way of this run, called from Python, to do the work of the row on a GPU. Each
    has the time of this run's CUDA graph of the same steps (``run_base``) to compare it with; a run
    without one has none.
    """
    for group in view.once(groups):
        if group.name != row.name or _work(group) != row.work:
            continue
        graph = _timed_graph(_ways(view, group))
        if graph is None:
            continue
        steps = steps_of(group.workload)
        for arm in group.arms:
            # "binding": called from Python.
            if arm.record.caller == "binding" and arm.processor == "gpu":
                # The way as one of kind "other", without a label; its arm tells what it is.
                way = _way(OTHER, "", arm.record, arm, steps)
                created = view.fingerprint.created
                yield dataclasses.replace(way, run=created, run_base=graph.cost, arm=arm)


def _timed_graph(ways: Sequence[ChainWay]) -> ChainWay | None:
    """The graph that the CUDA driver made, if it has a time."""
    for way in ways:
        if way.kind == "graph-driver" and way.cost is not None:
            return way
    return None


def _work(group: Group) -> ChainWork:
    return ChainWork(steps_of(group.workload), group.elements)


def chain_rows(view: View) -> Iterator[WorkRow]:
    """A row of the comparison for each workload of the run that has the time of a fused kernel.

    Of several sizes (numbers of elements) it is the workload's usual one, the first in its
    definition, and of several groups of that size the one with most ways timed. Without that size
    it is the group of any size with most ways timed.
    """
    # By workload its groups, one for each number of elements and board.
    by_workload: dict[str, list[_GroupWays]] = {}
    for group in view.once(groups):
        ways = _GroupWays(group, _ways(view, group))
        by_workload.setdefault(group.workload, []).append(ways)
    created = view.fingerprint.created
    for name, sizes in by_workload.items():
        workload = workloads().get(name)
        usual_size = workload.elements[0] if workload else 0
        at_usual_size = [each for each in sizes if each.group.elements == usual_size]
        # ``_timed``: how many of the ways have a time with an interval above zero.
        chosen = max(at_usual_size or sizes, key=lambda each: _timed(each.ways))
        if not any(way.is_fused and way.cost is not None for way in chosen.ways):
            continue
        # Every run on a GPU measures it: it is not ``heavy``, or ``usual`` all the same.
        is_usual = workload is not None and (workload.usual or not workload.heavy)
        group = chosen.group
        work = _work(group)
        ways_of_row = tuple(chosen.ways)
        yield WorkRow(group.name, work, created, ways_of_row, usual=is_usual, shown_run=created)


class _GroupWays(NamedTuple):
    """A group of arms, and the ways that its arms are."""

    group: Group
    ways: list[ChainWay]


def _timed(ways: Sequence[ChainWay]) -> int:
    """How many ways have a time with an interval above zero. How wide it is does not count: see
    ``precision``.
    """
    return len([way for way in ways if way.cost is not None and way.cost.resolved])


def _ways(view: View, group: Group) -> list[ChainWay]:
    """The ways to show of a workload that the run measured at one size: of each known way of each
    stack its cheapest case, or why it has none.

    ``wgsl`` dispatches each step by itself. It is what fused kernels are compared with where there
    is no CUDA graph, so it is left out where there is one. Of ``launches`` (one a step by the CUDA
    driver) and ``eager`` (one a step by PyTorch) only the latter is shown where both have a time.
    """
    ways = []
    for known in _known_ways(view):
        way = _cheapest_of(view, group, known)
        if way is not None:
            ways.append(way)
    # Then leave out what only stands in for something that is there.
    timed_kinds = {way.kind for way in ways if way.cost}
    kept = []
    for way in ways:
        if way.kind == "launches" and "eager" in timed_kinds:
            continue
        # With the time of the graph, a way without one is shown with its reason. Without that of
        # the graph, only ways with a time are shown, and why the graph has none.
        if "graph-driver" in timed_kinds:
            is_shown = way.kind != "wgsl"
        else:
            is_shown = way.cost is not None or way.kind == "graph-driver"
        if is_shown:
            kept.append(way)
    return kept


def _cheapest_of(view: View, group: Group, known: _KnownWay) -> ChainWay | None:
    """The cheapest of the group's cases that run the chain in this way, called from Python. Without
    one it is a way that has the reason why; None where the run does not say why.
    """
    facts = known.facts
    label = plain(facts.label, 60)
    steps = steps_of(group.workload)
    # By record its arm: the line fitted to its times. Records in ``failed`` have none.
    arms = {id(arm.record): arm for arm in group.arms}
    records = [*(arm.record for arm in group.arms), *group.failed]
    ways = []
    for record in with_fields(
        records, stack=known.stack, pattern=facts.pattern, caller="binding", software=False
    ):
        # Not a graph that a library made, and no case that leaves out checks of its library
        # (``checks``): neither is the usual way.
        # ``maker``: who made the graph; a case without it counts as made by the driver.
        by_driver = record.params.get("maker", "driver") == "driver"
        if by_driver and "checks" not in record.params and record.api != "CPU":
            ways.append(_way(facts.kind, label, record, arms.get(id(record)), steps))
    # Launches and single dispatches are only there to compare with: their absence is not told.
    if not ways and facts.kind not in ("launches", "wgsl"):
        # How the name of the case begins, whatever parameters follow.
        case = f"{group.workload} {facts.pattern} binding "
        reason = _why_not_in_run(view.fingerprint, known.stack, case)
        if reason:
            ways = [ChainWay(facts.kind, known.stack, label, None, reason=reason)]
    if not ways:
        return None
    # A way without a time comes last.
    cheapest = min(ways, key=lambda way: way.cost.value if way.cost else math.inf)
    through = plain(view.facts(known.stack).label, 40)
    return dataclasses.replace(cheapest, through=through)


class _KnownWay(NamedTuple):
    """A way to run a chain that a stack has, by the facts of the stack."""

    stack: str
    facts: ChainWayFacts


def _known_ways(view: View) -> list[_KnownWay]:
    """The ways of all known stacks in the order of the picture."""
    ways = []
    for stack, facts in view.known_stacks.items():
        ways += [_KnownWay(stack, way) for way in facts.ways]
    return sorted(ways, key=_place_in_picture)


def _place_in_picture(way: _KnownWay) -> int:
    kind = way.facts.kind
    return _FIRST_KINDS.index(kind) if kind in _FIRST_KINDS else len(_FIRST_KINDS)


def _way(kind: str, label: str, record: Record, arm: ArmFit | None, steps: int) -> ChainWay:
    """The measured case ``record`` as a way to do so many steps, with the time that they take.

    ``arm``: its fitted line, which tells the time. Without one the time T(n) may bend, so that a
    step costs more in longer chains; then the time is read off the measured lengths. If that fails
    too, the way has no cost.
    """
    stack = record.stack
    if arm is not None:
        # Of the case's status only what is worse than noisy holds of this time; whether the time is
        # noisy, ``by_interval`` tells from the width of its own interval.
        cost = by_interval(dataclasses.replace(arm.cost(steps), status=record.status))
        beyond = arm.is_extrapolated(steps)
        return ChainWay(kind, stack, label, cost, arm.slope, arm.fixed, beyond=beyond)
    # No line: T(n) may bend, and its measured points tell the time.
    figure = record.figure("complete")
    time = _read_off(record, steps)
    if figure is None or time is None:
        # The record says why it has no time.
        return ChainWay(kind, stack, label, None, failed=record)
    # ``modes``: the costs of a further step that were found, in short and in long chains.
    step = _step_between_modes(record, figure) if figure.modes else None
    beyond = measured_time(record, steps) is None
    return ChainWay(kind, stack, label, time, step, reason=record.reason, beyond=beyond)


def _step_between_modes(record: Record, figure: Figure) -> Value:
    """The time of a step where T(n), the time of n steps, bends. The figure's two modes are then
    the cost of a step in shorter and in longer chains: the first is the value, and its interval
    holds both.
    """
    # An origin tells what a number was calculated from: here the first and the last mode.
    modes = figure.modes
    first_mode = Origin(figure=figure, mode=0)
    last_mode = Origin(figure=figure, mode=-1)
    origin = formed("ends of modes", first_mode, last_mode)
    return Value(modes[0], min(modes), max(modes), unit="ns", source=record.device, origin=origin)


def _read_off(record: Record, steps: int) -> Value | None:
    """The time of so many steps where T(n), the time of n steps, bends, so that no line tells it:
    between the measured lengths, with their quartiles.

    For more steps than were measured, the costs of a further step (the figure's modes) tell the
    rest. None if the case does not bend, or if these are unknown or the time is not above 0.
    """
    figure = record.figure("complete")
    if figure is None or figure.status != "nonlinear" or not record.curve:
        return None
    # First between two measured lengths; beyond the longest by the costs of a further step.
    measured = measured_time(record, steps)
    # Two modes: the cost of a step in shorter chains, and that in the longest.
    if measured is None and len(figure.modes) > 1:
        measured = _beyond_longest(record, steps, figure.modes)
    if measured is None or measured.value <= 0:
        return None
    return dataclasses.replace(measured, status="nonlinear", reason=figure.reason)


def _beyond_longest(record: Record, steps: int, modes: Sequence[float]) -> Value:
    """The time of more steps than were measured: that of the longest chain, and the cost of a step
    for each further one.

    ``modes``: the costs of a step that were found, of which the first is taken. The interval goes
    from the cheapest to the most expensive.
    """
    # ``total``: the time of a chain with its wait.
    longest = max(record.curve, key=lambda point: point.n)
    # Quartiles of the longest chain (``q1``, ``q3``) with the cheapest and the dearest step.
    more = steps - longest.n
    return Value(
        longest.total + more * modes[0],
        longest.q1 + more * min(modes),
        longest.q3 + more * max(modes),
        unit="ns",
        source=record.device,
        origin=time_of_units(record, steps),
    )


def _why_not_in_run(run: Fingerprint, stack: str, case: str) -> Why:
    """Why the run has no such case: the stack is missing, or the plan left the case out; '' if the
    run says nothing. ``case``: how the name of the case begins, without its parameters.
    """
    for absent in absent_stacks(run, [stack]):
        return absent.reason
    for left_out in run.left_out:
        # The name of a target is STACK@DEVICE; any device of the stack serves.
        # The plan names whole cases, with their parameters behind ``case``.
        if left_out.target.startswith(f"{stack}@") and left_out.case.startswith(case):
            return left_out.reason
    return ""
