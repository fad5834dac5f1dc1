"""Rules on options of an API or a library that cost more than the usual case of the same run."""

from __future__ import annotations

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
    """Advise against ``torch.compile`` of one operation where it is surely slower than eager mode; else None."""
    target = view.best("torch-compile")
    if target is None or not target.has_step or target.first.api == "CPU":
        return None
    slower = change_above(_LEAST_TIMES_COMPILED, target, variant(target), variant(target, {"mode": "eager"}))
    if slower is None or target.base.params.get("ops") != 1:
        return None
    title = (
        f"Do not use torch.compile for one tiny operation: a step {slower.called} takes {cost_text(slower.before)} "
        f"{MICRO}, in eager mode {cost_text(slower.after)}."
    )
    condition = "Both were measured in turn. Larger steps can gain from fused kernels."
    return finding([slower], lambda _: title, condition)


def _costs_more(view: View, params: dict[str, Scalar], least: float) -> list[Change]:
    return changes(view, lambda target: change_above(least, target, variant(target, params), target.base))
