"""Plan what to measure: the targets, their cases within the budget, and the companions.

A companion is a case of another stack, measured in the same process for a comparison.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

from overhead.devices import same_decorated_name
from overhead.errors import unknown
from overhead.measure.sampling.events import reason_of
from overhead.named_comparisons import NAMED_COMPARISONS, comparable
from overhead.probes import registry, space_of
from overhead.probes.base import Space
from overhead.profiles import Plan
from overhead.results import Case, LeftOut, Target
from overhead.runner.budget import Candidate, allot
from overhead.runner.workers import Assignment
from overhead.workloads import runs_of, stack_works, workloads

_FEW_CASES = 4
"""The met cost is measured for each case of a target that has at most this many, else for the staged ones."""


@dataclasses.dataclass(frozen=True)
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
        """Keys of the assignments whose calls are timed one by one: on the target itself, the first of each caller.

        The first of them, the base case, also gets the slow one-off values.
        """
        firsts: dict[str, str] = {}
        for a in self.own:
            firsts.setdefault(a.case.caller, a.key)
        return tuple(firsts.values())

    @property
    def met(self) -> tuple[str, ...]:
        """Keys of the assignments whose met cost is measured."""
        return tuple(a.key for a in self.own) if len(self.own) <= _FEW_CASES else self.staged

    @property
    def own(self) -> list[Assignment]:
        """The assignments on the target itself, without companions."""
        return [a for a in self.assignments if a.target.key == self.target.key]

    def without(self, dropped: set[str]) -> Task:
        """The task without the assignments with these keys. If a first case is dropped, the next one replaces it."""
        left = [a for a in self.assignments if a.key not in dropped]
        if len(left) == len(self.assignments):
            return self
        seconds = self.seconds * len(left) / len(self.assignments)
        return dataclasses.replace(self, assignments=tuple(left), seconds=seconds)


@dataclasses.dataclass(frozen=True)
class Choice:
    """The selection that the user asked for. An empty field means everything."""

    patterns: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()
    software: bool = False
    full: bool = False

    def takes(self, case: Case) -> bool:
        """Whether the case is selected. ``runs_of`` says which workloads must be named."""
        unnamed = ("always", "full") if self.full else ("always",)
        asked = case.workload in self.workloads if self.workloads else runs_of(case.workload) in unnamed
        return asked and (not self.patterns or case.pattern in self.patterns)

    def of(self, cases: Iterable[Case]) -> list[Case]:
        """The selected cases. Named workloads take turns, one case each, so that all of them fit into the budget."""
        taken = [case for case in cases if self.takes(case)]
        by_name = {name: [c for c in taken if c.workload == name] for name in sorted(self.workloads)}
        ranked = itertools.zip_longest(*by_name.values())
        return [c for rank in ranked for c in rank if c is not None] if by_name else taken


def schedule(targets: Sequence[Target], choice: Choice, plan: Plan) -> tuple[list[Task], list[LeftOut]]:
    """The tasks that fit into the budget of the plan, and everything left out with its reason.

    Raises ``UsageError``.
    """
    chosen, left_out = _choose_targets(targets, choice)
    spaces: dict[str, Space] = {}
    own: dict[str, list[Case]] = {}
    for target in chosen:
        try:
            space = space_of(registry()[target.stack], target)
            own[target.key] = choice.of(space.cross() if choice.full else space.star())
            spaces[target.key] = space
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a stack of another package may raise anything
            left_out.append(LeftOut(target=target.key, case="all", reason=reason_of(error)))
    chosen = [target for target in chosen if target.key in spaces]
    if spaces:
        _check_workloads(choice, spaces.values())
    wanted = {t.key: _with_companions(t, own, chosen) for t in chosen}
    stacks = registry()
    candidates = {key: [Candidate(a.key, stacks[a.target.stack].cost) for a in each] for key, each in wanted.items()}
    allotment = allot(candidates, plan)
    for worker, candidate, reason in allotment.left_out:
        left_out.append(LeftOut(target=worker, case=candidate.removeprefix(f"{worker} "), reason=reason))
    tasks = []
    for target in chosen:
        cases = allotment.cases.get(target.key, {})
        taken = tuple(a for a in wanted[target.key] if a.key in cases)
        if taken:
            tasks.append(Task(target, taken, sum(cases.values()), allotment.processes[target.key]))
    return tasks, left_out


def _check_workloads(choice: Choice, spaces: Iterable[Space]) -> None:
    """Raise ``UsageError`` if a workload is neither registered nor a workload of any case."""
    known = {*stack_works(), *workloads()}
    if strange := choice.workloads - known:
        strange -= {case.workload for space in spaces for case in space.cross()}
    if strange:
        raise unknown("workload", min(strange), known)


def _choose_targets(targets: Sequence[Target], choice: Choice) -> tuple[list[Target], list[LeftOut]]:
    """The targets to measure, and the others with the reason.

    Hardware is always measured. A software adapter is measured if there is no hardware GPU, or on request. OpenGL on a
    device that Vulkan can use too is measured only if the full product of the cases was requested.
    """
    hardware = any(not t.software and t.executes and t.api != "CPU" for t in targets)
    by_vulkan = [t for t in targets if t.api == "Vulkan"]
    chosen, left_out = [], []
    for target in targets:
        if target.software and hardware and not choice.software:
            reason = "a software adapter, and there is a GPU; --software measures it too"
        elif (
            target.api == "OpenGL"
            and not choice.full
            # Drivers add other words to the name of the adapter in the other API.
            and any(t.stack == target.stack and same_decorated_name(t.adapter, target.adapter) for t in by_vulkan)
        ):
            reason = "the same adapter is measured through Vulkan; --profile thorough takes both"
        else:
            chosen.append(target)
            continue
        left_out.append(LeftOut(target=target.key, case="all", reason=reason))
    return chosen, left_out


def _with_companions(target: Target, own: dict[str, list[Case]], targets: Sequence[Target]) -> list[Assignment]:
    """The cases of the target, each followed by its companions.

    The companions of a case are, for each named comparison and each other stack, the first case that it is compared
    with. A companion runs in the worker's process, so it must work with the worker's environment variables.
    """
    others = [t for t in targets if t.stack != target.stack and _fits(t, target)]
    wanted: dict[str, Assignment] = {}
    for case in own[target.key]:
        group = [Assignment(target, case)]
        for named, other in itertools.product(NAMED_COMPARISONS, others):
            companions = (c for c in own[other.key] if comparable(named, (target, case), (other, c)))
            group += [Assignment(other, c) for c in itertools.islice(companions, 1)]
        for one in group:
            wanted.setdefault(one.key, one)
    return list(wanted.values())


def _fits(other: Target, target: Target) -> bool:
    return other.environment == target.environment or (not other.environment and other.api == "CPU")
