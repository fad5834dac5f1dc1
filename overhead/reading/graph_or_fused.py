"""CUDA graph or one fused kernel: how long each way takes for a whole chain. The CUDA driver's graph is the base.

A row is the work of one workload in one run: its own number of steps with one wait, called from Python. A slice adds
rows of its own. Without a graph the fused WGSL kernels stand beside a dispatch for each step, in the same stack.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from overhead.reading.chains import ArmFit, Group, groups, measured_time, steps_of, why_no_speed
from overhead.reading.format import MICRO, listed, number, run_time
from overhead.reading.missing_values import absent_stacks
from overhead.reading.precision import by_interval
from overhead.reading.view import View, graph_maker, with_fields
from overhead.results import Fingerprint, Record, Value, Why, exactly, ratio
from overhead.workloads import workloads

SAME_WITHIN = 0.05
"""A smaller difference is called a tie, because another run may reverse it."""
_MOST_SPREAD = 1.5
"""If the interval of a ratio is wider than this factor and holds 1, the verdict is "unclear" and not "tie"."""
_LEAST_KERNEL_RATIO = 1.3
"""If a step in WGSL takes this many times as long as in CUDA, the slow kernel is given as the reason."""
_LITTLE = 0.1
"""If the graph adds a smaller share to a step, a fused kernel can save only little."""
_OTHER = "other"
"""The kind of a way that is in a row only because it is the cheapest that any run measured."""
_WAYS = (
    ("eager", "torch", "per-submit", "eager, PyTorch"),
    ("launches", "cuda-driver", "per-submit", "a launch a step, CUDA driver"),
    ("graph-driver", "cuda-graph", "replay", "a graph, by the CUDA driver"),
    ("fused-cuda", "cuda-driver", "fused", "fused CUDA"),
    ("wgsl", "dawn", "one-pass", "a WGSL dispatch a step, Dawn"),
    ("fused-wgsl", "dawn", "fused", "fused WGSL, Dawn"),
    ("wgsl", "wgpu-native", "one-pass", "a WGSL dispatch a step, wgpu-native"),
    ("fused-wgsl", "wgpu-native", "fused", "fused WGSL, wgpu-native"),
)
"""Kind, stack, pattern and label of the ways, in the order of the picture."""


@dataclasses.dataclass(frozen=True)
class ChainWay:
    """A way to do the work of a row. ``cost``: ns for all of it; None where ``reason`` says why.

    ``step``, ``fixed``: ns of one step and of none; None if unknown. ``beyond``: the sizes of n end below the
    chain, so the cost is read off the line. ``run``: when the run began that measured it, if that is another than
    the row's; then ``run_base`` is the cost of its base there.
    """

    kind: str
    stack: str
    label: str
    cost: Value | None
    step: Value | None = None
    fixed: Value | None = None
    reason: Why = ""
    beyond: bool = False
    run: str = ""
    run_base: Value | None = None

    @property
    def title(self) -> str:
        """The label, with the day of the run if that is another than the row's."""
        return self.label + (f", run of {self.run[:10]}" if self.run else "")

    @property
    def through(self) -> str:
        """The stack in words, from the label: ``Dawn``."""
        return self.label.rpartition(", ")[2]


