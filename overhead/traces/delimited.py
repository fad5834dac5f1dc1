"""Parts of a sequence that begin alike and hold one certain name each, such as steps of training
whose ends differ. Pure.

A step of mixed precision reads whether its gradients overflowed, and skips the optimizer if they
did. So its steps have two lengths, and nothing repeats exactly.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_LEAST_PARTS = 3
"""As of parts that repeat exactly."""
_ALIKE = 0.97
"""From this share of equal names on, two parts begin alike; as of parts that repeat."""
_FIRST = 3
"""The parts must begin with this number of equal names. Between the start of a part and the first
layer of a model there are few names, and only these differ from those before another layer.
"""
_LEAST_BEFORE = 10
"""At least this number of names must come before the name that each part has once. Fewer are alike
by chance.
"""
_MOST_LONGER = 1.25
"""The longest part may be at most this many times as long as the shortest. Chosen, not measured."""
_MOST_TRIED = 8


def starts_of_parts(names: NDArray[np.integer], once: Iterable[int]) -> list[int] | None:
    """The index at which each part begins, the first at 0, if the sequence is three parts or more;
    None if it is not. ``names``: a number for each name. ``once``: the names of which a part may
    have one each.
    """
    rare = []
    for name in once:
        found = np.flatnonzero(names == name)
        if len(found) >= _LEAST_PARTS:
            rare.append(found)
    rare.sort(key=len)
    for indexes in rare[:_MOST_TRIED]:
        before = int(indexes[0])
        starts = [int(index) - before for index in indexes]
        if before < _LEAST_BEFORE or not _begin_alike(names, starts, before):
            continue
        if _as_long([*starts, len(names)]):
            return starts
    return None


def _begin_alike(names: NDArray[np.integer], starts: list[int], length: int) -> bool:
    """Whether so many names are nearly equal at the begin of each part."""
    first = names[:length]
    for start in starts:
        part = names[start : start + length]
        if not np.array_equal(part[:_FIRST], first[:_FIRST]):
            return False
        if np.count_nonzero(part == first) < _ALIKE * length:
            return False
    return True


def _as_long(edges: list[int]) -> bool:
    """Whether the parts between these indexes are about as long as each other."""
    lengths = np.diff(edges)
    return bool(lengths.min() > 0 and lengths.max() <= _MOST_LONGER * lengths.min())
