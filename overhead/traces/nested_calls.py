"""Calls that lie inside another call: both are one, such as the driver's call that a call of the
runtime makes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from overhead.traces.events import TraceEvent

_MOST_INNER = 100
"""A call with more calls inside has no true end, such as one of a damaged file. Chosen, not
measured; ``cudaMemcpy`` and ``hipMemcpy`` hold two or three.
"""


def outermost_calls(calls: Iterable[TraceEvent]) -> tuple[list[TraceEvent], dict[int, int]]:
    """The calls that lie in no other call of their thread; beside them, by the number of each other
    call the number of the one around it, which its device work and its wait then have.
    """
    kept: list[TraceEvent] = []
    numbers: dict[int, int] = {}
    outer: TraceEvent | None = None
    inner: list[TraceEvent] = []
    for call in sorted(calls, key=_by_thread):
        if outer is not None and _lies_in(call, outer):
            inner.append(call)
            continue
        if outer is not None:
            _keep(outer, inner, kept, numbers)
        outer, inner = call, []
    if outer is not None:
        _keep(outer, inner, kept, numbers)
    return kept, numbers


def _keep(
    outer: TraceEvent, inner: list[TraceEvent], kept: list[TraceEvent], numbers: dict[int, int]
) -> None:
    """Add a call to ``kept``, and the calls inside of it to ``numbers``."""
    if len(inner) > _MOST_INNER:
        kept += [outer, *inner]
        return
    inner_numbers = [call.correlation for call in inner if call.correlation]
    if inner_numbers and not outer.correlation:
        outer = msgspec.structs.replace(outer, correlation=inner_numbers[0])
    kept.append(outer)
    for number in inner_numbers:
        numbers[number] = outer.correlation


def _by_thread(call: TraceEvent) -> tuple[str, str, float, float]:
    """So that each call comes before those inside of it."""
    return (str(call.process), call.thread, call.start, -call.end)


def _lies_in(call: TraceEvent, outer: TraceEvent) -> bool:
    if call.thread != outer.thread or call.process != outer.process:
        return False
    # Times of whole µs let a short call that comes before another one look like a part of it.
    return call.start < call.end <= outer.end
