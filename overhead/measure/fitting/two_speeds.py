"""Two speeds: whether rounds fall into two groups that no common value describes, and which round is in which."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fitting.line import MAD, Floats, Mask

Owners = NDArray[np.intp]

APART = 1.10
"""Two groups closer than this ratio are one."""
BY_PROCESS = 1.4
"""The same where no process is in both: a few processes differ by chance, a change within one does not."""
CLEAR = 8.0
"""The gap between two groups, in units of the larger spread within them."""
LEAST = 0.10
"""A group needs this share of the rounds."""
FEWEST = 4
LONG = 0.125
"""The canary has two speeds where each holds for this share of the rounds; a slow one that holds less is a spell."""
CANARY = 0.05
"""A round whose canary leaves the run's median by more than this share is labelled."""


@dataclass(frozen=True)
class Split:
    """Which rounds are of the slower group, and who says so (``rounds`` themselves or the ``canary``)."""

    slow: Mask
    by: str


def two_groups(values: Floats, owners: Owners, least: float = LEAST) -> Mask | None:
    """True for the members of the upper group; None where the values are one group.

    ``owners``: the process of each value; ``least``: the share of a group. The cut is the one that leaves the least
    variance within both groups of the logarithms (Otsu's), for which the outer twentieths are pulled in, so that stray
    rounds do not choose it.
    """
    logs = np.log(np.maximum(values, 1e-9))
    clipped = np.sort(np.clip(logs, *np.percentile(logs, [5, 95]))) if logs.size else logs
    count = clipped.size
    if count < 2 * FEWEST or np.count_nonzero(values <= 0) > count / 20:
        return None
    sizes = np.arange(1, count)
    sums = np.cumsum(clipped)[:-1]
    between = (sums / sizes - (clipped.sum() - sums) / (count - sizes)) ** 2 * sizes * (count - sizes)
    cut = int(np.argmax(between)) + 1
    low, high = np.split(np.sort(logs), [cut])
    gap = float(np.median(high) - np.median(low))
    if min(low.size, high.size) < max(FEWEST, least * count) or gap < CLEAR * max(_spread(low), _spread(high)):
        return None
    upper = np.asarray(logs > (np.median(low) + np.median(high)) / 2)
    shares = np.array([upper[owners == owner].mean() for owner in np.unique(owners)])
    switched = np.any((shares > LEAST) & (shares < 1 - LEAST))
    return upper if gap >= np.log(APART if switched else BY_PROCESS) else None


def split(values: Floats, canaries: Floats, owners: Owners) -> Split | None:
    """Two speeds of a figure: in its own rounds' values, or in the canary of those rounds if the figure follows it.

    ``values``: one per round over all processes; ``canaries``: ns, same length, or empty; ``owners``: the process.
    """
    own = two_groups(values, owners)
    if own is not None:
        return Split(own, "rounds")
    slow = two_groups(canaries, owners, LONG) if canaries.size == values.size else None
    if slow is None:
        return None
    low, high, error = _apart(values, slow)
    if low <= 0 or abs(high / low - 1) < CANARY or abs(high - low) < CLEAR * error:
        return None
    return Split(slow, "canary")


def _apart(values: Floats, slow: Mask) -> tuple[float, float, float]:
    """The medians of the other rounds and of the slow ones, and the standard error of their difference."""
    here, there = values[slow], values[~slow]
    error = _spread(here) / np.sqrt(here.size) + _spread(there) / np.sqrt(there.size)
    return float(np.median(there)), float(np.median(here)), float(error)


def labelled(canaries: Floats) -> Mask:
    """Rounds whose canary left the run's median by more than 5 %."""
    return np.asarray(np.abs(canaries / np.median(canaries) - 1) > CANARY) if canaries.size else np.zeros(0, np.bool_)


def _spread(values: Floats) -> float:
    """Standard deviation by the median absolute deviation; half the range of a handful, which chance may gather."""
    if values.size < 2 * FEWEST:
        return float(np.ptp(values)) / 2
    return MAD * float(np.median(np.abs(values - np.median(values))))
