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
    """An arm, one measured way to run a chain of steps, with the line ``fixed + slope * n`` that
    fits its times (ns). ``record``: the case that was measured. ``short``: the target, without its
    device where there is one only. ``own``: the parameters that the arms beside it do not share,
    without the maker of a graph. ``maker``: who made its graph; '' where it is none.
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
        the fitted line.

        A measured time is of few processes. So its interval is at least as wide as that of the
        line, which is of all.
        """
        # Noise may put a fitted cost below zero, which no cost is.
        line = self.fixed.at_least(0.0) + self.slope.at_least(0.0) * steps
        measured = measured_time(self.record, steps)
        if measured is None:
            return line
        # A line without an interval cannot widen that of the measured time.
        if not line.bounded:
            return dataclasses.replace(measured, status=line.status, reason=line.reason)
        # The distances from the line to the ends of its interval, ``floor`` and ``ceiling``.
        below = line.value - line.floor
        above = line.ceiling - line.value
        # The measured interval, widened where that of the line reaches further. No time is below 0.
        # Without an interval ``floor`` and ``ceiling`` are the value itself.
        low = max(min(measured.floor, measured.value - below), 0.0)
        high = max(measured.ceiling, measured.value + above)
        # An origin tells what a number was calculated from. Unit, board and status are those of the
        # line.
        origin = formed("measured on a line", measured.origin, line.origin)
        return dataclasses.replace(line, value=measured.value, low=low, high=high, origin=origin)

    def is_extrapolated(self, steps: float) -> bool:
        """Whether no measured lengths lie on both sides of this number of steps, so that the line
        tells its time.
        """
        return measured_time(self.record, steps) is None


@dataclasses.dataclass(frozen=True)
class Group:
    """All measured ways (arms) to run one workload on one board (a physical GPU), which may be
    compared: they have the same number of elements and the same ``variant``, the parameters that
    change what is computed.

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
    """The measured ways of the run to do a chain of steps, in groups that may be compared: each has
    the ways that compute the same on one board.
    """
    # By what is computed (workload, variant, elements) the records; then apart by board.
    by_work: dict[_Work, list[Record]] = {}
    # The floor, a call that does nothing, runs no chain.
    for target in view.without_floor:
        # Cases of workloads have the unit "step" and a number of elements.
        for record in with_fields(target.records, unit="step"):
            elements = record.params.get("elements")
            # The type itself, because True is an int too. Files of other programs may hold any.
            if type(elements) is not int or elements <= 0:
                continue
            # ``UNROLLED`` is one function with all steps, in runs of older versions.
            if record.workload != UNROLLED:
                work = _Work(record.workload, _variant(record), elements)
                by_work.setdefault(work, []).append(record)
    groups_in_order = []
    for work in sorted(by_work, key=lambda work: (work.workload, str(work.variant), work.elements)):
        # ``by_board``: a list for each GPU; cases of the CPU are in all.
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
    """The records that did this work on one board, with their fits; those without a usable fit
    count as failed.
    """
    arms = []
    failed = []
    for record in records:
        arm = _arm(view, record)
        if arm is not None:
            arms.append(arm)
        else:
            failed.append(record)
    return Group(work.workload, work.elements, work.variant, tuple(arms), tuple(failed))


def own_parameters(record: Record) -> dict[str, Scalar]:
    """The parameters of a case without those that all arms of its group share, and without the
    maker of a graph, which has a name of its own.
    """
    own = dict(sorted(record.params.items()))
    for shared in ("elements", "maker", *dict(_variant(record))):
        own.pop(shared, None)
    return own


def _arm(view: View, record: Record) -> ArmFit | None:
    """The record as an arm, one measured way to run the chain; None if it has no usable fit.

    Its cost a step must lie above zero with its interval (be *resolved*), and its line must not
    claim that a chain of no steps takes less than no time.
    """
    slope = record.measured("complete")
    if slope is None or not resolved(record.figure("complete")) or bends_below_zero(record):
        return None
    own = own_parameters(record)
    target = view.target(record)
    # ``graphs``: by name, who makes the graphs of a stack; empty for a stack without graphs.
    maker = graph_maker(record, target.facts) if target.facts.graphs else ""
    fixed = _fixed_cost(record)
    # ``short``: the name of stack and device; the last argument: whether it names the CPU.
    return ArmFit(record, target.short, own, maker, slope, fixed, target.short_names_cpu)


def measured_time(record: Record, steps: float) -> Value | None:
    """The time in ns of a chain of so many steps, with its quartiles: on the straight line between
    the next shorter and the next longer chain that were measured.

    None where no measured length lies below, or none above. An empty chain is none of these
    lengths: it has the wait alone, and no fit uses it.
    """
    chains = [point for point in record.curve if point.n > 0]
    points = sorted(chains, key=lambda point: point.n)
    lengths = [point.n for point in points]
    if not points or not lengths[0] <= steps <= lengths[-1]:
        return None
    # At each measured length the median total and its quartiles, joined by straight lines.
    # ``total``: the time of n steps with the wait; ``q1``, ``q3``: its quartiles over the samples.
    value = float(np.interp(steps, lengths, [point.total for point in points]))
    if value <= 0:
        return None
    low = float(np.interp(steps, lengths, [point.q1 for point in points]))
    high = float(np.interp(steps, lengths, [point.q3 for point in points]))
    origin = time_of_units(record, steps)
    # ``source``: the board, so that values of two boards are not divided by each other.
    return Value(value, low, high, unit="ns", source=record.device, origin=origin)


def bends_below_zero(record: Record) -> bool:
    """Whether the fitted line crosses zero units clearly below zero time: then T(n) is no line, as
    no chain takes less than no time.

    Clearly: by more than 1 % of the time of the longest chain, and with the whole interval. Runs of
    method 2 call such a figure ``nonlinear``; older files still carry it as a line.
    """
    fixed = record.measured("fixed")
    # ``fixed``: the time of the line at n = 0; ``ceiling``: the upper end of its interval.
    if fixed is None or fixed.ceiling >= 0:
        return False
    # ``curve``: the measured points T(n) of the case; ``total`` is the time.
    longest_ns = max((point.total for point in record.curve), default=0.0)
    return -fixed.value > _LEAST_BEND * longest_ns


def _fixed_cost(record: Record) -> Value:
    """What a chain costs beside its steps, ns: the intercept of the fitted line.

    Where that is not above zero, the time of the shortest chain stands for it, which is more than
    the fixed cost; 0 without any chain.
    """
    fixed = record.measured("fixed")
    if fixed is not None and fixed.value > 0:
        return fixed
    shortest = min(record.curve, key=lambda p: p.n, default=None)
    if shortest is None:
        # ``exactly``: without uncertainty.
        return exactly(0.0, "ns")
    origin = time_of_units(record, shortest.n)
    return Value(shortest.total, shortest.q1, shortest.q3, unit="ns", origin=origin)


def steps_of(name: str) -> int:
    """The number of steps that a workload itself has; 1,000 for one that is not known here."""
    found = workloads().get(name)
    return found.steps if found is not None else 1000
