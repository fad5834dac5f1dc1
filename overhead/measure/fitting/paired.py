"""Figures from several cases that alternated in the same processes: differences, ratios and
marginal costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Series, fit_process, slopes_by_round
from overhead.measure.fitting.spread import median
from overhead.measure.fitting.undisturbed_rounds import (
    UNDISTURBED,
    has_enough_processes,
    without_slow_rounds,
)
from overhead.results import Case, Figure, Reason, because

MARGINAL_COSTS = ("per_submit", "per_pass", "per_dispatch", "per_bind")
"""The names of the marginal costs, in the order of the fields of ``PerDispatch``."""


@dataclass(frozen=True)
class _Pair:
    """The values of both cases in the rounds of one process, ns per unit, and the reference loop of
    the process (``pace``), ns.
    """

    of: Floats
    against: Floats
    pace: float


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
        """The numbers for a case, by its pattern (how dispatches are grouped into passes and
        submissions); None for a pattern or a ``bindgroup`` that does not vary them.
        """
        bindgroup = str(case.params.get("bindgroup", "once"))
        if bindgroup not in ("once", "rotated"):
            return None
        # ``rotated``: the bind group (the buffers that a kernel uses) changes before each dispatch.
        binds = 1.0 if bindgroup == "rotated" else 0.0
        if case.pattern == "per-submit":
            return cls(submits=1.0, passes=1.0, binds=binds)
        if case.pattern == "per-k":
            # One submit with one pass holds k dispatches.
            share = 1 / int(case.params["k"])
            return cls(submits=share, passes=share, binds=binds)
        if case.pattern == "per-pass":
            return cls(submits=0.0, passes=1.0, binds=binds)
        if case.pattern == "one-pass":
            return cls(submits=0.0, passes=0.0, binds=binds)
        return None


def difference_and_ratio(
    of: Series, against: Series, figure: str, precision: float = 0.03, times: float = 1.0
) -> Paired:
    """How much more the case ``of`` costs than another one: ``of`` minus ``times * against`` (ns),
    and the ratio of both, for cases that alternated in the same processes.

    Both are formed in each round that both cases have (without slow rounds of either), so that
    changes of the machine's speed cancel; then comes the median over the rounds of a process, then
    the mean of the processes. The precision of the difference is relative to ``of``. A negative
    difference stays negative; it is ``noisy`` if its interval reaches 0 or below. ``figure``: which
    one is paired, such as ``host``. ``precision``: the half-width of an ``ok`` figure. Without a
    common round both are ``failed``.
    """
    pairs = _undisturbed_pairs(of, against, figure)
    if not pairs:
        nothing = Figure(name="difference", status="failed", reason=because("no-round-in-common"))
        return Paired(nothing, replace(nothing, name="ratio", unit="ratio"))

    # Each list has one value per process, the median over its rounds.
    sizes: list[float] = []
    differences: list[float] = []
    ratios: list[float] = []
    paces_of_ratios: list[float] = []
    for pair in pairs:
        against_times = times * pair.against
        # Its size, whatever its sign: noise can make the slope of a round negative.
        sizes.append(median(np.abs(pair.of)))
        differences.append(median(pair.of - against_times))
        # A process with a zero in a round has a difference, but no ratio.
        if np.all(against_times != 0):
            ratios.append(median(pair.of / against_times))
            paces_of_ratios.append(pair.pace)

    # ``scale``: the cost of ``of``, to which the half-width of the difference is relative.
    # ``paces``: the reference loop of each process, which shows its processor's speed.
    difference = mean_of_processes(
        "difference",
        differences,
        precision,
        scale=float(np.mean(sizes)),
        paces=[pair.pace for pair in pairs],
    )
    ratio = mean_of_processes("ratio", ratios, precision, unit="ratio", paces=paces_of_ratios)
    return Paired(_noisy_unless_above_zero(difference, because("difference-not-separable")), ratio)


def _undisturbed_pairs(of: Series, against: Series, figure: str) -> list[_Pair]:
    """The values of both cases round by round, one pair for each process, without the rounds in
    which either case met a slow processor; with all rounds if too few processes would be left.
    """
    undisturbed_of = without_slow_rounds(of)
    undisturbed_against = without_slow_rounds(against)
    # The same object comes back where no round was slow.
    if undisturbed_of is of and undisturbed_against is against:
        return _pairs(of, against, figure)

    # With fewer than three undisturbed rounds a process does not count.
    pairs = _pairs(undisturbed_of, undisturbed_against, figure, UNDISTURBED.rounds)
    # Dropping slow rounds must not lose too many of the processes that both cases have.
    sampled_of = {process.number for process in of.processes if process.rounds}
    sampled_against = {process.number for process in against.processes if process.rounds}
    if has_enough_processes(len(pairs), len(sampled_of & sampled_against)):
        return pairs
    return _pairs(of, against, figure)


def _pairs(of: Series, against: Series, figure: str, least: int = 1) -> list[_Pair]:
    """One pair for each process in which both cases have at least ``least`` rounds in common: the
    values of both in these rounds, in the same order.
    """
    paces = {process.number: process.pace for process in of.processes}
    rounds_against = _slopes_by_process(against, figure)
    pairs: list[_Pair] = []
    for number, slopes_of in _slopes_by_process(of, figure).items():
        slopes_against = rounds_against.get(number, {})
        # Rounds that both cases have: in each they alternated, so a change of speed meets both.
        common = sorted(slopes_of.keys() & slopes_against.keys())
        if len(common) < least:
            continue
        values_of = np.array([slopes_of[round_number] for round_number in common])
        values_against = np.array([slopes_against[round_number] for round_number in common])
        pairs.append(_Pair(values_of, values_against, paces[number]))
    return pairs


def _slopes_by_process(series: Series, figure: str) -> dict[int, dict[int, float]]:
    """The figure by the number of the process and of the round, ns per unit, so that two cases can
    be paired. Raises ``ValueError`` if two processes have the same number: pairs would be
    ambiguous.
    """
    by_process: dict[int, dict[int, float]] = {}
    for process in series.processes:
        if process.number in by_process:
            raise ValueError("two processes have the same number")
        # The knee: the n from which on the device's queue is full. Calls of ``issue`` then wait for
        # the device, so its slope is taken below the knee alone.
        knee = fit_process(process, series).knee
        by_process[process.number] = slopes_by_round(process, series, figure, knee)
    return by_process


@dataclass(frozen=True)
class _ProcessValues:
    """In one process the figure of every member, ns, None where not measurable; and the reference
    loop of the process (``pace``), ns.
    """

    values: list[float | None]
    pace: float


def marginal_costs(
    members: Mapping[PerDispatch, Series],
    precision: float = 0.03,
    figure: str = "host",
    *,
    passes: bool = True,
) -> dict[str, Figure]:
    """The cost of one more submit, pass, dispatch and bind-group change, ns, from one case in
    several patterns, which contain these in different numbers per dispatch.

    ``members``: the case in each pattern, by these numbers. ``passes``: whether the API has passes.
    For each process with all patterns the costs solve ``figure = sum of counts * costs`` by least
    squares on relative residuals; then follows the mean of the processes. A cost that these
    patterns do not determine is ``unavailable``; one whose interval reaches 0 is ``noisy``.
    """
    # Rows: patterns; columns: submits, passes, dispatches and binds for one dispatch.
    counts = np.array([*members])
    # Zeros in its column leave a cost undetermined.
    if not passes:
        counts[:, MARGINAL_COSTS.index("per_pass")] = 0.0
    # By name the cost in each process, and the reference loop of the same process.
    costs: dict[str, list[float]] = {name: [] for name in MARGINAL_COSTS}
    paces: dict[str, list[float]] = {name: [] for name in MARGINAL_COSTS}
    for process in _values_by_process([*members.values()], figure):
        for name, cost in _solved(counts, process.values).items():
            costs[name].append(cost)
            paces[name].append(process.pace)

    figures: dict[str, Figure] = {}
    for name in MARGINAL_COSTS:
        figures[name] = _marginal_cost(name, costs[name], paces[name], precision)
    if not passes:
        figures["per_pass"] = Figure(
            name="per_pass", status="unavailable", reason=because("no-passes")
        )
    return figures


def _solved(counts: Floats, values: Sequence[float | None]) -> dict[str, float]:
    """The cost of one submit, pass, dispatch and bind-group change in one process, ns by name, as
    far as its patterns determine them. ``counts``: a row for each pattern, how many of each it
    makes per dispatch; ``values``: the figure of each pattern, ns, None where not measurable.

    Each equation is divided by its value, so that a costly pattern does not count more than a cheap
    one: the right-hand sides are 1.
    """
    measured = [value for value in values if value is not None and value > 0]
    if not measured:
        return {}
    known = [value is not None and value > 0 for value in values]
    # A row for each measured pattern: counts @ costs = value. Divided by the value, it is relative
    # @ costs = 1.
    equations = counts[np.array(known)]
    relative = equations / np.array(measured)[:, None]
    # ``rcond``: singular values that are zero within rounding count as zero.
    solution = np.linalg.lstsq(relative, np.ones(len(measured)), rcond=None)[0]

    # Least squares also give a number to a cost that the patterns do not determine: drop it.
    costs: dict[str, float] = {}
    for column, name in enumerate(MARGINAL_COSTS):
        if _determined(equations, column):
            costs[name] = float(solution[column])
    return costs


def _values_by_process(members: Sequence[Series], figure: str) -> list[_ProcessValues]:
    """The figure of every member (a case in one pattern) in each process that has all members, so
    that their equations can be solved together. Slow rounds are left out, unless too few processes
    would be left.
    """
    # First choose the rounds (without slow ones, if enough processes stay), ...
    counted = [without_slow_rounds(member) for member in members]
    # The numbers of the processes that all members have.
    common = _common_processes(counted)
    common_of_all_rounds = _common_processes(members)
    if not has_enough_processes(len(common), len(common_of_all_rounds)):
        counted = [*members]
        common = common_of_all_rounds

    # ... then put the figure of every member side by side for each process.
    columns = [_figure_by_process(member, figure, common) for member in counted]
    paces = {process.number: process.pace for process in members[0].processes}
    by_process: list[_ProcessValues] = []
    for number in sorted(common):
        values = [column[number] for column in columns]
        by_process.append(_ProcessValues(values, paces[number]))
    return by_process


def _common_processes(members: Sequence[Series]) -> set[int]:
    """The numbers of the processes that all members have."""
    common = {process.number for process in members[0].processes}
    for member in members[1:]:
        common &= {process.number for process in member.processes}
    return common


def _figure_by_process(member: Series, figure: str, numbers: set[int]) -> dict[int, float | None]:
    """The figure of one member, ns, by the number of the process."""
    values: dict[int, float | None] = {}
    for process in member.processes:
        if process.number in numbers:
            values[process.number] = fit_process(process, member).value(figure)
    return values


def _marginal_cost(
    name: str, costs: Sequence[float], paces: Sequence[float], precision: float
) -> Figure:
    """The figure of one marginal cost, such as that of a submit, from its value in each process,
    ns, and the reference loop of the process (``paces``), which shows the processor's speed.
    """
    if not costs:
        return Figure(name=name, status="unavailable", reason=because("cost-not-determined"))
    mean = mean_of_processes(name, costs, precision, paces=paces)
    # ``noisy`` with this reason if the interval reaches 0 or below.
    return _noisy_unless_above_zero(mean, because("cost-not-separable"))


def _noisy_unless_above_zero(figure: Figure, otherwise: Reason) -> Figure:
    """The same figure, but ``noisy`` with this reason if its interval reaches 0 or below."""
    if figure.low is not None and figure.low > 0:
        return figure
    return replace(figure, status="noisy", reason=otherwise)


def _determined(equations: Floats, column: int) -> bool:
    """Whether the equations determine the unknown of this column: then their rank is lower without
    it, since no sum of the other columns equals this one.
    """
    others = np.delete(equations, column, axis=1)
    if not others.size:
        return bool(equations.any())
    rank = np.linalg.matrix_rank(equations)
    return bool(rank > np.linalg.matrix_rank(others))
