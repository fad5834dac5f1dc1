"""Values that are measured outside the ladder (the sizes of n of a case): the first call, an empty
wait, single units, device time, and the calls of a chain one by one. Each function yields lines of
the journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.one_process import LEGACY_N, UNSTAGED
from overhead.measure.sampling import window
from overhead.measure.sampling.case import CaseInProgress
from overhead.measure.sampling.chain import DeviceTime
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.events import reason_of, status_of
from overhead.results import OneOffEntry, because


@dataclass(frozen=True)
class _OneOffRule:
    """How often a value is measured: more give a steadier median, and leave less time for the
    rounds.
    """

    share: float = 0.06
    """Of a case's seconds, for any one of these values."""
    idle_share: float = 0.15
    """Of a case's seconds, for the idle time before single units."""
    times: int = 7
    least_latencies: int = 20
    most_latencies: int = 500
    staged_units: int = 256
    staged_ns: float = 2e6
    """Limits of a chain whose calls are timed one by one: its units and its time. A longer chain is
    interrupted more often. In a shorter one the first units count more.
    """


_RULE = _OneOffRule()


def time_first_call(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """The first call in this process and, of a recording, its preparation. Nothing for a chain with
    its own loop.
    """
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


def time_short_chains(case: CaseInProgress, clock: Clock, extra: bool) -> Iterator[OneOffEntry]:
    """T(0) and T(1), ns, a few times each; the units count as issued. ``extra``: also
    ``naive_idle`` and ``legacy``.
    """
    chain, ladder = case.chain, case.ladder
    fitting = int(_RULE.share * case.seconds * 1e9 / (2 * ladder.one_ns))
    times = max(2, min(_RULE.times, fitting))
    yield _timed(case, "empty_wait", window.totals(chain, 0, times, clock), 0)
    yield _timed(case, "naive", window.totals(chain, 1, times, clock), 1)
    if chain.latency:
        count = max(_RULE.least_latencies, min(_RULE.most_latencies, fitting))
        yield _timed(case, "latency", window.totals(chain, 1, count, clock), 1)
    if extra:
        idle = max(1, min(times, int(_RULE.idle_share * case.seconds / window.NAIVE_IDLE_S)))
        yield _timed(case, "naive_idle", window.naive_idle(chain, idle, clock), 1)
    if extra and LEGACY_N not in ladder.ns:
        yield _legacy(case, clock)


def _timed(case: CaseInProgress, name: str, totals: list[int], n: int) -> OneOffEntry:
    ns = [n] * len(totals)
    case.issued += case.chain.units(ns)
    return case.once(name, [float(total) for total in totals], ns)


def _legacy(case: CaseInProgress, clock: Clock) -> OneOffEntry:
    """T(100), where the ladder lacks it."""
    chain, ladder = case.chain, case.ladder
    if chain.max_n < LEGACY_N:
        return case.once("legacy", reason=because("n-is-bounded", most=chain.max_n))
    cost = ladder.one_ns + ladder.unit_ns * LEGACY_N
    if cost > 2 * _RULE.share * case.seconds * 1e9:
        return case.once(
            "legacy", reason=because("units-too-long", units=LEGACY_N, milliseconds=cost / 1e6)
        )
    times = max(1, min(5, int(_RULE.share * case.seconds * 1e9 / cost)))
    return _timed(case, "legacy", window.totals(chain, LEGACY_N, times, clock), LEGACY_N)


def time_device_and_recordings(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Device time, and the cost of making recordings.

    The chain may run any number of units for these: ``recount`` afterwards.
    """
    yield from _device(case, clock)
    for part, (units, values) in case.chain.making().items():
        yield case.once(f"making:{part}", [float(value) for value in values], units)


def _device(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Device time at three lengths, ``device_busy`` if the device never waited; two values, more if
    time is left.
    """
    chain, ladder = case.chain, case.ladder
    top = min(ladder.ns[-1], chain.held_n)
    ns = (
        [top]
        if ladder.stairs
        else [n for _ in range(3) for n in (top, max(1, top // 2), max(1, top // 4))]
    )
    budget = 2 * _RULE.share * case.seconds * 1e9
    spent = 0
    found: list[DeviceTime] = []
    for n in ns:
        if len(found) >= 2 and spent + spent / len(found) > budget:
            break
        aside, began = chain.aside, clock.now()
        try:
            held = chain.device(n)
        except Exception as error:
            if status_of(error) != "unavailable":
                raise
            yield case.once("device_span", reason=reason_of(error))
            return
        if held is None:
            return
        spent += clock.now() - began
        case.recount(aside, held.n)
        found.append(held)
    if len({one.n for one in found}) < 2 and not ladder.stairs:
        yield case.once("device_span", reason=because("one-length-of-device-time", units=top))
        return
    if not all(one.span > 0 for one in found):
        spans = str([one.span for one in found])
        yield case.once("device_span", reason=because("device-clock-stands", spans=spans))
        return
    name = "device_busy" if all(one.busy for one in found) else "device_span"
    yield case.once(
        name, [float(one.span) for one in found], [one.n for one in found], found[0].method
    )
    yield case.once("device_quantum", [float(max(one.quantum for one in found))])


def time_stages(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """By stage (one kind of call) ns per unit, and ``unstaged``: ``issue`` of the chain before and
    after, over n.

    A stage is the sum of its durations less the clock readings inside them, over n. The cost of a
    reading is the trimmed mean of readings with nothing between them; their median would be a
    multiple of the clock's step. Nothing for a chain without stages, which ``case.staged`` then
    says.
    """
    chain, ladder = case.chain, case.ladder
    n = max(1, min(_RULE.staged_units, ladder.ns[-1], int(_RULE.staged_ns / ladder.unit_ns)))
    before = window.sample(chain, [n], clock)
    chain.prepare(1)
    chain.issue(1)
    chain.wait()
    case.issued += chain.units([n]) + 1
    found = chain.stages(n)
    case.staged = bool(found)
    if not found:
        return
    chain.wait()
    after = window.sample(chain, [n], clock)
    case.issued += chain.units([n]) + n
    durations = {name: np.asarray(values, np.float64) for name, values in found.items()}
    readings = np.sort(durations.pop("clock"))
    tenth = readings.size // 10
    cost = float(readings[tenth : readings.size - tenth].mean())
    for name, own in durations.items():
        yield case.once(f"stage:{name}", [float(own.sum() - own.size * cost) / n], [n])
    yield case.once("stage_clock", [cost], [n])
    plain = [row[1] for row in (*before, *after)]
    yield case.once(UNSTAGED, [sum(plain) / len(plain) / n], [n])
