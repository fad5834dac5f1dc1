"""Values that are measured outside the ladder (the sizes of n of a case): the first call, an empty
wait, single units, device time, and the calls of a chain one by one. Each function yields lines of
the journal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats
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

    The numbers were chosen, not measured, where a line does not name a run.
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
    """Time the first call of a case in this process, which may load and compile: preparing, issuing
    and waiting for one unit. Of a chain that records its units the preparation alone, too. Nothing
    for a chain with its own loop (in a browser page, say), whose calls cannot be timed from here.
    """
    chain = case.chain
    if chain.own_loop:
        return
    began = clock.now()
    chain.prepare(1)
    prepared = clock.now()
    chain.issue(1)
    chain.wait()
    done = clock.now()
    case.issued += 1
    # The list behind the times names the n that they belong to: one unit.
    yield case.once("first", [float(done - began)], [1])
    if chain.recorded:
        yield case.once("prepare", [float(prepared - began)], [1])


def time_short_chains(case: CaseInProgress, clock: Clock, extra: bool) -> Iterator[OneOffEntry]:
    """Time waits without work, T(0), and single units, T(1), in ns, a few times each, as often as a
    share of the case's time allows. Where each unit has its own wait, many more T(1) for
    percentiles.

    ``extra``: also the slow ones: single units after 50 ms of idle time, and T(100) if the rounds
    will not sample it.
    """
    chain = case.chain
    ladder = case.ladder
    # Each timed unit is preceded by a warm one, so a value costs about two T(1).
    pair_ns = 2 * ladder.one_ns
    fitting = int(_RULE.share * case.seconds * 1e9 / pair_ns)
    # At most seven, at least two; of T(1) for percentiles 20 to 500.
    times = max(2, min(_RULE.times, fitting))
    # T(0), with nothing to wait for, and T(1), what a naive benchmark times.
    # ``_timed``: the line of the journal with these times, and the n of each.
    yield _timed(case, "empty_wait", window.totals(chain, 0, times, clock), 0)
    yield _timed(case, "naive", window.totals(chain, 1, times, clock), 1)
    if chain.latency:
        count = max(_RULE.least_latencies, min(_RULE.most_latencies, fitting))
        yield _timed(case, "latency", window.totals(chain, 1, count, clock), 1)
    if not extra:
        return
    # Each of these sleeps ``IDLE_S`` first, which takes most of the time.
    fitting_idle = int(_RULE.idle_share * case.seconds / window.IDLE_S)
    idle_times = max(1, min(times, fitting_idle))
    yield _timed(case, "naive_idle", window.single_shot_after_idle(chain, idle_times, clock), 1)
    if LEGACY_N not in ladder.ns:
        yield _legacy(case, clock)


def _timed(case: CaseInProgress, name: str, totals: list[int], n: int) -> OneOffEntry:
    """The journal entry with these T(n). Their units, warm ones included, are added to those that
    the case has issued.
    """
    ns = [n] * len(totals)
    case.issued += case.chain.units(ns)
    return case.once(name, [float(total) for total in totals], ns)


def _legacy(case: CaseInProgress, clock: Clock) -> OneOffEntry:
    """The journal entry with T(100), from which a reader computes what most benchmarks print,
    T(100) / 100. The reason instead if the stack accepts no 100 units, or if they take too long; up
    to twice the budget one sample is taken all the same.
    """
    chain = case.chain
    if chain.max_n < LEGACY_N:
        return case.once("legacy", reason=because("n-is-bounded", most=chain.max_n))
    cost_ns = case.ladder.one_ns + case.ladder.unit_ns * LEGACY_N
    # One such value may take ``_RULE.share`` of the seconds of the case.
    budget_ns = _RULE.share * case.seconds * 1e9
    if cost_ns > 2 * budget_ns:
        too_long = because("units-too-long", units=LEGACY_N, milliseconds=cost_ns / 1e6)
        return case.once("legacy", reason=too_long)
    times = max(1, min(5, int(budget_ns / cost_ns)))
    totals = window.totals(chain, LEGACY_N, times, clock)
    return _timed(case, "legacy", totals, LEGACY_N)


def time_device_and_recordings(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Journal entries with the device time of a unit, and with the cost of making recordings, such
    as graphs.

    The chain may run any number of units for these: the caller must ``recount`` them afterwards.
    """
    yield from _device(case, clock)
    # ``making``: by part of making a recording, recorded units and times; empty without recordings.
    for part, (units, values) in case.chain.making().items():
        yield case.once(f"making:{part}", [float(value) for value in values], units)


