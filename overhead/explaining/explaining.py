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
s.
"""
_SHORTEST_NS = 1000.0
"""A shorter step is one call, for which ``overhead time`` is made."""
_LEAST_WAITS = 0.01
"""The step is tried without synchronisations if they block for at least this share of it."""
_LEAST_BUSY = 0.9
"""A CUDA graph that takes less than this share of the device work of the step does not contain all
of it.
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

    ``chrome``: if there is no step to write, ``listener`` gets the reason.
    """
    _check(alternatives, seconds)
    listener = listener or Listener()
    source = _source(step, arguments)
    other = _source(against, arguments) if against else None
    _wait_for_other_runs(listener)
    began = time.monotonic()
    with _noting_a_long_start(listener) as doing:
        profile = profile_step(source, doing=doing)
    if profile.found.one_ns < _SHORTEST_NS:
        raise UsageError(
            f"a step takes {profile.found.one_ns:.0f} ns, too short to explain: measure it with"
            " overhead time, or repeat its work inside the step"
        )
    measured = _Measured()
    try:
        unwritten = _save_replay(chrome, profile) if chrome is not None else ""
        if unwritten:
            measured.remarks.append(because("no-replay", why=unwritten))
            listener.note(because("no-replay-to-this-file", file=chrome, why=unwritten))
        job = AttemptJob(setup=source.setup, path=source.path)
        changes = Changes(
            job, profile.found, listener, timed=time_statements, leave_out=_left_out(profile)
        )
        changes.ends, changes.loading_s = began + seconds, profile.loading_s
        changes.conditions_s = profile.loading_s + conditions_s(profile.found.one_ns / 1e9)
        if changes.least_s > changes.time_left_s():
            step_s, minutes = profile.found.one_ns / 1e9, math.ceil(changes.least_s / 60)
            listener.note(
                because("step-takes-long", step_s=step_s, minutes=minutes, seconds=seconds)
            )
        if alternatives == "none":
            measured.timing = changes.time_alone()
        else:
            compiled, own = alternatives == "all", other.setup if other else ""
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
        found = explanation(source, profile, timing, self.alternatives, self.conditions)
        return msgspec.structs.replace(found, not_seen=[*found.not_seen, *self.remarks])


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
        pass  # the workers that measure take the lock again
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


def _save_replay(path: Path, profile: StepProfile) -> Why:
    """Write the replayed step; why there is none, or ''. What was measured is worth more than this
    file.
    """
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
    if left_s < profile.loading_s + conditions_s(profile.found.one_ns / 1e9):
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
    waits = synchronisation_rows(profile.trace)
    does = {
        PINNED: any(FROM_PAGEABLE in codes_of(row.what) for row in waits),
        UNSYNCHRONISED: sum(row.blocked_ns for row in waits) >= _LEAST_WAITS * profile.step_ns,
    }
    return [name for name, done in does.items() if not done]


def _source(step: str | Callable[[], object], arguments: Sequence[str]) -> StepSource:
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
    why = call.reason or NOT_MEASURED
    step = record.StepTiming(
        wall=_above_zero(renamed(call.figure("complete"), "wall", why)),
        issue=_above_zero(renamed(call.figure("issue"), "issue", why)),
        fixed=renamed(call.figure("fixed"), "fixed", why),
        busy=_busy(call, profile),
        met=renamed(call.figure("met"), "met", NOT_MEASURED_MET),
        everything=renamed(call.figure("everything"), "everything", NOT_MEASURED_MET),
    )
    trace = profile.trace or Trace(())
    operations = operation_rows(trace.quiet(), profile.host)
    synchronisations = synchronisation_rows(trace)
    counts = step_counts(trace, profile.reason or NO_STEP)
    whole = [_with_forbidden_wait(_whole(one, step.busy), synchronisations) for one in alternatives]
    tried = [*whole, *condition_rows(conditions)]
    check, verdict = _judged(profile, step, counts, operations, synchronisations, gains_of(tried))
    found = record.Explanation(
        created=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        program=record.ExplainedProgram(
            file=source.file,
            function=source.function,
            arguments=source.arguments,
            library=record.LIBRARIES.get(profile.library, "none"),
            device=profile.device,
            taken=(
                ""
                if profile.is_returned is None
                else "returned"
                if profile.is_returned
                else "itself"
            ),
            returned=profile.returned,
        ),
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
        not_seen=[machine.redact_reason(why) for why in [*_not_seen(profile, call), *timing.notes]],
        host=[
            Figure(name=n, unit=HOST_UNITS.get(n, "ratio"), value=value)
            for n, value in profile.shares.items()
        ],
    )
    said = verdict_reasons(found)
    return msgspec.structs.replace(found, verdict=msgspec.structs.replace(verdict, sentences=said))


def _above_zero(time: Figure) -> Figure:
    """The time of a step; a statistical interval may reach below zero, a time cannot."""
    if time.value is None or time.low is None or time.low >= 0:
        return time
    if time.value <= 0:
        if time.high is not None and time.high > 0:
            return missing(time.name, because("not-told-from-zero-at-most", most_ns=time.high))
        return missing(time.name, because("not-told-from-zero"))
    return msgspec.structs.replace(time, low=0.0)


def _whole(one: record.Alternative, busy: Figure) -> record.Alternative:
    """The alternative; ``differs`` if it is a CUDA graph that is shorter than the device work of
    the step.
    """
    captures = one.name in ALTERNATIVES and ALTERNATIVES[one.name].captures
    if not captures or busy.low is None or (one.step.value or math.inf) >= _LEAST_BUSY * busy.low:
        return one
    why = because("leaves-work-out", busy_ns=busy.low)
    lost = {
        "status": "differs",
        "results": why,
        "gain": missing("gain", why, "ratio"),
        "same_results": False,
    }
    return msgspec.structs.replace(one, repaid_after=missing("repaid_after", why, "count"), **lost)


def _with_forbidden_wait(
    one: record.Alternative, synchronisations: Sequence[record.SynchronisationRow]
) -> record.Alternative:
    """The alternative; if a capture failed at a line that waits for the device, its reason names
    that call.
    """
    captures = one.name in ALTERNATIVES and ALTERNATIVES[one.name].captures
    line = one.site.line.partition(", in ")[0]
    waits = [row.what for row in synchronisations if line and row.site.line == line]
    if one.status != "failed" or not captures or not waits:
        return one
    return msgspec.structs.replace(
        one, reason=because("capture-meets-a-wait", what=waits[0], error=one.reason)
    )


def _busy(call: CallTiming, profile: StepProfile) -> Figure:
    """How long the device works on a step: from the profile, else as ``overhead time`` measures
    it.
    """
    if profile.trace is not None and profile.trace.has_device:
        times = [busiest_ns(step.device) for step in profile.trace.steps]
        rule = because("busy-in-the-profile")
        return Figure(
            name="busy", value=statistics.median(times), low=min(times), high=max(times), rule=rule
        )
    found = call.figure("device_busy")
    if found is not None and found.value is not None:
        return renamed(found, "busy")
    return missing(
        "busy",
        (profile.reason or NOT_MEASURED) if profile.device else because("no-device-in-the-step"),
    )


def _judged(
    profile: StepProfile,
    step: record.StepTiming,
    counts: record.StepCounts,
    operations: Sequence[record.OperationRow],
    synchronisations: Sequence[record.SynchronisationRow],
    gains: Gains,
) -> tuple[record.ReplayCheck, record.StepVerdict]:
    trace = profile.trace
    if trace is None or not trace.steps:
        reason = profile.reason or NO_STEP
        check = record.ReplayCheck(
            replayed=missing("replayed", reason),
            measured=missing("measured", reason),
            reason=reason,
        )
        return check, judge_times(
            step.wall,
            step.issue,
            synchronous=profile.found.waits == [NOTHING.name],
            on_device=bool(profile.device),
            other_threads=profile.shares.get("other_threads", 0.0),
        )
    parts = step_parts(trace.quiet(), profile.host)
    step_ns, measured = (
        parts.step,
        Figure(name="measured", value=profile.step_ns, rule=profile.step_rule),
    )
    if not profile.step_rule:
        recorded_ns, step_ns = recorded_and_replayed_ns(trace)
        measured = Figure(
            name="measured", value=recorded_ns, rule=because("recorded-with-the-profiler")
        )
    elif profile.step_ns <= 0:
        measured = missing("measured", because("more-steps-took-no-longer"))
    check = msgspec.structs.replace(
        check_replay(step_ns, measured), unchecked=not profile.step_rule
    )
    if not trace.has_device:
        return check, judge_processor(step.wall, check, operations)
    if lost := why_no_verdict(trace.recording):
        return check, record.StepVerdict(
            kind="unclear", sentences=[because("no-verdict", why=lost)]
        )
    verdict = judge(parts, check, operations, synchronisations, counts.launches.value, gains)
    if check.ok:
        delays = delays_reason(launch_delays(trace))
        verdict.sentences.extend([delays] if delays else [])
    return check, verdict


def _not_seen(profile: StepProfile, call: CallTiming) -> list[Why]:
    found: list[Why] = []
    if profile.trace is None:
        found.append(because("not-profiled", why=profile.reason))
    elif not profile.trace.has_device:
        found.append(because("no-device-work-to-see"))
    else:
        if any(len({work.stream for work in step.device}) > 1 for step in profile.trace.steps):
            found.append(because("waits-of-streams-not-modelled"))
        unknown = profile.host.count_unknown_steps(profile.trace) if profile.host.alone.steps else 0
        if unknown:
            found.append(
                because(
                    "steps-of-other-operations", unknown=unknown, steps=len(profile.trace.steps)
                )
            )
    if profile.sites_missing:
        found.append(because("sites-missing", why=profile.sites_missing))
    if "values-not-checked" in call.flags:
        found.append(because("values-not-checked-while-timed"))
    return found
