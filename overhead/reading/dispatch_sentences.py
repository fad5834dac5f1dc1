"""Sentences above and below the headline figure: each has one caller, and the figures of the rows that are drawn."""

from __future__ import annotations

import math

from overhead.reading.dispatch_costs import (
    KIND_TITLES,
    ONE_PASS_STACKS,
    DispatchCosts,
    DispatchRow,
    Kind,
    mark_text,
    why_unresolved,
)
from overhead.reading.format import (
    MICRO,
    cost_text,
    factor_spread,
    listed,
    micro,
    number,
    percent,
    percent_spread,
    resolved,
    two_speeds,
    within,
)
from overhead.reading.key_figures import overstatement
from overhead.reading.next_run import half_width, next_run_sentence, next_run_text, spread_of
from overhead.reading.view import CALLER_WORDS, graph_maker
from overhead.results import Record, ratio

_WEBGPU = ("dawn", "wgpu-native")


def cheapest(costs: DispatchCosts) -> DispatchRow | None:
    """The cheapest row with a cost from Python, noisy or not; None without such a row."""
    return next((row for row in costs.rows if "python" in row.marks), None)


def lead_sentences(costs: DispatchCosts) -> list[str]:
    """Up to six sentences above the headline figure; those whose figures are missing are left out."""
    webgpu = [_webgpu(costs, kind) for kind in ("python", "compiled")]
    said = (_cheapest(costs), *webgpu, _batches(costs), _python(costs), _overstated(costs))
    return [sentence for sentence in said if sentence]


def _cheapest(costs: DispatchCosts) -> str:
    row = cheapest(costs)
    if row is None:
        return ""
    unit = "dispatch" if costs.hardware else "unit of work"
    found = next_run_text(row.records["python"], costs.view.fingerprint.machine)
    again = f" (expect {found} in another run)" if found else ""
    cost = f"{mark_text(row.marks['python'])} {MICRO}{_doubt(row.records['python'])}"
    ends = row.marks["python"][0].ceiling
    near = [
        one for one in costs.rows if one is not row and "python" in one.marks and one.marks["python"][0].floor <= ends
    ]
    alike = [f"{one.name} ({mark_text(one.marks['python'])})" for one in near]
    ties = f"; not told apart from {listed(alike)}" if alike else ""
    return f"Called from Python, the cheapest single {unit} here goes through {row.name}: {cost}{again}{ties}."


def _webgpu(costs: DispatchCosts, kind: Kind) -> str:
    """What WebGPU costs by one caller."""
    rows = [row for row in costs.rows if row.stack in _WEBGPU and kind in row.marks]
    said = [f"{mark_text(row.marks[kind])} {MICRO} through {row.name}{_doubt(row.records[kind])}" for row in rows]
    return f"{KIND_TITLES[kind].replace('from', 'From')}, a dispatch of WebGPU costs {listed(said)}." if said else ""


def _doubt(record: Record) -> str:
    """`` (noisy, 23.8 to 29.5)``; '' where the cost is resolved or has two speeds, which the text names."""
    figure, why = record.figure("complete"), why_unresolved(record)
    return f" ({why})" if why and figure is not None and not two_speeds(figure) else ""


def _batches(costs: DispatchCosts) -> str:
    """What a dispatch of a batch costs, for the WebGPU stacks or else the first row that has one."""
    found = [(row, alone) for row in costs.rows if "batched" in row.marks and (alone := _alone(row)) is not None]
    told = [one for one in found if one[0].stack in _WEBGPU] or found[:1]
    told = [one for one in told if one[1].caller == told[0][1].caller]
    if not told:
        return ""
    said = []
    for row, alone in told:
        batch = row.records["batched"]
        noisy = " (noisy)" if _doubt(alone) else ""
        cost = f"{mark_text(row.marks['batched'])} {MICRO}{_doubt(batch)} instead of {cost_text(alone)}{noisy}"
        less = ratio(alone.measured("complete"), batch.measured("complete"))
        times = f", {number(within(less.value, 0.05))} times less" if less is not None and less.floor > 1 else ""
        said.append(f"{cost} through {row.name}{times}")
    batch = told[0][0].records["batched"]
    passes = "In one pass" if batch.stack in ONE_PASS_STACKS else "In a batch"
    how = f"In a CUDA graph made by {graph_maker(batch)}" if batch.stack == "cuda-graph" else passes
    return f"{how}, called {CALLER_WORDS[told[0][1].caller]}, a dispatch costs {'; '.join(said)}."


def _alone(row: DispatchRow) -> Record | None:
    """The single dispatch with the same caller as the batch; None if it has no cost above zero."""
    batch = row.records["batched"]
    same = (r for r in row.records.values() if r is not batch and r.caller == batch.caller)
    return next((r for r in same if resolved(r.figure("complete"))), None)


def _python(costs: DispatchCosts) -> str:
    """Python's share of the CPU time through WebGPU, else through the stack where it is largest."""
    rows = [(row, row.python) for row in costs.rows if row.python is not None and row.python.value > 0]
    told = [one for one in rows if one[0].stack in _WEBGPU] or sorted(rows, key=lambda one: -one[1].value)[:1]
    said = [f"{percent_spread(share)} through {row.name}" for row, share in told]
    return f"Python takes {listed(said)} of the CPU time of a call from Python." if said else ""


def _overstated(costs: DispatchCosts) -> str:
    """How far the time of a single dispatch and its wait lies above its cost."""
    found = [(overstatement(row.records[row.first], "naive"), row) for row in costs.rows if row.marks]
    told = [(times, row) for times, row in found if times is not None and times.high is not None and times.value > 1]
    if not told:
        return ""
    times, row = max(told, key=lambda one: one[0].value)
    noisy = "" if row.is_resolved(row.first) else ", noisy"
    through = f"{row.name}, {CALLER_WORDS[row.records[row.first].caller]}{noisy}"
    return f"Timing one dispatch plus its wait would report up to {factor_spread(times)} the real cost ({through})."


def limit_sentences(costs: DispatchCosts) -> list[str]:
    """Up to two sentences on calls from compiled code: the stacks that the device limits, and those that both limit."""
    told: dict[str, list[str]] = {"device": [], "balanced": []}
    for row in costs.rows:
        if "compiled" not in row.marks or row.limit("compiled") not in told:
            continue
        record, cost = row.records["compiled"], f"{mark_text(row.marks['compiled'])} {MICRO}"
        if (host := record.figure("host")) is not None and host.measured:
            told[record.bound].append(f"{row.name} {cost}{_doubt(record)}, CPU busy for {micro(host)} {MICRO}")
    words = {
        "device": "the device is the limit",
        "balanced": "neither the CPU nor the device is clearly the limit",
    }
    return [f"From compiled code, {words[bound]}: {'; '.join(said)}." for bound, said in told.items() if said]


def trust_sentence(costs: DispatchCosts) -> str:
    """How much other figures another run may give, and a program that is not pinned; '' without a GPU."""
    if not costs.hardware:
        return ""
    machine = costs.view.fingerprint.machine
    spread = spread_of("host", machine)
    unpinned = "; the strips show how much" if costs.has_met else "; this run did not measure how much"
    again = (
        next_run_sentence(machine)
        if spread is None
        else (
            "On the same GPU and processor model, 9 of 10 runs should put a CPU-bound figure within "
            f"{percent(math.exp(half_width(spread)) - 1)} of the one shown. On other hardware, measure again."
        )
    )
    return f"{again} A program that is not pinned to a quiet processor mostly pays more{unpinned}."
