"""The ladder: its top is as high as the slope needs, no higher; around the stairs of a polling wait
it is known.
"""

from __future__ import annotations

import random

import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.line import LINE
from overhead.measure.fitting.one_process import LEGACY_N, Series
from overhead.measure.sampling.calibrate import CLIMB, Ladder, Limits, calibrate, retime_ladder
from overhead.results import because
from tests.fakes.chains import Steady, measured
from tests.fakes.machine import CALM, Disturbance, FakeClock, FastFakeChain, Law


def ladder(
    law: Law,
    disturbance: Disturbance = CALM,
    limits: Limits | None = None,
    seed: int = 1,
    **attributes: object,
) -> Ladder:
    clock = FakeClock(disturbance=disturbance, seed=seed)
    chain = FastFakeChain(law, clock)
    for name, value in attributes.items():
        setattr(chain, name, value)
    found = calibrate(chain, clock, limits or Limits())
    assert chain.executed() == found.issued
    return found


def rise(found: Ladder, law: Law) -> float:
    return law.truth()["complete"] * (found.ns[-1] - 1)


def test_the_sampled_n_are_0_1_100_and_halvings_of_the_smallest_sufficient_n() -> None:
    law = Law(host=2_000.0, device=500.0, fixed=40_000.0)
    found = ladder(law)
    assert {0, 1, LEGACY_N} <= set(found.ns)
    assert CLIMB.least_ns <= rise(found, law) <= 2.2 * CLIMB.least_ns
    assert found.ns[-1] // 2 in found.ns
    assert found.shortfall == ""


def test_noise_raises_the_largest_n() -> None:
    calm = ladder(Law(host=2_000.0, device=500.0, fixed=40_000.0))
    rough = ladder(Law(host=2_000.0, device=500.0, fixed=40_000.0, wake=200_000.0))
    assert rough.ns[-1] >= 2 * calm.ns[-1]


class Sleeper(Steady):
    """A wait that spins for 100 us and then sleeps, which costs ``STEP`` ns once."""

    STEP = 90_000.0

    def wait(self) -> None:
        long = self.pending is not None and self.pending[1] > 100_000
        super().wait()
        self.clock.time += self.STEP if long else 0.0


def test_an_extra_cost_of_the_first_units_raises_the_largest_n_until_all_n_are_on_a_line() -> None:
    law = Law(host=100.0, device=500.0, fixed=20_000.0)
    clock = FakeClock(disturbance=CALM)
    straight = calibrate(Steady(clock, law), clock, Limits())
    found = calibrate(Sleeper(clock, law), clock, Limits())
    needed = Sleeper.STEP / (CLIMB.head * LINE.misfit)
    assert rise(straight, law) <= 2.2 * CLIMB.least_ns
    assert needed <= rise(found, law) <= 2.2 * needed
    assert found.shortfall == ""
    less_precise = calibrate(Sleeper(clock, law), clock, Limits(precision=0.1))
    assert rise(less_precise, law) <= 2.2 * needed * LINE.misfit / 0.1
    _, _, got = measured({"case": Sleeper(clock, law)}, clock, seconds=1.0)
    assert estimate(Series([got["case"]] * 3), precision=0.03)["complete"].status == "ok"


@pytest.mark.parametrize("jitter", [0.002, 0.01])
def test_noise_does_not_hide_an_extra_cost_of_the_first_units_that_was_found_before(
    jitter: float,
) -> None:
    law = Law(host=100.0, device=500.0, fixed=20_000.0, jitter=jitter)
    tops = []
    for seed in range(20):
        clock = FakeClock(disturbance=CALM, seed=seed)
        found = calibrate(Sleeper(clock, law), clock, Limits())
        tops.append(rise(found, law))
    high_enough = [top for top in tops if top > Sleeper.STEP / LINE.misfit]
    assert len(high_enough) >= 16, "of 20"


def test_a_wait_that_sleeps_once_is_not_taken_for_a_polling_wait() -> None:
    law = Law(host=500.0, device=5_000.0, fixed=20_000.0, jitter=0.002, wake=1_000.0, scatter=0.1)
    for seed in range(8):
        clock = FakeClock(disturbance=CALM, seed=seed)
        found = calibrate(Sleeper(clock, law), clock, Limits())
        assert found.stairs is None
        assert not {1, LEGACY_N} & set(found.ns)
        assert rise(found, law) > Sleeper.STEP / LINE.misfit


