"""The host's work in a profiled step, from hand-made profiles; times in ns."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from overhead.explaining.host_work import (
    HostTimes,
    ProfilerCost,
    ReturnTimes,
    operation_rows,
    profiler_cost,
)
from overhead.explaining.record import BETWEEN
from overhead.traces.trace import HostCall, HostOperation, StepTrace, Trace

NO_CALLS: list[HostCall] = []


def operation(name: str, start: float, end: float, thread: str = "1", **more: Any) -> HostOperation:
    return HostOperation(name, start, end, thread, **more)


def step(end: float, *operations: HostOperation, calls: list[HostCall] = NO_CALLS) -> StepTrace:
    return StepTrace(0, end, operations, calls)


def work(host: HostTimes, given: StepTrace) -> list[float]:
    """The host's work between operations and in them, by turns."""
    work_between = host.work_of(given, host.call_ns(Trace([given])))
    edges = [given.start]
    for each in given.operations:
        edges += [each.start, each.end]
    edges.append(given.end)
    return [work_between(start, end) for start, end in itertools.pairwise(edges)]


def test_the_time_of_an_operation_is_its_mean_in_the_quickest_steps() -> None:
    quick = [
        step(110, operation("a", 10, 110)),
        step(100, operation("a", 30, 100)),
        step(111, operation("a", 20, 111)),
    ]
    slow = [step(9900, operation("a", 900, 9900)), *[step(5500, operation("a", 500, 5500))] * 8]
    given = step(1000, operation("a", 400, 1000))
    # Before the operation 10, 30 and 20 in the quick steps, and 100, 70 and 91 in it.
    assert work(HostTimes(Trace([*quick, *slow])), given) == pytest.approx([20, 87, 0])


def test_the_profiler_cost_of_unlike_steps_is_taken_against_the_mean_of_all_return_times() -> None:
    few = step(1000, operation("a", 0, 1000))
    many = step(3000, operation("a", 0, 1000), operation("b", 1000, 3000))
    returns = ReturnTimes(step=[900] * 4 + [2800] * 4)
    cost = profiler_cost(Trace([few, many] * 4), Trace([]), returns)
    assert cost.operation_ns == pytest.approx((2000 - 1850) / 1.5)
    longer_returns = ReturnTimes(step=[2000] * 8)
    assert profiler_cost(Trace([few] * 8), Trace([]), longer_returns).operation_ns == 0


def test_a_step_with_another_order_of_operations_is_given_the_times_of_its_own_profile() -> None:
    alone = step(100, operation("a", 10, 50), operation("b", 50, 100))
    host = HostTimes(Trace([alone]))
    known = step(200, operation("a", 10, 90), operation("b", 90, 200))
    other = step(200, operation("b", 10, 90), operation("a", 90, 200))
    assert work(host, known) == pytest.approx([10, 40, 0, 50, 0])
    assert work(host, other) == pytest.approx([10, 80, 0, 110, 0])
    assert host.count_unknown_steps(Trace([known, other])) == 1


def test_host_work_is_reduced_by_the_cost_of_the_profile_that_its_time_comes_from() -> None:
    alone = step(2000, operation("a", 0, 1000, inner=2), operation("b", 1000, 2000))
    host = HostTimes(Trace([alone]), ProfilerCost(operation_ns=100))
    known = step(9000, operation("a", 0, 5000, inner=9), operation("b", 5000, 9000))
    assert work(host, known)[1] == 700, "the time of the profile alone, with its two operations"
    unknown = step(9000, operation("c", 0, 5000, inner=9), operation("b", 5000, 9000))
    assert work(host, unknown)[1] == 4000


def test_profiler_cost_longer_than_an_operation_is_subtracted_from_the_next_parts() -> None:
    given = step(1000, operation("a", 0, 60), operation("b", 60, 1000))
    assert work(HostTimes(cost=ProfilerCost(operation_ns=100)), given) == pytest.approx(
        [0, 0, 0, 800, 0]
    )


def test_an_operation_that_waits_gets_the_shorter_time_of_the_two_profiles() -> None:
    alone = step(1000, operation("add", 0, 100), operation("item", 100, 1000))
    launch = HostCall("cudaLaunchKernel", "launch", 20, 120, "1", 1)
    copy = HostCall("cudaMemcpyAsync", "copy", 210, 300, "1", 2)
    wait = HostCall("cudaStreamSynchronize", "synchronisation", 300, 400, "1", blocked=90)
    given = step(
        400, operation("add", 0, 140), operation("item", 200, 400), calls=[launch, copy, wait]
    )
    host = HostTimes(Trace([alone]))
    # The time between operations is 60 longer than alone, and "add" 40.
    assert host.call_ns(Trace([given])) == 100
    assert work(host, given) == pytest.approx([0, 100, 0, 10, 0])


def test_the_cost_of_a_runtime_call_is_not_taken_from_a_part_that_waits() -> None:
    alone = step(1100, operation("add", 0, 100))
    launch = HostCall("cudaLaunchKernel", "launch", 20, 120, "1", 1)
    wait = HostCall("cudaDeviceSynchronize", "synchronisation", 210, 220, "1")
    given = step(220, operation("add", 0, 140), calls=[launch, wait])
    assert HostTimes(Trace([alone])).call_ns(Trace([given])) == 40


def test_overlapping_operations_of_two_threads_count_once_as_host_work() -> None:
    operations = [
        operation("outer", 0, 20),
        operation("inner", 5, 10, "2"),
        operation("next", 21, 25),
    ]
    given = step(30, *operations)
    rows = {row.name: row.host_ns for row in operation_rows(Trace([given]), HostTimes())}
    assert rows == {"outer": 20, "inner": 0, "next": 4, BETWEEN: 6}
    assert sum(work(HostTimes(), step(30, operations[0], operations[2]))) == 30
