"""Rules on waits: after each dispatch, and after each step of a loop."""

from __future__ import annotations

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, change_above, changes, finding, variant
from overhead.reading.format import MICRO, factor_spread, micro, number, spread
from overhead.reading.synchronising import Synchronised, synchronised
from overhead.reading.view import CALLER_WORDS, TargetView, View

_LEAST_TIMES = 1.5
"""A step with its wait must surely take this many times as long as the step alone."""
_ACTS = {
    "item": ".item()",
    "cpu": ".cpu()",
    "nonzero": "nonzero()",
    "branch": "a Python branch on a tensor",
    "stream": "a stream synchronisation",
    "device": "torch.cuda.synchronize()",
}
"""Synchronising acts as readers know them, the usual one first."""


@rule("wait-each")
def wait_for_each(view: View) -> Finding | None:
    """Advise one wait at the end where a wait after each dispatch surely costs more; else None."""

    def waited(target: TargetView) -> Change | None:
        told_by_act = "synchronising-acts" in target.facts.roles  # by the rule below
        if target.first.api == "CPU" or told_by_act or target.base.pattern != "per-submit":
            return None
        return change_above(_LEAST_TIMES, target, variant(target, pattern="wait-each"), target.base)

    return finding(
        changes(view, waited),
        lambda first: f"Wait once, not after each {first.before.unit}: in {first.name} {first.instead}.",
        "It applies where the CPU does not need each result before it goes on.",
    )


@rule("synchronise")
def synchronise_each_step(view: View) -> Finding | None:
    """Advise against a synchronisation in each step of a PyTorch loop where it surely slows the step; else None."""
    found = [s for s in synchronised(view) if s.every == 1 and s.act in _ACTS and _costly(s)]
    if not found:
        return None
    first = min(found, key=lambda s: list(_ACTS).index(s.act))
    cost, slower = first.cost, first.slowdown
    plain = first.alone.figure("complete") if first.alone is not None else None
    if cost is None or slower is None or plain is None:
        return None
    title = (
        f"Take {_ACTS[first.act]} out of the loop: each one adds {number(cost / 1e3)} {MICRO} to a step of "
        f"{micro(plain)} {MICRO} {CALLER_WORDS[first.record.caller]}."
    )
    detail = (
        f"PyTorch: {spread(cost / 1e3)} {MICRO} each; a step with it takes {factor_spread(slower)} the "
        "time. It applies to every value that Python reads back."
    )
    return Finding(title, detail, slower.value, (first.record.key,))


def _costly(one: Synchronised) -> bool:
    """Whether the act is resolved on a GPU and makes the step surely slower."""
    known = one.record.status == "ok" and one.record.api != "CPU" and not one.record.software
    slower = one.slowdown
    return known and one.cost is not None and one.cost.floor > 0 and slower is not None and slower.floor >= _LEAST_TIMES
