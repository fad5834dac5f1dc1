"""What a chain of dependent steps costs by each way to run it.

A chain of n steps takes the time that was measured at this length, between two measured lengths if
need be. Only a longer chain takes ``fixed + slope * n``, both with intervals, from the record's
fit. An arm is a way to run the chain, as measured: a stack with a pattern and parameters. Arms are
compared inside one run only. Those of different stacks ran in different processes: each figure's
interval covers several, and a ratio has the widest that both allow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from overhead import devices
from overhead.reading.plain_text import plain
from overhead.reading.precision import resolved
from overhead.reading.view import View, by_board, graph_maker, parameter_texts, with_fields
from overhead.results import Record, Scalar, Value, exactly, formed, time_of_units
from overhead.workloads import UNROLLED, workloads

_LEAST_BEND = 0.01
"""As ``negative_share`` of ``measure.fitting.curvature``, which says what the share is."""
Variant = tuple[tuple[str, Scalar], ...]
"""Parameters that change what is computed, by name."""


@dataclasses.dataclass(frozen=True)
class ArmFit:
    """An arm: one record of a workload with its fit, in ns.

    ``short``: the target, without its device where there is one only. ``own``: the parameters that
    the group does not share, without the maker of a graph. ``maker``: who made its graph; '' where
    it is none.
    """

    record: Record
    short: str
    own: Mapping[str, Scalar]
    maker: str
    slope: Value
    fixed: Value
    names_processor: bool = False
    """Whether ``short`` says that the CPU computes."""

    @property
    def processor(self) -> str:
        """What computes: ``gpu``, ``software`` (a GPU driver on the CPU) or ``cpu``."""
        return devices.processor_kind(self.record)

    def cost(self, steps: float) -> Value:
        """The time in ns of a chain of this number of steps and one wait: as measured, and else by
        the fit.

        A measured time is of few processes. So its interval is at least as wide as that of the
        line, which is of all.
        """
        line = self.fixed.at_least(0.0) + self.slope.at_least(0.0) * steps
        measured = measured_time(self.record, steps)
        if measured is None:
            return line
        if not line.bounded:
            return dataclasses.replace(measured, status=line.status, reason=line.reason)
        below = line.value - line.floor
        above = line.ceiling - line.value
        low = max(min(measured.floor, measured.value - below), 0.0)
        high = max(measured.ceiling, measured.value + above)
        origin = formed("measured on a line", measured.origin, line.origin)
        return dataclasses.replace(line, value=measured.value, low=low, high=high, origin=origin)

    def is_extrapolated(self, steps: float) -> bool:
        """Whether no measured lengths lie on both sides of this number of steps, so that the line
        tells its time.
        """
        return measured_time(self.record, steps) is None


@dataclasses.dataclass(frozen=True)
class Group:
    """All arms of a workload on one board at one number of elements, in one variant.

    Arms on the CPU are among those of the GPU. The records in ``failed`` have no speed.
    """

    workload: str
    elements: int
    variant: Variant
    arms: tuple[ArmFit, ...]
    failed: tuple[Record, ...]

    @property
    def name(self) -> str:
        """The workload, and its variant in brackets: ``rmsnorm (columns=896,
        precision=float16)``.
        """
        name = plain(self.workload, 40)
        if not self.variant:
            return name
        return f"{name} ({', '.join(parameter_texts(dict(self.variant)))})"

    @property
    def on_gpu(self) -> bool:
        """Whether it has a figure on a GPU."""
        return any(arm.processor == "gpu" for arm in self.arms)


def groups(view: View) -> list[Group]:
    """The arms of the run by workload, variant, number of elements and board."""
    by_work: dict[_Work, list[Record]] = {}
    for target in view.without_floor:
        for record in with_fields(target.records, unit="step"):
            elements = record.params.get("elements")
            if record.workload != UNROLLED and type(elements) is int and elements > 0:
                work = _Work(record.workload, _variant(record), elements)
                by_work.setdefault(work, []).append(record)
    groups_in_order = []
    for work in sorted(by_work, key=lambda work: (work.workload, str(work.variant), work.elements)):
        for records in by_board(by_work[work]):
            groups_in_order.append(_group(view, work, records))
    return groups_in_order


class _Work(NamedTuple):
    """What the arms of a group compute."""

    workload: str
    variant: Variant
    elements: int


def _variant(record: Record) -> Variant:
    """The parameters of the record that change what is computed, sorted by name."""
    names = {"precision"}
    workload = workloads().get(record.workload)
    if workload is not None:
        names.update(*workload.variants)
    return tuple((name, value) for name, value in sorted(record.params.items()) if name in names)


def _group(view: View, work: _Work, records: Sequence[Record]) -> Group:
    arms = []
    failed = []
    for record in records:
        arm = _arm(view, record)
        if arm is not None:
            arms.append(arm)
        else:
            failed.append(record)
    return Group(work.workload, work.elements, work.variant, tuple(arms), tuple(failed))


def _arm(view: View, record: Record) -> ArmFit | None:
    """The record as an arm; None if its cost is not resolved, or if its line cannot be true."""
    slope = record.measured("complete")
    if slope is None or not resolved(record.figure("complete")) or bends_below_zero(record):
        return None
    own = dict(sorted(record.params.items()))
    for shared in ("elements", "maker", *dict(_variant(record))):
        own.pop(shared, None)
    target = view.target(record)
    maker = graph_maker(record, target.facts) if target.facts.graphs else ""
    start = _start(record)
    return ArmFit(record, target.short, own, maker, slope, start, target.short_names_cpu)


def measured_time(record: Record, steps: float) -> Value | None:
    """The time in ns of so many steps with its quartiles, between the two measured lengths next to
    it.

    None where the lengths that were measured do not lie on both sides.
    """
    points = sorted(record.curve, key=lambda point: point.n)
    lengths = [point.n for point in points]
    if not points or not lengths[0] <= steps <= lengths[-1]:
        return None
    value = float(np.interp(steps, lengths, [point.total for point in points]))
    if value <= 0:
        return None
    low = float(np.interp(steps, lengths, [point.q1 for point in points]))
    high = float(np.interp(steps, lengths, [point.q3 for point in points]))
    origin = time_of_units(record, steps)
    return Value(value, low, high, unit="ns", source=record.device, origin=origin)


def bends_below_zero(record: Record) -> bool:
    """Whether the fit's intercept lies below zero by more than 1 % of the longest chain: no cost
    does that.

    Runs of method 2 call such a figure ``nonlinear``; older files still carry it.
    """
    fixed = record.measured("fixed")
    if fixed is None or fixed.ceiling >= 0:
        return False
    longest_ns = max((point.total for point in record.curve), default=0.0)
    return -fixed.value > _LEAST_BEND * longest_ns


def _start(record: Record) -> Value:
    """The fixed cost of a chain in ns: the fit's intercept, or, where that is not above zero, its
    shortest chain.
    """
    fixed = record.measured("fixed")
    if fixed is not None and fixed.value > 0:
        return fixed
    shortest = min(record.curve, key=lambda p: p.n, default=None)
    if shortest is None:
        return exactly(0.0, "ns")
    origin = time_of_units(record, shortest.n)
    return Value(shortest.total, shortest.q1, shortest.q3, unit="ns", origin=origin)


def steps_of(name: str) -> int:
    """The number of steps that a workload itself has; 1,000 for one that is not known here."""
    found = workloads().get(name)
    return found.steps if found is not None else 1000
