"""The calls that a run makes to an open chain, checked: every unit is counted, and times are
plausible.

A unit is one dispatch, launch or operation of the chain.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from overhead.checking.findings import Findings
from overhead.errors import Unavailable, Unsupported
from overhead.measure.sampling.chain import Chain, DeviceTime
from overhead.probes.in_order import InOrderChain
from overhead.results import Case, Reason, because

UNITS = (0, 1, 7, 1)
FEW = 3
_REPEATS = 15
_REPEATS_NS = 500_000_000
"""A measurement is not repeated again after this time."""
_BACKLOG = 200
"""Units in the queue when a read is tested."""
_SHORT_NS = 20_000_000
"""Tests that need many units are left out if they would take longer than this."""
_LEAST_WAIT_NS = 2_000
"""A wait that is this much longer than an empty one waits for something."""
_LARGEST_SHARE = 300
"""A unit whose part of T(n) exceeds its device time by more than this is suspicious."""
_LEAST_GROWTH = 1.5
"""Many units take at least this many times as long on the device as an eighth of them."""


class _Stop(BaseException):
    """The chain has an error or is unavailable, so further calls would find nothing new."""


class CheckedCalls:
    """Calls the methods of an open chain as a run does, and compares the units issued with those
    executed.
    """

    def __init__(self, found: Findings, chain: Chain, case: Case) -> None:
        self.found, self.chain, self.case = found, chain, case
        self.most = min(max(UNITS), chain.max_n)
        self.before = 0

    def check(self, units: Sequence[int]) -> None:
        """Call every method of the chain; add what is wrong to the findings. ``units``: how many to
        issue each time.
        """
        try:
            self._count(units)
            for step, call in (
                (
                    ("sample()", self._own_loop)
                    if self.chain.own_loop
                    else ("wait() after one unit", self._blocking)
                ),
                ("device()", lambda: _optional(self._device)),
                ("stages()", lambda: (self.chain.stages(5), self.chain.wait())),
                ("making()", self.chain.making),
            ):
                with self._step(step):
                    call()
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

    def _read(self) -> None:
        """Store the number of units executed so far."""
        with self._step("executed()"):
            self.before = int(self.chain.executed())

    def _count(self, units: Sequence[int], remark: str = "") -> None:
        """Check that n issued units increase ``executed`` by exactly n."""
        for n in units:
            before = self.before
            self._issue(n)
            self._read()
            self._counted(f"n = {n}{remark}", n, before)

    def _counted(self, step: str, issued: int, before: int) -> None:
        """Add an error and raise ``_Stop`` unless so many units ran since ``before``."""
        self.found.step = step
        counted = self.before - before
        right = counted == issued or not self.chain.executes
        if not self.found.expect(right, because("units-differ", issued=issued, executed=counted)):
            raise _Stop
        if issued:
            self.found.judge = lambda error: None  # the stack works on this machine

    def _issue(self, n: int) -> None:
        with self._step(f"prepare({n})"):
            self.chain.prepare(n)
        with self._step(f"issue({n})"):
            self.chain.issue(n)
        with self._step(f"wait() after issue({n})"):
            self.chain.wait()

    def _blocking(self) -> None:
        """Compare the waits after some units with an empty wait: is anything left to wait for?"""
        if not self.chain.recorded and self.case.pattern != "fused" and self.chain.executes:
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
                few, many, window = (
                    statistics.median(column) for column in zip(*rows, strict=True)
                )
                warning = unfinished_warning(few, many, window, n)
            if warning:
                self.found.warn(warning)

    def _own_loop(self) -> None:
        self.chain.sample([1, 3], True)
        self.chain.sample_idle([1, 3], 1.0)

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
        """The time of ``executed`` after n units and their wait, and the time of both before it,
        ns.
        """
        window = sum(self._timed(n))
        began = time.perf_counter_ns()
        self.chain.executed()
        return time.perf_counter_ns() - began, window

    def _device(self) -> None:
        n = min(4, self.chain.held_n)
        began = time.perf_counter_ns()
        found = [self.chain.device(n), self.chain.device(n)]
        took = time.perf_counter_ns() - began
        alike = {type(one) for one in found} in ({DeviceTime}, {type(None)})
        if not self.found.expect(
            alike, because("device-gave-other-types", n=n, returned=f"{found!r:.100}")
        ):
            return
        times = [one for one in found if one is not None]
        if times and self.chain.executes and not self.chain.own_loop:
            self._plausible(times, took)

    def _plausible(self, times: Sequence[DeviceTime], took: float) -> None:
        """Compare the device times, which ``took`` ns to measure, with the host's clock and with
        more units.
        """
        per_unit = statistics.mean(one.span / one.n for one in times)
        if (total := sum(one.span for one in times)) > took:
            self.found.warn(because("span-exceeds-calls", span_ns=total, took_ns=took))
        totals = {n: min(map(sum, self._repeated(n))) for n in (1, self.most)}
        slope = (totals[self.most] - totals[1]) / (self.most - 1)
        many = min(_BACKLOG, self.chain.held_n)
        fused = self.case.pattern == "fused"
        said = device_time_warning(per_unit, slope, fused=fused)
        if not said and not fused and many >= 16 and many * slope < _SHORT_NS:
            few, more = self.chain.device(many // 8), self.chain.device(many)
            said = span_warning(few, more) if few is not None and more is not None else None
        if said:
            self.found.warn(said)


def _optional(call: Callable[[], object]) -> None:
    """Call it. A device or library without this value is no fault: a run then gives the reason for
    the value alone.
    """
    with suppress(Unavailable, Unsupported):
        call()


def blocking_warning(
    synchronous: bool, issue: float, empty: float, one: float, most: float
) -> Reason | None:
    """Why ``wait`` may not wait, or ``issue`` may not return early, judged by their times in ns;
    None if all is well.

    ``issue``: of one unit. ``empty``, ``one``, ``most``: of the wait after no unit, one unit and
    the most units.
    """
    waits_us = {"one_us": one / 1e3, "none_us": empty / 1e3}
    if synchronous and one > 3 * empty + 10 * _LEAST_WAIT_NS:
        return because("synchronous-yet-waits", **waits_us)
    # A CPU device may have run one unit before issue() returns, but not all of them.
    nothing_left = max(one, most) < 1.2 * empty + _LEAST_WAIT_NS / 10
    if not synchronous and nothing_left and issue > 2 * empty:
        return because("wait-does-not-wait", **waits_us)
    return None


def unread_warning(pattern: str, empty: float, left: float, full: float) -> Reason | None:
    """Why units that contain their own wait or read may not wait; None if all is well. Times of a
    wait afterwards, ns.

    ``full``: after some units without their wait. ``left``: after the same units with it.
    ``empty``: after no unit.
    """
    if left < empty + max(10 * _LEAST_WAIT_NS, 0.5 * (full - empty)):
        return None
    return because("work-left-after-units", pattern=pattern, left_us=(left - empty) / 1e3)


def unfinished_warning(few: float, many: float, window: float, n: int) -> Reason | None:
    """Why ``wait`` may return too early, judged by the time of ``executed`` after it, ns; None if
    all is well.

    ``few``: after one unit and its wait. ``many``: after n units and their wait, which took
    ``window`` ns.
    """
    if many - few < max(10 * _LEAST_WAIT_NS, window / 2):
        return None
    return because("wait-returns-early", few_us=few / 1e3, many_us=many / 1e3, n=n)


def device_time_warning(per_unit: float, window: float, *, fused: bool = False) -> Reason | None:
    """Why the device time of a unit may be wrong, when a unit adds ``window`` to T(n), the time of
    n units; all in ns.

    None if all is well. ``fused``: a unit is one turn of a loop on the device, which may take less
    than 1 ns.
    """
    if per_unit >= max(0.0 if fused else 1.0, window / _LARGEST_SHARE):
        return None
    return because("device-time-too-short", device_ns=per_unit, unit_ns=window)


def span_warning(few: DeviceTime, many: DeviceTime) -> Reason | None:
    """Why device times of few and of many units may be those of one unit; None if all is well."""
    if many.span > _LEAST_GROWTH * few.span:
        return None
    return because("span-of-one-unit", few_ns=few.span, few=few.n, many_ns=many.span, many=many.n)
