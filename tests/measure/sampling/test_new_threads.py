"""Threads that a stack starts while the measuring thread is bound get the processors that the process had at start."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from overhead.measure.sampling.new_threads import NewThreads
from tests.fakes.chains import Steady, measured
from tests.fakes.machine import FakeClock


class Threads:
    """A process with these threads; ``bound`` records the processors that each was given."""

    def __init__(self, *running: int) -> None:
        self.running, self.bound = set(running), dict[int, Collection[int]]()

    def bind(self, thread: int, processors: Collection[int]) -> None:
        if thread not in self.running:
            raise ProcessLookupError(thread)
        self.bound[thread] = processors


def test_only_threads_that_appeared_since_are_released() -> None:
    threads = Threads(1, 2)
    new = NewThreads(lambda: threads.running, threads.bind)
    new.release({0, 1})
    assert threads.bound == {}
    threads.running = {1, 3, 4}
    new.release({0, 1})
    assert threads.bound == {3: {0, 1}, 4: {0, 1}}
    threads.bound.clear()
    new.release({0, 1})
    assert threads.bound == {}


def test_a_thread_that_has_ended_is_no_error() -> None:
    threads = Threads(1)
    listed = [{1}, {1, 7, 8}]
    threads.running = {1, 8}
    NewThreads(lambda: listed.pop(0), threads.bind).release({0})
    assert threads.bound == {8: {0}}


def test_threads_are_released_after_each_part_of_a_case() -> None:
    class Recording(FakeClock):
        released = 0

        def processors(self) -> list[int]:
            return [0, 1]

        def move(self, processors: Sequence[int]) -> None:
            return

        def release_threads(self) -> None:
            self.released += 1

    clock = Recording()
    _, _, found = measured({"a": Steady(clock), "b": Steady(clock)}, clock)
    parts = 2 + 2 + sum(len(found[case].rounds) for case in "ab")  # calibrations, one-off values, rounds
    assert clock.released == parts + 1  # and once all processors are given back
