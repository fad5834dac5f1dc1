"""The contract of a stack, checked in this process: its class, its targets, its cases, and each chain.

``check_chain`` calls every method of a chain as a run does, counts by values, and looks for what is legal but wrong.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from overhead.checking.findings import Findings
from overhead.measure.sampling.chain import Chain, DeviceTime, Samples, StartLatency
from overhead.measure.sampling.description import fields_of, opening_of
from overhead.probes.base import Probe, Space
from overhead.probes.in_order import InOrderChain
from overhead.probes.workload_chain import WorkChain
from overhead.results import Case, Target
from overhead.workloads import workloads

UNITS = (0, 1, 7, 1)
_FEW = 3
MANY_UNITS = 1001
"""Issued too where a unit takes well under a microsecond."""
_BLOCKING_STEP = "wait() after one unit"
_LEAST_WAIT_NS = 2_000
"""A wait that is this much longer than an empty one waits for something."""
_REPEATS = 15
_REPEATS_NS = 500_000_000
"""A measurement is not repeated again after this time."""
_LARGEST_SHARE = 300
"""A unit whose part of T(n) exceeds its device time by more than this is suspicious."""
_LEAST_GROWTH = 1.5
"""Many units take at least this many times as long on the device as an eighth of them."""
_BACKLOG = 200
"""Units in the queue when a read is tested."""
_SHORT_NS = 20_000_000
"""Tests that need many units are left out if they would take longer than this."""


def check_targets(found: Findings, probe: Probe) -> list[Target]:
    """The targets of the stack, each checked. Adds what is wrong to ``found``."""
    targets: Any = []
    with found.catching("targets()"):
        targets = probe.targets()
    if not isinstance(targets, list) or not all(isinstance(target, Target) for target in targets):
        found.error(f"targets() returned {targets!r:.80}; it must be a list of Target")
        return []
    if not targets and not found.failed and not found.unavailable:
        found.warn("targets() returned no device; raise Unavailable(reason, mend) to say why")
    keys = [target.key for target in targets]
    for key in {key for key in keys if keys.count(key) > 1}:
        found.error(f"two targets have the key {key}; give each its own Target.device")
    for target in targets:
        found.expect(target.stack == probe.name, f"Target.stack is {target.stack!r}; it must be {probe.name!r}")
        if not target.versions:
            found.warn(f"{target.key} has no versions; the record should name those of the library and driver")
    return targets


def check_space(found: Findings, probe: Probe, target: Target) -> list[Case]:
    """The cases of the target, the base first. Adds what is wrong to ``found``."""
    star: list[Case] = []
    with found.catching("space()"):
        space: Any = probe.space(target)
        if not found.expect(isinstance(space, Space), f"space() returned {space!r:.80}; it must be a Space"):
            return []
        star.extend(space.star())
        for cases in (star, list(itertools.islice(space.cross(), 1))):  # all combinations may be very many
            if not found.expect(bool(cases), "space() has no case: allowed() refuses every one"):
                return []
            found.expect(cases[0].key == space.base.key, "allowed() refuses the base case")
    return star


class Watched(dict[str, Any]):
    """The parameters of a case. Remembers which ones the stack read."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(params)
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self.read.update(super().keys())
        return super().__iter__()

    def items(self) -> Any:
        self.read.update(super().keys())
        return super().items()

    def values(self) -> Any:
        self.read.update(super().keys())
        return super().values()

    def __eq__(self, other: object) -> bool:
        self.read.update(super().keys())
        return super().__eq__(other)

    __hash__ = None


def watched(case: Case) -> tuple[Case, Watched]:
    """A copy of the case, and its parameters, which record each key that is read."""
    copy, params = msgspec.structs.replace(case), Watched(case.params)
    msgspec.structs.force_setattr(copy, "params", params)
    return copy, params


