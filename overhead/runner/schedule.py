"""What will be measured: targets, their cases within the budget, and the companions that pairs need beside them."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Container, Iterable, Mapping, Sequence

from overhead.errors import UsageError
from overhead.named_comparisons import NAMED, comparable
from overhead.probes import registry
from overhead.probes.base import Space
from overhead.profiles import PROFILES, Plan
from overhead.results import Case, LeftOut, PlannedLine, Profile, Target
from overhead.runner.budget import Allotment, Candidate, allot
from overhead.runner.protocol import Assignment
from overhead.workloads import RESERVED, UNROLLED, workloads


@dataclasses.dataclass(frozen=True)
class Task:
    """All that one target's workers measure. ``seconds``: sampling time of one process of so many.

    ``staged``: keys of the first case of each caller on the target itself, whose calls are timed one by one.
    ``extras``: the base case among them, which also gets the slow one-off values. ``slopes_only``: the process was not
    planned, and measures neither.
    """

    target: Target
    assignments: tuple[Assignment, ...]
    seconds: float
    processes: int
    extras: tuple[str, ...] = ()
    staged: tuple[str, ...] = ()
    slopes_only: bool = False

    @classmethod
    def of(cls, target: Target, assignments: Sequence[Assignment], seconds: float, processes: int) -> Task:
        task = cls(target, tuple(assignments), seconds, processes)
        firsts: dict[str, str] = {}
        for a in task.own:
            firsts.setdefault(a.case.caller, a.key)
        staged = tuple(firsts.values())
        return dataclasses.replace(task, extras=staged[:1], staged=staged)

    @property
    def own(self) -> list[Assignment]:
        """Those on the target itself, without companions."""
        return [a for a in self.assignments if a.target.key == self.target.key]

    def without(self, dropped: set[str]) -> Task:
        """The task less these, by key; another case of theirs takes the place of a first one."""
        left = [a for a in self.assignments if a.key not in dropped]
        whole = len(left) == len(self.assignments)
        if whole:
            return self
        made = Task.of(self.target, left, self._share(left), self.processes)
        return dataclasses.replace(made, slopes_only=self.slopes_only)

    def only(self, keys: Container[str]) -> Task:
        """A further process of these own cases of the target; the first ones stay what they were."""
        left = [a for a in self.own if a.key in keys]
        return dataclasses.replace(self, assignments=tuple(left), seconds=self._share(left), slopes_only=True)

    def _share(self, left: Sequence[Assignment]) -> float:
        return self.seconds * len(left) / len(self.assignments) if self.assignments else 0.0


@dataclasses.dataclass(frozen=True)
class Choice:
    """What a user asked for; empty means everything."""

    patterns: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()
    software: bool = False
    full: bool = False

    def takes(self, case: Case) -> bool:
        """Whether the case was asked for; heavy workloads only by name or in the full product."""
        asked = case.workload in self.workloads if self.workloads else self.full or not _heavy(case.workload)
        return asked and (not self.patterns or case.pattern in self.patterns)

    def of(self, cases: Iterable[Case]) -> list[Case]:
        """Those that were asked for; of workloads that were named in turn, so that none takes another's room."""
        taken = [case for case in cases if self.takes(case)]
        by_name = {name: [c for c in taken if c.workload == name] for name in sorted(self.workloads)}
        ranked = itertools.zip_longest(*by_name.values())
        return [c for rank in ranked for c in rank if c is not None] if by_name else taken


def _heavy(name: str) -> bool:
    found = workloads().get(name)
    return name == UNROLLED or (found is not None and found.heavy)


def schedule(targets: Sequence[Target], choice: Choice, plan: Plan) -> tuple[list[Task], list[LeftOut]]:
    """The tasks that fit the plan's budget, and everything left out with its reason. Raises ``UsageError``."""
    chosen, left_out = _choose_targets(targets, choice)
    spaces = {t.key: registry()[t.stack].space(t) for t in chosen}
    if spaces:
        _check(choice, spaces.values())
    own = {t.key: choice.of(spaces[t.key].cross() if choice.full else spaces[t.key].star()) for t in chosen}
    wanted = {t.key: _with_companions(t, own, chosen) for t in chosen}
    allotment = _allot(wanted, plan)
    for worker, candidate, reason in allotment.left_out:
        left_out.append(LeftOut(target=worker, case=candidate.removeprefix(f"{worker} "), reason=reason))
    return _tasks(chosen, wanted, allotment), left_out


