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
from overhead.explaining.predictions import LEAST_SAVED, PredictedStep, worth_naming
from overhead.explaining.record import BETWEEN, OperationRow, ReplayCheck, StepVerdict
from overhead.explaining.replay import StepParts
from overhead.reading.precision import two_speeds
from overhead.results import VALUED, Figure, Reason, Value, Why, because, codes_of, together
from overhead.traces.marks import LOADER

WITHIN = 0.15
"""How far the replayed step may lie from the measured one, as a share of the measured one.

In reports/explained.json the replay takes 0.91 to 1.04 of the measured step in the 22 runs whose
streams do not wait for each other, and 0.50 in the two runs of ``two_streams``, which it does not
model. A wider allowance lets a replay judge that does not describe the step.
"""
BOUND_BY_WAITS, _FEW_WAITS = 1 / 3, 0.1
"""Shares of the step that synchronisations cost. From the first one on they bound the step, below
the second one they count for nothing. Chosen, not measured; between the two a step is ``mixed``.
"""
_LITTLE = 0.1
"""A share of the host's work, or a gain, below this is too little to name. Chosen, not measured."""
_EQUAL = 1.15
"""Host and device bound a step together up to this factor between their times. Chosen, not
measured: as wide as ``WITHIN``, the error that the check of a replay allows.
"""
_BLOCKING = 0.9
"""If a step takes at least this share of its time until it returns, it returns only when its work
is almost done. Chosen, not measured; a lower share calls steps bound by the device less often.
"""
_LEAST_SHARE = 0.02
"""A cause on the host is named from this share of the time on. Chosen between the runs in
reports/explained.json: the thread waited for a processor for at most 0.13 % of the time on an
idle host, and for up to 28 % beside busy processes.
"""
_SLOWER = 1.12
"""The processor's clock is named if the reference loop takes this many times its best time. Chosen,
not measured; the 12 runs on an idle host in reports/explained.json lie below 1.07 or above 1.48.
"""
_OTHER_THREADS = 0.001
"""Other threads of the process count from this share of the time on. A thread that sleeps for 1 ms
at a time, in turn, ran for 0.6 % of it on a busy host with two cores; where steps hand nothing to a
thread it was below 0.01 %.
"""
UNCHECKED = because("replay-unchecked")
_SPAN = 2
"""A time is not resolved if the upper end of its interval is at least this many times the lower
end. Chosen, not measured: docs/explain.md calls such a time too uncertain.
"""
_APART = 1.3
"""The first lines name a gain of this factor or more, and an unpinned time that is as far from the
undisturbed one. Chosen, not measured; ``overhead time`` names the latter from the same factor on.
"""
LEAST_IDLE = 0.005
"""A smaller share would be said as 0 %."""
_FEWEST_LAUNCHES = 10
"""The cost of a launch is named from so many on: of fewer, the operations around them tell more.
Chosen, not measured.
"""
_MOST_GAINS = 3
_MOST_WAITS = 3
"""A verdict names at most so many calls that wait."""
_LEAST_SYNCHRONISED = 0.01
"""Synchronisations are counted in words from this share of the step on. Chosen, not measured."""
Gains = Mapping[str, Figure]
"""By the name of an alternative, or the code of a condition: its measured gain, with an
interval.
"""
_NO_GAINS: Gains = {}


def resolved_times(time: Figure) -> Sequence[float]:
    """The time of a figure as numbers that a verdict may use, ns; the time is called resolved then.

    One number as a rule. Two for a time with two speeds: its samples form two groups with different
    times. No number if the figure has no value or its interval is too wide.
    """
    speeds = two_speeds(time)  # the lower one first
    if speeds:
        return speeds if speeds[0] > 0 else ()

    # ``resolved``: the value and its whole interval lie above zero. An interval is too wide if its
    # ends are a factor of ``_SPAN`` (2) or more apart.
    measured = time.measured
    if measured is None or not measured.resolved:
        return ()
    # ``floor``: the lower end of the interval.
    if measured.high is not None and measured.high >= _SPAN * measured.floor:
        return ()
    return [measured.value]


def _time_named(name: str, time: Figure) -> dict[str, float]:
    """A time that is resolved, as keyword arguments of a reason; of a time with two speeds both."""
    times = resolved_times(time)
    if len(times) > 1:
        return {name: times[0], f"{name}_other": times[1]}
    return time.measured.named(name) if time.measured else {}


def _gain_named(gain: Figure) -> dict[str, float]:
    """A gain and its interval, as keyword arguments of a reason."""
    return gain.measured.named("gain") if gain.measured else {}


def gains_of(alternatives: Sequence[record.Alternative]) -> Gains:
    """The gains that are known well enough to base a verdict on, by the name of the alternative or
    the code of the condition. A gain is how many times as fast the step was with it.
    """
    gains = {}
    for alternative in alternatives:
        if not _has_gain(alternative):
            continue
        condition = alternative.condition
        name = condition.code if condition is not None else alternative.name
        gains[name] = alternative.gain
    return gains


