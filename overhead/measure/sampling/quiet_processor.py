"""Keep the measuring thread on a processor that runs at full speed.

A hyperthread loses about a third of its speed while its neighbour works, and in a virtual machine the neighbour may be
anybody's: spells of a second, each processor by itself. The canary tells; another processor is usually free of it.
"""

from __future__ import annotations

import contextlib
from collections import deque

import numpy as np

from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import canary

SLOW = 1.12
"""A canary's Python loop that takes this many times the machine's usual best ran on a slow processor."""
MEMORY, BEST, EVERY = 2000, 10, 50
"""The usual best: this percentile of so many last readings, looked up at each of the first few and then so rarely."""


class QuietProcessor:
    """``settle`` moves the calling thread where it can; ``close`` gives it all its processors back."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.processors = clock.processors()
        self.at = 0
        self.seen: deque[int] = deque(maxlen=MEMORY)
        self.readings, self.best = 0, 0.0
        for index in range(len(self.processors)):
            self._reading(index)
        self.settle()

    def leave(self) -> None:
        """Go on to the next processor: what one of them suffers unseen by a canary, from a neighbour that serves the
        GPU's interrupts say, is then the luck of a few rounds and not a process's."""
        if len(self.processors) > 1:
            self._move((self.at + 1) % len(self.processors))

    def settle(self) -> list[int]:
        """The canary's ``[python_ns, native_ns]`` where the thread is now: after a move if this one was slow."""
        here = self.again()
        if not self._slow(here) or len(self.processors) < 2:
            return here
        found = [(here, self.at)]
        for step in range(1, len(self.processors)):
            index = (found[0][1] + step) % len(self.processors)
            there = self._reading(index)
            if not self._slow(there):
                return there
            found.append((there, index))
        return self._reading(min(found)[1])

    def again(self) -> list[int]:
        """The canary where the thread is; a slow reading is taken twice, since an interrupt lengthens but one."""
        read = self._canary()
        return min(read, self._canary()) if self._slow(read) else read

    def close(self) -> None:
        if self.processors:
            self.clock.move([])

    def _reading(self, index: int) -> list[int]:
        self._move(index)
        canary(self.clock)
        return self._canary()

    def _move(self, index: int) -> None:
        with contextlib.suppress(OSError):  # taken away since it was found
            self.clock.move([self.processors[index]])
        self.at = index

    def _canary(self) -> list[int]:
        read = canary(self.clock)
        self.seen.append(read[0])
        self.readings += 1
        if self.readings < 2 * EVERY or self.readings % EVERY == 0:
            self.best = float(np.percentile(self.seen, BEST))
        return read

    def _slow(self, read: list[int]) -> bool:
        return read[0] > SLOW * self.best
