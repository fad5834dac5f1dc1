"""The clock of every sample, a test of the processor's speed (the *reference loop*), and the
processors of the thread.

The reference loop is fixed work (``canary`` in files). Its time shows how fast the processor runs
at that moment.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

CPU_CLOCK_IS_FINE: bool = sys.platform != "win32"
"""Whether the thread's CPU clock can measure a wait. Windows counts in steps of 16 ms:
python/cpython issue 135304.
"""
INTERRUPTS = Path("/proc/interrupts")
_SCHEDSTAT = Path("/proc/thread-self/schedstat")
_GPU_DRIVER = re.compile(r"(nvidia|nouveau|amdgpu|radeon|i915|xe)([-@:,0-9].*)?", re.IGNORECASE)


@dataclass(frozen=True)
class _ClockRule:
    """How a clock and the processors are looked at.

    The numbers were chosen, not measured, where a line does not name a run.
    """

    readings: int = 400
    blocks: int = 5
    """Blocks of clock readings; the best gives the cost of one. More take longer, fewer may all be
    disturbed.
    """
    most_readings: int = 2_000_000
    """A clock that has not moved after so many readings does not move: one of Windows' steps of
    15.6 ms takes about 400,000.
    """
    serving_share: float = 0.05
    """A processor serves an interrupt line if it took this share of its interrupts. A lower share
    leaves fewer processors to measure on; with a higher one the interrupts disturb the samples.
    """


_RULE = _ClockRule()


class Clock(Protocol):
    """A wall clock, the calling thread's CPU clock, and the thread's processors. Tests use a fake
    one.
    """

    cpu_is_fine: bool
    """Whether the steps of the CPU clock are short against a wait."""

    def now(self) -> int:
        """The time of a monotonic wall clock, ns."""

    def thread_cpu(self) -> int:
        """CPU time of the calling thread, ns."""

    def queued(self) -> int:
        """ns for which the calling thread was ready to run and another one had its processor; 0
        where unknown.
        """

    def sleep(self, seconds: float) -> None:
        """Let time pass without using the processor."""

    def reference_loop(self) -> list[int]:
        """``[python_ns, native_ns]``: the time of a fixed pure-Python loop and of a fixed native
        loop.
        """

    def processors(self) -> list[int]:
        """The processors that the calling thread may be moved to; empty where it cannot be
        moved.
        """

    def move(self, processors: Sequence[int]) -> None:
        """Bind the calling thread, and the threads it starts later, to these processors; if empty,
        to all it had.
        """

    def release_threads(self) -> None:
        """Let the threads that were started since the first move run on all processors that the
        process had.
        """


def every_processor() -> list[int]:
    """All processors that the calling thread may use; empty where a thread cannot be bound to
    processors.
    """
    if sys.platform != "linux":  # mypy understands this form alone
        return []
    return sorted(os.sched_getaffinity(0))


def undisturbed_processors() -> list[int]:
    """The processors that the measuring thread may run on: all that it may use, without those that
    serve a GPU's interrupts, unless none is left.

    A driver that signals each submission by an interrupt takes time from the thread that runs on
    such a processor.
    """
    everything = set(every_processor())
    if not everything:
        return []
    try:
        serving = processors_serving_gpus(INTERRUPTS.read_text(encoding="ascii", errors="replace"))
    except OSError:
        # Without that file nothing is known of interrupts, so no processor is left out.
        serving = set()
    return sorted(everything - serving or everything)


def processors_serving_gpus(table: str) -> set[int]:
    """The processors that served a GPU's interrupts, from the text of ``/proc/interrupts``."""
    head, *rows = table.splitlines() or [""]
    # The head has a column for each processor that is on: CPU0, CPU1, ...
    names = [word for word in head.split() if word.startswith("CPU")]
    processors = [int(name.removeprefix("CPU")) for name in names]
    serving: set[int] = set()
    for row in rows:
        # A row is the number of the interrupt, a count for each processor, and a description.
        words = row.split()
        counts = words[1 : 1 + len(processors)]
        described = words[1 + len(processors) :]
        # The first word of the description names the interrupt controller, a later one the driver.
        if not any(_GPU_DRIVER.fullmatch(word) for word in described[1:]):
            continue
        # Some rows, such as those of errors, have one count for all processors.
        if len(counts) < len(processors) or not all(count.isdigit() for count in counts):
            continue
        # A processor serves the GPU if it took at least a twentieth of this row's interrupts: a
        # lower share would leave fewer processors to measure on.
        interrupts = [int(count) for count in counts]
        least = max(1, _RULE.serving_share * sum(interrupts))
        for processor, count in zip(processors, interrupts, strict=True):
            if count >= least:
                serving.add(processor)
    return serving


