"""One sample of a chain, and the few samples that the search for the sizes of n takes.

A sample drains, warms and prepares the chain; then comes the *window*, the part that is timed. Only
this module times a chain's ``issue`` and ``wait``.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from overhead.measure.fitting.line import MAD
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, ClockFacts

NAIVE_IDLE_S = 0.05
"""Idle time before each of the values ``naive_idle``, as in a program that submits rarely."""


@dataclass(frozen=True)
class _TrialRule:
    """How often an n is tried: more samples find noise and interruptions better, and take
    longer.
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
    step = chain.clock_step_ns
    return ClockFacts(step, facts.cost_ns, facts.cpu_cost_ns) if step else facts


def sample(chain: Chain, ns: Sequence[int], clock: Clock, cpu: bool = False) -> Samples:
    """Run each n once, in order; return rows ``[n, issue_ns, total_ns]``, wall times until
    ``issue`` and until ``wait`` returned.

    With ``cpu`` each row ends with the thread's CPU time in ``wait``, ns. Its two clock readings
    take about a microsecond inside the window, so these samples are never fitted together with the
    others.
    """
    if chain.own_loop:
        return chain.sample(ns, cpu)
    prepare, issue, wait, now, recorded = (
        chain.prepare,
        chain.issue,
        chain.wait,
        clock.now,
        chain.recorded,
    )
    thread_cpu = clock.thread_cpu
    samples = []
    for n in ns:
        warm = n if recorded else 1
        prepare(warm)
        issue(warm)
        wait()
        prepare(n)
        if cpu:
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


def naive_idle(chain: Chain, count: int, clock: Clock) -> list[int]:
    """``count`` times T(1), ns, each after a warm unit and then 50 ms of sleep."""
    if chain.own_loop:
        return [row[2] for row in chain.sample_idle([1] * count, NAIVE_IDLE_S * 1e3)]
    found = []
    for _ in range(count):
        chain.prepare(1)
        chain.issue(1)
        chain.wait()
        chain.prepare(1)
        clock.sleep(NAIVE_IDLE_S)
        t0 = clock.now()
        chain.issue(1)
        chain.wait()
        found.append(clock.now() - t0)
    return found


class TrialSamples:
    """Takes few samples of one chain. ``seen``: all rows so far; ``issued``: units that ran, warm
    ones included.
    """

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.chain, self.clock = chain, clock
        self.seen: Samples = []
        self.issued = 0

    def run(self, ns: list[int]) -> Samples:
        """One sample of each n: rows ``[n, issue_ns, total_ns]``."""
        self.issued += self.chain.units(ns)
        rows = sample(self.chain, ns, self.clock)
        self.seen += rows
        return rows

    def run_after_idle(self, ns: list[int], idle_ns: float) -> Samples:
        """The same, with an idle time before each window. Only for a chain with its own loop."""
        self.issued += self.chain.units(ns)
        rows = self.chain.sample_idle(ns, idle_ns / 1e6)
        self.seen += rows
        return rows

    def total(self, n: int, least: int = 1) -> tuple[float, float]:
        """The median of T(n), ns, over five samples (three from 5 ms on, ``least`` from 20 ms on),
        and their standard deviation.

        The deviation is estimated from the samples below the median alone, which an interruption
        does not widen. It is 0 for one sample.
        """
        rows = self.run([n])
        longest = rows[0][2]
        rows += self.run(
            [n] * (4 if longest < _TRIAL.short_ns else 2 if longest < _TRIAL.long_ns else least - 1)
        )
        totals = [row[2] for row in rows]
        middle = statistics.median(totals)
        below = [middle - t for t in totals if t < middle]
        return middle, MAD * statistics.median(below) if below else 0.0

    def shortest_totals(self) -> dict[int, float]:
        """By n the minimum of T(n) so far, ns: interruptions only lengthen a sample."""
        shortest: dict[int, float] = {}
        for n, _, total, *_ in self.seen:
            shortest[n] = min(shortest.get(n, float(total)), float(total))
        return shortest

    def shortest_issue(self, n: int) -> float:
        """The minimum of ``issue``, ns, over three samples of n (one from 20 ms on)."""
        rows = self.run([n])
        rows += self.run([n] * (2 if rows[0][2] < _TRIAL.long_ns else 0))
        return min(row[1] for row in rows)
