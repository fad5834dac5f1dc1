"""Where the host's time in a step goes: into operations that launch, into others, between them;
and which call of the runtime takes most. Pure; ns of a mean step.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from overhead.explaining.host_work import HostTimes, HostWork, moments_of
from overhead.results import Reason, because, together
from overhead.traces.doubts import working_threads
from overhead.traces.marks import LOADER, WORKERS
from overhead.traces.trace import StepTrace, Trace, union_of_spans

_LEAST_SHARE = 0.02
"""A smaller part of the host's time is not named. Chosen as for advice."""
_LEAST_CALL = 0.1
"""A call of the runtime is named from this share of the host's time on, as an operation is."""
_MUCH_BETWEEN = 0.25
"""From this share of the host's time on, it is said what may be between operations. Chosen, not
measured.
"""
_NEARLY_ALL = 0.98
"""From this share on, a place holds all. Chosen as the rest of what is named."""
_MOST_CALLS = 3
"""A sentence names at most so many calls."""
_OFTEN = 0.5
"""A call that is made in every second step, or more often, is part of a step."""
_ALLOCATES = re.compile(r"(cuda|cu|hip)(Malloc|Free|Mem(Alloc|Free)|Host(Alloc|Free))\w*")
_ISSUE = ("launch", "copy", "set")
"""The kinds of calls that issue work."""


@dataclass(frozen=True)
class CallPlace:
    """The calls of the runtime of one name: how long the host works in them in a mean step, and how
    many there are.
    """

    name: str
    ns: float
    count: float


@dataclass(frozen=True)
class HostPlaces:
    """The host's work in a mean step: in operations that launch, copy or fill; in other operations;
    in a DataLoader's ``next``, alone or waiting for its workers; in ranges, outside of the
    operations that these hold; and between operations, as in the table of operations. Together
    they are all of it.
    ``has_operations``: whether the trace names any.

    ``calls``: those of the runtime by name, the longest together first, wherever they are made.
    """

    launching_ns: float
    other_ns: float
    loading_ns: float
    between_ns: float
    ranges_ns: float = 0.0
    workers_ns: float = 0.0
    calls: Sequence[CallPlace] = ()
    has_operations: bool = True

    @property
    def by_place(self) -> dict[str, float]:
        """The host's work at each place."""
        return {
            "launching": self.launching_ns,
            "other": self.other_ns,
            "loading": self.loading_ns,
            "between": self.between_ns,
            "ranges": self.ranges_ns,
            "workers": self.workers_ns,
        }

    @property
    def whole_ns(self) -> float:
        """All work of the host in a step."""
        return sum(self.by_place.values())


def host_places(trace: Trace, host: HostTimes, opened: Sequence[str] = ()) -> HostPlaces:
    """Where the host's time goes in a mean step of the trace. ``opened``: the names of ranges that
    are replaced by what runs in them.
    """
    sums: dict[str, float] = defaultdict(float)
    ns_by_call: dict[str, float] = defaultdict(float)
    number_by_call: dict[str, int] = defaultdict(int)
    call_ns = host.call_ns(trace)
    for step in trace.steps:
        work = host.work_of(step, call_ns)
        for place, work_ns in _parts(step, work, opened):
            sums[place] += work_ns
        for name, spans in _calls_by_name(step).items():
            number_by_call[name] += len(spans)
            # Calls of several threads at a time count once.
            inside = []
            for start, end in union_of_spans(spans):
                inside.append((max(start, step.start), min(end, step.end)))
            for work_ns in work.in_ranges(inside):
                ns_by_call[name] += work_ns
    steps = max(1, len(trace.steps))
    calls = [
        CallPlace(name, ns / steps, number_by_call[name] / steps) for name, ns in ns_by_call.items()
    ]
    return HostPlaces(
        launching_ns=sums["launching"] / steps,
        other_ns=sums["other"] / steps,
        loading_ns=sums["loading"] / steps,
        between_ns=sums["between"] / steps,
        ranges_ns=sums["ranges"] / steps,
        workers_ns=sums["workers"] / steps,
        calls=sorted(calls, key=_ns_of, reverse=True),
        has_operations=any(step.operations for step in trace.steps),
    )


