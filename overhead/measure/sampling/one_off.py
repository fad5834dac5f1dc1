"""The values measured once in a process, outside the ladder: first call, empty wait, naive timing, device time."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.measure.fitting.data import LEGACY_N
from overhead.measure.sampling import window
from overhead.measure.sampling.case import CaseInProgress
from overhead.measure.sampling.chain import DeviceTime
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.events import reason_of, status_of
from overhead.results import OneOffLine

_SHARE = 0.06
"""Of a case's seconds, for any one of these values."""
_IDLE_SHARE = 0.15
"""Of a case's seconds, for the idle time before single units."""
_TIMES = 7
_LEAST_LATENCIES = 20
_MOST_LATENCIES = 500
_START_LATENCIES = 50


def first_call(case: CaseInProgress, clock: Clock) -> Iterator[OneOffLine]:
    """The first call in this process and, of a recording, its preparation. Nothing for a chain with its own loop."""
    chain = case.chain
    if chain.own_loop:
        return
    t0 = clock.now()
    chain.prepare(1)
    t1 = clock.now()
    chain.issue(1)
    chain.wait()
    t2 = clock.now()
    case.issued += 1
    yield case.once("first", [float(t2 - t0)], [1])
    if chain.recorded:
        yield case.once("prepare", [float(t1 - t0)], [1])


def counted(case: CaseInProgress, clock: Clock, extra: bool) -> Iterator[OneOffLine]:
    """Totals of a few short chains, ns, whose units count as issued. ``extra``: also ``naive_idle`` and ``legacy``."""
    chain, ladder = case.chain, case.ladder
    fitting = int(_SHARE * case.seconds * 1e9 / (2 * ladder.one_ns))
    times = max(2, min(_TIMES, fitting))
    yield _timed(case, "empty_wait", window.totals(chain, 0, times, clock), 0)
    yield _timed(case, "naive", window.totals(chain, 1, times, clock), 1)
    if chain.latency:
        count = max(_LEAST_LATENCIES, min(_MOST_LATENCIES, fitting))
        yield _timed(case, "latency", window.totals(chain, 1, count, clock), 1)
    if extra:
        idle = max(1, min(times, int(_IDLE_SHARE * case.seconds / window.NAIVE_IDLE_S)))
        yield _timed(case, "naive_idle", window.naive_idle(chain, idle, clock), 1)
    if extra and LEGACY_N not in ladder.ns:
        yield _legacy(case, clock)


def _timed(case: CaseInProgress, name: str, totals: list[int], n: int) -> OneOffLine:
    ns = [n] * len(totals)
    case.issued += case.chain.units(ns)
    return case.once(name, [float(total) for total in totals], ns)


def _legacy(case: CaseInProgress, clock: Clock) -> OneOffLine:
    """T(100), where the ladder ends below it or leaves it out."""
    chain, ladder = case.chain, case.ladder
    if chain.max_n < LEGACY_N:
        return case.once("legacy", reason=f"the stack bounds n at {chain.max_n}")
    cost = ladder.one_ns + ladder.unit_ns * LEGACY_N
    if cost > 2 * _SHARE * case.seconds * 1e9:
        return case.once("legacy", reason=f"{LEGACY_N} units would take about {cost / 1e6:.0f} ms")
    times = max(1, min(5, int(_SHARE * case.seconds * 1e9 / cost)))
    return _timed(case, "legacy", window.totals(chain, LEGACY_N, times, clock), LEGACY_N)


def uncounted(case: CaseInProgress, clock: Clock, staged: bool) -> Iterator[OneOffLine]:
    """Device time of held chains, the cost of making recordings and, where ``staged``, the start latency.

    The chain may run any number of units for these: read ``executed`` again afterwards.
    """
    yield from _device(case, clock)
    if staged:
        yield from _start_latency(case)
    for part, (units, values) in case.chain.making().items():
        yield case.once(f"making:{part}", [float(value) for value in values], units)


def _start_latency(case: CaseInProgress) -> Iterator[OneOffLine]:
    """From submission to the device's start, where the two clocks can be read together."""
    try:
        found = case.chain.start_latency(_START_LATENCIES)
    except Exception as error:
        if status_of(error) != "unavailable":
            raise
        yield case.once("start_latency", reason=reason_of(error))
        return
    if found is not None:
        yield case.once("start_latency", found.values, [1] * len(found.values))
        yield case.once("start_deviation", [found.deviation])


def _device(case: CaseInProgress, clock: Clock) -> Iterator[OneOffLine]:
    """Spans of held chains of three lengths; named ``device_busy`` only if the device was busy throughout all of them.

    Holding the device takes time: two spans are measured, more while they fit the case's share.
    """
    chain, ladder = case.chain, case.ladder
    top = min(ladder.ns[-1], chain.held_n)
    ns = [top] if ladder.stairs else [n for _ in range(3) for n in (top, max(1, top // 2), max(1, top // 4))]
    budget = 2 * _SHARE * case.seconds * 1e9
    began = clock.now()
    found: list[DeviceTime] = []
    for n in ns:
        spent = clock.now() - began
        if len(found) >= 2 and spent + spent / len(found) > budget:
            break
        try:
            held = chain.device(n)
        except Exception as error:
            if status_of(error) != "unavailable":
                raise
            yield case.once("device_span", reason=reason_of(error))
            return
        if held is None:
            return
        found.append(held)
    if len({one.n for one in found}) < 2 and not ladder.stairs:
        yield case.once("device_span", reason=f"a slope needs two lengths, the chain holds {top} units at most")
        return
    name = "device_busy" if all(one.busy for one in found) else "device_span"
    yield case.once(name, [float(one.span) for one in found], [one.n for one in found], found[0].method)
    yield case.once("device_quantum", [float(max(one.quantum for one in found))])
