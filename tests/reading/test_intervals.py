"""Test arithmetic on values with intervals."""

from __future__ import annotations

import pytest

from overhead.results import Value, ratio
from tests.fakes.report import figure


def test_a_ratio_of_two_values_has_the_widest_possible_interval() -> None:
    assert ratio(Value(6.0, 5.0, 8.0), Value(2.0, 1.0, 4.0)) == Value(3.0, 1.25, 8.0)


@pytest.mark.parametrize("first", [None, Value(0.0, -1.0, 1.0), Value(-2.0, -3.0, -1.0)])
def test_a_ratio_needs_two_values_above_zero(first: Value | None) -> None:
    assert ratio(first, Value(1.0)) is None
    assert ratio(Value(1.0), first) is None


def test_a_divisor_that_may_be_zero_gives_a_ratio_without_an_upper_end() -> None:
    found = ratio(Value(6.0, 5.0, 8.0), Value(2.0, 0.0, 4.0))
    assert found == Value(3.0, 1.25, None)


def test_the_share_saved_is_one_minus_the_inverse_ratio() -> None:
    assert Value(2.0, 1.0, 4.0).share_saved == Value(0.5, 0.0, 0.75)
    assert Value(2.0, -1.0, None).share_saved == Value(0.5, None, None)


def test_a_figure_without_a_value_has_no_value_to_show() -> None:
    assert figure("complete", None, "failed").measured is None
    assert figure("complete", 100.0, width=0.5).measured == Value(100.0, 50.0, 150.0)
