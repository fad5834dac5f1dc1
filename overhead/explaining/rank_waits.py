"""The verdict on a traced step once waits in collectives for other ranks are looked at. Pure."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from overhead.explaining.host_work import HostTimes
from overhead.explaining.ranks import RankComparison
from overhead.explaining.record import BoundKind, StepVerdict
from overhead.explaining.replay import StepParts, mean_parts, step_parts
from overhead.explaining.verdict import BOUND_BY_WAITS, UNCHECKED, bound_of
from overhead.results import Reason, Why, because
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busiest_ns, busy_by_device

_FEW_STEPS = 3
"""Of more steps than these the first one does not count in a mean."""
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
        steps = [step for index, step in numbered if step.key(index) in ranks.shared]

    # The step in two extremes: a collective whose wait is not known does not wait at all, or it
    # does nothing but wait.
    recorded = dataclasses.replace(trace, steps=steps)
    as_recorded = step_parts(recorded.typical, host)
    without_known_waits = [_shortened(step, waits, unknown=0.0) for step in steps]
    without_any_waits = [_shortened(step, waits, unknown=math.inf) for step in steps]
    without_known = dataclasses.replace(trace, steps=without_known_waits).typical
    without_any = dataclasses.replace(trace, steps=without_any_waits).typical
    most = _bound(as_recorded, step_parts(without_known, host))
    least = _bound(as_recorded, step_parts(without_any, host))
    counted = recorded.counted.steps
    collective_ns = statistics.fmean(_exposed_ns(step) for step in counted)
    device_ns = statistics.fmean(busiest_ns(step.device) for step in counted)
    cost = because("collectives-may-wait", device_ns=device_ns, collective_ns=collective_ns)
    if known:
        counted_without = dataclasses.replace(recorded, steps=without_known_waits).counted.steps
        cost = _known_cost(counted, counted_without, len(steps), len(trace.steps))

    without_waits = without_known_waits if known else without_any_waits
    differ = _differ(steps, without_waits, host)
    if differ:
        why = because("steps-differ-in-collectives", **differ)
        if known:
            why = because("steps-differ-in-waits", **differ)
        return StepVerdict(kind="unclear", sentences=[]), [why]

    # The verdict in each of the two extremes.
    if most.kind == least.kind == verdict.kind:  # the waits do not matter
        return verdict, [*said, cost] if collective_ns >= _LITTLE * device_ns else said
    if known and most.kind == least.kind:
        unchecked = [UNCHECKED] if UNCHECKED in said else []
        lead = [most.waits_bound] if most.waits_bound else []
        without = because("step-without-these-waits", **_bounds(most.parts))
        return _with_bound(verdict, most), [*lead, *unchecked, cost, without]
    # Otherwise it depends on waits that nobody knows: no verdict, but what is known.
    cases = {
        "collective_ns": collective_ns,
        "bound_if_waiting": least.kind,
        "bound_if_exchange": most.kind,
    }
    without = because("step-without-collectives", **_bounds(least.parts))
    said = [_not_known(cases, ranks, known=known), cost, without]
    return StepVerdict(kind="unclear", sentences=[]), said


def _not_known(
    cases: Mapping[str, float | str], ranks: RankComparison | None, *, known: bool
) -> Reason:
    """Why the waits in collectives are not known. ``cases``: what bounds the step if they are all
    of the collectives, and if there are none. ``known``: of some collectives the waits are known.
    """
    if known:
        return because("no-verdict-with-other-collectives", **cases)
    if ranks is not None:
        return because("no-verdict-without-comparing-ranks", **cases)
    return because("no-verdict-of-one-rank", **cases)


def _known_cost(
    counted: Sequence[StepTrace], without_waits: Sequence[StepTrace], shared: int, all_steps: int
) -> Reason:
    """What collectives cost whose waits are known, as a sentence. ``counted``: the steps that the
    other figures are made of too; ``without_waits``: the same steps without these waits. Of
    ``all_steps`` so many are ``shared``, in the traces of all ranks.
    """
    times = {
        "device_ns": statistics.fmean(busiest_ns(step.device) for step in counted),
        "collective_ns": statistics.fmean(_exposed_ns(step) for step in counted),
        "waiting_ns": _shortening_ns(counted, without_waits),
    }
    if shared == all_steps:
        return because("collectives-wait", **times)
    return because("collectives-wait-in-shared-steps", shared=shared, steps=all_steps, **times)


def _differ(
    steps: Sequence[StepTrace],
    without_waits: Sequence[StepTrace],
    host: HostTimes,
) -> dict[str, float | str]:
    """If a verdict on the quiet steps does not hold for all, since on average the steps wait in
    collectives for a third or more, and the quiet ones do not: the times of both, as values of a
    reason. Else nothing.
    """
    quiet = _bound(
        step_parts(Trace(steps).quiet(), host), step_parts(Trace(without_waits).quiet(), host)
    )
    # The first one is left out, in which programs warm up, unless there are few.
    first = 1 if len(steps) > _FEW_STEPS else 0
    mean = mean_parts(Trace(steps), host, first)
    mean_without = mean_parts(Trace(without_waits), host, first)
    mean_bound = _bound(mean, mean_without)
    if quiet.kind == "ranks" or mean_bound.kind != "ranks":
        return {}
    waiting_ns = mean.step - mean_without.step
    return {**_bounds(quiet.parts), "step_ns": mean.step, "waiting_ns": waiting_ns}


@dataclass(frozen=True)
class _BoundBesideRanks:
    """What bounds a step: host, device and so on, once its waits for other ranks are taken out; or
    ``ranks``, if these waits make the step that much longer. ``factor``: how many times as long the
    bound takes as the next part. ``parts``: of the step without these waits; ``step_ns``: of the
    step with them.
    """

    kind: BoundKind
    factor: float
    parts: StepParts
    step_ns: float

    @property
    def waits_bound(self) -> Reason | None:
        """The sentence for a step that other ranks bound, as a reason; None for another step."""
        if self.kind != "ranks":
            return None
        times = self.factor if self.factor < math.inf else 0.0
        return because(
            "bound-by-ranks", step_ns=self.step_ns, without_waits_ns=self.parts.step, times=times
        )


def _bound(as_recorded: StepParts, without_waits: StepParts) -> _BoundBesideRanks:
    """What bounds a step, from its parts with its waits for other ranks and without them."""
    kind, factor = bound_of(without_waits)
    if as_recorded.step > 0:
        share = 1 - without_waits.step / as_recorded.step
        if share >= BOUND_BY_WAITS:
            kind = "ranks"
            factor = math.inf
            if without_waits.step > 0:
                factor = as_recorded.step / without_waits.step
    return _BoundBesideRanks(kind, factor, without_waits, as_recorded.step)


def _exposed_ns(step: StepTrace) -> float:
    """How long the device that works longest runs collectives and nothing else, ns."""
    busy = busy_by_device(step.device)
    computing = busy_by_device(_computing(step))
    busiest = max(busy, key=busy.__getitem__, default="")
    return busy.get(busiest, 0.0) - computing.get(busiest, 0.0)


def _shortening_ns(steps: Sequence[StepTrace], shortened: Sequence[StepTrace]) -> float:
    """How much less the device works in a step once its waits are taken out, ns: the mean."""
    differences = []
    for step, without in zip(steps, shortened, strict=True):
        differences.append(busiest_ns(step.device) - busiest_ns(without.device))
    return statistics.fmean(differences)


def _bounds(parts: StepParts) -> dict[str, float | str]:
    """The times of a step and what bounds it, as values of a reason."""
    kind, _ = bound_of(parts)
    return {"host_ns": parts.host, "device_ns": parts.device, "bound": kind}


def _with_bound(verdict: StepVerdict, found: _BoundBesideRanks) -> StepVerdict:
    """The verdict on a step of which the waits for other ranks are known."""
    # A device that waits for other ranks does not work. An infinite factor cannot be in a file.
    step_ns = found.step_ns if found.kind == "ranks" else found.parts.step
    share = max(0.0, 1 - found.parts.device / step_ns) if step_ns > 0 else None
    factor = found.factor if found.factor < math.inf else None
    return msgspec.structs.replace(verdict, kind=found.kind, factor=factor, overhead_share=share)


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
            work = msgspec.structs.replace(work, end=work.end - wait)
        device.append(work)
    return dataclasses.replace(step, device=device)
