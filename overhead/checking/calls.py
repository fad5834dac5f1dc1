"""The calls that a run makes to an open chain, checked: every unit is counted, and times are plausible."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

from msgspec import Meta

from overhead.checking.findings import Findings
from overhead.checking.suspicions import (
    blocking_warning,
    device_time_warning,
    span_warning,
    unfinished_warning,
    unread_warning,
)
from overhead.fields import checked
from overhead.measure.sampling.chain import Chain, DeviceTime, Samples, StartLatency
from overhead.probes.in_order import InOrderChain
from overhead.results import Case

UNITS = (0, 1, 7, 1)
FEW = 3
_REPEATS = 15
_REPEATS_NS = 500_000_000
"""A measurement is not repeated again after this time."""
_BACKLOG = 200
"""Units in the queue when a read is tested."""
_SHORT_NS = 20_000_000
"""Tests that need many units are left out if they would take longer than this."""

_DEVICE_TIME = {
    "n": Annotated[int, Meta(ge=1)],
    "span": Annotated[float, Meta(gt=0)],
    "busy": bool,
    "quantum": Annotated[float, Meta(ge=0)],
    "method": Annotated[str, Meta(min_length=1)],
}


class _Stop(BaseException):
    """The chain has an error or is unavailable, so further calls would find nothing new."""


class CheckedCalls:
    """Calls the methods of an open chain as a run does, and compares the units issued with those executed."""

    def __init__(self, found: Findings, chain: Chain, case: Case) -> None:
        self.found, self.chain, self.case = found, chain, case
        self.most = min(max(UNITS), chain.max_n)
        self.before = 0

    def check(self, units: Sequence[int]) -> None:
        """Add what is wrong to the findings. ``units``: the numbers of units to issue and count."""
        try:
            self._start()
            self._count(units)
            self._own_loop() if self.chain.own_loop else self._blocking()
            for step, check in (
                ("device()", self._device),
                ("stages()", self._stages),
                ("start_latency()", self._start_latency),
                ("making()", self._making),
            ):
                with self._step(step):
                    check()
                self._read()
                self._count((FEW,), f" after {step}")
        except _Stop:
            pass

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        """Run one step. Raises ``_Stop`` if it fails or is unavailable."""
        with self.found.catching(name):
            yield
        if self.found.failed or self.found.unavailable:
            raise _Stop

    def _must(self, step: str, true: bool, message: str) -> None:
        """Add an error and raise ``_Stop`` unless it is true."""
        self.found.step = step
        if not self.found.expect(true, message):
            raise _Stop

    def _start(self) -> None:
        """Read the count after ``open``; it must be 0."""
        self._read()
        reason = "units that open() runs must not count" if self.before > 0 else "units of warm_up changed no values"
        right = not self.chain.executes or self.before == 0
        self._must("executed()", right, f"executed() is {self.before} right after open(); {reason}")

    def _read(self) -> None:
        """Store the number of units executed so far."""
        value: Any = None
        with self._step("executed()"):
            value = self.chain.executed()
            self.before = int(value)
        whole = not self.chain.executes or (float(self.before) == float(value) and not isinstance(value, bool))
        self._must("executed()", whole, f"executed() returned {value!r}; it must be an integer")

    def _count(self, units: Sequence[int], remark: str = "") -> None:
        """Check that n issued units increase ``executed`` by exactly n, and that reading it twice changes nothing."""
        for n in units:
            before = self.before
            self._issue(n)
            self._read()
            if self.chain.executes:
                counted, after = self.before - before, self.before
                self._must(f"n = {n}{remark}", counted == n, f"{n} units issued, {counted} executed")
                self._read()
                same = self.before == after
                self._must("executed()", same, f"read twice, executed() is {after} and then {self.before}")

    def _issue(self, n: int) -> None:
        with self._step(f"prepare({n})"):
            self.chain.prepare(n)
        with self._step(f"issue({n})"):
            self.chain.issue(n)
        with self._step(f"wait() after issue({n})"):
            self.chain.wait()

    def _blocking(self) -> None:
        """Compare the waits after some units with an empty wait: is anything left to wait for?"""
        if self.chain.recorded or self.case.pattern == "fused" or not self.chain.executes:
            return
        with self._step("wait() after one unit"):
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
        ns = [1, 3]
        samples: dict[str, Callable[[], Samples]] = {
            "sample([1, 3])": functools.partial(self.chain.sample, ns, True),
            "sample_idle([1, 3])": functools.partial(self.chain.sample_idle, ns, 1.0),
        }
        for step, sample in samples.items():
            before = self.before
            with self._step(step):
                rows = sample()
                shape = [(row[0], len(row) in (3, 4), all(type(x) is int and x >= 0 for x in row)) for row in rows]
                good = shape == [(n, True, True) for n in ns]
                self.found.expect(good, f"returned {rows!r:.100}; it must be [[n, issue_ns, total_ns], ...] for {ns}")
                units = self.chain.units(ns)
            self._read()
            counted = self.before - before
            right = counted == units or not self.chain.executes
            self._must(step, right, f"units() says {units} units, {counted} executed")

    def _device(self) -> None:
        n = min(4, self.chain.held_n)
        began = time.perf_counter_ns()
        found = [self.chain.device(n), self.chain.device(n)]
        took = time.perf_counter_ns() - began
        alike = {type(one) for one in found} in ({DeviceTime}, {type(None)})
        if not self.found.expect(alike, f"device({n}) returned {found!r:.100}, not DeviceTime twice"):
            return
        times = [one for one in found if one is not None]
        for one in times:
            for name, kind in _DEVICE_TIME.items():
                checked(f"DeviceTime.{name}", getattr(one, name), kind)
            most = self.chain.held_n
            self.found.expect(one.n <= most, f"DeviceTime.n is {one.n}; allowed: 1 to held_n {most}")
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
        if self.chain.executes:
            self._read()
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