def open_chain(found: Findings, probe: Probe, target: Target, case: Case, varied: Iterable[str] = ()) -> Chain | None:
    """The open chain of the case; None if there is none. ``varied``: the parameters that the stack must read."""
    given, params = watched(case)
    chain: Any = None
    with found.catching("open()"):
        chain = probe.open(target, given)
    if chain is None or not isinstance(chain, Chain):
        if not found.failed and not found.unavailable:
            found.error(f"open() returned {chain!r:.80}; it must be a Chain")
        return None
    if not chain.own_loop:
        for name in sorted(set(varied) - params.read):
            found.warn(f"open() never reads params[{name!r}], so this case is measured like the base case")
    if case.workload in workloads() and not isinstance(chain, WorkChain):
        found.warn(f"the chain is no WorkChain, so nothing compares it with the reference of {case.workload}")
    return chain


def check_chain(found: Findings, chain: Chain, case: Case, *, cheap: bool = False) -> None:
    """Check an open chain, and close it. ``cheap``: a unit of the step takes well under a microsecond."""
    try:
        _check_description(found, chain, case)
        if not found.failed:
            many = cheap and case.workload == "step"
            units = (*UNITS, MANY_UNITS) if many else UNITS
            _Calls(found, chain, case).check([min(n, chain.max_n) for n in units])
    finally:
        with found.catching("close()"):
            chain.close()


def check_case(probe: Probe, target: Target, case: Case, varied: Iterable[str] = ()) -> Findings:
    """Everything that is wrong with one case of a stack."""
    found = Findings()
    chain = open_chain(found, probe, target, case, varied)
    if chain is not None:
        check_chain(found, chain, case, cheap=probe.cost == "cheap")
    return found


def _check_description(found: Findings, chain: Chain, case: Case) -> None:
    good: dict[str, Any] = {}
    for field, get in fields_of(chain):
        with found.catching(field):
            good[field] = get()
    with found.catching("opening()"):
        opening_of(chain)
    if found.failed:
        return
    found.doing("fields")
    found.expect(chain.max_n >= _FEW, f"max_n is {chain.max_n}; a ladder needs at least {_FEW}")
    unit = getattr(chain, "unit", case.unit)
    if unit != case.unit:
        found.warn(f"the chain's unit {unit!r} differs from the case's {case.unit!r}, which is the one in the record")
    if not good["window"]:
        found.warn("window() is empty; it must name everything that is timed: the operation, the wait, the precision")
    elif not chain.synchronous and "wait" not in {*good["window"], *case.params}:
        found.warn("window() names no wait, and neither do the parameters: two waits would count as the same")
    if chain.synchronous and chain.overlap != "serial":
        found.warn("synchronous is True, but overlap is 'pipelined': nothing overlaps here, so it must be 'serial'")
    several = case.unit[:1].isdigit()  # a unit of 10 launches and one wait has no latency of one launch
    if case.pattern in ("wait-each", "read-each") and not chain.latency and not several:
        found.warn(f"the pattern is {case.pattern}, but latency is False: there will be no percentiles")


def blocking_warning(synchronous: bool, issue: float, empty: float, one: float, most: float) -> str:
    """What is suspicious about these times, ns; empty if nothing is.

    ``issue``: of one unit. ``empty``, ``one``, ``most``: of the wait after no unit, one unit and the most units.
    """
    waited = f"wait() takes {one / 1e3:.1f} us after one unit and {empty / 1e3:.1f} us after none"
    if synchronous and one > 3 * empty + 10 * _LEAST_WAIT_NS:
        return f"synchronous is True, but {waited}: does issue() return before the work is done?"
    # A CPU device may have run one unit before issue() returns, but not all of them.
    nothing_left = max(one, most) < 1.2 * empty + _LEAST_WAIT_NS / 10
    if not synchronous and nothing_left and issue > 2 * empty:
        return (
            f"{waited}: if issue() returns only when the work is done, synchronous must be True; "
            "if it returns earlier, does wait() wait for the work?"
        )
    return ""


def unread_warning(pattern: str, empty: float, left: float, full: float) -> str:
    """What is suspicious about a unit that contains its own wait or read; empty if nothing is.

    ``full``: the wait after some units without it, ns. ``left``: the wait after the same units with it. ``empty``: the
    wait after no unit.
    """
    if left < empty + max(10 * _LEAST_WAIT_NS, 0.5 * (full - empty)):
        return ""
    return (
        f"the pattern is {pattern}, but {(left - empty) / 1e3:.1f} us of work are left for wait() afterwards: "
        "does the call in each unit return before the unit has run?"
    )


