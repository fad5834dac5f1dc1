"""The verdict on a traced step once waits in collectives for other ranks are looked at. Pure."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from overhead.explaining.host_work import HostTimes
from overhead.explaining.ranks import RankComparison
from overhead.explaining.record import StepVerdict
from overhead.explaining.replay import StepParts, step_parts
from overhead.explaining.verdict import UNCHECKED, bound_of
from overhead.results import Why, because
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busy_ns

_LITTLE = 0.1
"""Collectives are named from this share of the device's time on, as operations are."""


def without_waits_for_ranks(
    verdict: StepVerdict,
    said: list[Why],
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
) -> tuple[StepVerdict, list[Why]]:
    """The verdict and its sentences, once collectives are looked at: their kernels count as work of
    the device, but may only wait for other ranks. If another verdict would follow without these
    waits, this one is not given. With the traces of several ranks (``ranks``) the waits are known,
    and the verdict without them is given.
    """
    # How long each step's device runs only collectives: where that is nothing, their waits cost
    # nothing.
    exposed_ns = [_exposed_ns(step) for step in trace.steps]
    if not any(exposed_ns):
        return verdict, said
    known = ranks is not None and ranks.collectives > 0
    # ``waits``: by collective, how long it waited, ns. ``steps``: those of which that is known.
    waits: Mapping[DeviceWork, float] = {}
    steps = list(trace.steps)
    if ranks is not None and known:
        waits = ranks.waits[0]  # the trace that is explained is of the first rank
        numbered = enumerate(trace.steps)
        steps = [step for index, step in numbered if _number(step, index) in ranks.shared]

    # The step in two extremes: a collective whose wait is not known does not wait at all, or it
    # does nothing but wait.
    without_known_waits = [_shortened(step, waits, unknown=0.0) for step in steps]
    without_any_waits = [_shortened(step, waits, unknown=math.inf) for step in steps]
    parts = step_parts(Trace(without_known_waits).quiet(), host)
    least_parts = step_parts(Trace(without_any_waits).quiet(), host)
    collective_ns = statistics.median(_exposed_ns(step) for step in steps)
    device_ns = statistics.median(busy_ns(step.device) for step in steps)
    # What the collectives cost, as a sentence: known waits, or only that they may wait.
    cost = because("collectives-may-wait", device_ns=device_ns, collective_ns=collective_ns)
    if known:
        waiting_ns = _median_shortening_ns(steps, without_known_waits)
        times = {"device_ns": device_ns, "collective_ns": collective_ns, "waiting_ns": waiting_ns}
        cost = because("collectives-wait", **times)
        if len(steps) < len(trace.steps):
            shared = {"shared": len(steps), "steps": len(trace.steps)}
            cost = because("collectives-wait-in-shared-steps", **shared, **times)

    # The verdict in each of the two extremes.
    kind, _ = bound_of(parts)
    least_kind, _ = bound_of(least_parts)
    if kind == least_kind == verdict.kind:  # the waits do not matter
        return verdict, [*said, cost] if collective_ns >= _LITTLE * device_ns else said
    if known and kind == least_kind:
        unchecked = [UNCHECKED] if UNCHECKED in said else []
        without = because("step-without-these-waits", **_bounds(parts))
        return _bound_without_waits(verdict, parts), [*unchecked, cost, without]
    # Otherwise it depends on waits that nobody knows: no verdict, and why.
    why = because("no-verdict-of-one-rank")
    if known:
        why = because("no-verdict-with-other-collectives")
    elif ranks is not None:
        why = because("no-verdict-without-comparing-ranks")
    without = because("step-without-collectives", **_bounds(least_parts))
    return StepVerdict(kind="unclear", sentences=[]), [why, cost, without]


def _exposed_ns(step: StepTrace) -> float:
    """How long the device runs collectives and nothing else, ns."""
    return busy_ns(step.device) - busy_ns(_computing(step))


def _median_shortening_ns(steps: Sequence[StepTrace], shortened: Sequence[StepTrace]) -> float:
    """How much less the device works in a step once its waits are taken out, ns: the median."""
    differences = []
    for step, without in zip(steps, shortened, strict=True):
        differences.append(busy_ns(step.device) - busy_ns(without.device))
    return statistics.median(differences)


def _bounds(parts: StepParts) -> dict[str, float | str]:
    """The times of a step and what bounds it, as values of a reason."""
    kind, _ = bound_of(parts)
    return {"host_ns": parts.host, "device_ns": parts.device, "bound": kind}


def _bound_without_waits(verdict: StepVerdict, parts: StepParts) -> StepVerdict:
    """The verdict on a step of which the waits for other ranks are known. ``parts``: of the step
    without these waits.
    """
    kind, times = bound_of(parts)
    # ``share``: of the step, in which the device is idle. An infinite factor cannot be in a file.
    share = max(0.0, 1 - parts.device / parts.step) if parts.step > 0 else None
    factor = times if times < float("inf") else None
    return msgspec.structs.replace(verdict, kind=kind, factor=factor, overhead_share=share)


def _number(step: StepTrace, index: int) -> int:
    """The number of a step's mark, by which it is found in other traces; else its position."""
    return index if step.number is None else step.number


def _computing(step: StepTrace) -> list[DeviceWork]:
    """The device work of a step without collectives."""
    return [work for work in step.device if not work.communicates]


def _shortened(step: StepTrace, waits: Mapping[DeviceWork, float], unknown: float) -> StepTrace:
    """The step with each collective shorter by its wait for other ranks (``waits``, ns), but not
    below 0. ``unknown``: the wait of a collective that is not in ``waits``.
    """
    device = []
    for work in step.device:
        if work.communicates:
            wait = min(waits.get(work, unknown), work.end - work.start)
            work = dataclasses.replace(work, end=work.end - wait)
        device.append(work)
    return dataclasses.replace(step, device=device)