def _check(choice: Choice, spaces: Iterable[Space]) -> None:
    """Refuse a workload's name that neither we nor a stack's own cases know."""
    if strange := choice.workloads - RESERVED - workloads().keys():
        strange -= {case.workload for space in spaces for case in space.cross()}
    if strange:
        known = ", ".join(sorted(RESERVED | workloads().keys()))
        raise UsageError(f"unknown workload {min(strange)!r}; known: {known}")


def again(planned: Sequence[PlannedLine], profile: Profile, found: Sequence[Target]) -> tuple[list[Task], set[str]]:
    """The tasks of an earlier plan on the targets found now, and the keys of targets that are gone."""
    by_key = {t.key: t for t in found}
    wanted: dict[str, list[Assignment]] = {}
    gone: set[str] = set()
    for p in planned:
        if p.target.key in by_key and p.worker in by_key:
            wanted.setdefault(p.worker, []).append(Assignment(by_key[p.target.key], p.case))
        else:
            gone.add(p.target.key if p.target.key not in by_key else p.worker)
    processes = {p.worker: p.wanted(profile) for p in planned}
    tasks = _tasks([by_key[worker] for worker in wanted], wanted, _allot(wanted, PROFILES[profile]))
    return [dataclasses.replace(task, processes=processes[task.target.key]) for task in tasks], gone


def _allot(wanted: Mapping[str, Sequence[Assignment]], plan: Plan) -> Allotment:
    """What of each worker's wishes fits the plan."""
    stacks = registry()
    return allot(
        {key: [Candidate(a.key, stacks[a.target.stack].cost) for a in own] for key, own in wanted.items()}, plan
    )


def _choose_targets(targets: Sequence[Target], choice: Choice) -> tuple[list[Target], list[LeftOut]]:
    """Hardware always; software adapters where there is no hardware GPU or when asked; OpenGL beside the same device's
    Vulkan only in the full product."""
    hardware = any(not t.software and t.executes and t.api != "CPU" for t in targets)
    by_vulkan = {(t.stack, t.adapter) for t in targets if t.api == "Vulkan"}
    chosen, left_out = [], []
    for target in targets:
        if target.software and hardware and not choice.software:
            reason = "a software adapter, and there is a GPU; --software measures it too"
        elif target.api == "OpenGL" and not choice.full and _has_vulkan_twin(target, by_vulkan):
            reason = "the same adapter is measured through Vulkan; --profile thorough takes both"
        else:
            chosen.append(target)
            continue
        left_out.append(LeftOut(target=target.key, case="all", reason=reason))
    return chosen, left_out


def _has_vulkan_twin(target: Target, by_vulkan: set[tuple[str, str]]) -> bool:
    """Drivers decorate the name differently in OpenGL: one name holds the other."""
    return any(stack == target.stack and (a in target.adapter or target.adapter in a) for stack, a in by_vulkan)


def _with_companions(target: Target, own: dict[str, list[Case]], targets: Sequence[Target]) -> list[Assignment]:
    """The target's own cases, each followed by the first case of other stacks that a named comparison sets it against.

    A companion runs in the worker's process, so it must live in the worker's environment.
    """
    others = [t for t in targets if t.stack != target.stack and _fits(t, target)]
    wanted: dict[str, Assignment] = {}
    for case in own[target.key]:
        near = [Assignment(target, case)]
        for named, other in itertools.product(NAMED, others):
            theirs = (c for c in own[other.key] if comparable(named, (target, case), (other, c)))
            near += [Assignment(other, c) for c in itertools.islice(theirs, 1)]
        for one in near:
            wanted.setdefault(one.key, one)
    return list(wanted.values())


def _fits(other: Target, target: Target) -> bool:
    return other.environment == target.environment or (not other.environment and other.api == "CPU")


def _tasks(targets: Sequence[Target], wanted: dict[str, list[Assignment]], allotment: Allotment) -> list[Task]:
    tasks = []
    for target in targets:
        cases = allotment.cases.get(target.key, {})
        taken = tuple(a for a in wanted[target.key] if a.key in cases)
        if taken:
            tasks.append(Task.of(target, taken, sum(cases.values()), allotment.processes[target.key]))
    return tasks
