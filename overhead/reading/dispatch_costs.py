"""What one dispatch costs through each stack, as rows and as sentences, all of one run and one board (GPU).

The headline figure of the front page draws the rows; the sentences stand above and below it. A mark is a cost that is
resolved: not noisy, and above zero with its interval.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Literal

from overhead.devices import is_board_id, same_device_across_apis
from overhead.named_comparisons import WEBGPU_STACKS
from overhead.reading.format import (
    MICRO,
    between,
    cost_text,
    factor_spread,
    listed,
    micro,
    micro_of,
    number,
    percent,
    plain,
    resolved,
    two_speeds,
    within,
)
from overhead.reading.key_figures import overstatement
from overhead.reading.missing_values import why
from overhead.reading.next_run import half_width, next_run_sentence, next_run_text, spread_of
from overhead.reading.view import CALLER_WORDS, TargetView, View, first_with, graph_maker, with_fields
from overhead.results import Caller, Record, Scalar, Value, WithFigures

Kind = Literal["python", "compiled", "browser", "batched"]
KIND_TITLES: dict[Kind, str] = {
    "python": "from Python",
    "compiled": "from compiled code",
    "browser": "from JavaScript",
    "batched": "batched: a graph's node, or one of many in a pass",
}
_CALLERS: dict[Kind, Caller] = {"python": "binding", "compiled": "native", "browser": "browser"}
KIND_WORDS: dict[Kind, str] = {**KIND_TITLES, "batched": "batched"}
_LEFT_OUT_FROM = 1.03
"""The mean of all samples is shown if it is at least so many times the quiet cost. Closer values mean the same."""
_GRAPH_MAKERS = {"cuda-driver": "driver", "torch": "torch"}
"""The stack whose launches a CUDA graph records, and the value of ``maker`` of that graph."""
_WEBGPU = ("dawn", "wgpu-native")
_ONE_PASS_STACKS = WEBGPU_STACKS | {"vulkan", "chromium", "firefox", "safari"}


@dataclasses.dataclass(frozen=True)
class _Entry:
    """A way to call a stack that has a row of its own. ``params`` select the case; none: the stack's base case."""

    stack: str
    label: str
    params: Mapping[str, Scalar] = dataclasses.field(default_factory=dict)


_ENTRIES = (
    _Entry("cuda-driver", "CUDA driver"),
    _Entry("cupy", "CuPy RawKernel", {"operation": "raw-kernel"}),
    _Entry("cupy", "CuPy add"),
    _Entry("torch", "PyTorch x.add_(1)"),
    _Entry("torch-compile", "torch.compile, 1 op"),
    _Entry("triton", "Triton jit"),
    _Entry("jax", "JAX jit"),
    _Entry("vulkan", "raw Vulkan"),
    _Entry("dawn", "WebGPU, Dawn"),
    _Entry("wgpu-native", "WebGPU, wgpu-native"),
    _Entry("chromium", "WebGPU, Chromium"),
    _Entry("firefox", "WebGPU, Firefox"),
    _Entry("safari", "WebGPU, Safari"),
    _Entry("numpy", "NumPy x += 1"),
)
"""Known stacks. A stack that is not listed, such as a plugin's, has a row for its base case under its own name."""


@dataclasses.dataclass(frozen=True)
class DispatchRow:
    """One way to call a stack. ``marks``: the resolved costs in microseconds, by kind (caller, or batched).

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
        """The label as a sentence has it: ``the CUDA driver``, ``Dawn``."""
        return f"the {self.label}" if self.stack == "cuda-driver" else self.label.removeprefix("WebGPU, ")

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines below the row: each remark with its kind, and the unit where it is neither dispatch nor launch."""
        unit = next(iter(self.records.values())).unit
        other = [] if unit in ("dispatch", "launch") else [f"per {plain(unit, 20)} (one call)"]
        return (*(f"{KIND_WORDS[kind]}: {remark}" for kind, remark in self.remarks.items()), *other)

    @property
    def met(self) -> tuple[float, float] | None:
        """The range over unpinned processes of the row's first caller, as ``met_range`` gives it."""
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
        """The title of the headline figure: ``GPU dispatch overhead on NVIDIA H200``."""
        return f"{'GPU dispatch' if self.hardware else 'Dispatch'} overhead on {self.device}"


