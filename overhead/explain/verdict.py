"""What bounds a step, by rule. Pure: times in, a verdict out.

If a third or more of the replayed step goes away without its synchronisations, it is bound by them. Under a tenth, it
is bound by the host or the device, whichever works 15 % longer. Anything else is mixed. If a
measured alternative contradicts that, the measurement holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from overhead.explain import record
from overhead.explain.alternatives import CUDA_GRAPH, PINNED, UNSYNCHRONISED
from overhead.explain.host_work import BETWEEN, PAGEABLE
from overhead.explain.record import OperationRow, ReplayCheck, StepVerdict
from overhead.explain.replay import StepParts
from overhead.explain.trace import LOADER
from overhead.reading.format import (
    between,
    count,
    factor,
    factor_spread,
    micro_of,
    micro_spread,
    number,
    percent,
    positive_spread,
    two_speeds,
)
from overhead.results import VALUED, Figure, Why

WITHIN = 0.15
"""How far the replayed step may lie from the measured one."""
_MUCH, _LITTLE = 1 / 3, 0.1
_EQUAL = 1.15
_BLOCKING = 0.9
"""If ``issue`` is at least this share of ``wall``, the step returns only when its work is almost done."""
_LEAST_SHARE, _SLOWER = 0.02, 1.12
"""A cause on the host is named from this share of the time on, or if the canary takes this many times its best."""
_OTHER_THREADS = 0.001
"""Other threads of the process count from this share of the time on. A thread that sleeps for 1 ms at a time, in turn,
ran for 0.6 % of it on a busy host with two cores; where steps hand nothing to a thread it was below 0.01 %."""
UNCHECKED = "Unchecked: times hold the profiler's cost, most of it on the host. --step-ms MS checks them."
UNRANKED = "Operations are not ranked: the profile failed its check."
_SPAN = 2
"""A time is not resolved if the upper end of its interval is at least this many times the lower end."""
_APART = 1.3
"""The first lines name a gain of this factor or more, and an unpinned time that is as far from the undisturbed one.
``overhead time`` names the latter from the same factor on."""
_MOST_GAINS = 3
Gains = Mapping[str, Figure]
"""By the name of an alternative: its measured gain, with an interval."""
_NO_GAINS: Gains = {}


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
    if times:
        return micro_spread(time)
    interval = _interval(time)
    return f"not resolved{f' ({interval})' if interval else ''}" if time.measured else time.status


def _interval(time: Figure) -> str:
    """The interval of a time in µs, without unit: ``4 to 66``, or ``at most 66``, as no time is below zero; or ''."""
    found = time.measured
    if found is None or not found.bounded or found.ceiling <= 0:
        return ""
    if found.floor <= 0:
        return f"at most {number(found.ceiling / 1e3)}"
    return between(found.floor / 1e3, found.ceiling / 1e3)


def gains_of(alternatives: Sequence[record.Alternative]) -> Gains:
    """The gains that were measured and have an interval."""
    return {one.name: one.gain for one in alternatives if _has_gain(one)}


def _has_gain(one: record.Alternative) -> bool:
    gain = one.gain.measured if one.status == "ok" else None
    return gain is not None and gain.bounded and gain.floor > 0 and bool(resolved_times(one.step))


def verdict_sentences(found: record.Explanation) -> list[str]:
    """The verdict in sentences. If the time of the step is not known well enough, the first one says so, then why.

    Giving the result back in ``found`` changes nothing: a file holds the sentences too.
    """
    wall, no_verdict = found.step.wall, found.verdict.kind == "unclear"
    unresolved = bool(wall.measured) and not resolved_times(wall)
    unclear = unresolved or no_verdict
    causes = host_causes(
        {figure.name: figure.value for figure in found.host if figure.value is not None}, gains_of(found.alternatives)
    )
    uneven = unresolved or (found.replay.ratio is not None and not found.replay.ok)
    if uneven and found.host and not causes:
        causes = ["No cause on the host was measured. overhead doctor names what disturbs this machine."]
    gains, instead = _large_gains(found.alternatives), _instead(found) if unresolved else ""
    lead: list[str] = []
    if unresolved and not no_verdict:
        lead.append(f"{_untold('The time of a step', wall)}.")
    elif apart := _slow_steps(found) or _met_apart(found) or _disturbed(found):
        lead.append(apart)
    first = {*lead, *gains, instead, *(causes if unclear else [])}
    rest = [sentence for sentence in found.verdict.sentences if sentence not in first]
    if not unresolved or no_verdict:
        lead += rest[:1]
        rest = rest[1:]
    said = [*lead, instead, *(causes if unclear else []), *gains, *rest, *python_sentence(found), *causes]
    return [sentence for sentence in dict.fromkeys(said) if sentence]


def _large_gains(alternatives: Sequence[record.Alternative]) -> list[str]:
    """Sentences on the alternatives that gain much, the surest first."""
    large = [one for one in alternatives if _has_gain(one) and (one.gain.value or 0) >= _APART and _low(one.gain) > 1]
    said = []
    for one in sorted(large, key=lambda one: -_low(one.gain))[:_MOST_GAINS]:
        results = f"; {one.verdict()}" if one.kind == "measured" else ""
        said.append(
            f"Measured, {one.name}{record.KIND_LABELS[one.kind]}: {factor_spread(one.gain.measured)} as fast{results}."
        )
    return said


def _low(figure: Figure) -> float:
    return -math.inf if figure.low is None else figure.low


def _high(figure: Figure) -> float:
    return math.inf if figure.high is None else figure.high


def _met_text(met: Figure) -> str:
    """A step as the operating system runs it, in words; empty if it was not measured."""
    found = met.measured
    if found is None:
        return ""
    processes = f", in {met.processes} processes" if met.processes > 1 else ""
    return f"as the operating system runs it, a step takes {positive_spread(found / 1e3)} µs{processes}"


def _met_apart(found: record.Explanation) -> str:
    """A sentence if a step as the operating system runs it is far from the undisturbed one; else ''."""
    met, times = found.step.met.measured, resolved_times(found.step.wall)
    if met is None or len(times) != 1 or met.value <= 0:
        return ""
    ratio = met.value / times[0]
    if 1 / _APART <= ratio <= _APART:
        return ""
    text = _met_text(found.step.met)
    return f"{text[0].upper()}{text[1:]}: {factor(ratio)} the {micro_of(times[0])} µs where nothing disturbs it."


def _slow_steps(found: record.Explanation) -> str:
    """A sentence if some steps are much slower than most, by the step's own work; else ''.

    The undisturbed time leaves such steps out, and the slope of few unpinned steps may not resolve them.
    """
    mean, times = found.step.everything.measured, resolved_times(found.step.wall)
    if mean is None or len(times) != 1:
        return ""
    of_host = {figure.name: figure.value or 0.0 for figure in found.host}
    # Other programs stretch the mean by the time in which the thread waits for its processor. That is no slow step.
    ran = max(0.0, 1 - of_host.get("queued", 0.0) - of_host.get("throttled", 0.0))
    if mean.value * ran < _APART * times[0]:
        return ""
    return (
        f"Slow steps: the mean of all is {positive_spread(mean / 1e3)} µs a step, {factor(mean.value / times[0])} the "
        f"{micro_of(times[0])} µs that most steps take."
    )


def _disturbed(found: record.Explanation) -> str:
    """A sentence if the mean of all steps is far from the undisturbed one, or the unpinned time is not told; else ''.

    The thread waits for its processor so long that slow steps cannot be told from a disturbance.
    """
    mean, met, times = found.step.everything.measured, found.step.met, resolved_times(found.step.wall)
    if len(times) != 1:
        return ""
    if mean is not None and mean.value >= _APART * times[0]:
        return (
            f"The mean of all measured steps is {positive_spread(mean / 1e3)} µs, {factor(mean.value / times[0])} the "
            f"{micro_of(times[0])} µs of an undisturbed one."
        )
    if met.status == "below-resolution":
        return (
            "The time of a step as the operating system runs it is not resolved: some steps take far longer than most."
        )
    return ""


def _instead(found: record.Explanation) -> str:
    """What is known of the time of a step that is not resolved, in a sentence; empty if nothing is."""
    if text := _met_text(found.step.met):
        return f"{text[0].upper()}{text[1:]}."
    measured = found.replay.measured
    return f"{time_text(measured)} µs a step were {measured.rule}." if resolved_times(measured) else ""


def host_causes(shares: Mapping[str, float], gains: Gains = _NO_GAINS) -> list[str]:
    """What on the host makes steps long or uneven, and what to do. ``shares``: the values of ``Explanation.host``.

    ``gains``: of the conditions that were measured; one that gains nothing is not recommended.
    """
    of = {"longest_pause": 0.0, "cores": math.inf, "preemptions": 0.0, **shares}
    pause, number, cores = micro_of(of["longest_pause"]), f"{of['preemptions']:,.0f}", f"{of['cores']:g}"
    collector = f"collects garbage (pauses up to {pause} µs)"
    if not _is_useless(gains.get("without garbage collection")):
        collector += ": gc.freeze() after loading, then gc.disable()"
    words = {
        "queued": f"waits for a processor ({number} switches a second): stop other programs, or give it its own cores",
        "throttled": f"is stopped by the CPU limit of {cores} cores: raise the limit, or use fewer threads",
        "collector": collector,
    }
    known = sorted((name for name in words if of.get(name, 0.0) >= _LEAST_SHARE), key=lambda name: -of[name])
    said = [f"{percent(of[name])} of the time the step's thread {words[name]}." for name in known]
    if (threads := of.get("threads", 0.0)) > of["cores"]:
        most = max(1, int(of["cores"]))
        said.append(f"PyTorch has {threads:g} threads for {cores} cores: torch.set_num_threads({most}) may be faster.")
    if (slow := of.get("clock", 1.0)) >= _SLOWER:
        said.append(f"A fixed test loop takes {factor(slow)} its best time: another clock, or a busy hyperthread.")
    if others := int(of.get("python_threads", 0.0)):
        busy = f"{count(others, 'other Python thread')} {'is' if others == 1 else 'are'} busy"
        said.append(f"{busy} and may hold the interpreter; in a process of its own such work does not.")
    if of.get("other_node"):
        said.append("The launching core is in another NUMA node than the GPU: try numactl --cpunodebind.")
    return said


def _is_useless(gain: Figure | None) -> bool:
    """Whether a measured gain is known to be none: its interval ends below one part in fifty."""
    return gain is not None and _high(gain) < 1 + _LEAST_SHARE


def _untold(what: str, time: Figure) -> Why:
    """Why no verdict can use this time, in words."""
    if speeds := two_speeds(time):
        return f"{what} has two speeds, {' and '.join(number(each / 1e3) for each in speeds)} µs"
    if time.measured is None:
        return time.reason or time.status
    interval = _interval(time)
    return f"{what} is not resolved{f' ({interval} µs)' if interval else ''}"


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


@dataclass(frozen=True)
class _Bound:
    """What bounds a step. ``contradicted``: what a measured alternative says against the profile, in a sentence."""

    kind: record.BoundKind
    times: float
    contradicted: str = ""


def _measured_bound(parts: StepParts, gains: Gains) -> _Bound:
    """What bounds the step by its replay, unless a measured alternative contradicts it: then by the measurement."""
    kind, times = bound_of(parts)
    without_waits = gains.get(UNSYNCHRONISED)
    if without_waits is not None and parts.synchronisation_share >= _LITTLE:
        predicted = parts.step / parts.without_waits
        # An interval that ends before half of the predicted gain holds "no gain" rather than the prediction.
        if _high(without_waits) < (1 + predicted) / 2:
            said = (
                f"Synchronisations do not bound the step: without them it was measured {_as_fast(without_waits)}, "
                f"where a replay of the profile predicts {factor(predicted)}."
            )
            kind, times = bound_of(dataclasses.replace(parts, without_waits=parts.step))
            # If neither host nor device is at work for almost all of the step, something else takes time.
            known = max(parts.host, parts.device) >= (1 - WITHIN) * parts.step
            return _Bound(kind if known else "unclear", times, said)
    graph = gains.get(CUDA_GRAPH)
    if graph is not None and kind == "host" and times >= _APART and _high(graph) < 1 + _LITTLE:
        said = f"Host work does not bound the step: a CUDA graph, which saves almost all of it, is {_as_fast(graph)}."
        return _Bound("unclear", times, said)
    if graph is not None and kind == "device" and _low(graph) > _EQUAL:
        return _Bound("mixed", times, f"Not bound by the device alone: a CUDA graph is {_as_fast(graph)}.")
    return _Bound(kind, times)


def _as_fast(gain: Figure) -> str:
    return f"{factor_spread(gain.measured)} as fast"


def judge(
    parts: StepParts,
    check: ReplayCheck,
    operations: Sequence[OperationRow] = (),
    synchronisations: Sequence[record.SynchronisationRow] = (),
    launches: float | None = None,
    gains: Gains = _NO_GAINS,
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
    bound = _measured_bound(parts, gains)
    said = [UNCHECKED] if check.unchecked else []
    said += [bound.contradicted] if bound.contradicted else []
    if bound.contradicted and bound.kind in ("unclear", "mixed"):
        said.append(f"{_both(parts)[0].upper()}{_both(parts)[1:]}.")
    else:
        times = factor(bound.times) if bound.times < math.inf else "many times"
        synchronises = parts.synchronisation_share >= _LITTLE and not bound.contradicted
        said.append(_bound_sentence(bound.kind, parts, times, synchronises=synchronises))
    if share is not None:
        said.append(f"The device is idle for {percent(share)} of a step.")
    inside = sum(row.host_ns for row in operations if row.name != BETWEEN)
    if launches and parts.host > parts.device and 2 * inside > parts.host:
        number = count(round(launches), "launch").replace("launchs", "launches")
        said.append(f"{number} a step: {micro_of(inside / launches)} µs of host work in operations for each.")
    said += most_host_work(operations)
    for row in synchronisations:
        if row.what.endswith(PAGEABLE) and row.blocked_ns >= _LEAST_SHARE * parts.step:
            said.append(_upload_sentence(row, gains.get(PINNED)))
    if synchronisations and parts.synchronisation_share >= 0.01:
        said.append(_synchronisation_sentence(parts, synchronisations, gains.get(UNSYNCHRONISED)))
    known = bound.times if bound.times < math.inf and not bound.contradicted else None
    return StepVerdict(kind=bound.kind, factor=known, overhead_share=share, sentences=said)


def _upload_sentence(row: record.SynchronisationRow, pinned: Figure | None) -> str:
    """What an upload from pageable memory costs, and what pinned memory was measured to gain."""
    cost = f"Uploads{PAGEABLE} ({row.count:.4g} a step) block the host for {micro_of(row.blocked_ns)} µs{_at(row.site)}"
    if pinned is not None:
        return f"{cost}; with pin_memory() and non_blocking=True the step was measured {_as_fast(pinned)}."
    return f"{cost}; pin_memory() and non_blocking=True may avoid that."


def _synchronisation_sentence(
    parts: StepParts, synchronisations: Sequence[record.SynchronisationRow], without: Figure | None
) -> str:
    """How many calls wait, what they cost as measured, else by the replay, and which one waits longest."""
    worst = synchronisations[0]
    number = count(round(sum(row.count for row in synchronisations)), "synchronisation")
    cost = f"cost {percent(parts.synchronisation_share)} of it in the replay"
    if without is not None:
        cost = f"(without them it was measured {_as_fast(without)})"
    longest = f"the host waits longest in {worst.what}{_at(worst.site)}, {micro_of(worst.blocked_ns)} µs"
    return f"{number} a step {cost}; {longest}."


def _both(parts: StepParts) -> str:
    return f"in the profile, a step takes the host {micro_of(parts.host)} µs and the device {micro_of(parts.device)} µs"


def _bound_sentence(kind: record.BoundKind, parts: StepParts, times: str, *, synchronises: bool) -> str:
    both = _both(parts)
    if kind == "host":
        return f"Host-bound: {both}, {times} less."
    if kind == "device":
        return f"Device-bound: {both}, {times} more. Less host work would not make it faster."
    if kind == "synchronisation":
        return (
            f"Bound by synchronisation: in the profile, a step takes {micro_of(parts.step)} µs, and "
            f"{micro_of(parts.without_waits)} µs without its synchronisations ({times} faster)."
        )
    if not synchronises:
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
        said.append(f"{percent(loading / whole)} of the host's time is the DataLoader's next.")
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


def judge_times(
    wall: Figure, issue: Figure, *, synchronous: bool, on_device: bool, other_threads: float = 0.0
) -> StepVerdict:
    """The verdict on a step without a profile, from its two times: until it returns, and until its work is done.

    ``other_threads``: for which share of the time other threads of the process ran.
    """
    if synchronous and resolved_times(wall):
        said = f"The step is {time_text(wall)} µs of work in the calling thread"
        if other_threads < _OTHER_THREADS:
            return StepVerdict(kind="host", sentences=[f"{said}: it returns when its work is done."])
        unproved = (
            f"Other threads of the process ran for {percent(other_threads)} of the time: work that the step hands to "
            "them without a wait is not included."
        )
        return StepVerdict(kind="host", sentences=[f"{said}.", unproved])
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
