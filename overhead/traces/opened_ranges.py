"""Ranges that hold much of a step, such as a compiled region, replaced by what runs in them. Pure.

As the outermost operation a range stands for all that it holds. "The operation with most CPU time
is forward" tells nobody anything.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from overhead.traces.spans import start_of
from overhead.traces.trace import HostCall, HostOperation, StepTrace, Trace

_MUCH = 0.25
"""Ranges of one name are opened from this share of the time in operations on. Chosen, not measured;
a lower share opens operations of libraries whose names say what they do.
"""
_MOST_OPENED = 6
"""So many names are opened, one inside of the other, or side by side."""


class OpenedTrace(NamedTuple):
    """A trace in whose steps some ranges are opened, and their names, the outermost first."""

    trace: Trace
    names: Sequence[str]


def with_opened_ranges(trace: Trace) -> OpenedTrace:
    """The trace with each range that holds a quarter of the time in operations or more (``_MUCH``)
    cut into pieces: the operations that it calls, and between them the range itself, under its own
    name.
    """
    names: list[str] = []
    while len(names) < _MOST_OPENED:
        name = _largest_range(trace, names)
        if not name:
            break
        names.append(name)
        steps = [_opened(step, name) for step in trace.steps]
        trace = dataclasses.replace(trace, steps=steps)
    return OpenedTrace(trace, names)


def _largest_range(trace: Trace, opened: Sequence[str]) -> str:
    """The name of the ranges that hold most of the time in operations; '' if none holds much. What
    is opened already does not count.
    """
    length_by_name: dict[str, float] = defaultdict(float)
    whole_ns = 0.0
    for step in trace.steps:
        for operation in step.operations:
            length_ns = operation.end - operation.start
            whole_ns += length_ns
            if operation.children and operation.name not in opened:
                length_by_name[operation.name] += length_ns
    name = max(length_by_name, key=length_by_name.__getitem__, default="")
    return name if name and length_by_name[name] >= _MUCH * whole_ns else ""


def _opened(step: StepTrace, name: str) -> StepTrace:
    """The step with each range of this name cut into pieces."""
    operations: list[HostOperation] = []
    pieces_by_range: dict[int, list[HostOperation]] = {}
    for operation in step.operations:
        if operation.name != name or not operation.children:
            operations.append(operation)
            continue
        pieces = _pieces(operation)
        pieces_by_range[id(operation)] = pieces
        operations += pieces
    operations.sort(key=start_of)
    calls = [_in_its_piece(call, pieces_by_range) for call in step.calls]
    return dataclasses.replace(step, operations=operations, calls=calls)


def _pieces(whole: HostOperation) -> list[HostOperation]:
    """A range as what it calls, and what it does itself before, between and after. The first piece
    of its own counts as the call of it.
    """
    own = msgspec.structs.replace(whole, inner=0, children=())
    # Steps with equal operations get equal numbers of pieces: those of no time stay.
    pieces: list[HostOperation] = []
    at = whole.start
    for child in whole.children:
        until = max(at, child.start)
        pieces.append(msgspec.structs.replace(own, start=at, end=until, calls=0 if pieces else 1))
        pieces.append(child)
        at = max(at, child.end)
    pieces.append(msgspec.structs.replace(own, start=at, end=max(at, whole.end), calls=0))
    return pieces


def _in_its_piece(call: HostCall, pieces: Mapping[int, Sequence[HostOperation]]) -> HostCall:
    """The call, in that piece of an opened range in which it is made."""
    of_range = pieces.get(id(call.operation)) if call.operation is not None else None
    if not of_range:
        return call
    index = max(0, bisect.bisect_right(of_range, call.start, key=start_of) - 1)
    return msgspec.structs.replace(call, operation=of_range[index])
