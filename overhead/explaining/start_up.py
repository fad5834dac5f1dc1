"""Start-up in what counts as a step: modules that are loaded, code that is compiled, graphs that
are captured, first calls. Pure; ns.

A step that is mostly start-up says nothing of the steps after it, and advice on its launches is
wrong.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from overhead.explaining.host_work import HostTimes
from overhead.results import Reason, Why, because, together
from overhead.traces.trace import (
    HostCall,
    HostOperation,
    StepTrace,
    TimeRange,
    Trace,
    union_of_spans,
)

MOST_START_UP = 0.5
"""From this share of the host's time on, a recording is of start-up and no step. Chosen, not
measured.
"""
LEAST_START_UP = 0.1
"""From this share of the host's time on, start-up is named. Chosen as for operations."""
_LOADS = re.compile(
    r"(cu|cuda|hip)\w*(Module|Library)(Load|Get|Unload)\w*"
    r"|(cu|hip)Init|cu(DevicePrimaryCtxRetain|CtxCreate)\w*|hiprtc\w*|nvrtc\w*"
)
"""Calls that load code, or start the runtime."""
_LOADS_CODE = re.compile(r"(cu|hip)(Module|Library)Load\w*")
_SETS_UP = re.compile(
    r"(cuda|hip)(Free|HostAlloc|MallocHost|SetDevice\w*|GetDevice\w*|DeviceGet\w*|DeviceSet\w*"
    r"|StreamCreate\w*|EventCreate\w*|Func[GS]etAttribute\w*|Occupancy\w*|ModuleOccupancy\w*"
    r"|GetSymbol\w*|IpcOpen\w*)"
)
"""Calls that may be the first to need the context of the device, or a library's handle: then they
take as long as both. PyTorch's first matrix product calls ``cudaFree`` so.
"""
_MOST_SET_UPS = 4
"""So many slow calls of a name may be set-up; more of them are usual. Chosen, not measured."""
_CAPTURES = re.compile(r"(cuda|cu|hip)(StreamEndCapture|GraphInstantiate)\w*")
"""A capture ends with such a call."""
_COMPILES = re.compile(
    r".*\(dynamo_timed\)|.*compile_inner.*|.*compile_fx.*|.*codegen.*|.*inductor.*compile.*"
    r"|.*backend_compile.*|CachingAutotuner\.benchmark.*|triton.*compile.*|.*NVRTC.*"
    r"|\w+::(\w+::)*compile(?!d)\w*",
    re.I | re.S,
)
"""Ranges of PyTorch's compiler while it compiles, or records a graph for the first time."""
_SLOW_CALL_NS = 1e6
"""A launch of 1 ms or more loads its kernel, if others of its name are a tenth of it or less. Of
243,748 launches in 211 published traces 99.9 % take at most 172 µs, and 0.06 % 1 ms to 6 s.
"""
_SLOW_OPERATION_NS = 1e7
"""So long an operation of a library works on the host only in a first call. In public traces it
takes up to 3 ms in later ones.
"""
_TIMES = 10.0
"""A call is a first call if it takes this many times as long as the fastest call of its name."""
_KINDS = (
    "loads",
    "first-launches",
    "sets-up",
    "captures",
    "compiles",
    "first-calls",
    "until-loaded",
)
"""What start-up is, the surest first."""


