"""Test all cases of a comparison together, because the correction and the run-to-run spread need all of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.comparing import decide
from overhead.comparing.decide import ALPHA, Runs, Shifts
from overhead.comparing.sides import Sampled
from overhead.comparing.verdicts import CaseVerdict, Verdict
from overhead.reading.format import percent
from overhead.results import Value

_SAME_WITHIN = 0.05
"""A case is the same if its uncorrected interval lies within this relative difference."""

_SPEED_CHANGED_BY = 0.05
"""The machine changed its speed if its canary differs by more than this between the sides."""


@dataclass(frozen=True)
class Untested:
    """A case, and its samples in each run of BASE and of NEW, with at least two processes per side.

    ``paired``: both sides were measured in turn, so the n-th process of BASE and the n-th of NEW form a pair.
    """

    case: CaseVerdict
    base: tuple[Sampled, ...]
    new: tuple[Sampled, ...]
    paired: bool

    @property
    def slopes(self) -> tuple[Runs, Runs]:
        return [s.slopes for s in self.base], [s.slopes for s in self.new]

    @property
    def differences(self) -> decide.FloatArray:
        """NEW minus BASE of each pair."""
        base, new = self.slopes
        return np.concatenate(new) - np.concatenate(base)

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


def tested(cases: Sequence[Untested], fail_over: float | None) -> list[CaseVerdict]:
    """The verdict on each case. ``failed``: the whole interval is slower by more than ``fail_over`` per cent."""
    trials = _trials(cases)
    p = [trial.p() for trial in trials]
    past = [trial.p_over(math.log1p((fail_over or 0.0) / 100)) for trial in trials]
    levels, gates = decide.holm(p), decide.holm(past)
    found = []
    for i, (one, trial) in enumerate(zip(cases, trials, strict=True)):
        moved: Verdict = "slower" if trial.centre > 0 else "faster"
        still: Verdict = "same" if max(map(abs, trial.interval(ALPHA))) <= math.log1p(_SAME_WITHIN) else "undecided"
        base_ns = math.exp(float(np.mean([s.slopes.mean() for s in one.base])))
        times, low, high = map(math.exp, (trial.centre, *trial.interval(levels[i])))
        found.append(
            replace(
                one.case,
                verdict=moved if p[i] <= levels[i] else still,
                base_ns=base_ns,
                new_ns=base_ns * times,
                ratio=Value(times, low, high),
                smallest=math.expm1(trial.smallest(ALPHA / len(trials))),
                p=p[i],
                failed=fail_over is not None and past[i] <= gates[i],
            )
        )
    return found


def _trials(cases: Sequence[Untested]) -> list[Shifts]:
    if all(c.paired for c in cases):
        return decide.paired([c.differences for c in cases])
    plain = decide.trials([c.slopes[0] for c in cases], [c.slopes[1] for c in cases])
    moved = [(i, units) for i, c in enumerate(cases) if (units := c.in_own_units) is not None]
    others = decide.trials([units[0] for _, units in moved], [units[1] for _, units in moved])
    in_own_units = {i: other.ways for (i, _), other in zip(moved, others, strict=True)}
    return [Shifts(trial.ways + in_own_units.get(i, ())) for i, trial in enumerate(plain)]


def yardstick(cases: Sequence[Untested], in_turn: str = "; pairs of processes differ") -> str:
    """A sentence on the run-to-run spread that the verdicts use. ``in_turn``: what differs if both were in turn."""
    if not cases:
        return "no case could be tested"
    if cases[0].paired:
        said, spreads = f"measured in turn{in_turn}", [float(c.differences.std(ddof=1)) for c in cases]
    else:
        several = [c.slopes for c in cases if len(c.base) + len(c.new) - 2 >= decide.LEAST_RUNS_DF]
        if not several:
            floor = percent(decide.FLOOR)
            return f"one run a side; the means of runs are assumed to spread by {floor} (standard deviation)"
        widest = max(several, key=lambda sides: len(sides[0]) + len(sides[1]))
        said = f"{len(widest[0])} and {len(widest[1])} runs; their means spread"
        spreads = [math.sqrt(decide.between(*sides)) for sides in several]
    return f"{said} by {percent(statistics.median(spreads))} (standard deviation, the median case)"