def _has_gain(alternative: record.Alternative) -> bool:
    """Whether the gain of an alternative is known well enough to base a sentence on it."""
    gain = alternative.gain.measured
    if alternative.status != "ok" or gain is None:
        return False
    return gain.bounded and gain.floor > 0 and bool(resolved_times(alternative.step))


def _itself(reason: Why) -> Hashable:
    return reason


def verdict_reasons(
    explanation: record.Explanation, known_by: Callable[[Why], Hashable] = _itself
) -> list[Why]:
    """All that is said of the step, the most important first, as reasons of which sentences are
    made. If its time is not known well enough for a verdict (``unresolved``), that comes first,
    then why.

    ``explanation`` may hold this result already, as one that was read from a file does: its
    sentences are put in order again, and none is said twice. ``known_by``: gives the same for two
    reasons that say the same. An older file holds texts in place of reasons; there it is a function
    that makes a reason's sentence.
    """
    # ``wall``: the time of a step until its work is done.
    wall = explanation.step.wall
    no_verdict = explanation.verdict.kind == "unclear"
    # ``measured``: its value with the interval, None without a value.
    unresolved = bool(wall.measured) and not resolved_times(wall)

    # Causes on the host come last, except where they explain why there is no verdict.
    causes = _host_causes_of(explanation, unresolved=unresolved)
    causes_first = causes if unresolved or no_verdict else []
    gains = _large_gains(explanation.alternatives)
    known_instead = _known_of_unresolved_time(explanation) if unresolved else ""
    lead = _first_reasons(explanation, unresolved=unresolved)

    # What the verdict has that is not said above it.
    placed = {known_by(reason) for reason in [*lead, *gains, known_instead, *causes_first]}
    rest = [reason for reason in explanation.verdict.sentences if known_by(reason) not in placed]
    if not unresolved or no_verdict:
        # The first sentence of a verdict says what bounds the step, or why that is not known. If
        # the time is not resolved, that has been said, and what is known instead comes next.
        lead += rest[:1]
        rest = rest[1:]

    ordered = [
        *lead,
        known_instead,
        *causes_first,
        *gains,
        *rest,
        *own_python(explanation),
        *causes,
    ]
    once: dict[Hashable, Why] = {}
    for reason in ordered:
        if reason:
            once.setdefault(known_by(reason), reason)
    return list(once.values())


def _host_causes_of(explanation: record.Explanation, *, unresolved: bool) -> list[Why]:
    """What on the host makes the steps long or uneven, such as waits for a CPU core. If they are
    uneven and no cause was found, it says that. ``unresolved``: the time of the step varies too
    much for a verdict.
    """
    shares = {figure.name: figure.value for figure in explanation.host if figure.value is not None}
    causes = host_causes(shares, gains_of(explanation.alternatives))
    # The usual cause of a replay that takes another time than the step is a busy machine.
    replay_fails = explanation.replay.ratio is not None and not explanation.replay.ok
    uneven = unresolved or replay_fails
    if uneven and explanation.host and not causes:
        return [because("no-cause-on-the-host")]
    return causes


def _first_reasons(explanation: record.Explanation, *, unresolved: bool) -> list[Why]:
    """What is said before the verdict itself: what is known without one, and that the time of the
    step is not the one to plan with. ``unresolved``: the time varies too much for a verdict.
    """
    no_verdict = explanation.verdict.kind == "unclear"
    lead: list[Why] = _known_without_verdict(explanation) if no_verdict else []
    # Where there is no verdict, the verdict's own sentence says why.
    if unresolved and not no_verdict:
        lead.append(because("untold-time", why=_untold_step(explanation.step.wall)))
        return lead

    # The main time leaves out slow steps and is pinned to a CPU core. One warning is enough, if it
    # is far from what a program will see: the one that tells most.
    warning = _slow_steps(explanation) or _unpinned_apart(explanation) or _disturbed(explanation)
    if warning:
        lead.append(warning)
    return lead


def _known_without_verdict(explanation: record.Explanation) -> list[Why]:
    """What is known of a step although there is no verdict, because its replay does not take as
    long as the step: for which share of the step the device works, and which calls wait for it.
    """
    wall = explanation.step.wall.measured
    busy = explanation.step.busy.measured
    # It needs a replay that failed its check, and both times for the share.
    if explanation.replay.ok or explanation.replay.ratio is None or wall is None or busy is None:
        return []

    reasons: list[Why] = []
    # A step with two speeds has two times: the share of neither is told.
    has_one_time = len(resolved_times(explanation.step.wall)) == 1
    if has_one_time and 0 < busy.value <= wall.value:
        # The ends of the share follow from those of the step, which varies more.
        share = Value(busy.value / wall.value, busy.value / wall.ceiling, busy.value / wall.floor)
        times = {"busy_ns": busy.value, **wall.named("wall_ns")}
        shares = share.named("share")
        reasons.append(because("device-works-in-the-step", **times, **shares))
    if explanation.synchronisations:
        reasons.append(_calls_that_wait(explanation.synchronisations))
    return reasons


