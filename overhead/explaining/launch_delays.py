"""How long device work waits after the call that issues it, as recorded, and for what. Pure; ns."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from overhead.explaining.replay import issued_by
from overhead.reading.plain_text import plain
from overhead.results import Why, because
from overhead.traces.trace import DeviceWork, HostCall, Trace

_WAITS_FOR_EVENT = re.compile(r"StreamWaitEvent|StreamWaitValue")
_LONG_TIMES, _LONG_NS = 10, 100_000.0
"""The longest latency is named if it is so many times the median, and so many ns, or more: a kernel
loads so long. Chosen, not measured; lower values would name usual latencies too.
"""


@dataclass(frozen=True)
class LaunchDelay:
    """How long device work waits after the call that issues it, as recorded, ns (``delay``), and
    why. ``kernel``: the name of the work, the first one of the call.

    ``own``: the part of the delay while its own stream still works; ``others``: while another
    stream works for which it waits. ``first``: whether it is the first work of that name, which may
    have to be loaded.
    """

    delay: float
    own: float
    others: float
    kernel: str
    first: bool

    @property
    def latency(self) -> float:
        """The part for which no recorded work is the cause."""
        return self.delay - self.own - self.others


class _StreamHistory:
    """What is known of the streams (queues of the device) when a call is made, from the calls
    before it: for what its work may have waited.

    ``free_at``: when the recorded work of each stream ends. ``last_call``: when a call last issued
    work to it. ``event_wait_at``: when any stream was last told to wait for an event.
    """

    def __init__(self) -> None:
        self.free_at: dict[str, float] = {}
        self.last_call: dict[str, float] = {}
        self.event_wait_at = -math.inf

    def others_free_at(self, work: DeviceWork) -> float | None:
        """When the other streams were done with the work for which ``work`` may have waited; None
        if it waited for no other stream: none was told to wait (for an event) since the last call
        that issued work to the stream of ``work``.
        """
        if self.event_wait_at < self.last_call.get(work.stream, -math.inf):
            return None
        # Which of the other streams it waits for is not recorded, so the one that was free last
        # counts. One that is still at work when this work starts cannot be meant.
        ends = []
        for stream, end in self.free_at.items():
            if stream != work.stream and end <= work.start:
                ends.append(end)
        # 0: no other stream was done by then, so it waited for none.
        return max(ends, default=0.0)

    def add(self, call: HostCall, issued: Iterable[DeviceWork]) -> None:
        """Add a call and the work that it issued."""
        for work in issued:
            self.free_at[work.stream] = max(self.free_at.get(work.stream, 0.0), work.end)
            self.last_call[work.stream] = call.start


def launch_delays(trace: Trace) -> list[LaunchDelay]:
    """For each call that gives work to the device: how long this work waits before it begins, and
    for what. It waits for earlier work of its stream, for other streams, or for the launch itself
    (the latency). In the order of the calls.
    """
    # ``free_at``, ``event_wait_at``: see ``_StreamHistory``.
    streams = _StreamHistory()
    seen = set[str]()  # the names of kernels so far
    delays: list[LaunchDelay] = []
    for step in trace.steps:
        for call in step.calls:
            # Such as ``cudaStreamWaitEvent``: a stream is told to wait for another one.
            if _WAITS_FOR_EVENT.search(call.name):
                streams.event_wait_at = call.start
            issued = issued_by(step, call)
            if not issued:
                continue
            work = min(issued, key=_start)  # the other nodes of a graph wait for this one
            # ``delay``: from the call to the start of the work; ``own``: its part while the work's
            # own stream is busy; ``others``: what beyond that another stream is waited for.
            delay_ns = max(0.0, work.start - call.start)
            stream_works_ns = max(0.0, streams.free_at.get(work.stream, 0.0) - call.start)
            own_ns = min(delay_ns, stream_works_ns)
            others_ns = 0.0
            others_free_at = streams.others_free_at(work)
            # Only what goes beyond the wait for its own stream.
            if others_free_at is not None:
                others_ns = max(0.0, min(delay_ns, others_free_at - call.start) - own_ns)
            is_first = work.name not in seen
            delays.append(LaunchDelay(delay_ns, own_ns, others_ns, work.name, is_first))
            seen.add(work.name)
            streams.add(call, issued)
    return delays


def _start(work: DeviceWork) -> float:
    return work.start


def delays_reason(delays: Sequence[LaunchDelay]) -> Why:
    """How long the device's work waits after its launch, on average, and for what, as a reason of
    which a sentence is made; '' without launches.
    """
    if not delays:
        return ""
    median_latency_ns = statistics.median(each.latency for each in delays)
    # ``own``: while the own stream still worked; ``others``: while another one did; the rest is the
    # latency.
    values = {
        "delay_ns": statistics.fmean(each.delay for each in delays),
        "own_ns": statistics.fmean(each.own for each in delays),
        "latency_ns": median_latency_ns,
        "longest": _longest_latency(delays, median_latency_ns),
    }
    if any(each.others for each in delays):
        others_ns = statistics.fmean(each.others for each in delays)
        return because("launch-delays-of-streams", others_ns=others_ns, **values)
    return because("launch-delays", **values)


def _longest_latency(delays: Sequence[LaunchDelay], median_latency_ns: float) -> Why:
    """The longest launch latency and its likely cause, if it is much longer than the median one;
    else ''. A latency is the delay of device work that no earlier work explains.
    """
    longest = max(delays, key=_latency)
    latency_ns = longest.latency
    # It is named only if it takes 10 times as long as the median, and at least 100 us.
    if latency_ns < max(_LONG_TIMES * median_latency_ns, _LONG_NS):
        return ""
    if longest is delays[0]:
        # It may have waited for work that was issued before the recording, and is not in it.
        return because("longest-latency-is-the-first", latency_ns=latency_ns)
    kernel = plain(longest.kernel, 60)
    if longest.first:
        return because("longest-latency-loads-a-kernel", latency_ns=latency_ns, kernel=kernel)
    return because("longest-latency", latency_ns=latency_ns, kernel=kernel)


def _latency(delay: LaunchDelay) -> float:
    return delay.latency
