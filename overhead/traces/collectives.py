"""Which device work exchanges data with other devices (a collective), by the names of kernels and
of the ranges around their calls.

A kernel of a collective also waits while it runs, until all other ranks have come.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from overhead.traces.events import TraceEvent
from overhead.traces.spans import Span, Spans, start_of

WorkKind = Literal["compute", "collective", "copy", "fill"]
"""What device work is, for the split of the device's time."""

_LIBRARIES = (
    r"\b(?:nccl|rccl|msccl|mscclpp|oneccl|ccl_|hccl|hcom_|xccl|ucc_|nvshmem|rocshmem|iris_)"
    r"|oneapi::ccl|mori::|deep_ep::(?!layout)|symmetric_memory::|flashinfer::trtllm_(?:all|moe_all)"
)
"""How kernels of libraries of collectives begin: NVIDIA's, AMD's, Microsoft's, Intel's, Huawei's.
``deep_ep::layout`` only counts what is sent later.
"""
_OF_A_BLOCK = r"(?<!warp)(?<!block)(?<!cta)(?<!thread)(?<!warp_)(?<!block_)(?<!cta_)(?<!thread_)"
"""Reductions of one warp or block are computed inside of a kernel, whatever the rest of the name
says.
"""
_EXCHANGES = (
    _OF_A_BLOCK + r"all_?(?:reduce|gather|to_?all)"
    r"|reduce_?scatter"
    r"|(?:one|two)_?shot_?(?:all|push|pull)|cross_device_reduce|multimem_|quick_?reduce"
    r"|send_?recv|userbuffers|_ep_(?:dispatch|combine)|\bEp(?:Dispatch|Combine)|a2a(?:dispatch|combine)"
)
"""What kernels of vLLM, SGLang, TensorRT-LLM, FlashInfer, Transformer Engine, aiter, mori and
PyTorch's symmetric memory are called that exchange data, also those that compute beside it.
"""
_COMMUNICATES = re.compile(f"{_LIBRARIES}|{_EXCHANGES}", re.I)
_COPY = re.compile(r"memcpy|copy(?:host|device)to|__amd_rocclr_copy|memory copy", re.I)
_FILL = re.compile(r"memset|fillbuffer|__amd_rocclr_fill|memory fill", re.I)
"""How copies and fills begin; ROCm runs some of them as kernels of its own."""

_RANGE = re.compile(r"(?:nccl|rccl|xccl|hccl|ucc|mpi|gloo):(?P<called>.+)")
"""How PyTorch begins the range around a collective: its backend, such as ``nccl:all_to_all``."""
_OPERATION = re.compile(
    r"(?:c10d|_?c10d_functional|_?c10d_functional_autograd|symm_mem)::(?P<called>\w+?)_?"
)
"""The operations that PyTorch makes collectives of."""
_PARAMETERS = "record_param_comms"
"""The operation of PyTorch that notes what a collective exchanges; older releases note no name."""
_NO_EXCHANGE = ("wait", "wait_tensor", "monitored_barrier")
"""Operations of these names issue no exchange."""


@functools.lru_cache(maxsize=100_000)
def communicates(name: str) -> bool:
    """Whether the name of a kernel says that it exchanges data with other devices."""
    return bool(_COMMUNICATES.search(name)) and not is_copy(name) and not is_fill(name)


@functools.lru_cache(maxsize=100_000)
def is_copy(name: str) -> bool:
    """Whether device work of this name is a copy, also one between devices."""
    return _COPY.match(name) is not None


@functools.lru_cache(maxsize=100_000)
def is_fill(name: str) -> bool:
    """Whether device work of this name fills memory with a value."""
    return _FILL.match(name) is not None


def kind_of_work(name: str, *, exchanges: bool) -> WorkKind:
    """What device work of this name is. ``exchanges``: a collective issued it, which its name need
    not tell: copy engines exchange data too.
    """
    if is_fill(name):
        return "fill"
    if is_copy(name):
        return "collective" if exchanges else "copy"
    return "collective" if exchanges or communicates(name) else "compute"


@functools.lru_cache(maxsize=100_000)
def collective_in(name: str) -> str:
    """The collective that the name of a range or an operation tells; empty for any other."""
    found = _RANGE.fullmatch(name) or _OPERATION.fullmatch(name)
    if found is None or found["called"] in _NO_EXCHANGE:
        return ""
    return found["called"]


class IssuedCollective(NamedTuple):
    """The collective around a call of the device's runtime. ``directly``: no other operation lies
    between the two, so that the call issues the exchange itself and no preparation, such as
    PyTorch's copy of all parts into one tensor.
    """

    name: str
    directly: bool


def collectives_of_calls(
    ranges: Iterable[TraceEvent], calls: Iterable[TraceEvent]
) -> dict[int, IssuedCollective]:
    """By the number of a call the collective that issues it. ``ranges``: annotations and operations
    of the host. A thread issues a collective within a range or an operation that tells its name.
    """
    collectives: list[Span[str]] = []
    others: dict[str, list[TraceEvent]] = defaultdict(list)  # by thread
    for event in ranges:
        name = event.collective or collective_in(event.name)
        if name:
            collectives.append(Span(event.thread, event.start, event.end, name))
        elif event.name != _PARAMETERS:
            others[event.thread].append(event)
    if not collectives:
        return {}
    around = Spans(collectives)
    inside = Spans(_begun_inside(collectives, others))
    by_call: dict[int, IssuedCollective] = {}
    for call in calls:
        name = around.around(call.thread, call.start) or ""
        # A call without a number has no device work in the recording.
        if call.correlation and name:
            between = inside.around(call.thread, call.start)
            by_call[call.correlation] = IssuedCollective(name, directly=between is None)
    return by_call


def _begun_inside(
    collectives: Iterable[Span[str]], others: Mapping[str, Sequence[TraceEvent]]
) -> list[Span[str]]:
    """The ranges that begin inside of a collective on its thread, each once. ``others``: the ranges
    of no collective, by thread.
    """
    ordered = {thread: sorted(events, key=start_of) for thread, events in others.items()}
    done: dict[str, int] = {}  # by thread, up to which of its ranges it was looked
    inside = []
    for span in sorted(collectives, key=start_of):
        events = ordered.get(span.thread, [])
        first = bisect.bisect_left(events, span.start, key=start_of)
        # A collective inside of another one begins where the outer one was looked through already.
        first = max(first, done.get(span.thread, 0))
        after = bisect.bisect_left(events, span.end, key=start_of)
        for event in events[first:after]:
            inside.append(Span(event.thread, event.start, event.end, event.name))
        done[span.thread] = max(after, first)
    return inside
