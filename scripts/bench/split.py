"""``main.py split``: the shares of host time on simulated stacks with known costs, by the real code on a fake clock.

One process alternates between the cases of a real worker: the same program through ``binding``, ``ffi`` and
``native``, the minimal program on the driver, and a single C call.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace

from rich.console import Console
from rich.progress import track
from rich.table import Table

from overhead.measure.fitting.data import Estimate, Process, Series
from overhead.measure.fitting.paired import difference_and_ratio
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES, WEIGHT
from scripts.bench.known_truth import USUAL_NOISE, pace_of, process_of
from scripts.bench.requirement import Requirement, print_requirements
from tests.fakes.machine import FakeClock, FastFakeChain, Law

_DRIVER_CALLS = 7
"""C calls per unit in the program on the driver."""
_TOLERANCE = 0.02


@dataclass(frozen=True)
class SimulatedStack:
    """The true costs, ns per unit. ``leaf``: one C call. ``deferred``: the library's work inside the wait."""

    name: str
    binding: float
    interpreter: float
    api: float
    driver: float
    leaf: float
    deferred: float
    device: float

    def laws(self) -> dict[str, Law]:
        """The law of each chain, by caller."""
        noise = Law(device=self.device, fixed=30e3, wake=1_000.0, jitter=0.005, scatter=0.1, own=0.001)
        driver = self.driver + _DRIVER_CALLS * self.leaf
        native = self.api + driver
        return {
            "binding": replace(noise, host=self.binding + self.interpreter + native, deferred=self.deferred),
            "ffi": replace(noise, host=self.interpreter + native, deferred=self.deferred),
            "native": replace(noise, host=native, deferred=self.deferred),
            "vulkan": replace(noise, host=driver),
            "leaf": Law(self.leaf, 0.0, 0.0, synchronous=True, jitter=0.005),
        }

    def truth(self) -> dict[str, float]:
        """The true shares, ns per unit; deferred work belongs to the API."""
        return {
            "binding": self.binding,
            "interpreter": self.interpreter,
            "api": self.api + self.deferred,
            "driver": self.driver,
        }


SIMULATED_STACKS = (
    SimulatedStack("host-bound", 15e3, 2e3, 4e3, 5e3, 1.5, 0.0, 2e3),
    SimulatedStack("host-bound, deferred work", 15e3, 2e3, 3e3, 5e3, 1.5, 1.5e3, 2e3),
    SimulatedStack("device-bound", 15e3, 2e3, 4e3, 5e3, 1.5, 500.0, 60e3),
    SimulatedStack("balanced", 15e3, 2e3, 4e3, 5e3, 1.5, 0.0, 26e3),
    SimulatedStack("native balanced, deferred work", 15e3, 2e3, 3e3, 5e3, 1.5, 1e3, 9e3),
    SimulatedStack("nothing but the driver", 0.0, 0.0, 0.0, 5e3, 1.5, 0.0, 2e3),
    SimulatedStack("a thin API", 500.0, 300.0, 60.0, 1.2e3, 1.5, 0.0, 3e3),
)
_SHARES = {
    "binding": ("binding", "ffi", 1),
    "interpreter": ("ffi", "native", 1),
    "api": ("native", "vulkan", 1),
    "driver": ("vulkan", "leaf", _DRIVER_CALLS),
}


def split(stack: SimulatedStack, seed: int, profile: str = "default") -> dict[str, Estimate]:
    """The shares, ns, by the calculation of ``overhead run``, but at the undisturbed canary."""
    plan, laws = PROFILES[profile], stack.laws()
    processes: dict[str, list[Process]] = {caller: [] for caller in laws}
    for index in range(plan.processes):
        clock = FakeClock(USUAL_NOISE, zlib.crc32(f"{stack.name} {seed} {index}".encode()))
        events: list[Event] = []
        costs = {caller: plan.case_s * WEIGHT["cheap" if caller == "leaf" else "fast"] for caller in laws}
        settings = Settings(
            sum(costs.values()), plan.target, plan.min_rounds, plan.max_rounds, seed, frozenset(), shares=costs
        )
        measure_cases(
            {caller: FastFakeChain(law, clock) for caller, law in laws.items()}, clock, settings, events.append
        )
        for caller, found in processes.items():
            found.append(process_of(events, index, caller))
    series = {
        caller: Series(found, laws[caller].synchronous, False, laws[caller].overlap)
        for caller, found in processes.items()
    }
    own = 1 / pace_of(processes["binding"])
    return {
        share: _scaled(difference_and_ratio(series[of], series[against], "host", plan.target, times).difference, own)
        for share, (of, against, times) in _SHARES.items()
    }