@dataclass(frozen=True)
class StartUp:
    """The start-up in a mean step: ``ns`` of the host's ``whole_ns``, and its parts by kind."""

    ns: float
    whole_ns: float
    ns_by_kind: dict[str, float]

    @property
    def share(self) -> float:
        """The share of the host's time."""
        return self.ns / self.whole_ns if self.whole_ns > 0 else 0.0

    @property
    def kinds(self) -> Why:
        """What it was, the longest first, for a sentence."""
        in_order = sorted(self.ns_by_kind, key=self.ns_by_kind.__getitem__, reverse=True)
        ns = self.ns_by_kind
        reasons = {
            "loads": because("start-up-loads", part_ns=ns.get("loads", 0.0)),
            "first-launches": because(
                "start-up-first-launches", part_ns=ns.get("first-launches", 0.0)
            ),
            "sets-up": because("start-up-sets-up", part_ns=ns.get("sets-up", 0.0)),
            "until-loaded": because("start-up-until-loaded", part_ns=ns.get("until-loaded", 0.0)),
            "captures": because("start-up-captures", part_ns=ns.get("captures", 0.0)),
            "compiles": because("start-up-compiles", part_ns=ns.get("compiles", 0.0)),
            "first-calls": because("start-up-first-calls", part_ns=ns.get("first-calls", 0.0)),
        }
        named = [reasons[kind] for kind in in_order if ns[kind] >= LEAST_START_UP * self.ns]
        return together(*named)


def start_up_of(trace: Trace, host: HostTimes, seen: Sequence[StepTrace] = ()) -> StartUp:
    """The start-up in a mean step of the trace. ``seen``: all recorded steps, of which the trace
    may hold a part: what is slow in several of them is no first call.
    """
    found: dict[str, float] = defaultdict(float)
    all_ns = whole_ns = 0.0
    call_ns = host.call_ns(trace)
    fastest = _fastest_by_name(trace.steps)
    set_ups = _set_ups(trace.steps)
    slow_again = _slow_again(seen)
    until_loaded = _until_loaded(trace.steps)
    for step in trace.steps:
        work = host.work_of(step, call_ns)
        whole_ns += work.between([step.start, step.end])[0]
        by_kind: dict[str, list[TimeRange]] = defaultdict(list)
        by_kind["until-loaded"] += until_loaded
        for kind, start, end in _spans(step, fastest, set_ups, slow_again):
            by_kind[kind].append((max(start, step.start), min(end, step.end)))
        # Time that two kinds share counts for the first of them alone.
        covered: list[TimeRange] = []
        covered_ns = 0.0
        for kind in _KINDS:
            covered = union_of_spans([*covered, *by_kind[kind]])
            with_kind_ns = sum(work.in_ranges(covered))
            found[kind] += with_kind_ns - covered_ns
            covered_ns = with_kind_ns
        all_ns += covered_ns
    steps = max(1, len(trace.steps))
    parts = {kind: ns / steps for kind, ns in found.items() if ns > 0}
    return StartUp(ns=all_ns / steps, whole_ns=whole_ns / steps, ns_by_kind=parts)


def start_up_reasons(start_up: StartUp, *, bounds: bool) -> list[Reason]:
    """That start-up takes a tenth of the host's time or more; nothing where it does not.
    ``bounds``: whether the recording is start-up more than anything else.
    """
    if start_up.share < LEAST_START_UP:
        return []
    values = {
        "start_up_ns": start_up.ns,
        "whole_ns": start_up.whole_ns,
        "share": start_up.share,
        "kinds": start_up.kinds,
    }
    if bounds:
        return [because("recording-is-start-up", **values)]
    return [because("start-up-in-the-step", **values)]


def _fastest_by_name(steps: Sequence[StepTrace]) -> dict[str, float]:
    """How long the fastest operation or launch of each name takes, ns; of a name that is there once
    nothing is known.
    """
    lengths: dict[str, list[float]] = defaultdict(list)
    for step in steps:
        for operation in step.operations:
            lengths[operation.name].append(operation.end - operation.start)
        for call in step.calls:
            lengths[call.name].append(call.end - call.start - call.no_work)
    return {name: min(times) for name, times in lengths.items() if len(times) > 1}


def _set_ups(steps: Sequence[StepTrace]) -> set[int]:
    """The calls that set up the context or a library, by their identity: slow ones that do not wait
    and are few. Memory that is freed again and again may be slow too, or at the end of a program.
    """
    found: dict[str, list[int]] = defaultdict(list)
    for step in steps:
        issuing = [call.start for call in step.calls if step.issued_by(call)]
        last = max(issuing, default=0.0)
        for call in step.calls:
            may_set_up = call.kind == "set" or _SETS_UP.fullmatch(call.name) is not None
            is_slow = call.end - call.start - call.no_work >= _SLOW_CALL_NS
            if may_set_up and is_slow and not call.blocked and call.start <= last:
                found[call.name].append(id(call))
    most = _MOST_SET_UPS if len(steps) == 1 else min(_MOST_SET_UPS, len(steps) - 1)
    few = [calls for calls in found.values() if len(calls) <= most]
    return set(itertools.chain.from_iterable(few))