def _device(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Journal entries with the device time of chains of three lengths, whose slope is the device
    time of a unit: ``device_busy`` if the device provably never waited inside them, else
    ``device_span``, which contains such gaps. Then ``device_quantum``, the resolution of the
    device's clock.

    The reason instead where no slope can be formed; nothing if the stack has no device time.
    """
    # ``held_n``: the largest n that the chain can time on the device.
    top = min(case.ladder.ns[-1], case.chain.held_n)
    try:
        # ``DeviceTime`` of each chain: n, ``span`` (ns), ``busy``, ``quantum`` (the step of the
        # device's clock) and ``method``.
        spans = _device_spans(case, clock, top)
    except Exception as error:
        # "Unavailable" is an answer (the stack has no device times here); other errors drop the
        # case.
        if status_of(error) != "unavailable":
            raise
        yield case.once("device_span", reason=reason_of(error))
        return
    if not spans:
        return

    # A slope needs two lengths. Where T(n) is a staircase (``stairs``: the wait polls), one was
    # taken on purpose.
    lengths = {span.n for span in spans}
    if len(lengths) < 2 and not case.ladder.stairs:
        yield case.once("device_span", reason=because("one-length-of-device-time", units=top))
        return
    times = [span.span for span in spans]
    if min(times) <= 0:
        yield case.once("device_span", reason=because("device-clock-stands", spans=str(times)))
        return
    # ``busy``: the device provably never waited inside the chain. ``method``: how it was timed.
    name = "device_busy" if all(span.busy for span in spans) else "device_span"
    ns = [span.n for span in spans]
    yield case.once(name, [float(time) for time in times], ns, spans[0].method)
    coarsest = max(span.quantum for span in spans)
    yield case.once("device_quantum", [float(coarsest)])


def _device_spans(case: CaseInProgress, clock: Clock, top: int) -> list[DeviceTime]:
    """Device times of chains of ``top`` units, a half and a quarter of it, up to three of each
    while time is left, at least two in all; empty if the stack cannot measure them. Where the wait
    polls, one length, once. Raises ``Unsupported``.
    """
    chain = case.chain
    # Two are taken in any case: the first two already differ in length, as a slope needs.
    ns = [top, max(1, top // 2), max(1, top // 4)] * 3
    # ``stairs`` is set where the wait polls rarely: each chain then lasts until a poll.
    if case.ladder.stairs:
        ns = [top]
    # Twice the share of the case's seconds that any one-off value may take. Checked from the third
    # sample on, by the mean time of a sample so far.
    budget_ns = 2 * _RULE.share * case.seconds * 1e9
    spent_ns = 0
    spans: list[DeviceTime] = []
    for n in ns:
        if len(spans) >= 2:
            mean_ns = spent_ns / len(spans)
            if spent_ns + mean_ns > budget_ns:
                break
        # ``aside``: units that ran but that ``executed`` leaves out, counted before this sample.
        aside = chain.aside
        began = clock.now()
        span = chain.device(n)
        if span is None:
            return []
        spent_ns += clock.now() - began
        # The chain may have run warm units too: verify that at least these n ran.
        # ``recount`` makes all units that ran count as issued, so that later checks stay exact.
        case.recount(aside, span.n)
        spans.append(span)
    return spans


def time_stages(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Time each call of a chain's issue loop on its own. Yields ns per unit for each stage (one
    kind of call, such as encoding a pass), and as ``unstaged`` the whole ``issue`` of the same
    chain, timed as usual right before and after: the sum of the stages is compared with it.

    A stage is the sum of its durations less the clock readings inside them, over n. A chain without
    stages sets ``case.staged`` to False, so that it is not asked again.
    """
    chain = case.chain
    ladder = case.ladder
    # As many units as the limits of units and of time allow, and not more than the rounds sample.
    units_in_time = int(_RULE.staged_ns / ladder.unit_ns)
    # 256 units and 2 ms: a longer chain is interrupted more often.
    n = max(1, min(_RULE.staged_units, ladder.ns[-1], units_in_time))
    # The same chain as a whole before, then stage by stage, then as a whole again.
    before = window.sample(chain, [n], clock)
    # A warm unit, as before each sample.
    chain.prepare(1)
    chain.issue(1)
    chain.wait()
    # The units of the sample before, and that warm one.
    case.issued += chain.units([n]) + 1
    stages = chain.stages(n)
    # No stages: nothing was run by ``stages``, and it is not asked again.
    case.staged = bool(stages)
    if not stages:
        return
    # ``stages`` need not wait for its units, which the next sample must not contain.
    chain.wait()
    after = window.sample(chain, [n], clock)
    # The units of that sample, and the n of ``stages``.
    case.issued += chain.units([n]) + n

    # By stage the duration of each call, ns. The readings alone ("clock") tell what one costs.
    durations = {name: np.asarray(values, np.float64) for name, values in stages.items()}
    reading_ns = _reading_ns(durations.pop("clock"))
    for name, times in durations.items():
        # Each duration contains one reading of the clock.
        without_readings = float(times.sum() - times.size * reading_ns)
        yield case.once(f"stage:{name}", [without_readings / n], [n])
    yield case.once("stage_clock", [reading_ns], [n])
    # Index 1 of a row is the time of ``issue``.
    enqueue_ns = [row[1] for row in [*before, *after]]
    mean_ns = sum(enqueue_ns) / len(enqueue_ns)
    yield case.once(UNSTAGED, [mean_ns / n], [n])


def _reading_ns(readings: Floats) -> float:
    """The cost of a clock reading, ns, from readings with nothing between them: the mean without
    the least and the largest tenth. Their median would be a multiple of the clock's step.
    """
    ordered = np.sort(readings)
    tenth = ordered.size // 10
    return float(ordered[tenth : ordered.size - tenth].mean())
