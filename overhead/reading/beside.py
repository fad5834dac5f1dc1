"""Compare the key figures of two runs as ratios, and tell how far two runs of one machine may
differ.

A pair has the same stack, API, caller and parameters in both runs. Boards may differ: that is what
the ratio shows.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.next_run import (
    MOST_DEGREES_OF_FREEDOM,
    ClassSpread,
    FigureClass,
    half_width,
    spread_of,
)
from overhead.reading.precision import by_interval, is_steady
from overhead.reading.view import View
from overhead.results import Fingerprint, Value, ratio

Spreads = Mapping[FigureClass, ClassSpread]
MEASURING_METHOD = "measuring method"
"""The name of this suite's method among the versions of two runs."""
Apart = Literal["only-here", "only-there", "software", "parameters", "not-above-zero"]
"""Why two figures are no pair: one run alone has it; one is of a software adapter; the API or the
parameters differ; or one of them is not above zero.
"""


@dataclasses.dataclass(frozen=True)
class Pair:
    """A key figure of this run and of the ``other``. ``ratio``: this over the other.

    ``band``: the factor by which two runs of this machine differ at most in 90 % of cases; None
    where it is not known.
    """

    this: KeyFigure
    other: KeyFigure
    ratio: Value
    band: float | None

    @property
    def limit(self) -> str:
        """What bounds the figure in both runs, ``host`` or ``device``; '' for waits, shares, and
        where it differs.
        """
        return self.this.limit if self.this.limit == self.other.limit else ""

    @property
    def outside(self) -> bool:
        """Whether the ratio lies outside the band. In 90 % of cases another run of this machine
        lies inside.
        """
        return self.band is not None and not 1 / self.band <= self.ratio.value <= self.band


@dataclasses.dataclass(frozen=True)
class Beside:
    """A run beside another. ``pairs``: by the keys of figures, in their order; ``left_out``: the
    others, with why.
    """

    view: View
    other: View
    pairs: Mapping[str, Pair]
    left_out: Mapping[str, Apart]


def beside(view: View, other: View, spreads: Spreads) -> Beside:
    """The key figures of ``view`` beside those of ``other``. ``spreads``: of the runs of the first
    machine.
    """
    pairs: dict[str, Pair] = {}
    left_out: dict[str, Apart] = {}
    for this, that in zip(view.once(key_figures), other.once(key_figures), strict=True):
        if this.measured is None and that.measured is None:
            continue
        both = [
            dataclasses.replace(k.measured, source="") if k.measured else None for k in (this, that)
        ]
        found = ratio(*both)
        found = by_interval(found) if found is not None else None
        if reason := _apart(this, that):
            left_out[this.key] = reason
        elif found is None:
            left_out[this.key] = "not-above-zero"
        else:
            known = (
                spreads.get(this.spread_class)
                if this.spread_class and found.status == "ok"
                else None
            )
            pairs[this.key] = Pair(
                this, that, found, math.exp(half_width(known)) if known else None
            )
    return Beside(view, other, pairs, left_out)


def _apart(this: KeyFigure, that: KeyFigure) -> Apart | None:
    """Why the two are no pair; None where they are one."""
    mine, theirs = this.record, that.record
    if this.measured is None or that.measured is None or mine is None or theirs is None:
        return "only-here" if this.measured else "only-there"
    if mine.software != theirs.software:
        return "software"
    same = (mine.stack, mine.api, mine.case) == (theirs.stack, theirs.api, theirs.case)
    return None if same else "parameters"


def spreads_of(view: View, others: Sequence[View]) -> Spreads:
    """How far runs of the machine of ``view`` differ, by class: from the table if it knows the kind
    of machine.

    Else from the ``others``, runs of the same machine, if there are two or more; from this run and
    one other; {} without another run. The variance of ln(figure) is averaged over the steady key
    figures of a class.
    """
    classes: tuple[FigureClass, ...] = get_args(FigureClass)
    known = {
        c: found for c in classes if (found := spread_of(c, view.fingerprint.machine)) is not None
    }
    runs = others if len(others) > 1 else [view, *others]
    if known or len(runs) < 2:
        return known
    logs: dict[FigureClass, dict[tuple[str, str], list[float]]] = {c: {} for c in classes}
    for k in (k for run in runs for k in run.once(key_figures)):
        if k.spread_class and k.record and k.measured and is_steady(k.measured):
            logs[k.spread_class].setdefault((k.key, k.record.case.key), []).append(
                math.log(k.measured.value)
            )
    degrees = min(len(runs) - 1, MOST_DEGREES_OF_FREEDOM)
    for own, by_case in logs.items():
        if variances := [
            statistics.variance(values) for values in by_case.values() if len(values) > 1
        ]:
            s = math.sqrt(statistics.fmean(variances))
            known[own] = ClassSpread(
                s=s, degrees=degrees, boards=len(runs), kinds=1, figures=len(variances)
            )
    return known


def full_runs(runs: Sequence[View]) -> list[View]:
    """The runs with at least half as many key figures as the run with most of them, the oldest
    first.
    """
    measured = {run: sum(k.measured is not None for k in run.once(key_figures)) for run in runs}
    full = [run for run in runs if 0 < max(measured.values()) <= 2 * measured[run]]
    return sorted(full, key=lambda run: run.fingerprint.created)


def steady_ratios(found: Beside, limit: str) -> list[Value]:
    """The ratios of the figures that ``limit`` bounds in both runs, the lowest first; those that
    are not noisy.
    """
    steady = [p.ratio for p in found.pairs.values() if p.limit == limit and p.ratio.status == "ok"]
    return sorted(steady, key=lambda ratio: ratio.value)


@dataclasses.dataclass(frozen=True)
class VersionChange:
    """A piece of software that two runs name, in another version; ``name`` is ``MEASURING_METHOD``
    for our own.
    """

    name: str
    before: str
    after: str


def version_changes(before: Fingerprint, after: Fingerprint) -> list[VersionChange]:
    """What changed between two runs that name the same software, sorted by name."""
    old, new = (
        {MEASURING_METHOD: str(run.method_version), **run.versions} for run in (before, after)
    )
    names = sorted(old.keys() & new.keys())
    return [VersionChange(name, old[name], new[name]) for name in names if old[name] != new[name]]