def _calls_that_wait(waits: Sequence[record.SynchronisationRow]) -> Why:
    """How many calls of a step wait for the device, and the lines of the first few."""
    named = []
    for row in waits[:_MOST_WAITS]:
        if row.site.line:
            named.append(because("waits-at-line", line=row.site.line, what=row.what))
        else:  # a trace has no lines
            named.append(because("waits-at-no-line", what=row.what))
    # At least 1, since a call that only some steps make may be less than half a call a step.
    number = max(1, round(sum(row.count for row in waits)))
    return because("calls-that-wait", number=number, lines=together(*named))


def _large_gains(alternatives: Sequence[record.Alternative]) -> list[Why]:
    """A reason for each alternative that makes the step 1.3 times as fast or faster, a few at most;
    the surest first, whose interval begins highest. One whose interval holds 1 is left out: its
    gain may be none.
    """
    large = []
    # ``_low``: the lower end of the interval; above 1 the step is surely faster.
    for alternative in alternatives:
        gain = alternative.gain
        # ``_has_gain``: it was measured, with both ends of its interval, and the time of the step
        # is known well enough.
        if _has_gain(alternative) and (gain.value or 0) >= _APART and _low(gain) > 1:
            large.append(alternative)
    surest_first = sorted(large, key=lambda alternative: -_low(alternative.gain))
    return [_large_gain(alternative) for alternative in surest_first[:_MOST_GAINS]]


def _large_gain(alternative: record.Alternative) -> Why:
    """The reason that names the large gain of an alternative: as measured, as a bound (more than a
    correct program can gain), or as a prediction.
    """
    name = alternative.called
    gain = _gain_named(alternative.gain)
    if alternative.kind == "bound":
        return because("large-gain-is-a-bound", name=name, **gain)
    if alternative.kind == "prediction":
        return because("large-gain-is-predicted", name=name, **gain)
    return because("large-gain", name=name, results=alternative.agreement, **gain)


def _low(figure: Figure) -> float:
    return -math.inf if figure.low is None else figure.low


def _high(figure: Figure) -> float:
    return math.inf if figure.high is None else figure.high


def _unpinned_apart(explanation: record.Explanation) -> Why:
    """A warning, if the unpinned time of a step, as the operating system runs it on any CPU core,
    is far from the undisturbed one on a fixed core; else ''. The unpinned time is the one to plan
    with then.
    """
    unpinned = explanation.step.met.measured
    times = resolved_times(explanation.step.wall)
    # A step with two speeds has two times: neither is the one to compare with.
    if unpinned is None or len(times) != 1 or unpinned.value <= 0:
        return ""
    # More than ``_APART`` times (1.3) as long, or as short, is far. ``met``: the unpinned time.
    ratio = unpinned.value / times[0]
    if 1 / _APART <= ratio <= _APART:
        return ""
    return because(
        "step-as-it-runs-is-apart",
        **unpinned.named("met_ns"),
        processes=explanation.step.met.processes,
        times=ratio,
        wall_ns=times[0],
    )


def _slow_steps(explanation: record.Explanation) -> Why:
    """A warning, if some steps take much longer than most through their own work, such as one step
    of 300 ms among 1,000; else ''. The mean of all steps shows them.

    The undisturbed time leaves such steps out, and the slope of few unpinned steps may not resolve
    them.
    """
    # ``everything``: the mean of all samples, in which nothing is left out.
    mean = explanation.step.everything.measured
    times = resolved_times(explanation.step.wall)
    # A step with two speeds has two times: neither is the one to compare with.
    if mean is None or len(times) != 1:
        return ""
    # Other programs stretch the mean by the time in which the thread waits for its processor
    # (``queued``), and the CPU limit of a container by that in which it is stopped (``throttled``).
    # That is no slow step.
    shares = {figure.name: figure.value or 0.0 for figure in explanation.host}
    stopped_share = shares.get("queued", 0.0) + shares.get("throttled", 0.0)
    running_ns = mean.value * max(0.0, 1 - stopped_share)
    if running_ns < _APART * times[0]:
        return ""
    return because("slow-steps", **_mean_named(mean, times[0]))


def _mean_named(mean: Value, wall_ns: float) -> dict[str, float]:
    """The mean of all steps and the undisturbed time, as keyword arguments of a reason."""
    return {**mean.named("mean_ns"), "times": mean.value / wall_ns, "wall_ns": wall_ns}


def _disturbed(explanation: record.Explanation) -> Why:
    """A warning, if the mean of all steps is far from the undisturbed time, or no unpinned time is
    known; else ''.

    It is asked for after ``_slow_steps``: if that did not say so, the thread waited for its
    processor so long that slow steps cannot be told from a disturbance.
    """
    # ``everything``: the mean of all samples; ``wall``: the undisturbed time; ``met``: the unpinned
    # one.
    mean = explanation.step.everything.measured
    times = resolved_times(explanation.step.wall)
    # A step with two speeds has two times: neither is the one to compare with.
    if len(times) != 1:
        return ""
    if mean is not None and mean.value >= _APART * times[0]:
        return because("mean-is-apart", **_mean_named(mean, times[0]))
    if explanation.step.met.status == "below-resolution":
        return because("step-as-it-runs-not-resolved")
    return ""