class SystemClock:
    """The machine's clocks and processors. No Python frame stands between the caller and a
    clock.
    """

    cpu_is_fine = CPU_CLOCK_IS_FINE
    now = staticmethod(time.perf_counter_ns)
    thread_cpu = staticmethod(time.thread_time_ns)
    sleep = staticmethod(time.sleep)
    processors = staticmethod(undisturbed_processors)

    def __init__(self) -> None:
        self._initial_processors = set(every_processor())
        self._known_threads: set[int] = set()

    def queued(self) -> int:
        """The second number of the thread's ``schedstat`` on Linux; else 0."""
        try:
            return int(_SCHEDSTAT.read_text(encoding="ascii").split()[1])
        except (OSError, ValueError, IndexError):
            return 0

    def reference_loop(self) -> list[int]:
        """Time a fixed piece of work, whose time shows how fast the processor runs now:
        ``[python_ns, native_ns]``, a loop in Python and a hash in compiled code, about 50 us each.

        Older files have the times of exactly this work: an edit would make runs incomparable.
        """
        start = time.perf_counter_ns()
        x = 1
        for _ in range(700):
            x = (x * 1664525 + 0x9E3779B9) & 0xFFFFFFFF
        middle = time.perf_counter_ns()
        hashlib.pbkdf2_hmac("sha256", b"canary", b"salt", 80)
        return [middle - start, time.perf_counter_ns() - middle]

    def move(self, processors: Sequence[int]) -> None:
        """Bind the calling thread to these processors, on Linux; elsewhere do nothing."""
        if sys.platform == "linux":
            self._known_threads = self._known_threads or _threads()
            os.sched_setaffinity(0, processors or self._initial_processors)

    def release_threads(self) -> None:
        """Let threads that the stacks started since the first ``move`` use all processors, on
        Linux. A thread starts on the processors of its parent, so they would share the one of the
        measuring thread. Elsewhere do nothing.
        """
        # ``_known_threads``: those that ran at the last look; empty before the first ``move``.
        if sys.platform == "linux" and self._known_threads:
            # Only threads that are new since the last look: those known from before keep their
            # processors.
            running = _threads()
            for thread in running - self._known_threads:
                with contextlib.suppress(OSError):  # the thread has ended
                    os.sched_setaffinity(thread, self._initial_processors)
            self._known_threads = running


def _threads() -> set[int]:
    """The thread ids of this process. A thread starts on the processors of the thread that starts
    it.
    """
    return {int(name) for name in os.listdir("/proc/self/task")}


@dataclass(frozen=True)
class ClockFacts:
    """What is known of a clock, ns. ``resolution_ns``: the smallest step between two readings, 0 if
    the clock does not move. ``cost_ns``: the time that a reading takes; ``cpu_cost_ns``: the same
    for the CPU clock of the thread.
    """

    resolution_ns: int
    cost_ns: float
    cpu_cost_ns: float


def clock_facts(clock: Clock) -> ClockFacts:
    """The resolution of the clock and the cost of a reading, both measured. The resolution is the
    smallest step seen in some hundred readings; a clock so coarse that they are all equal is read
    until it moves.
    """
    readings = [clock.now() for _ in range(_RULE.readings)]
    # Two readings may be equal; a step above 0 is one of the clock.
    steps = [after - before for before, after in itertools.pairwise(readings)]
    steps_forward = [step for step in steps if step > 0]
    resolution_ns = min(steps_forward) if steps_forward else _next_step(clock)
    return ClockFacts(
        resolution_ns,
        cost_ns=_cost(clock.now, clock),
        cpu_cost_ns=_cost(clock.thread_cpu, clock),
    )


def _next_step(clock: Clock) -> int:
    """ns by which a coarse clock moves next; 0 if it stands still over two million readings: a step
    of 15.6 ms, the coarsest of Windows, takes about 400,000.
    """
    before = clock.now()
    for _ in range(_RULE.most_readings):
        after = clock.now()
        if after > before:
            return after - before
    return 0


def cpu_clock_counts(clock: Clock) -> bool:
    """Whether the thread's CPU clock counts the work of the reference loop, some 50 us of fixed
    work: it moves within so short a time, and at the pace of the wall clock. If not, no sample
    reads it.
    """
    # Its steps are long against a wait.
    if not clock.cpu_is_fine:
        return False
    # Several tries: one in which the thread kept its processor is enough.
    for _ in range(_RULE.blocks):
        wall_began = clock.now()
        cpu_began = clock.thread_cpu()
        clock.reference_loop()
        wall_ns = clock.now() - wall_began
        cpu_ns = clock.thread_cpu() - cpu_began
        # CPU time is less than wall time if another thread had the processor meanwhile.
        if 0.5 * wall_ns <= cpu_ns <= 1.1 * wall_ns:
            return True
    return False


def _cost(read: Callable[[], int], clock: Clock) -> float:
    """ns that one call of ``read`` takes: the mean of a block of calls, and of several blocks the
    fastest, so that a preemption does not count.
    """
    blocks = []
    for _ in range(_RULE.blocks):
        start = clock.now()
        for _ in range(_RULE.readings):
            read()
        blocks.append((clock.now() - start) / _RULE.readings)
    return min(blocks)
