"""Numbers of one, none and no width, in words."""

from __future__ import annotations

import msgspec
import pytest

from overhead.results import Figure, Value
from overhead.runner.events import AnswersCame
from overhead.words.checking import summary
from overhead.words.fleet import all_nodes
from overhead.words.format import factor, micro_spread, rounds_to_one
from overhead.words.runner import step


def test_the_range_of_one_process_is_not_shown() -> None:
    of_one = Figure(name="met", unit="ns", value=27.18, low=27.18, high=27.18, processes=1)
    without_range = msgspec.structs.replace(of_one, low=None, high=None)
    of_two = msgspec.structs.replace(of_one, low=27.0, processes=2)
    assert micro_spread(of_one) == micro_spread(without_range)
    assert micro_spread(of_one) != micro_spread(of_two)


@pytest.mark.parametrize(
    "times", [Value(1.04, 0.7, 1.4), Value(1.004, 0.99, 1.02), Value(1.04, 1.03, 1.05), Value(1.5)]
)
def test_a_ratio_that_rounds_to_one_is_told_from_others(times: Value) -> None:
    shown_as_one = not factor(times).strip("10.×")
    assert rounds_to_one(times) == shown_as_one


def test_a_run_that_waits_for_nothing_names_nothing() -> None:
    for_nothing = step(AnswersCame(answered=2, asked=2, running=[]))
    for_numpy = step(AnswersCame(answered=2, asked=2, running=["numpy"]))
    assert for_nothing != for_numpy
    assert ";" not in for_nothing


def test_one_warning_is_singular() -> None:
    assert "warnings" not in summary({}, 1)
    assert "warnings" in summary({}, 2)


def test_no_false_alarms_are_expected_where_no_node_is_judged() -> None:
    assert len(all_nodes([], 0.0)) < len(all_nodes([], 0.1))
