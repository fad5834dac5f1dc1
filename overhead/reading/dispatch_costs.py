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
    """One way to call a stack, a row of the headline figure. It has up to four kinds of cost: of a
    call from Python, from compiled code, from a browser, and of one dispatch in a batch.
    ``records``: the measured case of each kind. ``marks``: by kind, the costs that are drawn, above
    zero, in microseconds with their intervals: one, or both of two speeds. ``rank``: the row with
    the highest goes first where the figure has no room. ``lacks_batch``: the stack can have many
    dispatches in one pass, and this run did not measure it. ``python``: the share (0 to 1) that
    Python takes of the CPU time of a call from Python; None where it is not resolved. ``place``:
    the end of the label, `` (CPU)`` or `` (software)`` where no GPU works, else ''. ``name``: the
    label as a sentence has it, ``the CUDA driver``, ``Dawn``; ``split``: that of the operation
    whose CPU time was split where compiled code runs another operation. ``facts``: of the stack.
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
    place: str = ""

    @property
    def bare_label(self) -> str:
        """The label without its place."""
        return self.label.removesuffix(self.place)

    @property
    def software(self) -> bool:
        """Whether a software adapter ran the calls."""
        return any(record.software for record in self.records.values())

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of cost that a table of this row lists: those with a record, and the batch also
        where the stack could have one and this run did not measure it.
        """
        kinds = [*self.records]
        if self.lacks_batch:
            kinds.append("batched")
        return kinds

    @property
    def first(self) -> Kind:
        """The kind of cost by which the row takes its place among the others: the cost of a call
        from Python where there is one, noisy or not, else that of the next caller.
        """
        for kind in _SORTED_BY:
            if kind in self.marks:
                return kind
        # A row without any cost.
        return "python"

    @property
    def split_name(self) -> str:
        """The name of the operation whose CPU time was split, which may have another operand than
        the row.
        """
        return self.split if self.other_operand else self.name

    @property
    def other_operand(self) -> bool:
        """Whether the call from compiled code runs another operation than that from Python, such as
        an addition of a number in place of an array. The CPU time is then split of that operation.
        """
        base = self.records.get("python")
        compiled = self.records.get("compiled")
        if base is None or compiled is None:
            return False
        # No other parameter of the two can differ: see ``_case``.
        return base.params != compiled.params

    @property
    def unit(self) -> str:
        """What one call does: ``dispatch``, ``launch``, ``step``."""
        return next(iter(self.records.values())).unit

    def is_resolved(self, kind: Kind) -> bool:
        """Whether the cost is not noisy, has one speed, and lies above zero with its interval."""
        return kind in self.marks and doubt_of(self.records[kind]) is None

    def limit(self, kind: Kind) -> str:
        """Whether the CPU (``host``) or the GPU (``device``) takes longer for a unit and so bounds
        the cost, or both alike (``balanced``); '' where that is not known.
        """
        record = self.records[kind]
        # Without a GPU the CPU does both parts, so neither waits for the other.
        if record.software or record.api == "CPU":
            return ""
        # ``bound``: what the measurement found; it may be '' too.
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
    """What one dispatch costs through each stack of the run, as the rows of its headline figure,
    the cheapest first; None if no stack ran the step, the small kernel that is dispatched.
    """
    shown = targets_shown(view)
    rows: list[DispatchRow] = []
    # ``_rows``: the ways to call a stack, each with the costs by its callers.
    for target in shown.targets:
        rows += _rows(view, target)
    if not rows:
        return None
    # The name of the CPU, or of the GPU that all rows were measured on.
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
    """Which target (a stack on a device) stands for each stack in the headline figure, so that all
    of them are on one GPU and may be compared.

    A target counts if it ran the step, the small kernel that is dispatched. Without a GPU all of
    them are shown.
    """
    # Of each stack its best target, if that ran the step.
    with_step = []
    for stack in view.stacks:
        # The best: a GPU before an adapter that computes on the CPU, and its native API before
        # others.
        target = view.best(stack)
        if target is not None and target.has_step:
            with_step.append(target)
    # Those on a real GPU, and of these the ones on the first board or on none that is named.
    gpus = [target for target in with_step if target.first.api != "CPU" and not target.software]
    # Targets of a second board may not be compared with those of the first.
    other_boards = boards_of(target.first for target in gpus)[1:]
    on_board = [target for target in gpus if target.first.device not in other_boards]
    if not on_board:
        return ShownTargets(with_step, hardware=False)
    # Targets that name no board may be of several GPUs: the one with the most stacks is shown.
    most: list[TargetView] = []
    for target in on_board:
        same_gpu = [
            other for other in on_board if same_device_across_apis(other.first, target.first)
        ]
        if len(same_gpu) > len(most):
            most = same_gpu
    return ShownTargets(most, hardware=True)