def _known_of_unresolved_time(explanation: record.Explanation) -> Why:
    """What is known of the time of a step whose main time has too wide an interval. The main time
    is that on a fixed CPU core. First choice: the unpinned time, on the cores that the operating
    system chooses. Second: the time that was measured beside the profile. '' if neither is known.
    """
    unpinned = explanation.step.met.measured
    if unpinned is not None:
        processes = explanation.step.met.processes
        return because("step-as-it-runs", **unpinned.named("met_ns"), processes=processes)
    # The time that the replay was compared with.
    checked_with = explanation.replay.measured
    if not resolved_times(checked_with):
        return ""
    step = _time_named("step_ns", checked_with)
    return because("step-measured-so", how=checked_with.rule, **step)


def host_causes(shares: Mapping[str, float], gains: Gains = _NO_GAINS) -> list[Why]:
    """What on the host makes steps long or uneven, and what to do. ``shares``: what the host did
    while the step ran for a second, by name: shares of the time, and some numbers.

    ``gains``: of the conditions that were measured; one that gains nothing is not recommended.
    """
    # First what takes a share of the time, then what may slow a step down.
    causes = _causes_that_take_time(shares, gains)
    # ``cores``: how many CPU cores the process may use.
    cores = shares.get("cores", 0.0)
    threads = shares.get("threads", 0.0)  # that the library uses for an operation
    if cores and threads > cores:
        most = max(1, int(cores))
        causes.append(because("more-threads-than-cores", threads=threads, cores=cores, most=most))
    # A fixed piece of work took so many times its best time: the clock of the CPU changes.
    reference_loop_times = shares.get("clock", 1.0)
    # It is named from 1.12 times on.
    if reference_loop_times >= _SLOWER:
        causes.append(because("slow-test-loop", times=reference_loop_times))
    busy_threads = int(shares.get("python_threads", 0.0))
    if busy_threads:
        causes.append(because("other-python-threads", threads=busy_threads))
    # The GPU hangs on another NUMA node than the core of the thread.
    if shares.get("other_node"):
        causes.append(because("gpu-in-another-node"))
    return causes


def _causes_that_take_time(shares: Mapping[str, float], gains: Gains) -> list[Why]:
    """The causes that take a share of the step's time, the largest share first: waits for a CPU
    core, stops by the CPU limit of the container, and garbage collection. Small shares are left
    out.
    """
    queued = shares.get("queued", 0.0)  # the thread waits for a core
    throttled = shares.get("throttled", 0.0)  # the CPU limit stops it
    collector = shares.get("collector", 0.0)  # garbage is collected
    causes: list[tuple[float, Why]] = []
    # Of equal shares the first in this order is named first. A cause is named from 2 % of the time
    # on.
    if queued >= _LEAST_SHARE:
        preemptions = shares.get("preemptions", 0.0)
        waits = because("waits-for-a-processor", share=queued, preemptions=preemptions)
        causes.append((queued, waits))
    if throttled >= _LEAST_SHARE:
        cores = shares.get("cores", 0.0)
        causes.append(
            (throttled, because("stopped-by-the-cpu-limit", share=throttled, cores=cores))
        )
    if collector >= _LEAST_SHARE:
        values = {"share": collector, "pause_ns": shares.get("longest_pause", 0.0)}
        # The advice to freeze garbage is left out if the step without collection was no faster.
        collects = because("collects-garbage-freeze-it", **values)
        # Useless: the interval of the measured gain ends below 1.02.
        if _is_useless(gains.get(WITHOUT_COLLECTION.code)):
            collects = because("collects-garbage", **values)
        causes.append((collector, collects))
    causes.sort(key=lambda cause: -cause[0])
    return [reason for _, reason in causes]


def _is_useless(gain: Figure | None) -> bool:
    """Whether a measured gain is known to be none: its interval ends below one part in fifty."""
    return gain is not None and _high(gain) < 1 + _LEAST_SHARE


def _untold_step(time: Figure) -> Why:
    """Why no verdict can use the time of a step: it has two speeds, no value, or an interval that
    is too wide.
    """
    speeds = two_speeds(time)
    if speeds:
        return because("step-time-has-two-speeds", lower_ns=speeds[0], higher_ns=speeds[1])
    if time.measured is None:
        # A figure without a value has a reason, or else only its status.
        return time.reason or time.status
    return because("step-time-not-resolved", **time.measured.named("step_ns"))


def _untold_return(time: Figure) -> Why:
    """Why no verdict can use the time until a step returns: it has two speeds, no value, or an
    interval that is too wide.
    """
    speeds = two_speeds(time)
    if speeds:
        return because("return-time-has-two-speeds", lower_ns=speeds[0], higher_ns=speeds[1])
    if time.measured is None:
        # A figure without a value has a reason, or else only its status.
        return time.reason or time.status
    # The sentence calls the value of any time so, though this is the time until the step returns.
    return because("return-time-not-resolved", **time.measured.named("step_ns"))


