"""Two speeds: whether rounds fall into two groups that no common value describes, and which round is in which; and
rounds in a spell of the processor that was not its usual speed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from overhead.measure.fit import Floats, Mask

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
CANARY = 0.05
"""A round whose canary leaves the run's median by more than this share is labelled."""
SPELL = 0.15
"""One that leaves it by more than this share was taken on a processor that was not at its usual speed."""
FOLLOWS = 3.0
"""A figure follows the processor into such spells when it is another there by so many standard errors."""


@dataclass(frozen=True)
class Split:
    """Which rounds are of the slower group, and who says so (``rounds`` themselves or the ``canary``)."""

    slow: Mask
    by: str


def two_groups(values: Floats, owners: Owners) -> Mask | None:
    """True for the members of the upper group; None where the values are one group.

    ``owners``: the process of each value. The cut is the one that leaves the least variance within both groups of the
    logarithms (Otsu's), for which the outer twentieths are pulled in, so that stray rounds do not choose it.
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
    if min(low.size, high.size) < max(FEWEST, LEAST * count) or gap < CLEAR * max(_spread(low), _spread(high)):
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
    slow = two_groups(canaries, owners) if canaries.size == values.size else None
    return Split(slow, "canary") if slow is not None and _follows(values, slow, CLEAR) else None


def spell(values: Floats, canaries: Floats) -> Mask | None:
    """True for the rounds in which the processor was not at its usual speed, if the figure followed it; else None."""
    if canaries.size != values.size or not values.size:
        return None
    off = np.asarray(np.abs(canaries / np.median(canaries) - 1) > SPELL)
    enough = min(np.count_nonzero(off), np.count_nonzero(~off)) >= FEWEST
    return off if enough and _follows(values, off, FOLLOWS) else None


def _follows(values: Floats, off: Mask, clear: float) -> bool:
    """Whether the figure is another in these rounds, by so many standard errors at least."""
    here, there = values[off], values[~off]
    usual, other = float(np.median(there)), float(np.median(here))
    error = _spread(here) / np.sqrt(here.size) + _spread(there) / np.sqrt(there.size)
    return usual > 0 and abs(other / usual - 1) >= CANARY and abs(other - usual) >= clear * error


def labelled(canaries: Floats) -> Mask:
    """Rounds whose canary left the run's median by more than 5 %."""
    return np.asarray(np.abs(canaries / np.median(canaries) - 1) > CANARY) if canaries.size else np.zeros(0, np.bool_)


def _spread(values: Floats) -> float:
    """Standard deviation by the median absolute deviation; half the range of a handful, which chance may gather."""
    if values.size < 2 * FEWEST:
        return float(np.ptp(values)) / 2
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))
