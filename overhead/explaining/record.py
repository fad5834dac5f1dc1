"""The file of one explained step: ``overhead-explain``, version 1. Times are nanoseconds for each
step.

What the file says is in codes with values (``Reason``). Older files have sentences in their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from overhead.loading.files import save_file
from overhead.public import Shown
from overhead.results import (
    Count,
    Figure,
    LongText,
    Machine,
    Moment,
    Name,
    Reason,
    Why,
    because,
    stacks_in,
)
from overhead.traces.clocks import ClockAgreement
from overhead.traces.steps_taken import StepsTaken
from overhead.traces.trace import CallSite

EXPLAIN_FORMAT: Final = "overhead-explain"
EXPLAIN_VERSION = 1

UsedLibrary = Literal["torch", "jax", "cupy", "numba", "wgpu", "none"]
_OF_WEBGPU: UsedLibrary = "wgpu"
LIBRARIES: Mapping[str, UsedLibrary] = {
    "torch": "torch",
    "jax": "jax",
    "cupy": "cupy",
    **dict.fromkeys(stacks_in("webgpu"), _OF_WEBGPU),
}
"""The library of each wait (``waits.KNOWN_WAITS``), the surest first."""
KindOfLaunch = Literal["kernel", "graph", "copy", "pageable copy", "fill"]
"""What a call gives to the device. The call of a pageable copy also moves its data on the host."""
BoundKind = Literal["host", "device", "synchronisation", "ranks", "mixed", "unclear"]
"""What bounds a step; ``ranks``: waits for other ranks in collectives."""
AlternativeStatus = Literal["ok", "refused", "differs", "failed"]
NOT_MEASURED = because("not-measured")
NOT_IN_A_TRACE = because("not-in-a-trace")
"""The reason of each time that no trace holds."""
NOT_MEASURED_MET = because("not-measured-in-this-run")
"""The reason of a missing ``met`` or ``everything``, also in older files, which have none."""
BETWEEN = "between operations"
"""The name of what the host does outside of all operations: the program's own Python, and that of
its libraries.
"""
UNKNOWN_MACHINE = "0" * 12
"""The id of the machine where a trace was recorded."""
MOST_ROWS = 200
"""Most rows of a list in the file."""


class _Part(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    pass


class ExplainedProgram(_Part, kw_only=True):
    """What was explained. ``file``: relative to the program's folder. ``device``: empty if it runs
    on the processor.

    ``taken``: the step is what the function ``returned``, or the function ``itself``; "" in older
    files and of traces. ``returned``: the type of what it returned; "" for None.
    """

    file: LongText
    function: Name
    arguments: Annotated[dict[Name, LongText], Meta(max_length=64)] = {}
    library: UsedLibrary = "none"
    device: Name = ""
    taken: Literal["", "returned", "itself"] = ""
    returned: Name = ""


class StepTiming(_Part, kw_only=True):
    """The times of one more step, in fresh processes without a profiler. ``wall``: until its work
    is done.

    ``issue``: until it returns, with the time that it is blocked. ``fixed``: what any number of
    steps pays once. ``busy``: how long the device works on a step, from the profile. ``met``: like
    ``wall`` where the operating system chooses the processor and nothing is left out; the median,
    the lowest and the highest of the processes. ``everything``: the mean over all steps that were
    measured for ``wall``, nothing left out.
    """

    wall: Figure
    issue: Figure
    fixed: Figure
    busy: Figure
    met: Figure = Figure(name="met", status="unavailable", reason=NOT_MEASURED_MET)
    everything: Figure = Figure(name="everything", status="unavailable", reason=NOT_MEASURED_MET)


class StepCounts(_Part, kw_only=True):
    """Calls of one step, with the fewest and most of the profiled steps as interval.

    ``allocations``: of the library's allocator. ``driver_allocations``: those that reach the
    driver. ``fills``: of memory with a value (memset); None in older files, where ``copies`` has
    them too.
    """

    launches: Figure
    copies: Figure
    allocations: Figure
    driver_allocations: Figure
    synchronisations: Figure
    fills: Figure | None = None


class OperationRow(_Part, kw_only=True):
    """Outermost operations of one name and line. ``host_ns``: without waits. ``device_ns``: of the
    work they issued.

    ``name``: ``BETWEEN`` for what is outside of all.
    """

    name: LongText
    count: float
    host_ns: float
    device_ns: float = 0.0
    site: CallSite = CallSite()


class SynchronisationRow(_Part, kw_only=True):
    """Synchronisations of one kind and line. ``blocked_ns``: how long the host waits for the
    device, all together.

    ``what``: the name of the call; the code ``from-pageable-memory`` with it for such an upload.
    """

    what: Why
    count: float
    blocked_ns: float
    site: CallSite = CallSite()


class DeviceGap(_Part, kw_only=True):
    """A time in which the device has no work. ``before``: the device work that ends it.

    ``host``: the operation of the host; ``BETWEEN`` outside of all.
    """

    ns: float
    before: LongText = ""
    host: LongText = ""
    site: CallSite = CallSite()


class ReplayCheck(_Part, kw_only=True):
    """The replayed step against the same step measured without the profiler. ``ratio``: replayed
    over measured.

    ``ok``: within 15 %. ``unchecked``: the measured time holds the profiler's cost. ``reason``: why
    it is not ``ok``.
    """

    replayed: Figure
    measured: Figure
    ratio: float | None = None
    ok: bool = False
    unchecked: bool = False
    reason: Why = ""


class StepVerdict(_Part, kw_only=True):
    """``factor``: how many times the part that bounds the step takes of the next one.
    ``overhead_share``: of a step in which the device does not work; from 0 to 1. ``sentences``:
    what is said of the step, each a code with its values, the most important one first; in older
    files they are texts.
    """

    kind: BoundKind
    factor: float | None = None
    overhead_share: float | None = None
    sentences: Annotated[list[Why], Meta(max_length=20)] = []


class Alternative(Shown, _Part, kw_only=True):
    """Another way to run the step. ``gain``: the step as it is over this step time, unit ``ratio``.

    ``making``: its one-off cost. ``repaid_after``: steps until the gain exceeds it, unit ``count``.
    ``results``: for ``differs`` both values. ``compared`` and ``not_compared``: how many values;
    None in older files. ``site``: the line that forbids it, for ``refused``. ``condition``: of a
    ``condition``, what is different on the host; ``name`` is its code. None in older files, where
    ``name`` is a text.
    """

    name: Name
    kind: Literal["measured", "bound", "prediction", "condition"]
    status: AlternativeStatus
    step: Figure
    gain: Figure
    making: Figure
    repaid_after: Figure
    same_results: bool | None = None
    compared: Count | None = None
    not_compared: Count = 0
    results: Why = ""
    reason: Why = ""
    site: CallSite = CallSite()
    condition: Reason | None = None

    @property
    def called(self) -> Why:
        """What it is: the condition with its numbers, else the name."""
        return self.condition or self.name

    @property
    def agreement(self) -> Why:
        """Whether its results are those of the step, as a reason of which a sentence is made; ''
        for one that has no results to compare.
        """
        if self.status == "differs":
            return because("other-results")
        if self.status != "ok" or self.kind != "measured":
            return ""
        if not self.same_results:
            return because("results-not-compared")
        if self.compared is None:  # an older file does not say how many
            return because("same-results-not-counted")
        if self.not_compared:
            whole = self.compared + self.not_compared
            return because("same-results-in-part", compared=self.compared, whole=whole)
        return because("same-results", compared=self.compared)


class LatencyOfKind(_Part, kw_only=True):
    """The latency of launches of one kind that found the device idle, ns: the median, and the 10
    and 90 % points; of fewer than 20 launches the shortest and the longest.
    """

    kind: KindOfLaunch
    found_idle: Count
    latency_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None


class LaunchDelays(_Part, kw_only=True):
    """How long kernels wait after their launch, in all recorded steps; ns. ``launches``: of
    kernels, without graphs, copies and fills.

    ``found_idle``: launches that found the device idle, first launches of a kernel left out. Their
    delay is the launch latency: ``latency_ns``, ``low_ns``, ``high_ns``, as in ``LatencyOfKind``;
    None for a ``reason``. ``call_ns``: the median of how long these calls take on the host.
    ``clocks``: whether the clocks of host and device allow it to be read.

    ``queued``: launches that found earlier work of their stream, or of another one for which they
    wait (``queued_behind_others`` of them); ``queued_ns``: the median from the call to the start.
    ``hidden``: of these, which wait so long that their latency costs no time. ``unsure``: launches
    that may have waited for other work.

    ``first_calls``: first launches of a kernel that found the device idle, which may load it;
    ``first_calls_ns``: their delays together. ``other_kinds``: graphs, copies and fills.
    """

    launches: Count
    found_idle: Count
    latency_ns: float | None = None
    low_ns: float | None = None
    high_ns: float | None = None
    reason: Why = ""
    call_ns: float | None = None
    clocks: ClockAgreement = "unchecked"
    queued: Count = 0
    queued_ns: float | None = None
    queued_behind_others: Count = 0
    hidden: Count = 0
    unsure: Count = 0
    first_calls: Count = 0
    first_calls_ns: float = 0.0
    other_kinds: Annotated[list[LatencyOfKind], Meta(max_length=8)] = []


class RankRow(_Part, kw_only=True):
    """A step of one rank, ns. ``device_ns``: device work without collectives. ``waits_ns``: in
    collectives, beyond the rank that waits least in each. ``last_share``: of the time that all
    ranks wait in collectives, how much is for this rank.
    """

    rank: Name
    step_ns: float
    host_ns: float
    device_ns: float
    waits_ns: float
    last_share: float


class DeviceTimeRow(_Part, kw_only=True):
    """Where the time of a device goes in a mean step of a trace, ns; of one ``stream`` of it where
    this is not empty. ``compute_ns``, ``collective_ns``, ``waiting_ns``, ``copy_ns``, ``fill_ns``
    and ``idle_ns`` add up to ``step_ns``: a moment counts as the first of these that runs.

    ``collective_ns``: collectives while nothing computes. ``waiting_ns``: of collectives, while
    nothing computes, the part that waits for other ranks; None where that is not known, and then
    ``collective_ns`` has it. ``..._overlapped_ns``: beside what comes first.
    """

    device: Name
    stream: Name = ""
    step_ns: float
    compute_ns: float = 0.0
    collective_ns: float = 0.0
    waiting_ns: float | None = None
    copy_ns: float = 0.0
    fill_ns: float = 0.0
    idle_ns: float = 0.0
    collective_overlapped_ns: float = 0.0
    copy_overlapped_ns: float = 0.0
    fill_overlapped_ns: float = 0.0


class ProcessRow(_Part, kw_only=True):
    """A process of a trace that used a device. ``device_ns``: how long its device work takes, one
    piece after the other, in the whole recording. ``explained``: whether the explanation is about
    this one.
    """

    process: Name
    name: Name = ""
    device_ns: float
    explained: bool = False


class Explanation(Shown, _Part, kw_only=True):
    """Everything about one step. ``not_seen``: what this library or device does not tell.

    ``ranks``: of the traces of several ranks, of which the others describe the first.
    ``launch_delays``: None without launches, and in older files. ``host``:
    what the host does beside the step, as shares of its time (``queued``, ``throttled``,
    ``collector``, ``other_threads``: other threads of the process ran) and numbers
    (``preemptions``, ``threads``, ``cores``). ``device_time``: of a trace, a row for each device
    and for its streams. ``processes``: of a trace that holds several. ``steps_taken``: what of a
    trace was taken as its steps; None in older files, and for a step that was run.
    """

    format: Literal["overhead-explain"] = EXPLAIN_FORMAT
    version: int = EXPLAIN_VERSION
    created: Moment
    program: ExplainedProgram
    machine: Machine
    versions: Annotated[dict[Name, Name], Meta(max_length=200)] = {}
    step: StepTiming
    per_step: StepCounts
    profiled_steps: Count = 0
    operations: Annotated[list[OperationRow], Meta(max_length=MOST_ROWS)] = []
    synchronisations: Annotated[list[SynchronisationRow], Meta(max_length=MOST_ROWS)] = []
    gaps: Annotated[list[DeviceGap], Meta(max_length=MOST_ROWS)] = []
    replay: ReplayCheck
    verdict: StepVerdict
    alternatives: Annotated[list[Alternative], Meta(max_length=MOST_ROWS)] = []
    ranks: Annotated[list[RankRow], Meta(max_length=1024)] = []
    not_seen: Annotated[list[Why], Meta(max_length=64)] = []
    launch_delays: LaunchDelays | None = None
    host: Annotated[list[Figure], Meta(max_length=64)] = []
    calls: Annotated[list[OperationRow], Meta(max_length=MOST_ROWS)] = []
    device_time: Annotated[list[DeviceTimeRow], Meta(max_length=MOST_ROWS)] = []
    processes: Annotated[list[ProcessRow], Meta(max_length=MOST_ROWS)] = []
    steps_taken: StepsTaken | None = None

    @property
    def is_of_a_trace(self) -> bool:
        """Whether it was made from a trace, of which nobody knows the machine."""
        return self.machine.id == UNKNOWN_MACHINE

    def to_dict(self) -> dict[str, Any]:
        """The explanation as plain data. ``format`` and ``version`` come first, so that a reader
        can tell the kind.
        """
        return {"format": self.format, "version": self.version, **msgspec.to_builtins(self)}


def missing(name: str, reason: Why, unit: str = "ns") -> Figure:
    """A figure without a value, and the reason."""
    return Figure(name=name, unit=unit, status="unavailable", reason=reason)


def renamed(figure: Figure | None, name: str, reason: Why = NOT_MEASURED) -> Figure:
    """The figure under this name; for None, one without a value, for this reason."""
    return msgspec.structs.replace(figure, name=name) if figure else missing(name, reason)


def encode_explanation(found: Explanation) -> bytes:
    """The explanation as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(found.to_dict()), indent=1) + b"\n"


def save_explanation(path: Path, found: Explanation) -> None:
    """Write the explanation. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, encode_explanation(found))
