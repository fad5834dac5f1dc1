"""What is taken once a process, outside the ladder: the first call, the empty wait, what most benchmarks print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from overhead.measure.fitting.data import LEGACY_N
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.events import reason_of, status_of
from overhead.measure.sampling.window import Chain

SHARE = 0.06
"""Of a case's seconds, for any one of these."""
IDLE_SHARE = 0.15
"""Of a case's seconds, for idling before a single unit."""
TIMES = 7
LATENCIES = 500
STARTS = 50


@dataclass(frozen=True)
class OneOff:
    """``values``: ns, ``at`` their n; ``issued``: units that they ran. Empty with a ``reason`` where there is none."""

    name: str
    values: list[float] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    reason: str = ""
    issued: int = 0


def first(chain: Chain, clock: Clock) -> Iterator[OneOff]:
    """The first call in this process, and what its preparation took. A chain with a loop of its own has none."""
    if window.runs_itself(chain):
        return
    t0 = clock.now()
    chain.prepare(1)
    t1 = clock.now()
    chain.issue(1)
    chain.wait()
    t2 = clock.now()
    yield OneOff("first", [float(t2 - t0)], [1], issued=1)
    if chain.recorded:
        yield OneOff("prepare", [float(t1 - t0)], [1])


def take(chain: Chain, clock: Clock, ladder: Ladder, seconds: float, extra: bool) -> Iterator[OneOff]:
    """Values of counted units. ``seconds``: the case's share; ``extra``: also ``naive_idle`` and a slow ``legacy``."""
    times = max(2, min(TIMES, int(SHARE * seconds * 1e9 / (2 * ladder.one_ns))))
    yield _timed(chain, "empty_wait", window.empty_wait(chain, times, clock), 0)
    yield _timed(chain, "naive", window.naive(chain, times, clock), 1)
    if chain.latency:
        count = max(20, min(LATENCIES, int(SHARE * seconds * 1e9 / (2 * ladder.one_ns))))
        yield _timed(chain, "latency", window.latencies(chain, count, clock), 1)
    if extra:
        idle = max(1, min(times, int(IDLE_SHARE * seconds / window.IDLE_SECONDS)))
        yield _timed(chain, "naive_idle", window.naive_idle(chain, idle, clock), 1)
    if extra and LEGACY_N not in ladder.ns:
        yield _legacy(chain, clock, ladder, seconds)


def _timed(chain: Chain, name: str, values: list[int], n: int) -> OneOff:
    ns = [n] * len(values)
    return OneOff(name, [float(v) for v in values], ns, issued=window.units(chain, ns))


def _legacy(chain: Chain, clock: Clock, ladder: Ladder, seconds: float) -> OneOff:
    """T(100), where the ladder ends below it or is too long for it."""
    if chain.max_n < LEGACY_N:
        return OneOff("legacy", reason=f"the stack bounds n at {chain.max_n}")
    cost = ladder.one_ns + ladder.unit_ns * LEGACY_N
    if cost > 2 * SHARE * seconds * 1e9:
        return OneOff("legacy", reason=f"{LEGACY_N} units would take about {cost / 1e6:.0f} ms")
    times = max(1, min(5, int(SHARE * seconds * 1e9 / cost)))
    return _timed(chain, "legacy", [row[2] for row in window.sample(chain, [LEGACY_N] * times, clock)], LEGACY_N)


def inside(chain: Chain, clock: Clock, ladder: Ladder, seconds: float, staged: bool) -> Iterator[OneOff]:
    """What the chain tells of its inside, where it can: device time of held chains, what its recordings cost
    and, where ``staged``, how long the device takes to start.

    The chain runs as many units for these as it likes.
    """
    yield from _device(chain, clock, ladder, seconds)
    if staged:
        yield from _start_latency(chain)
    for part, (units, values) in chain.making().items():
        yield OneOff(f"making:{part}", [float(value) for value in values], list(units))


def _start_latency(chain: Chain) -> Iterator[OneOff]:
    """From submission to the device's start, where the two clocks can be read together."""
    try:
        found = chain.start_latency(STARTS)
    except Exception as error:
        if status_of(error) != "unavailable":
            raise
        yield OneOff("start_latency", reason=reason_of(error))
        return
    if found is not None:
        yield OneOff("start_latency", found.values, [1] * len(found.values))
        yield OneOff("start_deviation", [found.deviation])


def _device(chain: Chain, clock: Clock, ladder: Ladder, seconds: float) -> Iterator[OneOff]:
    """Spans of held chains of three lengths; ``busy`` only if the device never starved in any.

    A chain's ``held_n`` is the most units that it can hold. Holding the device costs time:
    two spans are taken, more while they fit the case's share.
    """
    top = min(ladder.ns[-1], chain.held_n)
    ns = [top] if ladder.stairs else [n for _ in range(3) for n in (top, max(1, top // 2), max(1, top // 4))]
    budget = 2 * SHARE * seconds * 1e9
    began = clock.now()
    told: list[Any] = []
    for n in ns:
        spent = clock.now() - began
        if len(told) >= 2 and spent + spent / len(told) > budget:
            break
        try:
            held = chain.device(n)
        except Exception as error:
            if status_of(error) != "unavailable":
                raise
            yield OneOff("device_span", reason=reason_of(error))
            return
        if held is None:
            return
        told.append(held)
    if len({one.n for one in told}) < 2 and not ladder.stairs:
        yield OneOff("device_span", reason=f"a slope needs two lengths, the chain holds {top} units at most")
        return
    name = "device_busy" if all(one.busy for one in told) else "device_span"
    yield OneOff(name, [float(one.span) for one in told], [one.n for one in told], told[0].method)
    yield OneOff("device_quantum", [float(max(one.quantum for one in told))])
