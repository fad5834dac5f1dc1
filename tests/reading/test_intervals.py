"""Test arithmetic on values with intervals."""

from __future__ import annotations

import pytest

from overhead.results import Value, ratio


@pytest.mark.parametrize(("least", "high"), [(1.0, 8.0), (0.0, None)])
def test_a_ratio_has_the_widest_possible_interval(least: float, high: float | None) -> None:
    assert ratio(Value(6.0, 5.0, 8.0), Value(2.0, least, 4.0)) == Value(3.0, 1.25, high)


@pytest.mark.parametrize("first", [None, Value(0.0, -1.0, 1.0), Value(-2.0, -3.0, -1.0)])
def test_a_ratio_needs_two_values_above_zero(first: Value | None) -> None:
    assert ratio(first, Value(1.0)) is None
    assert ratio(Value(1.0), first) is None


def test_the_share_saved_is_one_minus_the_inverse_ratio() -> None:
    assert Value(2.0, 1.0, 4.0).share_saved == Value(0.5, 0.0, 0.75)
    assert Value(2.0, -1.0, None).share_saved == Value(0.5, None, None)