def _rows(view: View, target: TargetView) -> list[DispatchRow]:
    """A row for each of the stack's; a graph's node stands in the row of the launch that it
    replaces.
    """
    rows = [_row(view, target, entry) for entry in target.facts.rows]
    return [row for row in rows if row is not None]


def _row(view: View, target: TargetView, entry: StackRow) -> DispatchRow | None:
    """The row of the headline figure for one way to call the stack; None if it was not measured.

    ``entry``: the row as the facts of the stack describe it: its label, and the parameters of its
    case.
    """
    # The case of each caller: from Python, from compiled code, from a browser.
    records: dict[Kind, Record] = {}
    # In this order, so Python is the first of those that were measured.
    for kind, caller in _CALLERS.items():
        record = _case(target, entry, caller)
        if record is not None:
            records[kind] = record
    if not records:
        return None
    # The batch is compared with single dispatches by the same caller: Python's, if it has any.
    first_caller = next(iter(records.values())).caller
    batched = _batched(view, target, entry, first_caller)
    if batched is not None:
        records["batched"] = batched
    # By kind the costs that are drawn; then labels that are safe to print.
    marks = {}
    for kind, record in records.items():
        costs = _costs(record)
        if costs:
            marks[kind] = costs
    where = target.without_gpu
    label = plain(entry.label, 60)
    name = plain(entry.name, 60) or label
    split = plain(entry.split_name, 60) or name
    # "one-pass": the stack can put many dispatches into one pass.
    lacks_batch = batched is None and "one-pass" in target.facts.roles
    operand = _other_operand(target, entry, records.get("compiled"))
    python = _python_share(view, records)
    # ``rank``: where the figure has no room, the row with the highest goes first. ``split``: the
    # name of the operation whose CPU time is told, which may have another operand.
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
        place=where,
    )


def _costs(record: Record) -> tuple[Value, ...]:
    """The costs of one unit that the figure shows, in microseconds: one, or two where the case ran
    at two speeds or longer chains cost more a unit. Only those above zero; () where there is none.
    """
    figure = record.figure("complete")
    if figure is None:
        return ()
    # ``modes``: the several values of a figure that has no single one, in ns.
    modes = two_speeds(figure)
    # Where T(n) bends, the modes are the cost of a unit in short and in long chains.
    if not modes and figure.status == "nonlinear":
        modes = tuple(figure.modes)
    costs = [mode_of(figure, mode) / 1e3 for mode in modes]
    measured = record.measured("complete")
    if not modes and measured is not None:
        costs = [measured / 1e3]
    return tuple(cost for cost in costs if cost.value > 0)


def _python_share(view: View, records: Mapping[Kind, Record]) -> Value | None:
    """The share of the CPU time of a call from Python that Python itself takes: what a call from
    compiled code does without. None where it is unknown, or where either CPU time reaches zero with
    its interval (is not *resolved*).

    ``host_shares`` splits the CPU time of a call by levels, the last of which is compiled code. Of
    several splits, the row's is the one whose last level is the row's own case.
    """
    compiled = records.get("compiled")
    if compiled is None:
        return None
    for split in view.once(host_shares):
        # ``levels``: the same calls from Python first, from compiled code last.
        share = split.python
        if share and share.bounded and split.levels[-1].key == compiled.key:
            # "host": the CPU time of a call.
            is_resolved = resolved(split.host) and resolved(compiled.figure("host"))
            return share if is_resolved else None
    return None


def _case(target: TargetView, entry: StackRow, caller: Caller) -> Record | None:
    """The measured case of a row of the headline figure by that caller: the target's base case with
    the parameters of the row. None if it was not measured.

    Compiled code does not always run the same operation as Python. So for a row without parameters
    of its own, its case may have another operand.
    """
    # The row's parameters replace those of the base case; the rest is as in the base case.
    base = target.base
    wanted = {**base.params, **entry.params}
    # ``is_ufunc_loop``: it enters NumPy below the function that Python calls.
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
        # The names of the parameters that only one has, or that have another value.
        differing = {name for name, _ in wanted.items() ^ record.params.items()}
        if differing == {"operand"}:
            return record
    return None


