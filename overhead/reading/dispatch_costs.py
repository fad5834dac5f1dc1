"""What one dispatch costs through each stack, as rows, all of one run and one board (GPU): the
headline figure.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from overhead.devices import same_device_across_apis
from overhead.reading.host_shares import host_shares
from overhead.reading.plain_text import plain
from overhead.reading.precision import mode_of, resolved, two_speeds
from overhead.reading.view import TargetView, View, boards_of, first_with, with_fields
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
_SORTED_BY: tuple[Kind, ...] = ("python", "browser", "compiled", "batched")
_LEFT_OUT_FROM = 1.03
"""The mean of all samples is shown if it is at least so many times the undisturbed cost. Closer
values mean the same. Chosen, not measured.
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
        kinds = [*self.records]
        if self.lacks_batch:
            kinds.append("batched")
        return kinds

    @property
    def first(self) -> Kind:
        """The kind that the row is sorted by: from Python where it has a cost, noisy or not, else
        the next caller.
        """
        for kind in _SORTED_BY:
            if kind in self.marks:
                return kind
        return "python"

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
        base = self.records.get("python")
        compiled = self.records.get("compiled")
        if base is None or compiled is None:
            return False
        return base.params != compiled.params

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
        if record.software or record.api == "CPU":
            return ""
        return record.bound


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
    def has_unpinned(self) -> bool:
        """Whether the run has an unpinned cost: one of fresh processes without a fixed CPU core."""
        records = itertools.chain.from_iterable(row.records.values() for row in self.rows)
        return any(unpinned_range(record) for record in records)


def dispatch_costs(view: View) -> DispatchCosts | None:
    """The rows of the run's headline figure; None if no stack ran the step."""
    shown = targets_shown(view)
    rows: list[DispatchRow] = []
    for target in shown.targets:
        rows += _rows(view, target)
    if not rows:
        return None
    device = plain(view.fingerprint.machine.cpu, 40)
    if shown.hardware:
        device = plain(shown.targets[0].first.adapter, 40)
    rows.sort(key=_cost_to_sort_by)
    return DispatchCosts(device, shown.hardware, tuple(rows), view)


def _cost_to_sort_by(row: DispatchRow) -> float:
    """The cost of the first kind of the row; rows without any cost come last."""
    return row.marks[row.first][0].value if row.marks else math.inf


class ShownTargets(NamedTuple):
    """The targets of the headline figure. ``hardware``: all are on one GPU."""

    targets: list[TargetView]
    hardware: bool


def targets_shown(view: View) -> ShownTargets:
    """The best target of each stack that ran the step on one GPU; without a GPU the other best
    targets.
    """
    with_step = []
    for stack in view.stacks:
        target = view.best(stack)
        if target is not None and target.has_step:
            with_step.append(target)
    gpus = [target for target in with_step if target.first.api != "CPU" and not target.software]
    # Targets of a second board may not be compared with those of the first.
    other_boards = boards_of(target.first for target in gpus)[1:]
    on_board = [target for target in gpus if target.first.device not in other_boards]
    if not on_board:
        return ShownTargets(with_step, hardware=False)
    most: list[TargetView] = []
    for one in on_board:
        same = [each for each in on_board if same_device_across_apis(each.first, one.first)]
        if len(same) > len(most):
            most = same
    return ShownTargets(most, hardware=True)


def _rows(view: View, target: TargetView) -> list[DispatchRow]:
    """A row for each of the stack's; a graph's node stands in the row of the launch that it
    replaces.
    """
    rows = [_row(view, target, entry) for entry in target.facts.rows]
    return [row for row in rows if row is not None]


def _row(view: View, target: TargetView, entry: StackRow) -> DispatchRow | None:
    """The row of an entry among the facts of the stack; None if no caller measured it."""
    records: dict[Kind, Record] = {}
    for kind, caller in _CALLERS.items():
        record = _case(target, entry, caller)
        if record is not None:
            records[kind] = record
    if not records:
        return None
    first_caller = next(iter(records.values())).caller
    batched = _batched(view, target, entry, first_caller)
    if batched is not None:
        records["batched"] = batched
    marks = {}
    for kind, record in records.items():
        costs = _costs(record)
        if costs:
            marks[kind] = costs
    where = target.without_gpu
    label = plain(entry.label, 60)
    name = plain(entry.name, 60) or label
    split = plain(entry.split_name, 60) or name
    lacks_batch = batched is None and "one-pass" in target.facts.roles
    operand = _other_operand(target, entry, records.get("compiled"))
    python = _python_share(view, records)
    return DispatchRow(
        label=label + where,
        name=name + where,
        split=split + where,
        stack=target.stack,
        group=entry.group,
        marks=marks,
        records=records,
        lacks_batch=lacks_batch,
        operand=operand,
        rank=entry.order,
        facts=target.facts,
        python=python,
    )


