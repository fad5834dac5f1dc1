"""The host's work in a profiled step, from hand-made profiles; times in ns."""

from __future__ import annotations

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


def step(*operations: HostOperation, end: float, calls: list[HostCall] = NO_CALLS) -> StepTrace:
    """A step from 0 to ``end``."""
    return StepTrace(0, end, operations, calls)


def work(host: HostTimes, given: StepTrace) -> list[float]:
    """The host's work between operations and in them, by turns."""
    of_step = host.work_of(given, host.call_ns(Trace([given])))
    edges = [given.start]
    for each in given.operations:
        edges += [each.start, each.end]
    edges.append(given.end)
    return of_step.between(edges)


def test_the_time_of_an_operation_is_its_mean_in_the_quickest_steps() -> None:
    quick = [
        step(operation("a", start=10, end=110), end=110),
        step(operation("a", start=30, end=100), end=100),
        step(operation("a", start=20, end=111), end=111),
    ]
    slow = [
        step(operation("a", start=900, end=9900), end=9900),
        *[step(operation("a", start=500, end=5500), end=5500)] * 8,
    ]
    given = step(operation("a", start=400, end=1000), end=1000)
    # Before the operation 10, 30 and 20 in the quick steps, and 100, 70 and 91 in it.
    assert work(HostTimes(Trace([*quick, *slow])), given) == pytest.approx([20, 87, 0])


def test_of_many_large_steps_some_are_typical() -> None:
    call = HostCall("cudaLaunchKernel", "launch", 0, 1, "1")
    large = [StepTrace(at, at + 10, calls=[call] * 1000) for at in range(0, 1000, 10)]
    typical = Trace(large).quiet().steps
    assert 5 <= len(typical) < len(large)
    assert typical[-1].start - typical[0].start > 900  # over the whole trace
    assert len(Trace(large[:20]).quiet().steps) == 20


def test_the_profiler_cost_of_unlike_steps_is_taken_against_the_mean_of_all_return_times() -> None:
    few = step(operation("a", start=0, end=1000), end=1000)
    many = step(operation("a", start=0, end=1000), operation("b", start=1000, end=3000), end=3000)
    returns = ReturnTimes(step=[900] * 4 + [2800] * 4)
    cost = profiler_cost(Trace([few, many] * 4), Trace([]), returns)
    # Profiled, a step takes (1000 + 3000) / 2 ns on average, without the profiler (900 + 2800) / 2.
    # It has one operation or two.
    assert cost.operation_ns == pytest.approx((2000 - 1850) / 1.5)
    longer_returns = ReturnTimes(step=[2000] * 8)
    assert profiler_cost(Trace([few] * 8), Trace([]), longer_returns).operation_ns == 0


def test_a_step_with_another_order_of_operations_is_given_the_times_of_its_own_profile() -> None:
    alone = step(operation("a", start=10, end=50), operation("b", start=50, end=100), end=100)
    host = HostTimes(Trace([alone]))
    known = step(operation("a", start=10, end=90), operation("b", start=90, end=200), end=200)
    other = step(operation("b", start=10, end=90), operation("a", start=90, end=200), end=200)
    # Before, in and after the operations by turns: the times of the profile without the device.
    assert work(host, known) == pytest.approx([10, 40, 0, 50, 0])
    assert work(host, other) == pytest.approx([10, 80, 0, 110, 0])
    assert host.count_unknown_steps(Trace([known, other])) == 1


def test_host_work_is_reduced_by_the_cost_of_the_profile_that_its_time_comes_from() -> None:
    alone = step(
        operation("a", start=0, end=1000, inner=2), operation("b", start=1000, end=2000), end=2000
    )
    host = HostTimes(Trace([alone]), ProfilerCost(operation_ns=100))
    known = step(
        operation("a", start=0, end=5000, inner=9), operation("b", start=5000, end=9000), end=9000
    )
    assert work(host, known)[1] == 700, "the time of the profile alone, with its two operations"
    unknown = step(
        operation("c", start=0, end=5000, inner=9), operation("b", start=5000, end=9000), end=9000
    )
    assert work(host, unknown)[1] == 5000 - 10 * 100, "its own time, with ten operations"


def test_profiler_cost_longer_than_an_operation_is_subtracted_from_the_next_parts() -> None:
    given = step(operation("a", start=0, end=60), operation("b", start=60, end=1000), end=1000)
    assert work(HostTimes(cost=ProfilerCost(operation_ns=100)), given) == pytest.approx(
        [0, 0, 0, 800, 0]
    )


def test_an_operation_that_waits_gets_the_shorter_time_of_the_two_profiles() -> None:
    alone = step(
        operation("add", start=0, end=100), operation("item", start=100, end=1000), end=1000
    )
    launch = HostCall("cudaLaunchKernel", "launch", start=20, end=120, thread="1", correlation=1)
    copy = HostCall("cudaMemcpyAsync", "copy", start=210, end=300, thread="1", correlation=2)
    wait = HostCall(
        "cudaStreamSynchronize", "synchronisation", start=300, end=400, thread="1", blocked=90
    )
    given = step(
        operation("add", start=0, end=140),
        operation("item", start=200, end=400),
        calls=[launch, copy, wait],
        end=400,
    )
    host = HostTimes(Trace([alone]))
    # The time between operations is 60 longer than alone, and "add" 40.
    assert host.call_ns(Trace([given])) == 100
    assert work(host, given) == pytest.approx([0, 100, 0, 10, 0])


def test_the_cost_of_a_runtime_call_is_not_taken_from_a_part_that_waits() -> None:
    alone = step(operation("add", start=0, end=100), end=1100)
    launch = HostCall("cudaLaunchKernel", "launch", start=20, end=120, thread="1", correlation=1)
    wait = HostCall("cudaDeviceSynchronize", "synchronisation", start=210, end=220, thread="1")
    given = step(operation("add", start=0, end=140), calls=[launch, wait], end=220)
    assert HostTimes(Trace([alone])).call_ns(Trace([given])) == 40


def test_overlapping_operations_of_two_threads_count_once_as_host_work() -> None:
    operations = [
        operation("outer", start=0, end=20),
        operation("inner", start=5, end=10, thread="2"),
        operation("next", start=21, end=25),
    ]
    given = step(*operations, end=30)
    rows = {row.name: row.host_ns for row in operation_rows(Trace([given]), HostTimes())}
    # In the 30 ns of the step one operation or the other runs for 24 ns.
    assert rows == {"outer": 20, "inner": 0, "next": 4, BETWEEN: 6}
    assert sum(work(HostTimes(), step(operations[0], operations[2], end=30))) == 30
