"""Device time from timestamps.

A blocker is a long dispatch that keeps the device busy while the host submits units.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from overhead.measure.sampling.clock import CPU_CLOCK_IS_FINE
from overhead.probes.base import Chain, DeviceTime, Unsupported
from overhead.probes.vulkan.buffers import OneTimeCommands, StepBuffers
from overhead.probes.vulkan.commands import Commands, VulkanWait
from overhead.probes.vulkan.gpu import VulkanGpu
from overhead.results import because

_HOLD_LIMIT_NS = 250e6
"""The longest time that a blocker runs, ns. Chosen, not measured: drivers stop a dispatch that runs
for seconds.
"""
_BLOCKER_LENGTHS = (3, 12, 48)
"""How much longer than the submissions a blocker is made, in order. Chosen, not measured."""
_FEWEST_UNITS = 64
"""Fewer units are not tried with a smaller number still. Chosen, not measured."""
_CALIBRATION_NS = 2e6
"""The least time over which a step of the blocker is measured, ns. Chosen, not measured."""
_MIN_QUANTA = 100
"""Least length of a measured time, in steps of the device clock: a step is then at most 1 % of the
time.
"""
_LEAST_STEP_NS = 0.1
"""No processor runs a step faster: its multiplication and its addition each need the result of the
one before.
"""
_QUERIES = 64


class Timer:
    """Measures on the device how long work takes, by timestamps that the queue writes before and
    after it. Raises ``Unsupported`` where the queue has none.

    Its own dispatches, which only keep the device busy, use separate buffers.
    """

    def __init__(self, gpu: VulkanGpu) -> None:
        """Make what a measurement needs: a kernel of a chosen length, buffers, timestamps, and a
        fence that tells whether the kernel still runs.
        """
        if not gpu.adapter.timestamp_bits:
            raise Unsupported(because("queue-has-no-timestamps"))
        self._gpu = gpu
        # Its loop runs as many turns as it is told: so it can last for any time.
        kernel = gpu.kernel("fused")
        self._state = StepBuffers(gpu, kernel.set_layout)
        self._commands = Commands(gpu, kernel)
        # Two command buffers: one with the timed commands or the blocker, one for what follows the
        # units of a chain.
        self._first, self._last = OneTimeCommands(gpu), OneTimeCommands(gpu)
        self._fence = gpu.create("Fence")
        self._fences = gpu.ffi.new("VkFence *", self._fence)
        # How many turns the loop of the kernel runs; a dispatch is recorded with what this holds.
        self._steps = gpu.ffi.new("uint32_t *")
        self._queries = gpu.create(
            "QueryPool", queryType=gpu.vk.VK_QUERY_TYPE_TIMESTAMP, queryCount=_QUERIES
        )

    @functools.cached_property
    def quantum(self) -> float:
        """The step of the device clock, ns: the greatest common divisor of the differences of 256
        timestamps. The clock may go on by several of its ticks at a time.
        """
        ticks: list[int] = []
        for _ in range(256 // _QUERIES):  # the query pool has room for ``_QUERIES`` at a time
            # Records these timestamps, submits them, and waits.
            self._first(lambda cb: self._stamps(cb, range(_QUERIES)))
            ticks += self._read(_QUERIES)
        since_first = [tick - ticks[0] for tick in ticks]
        ticks_per_step = math.gcd(*since_first)
        # All timestamps were the same.
        if not ticks_per_step:
            raise Unsupported(because("device-clock-stands-still"))
        return ticks_per_step * self._gpu.adapter.timestamp_period

    def span_of(self, record: Callable[[Any], None]) -> float:
        """Device time of the commands that ``record(cb)`` puts into one command buffer, ns. Raises
        ``Unsupported``.
        """

        def stamped(cb: Any) -> None:
            # Query 0: when all earlier work has ended; query 1: when these commands have, too.
            self._stamps(cb, [0])
            record(cb)
            self._stamps(cb, [1])

        # Records by this function, submits, and waits. ``_between``: raises if the time is too
        # short for the device's clock.
        self._first(stamped)
        begin, end = self._read(2)
        return self._between(begin, end)

    def span_behind_blocker(self, issue: Callable[[], None], hold_ns: float) -> tuple[float, bool]:
        """Time from the end of a blocker, a dispatch of ``hold_ns``, to the end of the work that
        ``issue()`` submits meanwhile, ns.

        Also True if the blocker still ran when ``issue`` returned, so that the device never waited
        for the host.
        """
        gpu = self._gpu
        gpu.drain()
        limited_ns = min(hold_ns, _HOLD_LIMIT_NS)
        # As many turns of the kernel's loop as take the wanted time, at most 250 ms, because
        # drivers stop a dispatch that runs for seconds.
        self._steps[0] = max(1, int(limited_ns / self.step_ns))
        # ``_blocker`` records the dispatch, and query 0 as the timestamp of its end. It is not
        # waited for.
        self._first.start(self._blocker, self._fence)  # signals the fence when the blocker ends
        issue()
        # Not signalled: the blocker has not ended.
        status = gpu.function("vkGetFenceStatus")(gpu.device, self._fence)
        self._last(lambda cb: self._stamps(cb, [1]))  # a timestamp behind the issued work
        gpu.device_call("vkResetFences", 1, self._fences)
        begin, end = self._read(2)
        return self._between(begin, end), status == gpu.vk.VK_NOT_READY

    @functools.cached_property
    def step_ns(self) -> float:
        """The time of one turn of the blocker's loop, ns. The loop is made longer until it runs for
        at least 2 ms.

        Raises ``Unsupported`` if the timestamps are wrong, that is, if so many turns cannot have
        been so fast: the loop would be made longer without end.
        """
        # 4096 turns, and four times as many at each further attempt.
        steps = 1 << 12
        while True:
            self._steps[0] = steps
            # ``_burn``: records a dispatch of the kernel with so many turns.
            span_ns = self.span_of(self._burn)
            if span_ns >= _CALIBRATION_NS:
                return span_ns / steps
            # No processor runs so many turns in less than 2 ms.
            if steps * _LEAST_STEP_NS >= _CALIBRATION_NS:
                raise Unsupported(because("device-timestamps-wrong", span_ns=span_ns, steps=steps))
            steps *= 4

    def spins(self, wait: VulkanWait) -> bool:
        """True if the wait spins: waiting for 10 ms of device work, it uses the caller's CPU for
        more than half of that time. Else it sleeps.
        """
        # As many turns of the kernel's loop as take 10 ms.
        self._steps[0] = max(1, int(10e6 / self.step_ns))
        self._gpu.drain()
        # ``_burn`` records a dispatch of the kernel. Without a fence: the wait itself is tried.
        self._first.start(self._burn, self._gpu.ffi.NULL)
        cpu_before = time.thread_time_ns()
        began = time.perf_counter_ns()
        wait()
        waited_ns = time.perf_counter_ns() - began
        cpu_ns = time.thread_time_ns() - cpu_before
        return cpu_ns > waited_ns / 2

    def _burn(self, cb: Any) -> None:
        """Record a dispatch that runs as many steps as ``_steps`` says."""
        for call in self._commands.fused_dispatch(cb, self._state.own[0], self._steps):
            call.function(*call.ffi_args)

    def _blocker(self, cb: Any) -> None:
        """Record a blocker, and the timestamp of its end."""
        self._burn(cb)
        self._stamps(cb, [0])

    def _stamps(self, cb: Any, queries: Sequence[int]) -> None:
        """Record a timestamp for each of these queries, which follow each other: the time at which
        all earlier work has ended.
        """
        stage = self._gpu.vk.VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
        # A query must be reset before it is written again.
        self._gpu.function("vkCmdResetQueryPool")(cb, self._queries, queries[0], len(queries))
        for query in queries:
            self._gpu.function("vkCmdWriteTimestamp")(cb, stage, self._queries, query)

    def _read(self, count: int) -> list[int]:
        """The first timestamps, in ticks of the device clock, after all of them have been taken."""
        vk = self._gpu.vk
        ticks = np.zeros(count, np.uint64)
        # As 64-bit numbers, and waiting until all of them have been written.
        flags = vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
        data = self._gpu.ffi.from_buffer(ticks)
        # 8: the bytes from one timestamp to the next.
        self._gpu.device_call(
            "vkGetQueryPoolResults", self._queries, 0, count, ticks.nbytes, data, 8, flags
        )
        return [int(tick) for tick in ticks]

    def _between(self, begin: int, end: int) -> float:
        """The time between two timestamps, ns. Raises ``Unsupported`` if it is shorter than
        ``_MIN_QUANTA`` steps of the device's clock, because it could be wrong by a step.

        A timestamp has a number of valid bits, and after the largest starts again from 0.
        """
        adapter = self._gpu.adapter
        valid_bits = (1 << adapter.timestamp_bits) - 1
        # Right also where the clock has started again from 0 between both.
        ticks = (end - begin) & valid_bits
        span_ns = ticks * adapter.timestamp_period
        # 100 steps: one step is then at most 1 % of the time.
        if span_ns < _MIN_QUANTA * self.quantum:
            raise Unsupported(
                because(
                    "device-time-under-quanta",
                    span_ns=span_ns,
                    quanta=_MIN_QUANTA,
                    quantum_ns=self.quantum,
                )
            )
        return span_ns


@functools.cache
def timer(gpu: VulkanGpu) -> Timer:
    """The timer of the device, shared by all chains. Raises ``Unsupported``."""
    return Timer(gpu)


@functools.cache
def wait_spins(gpu: VulkanGpu, kind: str) -> bool:
    """True if a wait of this kind (see ``VULKAN_WAITS``) uses the caller's CPU all the time, so
    that CPU time says nothing about the work. False if that cannot be measured, because the
    device has no timestamps or the CPU clock is too coarse.
    """
    wait = VulkanWait(gpu, kind)
    try:
        # ``timer``: the one of this device; it raises ``Unsupported`` without timestamps.
        return CPU_CLOCK_IS_FINE and timer(gpu).spins(wait)
    except Unsupported:
        return False
    finally:
        wait.close()


def time_one_submission(
    gpu: VulkanGpu, n: int, recorder: Callable[[Any], Callable[[int], None]]
) -> DeviceTime:
    """Device time of n units in one submission. ``recorder(cb)`` returns a function that records n
    units into ``cb``.

    ``busy`` of the result is True, because the device has all the work when it starts. Raises
    ``Unsupported``.
    """
    clock = timer(gpu)

    def record(cb: Any) -> None:
        record_units = recorder(cb)
        record_units(n)

    # ``quantum``, in the result: the step of the device's clock.
    span_ns = clock.span_of(record)
    method = "vkCmdWriteTimestamp around all units in one command buffer"
    return DeviceTime(n, span_ns, True, clock.quantum, method)


def time_behind_blocker(chain: Chain, gpu: VulkanGpu, n: int) -> DeviceTime:
    """Device time of units that are submitted while a blocker, a long dispatch, keeps the device
    busy: n units, or as many as fit into the queue. So the device never waits for the host between
    units.

    ``busy`` of the result: the blocker still ran when the last unit was submitted. Raises
    ``Unsupported``.

    A submission to a full queue waits for the device, and then no blocker is long enough. So if
    the longest one is too short, half the units are tried. The last attempt, with few units, is
    returned in any case, with ``busy`` False.
    """
    # The one of this device; it measures by timestamps.
    clock = timer(gpu)
    while True:
        # How long the submissions take, from which the length of the blocker follows.
        chain.prepare(n)
        began = time.perf_counter_ns()
        chain.issue(n)
        issuing_ns = time.perf_counter_ns() - began
        chain.wait()
        # 3, 12 and 48 times as long as the submissions took.
        for times in _BLOCKER_LENGTHS:
            # One millisecond more than a multiple, for units that are issued in almost no time.
            hold_ns = times * issuing_ns + 1e6
            span_ns, busy = clock.span_behind_blocker(functools.partial(chain.issue, n), hold_ns)
            # Fewer than 64 units are not divided again.
            is_last_attempt = times == _BLOCKER_LENGTHS[-1] and n < _FEWEST_UNITS
            if busy or is_last_attempt:
                outlasted = "a blocker" if busy else "no blocker"
                method = f"vkCmdWriteTimestamp; {outlasted} outlasted the submissions"
                return DeviceTime(n, span_ns, busy, clock.quantum, method)
        n //= 2
