"""What is told of the headline figure: which of its rows, and which of their figures.
``words.headline`` says it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Literal

from overhead.reading.dispatch_costs import (
    DispatchCosts,
    DispatchRow,
    Kind,
    dispatch_costs,
    unpinned_below,
    unpinned_range,
)
from overhead.reading.key_figures import overstatement
from overhead.reading.precision import resolved
from overhead.reading.typical_run import Place, place_of
from overhead.reading.view import View, boards_of
from overhead.results import Record, Value, ratio


def cheapest(costs: DispatchCosts) -> DispatchRow | None:
    """The cheapest row with a cost from Python, noisy or not; None without such a row."""
    return next((row for row in costs.rows if "python" in row.marks), None)


def asked_for(costs: DispatchCosts) -> list[DispatchRow]:
    """The rows whose cost from Python most readers look for: the cheapest that works on arrays, as
    PyTorch does, and those of WebGPU.
    """
    on_arrays = []
    for row in costs.rows:
        if row.group == "arrays" and "python" in row.marks:
            on_arrays.append(row)
    return [*on_arrays[:1], *webgpu_rows(costs, "python")]


def not_told_apart(costs: DispatchCosts, cheapest: DispatchRow) -> list[DispatchRow]:
    """The other rows whose calls from Python may cost as little as those of the cheapest row,
    because their intervals overlap its interval.
    """
    # A row may have two costs: the first, of the faster speed or of short chains, counts.
    most = cheapest.marks["python"][0].ceiling
    found = []
    for row in costs.rows:
        if row is cheapest or "python" not in row.marks:
            continue
        cost = row.marks["python"][0]
        # The interval of the other row begins at or below the end of the cheapest one's.
        least = cost.value if cost.low is None else cost.low
        if least <= most:
            found.append(row)
    return found


def webgpu_rows(costs: DispatchCosts, kind: Kind) -> list[DispatchRow]:
    """The rows of WebGPU with a cost of this kind."""
    return [row for row in costs.rows if "webgpu" in row.facts.roles and kind in row.marks]


@dataclasses.dataclass(frozen=True)
class Batch:
    """A row with a batch, and the single dispatch ``alone`` by the same caller.

    ``less``: the cost alone over that in the batch; None where the batch may save nothing.
    """

    row: DispatchRow
    alone: Record
    less: Value | None

    @property
    def record(self) -> Record:
        """The case of the batch."""
        return self.row.records["batched"]


def batches(costs: DispatchCosts) -> list[Batch]:
    """The rows whose batch the text beside the headline figure tells: what a dispatch costs alone,
    and how much less among many in one pass.

    Those of the WebGPU stacks, or without any that of the first row that has one. One sentence
    tells all of them, so they have the same caller: that of the first.
    """
    found = []
    for row in costs.rows:
        alone = _single_dispatch(row) if "batched" in row.marks else None
        if alone is None:
            continue
        # How many times as much it costs alone.
        less = ratio(alone.measured("complete"), row.records["batched"].measured("complete"))
        # With an interval that reaches 1 the batch may save nothing.
        saves = less is not None and less.floor > 1
        found.append(Batch(row, alone, less if saves else None))
    # Of WebGPU, else of the first row; and of these those by the caller of the first.
    told = [batch for batch in found if "webgpu" in batch.row.facts.roles] or found[:1]
    return [batch for batch in told if batch.alone.caller == told[0].alone.caller]


def _single_dispatch(row: DispatchRow) -> Record | None:
    """The single dispatch with the same caller as the row's batch, which it is compared with; None
    if it has no cost that lies above zero with its interval.
    """
    batch = row.records["batched"]
    for record in row.records.values():
        if (
            record is not batch
            and record.caller == batch.caller
            and resolved(record.figure("complete"))
        ):
            return record
    return None


@dataclasses.dataclass(frozen=True)
class PythonShare:
    """A row, and the share that Python takes of the CPU time of a call from Python."""

    row: DispatchRow
    share: Value


def python_shares(costs: DispatchCosts) -> list[PythonShare]:
    """The shares that the text beside the headline figure tells: how much of the CPU time of a call
    from Python goes to Python itself. Those of the WebGPU stacks; without any, the largest one.

    A share whose interval reaches zero is left out (it is not *resolved*).
    """
    found = []
    for row in costs.rows:
        if row.python is not None and row.python.resolved:
            found.append(PythonShare(row, row.python))
    # Each row carries the facts of its stack; a role says what the stack is.
    through_webgpu = [python for python in found if "webgpu" in python.row.facts.roles]
    if through_webgpu:
        return through_webgpu
    return sorted(found, key=lambda python: -python.share.value)[:1]


@dataclasses.dataclass(frozen=True)
class Overstated:
    """A cost, by its row and kind, and the time of a single dispatch and its wait over it."""

    row: DispatchRow
    kind: Kind
    times: Value

    @property
    def record(self) -> Record:
        """The case whose cost it is."""
        return self.row.records[self.kind]


def most_overstated(costs: DispatchCosts) -> Overstated | None:
    """The cost that who times a single dispatch with its wait surely overstates most: that whose
    factor has the highest lower end; None without one above 1.

    Only where the CPU bounds the cost, because a chain that the device bounds hides what one
    dispatch costs the CPU. A noisy cost counts too: its interval says how far it may be off. On the
    CPU there is nothing to wait for.
    """
    found = []
    for row in costs.rows:
        for kind in row.marks:
            # A batch is no single dispatch. ``limit`` is ``host`` where the CPU bounds the cost.
            if kind == "batched" or row.limit(kind) != "host":
                continue
            # "naive": the time of one dispatch with its wait; here over the cost of a dispatch.
            times = overstatement(row.records[kind], "naive")
            # ``floor``: minus infinity for a factor without an interval.
            if times is not None and times.floor > 1 and _has_one_cost(row.records[kind]):
                found.append(Overstated(row, kind, times))
    return max(found, key=lambda one: one.times.floor, default=None)


def _has_one_cost(record: Record) -> bool:
    """Whether the case has one cost, noisy or not: neither two speeds nor another cost in long
    chains.
    """
    figure = record.figure("complete")
    return figure is not None and figure.status in ("ok", "noisy")


def limited(costs: DispatchCosts, limit: Literal["device", "balanced"]) -> list[DispatchRow]:
    """The rows whose calls from compiled code the device limits (or, with ``balanced``, the device
    and the CPU alike).

    Only those whose CPU time is known: the text tells it beside the cost.
    """
    found = []
    for row in costs.rows:
        if "compiled" in row.marks and row.limit("compiled") == limit:
            # "host": the CPU time of a call.
            host = row.records["compiled"].figure("host")
            if host is not None and host.measured:
                found.append(row)
    return found


def unpinned_pays_more(costs: DispatchCosts) -> bool:
    """Whether for some row even the cheapest of the processes that were not pinned to a CPU core
    paid more than the undisturbed cost, that of pinned processes, with its whole interval.
    """
    for row in costs.rows:
        for record in row.records.values():
            unpinned = unpinned_range(record)
            undisturbed = record.measured("complete")
            if unpinned is None or undisturbed is None:
                continue
            lowest_us, _ = unpinned
            # ``ceiling`` is in ns.
            if lowest_us > undisturbed.ceiling / 1e3:
                return True
    return False


def unpinned_pays_less(costs: DispatchCosts) -> list[tuple[DispatchRow, Kind]]:
    """The costs that unpinned processes all stayed below, each by its row and kind.
    ``unpinned_apart`` tells which of them lie visibly below.
    """
    found: list[tuple[DispatchRow, Kind]] = []
    for row in costs.rows:
        found += [(row, kind) for kind, record in row.records.items() if unpinned_below(record)]
    return found


VISIBLY_APART = 1.1
"""Closer to its cost an unpinned cost is hidden behind the mark. Chosen by eye."""


def unpinned_apart(record: Record) -> float | None:
    """The median of the unpinned costs in µs, where it lies visibly apart from the undisturbed
    cost: every process that was not pinned to a CPU core paid more, or less, than the undisturbed
    cost with its whole interval. Else None.
    """
    unpinned = unpinned_range(record)
    undisturbed = record.measured("complete")
    # "met" is the name of the unpinned cost in files.
    median_ns = record.value("met")
    if unpinned is None or undisturbed is None or median_ns is None or undisturbed.value <= 0:
        return None
    lowest_us, highest_us = unpinned
    # ``floor`` and ``ceiling`` are in ns.
    is_apart = lowest_us > undisturbed.ceiling / 1e3 or highest_us < undisturbed.floor / 1e3
    times = max(median_ns / undisturbed.value, undisturbed.value / median_ns)
    return median_ns / 1e3 if is_apart and times >= VISIBLY_APART else None


def has_unpinned_apart(costs: DispatchCosts) -> bool:
    """Whether a cost of the run has an unpinned cost that lies visibly apart."""
    for row in costs.rows:
        if any(unpinned_apart(row.records[kind]) is not None for kind in row.marks):
            return True
    return False


@dataclasses.dataclass(frozen=True)
class FurtherStacks:
    """The rows of another run, of stacks that the run shown does not have. ``place``: where that
    run lies among those of other boards, where that is known.
    """

    run: View
    rows: tuple[DispatchRow, ...]
    is_same_board: bool
    place: Place | None


def further_stacks(costs: DispatchCosts, others: Iterable[View]) -> list[FurtherStacks]:
    """By run, the rows with a cost from Python of the stacks that only other runs of the machine
    have. ``others``: these runs, the newest first; a stack counts in the newest that has it.
    """
    known = {row.stack for row in costs.rows if row.marks}
    own_boards = boards_of(costs.view.fingerprint.records)
    found = []
    for run in others:
        of_run = run.once(dispatch_costs)
        if of_run is None or of_run.hardware != costs.hardware:
            continue
        rows = []
        for row in of_run.rows:
            if "python" in row.marks and row.stack not in known:
                rows.append(row)
        known |= {row.stack for row in rows}
        if rows:
            is_same_board = boards_of(run.fingerprint.records) == own_boards
            found.append(FurtherStacks(run, tuple(rows), is_same_board, place_of(of_run)))
    return found
