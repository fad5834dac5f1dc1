"""Keep the measuring thread on a processor that runs at full speed.

A hyperthread loses about a third of its speed while its neighbour works; in a virtual machine the
neighbour may belong to another tenant. Such periods last about a second and affect each processor
by itself. A reference loop (fixed work that is timed) detects them, and another processor is
usually not affected.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from overhead.measure.sampling.clock import Clock


@dataclass(frozen=True)
class _SlowRule:
    """When a processor is slow. Stricter values leave good processors; looser ones stay beside a
    busy neighbour.

    The numbers were chosen, not measured, where a line does not name a run.
    """

    slowdown: float = 1.12
    """The Python reference loop takes this many times the process's usual best."""
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


class _Reading(NamedTuple):
    """The times of the reference loop ``[python_ns, native_ns]``, and the position of the processor
    where it was timed. The smallest one is the fastest.
    """

    times: list[int]
    position: int


class UndisturbedProcessor:
    """Keeps the calling thread on a processor that runs at full speed, by moving it between the
    processors it may use; ``close`` gives it all of them back.

    A processor counts as slow if the reference loop, a fixed piece of work, takes clearly longer
    there than it usually does in this process. ``position``: the index of the processor it is on.
    ``seen``: recent times of the loop, of which ``best`` is the usual best, ns.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.processors = clock.processors()
        self.position = 0
        # Recent times of the reference loop, of which ``best`` is the usual best.
        self.seen: deque[int] = deque(maxlen=_RULE.readings_kept)
        self.readings = 0
        self.best = 0.0
        # A reading on each, so that the usual best is that of the fast ones.
        for position in range(len(self.processors)):
            self._reading_on(position)
        self.leave_if_slow()

    def move_on(self) -> None:
        """Move to the next processor. A disturbance that the reference loop misses (a neighbour
        that serves the GPU's interrupts, say) then affects a few rounds and not a whole process.
        """
        if len(self.processors) > 1:
            self._move((self.position + 1) % len(self.processors))

    def leave_if_slow(self) -> list[int]:
        """Move to a faster processor if this one is slow: to the next one that is not, or to the
        fastest if all are slow. Returns the times of the reference loop (fixed work) on the
        processor chosen, ``[python_ns, native_ns]``.
        """
        here = self.reference_loop()
        # Slow: 1.12 times the usual best of this process.
        if not self._is_slow(here) or len(self.processors) < 2:
            return here
        # Every slow processor is kept with its reading: the fastest of them is the last resort.
        slow = [_Reading(here, self.position)]
        start = self.position
        for step in range(1, len(self.processors)):
            position = (start + step) % len(self.processors)
            there = self._reading_on(position)
            if not self._is_slow(there):
                return there
            slow.append(_Reading(there, position))
        # Readings compare by their times first.
        return self._reading_on(min(slow).position)

    def reference_loop(self) -> list[int]:
        """The times of the reference loop (fixed work) on this processor, which show how fast it
        runs now; a slow reading is repeated, since an interrupt lengthens only one.
        """
        first = self._read()
        if not self._is_slow(first):
            return first
        return min(first, self._read())

    def close(self) -> None:
        """Let the thread run on all its processors again."""
        if self.processors:
            self.clock.move([])
            self.clock.release_threads()

    def _reading_on(self, position: int) -> list[int]:
        """Move to this processor, and time the reference loop there: the second of two, since the
        first one meets cold caches.
        """
        self._move(position)
        self.clock.reference_loop()
        return self._read()

    def _move(self, position: int) -> None:
        with contextlib.suppress(OSError):  # the system took the processor away since it was found
            self.clock.move([self.processors[position]])
        self.position = position

    def _read(self) -> list[int]:
        """Time the reference loop, and keep the time of its Python part: the usual best, against
        which a processor counts as slow, is computed from these. It is computed at each reading
        while they are few, and then rarely, since that takes time in the rounds.
        """
        times = self.clock.reference_loop()
        self.seen.append(times[0])
        self.readings += 1
        # ``update_every``: readings between two updates of the usual best.
        are_few = self.readings < 2 * _RULE.update_every
        if are_few or self.readings % _RULE.update_every == 0:
            # The 10th percentile: a lower one may be a lucky reading.
            self.best = float(np.percentile(self.seen, _RULE.best_percentile))
        return times

    def _is_slow(self, times: list[int]) -> bool:
        return times[0] > _RULE.slowdown * self.best