def _ns_of(call: CallPlace) -> float:
    return call.ns


def _parts(step: StepTrace, work: HostWork, opened: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The place and the host's work of each part of a step, from one operation to the next."""
    issuing = {id(call.operation) for call in step.calls if call.kind in _ISSUE and call.operation}
    *parts_ns, rest_ns = work.between(moments_of(step))
    for operation, before_ns, inside_ns in zip(
        step.operations, parts_ns[::2], parts_ns[1::2], strict=True
    ):
        yield "between", before_ns
        place = "other"
        if operation.name.startswith(WORKERS):
            place = "workers"
        elif operation.name.startswith(LOADER):
            place = "loading"
        elif id(operation) in issuing:
            place = "launching"
        elif operation.name in opened:
            place = "ranges"
        yield place, inside_ns
    yield "between", max(0.0, rest_ns)


def _calls_by_name(step: StepTrace) -> dict[str, list[tuple[float, float]]]:
    """When each kind of call works on the host, by its name: without its waits."""
    # A watchdog's thread, beside the program, holds nothing up.
    working = working_threads(step.operations, step.calls)
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for call in step.calls:
        work_end = call.end - call.no_work
        # A call that does nothing but wait is no work, also where the trace does not tell for what.
        if "Synchronize" in call.name:
            continue
        if call.thread in working and work_end > call.start:
            spans[call.name].append((call.start, work_end))
    return spans


def places_reasons(places: HostPlaces, *, has_device: bool) -> list[Reason]:
    """Where the host's time goes, as a sentence, and which call of the runtime takes a tenth of it
    or more; nothing where the host does nothing.
    """
    whole_ns = places.whole_ns
    if whole_ns <= 0:
        return []
    values_of = {
        place: {"part_ns": part_ns, "share": part_ns / whole_ns, "whole_ns": whole_ns}
        for place, part_ns in places.by_place.items()
    }
    launching = because("host-time-in-launching-operations", **values_of["launching"])
    other = because("host-time-in-other-operations", **values_of["other"])
    if not has_device:
        other = because("host-time-in-operations", **values_of["other"])
    loading = because("host-time-in-data-loading", **values_of["loading"])
    between = because("host-time-between-operations", **values_of["between"])
    if places.between_ns >= _MUCH_BETWEEN * whole_ns:
        between = because("host-time-in-unnamed-code", **values_of["between"])
    ranges = because("host-time-in-ranges", **values_of["ranges"])
    workers = because("host-time-waiting-for-workers", **values_of["workers"])
    each = [launching, other, loading, between, ranges, workers]
    in_order = sorted(each, key=_share_of, reverse=True)
    parts = [part for part in in_order if _share_of(part) >= _LEAST_SHARE]
    reasons: list[Reason] = []
    # All of it at one place is said by the operations.
    if places.has_operations and _share_of(in_order[0]) < _NEARLY_ALL:
        reasons.append(because("host-time-goes-to", whole_ns=whole_ns, parts=together(*parts)))
    if not has_device:  # calls of a runtime that is not known may hold each other
        return reasons
    return reasons + _call_reasons(places.calls, whole_ns)


def _call_reasons(calls: Sequence[CallPlace], whole_ns: float) -> list[Reason]:
    """Which calls of the runtime take a tenth of the host's time or more each, the longest first;
    and what to do where they allocate.
    """
    long = [call for call in calls if call.ns >= _LEAST_CALL * whole_ns][:_MOST_CALLS]
    if not long:
        return []
    named = [
        because(
            "runtime-call-takes",
            call=call.name,
            call_ns=call.ns,
            share=call.ns / whole_ns,
            calls=max(1, round(call.count)),
        )
        for call in long
    ]
    reasons = [because("runtime-calls-take", each=together(*named))]
    allocating_ns = sum(call.ns for call in long if _ALLOCATES.fullmatch(call.name))
    # A program allocates at its beginning; it need not do so again and again.
    many = [call for call in long if _ALLOCATES.fullmatch(call.name) and call.count >= _OFTEN]
    if many:
        reasons.append(because("allocate-once", share=allocating_ns / whole_ns))
    return reasons


def _share_of(part: Reason) -> float:
    share = part.values["share"]
    return share if isinstance(share, float) else 0.0
