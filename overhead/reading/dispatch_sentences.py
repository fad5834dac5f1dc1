"""Sentences on what a dispatch costs: the cheapest stack, WebGPU, batches, and how far one timed dispatch misleads."""

from __future__ import annotations

import math

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, Kind, cheapest, why_no_mark
from overhead.reading.format import (
    MICRO,
    cost_text,
    factor_spread,
    listed,
    number,
    percent,
    resolved,
    two_speeds,
    within,
)
from overhead.reading.key_figures import overstatement
from overhead.reading.next_run import half_width, next_run_sentence, next_run_text, spread_of
from overhead.reading.stack_names import graph_maker
from overhead.reading.view import CALLER_WORDS
from overhead.results import Record

_WEBGPU = ("dawn", "wgpu-native")


def lead_sentences(costs: DispatchCosts) -> list[str]:
    """The sentences above the headline figure; those whose figures are missing are left out."""
    said = (_cheapest(costs), _webgpu(costs), _batched(costs), _overstated(costs))
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


def _batched(costs: DispatchCosts) -> str:
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
