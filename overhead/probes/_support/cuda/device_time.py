"""Device time of a chain on a CUDA stream: a blocker holds the stream until all work is queued, so the device never
idles between units."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any

from overhead.probes.base import Chain, DeviceTime

_QUEUE_DEPTH = 1024
"""Launches that a CUDA stream queues before the next launch waits. Held chains use half of it."""
_QUANTUM_NS = 500.0
"""Resolution of CUDA events, by the documentation of cudaEventElapsedTime."""
_FIRST_BLOCKER_NS = 1e6
LONGEST_BLOCKER_NS = 50e6


class StreamHolder(abc.ABC):
    """Holds a stream by a kernel that spins for a given time; measures device time between events in the stream."""

    method: str

    @abc.abstractmethod
    def block(self, ns: float) -> None:
        """Queue a kernel that keeps the stream busy for at least ``ns`` and ends by itself."""

    @abc.abstractmethod
    def mark(self) -> Any:
        """Queue an event."""

    @abc.abstractmethod
    def passed(self, mark: Any) -> bool:
        """Whether the device has reached the event."""

    @abc.abstractmethod
    def wait(self, mark: Any) -> None:
        """Return when the device has reached the event."""

    @abc.abstractmethod
    def between(self, start: Any, end: Any) -> float:
        """Device time between two events, ns."""


class HeldChain(Chain):
    """A chain that can be issued behind a blocker. Units issued for device time do not count as executed."""

    launches: int = 1
    """Launches per unit; 0 where all units together are one launch."""
    aside: int = 0
    """Units that ``executed`` leaves out: those of device time, warm-up and graph timing."""

    @property
    def held_n(self) -> int:
        """The most units that fit into half of the queue."""
        return min(self.max_n, _QUEUE_DEPTH // 2 // self.launches) if self.launches else self.max_n

    def held(self, clock: StreamHolder, n: int) -> DeviceTime:
        """Device time of n units, ``held_n`` at most."""
        n = min(n, self.held_n)

        def issue(n: int) -> None:
            self.aside += n
            self.issue(n)

        self.prepare(n)
        if self.recorded:  # the first launch of a graph takes a sixth longer on the device (H200, driver 580.159)
            issue(n)
            self.wait()
        return time_held(clock, issue, n)


def time_held(clock: StreamHolder, issue: Callable[[int], None], n: int) -> DeviceTime:
    """Device time of ``issue(n)`` behind a blocker.

    ``busy``: the device was still at the blocker when everything was issued, so everything was queued before any of it
    ran. The blocker is made longer until this holds, or until ``LONGEST_BLOCKER_NS``.
    """
    ns = _FIRST_BLOCKER_NS
    while True:
        clock.block(ns)
        start = clock.mark()
        began = time.perf_counter_ns()
        issue(n)
        end = clock.mark()
        busy = not clock.passed(start)
        took = time.perf_counter_ns() - began
        clock.wait(end)
        if busy or ns >= LONGEST_BLOCKER_NS:
            return DeviceTime(n, clock.between(start, end), busy, _QUANTUM_NS, clock.method)
        ns = min(max(4 * ns, 3.0 * took), LONGEST_BLOCKER_NS)
