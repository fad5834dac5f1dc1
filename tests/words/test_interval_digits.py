"""Intervals as text, over random intervals: as many digits as the width allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings, strategies as st

from overhead.results import Figure, Value
from overhead.words.format import (
    MINUS,
    between,
    ends_text,
    factor_spread,
    number,
    percent_spread,
    positive_ends_text,
    positive_spread,
    spread,
    time,
)

_NUMBER = re.compile(rf"{MINUS}?[\d,]+(?:\.\d+)?")
_SIZES = st.floats(-7, 7)
"""Powers of ten."""


@st.composite
def intervals(draw: st.DrawFn, *, positive: bool = False) -> Value:
    """A value inside an interval, whose ends may differ by many powers of ten."""
    numbers = [10 ** draw(_SIZES) for _ in range(3)]
    if not positive:
        numbers = [draw(st.sampled_from((-1, 1))) * size for size in numbers]
    low, value, high = sorted(numbers)
    return Value(value, low, high)


def numbers(text: str) -> list[float]:
    return [float(one.replace(",", "").replace(MINUS, "-")) for one in _NUMBER.findall(text)]


def last_digit(text: str) -> float:
    """The finest place of a number of the text: 0.01 for hundredths."""
    finest = 1.0
    for one in _NUMBER.findall(text):
        _, _, decimals = one.partition(".")
        finest = min(finest, 10.0 ** -len(decimals))
    return finest


def ends_in(text: str) -> str:
    """What stands in the brackets, or the whole text."""
    return text.partition("(")[2] or text


_SPREADS: list[Callable[[Value], str]] = [spread, positive_spread, factor_spread, percent_spread]
_ENDS: list[Callable[[Value], str]] = [ends_text, positive_ends_text]


@pytest.mark.parametrize("write", [*_SPREADS, *_ENDS])
@given(of=intervals(positive=True))
@example(of=Value(0.0031, 0.000005, 0.0062))
@example(of=Value(70.0, 60.0, 400.0))
@settings(max_examples=300, deadline=None)
def test_no_end_has_more_digits_than_the_width_justifies(
    write: Callable[[Value], str], of: Value
) -> None:
    scale = 100 if write is percent_spread else 1
    assert of.low is not None
    assert of.high is not None
    half_width = scale * (of.high - of.low) / 2
    # The second digit of the half-width is the last that says something. Without a width, the
    # fourth of the number.
    finest = max(half_width / 100, scale * of.high / 1e4)
    assert last_digit(ends_in(write(of))) >= min(finest, 1.0)


@pytest.mark.parametrize("write", _SPREADS)
@given(of=intervals(positive=True))
@example(of=Value(70.0, 60.0, 400.0))
@example(of=Value(3.0, 0.2, 110.0))
@settings(max_examples=300, deadline=None)
def test_the_ends_contain_the_value_as_printed(write: Callable[[Value], str], of: Value) -> None:
    value, *ends = numbers(write(of))
    assert value > 0
    assert ends[0] <= value or len(ends) == 1
    assert value <= ends[-1]


@given(of=intervals())
@settings(max_examples=300, deadline=None)
def test_an_interval_around_zero_is_written_at_one_place(of: Value) -> None:
    value, low, high = numbers(spread(of)) if of.value < 0 or of.floor < 0 else (0.0, 0.0, 0.0)
    assert low <= value <= high


@pytest.mark.parametrize("write", [positive_spread, factor_spread, positive_ends_text])
@given(of=intervals(positive=True))
@settings(max_examples=300, deadline=None)
def test_an_end_is_rounded_to_nearest_or_said_to_be_unknown(
    write: Callable[[Value], str], of: Value
) -> None:
    text = ends_in(write(of))
    shown = numbers(text)
    high = of.ceiling
    # Two digits of the half-width are within 5 % of it, and of four digits the last within 0.05 %.
    near = max((high - of.floor) / 2 / 2, high * 1e-3)
    assert math.isclose(shown[-1], high, abs_tol=near)
    if len(shown) == 2:
        assert math.isclose(shown[0], of.floor, abs_tol=near)


def test_the_low_end_has_no_digits_beyond_those_of_the_interval() -> None:
    shown = positive_spread(Value(0.0031, 0.000005, 0.0062))
    assert numbers(shown) == [0.0031, 0.0062]
    assert numbers(positive_spread(Value(3.0, 0.2, 110.0))) == [3, 110]
    assert numbers(positive_ends_text(Value(3.0, 0.2, 110.0))) == [110]
    assert numbers(between(0.0002, 110.0)) == [0, 110]


def test_a_share_with_an_upper_end_alone_has_the_digits_of_that_end() -> None:
    assert numbers(percent_spread(Value(0.41, None, 0.8))) == [40, 80]


def test_a_value_is_never_printed_as_zero_where_it_is_surely_above() -> None:
    assert numbers(number(Value(3.0, 0.2, 110.0))) == [3]


def test_a_time_that_may_be_negative_keeps_both_ends() -> None:
    fixed = Figure(name="fixed", unit="ns", value=-3100, low=-4000, high=-2200, processes=3)
    assert numbers(time(fixed)) == [-3.1, -4.0, -2.2]
