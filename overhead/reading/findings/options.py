"""Rules on options of an API or a library that cost more than the usual case of the same run."""

from __future__ import annotations

import dataclasses
import math

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    variant,
)
from overhead.reading.view import TargetView, View
from overhead.results import Scalar

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
class TinyCompiledCosts:
    """A step of ``torch.compile`` with one operation takes longer than the operation in eager mode.

    ``pays_from``: the number of eager operations that take as long as the compiled step.
    """

    change: Change
    pays_from: int


@rule("indirect")
def dispatch_indirect(view: View) -> Finding | None:
    """Advise against ``dispatchIndirect`` where it surely costs more than a direct dispatch; else
    None.
    """
    found = _costs_more(view, {"indirect": True}, _LEAST_TIMES)
    return changes_finding(IndirectCosts(tuple(found)), found)


@rule("bind-group")
def fresh_bind_group(view: View) -> Finding | None:
    """Advise to keep bind groups where a new one for each dispatch surely costs more; else None."""
    found = _costs_more(view, {"bindgroup": "fresh"}, _LEAST_TIMES_BIND_GROUP)
    return changes_finding(FreshBindGroupCosts(tuple(found)), found)


@rule("torch-compile")
def compile_tiny(view: View) -> Finding | None:
    """Say from how many operations on ``torch.compile`` pays, where one is surely slower than in
    eager mode; else None.

    A compiled step costs the CPU about the same for a few operations as for one, an eager one costs
    it per operation.
    """
    # The stacks of compiled steps; the first that was measured counts.
    compilers = [view.best(stack) for stack in view.in_role("compiled-steps")]
    target = next(filter(None, compilers), None)
    if target is None or not target.has_step or target.first.api == "CPU":
        return None
    # The rule needs the cost of a step with one operation.
    if target.base.params.get("ops") != 1:
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
