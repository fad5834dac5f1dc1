"""The arithmetic of the step: ``x = x * 1664525 + 1013904223 (mod 2^32)``, jump-ahead and distance.

The constants come from Numerical Recipes. The period is 2^32, so a value shows how many steps were
made. Jump-ahead: F. Brown, "Random number generation with arbitrary strides", Trans. ANS 71 (1994).
Distance: M. O'Neill, "PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms"
(2014), section 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

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
    """The values ``x`` after ``n`` more steps, uint32. A step is ``x * MULTIPLIER + INCREMENT``,
    modulo 2^32. Takes O(log n) time.

    n steps together are again one multiplication (by ``scale``) and one addition (of ``shift``).
    Those of 1, 2, 4, ... steps are known, and the bits of n say which of them to combine.
    """
    # After 2^32 steps each value is again what it was.
    n %= PERIOD
    scale = 1
    shift = 0
    for power in _powers_of_two_steps():
        if not n:
            break
        if n & 1:
            # First what is combined so far, then these steps: (x * scale + shift) * m + i.
            scale = scale * power.multiplier % PERIOD
            shift = (shift * power.multiplier + power.increment) % PERIOD
        n >>= 1
    return (x.astype(np.uint64) * scale + shift).astype(np.uint32)


class _Step(NamedTuple):
    """``x * multiplier + increment``: what one step does, or several steps together."""

    multiplier: int
    increment: int


def _powers_of_two_steps() -> Iterator[_Step]:
    """What 1, 2, 4, ... steps together do to a value: one multiplication by m and one addition of
    i. Each is the one before it, done twice: ``(x * m + i) * m + i = x * m^2 + (m + 1) * i``.
    """
    multiplier = MULTIPLIER
    increment = INCREMENT
    while True:
        yield _Step(multiplier, increment)
        # Before the multiplier changes, which this line needs.
        increment = (multiplier + 1) * increment % PERIOD
        multiplier = multiplier * multiplier % PERIOD


def distance(x0: NDArray[Any], x: NDArray[Any]) -> int:
    """How many steps a kernel has run on each element: the number of steps from the values ``x0``
    to the values ``x``, modulo 2^32. Raises ``Unverified`` if it differs between elements.

    The first element tells the number. Then the others must be where so many steps lead.
    """
    # ``ravel``: as one row, whatever the shape.
    start = np.asarray(x0, np.uint32).ravel()
    end = np.asarray(x, np.uint32).ravel()
    if start.shape != end.shape or not start.size:
        raise Unverified(because("values-read-back", values=end.size, expected=start.size))

    steps = _between(int(start[0]), int(end[0]))
    wrong = np.flatnonzero(advance(start, steps) != end)
    if wrong.size:
        element = int(wrong[0])
        # For the message: how often the first wrong element was changed.
        element_steps = _between(int(start[element]), int(end[element]))
        raise Unverified(
            because(
                "values-disagree",
                wrong=wrong.size,
                values=end.size,
                first_steps=steps,
                element=element,
                element_steps=element_steps,
            )
        )
    return steps


def _between(start: int, end: int) -> int:
    """The number of steps from one value to the other. A step is ``x * MULTIPLIER + INCREMENT``,
    modulo 2^32.

    The lowest bit of a value changes with every step, the second with every second step, and so on.
    So the bits of the number are found one after another, the lowest first: where the values still
    differ in a bit, 1, 2, 4, ... steps are made from the start, which makes this bit equal, and
    changes no lower one.
    """
    steps = 0
    bit = 1
    for power in _powers_of_two_steps():
        if start == end:
            break
        if (start ^ end) & bit:
            start = (start * power.multiplier + power.increment) % PERIOD
            steps |= bit
        # The next bit, and with the next ``power`` twice as many steps.
        bit <<= 1
    return steps
