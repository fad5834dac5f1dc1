"""Device time of a chain on a CUDA stream that is held until all of it is queued, so that the device never starves."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any

from overhead.probes.base import Chain, DeviceTime

QUEUE_DEPTH = 1024
"""Launches that a CUDA stream takes before the next one waits; held chains stay at half of it."""
QUANTUM_NS = 500.0
"""Resolution of CUDA's events, as cudaEventElapsedTime documents it."""
LONGEST_NS = 50e6
"""No blocker runs longer than this."""


class StreamHolder(abc.ABC):
    """What holding a stream takes: a kernel that spins for a given time, marks in the stream, and their distance."""

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
    """A chain that can be issued behind a blocker. The units that this takes do not count as executed."""

    launches: int = 1
    """Launches that a unit queues; 0 where all units together are one."""
    aside: int = 0

    @property
    def held_n(self) -> int:
        """The most units that are held: what half the queue takes."""
        return min(self.max_n, QUEUE_DEPTH // 2 // self.launches) if self.launches else self.max_n

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

    ``busy`` where the device had not passed the blocker when all was issued: everything then stood in the queue before
    any of it ran. The blocker is made longer until that is so, or its limit is met.
    """
    ns = 1e6
    while True:
        clock.block(ns)
        start = clock.mark()
        began = time.perf_counter_ns()
        issue(n)
        end = clock.mark()
        busy = not clock.passed(start)
        took = time.perf_counter_ns() - began
        clock.wait(end)
        if busy or ns >= LONGEST_NS:
            return DeviceTime(n, clock.between(start, end), busy, QUANTUM_NS, clock.method)
        ns = min(max(4 * ns, 3.0 * took), LONGEST_NS)
