"""Test all cases of a comparison together, because the correction and the run-to-run spread need all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.comparing import decide
from overhead.comparing.decide import ALPHA, Runs, Shifts
from overhead.comparing.sides import Sampled
from overhead.comparing.verdicts import Verdict

_SAME_WITHIN = 0.05
"""A case is the same if its uncorrected interval lies within this relative difference."""

_SPEED_CHANGED_BY = 0.05
"""The machine changed its speed if its canary differs by more than this between the sides."""


@dataclass(frozen=True)
class BothSides:
    """The samples of one case in each run of BASE and of NEW, with at least two processes per side.

    ``paired``: both sides were measured in turn, so the n-th process of BASE and the n-th of NEW form a pair.
    """

    base: tuple[Sampled, ...]
    new: tuple[Sampled, ...]
    paired: bool = False

    @property
    def slopes(self) -> tuple[Runs, Runs]:
        return [s.slopes for s in self.base], [s.slopes for s in self.new]

    @property
    def in_own_units(self) -> tuple[Runs, Runs] | None:
        """The slopes divided by the canary's time if the canary changed between the sides, else None.

        Always None for pairs: the spread of their differences already includes changes of the machine.
        """
        if self.paired or any(s.canary.size != s.slopes.size for s in (*self.base, *self.new)):
            return None
        speeds = [float(np.mean([s.canary.mean() for s in side])) for side in (self.base, self.new)]
        if abs(speeds[1] - speeds[0]) <= math.log1p(_SPEED_CHANGED_BY):
            return None
        return [s.slopes - s.canary for s in self.base], [s.slopes - s.canary for s in self.new]


@dataclass(frozen=True)
class Decision:
    """The result of one test. ``shift``, ``low``, ``high`` and ``smallest`` are logarithms of NEW over BASE."""

    verdict: Verdict
    shift: float
    low: float
    high: float
    smallest: float
    p: float
    failed: bool


def decisions(cases: Sequence[BothSides], fail_over: float | None = None) -> list[Decision]:
    """One decision per case. ``failed``: the whole interval is slower by more than ``fail_over`` per cent."""
    trials = _trials(cases)
    p = [trial.p() for trial in trials]
    past = [trial.p_over(math.log1p((fail_over or 0.0) / 100)) for trial in trials]
    levels, gates = decide.holm(p), decide.holm(past)
    found = []
    for i, trial in enumerate(trials):
        low, high = trial.interval(levels[i])
        moved: Verdict = "slower" if trial.centre > 0 else "faster"
        still: Verdict = "same" if _within(trial, math.log1p(_SAME_WITHIN)) else "undecided"
        found.append(
            Decision(
                verdict=moved if p[i] <= levels[i] else still,
                shift=trial.centre,
                low=low,
                high=high,
                smallest=trial.smallest(ALPHA / len(trials)),
                p=p[i],
                failed=fail_over is not None and past[i] <= gates[i],
            )
        )
    return found


def _trials(cases: Sequence[BothSides]) -> list[Shifts]:
    plain = _plain(cases)
    moved = [(i, units) for i, c in enumerate(cases) if (units := c.in_own_units) is not None]
    others = decide.trials([units[0] for _, units in moved], [units[1] for _, units in moved])
    in_own_units = {i: other.ways for (i, _), other in zip(moved, others, strict=True)}
    return [Shifts(trial.ways + in_own_units.get(i, ())) for i, trial in enumerate(plain)]


def _plain(cases: Sequence[BothSides]) -> list[Shifts]:
    if all(c.paired for c in cases):
        return decide.paired([_differences(c) for c in cases])
    return decide.trials([c.slopes[0] for c in cases], [c.slopes[1] for c in cases])


def _differences(case: BothSides) -> decide.FloatArray:
    base, new = case.slopes
    return np.concatenate(new) - np.concatenate(base)


def _within(trial: Shifts, margin: float) -> bool:
    low, high = trial.interval(ALPHA)
    return -margin <= low and high <= margin


def run_spread(case: BothSides) -> float | None:
    """Standard deviation of the logarithm of the run means, or of the differences of pairs; None with too few runs."""
    if case.paired:
        return float(_differences(case).std(ddof=1))
    if sum(len(side) - 1 for side in case.slopes) < decide.LEAST_RUNS_DF:
        return None
    return math.sqrt(decide.between(*case.slopes))
