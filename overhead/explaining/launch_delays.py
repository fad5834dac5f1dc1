"""How long device work waits after the call that issues it, as recorded, and for what. Pure; ns.

A launch latency can only be read from launches that find the device idle. The work of the others
waits in a queue, so their latency is hidden, and costs no time.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct, structs

from overhead.explaining.record import KindOfLaunch, LatencyOfKind, LaunchDelays
from overhead.reading.plain_text import plain
from overhead.results import Reason, Why, because
from overhead.traces.clocks import SKEW_NS, Clocks
from overhead.traces.trace import DeviceWork, HostCall, Trace

_FEWEST = 5
"""So many launches must find the device idle before a latency is told. Chosen, not measured; fewer
are often those after a pause, which take longer than others.
"""
_MOSTLY_THE_CALL = 0.9
"""If the call takes this share of the latency, the latency is said to be the call. Chosen, not
measured.
"""
_SLOW_CALL_NS = 15_000.0
"""A shorter latency is usual. Chosen: after a wait of 10 ms a call takes 37 µs, else 5 to 8."""
_LONG_TIMES, _LONG_NS = 10, 100_000.0
"""The longest latency is named if it is so many times the median, and so many ns, or more: a kernel
loads so long. Chosen, not measured; lower values would name usual latencies too.
"""

_MANY = 20
"""From this number of latencies on, the result tells the 10 and 90 % points. Below it, it tells the
shortest and the longest latency. Chosen, not measured.
"""
_LONGEST_FIRST_NS = 1e6
"""If the first work of its name begins so long after its launch, the device loads the kernel, or
still works on something that the recording does not hold. Chosen, not measured.
"""
_HIDDEN_NS = 20_000.0
"""Work that waits so long behind other work would not begin earlier with a shorter latency: 4 to 20
µs are the latencies in public recordings.
"""
_MOSTLY = 0.9
"""If such a share of the launches is hidden in this way, the latency costs no time. Chosen."""
_OTHER_KINDS: tuple[KindOfLaunch, ...] = ("graph", "copy", "fill")

_WORTH = 0.02
"""First launches are said if they cost such a share of the steps, as advice is."""

Found = Literal["idle", "first", "stream", "others", "unsure"]


class LaunchDelay(Struct, frozen=True, gc=False):
    """How long device work waits after the call that issues it, as recorded, ns (``delay``), and
    why. ``kernel``: the name of the work, the first one of the call. ``call``: the name of the
    call, ``kind``: what it launches.

    ``own``: the part of the delay while its own stream still works; ``others``: while another
    stream works for which it waits.

    ``found``: what the call found. ``idle``: a device without work, so the delay is a latency;
    ``first``: the same at the first launch of this kernel, which may have to be loaded;
    ``stream``: earlier work of its stream; ``others``: work of other streams for which it waits;
    ``unsure``: work that had just ended, or of other streams, for which it may have waited; or it
    waited for something that is not recorded.
    """

    delay: float
    own: float
    others: float
    kernel: str
    call: str
    kind: KindOfLaunch
    found: Found
    call_ns: float = 0.0

    @property
    def latency(self) -> float:
        """The part for which no recorded work is the cause."""
        return self.delay - self.own - self.others


def launch_delays(trace: Trace) -> list[LaunchDelay]:
    """For each call that gives work to the device: how long this work waits before it begins, and
    for what. It waits for earlier work of its stream, for other streams, or for the launch itself
    (the latency). In the order of the calls.
    """
    delays: list[LaunchDelay] = []
    for step in trace.steps:
        for call in step.calls:
            issued = step.issued_by(call)
            if issued:
                delay = _delay_of(call, issued)
                if call.start < step.unrecorded_until:
                    # The recording lacks what this work waits for. Work of the step that is queued
                    # behind it waits for the same.
                    delay = structs.replace(delay, found="unsure")
                delays.append(delay)
    return delays


def _delay_of(call: HostCall, issued: Sequence[DeviceWork]) -> LaunchDelay:
    """The delay of the work of a call. The other nodes of a graph wait for its first one."""
    work = issued[0]
    delay_ns = max(0.0, work.start - call.start)
    # How long after the call the work ends for which this work waits.
    stream_works_ns = max(0.0, call.queue.stream_free_at - call.start)
    others_work_ns = max(0.0, call.queue.others_free_at - call.start)
    own_ns = min(delay_ns, stream_works_ns)
    # Only what goes beyond the wait for its own stream.
    others_ns = max(0.0, min(delay_ns, others_work_ns) - own_ns)
    return LaunchDelay(
        delay=delay_ns,
        own=own_ns,
        others=others_ns,
        kernel=work.name,
        call=call.name,
        kind=_kind_of(call.name, work.name),
        found=_found_by(call, work),
        call_ns=call.end - call.start,
    )


def _found_by(call: HostCall, work: DeviceWork) -> Found:
    """What a call found on the device. ``work``: the first that it issued."""
    queue = call.queue
    # When the work ends for which this work waits; other work that still runs when this one begins
    # cannot be meant.
    own_until = min(queue.stream_free_at, work.start)
    others_until = min(queue.others_free_at, work.start)
    if others_until > max(call.start, own_until):
        return "others"
    if own_until > call.start:
        return "stream"
    # The clocks of host and device may differ by ``SKEW_NS``, so work that ended just before the
    # call may have ended after it.
    if queue.device_free_at > call.start - SKEW_NS:
        return "unsure"
    # A kernel is loaded in its call. If that has long returned, the work waited for something that
    # is not recorded, such as work that was issued before the recording.
    if work.start - call.end > _LONG_NS:
        return "unsure"
    return "first" if queue.first else "idle"


@functools.lru_cache(maxsize=10_000)  # a recording has few names, and many calls
def _kind_of(call: str, work: str) -> KindOfLaunch:
    if "GraphLaunch" in call:
        return "graph"
    name = work.lower()
    if name.startswith(("memcpy", "copy")):
        # The call of such a copy also moves its data through a buffer of the host.
        return "pageable copy" if "pageable" in name else "copy"
    if name.startswith(("memset", "fill")):
        return "fill"
    return "kernel"


def summed_up(delays: Sequence[LaunchDelay], clocks: Clocks) -> LaunchDelays | None:
    """The launch delays of a recording as numbers; None without launches. ``clocks``: those of host
    and device, as the recording tells them.
    """
    if not delays:
        return None
    kernels = [delay for delay in delays if delay.kind == "kernel"]
    found_idle = [delay for delay in kernels if delay.found == "idle"]
    behind_own = [delay for delay in kernels if delay.found == "stream"]
    behind_others = [delay for delay in kernels if delay.found == "others"]
    unsure = [delay for delay in kernels if delay.found == "unsure"]
    first = [delay for delay in kernels if delay.found == "first"]
    queued = [*behind_own, *behind_others]
    # A shorter latency would not let their work begin earlier.
    hidden = [delay for delay in queued if delay.own + delay.others >= _HIDDEN_NS]
    latency = _latency_of("kernel", delays)
    reason = _why_no_latency(latency, clocks)
    other_kinds = []
    for kind in _OTHER_KINDS:
        of_kind = _latency_of(kind, delays)
        if not _why_no_latency(of_kind, clocks):
            other_kinds.append(of_kind)
    told = latency
    if reason:  # then only the number of such launches is told
        told = LatencyOfKind(kind="kernel", found_idle=latency.found_idle)
    return LaunchDelays(
        launches=len(kernels),
        found_idle=told.found_idle,
        latency_ns=told.latency_ns,
        low_ns=told.low_ns,
        high_ns=told.high_ns,
        reason=reason,
        call_ns=_median([delay.call_ns for delay in found_idle]),
        clocks=clocks.agreement,
        queued=len(queued),
        queued_ns=_median([delay.delay for delay in queued]),
        queued_behind_others=len(behind_others),
        hidden=len(hidden),
        unsure=len(unsure),
        first_calls=len(first),
        first_calls_ns=sum(delay.delay for delay in first),
        other_kinds=other_kinds,
    )


def _latency_of(kind: KindOfLaunch, delays: Iterable[LaunchDelay]) -> LatencyOfKind:
    """The latency of the launches of a kind that found the device idle."""
    idle = [delay.delay for delay in delays if delay.kind == kind and delay.found == "idle"]
    if not idle:
        return LatencyOfKind(kind=kind, found_idle=0)
    low_ns, high_ns = min(idle), max(idle)
    if len(idle) >= _MANY:
        low_ns, high_ns = map(float, np.quantile(idle, (0.1, 0.9)))
    return LatencyOfKind(
        kind=kind,
        found_idle=len(idle),
        latency_ns=_median(idle),
        low_ns=low_ns,
        high_ns=high_ns,
    )


def _median(times: Sequence[float]) -> float | None:
    return statistics.median(times) if times else None


def _why_no_latency(latency: LatencyOfKind, clocks: Clocks) -> Why:
    """Why a launch latency is not told; '' if it is."""
    if latency.latency_ns is None or latency.found_idle < _FEWEST:
        return because("few-launches-find-the-device-idle", found_idle=latency.found_idle)
    if clocks.agreement != "apart":
        return ""
    # The correction is somewhere between two bounds, and the latency too.
    least_ns, most_ns = clocks.bounds
    shortest_ns = latency.latency_ns + clocks.late_ns - most_ns
    longest_ns = latency.latency_ns + clocks.late_ns - least_ns
    is_bounded = math.isfinite(shortest_ns) and math.isfinite(longest_ns)
    if not is_bounded or clocks.wrong_ns or clocks.outliers:
        return because("latency-not-known-with-clocks-apart")
    return because(
        "latency-between-bounds-of-clocks",
        shortest_ns=max(0.0, shortest_ns),
        longest_ns=longest_ns,
    )


def launch_latencies_ns(trace: Trace) -> dict[str, float]:
    """The launch latency of each kind of call: how long after its start its work starts on an idle
    device, ns. The median, by the name of the call; under '' that of all calls.

    First launches of a kernel count only for calls of which no others found the device idle, and
    only if they seem to load nothing.
    """
    idle: dict[str, list[float]] = {}
    first: dict[str, list[float]] = {}
    for step in trace.steps:
        for call in step.calls:
            issued = step.issued_by(call)
            found = _found_by(call, issued[0]) if issued else "stream"
            delay_ns = max(0.0, issued[0].start - call.start) if issued else 0.0
            if found == "idle":
                idle.setdefault(call.name, []).append(delay_ns)
            elif found == "first" and delay_ns <= _LONGEST_FIRST_NS:
                first.setdefault(call.name, []).append(delay_ns)

    latencies_by_call = {**first, **idle}
    medians = {name: statistics.median(each) for name, each in latencies_by_call.items()}
    if medians:
        # A copy after a launch never finds the device idle. Then the latency of the other calls
        # stands for its own.
        all_latencies = itertools.chain.from_iterable(latencies_by_call.values())
        medians[""] = statistics.median(all_latencies)
    return medians


_FEW_BEHIND_OTHERS = 0.1
"""Of fewer of them it is not said that they wait behind other streams. Chosen, not measured."""
_QUEUED = 0.25
"""Launches that wait behind other work are named from this share on. Chosen, not measured."""


def delay_reasons(
    delays: LaunchDelays, each: Sequence[LaunchDelay], steps_ns: float
) -> list[Reason]:
    """What is said of the launch delays: the latency, what the other launches wait for, and first
    launches that take long. ``each``: all of them; ``steps_ns``: how long all steps take.
    """
    reasons: list[Reason] = []
    if not delays.launches:
        return reasons
    mostly_hidden = delays.hidden >= _MOSTLY * delays.launches
    # A latency that almost no launch pays changes nothing.
    if mostly_hidden and delays.found_idle < _MANY:
        pass
    elif delays.latency_ns is not None:
        reasons += _latency_reasons(delays, delays.latency_ns, each)
    elif delays.launches >= _MANY and delays.queued < _MOSTLY * delays.launches:
        reasons.append(because("no-launch-latency", why=delays.reason))

    # Launches that wait for longer than all steps take wait for work from before them.
    in_steps = mostly_hidden or (delays.queued_ns or 0.0) <= steps_ns
    many = delays.launches >= _FEWEST and delays.queued >= _QUEUED * delays.launches
    if many and in_steps:
        others = delays.queued_behind_others
        if others < _FEW_BEHIND_OTHERS * delays.queued:
            others = 0
        values = {
            "queued": delays.queued,
            "launches": delays.launches,
            "queued_ns": delays.queued_ns,
            "behind_others": because("queue-behind-streams", launches=others) if others else "",
        }
        if mostly_hidden:
            reasons.append(because("launches-queue-and-hide-the-latency", **values))
        else:
            reasons.append(because("launches-queue", **values))
    for kind in delays.other_kinds:
        if kind.kind == "graph":
            reasons.append(
                because(
                    "graph-launch-latency", latency_ns=kind.latency_ns, found_idle=kind.found_idle
                )
            )
    return reasons + _first_launches(delays, each, steps_ns)


def _latency_reasons(
    delays: LaunchDelays, latency_ns: float, each: Sequence[LaunchDelay]
) -> list[Reason]:
    """The launch latency, its spread, and whether the clocks allow it to be read."""
    ends = {"low_ns": delays.low_ns, "high_ns": delays.high_ns}
    if delays.found_idle >= _MANY:
        spread = because("middle-of-latencies", **ends)
    else:
        spread = because("all-latencies", **ends)
    latency = because(
        "launch-latency",
        latency_ns=latency_ns,
        spread=spread,
        found_idle=delays.found_idle,
        launches=delays.launches,
        longest=_longest_latency(each, latency_ns),
    )
    reasons = [latency]
    if latency_ns >= _SLOW_CALL_NS and (delays.call_ns or 0.0) >= _MOSTLY_THE_CALL * latency_ns:
        reasons.append(because("latency-is-the-call", call_ns=delays.call_ns))
    if delays.clocks == "unchecked":
        reasons.append(because("latency-with-unchecked-clocks"))
    return reasons


def _longest_latency(each: Sequence[LaunchDelay], median_latency_ns: float) -> Why:
    """The longest launch latency, if it is much longer than the median one; else ''."""
    longest = max(_kernels_that(each, "idle"), key=_delay_ns)
    # It is named only if it takes 10 times as long as the median, and at least 100 us.
    if longest.delay < max(_LONG_TIMES * median_latency_ns, _LONG_NS):
        return ""
    return because("longest-latency", latency_ns=longest.delay, kernel=plain(longest.kernel, 60))


def _first_launches(
    delays: LaunchDelays, each: Sequence[LaunchDelay], steps_ns: float
) -> list[Reason]:
    """That first launches of kernels take long, if they do: the kernels may be loaded then."""
    usual_ns = delays.latency_ns or _HIDDEN_NS
    # What they take beyond usual launches.
    beyond_ns = delays.first_calls_ns - delays.first_calls * usual_ns
    if beyond_ns < max(_LONG_NS, _WORTH * steps_ns):
        return []
    longest = max(_kernels_that(each, "first"), key=_delay_ns)
    return [
        because(
            "first-launches-take-long",
            launches=delays.first_calls,
            together_ns=delays.first_calls_ns,
            longest_ns=longest.delay,
            kernel=plain(longest.kernel, 60),
        )
    ]


def _kernels_that(each: Iterable[LaunchDelay], found: Found) -> list[LaunchDelay]:
    return [delay for delay in each if delay.kind == "kernel" and delay.found == found]


def _delay_ns(delay: LaunchDelay) -> float:
    return delay.delay
