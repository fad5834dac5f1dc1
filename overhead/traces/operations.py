"""The outermost operations of a library on the host, each with the line of the program."""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from overhead.traces.events import TraceEvent
from overhead.traces.marks import LOADER
from overhead.traces.spans import Spans, start_of
from overhead.traces.trace import NO_SITE, CallSite, HostOperation

DISPATCH_MODE = "PythonDispatchMode"
"""The operation that torch records around a dispatch mode, where the library itself has none around
it.
"""
_BACKWARD = "autograd::engine::evaluate_function: "
"""How the name of an operation of a backward pass begins; the rest says which it is."""
_MOST_NAME = 1000
"""Most characters of a name."""
_OF_THE_LIBRARY = re.compile(
    rf"aten::.*|.*Backward\d+|torch::autograd::\w+|{re.escape(LOADER)}.*", re.S
)
"""Operations that are no ranges around others: what they hold is their own way to do one thing."""
_SHORT_NS = 100_000.0
"""What a shorter range holds is not kept. Chosen, not measured: a range that holds most of a step
is far longer.
"""
_DEEPEST = 8
"""So many levels of ranges are kept: a program names a few, and each costs memory."""


def outermost_operations(
    events: Iterable[TraceEvent], sites: Spans[CallSite]
) -> list[HostOperation]:
    """The operations that lie in no other one of their thread, by start: those that the program
    itself called, not the ones that they call. ``sites``: by time, the lines of the program.
    """
    by_thread: dict[str, list[TraceEvent]] = defaultdict(list)
    for event in sorted(events, key=_start_and_longest):
        by_thread[event.thread].append(event)
    operations: list[HostOperation] = []
    for thread_events in by_thread.values():
        operations += _outermost_of_thread(thread_events, sites)
    return sorted(operations, key=start_of)


def _start_and_longest(event: TraceEvent) -> tuple[float, float]:
    """To sort events by start, and of those that start together the longest first: it holds the
    others.
    """
    return event.start, -event.end


def _outermost_of_thread(
    events: Sequence[TraceEvent], sites: Spans[CallSite], depth: int = 0
) -> list[HostOperation]:
    """The operations of one thread that no other one called. ``events``: by start, and of those
    that start together the longest first. ``sites``: by time, the lines of the program. ``depth``:
    inside of so many ranges.
    """
    operations = []
    starts = [event.start for event in events]
    index = 0
    while index < len(events):
        event = events[index]
        # All that starts before the end of this one lies in it.
        after = bisect.bisect_left(starts, event.end, index)
        after = max(index + 1, after)  # an event of no length is not passed by its own end
        inner = events[index + 1 : after]
        # ``DISPATCH_MODE``: the operation that torch records around a dispatch mode.
        if event.name == DISPATCH_MODE and any(each.end > event.end for each in inner):
            # It holds only the beginning of a range, such as that of a DataLoader's next.
            index += 1
            continue
        # In a backward pass the name of the operation follows that of the engine.
        name = event.name[:_MOST_NAME].removeprefix(_BACKWARD)
        children: list[HostOperation] = []
        is_long = event.end - event.start >= _SHORT_NS
        if inner and is_long and depth < _DEEPEST and not _OF_THE_LIBRARY.fullmatch(name):
            children = _outermost_of_thread(inner, sites, depth + 1)
        operation = HostOperation(
            name=name,
            start=event.start,
            end=event.end,
            thread=event.thread,
            inner=len(inner),
            site=sites.within(event.thread, event.start, event.end) or NO_SITE,
            children=children,
        )
        operations.append(operation)
        index = after
    return operations
