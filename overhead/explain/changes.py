"""What would change a step: attempt the alternatives, compare their results, and time them in turn with the step."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from overhead.errors import UsageError
from overhead.explain import record
from overhead.explain.alternatives import ALTERNATIVES, NO_TORCH
from overhead.explain.attempts import Attempt, AttemptJob, attempted
from overhead.explain.call_spec import CallSpec, FoundCall
from overhead.explain.outcome import OutcomeComparison, StepOutcome, compared
from overhead.explain.record import CallSite, missing, renamed
from overhead.explain.timing import Timing, plan_of, time_statements
from overhead.profiles import Plan
from overhead.results import Figure, exactly
from overhead.runner.progress import Listener

AGAINST = "your alternative"
"""The name of the function that ``--against`` gives."""
ATTEMPT_S = 120.0
COMPILE_S = 600.0
"""Seconds that an alternative gets: those that compile the step need more."""

_PROCESSES = 3
_ALONE_S, _IN_TURN_S = 3.0, 1.5
"""Seconds that each process samples the step: alone, and in turn with alternatives, which it samples as long."""
_FEWEST_CALLS = 15
_SHOWN = 2
"""How many parts that are not compared are named."""


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """An alternative to time. ``same``: its results are those of the step; None: not known, and ``remark`` says why."""

    name: str
    job: AttemptJob
    made: Attempt
    same: bool | None
    remark: str = ""
    compared: OutcomeComparison | None = None


class Changes:
    """Attempts and times alternatives to one step. ``job``: the step. ``found``: what a trial of ``step()`` found out.
    ``torch``: False for a step of another library than PyTorch, to which only ``against`` is an alternative.

    ``attempted`` and ``timed`` stand for the child processes, so that tests can replace them.
    """

    def __init__(
        self,
        job: AttemptJob,
        found: FoundCall,
        listener: Listener,
        attempted: Callable[..., Sequence[Attempt]] = attempted,
        timed: Callable[..., Timing] = time_statements,
        *,
        torch: bool = True,
    ) -> None:
        self._job = msgspec.structs.replace(job, torch="torch" in found.packages)
        self._found, self._listener, self._torch = found, listener, torch
        self._attempted, self._timed = attempted, timed

    def alone(self) -> Timing:
        """The times of the step, without alternatives."""
        return self._times([])[0]

    def all(self, *, compiled: bool = True, against: str = "") -> tuple[Timing, list[record.Alternative]]:
        """The times of the step, and every alternative in the order in which they are shown.

        ``compiled``: include those that compile the step. ``against``: Python text after which ``step`` is the user's
        own alternative. Raises ``UsageError`` if the step as it is cannot be repeated.
        """
        names = [name for name, each in ALTERNATIVES.items() if compiled or not each.compiles]
        jobs = {AGAINST: msgspec.structs.replace(self._job, against=against)} if against else {}
        found: dict[str, record.Alternative] = {}
        if self._torch:
            jobs |= {name: msgspec.structs.replace(self._job, alternative=name) for name in names}
        else:
            found = {name: _without(name, "refused", NO_TORCH, "") for name in names}
        candidates = self._candidates(jobs, found) if jobs else []
        timing, timed = self._times(candidates)
        found |= timed
        return timing, [found[name] for name in [*([AGAINST] if against else []), *names]]

    def _candidates(self, jobs: dict[str, AttemptJob], found: dict[str, record.Alternative]) -> list[_Candidate]:
        """The alternatives that can be timed. The records of all others are added to ``found``."""
        original, attempts = self._attempts(jobs)
        candidates = []
        for name, job in jobs.items():
            judged = self._compared(name, job, original, attempts[name])
            if isinstance(judged, _Candidate):
                candidates.append(judged)
            else:
                found[name] = judged
        return candidates

    def _attempts(self, jobs: dict[str, AttemptJob]) -> tuple[StepOutcome, dict[str, Attempt]]:
        """What the step computes, and the attempt of each alternative. Attempts that compile run one after another."""
        short = [name for name in jobs if not _compiles(name)]
        self._listener.working(f"one attempt each: {', '.join(short)}" if short else "the step once more")
        original, *made = self._attempted([self._job, *(jobs[name] for name in short)], limit_s=ATTEMPT_S)
        if original.outcome is None:
            raise UsageError(f"the step cannot be repeated: {_said(original)}")
        found = dict(zip(short, made, strict=True))
        for name in jobs:
            if _compiles(name):
                self._listener.working(f"{name}: one attempt, which compiles the step")
                found[name] = self._attempted([jobs[name]], limit_s=COMPILE_S)[0]
        return original.outcome, found

    def _compared(
        self, name: str, job: AttemptJob, original: StepOutcome, made: Attempt
    ) -> _Candidate | record.Alternative:
        """The alternative if it can be timed; else the record of why not."""
        if made.outcome is None:
            return _without(name, "refused" if made.refused else "failed", made.reason, made.where)
        if _kind(name) != "measured":
            return _Candidate(name, job, made, None)
        found = compared(original, made.outcome, own=bool(job.against))
        made = msgspec.structs.replace(made, outcome=None)  # lets go of the values
        if not found.differences:
            remark = "; ".join(filter(None, [found.unknown, _not_compared(found)]))
            return _Candidate(name, job, made, None if found.unknown else True, remark, found)
        if compared(original, self._again).differences:
            return _Candidate(name, job, made, None, "the step itself gives different results in two processes")
        return _without(name, "differs", found.differences[0], "", compared=found)

    @functools.cached_property
    def _again(self) -> StepOutcome:
        """What the step computes in one more process."""
        return self._attempted([self._job], limit_s=ATTEMPT_S)[0].outcome or StepOutcome([], [])

    def _times(self, candidates: Sequence[_Candidate]) -> tuple[Timing, dict[str, record.Alternative]]:
        """The step and these alternatives in turn, in the same processes. One that fails there is tried alone."""
        if candidates:
            self._listener.working(f"timing the step and {', '.join(one.name for one in candidates)} in turn")
        try:
            timing = self._timed(
                self._spec(candidates),
                self._listener,
                plan=self._plan(len(candidates)),
                others_may_fail=True,
                silence_s=COMPILE_S if any(_compiles(one.name) for one in candidates) else ATTEMPT_S,
            )
        except UsageError as error:
            if not candidates:
                raise
            timing = self.alone()
            reasons = {one.name: str(error) for one in candidates}
        else:
            others = zip(candidates, timing.calls[1:], strict=True)
            reasons = {one.name: call.reason for one, call in others if call.figure("complete") is None}
        found = {}
        for position, one in enumerate(candidates, 1):
            if one.name not in reasons:
                found[one.name] = _with(one, timing, position)
            elif len(candidates) > 1:
                found |= self._times([one])[1]
            else:
                found[one.name] = _without(one.name, "failed", reasons[one.name], "")
        return timing, found

    def _spec(self, candidates: Sequence[_Candidate]) -> CallSpec:
        jobs = [self._job, *(one.job for one in candidates)]
        names = ["step", *(f"other_{position}" for position in range(1, len(jobs)))]
        text = msgspec.json.encode(jobs).decode()
        return CallSpec(
            calls=[f"{name}()" for name in names],
            setup=f"from overhead.explain.attempts import steps_of\n{', '.join(names)}, = steps_of({text!r})",
            path=self._job.path,
            found=[self._found] * len(jobs),
        )

    def _plan(self, others: int) -> Plan:
        """Few processes: each of them has to load the program and make the alternatives again."""
        statements = [self._found] * (1 + others)
        case_s = max(_IN_TURN_S if others else _ALONE_S, _FEWEST_CALLS * self._found.one_ns / 1e9)
        sampling_s = 1.001 * len(statements) * case_s * _PROCESSES
        making_s = COMPILE_S if others else 20.0
        return dataclasses.replace(
            plan_of(statements),
            processes=_PROCESSES,
            case_s=case_s,
            sampling_s=sampling_s,
            wall_s=2 * sampling_s + making_s,
        )


def _kind(name: str) -> record.AlternativeKind:
    return ALTERNATIVES[name].label if name in ALTERNATIVES else "measured"


def _compiles(name: str) -> bool:
    return name in ALTERNATIVES and ALTERNATIVES[name].compiles


def _not_compared(found: OutcomeComparison) -> str:
    """The parts of two outcomes that are not compared, in words; empty if there are none."""
    shown = "; ".join(f"{name or 'the step'} ({why})" for name, (_, why) in list(found.left_out.items())[:_SHOWN])
    more = f" and {len(found.left_out) - _SHOWN} more" if len(found.left_out) > _SHOWN else ""
    return f"not compared: {shown}{more}" if shown else ""


def _counts(found: OutcomeComparison | None) -> dict[str, Any]:
    """The fields of an alternative that tell how many values were compared."""
    return {"compared": found.count, "not_compared": sum(n for n, _ in found.left_out.values())} if found else {}


def _said(made: Attempt) -> str:
    return f"{made.reason} ({made.where})" if made.where else made.reason


def _without(
    name: str, status: record.AlternativeStatus, reason: str, where: str, *, compared: OutcomeComparison | None = None
) -> record.Alternative:
    """An alternative that has no times."""
    return record.Alternative(
        name=name,
        kind=_kind(name),
        status=status,
        reason="" if status == "differs" else reason,
        results=reason if status == "differs" else "",
        same_results=False if status == "differs" else None,
        site=CallSite(line=where),
        **_counts(compared),
        step=missing("step", reason),
        gain=missing("gain", reason, "ratio"),
        making=missing("making", reason),
        repaid_after=missing("repaid_after", reason, "count"),
    )


def _with(one: _Candidate, timing: Timing, position: int) -> record.Alternative:
    """An alternative with its times. ``position``: of its statement in ``timing``."""
    step = renamed(timing.calls[position].figure("complete"), "step")
    making = Figure(name="making", value=one.made.making_s * 1e9, rule="one attempt, with the first step")
    ratio = next((ratio for ratio in timing.ratios if ratio.position == position + 1), None)
    gain = _gain(ratio.ratio if ratio is not None else None)
    return record.Alternative(
        name=one.name,
        kind=_kind(one.name),
        status="ok",
        step=step,
        gain=gain,
        making=making,
        repaid_after=_repaid(making, ratio.difference if ratio is not None else None),
        same_results=one.same,
        reason="; ".join(filter(None, [one.remark, gain.reason])),
        **_counts(one.compared),
    )


def _gain(ratio: Figure | None) -> Figure:
    """The step as it is over the alternative, from the alternative over the step."""
    of = ratio.measured if ratio is not None else None
    if ratio is None or of is None or not of.bounded or of.floor <= 0:
        return missing("gain", (ratio.reason if ratio is not None else "") or "not resolved", "ratio")
    gain = exactly(1.0) / of
    return msgspec.structs.replace(ratio, name="gain", unit="ratio", value=gain.value, low=gain.low, high=gain.high)


def _repaid(making: Figure, saved: Figure | None) -> Figure:
    """After how many steps the making has paid for itself. ``saved``: the alternative less the step."""
    if saved is None or saved.value is None or saved.high is None:
        return missing("repaid_after", "the difference is not known", "count")
    if saved.high >= 0:
        return missing("repaid_after", "no step is saved time", "count")
    return Figure(name="repaid_after", unit="count", value=float(math.ceil((making.value or 0.0) / -saved.value)))