def dispatch_costs(view: View) -> DispatchCosts | None:
    """The rows of the run's headline figure; None if no stack ran the step."""
    targets, hardware = targets_shown(view)
    rows = [row for target in targets for row in _rows(view, target)]
    if not rows:
        return None
    cpu = plain(view.fingerprint.machine.cpu, 40)
    device = plain(targets[0].first.adapter, 40) if hardware else f"{cpu}, no GPU"
    return DispatchCosts(device, hardware, tuple(sorted(rows, key=_rank)), view)


def targets_shown(view: View) -> tuple[list[TargetView], bool]:
    """The best target of each stack that ran the step on one GPU, and True; without a GPU the other best targets, and
    False.
    """
    found = [t for t in map(view.best, view.stacks) if t is not None and t.has_step]
    gpus = [t for t in found if t.first.api != "CPU" and not t.software]
    boards = list(dict.fromkeys(t.first.device for t in gpus if is_board_id(t.first.device)))
    on_board = [t for t in gpus if t.first.device not in boards[1:]]
    if not on_board:
        return found, False
    by_device = [[t for t in on_board if same_device_across_apis(t.first, one.first)] for one in on_board]
    return max(by_device, key=len), True


def _rank(row: DispatchRow) -> tuple[bool, float]:
    return not row.marks, row.marks.get(row.first, math.inf)


def _label(target: TargetView, entry: _Entry | None = None) -> str:
    entry = entry or next((e for e in _ENTRIES if e.stack == target.stack and not e.params), None)
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    return (entry.label if entry is not None else plain(target.stack, 32)) + where


def _rows(view: View, target: TargetView) -> Iterator[DispatchRow]:
    if target.stack == "cuda-graph":  # a graph's node stands in the row of the launch that it replaces
        return
    entries = [e for e in _ENTRIES if e.stack == target.stack] or [_Entry(target.stack, target.stack)]
    yield from (row for entry in entries if (row := _row(view, target, entry)) is not None)


def _row(view: View, target: TargetView, entry: _Entry) -> DispatchRow | None:
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


def _case(target: TargetView, entry: _Entry, caller: Caller) -> Record | None:
    """The case of the entry by that caller; of compiled code also one that only differs in its operand."""
    base = target.base
    wanted = {**base.params, **entry.params}
    same = with_fields(
        target.records,
        caller=caller,
        pattern=base.pattern,
        workload="step",
        dependency=base.dependency,
        is_ufunc_loop=False,
    )
    exact = first_with(same, params=wanted)
    if exact is not None or caller != "native" or entry.params:
        return exact
    return next((r for r in same if {k for k, _ in wanted.items() ^ r.params.items()} == {"operand"}), None)


def _batched(view: View, target: TargetView, entry: _Entry, caller: Caller) -> Record | None:
    """One pass with many dispatches, by the caller of the row; for CUDA a node of the graph of such launches."""
    if entry.params:
        return None
    if target.stack in _GRAPH_MAKERS and target.first.api == "CUDA":
        graph = view.best("cuda-graph")
        nodes = with_fields(graph.records if graph is not None else (), pattern="replay", workload="step")
        return next((r for r in nodes if r.params.get("maker") == _GRAPH_MAKERS[target.stack]), None)
    own = with_fields(target.records, pattern="one-pass", workload="step", caller=caller)
    return next((r for r in own if not target.varied(r)), None)


def why_no_mark(record: Record) -> str:
    """Why the cost has no mark, with its interval in microseconds where it has one; '' where it is resolved."""
    figure = record.figure("complete")
    found = record.measured("complete")
    if figure is None or found is None:
        if figure is not None and figure.status == "nonlinear" and figure.modes:
            return f"nonlinear: {micro_of(figure.modes[0])}, in long chains {micro_of(figure.modes[1])}"
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
    python = first_with(target.records, params=compiled.params, caller="binding", pattern=base.pattern, workload="step")
    cost = python.figure("complete") if python is not None else None
    return "x.add_(y)" + (f", {micro(cost)} from Python" if cost is not None and cost.measured else "")


def met_range(record: WithFigures) -> tuple[float, float] | None:
    """Lowest and highest cost in fresh processes that are not pinned to a processor, in µs; None if not measured."""
    found = record.measured("met")
    if found is None:
        return None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return low / 1e3, high / 1e3


def over_quiet(record: Record) -> Value | None:
    """The mean of all samples over the quiet cost, where interruptions or heavy tails add over 3 %; else None."""
    quiet, everything = record.measured("complete"), record.measured("everything")
    if quiet is None or everything is None or everything.value < _LEFT_OUT_FROM * quiet.value:
        return None
    return everything / quiet.value


