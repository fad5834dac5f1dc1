"""A warning: what fresh processes met differs much, because of the processor they ran on."""

from __future__ import annotations

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.findings import Finding, rule
from overhead.reading.format import MICRO, between, bounds, number, valued
from overhead.reading.stack_names import stack_name
from overhead.reading.view import CALLER_WORDS, TargetView, View

_LEAST_TIMES = 1.5
"""The slowest process must take this many times as long as the fastest."""
_LEAST_PROCESSES = 3


@rule("processors")
def processors_differ(view: View) -> Finding | None:
    """The cost that fresh processes met spans a wide range."""
    found = [
        (high / low, target, low, high)
        for target in targets_shown(view)[0]
        if target.first.api != "CPU"
        for low, high in _met(target)
        if high >= _LEAST_TIMES * low
    ]
    if not found:
        return None
    _, target, low, high = max(found, key=lambda one: one[0])
    figure = target.base.figure("met")
    processes = figure.processes if figure is not None else 0
    title = (
        f"Expect more than one speed: {processes} fresh processes met "
        f"{between(low / 1e3, high / 1e3)} {MICRO} a {target.base.unit} through {stack_name(target)} "
        f"{CALLER_WORDS[target.base.caller]}."
    )
    detail = " ".join(part for part in (_by_processor(target), _ADVICE) if part)
    return Finding(title, detail, 1.0, (target.base.key,))


_ADVICE = "Pin the thread that submits to one processor (taskset, numactl) and compare, before you blame the software."


def _met(target: TargetView) -> list[tuple[float, float]]:
    """Lowest and highest cost in ns over at least a few processes, as a list of one; empty where it is not known."""
    figure = target.base.figure("met")
    if figure is None or valued(figure) is None or figure.processes < _LEAST_PROCESSES:
        return []
    low, high = bounds(figure)
    return [(low, high)] if low is not None and high is not None and low > 0 else []


def _by_processor(target: TargetView) -> str:
    costs = sorted(target.base.by_processor, key=lambda one: one.ns)
    if len(costs) < 2:
        return ""
    fastest, slowest = costs[0], costs[-1]
    return (
        f"Processor {fastest.cpu} takes {number(fastest.ns / 1e3)} {MICRO}, processor {slowest.cpu} "
        f"{number(slowest.ns / 1e3)} {MICRO}."
    )