def check_replay(replayed_ns: float, measured: Figure) -> ReplayCheck:
    """Whether the step as a model rebuilds it from the profile takes as long as the step without
    the profiler. If not, the profile does not explain the step, and nothing is concluded from it.
    """
    replayed = Figure(name="replayed", value=replayed_ns)
    # Without a time to compare with, the check fails. ``VALUED``: the statuses of figures that have
    # a value.
    if measured.value is None or measured.value <= 0 or measured.status not in VALUED:
        why = measured.reason or because("no-time-measured")
        return ReplayCheck(replayed=replayed, measured=measured, reason=why)
    # ``ok``: the two are no more than 15 % apart.
    ratio = replayed_ns / measured.value
    ok = abs(ratio - 1) <= WITHIN
    reason = "" if ok else because("replay-takes-another-time", ratio=ratio, allowed=WITHIN)
    return ReplayCheck(replayed=replayed, measured=measured, ratio=ratio, ok=ok, reason=reason)


def bound_of(parts: StepParts) -> tuple[record.BoundKind, float]:
    """What bounds a replayed step: the host, the device, or synchronisations (calls that wait for
    the device); and by which factor.

    The factor is the longer of the times of host and device over the shorter one. Where
    synchronisations count, it is the step over the step without them.
    """
    # ``synchronisation_share``: 1 less the step without synchronisations over the step. Between the
    # two limits they cost too much to leave out, and too little to be all. The limits are a tenth
    # of the step (``_FEW_WAITS``) and a third of it (``BOUND_BY_WAITS``).
    if parts.synchronisation_share >= _FEW_WAITS:
        gain_without_waits = parts.step / parts.without_waits
        if parts.synchronisation_share >= BOUND_BY_WAITS:
            return "synchronisation", gain_without_waits
        return "mixed", gain_without_waits

    longer_ns = max(parts.host, parts.device)
    shorter_ns = min(parts.host, parts.device)
    ratio = longer_ns / shorter_ns if shorter_ns > 0 else math.inf
    # Up to 1.15, the error that the check of a replay allows, both bound it.
    if ratio < _EQUAL:
        return "mixed", ratio
    if parts.host > parts.device:
        return "host", ratio
    return "device", ratio


@dataclass(frozen=True)
class _Bound:
    """What bounds a step, such as the host, and how many times as long that takes as the next part
    (``times``). ``contradicted``: why the measured time of an alternative says something else than
    the replay, or None.
    """

    kind: record.BoundKind
    times: float
    contradicted: Reason | None = None


def _measured_bound(parts: StepParts, gains: Gains) -> _Bound:
    """What bounds the step by its replay (``parts``), unless the measured gain of an alternative
    contradicts it: then by the measurement. Two alternatives test it: the step without its waits
    for the device, and the step as a CUDA graph. A gain is how many times as fast the step is then.
    """
    without_waits = gains.get(UNSYNCHRONISED)
    if without_waits is not None and parts.synchronisation_share >= _FEW_WAITS:
        predicted = parts.step / parts.without_waits
        # If even the upper end of the measured gain is nearer to 1, no gain, than to the predicted
        # gain, the replay overrates the waits.
        if _high(without_waits) < (1 + predicted) / 2:
            return _bound_without_waits(parts, without_waits)

    # Nothing contradicts the replay on the waits. Now the graph.
    kind, times = bound_of(parts)
    graph = gains.get(CUDA_GRAPH)
    if graph is None:
        return _Bound(kind, times)
    # A CUDA graph takes the host's work away. So it gains where the host bounds the step, and
    # nothing where the device does. It contradicts the host only if the device would be done in
    # 1/1.3 of the time, so that there was something to gain, and the graph gains less than a tenth.
    if kind == "host" and times >= _APART and _high(graph) < 1 + _LITTLE:
        contradicted = because("host-work-does-not-bound", **_gain_named(graph))
        return _Bound("unclear", times, contradicted)
    # It contradicts the device if it surely gains more than 15 %.
    if kind == "device" and _low(graph) > _EQUAL:
        contradicted = because("not-by-the-device-alone", **_gain_named(graph))
        return _Bound("mixed", times, contradicted)
    return _Bound(kind, times)


def _bound_without_waits(parts: StepParts, measured_gain: Figure) -> _Bound:
    """What bounds a step whose synchronisations cost much in the replay, but were measured to cost
    little: host or device, whichever works longer. ``measured_gain``: of the step without them.
    """
    contradicted = because(
        "synchronisations-do-not-bound",
        **_gain_named(measured_gain),
        predicted=parts.step / parts.without_waits,
    )
    # Judged as if the synchronisations cost nothing.
    kind, times = bound_of(dataclasses.replace(parts, without_waits=parts.step))
    # If neither host nor device is at work for almost all of the step, something else takes time.
    # Almost all: 85 % of it.
    if max(parts.host, parts.device) < (1 - WITHIN) * parts.step:
        kind = "unclear"
    return _Bound(kind, times, contradicted)