def unfinished_warning(few: float, many: float, window: float, n: int) -> str:
    """What is suspicious about these times of ``executed``, ns; empty if nothing is.

    ``few``: after one unit and its wait. ``many``: after n units and their wait, which took ``window``.
    """
    if many - few < max(10 * _LEAST_WAIT_NS, window / 2):
        return ""
    return (
        f"executed() takes {few / 1e3:.0f} us after 1 unit and its wait, and {many / 1e3:.0f} us after {n} units and "
        "their wait: does wait() return before the work is done, or does the library do it only when values are read?"
    )


def device_time_warning(per_unit: float, window: float, *, fused: bool = False) -> str:
    """What is suspicious about the device time of a unit, when a unit adds ``window`` to T(n); both in ns.

    ``fused``: a unit is one turn of a loop on the device, which may take less than 1 ns.
    """
    if per_unit >= max(0.0 if fused else 1.0, window / _LARGEST_SHARE):
        return ""
    return f"the device time of a unit is {per_unit:.2g} ns, but a unit adds {window:.0f} ns to T(n): is span in ns?"


def span_warning(few: DeviceTime, many: DeviceTime) -> str:
    """What is suspicious about device times of few and of many units; empty if nothing is."""
    if many.span > _LEAST_GROWTH * few.span:
        return ""
    return (
        f"span is {few.span:.0f} ns for {few.n} units and {many.span:.0f} ns for {many.n}: "
        "it must be the time of all n units, not of one"
    )