def _scaled(found: Estimate, times: float) -> Estimate:
    """The estimate with value and interval multiplied."""
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return replace(found, value=times * found.value, low=times * found.low, high=times * found.high)


@dataclass(frozen=True)
class ShareScore:
    """One share of a stack over many runs: counts of runs. ``separable``: the interval lies above 0.

    ``worst``: the largest relative error, NaN where the true share is 0.
    """

    stack: str
    share: str
    truth: float
    runs: int
    within: int
    covered: int
    separable: int
    right: int
    worst: float


def score(stack: SimulatedStack, share: str, found: list[Estimate]) -> ShareScore:
    """Compare the runs of one share with its true value."""
    truth = stack.truth()[share]
    errors = [abs(e.value / truth - 1) for e in found if e.value is not None and truth]
    return ShareScore(
        stack.name,
        share,
        truth,
        len(found),
        within=sum(error <= _TOLERANCE for error in errors),
        covered=sum(_holds(e, truth) for e in found),
        separable=sum(_separable(e) for e in found),
        right=sum(right(e, truth) for e in found),
        worst=max(errors, default=math.nan),
    )


def right(found: Estimate, truth: float) -> bool:
    """Whether the value is within 2 % of the truth, or the estimate is marked as uncertain and holds the truth.

    Marked: not separable, or an interval wider than 2 % on either side.
    """
    assert found.value is not None
    if truth and abs(found.value / truth - 1) <= _TOLERANCE:
        return True
    wide = (
        found.low is not None and found.high is not None and found.high - found.low > 2 * _TOLERANCE * abs(found.value)
    )
    return (not _separable(found) or wide) and _holds(found, truth)


def _separable(found: Estimate) -> bool:
    return not found.reason.startswith("not separable")


def _holds(found: Estimate, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high


def _one(job: tuple[int, int, str]) -> dict[str, Estimate]:
    stack, seed, profile = job
    return split(SIMULATED_STACKS[stack], seed, profile)


def split_truth(options: argparse.Namespace, console: Console) -> bool:
    """Run every stack with every seed; print tables or JSON; return whether all requirements hold."""
    jobs = [(index, seed, options.profile) for index in range(len(SIMULATED_STACKS)) for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs) as pool:
        note = Console(stderr=True)
        each = pool.map(_one, jobs, chunksize=4)
        runs = list(track(each, "known split", total=len(jobs), console=note, disable=not note.is_terminal))
    scores = [
        score(stack, share, [run[share] for (i, *_), run in zip(jobs, runs, strict=True) if i == index])
        for index, stack in enumerate(SIMULATED_STACKS)
        for share in _SHARES
    ]
    total = sum(s.runs for s in scores)
    right_share, covered_share = (sum(getattr(s, name) for s in scores) / total for name in ("right", "covered"))
    requirements = [
        Requirement(
            f"{right_share:.1%} of {total:,} shares are within {_TOLERANCE:.0%} of the truth, or are marked as "
            "uncertain and hold it (at least 95 %)",
            right_share >= 0.95,
        ),
        Requirement(
            f"the 95 % intervals hold the truth in {covered_share:.1%} (92 to 98 %)", 0.92 <= covered_share <= 0.98
        ),
    ]
    if options.json:
        print(
            json.dumps({"scores": [asdict(s) for s in scores], "claims": [asdict(r) for r in requirements]}, indent=1)
        )
    else:
        console.print(_table(scores, options))
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _table(scores: list[ShareScore], options: argparse.Namespace) -> Table:
    title = f"the split against known truth, {options.seeds} seeds, profile {options.profile}"
    table = Table(title=title, title_justify="left")
    table.add_column("stack")
    table.add_column("share")
    for name in ("injected, us", f"within {_TOLERANCE:.0%}", "holds truth", "separable", "right", "largest error"):
        table.add_column(name, justify="right")
    for s in scores:
        table.add_row(
            s.stack if s.share == next(iter(_SHARES)) else "",
            s.share,
            f"{s.truth / 1e3:g}",
            *(f"{part / s.runs:.0%}" for part in (s.within, s.covered, s.separable, s.right)),
            "-" if math.isnan(s.worst) else f"{s.worst:.1%}",
            end_section=s.share == list(_SHARES)[-1],
        )
    return table
