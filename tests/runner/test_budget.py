"""The sampling time is divided evenly, never exceeds the plan, and each case that is left out has a
reason.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from overhead.profiles import PROFILES, WEIGHT, Plan
from overhead.runner.schedule import MAX_TIMES_NEED, Allotment, Candidate, allot

TIGHT = Plan(processes=3, precision=0.1, sampling_s=9.0, wall_s=60.0, case_s=0.5)


def names(count: int, cost: str = "fast") -> list[Candidate]:
    return [Candidate(f"case {i}", cost) for i in range(count)]  # type: ignore[arg-type]


def test_a_target_with_many_cases_does_not_take_the_time_of_the_others() -> None:
    found = allot({"long": names(50), "short": names(2)}, TIGHT)
    assert len(found.cases["short"]) == 2
    assert list(found.cases["long"]) == ["case 0", "case 1", "case 2", "case 3"]
    assert [case for target, case, _ in found.left_out] == [f"case {i}" for i in range(4, 50)]
    assert found.left_out[0][2].code == "over-budget"
    assert found.left_out[0][2].values["budget_s"] == 9.0


def test_early_cases_of_every_target_come_before_all_others() -> None:
    targets = {"long": [Candidate(f"case {i}", early=i < 5) for i in range(9)], "short": names(9)}
    found = allot(targets, TIGHT)
    assert list(found.cases["long"]) == [f"case {i}" for i in range(5)]
    assert list(found.cases["short"]) == ["case 0"]


def test_time_left_over_is_divided_in_proportion_up_to_a_limit() -> None:
    found = allot({"a": [Candidate("quick"), Candidate("page", "slow")]}, TIGHT)
    assert found.cases["a"]["page"] == WEIGHT["slow"] * found.cases["a"]["quick"]
    assert found.seconds("a") == pytest.approx(3.0)
    alone = allot({"a": names(1)}, TIGHT)
    assert alone.seconds("a") == MAX_TIMES_NEED * TIGHT.case_s
    assert alone.seconds("nobody") == 0.0


def test_cheap_cases_get_the_time_of_an_expensive_case_that_does_not_fit() -> None:
    found = allot({"a": [Candidate("poll", "polling"), *names(3)]}, replace(TIGHT, sampling_s=6.0))
    assert list(found.cases["a"]) == ["case 0", "case 1", "case 2"]
    assert [case for _, case, _ in found.left_out] == ["poll"]


def test_a_target_with_polling_cases_first_runs_in_fewer_processes() -> None:
    room = TIGHT.case_s * (3 + WEIGHT["polling"] + 9)
    plan = replace(TIGHT, processes_by_cost={"polling": 1}, sampling_s=room)
    found = allot({"a": names(1), "page": [Candidate("poll", "polling"), *names(9)]}, plan)
    assert found.processes == {"a": 3, "page": 1}
    assert len(found.cases["page"]) == 10
    assert found.seconds("a") * 3 + found.seconds("page") <= room * (1 + 1e-9)


def test_without_a_time_limit_every_case_is_measured() -> None:
    found = allot({"a": names(500)}, PROFILES["thorough"])
    assert len(found.cases["a"]) == 500
    assert not found.left_out
    assert allot({}, TIGHT) == Allotment({})


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.lists(st.sampled_from(sorted(WEIGHT)), max_size=60).map(
            lambda costs: [Candidate(f"case {i}", cost) for i, cost in enumerate(costs)]
        ),
    ),
    st.sampled_from(["quick", "default"]),
)
def test_no_profile_exceeds_its_time_and_every_case_is_measured_or_listed_as_left_out(
    targets: dict[str, list[Candidate]], profile: str
) -> None:
    plan = PROFILES[profile]
    found = allot(targets, plan)
    assert sum(found.seconds(t) * n for t, n in found.processes.items()) <= (
        plan.sampling_s or 0
    ) * (1 + 1e-9)
    for target, candidates in targets.items():
        taken = list(found.cases[target])
        left = [case for where, case, reason in found.left_out if where == target and reason]
        assert sorted(taken + left) == sorted(c.key for c in candidates)
        assert all(
            found.cases[target][c.key] >= plan.case_s * WEIGHT[c.cost] * 0.999
            for c in candidates
            if c.key in taken
        )
