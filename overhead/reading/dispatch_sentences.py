"""Sentences on what a dispatch costs: the cheapest stack, WebGPU, batches, and how far one timed dispatch misleads."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchCosts, DispatchRow, cheapest
from overhead.reading.format import MICRO, factor, listed, number
from overhead.reading.key_figures import overstatement
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
    again = f" (in another run: {row.next_run})" if row.next_run else ""
    return (
        f"Called from Python, the cheapest {unit} here goes through {row.label}: {_of(row, 'python')} {MICRO}{again}."
    )


def _webgpu(costs: DispatchCosts) -> str:
    """What WebGPU costs from Python and from compiled code."""
    rows = [row for row in costs.rows if row.stack in _WEBGPU and "python" in row.marks]
    if not rows:
        return ""
    python = listed([f"{_of(row, 'python')} {MICRO} through {_short(row)}" for row in rows])
    compiled = [f"{_of(row, 'compiled')}" for row in rows if "compiled" in row.marks]
    rest = f"; from compiled code {listed(compiled)} {MICRO}" if len(compiled) == len(rows) else ""
    return f"WebGPU costs {python}{rest}."


def _batched(costs: DispatchCosts) -> str:
    """What a batch saves, for the WebGPU stack or else the first row that has one."""
    rows = [row for row in costs.rows if {"batched", row.first} <= row.marks.keys() and row.first != "batched"]
    row = min(rows, key=lambda row: row.stack not in _WEBGPU, default=None)
    if row is None:
        return ""
    how = "In one pass" if row.stack in _WEBGPU else "Batched"
    return f"{how}, a dispatch through {_short(row)} costs {_of(row, 'batched')} {MICRO}."


def _overstated(costs: DispatchCosts) -> str:
    """How far the time of a single dispatch and its wait lies above its cost."""
    found: list[tuple[DispatchRow, Record]] = [(row, row.records[row.first]) for row in costs.rows if row.marks]
    told = [(times, row) for row, record in found if (times := overstatement(record, "naive")) is not None
            and times[2] is not None]  # fmt: skip
    if not told:
        return ""
    times, row = max(told, key=lambda one: one[0][0])
    return f"Timing one dispatch plus its wait would report up to {factor(*times)} the real cost ({_short(row)})."


def _short(row: DispatchRow) -> str:
    return row.label.removeprefix("WebGPU, ")


def _of(row: DispatchRow, kind: str) -> str:
    value = next(value for name, value in row.marks.items() if name == kind)
    return number(value, value * 0.99, value * 1.01)
