"""Rules on waits: after each dispatch, and after each step of a loop."""

from __future__ import annotations

import dataclasses

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    reader_of,
    variant,
)
from overhead.reading.synchronising import Synchronised, synchronised
from overhead.reading.view import TargetView, View
from overhead.results import Figure, Record, Value

_LEAST_TIMES = 1.5
"""A step with its wait must surely take this many times as long as the step alone. Chosen, not
measured.
"""
_ACTS = ("item", "cpu", "nonzero", "branch", "stream", "device")
"""Synchronising acts that readers know, the usual one first."""


@dataclasses.dataclass(frozen=True)
class WaitEachCosts:
    """A wait after each unit costs more than one at the end: the largest saving first."""

    changes: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class SynchronisingCosts:
    """An act that waits in each step of a PyTorch loop slows it.

    ``alone``: the cost of a step without it; ``adds``: ns that each act adds; ``slowdown``: of a
    step.
    """

    act: str
    record: Record
    alone: Figure
    adds: Value
    slowdown: Value


@rule("wait-each", page="synchronisation")
def wait_for_each(view: View) -> Finding | None:
    """Advise one wait at the end where a wait after each dispatch surely costs more; else None."""

    def waited(target: TargetView) -> Change | None:
        # Of stacks with several calls that wait, such as ``.item()``, the rule ``synchronise``
        # tells.
        told_by_act = "synchronising-acts" in target.facts.roles
        if target.first.api == "CPU" or told_by_act or target.base.pattern != "per-submit":
            return None
        # Surely means 1.5 times as much (``_LEAST_TIMES``), with the whole interval.
        return change_above(_LEAST_TIMES, target, variant(target, pattern="wait-each"), target.base)

    # A finding has one reader: Vulkan and WebGPU are told where no other stack has such a cost.
    found = changes(view, waited)
    found = [change for change in found if reader_of(change) == "engines"] or found
    return changes_finding(WaitEachCosts(tuple(found)), found)


@rule("synchronise", place=2, page="synchronisation")
def synchronise_each_step(view: View) -> Finding | None:
    """Advise against an act (a call that waits for the GPU, such as ``.item()``) in each step of a
    PyTorch loop where it surely slows the step; else None.

    Of several such acts it names the one that readers know best.
    """
    # ``every``: after how many steps the act comes.
    costly = []
    for case in synchronised(view):
        acts_in_each_step = case.every == 1
        if acts_in_each_step and case.act in _ACTS and _costly(case):
            costly.append(case)
    if not costly:
        return None
    # The order of ``_ACTS``: the act that readers know best comes first.
    first = min(costly, key=lambda case: _ACTS.index(case.act))
    # What the act adds, the steps with it over those without, and the steps alone.
    adds = first.cost
    slowdown = first.slowdown
    alone = first.alone.figure("complete") if first.alone is not None else None
    if adds is None or slowdown is None or alone is None:
        return None
    facts = SynchronisingCosts(first.act, first.record, alone, adds, slowdown)
    return Finding(facts, slowdown.value, (first.record.key,))


def _costly(case: Synchronised) -> bool:
    """Whether the act (the call that waits) of this case, on a GPU, surely adds time to the step:
    more than nothing, and ``_LEAST_TIMES`` in all. ``slowdown``: the time with the act over that
    without.
    """
    record = case.record
    if record.status != "ok" or record.api == "CPU" or record.software:
        return False
    adds = case.cost
    slowdown = case.slowdown
    if adds is None or slowdown is None:
        return False
    return adds.floor > 0 and slowdown.floor >= _LEAST_TIMES
