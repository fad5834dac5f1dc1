"""Programs of known parts on a simulated device: counts, sums, replay and verdict against what is
known.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from overhead.explaining.host_work import (
    HostTimes,
    ReturnTimes,
    operation_rows,
    profiler_cost,
    step_counts,
    synchronisation_rows,
)
from overhead.explaining.record import BETWEEN, BoundKind, ReplayCheck
from overhead.explaining.replay import StepParts, step_parts
from overhead.explaining.verdict import bound_of, check_replay, judge
from overhead.results import Figure
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import Trace
from tests.fakes import profiled_program as known
from tests.fakes.explanations import DEVICE, trace_of
from tests.fakes.profiled_program import Launch, Python, Read, SimulatedDevice, Wait
from tests.fakes.reasons import first_code

PROGRAMS: dict[str, tuple[list[known.Part], BoundKind]] = {
    "host": ([Launch(host_ns=20_000, device_ns=2000)] * 20, "host"),
    "host, Python": (
        [Python(host_ns=300_000), *[Launch(host_ns=6000, device_ns=5000)] * 20],
        "host",
    ),
    "device": ([Launch(host_ns=4000, device_ns=30_000)] * 20, "device"),
    "device, one read at the end": (
        [*[Launch(host_ns=4000, device_ns=30_000)] * 40, Read(host_ns=8000)],
        "device",
    ),
    "host, one read at the end": (
        [*[Launch(host_ns=20_000, device_ns=2000)] * 20, Read(host_ns=8000)],
        "host",
    ),
    "host, a read after each of few": (
        [*[Launch(host_ns=20_000, device_ns=2000)] * 30, Read(host_ns=8000), Wait()],
        "host",
    ),
    "read after each": (
        [Launch(host_ns=10_000, device_ns=10_000, line="a.py:3"), Read(host_ns=8000, line="a.py:4")]
        * 10,
        "synchronisation",
    ),
    "wait after each": (
        [Launch(host_ns=10_000, device_ns=12_000), Wait(line="a.py:9")] * 10,
        "synchronisation",
    ),
    "half host, half device, a wait each": (
        [
            *[Launch(host_ns=20_000, device_ns=2000)] * 10,
            *[Launch(host_ns=4000, device_ns=30_000)] * 10,
            Wait(),
        ],
        "synchronisation",
    ),
    "host and device alike": ([Launch(host_ns=20_000, device_ns=20_000)] * 20, "mixed"),
    "some waiting": (
        [Python(host_ns=50_000), *[Launch(host_ns=10_000, device_ns=12_000)] * 10, Wait()],
        "mixed",
    ),
    "two streams": (
        [
            Launch(host_ns=20_000, device_ns=4000, stream=7),
            Launch(host_ns=20_000, device_ns=4000, stream=9),
        ]
        * 10,
        "host",
    ),
    "a launch alone": ([Launch(host_ns=4000, device_ns=500_000)], "device"),
}


def number_of(parts: known.Parts, *kinds: type) -> int:
    """How many parts of a program are of these kinds."""
    return len([part for part in parts if isinstance(part, kinds)])


def checked(parts: StepParts, truth_ns: float) -> ReplayCheck:
    """The check of a replayed step against the time that the simulation knows."""
    return check_replay(parts.step, Figure(name="measured", value=truth_ns))


def is_host_work(ns: float, parts: known.Parts) -> bool:
    """Within 3 %. What a wait does before it blocks may be missing: the trace shows one call."""
    in_waits_ns = sum(known.in_calls(part) for part in parts if isinstance(part, Read | Wait))
    truth_ns = known.host_ns(parts)
    return 0.97 * (truth_ns - in_waits_ns) <= ns <= 1.03 * truth_ns


@pytest.mark.parametrize(("parts", "bound"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_simulated_program_gets_exact_counts_a_replay_within_3_per_cent_and_the_right_verdict(
    parts: list[known.Part], bound: BoundKind
) -> None:
    trace = trace_of(parts)
    host = DEVICE.host_times(parts)
    step_ns = DEVICE.step_ns(parts)

    counts = step_counts(trace)
    assert_exact(counts.launches, number_of(parts, Launch))
    assert_exact(counts.synchronisations, number_of(parts, Read, Wait))
    assert counts.copies.value == number_of(parts, Read)

    rows = operation_rows(trace, host)
    assert is_host_work(sum(row.host_ns for row in rows), parts)
    assert sum(row.device_ns for row in rows) == pytest.approx(known.device_ns(parts), rel=0.03)

    replayed = step_parts(trace, host)
    check = checked(replayed, step_ns)
    assert check.ok
    assert check.ratio == pytest.approx(1, abs=0.03)
    assert is_host_work(replayed.host, parts)
    without_waits_ns = DEVICE.step_ns(known.without_waits(parts))
    assert replayed.without_waits == pytest.approx(without_waits_ns, rel=0.1)

    verdict = judge(replayed, check, rows, synchronisation_rows(trace), counts.launches.value)
    assert verdict.kind == bound, verdict.sentences
    idle_share = max(0, 1 - replayed.device / step_ns)
    assert verdict.overhead_share == pytest.approx(idle_share, abs=0.01)


def assert_exact(count: Figure, exact: int) -> None:
    """Assert that each profiled step has this count."""
    assert (count.value, count.low, count.high) == (exact, exact, exact)


def test_a_synchronisation_has_its_line_and_the_time_that_the_host_waits() -> None:
    parts: list[known.Part] = [
        Launch(host_ns=10_000, device_ns=50_000, line="a.py:3"),
        Read(host_ns=8000, line="a.py:4"),
        Launch(host_ns=4000, device_ns=9000),
        Wait(line="a.py:9"),
    ]
    trace = trace_of(parts)
    rows = synchronisation_rows(trace)
    assert [(row.what, row.count, row.site.line) for row in rows] == [
        ("aten::item, cudaStreamSynchronize", 1, "a.py:4"),
        ("cudaDeviceSynchronize", 1, "a.py:9"),
    ]
    # The read waits for 50,000 of the kernel and 1,000 of its copy, less the 8,000 of host work
    # beside them.
    device_ns = 50_000 + 1000 + DEVICE.latency_ns
    assert rows[0].blocked_ns == pytest.approx(device_ns - 8000 - 4000, rel=0.15)
    operations = operation_rows(trace, DEVICE.host_times(parts))
    assert {row.site.line for row in operations if row.name == "aten::add_"} == {"a.py:3", ""}


def test_a_launch_that_waits_for_room_in_the_queue_is_not_counted_as_host_work() -> None:
    # The queue is full from the third step on, and never on an idle device.
    parts = [Launch(host_ns=1000, device_ns=12_000)] * 900
    device = SimulatedDevice(call_cost_ns=4000)
    trace = read_chrome_trace(device.trace(parts, steps=4))
    assert any(call.queue_full for call in trace.steps[3].calls)
    host = device.host_times(parts)
    assert host.call_ns(trace) == pytest.approx(device.call_cost_ns, rel=0.01)
    found = step_parts(Trace(trace.steps[3:]), host)
    assert found.step == pytest.approx(known.device_ns(parts), rel=0.03)
    assert found.host == pytest.approx(known.host_ns(parts), rel=0.05)
    assert bound_of(found)[0] == "device"


def test_a_queue_that_is_full_only_in_the_host_profile_does_not_give_a_host_bound_verdict() -> None:
    parts = [Launch(host_ns=1000, device_ns=4000)] * 3000
    device = SimulatedDevice(call_cost_ns=2000)
    trace = read_chrome_trace(device.trace(parts, steps=1))
    host = device.host_times(parts)
    (alone,) = host.alone.steps
    # Without the profiler of the device the host is quicker, so it fills the queue and waits.
    assert alone.end - alone.start > 2 * known.host_ns(parts)
    found = step_parts(trace, host)
    profiler_ns = len(parts) * device.call_cost_ns
    assert found.host <= known.host_ns(parts) + profiler_ns
    assert bound_of(found)[0] == "device"


def test_host_work_does_not_contain_the_cost_of_the_profiler() -> None:
    parts = [Launch(host_ns=10_000, device_ns=500)] * 20
    trace = trace_of(parts)
    step_ns = DEVICE.step_ns(parts)
    with_its_cost = checked(step_parts(trace, HostTimes()), step_ns)
    assert with_its_cost.ok is False
    without_its_cost = checked(step_parts(trace, DEVICE.host_times(parts)), step_ns)
    assert without_its_cost.ratio == pytest.approx(1, abs=0.01)


def test_host_work_does_not_change_if_the_device_profiler_slows_some_calls_more() -> None:
    device = dataclasses.replace(DEVICE, odd_call_cost_ns=9000)
    parts: list[known.Part] = [
        Launch(host_ns=10_000, device_ns=500, name="aten::mul"),
        Launch(host_ns=20_000, device_ns=500, name="aten::linear"),
        Python(host_ns=10_000),
    ] * 10
    trace = trace_of(parts, device)
    host = device.host_times(parts)
    # Every second call is slowed by 9,000 ns more.
    assert host.call_ns(trace) == pytest.approx((2000 + (2000 + 9000)) / 2)
    check = checked(step_parts(trace, host), device.step_ns(parts))
    assert check.ratio == pytest.approx(1, abs=0.01)
    rows = {row.name: row.host_ns for row in operation_rows(trace, host)}
    assert rows == {"aten::mul": 100_000, "aten::linear": 200_000, BETWEEN: 100_000}


def test_steps_with_operations_of_their_own_get_the_times_of_the_device_profile() -> None:
    trace = trace_of([Launch(host_ns=10_000, device_ns=500)] * 20)
    other = DEVICE.host_times([Launch(host_ns=10_000, device_ns=500)] * 19)
    assert other.count_unknown_steps(trace) == len(trace.steps)
    assert other.call_ns(trace) == 0
    assert (
        DEVICE.host_times([Launch(host_ns=10_000, device_ns=500)] * 20).count_unknown_steps(trace)
        == 0
    )
    rows = {row.name: row.host_ns for row in operation_rows(trace, other)}
    # With the 2,000 ns that the device profiler adds to each call.
    assert rows["aten::add_"] == pytest.approx(20 * (10_000 + 2000))


def cost_in(step: known.Parts, device: SimulatedDevice) -> float:
    """The cost of an operation that ``profiler_cost`` finds from this step and a loop of
    launches.
    """
    loop = [Launch(host_ns=10_000, device_ns=500)] * 9
    returns = ReturnTimes([device.return_ns(step)], [device.return_ns(loop)])
    blocked_ns = trace_of(step, device).blocked_ns
    cost = profiler_cost(device.alone(step), device.alone(loop), returns, blocked_ns)
    return cost.operation_ns


def test_the_profiler_cost_is_what_the_profiler_adds_until_a_step_returns() -> None:
    parts: list[known.Part] = [
        Python(host_ns=30_000),
        *[Launch(host_ns=20_000, device_ns=500)] * 20,
        Read(host_ns=8000),
    ]
    assert cost_in(parts, DEVICE) == pytest.approx(DEVICE.operation_cost_ns, rel=0.01)


def test_the_profiler_cost_for_a_step_that_waits_is_that_in_a_loop_of_launches() -> None:
    parts: list[known.Part] = [Launch(host_ns=4000, device_ns=30_000), Read(host_ns=8000)] * 10
    (alone,) = DEVICE.alone(parts).steps
    added_ns = alone.end - DEVICE.return_ns(parts)
    assert added_ns < 20 * 3000  # the reads wait for less time in the profile
    assert cost_in(parts, DEVICE) == pytest.approx(DEVICE.operation_cost_ns, rel=0.01)


def test_the_way_from_python_into_an_operation_counts_as_work_of_the_operation() -> None:
    device = dataclasses.replace(DEVICE, entry_ns=3000)
    parts: list[known.Part] = [
        Python(host_ns=50_000),
        *[Launch(host_ns=10_000, device_ns=500)] * 20,
    ]
    trace = trace_of(parts, device)
    host = device.host_times(parts)
    rows = {row.name: row.host_ns for row in operation_rows(trace, host)}
    assert rows == {
        BETWEEN: pytest.approx(50_000, rel=0.03),
        "aten::add_": pytest.approx(200_000, rel=0.03),
    }
    check = checked(step_parts(trace, host), device.step_ns(parts))
    assert check.ratio == pytest.approx(1, abs=0.01)


def test_a_step_that_waits_for_something_the_profiler_cannot_see_gets_no_verdict() -> None:
    parts: list[known.Part] = [Launch(host_ns=10_000, device_ns=2000)] * 20
    found = step_parts(trace_of(parts), DEVICE.host_times(parts))
    measured_ns = 1.5 * DEVICE.step_ns(parts)
    check = checked(found, measured_ns)
    verdict = judge(found, check)
    assert not check.ok
    assert verdict.kind == "unclear"
    assert first_code(verdict.sentences) == "no-verdict-of-the-replay"


WORK = st.integers(2, 40).map(lambda n: n * 1000)
LAUNCHES = st.builds(Launch, WORK, WORK, stream=st.sampled_from([7, 7, 9]))
ANY_PART = st.one_of(
    LAUNCHES,
    LAUNCHES,
    LAUNCHES,
    st.builds(Python, st.integers(0, 60).map(lambda n: n * 1000)),
    st.builds(Read, st.integers(1, 10).map(lambda n: n * 2000)),
    st.builds(Wait),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANY_PART, min_size=1, max_size=20).filter(known.device_ns))
def test_a_random_simulated_program_is_replayed_within_3_per_cent(parts: list[known.Part]) -> None:
    truth_ns = DEVICE.step_ns(parts)
    launches = number_of(parts, Launch)
    waits = number_of(parts, Read, Wait)
    assume(truth_ns > 20_000)
    assume(launches)  # a step of reads alone does not tell the cost of a call
    trace = trace_of(parts)
    replayed = step_parts(trace, DEVICE.host_times(parts))
    counts = step_counts(trace)
    assert counts.launches.value == launches
    assert counts.synchronisations.value == waits
    # A wait whose work ends while it begins looks like one that waited: its return may be missed.
    allowed_ns = 0.03 * truth_ns + waits * DEVICE.wake_ns
    assert replayed.step == pytest.approx(truth_ns, abs=allowed_ns)


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1))
def test_each_mix_of_host_device_and_wait_time_gets_the_verdict_of_the_rules(
    host: float, device: float, share: float
) -> None:
    free = max(host, device)
    assume(free > 1)
    step = free + share * min(host, device)
    kind, times = bound_of(StepParts(step, host, device, free))
    if kind == "synchronisation":
        # Waiting costs a third of the step or more.
        assert 1 - free / step >= 1 / 3 - 1e-9
    elif kind == "host":
        assert host > device
    elif kind == "device":
        assert device > host
    assert times >= 1
