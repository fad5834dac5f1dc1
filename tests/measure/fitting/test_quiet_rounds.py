"""Which rounds and processes count, told by the canary alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.data import OneOff, Process, Round, Series
from tests.fakes.chains import with_canaries


@pytest.mark.parametrize(("last", "canary"), [(720.0, 140), (720.0, 112), (510.0, 85)])
def test_a_process_at_another_clock_is_left_out_and_said(last: float, canary: int) -> None:
    slopes = (600.0, 602.0, 598.0, 601.0, last)
    found = estimate(with_canaries(slopes, (100, 102, 99, 101, canary)), 0.03)["complete"]
    assert (found.status, found.processes) == ("ok", 4)
    assert found.value == pytest.approx(600.25)
    assert "20% of the rounds are left out" in found.rule
    fixed = estimate(with_canaries(slopes, (100, 102, 99, 101, canary)), 0.03)["fixed"]
    assert (fixed.processes, "left out" in fixed.rule) == (4, True)
    calm = estimate(with_canaries(slopes, (100, 102, 99, 101, 104)), 0.03)["complete"]
    assert (calm.status, calm.processes) == ("noisy", 5)
    assert "left out" not in calm.rule


def test_no_process_is_left_out_where_half_of_them_were_slow() -> None:
    found = estimate(with_canaries((600.0, 600.0, 720.0, 722.0), (100, 100, 118, 118)), 0.03)["complete"]
    assert found.processes == 4
    assert "left out" not in found.rule


@pytest.mark.parametrize("last", [603.0, 540.0, 720.0])
def test_the_figure_has_no_say_in_what_is_left_out(last: float) -> None:
    """Or its interval would be narrow by choice."""
    found = estimate(with_canaries((600.0, 602.0, 598.0, 601.0, last), (100, 102, 99, 101, 140)), 0.03)["complete"]
    assert found.processes == 4


def test_rounds_behind_a_polling_wait_are_too_few_to_leave_any_out() -> None:
    made = with_canaries((600.0, 602.0, 598.0, 601.0, 720.0), (100, 102, 99, 101, 140))
    polled = [replace(p, one_off={"wait_quantum": OneOff([10.0])}) for p in made.processes]
    assert estimate(replace(made, processes=polled), 0.03)["complete"].processes == 5


def test_a_slow_spell_within_a_process_costs_its_rounds_alone() -> None:
    made = with_canaries((600.0, 602.0, 598.0), (100, 101, 99))
    slow = with_canaries((750.0, 750.0, 750.0), (130, 130, 130))
    mixed = replace(
        made,
        processes=[
            replace(p, rounds=[*p.rounds, *[replace(r, number=r.number + 100) for r in q.rounds[:1]]])
            for p, q in zip([*made.processes, made.processes[0]], [*slow.processes, slow.processes[0]], strict=True)
        ],
    )
    found = estimate(mixed, 0.03)["complete"]
    assert (found.status, found.processes) == ("ok", 4)
    assert found.value == pytest.approx(600.0, rel=0.002)


def test_a_process_without_rounds_has_no_say_in_which_are_slow() -> None:
    made = with_canaries((600.0, 602.0, 598.0, 601.0, 720.0), (100, 102, 99, 101, 140))
    cut = replace(made, processes=[*made.processes, Process([], {"ladder": OneOff([0.0, 1.0])}, number=5)])
    assert estimate(cut, 0.03)["complete"] == estimate(made, 0.03)["complete"]


def test_host_is_not_lost_with_the_rounds_that_are_left_out() -> None:
    """Where the CPU clock was read in slow rounds alone."""
    made = with_canaries((600.0, 602.0, 598.0, 601.0), (100, 101, 99, 100))
    n = 4
    cpu = [[n, n * 600, n * 600 + 10_000, n * 100], [2 * n, n * 1_200, n * 1_200 + 10_000, n * 200]]
    processes = [
        replace(p, rounds=[replace(r, samples=[*r.samples, *cpu], canary=(80_000, 1)) if i == 0 else r
                           for i, r in enumerate(p.rounds)])
        for p in made.processes
    ]  # fmt: skip
    found = estimate(replace(made, processes=processes), 0.03)
    assert found["host"].processes == found["complete"].processes == 4


def test_two_speeds_of_quiet_rounds_say_what_was_left_out() -> None:
    dice = np.random.default_rng(0)
    processes = []
    for process in range(4):
        rounds = []
        for number in range(30):
            slope = (600 if number % 2 else 1_200) * dice.normal(1, 0.003)
            canary = 80_000 if number % 10 == 9 else 50_000
            rows = [[n, round(slope * n), round(slope * n) + 10_000] for n in (1, 64, 128, 256)]
            rounds.append(Round(rows, (canary, 50_000), number))
        processes.append(Process(rounds, number=process))
    found = estimate(Series(processes, synchronous=True), 0.03)
    assert found["complete"].status == "bimodal"
    assert "10% of the rounds are left out" in found["complete"].rule
    assert "10% of the rounds are left out" in found["fixed"].rule