class _Calls:
    """Calls the methods of an open chain as a run does, and compares the units issued with those executed."""

    def __init__(self, found: Findings, chain: Chain, case: Case) -> None:
        self.found, self.chain, self.case = found, chain, case
        self.most = min(max(UNITS), chain.max_n)
        self.before = 0

    def check(self, units: Sequence[int]) -> None:
        if self._start() and self._counts(units):
            self._own_loop() if self.chain.own_loop else self._blocking()
            for step, check in (
                ("device()", self._device),
                ("stages()", self._stages),
                ("start_latency()", self._start_latency),
                ("making()", self._making),
            ):
                if not self._safely(step, check):
                    return

    def _safely(self, step: str, check: Callable[[], None]) -> bool:
        """Run one check, then check that a further chain of units is counted exactly."""
        with self.found.catching(step):
            check()
        return not self.found.failed and self._read() and self._counts((_FEW,), f" after {step}")

    def _start(self) -> bool:
        """Read the count after ``open``; it must be 0."""
        if not self._read():
            return False
        self.found.step = "executed()"
        reason = "units that open() runs must not count" if self.before > 0 else "units of warm_up changed no values"
        return not self.chain.executes or self.found.expect(
            self.before == 0, f"executed() is {self.before} right after open(); {reason}"
        )

    def _read(self) -> bool:
        """Store the number of units executed so far. False if it cannot be read."""
        value: Any = None
        with self.found.catching("executed()"):
            value = self.chain.executed()
            self.before = int(value)
        return not self.found.failed and self.found.expect(
            not self.chain.executes or (float(self.before) == float(value) and not isinstance(value, bool)),
            f"executed() returned {value!r}; it must be an integer",
        )

    def _counts(self, units: Sequence[int], remark: str = "") -> bool:
        """Whether n issued units increase ``executed`` by exactly n, and reading it twice changes nothing."""
        for n in units:
            before = self.before
            if not self._issue(n) or not self._read():
                return False
            if not self.chain.executes:
                continue
            counted, after = self.before - before, self.before
            self.found.step = f"n = {n}{remark}"
            if not self.found.expect(counted == n, f"{n} units issued, {counted} executed") or not self._read():
                return False
            self.found.step = "executed()"
            if not self.found.expect(self.before == after, f"read twice, executed() is {after} and then {self.before}"):
                return False
        return True

    def _issue(self, n: int) -> bool:
        calls: dict[str, Callable[[], None]] = {
            f"prepare({n})": functools.partial(self.chain.prepare, n),
            f"issue({n})": functools.partial(self.chain.issue, n),
            f"wait() after issue({n})": self.chain.wait,
        }
        for step, call in calls.items():
            with self.found.catching(step):
                call()
            if self.found.failed or self.found.unavailable:
                return False
        return True

    def _blocking(self) -> None:
        """Compare the waits after some units with an empty wait: is anything left to wait for?"""
        if self.chain.recorded or self.case.pattern == "fused" or not self.chain.executes:
            return
        with self.found.catching(_BLOCKING_STEP):
            times = {n: self._repeated(n) for n in (0, 1, self.most)}
            empty, one, most = (statistics.median(wait for _, wait in times[n]) for n in times)
            issue = statistics.median(issue for issue, _ in times[1])
            if self.chain.latency:
                full = left = most
                if isinstance(self.chain, InOrderChain) and _BACKLOG * (issue + one) < _SHORT_NS:
                    pairs = [self.chain.leftover(_BACKLOG) for _ in range(_REPEATS)]
                    full, left = (statistics.median(column) for column in zip(*pairs, strict=True))
                warning = unread_warning(self.case.pattern, empty, left, full)
            else:
                warning = blocking_warning(self.chain.synchronous, issue, empty, one, most)
            n = min(_BACKLOG, self.chain.max_n)
            if not warning and n * (issue + one) < _SHORT_NS:
                rows = [(self._reading(1)[0], *self._reading(n)) for _ in range(_REPEATS)]
                few, many, window = (statistics.median(column) for column in zip(*rows, strict=True))
                warning = unfinished_warning(few, many, window, n)
            if warning:
                self.found.warn(warning)
        if not self.found.failed:
            self._read()

    def _timed(self, n: int) -> tuple[int, int]:
        """The time of ``issue`` with n units and that of the ``wait`` after it, ns."""
        self.chain.prepare(n)
        began = time.perf_counter_ns()
        self.chain.issue(n)
        issued = time.perf_counter_ns()
        self.chain.wait()
        return issued - began, time.perf_counter_ns() - issued

    def _repeated(self, n: int) -> list[tuple[int, int]]:
        """The times of several chains of n units; of fewer if they take long."""
        times: list[tuple[int, int]] = []
        while len(times) < _REPEATS and sum(map(sum, times)) < _REPEATS_NS:
            times.append(self._timed(n))
        return times

    def _reading(self, n: int) -> tuple[int, int]:
        """The time of ``executed`` after n units and their wait, and the time of both before it, ns."""
        window = sum(self._timed(n))
        began = time.perf_counter_ns()
        self.chain.executed()
        return time.perf_counter_ns() - began, window

    def _own_loop(self) -> None:
        """Check the rows of the chain's own loop."""
        ns, before = [1, 3], self.before
        samples: dict[str, Callable[[], Samples]] = {
            "sample([1, 3])": functools.partial(self.chain.sample, ns, True),
            "sample_idle([1, 3])": functools.partial(self.chain.sample_idle, ns, 1.0),
        }
        for step, sample in samples.items():
            with self.found.catching(step):
                rows = sample()
                shape = [(row[0], len(row) in (3, 4), all(type(x) is int and x >= 0 for x in row)) for row in rows]
                good = shape == [(n, True, True) for n in ns]
                self.found.expect(good, f"returned {rows!r:.100}; it must be [[n, issue_ns, total_ns], ...] for {ns}")
                units = self.chain.units(ns)
            if self.found.failed or not self._read():
                return
            counted, before = self.before - before, self.before
            self.found.step = step
            self.found.expect(
                counted == units or not self.chain.executes, f"units() says {units} units, {counted} executed"
            )

    def _device(self) -> None:
        n = min(4, self.chain.held_n)
        began = time.perf_counter_ns()
        found = [self.chain.device(n), self.chain.device(n)]
        took = time.perf_counter_ns() - began
        kinds = {type(one) for one in found}
        expect = self.found.expect
        if not expect(
            kinds in ({DeviceTime}, {type(None)}), f"device({n}) returned {found!r:.100}, not DeviceTime twice"
        ):
            return
        times = [one for one in found if one is not None]
        for one in times:
            expect(
                1 <= one.n <= self.chain.held_n, f"DeviceTime.n is {one.n}; allowed: 1 to held_n {self.chain.held_n}"
            )
            expect(one.span > 0 and math.isfinite(one.span), f"DeviceTime.span is {one.span}; it must be ns above 0")
            expect(one.quantum >= 0, f"DeviceTime.quantum is {one.quantum}; it must be ns, 0 or more")
            expect(isinstance(one.busy, bool), f"DeviceTime.busy is {one.busy!r}; it must be True or False")
            expect(isinstance(one.method, str) and bool(one.method), "DeviceTime.method is empty; it must say how")
        if times and not self.found.failed and self.chain.executes and not self.chain.own_loop:
            self._plausible(times, took)

    def _plausible(self, times: Sequence[DeviceTime], took: float) -> None:
        """Compare the device times, which ``took`` ns to measure, with the host's clock and with more units."""
        per_unit = statistics.mean(one.span / one.n for one in times)
        if (total := sum(one.span for one in times)) > took:
            self.found.warn(f"span is {total:.3g} ns in two calls that took {took:.3g} ns: is span in ns?")
        totals = {n: min(map(sum, self._repeated(n))) for n in (1, self.most)}
        slope = (totals[self.most] - totals[1]) / (self.most - 1)
        many = min(_BACKLOG, self.chain.held_n)
        fused = self.case.pattern == "fused"
        said = device_time_warning(per_unit, slope, fused=fused)
        if not said and not fused and many >= 16 and many * slope < _SHORT_NS:
            few, more = self.chain.device(many // 8), self.chain.device(many)
            said = span_warning(few, more) if few is not None and more is not None else ""
        if said:
            self.found.warn(said)

    def _stages(self) -> None:
        before, stages = self.before, self.chain.stages(5)
        expect = self.found.expect
        if stages:
            expect({"clock"} < set(stages), f"stages() has {sorted(stages)}; it must have clock and a stage")
            times = [duration for durations in stages.values() for duration in durations]
            expect(all(duration >= 0 for duration in times), "stages() holds a negative duration")
        self.chain.wait()
        if self.chain.executes and self._read():
            wanted, counted = 5 if stages else 0, self.before - before
            expect(counted == wanted, f"stages(5) ran {counted} units; it must run {wanted}")

    def _start_latency(self) -> None:
        found = self.chain.start_latency(3)
        if found is not None and self.found.expect(
            isinstance(found, StartLatency), f"start_latency(3) returned {found!r:.80}; it must be a StartLatency"
        ):
            self.found.expect(len(found.values) > 0, "StartLatency.values is empty")

    def _making(self) -> None:
        for part, (units, times) in self.chain.making().items():
            self.found.expect(
                len(units) == len(times), f"making()[{part!r}] has {len(units)} units, {len(times)} times"
            )


def base_parameters(cases: Sequence[Case], case: Case) -> list[str]:
    """The parameters in which a case differs from the base case, which is the first."""
    base = cases[0].params
    return [name for name, value in case.params.items() if base.get(name) != value]


def check_neighbour(found: Findings, chain: Chain) -> None:
    """Check that another chain, open all the time, still counts by itself. Adds what is wrong to ``found``."""
    if not chain.executes:
        return
    before, ran = 0, 0
    with found.catching("the base case, which stayed open while this case was opened and closed"):
        before = int(chain.executed())
        chain.prepare(3)
        chain.issue(3)
        chain.wait()
        ran = int(chain.executed()) - before
    if not found.failed:
        wrong = f"its count was {before} before this and rose by {ran} with 3 units" if before % 3 or ran != 3 else ""
        found.expect(
            not wrong, f"{wrong}: do two open chains share their values, or does open() start the library again?"
        )
