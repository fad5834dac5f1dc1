"""Compare the traces of several ranks: who waits for whom in collectives. Pure.

In a collective every rank waits for the last one. So the kernel of the rank that arrives last is
the shortest. Clocks of different machines are not compared, and steps are paired by the numbers of
their marks.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from overhead.explaining.host_work import HostTimes
from overhead.explaining.record import RankRow
from overhead.explaining.replay import step_parts
from overhead.reading.plain_text import plain
from overhead.results import Why, because
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busiest_ns

_SMALL, _MOST = 0.05, 2 / 3
"""A rank is named if the others wait for a 20th of a step or more, two thirds of it for this
rank.
"""
_NEARLY_ALL = 0.8
"""A rank is named if the others wait for it in so many of the steps. Chosen, not measured; of two
equal ranks of a DDP program on an H200, one was late in 6 of 8 steps, and one that was made slow in
all.
"""
_LONGER = 1.15
"""The step of a rank is named if it takes so many times as long as that of the others."""
_LISTED = re.compile(r"\[([\d, ]+)\]")
_SIZE = re.compile(r" of (\d+)\b")
"""How a group tells its ranks, and how many they are."""
_LEAST_ENDS, _MOST_ENDS, _MOST_SHIFT = 8, 5000, 300
"""Of fewer collectives nobody can tell whether they are shifted; more are not looked at, for the
time that it takes. Chosen, not measured.
"""
_AGREES, _JITTER_NS = 0.2, 2000.0
"""Shifted collectives agree if they lie so many times closer together, and this much at least.
Chosen, not measured; a collective ends on all ranks within few µs.
"""
_BETWEEN_TWO = ("send", "recv", "isend", "irecv", "batch_isend_irecv", "coalesced")
"""What PyTorch calls an exchange in which not all ranks take part."""

_Kind = tuple[int, str, str]
"""The number of a step, the name of a kernel, and its group: collectives of one kind are compared
by their order.
"""
_CollectivesByKind = dict[_Kind, list[DeviceWork]]


@dataclass(frozen=True)
class RankComparison:
    """The ranks of a program beside each other: who waits for whom in collectives, the operations
    that all ranks run together. A rank is one process of the program, with its own trace.

    ``rows``: of the ranks. ``steps``: how many are in all traces. ``collectives``: how many are
    compared. ``left_out``: how many are not, since the ranks have different numbers or groups of
    them. ``shared``: the steps that are in all traces. ``waits``: by rank, how long it waits in
    each collective that is compared, ns. ``waited_for``: for each rank, how long the others wait
    for it in a step, on average, ns; ``late_steps``: in how many steps they wait for it.
    ``are_shifted``: the collectives of the ranks do not belong together in the order in which they
    are there, so that none are compared.
    """

    rows: Sequence[RankRow]
    steps: int = 0
    collectives: int = 0
    left_out: int = 0
    shared: Collection[int] = ()
    waits: Sequence[Mapping[DeviceWork, float]] = field(default_factory=list)
    waited_for: Sequence[float] = ()
    late_steps: Sequence[int] = ()
    are_shifted: bool = False


def compare_ranks(traces: Sequence[Trace]) -> RankComparison:
    """Compare the ranks of a program, one trace each, in the collectives of the steps that are in
    all traces. The rank that arrives last in a collective has the shortest kernel there, since the
    kernels of the others wait; what a kernel takes longer than that is its wait.
    """
    # First find what compares: the steps that all ranks have, and in them the kinds of which all
    # ranks of their group have as many.
    steps_of_ranks = [_by_number(trace) for trace in traces]
    shared = set.intersection(*(set(steps) for steps in steps_of_ranks))
    collectives_of_ranks = [_collectives(steps, shared, len(traces)) for steps in steps_of_ranks]
    members_of_kinds = _members_of_kinds(collectives_of_ranks, traces)
    left_out = max(
        _count_others(collectives, members_of_kinds) for collectives in collectives_of_ranks
    )

    # A row for each rank, a column for each collective; not a number where a rank takes no part.
    columns = _columns(collectives_of_ranks, members_of_kinds)
    times = np.full((len(traces), len(columns)), np.nan)
    ends = np.full((len(traces), len(columns)), np.nan)
    for place, column in enumerate(columns):
        for rank, work in column.work.items():
            times[rank, place] = work.end - work.start
            ends[rank, place] = work.end
    if are_shifted(ends):
        rows = [_rank_row(trace, waits_ns=0.0, last_share=0.0) for trace in traces]
        return RankComparison(rows, steps=len(shared), left_out=left_out, are_shifted=True)

    # The shortest of a column is the rank that arrived last. ``waits``: same shape, how much longer
    # than that. ``initial`` is above every time, so it changes none.
    waits = times - np.nanmin(times, axis=0, initial=np.inf) if times.size else times
    waited_for = _waited_for(waits)
    waited_for_ns = waited_for.sum(axis=1)

    number_of_steps = max(1, len(shared))
    # ``waited_for_ns``: a number for each rank. ``last_share``: its part of the sum.
    rows = []
    for index, trace in enumerate(traces):
        waits_ns = float(np.nansum(waits[index])) / number_of_steps
        all_waits_ns = waited_for_ns.sum()
        last_share = float(waited_for_ns[index] / all_waits_ns) if all_waits_ns > 0 else 0.0
        rows.append(_rank_row(trace, waits_ns, last_share))
    # For each rank, how long it waited in each of its collectives.
    waits_by_work: list[dict[DeviceWork, float]] = [{} for _ in traces]
    for place, column in enumerate(columns):
        for rank, work in column.work.items():
            waits_by_work[rank][work] = float(waits[rank, place])
    # In a collective all ranks of its group but one may wait: the mean wait of one of them.
    others = np.maximum(1, (~np.isnan(times)).sum(axis=0) - 1)
    waits_for_ns = waited_for / others
    mean_waits_ns = waits_for_ns.sum(axis=1) / number_of_steps
    return RankComparison(
        rows,
        steps=len(shared),
        collectives=len(columns),
        left_out=left_out,
        shared=shared,
        waits=waits_by_work,
        waited_for=[float(ns) for ns in mean_waits_ns],
        late_steps=_late_steps(waits_for_ns, [column.step for column in columns], rows),
    )


def _late_steps(
    waits_for_ns: np.ndarray, steps: Sequence[int], rows: Sequence[RankRow]
) -> list[int]:
    """In how many steps the others wait for each rank, for a 20th of its step or more.
    ``waits_for_ns``: how long one of them waits, a row for each rank, a column for each collective;
    ``steps``: the number of the step of each column.
    """
    numbers = np.array(steps)
    late_steps = [0] * len(rows)
    for number in set(steps):
        of_step_ns = waits_for_ns[:, numbers == number].sum(axis=1)
        for rank, row in enumerate(rows):
            if of_step_ns[rank] >= _SMALL * row.step_ns:
                late_steps[rank] += 1
    return late_steps


_Members = Mapping[_Kind, Sequence[int]]
"""By kind of collective the ranks (by their place) that are compared in it."""


def _members_of_kinds(
    collectives_of_ranks: Sequence[_CollectivesByKind], traces: Sequence[Trace]
) -> _Members:
    """The kinds of collectives that can be compared, each with its ranks (two at least). Of such a
    kind all ranks of the group have the same number of collectives, so the first of one rank
    belongs to the first of another rank, and so on.
    """
    # A kind: step, name and group of ranks.
    all_kinds: set[_Kind] = set().union(*collectives_of_ranks)
    members_of_kinds = {}
    for kind in sorted(all_kinds):
        having = [rank for rank, each in enumerate(collectives_of_ranks) if kind in each]
        members = _members_of_group(kind[2], having, traces)
        numbers = {len(collectives_of_ranks[rank].get(kind, ())) for rank in members}
        if len(members) > 1 and len(numbers) == 1:
            members_of_kinds[kind] = members
    return members_of_kinds


def _members_of_group(group: str, having: Sequence[int], traces: Sequence[Trace]) -> Sequence[int]:
    """The traces (by their place) of the ranks of a group; none where they are not known.
    ``having``: the traces that have a collective of this group.
    """
    everyone = range(len(traces))
    listed = _LISTED.match(group)
    if listed is None:
        size = _SIZE.search(group)
        # A group that is smaller than all ranks: nobody knows which ranks are in it.
        return () if size and int(size[1]) < len(traces) else everyone
    ranks = {number.strip() for number in listed[1].split(",")}
    if all(trace.rank.isdecimal() for trace in traces):
        return [place for place, trace in enumerate(traces) if trace.rank in ranks]
    return having if len(having) == len(ranks) else ()


class _Column(NamedTuple):
    """A collective that is compared: the number of its step, and its work by the place of the
    rank.
    """

    step: int
    work: Mapping[int, DeviceWork]


def _columns(
    collectives_of_ranks: Sequence[_CollectivesByKind], members_of_kinds: _Members
) -> list[_Column]:
    """The collectives that are compared."""
    columns = []
    for kind, members in members_of_kinds.items():
        number = len(collectives_of_ranks[members[0]][kind])
        for index in range(number):
            work = {rank: collectives_of_ranks[rank][kind][index] for rank in members}
            columns.append(_Column(kind[0], work))
    return columns


def are_shifted(ends: np.ndarray) -> bool:
    """Whether a rank's collectives agree with those of another rank only if they are shifted by
    some: the first one of its trace is not the first one of the other. ``ends``: when they end on
    each rank's own clock, ns; a row for each rank, a column for each collective.

    All ranks leave a collective together. So the time from one end to the next one is the same on
    all ranks, whatever their clocks say.
    """
    for row in ends[1:]:
        both = ~np.isnan(ends[0]) & ~np.isnan(row)
        order = np.argsort(ends[0][both], kind="stable")[:_MOST_ENDS]
        first = np.diff(ends[0][both][order])
        other = np.diff(row[both][order])
        if len(first) < _LEAST_ENDS:
            continue
        as_paired_ns = float(np.median(np.abs(first - other)))
        for shift in range(1, min(_MOST_SHIFT, len(first) - _LEAST_ENDS) + 1):
            later_ns = float(np.median(np.abs(first[shift:] - other[:-shift])))
            earlier_ns = float(np.median(np.abs(first[:-shift] - other[shift:])))
            if min(later_ns, earlier_ns) < _AGREES * as_paired_ns - _JITTER_NS:
                return True
    return False


def _count_others(collectives: _CollectivesByKind, compared: _Members) -> int:
    """How many collectives of a rank are of none of the kinds that are compared."""
    return sum(len(work) for kind, work in collectives.items() if kind not in compared)


def _rank_row(trace: Trace, waits_ns: float, last_share: float) -> RankRow:
    """The row of a rank: its times in a step. ``waits_ns``: how long it waits in collectives.
    ``last_share``: of the time that all ranks wait, how much is for this rank.
    """
    # ``HostTimes()``: no profile of the host alone, so the host's times are those of the trace.
    parts = step_parts(trace.typical, HostTimes())
    # The work of the device without collectives, in which it may only wait.
    computing_ns = []
    for step in trace.counted.steps:
        computing = [work for work in step.device if not work.communicates]
        computing_ns.append(busiest_ns(computing))
    return RankRow(
        rank=trace.rank,
        step_ns=parts.step,
        host_ns=parts.host,
        device_ns=statistics.fmean(computing_ns),
        waits_ns=waits_ns,
        last_share=last_share,
    )


def _by_number(trace: Trace) -> dict[int, StepTrace]:
    """The steps of a rank by the numbers of their marks, by which the same step is found in the
    traces of other ranks; by their position where these have none.

    A number that is there twice, as after an epoch, is left out: nobody knows which step of another
    rank it belongs to.
    """
    numbered = []
    for index, step in enumerate(trace.steps):
        numbered.append((step.key(index), step))
    times = Counter(number for number, _ in numbered)
    return {number: step for number, step in numbered if times[number] == 1}


def _waited_for(waits: np.ndarray) -> np.ndarray:
    """For each rank and each collective, how long all others wait for it together, ns. ``waits``:
    a row for each rank, a column for each collective; not a number where a rank takes no part.

    The rank that does not wait in a collective arrives last, and the others wait for it. If several
    arrive last together, each has an equal part of these waits.
    """
    arrives_last = waits == 0
    # ``shares``: 1 for the last of a column, 1/2 for each of two.
    shares = arrives_last / np.maximum(arrives_last.sum(axis=0), 1)
    found: np.ndarray = shares * np.nansum(waits, axis=0)
    return found


def _collectives(
    steps: Mapping[int, StepTrace], shared: set[int], ranks: int
) -> _CollectivesByKind:
    """The collectives of a rank in the steps that all ranks have (``shared``), by kind, in the
    order in which the host issues them. ``ranks``: how many there are.

    All ranks issue them in one order. On several streams they may begin in another one.
    """
    found: _CollectivesByKind = {}
    for number in shared:
        for work in _as_issued(steps[number]):
            if work.communicates and _all_take_part(work, ranks):
                name = work.name.partition("(")[0]  # without the types of its arguments
                found.setdefault((number, name, work.group), []).append(work)
    return found


def _as_issued(step: StepTrace) -> list[DeviceWork]:
    """The device work of a step by when its call began, then by its own start."""
    called = {call.correlation: call.start for call in step.calls if call.correlation}
    return sorted(
        step.device, key=lambda work: (called.get(work.correlation, work.start), work.start)
    )


def _all_take_part(work: DeviceWork, ranks: int) -> bool:
    """Whether all ranks take part in an operation between ranks, so that it may be compared. NCCL
    runs an all-to-all and an exchange of two ranks as the same kernel, "SendRecv"; what PyTorch
    calls the operation tells them apart.
    """
    # Between two ranks both take part in any case.
    is_send_or_receive = "sendrecv" in work.name.lower().replace("_", "")
    if not is_send_or_receive or ranks == 2:
        return True
    name = work.collective.lower()
    return bool(name) and not name.startswith(_BETWEEN_TWO)


def rank_reasons(found: RankComparison) -> list[Why]:
    """What is said of the ranks: which one the others wait for, or why that cannot be told; and
    whose step is longer.
    """
    said: list[Why] = []
    # ``steps``: how many all traces have; ``left_out``: collectives that not all ranks have.
    if not found.steps:
        said.append(because("no-step-in-all-traces"))
    elif found.are_shifted:
        said.append(because("collectives-are-shifted"))
    elif found.collectives:
        said.append(_late_rank(found))
    elif found.left_out:
        said.append(because("ranks-differ-in-collectives"))
    else:
        said.append(because("no-collective-in-all-traces"))
    if found.left_out and found.collectives:
        said.append(because("collectives-left-out", collectives=found.left_out))
    longer = _longer_step(found.rows)
    if longer:
        said.append(longer)
    return said


def _late_rank(found: RankComparison) -> Why:
    """Which rank the others wait for in collectives, and whether its host or its device works
    longer than those of the others; or that no rank is late, or not in nearly all steps.
    """
    index = max(range(len(found.rows)), key=lambda each: found.waited_for[each])
    late = found.rows[index]
    waited_ns = found.waited_for[index]
    others = [row for row in found.rows if row is not late]
    # Little waiting, or waiting that is shared among the ranks, is nobody's fault. A rank is named
    # from two thirds of all waiting, and a 20th of a step, on.
    if late.last_share < _MOST or waited_ns < _SMALL * late.step_ns:
        return because("no-rank-is-late")
    # The name is from a file: without control characters, and cut.
    name = plain(late.rank, 30)
    late_steps = found.late_steps[index]
    if late_steps < _NEARLY_ALL * found.steps:
        return because("rank-is-late-at-times", rank=name, late_steps=late_steps, steps=found.steps)
    host_ns = late.host_ns - statistics.median(row.host_ns for row in others)
    device_ns = late.device_ns - statistics.median(row.device_ns for row in others)
    return because(
        "rank-is-late",
        rank=name,
        share=late.last_share,
        waited_ns=waited_ns,
        cause=_cause(host_ns, device_ns, waited_ns),
    )


def _cause(host_ns: float, device_ns: float, waited_ns: float) -> Why:
    """What makes a rank late: its host or its device, if it works longer than those of the others
    by half of the time that they wait.
    """
    by_host = host_ns >= waited_ns / 2
    by_device = device_ns >= waited_ns / 2
    if by_host and by_device:
        return because("late-by-host-and-device", host_ns=host_ns, device_ns=device_ns)
    if by_host:
        return because("late-by-host", host_ns=host_ns)
    if by_device:
        return because("late-by-device", device_ns=device_ns)
    return because("late-by-neither")


_MOST_NAMED = 8
"""A sentence names at most so many ranks."""


def _longer_step(rows: Sequence[RankRow]) -> Why:
    """Which rank has the longest step, and whether its host or its device works longer than those
    of the others; '' where no rank is clearly slower.
    """
    longest = max(rows, key=lambda row: row.step_ns)
    # Under 1.15 times the others it is not clearly longer. Several ranks may be slow alike.
    others = [row for row in rows if _LONGER * row.step_ns <= longest.step_ns]
    slow = [row for row in rows if row not in others]
    if len(slow) > len(others):
        return ""
    usual_ns = statistics.median(row.step_ns for row in others)
    if usual_ns <= 0:
        return ""
    if len(slow) > 1:
        return because(
            "longer-steps",
            ranks=", ".join(plain(row.rank, 30) for row in slow[:_MOST_NAMED]),
            step_ns=longest.step_ns,
            times=longest.step_ns / usual_ns,
        )
    # A part is a cause if it makes up half of what the step takes longer.
    half_ns = (longest.step_ns - usual_ns) / 2
    by_host = longest.host_ns - statistics.median(row.host_ns for row in others) >= half_ns
    by_device = longest.device_ns - statistics.median(row.device_ns for row in others) >= half_ns
    values = {
        "rank": plain(longest.rank, 30),
        "step_ns": longest.step_ns,
        "times": longest.step_ns / usual_ns,
    }
    if by_host and by_device:
        return because("longer-step-of-host-and-device", **values)
    if by_host:
        return because("longer-step-of-the-host", **values)
    if by_device:
        return because("longer-step-of-the-device", **values)
    return because("longer-step", **values)


def same_ranks(traces: Sequence[Trace]) -> str:
    """The rank that two of the traces say they are of, which is an error of the user's; '' if there
    is none.
    """
    ranks = Counter(trace.rank for trace in traces if trace.rank)
    return next((rank for rank, times in ranks.items() if times > 1), "")
