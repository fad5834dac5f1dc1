"""Plan what to measure: the targets, their cases, the time of each case, and the companions.

A target is a stack on a device. A companion is a case of another stack, measured in the same
process for a comparison.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from overhead.devices import processor_kind, same_decorated_name
from overhead.errors import unknown_name
from overhead.measure.sampling.events import reason_of
from overhead.named_comparisons import NAMED_COMPARISONS, is_comparable
from overhead.probes import registry, space_of
from overhead.probes.base import Space
from overhead.profiles import WEIGHT, Cost, Plan
from overhead.results import Case, LeftOut, Reason, Target, because, own_stacks
from overhead.runner.workers import Assignment
from overhead.workloads import stack_works, when_measured, workloads

MAX_TIMES_NEED = 4.0
"""A case is sampled for at most this multiple of the time that it needs. With a polling wait the
multiple is 1.
"""
_FEW_CASES = 4
"""What a program pays when nothing is left out is measured for each case of a target that has at
most this many.
"""


@dataclass(frozen=True)
class Candidate:
    """A case that could be measured, and the rough cost of a sample. ``early``: every run should
    have it.
    """

    key: str
    cost: Cost = "fast"
    early: bool = False


@dataclass(frozen=True)
class Allotment:
    """Sampling time of each case in each process (s), by target and case, and the number of
    processes, by target.

    ``left_out``: target, case and reason of every case that is not measured.
    """

    cases: dict[str, dict[str, float]]
    processes: dict[str, int] = field(default_factory=dict)
    left_out: list[tuple[str, str, Reason]] = field(default_factory=list)

    def seconds(self, target: str) -> float:
        """Sampling time of one process of this target, s; 0 if the target has no cases."""
        return sum(self.cases.get(target, {}).values())


def allot(targets: Mapping[str, Sequence[Candidate]], plan: Plan) -> Allotment:
    """Divide the planned sampling time among the candidates of each target.

    The first early candidate of each target gets time, then the second of each, and so on; then the
    others in the same way, until no time is left. The cost of a target's first candidate decides
    its number of processes. The remaining time is divided in proportion, so that a small run
    samples each case for longer.
    """
    budget = math.inf if plan.sampling_s is None else plan.sampling_s
    processes = {target: plan.processes_of(own[0].cost) for target, own in targets.items() if own}
    taken: dict[str, dict[str, float]] = {target: {} for target in targets}
    left_out: list[tuple[str, str, Reason]] = []
    spent = 0.0
    ranked = [
        (turn, target, one) for target, own in targets.items() for turn, one in enumerate(own)
    ]
    for turn, target, candidate in sorted(ranked, key=lambda one: (not one[2].early, one[0])):
        need = plan.case_s * WEIGHT[candidate.cost]
        if turn >= plan.max_cases.get(candidate.cost, turn + 1):
            most = plan.max_cases[candidate.cost]
            left_out.append((target, candidate.key, because("too-many-slow-cases", most=most)))
        elif spent + need * processes[target] <= budget + 1e-9:
            taken[target][candidate.key] = need
            spent += need * processes[target]
        else:
            over = because(
                "over-budget",
                sampling_s=need * processes[target],
                processes=processes[target],
                budget_s=plan.sampling_s,
            )
            left_out.append((target, candidate.key, over))
    factor = MAX_TIMES_NEED if spent == 0 else min(MAX_TIMES_NEED, budget / spent)
    fixed = {"polling"} if plan.stretch_slow else {"polling", "slow"}
    unscaled = {
        (target, c.key)
        for target, candidates in targets.items()
        for c in candidates
        if c.cost in fixed
    }
    scaled = {
        target: {key: s if (target, key) in unscaled else s * factor for key, s in cases.items()}
        for target, cases in taken.items()
    }
    return Allotment(scaled, processes, left_out)


@dataclass(frozen=True)
class Task:
    """Everything that the workers of one target measure.

    ``seconds``: sampling time of one process. ``processes``: the number of processes.
    """

    target: Target
    assignments: tuple[Assignment, ...]
    seconds: float
    processes: int

    @property
    def staged(self) -> tuple[str, ...]:
        """Keys of the assignments whose calls are timed one by one: the target's first of each
        caller.

        The first of them also gets the slow one-off values.
        """
        firsts: dict[str, str] = {}
        for a in self.own:
            firsts.setdefault(a.case.caller, a.key)
        return tuple(firsts.values())

    def met(self, *, alone: bool) -> tuple[str, ...]:
        """Keys of the assignments for which is measured what a program pays when nothing is left
        out.

        They are the first case of each caller, but no program calls by ``ffi``. ``alone``: no other
        target is measured.
        """
        own, by_ffi = self.own, {a.key for a in self.own[1:] if a.case.caller == "ffi"}
        each = alone and len(own) <= _FEW_CASES
        return tuple(a.key for a in own if each or a.key in set(self.staged) - by_ffi)

    @property
    def own(self) -> list[Assignment]:
        """The assignments on the target itself, without companions."""
        return [a for a in self.assignments if a.target.key == self.target.key]

    def without(self, dropped: set[str]) -> Task:
        """The task without the assignments with these keys, and without their share of the time."""
        left = [a for a in self.assignments if a.key not in dropped]
        if len(left) == len(self.assignments):
            return self
        seconds = self.seconds * len(left) / len(self.assignments)
        return replace(self, assignments=tuple(left), seconds=seconds)


@dataclass(frozen=True)
class Choice:
    """Which cases the user wants. An empty field means all of them; ``full``: all combinations of
    the axes.
    """

    patterns: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()
    software: bool = False
    full: bool = False

    def includes(self, case: Case, early: bool = False) -> bool:
        """Whether the case is wanted; ``when_measured`` says which workloads must be asked for
        unless it is early.
        """
        unnamed = ("always", "full") if self.full else ("always",)
        asked = (
            case.workload in self.workloads
            if self.workloads
            else early or when_measured(case.workload) in unnamed
        )
        return asked and (not self.patterns or case.pattern in self.patterns)

    def select(self, cases: Iterable[Case], early: Container[str] = ()) -> list[Case]:
        """The wanted ones of these cases, and of which ``early`` has the keys; named workloads take
        turns.
        """
        taken = [case for case in cases if self.includes(case, case.key in early)]
        by_name = {
            name: [c for c in taken if c.workload == name] for name in sorted(self.workloads)
        }
        ranked = itertools.zip_longest(*by_name.values())
        return [c for rank in ranked for c in rank if c is not None] if by_name else taken


def with_seconds_for(targets: Iterable[Target], plan: Plan) -> Plan:
    """The plan with as many seconds as the GPUs of these targets need. The most GPUs of one stack
    count.
    """
    gpus = {t.key: (t.stack, t.api) for t in targets if processor_kind(t) == "gpu"}
    most = max(Counter(gpus.values()).values(), default=0)
    if not 0 < plan.gpus < most:
        return plan
    longer = {
        name: s * most / plan.gpus
        for name in ("sampling_s", "wall_s", "more_s")
        if (s := getattr(plan, name))
    }
    return replace(plan, gpus=most, **longer)


def schedule(
    targets: Sequence[Target], choice: Choice, plan: Plan
) -> tuple[list[Task], list[LeftOut]]:
    """One task for each target that fits into the budget, and what is left out, with reasons.
    Raises ``UsageError``.
    """
    chosen, left_out = choose_targets(targets, choice)
    plan = with_seconds_for(chosen, plan)
    spaces: dict[str, Space] = {}
    own: dict[str, list[Case]] = {}
    early: dict[str, set[str]] = {}
    for target in chosen if plan.cases else ():
        try:
            space = space_of(registry()[target.stack], target)
            early[target.key] = {case.key for case in (space.base, *space.early)}
            wanted = choice.select(
                space.cross() if choice.full else space.star(), early[target.key]
            )
            own[target.key] = [c for c in wanted if plan.all_cases or c.key in early[target.key]]
            spaces[target.key] = space
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a stack of another package may raise anything
            left_out.append(LeftOut(target=target.key, case="all", reason=reason_of(error)))
    chosen = [target for target in chosen if target.key in spaces]
    if spaces:
        _check_workloads(choice, spaces.values())
    grouped = {t.key: _with_companions(t, own, chosen) for t in chosen}
    candidates: dict[str, list[Candidate]] = {}
    for key, each in grouped.items():
        is_early = False  # a companion is early if the case before it is
        for one in each:
            is_early = one.case.key in early[key] if one.target.key == key else is_early
            candidates.setdefault(key, []).append(
                Candidate(one.key, registry()[one.target.stack].cost, is_early)
            )
    allotment = allot(candidates, plan)
    names = {key: _names_of(key, each) for key, each in grouped.items()}
    for worker, candidate, reason in allotment.left_out:
        left_out.append(LeftOut(target=worker, case=names[worker][candidate], reason=reason))
    tasks = []
    for target in chosen:
        cases = allotment.cases.get(target.key, {})
        taken = tuple(a for a in grouped[target.key] if a.key in cases)
        if taken:
            tasks.append(
                Task(target, taken, allotment.seconds(target.key), allotment.processes[target.key])
            )
    return tasks, left_out


def _names_of(worker: str, assigned: Sequence[Assignment]) -> dict[str, str]:
    """What a case of this worker is called, by the key of its assignment: a companion is named with
    its own target.
    """
    return {one.key: one.case.key if one.target.key == worker else one.key for one in assigned}


def check_workload_names(choice: Choice, stacks: Iterable[str]) -> None:
    """Raise ``UsageError`` for an unknown workload, before devices are looked for.

    A stack of somebody else may have work of its own, which its cases alone tell.
    """
    if own_stacks().keys() >= set(stacks):
        _check_workloads(choice, [])


def _check_workloads(choice: Choice, spaces: Iterable[Space]) -> None:
    """Raise ``UsageError`` if a workload is neither registered nor a workload of any case."""
    known = {*stack_works(), *workloads()}
    if strange := choice.workloads - known:
        strange -= {case.workload for space in spaces for case in space.cross()}
    if strange:
        raise unknown_name("workload", min(strange), known)


def choose_targets(targets: Sequence[Target], choice: Choice) -> tuple[list[Target], list[LeftOut]]:
    """The targets to measure, and the others with the reason. Hardware is always measured."""
    on_gpu = {t.stack for t in targets if not t.software and t.executes and t.api != "CPU"}
    others = choice.software or choice.full or choice.workloads
    by_vulkan = [t for t in targets if t.api == "Vulkan"]
    chosen, left_out = [], []
    for target in targets:
        if target.software and on_gpu and not choice.software:
            reason = because("software-beside-gpu")
        elif target.stack in on_gpu and (target.api == "CPU" or not target.executes) and not others:
            reason = because("no-gpu-beside-gpu")
        elif (
            target.api == "OpenGL"
            and not choice.full
            # Drivers add other words to the name of the adapter in the other API.
            and any(
                t.stack == target.stack and same_decorated_name(t.adapter, target.adapter)
                for t in by_vulkan
            )
        ):
            reason = because("measured-through-vulkan")
        else:
            chosen.append(target)
            continue
        left_out.append(LeftOut(target=target.key, case="all", reason=reason))
    return chosen, left_out


def _with_companions(
    target: Target, own: dict[str, list[Case]], targets: Sequence[Target]
) -> list[Assignment]:
    """The cases of the target, each followed by its companions: for each comparison and other
    stack, the first match.

    A companion runs in the worker's process, so it must work with the worker's environment
    variables.
    """
    fitting = (
        t
        for t in targets
        if t.environment == target.environment or (not t.environment and t.api == "CPU")
    )
    others = [t for t in fitting if t.stack != target.stack]
    wanted: dict[str, Assignment] = {}
    for case in own[target.key]:
        group = [Assignment(target, case)]
        for named, other in itertools.product(NAMED_COMPARISONS, others):
            companions = (
                c for c in own[other.key] if is_comparable(named, (target, case), (other, c))
            )
            group += [Assignment(other, c) for c in itertools.islice(companions, 1)]
        for one in group:
            wanted.setdefault(one.key, one)
    return list(wanted.values())
