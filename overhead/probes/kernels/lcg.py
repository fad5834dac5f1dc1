"""The arithmetic of the step: ``x = x * 1664525 + 1013904223 (mod 2^32)``, jump-ahead and distance.

The constants come from Numerical Recipes. The period is 2^32, so a value shows how many steps were
made. Jump-ahead: F. Brown, "Random number generation with arbitrary strides", Trans. ANS 71 (1994).
Distance: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms"
(2014), section 4.3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.probes.base import Unverified
from overhead.results import because

MULTIPLIER = 1664525
INCREMENT = 1013904223
PERIOD = 1 << 32

Words = NDArray[np.uint32]


def seeds(count: int = 256) -> Words:
    """``count`` different start values, uint32."""
    return (np.arange(count, dtype=np.uint64) * 0x9E3779B1 + 0x7F4A7C15).astype(np.uint32)


def advance(x: NDArray[Any], n: int) -> Words:
    """The values after ``n`` more steps, uint32. Takes O(log n) time."""
    scale, shift, multiplier, increment = 1, 0, MULTIPLIER, INCREMENT
    n %= PERIOD
    while n:
        if n & 1:
            scale, shift = scale * multiplier % PERIOD, (shift * multiplier + increment) % PERIOD
        multiplier, increment = (
            multiplier * multiplier % PERIOD,
            (multiplier + 1) * increment % PERIOD,
        )
        n >>= 1
    return (x.astype(np.uint64) * scale + shift).astype(np.uint32)


def distance(x0: NDArray[Any], x: NDArray[Any]) -> int:
    """The number of steps from ``x0`` to ``x``, modulo 2^32. Raises ``Unverified`` if it differs
    between elements.
    """
    start, end = np.asarray(x0, np.uint32).ravel(), np.asarray(x, np.uint32).ravel()
    if start.shape != end.shape or not start.size:
        raise Unverified(because("values-read-back", values=end.size, expected=start.size))
    found = _between(int(start[0]), int(end[0]))
    wrong = np.flatnonzero(advance(start, found) != end)
    if wrong.size:
        i = int(wrong[0])
        raise Unverified(
            because(
                "values-disagree",
                wrong=wrong.size,
                values=end.size,
                first_steps=found,
                element=i,
                element_steps=_between(int(start[i]), int(end[i])),
            )
        )
    return found


def _between(start: int, end: int) -> int:
    steps, bit, multiplier, increment = 0, 1, MULTIPLIER, INCREMENT
    while start != end:
        if (start ^ end) & bit:
            start = (start * multiplier + increment) % PERIOD
            steps |= bit
        multiplier, increment = (
            multiplier * multiplier % PERIOD,
            (multiplier + 1) * increment % PERIOD,
        )
        bit <<= 1
    return steps
