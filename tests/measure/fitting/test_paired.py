"""Differences and ratios of cases that alternated, and what a family of patterns tells of each part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from overhead.measure.fitting.case_figures import Process, Round, Series, estimate, marginal, paired
from overhead.measure.fitting.one_process import by_round
from overhead.measure.fitting.paired import PARTS, counts_of
from tests.fakes.chains import at_canaries, lines, series, with_canaries
from tests.fakes.machine import Disturbance, Law


def test_pairs_are_formed_round_by_round_within_a_process() -> None:
    found = paired(lines(600.0, 900.0, 1_200.0), lines(300.0, 450.0, 600.0), "complete", 0.03)
    assert found.ratio.value == pytest.approx(2.0)
    assert found.ratio.status == "ok"
    assert found.ratio.unit == "ratio"
    assert found.difference.value == pytest.approx(450.0)
    assert found.difference.status == "noisy"


def test_differences_ratios_and_families_are_said_at_their_canary() -> None:
    paces = (0.91, 0.95, 1.0, 1.02, 1.04, 1.09, 0.99)
    family = {
        name: at_canaries([cost * pace for pace in paces], [6e4 * pace for pace in paces])
        for name, cost in (("per-submit", 6_000.0), ("one-pass", 600.0))
    }
    found = paired(family["per-submit"], family["one-pass"], "complete", 0.01)
    parts = marginal(family, 0.01, figure="issue")
    for one in (found.difference, found.ratio, parts["per_dispatch"]):
        assert "where the canary's loop takes 60.0 us" in one.rule
        assert one.status == "ok"
    bare = {name: replace(s, processes=[replace(p, pace=0.0) for p in s.processes]) for name, s in family.items()}
    assert paired(bare["per-submit"], bare["one-pass"], "complete", 0.01).difference.status == "noisy"


def test_a_negative_difference_stays_negative_and_is_not_separable() -> None:
    found = paired(lines(300.0, 301.0, 302.0), lines(400.0, 401.0, 402.0), "issue", 0.03).difference
    assert found.value == pytest.approx(-50.0)
    assert found.status == "noisy"
    assert found.reason.startswith("not separable")


def test_pairs_are_formed_of_the_processes_that_both_took_part_in() -> None:
    a, b = lines(600.0, 900.0, 1_200.0, 5_000.0), lines(300.0, 450.0, 600.0, 700.0)
    lacking = replace(b, processes=[p for p in b.processes if p.number != 3][::-1])
    found = paired(a, lacking, "complete", 0.03).ratio
    assert found.value == pytest.approx(2.0)
    assert found.processes == 3
    family = {"per-submit": a, "one-pass": lacking}
    assert marginal(family, figure="issue")["per_dispatch"].processes == 3
    assert marginal(dict(reversed(family.items())), figure="issue")["per_dispatch"].processes == 3
    with pytest.raises(ValueError, match="one number"):
        paired(replace(a, processes=[a.processes[0]] * 2), b, "complete")


def test_pairs_without_a_common_round_say_so() -> None:
    early = lines(300.0, 300.0)
    late = Series([replace(p, rounds=[replace(r, number=r.number + 100) for r in p.rounds]) for p in early.processes])
    found = paired(early, late, "complete")
    assert found.difference.status == found.ratio.status == "failed"


@pytest.mark.slow
def test_paired_speeds_cancel_although_processes_differ() -> None:
    weather = Disturbance(spread=0.05, preemptions=0.0)
    a = series(Law(host=2_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005), weather, processes=4)
    b = series(Law(host=1_000.0, device=0.0, synchronous=True, fixed=0.0, jitter=0.005), weather, processes=4)
    bare = replace(a, processes=[replace(p, rounds=[replace(r, canary=[]) for r in p.rounds]) for p in a.processes])
    assert estimate(bare, 0.03)["complete"].status == "noisy"
    assert paired(a, b, "complete").ratio.value == pytest.approx(2.0, rel=0.005)


def test_a_family_gives_what_each_thing_adds() -> None:
    costs = np.array([9_000.0, 2_000.0, 400.0, 150.0])
    names = ("per-submit", "per-k 4", "per-k 16", "per-pass", "one-pass", "one-pass rotated")
    family = {}
    for name in names:
        each = float(np.dot(counts_of(name), costs))
        family[name] = lines(*(2 * each * f for f in (1.0, 1.01, 0.99)))
    found = marginal(family, figure="issue")
    assert tuple(found) == PARTS
    assert [found[part].value for part in PARTS] == pytest.approx(list(costs), rel=0.02)
    family.pop("one-pass rotated")
    assert marginal(family, figure="issue")["per_bind"].status == "unavailable"
    with pytest.raises(KeyError):
        marginal({"fused": family["one-pass"]})


def test_an_api_without_passes_tells_its_submission_from_two_patterns() -> None:
    family = {"per-submit": lines(20_000.0, 20_100.0, 19_900.0), "one-pass": lines(2_000.0, 2_010.0, 1_990.0)}
    assert marginal(family, figure="issue")["per_submit"].status == "unavailable"
    found = marginal(family, figure="issue", passes=False)
    assert found["per_submit"].value == pytest.approx(9_000.0)
    assert found["per_dispatch"].value == pytest.approx(1_000.0)
    assert (found["per_pass"].status, found["per_pass"].reason) == ("unavailable", "this API has no passes")


def test_a_family_without_numbers_tells_nothing() -> None:
    bare = Series([Process([Round([[1, 5, 9]] * 9)])] * 2)
    assert {e.status for e in marginal({"per-submit": bare, "one-pass": bare}).values()} == {"unavailable"}


def test_a_cost_that_may_be_nothing_is_not_separable() -> None:
    names = {"per-submit": 10_000.0, "per-pass": 1_000.0, "one-pass": 1_001.0, "per-k 16": 1_600.0}
    found = marginal({n: lines(*(2 * v * f for f in (1.0, 1.001, 0.999))) for n, v in names.items()}, figure="issue")
    assert found["per_pass"].status == "noisy"
    assert "not separable" in found["per_pass"].reason


def test_pairs_are_formed_of_rounds_that_were_quiet_on_both_sides() -> None:
    """A slow round makes a difference longer than the figures it is of, which leave such rounds out."""
    calm, slow = (100, 101, 99, 100), (100, 101, 99, 160)
    of, against = (600.0, 600.0, 600.0, 960.0), (300.0, 300.0, 300.0, 480.0)
    found = paired(with_canaries(of, slow), with_canaries(against, calm), "complete")
    assert found.difference.value == pytest.approx(300.0)
    assert (found.difference.status, found.difference.processes) == ("ok", 3)
    few = paired(with_canaries(of[:2], slow[2:]), with_canaries(against[:2], calm[2:]), "complete")
    assert few.difference.processes == 2
    family = {"per-submit": with_canaries(of, slow), "one-pass": with_canaries(against, calm)}
    assert marginal(family, figure="issue")["per_dispatch"].processes == 3


def test_pairs_without_enough_quiet_rounds_in_common_are_formed_of_all() -> None:
    """Where one side's slow processes are the other's quiet ones."""
    early, late = (150, 100, 101, 100), (100, 101, 100, 150)
    of, against = with_canaries((600.0,) * 4, early), with_canaries((300.0,) * 4, late)
    assert paired(of, against, "complete").difference.processes == 4
    assert marginal({"per-submit": of, "one-pass": against}, figure="issue")["per_dispatch"].processes == 4


@pytest.mark.slow
def test_host_differences_are_told_by_every_round() -> None:
    """The CPU clock is read in few samples; what is deferred into the wait is taken of the whole process."""
    a = series(Law(host=2_000.0, device=10.0, fixed=20_000.0, deferred=500.0, jitter=0.01), processes=4)
    b = series(Law(host=1_000.0, device=10.0, fixed=20_000.0, deferred=200.0, jitter=0.01), processes=4)
    for process in a.processes:
        assert by_round(process, a, "host", None).keys() == {r.number for r in process.rounds}
    assert paired(a, b, "host").difference.value == pytest.approx(1_300.0, rel=0.01)
