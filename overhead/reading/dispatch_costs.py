"""What one dispatch costs through each stack: the rows of the headline figure, all of one run and one board."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Literal

from overhead.devices import is_board_id, same_device_across_apis
from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading.format import between, cost_text, micro, plain, two_speeds
from overhead.reading.missing_values import why
from overhead.reading.view import TargetView, View
from overhead.results import Caller, Record, Scalar

Kind = Literal["python", "compiled", "browser", "batched"]
KIND_TITLES: dict[Kind, str] = {
    "python": "from Python",
    "compiled": "from compiled code",
    "browser": "from JavaScript",
    "batched": "batched: a graph's node, or one of many in a pass",
}
_CALLERS: dict[Kind, Caller] = {"python": "binding", "compiled": "native", "browser": "browser"}
KIND_WORDS: dict[Kind, str] = {**KIND_TITLES, "batched": "batched"}
_GRAPH_MAKERS = {"cuda-driver": "driver", "torch": "torch"}
"""The stack whose launches a CUDA graph records, and the value of ``maker`` of that graph."""
_ONE_PASS_STACKS = WEBGPU_STACKS | {"vulkan", "chromium", "firefox", "safari"}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A way to call a stack that has a row of its own. ``params`` select the case; none: the stack's base case."""

    stack: str
    label: str
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)


_ENTRIES = (
    Entry("cuda-driver", "CUDA driver"),
    Entry("cupy", "CuPy RawKernel", {"operation": "raw-kernel"}),
    Entry("cupy", "CuPy add"),
    Entry("torch", "PyTorch x.add_(1)"),
    Entry("torch-compile", "torch.compile, 1 op"),
    Entry("triton", "Triton jit"),
    Entry("jax", "JAX jit"),
    Entry("vulkan", "raw Vulkan"),
    Entry("dawn", "WebGPU, Dawn"),
    Entry("wgpu-native", "WebGPU, wgpu-native"),
    Entry("chromium", "WebGPU, Chromium"),
    Entry("firefox", "WebGPU, Firefox"),
    Entry("safari", "WebGPU, Safari"),
    Entry("numpy", "NumPy x += 1"),
)
"""Known stacks. A stack that is not listed, such as a plugin's, has a row for its base case under its own name."""


@dataclasses.dataclass(frozen=True)
class DispatchRow:
    """One way to call a stack. ``marks``: the resolved costs in microseconds, by kind.

    ``records``: the case of each kind. ``remarks``: by kind, what is not resolved, and what differs in operation.
    """

    label: str
    stack: str
    marks: Mapping[Kind, float]
    records: Mapping[Kind, Record]
    remarks: Mapping[Kind, str]

    @property
    def first(self) -> Kind:
        """The kind that the row is sorted by: from Python where it is known, else the next caller."""
        return next((kind for kind in ("python", "browser", "compiled", "batched") if kind in self.marks), "python")

    @property
    def name(self) -> str:
        """The label inside a sentence: ``the CUDA driver``, ``Dawn``."""
        return f"the {self.label}" if self.stack == "cuda-driver" else self.label.removeprefix("WebGPU, ")

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks, each with its kind, and the unit where it is an unusual one."""
        unit = next(iter(self.records.values())).unit
        other = [] if unit in ("dispatch", "launch") else [f"per {plain(unit, 20)} (one call)"]
        return (*(f"{KIND_WORDS[kind]}: {remark}" for kind, remark in self.remarks.items()), *other)

    @property
    def met(self) -> tuple[float, float] | None:
        """The met range of the row's first caller."""
        return met_range(next(iter(self.records.values())))


@dataclasses.dataclass(frozen=True)
class DispatchCosts:
    """All rows, the cheapest first. ``device``: name of the device; ``view``: of the run that measured them.

    ``hardware``: whether a GPU ran them; else software adapters and the CPU did.
    """

    device: str
    hardware: bool
    rows: tuple[DispatchRow, ...]
    view: View

    @property
    def title(self) -> str:
        return f"{'GPU dispatch' if self.hardware else 'Dispatch'} overhead on {self.device}"


def dispatch_costs(view: View) -> DispatchCosts | None:
    """The rows of the run; None without any row."""
    targets, hardware = targets_shown(view)
    rows = [row for target in targets for row in _rows(view, target)]
    if not rows:
        return None
    cpu = plain(view.fingerprint.machine.cpu, 40)
    device = plain(targets[0].first.adapter, 40) if hardware else f"{cpu}, no GPU"
    return DispatchCosts(device, hardware, tuple(sorted(rows, key=_rank)), view)


def targets_shown(view: View) -> tuple[list[TargetView], bool]:
    """The best target of each stack that ran the step on one GPU, and True; without a GPU all others, and False."""
    found = [t for t in map(view.best, view.stacks) if t is not None and t.stepped]
    gpus = [t for t in found if t.first.api != "CPU" and not t.software]
    boards = list(dict.fromkeys(t.first.device for t in gpus if is_board_id(t.first.device)))
    on_board = [t for t in gpus if t.first.device not in boards[1:]]
    if not on_board:
        return found, False
    by_device = [[t for t in on_board if same_device_across_apis(t.first, one.first)] for one in on_board]
    return max(by_device, key=len), True


