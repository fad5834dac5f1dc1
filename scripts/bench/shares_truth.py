"""The split against known truth: a fake stack with injected costs, split by the real code on a fake clock.

One worker holds what the real one holds: the same program through ``binding``, ``ffi`` and ``native``, the minimal
program on the driver, and the leaf call, alternating; the shares are formed as for any machine.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace

from overhead.measure.fitting.data import Estimate, Process, Series
from overhead.measure.fitting.paired import difference_and_ratio
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES, WEIGHT
from scripts.bench.known_truth import USUAL, pace_of, process_of
from tests.fakes.machine import FakeClock, FastFakeChain, Law

CALLS = 7
"""C calls of the driver's program a unit."""
WITHIN = 0.02


@dataclass(frozen=True)
class Stack:
    """What is injected, ns a unit. ``deferred``: the library's work inside the wait; ``device``: of a unit."""

    name: str
    binding: float
    interpreter: float
    api: float
    driver: float
    leaf: float
    deferred: float
    device: float

    def laws(self) -> dict[str, Law]:
        """By caller, what each chain costs."""
        noise = Law(device=self.device, fixed=30e3, wake=1_000.0, jitter=0.005, scatter=0.1, own=0.001)
        driver = self.driver + CALLS * self.leaf
        native = self.api + driver
        return {
            "binding": replace(noise, host=self.binding + self.interpreter + native, deferred=self.deferred),
            "ffi": replace(noise, host=self.interpreter + native, deferred=self.deferred),
            "native": replace(noise, host=native, deferred=self.deferred),
            "vulkan": replace(noise, host=driver),
            "leaf": Law(self.leaf, 0.0, 0.0, synchronous=True, jitter=0.005),
        }

    def truth(self) -> dict[str, float]:
        """ns a unit; what the library defers into the wait is the API's."""
        return {
            "binding": self.binding,
            "interpreter": self.interpreter,
            "api": self.api + self.deferred,
            "driver": self.driver,
        }


STACKS = (
    Stack("host-bound", 15e3, 2e3, 4e3, 5e3, 1.5, 0.0, 2e3),
    Stack("host-bound, deferred work", 15e3, 2e3, 3e3, 5e3, 1.5, 1.5e3, 2e3),
    Stack("device-bound", 15e3, 2e3, 4e3, 5e3, 1.5, 500.0, 60e3),
    Stack("balanced", 15e3, 2e3, 4e3, 5e3, 1.5, 0.0, 26e3),
    Stack("native balanced, deferred work", 15e3, 2e3, 3e3, 5e3, 1.5, 1e3, 9e3),
    Stack("nothing but the driver", 0.0, 0.0, 0.0, 5e3, 1.5, 0.0, 2e3),
    Stack("a thin API", 500.0, 300.0, 60.0, 1.2e3, 1.5, 0.0, 3e3),
)
PAIRS = {
    "binding": ("binding", "ffi", 1),
    "interpreter": ("ffi", "native", 1),
    "api": ("native", "vulkan", 1),
    "driver": ("vulkan", "leaf", CALLS),
}


def split(stack: Stack, seed: int, profile: str = "default") -> dict[str, Estimate]:
    """The shares, ns, as ``overhead run`` would print them, but at the machine's own canary: each with its interval and
    status."""
    plan, laws = PROFILES[profile], stack.laws()
    processes: dict[str, list[Process]] = {caller: [] for caller in laws}
    for index in range(plan.processes):
        clock = FakeClock(USUAL, zlib.crc32(f"{stack.name} {seed} {index}".encode()))
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
        for share, (of, against, times) in PAIRS.items()
    }


def _scaled(found: Estimate, times: float) -> Estimate:
    """The estimate where everything takes so many times as long."""
    assert found.value is not None
    assert found.low is not None
    assert found.high is not None
    return replace(found, value=times * found.value, low=times * found.low, high=times * found.high)


@dataclass(frozen=True)
class ShareScore:
    """How a share of a stack came out over many runs. ``separable``: an interval above 0."""

    stack: str
    share: str
    truth: float
    runs: int
    within: int
    covered: int
    separable: int
    right: int
    worst: float


def score(stack: Stack, share: str, found: list[Estimate]) -> ShareScore:
    """Hold the runs of one share against its truth, ns; ``worst`` is the largest error, relative, NaN without truth."""
    truth = stack.truth()[share]
    errors = [abs(e.value / truth - 1) for e in found if e.value is not None and truth]
    return ShareScore(
        stack.name, share, truth, len(found),
        within=sum(error <= WITHIN for error in errors),
        covered=sum(_holds(e, truth) for e in found),
        separable=sum(_separable(e) for e in found),
        right=sum(right(e, truth) for e in found),
        worst=max(errors, default=math.nan),
    )  # fmt: skip


def right(found: Estimate, truth: float) -> bool:
    """Within 2 % of the truth; or saying of itself that it is not known that well (not separable, or an interval wider
    than that) and holding the truth.
    """
    assert found.value is not None
    if truth and abs(found.value / truth - 1) <= WITHIN:
        return True
    wide = found.low is not None and found.high is not None and found.high - found.low > 2 * WITHIN * abs(found.value)
    return (not _separable(found) or wide) and _holds(found, truth)


def _separable(found: Estimate) -> bool:
    return not found.reason.startswith("not separable")


def _holds(found: Estimate, truth: float) -> bool:
    return found.low is not None and found.high is not None and found.low <= truth <= found.high
