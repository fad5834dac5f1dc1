"""What bounds a step, by rule. Pure: times in, a verdict out.

If a third or more of the replayed step goes away without its synchronisations, it is bound by them. Under a tenth, it
is bound by the host or the device, whichever works 15 % longer. Anything else is mixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from overhead.explain import record
from overhead.explain.host_work import BETWEEN, PAGEABLE
from overhead.explain.record import OperationRow, ReplayCheck, StepVerdict
from overhead.explain.replay import StepParts
from overhead.explain.trace import LOADER
from overhead.reading.format import (
    between,
    count,
    factor,
    micro_of,
    micro_spread,
    number,
    percent,
    two_speeds,
    unresolved,
)
from overhead.results import VALUED, Figure

WITHIN = 0.15
"""How far the replayed step may lie from the measured one."""
_MUCH, _LITTLE = 1 / 3, 0.1
_EQUAL = 1.15
_BLOCKING = 0.9
"""If ``issue`` is at least this share of ``wall``, the step returns only when its work is almost done."""
_LEAST_SHARE, _SLOWER = 0.02, 1.12
"""A cause on the host is named from this share of the time on, or if the canary takes this many times its best."""
UNCHECKED = "Unchecked: times hold the profiler's cost, most of it on the host. --step-ms MS checks them."
UNRANKED = "Operations are not ranked: the profile failed its check."
_SPAN = 2
"""A time is not resolved if the upper end of its interval is at least this many times the lower end."""


def resolved_times(time: Figure) -> Sequence[float]:
    """The time, ns; both of a time with two speeds; none if it has no value or its interval is too wide."""
    if speeds := two_speeds(time):
        return speeds if speeds[0] > 0 else ()
    found = time.measured
    if found is None or not found.resolved or (found.high is not None and found.high >= _SPAN * found.floor):
        return ()
    return [found.value]


def time_text(time: Figure) -> str:
    """A time in µs with its interval, without unit; both of a time with two speeds; else why there is none."""
    times = resolved_times(time)
    if len(times) > 1:
        return " or ".join(number(each / 1e3) for each in times)
    return micro_spread(time) if times else unresolved(time)


def verdict_sentences(found: record.Explanation) -> list[str]:
    """The verdict in sentences. If the time of the step is not known well enough, the first one says so, then why."""
    said, wall = list(found.verdict.sentences), found.step.wall
    unresolved = bool(wall.measured) and not resolved_times(wall)
    if unresolved and found.verdict.kind != "unclear":
        said.insert(0, f"{_untold('The time of a step', wall)}.")
    unclear = unresolved or found.verdict.kind == "unclear"
    causes = host_causes({figure.name: figure.value for figure in found.host if figure.value is not None})
    if unclear and found.host and not causes:
        causes = ["No cause on the host was measured. overhead doctor names what disturbs this machine."]
    said += [*python_sentence(found), *([] if unclear else causes)]
    return list(dict.fromkeys([*said[:1], *causes, *said[1:]] if unclear else said))


def host_causes(shares: Mapping[str, float]) -> list[str]:
    """What on the host makes steps long or uneven, and what to do. ``shares``: the values of ``Explanation.host``."""
    of = {"longest_pause": 0.0, "cores": math.inf, "preemptions": 0.0, **shares}
    pause, number, cores = micro_of(of["longest_pause"]), f"{of['preemptions']:,.0f}", f"{of['cores']:g}"
    words = {
        "queued": f"waits for a processor ({number} switches a second): stop other programs, or give it its own cores",
        "throttled": f"is stopped by the CPU limit of {cores} cores: raise the limit, or use fewer threads",
        "collector": f"collects garbage (pauses up to {pause} µs): gc.freeze() after loading, then gc.disable()",
    }
    known = sorted((name for name in words if of.get(name, 0.0) >= _LEAST_SHARE), key=lambda name: -of[name])
    said = [f"{percent(of[name])} of the time the step's thread {words[name]}." for name in known]
    if (threads := of.get("threads", 0.0)) > of["cores"]:
        most = max(1, int(of["cores"]))
        said.append(f"PyTorch has {threads:g} threads for {cores} cores: torch.set_num_threads({most}).")
    if (slow := of.get("clock", 1.0)) >= _SLOWER:
        said.append(f"A fixed test loop takes {factor(slow)} its best time: another clock, or a busy hyperthread.")
    if others := int(of.get("python_threads", 0.0)):
        said.append(f"{count(others, 'other Python thread')} may hold the interpreter: move their work to processes.")
    if of.get("other_node"):
        said.append("The launching core is in another NUMA node than the GPU: numactl --cpunodebind.")
    return said


def _untold(what: str, time: Figure) -> str:
    """Why no verdict can use this time, in words."""
    if speeds := two_speeds(time):
        return f"{what} has two speeds, {' and '.join(number(each / 1e3) for each in speeds)} µs"
    found = time.measured
    if found is None:
        return time.reason or time.status
    interval = f" ({between(found.floor / 1e3, found.ceiling / 1e3)} µs)" if found.bounded else ""
    return f"{what} is not resolved{interval}"


def check_replay(replayed_ns: float, measured: Figure) -> ReplayCheck:
    """Whether the step as a model rebuilds it from the profile takes as long as the step without the profiler."""
    replayed = Figure(name="replayed", value=replayed_ns)
    if measured.value is None or measured.value <= 0 or measured.status not in VALUED:
        return ReplayCheck(replayed=replayed, measured=measured, reason=measured.reason or "no time was measured")
    ratio = replayed_ns / measured.value
    ok = abs(ratio - 1) <= WITHIN
    reason = "" if ok else f"the replay gives {factor(ratio)} the measured time; {percent(WITHIN)} is allowed"
    return ReplayCheck(replayed=replayed, measured=measured, ratio=ratio, ok=ok, reason=reason)


def bound_of(parts: StepParts) -> tuple[record.BoundKind, float]:
    """What bounds the step, and how many times as long it takes as the next part (or as the step without waits)."""
    high, low = max(parts.host, parts.device), min(parts.host, parts.device)
    ratio = high / low if low > 0 else float("inf")
    if parts.synchronisation_share >= _LITTLE:
        much = parts.synchronisation_share >= _MUCH
        return "synchronisation" if much else "mixed", parts.step / parts.without_waits
    if ratio < _EQUAL:
        return "mixed", ratio
    return ("host" if parts.host > parts.device else "device"), ratio


def judge(
    parts: StepParts,
    check: ReplayCheck,
    operations: Sequence[OperationRow] = (),
    synchronisations: Sequence[record.SynchronisationRow] = (),
    launches: float | None = None,
) -> StepVerdict:
    """The verdict on a profiled step with device work. It is ``unclear`` if the replay fails its check."""
    share = max(0.0, 1 - parts.device / (check.measured.value or parts.step)) if parts.step > 0 else None
    if not check.ok:
        why = f"No verdict: the replay of the profile could not be checked ({check.reason})."
        if check.measured.value is not None:
            replayed = check.replayed.value or 0.0
            apart = abs(check.measured.value - replayed)
            why = (
                f"No verdict: a replay of the profile gives {micro_of(replayed)} µs a step, measured are "
                f"{micro_of(check.measured.value)} µs. {micro_of(apart)} µs are not understood."
            )
        return StepVerdict(kind="unclear", overhead_share=share, sentences=[why])
    kind, times = bound_of(parts)
    said = [UNCHECKED] if check.unchecked else []
    said.append(_bound_sentence(kind, parts, factor(times) if times < math.inf else "many times"))
    if share is not None:
        said.append(f"The device is idle for {percent(share)} of a step.")
    inside = sum(row.host_ns for row in operations if row.name != BETWEEN)
    if launches and parts.host > parts.device and 2 * inside > parts.host:
        number = count(round(launches), "launch").replace("launchs", "launches")
        said.append(f"{number} a step: {micro_of(inside / launches)} µs of host work in operations for each.")
    said += most_host_work(operations)
    for row in synchronisations:
        if row.what.endswith(PAGEABLE) and row.blocked_ns >= _LEAST_SHARE * parts.step:
            uploads = f"Uploads{PAGEABLE} ({row.count:.4g} a step)"
            cost = f"{uploads} block the host for {micro_of(row.blocked_ns)} µs{_at(row.site)}"
            said.append(f"{cost}: use pin_memory() and non_blocking=True.")
    if synchronisations and parts.synchronisation_share >= 0.01:
        worst = synchronisations[0]
        number = count(round(sum(row.count for row in synchronisations)), "synchronisation")
        said.append(
            f"{number} a step cost {percent(parts.synchronisation_share)} of it; the host waits longest in "
            f"{worst.what}{_at(worst.site)}, {micro_of(worst.blocked_ns)} µs."
        )
    return StepVerdict(kind=kind, factor=times if times < math.inf else None, overhead_share=share, sentences=said)


def _bound_sentence(kind: record.BoundKind, parts: StepParts, times: str) -> str:
    both = f"in the profile, a step takes the host {micro_of(parts.host)} µs and the device {micro_of(parts.device)} µs"
    if kind == "host":
        return f"Host-bound: {both}, {times} less."
    if kind == "device":
        return f"Device-bound: {both}, {times} more. Less host work would not make it faster."
    if kind == "synchronisation":
        return (
            f"Bound by synchronisation: in the profile, a step takes {micro_of(parts.step)} µs, and "
            f"{micro_of(parts.without_waits)} µs without its synchronisations ({times} faster)."
        )
    if parts.synchronisation_share < _LITTLE:
        return f"Mixed: {both}. Both must become faster for the step to become much faster."
    return (
        f"Mixed: {both}; synchronisations cost {percent(parts.synchronisation_share)} of the step, "
        f"and without them the {'host' if parts.host > parts.device else 'device'} would bound it."
    )


def _at(site: record.CallSite) -> str:
    return f" at {site.line}" if site.line else ""


def _between(operations: Sequence[OperationRow]) -> float | None:
    """The share of the host's time between the operations of the library; None without host work."""
    whole = sum(row.host_ns for row in operations)
    return sum(row.host_ns for row in operations if row.name == BETWEEN) / whole if whole > 0 else None


