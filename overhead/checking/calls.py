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
    """Calls each method of a chain as a run does, and adds what is wrong to ``found``. A chain is
    what a stack gives to the suite: ``issue(n)`` starts n units (such as GPU launches), ``wait``
    returns when they are done, ``executed`` tells how many have run so far, and ``device(n)`` how
    long the device takes for n units.
    """

    def __init__(self, found: Findings, chain: Chain, case: Case) -> None:
        self.found = found
        self.chain = chain
        self.case = case
        # The most units that are issued at once, unless a test needs more: those of the first calls
        # (0, 1, 7 and 1 again), but no more than the chain takes.
        self.most = min(max(UNITS), chain.max_n)
        # Units that the chain had executed when it was last asked.
        self._executed = 0

    def check(self, units: Sequence[int]) -> None:
        """Call every method of the chain, and stop at the first error.

        ``units``: how many units to issue in the first calls, one number for each call. ``_count``
        checks that as many were executed. ``_call`` runs one more method and counts again.
        """
        try:
            self._count(units)
            # A chain such as that of a browser takes its samples in a loop of its own.
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
        """Run one step of the check, and see afterwards whether a few units still run and count:
        the step may have left the chain unusable. Raises ``_Stop`` if something is wrong.

        ``step``: its name, for the findings. ``_read`` asks the chain how many units it executed
        so far; ``_count`` issues some and checks that the number grows by as many.
        """
        with self._step(step):
            call()
        # The step may have run any number of units, so counting begins here.
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
            self._executed = int(self.chain.executed())

    def _count(self, units: Sequence[int], remark: str = "") -> None:
        """Check that n issued units increase ``executed`` by exactly n."""
        for n in units:
            before = self._executed
            self._issue(n)
            self._read()
            self._compare_counts(f"n = {n}{remark}", n, before)

    def _compare_counts(self, step: str, issued: int, before: int) -> None:
        """Add an error and raise ``_Stop`` unless as many units ran as were issued.

        ``step``: what was done, for the finding. ``before``: the units executed before it.
        """
        self.found.step = step
        executed = self._executed - before
        # A null backend runs nothing, so it has nothing to count.
        is_right = executed == issued or not self.chain.executes
        why = because("units-differ", issued=issued, executed=executed)
        # ``expect`` adds the error unless it is right, and returns whether it is.
        if not self.found.expect(is_right, why):
            raise _Stop
        if issued:
            # The stack works on this machine, so from now on no error is the machine's. ``judge``
            # gives another error where the machine is the cause; None leaves the error as it is.
            self.found.judge = lambda error: None

    def _issue(self, n: int) -> None:
        with self._step(f"prepare({n})"):
            self.chain.prepare(n)
        with self._step(f"issue({n})"):
            self.chain.issue(n)
        with self._step(f"wait() after issue({n})"):
            self.chain.wait()

    def _blocking(self) -> None:
        """Warn if ``wait`` seems not to wait for the work, or ``issue`` to do all of it.

        It is judged by times: a wait after some units should take longer than one after none, but
        not if the chain says that ``issue`` returns only when the work is done (``synchronous``).
        """
        chain = self.chain
        # A recording and a fused kernel are one launch whatever n is, and a null backend runs
        # nothing. So the time of a wait tells nothing.
        if chain.recorded or self.case.pattern == "fused" or not chain.executes:
            return
        # The times of ``issue`` and of the wait: of no unit, of one, and of the most.
        empty = _medians(self._repeated(0))
        one = _medians(self._repeated(1))
        most = _medians(self._repeated(self.most))
        unit_ns = one.issue + one.wait
        # ``latency``: each unit ends with a wait of its own.
        if chain.latency:
            warning = self._unread(empty.wait, most.wait, unit_ns)
        else:
            warning = blocking_warning(
                chain.synchronous, one.issue, empty.wait, one.wait, most.wait
            )
        # With many units it would show if the wait returned before all of them are done. This is
        # left out where they would take longer than 20 ms, so that a check stays short.
        n = min(_BACKLOG, chain.max_n)
        if not warning and n * unit_ns < _SHORT_NS:
            warning = self._unfinished(n)
        if warning:
            self.found.warn(warning)

    def _unread(self, empty: float, most: float, unit_ns: float) -> Reason | None:
        """A warning if units that should each wait for themselves leave work behind, for the wait
        after them; else None.

        ``empty``, ``most``: the time of that wait after no unit and after the most units, ns.
        ``unit_ns``: the time of a unit.
        """
        # The wait after units without a wait of their own (``full``), and with it (``left``). Only
        # an ``InOrderChain`` can leave out the waits of its units, so of others only ``most`` is
        # known. ``leftover`` gives both times; it is left out where it would take too long.
        # With three equal times a warning only needs 20 µs of work left.
        full = left = most
        if isinstance(self.chain, InOrderChain) and _BACKLOG * unit_ns < _SHORT_NS:
            waits = [self.chain.leftover(_BACKLOG) for _ in range(_REPEATS)]
            full = statistics.median(without_own_wait for without_own_wait, _ in waits)
            left = statistics.median(with_own_wait for _, with_own_wait in waits)
        return unread_warning(self.case.pattern, empty, left, full)

    def _unfinished(self, n: int) -> Reason | None:
        """A warning if ``wait`` seems to return before all of n units are done; else None.

        ``executed``, which comes after the wait, then has to wait for the rest: it takes longer
        after n units than after one.
        """
        few: list[int] = []
        many: list[int] = []
        windows: list[int] = []
        for _ in range(_REPEATS):
            after_one, _ = self._reading(1)
            # ``window``: how long the n units took with their wait.
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
        """The time of ``issue`` with n units and that of the ``wait`` after it. ``prepare`` comes
        first and is not timed: a chain may record its units there.
        """
        self.chain.prepare(n)
        began = time.perf_counter_ns()
        self.chain.issue(n)
        issued = time.perf_counter_ns()
        self.chain.wait()
        return _Times(issued - began, time.perf_counter_ns() - issued)

    def _repeated(self, n: int) -> list[_Times]:
        """The times of 15 chains of n units each, one after another; of fewer if they take more
        than half a second together.
        """
        times: list[_Times] = []
        passed_ns = 0.0
        while len(times) < _REPEATS and passed_ns < _REPEATS_NS:
            timed = self._timed(n)
            times.append(timed)
            passed_ns += timed.total
        return times

    def _reading(self, n: int) -> tuple[int, int]:
        """Two times, ns: that of ``executed``, called after n units and their wait; and that of the
        units and their wait themselves.
        """
        window = self._timed(n).total
        began = time.perf_counter_ns()
        self.chain.executed()
        return time.perf_counter_ns() - began, int(window)

    def _device(self) -> None:
        """Check that ``device``, which measures the device time of n units, gives possible values.

        A device or library without device times is no fault: a run then gives the reason for this
        value alone.
        """
        # ``held_n`` is the largest n that ``device`` takes; four units are enough to see a value.
        # It is called twice, because a chain may give something else the second time.
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
        """Check that two calls of ``device(n)`` gave the same kind of value, both a time or both
        None, and that the times are possible.

        ``measured``: what they gave. ``took_ns``: how long both calls took together.
        """
        kinds = {type(value) for value in measured}
        is_alike = kinds in ({DeviceTime}, {type(None)})
        why = because("device-gave-other-types", n=n, returned=f"{measured!r:.100}")
        if not self.found.expect(is_alike, why):
            return
        times = [value for value in measured if value is not None]
        # Only a chain that runs its units here has times to compare them with.
        if times and self.chain.executes and not self.chain.own_loop:
            self._plausible(times, took_ns)

    def _plausible(self, times: Sequence[DeviceTime], took_ns: float) -> None:
        """Warn of device times that cannot be right: longer than the calls that measured them, much
        shorter than the time that a unit takes, or the same for many units as for few.

        ``times``: of two calls of ``device``. ``took_ns``: how long both calls took together.
        """
        # ``span``: from the start of the first unit to the end of the last one.
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
        # Compare many units with an eighth of them, which must be two at least: ``span_warning``
        # says if many take no longer. A fused unit, which may take less than 1 ns, is too short.
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
    """A warning if ``wait`` seems not to wait for the work, or if a chain that calls itself
    ``synchronous`` (``issue`` returns only when the work is done) leaves work to wait for. None if
    all is well.

    Judged by times in ns. ``issue``: of launching one unit. ``empty``, ``one``, ``most``: of the
    wait after no unit, after one unit and after the most units.
    """
    waits_us = {"one_us": one / 1e3, "none_us": empty / 1e3}
    # Clearly longer than an empty wait: three times as long, and 20 µs more.
    waits_for_something = one > 3 * empty + 10 * _LEAST_WAIT_NS
    if synchronous and waits_for_something:
        return because("synchronous-yet-waits", **waits_us)
    # No wait is longer than an empty one, although launching a unit takes time: nobody waits.
    # A CPU device may have run one unit before issue() returns, but not all of them.
    # Not longer: by less than 20 % and 0.2 µs.
    nothing_left = max(one, most) < 1.2 * empty + _LEAST_WAIT_NS / 10
    if not synchronous and nothing_left and issue > 2 * empty:
        return because("wait-does-not-wait", **waits_us)
    return None