@dataclasses.dataclass(frozen=True)
class WorkRow:
    """The work of a workload in one run. ``work``: its size in words; ``run``: when it began, '' for the run shown.

    ``said``: a sentence on the row, where its steps do not explain it. ``usual``: every run on a GPU measures it.
    ``shown_run``: when its run began, also of the run shown.
    """

    name: str
    work: str
    run: str
    ways: tuple[ChainWay, ...]
    said: str = ""
    usual: bool = True
    shown_run: str = ""

    @property
    def title(self) -> str:
        """Name and size; also the run, if it is another than the run shown."""
        return f"{self.name}: {self.work}" + (f", run of {self.run}" if self.run else "")

    @property
    def graph(self) -> ChainWay | None:
        """The graph that the CUDA driver made of the steps; None without its time."""
        return next((w for w in self.ways if w.kind == "graph-driver" and w.cost is not None), None)

    def base(self, way: ChainWay) -> ChainWay | None:
        """What the way is compared with: the graph, else a dispatch a step in the same stack; None without both."""
        unfused = (w for w in self.ways if (w.kind, w.stack) == ("wgsl", way.stack) and w.cost is not None)
        return self.graph or next(unfused, None)

    def relative(self, way: ChainWay) -> Value | None:
        """The time of the way over that of its base; None where either is unknown."""
        base = self.base(way)
        if way is base:
            return exactly(1.0, "ratio")
        cost = way.run_base if way.run_base is not None else base.cost if base is not None else None
        return ratio(way.cost, cost)

    def verdict(self, way: ChainWay) -> str | None:
        """``cheaper``, ``tie``, ``dearer`` than its base, or ``unclear``, by the interval; None without times."""
        times = self.relative(way)
        if times is None:
            return None
        if times.ceiling < 1 and times.value < 1 / (1 + SAME_WITHIN):
            return "cheaper"
        if times.floor > 1 and times.value > 1 + SAME_WITHIN:
            return "dearer"
        return "tie" if times.floor > 0 and times.ceiling < _MOST_SPREAD * times.floor else "unclear"

    def cheaper_from(self, way: ChainWay) -> Value | None:
        """The smallest number of steps at which the way is cheaper than its base; None if it is not surely cheaper.

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


MakeRows = Callable[[View], Iterable[WorkRow]]
_makers: list[MakeRows] = []


def register_rows(make: MakeRows) -> MakeRows:
    """Decorator for a function of a slice that makes more rows from a run; its module ``sections`` uses it."""
    _makers.append(make)
    return make


def rows(own: View, others: Sequence[View] = ()) -> list[WorkRow]:
    """The rows of the run shown, the best for WGSL first, then those of slices.

    A row without fused WGSL in this run comes from the other that has it with most ways timed, of several the newest.
    Where another way of any run is surely cheaper than all ways of the row, the row has it too.
    """
    found: dict[str, list[WorkRow]] = {}
    for view in (own, *others):
        for row in (row for make in (chain_rows, *_makers) for row in make(view)):
            if view is own or row.usual:
                found.setdefault(row.name, []).append(dataclasses.replace(row, run="") if view is own else row)

    def order(row: WorkRow) -> tuple[bool, float]:
        times = [row.relative(way) for way in row.of_kind("fused-wgsl")]
        return bool(row.said), max((t.value for t in times if t is not None), default=float("inf"))

    def shown(row: WorkRow) -> tuple[bool, bool, int]:
        return bool(row.of_kind("fused-wgsl")), not row.run, _timed(row.ways)

    chosen = [max(made, key=shown) for made in found.values()]
    return sorted((with_cheapest(row, (own, *others)) for row in chosen), key=order)


def with_cheapest(row: WorkRow, views: Sequence[View]) -> WorkRow:
    """The row, with the cheapest other way of these runs to do its work, if that is surely cheaper than all of its own.

    A way of another run is compared with the graph of that run.
    """
    own = [times for way in row.ways if (times := row.relative(way)) is not None]
    if row.said or row.graph is None or not own:
        return row
    least = min(times.floor for times in own)
    cheapest: tuple[float, ChainWay] | None = None
    for view in views:
        for way in _other_ways(view, row):
            times = ratio(way.cost, way.run_base)
            if times is not None and times.ceiling < least and (cheapest is None or times.value < cheapest[0]):
                cheapest = times.value, way
    if cheapest is None:
        return row
    _, way = cheapest
    if way.run == row.shown_run:
        way = dataclasses.replace(way, run="")
    return dataclasses.replace(row, ways=(way, *row.ways))


def _other_ways(view: View, row: WorkRow) -> Iterator[ChainWay]:
    """The ways from Python of this run to do the work of the row on a GPU, with the time of the run's own graph."""
    for group in view.once(groups):
        if (group.name, _work(group)) != (row.name, row.work):
            continue
        ways = _ways(view, group)
        graph = next((way.cost for way in ways if way.kind == "graph-driver" and way.cost is not None), None)
        steps = steps_of(group.workload)
        for arm in group.arms if graph is not None else ():
            if arm.record.caller != "binding" or arm.processor != "gpu":
                continue
            way = _way(_OTHER, _arm_label(arm), arm.record, arm, steps)
            yield dataclasses.replace(way, run=run_time(view.fingerprint.created), run_base=graph)


def _arm_label(arm: ArmFit) -> str:
    """The way in words: ``CUDA graph by torch.compile``, else the arm's own label."""
    if arm.record.stack == "cuda-graph":
        return f"CUDA graph by {graph_maker(arm.record)}"
    return arm.label


def _work(group: Group) -> str:
    """The size of the work in words: ``1,500 steps of 4,096 elements``."""
    return f"{steps_of(group.workload):,} steps of {group.title.partition(', ')[2]}"


def chain_rows(view: View) -> Iterator[WorkRow]:
    """A row for each workload with a fused kernel on a GPU, at the size that comes first among its sizes."""
    found: dict[str, list[tuple[Group, list[ChainWay]]]] = {}
    for group in view.once(groups):
        found.setdefault(group.workload, []).append((group, _ways(view, group)))
    for name, made in found.items():
        known = workloads().get(name)
        first = known.elements[0] if known else 0
        group, ways = max(made, key=lambda one: (one[0].elements == first, _timed(one[1])))
        if any(way.cost is not None for way in ways if way.kind.startswith("fused")):
            usual = known is not None and (known.usual or not known.heavy)
            created = run_time(view.fingerprint.created)
            yield WorkRow(group.name, _work(group), created, tuple(ways), usual=usual, shown_run=created)


