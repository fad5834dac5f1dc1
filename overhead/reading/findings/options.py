"""Rules on options of an API or a library that cost more than the usual case of the same run."""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.findings import Finding, RunsAtHand, in_run, rule, rule_of_runs
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    variant,
)
from overhead.reading.view import TargetView, View
from overhead.results import Record, Scalar, Value, exactly

_LEAST_TIMES = 1.5
_LEAST_TIMES_BIND_GROUP = 1.2
_LEAST_TIMES_COMPILED = 1.2
"""The option must surely cost this many times as much. All three are chosen, not measured."""


@dataclasses.dataclass(frozen=True)
class IndirectCosts:
    """``dispatchIndirect`` costs more than a direct dispatch: the largest saving first."""

    changes: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class FreshBindGroupCosts:
    """A new bind group for each dispatch costs more than one that is kept: the largest saving
    first.
    """

    changes: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class CompiledStepsMeet:
    """A step of ``torch.compile`` and the same operations in eager mode take equally long at so
    many operations (``meet_at``).

    ``compiled``, ``eager``: the cases with one operation and with ``operations``, whose costs are
    the lines.
    """

    compiled: tuple[Record, Record]
    eager: tuple[Record, Record]
    operations: int
    meet_at: Value


@dataclasses.dataclass(frozen=True)
class TinyCompiledCosts:
    """A step of ``torch.compile`` with one operation takes longer than the operation in eager mode.

    ``pays_from``: the number of eager operations that take as long as the compiled step.
    """

    change: Change
    pays_from: int


@rule("indirect", "webgpu", page="cases")
def dispatch_indirect(view: View) -> Finding | None:
    """Advise against ``dispatchIndirect`` where it surely costs more than a direct dispatch; else
    None.
    """
    found = _costs_more(view, {"indirect": True}, _LEAST_TIMES)
    return changes_finding(IndirectCosts(tuple(found)), found)


@rule("bind-group", "webgpu", page="cases")
def fresh_bind_group(view: View) -> Finding | None:
    """Advise to keep bind groups where a new one for each dispatch surely costs more; else None."""
    found = _costs_more(view, {"bindgroup": "fresh"}, _LEAST_TIMES_BIND_GROUP)
    return changes_finding(FreshBindGroupCosts(tuple(found)), found)


@rule_of_runs("torch-compile", "engines", place=3)
def compiled_steps(runs: RunsAtHand) -> Finding | None:
    """Say from how many small operations on ``torch.compile`` pays: where two lines over the number
    of operations meet, in the newest run with both; else from one operation of the run shown, if a
    compiled step of it is surely slower than in eager mode. None without either.
    """
    for view in (runs.shown, *runs.others):
        meeting = _meeting(view)
        if meeting is not None:
            keys = [record.key for record in (*meeting.compiled, *meeting.eager)]
            finding = Finding(meeting, 1.0, tuple(keys))
            return finding if view is runs.shown else in_run(finding, view)
    return _one_operation(runs.shown)


def _compiler(view: View) -> TargetView | None:
    """The first stack of compiled steps that was measured on a GPU, with the cost of a step of one
    operation; else None.
    """
    compilers = [view.best(stack) for stack in view.in_role("compiled-steps")]
    target = next(filter(None, compilers), None)
    if target is None or not target.has_step or target.first.api == "CPU":
        return None
    return target if target.base.params.get("ops") == 1 else None


def _meeting(view: View) -> CompiledStepsMeet | None:
    """Where the line of compiled steps meets that of eager ones; None unless the run has both for
    two numbers of operations, and an eager operation surely costs more than a compiled one.
    """
    target = _compiler(view)
    if target is None:
        return None
    compiled = _of_two_sizes(target, {})
    eager = _of_two_sizes(target, {"mode": "eager"})
    if compiled is None or eager is None or compiled.operations != eager.operations:
        return None
    # Lines through both sizes. Eager mode pays for each operation, a compiled step hardly does.
    added = eager.each - compiled.each
    ahead = compiled.one - eager.one
    if added.floor <= 0 or ahead.floor <= 0:
        return None
    # From the first operation on, as many more as make up for what the compiled step costs more.
    meet_at = ahead / added + exactly(1.0, "ratio")
    return CompiledStepsMeet(compiled.records, eager.records, eager.operations, meet_at)


@dataclasses.dataclass(frozen=True)
class _TwoSizes:
    """The costs of a step of one operation, and of one of ``operations``."""

    records: tuple[Record, Record]
    one: Value
    many: Value
    operations: int

    @property
    def each(self) -> Value:
        """What one more operation adds to the step, ns."""
        return (self.many - self.one) / (self.operations - 1)


def _of_two_sizes(target: TargetView, params: dict[str, Scalar]) -> _TwoSizes | None:
    """The step of one operation and the largest step that was measured, with these parameters; None
    without both costs.
    """
    one = variant(target, params)
    many = None
    for ops in _sizes(target):
        many = variant(target, {**params, "ops": ops}) or many
    if one is None or many is None:
        return None
    cost_of_one = one.measured("complete")
    cost_of_many = many.measured("complete")
    if cost_of_one is None or cost_of_many is None:
        return None
    return _TwoSizes((one, many), cost_of_one, cost_of_many, int(many.params["ops"]))


def _sizes(target: TargetView) -> list[int]:
    """The numbers of operations above one of the steps that were measured, in their order."""
    sizes = set()
    for record in target.records:
        ops = record.params.get("ops")
        if isinstance(ops, int) and ops > 1:
            sizes.add(ops)
    return sorted(sizes)


def _one_operation(view: View) -> Finding | None:
    """The finding from steps of one operation alone. A compiled step costs the CPU about the same
    for a few operations as for one, an eager one costs it per operation.
    """
    target = _compiler(view)
    if target is None:
        return None
    # ``variant`` alone is the base case, here the compiled step; "eager" is it without compiling.
    compiled = variant(target)
    eager = variant(target, {"mode": "eager"})
    # How many times as long the compiled step takes; None if it is not surely slower.
    slower = change_above(_LEAST_TIMES_COMPILED, target, compiled, eager)
    if slower is None:
        return None
    # If the compiled step takes 2.3 times as long as one eager operation, it pays from 3 on.
    pays_from = math.ceil(slower.times.value)
    return changes_finding(TinyCompiledCosts(slower, pays_from), [slower])


def _costs_more(view: View, params: dict[str, Scalar], least: float) -> list[Change]:
    """What leaving out an option saves: the targets on which the case with these parameters (the
    option) costs surely ``least`` times as much as the base case, which has not got it. A change
    goes from the case with the option to the one without.
    """

    def with_option(target: TargetView) -> Change | None:
        return change_above(least, target, variant(target, params), target.base)

    return changes(view, with_option)
