"""What a chain of dependent steps costs by each way to run it, and at which length one way passes another.

Everything is computed from the records' own fits, ``fixed + slope * steps``, with both intervals, within one file. Arms
of different stacks were not measured in one process, so their ratios hold all that moves between processes: each
figure's interval is over processes, and a ratio's interval is over all that both allow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from overhead import devices
from overhead.devices import without_brackets
from overhead.reading.format import plain
from overhead.reading.intervals import Span, span
from overhead.reading.view import View, words
from overhead.results import Record, Scalar
from overhead.workloads import UNROLLED, workloads

COMPARED = {
    "graph-vs-eager": ("eager", "graph"),
    "graph-vs-fused-wgsl": ("graph", "fused-wgsl"),
    "fused-vs-graph": ("graph", "fused-cuda"),
    "hybrid-vs-eager": ("hybrid", "eager"),
    "scan-vs-jit": ("jit", "scan"),
    "wgsl-fusion": ("wgsl", "fused-wgsl"),
    "wgsl-operations": ("wgsl-separate", "wgsl"),
    "cuda-operations": ("launches-separate", "launches"),
    "library-vs-eager": ("eager", "library"),
}
"""Named comparisons of kinds: the one that starts cheaper, then the one that costs less a step."""
LENGTHS = (1, 10, 100, 10_000)
"""Steps at which arms are compared, besides the workload's own."""
PROCESSORS = ("gpu", "software", "cpu")


Variant = tuple[tuple[str, Scalar], ...]
"""Parameters that change what is computed, by name."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A way to run a chain, whatever the stack."""

    name: str
    title: str
    is_one: Callable[[Record], bool]


def _split(record: Record, pattern: str, body: str = "separate") -> bool:
    """Whether a step is split so: into its operations, or not at all by the library's own call."""
    return record.pattern == pattern and record.params.get("body") == body


WGSL = frozenset({"wgpu-native", "dawn", "chromium", "firefox", "safari"})
LAUNCHERS = frozenset({"cuda-driver", "triton"})
KINDS: tuple[Kind, ...] = (
    Kind("library", "the library's own call", lambda r: _split(r, "per-submit", "library")),
    Kind("graph", "a CUDA graph of all steps", lambda r: r.stack == "cuda-graph" and r.pattern == "replay"),
    Kind("fused-wgsl", "fused WGSL", lambda r: r.stack in WGSL and r.pattern == "fused"),
    Kind("wgsl-separate", "WGSL, a dispatch an operation", lambda r: r.stack in WGSL and _split(r, "one-pass")),
    Kind("wgsl", "WGSL, a dispatch a step", lambda r: r.stack in WGSL and r.pattern == "one-pass"),
    Kind("wgsl-submits", "WGSL, a submission a step", lambda r: r.stack in WGSL and r.pattern == "per-submit"),
    Kind("fused-cuda", "a fused CUDA kernel", lambda r: r.stack in ("cuda-driver", "cupy") and r.pattern == "fused"),
    Kind("fused-triton", "a fused Triton kernel", lambda r: r.stack == "triton" and r.pattern == "fused"),
    Kind("vulkan-replay", "recorded Vulkan dispatches", lambda r: r.stack == "vulkan" and r.pattern == "replay"),
    Kind("fused-spirv", "fused SPIR-V in raw Vulkan", lambda r: r.stack == "vulkan" and r.pattern == "fused"),
    Kind("scan", "one jitted loop (scan, fori_loop)", lambda r: r.stack == "jax" and r.pattern == "fused"),
    Kind("jit", "a jitted step a call", lambda r: r.stack == "jax" and r.pattern == "per-submit"),
    Kind("compiled", "torch.compile of the step", lambda r: r.stack == "torch-compile"),
    Kind("launches-separate", "a launch an operation", lambda r: r.stack in LAUNCHERS and _split(r, "per-submit")),
    Kind("launches", "a launch a step", lambda r: r.stack in LAUNCHERS and r.pattern == "per-submit"),
    Kind("eager", "eager operations", lambda r: r.pattern == "per-submit"),
    Kind("hybrid", "every other step on the host", lambda r: r.pattern == "hybrid"),
)  # fmt: skip
"""The first that fits names an arm."""


