"""What bounds a step, by rule. Pure: times in, a verdict out.

If a third or more of the replayed step goes away without its synchronisations, it is bound by them.
Under a tenth, it is bound by the host or the device, whichever works 15 % longer. Anything else is
mixed. If a measured alternative contradicts that, the measurement holds.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from overhead.explaining import record
from overhead.explaining.alternatives import CUDA_GRAPH, PINNED, UNSYNCHRONISED
from overhead.explaining.conditions import WITHOUT_COLLECTION
from overhead.explaining.host_work import FROM_PAGEABLE
from overhead.explaining.record import BETWEEN, OperationRow, ReplayCheck, StepVerdict
from overhead.explaining.replay import StepParts
from overhead.reading.precision import two_speeds
from overhead.results import VALUED, Figure, Reason, Value, Why, because, codes_of, together
from overhead.traces.trace import LOADER

WITHIN = 0.15
"""How far the replayed step may lie from the measured one."""
_MUCH, _LITTLE = 1 / 3, 0.1
_EQUAL = 1.15
_BLOCKING = 0.9
"""If ``issue`` is at least this share of ``wall``, the step returns only when its work is almost
done.
"""
_LEAST_SHARE, _SLOWER = 0.02, 1.12
"""A cause on the host is named from this share of the time on, or if the canary takes this many
times its best.
"""
_OTHER_THREADS = 0.001
"""Other threads of the process count from this share of the time on. A thread that sleeps for 1 ms
at a time, in turn, ran for 0.6 % of it on a busy host with two cores; where steps hand nothing to a
thread it was below 0.01 %.
"""
UNCHECKED = because("replay-unchecked")
_SPAN = 2
"""A time is not resolved if the upper end of its interval is at least this many times the lower
end.
"""
_APART = 1.3
"""The first lines name a gain of this factor or more, and an unpinned time that is as far from the
undisturbed one. ``overhead time`` names the latter from the same factor on.
"""
_MOST_GAINS = 3
_MOST_WAITS = 3
"""A verdict names at most so many calls that wait."""
Gains = Mapping[str, Figure]
"""By the name of an alternative, or the code of a condition: its measured gain, with an
interval.
"""
_NO_GAINS: Gains = {}


def resolved_times(time: Figure) -> Sequence[float]:
    """The time, ns; both of a time with two speeds; none if it has no value or its interval is too
    wide.
    """
    if speeds := two_speeds(time):
        return speeds if speeds[0] > 0 else ()
    found = time.measured
    if (
        found is None
        or not found.resolved
        or (found.high is not None and found.high >= _SPAN * found.floor)
    ):
        return ()
    return [found.value]


def value_named(name: str, found: Value) -> dict[str, float]:
    """A value with its interval as values of a reason."""
    ends = {f"{name}_low": found.low, f"{name}_high": found.high}
    return {name: found.value, **{end: value for end, value in ends.items() if value is not None}}


def _time_named(name: str, time: Figure) -> dict[str, float]:
    """A time that is resolved as values of a reason; of a time with two speeds both."""
    times = resolved_times(time)
    if len(times) > 1:
        return {name: times[0], f"{name}_other": times[1]}
    return value_named(name, time.measured) if time.measured else {}


def _gain_named(gain: Figure) -> dict[str, float]:
    return value_named("gain", gain.measured) if gain.measured else {}


def gains_of(alternatives: Sequence[record.Alternative]) -> Gains:
    """The gains that were measured and have an interval."""
    gains = {}
    for one in alternatives:
        if _has_gain(one):
            name = one.condition.code if one.condition is not None else one.name
            gains[name] = one.gain
    return gains


def _has_gain(one: record.Alternative) -> bool:
    gain = one.gain.measured if one.status == "ok" else None
    return gain is not None and gain.bounded and gain.floor > 0 and bool(resolved_times(one.step))


def _itself(reason: Why) -> Hashable:
    return reason


def verdict_reasons(
    found: record.Explanation, known_by: Callable[[Why], Hashable] = _itself
) -> list[Why]:
    """What is said of the step. If its time is not known well enough, that comes first, then why.

    Giving the result back in ``found`` changes nothing: a file holds it too. ``known_by``: what is
    equal for two that say the same. An older file holds texts, which are known by the sentences of
    what is found again.
    """
    wall, no_verdict = found.step.wall, found.verdict.kind == "unclear"
    unresolved = bool(wall.measured) and not resolved_times(wall)
    unclear = unresolved or no_verdict
    shares = {figure.name: figure.value for figure in found.host if figure.value is not None}
    causes = host_causes(shares, gains_of(found.alternatives))
    uneven = unresolved or (found.replay.ratio is not None and not found.replay.ok)
    if uneven and found.host and not causes:
        causes = [because("no-cause-on-the-host")]
    gains = _large_gains(found.alternatives)
    instead = _instead(found) if unresolved else ""
    lead: list[Why] = _known_without_verdict(found) if no_verdict else []
    if unresolved and not no_verdict:
        lead.append(because("untold-time", why=_untold_step(wall)))
    elif apart := _slow_steps(found) or _met_apart(found) or _disturbed(found):
        lead.append(apart)
    first = {known_by(one) for one in [*lead, *gains, instead, *(causes if unclear else [])]}
    rest = [one for one in found.verdict.sentences if known_by(one) not in first]
    if not unresolved or no_verdict:
        lead += rest[:1]
        rest = rest[1:]
    said = [
        *lead,
        instead,
        *(causes if unclear else []),
        *gains,
        *rest,
        *own_python(found),
        *causes,
    ]
    once: dict[Hashable, Why] = {}
    for one in said:
        if one:
            once.setdefault(known_by(one), one)
    return list(once.values())


def _known_without_verdict(found: record.Explanation) -> list[Why]:
    """What holds of a step although its replay fails the check: the work of the device, and the
    calls that wait.
    """
    wall, busy = found.step.wall.measured, found.step.busy.measured
    if found.replay.ok or found.replay.ratio is None or wall is None or busy is None:
        return []
    said: list[Why] = []
    if len(resolved_times(found.step.wall)) == 1 and 0 < busy.value <= wall.value:
        # The ends of the share follow from those of the step, which varies more.
        share = Value(busy.value / wall.value, busy.value / wall.ceiling, busy.value / wall.floor)
        both = {"busy_ns": busy.value, **value_named("wall_ns", wall)}
        said.append(because("device-works-in-the-step", **both, **value_named("share", share)))
    waits = found.synchronisations
    if waits:
        lines = [
            because("waits-at-line", line=row.site.line or "?", what=row.what)
            for row in waits[:_MOST_WAITS]
        ]
        number = max(1, round(sum(row.count for row in waits)))
        said.append(because("calls-that-wait", number=number, lines=together(*lines)))
    return said


def _large_gains(alternatives: Sequence[record.Alternative]) -> list[Why]:
    """The alternatives that gain much, the surest first."""
    large = [
        one
        for one in alternatives
        if _has_gain(one) and (one.gain.value or 0) >= _APART and _low(one.gain) > 1
    ]
    ordered = sorted(large, key=lambda one: -_low(one.gain))
    return [_large_gain(one) for one in ordered[:_MOST_GAINS]]


def _large_gain(one: record.Alternative) -> Why:
    gain = _gain_named(one.gain)
    if one.kind == "bound":
        return because("large-gain-is-a-bound", name=one.called, **gain)
    if one.kind == "prediction":
        return because("large-gain-is-predicted", name=one.called, **gain)
    return because("large-gain", name=one.called, results=one.agreement, **gain)


def _low(figure: Figure) -> float:
    return -math.inf if figure.low is None else figure.low


def _high(figure: Figure) -> float:
    return math.inf if figure.high is None else figure.high


def _met_apart(found: record.Explanation) -> Why:
    """A step as the operating system runs it, if it is far from the undisturbed one; else ''."""
    met, times = found.step.met.measured, resolved_times(found.step.wall)
    if met is None or len(times) != 1 or met.value <= 0:
        return ""
    ratio = met.value / times[0]
    if 1 / _APART <= ratio <= _APART:
        return ""
    processes = found.step.met.processes
    return because(
        "step-as-it-runs-is-apart",
        **value_named("met_ns", met),
        processes=processes,
        times=ratio,
        wall_ns=times[0],
    )


def _slow_steps(found: record.Explanation) -> Why:
    """That some steps are much slower than most, by the step's own work; else ''.

    The undisturbed time leaves such steps out, and the slope of few unpinned steps may not resolve
    them.
    """
    mean, times = found.step.everything.measured, resolved_times(found.step.wall)
    if mean is None or len(times) != 1:
        return ""
    of_host = {figure.name: figure.value or 0.0 for figure in found.host}
    # Other programs stretch the mean by the time in which the thread waits for its processor. That
    # is no slow step.
    ran = max(0.0, 1 - of_host.get("queued", 0.0) - of_host.get("throttled", 0.0))
    if mean.value * ran < _APART * times[0]:
        return ""
    return because(
        "slow-steps", **value_named("mean_ns", mean), times=mean.value / times[0], wall_ns=times[0]
    )


def _disturbed(found: record.Explanation) -> Why:
    """That the mean of all steps is far from the undisturbed one, or the unpinned time is not told;
    else ''.

    The thread waits for its processor so long that slow steps cannot be told from a disturbance.
    """
    mean, met, times = (
        found.step.everything.measured,
        found.step.met,
        resolved_times(found.step.wall),
    )
    if len(times) != 1:
        return ""
    if mean is not None and mean.value >= _APART * times[0]:
        return because(
            "mean-is-apart",
            **value_named("mean_ns", mean),
            times=mean.value / times[0],
            wall_ns=times[0],
        )
    if met.status == "below-resolution":
        return because("step-as-it-runs-not-resolved")
    return ""


def _instead(found: record.Explanation) -> Why:
    """What is known of the time of a step that is not resolved; '' if nothing is."""
    met, measured = found.step.met.measured, found.replay.measured
    if met is not None:
        return because(
            "step-as-it-runs", **value_named("met_ns", met), processes=found.step.met.processes
        )
    if not resolved_times(measured):
        return ""
    return because("step-measured-so", how=measured.rule, **_time_named("step_ns", measured))


def host_causes(shares: Mapping[str, float], gains: Gains = _NO_GAINS) -> list[Why]:
    """What on the host makes steps long or uneven, and what to do. ``shares``: the values of
    ``Explanation.host``.

    ``gains``: of the conditions that were measured; one that gains nothing is not recommended.
    """
    of = {"longest_pause": 0.0, "cores": 0.0, "preemptions": 0.0, **shares}
    cores = of["cores"]
    causes: dict[str, Why] = {}
    for name in ("queued", "throttled", "collector"):
        share = of.get(name, 0.0)
        if share < _LEAST_SHARE:
            continue
        if name == "queued":
            causes[name] = because(
                "waits-for-a-processor", share=share, preemptions=of["preemptions"]
            )
        elif name == "throttled":
            causes[name] = because("stopped-by-the-cpu-limit", share=share, cores=cores)
        elif _is_useless(gains.get(WITHOUT_COLLECTION.code)):
            causes[name] = because("collects-garbage", share=share, pause_ns=of["longest_pause"])
        else:
            causes[name] = because(
                "collects-garbage-freeze-it", share=share, pause_ns=of["longest_pause"]
            )
    found = [causes[name] for name in sorted(causes, key=lambda name: -of[name])]
    threads = of.get("threads", 0.0)
    if cores and threads > cores:
        most = max(1, int(cores))
        found.append(because("more-threads-than-cores", threads=threads, cores=cores, most=most))
    slow = of.get("clock", 1.0)
    if slow >= _SLOWER:
        found.append(because("slow-test-loop", times=slow))
    others = int(of.get("python_threads", 0.0))
    if others:
        found.append(because("other-python-threads", threads=others))
    if of.get("other_node"):
        found.append(because("gpu-in-another-node"))
    return found


def _is_useless(gain: Figure | None) -> bool:
    """Whether a measured gain is known to be none: its interval ends below one part in fifty."""
    return gain is not None and _high(gain) < 1 + _LEAST_SHARE


def _untold_step(time: Figure) -> Why:
    """Why no verdict can use the time of a step."""
    if speeds := two_speeds(time):
        return because("step-time-has-two-speeds", lower_ns=speeds[0], higher_ns=speeds[1])
    if time.measured is None:
        return time.reason or time.status
    return because("step-time-not-resolved", **value_named("step_ns", time.measured))


def _untold_return(time: Figure) -> Why:
    """Why no verdict can use the time until a step returns."""
    if speeds := two_speeds(time):
        return because("return-time-has-two-speeds", lower_ns=speeds[0], higher_ns=speeds[1])
    if time.measured is None:
        return time.reason or time.status
    return because("return-time-not-resolved", **value_named("step_ns", time.measured))


def check_replay(replayed_ns: float, measured: Figure) -> ReplayCheck:
    """Whether the step as a model rebuilds it from the profile takes as long as the step without
    the profiler.
    """
    replayed = Figure(name="replayed", value=replayed_ns)
    if measured.value is None or measured.value <= 0 or measured.status not in VALUED:
        return ReplayCheck(
            replayed=replayed,
            measured=measured,
            reason=measured.reason or because("no-time-measured"),
        )
    ratio = replayed_ns / measured.value
    ok = abs(ratio - 1) <= WITHIN
    reason = "" if ok else because("replay-takes-another-time", ratio=ratio, allowed=WITHIN)
    return ReplayCheck(replayed=replayed, measured=measured, ratio=ratio, ok=ok, reason=reason)


def bound_of(parts: StepParts) -> tuple[record.BoundKind, float]:
    """What bounds the step, and how many times as long it takes as the next part (or as the step
    without waits).
    """
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
    """What bounds a step. ``contradicted``: what a measured alternative says against the
    profile.
    """

    kind: record.BoundKind
    times: float
    contradicted: Reason | None = None


def _measured_bound(parts: StepParts, gains: Gains) -> _Bound:
    """What bounds the step by its replay, unless a measured alternative contradicts it: then by the
    measurement.
    """
    kind, times = bound_of(parts)
    without_waits = gains.get(UNSYNCHRONISED)
    if without_waits is not None and parts.synchronisation_share >= _LITTLE:
        predicted = parts.step / parts.without_waits
        # An interval that ends before half of the predicted gain holds "no gain" rather than the
        # prediction.
        if _high(without_waits) < (1 + predicted) / 2:
            said = because(
                "synchronisations-do-not-bound", **_gain_named(without_waits), predicted=predicted
            )
            kind, times = bound_of(dataclasses.replace(parts, without_waits=parts.step))
            # If neither host nor device is at work for almost all of the step, something else takes
            # time.
            known = max(parts.host, parts.device) >= (1 - WITHIN) * parts.step
            return _Bound(kind if known else "unclear", times, said)
    graph = gains.get(CUDA_GRAPH)
    if graph is not None and kind == "host" and times >= _APART and _high(graph) < 1 + _LITTLE:
        said = because("host-work-does-not-bound", **_gain_named(graph))
        return _Bound("unclear", times, said)
    if graph is not None and kind == "device" and _low(graph) > _EQUAL:
        return _Bound("mixed", times, because("not-by-the-device-alone", **_gain_named(graph)))
    return _Bound(kind, times)


def judge(
    parts: StepParts,
    check: ReplayCheck,
    operations: Sequence[OperationRow] = (),
    synchronisations: Sequence[record.SynchronisationRow] = (),
    launches: float | None = None,
    gains: Gains = _NO_GAINS,
) -> StepVerdict:
    """The verdict on a profiled step with device work. It is ``unclear`` if the replay fails its
    check.
    """
    share = (
        max(0.0, 1 - parts.device / (check.measured.value or parts.step))
        if parts.step > 0
        else None
    )
    if not check.ok:
        return StepVerdict(kind="unclear", overhead_share=share, sentences=[_not_understood(check)])
    bound = _measured_bound(parts, gains)
    said: list[Why] = [UNCHECKED] if check.unchecked else []
    said += [bound.contradicted] if bound.contradicted else []
    if bound.contradicted and bound.kind in ("unclear", "mixed"):
        said.append(because("takes-host-and-device", host_ns=parts.host, device_ns=parts.device))
    else:
        synchronises = parts.synchronisation_share >= _LITTLE and not bound.contradicted
        said.append(_bound_reason(bound, parts, synchronises=synchronises))
    if share is not None:
        said.append(because("device-is-idle", share=share))
    inside = sum(row.host_ns for row in operations if row.name != BETWEEN)
    if launches and parts.host > parts.device and 2 * inside > parts.host:
        said.append(
            because(
                "host-work-for-each-launch", launches=round(launches), each_ns=inside / launches
            )
        )
    said += most_host_work(operations)
    for row in synchronisations:
        if FROM_PAGEABLE in codes_of(row.what) and row.blocked_ns >= _LEAST_SHARE * parts.step:
            said.append(_upload_reason(row, gains.get(PINNED)))
    if synchronisations and parts.synchronisation_share >= 0.01:
        said.append(_synchronisation_reason(parts, synchronisations, gains.get(UNSYNCHRONISED)))
    known = bound.times if bound.times < math.inf and not bound.contradicted else None
    return StepVerdict(kind=bound.kind, factor=known, overhead_share=share, sentences=said)


def _not_understood(check: ReplayCheck) -> Why:
    """Why there is no verdict if the replay fails its check."""
    measured_ns, replayed_ns = check.measured.value, check.replayed.value or 0.0
    if measured_ns is None:
        return because("no-verdict-without-a-check", why=check.reason)
    apart_ns = abs(measured_ns - replayed_ns)
    return because(
        "no-verdict-of-the-replay",
        replayed_ns=replayed_ns,
        measured_ns=measured_ns,
        apart_ns=apart_ns,
    )


def _upload_reason(row: record.SynchronisationRow, pinned: Figure | None) -> Why:
    """What an upload from pageable memory costs, and what pinned memory was measured to gain."""
    cost = {"count": row.count, "blocked_ns": row.blocked_ns, "line": row.site.line}
    if pinned is not None:
        return because("pageable-uploads-pinned", **cost, **_gain_named(pinned))
    return because("pageable-uploads", **cost)


def _synchronisation_reason(
    parts: StepParts, synchronisations: Sequence[record.SynchronisationRow], without: Figure | None
) -> Why:
    """How many calls wait, what they cost as measured, else by the replay, and which one waits
    longest.
    """
    worst = synchronisations[0]
    number = round(sum(row.count for row in synchronisations))
    longest = {
        "number": number,
        "what": worst.what,
        "longest_ns": worst.blocked_ns,
        "line": worst.site.line,
    }
    if without is not None:
        return because("synchronisations-measured", **longest, **_gain_named(without))
    return because("synchronisations-replayed", **longest, share=parts.synchronisation_share)


def _bound_reason(bound: _Bound, parts: StepParts, *, synchronises: bool) -> Why:
    """What bounds the step, with its times. ``times`` is 0 where the next part takes no time."""
    both = {"host_ns": parts.host, "device_ns": parts.device}
    times = bound.times if bound.times < math.inf else 0.0
    if bound.kind == "host":
        return because("host-bound", **both, times=times)
    if bound.kind == "device":
        return because("device-bound", **both, times=times)
    if bound.kind == "synchronisation":
        return because(
            "bound-by-synchronisation",
            step_ns=parts.step,
            without_waits_ns=parts.without_waits,
            times=times,
        )
    if not synchronises:
        return because("mixed", **both)
    share = parts.synchronisation_share
    if parts.host > parts.device:
        return because("mixed-without-synchronisations-host", **both, share=share)
    return because("mixed-without-synchronisations-device", **both, share=share)


def _between(operations: Sequence[OperationRow]) -> float | None:
    """The share of the host's time between the operations of the library; None without host
    work.
    """
    whole = sum(row.host_ns for row in operations)
    return (
        sum(row.host_ns for row in operations if row.name == BETWEEN) / whole if whole > 0 else None
    )


def most_host_work(operations: Sequence[OperationRow]) -> list[Why]:
    """Which operation takes most of the host's time, and that of a data loader; nothing if it is
    little.
    """
    first = next((row for row in operations if row.name != BETWEEN), None)
    whole = sum(row.host_ns for row in operations)
    found: list[Why] = []
    if first is not None and first.host_ns >= _LITTLE * whole > 0:
        values = {"line": first.site.line, "host_ns": first.host_ns, "calls": round(first.count)}
        found.append(because("most-host-time", name=first.name, **values))
    loading = sum(row.host_ns for row in operations if row.name.startswith(LOADER))
    if loading >= _LITTLE * whole > 0:
        found.append(because("data-loader", share=loading / whole))
    return found


def own_python(found: record.Explanation) -> list[Why]:
    """How much of the host's work is outside the library's operations, and whether it is the
    program's own Python.
    """
    share, whole = _between(found.operations), sum(row.host_ns for row in found.operations)
    if share is None or not _LITTLE <= share < 1 or not found.replay.ok:
        return []
    own = next((figure.value or 0.0 for figure in found.host if figure.name == "own_python"), 0.0)
    own_ns = min(share * whole, own * (found.replay.measured.value or 0.0))
    if 2 * own_ns >= share * whole:
        return [because("own-python", own_ns=own_ns, whole_ns=whole)]
    outside_ns = share * whole
    if found.program.library == "none":  # a trace: nobody knows what its program is made of
        return [because("outside-of-what-the-trace-names", outside_ns=outside_ns, whole_ns=whole)]
    return [because("between-the-operations", outside_ns=outside_ns, whole_ns=whole)]


def judge_processor(
    wall: Figure, check: ReplayCheck, operations: Sequence[OperationRow]
) -> StepVerdict:
    """The verdict on a profiled step without device work: the processor does everything."""
    first = because("no-device-takes-part")
    if resolved_times(wall):
        first = because("no-device-takes-part-in-a-time", **_time_named("wall_ns", wall))
    if not check.ok and check.reason:
        why = because("no-verdict-of-the-profile", why=check.reason)
        return StepVerdict(kind="unclear", sentences=[why, first])
    said = [first, because("kernels-inside-operations"), *most_host_work(operations)]
    return StepVerdict(kind="host", overhead_share=_between(operations), sentences=said)


def judge_times(
    wall: Figure, issue: Figure, *, synchronous: bool, on_device: bool, other_threads: float = 0.0
) -> StepVerdict:
    """The verdict on a step without a profile, from its two times: until it returns, and until its
    work is done.

    ``other_threads``: for which share of the time other threads of the process ran.
    """
    if synchronous and resolved_times(wall):
        took = _time_named("wall_ns", wall)
        if other_threads < _OTHER_THREADS:
            return StepVerdict(
                kind="host", sentences=[because("all-in-the-calling-thread", **took)]
            )
        unproved = because("other-threads-ran", share=other_threads)
        return StepVerdict(
            kind="host", sentences=[because("in-the-calling-thread", **took), unproved]
        )
    if len(resolved_times(wall)) != 1 or len(resolved_times(issue)) != 1:
        untold = _untold_return(issue) if len(resolved_times(wall)) == 1 else _untold_step(wall)
        return StepVerdict(kind="unclear", sentences=[because("no-verdict", why=untold)])
    (ready,), (returned,) = resolved_times(wall), resolved_times(issue)
    share = returned / ready
    both = {**_time_named("issue_ns", issue), **_time_named("wall_ns", wall)}
    if share >= _BLOCKING:
        unclear = because("host-or-synchronisation", **both)
        return StepVerdict(
            kind="unclear", sentences=[unclear, because("host-and-waits-are-not-told-apart")]
        )
    bound = (
        because("device-bound-by-times", **both)
        if on_device
        else because("bound-by-work-beside", **both)
    )
    said: list[Why] = [bound, because("faster-calls-do-not-help")]
    return StepVerdict(kind="device", factor=1 / share if share > 0 else None, sentences=said)