def _batched(view: View, target: TargetView, entry: StackRow, caller: Caller) -> Record | None:
    """The case that does many of the row's dispatches at once; None if none was measured.

    For a stack of CUDA whose launches a graph can record, that is a node of this graph; it has a
    stack of its own. For another stack it is a pass with many dispatches by the same caller, or
    else a replay of what the stack has recorded.
    """
    # Batches were measured for the base case only, which is the row without parameters.
    if entry.params:
        return None
    # A CUDA graph of this stack's launches: a node of it is the batch.
    # ``graph_of``: the stack whose graphs record the launches of this one, and the ``maker`` of the
    # graphs, as their parameter names it.
    recorded = view.graph_of(target.stack)
    if recorded is not None and target.first.api == "CUDA":
        graph = view.best(recorded.stack)
        if graph is None:
            return None
        nodes = with_fields(graph.records, pattern="replay", workload="step")
        return next((node for node in nodes if node.params.get("maker") == recorded.maker), None)
    # Any other stack: a pass with many dispatches, or a replay.
    by_caller = with_fields(target.records, workload="step", caller=caller)
    for one_pass in with_fields(by_caller, pattern="one-pass"):
        has_parameters_of_base = not target.varied(one_pass)
        if has_parameters_of_base:
            return one_pass
    return first_with(by_caller, pattern="replay")


def doubt_of(record: Record) -> Doubt | None:
    """Why the cost of a unit in this case may not be told as one number; None if it may.

    The cost is the figure "complete", the slope of T(n). It has no value where T(n) bends; its
    modes are then the costs of a unit in short and in long chains.
    """
    figure = record.figure("complete")
    cost = record.measured("complete")
    if figure is None:
        return "no-value"
    # ``modes``: the costs that were found in short and in long chains.
    if cost is None:
        bends = figure.status == "nonlinear" and figure.modes
        return "bends" if bends else "no-value"
    if two_speeds(figure):
        return "two-speeds"
    if figure.status != "ok":
        return "status"
    return None if cost.resolved else "not-above-zero"


def _other_operand(
    target: TargetView, entry: StackRow, compiled: Record | None
) -> OtherOperand | None:
    """The operation that the row's case of compiled code runs, if it is not the one that Python
    calls run in this row; else None. With what the same operation costs from Python, if that was
    measured: only this cost may be compared with that of compiled code.
    """
    base = target.base
    if compiled is None or compiled.params.get("operand") == base.params.get("operand"):
        return None
    # "binding": called from Python.
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
    """Lowest and highest cost of a unit in fresh processes that are not pinned to a processor, in
    µs; None if not measured.
    """
    # "met" is the name of the unpinned cost in files: what a program meets.
    unpinned = record.measured("met")
    if unpinned is None:
        return None
    # A single process gives no range: its value is both ends.
    low = unpinned.value if unpinned.low is None else unpinned.low
    high = unpinned.value if unpinned.high is None else unpinned.high
    return low / 1e3, high / 1e3


def over_undisturbed(record: Record) -> Value | None:
    """How many times the undisturbed cost (the slope, without interrupted samples) the mean of all
    samples is; None where both are nearly the same, within 3 %, so that there is nothing to tell.
    """
    undisturbed = record.measured("complete")
    # "everything": the mean with the interrupted samples too.
    everything = record.measured("everything")
    if undisturbed is None or everything is None or undisturbed.value <= 0:
        return None
    if everything.value < _LEFT_OUT_FROM * undisturbed.value:
        return None
    return everything / undisturbed.value


def unpinned_below(record: WithFigures) -> bool:
    """Whether every process that was not pinned to a CPU core paid less for a unit than the
    undisturbed cost, that of pinned processes, with its whole interval.
    """
    unpinned = unpinned_range(record)
    undisturbed = record.measured("complete")
    if unpinned is None or undisturbed is None:
        return False
    _, highest_us = unpinned
    # ``floor``, the lower end of the interval, is in ns.
    return highest_us < undisturbed.floor / 1e3
