"""A browser whose wait polls every 100 ms, on a fake clock: the slope is that of the work, from few
long samples.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.sampling import polling_wait
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.polling_wait import bracket_crossing
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES, WEIGHT
from overhead.results import Figure, OneOffEntry
from scripts.bench.known_truth import process_of
from tests.fakes.machine import Disturbance, FakeClock, Law, PollingFakeChain

FIREFOX = Law(
    host=8e3, device=25e3, fixed=1e5, poll=1e8, wake=5e4, jitter=0.005, scatter=0.1, own=0.005
)
QUICK = PROFILES["quick"]
SECONDS = QUICK.case_s * WEIGHT["polling"]


def measured(law: Law) -> tuple[dict[str, Figure], list[Process], float]:
    """The figures, the processes, and the fake seconds that a process took."""
    processes, spent = [], 0.0
    for index in range(QUICK.processes):
        clock = FakeClock(Disturbance(spread=0.005), index, resolution_ns=20_000)
        events: list[Event] = []
        begun = clock.time
        settings = Settings(
            SECONDS,
            precision=QUICK.precision,
            min_rounds=QUICK.min_rounds,
            max_rounds=400,
            seed=0,
            extras=frozenset({"case"}),
        )
        measure_cases({"case": PollingFakeChain(law, clock)}, clock, settings, events.append)
        spent += (clock.time - begun) / 1e9
        processes.append(process_of(events, 0))
    return (
        estimate(Series(processes, False, False, "pipelined"), QUICK.precision),
        processes,
        spent / QUICK.processes,
    )


def naive_slope(processes: list[Process]) -> float:
    """T(100)/100, ns."""
    totals: list[float] = []
    for process in processes:
        totals += process.values("legacy")
    return float(np.mean(totals)) / 100


def test_with_a_wait_that_polls_every_100_ms_the_slope_is_the_cost_of_the_work_alone() -> None:
    found, processes, spent = measured(FIREFOX)
    slope = found["complete"]
    assert slope.status == "ok"
    assert slope.value == pytest.approx(25e3, rel=0.04)
    assert slope.low is not None
    assert slope.high is not None
    assert slope.low <= 25e3 * 1.02
    assert slope.high < naive_slope(processes) / 10
    assert naive_slope(processes) == pytest.approx(1e6, rel=0.05)
    assert spent < 3.5 * SECONDS


@pytest.mark.slow
def test_with_a_polling_wait_twice_as_large_n_give_a_slope_within_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    once = measured(FIREFOX)[0]["complete"]
    monkeypatch.setattr(polling_wait, "KNOWN_POLL", replace(polling_wait.KNOWN_POLL, level=2))
    twice, processes, _ = measured(FIREFOX)  # the same three processes, at the same speeds
    assert all(p.values("ladder")[-1] == pytest.approx(2e8 / 25e3, rel=0.1) for p in processes)
    assert once.low is not None
    assert once.high is not None
    assert once.low <= (twice["complete"].value or 0) <= once.high


def test_with_polls_that_the_work_itself_delays_the_slope_is_still_right() -> None:
    """The polling thread runs the submissions first: T leaves the stairs, and no poll finds
    unfinished work.
    """
    found, _, _ = measured(
        Law(host=1e4, device=6e4, fixed=1.5e6, poll=1e8, busy=9e4, jitter=0.005, own=0.003)
    )
    slope, fixed = found["complete"], found["fixed"]
    assert slope.status == "ok"
    assert slope.value == pytest.approx(9e4, rel=0.04)
    assert fixed.value == pytest.approx(1.5e6, abs=1.5e6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "fixed"), [(22e6, 1e5), (30e6, 1e5), (45e6, 1e5), (25e3, 2e7), (5e6, 4e7)]
)
def test_with_a_single_unit_longer_than_one_poll_the_slope_is_still_right(
    device: float, fixed: float
) -> None:
    slope = measured(
        Law(host=8e3, device=device, fixed=fixed, poll=1e8, wake=5e4, jitter=0.005, scatter=0.1)
    )[0]
    assert slope["complete"].value == pytest.approx(device, rel=0.15)
    assert slope["complete"].low is not None


def test_with_a_polling_wait_each_process_samples_different_n() -> None:
    ladders = [p.values("ladder") for p in measured(FIREFOX)[1]]
    assert len({ladder[-1] for ladder in ladders}) == len(ladders)


@pytest.mark.parametrize("poll", [0.0, 2e6])
def test_a_wait_that_polls_more_often_than_declared_gets_the_usual_sizes_of_n(poll: float) -> None:
    """As if a new version of Firefox polled more often than expected."""
    clock = FakeClock(Disturbance(), seed=0, resolution_ns=20_000)
    events: list[Event] = []
    law = Law(host=8e3, device=25e3, fixed=1e5, poll=poll, wake=5e3)
    chain = PollingFakeChain(law, clock)
    chain.poll_ns = 100_000_000
    settings = Settings(
        seconds=1.0,
        precision=0.1,
        min_rounds=6,
        max_rounds=400,
        seed=0,
        extras=frozenset({"case"}),
    )
    measure_cases({"case": chain}, clock, settings, events.append)
    names = {e.name for e in events if isinstance(e, OneOffEntry)}
    assert "ladder" in names


class StepTrial:
    """Trial samples whose T jumps from 0 to 1 above the largest n that is done at once."""

    def __init__(self, last_below: int, max_n: int = 100) -> None:
        self.last_below = last_below
        self.chain = SimpleNamespace(max_n=max_n)

    def shortest_total(self, n: int) -> float:
        return 0.0 if n <= self.last_below else 1.0


@pytest.mark.parametrize("guess", [1, 2, 3, 4, 50])
@pytest.mark.parametrize("last_below", [0, 1, 2, 3, 40, 100])
def test_the_search_for_a_crossing_ends_wherever_it_begins(guess: int, last_below: int) -> None:
    trial: Any = StepTrial(last_below)
    bracket = bracket_crossing(trial, line_ns=0.5, low=guess, high=guess)
    if last_below >= 1:
        assert bracket.low <= last_below
    assert bracket.high > last_below or bracket.high > trial.chain.max_n