def test_the_search_for_the_largest_n_ends_for_a_chain_that_is_not_linear() -> None:
    class Curved(Steady):
        """Each unit costs more than the one before."""

        def issue(self, n: int) -> None:
            super().issue(n)
            self.clock.time += n * n

    clock, law = FakeClock(disturbance=CALM), Law(host=100.0, device=50.0, fixed=20_000.0)
    found = calibrate(Curved(clock, law), clock, Limits(sample_ns=10**9))
    assert found.ns[-1] ** 2 <= 4.1 * CLIMB.head_ns


def test_noise_that_grows_with_the_sample_does_not_raise_the_largest_n() -> None:
    calm = ladder(Law(host=2_000.0, device=500.0, fixed=40_000.0))
    rough = ladder(Law(host=2_000.0, device=500.0, fixed=40_000.0, jitter=0.1))
    assert rough.ns[-1] <= 2 * calm.ns[-1]


def test_the_n_of_an_earlier_process_are_timed_again_in_this_process() -> None:
    law = Law(host=2_000.0, device=500.0, fixed=40_000.0)
    first = ladder(law)
    clock = FakeClock()
    chain = FastFakeChain(Law(host=4_000.0, device=500.0, fixed=40_000.0), clock)
    began = clock.time
    again = retime_ladder(chain, clock, first.ns)
    assert again.ns == first.ns
    # The host takes 4,000 ns in this process, and took 2,000 ns in the first one.
    assert again.unit_ns == pytest.approx(2 * first.unit_ns, rel=0.05)
    assert chain.executed() == again.issued
    assert again.pass_ns > first.pass_ns
    assert clock.time - began < 4 * again.pass_ns


def test_a_tighter_target_raises_the_largest_n() -> None:
    law = Law(host=2_000.0, device=500.0, fixed=40_000.0, wake=100_000.0)
    precise = ladder(law, limits=Limits(precision=0.01))
    rough = ladder(law, limits=Limits(precision=0.1))
    assert precise.ns[-1] > rough.ns[-1]


@pytest.mark.parametrize("unit_ns", [1e6, 100e6])
def test_a_slow_chain_gets_few_small_n_quickly(unit_ns: float) -> None:
    clock = FakeClock()
    chain = Steady(clock, Law(host=unit_ns, device=0.0, fixed=0.0, synchronous=True))
    began = clock.time
    found = calibrate(chain, clock, Limits())
    assert found.ns in ((0, 1, 2, 3, 4), (0, 1, 2))
    assert clock.time - began < 120 * unit_ns


def test_a_stack_that_bounds_n_limits_the_largest_n_and_gives_the_reason() -> None:
    found = ladder(Law(host=200.0, device=100.0, fixed=0.0), max_n=64)
    assert found.ns[-1] == 64
    assert found.shortfall == because("n-is-bounded", most=64)


def test_a_largest_n_limited_by_the_longest_sample_gives_the_reason() -> None:
    found = ladder(
        Law(host=5_000.0, device=100.0, fixed=0.0, wake=5e6), limits=Limits(precision=0.01)
    )
    assert found.shortfall == because("sample-too-long", most_ms=20.0)
    assert 5_000 * found.ns[-1] <= 40_000_000


def test_a_chain_may_require_longer_samples() -> None:
    law = Law(host=5_000.0, device=100.0, fixed=0.0)
    assert rise(ladder(law, least_ns=30_000_000), law) >= 30_000_000


def test_a_queue_that_fills_is_sampled_below_and_above_the_n_that_fills_it() -> None:
    law = Law(host=3_000.0, device=36_000.0, fixed=20_000.0, depth=64)
    found = ladder(law)
    knee = law.truth()["knee_n"]
    assert sum(1 <= n < 0.9 * knee for n in found.ns) >= 3
    assert {n for n, _, _ in found.extra if n > knee}
    assert max(total for _, _, total in found.extra) < 21_000_000
    assert not ladder(law, limits=Limits(knee=False)).extra


