"""The rounds that a processor ran at its usual speed, told by the canary alone: a choice by the figure's own values
would narrow its interval by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from overhead.measure.fitting.data import Process, Round, Series
from overhead.measure.fitting.line import FAR, MAD, Floats, Mask
from overhead.measure.fitting.one_process import cpu_rows, quantum_of

BEST, OVER = 20, 0.10
"""A round counts whose canary lies no more than this share over its process's best: this percentile of its canaries."""
CLOCK = 0.08
"""A process met the processors at another clock if its best lies over this share off the middle one's, either way,
and over 3.5 standard deviations of those of all: of a machine whose clock wanders every process counts."""
PART = 3
"""The quietest rounds of another process count whatever their canary: one in so many, and ``ROUNDS`` at least."""
ROUNDS, PROCESSES = 3, 3
"""A process of which fewer rounds are left does not count; where fewer processes would be left, or half, all count."""


def quiet(series: Series) -> Series:
    """The case without the rounds of a slow processor or of another clock; the same object where none is left out.

    Nothing is left out behind a polling wait, where rounds are few, nor of rounds without a canary, nor of a process
    whose other rounds do not tell the CPU time of its wait.
    """
    processes = [p for p in series.processes if p.rounds]
    paces = [np.array([pace(r) for r in p.rounds]) for p in processes]
    if not all(own.all() for own in paces) or any(map(quantum_of, processes)):
        return series
    slow = slowed(paces) if paces else []
    if not any(own.any() for own in slow):
        return series
    kept = []
    for process, away in zip(processes, slow, strict=True):
        left = replace(process, rounds=[r for r, gone in zip(process.rounds, away, strict=True) if not gone])
        if len(left.rounds) >= ROUNDS or not away.any():
            kept.append(left if _tells_cpu(left) or not _tells_cpu(process) else process)
    return replace(series, processes=kept) if enough(len(kept), len(processes)) else series


def _tells_cpu(process: Process) -> bool:
    """Whether samples that read the CPU clock have two different n."""
    return np.unique(cpu_rows(process.rounds)[:, 0]).size > 1


def enough(left: int, whole: int) -> bool:
    """Whether so many processes of the whole number may stand for it."""
    return left == whole or left >= max(PROCESSES, whole // 2 + 1)


def pace(one: Round) -> float:
    """ns of the canary's Python loop, which follows what other work a processor does closer than its native spin does;
    0 where there is none."""
    return float(one.canary[0]) if one.canary else 0.0


def best_pace(rounds: Sequence[Round]) -> float:
    """ns of the canary's Python loop at its best in a process; 0 where no round has one."""
    paces = [ns for one in rounds if (ns := pace(one))]
    return _best(paces) if paces else 0.0


def _best(canaries: Sequence[float] | Floats) -> float:
    return float(np.percentile(canaries, BEST))


def slowed(canaries: Sequence[Floats]) -> list[Mask]:
    """By process, True for the rounds that do not count. ``canaries``: ns, a value a round, none empty."""
    best = np.array([_best(own) for own in canaries])
    off = np.abs(best / np.median(best) - 1)
    usual = off <= max(CLOCK, FAR * MAD * float(np.median(off)))
    if not enough(int(np.count_nonzero(usual)), best.size):
        usual[:] = True
    pairs = zip(canaries, best, usual, strict=True)
    return [own > _limit(own, here) if counts else np.ones(own.size, np.bool_) for own, here, counts in pairs]


def _limit(own: Floats, best: float) -> float:
    """The slowest canary that counts in a process."""
    quietest = min(own.size, max(ROUNDS, -(-own.size // PART)))
    return max((1 + OVER) * best, float(np.sort(own)[quietest - 1]))
