"""Keep the measuring thread on a processor that runs at full speed.

A hyperthread loses about a third of its speed while its neighbour works; in a virtual machine the
neighbour may belong to another tenant. Such periods last about a second and affect each processor
by itself. A canary (a fixed loop that is timed) detects them, and another processor is usually not
affected.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass

import numpy as np

from overhead.measure.sampling.clock import Clock


@dataclass(frozen=True)
class _SlowRule:
    """When a processor is slow. Stricter values leave good processors; looser ones stay beside a
    busy neighbour.
    """

    slowdown: float = 1.12
    """The canary's Python loop takes this many times the process's usual best."""
    best_percentile: float = 10
    """The usual best is this percentile of the readings kept: a lower one may be a lucky
    reading.
    """
    readings_kept: int = 2000
    update_every: int = 50
    """Readings between two updates of the usual best, once there are twice as many: fewer cost time
    in the rounds.
    """


_RULE = _SlowRule()


class QuietProcessor:
    """Moves the calling thread between processors; ``close`` gives it all its processors back."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.processors = clock.processors()
        self.at = 0
        self.seen: deque[int] = deque(maxlen=_RULE.readings_kept)
        self.readings, self.best = 0, 0.0
        for index in range(len(self.processors)):
            self._reading_on(index)
        self.leave_if_slow()

    def move_on(self) -> None:
        """Move to the next processor. A disturbance that the canary misses (a neighbour that serves
        the GPU's interrupts, say) then affects a few rounds and not a whole process.
        """
        if len(self.processors) > 1:
            self._move((self.at + 1) % len(self.processors))

    def leave_if_slow(self) -> list[int]:
        """Move to a faster processor if this one is slow; return the canary ``[python_ns,
        native_ns]`` there.
        """
        here = self.canary()
        if not self._slow(here) or len(self.processors) < 2:
            return here
        found = [(here, self.at)]
        for step in range(1, len(self.processors)):
            index = (found[0][1] + step) % len(self.processors)
            there = self._reading_on(index)
            if not self._slow(there):
                return there
            found.append((there, index))
        return self._reading_on(min(found)[1])

    def canary(self) -> list[int]:
        """The canary on this processor; a slow reading is repeated, since an interrupt lengthens
        only one.
        """
        read = self._read()
        return min(read, self._read()) if self._slow(read) else read

    def close(self) -> None:
        """Let the thread run on all its processors again."""
        if self.processors:
            self.clock.move([])
            self.clock.release_threads()

    def _reading_on(self, index: int) -> list[int]:
        self._move(index)
        self.clock.canary()
        return self._read()

    def _move(self, index: int) -> None:
        with contextlib.suppress(OSError):  # the system took the processor away since it was found
            self.clock.move([self.processors[index]])
        self.at = index

    def _read(self) -> list[int]:
        read = self.clock.canary()
        self.seen.append(read[0])
        self.readings += 1
        if self.readings < 2 * _RULE.update_every or self.readings % _RULE.update_every == 0:
            self.best = float(np.percentile(self.seen, _RULE.best_percentile))
        return read

    def _slow(self, read: list[int]) -> bool:
        return read[0] > _RULE.slowdown * self.best
