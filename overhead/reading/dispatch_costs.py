"""What one dispatch costs through each stack, as rows, all of one run and one board (GPU): the
headline figure.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

from overhead.devices import is_board_id, same_device_across_apis
from overhead.reading.host_shares import host_shares
from overhead.reading.plain_text import plain
from overhead.reading.precision import mode_of, resolved, two_speeds
from overhead.reading.view import TargetView, View, first_with, with_fields
from overhead.results import (
    Caller,
    Figure,
    Record,
    RowGroup,
    StackFacts,
    StackRow,
    Value,
    WithFigures,
)

Kind = Literal["python", "compiled", "browser", "batched"]
_CALLERS: dict[Kind, Caller] = {"python": "binding", "compiled": "native", "browser": "browser"}
_LEFT_OUT_FROM = 1.03
"""The mean of all samples is shown if it is at least so many times the quiet cost. Closer values
mean the same.
"""
ROW_GROUPS: tuple[RowGroup, ...] = get_args(RowGroup)
"""What a person chooses between, in the order of the headline figure."""
Doubt = Literal["bends", "no-value", "two-speeds", "status", "not-above-zero"]
"""Why a cost is not resolved: it bends; it has no value, for a reason that the record has; it has
two speeds; its status says why; or its interval reaches zero.
"""


@dataclasses.dataclass(frozen=True)
class OtherOperand:
    """The operation that compiled code runs where it is not the row's. ``python``: its cost from
    Python, if known.
    """

    operation: str
    python: Figure | None


@dataclasses.dataclass(frozen=True)
class DispatchRow:
    """One way to call a stack. ``records``: the case of each kind (caller, or batched).

    ``rank``: the row with the highest goes first where the figure has no room. ``marks``: by kind,
    the costs above zero in microseconds with their intervals: one, or both of two speeds.
    ``lacks_batch``: the stack can have many dispatches in one pass, and this run did not measure
    it. ``python``: the share (0 to 1) that Python takes of the CPU time of a call from Python; None
    where it is not resolved. ``name``: the label as a sentence has it, ``the CUDA driver``,
    ``Dawn``; ``split``: that of the operation whose CPU time was split where compiled code runs
    another operation. ``facts``: of the stack.
    """

    label: str
    name: str
    split: str
    stack: str
    group: RowGroup
    marks: Mapping[Kind, tuple[Value, ...]]
    records: Mapping[Kind, Record]
    lacks_batch: bool
    operand: OtherOperand | None
    rank: int
    facts: StackFacts
    python: Value | None = None

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of which there is something to tell: those with a record, and a batch that is
        missing.
        """
        return [*self.records, "batched"] if self.lacks_batch else [*self.records]

    @property
    def first(self) -> Kind:
        """The kind that the row is sorted by: from Python where it has a cost, noisy or not, else
        the next caller.
        """
        return next(
            (kind for kind in ("python", "browser", "compiled", "batched") if kind in self.marks),
            "python",
        )

    @property
    def split_name(self) -> str:
        """The name of the operation whose CPU time was split, which may have another operand than
        the row.
        """
        return self.split if self.other_operand else self.name

    @property
    def other_operand(self) -> bool:
        """Whether compiled code runs another operation than the row's, and the split is of that
        one.
        """
        base, compiled = self.records.get("python"), self.records.get("compiled")
        return base is not None and compiled is not None and base.params != compiled.params

    @property
    def unit(self) -> str:
        """What one call does: ``dispatch``, ``launch``, ``step``."""
        return next(iter(self.records.values())).unit

    def is_resolved(self, kind: Kind) -> bool:
        """Whether the cost is not noisy, has one speed, and lies above zero with its interval."""
        return kind in self.marks and doubt_of(self.records[kind]) is None

    def limit(self, kind: Kind) -> str:
        """What limits the cost on a GPU: ``host``, ``device`` or ``balanced``; '' where that is not
        known.
        """
        record = self.records[kind]
        return "" if record.software or record.api == "CPU" else record.bound


@dataclasses.dataclass(frozen=True)
class DispatchCosts:
    """All rows, the cheapest first. ``view``: of the run that measured them.

    ``hardware``: whether a GPU ran them; else software adapters and the CPU did. ``device``: name
    of the GPU or CPU.
    """

    device: str
    hardware: bool
    rows: tuple[DispatchRow, ...]
    view: View

    @property
    def has_met(self) -> bool:
        """Whether the run has a met cost: that of fresh processes without a fixed processor."""
        return any(met_range(record) for row in self.rows for record in row.records.values())


def dispatch_costs(view: View) -> DispatchCosts | None:
    """The rows of the run's headline figure; None if no stack ran the step."""
    targets, hardware = targets_shown(view)
    rows = [row for target in targets for row in _rows(view, target)]
    if not rows:
        return None
    cpu = plain(view.fingerprint.machine.cpu, 40)
    device = plain(targets[0].first.adapter, 40) if hardware else cpu
    rows.sort(key=lambda row: row.marks[row.first][0].value if row.marks else math.inf)
    return DispatchCosts(device, hardware, tuple(rows), view)


def targets_shown(view: View) -> tuple[list[TargetView], bool]:
    """The best target of each stack that ran the step on one GPU, and True; without a GPU the other
    best targets, and False.
    """
    found = [t for t in map(view.best, view.stacks) if t is not None and t.has_step]
    gpus = [t for t in found if t.first.api != "CPU" and not t.software]
    boards = list(dict.fromkeys(t.first.device for t in gpus if is_board_id(t.first.device)))
    on_board = [t for t in gpus if t.first.device not in boards[1:]]
    if not on_board:
        return found, False
    by_device = [
        [t for t in on_board if same_device_across_apis(t.first, one.first)] for one in on_board
    ]
    return max(by_device, key=len), True


