"""The arithmetic of the step is compared with plain integers, and the kernel files contain its constants."""

from __future__ import annotations

import pytest

from overhead.probes.base import Unverified
from overhead.probes.kernels import lcg


def _plainly(x: int, n: int) -> int:
    for _ in range(n):
        x = (x * 1664525 + 1013904223) % 2**32
    return x


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 255, 1000])
def test_advance_is_n_plain_steps(n: int) -> None:
    start = lcg.seeds(16)
    assert lcg.advance(start, n).tolist() == [_plainly(int(x), n) for x in start]


@pytest.mark.parametrize("n", [0, 1, 2, 500, 12_345, 2**31, 2**32 - 1])
def test_distance_reverses_advance(n: int) -> None:
    assert lcg.distance(lcg.seeds(), lcg.advance(lcg.seeds(), n)) == n


def test_distance_wraps_around_after_one_period() -> None:
    assert lcg.distance(lcg.seeds(), lcg.advance(lcg.seeds(), 2**32 + 5)) == 5


def test_one_element_with_fewer_steps_is_unverified() -> None:
    x = lcg.advance(lcg.seeds(), 10)
    x[77] = lcg.advance(lcg.seeds(), 9)[77]
    with pytest.raises(Unverified, match=r"1 of 256 values disagree.*element 77 is 9"):
        lcg.distance(lcg.seeds(), x)


def test_too_few_values_are_unverified() -> None:
    with pytest.raises(Unverified, match="255 values read back"):
        lcg.distance(lcg.seeds(), lcg.seeds(255))