def _timed(ways: Sequence[ChainWay]) -> int:
    """How many ways have a time with an interval above zero. How wide it is does not count: see ``precision``."""
    return sum(way.cost is not None and way.cost.resolved for way in ways)


def _ways(view: View, group: Group) -> list[ChainWay]:
    """The ways of a workload, without the unfused dispatches where there is a graph to compare with."""
    arms = {id(arm.record): arm for arm in group.arms}
    records = [r for r in (*(a.record for a in group.arms), *group.failed) if not r.software]
    found = []
    for kind, stack, pattern, label in _WAYS:
        fitting = [
            r
            for r in with_fields(records, stack=stack, pattern=pattern, caller="binding")
            if "checks" not in r.params and r.params.get("maker", "driver") == "driver" and r.api != "CPU"
        ]
        ways = [_way(kind, label, r, arms.get(id(r)), steps_of(group.workload)) for r in fitting]
        if not ways and kind not in ("launches", "wgsl"):
            reason = _left_out(view.fingerprint, stack, f"{group.workload} {pattern} binding ")
            ways = [ChainWay(kind, stack, label, None, reason=reason)] if reason else []
        found += sorted(ways, key=lambda way: way.cost.value if way.cost else float("inf"))[:1]
    kinds = {way.kind for way in found if way.cost}
    found = [way for way in found if way.kind != "launches" or "eager" not in kinds]
    has_graph = "graph-driver" in kinds
    return [way for way in found if (way.kind != "wgsl" if has_graph else way.cost or way.kind == "graph-driver")]


def _way(kind: str, label: str, record: Record, arm: ArmFit | None, steps: int) -> ChainWay:
    if arm is not None:
        cost = by_interval(dataclasses.replace(arm.cost(steps), status=record.status))
        beyond = arm.is_extrapolated(steps)
        return ChainWay(kind, record.stack, label, cost, arm.slope, arm.fixed, beyond=beyond)
    figure, bent = record.figure("complete"), _read_off(record, steps)
    if figure is None or bent is None:
        return ChainWay(kind, record.stack, label, None, reason=why_no_speed(record))
    modes = figure.modes
    each = Value(modes[0], min(modes), max(modes), unit="ns", source=record.device) if modes else None
    beyond = measured_time(record, steps) is None
    return ChainWay(kind, record.stack, label, bent, each, reason=record.reason, beyond=beyond)