_WITHOUT = {"unbounded-loops": " without loop bounds", "off": " without bounds checks"}


@dataclasses.dataclass(frozen=True)
class ArmFit:
    """One record of a workload, with its fit. Times in ns."""

    record: Record
    kind: Kind
    label: str
    slope: Span
    fixed: Span
    longest: int
    """The largest number of steps that was measured."""

    @property
    def way(self) -> str:
        """The stack, and what it adds to or leaves out of the kernel where that is a choice."""
        without = _WITHOUT.get(str(self.record.params.get("checks")), "")
        return plain(self.record.stack, 40) + without

    @property
    def device(self) -> Span | None:
        """ns of the device's time that a step takes, None where it is not known or holds gaps."""
        return span(self.record.figure("device_busy"))

    @property
    def processor(self) -> str:
        """What computes, one of ``PROCESSORS``."""
        return devices.processor(self.record)

    def cost(self, steps: float) -> Span:
        """A chain of so many steps and one wait."""
        return positive(self.fixed) + positive(self.slope) * steps

    def extrapolated(self, steps: float) -> bool:
        """Whether no chain of that length was measured."""
        return steps > self.longest


@dataclasses.dataclass(frozen=True)
class Group:
    """All arms of a workload at one number of elements, in one variant; ``failed`` have no speed."""

    workload: str
    elements: int
    variant: Variant
    arms: tuple[ArmFit, ...]
    failed: tuple[Record, ...]

    @property
    def name(self) -> str:
        """The workload, and its variant in brackets: ``rmsnorm (columns=896, precision=float16)``."""
        own = f" ({', '.join(words(dict(self.variant)))})" if self.variant else ""
        return plain(self.workload, 40) + own

    @property
    def title(self) -> str:
        """``recurrence, 4,096 elements``."""
        return f"{self.name}, {self.elements:,} element{'s' if self.elements > 1 else ''}"

    def on(self, processor: str) -> Group:
        """The arms that one kind of processor computes."""
        return dataclasses.replace(self, arms=tuple(a for a in self.arms if a.processor == processor))

    def checked(self) -> Group:
        """The arms whose kernels hold the checks that their library adds."""
        return dataclasses.replace(self, arms=tuple(a for a in self.arms if "checks" not in a.record.params))

    def best(self, steps: float, kinds: Iterable[str] | None = None) -> ArmFit | None:
        """The cheapest arm at that length, of these kinds."""
        found = [a for a in self.arms if kinds is None or a.kind.name in kinds]
        return min(found, key=lambda a: a.cost(steps).value, default=None)

    def by_kind(self, steps: float) -> list[ArmFit]:
        """The cheapest arm of each kind at that length, cheapest first."""
        found = [arm for kind in KINDS if (arm := self.best(steps, {kind.name})) is not None]
        return sorted(found, key=lambda a: a.cost(steps).value)

    def rivals(self, before: str, after: str, steps: float) -> tuple[ArmFit, ArmFit] | None:
        """The cheapest arm of each of two kinds at that length, on the first kind of processor that has both."""
        for processor in PROCESSORS:
            there = self.on(processor)
            first, second = there.best(steps, {before}), there.best(steps, {after})
            if first is not None and second is not None:
                return first, second
        return None


@dataclasses.dataclass(frozen=True)
class Crossing:
    """Where ``second`` becomes cheaper than ``first``: from ``steps`` on; None where the intervals do not tell."""

    first: ArmFit
    second: ArmFit
    steps: Span | None
    always: bool = False
    never: bool = False


def groups(view: View) -> list[Group]:
    """The file's workloads by variant and elements; arms that compute on the CPU's cores stand with the GPU's."""
    found: dict[tuple[str, Variant, int], list[Record]] = {}
    for target in view.stacked:
        for record in target.records:
            elements = record.params.get("elements")
            if record.workload == UNROLLED or record.unit != "step":
                continue
            if isinstance(elements, int) and not isinstance(elements, bool) and elements > 0:
                found.setdefault((record.workload, variant_of(record), elements), []).append(record)
    return [_group(view, *key, found[key]) for key in sorted(found, key=lambda k: (k[0], str(k[1]), k[2]))]


