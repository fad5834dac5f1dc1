"""What in a recording contradicts it, or may be missing from it: calls and device work in,
nanoseconds out. Pure.
"""

from __future__ import annotations

import bisect
import math
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from overhead.traces.recording import SKEW_NS
from overhead.traces.trace import DeviceWork, HostCall, HostOperation, union_of_spans

_start = operator.attrgetter("start")
_WAIT = re.compile(r"\w*Synchronize\w*|urQueueFinish|urEventWait")
"""Calls that do nothing but wait. A free or a copy works on the host too."""
_POLL = re.compile(r"\w*Query\w*")
"""Calls that ask whether work is done: each is short, and a loop of them is a wait."""
_IDLE_WAIT_NS = 20_000.0
"""At most so long lasts a call that waits for nothing; 2 to 10 µs are usual under a profiler. So
20 µs are chosen; a lower limit calls such calls waits for lost work.
"""
_WAKE_LATE_NS = 100_000.0
"""At most so long after its work a wait returns: about 60 µs where the host sleeps in it (blocking
synchronisation). So 100 µs are chosen; a lower limit finds lost work behind such waits.
"""
_LONG_CALL_NS = 100_000.0
"""A call from this length on, all the while the device works, may be a wait; launches usually take
2 to 20 µs. Chosen, not measured; a lower limit doubts more verdicts that the host bounds a step.
"""
_MOSTLY = 0.9
"""The share of such a call in which the device works. Chosen, not measured."""


class WorkTimes:
    """When device work runs, from the start and end of each piece."""

    def __init__(self, times: Sequence[tuple[float, float]]) -> None:
        self._ends = sorted(end for _, end in times)
        self._busy = union_of_spans(times)
        self._before = [0.0]  # how long the device has worked before each span
        for start, end in self._busy:
            self._before.append(self._before[-1] + end - start)

    def last_end(self, at: float) -> float:
        """When the last work ended, of what has ended until then; minus infinity if none has."""
        index = bisect.bisect_right(self._ends, at)
        return self._ends[index - 1] if index else -math.inf

    def busy_until(self, at: float) -> float:
        """How long the device has worked until then, ns."""
        begun = bisect.bisect_right(self._busy, at, key=_begin)
        if not begun:
            return 0.0
        start, end = self._busy[begun - 1]
        return self._before[begun - 1] + min(at, end) - start

    def busy_share(self, start: float, end: float) -> float:
        """In which share of this time the device works."""
        if end <= start:
            return 0.0
        return self.busy_between(start, end) / (end - start)

    def busy_between(self, start: float, end: float) -> float:
        """How long the device works between two times, ns."""
        return self.busy_until(end) - self.busy_until(start)


def _begin(span: tuple[float, float]) -> float:
    return span[0]


def unexplained_wait_ns(call: HostCall, times: WorkTimes) -> float:
    """How long a call waits although no recorded work ends for which it can have waited, ns."""
    if not _WAIT.fullmatch(call.name) or call.end - call.start <= _IDLE_WAIT_NS:
        return 0.0
    last = times.last_end(call.end + SKEW_NS)
    if last < call.start:
        return call.end - call.start
    after = call.end - last
    return after if after > _WAKE_LATE_NS else 0.0


def lost_work_ns(
    lost: Iterable[HostCall], issuing: Sequence[tuple[float, float]], times: WorkTimes, end: float
) -> float:
    """The longest time that the work of these calls may have taken beside the recorded work, ns.

    It had ended when work of a later call began. ``issuing``: when each call began that issued
    work, in order, and when its work began. ``end``: of the last step.
    """
    # For each call, when the first work of it and of all later calls began.
    first_work = list[float]()
    first = math.inf
    for _, work_began in reversed(issuing):
        first = min(first, work_began)
        first_work.append(first)
    first_work.reverse()

    spans = []
    for call in lost:
        later = bisect.bisect_right(issuing, call.start, key=_begin)
        until = first_work[later] if later < len(issuing) else max(end, call.end)
        if until > call.start:
            spans.append((call.start, until))
    beside_recorded = [
        until - since - times.busy_between(since, until) for since, until in union_of_spans(spans)
    ]
    return sum(beside_recorded)


def lost_nodes(
    calls: Iterable[HostCall], by_correlation: Mapping[int, Sequence[DeviceWork]]
) -> tuple[int, int]:
    """How many pieces of work the replays of graphs have in this recording, and how many of them
    are missing.

    Replays of one graph are alike. Two replays count as of one graph if they begin with the same
    kernel, and the one with fewer pieces of work has none that the other has not.
    """
    replays: dict[str, list[Counter[str]]] = defaultdict(list)
    for call in calls:
        work = by_correlation.get(call.correlation, ()) if call.correlation else ()
        if "GraphLaunch" in call.name and work:
            first = min(work, key=_start)
            kernels = Counter(each.name for each in work)
            replays[first.name].append(kernels)
    recorded = missing = 0
    for replays_of_graph in replays.values():
        largest = max(replays_of_graph, key=Counter.total)
        for kernels in replays_of_graph:
            recorded += kernels.total()
            if kernels <= largest:
                missing += largest.total() - kernels.total()
    return recorded, missing


def may_wait(call: HostCall, times: WorkTimes) -> bool:
    """Whether a call that counts as host work may be a wait: it lasts long, or asks, while the
    device works.

    Also a call that only waits counts as host work where all streams have work left when it
    returns: it may wait for an event before that work, or the clocks differ.
    """
    length = call.end - call.start
    if _WAIT.fullmatch(call.name):
        return length > _IDLE_WAIT_NS and call.blocked <= 0
    if length <= call.no_work:  # all of it is known as a wait
        return False
    asks = _POLL.fullmatch(call.name) is not None
    if length < _LONG_CALL_NS and not asks:
        return False
    return times.busy_share(call.start, call.end) >= _MOSTLY


def working_threads(operations: Iterable[HostOperation], calls: Sequence[HostCall]) -> set[str]:
    """The threads that run operations or launch; all that make calls if there is none. A watchdog
    only asks.
    """
    run_operations = {operation.thread for operation in operations}
    launch = {call.thread for call in calls if call.kind == "launch"}
    working = run_operations | launch
    return working or {call.thread for call in calls}


def other_threads_wait_ns(calls: Iterable[HostCall], operations: Iterable[HostOperation]) -> float:
    """How long a thread waits for the device while another one runs operations, ns."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for operation in operations:
        spans[operation.thread].append((operation.start, operation.end))
    times_by_thread = {thread: WorkTimes(own) for thread, own in spans.items()}

    waited_ns = 0.0
    for call in calls:
        if call.blocked <= 0:
            continue
        beside_ns = [
            times.busy_between(call.start, call.end)
            for thread, times in times_by_thread.items()
            if thread != call.thread
        ]
        waited_ns += max(beside_ns, default=0.0)
    return waited_ns


def profiler_ns(costs: Sequence[tuple[float, float]], calls: Iterable[HostCall]) -> float:
    """How long calls that count as host work were held up by the profiler itself, ns. ``costs``:
    when it worked.
    """
    if not costs:
        return 0.0
    times = WorkTimes(costs)
    working = union_of_spans((call.start, call.end) for call in calls if not call.no_work)
    return sum(times.busy_between(start, end) for start, end in working)
