"""Sentences above and below the headline figure: each has one caller, and the figures of the rows that are drawn."""

from __future__ import annotations

import math

from overhead.reading.dispatch_costs import (
    KIND_TITLES,
    KIND_WORDS,
    DispatchCosts,
    DispatchRow,
    Kind,
    mark_text,
    met_below,
    met_range,
    why_unresolved,
)
from overhead.reading.format import (
    MICRO,
    between,
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
from overhead.reading.next_run import half_width, spread_of
from overhead.reading.view import CALLER_WORDS, graph_maker
from overhead.results import Record, ratio
from overhead.words.next_run import next_run_sentence, next_run_text
from overhead.words.typical_run import place_sentence


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
    near = []
    for one in costs.rows:
        other = one.marks.get("python")
        if one is not row and other is not None and (other[0].value if other[0].low is None else other[0].low) <= ends:
            near.append(one)
    alike = [f"{one.name} ({mark_text(one.marks['python'])})" for one in near]
    ties = f"; not told apart from {listed(alike)}" if alike else ""
    return f"Called from Python, the cheapest single {unit} here goes through {row.name}: {cost}{again}{ties}."


def _webgpu(costs: DispatchCosts, kind: Kind) -> str:
    """What WebGPU costs by one caller."""
    rows = [row for row in costs.rows if "webgpu" in row.facts.roles and kind in row.marks]
    said = [f"{mark_text(row.marks[kind])} {MICRO} through {row.name}{_doubt(row.records[kind])}" for row in rows]
    return f"{KIND_TITLES[kind].replace('from', 'From')}, a dispatch of WebGPU costs {listed(said)}." if said else ""


def _doubt(record: Record) -> str:
    """`` (noisy, 23.8 to 29.5)``; '' where the cost is resolved or has two speeds, which the text names."""
    figure, why = record.figure("complete"), why_unresolved(record)
    return f" ({why})" if why and figure is not None and not two_speeds(figure) else ""


def _batches(costs: DispatchCosts) -> str:
    """What a dispatch of a batch costs, for the WebGPU stacks or else the first row that has one."""
    found = [(row, alone) for row in costs.rows if "batched" in row.marks and (alone := _alone(row)) is not None]
    told = [one for one in found if "webgpu" in one[0].facts.roles] or found[:1]
    told = [one for one in told if one[1].caller == told[0][1].caller]
    if not told:
        return ""
    said = []
    for row, alone in told:
        batch = row.records["batched"]
        noisy = " (noisy)" if _doubt(alone) else ""
        cost = f"{mark_text(row.marks['batched'])} {MICRO}{_doubt(batch)} instead of {cost_text(alone)}{noisy}"
        said.append(f"{cost} through {row.name}{_less(alone, batch)}")
    batch = told[0][0].records["batched"]
    facts = costs.view.facts(batch.stack)
    passes = "In one pass" if "one-pass" in facts.roles else "In a batch"
    how = f"In a CUDA graph made by {graph_maker(batch, facts)}" if facts.graphs else passes
    return f"{how}, called {CALLER_WORDS[told[0][1].caller]}, a dispatch costs {'; '.join(said)}."


def _less(alone: Record, batch: Record) -> str:
    """``, 6.9 times less``; the interval alone where a figure behind it is noisy; '' where it may be no saving."""
    less = ratio(alone.measured("complete"), batch.measured("complete"))
    if less is None or less.floor <= 1:
        return ""
    times = number(within(less.value, 0.05)) if less.status == "ok" else between(less.floor, less.ceiling)
    return f", {times} times less"


def _alone(row: DispatchRow) -> Record | None:
    """The single dispatch with the same caller as the batch; None if it has no cost above zero."""
    batch = row.records["batched"]
    same = (r for r in row.records.values() if r is not batch and r.caller == batch.caller)
    return next((r for r in same if resolved(r.figure("complete"))), None)


def _python(costs: DispatchCosts) -> str:
    """Python's share of the CPU time through WebGPU, else through the stack where it is largest.

    A share whose interval reaches zero is not resolved. The operation that is named is the one that was split.
    """
    rows = [(row, row.python) for row in costs.rows if row.python is not None and row.python.resolved]
    told = [one for one in rows if "webgpu" in one[0].facts.roles] or sorted(rows, key=lambda one: -one[1].value)[:1]
    said = [f"{percent_spread(share)} through {row.split_name}" for row, share in told]
    return f"Python takes {listed(said)} of the CPU time of a call from Python." if said else ""


def _overstated(costs: DispatchCosts) -> str:
    """How far the time of a single dispatch and its wait lies above its cost, at most.

    Only where the CPU bounds the cost, because a chain that the device bounds hides what one dispatch costs the CPU;
    and where both figures are precise. On the CPU there is nothing to wait for.
    """
    found = []
    for row in costs.rows:
        times = overstatement(row.records[row.first], "naive") if row.marks else None
        precise = times is not None and times.status == "ok" and row.is_resolved(row.first)
        if times is not None and precise and row.limit(row.first) == "host" and times.floor > 1:
            found.append((times, row))
    if not found:
        return ""
    times, row = max(found, key=lambda one: one[0].value)
    through = f"{row.name}, {CALLER_WORDS[row.records[row.first].caller]}"
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


def trust_sentences(costs: DispatchCosts) -> list[str]:
    """How much other figures another run may give, where this one lies, and what a program pays that is not pinned.

    Without a GPU only what unpinned processes paid less.
    """
    if not costs.hardware:
        return [less] if (less := _unpinned_less(costs)) else []
    machine = costs.view.fingerprint.machine
    spread = spread_of("host", machine)
    again = (
        next_run_sentence(machine)
        if spread is None
        else (
            "On the same GPU and processor model, 9 of 10 runs should put a CPU-bound figure within "
            f"{percent(math.exp(half_width(spread)) - 1)} of the one shown. On other hardware, measure again."
        )
    )
    said = (again, place_sentence(costs), _unpinned(costs))
    return [sentence for sentence in said if sentence]


def _unpinned(costs: DispatchCosts) -> str:
    """What programs that are not pinned to a processor paid, beside the undisturbed cost."""
    if not costs.has_met:
        return "This run did not measure what a program pays that is not pinned to a quiet processor."
    pays_more = False
    for row in costs.rows:
        for record in row.records.values():
            ends, quiet = met_range(record), record.measured("complete")
            if ends is not None and quiet is not None and ends[0] > quiet.ceiling / 1e3:
                pays_more = True
    more = "A program that is not pinned to a quiet processor pays more through some stacks; the strips show how much."
    said = [more if pays_more else "The strips show what programs pay that are not pinned to a quiet processor."]
    return " ".join([*said, *filter(None, [_unpinned_less(costs)])])


def _unpinned_less(costs: DispatchCosts) -> str:
    """The costs that unpinned processes all stayed below; '' where there are none."""
    below = []
    for row in costs.rows:
        for kind, record in row.records.items():
            if met_below(record):
                called = KIND_WORDS[kind] if kind == "batched" else CALLER_WORDS[record.caller]
                below.append(f"{row.name}, {called}")
    if not below:
        return ""
    return f"Through these stacks, unpinned processes paid less than the undisturbed cost: {'; '.join(below)}."
