"""From raw samples to figures with intervals. Times in ns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.figures import Estimate, Paired, Process, Round, Series
from overhead.measure.fit import Floats, Knee, find_knee, theil_sen
from overhead.measure.gates import across


@dataclass(frozen=True)
class _Fit:
    """One process: slopes in ns per unit, the intercept in ns; None where the samples do not give it."""

    issue: float | None
    complete: float | None
    fixed: float | None
    wait_cpu: float | None
    knee: Knee | None

    @property
    def host(self) -> float | None:
        return None if self.issue is None or self.wait_cpu is None else self.issue + self.wait_cpu


def _columns(rounds: Sequence[Round], cpu: bool) -> Floats:
    rows = [row[: 4 if cpu else 3] for r in rounds for row in r.samples if (len(row) == 4) == cpu and row[0] > 0]
    return np.array(rows, dtype=np.float64).reshape(-1, 4 if cpu else 3)


def _fit(rounds: Sequence[Round], series: Series) -> _Fit:
    wall, cpu = _columns(rounds, False), _columns(rounds, True)
    n, issue, total = wall.T
    knee = None if series.synchronous else find_knee(n, issue, total)
    below = n <= knee.n * 0.9 if knee else np.ones(n.size, bool)
    issued, completed = theil_sen(n[below], issue[below]), theil_sen(n, total)
    deferred = 0.0 if series.synchronous or series.wait_spins else None
    if deferred is None and cpu.size:
        line = theil_sen(cpu[:, 0], cpu[:, 3])
        deferred = line.slope if line else None
    return _Fit(
        issued.slope if issued else None,
        completed.slope if completed else None,
        completed.intercept if completed else None,
        deferred,
        knee,
    )


def estimate(series: Series, target: float) -> dict[str, Estimate]:
    """All figures of one case, by name. ``target``: the relative half-width that ``ok`` asks for."""
    fits = [_fit(process.rounds, series) for process in series.processes if process.rounds]
    figures = {
        name: across([v for f in fits if (v := getattr(f, name)) is not None], target)
        for name in ("issue", "host", "complete")
    }
    complete = figures["complete"].value or 0.0
    fixed = [f.fixed for f in fits if f.fixed is not None]
    scale = abs(float(np.mean(fixed))) + abs(complete) if fixed else None
    figures["fixed"] = across(fixed, target, scale)
    knees = [f.knee for f in fits if f.knee]
    if len(knees) * 2 > len(fits):
        figures["knee_n"] = across([k.n for k in knees], target, unit="n")
        figures["queue_depth"] = across([k.depth for k in knees], target, unit="n")
    figures |= _once(series, target)
    return figures


_PERCENTILES = {"p50": 50, "p95": 95, "p99": 99}


def _once(series: Series, target: float) -> dict[str, Estimate]:
    """Figures from the values taken once a process: the median of each process, then across processes."""
    found: dict[str, list[float]] = {}
    for process in series.processes:
        for name, values in process.once.items():
            if name == "latency" and values:
                for figure, percent in _PERCENTILES.items():
                    found.setdefault(figure, []).append(float(np.percentile(values, percent)))
            elif values and not name.startswith("stage:"):
                found.setdefault(name, []).append(float(np.median(values)))
        legacy = [row[2] / 100 for r in process.rounds for row in r.samples if row[0] == 100 and len(row) == 3]
        if legacy and "legacy" not in process.once:
            found.setdefault("legacy", []).append(float(np.median(legacy)))
    return {name: across(values, target) for name, values in found.items()}


def bound(series: Series, figures: Mapping[str, Estimate]) -> str:
    """``host``, ``device`` or ``balanced`` for pipelined patterns, ``host`` for synchronous stacks, else empty."""
    if series.synchronous:
        return "host"
    host, complete = figures.get("host"), figures.get("complete")
    if series.overlap != "pipelined" or not host or not complete or host.value is None or not complete.value:
        return ""
    share = host.value / complete.value
    return "host" if share > 0.9 else "device" if share < 0.75 else "balanced"


def paired(of: Series, against: Series, figure: str, target: float = 0.03) -> Paired:
    """The difference and the ratio of one figure of two cases that alternated in the same processes.

    Formed per round within each process (the median of its rounds), then across processes. A negative difference stays
    negative; where the interval holds 0 or is negative the two are said to be not separable.
    """
    differences, ratios = [], []
    for mine, theirs in zip(of.processes, against.processes, strict=False):
        others = {r.number: r for r in theirs.rounds}
        d, q = [], []
        for r in mine.rounds:
            if r.number in others:
                a, b = getattr(_fit([r], of), figure), getattr(_fit([others[r.number]], against), figure)
                if a is not None and b is not None:
                    d.append(a - b)
                    if b:
                        q.append(a / b)
        if d:
            differences.append(float(np.median(d)))
        if q:
            ratios.append(float(np.median(q)))
    difference = across(differences, target)
    if difference.low is not None and difference.low <= 0:
        difference = replace(
            difference, status="noisy", reason="not separable: the interval of the difference reaches 0 or below"
        )
    return Paired(difference, across(ratios, target, unit="ratio"))


__all__ = ["Estimate", "Paired", "Process", "Round", "Series", "bound", "estimate", "paired"]
