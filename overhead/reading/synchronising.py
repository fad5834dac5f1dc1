"""Cases that wait: the ways to wait of each target, and what a synchronisation after every so many
steps costs.

An act is a call by which the host waits for the device in a loop, such as ``.item()``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Literal

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.precision import resolved
from overhead.reading.view import TargetView, View, first_with, with_fields
from overhead.results import Comparison, Figure, Record, Scalar, Value

ACT_PARAMETERS = {"sync", "every"}
"""Parameters of a case that synchronises: the act, and after how many steps it comes."""
_UNUSUAL = ("allocating", "tensor")
"""Values of ``alloc`` and ``operand`` that a step names."""
_AFTER_EACH_STEP = ("every", 1)
"""The usual value, which labels leave out."""
_CAPTURED = "captured "
"""How the fields of a window begin that say what an act does while a graph is captured."""
_FAR = 5
"""An empty wait is far longer than most if it takes so many times that of the stack in the middle,
by the intervals. Chosen, not measured: so a sentence can name the usual range and what is beyond.
"""
_MOST_STEPS = 1_000_000
"""A case that names more steps between two acts is not shown: the product would be no time."""


def synchronises(record: Record) -> bool:
    """Whether the case synchronises (the host waits for the device) after each group of steps."""
    return "sync" in record.params


def wait_of(record: Record) -> Scalar | None:
    """How the case waits (``stream``): its act, else its parameter ``wait``, else what its stack
    says; or None.
    """
    return record.params.get("sync", record.params.get("wait", record.window.get("wait")))


def varied_for_label(target: TargetView, record: Record) -> dict[str, Scalar]:
    """The parameters that differ from the base case, for a label: without ``every=1``, which is
    usual.
    """
    varied = target.varied(record).items()
    return {name: value for name, value in varied if (name, value) != _AFTER_EACH_STEP}


def waited_each(target: TargetView) -> Record | None:
    """The case in which the host waits after each unit (pattern ``wait-each``), with everything
    else as in the target's base case; None if it was not measured.

    Where there are several ways to wait (acts), it is the one for the stream.
    """
    waiting = with_fields(
        target.records, pattern="wait-each", caller=target.base.caller, workload="step"
    )
    for record in waiting:
        # ``ACT_PARAMETERS``: those that say which act waits, and how often.
        differs_in_act_alone = set(target.varied(record)) <= ACT_PARAMETERS
        # ``sync``: the act; a case without it counts as a wait for the stream.
        if differs_in_act_alone and record.params.get("sync", "stream") == "stream":
            return record
    return None


def waiting_targets(view: View) -> list[TargetView]:
    """The targets of the headline figure that wait for a device, without CUDA graphs, which wait as
    launches do.
    """
    shown = targets_shown(view).targets
    return [target for target in shown if target.first.api != "CPU" and not target.facts.graphs]


@dataclasses.dataclass(frozen=True)
class WaitCosts:
    """What a unit of a target takes with more and more waiting, each in ns, None where it was not
    measured: without a wait, with a wait after each unit, as a single unit with its wait, and the
    same after the device was idle.
    """

    target: TargetView
    without: Figure | None
    with_wait: Figure | None
    single_shot: Figure | None
    after_idle: Figure | None

    @property
    def figures(self) -> tuple[Figure | None, ...]:
        """The four figures, in the order above."""
        return self.without, self.with_wait, self.single_shot, self.after_idle


def wait_costs(view: View) -> list[WaitCosts]:
    """What waiting costs through each stack that was measured with a wait; the stack whose single
    unit takes the shortest time first.
    """
    found = []
    for target in waiting_targets(view):
        base, waited = target.base, waited_each(target)
        costs = WaitCosts(
            target,
            without=base.figure("complete"),
            with_wait=waited.figure("complete") if waited is not None else None,
            single_shot=base.figure("naive"),
            after_idle=base.figure("naive_idle"),
        )
        # With the cost without a wait alone a row would compare nothing.
        if any(figure is not None and resolved(figure) for figure in costs.figures[1:]):
            found.append(costs)
    found.sort(key=_single_shot)
    return found


def _single_shot(costs: WaitCosts) -> float:
    single = costs.target.base.value("naive")
    return single if single is not None else math.inf


@dataclasses.dataclass(frozen=True)
class EmptyWaits:
    """The time of a wait with nothing to wait for, by target, in ns, the shortest first. ``near``:
    of most targets; ``far``: of the few where it is far longer.
    """

    near: tuple[tuple[TargetView, Value], ...]
    far: tuple[tuple[TargetView, Value], ...]


def empty_waits(view: View) -> EmptyWaits:
    """The empty wait of each target on a device, the shortest of its cases."""
    shortest: dict[str, tuple[TargetView, Value]] = {}
    for target, record in all_waits(view):
        figure = record.figure("empty_wait")
        if figure is None or figure.measured is None or not resolved(figure):
            continue
        known = shortest.get(target.key)
        if known is None or figure.measured.value < _waited_ns(known):
            shortest[target.key] = (target, figure.measured)
    found = sorted(shortest.values(), key=_waited_ns)
    if not found:
        return EmptyWaits((), ())
    _, middle = found[len(found) // 2]
    near: list[tuple[TargetView, Value]] = []
    far: list[tuple[TargetView, Value]] = []
    for target, wait in found:
        is_far = wait.floor > _FAR * middle.ceiling
        (far if is_far else near).append((target, wait))
    return EmptyWaits(tuple(near), tuple(far))


def _waited_ns(found: tuple[TargetView, Value]) -> float:
    _, wait = found
    return wait.value


def all_waits(view: View) -> Iterator[tuple[TargetView, Record]]:
    """The cases of each target that tell how long a wait takes: the base case, the same with
    another way to wait, and those whose waits were timed one by one.
    """
    for target in view.without_floor:
        # On the CPU there is nothing to wait for.
        if target.first.api == "CPU":
            continue
        # ``base``: the case that the others vary.
        base = target.base
        for record in target.records:
            called_alike = (record.pattern, record.caller) == (base.pattern, base.caller)
            # Differs from the base case in nothing but the way to wait.
            waits_otherwise = called_alike and set(target.varied(record)) == {"wait"}
            # "p50": waits were timed one by one, so they have percentiles.
            has_percentiles = record.figure("p50") is not None
            if waits_otherwise or has_percentiles or record is base:
                yield target, record


@dataclasses.dataclass(frozen=True)
class StepKind:
    """The step of a case that synchronises. ``chosen``: what it does otherwise than usual;
    ``varying``: its shapes.
    """

    workload: str
    chosen: tuple[str, ...]
    varying: bool


def step_kind(record: Record) -> StepKind:
    """The step of the case."""
    values = [record.params.get(name) for name in ("alloc", "operand")]
    chosen = tuple(str(value) for value in values if value in _UNUSUAL)
    has_varying_shapes = record.params.get("shapes") == "varying"
    return StepKind(record.workload, chosen, has_varying_shapes)


def in_capture(view: View) -> dict[str, str]:
    """What each act (a call by which the host waits, such as ``item``) does while a CUDA graph is
    captured, by its name: an error, for instance. Empty where that was not tried.

    The cases of a stack of graphs have it in the description of their timed window; all that have
    it say the same, so the first counts.
    """
    for target in view.executing:
        if not target.facts.graphs:
            continue
        for record in target.records:
            # By the name of the act what the window says of it.
            captured = {}
            for field, value in record.window.items():
                if field.startswith(_CAPTURED):
                    captured[field.removeprefix(_CAPTURED)] = str(value)
            if captured:
                return captured
    return {}


@dataclasses.dataclass(frozen=True)
class Synchronised:
    """A case with an act (a call by which the host waits for the device) after every so many steps
    (``record``), and ``alone``, the same steps without the act. ``paired``: the comparison of both,
    round by round; None in older files. ``alone`` is None if it was not measured.
    """

    target: TargetView
    record: Record
    alone: Record | None
    paired: Comparison | None = None

    @property
    def act(self) -> str:
        """The act's name in the file: ``item``, ``stream``."""
        return str(self.record.params["sync"])

    @property
    def every(self) -> int:
        """After how many steps the act comes."""
        return int(self.record.params["every"])

    @property
    def cost(self) -> Value | None:
        """Time in ns that one act adds to the steps before it; None where the case with the act or
        that without has no value.
        """
        # The paired difference is more precise: both cases took turns in one process.
        if self.paired:
            return self.paired.measured("difference")
        with_act = self.record.measured("complete")
        without = self._steps_alone
        if with_act is None or without is None:
            return None
        return with_act - without

    @property
    def slowdown(self) -> Value | None:
        """How many times as long the steps take with the act as without; None where either has no
        value.
        """
        # More precise than the two cases by themselves: they took turns in one process.
        if self.paired:
            return self.paired.measured("ratio")
        with_act = self.record.measured("complete")
        without = self._steps_alone
        if with_act is None or without is None or without.value <= 0:
            return None
        # Without a paired comparison: from the two cases alone.
        return with_act / without

    @property
    def is_costly(self) -> bool:
        """Whether the interval of what the act adds lies above zero."""
        return self.cost is not None and self.cost.resolved

    @property
    def doubt(self) -> Literal["", "below-zero", "no-effect"]:
        """Why it may not be said that the act adds time: the interval of what it adds lies below
        zero (``below-zero``) or reaches zero (``no-effect``). '' where it lies above, or is not
        known.
        """
        cost = self.cost
        if cost is None:
            return ""
        # ``ceiling``, ``floor``: the ends of the interval.
        if cost.ceiling < 0:
            return "below-zero"
        return "no-effect" if cost.bounded and cost.floor <= 0 else ""

    @property
    def _steps_alone(self) -> Value | None:
        """Time in ns of as many steps as come between two acts, without the act."""
        step = self.alone.measured("complete") if self.alone else None
        return step * self.every if step is not None else None


