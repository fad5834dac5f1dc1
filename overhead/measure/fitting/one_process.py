"""What one process's rounds say: its lines, its knee, and each round's own slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.data import Process, Round, Series
from overhead.measure.fitting.knee import Knee, find_knee
from overhead.measure.fitting.line import Floats, Line, Mask, robust_line, sen_slope, siegel_slope
from overhead.measure.fitting.polled_line import censored_line

SLOPES = ("issue", "host", "complete")
SHORT_NS = 5e6
"""Behind a polling wait samples last as long as they must, but ``issue`` is fitted to those where it was this short."""
BELOW_KNEE = 0.9
"""``issue`` is fitted to n up to this share of the knee."""


@dataclass(frozen=True)
class ProcessFit:
    """ns per unit and ns; None where the samples do not give it."""

    issue: Line | None
    complete: Line | None
    wait_cpu: float | None
    knee: Knee | None
    wall: Floats
    """``n, issue, total`` by sample."""
    below: Mask
    """The samples below the knee."""

    def value(self, figure: str) -> float | None:
        """``issue``, ``host``, ``complete`` in ns per unit, or ``fixed`` in ns."""
        if figure == "fixed":
            return self.complete.intercept if self.complete else None
        if figure == "complete":
            return self.complete.slope if self.complete else None
        if self.issue is None or (figure == "host" and self.wait_cpu is None):
            return None
        return self.issue.slope + (self.wait_cpu or 0.0) * (figure == "host")


def quantum_of(process: Process) -> float:
    """ns between two looks of a polling wait; 0 where the wait is not censored."""
    values = process.values("wait_quantum")
    return float(values[0]) if values else 0.0


def wall_rows(rounds: Sequence[Round]) -> Floats:
    """``n, issue, total`` of the samples with two clock readings, n = 0 left out; shape (samples, 3)."""
    return _rows(rounds, 3)


def cpu_rows(rounds: Sequence[Round]) -> Floats:
    """``n, issue, total, wait_cpu`` of the samples that read the CPU clock; shape (samples, 4)."""
    return _rows(rounds, 4)


def _rows(rounds: Sequence[Round], width: int) -> Floats:
    rows = [row for one in rounds for row in one.samples if len(row) == width and row[0] > 0]
    return np.array(rows, dtype=np.float64).reshape(-1, width)


def fit_process(process: Process, series: Series) -> ProcessFit:
    """The lines through all samples of one process."""
    wall = wall_rows(process.rounds)
    n, issue, total = wall.T
    quantum = quantum_of(process)
    queues = series.overlap == "pipelined" and not (series.synchronous or quantum)
    knee = find_knee(n, issue) if queues else None
    if quantum:
        below = np.asarray(issue <= SHORT_NS)
        complete = censored_line(n, total, quantum)
    else:
        wall = wall[_regular(process, n)]
        n, issue, total = wall.T
        below = _below(n, knee)
        complete = robust_line(n, total, issue)
    return ProcessFit(
        robust_line(n[below], issue[below]), complete, _deferred(process.rounds, series), knee, wall, below
    )


def _regular(process: Process, n: Floats) -> Mask:
    """The samples on the ladder, without the few that calibration took to find the knee."""
    ladder = process.values("ladder")
    return np.isin(n, ladder) if ladder else np.ones(n.size, np.bool_)


def _below(n: Floats, knee: Knee | None) -> Mask:
    return np.asarray(n <= knee.n * BELOW_KNEE) if knee else np.ones(n.size, np.bool_)


def _deferred(rounds: Sequence[Round], series: Series) -> float | None:
    """ns of the caller's CPU per unit inside ``wait``; 0 where the wait does nothing for it, None if unknown."""
    if series.synchronous or series.wait_spins:
        return 0.0
    cpu = cpu_rows(rounds)
    return sen_slope(cpu[:, 0], cpu[:, 3])


def by_round(process: Process, series: Series, figure: str, knee: Knee | None) -> dict[int, float]:
    """The slope from each round's samples alone, by the round's number, by repeated medians.

    Work deferred into the wait, which few samples tell, is the process's. Empty behind a polling wait, where a round
    holds too few samples.
    """
    found: dict[int, float] = {}
    if quantum_of(process):
        return found
    deferred = _deferred(process.rounds, series) if figure == "host" else 0.0
    for one in process.rounds:
        value = _round_value(one, figure, knee, deferred)
        if value is not None:
            found[one.number] = value
    return found


def _round_value(one: Round, figure: str, knee: Knee | None, deferred: float | None) -> float | None:
    wall = wall_rows([one])
    n = wall[:, 0]
    if figure == "complete":
        return siegel_slope(n, wall[:, 2])
    below = _below(n, knee)
    issue = siegel_slope(n[below], wall[below, 1])
    return None if issue is None or deferred is None else issue + deferred
