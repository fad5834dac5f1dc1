"""Cases that wait: the ways to wait of each target, and what a synchronisation after every so many
steps costs.

An act is a call by which the host waits for the device in a loop, such as ``.item()``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Literal

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.view import TargetView, View, first_with, with_fields
from overhead.results import Comparison, Record, Scalar, Value

ACT_PARAMETERS = {"sync", "every"}
"""Parameters of a case that synchronises: the act, and after how many steps it comes."""
_UNUSUAL = ("allocating", "tensor")
"""Values of ``alloc`` and ``operand`` that a step names."""
_AFTER_EACH_STEP = ("every", 1)
"""The usual value, which labels leave out."""
_CAPTURED = "captured "
"""How the fields of a window begin that say what an act does while a graph is captured."""
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


def _without_act(view: View, acting: Record) -> Record | None:
    """The case with the same steps as ``acting`` but without its act, the call that waits; None
    where it was not measured.
    """
    # All that names the case, but for its act and its pattern.
    same = ("stack", "api", "adapter", "workload", "caller", "dependency", "device")
    fields = {name: getattr(acting, name) for name in same}
    params = {name: v for name, v in acting.params.items() if name not in ACT_PARAMETERS}
    return first_with(view.fingerprint.records, params=params, pattern="per-submit", **fields)
