"""Which rounds ran at the processor's usual speed.

Only the reference loop decides, a fixed loop that is timed in every round. A choice by the values
of a figure would make the interval of that figure too narrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.fitting.line import LINE, MAD, Floats, Mask
from overhead.measure.fitting.one_process import Process, Series, cpu_rows, wait_quantum
from overhead.measure.fitting.spread import median
from overhead.results import RoundEntry


@dataclass(frozen=True)
class UndisturbedRule:
    """Which rounds count. Stricter values leave out more and widen intervals; looser ones let in
    other work.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
    """

    best_percentile: float = 20
    """The best time of the reference loop in a process is this percentile of its times: a lower one
    may be a lucky reading.
    """
    slowdown: float = 0.10
    """A round is slow if its reference loop exceeds the best of its process by more than this
    share.
    """
    clock_change: float = 0.08
    """A process ran at another processor clock if its best time differs from the median process
    by more than this share and more than ``LINE.outlier_sigmas`` of all processes; so all count if
    the clock varies all the time.
    """
    quietest_part: int = 3
    """The fastest rounds of a process count whatever their reference loop: one in this many,
    ``rounds`` at least.
    """
    rounds: int = 3
    """A process with fewer undisturbed rounds does not count."""
    processes: int = 3
    """If fewer processes (or not more than half) were left, all count."""


UNDISTURBED = UndisturbedRule()


def without_slow_rounds(series: Series) -> Series:
    """The case without the rounds in which the processor was slowed down, and without the processes
    at another clock; the same object if no round is left out. Only the reference loop of a round
    decides, fixed work that shows the processor's speed.

    All rounds stay if the wait polls (there are few of them) or if a round has no reference loop. A
    process stays whole if only its slow rounds show the CPU time of the wait.
    """
    processes = [process for process in series.processes if process.rounds]
    if any(wait_quantum(process) for process in processes):
        return series
    # By process the times of the reference loop by round; ``times.all()``: none was left out (0).
    reference = [_reference_times(process) for process in processes]
    every_round_has_one = all(times.all() for times in reference)
    if not processes or not every_round_has_one:
        return series
    # By process a mask over its rounds: True where the round is left out.
    slow_by_process = slow_rounds(reference)
    if not any(slow.any() for slow in slow_by_process):
        return series

    kept: list[Process] = []
    for process, slow in zip(processes, slow_by_process, strict=True):
        undisturbed = _without(process, slow)
        # Too few rounds for a line are left; a process that was short from the start stays.
        if slow.any() and len(undisturbed.rounds) < UNDISTURBED.rounds:
            continue
        # Few samples read the CPU clock: the figure ``host`` needs those of the slow rounds then.
        if _has_wait_cpu(process) and not _has_wait_cpu(undisturbed):
            undisturbed = process
        kept.append(undisturbed)
    # More than half, and at least three; or all.
    if not has_enough_processes(len(kept), len(processes)):
        return series
    return replace(series, processes=kept)


def _reference_times(process: Process) -> Floats:
    """The reference loops of all rounds of a process, ns; 0 where it was not timed."""
    return np.array([reference_ns(entry) for entry in process.rounds])


def _without(process: Process, slow: Mask) -> Process:
    """The process without the rounds that are ``slow``."""
    rounds = [entry for entry, is_slow in zip(process.rounds, slow, strict=True) if not is_slow]
    return replace(process, rounds=rounds)


def _has_wait_cpu(process: Process) -> bool:
    """Whether samples of at least two different n read the CPU clock: fewer give no slope."""
    return np.unique(cpu_rows(process.rounds)[:, 0]).size > 1


def has_enough_processes(left: int, whole: int) -> bool:
    """Whether ``left`` of ``whole`` processes are enough for a figure, so that the others may be
    left out.
    """
    more_than_half = whole // 2 + 1
    return left == whole or left >= max(UNDISTURBED.processes, more_than_half)


def reference_ns(entry: RoundEntry) -> float:
    """The time of the Python reference loop in a round, ns; 0 if it was not timed.

    Other work on the processor slows this loop down more than the compiled reference loop.
    """
    return float(entry.canary[0]) if entry.canary else 0.0


def best_pace(rounds: Sequence[RoundEntry]) -> float:
    """The time of the Python reference loop in a process when nothing slows it down, ns; 0 if no
    round has one.
    """
    times = [reference_ns(entry) for entry in rounds]
    timed = [time for time in times if time]
    return _best(timed) if timed else 0.0


def _best(times: Sequence[float] | Floats) -> float:
    """The time of the reference loop that counts as the best of a process."""
    return float(np.percentile(times, UNDISTURBED.best_percentile))


def slow_rounds(reference: Sequence[Floats]) -> list[Mask]:
    """By process a mask, True for rounds that do not count: those whose reference loop (fixed work)
    took clearly longer than the best of the process, and all rounds of a process whose best differs
    from that of the others, since its processor ran at another clock. ``reference``: by process and
    round the time of the reference loop, ns.
    """
    # First the processes at another clock: by how much is the best of each off the median process?
    # The best: the 20th percentile, since the lowest may be a lucky reading.
    best = np.array([_best(times) for times in reference])
    change = np.abs(best / np.median(best) - 1)
    # If the best times of all processes scatter more than that, the clock varies all the time.
    # ``MAD`` makes a standard deviation of a median deviation.
    spread_of_all = LINE.outlier_sigmas * MAD * median(change)
    at_usual_clock = change <= max(UNDISTURBED.clock_change, spread_of_all)
    # With too few processes at one clock none is unusual.
    left = int(np.count_nonzero(at_usual_clock))
    if not has_enough_processes(left, best.size):
        at_usual_clock[:] = True

    # Then the slow rounds of each process at the usual clock.
    masks: list[Mask] = []
    for position, times in enumerate(reference):
        if at_usual_clock[position]:
            masks.append(times > _slowest_that_counts(times, best[position]))
        else:
            masks.append(np.ones(times.size, np.bool_))
    return masks


def _slowest_that_counts(times: Floats, best: float) -> float:
    """The limit, in one process, for the reference loop of a round (fixed work that shows the
    processor's speed): a round with a slower one does not count, ns. ``best``: the best of the
    process.

    The fastest part of the rounds counts always, so that a process beside a busy neighbour keeps
    some.
    """
    part = -(-times.size // UNDISTURBED.quietest_part)  # rounded up
    # So many of the fastest rounds count in any case: one in three, three at least.
    always = min(times.size, max(UNDISTURBED.rounds, part))
    slowest_of_fastest = float(np.sort(times)[always - 1])
    return max((1 + UNDISTURBED.slowdown) * best, slowest_of_fastest)
