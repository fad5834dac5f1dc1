"""Whether the samples that a quiet cost leaves out are the host's doing, or work of the stack itself.

A sample far above the median at its n was interrupted, as a rule: another thread had the processor. But a stack may
also do something long every few thousand units (grow a table, flush a queue, collect garbage), which is its own cost.
It then comes back in every process, and the thread had its processor meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import undisturbed_mask
from overhead.measure.fitting.one_process import Process, ProcessFit
from overhead.measure.fitting.quiet_rounds import canary_ns


@dataclass(frozen=True)
class _SlowRule:
    """When slow samples are taken for work. Stricter values refuse figures of a busy host; looser ones hide work."""

    share: float = 0.10
    """The median process has at most this share. Of 865 figures of H100 and H200 that are ``ok``, one has more, and 10
    have more than half of it (November 2026)."""
    processes: int = 3


_RULE = _SlowRule()


def share_of_slow_samples(processes: Sequence[Process], fits: Sequence[ProcessFit], *, issue: bool = False) -> float:
    """The time above the line in slow samples that the host does not explain, over the time of the line.

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


def _of_the_host(process: Process) -> float:
    """The share of the time that other threads took: of the samples by the system's count, or of the canary."""
    sampled = sum(row[2] for one in process.rounds for row in one.samples if len(row) == 3)
    queued = sum(one.queued for one in process.rounds)
    canaries = [ns for one in process.rounds if (ns := canary_ns(one))]
    of_samples = queued / max(sampled - queued, 1)
    of_canary = float(np.mean(canaries)) / process.pace - 1 if canaries and process.pace else 0.0
    return max(of_samples, of_canary)
