"""Threads that a stack starts while the measuring thread is bound to one processor. They inherit that processor."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

_THREADS = Path("/proc/self/task")


def threads_of_this_process() -> set[int]:
    """The thread ids of this process; empty where the system does not list them."""
    if sys.platform != "linux":
        return set()
    return {int(name) for name in os.listdir(_THREADS)}


def bind(thread: int, processors: Collection[int]) -> None:
    """Let a thread run on these processors."""
    if sys.platform == "linux":
        os.sched_setaffinity(thread, processors)


class NewThreads:
    """Finds the threads that appeared since it was made, or since it was last asked. ``list_threads`` and ``bind`` are
    replaced in tests."""

    def __init__(
        self,
        list_threads: Callable[[], Iterable[int]] = threads_of_this_process,
        bind: Callable[[int, Collection[int]], None] = bind,
    ) -> None:
        self._list_threads, self._bind = list_threads, bind
        self._known = set(list_threads())

    def release(self, processors: Collection[int]) -> None:
        """Let each new thread run on these processors."""
        running = set(self._list_threads())
        for thread in running - self._known:
            with contextlib.suppress(OSError):  # the thread has ended
                self._bind(thread, processors)
        self._known = running