def judge(
    parts: StepParts,
    check: ReplayCheck,
    operations: Sequence[OperationRow] = (),
    synchronisations: Sequence[record.SynchronisationRow] = (),
    launches: float | None = None,
    gains: Gains = _NO_GAINS,
    predicted: Sequence[PredictedStep] = (),
) -> StepVerdict:
    """The verdict on a profiled step with device work: what bounds it, by which factor, and the
    sentences that say so. It is ``unclear`` if the replay, the step as computed from the profile,
    does not take as long as the step (``check``).

    ``parts``: of the replayed step: the times of host and device, and its time without waits.
    ``operations``: the one with most host work first. ``launches``: how many a step has.
    ``gains``: of the alternatives that were measured. ``predicted``: what the replay says of
    changes.
    """
    # The device is idle for what it does not work of the step. The measured time of the step counts
    # where there is one, else the replayed one (``parts.step``).
    idle_share = None
    if parts.step > 0:
        step_ns = check.measured.value or parts.step
        idle_share = max(0.0, 1 - parts.device / step_ns)
    if not check.ok:
        not_understood = _not_understood(check)
        return StepVerdict(kind="unclear", overhead_share=idle_share, sentences=[not_understood])

    # ``bound``: what bounds the step, by the replay, or by an alternative that contradicts it.
    # First the bound, then what would change it, then its causes, then what a reader must know.
    bound = _measured_bound(parts, gains)
    reasons: list[Why] = []
    if bound.contradicted:
        reasons.append(bound.contradicted)
    reasons.append(_bound_reason(bound, parts))
    if not bound.contradicted:
        reasons += _predicted_reasons(bound.kind, predicted, gains)
    if idle_share is not None and idle_share >= LEAST_IDLE:
        reasons.append(because("device-is-idle", share=idle_share))
    # Host work inside of operations that launch; ``BETWEEN`` is the row of the work between them.
    inside_ns = sum(row.host_ns for row in operations if row.name != BETWEEN and row.device_ns > 0)
    # The cost of a launch is named only if launching is most of the work, and it bounds the step.
    is_many = launches is not None and launches >= _FEWEST_LAUNCHES
    if launches and is_many and parts.host > parts.device and 2 * inside_ns > parts.host:
        each_ns = inside_ns / launches
        number = round(launches)
        reasons.append(because("host-work-for-each-launch", launches=number, each_ns=each_ns))
    reasons += most_host_work(operations)
    reasons += _wait_reasons(parts, synchronisations, gains, is_trace=check.unchecked)
    if check.unchecked:
        # It says that the times contain the profiler's cost, and how to check them.
        reasons.append(UNCHECKED)

    # The factor is infinite where the shorter part takes no time, which a file cannot hold; and a
    # contradicted replay gives no factor.
    certain = bound.times < math.inf and not bound.contradicted
    return StepVerdict(
        kind=bound.kind,
        factor=bound.times if certain else None,
        overhead_share=idle_share,
        sentences=reasons,
    )


def _not_understood(check: ReplayCheck) -> Why:
    """Why there is no verdict if the replay fails its check: no step was measured to compare it
    with, or the two times are too far apart.
    """
    measured_ns = check.measured.value
    replayed_ns = check.replayed.value or 0.0
    if measured_ns is None:
        return because("no-verdict-without-a-check", why=check.reason)
    apart_ns = abs(measured_ns - replayed_ns)
    times = {"replayed_ns": replayed_ns, "measured_ns": measured_ns, "apart_ns": apart_ns}
    # Of a trace nothing was measured; its replay is compared with what was recorded.
    if check.unchecked:
        return because("no-verdict-of-the-recording", **times)
    return because("no-verdict-of-the-replay", **times)


def _predicted_reasons(
    kind: record.BoundKind, predicted: Sequence[PredictedStep], gains: Gains
) -> list[Why]:
    """What the replay predicts with all launches in graphs, and with half the host's work. A change
    is named if it saves 2 % of the step or more, and if no measurement tells it better. The cost of
    synchronisations is said with the bound, or by ``_wait_reasons``.

    What synchronisations cost is said with the bound, or by ``_wait_reasons``.
    """
    of_change = {each.change: each for each in predicted}
    half = of_change.get("half-host")
    if kind == "device":
        # Without a prediction the bound alone says it, as host and device work side by side.
        hides = half is None or half.saves < LEAST_SAVED
        return [because("less-host-work-saves-nothing")] if hides else []

    named = []
    for each in worth_naming(predicted):
        if each.change == "graphs" and CUDA_GRAPH not in gains:
            named.append(
                because(
                    "predicted-with-graphs",
                    saves=each.saves,
                    predicted_ns=each.step_ns,
                    runtime=each.runtime,
                )
            )
        elif each.change == "half-host":
            named.append(
                because("predicted-with-half-the-host", saves=each.saves, predicted_ns=each.step_ns)
            )
    reasons: list[Why] = []
    if named:
        reasons.append(because("predicted-gains", each=together(*named)))
    graphs = of_change.get("graphs")
    if kind == "host" and graphs is not None and graphs.saves < LEAST_SAVED:
        reasons.append(
            because(
                "fewer-launches-save-little",
                percent=round(100 * LEAST_SAVED),
                runtime=graphs.runtime,
            )
        )
    return reasons