def most_host_work(operations: Sequence[OperationRow]) -> list[str]:
    """Sentences: which operation takes most of the host's time, and that of a data loader; none if it is little."""
    first = next((row for row in operations if row.name != BETWEEN), None)
    whole = sum(row.host_ns for row in operations)
    said = []
    if first is not None and first.host_ns >= _LITTLE * whole > 0:
        said.append(
            f"Most host time in one operation: {first.name}{_at(first.site)}, {micro_of(first.host_ns)} µs in "
            f"{count(round(first.count), 'call')}."
        )
    loading = sum(row.host_ns for row in operations if row.name.startswith(LOADER))
    if loading >= _LITTLE * whole > 0:
        said.append(f"{percent(loading / whole)} of the host's time is the DataLoader's next: give it more workers.")
    return said


def python_sentence(found: record.Explanation) -> list[str]:
    """How much of the host's work is outside the library's operations, and whether it is the program's own Python."""
    share, whole = _between(found.operations), sum(row.host_ns for row in found.operations)
    if share is None or not _LITTLE <= share < 1 or not found.replay.ok:
        return []
    own = next((figure.value or 0.0 for figure in found.host if figure.name == "own_python"), 0.0)
    own_ns = min(share * whole, own * (found.replay.measured.value or 0.0))
    if 2 * own_ns >= share * whole:
        return [f"{micro_of(own_ns)} of {micro_of(whole)} µs of host work are your own Python, between operations."]
    if found.program.library == "none":  # a trace: nobody knows what its program is made of
        return [
            f"{micro_of(share * whole)} of {micro_of(whole)} µs of host work are outside of the operations and ranges "
            "that the trace names."
        ]
    rest = "Python of libraries, and kernels that they launch"
    return [f"{micro_of(share * whole)} of {micro_of(whole)} µs of host work are between PyTorch's operations: {rest}."]


