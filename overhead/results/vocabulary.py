"""The vocabulary of the file: names, statuses, patterns, callers, and the bounds of its texts and
numbers.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Overlap = Literal["pipelined", "serial"]
Name = Annotated[str, Meta(max_length=200)]
Scalar = bool | int | float | Name
SCHEMA_VERSION = 1
"""Fields are only added within one schema version."""
METHOD_VERSION = 4
"""Figures of different method versions are compared only where ``same_figures`` allows it."""
ANCHORED_FROM = 4
"""From this method version on a line is compared with anchors: samples far beyond its sizes of
n.
"""
_ALIKE = frozenset({1, 2, 3, 4})
"""Method versions whose figures are formed alike: docs/method.md tells what differs."""

Status = Literal[
    "ok", "noisy", "bimodal", "nonlinear", "below-resolution", "unverified", "unavailable", "failed"
]
VALUED: frozenset[str] = frozenset({"ok", "noisy", "bimodal"})
"""The statuses that carry a value."""
UFUNC_LOOP = "the ufunc's inner loop"
"""``window["entry"]`` of a compiled caller that enters NumPy below the function that Python
calls.
"""
BOARD = 12
"""Length of a device's id; a shorter one is a number."""
KNOWN_APIS = (
    "Vulkan", "Metal", "D3D12", "OpenGL", "CUDA", "HIP", "MPS", "LevelZero", "OpenCL", "SYCL",
    "CPU", "Null",
)  # fmt: skip
"""The spelling of well-known names. A ``Target`` may have any other."""
Pattern = Literal[
    "per-submit",
    "per-k",
    "per-pass",
    "one-pass",
    "replay",
    "launches",
    "fused",
    "wait-each",
    "read-each",
    "hybrid",
]
Caller = Literal["binding", "ffi", "native", "browser"]
Dependency = Literal["chained", "independent"]
Profile = Literal["quick", "default", "thorough", "node", "contention"]
Way = Literal["processes", "threads", "devices", "busy"]
"""How peers run a case at once: processes on one device, threads of one process, a process a
device, or one process beside processes that keep processors busy.
"""
Placement = Literal["free", "core", "node"]
"""Where peers may run: the system chooses, each is bound to a core, or each to the processors next
to its device.
"""
Limit = Literal["", "processors", "interpreter", "lock", "slices", "device", "unknown"]
"""What limits peers: too few processors; Python's lock; a lock of the library or driver; time
slices of the device; the device's throughput; something that the measurement does not tell; '' for
nothing.
"""
PeriodKind = Literal["long", "short", "slices"]
Bound = Literal["host", "device", "balanced", ""]

LongText = Annotated[str, Meta(max_length=4000)]
# (?!\n), because Python's $ also matches before a closing line break.
Api = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9 ._+-]{0,31}$(?!\n)")]
StackName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]{0,31}$(?!\n)")]
FigureName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_:. -]{0,63}$(?!\n)")]
MachineId = Annotated[str, Meta(pattern=r"^[0-9a-f]{12}$(?!\n)")]
Moment = Annotated[
    str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$(?!\n)")
]
Count = Annotated[int, Meta(ge=0, le=2**53)]
EnvironmentVariables = Annotated[dict[Name, LongText], Meta(max_length=32)]
Nanoseconds = Annotated[int, Meta(ge=0, le=2**53)]
Params = Annotated[dict[Name, Scalar], Meta(max_length=64)]


def same_figures(a: int, b: int) -> bool:
    """Whether figures of these two method versions have the same meaning, so that they may be
    compared and joined.
    """
    return a == b or {a, b} <= _ALIKE