def _wait_reasons(
    parts: StepParts,
    synchronisations: Sequence[record.SynchronisationRow],
    gains: Gains,
    *,
    is_trace: bool,
) -> list[Why]:
    """What waits for the device cost, if it is enough to name: each upload from pageable memory,
    which waits until earlier work is done, and then all synchronisations together.

    ``is_trace``: nobody measures what pinned memory gains, so it is named only where the replay
    says that the step waits.
    """
    reasons: list[Why] = []
    costs = parts.synchronisation_share >= _LEAST_SHARE or not is_trace
    for row in synchronisations:
        is_upload = FROM_PAGEABLE in codes_of(row.what)
        if is_upload and costs and row.blocked_ns >= _LEAST_SHARE * parts.step:
            reasons.append(_upload_reason(row, gains.get(PINNED)))
    # The gain of a step without waits, if it was measured, tells better than the replay.
    # Synchronisations are named from 1 % of the step on, a single upload from 2 % on.
    if synchronisations and parts.synchronisation_share >= _LEAST_SYNCHRONISED:
        without_waits = gains.get(UNSYNCHRONISED)
        reasons.append(_synchronisation_reason(parts, synchronisations, without_waits))
    return reasons


def _upload_reason(row: record.SynchronisationRow, pinned: Figure | None) -> Why:
    """What an upload from pageable memory costs, and what pinned memory was measured to gain."""
    cost = {"count": row.count, "blocked_ns": row.blocked_ns, "line": row.site.line}
    if pinned is not None:
        return because("pageable-uploads-pinned", **cost, **_gain_named(pinned))
    return because("pageable-uploads", **cost)


def _synchronisation_reason(
    parts: StepParts, synchronisations: Sequence[record.SynchronisationRow], without: Figure | None
) -> Why:
    """How many calls of a step wait, what they cost together, and which one waits longest. The cost
    is the measured gain of the step without them (``without``), else that of the replay.
    """
    longest = synchronisations[0]  # they are in the order of their waits
    values = {
        "number": round(sum(row.count for row in synchronisations)),
        "what": longest.what,
        "longest_ns": longest.blocked_ns,
        "line": longest.site.line,
    }
    if without is not None:
        return because("synchronisations-measured", **values, **_gain_named(without))
    return because(
        "synchronisations-replayed",
        **values,
        calls=max(1, round(longest.count)),
        share=parts.synchronisation_share,
    )


def _bound_reason(bound: _Bound, parts: StepParts) -> Why:
    """The sentence, as a reason, that says what bounds the step, with its times. ``times`` is 0
    where the next part takes no time: a file holds no infinity.
    """
    host_and_device = {"host_ns": parts.host, "device_ns": parts.device}
    # The reason of the contradiction has said what does not bound the step; only the times are
    # left.
    if bound.contradicted and bound.kind in ("unclear", "mixed"):
        return because("takes-host-and-device", **host_and_device)

    times = bound.times if bound.times < math.inf else 0.0
    if bound.kind == "host":
        return because("host-bound", **host_and_device, times=times)
    if bound.kind == "device":
        return because("device-bound", **host_and_device, times=times)
    if bound.kind == "synchronisation":
        return because(
            "bound-by-synchronisation",
            step_ns=parts.step,
            without_waits_ns=parts.without_waits,
            times=times,
        )

    # The kind is "mixed": host and device take as long, or synchronisations cost a part of the
    # step.
    share = parts.synchronisation_share
    if share < _FEW_WAITS:
        return because("mixed", **host_and_device)
    if parts.host > parts.device:
        return because("mixed-without-synchronisations-host", **host_and_device, share=share)
    return because("mixed-without-synchronisations-device", **host_and_device, share=share)


@dataclass(frozen=True)
class _HostSplit:
    """The host's work in a step, ns: all of it, and what is between the operations of the
    library.
    """

    whole_ns: float
    between_ns: float

    @property
    def between_share(self) -> float | None:
        """The share between the operations; None without host work."""
        return self.between_ns / self.whole_ns if self.whole_ns > 0 else None


def _host_split(operations: Sequence[OperationRow]) -> _HostSplit:
    """The host's work of these rows, all together and between operations."""
    whole_ns = sum(row.host_ns for row in operations)
    between_ns = sum(row.host_ns for row in operations if row.name == BETWEEN)
    return _HostSplit(whole_ns, between_ns)


def most_host_work(operations: Sequence[OperationRow]) -> list[Why]:
    """Which operation takes most of the host's time, and the share of data loading; nothing where
    it is less than a tenth. ``operations``: the one with most host work first; ``BETWEEN`` stands
    for the work outside of all operations.
    """
    whole_ns = sum(row.host_ns for row in operations)
    least_ns = _LITTLE * whole_ns
    if least_ns <= 0:
        return []

    reasons: list[Why] = []
    # Operations come in the order of their host work.
    most = next((row for row in operations if row.name != BETWEEN), None)
    if most is not None and most.host_ns >= least_ns:
        reasons.append(
            because(
                "most-host-time",
                name=most.name,
                line=most.site.line,
                host_ns=most.host_ns,
                calls=max(1, round(most.count)),
            )
        )
    # PyTorch names each ``next`` of a DataLoader so.
    loading_ns = sum(row.host_ns for row in operations if row.name.startswith(LOADER))
    if loading_ns >= least_ns:
        reasons.append(because("data-loader", share=loading_ns / whole_ns))
    return reasons


