"""One budget for the whole run: how long each case may be sampled, and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from overhead.profiles import WEIGHT, Cost, Plan

MAX_TIMES_NEED = 4.0
"""No case gets more than this many times what it needs; one behind a polling wait, which takes long, gets just that."""


@dataclass(frozen=True)
class Candidate:
    """A case that could be measured, and what it roughly costs."""

    key: str
    cost: Cost = "fast"


@dataclass(frozen=True)
class Allotment:
    """``cases``: by target and case, the seconds to sample it in each process; ``processes``: by target;
    ``left_out``: target, case, reason."""

    cases: dict[str, dict[str, float]]
    processes: dict[str, int] = field(default_factory=dict)
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def seconds(self, target: str) -> float:
        """Seconds of sampling that one process of this target may take."""
        return sum(self.cases.get(target, {}).values())


def allot(targets: Mapping[str, Sequence[Candidate]], plan: Plan) -> Allotment:
    """Take the targets' candidates in turn, first choices first, until the sampling budget is spent.

    A target's own cases come first and say in how many processes its worker runs. What is left over then goes to all
    taken cases in proportion, so a small run measures each case for longer.
    """
    budget = plan.planned_s
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
            if turn >= plan.most.get(candidate.cost, turn + 1):
                left_out.append((target, candidate.key, _too_many(plan.most[candidate.cost])))
                continue
            if spent + need * processes[target] <= budget + 1e-9:
                taken[target][candidate.key] = need
                spent += need * processes[target]
            else:
                left_out.append((target, candidate.key, _words(need, processes[target], plan)))
    share = MAX_TIMES_NEED if spent == 0 else min(MAX_TIMES_NEED, budget / spent)
    fixed = {"polling"} if plan.stretch else {"polling", "slow"}
    enough = {(target, c.key) for target, candidates in targets.items() for c in candidates if c.cost in fixed}
    scaled = {
        target: {key: s if (target, key) in enough else s * share for key, s in cases.items()}
        for target, cases in taken.items()
    }
    return Allotment(scaled, processes, left_out)


def _too_many(most: int) -> str:
    return (
        f"its stack takes seconds a case, so this profile has {most} of them; "
        "a larger profile or a choice of patterns takes it"
    )


def _words(need: float, processes: int, plan: Plan) -> str:
    return (
        f"{need * processes:.1f} s of sampling in {processes} processes do not fit the budget of "
        f"{plan.planned_s:.0f} s for the whole run; a larger profile or a choice of stacks and patterns takes it"
    )
