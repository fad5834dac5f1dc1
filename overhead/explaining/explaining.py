"""``overhead explain``: measure a step as it is, profile it, replay the profile, judge it, and try
alternatives.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import msgspec

from overhead import machine
from overhead.errors import CannotWrite, SaidInOneLine, UsageError, in_words
from overhead.explaining import record
from overhead.explaining.alternatives import ALTERNATIVES, PINNED, UNSYNCHRONISED
from overhead.explaining.attempts import AttemptJob
from overhead.explaining.changes import Changes
from overhead.explaining.conditions import HOST_UNITS, Condition, condition_rows, conditions_s
from overhead.explaining.export import save_replay
from overhead.explaining.host_work import (
    FROM_PAGEABLE,
    NO_STEP,
    gap_rows,
    operation_rows,
    step_counts,
    synchronisation_rows,
)
from overhead.explaining.profiling import StepProfile, measure_conditions, profile_step
from overhead.explaining.record import NOT_MEASURED, NOT_MEASURED_MET, missing, renamed
from overhead.explaining.replay import (
    delays_reason,
    launch_delays,
    recorded_and_replayed_ns,
    step_parts,
)
from overhead.explaining.verdict import (
    Gains,
    check_replay,
    gains_of,
    judge,
    judge_processor,
    judge_times,
    verdict_reasons,
)
from overhead.locks import device_lock
from overhead.results import Figure, Why, because, codes_of
from overhead.runner.progress import Listener
from overhead.timing.steps import CALLING_THE_FUNCTION, StepSource, step_given, step_named
from overhead.timing.timing import CallTiming, Timing, time_statements, untimed
from overhead.timing.waits import NOTHING
from overhead.traces.recording import why_no_verdict
from overhead.traces.trace import Trace, busiest_ns

LONG_START_S = 15.0
"""After so long in the function that is named, a note says what to name. Starting CUDA takes 1 to 5
s. Chosen, not measured; a lower value would add the note to programs that only load slowly.
"""
_SHORTEST_NS = 1000.0
"""A shorter step is one call, for which ``overhead time`` is made. Chosen, not measured."""
_LEAST_WAITS = 0.01
"""The step is tried without synchronisations if they block for at least this share of it. Chosen,
not measured; a lower share spends seconds of the limit on a gain that is too small to tell.
"""
_LEAST_BUSY = 0.9
"""A CUDA graph that takes less than this share of the device work of the step does not contain all
of it. Chosen, not measured; a lower share would pass more graphs that leave work out.
"""
Alternatives = Literal["all", "eager", "none"]


class ExplainInterrupted(SaidInOneLine, KeyboardInterrupt):
    """Ctrl-C or another signal ended ``explain`` after the profile. ``explanation``: what was
    measured until then.
    """

    def __init__(self, explanation: record.Explanation) -> None:
        super().__init__(because("interrupted-explain"))
        self.explanation = explanation

    def __str__(self) -> str:
        return in_words(self.args[0])


def explain(
    step: str | Callable[[], object],
    *,
    arguments: Sequence[str] = (),
    against: str | Callable[[], object] = "",
    alternatives: Alternatives = "all",
    seconds: float = 90.0,
    chrome: Path | None = None,
    listener: Listener | None = None,
) -> record.Explanation:
    """Explain a step, as ``overhead.explain`` does, which describes the arguments.

    The step is profiled first. Then it is timed in turn with its alternatives, then under other
    conditions; all of that must end after ``seconds``. ``chrome``: if there is no step to write,
    ``listener`` gets the reason. Ctrl-C after the profile gives what was measured until then.
    """
    _check(alternatives, seconds)
    listener = listener or Listener()
    source = _source(step, arguments)
    other = _source(against, arguments) if against else None
    _wait_for_other_runs(listener)
    began = time.monotonic()
    with _noting_a_long_start(listener) as doing:
        profile = profile_step(source, doing=doing)
    _refuse_short(profile.found.one_ns)

    measured = _Measured()
    try:
        if chrome is not None:
            _save_replay_or_say_why(chrome, profile, measured, listener)
        changes = _changes_of(source, profile, began + seconds, listener)
        if changes.least_s > changes.time_left_s():
            _note_long_step(profile, changes.least_s, seconds, listener)
        if alternatives == "none":
            measured.timing = changes.time_alone()
        else:
            compiled = alternatives == "all"
            own = other.setup if other else ""
            measured.timing, measured.alternatives = changes.try_all(compiled=compiled, against=own)
            _measure_conditions(measured, source, profile, changes.time_left_s(), listener)
        measured.timing = changes.resolved(measured.timing)
    except KeyboardInterrupt:
        raise ExplainInterrupted(_interrupted(source, profile, measured)) from None
    return measured.explanation(source, profile, measured.timing)


@dataclass
class _Measured:
    """What is measured so far. ``remarks``: what is missing."""

    timing: Timing | None = None
    alternatives: Sequence[record.Alternative] = ()
    conditions: Sequence[Condition] = ()
    remarks: list[Why] = field(default_factory=list)

    def explanation(
        self, source: StepSource, profile: StepProfile, timing: Timing
    ) -> record.Explanation:
        """The explanation of what is measured so far, with the remarks on what is missing."""
        explained = explanation(source, profile, timing, self.alternatives, self.conditions)
        return msgspec.structs.replace(explained, not_seen=[*explained.not_seen, *self.remarks])


def _refuse_short(step_ns: float) -> None:
    """Raise ``UsageError`` for a step that is too short to be explained."""
    if step_ns < _SHORTEST_NS:
        raise UsageError(
            f"a step takes {step_ns:.0f} ns, too short to explain: measure it with"
            " overhead time, or repeat its work inside the step"
        )


def _changes_of(
    source: StepSource, profile: StepProfile, end: float, listener: Listener
) -> Changes:
    """The alternatives to a profiled step, to be tried until ``end``, in seconds of
    ``time.monotonic``.
    """
    job = AttemptJob(setup=source.setup, path=source.path)
    leave_out = _left_out(profile)
    changes = Changes(job, profile.found, listener, timed=time_statements, leave_out=leave_out)
    changes.ends = end
    changes.loading_s = profile.loading_s
    changes.conditions_s = _conditions_with_loading_s(profile)
    return changes


def _conditions_with_loading_s(profile: StepProfile) -> float:
    """About how long the step under all conditions takes, in a process that loads it first, s."""
    return profile.loading_s + conditions_s(profile.found.one_ns / 1e9)


def _note_long_step(
    profile: StepProfile, least_s: float, seconds: float, listener: Listener
) -> None:
    """Say that the step takes so long that the limit of ``seconds`` will be passed."""
    step_s = profile.found.one_ns / 1e9
    minutes = math.ceil(least_s / 60)
    listener.note(because("step-takes-long", step_s=step_s, minutes=minutes, seconds=seconds))


def _check(alternatives: str, seconds: float) -> None:
    """Raise ``UsageError`` for options that are not among those there are."""
    known = get_args(Alternatives)
    if alternatives not in known:
        raise UsageError(f"alternatives={alternatives!r:.50}: one of {', '.join(map(repr, known))}")
    if not 0 < seconds < math.inf:
        raise UsageError(f"seconds={seconds!r:.50}: a number of seconds above zero")


def _wait_for_other_runs(listener: Listener) -> None:
    """Wait until no other run measures on this machine; say that, and how long it took.

    The clock of ``--seconds`` starts afterwards. Each process that measures takes the lock again.
    """
    waited_s: float | None = None

    def waiting(seconds: float) -> None:
        nonlocal waited_s
        waited_s = seconds
        listener.waiting(seconds)

    with device_lock(waiting):
        pass
    if waited_s is not None:
        listener.note(because("waited-for-another-run", seconds=waited_s))


@contextlib.contextmanager
def _noting_a_long_start(listener: Listener) -> Iterator[Callable[[Why], None]]:
    """A ``with`` block that gives what receives the next step of a child, and notes that a first
    call takes long.

    The function that is named often runs a whole program, and only its end tells how long it takes.
    To import its file may take long too, which says nothing of the function.
    """
    timer = threading.Timer(
        LONG_START_S, listener.note, [because("start-takes-long", seconds=LONG_START_S)]
    )
    timer.daemon = True
    is_called = False

    def doing(what: Why) -> None:
        """Hand on what is done next; the note waits for the call of the function that is named."""
        nonlocal is_called
        if is_called:  # the function has returned
            timer.cancel()
        elif what == CALLING_THE_FUNCTION:
            is_called = True
            timer.start()
        listener.working(what)

    try:
        yield doing
    finally:
        timer.cancel()


def _save_replay_or_say_why(
    path: Path, profile: StepProfile, measured: _Measured, listener: Listener
) -> None:
    """Write the replayed step. If that is not possible, say why and go on: what was measured is
    worth more than this file.
    """
    why = _save_replay(path, profile)
    if why:
        measured.remarks.append(because("no-replay", why=why))
        listener.note(because("no-replay-to-this-file", file=path, why=why))


def _save_replay(path: Path, profile: StepProfile) -> Why:
    """Write the replayed step; why there is none, or ''."""
    if profile.trace is None or not profile.trace.has_device:
        return profile.reason or because("no-work-on-a-device")
    try:
        save_replay(Path(path), profile.trace.quiet(), profile.host)
    except CannotWrite as error:
        why: Why = error.why
        return why
    return ""


def _measure_conditions(
    measured: _Measured, source: StepSource, profile: StepProfile, left_s: float, listener: Listener
) -> None:
    """Add the step under other conditions, if there is time; else say why they are missing."""
    if left_s < _conditions_with_loading_s(profile):
        measured.remarks.append(because("no-time-for-conditions"))
        return
    threads = int(profile.shares.get("python_threads", 0.0))
    try:
        measured.conditions = measure_conditions(source, threads, doing=listener.working)
    except UsageError as error:
        measured.remarks.append(because("conditions-failed", error=error.why))


def _interrupted(
    source: StepSource, profile: StepProfile, measured: _Measured
) -> record.Explanation:
    """The explanation from what was measured until an interrupt."""
    if measured.timing is not None:
        measured.remarks.append(because("interrupted-later"))
        return measured.explanation(source, profile, measured.timing)
    measured.remarks.append(because("interrupted"))
    call = untimed(profile.found, because("interrupted-before"), [])
    versions = machine.versions(sorted(set(profile.found.packages)))
    timing = Timing(
        created="", setup=source.setup, machine=machine.identity(), versions=versions, calls=[call]
    )
    return measured.explanation(source, profile, timing)


def _left_out(profile: StepProfile) -> Collection[str]:
    """The names of alternatives that do not apply: the step uses another library, or does not
    upload or wait.
    """
    if profile.library not in ("torch", "none"):
        return ALTERNATIVES
    if profile.trace is None:
        return [PINNED]
    left_out = []
    waits = synchronisation_rows(profile.trace)
    if not any(FROM_PAGEABLE in codes_of(row.what) for row in waits):
        left_out.append(PINNED)
    if sum(row.blocked_ns for row in waits) < _LEAST_WAITS * profile.step_ns:
        left_out.append(UNSYNCHRONISED)
    return left_out


def _source(step: str | Callable[[], object], arguments: Sequence[str]) -> StepSource:
    """Where a step comes from, that is named or given as a function. Raises ``UsageError``."""
    if isinstance(step, str):
        return step_named(step, arguments)
    if arguments:
        raise UsageError("arguments are for a step that is named; give a function that needs none")
    return step_given(step)


def explanation(
    source: StepSource,
    profile: StepProfile,
    timing: Timing,
    alternatives: Sequence[record.Alternative] = (),
    conditions: Sequence[Condition] = (),
) -> record.Explanation:
    """The explanation from the profile of a step and its times. Pure, except for the time of
    day.
    """
    call = timing.calls[0]
    step = _step_timing(call, profile)
    trace = profile.trace or Trace(())
    operations = operation_rows(trace.quiet(), profile.host)
    synchronisations = synchronisation_rows(trace)
    counts = step_counts(trace, profile.reason or NO_STEP)

    tried = []
    for alternative in alternatives:
        checked = _checked_for_work(alternative, step.busy)
        tried.append(_with_forbidden_wait(checked, synchronisations))
    tried += condition_rows(conditions)

    check, verdict = _judged(profile, step, counts, operations, synchronisations, gains_of(tried))
    not_seen = [*_not_seen(profile, call), *timing.notes]
    explained = record.Explanation(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        program=_explained_program(source, profile),
        machine=timing.machine,
        versions=timing.versions,
        step=step,
        per_step=counts,
        profiled_steps=len(trace.steps),
        operations=operations,
        synchronisations=synchronisations,
        gaps=gap_rows(trace),
        replay=check,
        verdict=verdict,
        alternatives=tried,
        not_seen=[machine.redact_reason(why) for why in not_seen],
        host=_host_figures(profile),
    )
    # All that is said of the step can only be chosen when everything about it is known.
    sentences = verdict_reasons(explained)
    verdict = msgspec.structs.replace(verdict, sentences=sentences)
    return msgspec.structs.replace(explained, verdict=verdict)


def _step_timing(call: CallTiming, profile: StepProfile) -> record.StepTiming:
    """The times of a step, from ``overhead time`` and from the profile."""
    why = call.reason or NOT_MEASURED
    return record.StepTiming(
        wall=_above_zero(renamed(call.figure("complete"), "wall", why)),
        issue=_above_zero(renamed(call.figure("issue"), "issue", why)),
        fixed=renamed(call.figure("fixed"), "fixed", why),
        busy=_busy(call, profile),
        met=renamed(call.figure("met"), "met", NOT_MEASURED_MET),
        everything=renamed(call.figure("everything"), "everything", NOT_MEASURED_MET),
    )


def _explained_program(source: StepSource, profile: StepProfile) -> record.ExplainedProgram:
    """What was explained, as the file of the result tells it."""
    taken: Literal["", "returned", "itself"] = ""
    if profile.is_returned is not None:
        taken = "returned" if profile.is_returned else "itself"
    return record.ExplainedProgram(
        file=source.file,
        function=source.function,
        arguments=source.arguments,
        library=record.LIBRARIES.get(profile.library, "none"),
        device=profile.device,
        taken=taken,
        returned=profile.returned,
    )


def _host_figures(profile: StepProfile) -> list[Figure]:
    """What the host does beside the step, each number with its unit."""
    figures = []
    for name, value in profile.shares.items():
        unit = HOST_UNITS.get(name, "ratio")
        figures.append(Figure(name=name, unit=unit, value=value))
    return figures


def _above_zero(time: Figure) -> Figure:
    """The time of a step; a statistical interval may reach below zero, a time cannot."""
    if time.value is None or time.low is None or time.low >= 0:
        return time
    if time.value <= 0:
        if time.high is not None and time.high > 0:
            return missing(time.name, because("not-told-from-zero-at-most", most_ns=time.high))
        return missing(time.name, because("not-told-from-zero"))
    return msgspec.structs.replace(time, low=0.0)


def _checked_for_work(alternative: record.Alternative, busy: Figure) -> record.Alternative:
    """The alternative; ``differs`` if it is a CUDA graph that is shorter than the device work of
    the step (``busy``), so that it cannot do all of that work.
    """
    if not _captures(alternative) or busy.low is None:
        return alternative
    step_ns = alternative.step.value or math.inf
    if step_ns >= _LEAST_BUSY * busy.low:
        return alternative
    why = because("leaves-work-out", busy_ns=busy.low)
    return msgspec.structs.replace(
        alternative,
        status="differs",
        results=why,
        same_results=False,
        gain=missing("gain", why, "ratio"),
        repaid_after=missing("repaid_after", why, "count"),
    )


def _captures(alternative: record.Alternative) -> bool:
    """Whether this is a CUDA graph of the whole step."""
    change = ALTERNATIVES.get(alternative.name)
    return change is not None and change.captures


def _with_forbidden_wait(
    alternative: record.Alternative, synchronisations: Sequence[record.SynchronisationRow]
) -> record.Alternative:
    """The alternative; if a capture failed at a line that waits for the device, its reason names
    that call.
    """
    if alternative.status != "failed" or not _captures(alternative):
        return alternative
    source_line = alternative.site.line.partition(", in ")[0]
    if not source_line:
        return alternative
    waits = [row.what for row in synchronisations if row.site.line == source_line]
    if not waits:
        return alternative
    reason = because("capture-meets-a-wait", what=waits[0], error=alternative.reason)
    return msgspec.structs.replace(alternative, reason=reason)


def _busy(call: CallTiming, profile: StepProfile) -> Figure:
    """How long the device works on a step: from the profile, else as ``overhead time`` measures
    it.
    """
    if profile.trace is not None and profile.trace.has_device:
        times = [busiest_ns(step.device) for step in profile.trace.steps]
        return Figure(
            name="busy",
            value=statistics.median(times),
            low=min(times),
            high=max(times),
            rule=because("busy-in-the-profile"),
        )
    timed = call.figure("device_busy")
    if timed is not None and timed.value is not None:
        return renamed(timed, "busy")
    if not profile.device:
        return missing("busy", because("no-device-in-the-step"))
    return missing("busy", profile.reason or NOT_MEASURED)


def _judged(
    profile: StepProfile,
    step: record.StepTiming,
    counts: record.StepCounts,
    operations: Sequence[record.OperationRow],
    synchronisations: Sequence[record.SynchronisationRow],
    gains: Gains,
) -> tuple[record.ReplayCheck, record.StepVerdict]:
    """The check of the replay, and the verdict that it allows: from the replay of the profile; from
    the times of the step where there is no profile.
    """
    trace = profile.trace
    if trace is None or not trace.steps:
        return _judged_by_times(profile, step)

    parts = step_parts(trace.quiet(), profile.host)
    check = _checked_replay(profile, trace, parts.step)
    if not trace.has_device:
        return check, judge_processor(step.wall, check, operations)
    lost = why_no_verdict(trace.recording)
    if lost:
        no_verdict = because("no-verdict", why=lost)
        return check, record.StepVerdict(kind="unclear", sentences=[no_verdict])

    verdict = judge(parts, check, operations, synchronisations, counts.launches.value, gains)
    delays = delays_reason(launch_delays(trace))
    if check.ok and delays:
        verdict.sentences.append(delays)
    return check, verdict


def _judged_by_times(
    profile: StepProfile, step: record.StepTiming
) -> tuple[record.ReplayCheck, record.StepVerdict]:
    """A check that says why there is no replay, and the verdict from the times of the step."""
    reason = profile.reason or NO_STEP
    check = record.ReplayCheck(
        replayed=missing("replayed", reason), measured=missing("measured", reason), reason=reason
    )
    verdict = judge_times(
        step.wall,
        step.issue,
        synchronous=profile.found.waits == [NOTHING.name],
        on_device=bool(profile.device),
        other_threads=profile.shares.get("other_threads", 0.0),
    )
    return check, verdict


def _checked_replay(profile: StepProfile, trace: Trace, replayed_ns: float) -> record.ReplayCheck:
    """The replayed step (``replayed_ns``) against the step that was measured beside the profile.

    A trace that was recorded elsewhere has no such time (no ``step_rule``). Its replay is compared
    with the recorded steps, which hold the profiler's cost, so it stays unchecked.
    """
    if not profile.step_rule:
        mean = recorded_and_replayed_ns(trace)
        rule = because("recorded-with-the-profiler")
        recorded = Figure(name="measured", value=mean.recorded_ns, rule=rule)
        check = check_replay(mean.replayed_ns, recorded)
        return msgspec.structs.replace(check, unchecked=True)

    if profile.step_ns <= 0:
        return check_replay(replayed_ns, missing("measured", because("more-steps-took-no-longer")))
    measured = Figure(name="measured", value=profile.step_ns, rule=profile.step_rule)
    return check_replay(replayed_ns, measured)


def _not_seen(profile: StepProfile, call: CallTiming) -> list[Why]:
    """What the library or the device of this step does not tell."""
    reasons: list[Why] = []
    if profile.trace is None:
        reasons.append(because("not-profiled", why=profile.reason))
    elif not profile.trace.has_device:
        reasons.append(because("no-device-work-to-see"))
    else:
        reasons += _not_seen_in_trace(profile, profile.trace)
    if profile.sites_missing:
        reasons.append(because("sites-missing", why=profile.sites_missing))
    if "values-not-checked" in call.flags:
        reasons.append(because("values-not-checked-while-timed"))
    return reasons


def _not_seen_in_trace(profile: StepProfile, trace: Trace) -> list[Why]:
    """What the replay of this trace does not know: waits between streams, and the host's times of
    operations that the other profiles have not.
    """
    reasons: list[Why] = []
    for step in trace.steps:
        streams = {work.stream for work in step.device}
        if len(streams) > 1:
            reasons.append(because("waits-of-streams-not-modelled"))
            break
    unknown = profile.host.count_unknown_steps(trace) if profile.host.alone.steps else 0
    if unknown:
        steps = len(trace.steps)
        reasons.append(because("steps-of-other-operations", unknown=unknown, steps=steps))
    return reasons
