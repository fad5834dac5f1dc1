"""The time left of ``overhead contention`` comes true, on a fake clock."""

from __future__ import annotations

import pytest

from overhead.contention.plan import ContentionPlan
from overhead.contention.time_left import ContentionTimeLeft
from overhead.runner.progress import Listener

PLAN = ContentionPlan(sets=4, seconds=1000.0)


@pytest.mark.parametrize(
    "takes_s",
    [(6.0, 6.0, 6.0), (9.0, 9.0, 9.0), (3.0, 5.0, 4.0)],
    ids=["as planned", "longer", "shorter"],
)
def test_the_time_left_of_sets_that_take_longer_or_shorter_than_planned(
    takes_s: tuple[float, ...],
) -> None:
    """``takes_s``: of each group of sets, how long one of its sets takes."""
    planned_s = 6.0
    now_s = 0.0
    told: list[tuple[float, float]] = []

    class Told(Listener):
        def left(self, seconds: float) -> None:
            told.append((now_s, seconds))

    time_left = ContentionTimeLeft(PLAN, [planned_s] * len(takes_s), Told(), clock=lambda: now_s)
    time_left.tell()
    for at, set_s in enumerate(takes_s):
        time_left.begin_group(at)
        for _ in range(PLAN.sets):
            time_left.begin_set()
            for _ in range(3):
                now_s += set_s / 3
                time_left.tell()
            time_left.end_set()
            time_left.tell()
    ended_s = PLAN.sets * sum(takes_s)
    assert told[0] == (0.0, PLAN.sets * planned_s * len(takes_s))
    for at_s, left_s in told:
        if at_s > ended_s / 4:  # by then it knows how long some sets took
            assert at_s + left_s == pytest.approx(ended_s, rel=0.3)
    assert told[-1][1] == pytest.approx(0.0, abs=0.01)


def test_groups_that_the_time_of_the_plan_leaves_out_are_not_waited_for() -> None:
    told: list[float] = []

    class Told(Listener):
        def left(self, seconds: float) -> None:
            told.append(seconds)

    plan = ContentionPlan(seconds=30.0)
    nine_groups_s = [10.0] * 9  # a set of each takes 10 s, so three sets fill the time of the plan
    ContentionTimeLeft(plan, nine_groups_s, Told(), clock=lambda: 0.0).tell()
    assert told == [30.0]
