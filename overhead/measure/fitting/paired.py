"""Figures from several cases that alternated in the same processes: differences, ratios and
marginal costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Series, fit_process, slopes_by_round
from overhead.measure.fitting.quiet_rounds import QUIET, has_enough_processes, without_slow_rounds
from overhead.results import Case, Figure, Reason, because

_Pair = tuple[Floats, Floats, float]
"""The values of both cases in the rounds of one process, ns per unit, and the canary of the
process, ns.
"""

MARGINAL_COSTS = ("per_submit", "per_pass", "per_dispatch", "per_bind")


class Paired(NamedTuple):
    """What ``difference_and_ratio`` returns."""

    difference: Figure
    ratio: Figure


class PerDispatch(NamedTuple):
    """How many submits, passes, dispatches and bind-group changes a case makes for one dispatch."""

    submits: float
    passes: float
    dispatches: float = 1.0
    binds: float = 0.0

    @classmethod
    def of(cls, case: Case) -> PerDispatch | None:
        """The numbers for a case; None for a pattern or a ``bindgroup`` that does not vary them."""
        binds = {"once": 0.0, "rotated": 1.0}.get(str(case.params.get("bindgroup", "once")))
        share = 1 / int(case.params["k"]) if case.pattern == "per-k" else 1.0
        counts = {
            "per-submit": (1.0, 1.0),
            "per-k": (share, share),
            "per-pass": (0.0, 1.0),
            "one-pass": (0.0, 0.0),
        }
        if binds is None or case.pattern not in counts:
            return None
        return cls(*counts[case.pattern], binds=binds)


def difference_and_ratio(
    of: Series, against: Series, figure: str, target: float = 0.03, times: float = 1.0
) -> Paired:
    """``of`` minus ``times * against`` (ns), and their ratio, for cases that alternated in the same
    processes.

    Both are formed in each round that both cases have (without slow rounds of either), then the
    median over the rounds of a process, then the mean of the processes. The precision of the
    difference is relative to ``of``. A negative difference stays negative; it is ``noisy`` if its
    interval reaches 0 or below. ``figure``: which one is paired, such as ``host``. ``target``: the
    half-width of an ``ok`` figure. Without a common round both are ``failed``.
    """
    pairs = [(a, times * b, pace) for a, b, pace in _pairs_of_quiet_rounds(of, against, figure)]
    if not pairs:
        nothing = Figure(name="difference", status="failed", reason=because("no-round-in-common"))
        return Paired(nothing, replace(nothing, name="ratio", unit="ratio"))
    scale = float(np.mean([np.median(np.abs(a)) for a, _, _ in pairs]))
    differences = [float(np.median(a - b)) for a, b, _ in pairs]
    paces = [pace for _, _, pace in pairs]
    difference = mean_of_processes("difference", differences, target, scale=scale, paces=paces)
    ratios = [(float(np.median(a / b)), pace) for a, b, pace in pairs if np.all(b != 0)]
    paces = [pace for _, pace in ratios]
    ratio = mean_of_processes("ratio", [q for q, _ in ratios], target, unit="ratio", paces=paces)
    return Paired(_separable(difference, because("difference-not-separable")), ratio)


def _pairs_of_quiet_rounds(of: Series, against: Series, figure: str) -> list[_Pair]:
    """One pair for each process, without the slow rounds of either case; with all rounds if too few
    would be left.
    """
    quiet = without_slow_rounds(of), without_slow_rounds(against)
    if quiet[0] is not of or quiet[1] is not against:
        found = _pairs(*quiet, figure, QUIET.rounds)
        whole = set.intersection(
            *({p.number for p in s.processes if p.rounds} for s in (of, against))
        )
        if has_enough_processes(len(found), len(whole)):
            return found
    return _pairs(of, against, figure)


def _pairs(of: Series, against: Series, figure: str, least: int = 1) -> list[_Pair]:
    """One pair for each process in which both cases have at least ``least`` rounds in common."""
    others, found, paces = _rounds(against, figure), [], {p.number: p.pace for p in of.processes}
    for number, mine in _rounds(of, figure).items():
        theirs = others.get(number, {})
        both = sorted(mine.keys() & theirs.keys())
        if len(both) >= least:
            found.append(
                (
                    np.array([mine[r] for r in both]),
                    np.array([theirs[r] for r in both]),
                    paces[number],
                )
            )
    return found


def _rounds(series: Series, figure: str) -> dict[int, dict[int, float]]:
    """The figure by process and round, ns per unit. Raises ``ValueError`` if two processes have the
    same number.
    """
    found = {
        p.number: slopes_by_round(p, series, figure, fit_process(p, series).knee)
        for p in series.processes
    }
    if len(found) < len(series.processes):
        raise ValueError("two processes have the same number")
    return found


def marginal_costs(
    members: Mapping[PerDispatch, Series],
    target: float = 0.03,
    figure: str = "host",
    *,
    passes: bool = True,
) -> dict[str, Figure]:
    """The cost of one more submit, pass, dispatch and bind-group change, ns, from several patterns
    of one case.

    ``members``: the case in each pattern. ``passes``: whether the API has passes. For each process
    with all patterns the costs solve ``figure = sum of counts * costs`` by least squares on
    relative residuals; then follows the mean of the processes. A cost that these patterns do not
    determine is ``unavailable``; one whose interval reaches 0 is ``noisy``.
    """
    table = np.array([*members]) * np.array([1, passes, 1, 1])
    solved: dict[str, list[tuple[float, float]]] = {name: [] for name in MARGINAL_COSTS}
    for values, pace in _values_by_process([*members.values()], figure):
        known = np.array([value is not None and value > 0 for value in values])
        size = np.array([value for value in values if value is not None and value > 0])
        if not size.size:
            continue
        answer = np.linalg.lstsq(table[known] / size[:, None], np.ones(size.size), rcond=None)[0]
        for column, name in enumerate(MARGINAL_COSTS):
            if _determined(table[known], column):
                solved[name].append((float(answer[column]), pace))
    found = {name: _marginal_cost(name, costs, target) for name, costs in solved.items()}
    if not passes:
        found["per_pass"] = Figure(
            name="per_pass", status="unavailable", reason=because("no-passes")
        )
    return found


def _values_by_process(
    members: Sequence[Series], figure: str
) -> list[tuple[list[float | None], float]]:
    """For each process with all members: the figure of every member, and the canary of the process;
    ns.
    """
    counted = [without_slow_rounds(member) for member in members]
    common, whole = (
        set.intersection(*({p.number for p in s.processes} for s in own))
        for own in (counted, members)
    )
    if not has_enough_processes(len(common), len(whole)):
        counted, common = [*members], whole
    columns = [
        {p.number: fit_process(p, s).value(figure) for p in s.processes if p.number in common}
        for s in counted
    ]
    paces = {p.number: p.pace for p in members[0].processes}
    return [([column[number] for column in columns], paces[number]) for number in sorted(common)]


def _marginal_cost(name: str, costs: list[tuple[float, float]], target: float) -> Figure:
    """One cost. ``costs``: its value and the canary in each process, ns."""
    if not costs:
        return Figure(name=name, status="unavailable", reason=because("cost-not-determined"))
    mean = mean_of_processes(
        name, [cost for cost, _ in costs], target, paces=[pace for _, pace in costs]
    )
    return _separable(mean, because("cost-not-separable"))


def _separable(found: Figure, otherwise: Reason) -> Figure:
    """The same figure, but ``noisy`` with this reason if its interval reaches 0 or below."""
    if found.low is not None and found.low > 0:
        return found
    return replace(found, status="noisy", reason=otherwise)


def _determined(table: Floats, column: int) -> bool:
    """Whether the equations determine the unknown of this column: without it their rank is
    lower.
    """
    others = np.delete(table, column, axis=1)
    return (
        bool(np.linalg.matrix_rank(table) > np.linalg.matrix_rank(others))
        if others.size
        else bool(table.any())
    )