def _rank(row: DispatchRow) -> tuple[bool, float]:
    return not row.marks, row.marks.get(row.first, math.inf)


def _label(target: TargetView, entry: Entry | None = None) -> str:
    entry = entry or next((e for e in _ENTRIES if e.stack == target.stack and not e.params), None)
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    return (entry.label if entry is not None else plain(target.stack, 32)) + where


def _rows(view: View, target: TargetView) -> Iterator[DispatchRow]:
    if target.stack == "cuda-graph":  # a graph's node stands in the row of the launch that it replaces
        return
    entries = [e for e in _ENTRIES if e.stack == target.stack] or [Entry(target.stack, target.stack)]
    for entry in entries:
        row = _row(view, target, entry)
        if row is not None:
            yield row


def _row(view: View, target: TargetView, entry: Entry) -> DispatchRow | None:
    found = {kind: record for kind, caller in _CALLERS.items() if (record := _case(target, entry, caller)) is not None}
    if not found:
        return None
    if (batched := _batched(view, target, entry, next(iter(found.values())).caller)) is not None:
        found["batched"] = batched
    remarks = {kind: problem for kind, record in found.items() if (problem := why_no_mark(record))}
    marks = {kind: (r.value("complete") or 0.0) / 1e3 for kind, r in found.items() if kind not in remarks}
    if operand := _other_operand(target, found.get("compiled")):
        remarks["compiled"] = "; ".join(filter(None, [remarks.get("compiled"), operand]))
    if "batched" not in found and target.stack in _ONE_PASS_STACKS:
        remarks["batched"] = "not measured in this run"
    return DispatchRow(_label(target, entry), target.stack, marks, found, remarks)


def _case(target: TargetView, entry: Entry, caller: Caller) -> Record | None:
    """The case of the entry by that caller; of compiled code also one that only differs in its operand."""
    base = target.base
    wanted = {**base.params, **entry.params}
    same = [
        r
        for r in target.records
        if r.caller == caller
        and r.pattern == base.pattern
        and r.workload == "step"
        and r.dependency == base.dependency
        and not r.is_ufunc_loop
    ]
    exact = next((r for r in same if r.params == wanted), None)
    if exact is not None or caller != "native" or entry.params:
        return exact
    return next((r for r in same if _differing(r.params, wanted) == {"operand"}), None)


def _differing(first: Mapping[str, Scalar], second: Mapping[str, Scalar]) -> set[str]:
    return {k for k in {*first, *second} if first.get(k) != second.get(k)}


def _batched(view: View, target: TargetView, entry: Entry, caller: Caller) -> Record | None:
    """One pass with many dispatches, by the caller of the row; for CUDA a node of the graph of such launches."""
    if entry.params:
        return None
    if target.stack in _GRAPH_MAKERS and target.first.api == "CUDA":
        graph = view.best("cuda-graph")
        maker = _GRAPH_MAKERS[target.stack]
        return next(
            (
                r
                for r in (graph.records if graph is not None else ())
                if r.params.get("maker") == maker and (r.pattern, r.workload) == ("replay", "step")
            ),
            None,
        )
    own = [r for r in target.records if (r.pattern, r.workload, r.caller) == ("one-pass", "step", caller)]
    return next((r for r in own if not target.varied(r)), None)


def why_no_mark(record: Record) -> str:
    """Why the cost has no mark, in words with its interval where it has one; '' where it is resolved."""
    figure = record.figure("complete")
    found = record.measured("complete")
    if figure is None or found is None:
        return plain(why(record, "complete"), 60)
    if figure.status == "ok" and found.resolved:
        return ""
    if two_speeds(figure):
        return f"two speeds, {cost_text(record)}"
    low, high = found.low, found.high
    interval = "" if low is None or high is None else f", {between(low / 1e3, high / 1e3)}"
    return (figure.status if figure.status != "ok" else "not above zero") + interval


def _other_operand(target: TargetView, compiled: Record | None) -> str:
    """The operand of compiled code where it is not the base case's, with the cost from Python; else ''."""
    base = target.base
    if compiled is None or compiled.params.get("operand") == base.params.get("operand"):
        return ""
    python = next(
        (
            r
            for r in target.records
            if r.params == compiled.params
            and r.caller == "binding"
            and r.pattern == base.pattern
            and r.workload == "step"
        ),
        None,
    )
    also = (
        f", {micro(f)} from Python"
        if python is not None and (f := python.figure("complete")) is not None and f.measured
        else ""
    )
    return f"x.add_(y){also}"


def met_range(record: Record) -> tuple[float, float] | None:
    """Lowest and highest cost that fresh processes met, in microseconds; None where it was not measured."""
    found = record.measured("met")
    if found is None:
        return None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return low / 1e3, high / 1e3


def cheapest(costs: DispatchCosts) -> DispatchRow | None:
    """The cheapest row with a resolved cost from Python."""
    return next((row for row in costs.rows if "python" in row.marks), None)