@pytest.mark.parametrize("device", [5_640.0, 11_200.0])
def test_a_full_queue_near_the_longest_sample_is_found(device: float) -> None:
    """A stream of 1,024 launches on an H100, by kernels of two lengths."""
    law = Law(host=3_400.0, device=device, depth=1024, jitter=0.005)
    sampled = [n for n, _, _ in ladder(law).extra]
    assert max(sampled) > law.truth()["knee_n"]


def test_a_preemption_is_not_taken_for_a_full_queue() -> None:
    law = Law(host=5_000.0, device=10_000.0, jitter=0.005)
    ladders = [ladder(law, Disturbance(), seed=seed) for seed in range(40)]
    with_knee = [found for found in ladders if found.extra]
    assert len(with_knee) <= 2


def test_a_queue_that_never_fills_gets_no_samples_of_a_full_queue() -> None:
    assert not ladder(Law(host=3_000.0, device=36_000.0, fixed=20_000.0)).extra
    assert not ladder(Law(host=3_000.0, device=1_000.0, fixed=20_000.0, depth=8)).extra
    assert not ladder(
        Law(host=3_000.0, device=36_000.0, fixed=20_000.0, depth=64, overlap="serial")
    ).extra


@pytest.mark.parametrize(("poll", "levels"), [(1e6, 8), (100e6, 3)])
def test_a_polling_wait_is_found_with_the_n_at_which_it_takes_one_more_poll(
    poll: float, levels: int
) -> None:
    law = Law(host=2_000.0, device=10_000.0, fixed=50_000.0, poll=poll, wake=5_000.0)
    found = ladder(law)
    assert found.stairs is not None
    assert found.stairs.quantum_ns == pytest.approx(poll, rel=0.02)
    assert list(found.stairs.edges) == pytest.approx(
        [poll / 10_000, levels * poll / 10_000], rel=0.03
    )
    assert found.extra
    passes = found.draw(50, random.Random(0))
    assert len(passes) == 150
    assert set(found.draw_for_cpu(1, 1)) == set()
    assert found.draw_for_cpu(1, 0) == [found.stairs.short, found.ns[-1]]


def test_a_machine_with_two_speeds_is_not_taken_for_a_polling_wait() -> None:
    """With units of 0.04 ms T jumps between neighbouring n by one unit, and a change of speed bends
    the line.
    """
    law = Law(host=36_000.0, device=100.0, fixed=2_000.0)
    disturbance = Disturbance(slowdown=1.6, dwell_s=0.01)
    clocks = [FakeClock(disturbance=disturbance, seed=seed) for seed in range(60)]
    found = [calibrate(FastFakeChain(law, clock), clock, Limits()).stairs for clock in clocks]
    assert sum(one is not None for one in found) <= 1


def test_a_linear_chain_behind_a_long_wait_is_not_taken_for_a_polling_wait() -> None:
    found = ladder(Law(host=5_000.0, device=1_000.0, fixed=103e6, wake=5_000.0))
    assert found.stairs is None


def test_an_interrupted_sample_does_not_end_the_search_for_the_largest_n() -> None:
    law = Law(host=2_000.0, device=500.0, fixed=40_000.0, wake=1_000.0, jitter=0.003)
    tops = set()
    for seed in range(20):
        clock = FakeClock(disturbance=Disturbance(spread=0.0, preemptions=50.0), seed=seed)
        tops.add(calibrate(FastFakeChain(law, clock), clock, Limits()).ns[-1])
    assert len(tops) <= 2


def test_a_pass_samples_every_n_in_a_new_order() -> None:
    ns = (0, 1, 2, 4)
    found = Ladder(ns, 1.0, 1.0, 1.0, 0)
    drawn = found.draw(3, random.Random(0))
    passes = [drawn[0:4], drawn[4:8], drawn[8:12]]
    for one_pass in passes:
        assert sorted(one_pass) == [*ns], "each pass has all four n"
    assert found.draw_for_cpu(4, 3) == [1, 2, 4, 1]
    assert [found.draw_for_cpu(1, number) for number in range(4)] == [[1], [2], [4], [1]]
