"""Test arithmetic on values with intervals."""

from __future__ import annotations

import pytest

from overhead.reading.intervals import Span, ratio, span
from tests.fakes.report import figure


def test_a_ratio_has_the_widest_possible_interval() -> None:
    assert ratio(Span(6.0, 5.0, 8.0), Span(2.0, 1.0, 4.0)) == Span(3.0, 1.25, 8.0)


@pytest.mark.parametrize("first", [None, Span(0.0, -1.0, 1.0), Span(-2.0, -3.0, -1.0)])
def test_a_ratio_needs_two_values_above_zero(first: Span | None) -> None:
    assert ratio(first, Span(1.0)) is None
    assert ratio(Span(1.0), first) is None


def test_a_divisor_that_may_be_zero_gives_a_ratio_without_an_upper_end() -> None:
    found = ratio(Span(6.0, 5.0, 8.0), Span(2.0, 0.0, 4.0))
    assert found == Span(3.0, 1.25, None)
    assert found.two_sided == Span(3.0)


def test_the_share_saved_is_one_minus_the_inverse_ratio() -> None:
    assert Span(2.0, 1.0, 4.0).share_saved == Span(0.5, 0.0, 0.75)
    assert Span(2.0, -1.0, None).share_saved == Span(0.5, None, None)


def test_a_figure_without_a_value_has_no_span() -> None:
    assert span(figure("complete", None, "failed")) is None
    assert span(figure("complete", 100.0, width=0.5)) == Span(100.0, 50.0, 150.0)
