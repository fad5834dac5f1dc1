"""What would change a step: attempt the alternatives, compare their results, and time them in turn
with the step.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from overhead.errors import UsageError
from overhead.explaining import record
from overhead.explaining.alternatives import ALTERNATIVES, StepChange, StepFunction
from overhead.explaining.attempts import Attempt, AttemptJob, attempt_apart
from overhead.explaining.outcome import OutcomeComparison, StepOutcome, compare_outcomes
from overhead.explaining.record import missing, renamed
from overhead.explaining.verdict import resolved_times
from overhead.profiles import Plan
from overhead.results import Figure, Why, because, exactly, together
from overhead.runner.events import RunNote, RunStep
from overhead.runner.progress import Listener
from overhead.timing.call_spec import CallSpec, FoundCall
from overhead.timing.timing import Timing, sampling_plan, time_statements
from overhead.traces.trace import CallSite

AGAINST = "your alternative"
"""The name of the function that ``--against`` gives."""
ATTEMPT_S = 120.0
COMPILE_S = 600.0
"""Seconds that an alternative gets: those that compile the step need more. Chosen, not measured."""

_PROCESSES = 3
_ALONE_S, _IN_TURN_S = 3.0, 1.5
"""Seconds that each process samples the step: alone, and in turn with alternatives, which it
samples as long. Chosen, not measured; longer samples give narrower intervals and fit fewer
alternatives into the time limit.
"""
_FEWEST_CALLS = 15
"""A process samples a long step at least for so many times its length. Chosen, not measured."""
_MOST_PARTS = 3
"""So many parts of a result that are not compared are named."""
_RESOLVED_HALF = 0.3
"""Half an interval over its time, for which the time is resolved. With the same half above and
below, the upper end is 1.86 times the lower one, and ``verdict.resolved_times`` asks for less than
2.
"""
_LEAST_S, _OPENING_S, _MOST_S, _CALIBRATING = 0.3, 3.0, 1800.0, 300
"""Seconds: the least that a process samples a statement; to start and end it; and the longest that
is proposed. And the steps that a process makes besides those that it samples: calibration, anchors.
Chosen, not measured; they only plan the time.
"""

_ATTEMPT_TAKES_S, _COMPILING_TAKES_S = 1.0, 30.0
"""Seconds that an attempt takes besides loading the step, and that one with compilation takes. Only
the time left uses them. Chosen, not measured.
"""
_TOLD_WAIT_S = 1.0
"""A note tells a wait for other runs from this length on."""


class _CountingWaits(Listener):
    """A listener that hands everything on, and adds up how long runs waited for other runs, s."""

    def __init__(self, inner: Listener) -> None:
        self._inner = inner
        self.waited_s = 0.0
        self.later_s = 0.0
        """Seconds of work that follows the run that measures now."""

    def note(self, what: RunNote) -> None:
        self._inner.note(what)

    def begin(self) -> None:
        self._inner.begin()

    def working(self, what: RunStep) -> None:
        self._inner.working(what)

    def left(self, seconds: float) -> None:
        self._inner.left(seconds + self.later_s)

    def end(self) -> None:
        self._inner.end()

    def waiting(self, seconds: float) -> None:
        self._inner.waiting(seconds)

    def waited(self, seconds: float) -> None:
        self._inner.waited(seconds)
        self.waited_s += seconds
        if seconds >= _TOLD_WAIT_S:
            self.note(because("waited-beside-seconds", seconds=seconds))


class Changes:
    """Tries and times alternatives to one step, such as the step as a CUDA graph: what would change
    its time. An attempt runs an alternative in a process of its own, to see whether it is possible
    and computes the same; later those that do are timed in turn with the step.

    ``job``: the step. ``found``: what a trial of ``step()`` found out. ``leave_out``: names of
    alternatives that do not apply. ``attempted``, ``timed``: replaced in tests.
    """

    def __init__(
        self,
        job: AttemptJob,
        found: FoundCall,
        listener: Listener,
        attempted: Callable[..., Attempt] = attempt_apart,
        timed: Callable[..., Timing] = time_statements,
        leave_out: Collection[str] = (),
    ) -> None:
        """``job``: loads the step in any process. ``found``: what a trial of the step found out,
        such as how long it takes. ``leave_out``: names of alternatives that do not apply.
        ``attempted``, ``timed``: run an attempt, and time the steps; others in tests.
        """
        # ``torch``: whether the step imports PyTorch, which is then seeded before each attempt.
        self._job = msgspec.structs.replace(job, torch="torch" in found.packages)
        # Hands everything on, and adds up how long this run waited for other runs of the suite.
        self._listener = _CountingWaits(listener)
        self._found = found
        self._leave_out = leave_out
        self._attempted = attempted
        self._timed = timed
        self._sampled_s = _ALONE_S  # how long a process sampled the step the last time
        self._fills_time_left = False  # whether the samples take all the time that is left
        self._began = time.monotonic()
        self.ends = math.inf
        """When everything must end, by ``time.monotonic()``. Compilation gets more time."""
        self.loading_s = 3.0
        """How long a process takes to load the step, s."""
        self.conditions_s = 0.0
        """How long it takes to measure the step under other conditions, which is done last, s."""

    def time_alone(self) -> Timing:
        """The times of the step, without alternatives."""
        timing, _ = self._times({}, {})
        return timing

    def resolved(self, timing: Timing) -> Timing:
        """The times of the step, measured again for longer if its time is not resolved: its
        interval is too wide for a verdict. If that does not help, a note says how many seconds
        ``explain`` would need.
        """
        # ``complete``: the time of a step until its work is done.
        # The first call is the step, and alternatives follow. ``resolved_times``: empty if its
        # interval is too wide or reaches zero.
        wall = timing.calls[0].figure("complete")
        if wall is None or not wall.measured or resolved_times(wall):
            return timing
        # All processes together sampled for ``_PROCESSES * _sampled_s`` seconds the last time. Only
        # a measurement that is longer than that may give a narrower interval.
        if self._left_s() > _PROCESSES * self._sampled_s:
            self._fills_time_left = True
            # Its samples take all the time that is left, so no work is expected to follow.
            self._listener.later_s = 0.0
            again = self.time_alone()
            wall = again.calls[0].figure("complete") or wall
            # The comparisons with the alternatives are those of the first measurement.
            timing = msgspec.structs.replace(again, ratios=timing.ratios)
        if resolved_times(wall):
            return timing
        note = because("step-not-resolved")
        needed_s = self._needed_s(wall)
        # Half an hour; a longer time is not proposed.
        if needed_s < _MOST_S:
            note = because("step-needs-seconds", needed=needed_s)
        return msgspec.structs.replace(timing, notes=[*timing.notes, note])

    def _needed_s(self, wall: Figure) -> float:
        """About how many seconds ``explain`` would need so that the interval of the step's time
        (``wall``) is narrow enough for a verdict; infinity if the interval does not tell it.
        """
        if not wall.value or wall.high is None:
            return math.inf
        # From the value to the upper end, as a share of the value; ``_RESOLVED_HALF`` is what it
        # should be.
        half_width = (wall.high - wall.value) / wall.value
        # The width of an interval falls with the square root of the number of samples.
        sampling_s = self._sampled_s * (half_width / _RESOLVED_HALF) ** 2
        # Each process loads the step, opens and samples once more.
        again_s = _PROCESSES * (self.loading_s + _OPENING_S + sampling_s)
        # The seconds that the user gives do not include the wait for other runs.
        passed_s = time.monotonic() - self._began - self._listener.waited_s
        return passed_s + again_s

    def time_left_s(self) -> float:
        """Seconds until everything must end. Waiting for other runs does not count."""
        return self.ends + self._listener.waited_s - time.monotonic()

    def _left_s(self) -> float:
        """Seconds for alternatives and samples, besides those in which each process loads the
        program.
        """
        return self.time_left_s() - self.least_s

    @property
    def least_s(self) -> float:
        """About how long the processes take besides their samples, s. No ``--seconds`` makes it
        shorter.
        """
        each_s = self.loading_s + _OPENING_S + _CALIBRATING * self._found.one_ns / 1e9
        return _PROCESSES * each_s

    def try_all(
        self, *, compiled: bool = True, against: str = ""
    ) -> tuple[Timing, list[record.Alternative]]:
        """The times of the step, and each alternative: its status, its results compared with those
        of the step, and its time. ``explain`` calls this once.

        ``compiled``: include those that compile the step. ``against``: text of Python that defines
        the user's own alternative as ``step``. Raises ``UsageError`` if the step cannot be
        repeated.
        """
        # A program of the user's own may return stored results, so it is also run with other
        # inputs (``vary``), and the step itself to compare with. It runs twice as long as a process
        # times it: one that stops working during the measurement stops here too.
        self._job = msgspec.structs.replace(self._job, vary=bool(against), later_s=2 * _IN_TURN_S)
        # The jobs to attempt, by name: the user's own alternative, then the known ones. ``vary`` is
        # for the former only.
        jobs: dict[str, AttemptJob] = {}
        if against:
            jobs[AGAINST] = msgspec.structs.replace(self._job, against=against)
        for name, change in ALTERNATIVES.items():
            if name in self._leave_out or (change.compiles and not compiled):
                continue
            jobs[name] = msgspec.structs.replace(self._job, alternative=name, vary=False)

        # The listener adds these seconds to each time left: the step under other conditions is
        # measured afterwards.
        self._listener.later_s = self.conditions_s
        tried = self._tried(jobs) if jobs else {}
        # Only what was possible and computes the same is timed.
        to_time = {name: job for name, job in jobs.items() if tried[name].status == "ok"}
        timing, timed = self._times(to_time, tried)
        tried |= timed
        return timing, [tried[name] for name in jobs]

    def _tried(self, jobs: Mapping[str, AttemptJob]) -> dict[str, record.Alternative]:
        """Attempt each alternative in a process of its own, and compare its results with those of
        the step. Their times are measured later. One for which no time is left is refused.
        """
        tried = {}
        for name, job in jobs.items():
            # ``compiles``: it may take minutes, so it has limits of its own.
            compiles = _change(name).compiles
            began = time.monotonic()
            # Compilation does not count towards the time limit, and the user's own alternative is
            # tried in any case.
            needs_time_left = not compiles and name != AGAINST
            # It is refused if the time left is not twice what loading the step takes.
            if needs_time_left and self._left_s() < 2 * self.loading_s:
                tried[name] = _alternative(name, "refused", because("no-time-for-alternative"))
                continue
            still_to_try = list(jobs)[len(tried) :]
            self._tell_time_left(still_to_try, len(jobs))
            if compiles:
                self._listener.working(because("attempting-with-compilation", name=name))
            else:
                self._listener.working(because("attempting", name=name))
            attempt = self._attempted(job, limit_s=COMPILE_S if compiles else ATTEMPT_S)
            tried[name] = self._compared(name, attempt)
            if compiles:  # compilation does not count towards the time limit
                self.ends += time.monotonic() - began
        return tried

    def _tell_time_left(self, attempts: Sequence[str], others: int) -> None:
        """Tell the listener, who shows progress, about how long the rest takes: these attempts, by
        name, and then the timing of the step in turn with so many ``others``.
        """
        attempt_s = self.loading_s + _ATTEMPT_TAKES_S
        attempts_s = sum(
            _COMPILING_TAKES_S if _change(name).compiles else attempt_s for name in attempts
        )
        # ``least_s``: what the processes take besides their samples. The timing as planned: a share
        # for the step and one for each other, in each process.
        wanted_s = self.least_s + _PROCESSES * _IN_TURN_S * (1 + others)
        # The timing is shortened to fit the time limit, but not below its least.
        most_s = max(self.least_s, self.time_left_s() - attempts_s)
        self._listener.left(attempts_s + min(wanted_s, most_s))

    def _compared(self, name: str, attempt: Attempt) -> record.Alternative:
        """The alternative of this name after its attempt: ``ok`` if it can be timed, ``differs`` if
        it computes something else than the step, ``refused`` or ``failed`` if it was not possible.
        """
        if attempt.outcome is None:
            status: record.AlternativeStatus = "refused" if attempt.refused else "failed"
            return _alternative(name, status, attempt.reason, attempt.where)
        # A bound, such as the step without its waits, is known to compute something else. All
        # others are ``measured``.
        if _change(name).label != "measured":
            return _alternative(name, "ok", making_s=attempt.making_s)

        compared = compare_outcomes(self._original, attempt.outcome, own=name == AGAINST)
        # ``left_out``: by name of a part, how many values it has and why they are not compared.
        not_compared = sum(number for number, _ in compared.left_out.values())
        counts: dict[str, Any] = {"compared": compared.count, "not_compared": not_compared}
        # ``same_results``: True, or None where something leaves that open (``unknown``).
        if not compared.differences:
            same = None if compared.unknown else True
            remark = _remark(compared)
            return _alternative(
                name, "ok", remark, making_s=attempt.making_s, same_results=same, **counts
            )
        # A step that differs from itself in another process cannot show that an alternative
        # differs. ``_again``: what the step computes in a second process.
        if compare_outcomes(self._original, self._again).differences:
            not_repeatable = because("step-not-repeatable")
            return _alternative(name, "ok", not_repeatable, making_s=attempt.making_s)
        return _alternative(name, "differs", compared.differences[0], same_results=False, **counts)

    @functools.cached_property
    def _original(self) -> StepOutcome:
        """What the step itself computes in a process of its own, which the results of alternatives
        are compared with. Raises ``UsageError`` if the step fails there: it worked once, in the
        profile, so it cannot be repeated.
        """
        self._listener.working(because("running-the-step-once-more"))
        attempt = self._attempted(self._job, limit_s=ATTEMPT_S)
        if attempt.outcome is not None:
            return attempt.outcome
        why = because("step-cannot-be-repeated", why=attempt.reason)
        if attempt.where:
            why = because("step-cannot-be-repeated-at", why=attempt.reason, line=attempt.where)
        raise UsageError(why)

    @functools.cached_property
    def _again(self) -> StepOutcome:
        """What the step computes in one more process."""
        attempt = self._attempted(self._job, limit_s=ATTEMPT_S)
        return attempt.outcome or StepOutcome([], [])

    def _times(
        self, jobs: Mapping[str, AttemptJob], tried: Mapping[str, record.Alternative]
    ) -> tuple[Timing, dict[str, record.Alternative]]:
        """Time the step and these alternatives in turn, in the same processes. Returns the times,
        and each alternative with its own. ``tried``: the alternatives after their attempts.

        An alternative that fails there, perhaps because of another one in the process, is timed
        again beside the step alone.
        """
        # First a single measurement with all alternatives in turn. ``others_may_fail``: only the
        # step itself must not. ``silence_s``: the longest that loading, or a call, may take.
        compiles = any(_change(name).compiles for name in jobs)
        left_before_s = self.time_left_s()
        if jobs:
            self._listener.working(because("timing-in-turn", names=", ".join(jobs)))
        # ``opening_s``: loading the step and making the alternatives, only for the time left.
        plan = self._plan(len(jobs), compiles)
        plan = dataclasses.replace(plan, opening_s=self._opening_s(jobs, tried))
        try:
            timing = self._timed(
                self.spec(*jobs.values()),
                self._listener,
                plan=plan,
                others_may_fail=True,
                silence_s=COMPILE_S if compiles else ATTEMPT_S,
            )
        except UsageError as error:
            if not jobs:
                raise
            # A whole process failed, which no single alternative can be blamed for.
            timing = self.time_alone()
            failures: dict[str, Why] = dict.fromkeys(jobs, error.why)
        else:
            failures = _failures(jobs, timing)
        if compiles:  # compilation does not count towards the time limit
            self.ends += left_before_s - self.time_left_s()

        # ``position``: of the alternative among the timed calls; 0 is the step.
        alternatives = {}
        for position, (name, job) in enumerate(jobs.items(), 1):
            if name not in failures:
                alternatives[name] = _with_times(tried[name], timing, position)
            elif len(jobs) > 1:  # another one may have caused the failure
                _, alone = self._times({name: job}, tried)
                alternatives |= alone
            else:
                alternatives[name] = _alternative(name, "failed", failures[name])
        return timing, alternatives

    def _opening_s(self, jobs: Collection[str], tried: Mapping[str, record.Alternative]) -> float:
        """How long a process takes to load the step and to make these alternatives, each as long as
        in its attempt.
        """
        making_ns = sum(tried[name].making.value or 0.0 for name in jobs)
        return self.loading_s + _OPENING_S + making_ns / 1e9

    def spec(self, *others: AttemptJob) -> CallSpec:
        """What a process must run to time the step, as ``step()``, and these others, as
        ``other_1()`` and so on: the Python text of the calls, and of a setup that loads them.
        """
        jobs = [self._job, *others]
        names = ["step"]
        names += [f"other_{position}" for position in range(1, len(jobs))]
        jobs_text = msgspec.json.encode(jobs).decode()
        # The comma behind the names makes the line right for one name too: step, = load_steps(...)
        load = f"{', '.join(names)}, = load_steps({jobs_text!r})"
        return CallSpec(
            calls=[f"{name}()" for name in names],
            setup=f"from overhead.explaining.attempts import load_steps\n{load}",
            path=self._job.path,
            # Only the step had a trial; the others count as alike, so none of them has one now.
            found=[self._found] * len(jobs),
        )

    def _plan(self, others: int, compiles: bool) -> Plan:
        """How the step and so many ``others`` are sampled: in how many processes, and for how long.
        Few processes: each of them has to load the program and make the alternatives again.

        ``compiles``: whether making an alternative compiles it.
        """
        # A statement is the step or an alternative; each is sampled like the step, whose trial gave
        # ``_found``.
        statements = [self._found] * (1 + others)
        case_s = self._case_s(others, compiles)  # seconds for each statement in a process
        self._sampled_s = case_s
        # A little more than the statements take together, so that rounding omits none of them.
        sampling_s = 1.001 * len(statements) * case_s * _PROCESSES
        # ``besides_s``: what the run may take beside its samples, generously.
        besides_s = COMPILE_S if compiles else _PROCESSES * (self.loading_s + 20 * _OPENING_S)
        return dataclasses.replace(
            sampling_plan(statements),
            processes=_PROCESSES,
            case_s=case_s,
            far=False,  # without a sample of a hundred times as many steps
            sampling_s=sampling_s,
            wall_s=2 * sampling_s + besides_s,  # the longest that the whole run may take
        )

    def _case_s(self, others: int, compiles: bool) -> float:
        """How long a process samples the step, and each of the ``others`` in turn with it, s: as
        usual, or shorter if less time is left. Compilation is not limited (``compiles``).
        """
        # ``one_ns``: how long a step took in its trial.
        step_s = self._found.one_ns / 1e9
        # A long step is sampled for some calls at least.
        usual_s = max(_IN_TURN_S if others else _ALONE_S, _FEWEST_CALLS * step_s)
        left_s = math.inf if compiles else self._left_s()
        # ``ends`` is infinite where no limit was set.
        if left_s == math.inf:
            return usual_s
        # Each statement is first calibrated: called some times to find out how it is sampled. The
        # step's own calibration is in ``least_s`` already, so ``_left_s`` does not hold it.
        sampling_s = left_s / _PROCESSES - others * _CALIBRATING * step_s
        # The step and the others share what is left of a process's time equally. They take no more
        # than is usual, unless the measurement is to fill the time left.
        part_s = sampling_s / (1 + others)
        return max(_LEAST_S, part_s if self._fills_time_left else min(usual_s, part_s))


def _failures(names: Iterable[str], timing: Timing) -> dict[str, Why]:
    """The alternatives of these names that have no time in ``timing``, each with the reason."""
    failures = {}
    alternatives = timing.calls[1:]  # the first is the step itself
    for name, call in zip(names, alternatives, strict=True):
        if call.figure("complete") is None:
            failures[name] = call.reason
    return failures


def _as_given(step: StepFunction) -> StepFunction:
    return step


def _always_applies() -> Why:
    return ""


_OF_USER = StepChange(_as_given, _always_applies)
"""The user's own alternative: it is measured as given, and compiles nothing."""


