"""Slow samples that are work of the stack, and those that are the host's doing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Process, Series, fit_process
from overhead.measure.fitting.slow_samples import share_of_slow_samples
from overhead.results import Figure, codes_of
from tests.fakes.chains import anchored_series, one_process_per_slope
from tests.fakes.machine import CALM, Disturbance, FakeClock, FastFakeChain, Law, PeriodicFakeChain

LAW = Law(host=5e3, device=0.0, fixed=300.0, synchronous=True, jitter=0.004)


def complete(law: Law, **more: Any) -> dict[str, Figure]:
    return estimate(anchored_series(law, processes=5, **more), precision=0.1)


@pytest.mark.parametrize(("every", "long_ns"), [(20_000, 100e6), (5_000, 5e6)])
def test_a_rare_long_unit_that_every_process_meets_is_not_ok(every: int, long_ns: float) -> None:
    usual_ns = LAW.host
    mean_ns = usual_ns + long_ns / every

    def make(law: Law, clock: FakeClock) -> FastFakeChain:
        return PeriodicFakeChain(law, clock, every=every, long_ns=long_ns)

    found = complete(LAW, disturbance=CALM, make=make)
    assert found["complete"].status == "noisy"
    assert found["complete"].value == pytest.approx(usual_ns, rel=0.01)
    assert "slow-samples-are-work" in codes_of(found["complete"].reason)
    assert (found["everything"].value or 0.0) > (usual_ns + mean_ns) / 2, "nearer to the mean"


def test_a_cost_that_is_paid_later_in_ever_larger_parts_is_not_ok() -> None:
    def make(law: Law, clock: FakeClock) -> FastFakeChain:
        return PeriodicFakeChain(law, clock, every=1_000, long_ns=40e3, doubles=True)

    found = complete(
        Law(host=40.0, device=0.0, fixed=300.0, synchronous=True, jitter=0.004),
        disturbance=CALM,
        make=make,
    )
    assert found["complete"].status == "noisy"


@pytest.mark.parametrize(
    "host",
    [
        Disturbance(spread=0.005, preemptions=50.0, preempted_ns=(50e3, 5e6)),
        Disturbance(spread=0.005, preemptions=100.0, preempted_ns=(1e6, 10e6)),
        Disturbance(spread=0.005, preemptions=10.0, preempted_ns=(50e6, 100e6)),
    ],
)
def test_interruptions_by_other_threads_are_no_work(host: Disturbance) -> None:
    found = complete(LAW, disturbance=host)
    assert found["complete"].status == "ok"
    assert found["complete"].value == pytest.approx(5e3, rel=0.02)


def with_slow_samples(reference_ns: int) -> Series:
    """Three processes, each with two samples 0.4 ms above its line. ``reference_ns``: of a loop
    whose best time is 50 us.
    """

    def slowed(process: Process) -> Process:
        rounds = []
        for one in process.rounds:
            samples = [[*sample] for sample in one.samples]
            if one.round % 4 == 0:
                samples[5][2] += 400_000
            rounds.append(msgspec.structs.replace(one, samples=samples, canary=[reference_ns] * 2))
        return replace(process, rounds=rounds, pace=50_000.0)

    made = one_process_per_slope(600.0, 600.0, 600.0, rounds=8)
    return replace(made, processes=[slowed(process) for process in made.processes])


@pytest.mark.parametrize(
    ("reference_ns", "share"), [(50_000, 0.59), (60_000, 0.39), (200_000, 0.0)]
)
def test_time_that_the_canary_takes_longer_too_is_no_work(reference_ns: int, share: float) -> None:
    """Another thread of the core or a stolen processor, which the count of the system does not
    see. The share is what the slow samples add to the cost of a unit, less what the host explains.
    """
    series = with_slow_samples(reference_ns)
    fits = [fit_process(process, series) for process in series.processes]
    assert share_of_slow_samples(series.processes, fits) == pytest.approx(share, abs=0.01)


class _LateChain(FastFakeChain):
    """A chain of which a share of the waits returns ``late`` ns later."""

    def __init__(self, law: Law, clock: FakeClock, share: float, late: float) -> None:
        super().__init__(law, clock)
        self.share, self.late = share, late

    def _run(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        issue, total, busy = super()._run(n)
        return issue, total + self.late * (self.clock.random.random(n.size) < self.share), busy


@pytest.mark.parametrize(("share", "late"), [(0.2, 100e3), (0.3, 20e3), (0.3, 50e3)])
def test_waits_that_often_take_longer_refuse_the_figures_that_are_their_median(
    share: float, late: float
) -> None:
    def make(law: Law, clock: FakeClock) -> FastFakeChain:
        return _LateChain(law, clock, share=share, late=late)

    found = complete(LAW, disturbance=CALM, make=make)
    assert found["complete"].value == pytest.approx(5e3, rel=0.02)
    for name in ("fixed", "naive"):
        assert found[name].status == "noisy"
        assert "waits-differ" in codes_of(found[name].reason)


@pytest.mark.parametrize(
    "host", [CALM, Disturbance(spread=0.005, preemptions=50.0, preempted_ns=(50e3, 5e6))]
)
def test_usual_waits_leave_their_figures(host: Disturbance) -> None:
    found = complete(replace(LAW, fixed=20e3, wake=1_000.0, synchronous=False), disturbance=host)
    assert {found[name].status for name in ("complete", "fixed", "naive")} == {"ok"}