def judge_processor(wall: Figure, check: ReplayCheck, operations: Sequence[OperationRow]) -> StepVerdict:
    """The verdict on a profiled step without device work: the processor does everything."""
    took = f"{time_text(wall)} µs of " if resolved_times(wall) else ""
    first = f"No device takes part: a step is {took}work on the processor."
    if not check.ok and check.reason:
        why = f"No verdict: the profile does not account for the step ({check.reason})."
        return StepVerdict(kind="unclear", sentences=[why, first])
    inside = "Kernels run inside the library's operations, so dispatch and arithmetic cannot be told apart there."
    said = [first, inside, *most_host_work(operations)]
    return StepVerdict(kind="host", overhead_share=_between(operations), sentences=said)


def judge_times(wall: Figure, issue: Figure, *, synchronous: bool, on_device: bool) -> StepVerdict:
    """The verdict on a step without a profile, from its two times: until it returns, and until its work is done."""
    if synchronous and resolved_times(wall):
        said = f"The step is {time_text(wall)} µs of work in the calling thread: it returns when its work is done."
        return StepVerdict(kind="host", sentences=[said])
    if len(resolved_times(wall)) != 1 or len(resolved_times(issue)) != 1:
        what, time = ("until the step returns", issue) if len(resolved_times(wall)) == 1 else ("of a step", wall)
        return StepVerdict(kind="unclear", sentences=[f"No verdict: {_untold(f'the time {what}', time)}."])
    (ready,), (returned,) = resolved_times(wall), resolved_times(issue)
    share = returned / ready
    work = "Device-bound" if on_device else "Bound by the work that the library runs beside the calling thread"
    both = f"the step returns after {time_text(issue)} µs, and its work is done after {time_text(wall)} µs"
    if share >= _BLOCKING:
        hint = "Host work and waiting inside the step cannot be told apart without a profile of this library."
        return StepVerdict(kind="unclear", sentences=[f"Bound by the host or by synchronisation: {both}.", hint])
    sentences = [f"{work}: {both}.", "Faster calls would not make it faster."]
    return StepVerdict(kind="device", factor=1 / share if share > 0 else None, sentences=sentences)