def unread_warning(pattern: str, empty: float, left: float, full: float) -> Reason | None:
    """A warning if units that contain their own wait or read seem not to wait for their work; None
    if all is well.

    Judged by the time, in ns, of one more wait after the units, which should have nothing to do.
    ``full``: after some units without their own wait. ``left``: after the same units with it.
    ``empty``: after no unit.
    """
    # No warning if less than 20 µs, or less than half of the work, is left. ``pattern``: for the
    # message, whether each unit waits or reads.
    if left < empty + max(10 * _LEAST_WAIT_NS, 0.5 * (full - empty)):
        return None
    return because("work-left-after-units", pattern=pattern, left_us=(left - empty) / 1e3)


def unfinished_warning(few: float, many: float, window: float, n: int) -> Reason | None:
    """A warning if ``wait`` seems to return too early; None if all is well.

    Judged by the time of ``executed``, the call that comes after the wait, in ns: it must not grow
    with the number of units. ``few``: after one unit and its wait. ``many``: after n units and
    their wait, which took ``window`` ns.
    """
    # No warning if it grows by less than 20 µs, or by less than half of what the n units took.
    if many - few < max(10 * _LEAST_WAIT_NS, window / 2):
        return None
    return because("wait-returns-early", few_us=few / 1e3, many_us=many / 1e3, n=n)


def device_time_warning(per_unit: float, window: float, *, fused: bool = False) -> Reason | None:
    """A warning if the device time of a unit is too short to be true; None if all is well.

    ``per_unit``: the device time of a unit, ns. ``window``: how much longer a chain takes for one
    more unit, ns; most of it may be the CPU's. ``fused``: a unit is one turn of a loop on the
    device, which may take less than 1 ns.
    """
    # Too short: under 1 ns, or under a 300th of what a unit adds to a chain.
    if per_unit >= max(0.0 if fused else 1.0, window / _LARGEST_SHARE):
        return None
    return because("device-time-too-short", device_ns=per_unit, unit_ns=window)


def span_warning(few: DeviceTime, many: DeviceTime) -> Reason | None:
    """A warning if the device time of many units is hardly longer than that of few, as if only one
    unit had been timed in both; None if all is well.
    """
    if many.span > _LEAST_GROWTH * few.span:
        return None
    return because("span-of-one-unit", few_ns=few.span, few=few.n, many_ns=many.span, many=many.n)
