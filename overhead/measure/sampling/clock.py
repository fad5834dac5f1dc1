"""The clock that everything is timed by, and what reading it costs. Nanoseconds."""

from __future__ import annotations

import itertools
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from overhead.measure.sampling import processors


class Clock(Protocol):
    """A monotonic wall clock, the calling thread's CPU clock, and a way to let time pass."""

    def now(self) -> int: ...

    def thread_cpu(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...

    def processors(self) -> list[int]:
        """Those on which the calling thread may be put; empty where it cannot be moved."""

    def move(self, processors: Sequence[int]) -> None:
        """Put the calling thread, and what threads it starts from now on, on these; on all that it had if empty."""


class SystemClock:
    """The machine's clocks, without a Python frame between the caller and them, and its processors."""

    now = staticmethod(time.perf_counter_ns)
    thread_cpu = staticmethod(time.thread_time_ns)
    sleep = staticmethod(time.sleep)
    processors = staticmethod(processors.allowed)

    def __init__(self) -> None:
        self._had = os.sched_getaffinity(0) if sys.platform == "linux" else set()

    def move(self, processors: Sequence[int]) -> None:
        os.sched_setaffinity(0, processors or self._had)


@dataclass(frozen=True)
class ClockFacts:
    """ns: the smallest step seen, and what one reading of each clock costs."""

    resolution_ns: int
    cost_ns: float
    cpu_cost_ns: float


def clock_facts(clock: Clock, readings: int = 400) -> ClockFacts:
    """Measure the clock: the smallest positive step between readings, and the mean cost of a reading."""
    stamps = [clock.now() for _ in range(readings)]
    steps = [b - a for a, b in itertools.pairwise(stamps) if b > a]
    return ClockFacts(
        min(steps, default=1), _cost(clock.now, clock, readings), _cost(clock.thread_cpu, clock, readings)
    )


def _cost(read: Callable[[], int], clock: Clock, readings: int) -> float:
    """ns a call of ``read``: the least of five blocks, which a preemption cannot raise."""
    blocks = []
    for _ in range(5):
        start = clock.now()
        for _ in range(readings):
            read()
        blocks.append((clock.now() - start) / readings)
    return min(blocks)