def cheapest(costs: DispatchCosts) -> DispatchRow | None:
    """The cheapest row with a resolved cost from Python; None without such a row."""
    return next((row for row in costs.rows if "python" in row.marks), None)


def lead_sentences(costs: DispatchCosts) -> list[str]:
    """Up to four sentences above the headline figure; those whose figures are missing are left out."""
    said = (_cheapest(costs), _webgpu(costs), _batches(costs), _overstated(costs))
    return [sentence for sentence in said if sentence]


def _cheapest(costs: DispatchCosts) -> str:
    row = cheapest(costs)
    if row is None:
        return ""
    unit = "dispatch" if costs.hardware else "unit of work"
    found = next_run_text(row.records["python"], costs.view.fingerprint.machine)
    again = f" (expect {found} in another run)" if found else ""
    return f"Called from Python, the cheapest {unit} here goes through {row.name}: {_of(row, 'python')} {MICRO}{again}."


def _webgpu(costs: DispatchCosts) -> str:
    """What WebGPU costs from Python and from compiled code."""
    rows = [row for row in costs.rows if row.stack in _WEBGPU and "python" in row.marks]
    if not rows:
        return ""
    python = listed([f"{_of(row, 'python')} {MICRO} through {row.name}" for row in rows])
    compiled = [f"{_of(row, 'compiled')}" for row in rows if "compiled" in row.marks]
    rest = f"; from compiled code {listed(compiled)} {MICRO}" if len(compiled) == len(rows) else ""
    return f"From Python, WebGPU costs {python}{rest}."


def _batches(costs: DispatchCosts) -> str:
    """What a dispatch of a batch costs, for the WebGPU stack or else the first row that has one."""
    found = [(row, alone) for row in costs.rows if _batch(row) and (alone := _alone(row)) is not None]
    if not found:
        return ""
    row, alone = min(found, key=lambda one: one[0].stack not in _WEBGPU)
    batch = row.records["batched"]
    how = f"In a CUDA graph made by {graph_maker(batch)}" if batch.stack == "cuda-graph" else "In one pass"
    doubt = f" ({why_no_mark(alone)})" if alone.status == "noisy" else ""
    return (
        f"{how}, a dispatch through {row.name} costs {_batch(row)} {MICRO} instead of {cost_text(alone)}{doubt}, "
        f"both {CALLER_WORDS[alone.caller]}."
    )


def _alone(row: DispatchRow) -> Record | None:
    """The case without a batch by the caller of the batch; None where it has no cost above zero."""
    batch = row.records["batched"]
    same = (r for r in row.records.values() if r is not batch and r.caller == batch.caller)
    return next((r for r in same if resolved(r.figure("complete"))), None)


def _batch(row: DispatchRow) -> str:
    """The cost in a batch, or its two speeds; '' if it is not resolved."""
    if "batched" in row.marks:
        return _of(row, "batched")
    record = row.records.get("batched")
    figure = record.figure("complete") if record is not None else None
    return cost_text(record) if record is not None and figure is not None and two_speeds(figure) else ""


def _overstated(costs: DispatchCosts) -> str:
    """How far the time of a single dispatch and its wait lies above its cost."""
    found = [(overstatement(row.records[row.first], "naive"), row) for row in costs.rows if row.marks]
    told = [(times, row) for times, row in found if times is not None and times.high is not None]
    if not told:
        return ""
    times, row = max(told, key=lambda one: one[0].value)
    through = f"{row.name}, {CALLER_WORDS[row.records[row.first].caller]}"
    return f"Timing one dispatch plus its wait would report up to {factor_spread(times)} the real cost ({through})."


def _of(row: DispatchRow, kind: Kind) -> str:
    return number(within(row.marks[kind], 0.01))


def trust_sentence(costs: DispatchCosts) -> str:
    """How far another run, and a program that is not pinned, may lie from these figures; '' without a GPU."""
    if not costs.hardware:
        return ""
    machine = costs.view.fingerprint.machine
    spread = spread_of("host", machine)
    bands = [row for row in costs.rows if row.met is not None]
    unpinned = "; the bands show how much" if bands else "; this run did not measure how much"
    again = (
        next_run_sentence(machine)
        if spread is None
        else (
            "On the same GPU and processor model, 9 of 10 runs should put a CPU-bound figure within "
            f"{percent(math.exp(half_width(spread)) - 1)} of the one shown. On other hardware, measure again."
        )
    )
    return f"{again} A program that is not pinned to a quiet processor often pays more{unpinned}."
