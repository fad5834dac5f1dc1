"""Device time of a chain on a CUDA stream.

A long kernel, the blocker, holds the stream until all units are queued. So the device never waits
between units.
"""

from __future__ import annotations

import abc
import time
from collections.abc import Callable
from typing import Any

from overhead.probes.base import Chain, DeviceTime, Unsupported
from overhead.results import because

_QUEUE_DEPTH = 1024
"""Launches that a CUDA stream queues before the next launch waits."""
_MOST_HELD = _QUEUE_DEPTH // 2
"""Most launches that are queued behind a blocker."""
EVENT_STEP_NS = 500.0
"""Resolution of CUDA events according to the documentation of cudaEventElapsedTime."""
_FIRST_BLOCKER_NS = 1e6
LONGEST_BLOCKER_NS = 50e6
"""The shortest and the longest time for which a stream is held. Chosen, not measured: a shorter
limit leaves chains with slow launches without a device time, and a longer one costs time at each.
"""


class StreamHolder(abc.ABC):
    """Blocks a stream with a kernel that spins for a given time, and measures device time between
    events.
    """

    method: str
    """How it measures, in words, for the record."""

    @abc.abstractmethod
    def block(self, ns: float) -> None:
        """Queue a kernel that keeps the stream busy for at least ``ns`` and ends by itself."""

    @abc.abstractmethod
    def mark(self) -> Any:
        """Queue an event, and return it."""

    @abc.abstractmethod
    def passed(self, mark: Any) -> bool:
        """True if the device has reached the event."""

    def wait(self, mark: Any) -> None:
        """Return when the device has reached the event."""
        mark.synchronize()

    @abc.abstractmethod
    def between(self, start: Any, end: Any) -> float:
        """Device time from the event ``start`` to the event ``end``, ns."""


class HeldChain(Chain):
    """A chain that can queue its units behind a blocker, to measure their device time."""

    launches: int = 1
    """Launches per unit; 0 if all units together are one launch."""

    @property
    def held_n(self) -> int:
        """The most units that ``device`` can time: as many as fit into half of the queue, where
        1024 launches fit. A launch to a full queue would wait, and outlast the blocker. 1 if not
        even one unit fits.
        """
        # All units together are one launch, which always fits.
        if not self.launches:
            return self.max_n
        units = _MOST_HELD // self.launches
        return max(1, min(self.max_n, units))

    def held(self, clock: StreamHolder, n: int) -> DeviceTime:
        """Device time of n units, at most ``held_n``: they are queued behind a kernel of ``clock``,
        the blocker, that holds the stream. ``recorded``: the chain launches a graph that
        ``prepare`` made. Raises ``Unsupported`` if not even one unit fits into the queue.
        """
        # ``launches``: those of one unit.
        if self.launches > _MOST_HELD:
            raise Unsupported(because("unit-exceeds-queue", launches=self.launches))
        n = min(n, self.held_n)

        def issue(n: int) -> None:
            self.aside += n  # units that run, but that ``executed`` must not count
            self.issue(n)

        def prepare() -> None:
            self.prepare(n)
            # The first launch of a graph takes 1/6 longer on the device (H200, driver 580.159).
            if self.recorded:
                issue(n)
                self.wait()

        return time_held(clock, prepare, issue, n)


def time_held(
    clock: StreamHolder, prepare: Callable[[], object], issue: Callable[[int], None], n: int
) -> DeviceTime:
    """Device time of the n units that ``issue(n)`` queues behind a blocker, a kernel that spins.
    ``prepare`` is called before every attempt. ``clock`` starts the blocker, and marks places in
    the stream (``mark``, an event) between which it measures.

    ``busy`` of the result is True if the blocker still ran when all units had been issued, so that
    no unit started before all were queued. The blocker is made longer until this is so, or until it
    takes ``LONGEST_BLOCKER_NS``.
    """
    blocker_ns = _FIRST_BLOCKER_NS
    while True:
        prepare()
        clock.block(blocker_ns)
        # The device reaches this event when the blocker ends, and the other when the last unit has
        # run.
        start = clock.mark()
        began = time.perf_counter_ns()
        issue(n)
        end = clock.mark()
        busy = not clock.passed(start)  # the blocker, which stands before this event, still runs
        issuing_ns = time.perf_counter_ns() - began
        clock.wait(end)
        if busy or blocker_ns >= LONGEST_BLOCKER_NS:
            span_ns = clock.between(start, end)
            # ``EVENT_STEP_NS``: the resolution of CUDA's events.
            return DeviceTime(n, span_ns, busy, EVENT_STEP_NS, clock.method)
        # Too short: four times as long, or more if issuing took much longer than the blocker.
        longer_ns = max(4 * blocker_ns, 3.0 * issuing_ns)
        blocker_ns = min(longer_ns, LONGEST_BLOCKER_NS)
