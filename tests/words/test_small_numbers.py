"""Numbers of one, none and no width, in words."""

from __future__ import annotations

import pytest

from overhead.results import Value
from overhead.runner.events import AnswersCame
from overhead.words.checking import summary
from overhead.words.fleet import all_nodes
from overhead.words.format import factor, rounds_to_one, spread
from overhead.words.runner import step


def test_an_interval_without_width_is_not_shown() -> None:
    assert spread(Value(27.18, 27.18, 27.18)) == spread(Value(27.18))
    assert spread(Value(27.18, 27.17, 27.19)) != spread(Value(27.18))


@pytest.mark.parametrize(
    "times", [Value(1.04, 0.7, 1.4), Value(1.004, 0.99, 1.02), Value(1.04, 1.03, 1.05), Value(1.5)]
)
def test_a_ratio_that_rounds_to_one_is_told_from_others(times: Value) -> None:
    shown_as_one = not factor(times).strip("10.×")
    assert rounds_to_one(times) == shown_as_one


def test_a_run_that_waits_for_nothing_names_nothing() -> None:
    assert step(AnswersCame(2, 2, [])) != step(AnswersCame(2, 2, ["numpy"]))
    assert ";" not in step(AnswersCame(2, 2, []))


def test_one_warning_is_singular() -> None:
    assert "warnings" not in summary({}, 1)
    assert "warnings" in summary({}, 2)


def test_no_false_alarms_are_expected_where_no_node_is_judged() -> None:
    assert len(all_nodes([], 0.0)) < len(all_nodes([], 0.1))
