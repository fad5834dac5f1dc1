"""Which rounds and processes count: the reference loop decides."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.fitting.undisturbed_rounds import slow_rounds
from overhead.results import codes_of
from tests.fakes.chains import one_off_line, one_round, with_reference_loops
from tests.fakes.reasons import values_of


@pytest.mark.parametrize(("last_ns", "reference_us"), [(720.0, 140), (720.0, 112), (510.0, 85)])
def test_a_process_at_another_processor_clock_is_left_out_and_the_figure_says_so(
    last_ns: float, reference_us: int
) -> None:
    slopes = (600.0, 602.0, 598.0, 601.0, last_ns)
    found = estimate(
        with_reference_loops(slopes=slopes, loops_us=(100, 102, 99, 101, reference_us)),
        precision=0.03,
    )["complete"]
    assert found.status == "ok"
    assert found.processes == 4
    assert found.value == pytest.approx(600.25), "the mean of the first four"
    assert values_of(found.rule, "rounds-left-out")["share"] == pytest.approx(0.2)
    fixed = estimate(
        with_reference_loops(slopes=slopes, loops_us=(100, 102, 99, 101, reference_us)),
        precision=0.03,
    )["fixed"]
    assert fixed.processes == 4
    assert "rounds-left-out" in codes_of(fixed.rule)


@pytest.mark.parametrize("last_ns", [720.0, 510.0])
def test_a_process_with_another_cost_at_the_usual_processor_clock_counts(last_ns: float) -> None:
    slopes = (600.0, 602.0, 598.0, 601.0, last_ns)
    calm = estimate(
        with_reference_loops(slopes=slopes, loops_us=(100, 102, 99, 101, 104)), precision=0.03
    )["complete"]
    assert calm.status == "noisy"
    assert calm.processes == 5
    assert "rounds-left-out" not in codes_of(calm.rule)


def test_no_process_is_left_out_if_half_of_them_were_slow() -> None:
    found = estimate(
        with_reference_loops(slopes=(600.0, 600.0, 720.0, 722.0), loops_us=(100, 100, 118, 118)),
        precision=0.03,
    )["complete"]
    assert found.processes == 4
    assert "rounds-left-out" not in codes_of(found.rule)


@pytest.mark.parametrize("last", [603.0, 540.0, 720.0])
def test_the_value_of_the_figure_does_not_affect_what_is_left_out(last: float) -> None:
    """Otherwise its interval would be too narrow."""
    found = estimate(
        with_reference_loops(
            slopes=(600.0, 602.0, 598.0, 601.0, last), loops_us=(100, 102, 99, 101, 140)
        ),
        precision=0.03,
    )["complete"]
    assert found.processes == 4


def test_no_round_is_left_out_if_the_wait_polls() -> None:
    made = with_reference_loops(
        slopes=(600.0, 602.0, 598.0, 601.0, 720.0), loops_us=(100, 102, 99, 101, 140)
    )
    polled = [replace(p, one_off={"wait_quantum": one_off_line([10.0])}) for p in made.processes]
    assert estimate(replace(made, processes=polled), precision=0.03)["complete"].processes == 5


def test_slow_rounds_are_left_out_but_not_their_process() -> None:
    made = with_reference_loops(slopes=(600.0, 602.0, 598.0), loops_us=(100, 101, 99))
    slow = with_reference_loops(slopes=(750.0, 750.0, 750.0), loops_us=(130, 130, 130))
    mixed: list[Process] = []
    for index in (0, 1, 2, 0):
        usual = made.processes[index]
        slow_round = msgspec.structs.replace(slow.processes[index].rounds[0], round=100)
        mixed.append(replace(usual, rounds=[*usual.rounds, slow_round]))
    found = estimate(replace(made, processes=mixed), precision=0.03)["complete"]
    assert found.status == "ok"
    assert found.processes == 4
    assert found.value == pytest.approx(600.0, rel=0.002)


def test_a_process_without_rounds_does_not_affect_which_are_slow() -> None:
    made = with_reference_loops(
        slopes=(600.0, 602.0, 598.0, 601.0, 720.0), loops_us=(100, 102, 99, 101, 140)
    )
    cut = replace(
        made,
        processes=[
            *made.processes,
            Process([], one_off={"ladder": one_off_line([0.0, 1.0])}, number=5),
        ],
    )
    assert estimate(cut, precision=0.03)["complete"] == estimate(made, precision=0.03)["complete"]


def test_a_process_whose_slow_rounds_alone_have_cpu_times_still_has_a_host_figure() -> None:
    made = with_reference_loops(slopes=(600.0, 602.0, 598.0, 601.0), loops_us=(100, 101, 99, 100))
    with_cpu_time = [[4, 2_400, 12_400, 400], [8, 4_800, 14_800, 800]]
    processes: list[Process] = []
    for process in made.processes:
        first, *others = process.rounds
        samples = [*first.samples, *with_cpu_time]
        slow = msgspec.structs.replace(first, samples=samples, canary=(80_000, 1))
        processes.append(replace(process, rounds=[slow, *others]))
    found = estimate(replace(made, processes=processes), precision=0.03)
    assert found["host"].processes == found["complete"].processes == 4


def test_a_figure_with_two_speeds_says_which_share_of_the_rounds_is_left_out() -> None:
    """The reference loop of every tenth round takes 80 us in place of 50."""
    dice = np.random.default_rng(0)
    processes = []
    for process in range(4):
        rounds = []
        for number in range(30):
            slope = (600 if number % 2 else 1_200) * dice.normal(1, 0.003)
            reference_ns = 80_000 if number % 10 == 9 else 50_000
            rows = [[n, round(slope * n), round(slope * n) + 10_000] for n in (1, 64, 128, 256)]
            rounds.append(one_round(rows, canary=(reference_ns, 50_000), number=number))
        processes.append(Process(rounds, number=process))
    found = estimate(Series(processes, synchronous=True), precision=0.03)
    assert found["complete"].status == "bimodal"
    for name in ("complete", "fixed"):
        assert values_of(found[name].rule, "rounds-left-out")["share"] == pytest.approx(0.1)


def test_a_round_is_slow_for_its_process_and_a_process_is_slow_among_all_processes() -> None:
    """From the reference loops of the rounds of each process, us."""
    calm = np.array([100.0, 101.0, 99.0, 102.0, 108.0])
    calms = [calm, 1.01 * calm, 0.99 * calm]
    with_two_slow_rounds = np.append(calm, [115.0, 160.0])
    *of_calms, spell, drifted, slow, fast = slow_rounds(
        [*calms, with_two_slow_rounds, 1.04 * calm, 1.5 * calm, 0.86 * calm]
    )
    assert not np.any(of_calms)
    assert spell.tolist() == [False] * 5 + [True] * 2
    assert not drifted.any()
    assert slow.all()
    assert fast.all()


def test_every_process_counts_if_there_is_no_usual_clock() -> None:
    calm = np.array([100.0, 101.0, 99.0, 102.0, 108.0])
    assert not np.any(slow_rounds([calm, 1.15 * calm, 1.3 * calm]))
    assert not np.any(slow_rounds([calm, calm, 1.15 * calm, 1.15 * calm]))
    assert not np.any(slow_rounds([pace * calm for pace in (0.86, 0.94, 1.0, 1.05, 1.12, 1.2)]))


def test_the_quietest_rounds_of_a_process_always_count() -> None:
    few, third = slow_rounds(
        [np.array([100.0, 150.0, 160.0, 400.0]), np.array([100.0, *np.linspace(150, 400, 11)])]
    )
    assert few.tolist() == [False, False, False, True]
    assert np.count_nonzero(~third) == 4
