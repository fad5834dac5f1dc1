"""What a chain of dependent steps costs by each way to run it, and at which length one way passes another.

Everything is computed from the records' own fits, ``fixed + slope * steps``, with both intervals, within one file. Arms
of different stacks were not measured in one process, so their ratios hold all that moves between processes: each
figure's interval is over processes, and a ratio's interval is over all that both allow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from overhead.reading.format import bounds, valued
from overhead.reading.view import View
from overhead.results import Record
from overhead.workloads import workloads

COMPARED = {
    "graph-vs-eager": ("eager", "graph"),
    "graph-vs-fused-wgsl": ("graph", "fused-wgsl"),
    "fused-vs-graph": ("graph", "fused-cuda"),
    "hybrid-vs-eager": ("hybrid", "eager"),
    "scan-vs-jit": ("jit", "scan"),
    "wgsl-fusion": ("wgsl", "fused-wgsl"),
}
"""Named comparisons of kinds: the one that starts cheaper, then the one that costs less a step."""
LENGTHS = (1, 10, 100, 500, 1500, 5000, 10_000)
"""Steps at which arms are compared, besides the workload's own."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to run a chain, whatever the stack."""

    name: str
    title: str
    is_one: Callable[[Record], bool]


WGSL = frozenset({"wgpu-native", "dawn", "chromium", "firefox", "safari"})
KINDS: tuple[Kind, ...] = (
    Kind("graph", "a CUDA graph of all steps", lambda r: r.stack == "cuda-graph" and r.pattern == "replay"),
    Kind("fused-wgsl", "fused WGSL", lambda r: r.stack in WGSL and r.pattern == "fused"),
    Kind("wgsl", "WGSL, a dispatch a step", lambda r: r.stack in WGSL and r.pattern == "one-pass"),
    Kind("fused-cuda", "a fused CUDA kernel", lambda r: r.stack in ("cuda-driver", "cupy") and r.pattern == "fused"),
    Kind("fused-triton", "a fused Triton kernel", lambda r: r.stack == "triton" and r.pattern == "fused"),
    Kind("scan", "one jitted loop (scan, fori_loop)", lambda r: r.stack == "jax" and r.pattern == "fused"),
    Kind("jit", "a jitted step a call", lambda r: r.stack == "jax" and r.pattern == "per-submit"),
    Kind("compiled", "torch.compile of the step", lambda r: r.stack == "torch-compile"),
    Kind("launches", "a launch a step", lambda r: r.stack in ("cuda-driver", "triton") and r.pattern == "per-submit"),
    Kind("eager", "eager operations", lambda r: r.pattern == "per-submit"),
    Kind("hybrid", "every other step on the host", lambda r: r.pattern == "hybrid"),
)  # fmt: skip
"""The first that fits names an arm."""


@dataclasses.dataclass(frozen=True)
class Span:
    """A value with the interval that its parts allow."""

    value: float
    low: float
    high: float

    def over(self, other: Span) -> Span:
        """The ratio, its interval over all that both allow."""
        low = self.low / other.high if other.high > 0 else 0.0
        high = self.high / other.low if other.low > 0 else float("inf")
        return Span(self.value / other.value, low, high)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One record of a workload, with its fit. Times in ns."""

    record: Record
    kind: Kind
    label: str
    slope: Span
    fixed: Span
    longest: int
    """The largest number of steps that was measured."""

    @property
    def processor(self) -> str:
        """What computes: ``gpu``, ``software`` or ``cpu``."""
        return "cpu" if self.record.api == "CPU" else "software" if self.record.software else "gpu"

    def cost(self, steps: float) -> Span:
        """A chain of so many steps and one wait."""
        low = max(self.fixed.low, 0.0) + max(self.slope.low, 0.0) * steps
        high = max(self.fixed.high, 0.0) + self.slope.high * steps
        return Span(max(self.fixed.value, 0.0) + self.slope.value * steps, low, high)

    def extrapolated(self, steps: float) -> bool:
        """Whether no chain of that length was measured."""
        return steps > self.longest


@dataclasses.dataclass(frozen=True)
class Group:
    """All arms of a workload at one number of elements, on one kind of processor; ``failed`` have no speed."""

    workload: str
    elements: int
    arms: tuple[Arm, ...]
    failed: tuple[Record, ...]

    def best(self, steps: float, kinds: Iterable[str] | None = None) -> Arm | None:
        """The cheapest arm at that length, of these kinds."""
        found = [a for a in self.arms if kinds is None or a.kind.name in kinds]
        return min(found, key=lambda a: a.cost(steps).value, default=None)

    def by_kind(self, steps: float) -> list[Arm]:
        """The cheapest arm of each kind at that length, cheapest first."""
        found = [arm for kind in KINDS if (arm := self.best(steps, {kind.name})) is not None]
        return sorted(found, key=lambda a: a.cost(steps).value)


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Where ``second`` becomes cheaper than ``first``: from ``steps`` on; None where the intervals do not tell."""

    first: Arm
    second: Arm
    steps: Span | None
    always: bool = False
    never: bool = False


