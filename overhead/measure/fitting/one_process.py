"""The samples of one process, and the lines that are fitted to them. Times in ns.

T(n) is the time of a chain of n units, from the first call until the wait returns. The line of
``complete`` is fitted to T(n), the line of ``issue`` to the time until ``issue(n)`` returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from overhead.measure.fitting.knee import Knee, find_knee
from overhead.measure.fitting.line import Floats, Line, Mask, robust_line, sen_slope, siegel_slope
from overhead.measure.fitting.polled_line import censored_line
from overhead.results import OneOffEntry, RoundEntry

LEGACY_N = 100
"""Published "sequential" figures divide T(n) by this n."""
UNSTAGED = "unstaged"
"""Name of a one-off value: ``issue`` of a staged chain (its calls timed one by one), timed as a
whole, ns.
"""
SLOPES = ("issue", "host", "complete")
"""The figures in ns per unit."""


@dataclass(frozen=True)
class Process:
    """The samples of one fresh process: its rounds, and the values measured outside them by name.

    ``pace``: the time of its reference loop (fixed work) when nothing slows it down, ns
    (``best_pace``); 0 if unknown.
    """

    rounds: Sequence[RoundEntry] = ()
    one_off: Mapping[str, OneOffEntry] = field(default_factory=dict)
    number: int = 0
    pace: float = 0.0

    def values(self, name: str) -> Sequence[float]:
        """The values of this name measured outside the rounds, ns unless the name says otherwise;
        empty without any.
        """
        if name not in self.one_off:
            return ()
        return self.one_off[name].values


@dataclass(frozen=True)
class Series:
    """The samples of one case from all its processes, and how its chain waits and overlaps.

    ``anchored``: measured by a method that takes anchors (samples beyond the line's sizes of n), so
    that a line without them was not checked.
    """

    processes: Sequence[Process]
    synchronous: bool = False
    wait_spins: bool = False
    overlap: str = "pipelined"
    anchored: bool = False


@dataclass(frozen=True)
class _EnqueueRule:
    """To which samples the line of ``issue`` is fitted. Both numbers were chosen, not measured."""

    longest_ns: float = 5e6
    """If the wait polls: samples in which ``issue`` took at most so long. Longer ones may be
    interrupted; with a lower limit too few are left.
    """
    share_of_knee: float = 0.9
    """Only n up to this share of the knee: nearer to it the queue may be full already, a lower
    share wastes samples.
    """


_RULE = _EnqueueRule()


@dataclass(frozen=True)
class ProcessFit:
    """What was fitted to one process: the lines of ``issue`` (``enqueue``) and of the total time
    T(n) (``complete``), the CPU time of the caller inside the wait (``wait_cpu``, ns per unit), and
    the knee, the n from which on the queue is full. None where not measurable.
    """

    enqueue: Line | None
    complete: Line | None
    wait_cpu: float | None
    knee: Knee | None
    wall: Floats
    """The fitted samples ``n, issue, total``, ns; shape (samples, 3)."""
    below: Mask
    """For each of them, whether the line of ``issue`` was fitted to it."""

    def value(self, figure: str) -> float | None:
        """A figure of this process: ``issue``, ``host`` (CPU time: ``issue`` and CPU time in the
        wait) or ``complete`` in ns per unit, or ``fixed``, the intercept, in ns; None if not
        measurable.
        """
        if figure in ("complete", "fixed"):
            if self.complete is None:
                return None
            return self.complete.slope if figure == "complete" else self.complete.intercept

        if self.enqueue is None:
            return None
        if figure != "host":
            return self.enqueue.slope
        if self.wait_cpu is None:
            return None
        return self.enqueue.slope + self.wait_cpu

    def line(self, *, of_enqueue: bool) -> Line | None:
        """The line of ``issue``, or that of T(n)."""
        return self.enqueue if of_enqueue else self.complete

    def samples(self, *, of_enqueue: bool) -> FittedSamples:
        """The samples that this line was fitted to."""
        if of_enqueue:
            return FittedSamples(self.wall[self.below, 0], self.wall[self.below, 1])
        return FittedSamples(self.wall[:, 0], self.wall[:, 2])


@dataclass(frozen=True)
class FittedSamples:
    """The samples that a line was fitted to: by sample the number of units, and the time, ns."""

    n: Floats
    times: Floats


def wait_quantum(process: Process) -> float:
    """The time between two polls of the wait, ns; 0 if the wait returns without such a delay."""
    values = process.values("wait_quantum")
    return float(values[0]) if values else 0.0


def clock_step(process: Process) -> float:
    """The smallest step between two readings of the clock, ns; 0 if it is not known."""
    values = process.values("clock")
    return float(values[0]) if values else 0.0


def wall_rows(rounds: Sequence[RoundEntry]) -> Floats:
    """``n, issue, total`` of the samples that did not read the CPU clock, without n = 0; ns, shape
    (samples, 3).
    """
    return _rows(rounds, 3)


def totals_at(process: Process, n: int) -> Floats:
    """All T(n) of the rounds, ns."""
    totals: list[int] = []
    for entry in process.rounds:
        totals += [row[2] for row in entry.samples if row[0] == n and len(row) == 3]
    return np.array(totals, dtype=np.float64)


def single_waits(process: Process) -> Floats:
    """All T(1) of a process, ns: of the rounds and beside them."""
    beside = np.asarray(process.values("naive"), dtype=np.float64)
    return np.concatenate([totals_at(process, 1), beside])


def cpu_rows(rounds: Sequence[RoundEntry]) -> Floats:
    """``n, issue, total, wait_cpu`` of the samples that read the CPU clock, without n = 0; ns,
    shape (samples, 4).
    """
    return _rows(rounds, 4)


def _rows(rounds: Sequence[RoundEntry], width: int) -> Floats:
    """The samples with this number of columns, as an array, without n = 0, which no line is fitted
    to. Samples that read the CPU clock have four columns, the others three; they are never mixed,
    since that reading takes time.
    """
    rows: list[list[int]] = []
    for entry in rounds:
        rows += [row for row in entry.samples if len(row) == width and row[0] > 0]
    return np.array(rows, dtype=np.float64).reshape(-1, width)


def fit_process(process: Process, series: Series) -> ProcessFit:
    """Fit the lines through all samples of one process, and look for its knee, the n from which on
    the device's queue is full and each further call of ``issue`` waits.
    """
    # Rows: n, time of ``issue``, T(n). ``quantum``: ns between two polls of the wait, 0 if it does
    # not poll.
    wall = wall_rows(process.rounds)
    quantum = wait_quantum(process)
    knee = None
    # Only in a pipeline does the host run ahead of the device, so that a queue can fill.
    if series.overlap == "pipelined" and not series.synchronous and not quantum:
        knee = find_knee(wall[:, 0], wall[:, 1])

    # The n that the rounds sample; where the wait polls, each round draws its own.
    ladder = process.values("ladder")
    if ladder and not quantum:
        # At other n the calibration only looked for the knee.
        wall = wall[np.isin(wall[:, 0], ladder)]

    # The line of ``issue`` is fitted below the knee only. A polling wait rounds totals up, so their
    # line needs another fit.
    n, enqueue, total = wall.T
    if quantum:
        # Long calls of ``issue`` may have been interrupted.
        below = np.asarray(enqueue <= _RULE.longest_ns)
        complete = censored_line(n, total, quantum)
    else:
        # Up to nine tenths of the knee: nearer to it the queue may be full already.
        below = _below(n, knee)
        complete = robust_line(n, total, enqueue)
    return ProcessFit(
        enqueue=robust_line(n[below], enqueue[below]),
        complete=complete,
        wait_cpu=_cpu_in_wait(process.rounds, series),
        knee=knee,
        wall=wall,
        below=below,
    )


def _below(n: Floats, knee: Knee | None) -> Mask:
    """For each sample, whether its n is safely below the knee; True for all without a knee."""
    if knee is None:
        return np.ones(n.size, np.bool_)
    return np.asarray(n <= knee.n * _RULE.share_of_knee)


def _cpu_in_wait(rounds: Sequence[RoundEntry], series: Series) -> float | None:
    """CPU time of the caller inside ``wait``, where a library may do work that it put off, ns per
    unit; 0 if the wait does no work, None if not measured. A wait that spins keeps the CPU busy
    without work.
    """
    if series.synchronous or series.wait_spins:
        return 0.0
    # Columns 0 and 3 of these samples: n, and the CPU time in the wait.
    cpu = cpu_rows(rounds)
    return sen_slope(cpu[:, 0], cpu[:, 3])


def slopes_by_round(
    process: Process, series: Series, figure: str, knee: Knee | None
) -> dict[int, float]:
    """The figure in each round of a process, from the samples of that round alone (slopes by
    repeated medians), ns per unit, by the number of the round. Drifts, two speeds and paired
    differences are found with it.

    CPU time inside the wait is the same for all rounds, because few samples measure it. ``knee``:
    the n from which on the queue is full, if there is one. Empty if the wait polls: a round then
    has too few samples.
    """
    if wait_quantum(process):
        return {}
    cpu_in_wait: float | None = 0.0
    if figure == "host":
        cpu_in_wait = _cpu_in_wait(process.rounds, series)
    if cpu_in_wait is None:
        return {}

    slopes: dict[int, float] = {}
    for entry in process.rounds:
        n, enqueue, total = wall_rows([entry]).T
        if figure == "complete":
            slope = siegel_slope(n, total)
        else:
            # Safely below the knee; all samples if there is none.
            below = _below(n, knee)
            slope = siegel_slope(n[below], enqueue[below])
        if slope is not None:
            slopes[entry.round] = slope + cpu_in_wait
    return slopes
