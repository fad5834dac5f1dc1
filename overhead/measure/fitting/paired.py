"""Figures that come of several cases: differences and ratios of pairs, and marginal costs of a family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from overhead.measure.fitting.across_processes import across
from overhead.measure.fitting.data import Estimate, Paired, Series
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import by_round, fit_process
from overhead.measure.fitting.quiet_rounds import ROUNDS, enough, quiet


def _rounds(series: Series, figure: str) -> dict[int, dict[int, float]]:
    """By process, the figure of each round. Raises ``ValueError`` where two processes go by one number."""
    found = {p.number: by_round(p, series, figure, fit_process(p, series).knee) for p in series.processes}
    if len(found) < len(series.processes):
        raise ValueError("two processes go by one number")
    return found


Pair = tuple[Floats, Floats, float]
"""Both cases' values by round, and the process's pace."""


def _together(of: Series, against: Series, figure: str, least: int = 1) -> list[Pair]:
    """By process, both cases' values of each round that both have, where these are ``least`` or more."""
    others, found, paces = _rounds(against, figure), [], {p.number: p.pace for p in of.processes}
    for number, mine in _rounds(of, figure).items():
        theirs = others.get(number, {})
        both = sorted(mine.keys() & theirs.keys())
        if len(both) >= least:
            found.append((np.array([mine[r] for r in both]), np.array([theirs[r] for r in both]), paces[number]))
    return found


def _quiet_together(of: Series, against: Series, figure: str) -> list[Pair]:
    """The same of the rounds that are usual (``quiet``) on both sides, where that leaves enough, else of all."""
    left = quiet(of), quiet(against)
    if left[0] is not of or left[1] is not against:
        found = _together(*left, figure, ROUNDS)
        whole = set.intersection(*({p.number for p in s.processes if p.rounds} for s in (of, against)))
        if enough(len(found), len(whole)):
            return found
    return _together(of, against, figure)


def paired(of: Series, against: Series, figure: str, target: float = 0.03, times: float = 1.0) -> Paired:
    """``of`` minus ``against`` and ``of`` over ``against``, for cases that alternated in the same processes.

    ``against`` counts ``times`` times. Formed in each round that both have and that is usual on both sides, the median
    of a process's rounds, then across processes. The difference is judged against the size of ``of``. A negative
    difference stays negative; where its interval holds 0 or lies below, it is ``noisy`` with the reason that the two
    are not separable.
    """
    pairs = [(a, times * b, pace) for a, b, pace in _quiet_together(of, against, figure)]
    if not pairs:
        nothing = Estimate(status="failed", reason="the two cases have no round in common")
        return Paired(nothing, replace(nothing, unit="ratio"))
    scale = float(np.mean([np.median(np.abs(a)) for a, _, _ in pairs]))
    differences = [float(np.median(a - b)) for a, b, _ in pairs]
    difference = across(differences, target, scale=scale, paces=[pace for _, _, pace in pairs])
    ratios = [(float(np.median(a / b)), pace) for a, b, pace in pairs if np.all(b != 0)]
    ratio = across([q for q, _ in ratios], target, unit="ratio", paces=[pace for _, pace in ratios])
    return Paired(_separable(difference, "the difference"), ratio)


PARTS = ("per_submit", "per_pass", "per_dispatch", "per_bind")


def counts_of(name: str) -> tuple[float, float, float, float]:
    """Submits, passes, dispatches and bind-group changes a dispatch, by the pattern's name.

    ``per-submit``, ``per-k 16``, ``per-pass`` or ``one-pass``, with `` rotated`` after it where each dispatch sets
    another bind group. Raises KeyError for another pattern.
    """
    pattern, *more = name.split()
    each = 1 / int(more[0]) if pattern == "per-k" else 1.0
    submits, passes = {"per-submit": (1, 1), "per-k": (each, each), "per-pass": (0, 1), "one-pass": (0, 0)}[pattern]
    return float(submits), float(passes), 1.0, float("rotated" in more)


def marginal(
    members: Mapping[str, Series], target: float = 0.03, figure: str = "host", *, passes: bool = True
) -> dict[str, Estimate]:
    """What one more submit, pass, dispatch and bind-group change costs, ns, from the patterns of one case together.

    ``members``: by the names that ``counts_of`` knows. In each process in which all took part, the figure of every
    pattern is taken as the sum of its counts times the costs, by least squares with each pattern weighted by the
    inverse of its size; then across processes. A cost that the patterns at hand do not tell from the others is
    ``unavailable``; where the interval reaches 0 it is not separable. ``passes``: whether the API has any.
    """
    table = np.array([counts_of(name) for name in members]) * np.array([1, passes, 1, 1])
    solved: dict[str, list[tuple[float, float]]] = {part: [] for part in PARTS}
    for values, pace in _columns([*members.values()], figure):
        known = np.array([value is not None and value > 0 for value in values])
        cost = np.array([value for value in values if value is not None and value > 0])
        if not cost.size:
            continue
        answer = np.linalg.lstsq(table[known] / cost[:, None], np.ones(cost.size), rcond=None)[0]
        for column, part in enumerate(PARTS):
            if _told_apart(table[known], column):
                solved[part].append((float(answer[column]), pace))
    found = {part: _marginal(told, target) for part, told in solved.items()}
    none = {} if passes else {"per_pass": Estimate(status="unavailable", reason="this API has no passes")}
    return found | none


def _columns(members: Sequence[Series], figure: str) -> list[tuple[list[float | None], float]]:
    """The figure of every member in each process that all took part in, and that process's pace; of quiet rounds, where
    enough processes have them in all."""
    left = [quiet(member) for member in members]
    common, whole = (set.intersection(*({p.number for p in s.processes} for s in own)) for own in (left, members))
    if not enough(len(common), len(whole)):
        left, common = [*members], whole
    columns = [{p.number: fit_process(p, s).value(figure) for p in s.processes if p.number in common} for s in left]
    paces = {p.number: p.pace for p in members[0].processes}
    return [([column[number] for column in columns], paces[number]) for number in sorted(common)]


def _marginal(told: list[tuple[float, float]], target: float) -> Estimate:
    """``told``: by process, the cost and the pace."""
    if not told:
        return Estimate(status="unavailable", reason="the patterns measured do not tell this cost from the others")
    return _separable(across([cost for cost, _ in told], target, paces=[pace for _, pace in told]), "the cost")


def _separable(found: Estimate, what: str) -> Estimate:
    """The estimate, marked where its interval holds 0 or lies below it."""
    if found.low is not None and found.low > 0:
        return found
    return replace(found, status="noisy", reason=f"not separable: the interval of {what} reaches 0 or below")


def _told_apart(table: Floats, column: int) -> bool:
    """Whether the cost in this column is determined: the rank falls without it."""
    others = np.delete(table, column, axis=1)
    return bool(np.linalg.matrix_rank(table) > np.linalg.matrix_rank(others)) if others.size else bool(table.any())