def groups(view: View) -> list[Group]:
    """The file's workloads by number of elements; arms that compute on the CPU's cores stand with the GPU's."""
    found: dict[tuple[str, int], list[Record]] = {}
    for target in view.stacked:
        for record in target.records:
            elements = record.params.get("elements")
            if isinstance(elements, int) and not isinstance(elements, bool) and elements > 0 and record.unit == "step":
                found.setdefault((record.workload, elements), []).append(record)
    return [_group(view, *key, records) for key, records in sorted(found.items())]


def _group(view: View, workload: str, elements: int, records: Sequence[Record]) -> Group:
    arms = [arm for record in records if (arm := _arm(view, record)) is not None]
    kept = {id(a.record) for a in arms}
    return Group(workload, elements, tuple(arms), tuple(r for r in records if id(r) not in kept))


def _arm(view: View, record: Record) -> Arm | None:
    slope, fixed = _span(record, "complete"), _start(record)
    kind = next((k for k in KINDS if k.is_one(record)), None)
    if slope is None or slope.value <= 0 or kind is None:
        return None
    longest = max((p.n for p in record.curve), default=0)
    own = {k: v for k, v in record.params.items() if k != "elements"}
    words = " ".join([record.pattern, *(str(v) for _, v in sorted(own.items()))])
    return Arm(record, kind, f"{view.target(record).label}, {words}", slope, fixed, longest)


def _start(record: Record) -> Span:
    """What a chain costs besides its steps: the fit's intercept; where that is below zero, its shortest chain."""
    fixed = _span(record, "fixed")
    if fixed is not None and fixed.value > 0:
        return fixed
    shortest = min(record.curve, key=lambda p: p.n, default=None)
    return Span(shortest.total, shortest.q1, shortest.q3) if shortest is not None else Span(0.0, 0.0, 0.0)


def _span(record: Record, name: str) -> Span | None:
    figure = record.figure(name)
    value = valued(figure)
    if figure is None or value is None:
        return None
    low, high = bounds(figure)
    return Span(value, value if low is None else low, value if high is None else high)


def crossing(first: Arm, second: Arm) -> Crossing:
    """Where the second passes the first, by their fits: it costs more to start and less a step."""
    start, gain = second.fixed, first.slope
    if second.slope.high < gain.low and second.fixed.high <= first.fixed.low:
        return Crossing(first, second, None, always=True)
    if second.slope.low >= gain.high and second.fixed.low >= first.fixed.high:
        return Crossing(first, second, None, never=True)
    saved = Span(gain.value - second.slope.value, gain.low - second.slope.high, gain.high - second.slope.low)
    paid = Span(start.value - first.fixed.value, start.low - first.fixed.high, start.high - first.fixed.low)
    if saved.low <= 0 or paid.value <= 0:
        return Crossing(first, second, None)
    return Crossing(first, second, Span(paid.value / saved.value, max(paid.low, 0) / saved.high, paid.high / saved.low))


def steps_of(name: str) -> int:
    """The workload's own length; of one that is not known here, 1,000."""
    found = workloads().get(name)
    return found.steps if found is not None else 1000


def graph_against_wgsl(found: Sequence[Group]) -> tuple[Group, Arm, Arm] | None:
    """The headline pair, on GPUs at the workload's own length: the recurrence first, and the size nearest to 4,096."""
    for group in sorted(found, key=lambda g: (g.workload != "recurrence", abs(g.elements - 4096))):
        on_gpu = dataclasses.replace(group, arms=tuple(a for a in group.arms if a.processor == "gpu"))
        steps = steps_of(group.workload)
        graph, wgsl = on_gpu.best(steps, {"graph"}), on_gpu.best(steps, {"fused-wgsl"})
        if graph is not None and wgsl is not None:
            return group, graph, wgsl
    return None
