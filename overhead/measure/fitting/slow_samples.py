"""Whether the samples that an undisturbed cost leaves out are the host's doing, or work of the
stack itself.

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
from overhead.measure.fitting.spread import median
from overhead.measure.fitting.undisturbed_rounds import reference_ns
from overhead.results import Reason, because


@dataclass(frozen=True)
class _SlowRule:
    """When slow samples are taken for work. Stricter values refuse figures of a busy host; looser
    ones hide work.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

    share: float = 0.10
    """The median process has at most this share. Of 865 figures of H100 and H200 that are ``ok``,
    one has more, and 10 have more than half of it (November 2026).
    """
    processes: int = 3
    """With fewer processes nothing is stated: a busy machine can disturb two alike."""
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
    processes: Sequence[Process], fits: Sequence[ProcessFit], *, of_enqueue: bool = False
) -> float:
    """How much the cost of a unit would rise if the slow samples that it leaves out as interrupted
    counted: their time above the line over the time of the line, less the share that the host
    explains (another thread had the processor). The median of the processes; 0 where that is
    little.

    ``of_enqueue``: of the times until ``issue`` returns, not of the total.
    """
    shares: list[float] = []
    for process, fit in zip(processes, fits, strict=True):
        line = fit.line(of_enqueue=of_enqueue)
        samples = fit.samples(of_enqueue=of_enqueue)
        if line is None or not samples.n.size:
            continue
        on_line = line.intercept + line.slope * samples.n
        if on_line.sum() <= 0:
            continue
        # Of the slow samples only the part above the line counts: the rest is usual cost.
        # ``undisturbed_mask``: False for a time far above the median at its n.
        slow = ~undisturbed_mask(samples.n, samples.times)
        above_line = (samples.times - on_line)[slow].sum()
        share = float(above_line / on_line.sum())
        shares.append(share - _share_of_host(process))
    # A busy machine can disturb two processes alike.
    if len(shares) < _RULE.processes:
        return 0.0
    median_share = median(shares)
    return median_share if median_share > _RULE.share else 0.0


@dataclass(frozen=True)
class SlowWaits:
    """What a median leaves out of waits, ns. ``extra``: the mean above (or below) the median, of
    the median process, without the waits that may be the host's doing. ``middle`` and ``mean``: of
    all waits of the median process.
    """

    extra: float
    middle: float
    mean: float

    def make_noisy(self, size: float, half_width: float, precision: float) -> bool:
        """Whether a figure of this size is ``noisy`` because of them: its mean is off its median by
        more than its interval and than is allowed.
        """
        allowed = max(precision, _RULE.of_wait) * size
        return self.extra > max(half_width, allowed)

    @property
    def reason(self) -> Reason:
        """The reason of a figure that they refuse."""
        return because("waits-differ", median_us=self.middle / 1e3, mean_us=self.mean / 1e3)


def slow_waits(processes: Sequence[Process], waits: Sequence[Floats]) -> SlowWaits | None:
    """How far the medians of the ``waits`` of these processes are from their means, where other
    threads do not explain it: what a figure that is a median does not show. None with few processes
    or few waits.
    """
    medians: list[float] = []
    means: list[float] = []
    extras: list[float] = []
    explained: list[float] = []
    for process, times in zip(processes, waits, strict=True):
        # With fewer than seven, a usual wait cannot be told from a slow one.
        if times.size < _RULE.least_waits:
            continue
        middle = median(times)
        medians.append(middle)
        means.append(float(times.mean()))
        # The mean without the fastest and the slowest tenth, less the median, ns.
        extras.append(_trimmed_mean(times) - middle)
        # What other threads may have added to a wait, ns.
        explained.append(_share_of_host(process) * middle)
    if len(medians) < _RULE.processes:
        return None

    # In the median process, so that a few busy ones do not decide.
    by_host = max(median(explained), 0.0)
    extra = max(abs(median(extras)) - by_host, 0.0)
    return SlowWaits(extra, median(medians), median(means))


def _trimmed_mean(waits: Floats) -> float:
    """The mean without the fastest and the slowest, which may be the host's doing."""
    left_out = math.ceil(_RULE.waits * waits.size)
    return float(np.sort(waits)[left_out:-left_out].mean())


def _share_of_host(process: Process) -> float:
    """By which share other threads made the samples of a process longer: by the time that the
    system counted the thread as waiting for a processor, or by how much slower the reference loops
    (fixed work) ran than the best, whichever is more.
    """
    sampled_ns = 0
    queued_ns = 0
    times: list[float] = []
    for entry in process.rounds:
        # Three columns, of which the third is T(n): rows of four also read the CPU clock.
        sampled_ns += sum(row[2] for row in entry.samples if len(row) == 3)
        queued_ns += entry.queued
        time = reference_ns(entry)
        if time:
            times.append(time)

    # ``queued``: time in which the thread waited for a processor; without it the samples would have
    # been so much shorter.
    share_of_samples = queued_ns / max(sampled_ns - queued_ns, 1)
    share_of_reference = 0.0
    if times and process.pace:
        share_of_reference = float(np.mean(times)) / process.pace - 1
    return max(share_of_samples, share_of_reference)