def _rows(view: View, target: TargetView) -> Iterator[DispatchRow]:
    """A row for each of the stack's; a graph's node stands in the row of the launch that it
    replaces.
    """
    for entry in target.facts.rows:
        row = _row(view, target, entry)
        if row is not None:
            yield row


def _row(view: View, target: TargetView, entry: StackRow) -> DispatchRow | None:
    found = {
        kind: record
        for kind, caller in _CALLERS.items()
        if (record := _case(target, entry, caller)) is not None
    }
    if not found:
        return None
    if (batched := _batched(view, target, entry, next(iter(found.values())).caller)) is not None:
        found["batched"] = batched
    marks = {kind: costs for kind, r in found.items() if (costs := _costs(r))}
    python = _python_share(view, found)
    where = " (CPU)" if target.first.api == "CPU" else " (software)" if target.software else ""
    label = plain(entry.label, 60)
    name = plain(entry.name, 60) or label
    split = plain(entry.split_name, 60) or name
    return DispatchRow(
        label=label + where,
        name=name + where,
        split=split + where,
        stack=target.stack,
        group=entry.group,
        marks=marks,
        records=found,
        lacks_batch="batched" not in found and "one-pass" in target.facts.roles,
        operand=_other_operand(target, entry, found.get("compiled")),
        rank=entry.order,
        facts=target.facts,
        python=python,
    )


def _costs(record: Record) -> tuple[Value, ...]:
    """The costs above zero in microseconds: one, or both of two speeds; () where there is none."""
    figure, found = record.figure("complete"), record.measured("complete")
    if figure is None:
        return ()
    modes = two_speeds(figure) or (tuple(figure.modes) if figure.status == "nonlinear" else ())
    if modes:
        costs = [mode_of(figure, mode) / 1e3 for mode in modes]
    else:
        costs = [found / 1e3] if found is not None else []
    return tuple(cost for cost in costs if cost.value > 0)


def _python_share(view: View, records: Mapping[Kind, Record]) -> Value | None:
    """Python's share of the CPU time, split by the row's calls from compiled code; None where it is
    not resolved.
    """
    compiled = records.get("compiled")
    for each in view.once(host_shares):
        if (
            each.python
            and each.python.bounded
            and compiled is not None
            and each.levels[-1].key == compiled.key
        ):
            return (
                each.python if resolved(each.host) and resolved(compiled.figure("host")) else None
            )
    return None


def _case(target: TargetView, entry: StackRow, caller: Caller) -> Record | None:
    """The case of the entry by that caller; of compiled code also one that only differs in its
    operand.
    """
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
    return next(
        (r for r in same if {k for k, _ in wanted.items() ^ r.params.items()} == {"operand"}), None
    )


def _batched(view: View, target: TargetView, entry: StackRow, caller: Caller) -> Record | None:
    """One pass with many dispatches, by the caller of the row, or a node of the stack's graph of
    such launches.
    """
    if entry.params:
        return None
    recorded = view.graph_of(target.stack)
    if recorded is not None and target.first.api == "CUDA":
        stack, maker = recorded
        graph = view.best(stack)
        nodes = with_fields(
            graph.records if graph is not None else (), pattern="replay", workload="step"
        )
        return next((r for r in nodes if r.params.get("maker") == maker), None)
    passes, graphs = (
        with_fields(target.records, pattern=pattern, workload="step", caller=caller)
        for pattern in ("one-pass", "replay")
    )
    return next((r for r in passes if not target.varied(r)), None) or next(iter(graphs), None)


def doubt_of(record: Record) -> Doubt | None:
    """Why the cost is not resolved; None if it is."""
    figure = record.figure("complete")
    found = record.measured("complete")
    if figure is None or found is None:
        return (
            "bends"
            if figure is not None and figure.status == "nonlinear" and figure.modes
            else "no-value"
        )
    if two_speeds(figure):
        return "two-speeds"
    if figure.status != "ok":
        return "status"
    return None if found.resolved else "not-above-zero"


def _other_operand(
    target: TargetView, entry: StackRow, compiled: Record | None
) -> OtherOperand | None:
    """The operation of compiled code where it is not the base case's; else None."""
    base = target.base
    if compiled is None or compiled.params.get("operand") == base.params.get("operand"):
        return None
    python = first_with(
        target.records,
        params=compiled.params,
        caller="binding",
        pattern=base.pattern,
        workload="step",
    )
    cost = python.figure("complete") if python is not None else None
    return OtherOperand(
        plain(entry.other_operand, 40), cost if cost is not None and cost.measured else None
    )


def met_range(record: WithFigures) -> tuple[float, float] | None:
    """Lowest and highest cost in fresh processes that are not pinned to a processor, in µs; None if
    not measured.
    """
    found = record.measured("met")
    if found is None:
        return None
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    return low / 1e3, high / 1e3


def over_quiet(record: Record) -> Value | None:
    """The mean of all samples over the quiet cost, where interruptions or heavy tails add over 3 %;
    else None.
    """
    quiet, everything = record.measured("complete"), record.measured("everything")
    if quiet is None or everything is None or quiet.value <= 0:
        return None
    return everything / quiet.value if everything.value >= _LEFT_OUT_FROM * quiet.value else None


def met_below(record: WithFigures) -> bool:
    """Whether all unpinned processes paid less than the interval of the undisturbed cost allows."""
    found, quiet = met_range(record), record.measured("complete")
    return found is not None and quiet is not None and found[1] < quiet.floor / 1e3
