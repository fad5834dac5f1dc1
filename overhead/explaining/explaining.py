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
from overhead.explaining.launch_delays import delay_reasons, launch_delays, summed_up
from overhead.explaining.predictions import predictions
from overhead.explaining.profiling import StepProfile, measure_conditions, profile_step
from overhead.explaining.record import NOT_MEASURED, NOT_MEASURED_MET, missing, renamed
from overhead.explaining.replay import recorded_and_replayed_ns, step_parts
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
    conditions on the host; all of that must end after ``seconds``. ``chrome``: if there is no step
    to write, ``listener`` gets the reason. Ctrl-C after the profile gives what was measured until
    then.
    """
    _check(alternatives, seconds)
    listener = listener or Listener()
    # ``source``: with the Python text (``setup``) by which any process loads the step.
    source = _source(step, arguments)
    own_alternative = _source(against, arguments) if against else None
    # The wait for other runs does not count towards ``seconds``.
    _wait_for_other_runs(listener)
    began = time.monotonic()
    with _noting_a_long_start(listener) as doing:
        profile = profile_step(source, doing=doing)
    # A step of under 1 us is one call, for which ``overhead time`` is made.
    _refuse_short(profile.found.one_ns)

    measured = _Measured()
    try:
        if chrome is not None:
            # The replayed step as a file that Perfetto shows.
            _save_replay_or_say_why(chrome, profile, measured, listener)
        # ``least_s``: what the processes take besides their samples, which no limit shortens.
        changes = _changes_of(source, profile, began + seconds, listener)
        if changes.least_s > changes.time_left_s():
            _note_long_step(profile, changes.least_s, seconds, listener)
        if alternatives == "none":
            measured.timing = changes.time_alone()
        else:
            # With "eager" no alternative is tried that compiles the step.
            compiled = alternatives == "all"
            setup = own_alternative.setup if own_alternative else ""
            measured.timing, measured.alternatives = changes.try_all(
                compiled=compiled, against=setup
            )
            _measure_conditions(measured, source, profile, changes.time_left_s(), listener)
        # Seconds that are left are spent on a time whose interval is too wide.
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
    """What tries and times the alternatives to a profiled step, such as a CUDA graph of it. It must
    be done at ``end``, in seconds of ``time.monotonic``, and knows from the profile how long it
    takes to load the step.
    """
    # ``job``: how any process loads the step. ``_left_out``: alternatives that could not help it.
    job = AttemptJob(setup=source.setup, path=source.path)
    leave_out = _left_out(profile)
    changes = Changes(job, profile.found, listener, timed=time_statements, leave_out=leave_out)
    # ``ends``: when all must be done. ``loading_s``: how long a process takes to load the step.
    # ``conditions_s``: how long the step under other conditions takes afterwards: while the
    # alternatives run, it is added to the time left that the user sees.
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
    """Wait until no other run measures on this machine, so that the two do not disturb each other;
    say that, and how long it took.

    The clock of ``--seconds`` starts afterwards. The lock is only taken and given back: each
    process that measures takes it again.
    """
    waited_s: float | None = None

    def waiting(seconds: float) -> None:
        """Called while another run has the lock, with the seconds so far."""
        nonlocal waited_s
        waited_s = seconds
        listener.waiting(seconds)

    with device_lock(waiting):
        pass
    if waited_s is not None:  # there was another run
        listener.note(because("waited-for-another-run", seconds=waited_s))


@contextlib.contextmanager
def _noting_a_long_start(listener: Listener) -> Iterator[Callable[[Why], None]]:
    """A ``with`` block for starting the program in a child process. It tells the user if the first
    call of the named function takes over 15 s: perhaps the function runs a whole program, such as
    ``main``, in place of returning a step.

    The block gets a function that must be called with what the child does next. To import the file
    of the program may take long too, which says nothing of the function, so that is not counted.
    """
    timer = threading.Timer(
        LONG_START_S, listener.note, [because("start-takes-long", seconds=LONG_START_S)]
    )
    timer.daemon = True
    is_called = False

    def doing(what: Why) -> None:
        """Hand on what is done next. The timer runs while the named function is called."""
        nonlocal is_called
        if is_called:  # something comes next, so the function has returned
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
    """Write the replayed step, which is computed from the profile, for a timeline (``--chrome``).
    If that is not possible, say why and go on: the rest of the answer is worth more than this file.
    """
    why = _save_replay(path, profile)
    if why:
        measured.remarks.append(because("no-replay", why=why))
        listener.note(because("no-replay-to-this-file", file=path, why=why))


def _save_replay(path: Path, profile: StepProfile) -> Why:
    """Write the replayed step to this file. Returns why that was not possible, or ''."""
    if profile.trace is None or not profile.trace.has_device:
        return profile.reason or because("no-work-on-a-device")
    try:
        save_replay(Path(path), profile.trace.typical, profile.host)
    except CannotWrite as error:
        why: Why = error.why
        return why
    return ""


def _measure_conditions(
    measured: _Measured, source: StepSource, profile: StepProfile, left_s: float, listener: Listener
) -> None:
    """Time the step under other conditions on the host, such as on one CPU core, and add the times
    to ``measured``; a remark says why they are missing. ``left_s``: seconds until the time limit.
    """
    if left_s < _conditions_with_loading_s(profile):
        measured.remarks.append(because("no-time-for-conditions"))
        return
    # How many other Python threads of the program were busy while the step ran.
    threads = int(profile.shares.get("python_threads", 0.0))
    try:
        measured.conditions = measure_conditions(source, threads, doing=listener.working)
    except UsageError as error:
        measured.remarks.append(because("conditions-failed", error=error.why))


def _interrupted(
    source: StepSource, profile: StepProfile, measured: _Measured
) -> record.Explanation:
    """The explanation from what was measured until Ctrl-C, with a remark that says so. If the step
    was not timed yet, it is made from the profile alone, with a timing that has no figures.
    """
    if measured.timing is not None:
        measured.remarks.append(because("interrupted-later"))
        return measured.explanation(source, profile, measured.timing)
    measured.remarks.append(because("interrupted"))
    # The times of a call that was not timed: none, each with the reason. ``[]``: no figure is
    # known.
    call = untimed(profile.found, because("interrupted-before"), [])
    versions = machine.versions(sorted(set(profile.found.packages)))
    timing = Timing(
        created="", setup=source.setup, machine=machine.identity(), versions=versions, calls=[call]
    )
    return measured.explanation(source, profile, timing)


def _left_out(profile: StepProfile) -> Collection[str]:
    """The names of alternatives that are not tried, since they could not help this step: all of
    them are PyTorch's, one needs uploads from pageable memory, and one needs waits.
    """
    # "none": the library is not known; an attempt then says itself why it is not possible.
    if profile.library not in ("torch", "none"):
        return ALTERNATIVES
    if profile.trace is None:  # nobody knows whether the step uploads
        return [PINNED]
    left_out = []
    waits = synchronisation_rows(profile.trace)
    # The name of such a wait is a reason with this code.
    uploads_pageable = any(FROM_PAGEABLE in codes_of(row.what) for row in waits)
    if not uploads_pageable:
        left_out.append(PINNED)
    # Waits that cost little, under 1 % of a step: without them it would not be measurably faster.
    waiting_ns = sum(row.blocked_ns for row in waits)
    if waiting_ns < _LEAST_WAITS * profile.step_ns:
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
    """The whole result, made from what was measured: the profile of the step, its times, and those
    of the alternatives and conditions. Nothing is measured here.
    """
    # The step itself is the first call that was timed; the others are alternatives.
    call = timing.calls[0]
    step = _step_timing(call, profile)
    trace = profile.trace or Trace(())
    # The tables: operations of the typical steps, waits and counts of all that count.
    operations = operation_rows(trace.typical, profile.host)
    synchronisations = synchronisation_rows(trace.counted)
    counts = step_counts(trace.counted, profile.reason or NO_STEP)

    # What the profile knows corrects what the attempts of the alternatives found.
    tried = []
    for alternative in alternatives:
        checked = _checked_for_work(alternative, step.busy)
        tried.append(_with_forbidden_wait(checked, synchronisations))
    tried += condition_rows(conditions)

    # The verdict rests on the tables and on the measured gains.
    # How long device work waits after its launch.
    each_delay = launch_delays(trace)
    delays = summed_up(each_delay, trace.recording.clocks)
    check, verdict = _judged(profile, step, counts, operations, synchronisations, gains_of(tried))
    # Only a replay that holds can say it.
    if check.ok and delays is not None and not why_no_verdict(trace.recording):
        steps_ns = sum(step_trace.end - step_trace.start for step_trace in trace.steps)
        verdict.sentences.extend(delay_reasons(delays, each_delay, steps_ns))
    not_seen = [*_not_seen(profile, call), *timing.notes]
    # ``redact_reason``: without the names of host and user, and without folders of paths.
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
        gaps=gap_rows(trace.counted),
        replay=check,
        verdict=verdict,
        alternatives=tried,
        launch_delays=delays,
        not_seen=[machine.redact_reason(why) for why in not_seen],
        host=_host_figures(profile),
    )
    # The sentences are chosen, and put in order, when everything about the step is known.
    sentences = verdict_reasons(explained)
    verdict = msgspec.structs.replace(verdict, sentences=sentences)
    return msgspec.structs.replace(explained, verdict=verdict)


def _step_timing(call: CallTiming, profile: StepProfile) -> record.StepTiming:
    """The times of a step, from ``overhead time`` (``call``) and from the profile, under the names
    of an explanation: ``wall`` until the work is done, ``issue`` until the step returns, ``busy``
    for the device, ``met`` the unpinned time, ``everything`` the mean of all samples.
    """
    why = call.reason or NOT_MEASURED
    return record.StepTiming(
        # ``complete``, ``issue``, ``fixed`` and so on: the names of these figures in ``overhead
        # time``. ``fixed``: what any number of steps pays once. ``renamed``: the figure under the
        # second name; without a value, for the reason ``why``, if there is none.
        wall=_above_zero(renamed(call.figure("complete"), "wall", why)),
        issue=_above_zero(renamed(call.figure("issue"), "issue", why)),
        fixed=renamed(call.figure("fixed"), "fixed", why),
        busy=_busy(call, profile),
        met=renamed(call.figure("met"), "met", NOT_MEASURED_MET),
        everything=renamed(call.figure("everything"), "everything", NOT_MEASURED_MET),
    )


def _explained_program(source: StepSource, profile: StepProfile) -> record.ExplainedProgram:
    """What was explained, as the file of the result tells it: the named function, and whether it is
    the step itself or has returned the step (``taken``).
    """
    # ``taken``: how the named function became the step; '' where no function was called.
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
    """The time of a step, without what is below zero: a statistical interval may reach there, a
    time cannot.
    """
    if time.value is None or time.low is None or time.low >= 0:
        return time
    # Only the lower end is below zero.
    if time.value > 0:
        return msgspec.structs.replace(time, low=0.0)
    # The value itself is not above zero: at most the upper end of the interval is known.
    if time.high is not None and time.high > 0:
        return missing(time.name, because("not-told-from-zero-at-most", most_ns=time.high))
    return missing(time.name, because("not-told-from-zero"))


def _checked_for_work(alternative: record.Alternative, busy: Figure) -> record.Alternative:
    """The alternative; but ``differs``, without a gain, if it is a CUDA graph of the step and takes
    less time than the device works on the step (``busy``): then it cannot do all of that work.
    """
    if not _captures(alternative) or busy.low is None:
        return alternative
    # Without a time nothing shows that the graph leaves work out. ``_LEAST_BUSY`` is 0.9: a graph
    # that is only a little shorter than the device's work passes.
    graph_ns = alternative.step.value or math.inf
    if graph_ns >= _LEAST_BUSY * busy.low:
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
    """The alternative; if it is a CUDA graph whose capture failed at a line that waits for the
    device, its reason names the call that waits: a capture does not allow one.
    """
    if alternative.status != "failed" or not _captures(alternative):
        return alternative
    source_line = alternative.site.line.partition(", in ")[0]  # FILE:LINE, without the function
    if not source_line:
        return alternative
    waits = [row.what for row in synchronisations if row.site.line == source_line]
    if not waits:
        return alternative
    reason = because("capture-meets-a-wait", what=waits[0], error=alternative.reason)
    return msgspec.structs.replace(alternative, reason=reason)


def _busy(call: CallTiming, profile: StepProfile) -> Figure:
    """How long the device works on a step: from the profile, else as ``overhead time`` measures it
    (``call``), else a figure without a value that says why.
    """
    if profile.trace is not None and profile.trace.has_device:
        # Of several devices the one that works longest counts.
        trace = profile.trace.counted
        times = [busiest_ns(step.device) for step in trace.steps]
        # Of recorded steps the mean, as in all other figures of a trace.
        middle = statistics.fmean if trace.is_recorded else statistics.median
        return Figure(
            name="busy",
            value=middle(times),
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
    """The verdict on what bounds the step, and the check that it rests on: whether the replay, the
    step as it is computed from the profile, takes as long as the step was measured to take. Where
    there is no profile, the verdict comes from the times of the step alone.

    ``gains``: of the alternatives that were measured; they may overrule the replay.
    """
    trace = profile.trace
    if trace is None or not trace.steps:
        return _judged_by_times(profile, step)

    # ``parts``: times of the replayed step. ``check``: whether it takes as long as the step did.
    parts = step_parts(trace.typical, profile.host)
    check = _checked_replay(profile, trace, parts.step)
    if not trace.has_device:
        return check, judge_processor(step.wall, check, operations)
    # A trace that lost too many records does not describe the step.
    lost_records = why_no_verdict(trace.recording)
    if lost_records:
        no_verdict = because("no-verdict", why=lost_records)
        return check, record.StepVerdict(kind="unclear", sentences=[no_verdict])

    predicted = predictions(trace.typical, profile.host)
    launches = counts.launches.value
    verdict = judge(parts, check, operations, synchronisations, launches, gains, predicted)
    return check, verdict


def _judged_by_times(
    profile: StepProfile, step: record.StepTiming
) -> tuple[record.ReplayCheck, record.StepVerdict]:
    """The verdict on a step without a profile, from its times alone, and a check of the replay that
    says why there is none.
    """
    reason = profile.reason or NO_STEP
    check = record.ReplayCheck(
        replayed=missing("replayed", reason), measured=missing("measured", reason), reason=reason
    )
    verdict = judge_times(
        step.wall,
        step.issue,
        # The trial found nothing to wait for after a call.
        synchronous=profile.found.waits == [NOTHING.name],
        on_device=bool(profile.device),
        other_threads=profile.shares.get("other_threads", 0.0),
    )
    return check, verdict


def _checked_replay(profile: StepProfile, trace: Trace, replayed_ns: float) -> record.ReplayCheck:
    """The check of the replay: its step (``replayed_ns``) against the step that was measured beside
    the profile, without a profiler.

    A trace that was recorded elsewhere has no such time, and no ``step_rule``, which says where the
    time is from. Its replay is compared with the recorded steps. These contain the profiler's cost,
    so the result is marked as unchecked.
    """
    if not profile.step_rule:
        mean = recorded_and_replayed_ns(trace)
        rule = because("recorded-with-the-profiler")
        recorded = Figure(name="measured", value=mean.recorded_ns, rule=rule)
        check = check_replay(mean.replayed_ns, recorded)
        return msgspec.structs.replace(check, unchecked=True)

    # The time is a slope over numbers of steps, which may be below zero on a busy machine.
    if profile.step_ns <= 0:
        return check_replay(replayed_ns, missing("measured", because("more-steps-took-no-longer")))
    measured = Figure(name="measured", value=profile.step_ns, rule=profile.step_rule)
    return check_replay(replayed_ns, measured)


def _not_seen(profile: StepProfile, call: CallTiming) -> list[Why]:
    """What the result cannot tell about this step, and why: remarks at its end. ``call``: the times
    of the step.
    """
    reasons: list[Why] = []
    if profile.trace is None:
        reasons.append(because("not-profiled", why=profile.reason))
    elif not profile.trace.has_device:
        # The verdict says already that the work of this device is not read.
        if not profile.trace.recording.other_device:
            reasons.append(because("no-device-work-to-see"))
    else:
        reasons += _not_seen_in_trace(profile, profile.trace)
    if profile.sites_missing:
        reasons.append(because("sites-missing", why=profile.sites_missing))
    # Flags of the call: what its timing could not check.
    if "values-not-checked" in call.flags:
        reasons.append(because("values-not-checked-while-timed"))
    return reasons


def _not_seen_in_trace(profile: StepProfile, trace: Trace) -> list[Why]:
    """What the replay of this trace does not know: waits between streams, and the host's times in
    steps that ran other operations than the steps of the host's profile.
    """
    reasons: list[Why] = []
    # A trace does not say which stream waits for which. The replay concludes it from the times.
    for step in trace.steps:
        streams = {work.stream for work in step.device}
        if len(streams) > 1:
            reasons.append(because("waits-of-streams-from-times"))
            break
    # A trace from a file has no profile of the host beside it. ``unknown``: steps whose operations
    # are those of no step of the host's profile (``host.alone``).
    unknown = profile.host.count_unknown_steps(trace) if profile.host.alone.steps else 0
    if unknown:
        steps = len(trace.steps)
        reasons.append(because("steps-of-other-operations", unknown=unknown, steps=steps))
    return reasons
