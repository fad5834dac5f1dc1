"""What would change a step: attempt each alternative, compare its results, and time it beside the step."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import msgspec

from overhead.errors import UsageError
from overhead.explain import record
from overhead.explain.alternatives import ALTERNATIVES
from overhead.explain.attempts import Attempt, AttemptJob, attempt
from overhead.explain.call_spec import CallSpec, FoundCall
from overhead.explain.outcome import StepOutcome, ValueDifference, differences
from overhead.explain.record import CallSite, missing
from overhead.explain.timing import Timing, plan_of, time_statements
from overhead.profiles import Plan
from overhead.results import Figure
from overhead.runner.campaign import Campaign
from overhead.runner.progress import Listener
from overhead.runner.turns import WorkerLimits

AGAINST = "your alternative"
"""The name of the function that ``--against`` gives."""
ATTEMPT_S = 120.0
COMPILE_S = 600.0
"""Seconds that an alternative gets: those that compile the step need more."""

_PROCESSES = 3
_CASE_S = 1.5
_CALLS = 30
"""Processes that time an alternative; seconds that each samples it, or calls of a slow one."""


class Changes:
    """Attempts and times alternatives to one step. ``job``: the step. ``found``: what a trial of ``step()`` found out.

    ``attempted`` and ``timed`` stand for the child processes, so that tests can replace them.
    """

    def __init__(
        self,
        job: AttemptJob,
        found: FoundCall,
        listener: Listener,
        attempted: Callable[..., Attempt] = attempt,
        timed: Callable[..., Timing] = time_statements,
    ) -> None:
        self._job, self._found, self._listener = job, found, listener
        self._attempted, self._timed = attempted, timed

    @functools.cached_property
    def _original(self) -> StepOutcome:
        """The outcome of the step as it is. Raises ``UsageError`` if there is none."""
        made = self._attempted(self._job, limit_s=ATTEMPT_S)
        if made.outcome is None:
            raise UsageError(f"the step cannot be repeated: {_said(made)}")
        return made.outcome

    def all(self, *, compiled: bool = True, against: str = "") -> list[record.Alternative]:
        """Every alternative, in the order in which they are shown. ``compiled``: include those that compile the step.

        ``against``: Python text after which ``step`` is the user's own alternative.
        """
        jobs = {AGAINST: msgspec.structs.replace(self._job, against=against)} if against else {}
        for name, each in ALTERNATIVES.items():
            if compiled or not each.compiles:
                jobs[name] = msgspec.structs.replace(self._job, alternative=name)
        return [self.one(name, job) for name, job in jobs.items()]

    def one(self, name: str, job: AttemptJob) -> record.Alternative:
        """One alternative: attempted, compared and timed."""
        kind = ALTERNATIVES[name].label if name in ALTERNATIVES else "measured"
        compiles = name in ALTERNATIVES and ALTERNATIVES[name].compiles
        limit_s = COMPILE_S if compiles else ATTEMPT_S
        original = self._original
        self._listener.working(f"{name}: one attempt" + (", which compiles the step" if compiles else ""))
        made = self._attempted(job, limit_s=limit_s)
        if made.outcome is None:
            status: record.AlternativeStatus = "refused" if made.refused else "failed"
            return _without(name, kind, status, made.reason, made.where)
        same, remark = True, ""
        if kind == "measured" and (found := _differences(original, made.outcome, own=bool(job.against))):
            if _differences(original, self._again(), own=False):
                same, remark = False, "the step itself gives different results in two processes"
            else:
                return _without(name, kind, "differs", found[0].sentence(), "", same_results=False)
        self._listener.working(f"{name}: timed beside the step")
        try:
            timing = self._timed(self._spec(job), self._listener, plan=self._plan(), campaign=_patient(limit_s))
        except UsageError as error:
            return _without(name, kind, "failed", str(error), "")
        return _with(name, kind, timing, made, same_results=same if kind == "measured" and not remark else None,
                     reason=remark)  # fmt: skip

    def _again(self) -> StepOutcome:
        """The outcome of the step as it is in one more process."""
        return self._attempted(self._job, limit_s=ATTEMPT_S).outcome or StepOutcome([], [])

    def _spec(self, job: AttemptJob) -> CallSpec:
        text = msgspec.json.encode(job).decode()
        setup = (
            "from overhead.explain.attempts import AttemptJob, both_steps\n"
            "import msgspec\n"
            f"step, other = both_steps(msgspec.json.decode({text!r}, type=AttemptJob))"
        )
        return CallSpec(calls=["step()", "other()"], setup=setup, path=job.path, found=[self._found, self._found])

    def _plan(self) -> Plan:
        """Few processes: each of them has to make the alternative again."""
        plan = plan_of([self._found, self._found])
        case_s = max(_CASE_S, _CALLS * self._found.one_ns / 1e9)
        sampling_s = 1.001 * 2 * case_s * _PROCESSES
        return dataclasses.replace(
            plan, processes=_PROCESSES, case_s=case_s, sampling_s=sampling_s, wall_s=2 * sampling_s + COMPILE_S
        )


def _patient(silence_s: float) -> Callable[..., Campaign]:
    return functools.partial(Campaign, limits=WorkerLimits(silence_s=silence_s))


def _differences(first: StepOutcome, second: StepOutcome, *, own: bool) -> Sequence[ValueDifference]:
    """What two outcomes do not share. ``own``: the second is another program, whose state may have other names."""
    if own and first.results:
        return differences(first.results, second.results)
    return [*differences(first.results, second.results), *differences(first.state, second.state)]


def _said(made: Attempt) -> str:
    return f"{made.reason} ({made.where})" if made.where else made.reason


def _without(
    name: str, kind: record.AlternativeKind, status: record.AlternativeStatus, reason: str, where: str, *,
    same_results: bool | None = None,
) -> record.Alternative:  # fmt: skip
    """An alternative that has no times."""
    return record.Alternative(
        name=name, kind=kind, status=status, reason="" if status == "differs" else reason,
        results=reason if status == "differs" else "", same_results=same_results, site=CallSite(line=where),
        step=missing("step", reason), gain=missing("gain", reason, "ratio"), making=missing("making", reason),
        repaid_after=missing("repaid_after", reason, "count"),
    )  # fmt: skip


def _with(
    name: str, kind: record.AlternativeKind, timing: Timing, made: Attempt, *, same_results: bool | None, reason: str
) -> record.Alternative:
    step = _renamed(timing.calls[1].figure("complete"), "step")
    making = Figure(name="making", value=made.making_s * 1e9, rule="one attempt, with the first step")
    gain = _gain(timing.ratios[0].ratio if timing.ratios else None)
    remarks = [reason, gain.reason, f"{made.graph_breaks} graph breaks" if made.graph_breaks else ""]
    return record.Alternative(
        name=name, kind=kind, status="ok", step=step, gain=gain, making=making,
        repaid_after=_repaid(making, timing), same_results=same_results, reason="; ".join(filter(None, remarks)),
    )  # fmt: skip


def _renamed(figure: Figure | None, name: str) -> Figure:
    return missing(name, "not measured") if figure is None else msgspec.structs.replace(figure, name=name)


def _gain(ratio: Figure | None) -> Figure:
    """The step as it is over the alternative, from the alternative over the step."""
    if ratio is None or not ratio.value or not ratio.low or not ratio.high or ratio.low <= 0:
        return missing("gain", (ratio.reason if ratio is not None else "") or "not resolved", "ratio")
    return msgspec.structs.replace(
        ratio, name="gain", unit="ratio", value=1 / ratio.value, low=1 / ratio.high, high=1 / ratio.low
    )


def _repaid(making: Figure, timing: Timing) -> Figure:
    """After how many steps the making has paid for itself."""
    saved = timing.ratios[0].difference if timing.ratios else None
    if saved is None or saved.value is None or saved.high is None:
        return missing("repaid_after", "the difference is not known", "count")
    if saved.high >= 0:
        return missing("repaid_after", "no step is saved time", "count")
    return Figure(name="repaid_after", unit="count", value=float(math.ceil((making.value or 0.0) / -saved.value)))
