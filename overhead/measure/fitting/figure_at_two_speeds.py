"""A figure of a case whose rounds ran at two speeds: its value at each speed, from a fit to the
rounds of that speed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.fitting.anchors import slope_to_anchor
from overhead.measure.fitting.fitted_case import CaseFits, FittedCase
from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats, Mask
from overhead.measure.fitting.one_process import SLOPES, fit_process
from overhead.measure.fitting.spread import median
from overhead.measure.fitting.two_speeds import (
    SPEEDS,
    Owners,
    SpeedSplit,
    both_speeds,
    split_speeds,
)
from overhead.results import Figure, RoundEntry


def figure_at_two_speeds(case: CaseFits, name: str, *, split_by: str) -> Figure | None:
    """The ``bimodal`` figure of a case whose rounds ran at two speeds, with its value at both; None
    if the case has one speed.

    The rounds are split by their own values of the figure ``split_by``, or by the processor's
    speed. ``split_by`` is ``complete`` for ``fixed``, which a single round does not show; else the
    figure itself.
    """
    # All rounds, or only those at the processor's usual speed: ``CaseFits`` says which are
    # searched.
    fitted = case.searched_for_speeds
    rounds = _rounds_of(fitted, split_by)
    # ``split.slow``: for each round whether it is of the slower speed; ``split.by``: whether the
    # values ("rounds") or the reference loop ("canary") told it.
    split = split_speeds(rounds.values, rounds.reference, rounds.owners)
    if split is None:
        return None

    # By process the numbers of its slow rounds, from which each speed is fitted anew.
    slow_numbers = _slow_numbers(rounds, split)
    fast = _mean_of_rounds(fitted, name, rounds, slow_numbers, slow=False)
    slow = _mean_of_rounds(fitted, name, rounds, slow_numbers, slow=True)
    if fast.value is None or slow.value is None:
        return None

    # Processes whose slopes differ but whose anchors (far longer chains) do not are of one speed.
    # Anchors are times until the wait ended, so they can be compared only with a figure that is one
    # too (``of_total``): ``complete``, and every slope of a synchronous stack, which waits in
    # ``issue``. A split by the reference loop is not looked at: the sizes of n cannot cause that.
    of_total = name == "complete" or (fitted.series.synchronous and name in SLOPES)
    if of_total and split.by == "rounds":
        ratio = slow.value / fast.value
        if _anchors_are_alike(fitted, split.slow, rounds.owners, ratio):
            return None
    return both_speeds(fast, slow, split, len(fitted.processes))


@dataclass(frozen=True)
class _Rounds:
    """The rounds of all processes that have a value, one after another.

    ``by_process``: by process the numbers of these rounds. ``values``: of the figure, ns per unit.
    ``reference``: the reference loop in the round, ns; empty if a round has none. ``owners``: the
    position of the process.
    """

    by_process: Sequence[Sequence[int]]
    values: Floats
    reference: Floats
    owners: Owners


def _rounds_of(fitted: FittedCase, name: str) -> _Rounds:
    """The rounds of all processes that have a value of this figure, in one list, with the reference
    loop of each, which shows the processor's speed.
    """
    by_process: list[list[int]] = []
    values: list[float] = []
    reference: list[float] = []
    owners: list[int] = []
    for position, slopes in enumerate(fitted.slopes_by_round(name)):
        by_process.append(list(slopes))
        for number, slope in slopes.items():
            values.append(slope)
            reference.append(fitted.reference_by_round[position][number])
            owners.append(position)
    # With a round that lacks its reference loop the speeds cannot be told by it.
    times = np.array(reference)
    if not times.all():
        times = np.zeros(0)
    return _Rounds(by_process, np.array(values), times, np.array(owners, dtype=np.intp))


def _slow_numbers(rounds: _Rounds, split: SpeedSplit) -> list[set[int]]:
    """By process the numbers of its rounds at the slower speed."""
    slow_numbers: list[set[int]] = []
    labels = iter(split.slow)
    for numbers in rounds.by_process:
        slow_numbers.append({number for number in numbers if next(labels)})
    return slow_numbers


def _mean_of_rounds(
    fitted: FittedCase,
    name: str,
    rounds: _Rounds,
    slow_numbers: Sequence[set[int]],
    *,
    slow: bool,
) -> Figure:
    """The figure at one of both speeds: in each process a fit to the rounds at this speed alone,
    then the mean over the processes. A process with too few such rounds does not count.

    ``slow_numbers``: by process the numbers of its rounds at the slower speed.
    """
    values: list[float] = []
    for position, process in enumerate(fitted.processes):
        numbers = set(rounds.by_process[position])
        wanted = slow_numbers[position] if slow else numbers - slow_numbers[position]
        chosen: list[RoundEntry] = [entry for entry in process.rounds if entry.round in wanted]
        # Fewer rounds give no slope.
        if len(chosen) < SPEEDS.rounds_of_process:
            continue
        at_this_speed = replace(process, rounds=chosen)
        value = fit_process(at_this_speed, fitted.series).value(name)
        if value is not None:
            values.append(value)
    return mean_of_processes(name, values, fitted.precision)


def _anchors_are_alike(fitted: FittedCase, slow: Mask, owners: Owners, ratio: float) -> bool:
    """Whether long chains (anchors) cost the same in processes of both speeds, although their
    slopes have this ``ratio``. Then the case has one speed: the processes differ only in their
    sizes of n, as where the stack rounds n up to a multiple of 64.

    ``slow``: for each round whether it is of the slower speed; ``owners``: its process. False where
    a process has rounds of both speeds, since its sizes of n are the same in both, and where no
    process of one of the speeds has an anchor.
    """
    slow_costs: list[float] = []
    fast_costs: list[float] = []
    for position, fitted_process in enumerate(fitted.fitted_processes):
        # The rounds of this process; here all of them have one speed, or the answer is no.
        is_slow = slow[owners == position]
        if not is_slow.size or fitted_process.fit.complete is None:
            continue
        if is_slow.any() and not is_slow.all():
            return False
        # ns a unit between the line's largest n and the anchor; 0 without an anchor.
        cost = slope_to_anchor(fitted_process.process, fitted_process.fit.complete)
        if not cost:
            continue
        if is_slow.all():
            slow_costs.append(cost)
        else:
            fast_costs.append(cost)
    if not fast_costs or not slow_costs:
        return False
    # Alike: the long chains differ by less than half of the way, in factors, to the slopes' ratio.
    fast_cost = median(fast_costs)
    slow_cost = median(slow_costs)
    return slow_cost < ratio**0.5 * fast_cost
