"""Whether the samples that a quiet cost leaves out are the host's doing, or work of the stack
itself.

A sample far above the median at its n was interrupted, as a rule: another thread had the processor.
But a stack may also do something long every few thousand units (grow a table, flush a queue,
collect garbage), which is its own cost. It then comes back in every process, and the thread had its
processor meanwhile. A wait may do so too: one in four takes long, and no median tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats, undisturbed_mask
from overhead.measure.fitting.one_process import Process, ProcessFit
from overhead.measure.fitting.quiet_rounds import canary_ns
from overhead.results import Reason, because


@dataclass(frozen=True)
class _SlowRule:
    """When slow samples are taken for work. Stricter values refuse figures of a busy host; looser
    ones hide work.
    """

    share: float = 0.10
    """The median process has at most this share. Of 865 figures of H100 and H200 that are ``ok``,
    one has more, and 10 have more than half of it (November 2026).
    """
    processes: int = 3
    waits: float = 0.10
    """Of the waits for one unit so many of the fastest and of the slowest may be the host's
    doing.
    """
    least_waits: int = 7
    """As many as every process takes beside its rounds. Fewer do not tell a usual wait from a slow
    one.
    """
    of_wait: float = 0.10
    """The mean of the others may differ from the median by this share. No median process of 349
    cases of an H100 comes to 0.03 (November 2026).
    """


_RULE = _SlowRule()


def share_of_slow_samples(
    processes: Sequence[Process], fits: Sequence[ProcessFit], *, issue: bool = False
) -> float:
    """The time above the line in slow samples that the host does not explain, over the time of the
    line.

    The median of the processes; 0 where that is little. ``issue``: of ``issue``, not of the total.
    """
    shares = []
    for process, fit in zip(processes, fits, strict=True):
        line = fit.issue if issue else fit.complete
        samples = fit.wall[fit.below] if issue else fit.wall
        if line is None or not samples.size:
            continue
        n, times = samples[:, 0], samples[:, 1 if issue else 2]
        given = line.intercept + line.slope * n
        slow = ~undisturbed_mask(n, times)
        if given.sum() > 0:
            shares.append(float((times - given)[slow].sum() / given.sum()) - _of_the_host(process))
    if len(shares) < _RULE.processes:
        return 0.0
    middle = float(np.median(shares))
    return middle if middle > _RULE.share else 0.0


@dataclass(frozen=True)
class SlowWaits:
    """What a median leaves out of waits, ns. ``extra``: the mean above (or below) the median, of
    the median process, without the waits that may be the host's doing. ``middle`` and ``mean``: of
    all waits of the median process.
    """

    extra: float
    middle: float
    mean: float

    def matter(self, size: float, half_width: float, target: float) -> bool:
        """Whether a figure of this size is off by more than its interval and than is allowed."""
        return self.extra > max(half_width, max(target, _RULE.of_wait) * size)

    @property
    def reason(self) -> Reason:
        """The reason of a figure that they refuse."""
        return because("waits-differ", median_us=self.middle / 1e3, mean_us=self.mean / 1e3)


def slow_waits(processes: Sequence[Process], waits: Sequence[Floats]) -> SlowWaits | None:
    """What the medians of the ``waits`` of these processes leave out; None with few processes or
    few waits.
    """
    found = [
        (process, own)
        for process, own in zip(processes, waits, strict=True)
        if own.size >= _RULE.least_waits
    ]
    if len(found) < _RULE.processes:
        return None
    extras, explained = [], []
    for process, own in found:
        middle = float(np.median(own))
        extras.append(_trimmed_mean(own) - middle)
        explained.append(_of_the_host(process) * middle)
    extra = max(abs(float(np.median(extras))) - max(float(np.median(explained)), 0.0), 0.0)
    middles, means = zip(
        *((float(np.median(own)), float(own.mean())) for _, own in found), strict=True
    )
    return SlowWaits(extra, float(np.median(middles)), float(np.median(means)))


def _trimmed_mean(waits: Floats) -> float:
    """The mean without the fastest and the slowest, which may be the host's doing."""
    left_out = math.ceil(_RULE.waits * waits.size)
    return float(np.sort(waits)[left_out:-left_out].mean())


def _of_the_host(process: Process) -> float:
    """The share of the time that other threads took: of the samples by the system's count, or of
    the canary.
    """
    sampled = sum(row[2] for one in process.rounds for row in one.samples if len(row) == 3)
    queued = sum(one.queued for one in process.rounds)
    canaries = [ns for one in process.rounds if (ns := canary_ns(one))]
    of_samples = queued / max(sampled - queued, 1)
    of_canary = float(np.mean(canaries)) / process.pace - 1 if canaries and process.pace else 0.0
    return max(of_samples, of_canary)