def _read_off(record: Record, steps: int) -> Value | None:
    """The time of so many steps where T(n) bends: between the measured lengths, with their quartiles.

    Beyond the longest the two costs of a step, from anchors, go on. None if these are unknown or not above 0.
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
    """The time of more steps than were measured: the longest chain, and the cost of a step for the rest."""
    longest = max(record.curve, key=lambda point: point.n)
    more = steps - longest.n
    return Value(
        longest.total + more * modes[0],
        longest.q1 + more * min(modes),
        longest.q3 + more * max(modes),
        unit="ns",
        source=record.device,
    )


def _left_out(run: Fingerprint, stack: str, case: str) -> Why:
    """Why the run has no such case: the stack is missing, or the plan left the case out; '' if it says nothing."""
    left = (one for one in run.left_out if one.target.startswith(f"{stack}@") and one.case.startswith(case))
    reasons = [absent.reason for absent in absent_stacks(run, [stack])] + [one.reason for one in left]
    return reasons[0] if reasons else ""


def lead(found: Sequence[WorkRow]) -> list[str]:
    """When fused WGSL is cheaper than the CUDA driver's graph, and of each other workload why not; may be empty.

    A way that is cheaper than all of these stands before the workloads where they tie.
    """
    chains = [row for row in found if not row.said and row.of_kind("fused-wgsl")]
    if not any(row.graph for row in chains):
        said = [f"{row.name} {', '.join(_by_verdict(row))}" for row in chains]
        return [f"Fused WGSL, beside a dispatch a step in the same stack: {'; '.join(said)}."] if said else []
    chains = [row for row in chains if row.graph]
    won = [row for row in chains if all(row.verdict(way) == "cheaper" for way in row.of_kind("fused-wgsl"))]
    below = all(steps and steps[2].ceiling < (steps[0] - steps[1]).floor for steps in map(_steps, won))
    where = " where its step takes less than the graph adds to a CUDA step" if below else ""
    names = listed([f"{row.name} {_range(row)}{_added(row)}" for row in won])
    others = [
        f"{row.name.capitalize()}: fused WGSL is {', '.join(_by_verdict(row))}, beside the graph{_why(row)}."
        for row in chains
        if row not in won
    ]
    first = [f"Fused WGSL is cheaper than the CUDA driver's graph{where}: {names}."] if won else []
    return [*first, *_cheapest_ways(chains), *others]


def remarks(found: Sequence[WorkRow]) -> list[str]:
    """Sentences: one fused CUDA kernel and the graph; those of slices on their rows; the rows of another run."""
    own = [(row, way) for row in found if row.graph and not row.said for way in row.of_kind("fused-cuda")]
    words = listed([f"{row.name} {compared(row, way)}" for row, way in own])
    runs: dict[str, list[str]] = {}
    for row in (row for row in found if row.run):
        runs.setdefault(row.run, []).append(row.name)
    others = [f"{listed(names)} of {run}" for run, names in runs.items()]
    return [
        *([f"One fused CUDA kernel, beside the CUDA driver's graph: {words}."] if words else []),
        *(row.said for row in found if row.said),
        *([f"From other runs: {'; '.join(others)}."] if others else []),
    ]


def _cheapest_ways(found: Sequence[WorkRow]) -> list[str]:
    """For each row with a way of ``_OTHER``: what it takes, and beside which graph."""
    said = []
    for row in found:
        for way in row.of_kind(_OTHER):
            cost = time_text(way)
            where = f" in the run of {way.run}" if way.run else ""
            least = f"{row.name.capitalize()}, the cheapest of all measured ways: {way.label}, {cost}"
            said.append(f"{least}: {compared(row, way)} than the CUDA driver's graph{where}.")
    return said


def _added(row: WorkRow) -> str:
    """`` (its step takes 0.09 µs, the graph adds 1.1)``; '' if one is unknown."""
    if (steps := _steps(row)) is None:
        return ""
    graph, cuda, wgsl = steps
    return f" (its step takes {number(wgsl.value / 1e3)} {MICRO}, the graph adds {number((graph - cuda).value / 1e3)})"


def _steps(row: WorkRow) -> tuple[Value, Value, Value] | None:
    """ns a step in the graph, in fused CUDA and in the cheapest fused WGSL kernel; None if one is unknown."""
    graph, cuda = row.graph, next(iter(row.of_kind("fused-cuda")), None)
    wgsl = [way.step for way in row.of_kind("fused-wgsl") if way.step is not None]
    if graph is None or cuda is None or graph.step is None or cuda.step is None or not wgsl:
        return None
    return graph.step, cuda.step, min(wgsl, key=lambda step: step.value)


def _why(row: WorkRow) -> str:
    """A sentence on why fused WGSL is not cheaper: the time of a step in each way. '' if the times do not show it."""
    steps = _steps(row)
    if steps is None or any(row.verdict(way) == "cheaper" for way in row.of_kind("fused-wgsl")):
        return ""
    graph, cuda, wgsl = steps
    if (graph - cuda).floor < _LITTLE * cuda.value:
        added = number((graph - cuda).value / 1e3)
        return f"; a step in CUDA takes {number(cuda.value / 1e3)} {MICRO}, to which the graph adds {added}"
    if (slower := wgsl / cuda).floor > _LEAST_KERNEL_RATIO:
        return f"; a step of the WGSL kernel takes {number(slower.value)} times as long as one in CUDA"
    return ""


def _range(row: WorkRow) -> str:
    """How many times cheaper fused WGSL is: ``12 times``, ``8.5 to 12 times``."""
    found = [times.value for way in row.of_kind("fused-wgsl") if (times := row.relative(way)) is not None]
    ends = dict.fromkeys(number(1 / times) for times in (max(found), min(found)))
    return f"{' to '.join(ends)} times"


def time_text(way: ChainWay) -> str:
    """The time of all steps, ``1,696 µs``, with an asterisk where it is read off the line."""
    if way.cost is None:
        return ""
    return f"{number(way.cost / 1e3)} {MICRO}" + ("*" if way.beyond else "")


def compared(row: WorkRow, way: ChainWay) -> str:
    """``11 times cheaper``, ``1.2 times dearer``, ``a tie`` or ``not told apart``."""
    times, verdict = row.relative(way), row.verdict(way)
    if times is None or verdict == "unclear":
        return "not told apart"
    if verdict == "tie":
        return "a tie"
    return f"{number(times.value if verdict == 'dearer' else 1 / times.value)} times {verdict}"


def _by_verdict(row: WorkRow) -> list[str]:
    """``a tie through wgpu-native`` and such, for each group of ways in fused WGSL with the same words."""
    through: dict[str, list[str]] = {}
    for way in row.of_kind("fused-wgsl"):
        through.setdefault(compared(row, way), []).append(way.through)
    return [f"{words} through {listed(names)}" for words, names in through.items()]
