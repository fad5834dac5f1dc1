"""The part of a sequence of names that repeats to its end, such as the kernels of a loop. Pure."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_ALIKE = 0.97
"""From this share of equal names on, two repetitions are alike: a library may choose another kernel
now and then. Measured on three loops of PyTorch, JAX and CuPy, whose steps were found with it.
"""
LEAST_REPETITIONS = 3
"""So often a part must repeat. Two equal parts are often forward passes of two equal halves of a
model; with three, each pause between two repetitions has another one beside it. Chosen, not
measured.
"""
_LEAST_COVERED = 0.5
"""The repetitions must cover this share of the sequence. A recording may end among the equal layers
of a model, which repeat too but are only a part of the last step. Chosen, not measured.
"""
_LAST = 3
"""The last repetitions must end with this number of equal names. Between the last layer of a model
and the end of a step there are few names, and only these differ from those after another layer.
"""
_TAIL = 16
_TAIL_ALIKE = 14
"""The last names, so many, must equal those one period earlier. This is quick to check, so it comes
first.
"""
_MOST_TRIED = 4000
"""Most periods that are compared in full. Chosen, not measured."""


class Period(NamedTuple):
    """A part of a sequence that repeats until the end of the sequence. ``length``: names in it.
    ``start``: the index from which on it repeats. ``repetitions``: whole ones after that.
    """

    length: int
    start: int
    repetitions: int

    @property
    def starts(self) -> list[int]:
        """The index of the first name of each repetition. The last repetition ends with the
        sequence.
        """
        end = self.start + self.length * self.repetitions
        return list(range(self.start, end, self.length))


def repeating_part(names: NDArray[np.integer]) -> Period | None:
    """The shortest part that repeats three times or more until the end of the sequence, and is half
    of it; None if there is none. ``names``: a number for each name, in order.

    What is different at the beginning, such as a first step that warms up, is not part of it.
    """
    count = len(names)
    tried = 0
    for length in _possible_lengths(names):
        if not _last_names_repeat(names, length):
            continue
        tried += 1
        if tried > _MOST_TRIED:
            return None
        repetitions = _repetitions(names, length)
        if repetitions < LEAST_REPETITIONS or repetitions * length < _LEAST_COVERED * count:
            continue
        return Period(length, start=count - repetitions * length, repetitions=repetitions)
    return None


def _possible_lengths(names: NDArray[np.integer]) -> list[int]:
    """The lengths of a period to try, the shortest first: the end of the sequence equals the part
    that lies one length earlier.
    """
    count = len(names)
    longest = count // LEAST_REPETITIONS
    if longest < 1:
        return []
    tail = min(_TAIL, longest)
    equal = np.zeros(longest + 1, dtype=np.int32)
    for back in range(1, tail + 1):
        last = count - back
        # The names that are 1, 2, 3, ... before this one, for all lengths at once.
        earlier = names[last - longest : last][::-1]
        equal[1:] += earlier == names[last]
    least = min(_TAIL_ALIKE, tail)
    return [int(length) for length in np.flatnonzero(equal >= least) if length > 0]


def _last_names_repeat(names: NDArray[np.integer], length: int) -> bool:
    """Whether the very last names are the same in each of the last three repetitions."""
    count = len(names)
    last = min(_LAST, length)
    end = names[count - last :]
    for back in range(1, LEAST_REPETITIONS):
        before = count - back * length
        if not np.array_equal(names[before - last : before], end):
            return False
    return True


def _repetitions(names: NDArray[np.integer], length: int) -> int:
    """How often the last ``length`` names repeat until the end, each time like the next one."""
    end = len(names)
    repetitions = 1
    while end - 2 * length >= 0:
        later = names[end - length : end]
        earlier = names[end - 2 * length : end - length]
        if np.count_nonzero(later == earlier) < _ALIKE * length:
            break
        repetitions += 1
        end -= length
    return repetitions
