"""What is measured with many peers: the ways, the cases of each stack, the numbers of peers, and
the periods.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from overhead.devices import processor_kind
from overhead.probes import registry, space_of
from overhead.probes.base import vary
from overhead.results import Case, Placement, StackFacts, Target, Way, Why, because, stacks_in

WAYS: tuple[Way, ...] = ("processes", "threads", "devices", "busy")


@dataclass(frozen=True)
class ContentionPlan:
    """How much is measured. ``numbers``: of peers. ``sets``: of fresh processes. ``repeats``:
    periods of each kind with one peer alone, in each set.

    ``seconds``: no set begins that would end later. ``long_ns``: the length of a period of long
    chains, ``each_ns`` more for every peer: with time slices of 2 ms every peer gets tens of them.
    ``chain_ns``: a long chain alone takes at least this, so that its wait adds little. ``short``:
    units of a short chain, which no queue stops.
    """

    ways: Sequence[Way] = WAYS
    numbers: Sequence[int] = (1, 2, 4, 8)
    placements: Sequence[Placement] = ("free", "core", "node")
    sets: int = 4
    repeats: int = 2
    seconds: float = 900.0
    long_ns: int = 200_000_000
    each_ns: int = 50_000_000
    chain_ns: int = 10_000_000
    short: int = 64
    short_ns: int = 40_000_000
    most_short: int = 300
    most_long: int = 2000
    """Chains of a peer in a period, at most: they go to the file."""
    twins: bool = True
    """Whether the same calls from compiled code are measured too."""


NODE = ContentionPlan(
    ways=("devices", "busy"), numbers=(1,), placements=("free",), sets=2, repeats=1, twins=False
)
"""What the profile ``node`` measures: each device alone, all together, and one beside busy
processors. The profile sets the seconds.
"""


@dataclass(frozen=True)
class PeerGroup:
    """Cases that are measured in the same processes. ``targets``: of each peer, or one for all."""

    way: Way
    targets: tuple[Target, ...]
    cases: tuple[Case, ...]

    @property
    def first(self) -> Target:
        """The target of the first peer, whose key names the group."""
        return self.targets[0]


def groups(plan: ContentionPlan, targets: Sequence[Target]) -> Iterator[PeerGroup]:
    """What to measure, in order: way by way (processes, threads, a process for each device, beside
    busy processes), and in each stack by stack. A group is measured in the same processes.
    """
    # A stack that is not in this list comes after those that are.
    rank = {name: number for number, name in enumerate(stacks_in("contention"))}
    ordered = sorted(targets, key=lambda target: rank.get(target.stack, len(rank)))
    # Targets of one stack, API and adapter are equal devices of one model.
    models: dict[tuple[str, str, str], list[Target]] = {}
    for target in ordered:
        model = (target.stack, target.api, target.adapter)
        models.setdefault(model, []).append(target)
    for way in plan.ways:
        for of_model in models.values():
            first = of_model[0]
            if way != "devices":
                # A second device of a model tells nothing new, unless all run at once.
                # Beside busy processes only one peer is measured, which shares no lock of Python
                # with another: so it has no twin.
                has_twins = plan.twins and way != "busy"
                yield PeerGroup(way, (first,), cases_of(first, twins=has_twins))
            # Only of GPUs: software adapters compute on the CPU, which all of them share.
            elif len(of_model) > 1 and processor_kind(first) == "gpu":
                yield PeerGroup(way, tuple(of_model), cases_of(first, twins=plan.twins))


def cases_of(target: Target, *, twins: bool) -> tuple[Case, ...]:
    """The cases of a target that peers run: the base case and, with ``twins``, the same calls from
    compiled code (its twin) if the stack has them. The twin holds no lock of Python, so it tells
    whether this lock slows threads.

    If only another case has such a twin, that case is measured in place of the base case.
    """
    space = space_of(registry()[target.stack], target)
    # ``star``: the base case, and cases that differ from it in one parameter.
    like_base = []
    for case in space.star():
        # ``step``: the trivial work whose launches are measured, and not, for example, decoding.
        if case.pattern == space.base.pattern and case.workload == "step":
            like_base.append(case)
    keys = {case.key for case in like_base}
    for case in like_base:
        # ``binding``: calls from Python; ``native``: the same calls from compiled code.
        if case.caller != "binding":
            continue
        twin = vary(case, "caller", "native")
        if twin.key in keys:
            return (case, twin) if twins else (case,)
    return (space.base,)


def why_one_thread(facts: StackFacts) -> Why:
    """Why several threads must not use the stack at once; '' where they may."""
    cause = facts.one_thread
    if cause is None:
        return ""
    return because("one-thread-at-a-time", shares=cause.shares, of=cause.of)
