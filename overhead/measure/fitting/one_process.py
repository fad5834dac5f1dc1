"""The fit of one process: its lines, its knee, and the slopes of each round alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.data import Process, Series
from overhead.measure.fitting.knee import Knee, find_knee
from overhead.measure.fitting.line import Floats, Line, Mask, robust_line, sen_slope, siegel_slope
from overhead.measure.fitting.polled_line import censored_line
from overhead.results import RoundLine

SLOPES = ("issue", "host", "complete")
"""The figures in ns per unit."""
_MAX_ISSUE_NS = 5e6
"""If the wait polls, ``issue`` is fitted to the samples in which it was at most this long."""
_SHARE_OF_KNEE = 0.9
"""``issue`` is fitted to n up to this share of the knee."""


@dataclass(frozen=True)
class ProcessFit:
    """Both lines, the CPU time inside the wait (ns per unit), the knee; None where not measurable."""

    issue: Line | None
    complete: Line | None
    wait_cpu: float | None
    knee: Knee | None
    wall: Floats
    """The fitted samples ``n, issue, total``, ns; shape (samples, 3)."""
    below: Mask
    """For each of them, whether ``issue`` was fitted to it."""

    def value(self, figure: str) -> float | None:
        """``issue``, ``host`` or ``complete`` in ns per unit, or ``fixed`` in ns; None if not measurable."""
        if figure == "fixed":
            return self.complete.intercept if self.complete else None
        if figure == "complete":
            return self.complete.slope if self.complete else None
        if self.issue is None or (figure == "host" and self.wait_cpu is None):
            return None
        return self.issue.slope + (self.wait_cpu or 0.0) * (figure == "host")


def wait_quantum(process: Process) -> float:
    """Time between two polls of the wait, ns; 0 if the wait returns without such a delay."""
    values = process.values("wait_quantum")
    return float(values[0]) if values else 0.0


def wall_rows(rounds: Sequence[RoundLine]) -> Floats:
    """``n, issue, total`` of the samples that did not read the CPU clock, without n = 0; ns, shape (samples, 3)."""
    return _rows(rounds, 3)


def cpu_rows(rounds: Sequence[RoundLine]) -> Floats:
    """``n, issue, total, wait_cpu`` of the samples that read the CPU clock, without n = 0; ns, shape (samples, 4)."""
    return _rows(rounds, 4)


def _rows(rounds: Sequence[RoundLine], width: int) -> Floats:
    rows = [row for one in rounds for row in one.samples if len(row) == width and row[0] > 0]
    return np.array(rows, dtype=np.float64).reshape(-1, width)


def fit_process(process: Process, series: Series) -> ProcessFit:
    """The lines through all samples of one process."""
    wall = wall_rows(process.rounds)
    n, issue, total = wall.T
    quantum = wait_quantum(process)
    queues = series.overlap == "pipelined" and not (series.synchronous or quantum)
    knee = find_knee(n, issue) if queues else None
    if quantum:
        below = np.asarray(issue <= _MAX_ISSUE_NS)
        complete = censored_line(n, total, quantum)
    else:
        wall = wall[_on_ladder(process, n)]
        n, issue, total = wall.T
        below = _below(n, knee)
        complete = robust_line(n, total, issue)
    return ProcessFit(
        robust_line(n[below], issue[below]), complete, _deferred(process.rounds, series), knee, wall, below
    )


def _on_ladder(process: Process, n: Floats) -> Mask:
    """For each sample, False if its n is not on the ladder: calibration took it to find the knee."""
    ladder = process.values("ladder")
    return np.isin(n, ladder) if ladder else np.ones(n.size, np.bool_)


def _below(n: Floats, knee: Knee | None) -> Mask:
    """For each sample, whether its n is safely below the knee."""
    return np.asarray(n <= knee.n * _SHARE_OF_KNEE) if knee else np.ones(n.size, np.bool_)


def _deferred(rounds: Sequence[RoundLine], series: Series) -> float | None:
    """CPU time of the caller inside ``wait``, ns per unit; 0 if the wait does no work, None if not measured."""
    if series.synchronous or series.wait_spins:
        return 0.0
    cpu = cpu_rows(rounds)
    return sen_slope(cpu[:, 0], cpu[:, 3])


def by_round(process: Process, series: Series, figure: str, knee: Knee | None) -> dict[int, float]:
    """The slope from the samples of each round alone (repeated medians), ns per unit, by the number of the round.

    CPU time inside the wait is the same for all rounds, because few samples measure it. Empty if the wait polls: a
    round then has too few samples.
    """
    found: dict[int, float] = {}
    if wait_quantum(process):
        return found
    deferred = _deferred(process.rounds, series) if figure == "host" else 0.0
    for one in process.rounds:
        value = _round_value(one, figure, knee, deferred)
        if value is not None:
            found[one.round] = value
    return found


def _round_value(one: RoundLine, figure: str, knee: Knee | None, deferred: float | None) -> float | None:
    """The slope from the samples of one round, ns per unit; None if not measurable."""
    wall = wall_rows([one])
    n = wall[:, 0]
    if figure == "complete":
        return siegel_slope(n, wall[:, 2])
    below = _below(n, knee)
    issue = siegel_slope(n[below], wall[below, 1])
    return None if issue is None or deferred is None else issue + deferred
