"""Device time behind a blocker, on a simulated clock."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.measure.sampling.description import describe
from overhead.probes.base import DeviceTime
from overhead.probes.held_chain import LONGEST_BLOCKER_NS, HeldChain, StreamHolder, time_held
from overhead.results import OneOffEntry, RoundEntry, Why, because
from tests.fakes.chains import dropped, measured
from tests.fakes.machine import FakeClock


class FakeStream(StreamHolder):
    """A simulated stream. ``issue`` takes ``host_ns`` per unit, and each unit then takes
    ``unit_ns`` on the device.
    """

    method = "fake stream"

    def __init__(self, *, host_ns: float, unit_ns: float) -> None:
        self.host_ns = host_ns
        self.unit_ns = unit_ns
        self.now = 0.0
        self.free = 0.0
        self.blocks: list[float] = []

    def issue(self, n: int) -> None:
        for _ in range(n):
            self.now += self.host_ns
            self.free = max(self.free, self.now) + self.unit_ns

    def block(self, ns: float) -> None:
        self.blocks.append(ns)
        self.free = max(self.free, self.now) + ns

    def mark(self) -> Any:
        return max(self.free, self.now)

    def passed(self, mark: Any) -> bool:
        return bool(self.now >= mark)

    def wait(self, mark: Any) -> None:
        self.now = max(self.now, mark)

    def between(self, start: Any, end: Any) -> float:
        return float(end - start)


def test_device_time_is_busy_if_all_units_are_queued_behind_the_first_blocking_kernel() -> None:
    clock = FakeStream(host_ns=1_000, unit_ns=300)
    found = time_held(clock, lambda: None, clock.issue, 100)
    assert found.busy
    assert found.span == 100 * 300
    assert found.n == 100
    assert clock.blocks == [1e6], "1 ms outlasts 100 launches of 1 us"


def test_a_blocking_kernel_that_is_too_short_is_made_longer_until_it_outlasts_the_launches() -> (
    None
):
    clock = FakeStream(host_ns=50_000, unit_ns=300)
    found = time_held(clock, lambda: None, clock.issue, 100)
    assert found.busy
    assert found.span == 100 * 300
    assert found.n == 100
    # 100 launches take 5 ms, the first blocking kernel 1 ms.
    assert len(clock.blocks) > 1
    assert clock.blocks == sorted(clock.blocks)


def test_device_time_is_not_busy_if_issuing_takes_longer_than_the_longest_blocking_kernel() -> None:
    clock = FakeStream(host_ns=1e6, unit_ns=300)
    found = time_held(clock, lambda: None, clock.issue, 100)
    assert not found.busy
    assert clock.blocks[-1] == LONGEST_BLOCKER_NS
    assert found.span > 100 * 300, "the device waits for the host between the units"


class Chain(HeldChain):
    def __init__(self) -> None:
        self.issued = 0

    def issue(self, n: int) -> None:
        self.issued += n

    def wait(self) -> None: ...

    def executed(self) -> int:
        return self.issued - self.aside


def test_a_recorded_graph_is_launched_once_before_its_device_time_is_measured() -> None:
    done: list[str] = []

    class Graph(Chain):
        recorded = True

        def issue(self, n: int) -> None:
            super().issue(n)
            done.append("issue")

        def wait(self) -> None:
            done.append("wait")

    class Stream(FakeStream):
        def block(self, ns: float) -> None:
            super().block(ns)
            done.append("block")

    graph = Graph()
    graph.held(Stream(host_ns=1000, unit_ns=300), 100)
    assert done == ["issue", "wait", "block", "issue"]
    assert graph.issued == 200, "100 to warm up, 100 that are timed"
    assert graph.executed() == 0, "units for device time do not count"


def test_a_chain_that_is_not_recorded_runs_only_the_units_whose_device_time_is_measured() -> None:
    not_recorded = Chain()
    not_recorded.held(FakeStream(host_ns=1000, unit_ns=300), 100)
    assert not_recorded.issued == 100
    assert not_recorded.executed() == 0


def test_units_issued_for_device_time_fill_half_of_the_queue_and_do_not_count_as_executed() -> None:
    chain = Chain()
    chain.issue(3)
    # Half of the 1,024 launches that a CUDA stream queues. A unit of this chain is one launch.
    assert chain.held(FakeStream(host_ns=1000, unit_ns=300), 100_000).n == 512
    assert chain.executed() == 3
    chain.launches = 4
    assert chain.held_n == 128, "512 launches of 4 a unit"
    chain.launches = 0  # all units together are one launch: only the chain limits them
    chain.max_n = 10_000
    assert chain.held(FakeStream(host_ns=1000, unit_ns=300), 100_000).n == 10_000
    assert chain.executed() == 3


class Token(Chain):
    """A unit takes 1 ms of the host."""

    overlap = "serial"
    max_n = 20

    def __init__(self, clock: FakeClock, launches: int) -> None:
        super().__init__()
        self.clock, self.launches = clock, launches

    def issue(self, n: int) -> None:
        super().issue(n)
        self.clock.time += 1e6 * n

    def device(self, n: int) -> DeviceTime | None:
        return self.held(FakeStream(host_ns=1000, unit_ns=300), n)


@pytest.mark.parametrize(
    ("launches", "reason"),
    [
        (881, because("unit-exceeds-queue", launches=881)),
        # Half of the queue of 1,024 launches holds one unit: one length gives no device time.
        (512, because("one-length-of-device-time", units=1)),
    ],
)
def test_a_chain_of_many_launches_a_unit_says_why_it_has_no_device_time(
    launches: int, reason: Why
) -> None:
    clock = FakeClock()
    chain = Token(clock, launches)
    describe(chain)
    _, events, _ = measured({"token": chain}, clock)
    assert not dropped(events)
    assert any(isinstance(event, RoundEntry) for event in events)
    one_offs = [event for event in events if isinstance(event, OneOffEntry)]
    (device_span,) = [one_off for one_off in one_offs if one_off.name == "device_span"]
    assert device_span.reason == reason
