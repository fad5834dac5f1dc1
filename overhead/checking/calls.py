"""The calls that a run makes to an open chain, checked: every unit is counted, and times are
plausible.

A unit is one dispatch, launch or operation of the chain.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from overhead.checking.findings import Findings
from overhead.errors import Unavailable, Unsupported
from overhead.measure.sampling.chain import Chain, DeviceTime
from overhead.probes.in_order import InOrderChain
from overhead.results import Case, Reason, because

UNITS = (0, 1, 7, 1)
"""How many units are issued one after another. Chosen, not measured: none, one, some, and one again
after some.
"""
FEW = 3
"""Units that are counted after each further call."""
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


class _Times(NamedTuple):
    """How long ``issue`` took, and the ``wait`` after it, ns."""

    issue: float
    wait: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.issue + self.wait


class _Stop(BaseException):
    """The chain has an error or is unavailable, so further calls would find nothing new."""


class CheckedCalls:
    """Calls the methods of an open chain as a run does, and compares the units issued with those
    executed.
    """

    def __init__(self, found: Findings, chain: Chain, case: Case) -> None:
        self.found = found
        self.chain = chain
        self.case = case
        self.most = min(max(UNITS), chain.max_n)
        # Units that the chain had executed when it was last asked.
        self.before = 0

    def check(self, units: Sequence[int]) -> None:
        """Call every method of the chain; add what is wrong to the findings. ``units``: how many to
        issue each time.
        """
        try:
            self._count(units)
            if self.chain.own_loop:
                self._call("sample()", self._own_loop)
            else:
                self._call("wait() after one unit", self._blocking)
            self._call("device()", self._device)
            self._call("stages()", self._stages)
            self._call("making()", self.chain.making)
        except _Stop:
            pass

    def _call(self, step: str, call: Callable[[], object]) -> None:
        """Run a step, and count a few units after it: the step may have left the chain unusable.
        Raises ``_Stop``.
        """
        with self._step(step):
            call()
        self._read()
        self._count((FEW,), f" after {step}")

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
        executed = self.before - before
        # A null backend runs nothing, so it has nothing to count.
        is_right = executed == issued or not self.chain.executes
        why = because("units-differ", issued=issued, executed=executed)
        if not self.found.expect(is_right, why):
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
        chain = self.chain
        if chain.recorded or self.case.pattern == "fused" or not chain.executes:
            return
        empty = _medians(self._repeated(0))
        one = _medians(self._repeated(1))
        most = _medians(self._repeated(self.most))
        unit_ns = one.issue + one.wait
        if chain.latency:
            warning = self._unread(empty.wait, most.wait, unit_ns)
        else:
            warning = blocking_warning(
                chain.synchronous, one.issue, empty.wait, one.wait, most.wait
            )
        n = min(_BACKLOG, chain.max_n)
        if not warning and n * unit_ns < _SHORT_NS:
            warning = self._unfinished(n)
        if warning:
            self.found.warn(warning)

    def _unread(self, empty: float, most: float, unit_ns: float) -> Reason | None:
        """Whether units that contain their own wait leave work behind. ``empty``, ``most``: ns of
        the wait after no unit and after the most units.
        """
        full = left = most
        if isinstance(self.chain, InOrderChain) and _BACKLOG * unit_ns < _SHORT_NS:
            waits = [self.chain.leftover(_BACKLOG) for _ in range(_REPEATS)]
            full = statistics.median(without_own_wait for without_own_wait, _ in waits)
            left = statistics.median(with_own_wait for _, with_own_wait in waits)
        return unread_warning(self.case.pattern, empty, left, full)

    def _unfinished(self, n: int) -> Reason | None:
        """Whether ``executed`` takes longer after n units than after one: then ``wait`` returned
        before all of them were done.
        """
        few: list[int] = []
        many: list[int] = []
        windows: list[int] = []
        for _ in range(_REPEATS):
            after_one, _ = self._reading(1)
            after_many, window = self._reading(n)
            few.append(after_one)
            many.append(after_many)
            windows.append(window)
        return unfinished_warning(
            statistics.median(few), statistics.median(many), statistics.median(windows), n
        )

    def _own_loop(self) -> None:
        self.chain.sample([1, 3], True)
        self.chain.sample_idle([1, 3], 1.0)

    def _stages(self) -> None:
        self.chain.stages(5)
        self.chain.wait()

    def _timed(self, n: int) -> _Times:
        """The time of ``issue`` with n units and that of the ``wait`` after it."""
        self.chain.prepare(n)
        began = time.perf_counter_ns()
        self.chain.issue(n)
        issued = time.perf_counter_ns()
        self.chain.wait()
        return _Times(issued - began, time.perf_counter_ns() - issued)

    def _repeated(self, n: int) -> list[_Times]:
        """The times of several chains of n units; of fewer if they take long."""
        times: list[_Times] = []
        passed_ns = 0.0
        while len(times) < _REPEATS and passed_ns < _REPEATS_NS:
            timed = self._timed(n)
            times.append(timed)
            passed_ns += timed.total
        return times

    def _reading(self, n: int) -> tuple[int, int]:
        """The time of ``executed`` after n units and their wait, and the time of both before it,
        ns.
        """
        window = self._timed(n).total
        began = time.perf_counter_ns()
        self.chain.executed()
        return time.perf_counter_ns() - began, int(window)

    def _device(self) -> None:
        """Check the device time of a few units. A device or library without it is no fault: a run
        then gives the reason for this value alone.
        """
        n = min(4, self.chain.held_n)
        with suppress(Unavailable, Unsupported):
            began = time.perf_counter_ns()
            first = self.chain.device(n)
            second = self.chain.device(n)
            took_ns = time.perf_counter_ns() - began
            self._check_device_times(n, [first, second], took_ns)

    def _check_device_times(
        self, n: int, measured: list[DeviceTime | None], took_ns: float
    ) -> None:
        """Check that both calls of ``device(n)``, which took so many ns, gave the same kind of
        value, and one that is possible.
        """
        kinds = {type(value) for value in measured}
        is_alike = kinds in ({DeviceTime}, {type(None)})
        why = because("device-gave-other-types", n=n, returned=f"{measured!r:.100}")
        if not self.found.expect(is_alike, why):
            return
        times = [value for value in measured if value is not None]
        if times and self.chain.executes and not self.chain.own_loop:
            self._plausible(times, took_ns)

    def _plausible(self, times: Sequence[DeviceTime], took_ns: float) -> None:
        """Compare the device times, which took so many ns to measure, with the host's clock and
        with more units.
        """
        span_ns = sum(measured.span for measured in times)
        if span_ns > took_ns:
            self.found.warn(because("span-exceeds-calls", span_ns=span_ns, took_ns=took_ns))

        # What a unit adds to T(n), from the fastest of several chains of one and of more units.
        of_one = min(timed.total for timed in self._repeated(1))
        of_most = min(timed.total for timed in self._repeated(self.most))
        unit_ns = (of_most - of_one) / (self.most - 1)

        device_ns = statistics.mean(measured.span / measured.n for measured in times)
        is_fused = self.case.pattern == "fused"
        warning = device_time_warning(device_ns, unit_ns, fused=is_fused)
        n = min(_BACKLOG, self.chain.held_n)
        if not warning and not is_fused and n >= 16 and n * unit_ns < _SHORT_NS:
            few = self.chain.device(n // 8)
            many = self.chain.device(n)
            if few is not None and many is not None:
                warning = span_warning(few, many)
        if warning:
            self.found.warn(warning)


def _medians(times: Sequence[_Times]) -> _Times:
    """The median of each time."""
    return _Times(
        statistics.median(timed.issue for timed in times),
        statistics.median(timed.wait for timed in times),
    )


def blocking_warning(
    synchronous: bool, issue: float, empty: float, one: float, most: float
) -> Reason | None:
    """Why ``wait`` may not wait, or ``issue`` may not return early, judged by their times in ns;
    None if all is well.

    ``issue``: of one unit. ``empty``, ``one``, ``most``: of the wait after no unit, one unit and
    the most units.
    """
    waits_us = {"one_us": one / 1e3, "none_us": empty / 1e3}
    waits_for_something = one > 3 * empty + 10 * _LEAST_WAIT_NS
    if synchronous and waits_for_something:
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
