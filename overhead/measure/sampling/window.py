"""One sample of a chain, and the few samples that the search for the sizes of n takes.

A sample drains, warms and prepares the chain; then comes the *window*, the part that is timed. Only
this module times a chain's ``issue`` and ``wait``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from overhead.measure.fitting.line import MAD
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, ClockFacts

IDLE_S = 0.05
"""Idle time before each of the values ``naive_idle``, as in a program that submits rarely."""


@dataclass(frozen=True)
class _TrialRule:
    """How often an n is tried: more samples find noise and interruptions better, and take
    longer.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    short_ns: int = 5_000_000
    long_ns: int = 20_000_000
    """T(n) below ``short_ns`` is sampled five times, below ``long_ns`` three times, and above that
    once.
    """


_TRIAL = _TrialRule()


def clock_of(chain: Chain, facts: ClockFacts) -> ClockFacts:
    """The facts of the clock behind the chain's samples: with the chain's own resolution where it
    has one.
    """
    if not chain.clock_step_ns:
        return facts
    return ClockFacts(chain.clock_step_ns, facts.cost_ns, facts.cpu_cost_ns)


def sample(chain: Chain, ns: Sequence[int], clock: Clock, cpu: bool = False) -> Samples:
    """Run each n once, in order; return rows ``[n, issue_ns, total_ns]``, wall times until
    ``issue`` and until ``wait`` returned.

    With ``cpu`` each row ends with the thread's CPU time in ``wait``, ns. Its two clock readings
    take about a microsecond inside the window, so these samples are never fitted together with the
    others.
    """
    if chain.own_loop:
        # Its calls run elsewhere, such as in a browser page, and are timed there.
        return chain.sample(ns, cpu)
    # Local names: an attribute that is looked up between two readings of the clock would be timed.
    prepare = chain.prepare
    issue = chain.issue
    wait = chain.wait
    now = clock.now
    thread_cpu = clock.thread_cpu
    recorded = chain.recorded
    samples = []
    for n in ns:
        # A recording is warmed by a launch of the same n, another chain by one unit.
        warm = n if recorded else 1
        prepare(warm)
        issue(warm)
        wait()
        prepare(n)
        if cpu:
            # With the CPU clock: wall times outside, CPU times next to ``wait`` alone.
            t0 = now()
            issue(n)
            t1 = now()
            c1 = thread_cpu()
            wait()
            c2 = thread_cpu()
            t2 = now()
            samples.append([n, t1 - t0, t2 - t0, c2 - c1])
        else:
            t0 = now()
            issue(n)
            t1 = now()
            wait()
            t2 = now()
            samples.append([n, t1 - t0, t2 - t0])
    return samples


def totals(chain: Chain, n: int, count: int, clock: Clock) -> list[int]:
    """``count`` times T(n), ns, each after a warm unit."""
    return [row[2] for row in sample(chain, [n] * count, clock)]


def single_shot_after_idle(chain: Chain, count: int, clock: Clock) -> list[int]:
    """``count`` times T(1), ns, each after a warm unit and then 50 ms of sleep, in which a device
    may slow down: what a program pays that submits rarely.
    """
    if chain.own_loop:
        # Index 2 of a row is T(n); the idle time is in ms here.
        return [row[2] for row in chain.sample_idle([1] * count, IDLE_S * 1e3)]
    totals_ns = []
    for _ in range(count):
        # First the warm unit, then the idle time, then the unit that is timed.
        chain.prepare(1)
        chain.issue(1)
        chain.wait()
        chain.prepare(1)
        clock.sleep(IDLE_S)
        t0 = clock.now()
        chain.issue(1)
        chain.wait()
        totals_ns.append(clock.now() - t0)
    return totals_ns


class TypicalTotal(NamedTuple):
    """The median of a few T(n), ns, and the standard deviation of one of them (``noise``); 0 for a
    single sample.
    """

    median: float
    noise: float


class TrialSamples:
    """Takes few samples of one chain. ``seen``: all rows so far; ``issued``: units that ran, warm
    ones included.
    """

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain = chain
        self.clock = clock
        self.seen: Samples = []
        self.issued = 0

    def run(self, ns: list[int]) -> Samples:
        """One sample of each n: rows ``[n, issue_ns, total_ns]``."""
        self.issued += self.chain.units(ns)
        rows = sample(self.chain, ns, self.clock)
        self.seen += rows
        return rows

    def run_after_idle(self, ns: list[int], idle_ns: float) -> Samples:
        """One sample of each n, with an idle time before each window. Only for a chain with its own
        loop.
        """
        # The samples and the warm units that they run.
        self.issued += self.chain.units(ns)
        rows = self.chain.sample_idle(ns, idle_ns / 1e6)
        self.seen += rows
        return rows

    def total(self, n: int, least: int = 1) -> TypicalTotal:
        """T(n) from a few samples: five of them, three if the first took 5 ms or more, ``least`` if
        20 ms or more.

        The noise is estimated from the samples below the median alone, which an interruption does
        not widen.
        """
        rows = self.run([n])
        first_ns = rows[0][2]
        if first_ns < _TRIAL.short_ns:
            more = 4
        elif first_ns < _TRIAL.long_ns:
            more = 2
        else:
            more = least - 1
        rows += self.run([n] * more)

        totals_ns = [row[2] for row in rows]
        median = statistics.median(totals_ns)
        # Median absolute deviation of the samples below the median, as a standard deviation
        # (``MAD``).
        below = [median - total for total in totals_ns if total < median]
        return TypicalTotal(median, MAD * statistics.median(below) if below else 0.0)

    def shortest_totals(self) -> dict[int, float]:
        """For each n sampled so far the shortest T(n), ns: interruptions only lengthen a sample."""
        shortest: dict[int, float] = {}
        for row in self.seen:
            n = row[0]
            total = float(row[2])
            shortest[n] = min(shortest.get(n, total), total)
        return shortest

    def shortest_total(self, n: int) -> float:
        """The minimum of T(n) over a few new samples, ns."""
        before = len(self.seen)
        self.total(n)
        return float(min(row[2] for row in self.seen[before:]))

    def shortest_issue(self, n: int) -> float:
        """The minimum of ``issue``, ns, over three samples of n (one from 20 ms on)."""
        rows = self.run([n])
        more = 2 if rows[0][2] < _TRIAL.long_ns else 0
        rows += self.run([n] * more)
        return min(row[1] for row in rows)
