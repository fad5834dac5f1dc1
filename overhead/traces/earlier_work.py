"""What device work from before a step does to the step. Pure; ns."""

from __future__ import annotations

import math

from overhead.traces.trace import StepTrace


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
    waits_ns = 0.0
    for call in step.calls:
        if call.blocked > 0:
            until = min(call.start + call.blocked, step.busy_before)
            waits_ns += max(0.0, until - call.start)
    return waits_ns
