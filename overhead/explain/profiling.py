"""Profile a PyTorch step in a process of its own, and join the lines of its operations with their times."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from overhead import scratch
from overhead.bounded_files import read_whole
from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.errors import BadFile, UsageError
from overhead.explain.call_spec import FoundCall
from overhead.explain.chrome_trace import read_chrome_trace
from overhead.explain.host_work import HostTimes, ReturnTimes, profiler_cost
from overhead.explain.steps import StepSource
from overhead.explain.trace import StepTrace, Trace
from overhead.explain.trial import SILENCE_S, TrialFound, TrialRefused, TrialStep

LONGEST_STEP_S = 1.0
"""The longest step that is explained."""
DEVICE_FILE, SITES_FILE = "device.json", "sites.json"
_MOST_TRACE_BYTES = 1 << 30
"""The longest file of a trace."""

_NO_RETURNS = ReturnTimes()
_NO_TIMES = HostTimes()


def host_files(number: int) -> list[tuple[str, str]]:
    """The names of the traces without the device: of the step, and of a loop of one operation."""
    return [(f"host-{index}.json", f"loop-{index}.json") for index in range(number)]


class ProfileJob(Struct, frozen=True):
    """What to profile, and the folder for the traces."""

    source: StepSource
    folder: str
    longest_s: float = LONGEST_STEP_S


class Profiled(Struct, frozen=True, tag="profiled"):
    """What the child measured besides the traces. ``step_ns``: a step without the profiler, ns, in turn with
    the profiles of the host. ``host_traces``: how many pairs of ``host_files`` there are.

    ``reason``: why there is no profile.
    """

    step_ns: float = 0.0
    host_traces: int = 0
    returns: ReturnTimes = _NO_RETURNS
    reason: str = ""
    library: str = "none"
    device: str = ""
    sites_missing: str = ""


ProfileAnswer = TrialStep | TrialFound | TrialRefused | Profiled
"""What the child says."""
_decode = msgspec.json.Decoder(ProfileAnswer).decode


@dataclasses.dataclass(frozen=True)
class StepProfile:
    """A tried step, and its profile. ``trace``: None with a ``reason`` where the library has no profile.

    ``host``: the times of the host. ``step_ns``: a step in the profiled process without the profiler.
    """

    found: FoundCall
    library: str
    device: str
    trace: Trace | None = None
    host: HostTimes = _NO_TIMES
    step_ns: float = 0.0
    sites_missing: str = ""
    reason: str = ""


def profile_step(
    source: StepSource,
    *,
    silence_s: float = SILENCE_S,
    longest_s: float = LONGEST_STEP_S,
    doing: Callable[[str], None] = lambda what: None,
) -> StepProfile:
    """Try the step in a child process, and profile it where it uses PyTorch.

    Raises ``UsageError`` with one line for a step that raises, cannot be repeated, crashes, hangs, takes too long or
    runs out of memory.
    """
    with scratch.subfolder() as folder:
        found, profiled = _in_child(ProfileJob(source, folder, longest_s), silence_s, doing)
        if profiled.reason:
            return StepProfile(found, profiled.library, profiled.device, reason=profiled.reason)
        try:
            host, loops = zip(*host_files(profiled.host_traces), strict=True)
            alone, loop = _together(folder, host), _together(folder, loops)
            plain = _settled(folder, DEVICE_FILE) if profiled.device else alone
            sites = Trace([]) if profiled.sites_missing else _settled(folder, SITES_FILE)
        except BadFile as error:
            return StepProfile(found, profiled.library, profiled.device, reason=f"the profile is unreadable: {error}")
    if profiled.device and not plain.has_device:
        return StepProfile(found, profiled.library, profiled.device, reason=_NOTHING_SEEN)
    joined, sites_missing = with_sites(plain, sites)
    cost = profiler_cost(alone, loop, profiled.returns, plain.blocked_ns)
    return StepProfile(
        found,
        profiled.library,
        profiled.device,
        joined,
        HostTimes(alone, cost),
        profiled.step_ns,
        profiled.sites_missing or sites_missing,
    )


_NOTHING_SEEN = (
    "the profiler saw no work on the device: the step issues none, or this user may not profile the device "
    "(CUPTI needs a permission that the driver gives)"
)


def _together(folder: str, names: Iterable[str]) -> Trace:
    return Trace([step for name in names for step in _settled(folder, name).steps])


def _settled(folder: str, name: str) -> Trace:
    return read_chrome_trace(read_whole(Path(folder) / name, _MOST_TRACE_BYTES), name).settled()


def _in_child(job: ProfileJob, silence_s: float, doing: Callable[[str], None]) -> tuple[FoundCall, Profiled]:
    step, found = "starting", None
    try:
        with ChildProcess("overhead.explain.profiled_process", job, _decode, ChildLimits(silence_s)) as child:
            while True:
                match child.receive():
                    case TrialStep(what):
                        step = what
                        doing(what)
                    case TrialFound(call):
                        found = call
                    case TrialRefused(reason):
                        raise UsageError(reason)
                    case Profiled() as profiled if found is not None:
                        return found, profiled
    except ChildEnded as ended:
        if found is None:
            raise UsageError(f"{step}: {ended}") from None
        return found, Profiled(reason=f"{step}: {ended}")  # the step works; its profile does not


def with_sites(plain: Trace, sites: Trace) -> tuple[Trace, str]:
    """The first trace with the lines and allocations of the second, and what could not be found out.

    Operations and synchronisations are matched by their order in the step.
    """
    model = next((step for step in sites.steps if step.operations), None)
    if model is None or not plain.steps:
        return plain, "no call sites were recorded"
    steps, unmatched = [], 0
    for step in plain.steps:
        joined = _joined(step, model)
        unmatched += joined is None
        steps.append(joined or step)
    if unmatched:
        return Trace(steps), (
            f"the operations of {unmatched} of {len(steps)} profiled steps are not those of the step whose lines were "
            "recorded: their lines are missing"
        )
    return Trace(steps), ""


def _joined(step: StepTrace, model: StepTrace) -> StepTrace | None:
    """The step with the lines of ``model``; None if the two run different operations."""
    known = [operation for operation in model.operations if operation.name != _MODE]
    if [each.name for each in step.operations] != [each.name for each in known]:
        return None
    operations = [
        dataclasses.replace(each, site=other.site) for each, other in zip(step.operations, known, strict=True)
    ]
    new = {id(old): each for old, each in zip(step.operations, operations, strict=True)}
    lines = [call.site for call in model.synchronisations]
    own = step.synchronisations
    by_start = {call.start: line for call, line in zip(own, lines, strict=True)} if len(own) == len(lines) else {}
    calls = [
        dataclasses.replace(
            call,
            operation=new.get(id(call.operation)) if call.operation is not None else None,
            site=by_start.get(call.start)
            or (new[id(call.operation)].site if call.operation is not None else call.site),
        )
        for call in step.calls
    ]
    return dataclasses.replace(step, operations=operations, calls=calls, allocations=model.allocations)


_MODE = "PythonDispatchMode"
"""The operation that torch records around a dispatch mode, where the library itself has none around it."""
