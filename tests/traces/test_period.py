"""The part of a sequence of names that repeats until its end."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from overhead.traces.period import Period, repeating_part


def found(names: list[int]) -> Period | None:
    return repeating_part(np.array(names, dtype=np.int32))


def model(layers: int, layer: list[int], head: list[int]) -> list[int]:
    """The kernels of one pass through a model."""
    return [90, 91, *layer * layers, *head]


LAYER = [1, 2, 3, 4, 5, 4, 6, 2, 7, 8, 7, 9, 10]


def test_a_loop_repeats_until_the_end() -> None:
    assert found([1, 2, 3, 4] * 5) == Period(length=4, start=0, repetitions=5)


def test_a_start_that_differs_is_left_out() -> None:
    warm_up = [50, 51, 1, 52, 2, 3, 53, 4]
    assert found(warm_up + [1, 2, 3, 4] * 6) == Period(4, start=8, repetitions=6)


@pytest.mark.parametrize("times", [1, 2])
def test_three_repetitions_are_the_least(times: int) -> None:
    assert found([1, 2, 3, 4, 5, 6] * times) is None
    assert found([1, 2, 3, 4, 5, 6] * 3) is not None


def test_the_layers_of_one_pass_are_no_steps() -> None:
    assert found(model(36, LAYER, [1, 80])) is None
    assert found(model(36, LAYER * 10, [1, 80])) is None


def test_of_several_passes_the_pass_repeats_and_not_the_layer() -> None:
    one = model(12, LAYER, [1, 80])
    assert found(one * 5) == Period(len(one), start=0, repetitions=5)


def test_a_recording_that_ends_between_two_layers_has_the_pass_or_nothing() -> None:
    one = model(12, LAYER, [1, 80])
    cut = one * 5 + one[: 2 + 8 * len(LAYER)]
    period = found(cut)
    assert period is not None
    assert period.length == len(one)


def test_few_other_kernels_in_a_step_do_not_hide_it() -> None:
    generator = random.Random(1)
    names = list(range(200)) * 10
    for index in generator.sample(range(2000 - 300), 17):
        names[index] = 999
    period = found(names)
    assert period is not None
    assert period.length == 200


@pytest.mark.parametrize("names", [[], [1], [1, 2], list(range(1000))])
def test_without_a_repetition_there_is_no_period(names: list[int]) -> None:
    assert found(names) is None


def test_random_names_have_no_period() -> None:
    generator = random.Random(2)
    for _ in range(20):
        assert found([generator.randrange(12) for _ in range(500)]) is None


def test_a_long_sequence_is_searched_in_a_second() -> None:
    generator = random.Random(3)
    start = time.perf_counter()
    found([generator.randrange(20) for _ in range(463_000)])
    found(model(36, LAYER, [1, 80]) * 900)
    assert time.perf_counter() - start < 5
