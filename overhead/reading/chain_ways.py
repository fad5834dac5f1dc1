"""Every measured way to run a chain of steps, by work (what is computed), from all runs of a
machine.

The ways of a work come from its main run, and those that this run lacks from the newest other run
that has them. Runs may be of other boards. So a way of another run is compared with the CUDA
driver's graph of the same steps in its own run (``run_base``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple

from overhead.reading.chains import ArmFit, Group, Variant, groups, measured_time, steps_of
from overhead.reading.missing_values import absent_stacks
from overhead.reading.plain_text import plain
from overhead.reading.precision import by_interval
from overhead.reading.view import View
from overhead.results import (
    ChainWayFacts,
    Figure,
    Fingerprint,
    Origin,
    Record,
    Value,
    Why,
    formed,
    ratio,
    time_of_units,
)

WayGroup = Literal[
    "eager",
    "per-step",
    "launches",
    "wgsl",
    "graph-driver",
    "graph-captured",
    "graph-compiled",
    "loop",
    "fused-cuda",
    "fused-graph",
    "fused-wgsl",
]
"""The kind of a way. Ways of one kind do the same through several stacks, or with other options.

``eager``: a library call for each operation. ``per-step``: one call of a compiled function for each
step. ``launches``, ``wgsl``: one launch or dispatch of a kernel of this suite for each step.
``graph-driver``, ``graph-captured``, ``graph-compiled``: a CUDA graph that the driver made, that a
library recorded from its eager operations, or that a compiler made. ``loop``: a compiled function
with all steps in a loop, in as many kernels as its compiler likes. ``fused-cuda``, ``fused-wgsl``:
one kernel with all steps. ``fused-graph``: a CUDA graph of fused kernels.
"""
FUSED_KINDS: tuple[WayGroup, ...] = ("fused-cuda", "fused-graph", "fused-wgsl")
_WITHOUT_REASON = ("launches", "wgsl")
"""Ways that are only there to compare with: nobody is told why they are missing."""
_OWN_GRAPH = ("mode", "reduce-overhead")
"""The parameter of a case in which the compiler records each of its steps as a CUDA graph."""


@dataclasses.dataclass(frozen=True)
class ChainWay:
    """A way to do a work (a whole chain of steps, or a program): a dispatch for each step, a CUDA
    graph, or one fused kernel. ``cost``: ns for all of it; None where ``reason`` or ``failed`` says
    why.

    ``label``: the name that the stack's facts give this way; '' without one. ``through``: the name
    of its stack. ``failed``: a record that has no speed. ``step``, ``fixed``: ns of one step and of
    none; None if unknown. ``beyond``: the sizes of n end below the chain, so the cost is read off
    the line. ``run``: when the run began that measured it, if that is not the main run of the work;
    then ``run_base`` is the cost of the CUDA driver's graph there. ``record``: the case; None of a
    way that was not tried.
    """

    kind: WayGroup
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
    record: Record | None = None

    @property
    def is_fused(self) -> bool:
        """Whether one kernel does all steps."""
        return self.kind in FUSED_KINDS

    @property
    def is_compared(self) -> bool:
        """Whether it is one of the ways that are compared: called from Python, and on a GPU."""
        record = self.record
        if record is None:
            return True
        return record.caller == "binding" and not record.software and record.api != "CPU"

    @property
    def is_usual(self) -> bool:
        """Whether it keeps the checks of its library."""
        return self.record is None or "checks" not in self.record.params


@dataclasses.dataclass(frozen=True)
class MeasuredWork:
    """What a group of ways computes, with all ways that any run measured. ``run``: when its main
    run began; ``view``: that run.
    """

    group: Group
    view: View
    ways: tuple[ChainWay, ...]

    @property
    def run(self) -> str:
        """When the main run began."""
        return self.view.fingerprint.created


class _WorkKey(NamedTuple):
    workload: str
    variant: Variant
    elements: int


class _Candidate(NamedTuple):
    """A work in one run: the group of its ways on one board, and these ways."""

    view: View
    group: Group
    ways: tuple[ChainWay, ...]


def measured_works(views: Sequence[View]) -> list[MeasuredWork]:
    """Every work that a run measured, with the ways of its main run, and then those that only other
    runs have.

    ``views``: the run shown, and then other runs of the machine. The main run is the newest of
    those that have the CUDA driver's graph and fused kernels, as far as any run has them.
    """
    by_work: dict[_WorkKey, list[_Candidate]] = {}
    for view in sorted(views, key=_created, reverse=True):
        for candidate in view.once(_candidates):
            group = candidate.group
            key = _WorkKey(group.workload, group.variant, group.elements)
            by_work.setdefault(key, []).append(candidate)
    shown = views[0]
    return [_work_of_runs(candidates, shown) for candidates in by_work.values()]


def _created(view: View) -> str:
    return view.fingerprint.created


def _candidates(view: View) -> list[_Candidate]:
    """The works of a run. Of a work that was measured on several boards it is the board with most
    ways timed.
    """
    best: dict[_WorkKey, _Candidate] = {}
    for group in groups(view):
        key = _WorkKey(group.workload, group.variant, group.elements)
        before = best.get(key)
        if before is None or len(group.arms) > len(before.group.arms):
            best[key] = _Candidate(view, group, tuple(_ways(view, group)))
    return list(best.values())


def _work_of_runs(candidates: Sequence[_Candidate], shown: View) -> MeasuredWork:
    """The work with its main run and the ways that this run lacks.

    ``candidates``: the newest first. ``shown``: the run that the page shows.
    """

    def rank(candidate: _Candidate) -> tuple[bool, bool, bool, bool, int]:
        timed = [way for way in candidate.ways if way.cost is not None]
        kinds = {way.kind for way in timed if way.is_compared}
        has_graph = "graph-driver" in kinds
        # Without a graph the times of two runs are not compared, so the run with most ways is
        # taken. The ways of the run shown count double.
        weight = 2 if candidate.view is shown else 1
        number_of_ways = 0 if has_graph else weight * len(timed)
        on_gpu = candidate.group.on_gpu
        return on_gpu, has_graph, "fused-wgsl" in kinds, "fused-cuda" in kinds, number_of_ways

    # Of equal ones ``max`` takes the first, which is the newest.
    main = max(candidates, key=rank)
    ways = {_way_key(way): way for way in main.ways}
    for candidate in candidates:
        if candidate is main:
            continue
        graph = timed_graph(candidate.ways)
        for way in candidate.ways:
            known = ways.get(_way_key(way))
            # A time of another run also stands in for a way that the main run tried in vain.
            if way.cost is None or (known is not None and known.cost is not None):
                continue
            ways[_way_key(way)] = dataclasses.replace(
                way,
                run=candidate.view.fingerprint.created,
                run_base=graph.cost if graph is not None else None,
            )
    # The reason why a stack is not in the main run is not told where another run has it.
    timed = {(way.stack, way.kind) for way in ways.values() if way.cost is not None}
    kept = []
    for way in ways.values():
        if way.record is not None or (way.stack, way.kind) not in timed:
            kept.append(way)
    return MeasuredWork(main.group, main.view, tuple(kept))


def _way_key(way: ChainWay) -> object:
    """What tells a way from the others of its work, in whatever run."""
    record = way.record
    if record is None:
        return way.stack, way.kind
    # Without ``maker`` a graph counts as made by the driver.
    parameters = {"maker": "driver", **record.params}
    return (
        record.stack,
        record.api,
        record.pattern,
        record.caller,
        record.dependency,
        tuple(sorted((name, str(value)) for name, value in parameters.items())),
    )


def timed_graph(ways: Sequence[ChainWay]) -> ChainWay | None:
    """The graph that the CUDA driver made in the main run, if it has a time."""
    for way in ways:
        if way.kind == "graph-driver" and way.cost is not None and not way.run:
            return way
    return None


def relative_to(base: ChainWay | None, way: ChainWay) -> Value | None:
    """The time of the way over that of the base in its own run; None where either is unknown."""
    if way.run:
        return ratio(way.cost, way.run_base)
    return ratio(way.cost, base.cost if base is not None else None)


def _ways(view: View, group: Group) -> list[ChainWay]:
    """All ways of a group: measured ones, those that failed, and those of known stacks that are not
    in the run, with the reason.
    """
    steps = steps_of(group.workload)
    ways = [_way(view, arm.record, arm, steps) for arm in group.arms]
    ways += [_way(view, record, None, steps) for record in group.failed]
    tried = set()
    for way in ways:
        if way.is_compared and way.is_usual:
            tried.add((way.stack, way.kind))
    for stack, facts in view.known_stacks.items():
        for known in facts.ways:
            if known.kind in _WITHOUT_REASON or (stack, known.kind) in tried:
                continue
            # How the name of the case begins, whatever parameters follow.
            case = f"{group.workload} {known.pattern} binding "
            reason = _why_not_in_run(view.fingerprint, stack, case)
            if reason:
                through = plain(facts.label, 40)
                label = plain(known.label, 60)
                ways.append(
                    ChainWay(known.kind, stack, label, None, reason=reason, through=through)
                )
    return ways


def kind_of(view: View, record: Record, *, fused: bool = False) -> WayGroup:
    """The kind of a measured way. ``fused``: its program has fused kernels, whatever its
    pattern.
    """
    facts = view.facts(record.stack)
    if facts.graphs:
        return _kind_of_graph(view, record, fused=fused)
    is_wgsl = any(way.kind in ("wgsl", "fused-wgsl") for way in facts.ways)
    if record.pattern == "fused" and "loop" in record.params:
        return "loop"
    if fused or record.pattern == "fused":
        return "fused-wgsl" if is_wgsl or record.api != "CUDA" else "fused-cuda"
    # A compiler that records a step as a graph by itself.
    name, value = _OWN_GRAPH
    if record.params.get(name) == value:
        return "graph-compiled"
    known = _known_way(facts.ways, record.pattern)
    if known is not None:
        return known.kind
    if is_wgsl:
        return "wgsl"
    # Half of the steps of ``hybrid`` are eager operations.
    return "eager" if record.pattern == "hybrid" else "per-step"


def _kind_of_graph(view: View, record: Record, *, fused: bool) -> WayGroup:
    """The kind of a graph, by who made it."""
    if fused:
        return "fused-graph"
    makers = view.facts(record.stack).graphs
    usual_maker = next(iter(makers))
    name = str(record.params.get("maker", usual_maker))
    if name == usual_maker:
        return "graph-driver"
    maker = makers.get(name)
    # A maker without a stack records no launches of a stack: it compiles its own.
    return "graph-captured" if maker is not None and maker.stack else "graph-compiled"


def _known_way(ways: Sequence[ChainWayFacts], pattern: str) -> ChainWayFacts | None:
    """What the facts of a stack say of its way with this pattern."""
    for way in ways:
        if way.pattern == pattern:
            return way
    return None


def _way(view: View, record: Record, arm: ArmFit | None, steps: int) -> ChainWay:
    """The measured case ``record`` as a way to do so many steps, with the time that they take.

    ``arm``: its fitted line, which tells the time. Without one the time T(n) may bend, so that a
    step costs more in longer chains; then the time is read off the measured lengths. If that fails
    too, the way has no cost.
    """
    facts = view.facts(record.stack)
    kind = kind_of(view, record)
    known = _known_way(facts.ways, record.pattern)
    # The facts name one way of this pattern; the graphs of other makers are another kind.
    label = plain(known.label, 60) if known is not None and known.kind == kind else ""
    way = ChainWay(
        kind, record.stack, label, None, record=record, arm=arm, through=plain(facts.label, 40)
    )
    if arm is not None:
        # Of the case's status only what is worse than noisy holds of this time; whether the time is
        # noisy, ``by_interval`` tells from the width of its own interval.
        cost = by_interval(dataclasses.replace(arm.cost(steps), status=record.status))
        beyond = arm.is_extrapolated(steps)
        return dataclasses.replace(way, cost=cost, step=arm.slope, fixed=arm.fixed, beyond=beyond)
    # No line: T(n) may bend, and its measured points tell the time.
    figure = record.figure("complete")
    time = _read_off(record, steps)
    if figure is None or time is None:
        # The record says why it has no time.
        return dataclasses.replace(way, failed=record)
    # ``modes``: the costs of a further step that were found, in short and in long chains.
    step = _step_between_modes(record, figure) if figure.modes else None
    beyond = measured_time(record, steps) is None
    return dataclasses.replace(way, cost=time, step=step, reason=record.reason, beyond=beyond)


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

    For more or fewer steps than were measured, the costs of a further step (the figure's modes)
    tell the rest. None if the case does not bend, if these are unknown, or if the time is not above
    0.
    """
    figure = record.figure("complete")
    if figure is None or figure.status != "nonlinear" or not record.curve:
        return None
    # First between two measured lengths; beyond these by the costs of a further step.
    measured = measured_time(record, steps)
    # Two modes: the cost of a step in shorter chains, and that in the longest.
    has_chain = any(point.n > 0 for point in record.curve)
    if measured is None and has_chain and len(figure.modes) > 1:
        measured = _beyond_measured(record, steps, figure.modes)
    if measured is None or measured.value <= 0:
        return None
    return dataclasses.replace(measured, status="nonlinear", reason=figure.reason)


def _beyond_measured(record: Record, steps: int, modes: Sequence[float]) -> Value:
    """The time of more steps than were measured, or of fewer: that of the nearest measured chain,
    and the cost of a step for each step of the difference.

    ``modes``: the costs of a step that were found, of which the first is taken. The interval goes
    from the cheapest to the most expensive.
    """
    # An empty chain has the wait alone: its time tells nothing of a step.
    chains = [point for point in record.curve if point.n > 0]
    nearest = min(chains, key=lambda point: abs(point.n - steps))
    more = steps - nearest.n
    # The first cost of a step, and the ends: fewer steps than measured are subtracted, so there the
    # most expensive step gives the low end.
    differences = sorted([more * min(modes), more * max(modes)])
    # ``total``: the time of a chain with its wait; ``q1``, ``q3``: its quartiles.
    return Value(
        nearest.total + more * modes[0],
        nearest.q1 + differences[0],
        nearest.q3 + differences[1],
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
