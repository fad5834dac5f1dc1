"""The profiles of a run: number of processes, precision, seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from overhead.slices import of_features

Cost = Literal["cheap", "fast", "slow", "polling"]
"""``cheap``: a call on the host only; ``fast``: unit and wait take well under 1 ms; ``slow``:
several ms; ``polling``: the wait polls rarely.
"""

WEIGHT: Mapping[Cost, float] = {"cheap": 0.5, "fast": 1.0, "slow": 2.8, "polling": 8.2}
"""Sampling time of a case relative to a ``fast`` one."""


@dataclass(frozen=True)
class Plan:
    """How precisely, and for how long, a run measures the cases one at a time.

    ``precision``: largest relative half-width of a figure that is ``ok``. ``sampling_s``,
    ``wall_s``: seconds for the whole run, None without a limit. ``case_s``: least seconds of
    sampling for a fast case in each process.
    """

    processes: int
    precision: float
    sampling_s: float | None
    wall_s: float | None
    case_s: float
    far: bool = True
    """Whether the base case of each target gets an anchor at a hundred times its largest n."""
    max_cases: Mapping[Cost, int] = field(default_factory=dict)
    """Largest number of cases of a target, by their cost."""
    stretch_slow: bool = True
    """Whether slow cases, too, are sampled longer if time is left over."""
    processes_by_cost: Mapping[Cost, int] = field(default_factory=dict)
    """Number of processes where it differs from ``processes``, by the cost of the target's
    cases.
    """
    help: str = ""
    """How long the profile takes or what it is for, for the help of the command line."""
    opening_s: float = 0.0
    """How long a process should take to open its cases, if that is known; only for the time
    left.
    """
    min_rounds: int = 6
    max_rounds: int = 400

    def processes_of(self, cost: Cost) -> int:
        """The number of processes of a target whose cases have this cost."""
        return self.processes_by_cost.get(cost, self.processes)

    def lengthened(self, times: float) -> Plan:
        """The plan with so many times its seconds, for a machine with more GPUs than planned."""
        return replace(
            self,
            sampling_s=times_seconds(self.sampling_s, times),
            wall_s=times_seconds(self.wall_s, times),
        )


def times_seconds(seconds: float | None, times: float) -> float | None:
    """So many times these seconds; None, which is no limit, stays None."""
    return None if seconds is None else seconds * times


@dataclass(frozen=True)
class Scope:
    """What a profile measures: of which stacks, which of their cases, and what after the cases.

    The profiles of ``PROFILES`` have the default: all cases, and nothing after them. The profiles
    of contention register another scope beside their plan.
    """

    role: str = ""
    """The role (``results.StackRole``) of the stacks that are measured unless the user names
    others; '' for all.
    """
    cases: Literal["all", "early", "none"] = "all"
    """Which cases are measured one at a time: ``early`` are the base case and those that every run
    should have.
    """
    after: Callable[[Any], None] | None = None
    """What is measured after the cases. Called with ``runner.run.Measuring``."""
    after_s: float | None = None
    """Seconds for ``after``, None if it has its own limit."""
    gpus: int = 0
    """The number of GPUs that the seconds are for: with more, they grow in proportion. 0 if they
    never grow.
    """
    folder_per_node: bool = False
    """Whether each node has its own folder in the output folder, so that many nodes can share a
    disk.
    """


PROFILES: dict[str, Plan] = {
    "quick": Plan(
        help="under 4 minutes",
        processes=5,
        precision=0.10,
        sampling_s=68.0,
        wall_s=225.0,
        case_s=0.21,
        far=False,
        max_cases={"slow": 8, "polling": 3},
        stretch_slow=False,
        processes_by_cost={"slow": 3, "polling": 3},
    ),
    "default": Plan(
        help="under 10 minutes",
        processes=8,
        precision=0.03,
        sampling_s=197.0,
        wall_s=465.0,
        case_s=0.38,
    ),
    "thorough": Plan(
        help="as long as it takes",
        processes=12,
        precision=0.01,
        sampling_s=None,
        wall_s=None,
        case_s=2.0,
    ),
}
"""The profiles that measure all cases; ``profiles`` has those of features too.

The numbers of processes and the precision are chosen (docs/method.md). The seconds of ``quick`` and
``default`` fit: tests/runner/test_whole_run.py plans a run of all stacks of a machine with an H100,
with the times of opening measured there, and each planned process ends in time. With more
``sampling_s``, the last processes would be left out.
"""
_plans_of_features: dict[str, Plan] = {}
_scopes: dict[str, Scope] = {}


def register_profile(name: str, plan: Plan, scope: Scope) -> None:
    """Add a profile. The module ``profiles`` of a feature calls this when it is imported."""
    _plans_of_features[name] = plan
    _scopes[name] = scope


def profiles() -> Mapping[str, Plan]:
    """The plans of all profiles by name, those of features last."""
    of_features("profiles")
    return {**PROFILES, **_plans_of_features}


def scope_of(profile: str) -> Scope:
    """What the profile of this name measures."""
    of_features("profiles")
    return _scopes.get(profile, Scope())
