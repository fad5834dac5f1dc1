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
    return {k: v for k, v in target.varied(record).items() if (k, v) != _AFTER_EACH_STEP}


def waited_each(target: TargetView) -> Record | None:
    """The case that waits after each unit and else is the base case; None if it was not
    measured.
    """
    own = with_fields(
        target.records, pattern="wait-each", caller=target.base.caller, workload="step"
    )
    alike = (r for r in own if set(target.varied(r)) <= ACT_PARAMETERS)
    return next((r for r in alike if r.params.get("sync", "stream") == "stream"), None)


def waiting_targets(view: View) -> list[TargetView]:
    """The targets of the headline figure that wait for a device, without CUDA graphs, which wait as
    launches do.
    """
    return [t for t in targets_shown(view)[0] if t.first.api != "CPU" and not t.facts.graphs]


def all_waits(view: View) -> Iterator[tuple[TargetView, Record]]:
    """Base cases, and cases with another wait or with percentiles."""
    for target in (t for t in view.without_floor if t.first.api != "CPU"):
        base = target.base
        for r in target.records:
            same = (r.pattern, r.caller) == (base.pattern, base.caller) and set(
                target.varied(r)
            ) == {"wait"}
            if same or r.figure("p50") is not None or r is base:
                yield target, r


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
    values = (record.params.get(name) for name in ("alloc", "operand"))
    chosen = tuple(str(value) for value in values if value in _UNUSUAL)
    return StepKind(record.workload, chosen, record.params.get("shapes") == "varying")


def in_capture(view: View) -> dict[str, str]:
    """By name of each act what happens to it while a CUDA graph is captured; empty where that was
    not tried.
    """
    start = "captured "
    windows = (r.window for target in view.executing for r in target.records if target.facts.graphs)
    found = (
        {k.removeprefix(start): str(v) for k, v in window.items() if k.startswith(start)}
        for window in windows
    )
    return next(filter(None, found), {})


@dataclasses.dataclass(frozen=True)
class Synchronised:
    """A case with an act after every so many steps (``record``), and ``alone``, the same steps
    without the act.

    ``paired``: the comparison of both, round by round; None in older files. ``alone`` is None if it
    was not measured.
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
        """Time in ns that one act adds; None where either has no value."""
        if self.paired:
            return self.paired.measured("difference")
        unit, steps = self._parts()
        return None if unit is None or steps is None else unit - steps

    @property
    def slowdown(self) -> Value | None:
        """Time of the steps with the act over time of the steps alone; None where either has no
        value.
        """
        if self.paired:
            return self.paired.measured("ratio")
        unit, steps = self._parts()
        return None if unit is None or steps is None or steps.value <= 0 else unit / steps

    @property
    def is_costly(self) -> bool:
        """Whether the interval of what the act adds lies above zero."""
        return self.cost is not None and self.cost.resolved

    @property
    def doubt(self) -> Literal["", "below-zero", "no-effect"]:
        """Whether the interval of what the act adds lies below zero or holds it; '' where it lies
        above.
        """
        if self.cost is None:
            return ""
        if self.cost.ceiling < 0:
            return "below-zero"
        return "no-effect" if self.cost.bounded and self.cost.floor <= 0 else ""

    def _parts(self) -> tuple[Value | None, Value | None]:
        alone = self.alone.measured("complete") if self.alone else None
        return self.record.measured("complete"), None if alone is None else alone * self.every


def synchronised(view: View) -> list[Synchronised]:
    """Every case that synchronises or reads after each group of steps, in the file's order."""
    return [
        Synchronised(t, r, _alone(view, r), view.comparison("sync-cost", r.key))
        for t in view.executing
        for r in t.records
        if synchronises(r) and isinstance(n := r.params.get("every"), int) and 0 < n <= 1_000_000
    ]


def _alone(view: View, acting: Record) -> Record | None:
    """The same step without the act; None where it was not measured."""
    same = ("stack", "api", "adapter", "workload", "caller", "dependency", "device")
    fields = {name: getattr(acting, name) for name in same}
    wanted = {k: v for k, v in acting.params.items() if k not in ACT_PARAMETERS}
    return first_with(view.fingerprint.records, params=wanted, pattern="per-submit", **fields)
