"""What in the steps of a recording contradicts it: waits without work, long calls, side by side
threads. Pure; ns.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from overhead.traces.clocks import SKEW_NS
from overhead.traces.pending_work import IDLE_WAIT_NS
from overhead.traces.spans import start_of
from overhead.traces.trace import (
    DeviceWork,
    HostCall,
    HostOperation,
    TimeRange,
    union_of_spans,
)
from overhead.traces.work_times import WorkTimes

_WAIT = re.compile(r"\w*Synchronize\w*|urQueueFinish|urEventWait")
"""Calls that do nothing but wait. A free or a copy works on the host too."""
_POLL = re.compile(r"\w*Query\w*")
"""Calls that ask whether work is done: each is short, and a loop of them is a wait."""
_WAKE_LATE_NS = 100_000.0
"""At most so long after its work a wait returns. Of 12,088 waits in 132 published traces half
return 3.2 µs after their work, 90 % within 7.5 µs, and 6 % later than this limit, most in a few
traces. One program whose host sleeps in the wait (blocking synchronisation) returns about 60 µs
late. Chosen above that.
"""
_LATE_SHARE = 0.05
"""At most such a share of a wait passes after its work. A host that sleeps in a long wait wakes
later: in traces of an H200, 300 µs after work of 10.4 ms (cudaEventSynchronize of an event made
for blocking waits). What is lost there would be less than this share of the device's work.
"""
_LONG_CALL_NS = 100_000.0
"""A call from this length on, all the while the device works, may be a wait. Of 243,748 launches in
211 published traces half take 7.2 µs, 99 % at most 26 µs, and 0.15 % more than this limit. Chosen:
lower limits were not tried.
"""
_OWN_GRAPH = 3
"""If this number of replays are alike, they are of one graph, even if replays of another graph
begin with the same kernel. Chosen, not measured; a full buffer drops other kernels each time, so
replays that lost kernels are not alike.
"""
_Nodes = frozenset[tuple[str, int]]
"""What a replay of a graph runs: how often each kernel, by name."""
_MOSTLY = 0.9
"""The share of such a call in which the device works. Chosen, not measured."""


def unexplained_wait_ns(call: HostCall, times: WorkTimes) -> float:
    """How long a call waits although no recorded work ends for which it can have waited, ns; 0 for
    a call that is no wait, and for a wait that work explains. ``times``: when the device works.

    Such a wait tells that the trace has lost work, or that its clocks differ.
    """
    length_ns = call.end - call.start
    # A call that waits for nothing lasts up to ``IDLE_WAIT_NS`` too.
    if length_ns <= IDLE_WAIT_NS or not _WAIT.fullmatch(call.name):
        return 0.0
    # The clocks of host and device may differ by ``SKEW_NS``, so work may seem to end later.
    last_end = times.last_end(call.end + SKEW_NS)
    if last_end < call.start:
        return length_ns
    # A wait that sleeps returns some time after its work (``_WAKE_LATE_NS``). If it returns later
    # than that, all the time after the work is unexplained.
    after_work_ns = call.end - last_end
    most_ns = max(_WAKE_LATE_NS, _LATE_SHARE * times.busy_between(call.start, call.end))
    return after_work_ns if after_work_ns > most_ns else 0.0


@functools.lru_cache(maxsize=10_000)  # a recording has few names, and many calls
def _is_wait(name: str) -> bool:
    return _WAIT.fullmatch(name) is not None


@functools.lru_cache(maxsize=10_000)
def _is_poll(name: str) -> bool:
    return _POLL.fullmatch(name) is not None


class GraphNodes(NamedTuple):
    """The pieces of work of replayed graphs: how many are recorded, and how many are missing."""

    recorded: int
    missing: int


def graph_nodes(
    calls: Iterable[HostCall], by_correlation: Mapping[int, Sequence[DeviceWork]]
) -> GraphNodes:
    """How much work the replays of graphs have in this recording, and how much of it is missing. A
    replay is one call that launches all the kernels of a captured CUDA graph.

    Replays of one graph are alike, so one with fewer kernels has lost some. Two replays count as of
    one graph if they begin with the same kernel, and the one with fewer pieces of work has none
    that the other has not. But where both are there several times, they are two graphs: pieces of a
    model and batches of other sizes often begin with the same kernel, and losses are not alike.
    ``by_correlation``: by the number of a call the work that it issued.
    """
    replays_by_first_kernel: dict[str, Counter[_Nodes]] = defaultdict(Counter)
    for call in calls:
        work = by_correlation.get(call.correlation, ()) if call.correlation else ()
        if "GraphLaunch" in call.name and work:
            first = min(work, key=start_of)
            kernels = Counter(piece.name for piece in work)
            replays_by_first_kernel[first.name][frozenset(kernels.items())] += 1

    recorded = missing = 0
    for replays in replays_by_first_kernel.values():
        kernels_of = {nodes: Counter(dict(nodes)) for nodes in replays}
        largest_nodes = max(replays, key=lambda nodes: kernels_of[nodes].total())
        largest = kernels_of[largest_nodes]
        repeats = replays[largest_nodes] >= _OWN_GRAPH
        for nodes, times in replays.items():
            replay = kernels_of[nodes]
            recorded += times * replay.total()
            # It has no kernel more often than the largest, so it counts as one of the same graph.
            is_other = repeats and times >= _OWN_GRAPH
            if not is_other and replay <= largest:
                missing += times * (largest.total() - replay.total())
    return GraphNodes(recorded, missing)


def may_wait(call: HostCall, times: WorkTimes) -> bool:
    """Whether a call that counts as host work may be a wait: it lasts long, or asks whether work is
    done, while the device works. ``times``: when the device works.

    Also a call that only waits counts as host work where all streams have work left when it
    returns: it may wait for an event before that work, or the clocks differ.
    """
    length_ns = call.end - call.start
    # A wait that the recording explains has ``blocked``, how long it waits for which streams.
    if _is_wait(call.name):
        return length_ns > IDLE_WAIT_NS and call.blocked <= 0
    # All of the call is known as a wait already.
    if length_ns <= call.no_work:
        return False
    # A call that asks whether work is done is short, but a loop of such calls is a wait.
    if length_ns < _LONG_CALL_NS and not _is_poll(call.name):
        return False
    return times.busy_share(call.start, call.end) >= _MOSTLY


def working_threads(operations: Iterable[HostOperation], calls: Sequence[HostCall]) -> set[str]:
    """The threads that run operations of the library or launch work; all that make calls if there
    is none.

    Other threads, such as a watchdog that only asks for the state of the device, do not hold up
    the program, so their waits raise no doubt.
    """
    threads = {operation.thread for operation in operations}
    threads |= {call.thread for call in calls if call.kind == "launch"}
    return threads or {call.thread for call in calls}


def other_threads_wait_ns(calls: Iterable[HostCall], operations: Iterable[HostOperation]) -> float:
    """How long a thread waits for the device while another one runs operations, ns.

    The explanation of a step replays all host work in a row, as of one thread. So it counts twice
    what ran side by side, and a large result allows no verdict.
    """
    ranges_by_thread: dict[str, list[TimeRange]] = defaultdict(list)
    for operation in operations:
        ranges_by_thread[operation.thread].append((operation.start, operation.end))
    times_by_thread = {thread: WorkTimes(ranges) for thread, ranges in ranges_by_thread.items()}

    waited_ns = 0.0
    for call in calls:
        if call.blocked <= 0:
            continue
        # Of several other threads only the busiest counts, so that no moment counts twice.
        busiest_ns = 0.0
        for thread, times in times_by_thread.items():
            if thread != call.thread:
                busiest_ns = max(busiest_ns, times.busy_between(call.start, call.end))
        waited_ns += busiest_ns
    return waited_ns


def held_up_by_profiler_ns(costs: Sequence[TimeRange], calls: Iterable[HostCall]) -> float:
    """How long calls that count as host work were held up by the profiler itself, ns. ``costs``:
    when it worked.
    """
    if not costs:
        return 0.0
    profiler_times = WorkTimes(costs)
    # Calls that wait, for device work or for room in the queue, are no host work.
    in_calls = union_of_spans((call.start, call.end) for call in calls if not call.no_work)
    return sum(profiler_times.busy_between(start, end) for start, end in in_calls)
