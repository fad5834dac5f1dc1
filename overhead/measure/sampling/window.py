"""One sample: drain, warm, prepare, then the window. The only place where a chain meets the clock."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from overhead.measure.sampling.clock import Clock, ClockFacts

Samples = list[list[int]]
"""``[n, issue_ns, total_ns]``, or ``[n, issue_ns, total_ns, wait_cpu_ns]`` where the CPU clock was read as well."""
IDLE_SECONDS = 0.05


class Chain(Protocol):
    """What is measured: see ``probes.base.Chain``. A chain with a method ``sample(ns, cpu)`` runs the loop itself."""

    overlap: Any
    recorded: bool
    max_n: int
    wait_spins: bool
    synchronous: bool
    latency: bool
    executes: bool

    def prepare(self, n: int) -> None: ...

    def issue(self, n: int) -> None: ...

    def wait(self) -> None: ...

    def executed(self) -> int: ...

    def device(self, n: int) -> Any: ...

    def stages(self, n: int) -> Mapping[str, Sequence[int]]: ...

    @property
    def held_n(self) -> int: ...

    def start_latency(self, n: int) -> Any: ...

    def making(self) -> Mapping[str, tuple[Sequence[int], Sequence[float]]]: ...


def runs_itself(chain: Chain) -> bool:
    """Whether the chain brings its own sampling loop (a browser: the loop runs in the page)."""
    return hasattr(chain, "sample")


def clock_of(chain: Chain, facts: ClockFacts) -> ClockFacts:
    """The facts of the clock behind the chain's samples: a chain with a loop of its own names its ``clock_step_ns``."""
    step: int = getattr(chain, "clock_step_ns", 0)
    return ClockFacts(step, facts.cost_ns, facts.cpu_cost_ns) if step else facts


def sample(chain: Chain, ns: Sequence[int], clock: Clock, cpu: bool = False) -> Samples:
    """Run each n of the list once, in order; ns of wall time until ``issue`` and until ``wait`` returned.

    With ``cpu`` the thread's CPU clock is read around ``wait``: about a microsecond inside the window, so these are
    samples of their own, never fitted together with the others.
    """
    own: Callable[[Sequence[int], bool], Samples] | None = getattr(chain, "sample", None)
    if own is not None:
        return own(ns, cpu)
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


def units(chain: Chain, ns: Sequence[int]) -> int:
    """Units that ``sample`` issues for this list, its warm ones included; a chain with its own loop may tell itself."""
    own: Callable[[Sequence[int]], int] | None = getattr(chain, "units", None)
    if own is not None:
        return own(ns)
    return sum(n + (n if chain.recorded else 1) for n in ns)


def latencies(chain: Chain, count: int, clock: Clock) -> list[int]:
    """ns of ``count`` single units back to back, each issued and waited for."""
    return [total for _, _, total, *_ in sample(chain, [1] * count, clock)]


def naive(chain: Chain, count: int, clock: Clock) -> list[int]:
    """ns: T(1), warm."""
    return [total for _, _, total, *_ in sample(chain, [1] * count, clock)]


def naive_idle(chain: Chain, count: int, clock: Clock) -> list[int]:
    """ns: T(1), warm but for 50 ms in which the caller slept.

    A chain with a loop of its own sleeps there, by ``sample_idle(ns, idle_ms)``.
    """
    own: Callable[[Sequence[int], float], Samples] | None = getattr(chain, "sample_idle", None)
    if own is not None:
        return [row[2] for row in own([1] * count, IDLE_SECONDS * 1e3)]
    totals = []
    for _ in range(count):
        chain.prepare(1)
        chain.issue(1)
        chain.wait()
        chain.prepare(1)
        clock.sleep(IDLE_SECONDS)
        t0 = clock.now()
        chain.issue(1)
        chain.wait()
        totals.append(clock.now() - t0)
    return totals


def empty_wait(chain: Chain, count: int, clock: Clock) -> list[int]:
    """ns: T(0), a wait with nothing to wait for."""
    return [total for _, _, total, *_ in sample(chain, [0] * count, clock)]


_SPIN = 0x9E3779B9


def canary(clock: Clock) -> list[int]:
    """ns of a fixed pure-Python loop and of a fixed native spin, about 50 us each: the weather of the machine.

    A clock with a method ``canary`` (a fake one) answers itself.
    """
    own: Callable[[], list[int]] | None = getattr(clock, "canary", None)
    if own is not None:
        return own()
    t0 = clock.now()
    x = 1
    for _ in range(700):
        x = (x * 1664525 + _SPIN) & 0xFFFFFFFF
    t1 = clock.now()
    hashlib.pbkdf2_hmac("sha256", b"canary", b"weather", 80)
    return [t1 - t0, clock.now() - t1]
