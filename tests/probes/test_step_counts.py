"""Steps are counted from values: those of the step ``x * a + c`` (LCG), and those of array
libraries that add 1.
"""

from __future__ import annotations

import numpy as np
import pytest

from overhead.probes.base import Unverified
from overhead.probes.common import step
from overhead.probes.kernels import lcg


def _after_single_steps(x: int, n: int) -> int:
    for _ in range(n):
        x = (x * 1664525 + 1013904223) % 2**32
    return x


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 255, 1000])
def test_lcg_advance_equals_n_single_steps(n: int) -> None:
    start = lcg.seeds(16)
    expected = [_after_single_steps(x, n) for x in start.tolist()]
    assert lcg.advance(start, n).tolist() == expected


@pytest.mark.parametrize(
    ("made", "counted"),
    [
        (0, 0),
        (1, 1),
        (2, 2),
        (500, 500),
        (12_345, 12_345),
        (2**31, 2**31),
        (2**32 - 1, 2**32 - 1),
        (2**32 + 5, 5),
    ],
)
def test_lcg_distance_returns_the_number_of_steps_that_advance_made_modulo_its_period(
    made: int, counted: int
) -> None:
    start = lcg.seeds()
    assert lcg.distance(start, lcg.advance(start, made)) == counted


def test_lcg_distance_raises_unverified_if_one_element_has_fewer_steps_or_a_value_is_missing() -> (
    None
):
    words = lcg.advance(lcg.seeds(), 10)
    after_nine = lcg.advance(lcg.seeds(), 9)
    words[77] = after_nine[77]
    with pytest.raises(
        Unverified, match=r"values-disagree \(wrong=1, values=256.*element=77, element_steps=9"
    ):
        lcg.distance(lcg.seeds(), words)
    with pytest.raises(Unverified, match=r"values-read-back \(values=255"):
        lcg.distance(lcg.seeds(), lcg.seeds(255))


def test_counting_additions_raises_unverified_if_array_elements_disagree() -> None:
    values = step.start_values() + 3
    assert step.count_steps(values) == 3
    values[7] += 1
    with pytest.raises(Unverified, match=r"elements-disagree \(least=3, most=4"):
        step.count_steps(values)


def test_more_additions_than_int32_can_hold_are_counted() -> None:
    additions = 2**31 + 5
    wide = step.start_values().astype(np.int64) + additions
    assert step.count_steps(wide.astype(np.int32)) == additions
