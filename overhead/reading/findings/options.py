"""Rules on options of an API or a library that cost more than the usual case of the same run."""

from __future__ import annotations

import math

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, change_above, changes, finding, variant
from overhead.reading.format import MICRO, cost_text
from overhead.reading.view import View
from overhead.results import Scalar

_LEAST_TIMES = 1.5
_LEAST_TIMES_BIND_GROUP = 1.2
_LEAST_TIMES_COMPILED = 1.2


@rule("indirect")
def dispatch_indirect(view: View) -> Finding | None:
    """Advise against ``dispatchIndirect`` where it surely costs more than a direct dispatch; else None."""
    return finding(
        _costs_more(view, {"indirect": True}, _LEAST_TIMES),
        lambda first: f"Avoid dispatchIndirect in {first.name}: {first.against}.",
        "It applies where the CPU knows the number of workgroups.",
    )


@rule("bind-group")
def fresh_bind_group(view: View) -> Finding | None:
    """Advise to keep bind groups where a new one for each dispatch surely costs more; else None."""
    return finding(
        _costs_more(view, {"bindgroup": "fresh"}, _LEAST_TIMES_BIND_GROUP),
        lambda first: f"Keep bind groups: a new one for each dispatch in {first.name} costs {first.against}.",
        "It applies where the same buffers are bound again.",
    )


@rule("torch-compile")
def compile_tiny(view: View) -> Finding | None:
    """Say from how many operations on ``torch.compile`` pays, where one is surely slower than in eager mode; else None.

    A compiled step costs the CPU about the same for a few operations as for one, an eager one costs it per operation.
    """
    compilers = [view.best(stack) for stack in view.in_role("compiled-steps")]
    target = next(filter(None, compilers), None)
    if target is None or not target.has_step or target.first.api == "CPU":
        return None
    slower = change_above(_LEAST_TIMES_COMPILED, target, variant(target), variant(target, {"mode": "eager"}))
    if slower is None or target.base.params.get("ops") != 1:
        return None
    least = math.ceil(slower.times.value)
    title = (
        f"torch.compile pays from about {least} tiny operations on: a compiled step {slower.called} takes "
        f"{cost_text(slower.before)} {MICRO}, one operation in eager mode {cost_text(slower.after)}."
    )
    condition = "Both were measured in turn, with one operation. Larger operations can gain from fused kernels earlier."
    return finding([slower], lambda _: title, condition)


def _costs_more(view: View, params: dict[str, Scalar], least: float) -> list[Change]:
    return changes(view, lambda target: change_above(least, target, variant(target, params), target.base))