def variant_of(record: Record) -> Variant:
    """Those of its parameters that change what is computed."""
    known = workloads().get(record.workload)
    names = {"precision", *(name for variant in (known.variants if known else ()) for name in variant)}
    return tuple((name, value) for name, value in sorted(record.params.items()) if name in names)


def _group(view: View, workload: str, variant: Variant, elements: int, records: Sequence[Record]) -> Group:
    arms = [arm for record in records if (arm := _arm(view, record)) is not None]
    kept = {id(a.record) for a in arms}
    return Group(workload, elements, variant, tuple(arms), tuple(r for r in records if id(r) not in kept))


def _arm(view: View, record: Record) -> ArmFit | None:
    slope, fixed = span(record.figure("complete")), _start(record)
    kind = next((k for k in KINDS if k.is_one(record)), None)
    if slope is None or slope.value <= 0 or kind is None:
        return None
    longest = max((p.n for p in record.curve), default=0)
    shared = {"elements", *dict(variant_of(record))}
    own = {k: v for k, v in record.params.items() if k not in shared}
    what = " ".join([record.pattern, *(plain(str(v), 40) for _, v in sorted(own.items()))])
    return ArmFit(record, kind, f"{_place(view, record)}, {what}", slope, fixed, longest)


def _place(view: View, record: Record) -> str:
    """The stack, and of its device only what tells it from the others of the file."""
    adapters = {without_brackets(t.first.adapter) for t in view.stacked if t.first.api != "CPU"}
    if len(adapters) > 1:
        return view.target(record).label
    where = " (CPU)" if record.api == "CPU" else " (software)" if record.software else ""
    return plain(record.stack, 40) + where


def _start(record: Record) -> Span:
    """What a chain costs besides its steps: the fit's intercept; where that is below zero, its shortest chain."""
    fixed = span(record.figure("fixed"))
    if fixed is not None and fixed.value > 0:
        return fixed
    shortest = min(record.curve, key=lambda p: p.n, default=None)
    return Span(shortest.total, shortest.q1, shortest.q3) if shortest is not None else Span(0.0, 0.0, 0.0)


def positive(found: Span) -> Span:
    """What of it is above zero: no cost is less."""
    low, high = (None if end is None else max(end, 0.0) for end in (found.low, found.high))
    return Span(max(found.value, 0.0), low, high)


def crossing(first: ArmFit, second: ArmFit) -> Crossing:
    """Where the second passes the first, by their fits: it costs more to start and less a step."""
    saved, paid = first.slope - second.slope, second.fixed - first.fixed
    if saved.floor > 0 and paid.ceiling <= 0:
        return Crossing(first, second, None, always=True)
    if saved.ceiling <= 0 and paid.floor >= 0:
        return Crossing(first, second, None, never=True)
    if saved.floor <= 0 or paid.value <= 0:
        return Crossing(first, second, None)
    return Crossing(first, second, positive(paid) / saved)


def steps_of(name: str) -> int:
    """The workload's own length; of one that is not known here, 1,000."""
    found = workloads().get(name)
    return found.steps if found is not None else 1000


def graph_against_wgsl(found: Sequence[Group]) -> tuple[Group, ArmFit, ArmFit] | None:
    """The headline pair, on GPUs at the workload's own length: the recurrence first, and the size nearest to 4,096.

    WGSL as a browser or a library runs it, with its checks, where that was measured.
    """
    for group in sorted(found, key=lambda g: (g.workload != "recurrence", abs(g.elements - 4096))):
        on_gpu, steps = group.on("gpu"), steps_of(group.workload)
        graph = on_gpu.best(steps, {"graph"})
        wgsl = on_gpu.checked().best(steps, {"fused-wgsl"}) or on_gpu.best(steps, {"fused-wgsl"})
        if graph is not None and wgsl is not None:
            return group, graph, wgsl
    return None