def synchronised(view: View) -> list[Synchronised]:
    """Every case in which the host waits for the device after each group of steps, beside the same
    steps without the wait; in the file's order.
    """
    cases = []
    for target in view.executing:
        for record in target.records:
            every = record.params.get("every")
            # A file may hold any number of steps; with a nonsensical one no time can be told.
            if not isinstance(every, int) or not 0 < every <= _MOST_STEPS:
                continue
            if synchronises(record):
                alone = _without_act(view, record)
                # Both cases took turns in one process; None if they were not compared so.
                paired = view.comparison("sync-cost", record.key)
                cases.append(Synchronised(target, record, alone, paired))
    return cases


def item_after_each(view: View) -> Synchronised | None:
    """``.item()`` after every step of the base case of a stack that waits for a device, if what it
    adds is clear; None without it.
    """
    waiting = {target.key for target in waiting_targets(view)}
    for found in synchronised(view):
        is_of_base = found.alone is not None and found.alone.key == found.target.base.key
        is_after_each = found.act == "item" and found.every == 1
        if is_after_each and is_of_base and found.target.key in waiting and found.is_costly:
            return found
    return None


def _without_act(view: View, acting: Record) -> Record | None:
    """The case with the same steps as ``acting`` but without its act, the call that waits; None
    where it was not measured.
    """
    # All that names the case, but for its act and its pattern.
    same = ("stack", "api", "adapter", "workload", "caller", "dependency", "device")
    fields = {name: getattr(acting, name) for name in same}
    params = {name: v for name, v in acting.params.items() if name not in ACT_PARAMETERS}
    return first_with(view.fingerprint.records, params=params, pattern="per-submit", **fields)
