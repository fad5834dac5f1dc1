"""The samples of a case and of one process, and the fit of one process: its lines, its knee, the
slopes of its rounds.

A process's time is divided into *rounds*. ``issue``: until the host has handed over n units;
``complete``: until the device has finished them; ``host``: ``issue`` and the CPU time inside the
wait.
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

    ``pace``: the time of its canary (a fixed loop) when nothing slows it down, ns (``best_pace``);
    0 if unknown.
    """

    rounds: Sequence[RoundEntry] = ()
    one_off: Mapping[str, OneOffEntry] = field(default_factory=dict)
    number: int = 0
    pace: float = 0.0

    def values(self, name: str) -> Sequence[float]:
        """The values of this name measured outside the rounds, ns unless the name says otherwise;
        empty without any.
        """
        return self.one_off[name].values if name in self.one_off else ()


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
class _IssueRule:
    """To which samples ``issue`` is fitted."""

    longest_ns: float = 5e6
    """If the wait polls: samples in which ``issue`` took at most so long. Longer ones may be
    interrupted; with a lower limit too few are left.
    """
    share_of_knee: float = 0.9
    """Only n up to this share of the knee: nearer to it the queue may be full already, a lower
    share wastes samples.
    """


_RULE = _IssueRule()


@dataclass(frozen=True)
class ProcessFit:
    """Both lines, the CPU time inside the wait (ns per unit), the knee; None where not
    measurable.
    """

    issue: Line | None
    complete: Line | None
    wait_cpu: float | None
    knee: Knee | None
    wall: Floats
    """The fitted samples ``n, issue, total``, ns; shape (samples, 3)."""
    below: Mask
    """For each of them, whether ``issue`` was fitted to it."""

    def value(self, figure: str) -> float | None:
        """``issue``, ``host`` or ``complete`` in ns per unit, or ``fixed`` in ns; None if not
        measurable.
        """
        if figure == "fixed":
            return self.complete.intercept if self.complete else None
        if figure == "complete":
            return self.complete.slope if self.complete else None
        if self.issue is None or (figure == "host" and self.wait_cpu is None):
            return None
        return self.issue.slope + (self.wait_cpu or 0.0) * (figure == "host")


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
    rows = [
        row[2] for one in process.rounds for row in one.samples if row[0] == n and len(row) == 3
    ]
    return np.array(rows, dtype=np.float64)


def single_waits(process: Process) -> Floats:
    """All T(1) of a process, ns: of the rounds and beside them."""
    return np.r_[totals_at(process, 1), np.asarray(process.values("naive"), dtype=np.float64)]


def cpu_rows(rounds: Sequence[RoundEntry]) -> Floats:
    """``n, issue, total, wait_cpu`` of the samples that read the CPU clock, without n = 0; ns,
    shape (samples, 4).
    """
    return _rows(rounds, 4)


def _rows(rounds: Sequence[RoundEntry], width: int) -> Floats:
    rows = [row for one in rounds for row in one.samples if len(row) == width and row[0] > 0]
    return np.array(rows, dtype=np.float64).reshape(-1, width)


def fit_process(process: Process, series: Series) -> ProcessFit:
    """The lines through all samples of one process, and its knee."""
    wall = wall_rows(process.rounds)
    n, issue, total = wall.T
    quantum = wait_quantum(process)
    queues = series.overlap == "pipelined" and not (series.synchronous or quantum)
    knee = find_knee(n, issue) if queues else None
    if quantum:
        below = np.asarray(issue <= _RULE.longest_ns)
        complete = censored_line(n, total, quantum)
    else:
        if ladder := process.values("ladder"):  # at other n calibration only looked for the knee
            wall = wall[np.isin(n, ladder)]
        n, issue, total = wall.T
        below = _below(n, knee)
        complete = robust_line(n, total, issue)
    return ProcessFit(
        robust_line(n[below], issue[below]),
        complete,
        _deferred(process.rounds, series),
        knee,
        wall,
        below,
    )


def _below(n: Floats, knee: Knee | None) -> Mask:
    """For each sample, whether its n is safely below the knee."""
    return np.asarray(n <= knee.n * _RULE.share_of_knee) if knee else np.ones(n.size, np.bool_)


def _deferred(rounds: Sequence[RoundEntry], series: Series) -> float | None:
    """CPU time of the caller inside ``wait``, ns per unit; 0 if the wait does no work, None if not
    measured.
    """
    if series.synchronous or series.wait_spins:
        return 0.0
    cpu = cpu_rows(rounds)
    return sen_slope(cpu[:, 0], cpu[:, 3])


def slopes_by_round(
    process: Process, series: Series, figure: str, knee: Knee | None
) -> dict[int, float]:
    """The slope from the samples of each round alone (repeated medians), ns per unit, by the number
    of the round.

    CPU time inside the wait is the same for all rounds, because few samples measure it. Empty if
    the wait polls: a round then has too few samples.
    """
    found: dict[int, float] = {}
    if wait_quantum(process):
        return found
    deferred = _deferred(process.rounds, series) if figure == "host" else 0.0
    for one in process.rounds:
        wall = wall_rows([one])
        below = np.ones(len(wall), np.bool_) if figure == "complete" else _below(wall[:, 0], knee)
        value = siegel_slope(wall[below, 0], wall[below, 2 if figure == "complete" else 1])
        if value is not None and deferred is not None:
            found[one.round] = value + deferred
    return found