def _until_loaded(steps: Sequence[StepTrace]) -> list[TimeRange]:
    """Until when the only step of a recording loads its kernels, if it loads one for every two
    launches: what lies between prepares them.
    """
    if len(steps) != 1:
        return []
    step = steps[0]
    loads = [call.end for call in step.calls if _LOADS_CODE.fullmatch(call.name)]
    if not loads or 2 * len(loads) < step.count("launch"):
        return []
    return [(step.start, max(loads))]


def _compiling(operations: Iterable[HostOperation]) -> Iterator[HostOperation]:
    """The outermost ranges of a compiler among these and what they hold."""
    for operation in operations:
        if _COMPILES.fullmatch(operation.name):
            yield operation
        elif operation.end - operation.start >= _SLOW_CALL_NS:
            yield from _compiling(operation.children)


def _slow_again(steps: Sequence[StepTrace]) -> set[str]:
    """The names of operations that are slow in two steps or more."""
    steps_by_name = Counter[str]()
    for step in steps:
        slow = {
            operation.name
            for operation in step.operations
            if operation.end - operation.start >= _SLOW_OPERATION_NS
        }
        steps_by_name.update(slow)
    return {name for name, number in steps_by_name.items() if number > 1}


def _spans(
    step: StepTrace, fastest: dict[str, float], set_ups: Set[int], slow_again: Set[str]
) -> Iterator[tuple[str, float, float]]:
    """When a step starts something up, by the kind that it is of. ``set_ups``: such calls.
    ``slow_again``: operations that take long in other steps too.
    """
    for call in step.calls:
        if _LOADS.fullmatch(call.name):
            yield "loads", call.start, call.end
        elif id(call) in set_ups:
            yield "sets-up", call.start, call.end
        elif _is_first_launch(call, fastest):
            yield "first-launches", call.start, call.end
    launching = {id(call.operation) for call in step.calls if call.kind == "launch"}
    for operation in _compiling(step.operations):
        yield "compiles", operation.start, operation.end
    for operation in step.operations:
        if operation.name in slow_again:
            continue
        if id(operation) in launching and _is_first_call(operation, fastest):
            yield "first-calls", operation.start, operation.end
    for start, end in _captures(step):
        yield "captures", start, end


def _is_first_launch(call: HostCall, fastest: dict[str, float]) -> bool:
    """Whether a launch takes so long that it loads its kernel. A graph may be launched slowly."""
    if call.kind != "launch" or "Graph" in call.name:
        return False
    length_ns = call.end - call.start - call.no_work
    if length_ns < _SLOW_CALL_NS:
        return False
    return call.queue.first or length_ns >= _TIMES * fastest.get(call.name, 0.0)


def _is_first_call(operation: HostOperation, fastest: dict[str, float]) -> bool:
    """Whether an operation of a library takes so long that it is a first call. A range of a program
    may well take so long.
    """
    length_ns = operation.end - operation.start
    if "::" not in operation.name or length_ns < _SLOW_OPERATION_NS:
        return False
    return length_ns >= _TIMES * fastest.get(operation.name, 0.0)


def _captures(step: StepTrace) -> Iterator[TimeRange]:
    """The times in which graphs are captured: from the first launch without device work until the
    call that ends the capture.
    """
    begin: float | None = None
    for call in step.calls:
        if call.kind == "launch" and "Graph" not in call.name:
            has_work = bool(call.correlation and step.by_correlation.get(call.correlation))
            if not has_work and begin is None:
                begin = call.start
        elif _CAPTURES.fullmatch(call.name):
            if begin is not None:
                yield begin, call.end
            begin = None
