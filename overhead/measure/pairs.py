"""Figures that come of several cases: differences and ratios of pairs, and marginal costs of a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.figures import Estimate, Paired, Series
from overhead.measure.fit import Floats
from overhead.measure.gates import across
from overhead.measure.process import by_round, fit_process


def _rounds(series: Series, figure: str) -> list[dict[int, float]]:
    """By process, the figure of each round."""
    return [by_round(p, series, figure, fit_process(p, series)) for p in series.processes]


def paired(of: Series, against: Series, figure: str, target: float = 0.03) -> Paired:
    """``of`` minus ``against`` and ``of`` over ``against``, for cases that alternated in the same processes.

    Formed in each round that both have, the median of a process's rounds, then across processes. The difference is
    judged against the size of ``of``. A negative difference stays negative; where its interval holds 0 or lies below,
    it is ``noisy`` with the reason that the two are not separable.
    """
    differences: list[Floats] = []
    ratios: list[Floats] = []
    sizes: list[float] = []
    for mine, theirs in zip(_rounds(of, figure), _rounds(against, figure), strict=False):
        both = sorted(mine.keys() & theirs.keys())
        if both:
            a, b = np.array([mine[r] for r in both]), np.array([theirs[r] for r in both])
            differences.append(a - b)
            sizes.append(float(np.median(np.abs(a))))
            if np.all(b != 0):
                ratios.append(a / b)
    if not differences:
        nothing = Estimate(status="failed", reason="the two cases have no round in common")
        return Paired(nothing, replace(nothing, unit="ratio"))
    scale = float(np.mean(sizes))
    difference = across([float(np.median(d)) for d in differences], target, scale=scale, rounds=differences)
    if difference.low is None or difference.low <= 0:
        words = "not separable: the interval of the difference reaches 0 or below"
        difference = replace(difference, status="noisy", reason=words)
    ratio = across([float(np.median(q)) for q in ratios], target, unit="ratio", rounds=ratios)
    return Paired(difference, ratio)


@dataclass(frozen=True)
class Member:
    """A case of a family, and how many of each thing one of its units holds: ``{"submit": 0.25, "dispatch": 1}``."""

    series: Series
    counts: Mapping[str, float]


def counts_of(pattern: str, k: int = 1, binds: float = 0.0) -> dict[str, float]:
    """What a dispatch of a pattern holds. ``k``: dispatches a submission; ``binds``: bind-group changes a dispatch."""
    table: dict[str, Callable[[], tuple[float, float]]] = {
        "per-submit": lambda: (1.0, 1.0),
        "per-k": lambda: (1.0 / k, 1.0 / k),
        "per-pass": lambda: (0.0, 1.0),
        "one-pass": lambda: (0.0, 0.0),
    }
    submits, passes = table[pattern]()
    return {"submit": submits, "pass": passes, "dispatch": 1.0, "bind": binds}


def marginal(members: Sequence[Member], figure: str = "host", target: float = 0.03) -> dict[str, Estimate]:
    """The cost of each thing, ns: the figure of every member as the sum of its counts times these costs.

    Least squares in each process, each member weighted by the inverse of its size, then across processes. A thing
    whose cost the members do not tell apart is ``unavailable``. Raises KeyError for a member without counts.
    """
    things = sorted({thing for member in members for thing, count in member.counts.items() if count})
    table = np.array([[member.counts.get(thing, 0.0) for thing in things] for member in members])
    columns = [[fit_process(p, m.series).value(figure) for p in m.series.processes] for m in members]
    solved: dict[str, list[float]] = {thing: [] for thing in things}
    for process in range(min(map(len, columns), default=0)):
        values = [column[process] for column in columns]
        known = np.array([v is not None and v > 0 for v in values])
        if not known.any():
            continue
        cost = np.array([v for v, k in zip(values, known, strict=True) if k], dtype=np.float64)
        rows = table[known] / cost[:, None]
        answer = np.linalg.lstsq(rows, np.ones(cost.size), rcond=None)[0]
        for column, thing in enumerate(things):
            if _told_apart(table[known], column):
                solved[thing].append(float(answer[column]))
    missing = Estimate(status="unavailable", reason="the patterns measured do not tell this cost from the others")
    return {thing: across(values, target) if values else missing for thing, values in solved.items()}


def _told_apart(table: Floats, column: int) -> bool:
    """Whether the cost in this column is determined: the rank falls without it."""
    others = np.delete(table, column, axis=1)
    return bool(np.linalg.matrix_rank(table) > np.linalg.matrix_rank(others)) if others.size else bool(table.any())