def _costs(record: Record) -> tuple[Value, ...]:
    """The costs above zero in microseconds: one, or both of two speeds; () where there is none."""
    figure = record.figure("complete")
    if figure is None:
        return ()
    modes = two_speeds(figure)
    if not modes and figure.status == "nonlinear":
        modes = tuple(figure.modes)
    costs = [mode_of(figure, mode) / 1e3 for mode in modes]
    measured = record.measured("complete")
    if not modes and measured is not None:
        costs = [measured / 1e3]
    return tuple(cost for cost in costs if cost.value > 0)


def _python_share(view: View, records: Mapping[Kind, Record]) -> Value | None:
    """Python's share of the CPU time, split by the row's calls from compiled code; None where it is
    not resolved.
    """
    compiled = records.get("compiled")
    if compiled is None:
        return None
    for split in view.once(host_shares):
        share = split.python
        if share and share.bounded and split.levels[-1].key == compiled.key:
            is_resolved = resolved(split.host) and resolved(compiled.figure("host"))
            return share if is_resolved else None
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
    for record in same:
        differing = {name for name, _ in wanted.items() ^ record.params.items()}
        if differing == {"operand"}:
            return record
    return None


def _batched(view: View, target: TargetView, entry: StackRow, caller: Caller) -> Record | None:
    """One pass with many dispatches, by the caller of the row, or a node of the stack's graph of
    such launches.
    """
    if entry.params:
        return None
    recorded = view.graph_of(target.stack)
    if recorded is not None and target.first.api == "CUDA":
        graph = view.best(recorded.stack)
        if graph is None:
            return None
        nodes = with_fields(graph.records, pattern="replay", workload="step")
        return next((node for node in nodes if node.params.get("maker") == recorded.maker), None)
    by_caller = with_fields(target.records, workload="step", caller=caller)
    for one_pass in with_fields(by_caller, pattern="one-pass"):
        if not target.varied(one_pass):
            return one_pass
    return first_with(by_caller, pattern="replay")


def doubt_of(record: Record) -> Doubt | None:
    """Why the cost is not resolved; None if it is."""
    figure = record.figure("complete")
    found = record.measured("complete")
    if figure is None:
        return "no-value"
    if found is None:
        bends = figure.status == "nonlinear" and figure.modes
        return "bends" if bends else "no-value"
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
    if cost is not None and not cost.measured:
        cost = None
    return OtherOperand(plain(entry.other_operand, 40), cost)


def unpinned_range(record: WithFigures) -> tuple[float, float] | None:
    """Lowest and highest cost in fresh processes that are not pinned to a processor, in µs; None if
    not measured.
    """
    found = record.measured("met")
    if found is None:
        return None
    low = found.value if found.low is None else found.low
    high = found.value if found.high is None else found.high
    return low / 1e3, high / 1e3


def over_undisturbed(record: Record) -> Value | None:
    """The mean of all samples over the undisturbed cost, where interruptions or heavy tails add
    over 3 %; else None.
    """
    undisturbed = record.measured("complete")
    everything = record.measured("everything")
    if undisturbed is None or everything is None or undisturbed.value <= 0:
        return None
    if everything.value < _LEFT_OUT_FROM * undisturbed.value:
        return None
    return everything / undisturbed.value


def unpinned_below(record: WithFigures) -> bool:
    """Whether all unpinned processes paid less than the interval of the undisturbed cost allows."""
    unpinned = unpinned_range(record)
    undisturbed = record.measured("complete")
    if unpinned is None or undisturbed is None:
        return False
    _, highest_us = unpinned
    return highest_us < undisturbed.floor / 1e3
