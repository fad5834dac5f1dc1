"""Plan what to measure: the targets, their cases, the time of each case, and the companions.

A target is a stack on a device. A companion is a case of another stack, measured in the same
process for a comparison. A run calls ``choose_targets`` first, and then ``schedule`` with the
chosen ones.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from overhead.devices import processor_kind, same_decorated_name
from overhead.errors import unknown_name
from overhead.measure.sampling.events import reason_of
from overhead.named_comparisons import NamedComparison, is_comparable, named_comparisons
from overhead.probes import registry, space_of
from overhead.probes.base import Space
from overhead.profiles import WEIGHT, Cost, Plan, Scope
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
_ROUNDING_S = 1e-9
"""Cases that fill the budget exactly fit, though their sum of seconds is rounded."""


@dataclass(frozen=True)
class Candidate:
    """A case that could be measured, and the rough cost of a sample. ``early``: every run should
    have it.
    """

    key: str
    cost: Cost = "fast"
    early: bool = False


class NotTaken(NamedTuple):
    """A candidate that gets no time. ``target``: whose worker would measure it."""

    target: str
    key: str
    reason: Reason


@dataclass(frozen=True)
class Allotment:
    """Sampling time of each case in each process (s), by target and case, and the number of
    processes, by target.

    ``left_out``: every candidate that is not measured.
    """

    cases: dict[str, dict[str, float]]
    processes: dict[str, int] = field(default_factory=dict)
    left_out: list[NotTaken] = field(default_factory=list)

    def seconds(self, target: str) -> float:
        """Sampling time of one process of this target, s; 0 if the target has no cases."""
        return sum(self.cases.get(target, {}).values())


def allot(targets: Mapping[str, Sequence[Candidate]], plan: Plan) -> Allotment:
    """Divide the planned sampling time of a run among the cases that could be measured (the
    candidates), by target. Those that get none are left out with the reason.

    The first early candidate (one that every run should have) of each target gets time, then the
    second of each, and so on; then the others in the same way, until no time is left. The cost of a
    target's first candidate decides its number of processes. The remaining time is divided in
    proportion, so that a small run samples each case for longer.
    """
    budget_s = math.inf if plan.sampling_s is None else plan.sampling_s
    # First the number of processes of each target.
    processes = {}
    for target, candidates in targets.items():
        if candidates:
            processes[target] = plan.processes_of(candidates[0].cost)

    # Then the time, case by case in the order of turns. ``seconds``: in one process; ``spent_s``:
    # of all processes together.
    seconds: dict[str, dict[str, float]] = {target: {} for target in targets}
    left_out: list[NotTaken] = []
    spent_s = 0.0
    # First the early ones, of these the first of each target, then the second of each.
    for place, target, candidate in _in_order_of_turns(targets):
        # ``place``: of the case among those of its target, from 0. ``max_cases``: by cost, behind
        # how many cases none of this cost is taken, as slow cases are limited in number.
        most = plan.max_cases.get(candidate.cost)
        if most is not None and place >= most:
            too_many = because("too-many-slow-cases", most=most)
            left_out.append(NotTaken(target, candidate.key, too_many))
            continue
        # ``WEIGHT``: the sampling time of a case of this cost, relative to a fast one.
        case_s = plan.case_s * WEIGHT[candidate.cost]
        all_processes_s = case_s * processes[target]
        # ``_ROUNDING_S``: a sum that exceeds the budget by rounding alone still fits.
        if spent_s + all_processes_s <= budget_s + _ROUNDING_S:
            seconds[target][candidate.key] = case_s
            spent_s += all_processes_s
            continue
        over_budget = because(
            "over-budget",
            sampling_s=all_processes_s,
            processes=processes[target],
            budget_s=plan.sampling_s,
        )
        left_out.append(NotTaken(target, candidate.key, over_budget))

    # What is left of the budget goes to the cases that got time. Without a budget it is infinite;
    # no case is sampled for more than four times what it needs.
    stretch = MAX_TIMES_NEED
    if spent_s > 0:
        stretch = min(MAX_TIMES_NEED, budget_s / spent_s)
    _stretch(seconds, targets, stretch, plan)
    return Allotment(seconds, processes, left_out)


class _Turn(NamedTuple):
    """A candidate and its place among those of its target, from 0."""

    place: int
    target: str
    candidate: Candidate


def _in_order_of_turns(targets: Mapping[str, Sequence[Candidate]]) -> list[_Turn]:
    """All candidates: first the early ones, and of these first the first of each target."""
    turns = []
    for target, candidates in targets.items():
        for place, candidate in enumerate(candidates):
            turns.append(_Turn(place, target, candidate))
    return sorted(turns, key=lambda turn: (not turn.candidate.early, turn.place))


def _stretch(
    seconds: dict[str, dict[str, float]],
    targets: Mapping[str, Sequence[Candidate]],
    times: float,
    plan: Plan,
) -> None:
    """Give each case so many ``times`` its time, so that the run uses all of its planned seconds.

    ``seconds``: by target and case, changed in place. Cases whose wait polls keep their time, and
    slow ones too unless the plan stretches them.
    """
    # By ``WEIGHT``, a case whose wait polls has eight times the time of a fast one already.
    fixed: set[Cost] = {"polling"}
    if not plan.stretch_slow:
        fixed.add("slow")
    for target, candidates in targets.items():
        costs = {candidate.key: candidate.cost for candidate in candidates}
        for key in seconds[target]:
            if costs[key] not in fixed:
                seconds[target][key] *= times


@dataclass(frozen=True)
class Task:
    """Everything that the workers of one target (a stack on a device) measure. ``assignments``: the
    cases, each on its target, which for a companion (a case to compare with) is another one.
    ``seconds``: sampling time of one process. ``processes``: the number of processes.
    """

    target: Target
    assignments: tuple[Assignment, ...]
    seconds: float
    processes: int

    @property
    def staged(self) -> tuple[str, ...]:
        """Keys of the assignments (cases on the target) whose calls are timed one by one, in
        addition to whole chains: the target's first case of each caller (Python, compiled code).

        The first of them also gets values that are slow to measure and measured once.
        """
        firsts: dict[str, str] = {}
        # ``own``: without the companions, which are on other targets.
        for assignment in self.own:
            firsts.setdefault(assignment.case.caller, assignment.key)
        return tuple(firsts.values())

    def unpinned(self, *, alone: bool) -> tuple[str, ...]:
        """Keys of the assignments (cases on the target) that also get an unpinned cost: what a
        program pays when nothing is left out, such as the move to another CPU core.

        They are the first case of each caller, but no program calls by ``ffi``, so such a case
        counts only if it is the target's very first. ``alone``: no other target is measured, so
        there is time for each case of a target with few.
        """
        if alone and len(self.own) <= _FEW_CASES:
            return tuple(assignment.key for assignment in self.own)
        # All cases but the target's first that are called by ``ffi``: a generated Python loop over
        # the bare C functions.
        later_by_ffi = {a.key for a in self.own[1:] if a.case.caller == "ffi"}
        return tuple(key for key in self.staged if key not in later_by_ffi)

    @property
    def own(self) -> list[Assignment]:
        """The assignments on the target itself, without companions."""
        return [a for a in self.assignments if a.target.key == self.target.key]

    def without(self, dropped: set[str]) -> Task:
        """The task without the assignments with these keys, and without their share of the time."""
        kept = [a for a in self.assignments if a.key not in dropped]
        if len(kept) == len(self.assignments):
            return self
        seconds = self.seconds * len(kept) / len(self.assignments)
        return replace(self, assignments=tuple(kept), seconds=seconds)


@dataclass(frozen=True)
class Choice:
    """Which cases the user wants. An empty field means all of them; ``software``: software adapters
    beside a GPU too; ``full``: all combinations of the parameters of a case.
    """

    patterns: frozenset[str] = frozenset()
    workloads: frozenset[str] = frozenset()
    software: bool = False
    full: bool = False

    def includes(self, case: Case, early: bool = False) -> bool:
        """Whether the user wants the case: it has one of the patterns and workloads that he named.

        Without named workloads, a case that every run should have (``early``) is wanted, and of the
        others those whose workload is always measured; some only with all combinations (``full``).
        """
        if self.patterns and case.pattern not in self.patterns:
            return False
        if self.workloads:
            return case.workload in self.workloads
        if early:
            return True
        when = when_measured(case.workload)
        # Else ``named``: measured only if the user names the workload.
        return when == "always" or (self.full and when == "full")

    def select(self, cases: Iterable[Case], early: Container[str] = ()) -> list[Case]:
        """The wanted ones of these cases, the most important first. If the user names workloads,
        their cases take turns, so that a short run has some of each.

        ``early``: the keys of cases that every run should have.
        """
        wanted = [case for case in cases if self.includes(case, case.key in early)]
        if not self.workloads:
            return wanted
        # A list for each workload.
        of_workloads = []
        for name in sorted(self.workloads):
            of_workloads.append([case for case in wanted if case.workload == name])
        # The first of each workload, then the second of each; None where one has no more.
        in_turn = itertools.chain.from_iterable(itertools.zip_longest(*of_workloads))
        return [case for case in in_turn if case is not None]


def times_planned_seconds(targets: Iterable[Target], scope: Scope) -> float:
    """How many times its planned seconds a run takes on these targets, because they are more GPUs
    than the profile is planned for (``scope.gpus``; 0 for any number); 1 if not.

    The GPUs of one stack are measured one after the other, so the stack with most of them counts.
    """
    # By GPU target: its stack and API, so that the GPUs of one stack can be counted.
    stack_of_gpu: dict[str, tuple[str, str]] = {}
    for target in targets:
        if processor_kind(target) == "gpu":
            stack_of_gpu[target.key] = (target.stack, target.api)
    gpus_by_stack = Counter(stack_of_gpu.values())
    most_gpus = max(gpus_by_stack.values(), default=0)
    if scope.gpus == 0 or most_gpus <= scope.gpus:
        return 1.0
    return most_gpus / scope.gpus


@dataclass(frozen=True)
class _Offer:
    """The wanted cases of one target. ``early``: the keys of those that every run should have."""

    target: Target
    space: Space
    cases: list[Case]
    early: set[str]


class Scheduled(NamedTuple):
    """The tasks of a run, and the cases that are not measured with the reasons."""

    tasks: list[Task]
    left_out: list[LeftOut]


def schedule(
    chosen: Sequence[Target],
    choice: Choice,
    plan: Plan,
    which: Literal["all", "early", "none"] = "all",
) -> Scheduled:
    """What a run measures of these targets: a task for each, with its cases and their time, as far
    as the budget of ``plan`` goes; and the cases that are left out, with the reasons.

    ``which``: all cases that the user wants, only the ``early`` ones, which every run should have,
    or none. Raises ``UsageError`` for an unknown workload.
    """
    left_out: list[LeftOut] = []
    offers: list[_Offer] = []
    if which != "none":
        for target in chosen:
            try:
                offers.append(_offer_of(target, choice, early_only=which == "early"))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a stack of another package may raise anything
                left_out.append(LeftOut(target=target.key, case="all", reason=reason_of(error)))
    if offers:
        _check_workloads(choice, [offer.space for offer in offers])

    # By target, its cases and those of other stacks that its worker measures to compare with.
    groups = {offer.target.key: _with_companions(offer, offers) for offer in offers}
    candidates = {}
    for offer in offers:
        worker = offer.target.key
        candidates[worker] = _candidates(offer, groups[worker])
    # ``allotment``: the seconds of each case that gets time, and what is left out.
    allotment = allot(candidates, plan)
    for worker, key, reason in allotment.left_out:
        # The name of a companion tells its own target too.
        case = _name_for_worker(worker, groups[worker], key)
        left_out.append(LeftOut(target=worker, case=case, reason=reason))

    # Last, a task for each target with at least one case that got time.
    tasks = []
    for offer in offers:
        worker = offer.target.key
        taken = tuple(a for a in groups[worker] if a.key in allotment.cases[worker])
        if taken:
            seconds, processes = allotment.seconds(worker), allotment.processes[worker]
            tasks.append(Task(offer.target, taken, seconds, processes))
    return Scheduled(tasks, left_out)


def _offer_of(target: Target, choice: Choice, *, early_only: bool) -> _Offer:
    """The cases of a target that the user wants, with ``early_only`` those that every run should
    have. What the code of its stack raises is not caught here.

    ``star`` has the base case and each change of one parameter, ``cross`` all combinations.
    """
    space = space_of(registry()[target.stack], target)
    early = {case.key for case in (space.base, *space.early)}
    all_cases = space.cross() if choice.full else space.star()
    wanted = choice.select(all_cases, early)
    if early_only:
        wanted = [case for case in wanted if case.key in early]
    return _Offer(target, space, wanted, early)


def _candidates(offer: _Offer, group: Sequence[Assignment]) -> list[Candidate]:
    """The cases that could get time of a worker: those of its target, each followed by companions,
    cases of other stacks that are compared with it (``group``).

    A companion is early (every run should have it) if the case before it is.
    """
    candidates = []
    is_early = False
    for assignment in group:
        if assignment.target.key == offer.target.key:
            is_early = assignment.case.key in offer.early
        # ``cost``: how long a sample of this stack roughly takes, as a class.
        cost = registry()[assignment.target.stack].cost
        candidates.append(Candidate(assignment.key, cost, is_early))
    return candidates


def _name_for_worker(worker: str, group: Sequence[Assignment], key: str) -> str:
    """What the reader sees of the assignment with this key, beside the name of its worker: the
    case alone, or for a companion its own target too.
    """
    assignment = next(a for a in group if a.key == key)
    return assignment.case.key if assignment.target.key == worker else key


def check_workload_names(choice: Choice, stacks: Iterable[str]) -> None:
    """Raise ``UsageError`` for an unknown workload, before devices are looked for.

    A stack of somebody else may have work of its own, which its cases alone tell.
    """
    if own_stacks().keys() >= set(stacks):
        _check_workloads(choice, [])


def _check_workloads(choice: Choice, spaces: Iterable[Space]) -> None:
    """Raise ``UsageError`` if the user named a workload that is neither registered nor that of a
    case of these targets (``spaces``).
    """
    known = {*stack_works(), *workloads()}
    unknown = choice.workloads - known
    if not unknown:
        return
    # A stack may have workloads of its own, which only its cases name.
    for space in spaces:
        # ``cross``: all combinations of the parameters, so that no workload is missing.
        unknown -= {case.workload for case in space.cross()}
    if unknown:
        raise unknown_name("workload", min(unknown), known)


class Chosen(NamedTuple):
    """The targets to measure, and the others with the reasons."""

    targets: list[Target]
    left_out: list[LeftOut]


def choose_targets(targets: Sequence[Target], choice: Choice) -> Chosen:
    """Which targets (stacks on devices) a run measures. Hardware is always measured; what imitates
    it (software adapters, CPUs beside a GPU) or repeats it only where the user asks for it.
    """
    # ``on_gpu``: stacks that have a real GPU here. OpenGL may repeat what Vulkan measures on the
    # same device.
    on_gpu: set[str] = set()
    for target in targets:
        # ``executes``: it runs the work that it gets.
        if target.executes and not target.software and target.api != "CPU":
            on_gpu.add(target.stack)
    by_vulkan = [target for target in targets if target.api == "Vulkan"]

    chosen: list[Target] = []
    left_out: list[LeftOut] = []
    for target in targets:
        reason = _why_not_chosen(target, choice, on_gpu, by_vulkan)
        if reason is None:
            chosen.append(target)
        else:
            left_out.append(LeftOut(target=target.key, case="all", reason=reason))
    return Chosen(chosen, left_out)


def _why_not_chosen(
    target: Target, choice: Choice, on_gpu: Collection[str], by_vulkan: Sequence[Target]
) -> Reason | None:
    """Why the target is not measured; None if it is.

    ``on_gpu``: the stacks that have a GPU here. ``by_vulkan``: the targets of the API Vulkan.
    """
    # Software adapters are measured where no stack has a GPU, or on request.
    if target.software and on_gpu and not choice.software:
        return because("software-beside-gpu")
    # A CPU of a stack that has a GPU too is measured in the longest profile, and for workloads
    # that the user names.
    asks_for_others = choice.software or choice.full or choice.workloads
    uses_no_gpu = target.api == "CPU" or not target.executes
    if target.stack in on_gpu and uses_no_gpu and not asks_for_others:
        return because("no-gpu-beside-gpu")
    # The same device through another API of the same stack repeats it.
    if target.api == "OpenGL" and not choice.full:
        for other in by_vulkan:
            # Drivers add other words to the name of the adapter in the other API.
            same_adapter = same_decorated_name(other.adapter, target.adapter)
            if other.stack == target.stack and same_adapter:
                return because("measured-through-vulkan")
    return None


def _with_companions(offer: _Offer, offers: Sequence[_Offer]) -> list[Assignment]:
    """What one worker measures: the cases of its target, each followed by its companions. These are
    the cases of other stacks that it is compared with; they must take turns in one process.

    Of each kind of comparison and each other stack it is the first that may be compared. Each case
    stands once.
    """
    others = [other for other in offers if _may_accompany(offer.target, other.target)]
    wanted: dict[str, Assignment] = {}
    # ``wanted``: by key, so that a case that two others are compared with is measured once.
    for case in offer.cases:
        own = Assignment(offer.target, case)
        wanted.setdefault(own.key, own)
        for named, other in itertools.product(named_comparisons(), others):
            companion = _first_match(named, own, other)
            if companion is not None:
                wanted.setdefault(companion.key, companion)
    return list(wanted.values())


def _may_accompany(target: Target, other: Target) -> bool:
    """Whether cases of the target ``other`` may run as companions in the worker of ``target``, to
    be compared with its cases. They must work with the environment variables of this worker, as
    cases on the CPU that want no variables do with any.
    """
    if other.stack == target.stack:
        return False
    works_in_any = not other.environment and other.api == "CPU"
    return other.environment == target.environment or works_in_any


def _first_match(named: NamedComparison, own: Assignment, other: _Offer) -> Assignment | None:
    """The first case of the other target that this kind of comparison (``named``) allows to compare
    with the case ``own``; None if there is none.
    """
    for case in other.cases:
        if is_comparable(named, (own.target, own.case), (other.target, case)):
            return Assignment(other.target, case)
    return None
