"""A recording in which no step is marked and nothing repeats, as one step."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from overhead.traces.step_windows import StepWindow
from overhead.traces.trace import DeviceWork, HostCall, HostOperation

_START_UP = 10
"""An operation is start-up if its first call takes so many times as long as a later one. Chosen,
not measured.
"""


def whole_window(
    operations: Iterable[HostOperation], calls: Iterable[HostCall]
) -> StepWindow | None:
    """The time from the first to the last thing that the host does, as one step; None if it does
    nothing. It serves for a recording without marks of steps.
    """
    on_host: list[HostOperation | HostCall] = [*operations, *calls]
    if not on_host:
        return None
    start = min(each.start for each in on_host)
    # One ns more, so that what starts last starts before the end.
    end = max(each.end for each in on_host) + 1
    return StepWindow(start, end)


class TrimmedWindow(NamedTuple):
    """A recording without marks as one step. ``start_up``: the name of the operation that was left
    out before it, empty for none, and ``start_up_ns``, how long it took.
    """

    window: StepWindow
    start_up: str = ""
    start_up_ns: float = 0.0


def trimmed_window(
    whole: StepWindow,
    operations: Sequence[HostOperation],
    calls: Sequence[HostCall],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> TrimmedWindow:
    """What counts as the step of a recording without marks: from the first launch to the last
    device work. ``whole``: the time of the whole recording.

    Before and after these a program starts and ends. The step begins with the operation that makes
    the first launch; after that operation, if it is start-up, which loads or compiles: it takes far
    longer than its later calls. Without device work, the step is the whole recording.
    """
    issuing = [call for call in calls if call.correlation and by_correlation.get(call.correlation)]
    if not issuing:
        return TrimmedWindow(whole)

    launched = issuing[0].start  # calls are in the order of their start
    # One ns more, so that what starts last starts before the end.
    end = _end_of_work(issuing, calls, by_correlation) + 1
    around = _operation_around(launched, operations)  # None if the launch is in no operation
    if around is None:
        return TrimmedWindow(StepWindow(launched, end))

    # Compare the operation around the first launch with later ones of its name.
    around_ns = around.end - around.start
    later_ns = [
        operation.end - operation.start
        for operation in operations
        if operation.name == around.name and operation.start > around.start
    ]
    if later_ns and around_ns > _START_UP * statistics.median(later_ns):  # ten times as long
        return TrimmedWindow(StepWindow(around.end, end), around.name, around_ns)
    return TrimmedWindow(StepWindow(min(around.start, launched), end))


def _end_of_work(
    issuing: Iterable[HostCall],
    calls: Iterable[HostCall],
    by_correlation: Mapping[int, Sequence[DeviceWork]],
) -> float:
    """When the last device work has ended, and the calls have returned that wait for it.
    ``issuing``: the calls that issued work; ``by_correlation``: the work by the number of its call.
    """
    ends: list[float] = []
    for call in issuing:
        ends += [piece.end for piece in by_correlation[call.correlation]]
    done = max(ends)
    end = done
    for call in calls:
        # A wait that runs when the work ends belongs to the step.
        if call.kind == "synchronisation" and call.start < done <= call.end:
            end = max(end, call.end)
    return end


def _operation_around(moment: float, operations: Iterable[HostOperation]) -> HostOperation | None:
    """The first operation that runs at this moment; None if there is none."""
    for operation in operations:
        if operation.start <= moment < operation.end:
            return operation
    return None
