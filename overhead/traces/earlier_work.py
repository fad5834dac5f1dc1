"""What device work from before a step does to the step. Pure; ns."""

from __future__ import annotations

import math

from overhead.traces.trace import HostCall, StepTrace


def delay_by_earlier_work_ns(step: StepTrace) -> float:
    """By how much later a step ends because the device still worked on something from before it.

    This time is neither work of the step nor idle time. The host may use it for its own work: only
    what it waits meanwhile is lost to it.
    """
    end = max([step.end, *(work.end for work in step.device)])
    host_ns = step.end - step.start - _waits_for_earlier_work_ns(step)
    return max(0.0, min(_device_delay_ns(step), end - step.start - host_ns))


def _device_delay_ns(step: StepTrace) -> float:
    """How long the device work of a step waits for work that was issued before the step: the
    longest wait of the first work of a stream.
    """
    called = {call.correlation: call.start for call in step.calls if call.correlation}
    streams: set[str] = set()
    longest_ns = 0.0
    for work in step.device:
        if work.stream not in streams:
            waits_until = min(step.busy_before, work.start)
            waits_ns = waits_until - called.get(work.correlation, math.inf)
            longest_ns = max(longest_ns, waits_ns)
        streams.add(work.stream)
    return longest_ns


def _waits_for_earlier_work_ns(step: StepTrace) -> float:
    """How long the host waits while the device works on what was issued before the step."""
    return sum(_earlier_wait_ns(step, call) for call in step.calls)


def own_wait_ns(step: StepTrace, call: HostCall) -> float:
    """How long a call waits for work of its recording: in the first step, what it waits for work
    from before that is no wait of the step.
    """
    if not step.is_first:
        return call.blocked
    return call.blocked - _earlier_wait_ns(step, call)


def _earlier_wait_ns(step: StepTrace, call: HostCall) -> float:
    if call.blocked <= 0:
        return 0.0
    until = min(call.start + call.blocked, step.busy_before)
    return max(0.0, until - call.start)
