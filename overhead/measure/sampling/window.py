"""One sample: drain, warm, prepare, then the window. Only this module times a chain's ``issue`` and ``wait``."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, ClockFacts

NAIVE_IDLE_S = 0.05


def clock_of(chain: Chain, facts: ClockFacts) -> ClockFacts:
    """The facts of the clock behind the chain's samples: its own resolution where it has one."""
    step = chain.clock_step_ns
    return ClockFacts(step, facts.cost_ns, facts.cpu_cost_ns) if step else facts


def sample(chain: Chain, ns: Sequence[int], clock: Clock, cpu: bool = False) -> Samples:
    """Run each n of ``ns`` once, in order: rows ``[n, issue_ns, total_ns]``, wall time until ``issue`` returned and
    until ``wait`` returned.

    With ``cpu`` each row ends with the thread's CPU time in ``wait``, ns. Its two clock readings take about a
    microsecond inside the window, so these samples are never fitted together with the others.
    """
    if chain.own_loop:
        return chain.sample(ns, cpu)
    prepare, issue, wait, now, recorded = chain.prepare, chain.issue, chain.wait, clock.now, chain.recorded
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
