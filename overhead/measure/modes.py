"""Two speeds: whether rounds fall into two groups that no common value describes, and which round is in which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from overhead.measure.fit import Floats, Mask

APART = 1.10
"""Two groups closer than this ratio are one."""
CLEAR = 8.0
"""The gap between two groups, in units of the larger spread within them."""
LEAST = 0.10
"""A group needs this share of the rounds."""
FEWEST = 4
CANARY = 0.05
"""A round whose canary leaves the run's median by more than this share is labelled."""


@dataclass(frozen=True)
class Split:
    """Which rounds are of the slower group, and who says so (``rounds`` themselves or the ``canary``)."""

    slow: Mask
    by: str


def two_groups(values: Floats) -> Mask | None:
    """True for the members of the upper group; None where the values are one group.

    The cut is the one that leaves the least variance within both groups of the logarithms (Otsu's).
    """
    usable = values > 0
    if np.count_nonzero(usable) < 4:
        return None
    logs = np.sort(np.log(values[usable]))
    count = logs.size
    sizes = np.arange(1, count)
    sums = np.cumsum(logs)[:-1]
    between = (sums / sizes - (logs.sum() - sums) / (count - sizes)) ** 2 * sizes * (count - sizes)
    cut = int(np.argmax(between)) + 1
    low, high = logs[:cut], logs[cut:]
    gap = float(np.median(high) - np.median(low))
    if gap < np.log(APART) or gap < CLEAR * max(_spread(low), _spread(high)):
        return None
    if min(low.size, high.size) < max(FEWEST, LEAST * count):
        return None
    middle = (np.median(low) + np.median(high)) / 2
    return np.asarray(np.log(np.maximum(values, 1e-300)) > middle)


def split(values: Floats, canaries: Floats) -> Split | None:
    """Two speeds of a figure: in its own rounds' values, or in the canary of those rounds if the figure follows it.

    ``values``: one per round over all processes. ``canaries``: ns, same length, or empty.
    """
    own = two_groups(values)
    if own is not None:
        return Split(own, "rounds")
    slow = two_groups(canaries) if canaries.size == values.size else None
    if slow is None or slow.all() or not slow.any():
        return None
    here, there = values[slow], values[~slow]
    low, high = float(np.median(there)), float(np.median(here))
    error = _spread(here) / np.sqrt(here.size) + _spread(there) / np.sqrt(there.size)
    if low <= 0 or abs(high / low - 1) < CANARY or abs(high - low) < CLEAR * error:
        return None
    return Split(slow, "canary")


def labelled(canaries: Floats) -> Mask:
    """Rounds whose canary left the run's median by more than 5 %."""
    return np.asarray(np.abs(canaries / np.median(canaries) - 1) > CANARY) if canaries.size else np.zeros(0, np.bool_)


def _spread(values: Floats) -> float:
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
