"""Which n to run: 0, 1, 100 and geometric up to the smallest top whose slope stands clear."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from overhead.measure.clock import Clock, ClockFacts, clock_facts
from overhead.measure.sampler import Chain, sample, units

LEGACY_N = 100
"""The n that published "sequential" figures divide by."""
POLL_SHARE = 0.05
"""A wait whose quantum is over this share of T(top) makes T interval-censored."""


@dataclass(frozen=True)
class Limits:
    """What calibration may do. ``target``: relative half-width wanted; ``seconds``: the case's share of sampling."""

    target: float = 0.03
    seconds: float = 0.5
    sample_ns: int = 20_000_000
    facts: ClockFacts | None = None


@dataclass(frozen=True)
class Ladder:
    """``ns``: one pass, ascending. ``pass_ns``: what a pass costs. ``issued``: units that calibration issued.

    ``wait_quantum_ns`` is 0 where the wait shows no step; ``censored`` where the step is over 5 % of T(top) and ``ns``
    brackets the stairs. ``shortfall`` says in words why the top is smaller than the target asks for, or is empty.
    """

    ns: tuple[int, ...]
    pass_ns: int
    issued: int
    wait_quantum_ns: int = 0
    censored: bool = False
    shortfall: str = ""
    seen: list[list[int]] = field(default_factory=list)


class _Trial:
    """The samples that calibration takes, and the units they cost."""

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain, self.clock = chain, clock
        self.seen: list[list[int]] = []
        self.issued = 0

    def run(self, ns: list[int]) -> list[list[int]]:
        self.issued += units(self.chain, ns)
        rows = sample(self.chain, ns, self.clock)
        self.seen += rows
        return rows

    def total(self, n: int, times: int) -> tuple[float, float]:
        """Median of T(n) and its spread (half the distance between the quartiles, as a standard deviation)."""
        totals = sorted(row[2] for row in self.run([n] * times))
        spread = (totals[(3 * times) // 4] - totals[times // 4]) / 1.349 if times >= 4 else 0.0
        return statistics.median(totals), spread


def calibrate(chain: Chain, clock: Clock, limits: Limits) -> Ladder:
    """Double n until the slope's part of T(n) outgrows noise and clock, or a limit is met; then lay the rungs."""
    facts = limits.facts or clock_facts(clock)
    trial = _Trial(chain, clock)
    trial.run([1])
    fixed, noise = trial.total(1, 5)
    top, shortfall = 1, ""
    ceiling = min(chain.max_n, 1 << 24)
    while True:
        if top * 2 > ceiling:
            shortfall = f"the stack bounds n at {chain.max_n}"
            break
        at, _ = trial.total(top * 2, 1)
        top *= 2
        if at > limits.sample_ns / 2 and top >= 4:
            shortfall = f"a longer sample would take over {limits.sample_ns / 1e6:.0f} ms"
            break
        if at - fixed < _clearance(noise, facts, limits) or top < 4:
            continue
        again, noise_top = trial.total(top, 5)
        noise = max(noise, noise_top)
        if again - fixed >= _clearance(noise, facts, limits):
            break
    ns = _rungs(top, fixed, trial, limits)
    pass_ns = _pass_cost(ns, trial)
    return Ladder(ns=ns, pass_ns=pass_ns, issued=trial.issued, shortfall=shortfall, seen=trial.seen)


def _clearance(noise: float, facts: ClockFacts, limits: Limits) -> float:
    """ns that slope * top must reach: the noise of one sample against a third of the target over about 30 passes."""
    passes = 30
    return max(2.0 * noise / (limits.target / 3 * passes**0.5), 100.0 * (facts.resolution_ns + facts.cost_ns))


def _rungs(top: int, fixed: float, trial: _Trial, limits: Limits) -> tuple[int, ...]:
    rungs = {0, 1, top}
    step = top
    while step > 2 and len(rungs) < 7:
        step //= 2
        rungs.add(step)
    if top < LEGACY_N and _line_at(LEGACY_N, trial) < limits.sample_ns / 4 and trial.chain.max_n >= LEGACY_N:
        rungs.add(LEGACY_N)
    return tuple(sorted(rungs))


def _line_at(n: int, trial: _Trial) -> float:
    """T(n) guessed from the longest sample seen; used to bound time, never as a figure."""
    longest = max(trial.seen, key=lambda row: row[0])
    return longest[2] * max(1.0, n / max(1, longest[0]))


def _pass_cost(ns: tuple[int, ...], trial: _Trial) -> int:
    start = trial.clock.now()
    trial.run(list(ns))
    return max(1, trial.clock.now() - start)
