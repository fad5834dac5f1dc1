"""Compare the traces of several ranks: who waits for whom in collectives. Pure.

In a collective every rank waits for the last one. So the kernel of the rank that arrives last is
the shortest. Clocks of different machines are not compared, and steps are paired by the numbers of
their marks.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from overhead.explaining.host_work import HostTimes
from overhead.explaining.record import RankRow
from overhead.explaining.replay import step_parts
from overhead.reading.plain_text import plain
from overhead.results import Why, because
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busy_ns

_SMALL, _MOST = 0.05, 2 / 3
"""A rank is named if the others wait for a 20th of a step or more, two thirds of it for this
rank.
"""
_LONGER = 1.15
"""The step of a rank is named if it takes so many times as long as that of the others."""
_BETWEEN_TWO = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "coalesced")
"""What PyTorch calls an exchange in which not all ranks take part."""

_Kind = tuple[int, str, str]
"""The number of a step, the name of a kernel, and its group: collectives of one kind are compared
by their order.
"""


@dataclass(frozen=True)
class RankComparison:
    """``rows``: of the ranks. ``steps``: how many are in all traces. ``collectives``: how many are
    compared.

    ``left_out``: how many are not, since the ranks have different numbers or groups of them.
    ``shared``: the steps that are in all traces. ``waits``: by rank, how long it waits in each
    collective that is compared, ns. ``waited_for``: for each rank, how long the others wait for it
    in a step, on average, ns.
    """

    rows: Sequence[RankRow]
    steps: int = 0
    collectives: int = 0
    left_out: int = 0
    shared: Collection[int] = ()
    waits: Sequence[Mapping[DeviceWork, float]] = field(default_factory=list)
    waited_for: Sequence[float] = ()


def compare_ranks(traces: Sequence[Trace]) -> RankComparison:
    """Compare the ranks in the collectives of the steps that are in all traces."""
    steps = [_by_number(trace) for trace in traces]
    shared = set.intersection(*(set(own) for own in steps))
    spans = [_collectives(own, shared, len(traces)) for own in steps]
    kinds = {kind for own in spans for kind in own}
    same = sorted(kind for kind in kinds if len({len(own.get(kind, ())) for own in spans}) == 1)
    compared_kinds = set(same)
    left_out = max(
        sum(len(work) for kind, work in own.items() if kind not in compared_kinds) for own in spans
    )
    compared = [[work for kind in same for work in own[kind]] for own in spans]
    times = np.array([[work.end - work.start for work in own] for own in compared]).reshape(
        len(traces), -1
    )
    waits = times - times.min(axis=0, initial=np.inf) if times.size else times
    blamed = _waited_for(waits)
    whole = blamed.sum()
    rows = []
    for index, trace in enumerate(traces):
        parts = step_parts(trace.quiet(), HostTimes())
        computing = [
            busy_ns(work for work in step.device if not work.communicates) for step in trace.steps
        ]
        rows.append(
            RankRow(
                rank=trace.rank,
                step_ns=parts.step,
                host_ns=parts.host,
                device_ns=statistics.median(computing),
                waits_ns=float(waits[index].sum()) / max(1, len(shared)),
                last_share=float(blamed[index] / whole) if whole > 0 else 0.0,
            )
        )
    others = max(1, len(traces) - 1) * max(1, len(shared))
    return RankComparison(
        rows,
        steps=len(shared),
        collectives=times.shape[1],
        left_out=left_out,
        shared=shared,
        waits=[
            dict(zip(work, map(float, own), strict=True))
            for work, own in zip(compared, waits, strict=True)
        ],
        waited_for=[float(ns) / others for ns in blamed],
    )


def _by_number(trace: Trace) -> dict[int, StepTrace]:
    """The steps by the numbers of their marks; by their position where these have none.

    Of a number that is there twice, as after an epoch, nobody knows which step of another rank it
    belongs to.
    """
    numbered = [
        (index if step.number is None else step.number, step)
        for index, step in enumerate(trace.steps)
    ]
    times = Counter(number for number, _ in numbered)
    return {number: step for number, step in numbered if times[number] == 1}


def _waited_for(waits: np.ndarray) -> np.ndarray:
    """For each rank, how long all others wait for it together, ns. Of ranks that arrive last alike,
    each has a part.
    """
    last = waits == 0
    shares = last / np.maximum(last.sum(axis=0), 1)
    found: np.ndarray = shares @ waits.sum(axis=0)
    return found


def _collectives(
    steps: Mapping[int, StepTrace], shared: set[int], ranks: int
) -> dict[_Kind, list[DeviceWork]]:
    """The collectives of the shared steps by kind, in the order in which the host issues them.

    All ranks issue them in one order. On several streams they may begin in another one.
    """
    found: dict[_Kind, list[DeviceWork]] = {}
    for number in shared:
        for work in _as_issued(steps[number]):
            if work.communicates and _all_take_part(work, ranks):
                found.setdefault((number, work.name.partition("(")[0], work.group), []).append(work)
    return found


def _as_issued(step: StepTrace) -> list[DeviceWork]:
    """The device work of a step by when its call began, then by its own start."""
    called = {call.correlation: call.start for call in step.calls if call.correlation}
    return sorted(
        step.device, key=lambda work: (called.get(work.correlation, work.start), work.start)
    )


def _all_take_part(work: DeviceWork, ranks: int) -> bool:
    """Whether all ranks take part. NCCL runs an all-to-all and an exchange of two ranks as the same
    kernel.
    """
    if "sendrecv" not in work.name.lower().replace("_", "") or ranks == 2:
        return True
    kind = work.collective.lower()
    return bool(kind) and not kind.startswith(_BETWEEN_TWO)


def rank_reasons(found: RankComparison) -> list[Why]:
    """Which rank the others wait for; or why that cannot be told; and whose step is longer."""
    said: list[Why] = []
    if not found.steps:
        said.append(because("no-step-in-all-traces"))
    elif not found.collectives:
        said.append(
            because("ranks-differ-in-collectives")
            if found.left_out
            else because("no-collective-in-all-traces")
        )
    else:
        said.append(_late_rank(found))
    if found.left_out and found.collectives:
        said.append(because("collectives-left-out", collectives=found.left_out))
    if longer := _longer_step(found.rows):
        said.append(longer)
    return said


def _late_rank(found: RankComparison) -> Why:
    index = max(range(len(found.rows)), key=lambda each: found.waited_for[each])
    late, waited = found.rows[index], found.waited_for[index]
    others = [row for row in found.rows if row is not late]
    if late.last_share < _MOST or waited < _SMALL * late.step_ns:
        return because("no-rank-is-late")
    return because(
        "rank-is-late",
        rank=plain(late.rank, 30),
        share=late.last_share,
        waited_ns=waited,
        host_ns=late.host_ns - statistics.median(row.host_ns for row in others),
        device_ns=late.device_ns - statistics.median(row.device_ns for row in others),
    )


def _longer_step(rows: Sequence[RankRow]) -> Why:
    """The slowest rank, and whether its host or its device is late. '' where no rank is clearly
    slower.
    """
    longest = max(rows, key=lambda row: row.step_ns)
    others = [row for row in rows if row is not longest]
    usual = statistics.median(row.step_ns for row in others)
    more = longest.step_ns - usual
    if usual <= 0 or longest.step_ns < _LONGER * usual:
        return ""
    host = longest.host_ns - statistics.median(row.host_ns for row in others) >= more / 2
    device = longest.device_ns - statistics.median(row.device_ns for row in others) >= more / 2
    values = {
        "rank": plain(longest.rank, 30),
        "step_ns": longest.step_ns,
        "times": longest.step_ns / usual,
    }
    if host and device:
        return because("longer-step-of-host-and-device", **values)
    if host:
        return because("longer-step-of-the-host", **values)
    if device:
        return because("longer-step-of-the-device", **values)
    return because("longer-step", **values)


def same_ranks(traces: Sequence[Trace]) -> str:
    """The rank that two of the traces say they are of; empty if there is none."""
    ranks = Counter(trace.rank for trace in traces if trace.rank)
    return next((rank for rank, times in ranks.items() if times > 1), "")
