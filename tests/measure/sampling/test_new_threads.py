"""Threads that a stack starts while the measuring thread is bound get the processors that the
process had at start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

import pytest

from overhead.measure.sampling.clock import SystemClock


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> tuple[set[int], dict[int, set[int]]]:
    """The threads that run in this process, which the test changes, and the processors that each
    was given.
    """
    running, given = {1, 2}, dict[int, set[int]]()

    def bind(thread: int, processors: Iterable[int]) -> None:
        if thread == 8:
            raise ProcessLookupError(thread)
        given[thread] = set(processors)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "listdir", lambda folder: map(str, running))
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: {0, 1}, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", bind, raising=False)
    return running, given


def test_only_threads_started_after_the_move_get_all_processors(
    threads: tuple[set[int], dict[int, set[int]]],
) -> None:
    running, given = threads
    clock = SystemClock()
    clock.release_threads()
    clock.move([1])
    clock.release_threads()
    assert given == {0: {1}}  # 0: the calling thread
    running |= {3, 4}
    clock.release_threads()
    assert given == {0: {1}, 3: {0, 1}, 4: {0, 1}}
    given.clear()
    clock.release_threads()
    assert given == {}


def test_a_thread_that_has_ended_meanwhile_is_skipped(
    threads: tuple[set[int], dict[int, set[int]]],
) -> None:
    running, given = threads
    clock = SystemClock()
    clock.move([1])
    running |= {8, 9}
    clock.release_threads()
    assert given == {0: {1}, 9: {0, 1}}