def _change(name: str) -> StepChange:
    """The alternative of this name, which is the user's own if it is none of the known ones."""
    return ALTERNATIVES.get(name, _OF_USER)


def _remark(comparison: OutcomeComparison) -> Why:
    """Why two outcomes without a difference may differ, and which parts are not compared; '' if
    nothing says so.
    """
    return together(comparison.unknown, comparison.remark, _not_compared(comparison))


def _not_compared(comparison: OutcomeComparison) -> Why:
    """Which parts of the results and of the state are not compared, each with the reason: the first
    few, and how many more there are. '' if all were compared.
    """
    if not comparison.left_out:
        return ""
    parts = []
    # The number of values in a part is not told.
    for name, (_, why) in list(comparison.left_out.items())[:_MOST_PARTS]:
        if name:
            parts.append(because("part-not-compared", name=name, why=why))
        else:  # the step object itself, which has no name within the step
            parts.append(because("step-not-compared", why=why))
    more = len(comparison.left_out) - len(parts)
    if more:
        parts.append(because("more-not-compared", more=more))
    return because("parts-not-compared", parts=together(*parts))


def _alternative(
    name: str,
    status: record.AlternativeStatus,
    reason: Why = "",
    where: str = "",
    making_s: float = 0.0,
    **fields: Any,
) -> record.Alternative:
    """An alternative that has no times yet: their fields say ``reason`` instead. ``where``: the
    line of the program that forbids it. ``making_s``: its one-off cost, such as a compilation, in
    seconds. ``fields``: more fields of the result.
    """
    # ``missing``: a figure that has the reason in place of a value.
    differs = status == "differs"
    making = missing("making", reason)
    if status == "ok":
        making = Figure(name="making", value=making_s * 1e9, rule=because("one-attempt"))
    return record.Alternative(
        name=name,
        kind=_change(name).label,
        status=status,
        # How the results differ has a field of its own.
        reason="" if differs else reason,
        results=reason if differs else "",
        site=CallSite(line=where),
        step=missing("step", reason),
        gain=missing("gain", reason, "ratio"),
        making=making,
        repaid_after=missing("repaid_after", reason, "count"),
        **fields,
    )


