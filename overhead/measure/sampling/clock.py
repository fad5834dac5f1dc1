"""The clock of every sample, the canary that shows the processor's speed, and the cost of a reading. All in ns."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from overhead.measure.sampling import processors

CPU_CLOCK_IS_FINE: bool = sys.platform != "win32"
"""Whether the thread's CPU clock can measure a wait. Windows counts in steps of 16 ms: python/cpython issue 135304."""


class Clock(Protocol):
    """A wall clock, the calling thread's CPU clock, and the thread's processors. Tests use a fake one."""

    cpu_is_fine: bool
    """Whether the steps of the CPU clock are short against a wait."""

    def now(self) -> int:
        """ns of a monotonic wall clock."""

    def thread_cpu(self) -> int:
        """ns of CPU time of the calling thread."""

    def sleep(self, seconds: float) -> None:
        """Let time pass without using the processor."""

    def canary(self) -> list[int]:
        """``[python_ns, native_ns]``: the time of a fixed pure-Python loop and of a fixed native loop."""

    def processors(self) -> list[int]:
        """The processors that the calling thread may be moved to; empty where it cannot be moved."""

    def move(self, processors: Sequence[int]) -> None:
        """Bind the calling thread, and the threads it starts later, to these processors; if empty, to all it had."""

    def release_threads(self) -> None:
        """Let the threads that were started since the first move run on all processors that the process had."""


class SystemClock:
    """The machine's clocks and processors. No Python frame stands between the caller and a clock."""

    cpu_is_fine = CPU_CLOCK_IS_FINE
    now = staticmethod(time.perf_counter_ns)
    thread_cpu = staticmethod(time.thread_time_ns)
    sleep = staticmethod(time.sleep)
    processors = staticmethod(processors.allowed)

    def __init__(self) -> None:
        self._initial_processors = set(processors.every())
        self._known_threads: set[int] = set()

    def canary(self) -> list[int]:
        """``[python_ns, native_ns]``, about 50 us each."""
        start = time.perf_counter_ns()
        x = 1
        for _ in range(700):
            x = (x * 1664525 + 0x9E3779B9) & 0xFFFFFFFF
        middle = time.perf_counter_ns()
        hashlib.pbkdf2_hmac("sha256", b"canary", b"salt", 80)
        return [middle - start, time.perf_counter_ns() - middle]

    def move(self, processors: Sequence[int]) -> None:
        if sys.platform == "linux":
            self._known_threads = self._known_threads or _threads()
            os.sched_setaffinity(0, processors or self._initial_processors)

    def release_threads(self) -> None:
        if sys.platform == "linux" and self._known_threads:
            running = _threads()
            for thread in running - self._known_threads:
                with contextlib.suppress(OSError):  # the thread has ended
                    os.sched_setaffinity(thread, self._initial_processors)
            self._known_threads = running


def _threads() -> set[int]:
    """The thread ids of this process. A thread starts on the processors of the thread that starts it."""
    return {int(name) for name in os.listdir("/proc/self/task")}


@dataclass(frozen=True)
class ClockFacts:
    """ns: the smallest step between two readings, and the cost of one reading of each clock."""

    resolution_ns: int
    cost_ns: float
    cpu_cost_ns: float


def clock_facts(clock: Clock, readings: int = 400) -> ClockFacts:
    """The resolution of the clock and the cost of a reading, measured by so many readings."""
    stamps = [clock.now() for _ in range(readings)]
    steps = [b - a for a, b in itertools.pairwise(stamps) if b > a]
    return ClockFacts(
        min(steps, default=1), _cost(clock.now, clock, readings), _cost(clock.thread_cpu, clock, readings)
    )


def _cost(read: Callable[[], int], clock: Clock, readings: int) -> float:
    """ns per call of ``read``: the minimum of five blocks, so that a preemption does not count."""
    blocks = []
    for _ in range(5):
        start = clock.now()
        for _ in range(readings):
            read()
        blocks.append((clock.now() - start) / readings)
    return min(blocks)
