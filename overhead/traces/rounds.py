"""The long part of a sequence of launches that repeats, wherever it stands. Pure.

A plain loop neither waits for the device nor reads from it, so its repetitions may be steps or
parts of one, such as the layers of a model. But one verdict on the loop and on the start-up before
it would be a verdict on neither.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_LEAST_REPETITIONS = 100
"""Chosen, not measured: fewer repetitions without a wait are often the layers of a model. With 20,
those of xDiT's FLUX, which are captured into a graph, counted as steps.
"""
_LEAST_COVERED = 0.5
"""The repetitions must hold this share of the launches. Chosen, not measured."""
_MOST_COMPARED = 100_000_000
"""So many launches are compared in all, which takes less than a second."""


class Rounds(NamedTuple):
    """Equal parts of a sequence, one behind the other. ``length``: of one part. ``start``: the
    index of the first part. ``repetitions``: whole parts.
    """

    length: int
    start: int
    repetitions: int

    @property
    def starts(self) -> list[int]:
        """The index of the first name of each part."""
        return list(range(self.start, self.end, self.length))

    @property
    def end(self) -> int:
        """The index behind the last part."""
        return self.start + self.length * self.repetitions


def rounds_of(names: NDArray[np.integer]) -> Rounds | None:
    """The shortest part that repeats a hundred times or more without a difference, and is half of
    the sequence; None if there is none. ``names``: a number for each name, in order.
    """
    count = len(names)
    longest = min(count // _LEAST_REPETITIONS, _MOST_COMPARED // max(1, count))
    for length in range(1, longest + 1):
        repeats = names[length:] == names[:-length]
        if np.count_nonzero(repeats) < _LEAST_COVERED * count - length:
            continue
        first, equal = _longest_run(repeats)
        repetitions = (equal + length) // length
        enough = repetitions >= _LEAST_REPETITIONS
        if enough and repetitions * length >= _LEAST_COVERED * count:
            return Rounds(length, first, repetitions)
    return None


def _longest_run(flags: NDArray[np.bool_]) -> tuple[int, int]:
    """Where the longest row of true flags begins, and how long it is."""
    edges = np.concatenate(([-1], np.flatnonzero(~flags), [len(flags)]))
    lengths = np.diff(edges) - 1
    longest = int(np.argmax(lengths))
    return int(edges[longest]) + 1, int(lengths[longest])