def _with_times(
    alternative: record.Alternative, timing: Timing, position: int
) -> record.Alternative:
    """The alternative with its time, its gain and when it pays off. ``position``: of its statement
    among the calls in ``timing``, where the step is number 0.
    """
    # The ratios, each of a statement to the step, count the statements from 1 on: 1 is the step,
    # and the alternative at ``position`` has the next number.
    against_step = [each for each in timing.ratios if each.position == position + 1]
    # None if the run formed no ratio for it.
    ratio = against_step[0].ratio if against_step else None
    difference = against_step[0].difference if against_step else None
    gain = _gain(ratio)
    return msgspec.structs.replace(
        alternative,
        step=renamed(timing.calls[position].figure("complete"), "step"),
        gain=gain,
        repaid_after=_repaid(alternative.making, difference),
        reason=together(alternative.reason, gain.reason),
    )


def _gain(ratio: Figure | None) -> Figure:
    """The gain of an alternative, how many times as fast as the step it is, from the ``ratio`` of
    its time to that of the step.
    """
    if ratio is None:
        return missing("gain", because("gain-not-resolved"), "ratio")
    value = ratio.measured
    # The inverse of an interval that reaches zero would have no end.
    if value is None or not value.bounded or value.floor <= 0:
        return missing("gain", ratio.reason or because("gain-not-resolved"), "ratio")
    # The ratio is the alternative's time over the step's; a gain is the inverse, with its interval.
    # ``exactly``: a value whose interval has no width.
    gain = exactly(1.0) / value
    return msgspec.structs.replace(
        ratio, name="gain", unit="ratio", value=gain.value, low=gain.low, high=gain.high
    )


def _repaid(making: Figure, difference: Figure | None) -> Figure:
    """After how many steps an alternative has saved as much time as it took to make it
    (``making``), such as a compilation. ``difference``: the time of the alternative less that of
    the step, so it is below zero if the alternative is faster.
    """
    if difference is None or difference.value is None or difference.high is None:
        return missing("repaid_after", because("difference-not-known"), "count")
    # If the interval reaches zero, the alternative may be no faster.
    if difference.high >= 0:
        return missing("repaid_after", because("saves-no-time"), "count")
    # One-off cost over what each step saves. Both in ns. An alternative without such a cost, whose
    # ``making`` has no value, is repaid at once.
    steps = (making.value or 0.0) / -difference.value
    return Figure(name="repaid_after", unit="count", value=float(math.ceil(steps)))
