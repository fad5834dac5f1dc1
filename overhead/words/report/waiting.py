"""What a wait costs, in words: acts that make the host wait, and what they do to a unit."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.missing_values import why
from overhead.reading.plain_text import plain
from overhead.reading.synchronising import (
    EmptyWaits,
    StepKind,
    Synchronised,
    varied_for_label,
    wait_of,
)
from overhead.reading.view import TargetView, parameter_texts, stack_name
from overhead.results import Figure, Record, Value
from overhead.words.format import (
    MICRO,
    cost_text,
    factor_spread,
    listed,
    micro_spread,
    number,
    positive_ends_text,
    positive_spread,
    spread,
)
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import one_line
from overhead.words.report.host_shares import DOUBTS

NO_WAIT = "No wait was measured."
WAITS_TITLE = f"Cost without a wait, with a wait after each, and single-shot latency, {MICRO}"
STACK_AND_WAIT = "stack, and the wait after each"
ALL_WAITS = "The page Synchronisation has all stacks and ways to wait."
WAITS_READ_AS = (
    "wait-each: the CPU waits after every dispatch or launch. read-each: the CPU also reads a value"
    " back. An empty wait has nothing to wait for. p50 to p99: percentiles of the time of one"
    " dispatch or launch with its wait, as an inference engine sees it."
)
WAITS_PICTURE = "What waiting for the device costs"
WAITS_CAPTION = (
    "The cost of a launch or dispatch without a wait, and with a wait after each; the single-shot"
    " latency of one with its wait; and the same after 50 ms without work. Horizontal lines:"
    " intervals. Hollow, and a range in place of a value: noisy. A dash: not measured. The axis is"
    " logarithmic."
)
WAIT_KINDS = ("no wait", "wait after each", "single-shot", "after idle")
"""The marks of the picture, and the headings of its columns."""
ONE_BY_ONE_TITLE = f"Waits that were timed one by one, {MICRO}"
SYNCHRONISATIONS_CAPTION = (
    "What one synchronisation adds: the time of a step with it minus the time of the same step"
    " without it. All panels share one axis. Hollow: noisy. A synchronisation whose cost is too"
    " small to measure is only in the table."
)
WAIT_FIGURES = {
    "empty_wait": f"empty wait, {MICRO}",
    "naive": f"single-shot, {MICRO}",
    "naive_idle": f"after 50 ms idle, {MICRO}",
}
"""What a figure of a wait is, as the heading of its column."""
_ACTS = {
    "item": ".item()",
    "cpu": ".cpu()",
    "cpu-pinned": "copy to pinned memory",
    "branch": "a branch on a value",
    "nonzero": "nonzero",
    "stream": "stream synchronize",
    "device": "device synchronize",
    "event": "spinning event synchronize",
    "event-blocking": "blocking event synchronize",
    "h2d": "copy to the device",
    "h2d-pinned": "pinned copy to the device",
}
_DOUBTS = {"": "", "below-zero": DOUBTS["below-zero"], "no-effect": "too small to measure"}
_STEPS = {
    "step": "256-element step",
    "mlp-forward": "MLP forward pass",
    "mlp-train": "MLP training step",
}
_READ_AS = (
    "All calls are from Python, unless the row says otherwise. A range without a value is noisy."
)


def act_name(act: str) -> str:
    """The act as readers know it: ``.item()``, ``stream synchronize``."""
    return _ACTS.get(act, plain(act, 40))


def stack_and_act(target: TargetView, act: str) -> str:
    """The stack, who calls it if that is not Python, and what follows each unit."""
    return f"{caller_name(target)}, {act_name(act)}"


def step_text(step: StepKind) -> str:
    """The step: ``MLP training step, varying shapes``."""
    name = _STEPS.get(step.workload, plain(step.workload, 40))
    described = [name, *step.chosen]
    if step.varying:
        described.append("varying shapes")
    return ", ".join(described)


def after_every(steps: int) -> str:
    """After how many steps an act comes."""
    return "after every step" if steps == 1 else f"after every {steps} steps"


def without_wait(target: TargetView) -> str:
    """The cost of a unit without a wait; its interval alone if it is noisy, its status if it has no
    value.
    """
    base = target.base
    return cost_or_range(base) if base.status == "noisy" else cost_text(base)


def waiting_sentence(
    target: TargetView, act: str, waited: Record | None, single: Value | None
) -> str:
    """Two sentences on one stack: what a unit (such as a launch) costs, and what it takes with the
    wait or read ``act`` after each. Where that was not measured, how long a single unit and its
    wait take.

    The numbers are those of the table below. ``waited``: the case with the act after each unit;
    ``single``: the time of a single one in ns.
    """
    base = target.base  # the case that the other cases of the target vary
    unit = plain(base.unit, 20)
    called = f"{stack_name(target)} {CALLER_WORDS[base.caller]}"
    # Only an article gets a capital: the names of stacks keep their own first letter.
    subject = called.replace("the ", "The ", 1)
    costs = f"{subject}: a {unit} costs {without_wait(target)} {MICRO}."
    with_wait = cost_or_range(waited)
    if with_wait:
        return (
            f"{costs} With {act_name(act)} after each {unit}, a {unit} costs {with_wait} {MICRO}."
        )
    alone = ""
    if single is not None:
        alone = micro_interval(single) if single.status == "ok" else positive_range(single)
    return f"{costs} The single-shot latency of a {unit}, with its wait, is {alone} {MICRO}."


def item_adds(found: Synchronised) -> str:
    """What ``.item()`` after every step adds. ``found``: has the cost of the step without it."""
    step_ns = found.alone.measured("complete") if found.alone is not None else None
    added, slowdown = found.cost, found.slowdown
    assert added is not None
    named = f"{act_name(found.act)} {after_every(found.every)} of {stack_name(found.target)}"
    adds = f"{named} adds {spread(added / 1e3)} {MICRO}"
    if step_ns is None or slowdown is None:
        return f"{adds}."
    return (
        f"{adds} to a step of {micro_interval(step_ns)} {MICRO}, which then takes"
        f" {factor_spread(slowdown)} as long."
    )


def micro_interval(ns: Value) -> str:
    """A time in microseconds with its interval, without the unit."""
    return positive_spread(ns / 1e3)


def empty_waits_cost(found: EmptyWaits) -> str:
    """What a wait with nothing to wait for costs through the stacks; '' where none was measured."""
    if not found.near:
        return ""
    shortest, least = found.near[0]
    longest, most = found.near[-1]
    if len(found.near) == 1:
        costs = f"{micro_interval(least)} {MICRO} through {stack_name(shortest)}"
    else:
        costs = (
            f"{number(least / 1e3)} {MICRO} ({stack_name(shortest)})"
            f" to {number(most / 1e3)} {MICRO} ({stack_name(longest)})"
        )
    far = []
    for target, wait in found.far:
        far.append(f"{micro_interval(wait)} {MICRO} through {stack_name(target)}")
    beyond = f", but {listed(far)}" if far else ""
    return f"A wait with nothing to wait for costs {costs}{beyond}."


def time_or_range(figure: Figure | None) -> str:
    """A time in microseconds; of a noisy one the interval alone, of one without a value a dash."""
    time_ns = figure.measured if figure is not None else None
    if figure is None or time_ns is None:
        return "\u2013"
    if figure.status == "ok" or not time_ns.bounded:
        return number(time_ns / 1e3)
    return positive_range(time_ns)


def caller_name(target: TargetView) -> str:
    """The stack, and who calls it if that is not Python."""
    caller = target.base.caller
    name = stack_name(target)
    return name if caller == "binding" else f"{name}, {CALLER_WORDS[caller]}"


def how_to_read(device_bound: Sequence[TargetView]) -> str:
    """How to read the table of waits. ``device_bound``: targets (stacks on a device) whose cost
    without a wait is the device's time and not the CPU's.
    """
    if not device_bound:
        return _READ_AS
    stacks = listed([stack_name(target) for target in device_bound])
    are = "is" if len(device_bound) == 1 else "are"
    bound = (
        f"Without a wait, {stacks} {are} device-bound, so do not divide their single-shot latency"
        " by their cost."
    )
    return f"{_READ_AS} {bound}"


def cost_or_range(record: Record | None) -> str:
    """The cost of a case as text with its interval; of a noisy one only the interval. ''
    without a value.
    """
    figure = record.figure("complete") if record is not None else None
    cost_ns = figure.measured if figure is not None else None
    if figure is None or cost_ns is None:
        return ""
    if figure.status == "ok":
        return micro_spread(figure)
    # Not clear, and without an interval: the value with its status.
    if figure.low is None or figure.high is None:
        return f"{micro_spread(figure)} ({figure.status})"
    return positive_range(cost_ns)


def positive_range(ns: Value) -> str:
    """The interval of a time as text in microseconds, ``3 to 8``; ``at most 8`` where it reaches
    zero, since no time lies below.
    """
    return positive_ends_text(ns / 1e3)


def wait_label(target: TargetView, record: Record) -> str:
    """The name of a case in the table of ways to wait: its target (a stack on a device), who calls
    it if that is not Python, how it waits, and the other parameters that tell it from the target's
    base case.
    """
    varied = {}
    for name, value in varied_for_label(target, record).items():
        # How it waits is named below, by ``wait_of``.
        if name not in ("sync", "wait") and value != "":
            varied[name] = value
    named = [target.short]
    if record.caller != "binding":
        named.append(CALLER_WORDS[record.caller])
    wait = wait_of(record)
    if wait:
        named.append(plain(str(wait), 24))
    return ", ".join([*named, *parameter_texts(varied)])


def synchronised_remark(found: Synchronised) -> str:
    """The remark on what a synchronisation adds, the difference of the steps with it and the steps
    without it: why it is not known, else what makes it doubtful; '' for a clear one.
    """
    if found.alone is None:
        return "the step without it was not measured"
    # ``record``: the steps with the synchronisation; ``alone``: the same steps without it.
    cases = {"with it": found.record, "without it": found.alone}
    lacking = []
    for name, record in cases.items():
        if record.value("complete") is None:
            reason = one_line(why(record, "complete"))
            lacking.append(f"{name}: {reason}")
    if lacking:
        return "; ".join(lacking)

    doubts = []
    # ``doubt``: the difference is below zero, or too small to measure; '' if it is neither.
    if _DOUBTS[found.doubt]:
        doubts.append(_DOUBTS[found.doubt])
    for name, record in cases.items():
        figure = record.figure("complete")
        if figure is not None and figure.status != "ok":
            doubts.append(f"{name} {figure.status}")
    return "; ".join(doubts)
