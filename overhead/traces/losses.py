"""What of a recording lacks its other half: launches without work, and work without a call. Pure;
ns.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from overhead.traces.recording import Recording
from overhead.traces.spans import started_between
from overhead.traces.trace import DeviceWork, HostCall, TimeRange, union_of_spans
from overhead.traces.work_times import WorkTimes

MIGRATION = "Memcpy UVM"
"""How the name of a copy of managed memory begins, which no call issues."""
_ONE_KERNEL = re.compile(r"(cuda|hip|cu)\w*LaunchKernel\w*")
"""Calls that launch exactly one kernel."""


def with_losses(
    recording: Recording,
    calls: Sequence[HostCall],
    work: Sequence[DeviceWork],
    begin: float,
    end: float,
) -> Recording:
    """The recording with the counts of what has lost its other half between ``begin`` and ``end``,
    the time of the steps. A launch or copy and its device work are two halves, which share a
    number. A recording that has lost too much allows no verdict.

    ``calls``: all of them, by start; a call before ``begin`` may have issued work that runs later.
    """
    halves = _calls_with_and_without_work(calls, work, begin, end)
    issued = _calls_with_recorded_work(calls, work) if halves.lost else []
    lost_ns = _longest_lost_ns(halves.lost, issued, work, end)
    found = _work_in_steps(calls, work, begin, end)
    # The device moves managed memory by itself, so this work has no call, and none was lost.
    migrations = [piece for piece in found.without_call if _is_migration(piece)]
    without_call = [piece for piece in found.without_call if not _is_migration(piece)]
    alone_ns = _alone_ns(migrations, work) if migrations else 0.0
    # Launches behind the last one whose work is in the recording.
    last_start = issued[-1].call_start if issued else -math.inf
    lost_launches = [call for call in halves.lost if call.kind == "launch"]
    lost_at_end = [call for call in lost_launches if call.start > last_start]
    return dataclasses.replace(
        recording,
        launches=halves.launches,
        launches_without_work=halves.launches_without_work,
        copies=halves.copies,
        copies_without_work=len(halves.lost) - halves.launches_without_work,
        lost_ns=lost_ns,
        # Kernels that have the number of a launch together with another kernel.
        shared=halves.shared,
        # Pieces that were issued before the recording began.
        earlier=found.earlier,
        work_ns=found.work_ns,
        work_without_call=len(without_call),
        work_without_call_ns=_sum_ns(without_call),
        migrations=len(migrations),
        migrations_ns=_sum_ns(migrations),
        migrations_alone_ns=alone_ns,
        launches_at_end=len(lost_at_end),
    )


def _sum_ns(work: Iterable[DeviceWork]) -> float:
    """How long these pieces of work take, one after the other, ns."""
    return sum(piece.end - piece.start for piece in work)


def _alone_ns(migrations: Iterable[DeviceWork], work: Iterable[DeviceWork]) -> float:
    """How long managed memory moves while the device does nothing else, ns."""
    others = WorkTimes((piece.start, piece.end) for piece in work if not _is_migration(piece))
    alone_ns = 0.0
    for start, stop in union_of_spans((piece.start, piece.end) for piece in migrations):
        alone_ns += stop - start - others.busy_between(start, stop)
    return alone_ns


def _is_migration(piece: DeviceWork) -> bool:
    return piece.name.startswith(MIGRATION)


@dataclass
class _Halves:
    """The calls that issue device work: they launch a kernel, copy or fill. ``lost``: those without
    work in the recording. ``launches``, ``copies``: how many there are, with the lost ones;
    ``launches_without_work``: how many launches are lost. ``shared``: kernels that have the number
    of a launch beyond the one kernel that it can have launched.
    """

    lost: list[HostCall]
    launches: int = 0
    launches_without_work: int = 0
    copies: int = 0
    shared: int = 0


def _calls_with_and_without_work(
    calls: Sequence[HostCall], work: Sequence[DeviceWork], begin: float, end: float
) -> _Halves:
    """Count the calls that issue device work between ``begin`` and ``end``, and those of them
    whose work is not in the recording. A call and its work have the same number.
    """
    # By the number of a call: how many pieces of work it issued. 0 is no number.
    pieces = Counter(piece.correlation for piece in work if piece.correlation)
    issuing = [call for call in calls if _issues_work(call)]
    captures = _captures(calls)
    found = _Halves(lost=[])
    for call in started_between(issuing, begin, end):
        has_work = call.correlation in pieces
        # Such a call launches one kernel. More of its number belong to other, unknown calls.
        if has_work and pieces[call.correlation] > 1 and _ONE_KERNEL.fullmatch(call.name):
            found.shared += pieces[call.correlation] - 1
        # A launch into a graph that is captured does not run.
        if not has_work and _lies_in(call.start, captures):
            continue
        is_launch = call.kind == "launch"
        if is_launch:
            found.launches += 1
        else:
            found.copies += 1
        if not has_work:
            found.lost.append(call)
            if is_launch:
                found.launches_without_work += 1
    return found


def _issues_work(call: HostCall) -> bool:
    """Whether a call is one that launches, copies or fills; a copy may wait too."""
    return call.copies or call.kind in ("launch", "set")


def _lies_in(moment: float, ranges: Iterable[TimeRange]) -> bool:
    return any(start <= moment < end for start, end in ranges)


def _captures(calls: Iterable[HostCall]) -> list[TimeRange]:
    """When CUDA graphs are captured, by any thread: from the call that begins a capture to the next
    one that ends one. Launches in this time are noted for the graph, and do not run. ``calls``: by
    start.
    """
    captures: list[TimeRange] = []
    began: float | None = None
    for call in calls:
        if "BeginCapture" in call.name:
            began = call.start
        elif "EndCapture" in call.name and began is not None:
            captures.append((began, call.end))
            began = None
    return captures


class _RecordedIssue(NamedTuple):
    """When a call that issues work began, and when its work began; ns."""

    call_start: float
    work_start: float


def _calls_with_recorded_work(
    calls: Sequence[HostCall], work: Sequence[DeviceWork]
) -> list[_RecordedIssue]:
    """The calls whose work is in the recording, by start: when each began, and when the first of
    its work did. A call and its work have the same number, ``correlation``. ``calls``: by start.
    """
    first_start: dict[int, float] = {}
    for piece in work:
        if piece.correlation:
            earlier = first_start.get(piece.correlation, math.inf)
            first_start[piece.correlation] = min(piece.start, earlier)
    return [
        _RecordedIssue(call.start, first_start[call.correlation])
        for call in calls
        if call.correlation in first_start
    ]


def _longest_lost_ns(
    lost: Sequence[HostCall],
    issuing: Sequence[_RecordedIssue],
    work: Iterable[DeviceWork],
    end: float,
) -> float:
    """The longest time that the work of the ``lost`` calls may have taken beside the recorded
    work, ns. A lost call is one whose work is not in the recording.

    The work of a lost call had ended when work of a later call began, and it began after its call
    by the least launch latency of the recording. So it took at most the time between these in which
    the device shows no work. ``issuing``: the calls whose work is
    recorded, by start. ``end``: of the last step.
    """
    if not lost:
        return 0.0
    # For each issuing call the earliest start of work of it or of a later one.
    earliest_from: list[float] = []
    earliest = math.inf
    for issue in reversed(issuing):
        earliest = min(earliest, issue.work_start)
        earliest_from.append(earliest)
    earliest_from.reverse()

    latency_ns = min((issue.work_start - issue.call_start for issue in issuing), default=0.0)
    latency_ns = max(0.0, latency_ns)  # below 0 where the clocks differ
    # The times in which work of a lost call may have run.
    may_run: list[TimeRange] = []
    for call in lost:
        later = bisect.bisect_right(issuing, call.start, key=_call_start)
        if later < len(issuing):
            until = earliest_from[later]
        else:  # no later work is recorded that shows when this work had ended
            until = max(end, call.end)
        since = call.start + latency_ns
        if until > since:
            may_run.append((since, until))

    times = WorkTimes((piece.start, piece.end) for piece in work)
    return sum(
        until - since - times.busy_between(since, until) for since, until in union_of_spans(may_run)
    )


def _call_start(issue: _RecordedIssue) -> float:
    return issue.call_start


@dataclass
class _WorkInSteps:
    """The device work in the time of the steps. ``earlier``: pieces that were issued before the
    recording began, which do not count. ``without_call``: pieces that no recorded call issued.
    """

    without_call: list[DeviceWork]
    earlier: int = 0
    work_ns: float = 0.0


def _work_in_steps(
    calls: Sequence[HostCall], work: Iterable[DeviceWork], begin: float, end: float
) -> _WorkInSteps:
    """The device work that starts from ``begin`` on, until the work of the steps is done: the
    device may be far behind the host. ``begin``, ``end``: of the steps on the host.

    It also finds the work that no recorded call issued. Work is of the call that has its number.
    """
    work = list(work)
    numbers = {call.correlation for call in calls} - {0}  # 0 stands for a call without a number
    calls_of_steps = started_between(calls, begin, end)
    numbers_of_steps = {call.correlation for call in calls_of_steps} - {0}
    ends = [piece.end for piece in work if piece.correlation in numbers_of_steps]
    done = max([end, *ends])
    first_number = min(numbers, default=0)
    # By stream, when the first work begins that a recorded call issued. A stream runs its work in
    # order, and another one may be far ahead of it.
    first_start: dict[str, float] = {}
    for piece in work:
        if piece.correlation in numbers:
            earlier = first_start.get(piece.stream, math.inf)
            first_start[piece.stream] = min(piece.start, earlier)

    found = _WorkInSteps(without_call=[])
    for piece in work:
        if not begin <= piece.start < done:
            continue
        # Numbers grow: this was issued before the recording began, and had to wait in the queue.
        is_first = piece.start < first_start.get(piece.stream, math.inf)
        if 0 < piece.correlation < first_number and is_first:
            found.earlier += 1
            continue
        found.work_ns += piece.end - piece.start
        if piece.correlation not in numbers:
            found.without_call.append(piece)
    return found
