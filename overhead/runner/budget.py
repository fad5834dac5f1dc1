"""Divide the sampling time of a run among its cases, and leave out the cases that do not fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead.profiles import WEIGHT, Cost, Plan

MAX_TIMES_NEED = 4.0
"""A case is sampled for at most this multiple of the time that it needs. With a polling wait the multiple is 1."""


@dataclass(frozen=True)
class Candidate:
    """A case that could be measured, and the rough cost of a sample."""

    key: str
    cost: Cost = "fast"


@dataclass(frozen=True)
class Allotment:
    """Sampling time of each case in each process (s), by target and case, and the number of processes, by target.

    ``left_out``: target, case and reason of every case that is not measured.
    """

    cases: dict[str, dict[str, float]]
    processes: dict[str, int] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def seconds(self, target: str) -> float:
        """Sampling time of one process of this target, s; 0 if the target has no cases."""
        return sum(self.cases.get(target, {}).values())


def allot(targets: Mapping[str, Sequence[Candidate]], plan: Plan) -> Allotment:
    """Divide the planned sampling time among the candidates.

    The first candidate of each target gets time, then the second of each, and so on until no time is left. The cost of
    a target's first candidate decides its number of processes. The remaining time is divided in proportion, so that a
    small run samples each case for longer.
    """
    budget = math.inf if plan.sampling_s is None else plan.sampling_s
    processes = {target: plan.processes_of(candidates[0].cost) for target, candidates in targets.items() if candidates}
    queues = {target: list(candidates) for target, candidates in targets.items()}
    taken: dict[str, dict[str, float]] = {target: {} for target in targets}
    left_out: list[tuple[str, str, str]] = []
    spent = 0.0
    for turn in range(max(map(len, queues.values()), default=0)):
        for target, queue in queues.items():
            if turn >= len(queue):
                continue
            candidate = queue[turn]
            need = plan.case_s * WEIGHT[candidate.cost]
            if turn >= plan.max_cases.get(candidate.cost, turn + 1):
                left_out.append((target, candidate.key, _too_many(plan.max_cases[candidate.cost])))
                continue
            if spent + need * processes[target] <= budget + 1e-9:
                taken[target][candidate.key] = need
                spent += need * processes[target]
            else:
                left_out.append((target, candidate.key, _does_not_fit(need, processes[target], plan)))
    factor = MAX_TIMES_NEED if spent == 0 else min(MAX_TIMES_NEED, budget / spent)
    fixed = {"polling"} if plan.stretch_slow else {"polling", "slow"}
    unscaled = {(target, c.key) for target, candidates in targets.items() for c in candidates if c.cost in fixed}
    scaled = {
        target: {key: s if (target, key) in unscaled else s * factor for key, s in cases.items()}
        for target, cases in taken.items()
    }
    return Allotment(scaled, processes, left_out)


def _too_many(most: int) -> str:
    return (
        f"its stack takes seconds a case, so this profile has {most} of them; "
        "a larger profile or a choice of patterns takes it"
    )


def _does_not_fit(need: float, processes: int, plan: Plan) -> str:
    return (
        f"{need * processes:.1f} s of sampling in {processes} processes do not fit the budget of "
        f"{plan.sampling_s:.0f} s for the whole run; a larger profile or a choice of stacks and patterns takes it"
    )