def own_python(explanation: record.Explanation) -> list[Why]:
    """How much of the host's work is outside the library's operations, and whether it is the
    program's own Python. Nothing if it is little, or all there is.
    """
    split = _host_split(explanation.operations)
    share = split.between_share
    # Little is less than a tenth. If the replay fails its check, the times of the host are not
    # right.
    if share is None or not _LITTLE <= share < 1 or not explanation.replay.ok:
        return []

    whole_ns = split.whole_ns
    outside_ns = share * whole_ns
    shares = {figure.name: figure.value or 0.0 for figure in explanation.host}
    step_ns = explanation.replay.measured.value or 0.0
    # Measured apart, so it may come out longer than all work outside.
    own_ns = min(outside_ns, shares.get("own_python", 0.0) * step_ns)
    if 2 * own_ns >= outside_ns:  # most of it
        return [because("own-python", own_ns=own_ns, whole_ns=whole_ns)]
    if explanation.program.library == "none":
        return []  # of a trace, ``host_places`` says where the host's time goes
    return [because("between-the-operations", outside_ns=outside_ns, whole_ns=whole_ns)]


def judge_processor(
    wall: Figure, check: ReplayCheck, operations: Sequence[OperationRow]
) -> StepVerdict:
    """The verdict on a profiled step without device work: the processor does everything, so the
    host bounds it; or unclear, if the profile does not take as long as the step (``check``).
    ``wall``: the time of the step, for the sentence. ``operations``: the one with most work first.
    """
    no_device = because("no-device-takes-part")
    if resolved_times(wall):
        no_device = because("no-device-takes-part-in-a-time", **_time_named("wall_ns", wall))
    if not check.ok and check.reason:
        why = because("no-verdict-of-the-profile", why=check.reason)
        return StepVerdict(kind="unclear", sentences=[why, no_device])

    reasons = [no_device, because("kernels-inside-operations"), *most_host_work(operations)]
    # Of all host work, the share outside of the library's operations: it stands as the overhead of
    # a step without a device.
    between_share = _host_split(operations).between_share
    return StepVerdict(kind="host", overhead_share=between_share, sentences=reasons)


def judge_times(
    wall: Figure, issue: Figure, *, synchronous: bool, on_device: bool, other_threads: float = 0.0
) -> StepVerdict:
    """The verdict on a step without a profile, from its two times: until it returns (``issue``),
    and until its work is done (``wall``).

    ``synchronous``: the step does all its work in the call. ``on_device``: it uses a device, such
    as a GPU. ``other_threads``: for which share of the time other threads of the process ran.
    """
    walls = resolved_times(wall)
    if synchronous and walls:
        return _judge_synchronous(wall, other_threads)

    issues = resolved_times(issue)
    # A time with two speeds, or too wide an interval, gives no share.
    if len(walls) != 1 or len(issues) != 1:
        untold = _untold_return(issue) if len(walls) == 1 else _untold_step(wall)
        return StepVerdict(kind="unclear", sentences=[because("no-verdict", why=untold)])

    returned_share = issues[0] / walls[0]
    times = {**_time_named("issue_ns", issue), **_time_named("wall_ns", wall)}
    # A step that returns when its work is almost done was busy on the host or waited for the
    # device: the two times cannot tell which. One that returns early leaves the device at work.
    # Almost done: nine tenths of it.
    if returned_share >= _BLOCKING:
        unclear = because("host-or-synchronisation", **times)
        not_told_apart = because("host-and-waits-are-not-told-apart")
        return StepVerdict(kind="unclear", sentences=[unclear, not_told_apart])

    # Without a device the work goes on in other threads.
    bound = because("bound-by-work-beside", **times)
    if on_device:
        bound = because("device-bound-by-times", **times)
    reasons: list[Why] = [bound, because("faster-calls-do-not-help")]
    # The device works until ``wall``, the host until the step returns: so many times longer.
    factor = 1 / returned_share if returned_share > 0 else None
    return StepVerdict(kind="device", factor=factor, sentences=reasons)


def _judge_synchronous(wall: Figure, other_threads: float) -> StepVerdict:
    """The verdict on a step that does all its work in the call: the host bounds it. ``wall``: its
    time. ``other_threads``: for which share of the time other threads of the process ran.

    If they ran, nothing proves that all of its work is done when it returns, and a sentence says
    so.
    """
    took = _time_named("wall_ns", wall)
    # Below 0.1 % of the time other threads count as idle.
    if other_threads < _OTHER_THREADS:
        all_in_thread = because("all-in-the-calling-thread", **took)
        return StepVerdict(kind="host", sentences=[all_in_thread])
    unproved = because("other-threads-ran", share=other_threads)
    return StepVerdict(kind="host", sentences=[because("in-the-calling-thread", **took), unproved])
