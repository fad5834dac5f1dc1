"""Which rounds ran at the processor's usual speed.

Only the canary decides, a fixed loop that is timed in every round. A choice by the values of a
figure would make the interval of that figure too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.fitting.line import LINE, MAD, Floats, Mask
from overhead.measure.fitting.one_process import Process, Series, cpu_rows, wait_quantum
from overhead.results import RoundEntry


@dataclass(frozen=True)
class QuietRule:
    """Which rounds count. Stricter values leave out more and widen intervals; looser ones let in
    other work.
    """

    best_percentile: float = 20
    """The best canary of a process is this percentile of its canaries: a lower one may be a lucky
    reading.
    """
    slowdown: float = 0.10
    """A round is slow if its canary exceeds the best of its process by more than this share."""
    clock_change: float = 0.08
    """A process ran at another processor clock if its best canary differs from the median process
    by more than this share and more than ``LINE.outlier_sigmas`` of all processes; so all count if
    the clock varies all the time.
    """
    quietest_part: int = 3
    """The quietest rounds of a process count whatever their canary: one in this many, ``rounds`` at
    least.
    """
    rounds: int = 3
    """A process with fewer quiet rounds does not count."""
    processes: int = 3
    """If fewer processes (or not more than half) were left, all count."""


QUIET = QuietRule()


def without_slow_rounds(series: Series) -> Series:
    """The case without rounds of a slow processor or at another clock; the same object if no round
    is left out.

    All rounds stay if the wait polls (there are few of them) or if a round has no canary. A process
    stays whole if only its slow rounds show the CPU time of the wait.
    """
    processes = [p for p in series.processes if p.rounds]
    canaries = [np.array([canary_ns(r) for r in p.rounds]) for p in processes]
    if not all(own.all() for own in canaries) or any(map(wait_quantum, processes)):
        return series
    slow = slow_rounds(canaries) if canaries else []
    if not any(own.any() for own in slow):
        return series
    kept = []
    for process, own_slow in zip(processes, slow, strict=True):
        quiet = replace(
            process,
            rounds=[r for r, is_slow in zip(process.rounds, own_slow, strict=True) if not is_slow],
        )
        if len(quiet.rounds) >= QUIET.rounds or not own_slow.any():
            kept.append(quiet if _has_wait_cpu(quiet) or not _has_wait_cpu(process) else process)
    return (
        replace(series, processes=kept)
        if has_enough_processes(len(kept), len(processes))
        else series
    )


def _has_wait_cpu(process: Process) -> bool:
    """Whether samples of at least two different n read the CPU clock."""
    return np.unique(cpu_rows(process.rounds)[:, 0]).size > 1


def has_enough_processes(left: int, whole: int) -> bool:
    """Whether ``left`` of ``whole`` processes are enough for a figure, so that the others may be
    left out.
    """
    return left == whole or left >= max(QUIET.processes, whole // 2 + 1)


def canary_ns(one: RoundEntry) -> float:
    """The time of the canary's Python loop in a round, ns; 0 if the round has no canary.

    Other work on the processor slows this loop down more than the canary's native loop.
    """
    return float(one.canary[0]) if one.canary else 0.0


def best_pace(rounds: Sequence[RoundEntry]) -> float:
    """The time of the canary's Python loop in a process when nothing slows it down, ns; 0 if no
    round has a canary.
    """
    canaries = [ns for one in rounds if (ns := canary_ns(one))]
    return _best(canaries) if canaries else 0.0


def _best(canaries: Sequence[float] | Floats) -> float:
    return float(np.percentile(canaries, QUIET.best_percentile))


def slow_rounds(canaries: Sequence[Floats]) -> list[Mask]:
    """By process a mask, True for rounds that do not count. ``canaries``: ns of fixed work, by
    process and round.
    """
    best = np.array([_best(own) for own in canaries])
    change = np.abs(best / np.median(best) - 1)
    usual_clock = change <= max(
        QUIET.clock_change, LINE.outlier_sigmas * MAD * float(np.median(change))
    )
    if not has_enough_processes(int(np.count_nonzero(usual_clock)), best.size):
        usual_clock[:] = True
    return [
        own > _limit(own, own_best) if counts else np.ones(own.size, np.bool_)
        for own, own_best, counts in zip(canaries, best, usual_clock, strict=True)
    ]


def _limit(canaries: Floats, best: float) -> float:
    """The slowest canary of a process that counts, ns."""
    always = min(canaries.size, max(QUIET.rounds, -(-canaries.size // QUIET.quietest_part)))
    return max((1 + QUIET.slowdown) * best, float(np.sort(canaries)[always - 1]))
