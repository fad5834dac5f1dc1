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
_CLASSES: tuple[FigureClass, ...] = get_args(FigureClass)
MEASURING_METHOD = "measuring method"
"""The name of this suite's method among the versions of two runs."""
Apart = Literal["only-here", "only-there", "software", "parameters", "not-above-zero"]
"""Why two figures are no pair: one run alone has it; one is of a software adapter; the API or the
parameters differ; or one of them is not above zero.
"""


@dataclasses.dataclass(frozen=True)
class Pair:
    """A key figure (one of the few that sum up a run) as this run and the ``other`` have it.
    ``ratio``: this over the other. ``band``: the factor by which two runs of one machine differ at
    most in 90 % of cases; None where it is not known.
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
    """The key figures of the run ``view`` beside those of the run ``other``, as ratios; a figure
    that cannot be compared is left out, with the reason.

    ``spreads``: how far runs of one machine differ, which tells how much of a ratio is chance.
    """
    pairs: dict[str, Pair] = {}
    left_out: dict[str, Apart] = {}
    # Every run has all key figures in the same order; one that it did not measure has no value.
    # ``once``: computed once for each run. ``measured``: the value with its interval; None without.
    for this, that in zip(view.once(key_figures), other.once(key_figures), strict=True):
        if this.measured is None and that.measured is None:
            continue
        reason = _why_no_pair(this, that)
        # ``ratio`` refuses values of two boards, but here boards are what is compared.
        times = ratio(_without_board(this.measured), _without_board(that.measured))
        if reason is not None:
            left_out[this.key] = reason
        elif times is None:
            left_out[this.key] = "not-above-zero"
        else:
            # The profiles of two runs may have called different widths noisy. So ``by_interval``
            # decides anew, by the width of the interval of the ratio alone.
            times = by_interval(times)
            # ``_band``: the factor by which two runs differ anyway. A noisy ratio has none, so it
            # is never said to lie outside of it.
            band = _band(this, spreads) if times.status == "ok" else None
            pairs[this.key] = Pair(this, that, times, band)
    return Beside(view, other, pairs, left_out)


def _without_board(value: Value | None) -> Value | None:
    return dataclasses.replace(value, source="") if value is not None else None


def _band(figure: KeyFigure, spreads: Spreads) -> float | None:
    """The factor by which two runs differ at most in 90 % of cases, for a figure of this class;
    None where that is not known.
    """
    spread = spreads.get(figure.spread_class) if figure.spread_class else None
    return math.exp(half_width(spread)) if spread is not None else None


def _why_no_pair(this: KeyFigure, that: KeyFigure) -> Apart | None:
    """Why a key figure of two runs may not be compared; None where it may.

    At least one of the runs has a value. The records are the cases that the values come from.
    """
    mine = this.record
    theirs = that.record
    if this.measured is None or that.measured is None or mine is None or theirs is None:
        return "only-here" if this.measured else "only-there"
    if mine.software != theirs.software:
        return "software"
    if (mine.stack, mine.api, mine.case) != (theirs.stack, theirs.api, theirs.case):
        return "parameters"
    return None


def spreads_of(view: View, others: Sequence[View]) -> Spreads:
    """How far runs of the machine of ``view`` differ by chance, for each class of key figures.

    A table has the spread for kinds of machines that were measured often. For another machine the
    spread comes from ``others``, which are runs of it, and from this run too if there is only one
    other, as a spread needs two; {} without any. The variance of ln(figure) is averaged over the
    steady key figures of a class.
    """
    # What the table knows of this kind of machine is preferred.
    from_table: dict[FigureClass, ClassSpread] = {}
    for figure_class in _CLASSES:
        # ``spread_of``: that of the table, for this kind of machine (GPU and processor).
        spread = spread_of(figure_class, view.fingerprint.machine)
        if spread is not None:
            from_table[figure_class] = spread
    runs = others if len(others) > 1 else [view, *others]
    if from_table or len(runs) < 2:
        return from_table

    # Else by class the mean variance over its figures; ``s`` is its root.
    spreads: dict[FigureClass, ClassSpread] = {}
    for figure_class in _CLASSES:
        variances = _variances_of_figures(runs, figure_class)
        if variances:
            spreads[figure_class] = ClassSpread(
                s=math.sqrt(statistics.fmean(variances)),
                # All figures of a run move together, so runs are counted and not figures, and only
                # up to a few: with fewer degrees of freedom the range is wider.
                degrees=min(len(runs) - 1, MOST_DEGREES_OF_FREEDOM),
                # Each run stands for a board, and all are of one kind of machine.
                boards=len(runs),
                kinds=1,
                figures=len(variances),
            )
    return spreads


def _variances_of_figures(runs: Sequence[View], figure_class: FigureClass) -> list[float]:
    """How much each key figure of the class varies from run to run: the variance of its logarithm,
    so that figures of different size can be averaged.

    A figure counts where two runs or more measured it in the same case, with a narrow interval (a
    *steady* one): the width of a wide one would be taken for a difference between runs.
    """
    # By figure and case ln of its value in each run that has a steady one.
    logs: dict[tuple[str, str], list[float]] = {}
    for run in runs:
        for figure in run.once(key_figures):
            if figure.spread_class != figure_class or not figure.record or not figure.measured:
                continue
            # A logarithm needs a value above zero, which a steady one has.
            if is_steady(figure.measured):
                same_figure = (figure.key, figure.record.case.key)
                logs.setdefault(same_figure, []).append(math.log(figure.measured.value))
    return [statistics.variance(values) for values in logs.values() if len(values) > 1]


def full_runs(runs: Sequence[View]) -> list[View]:
    """The runs with at least half as many key figures as the run with most of them, the oldest
    first. Others measured a few stacks only; none is full if no run has a key figure.
    """
    # By run the number of key figures with a value.
    measured = {run: _figures_with_value(run) for run in runs}
    most = max(measured.values(), default=0)
    # With ``most`` at 0 every run would be full.
    full = [run for run in runs if most > 0 and measured[run] >= most / 2]
    return sorted(full, key=lambda run: run.fingerprint.created)


def _figures_with_value(run: View) -> int:
    return len([figure for figure in run.once(key_figures) if figure.measured is not None])


def steady_ratios(found: Beside, limit: str) -> list[Value]:
    """The ratios, between two runs, of the figures that ``limit`` bounds in both runs (``host``,
    the CPU, or ``device``), without noisy ones, the lowest first.
    """
    steady = []
    for pair in found.pairs.values():
        if pair.limit == limit and pair.ratio.status == "ok":
            steady.append(pair.ratio)
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
    old = _versions_of(before)
    new = _versions_of(after)
    names = sorted(old.keys() & new.keys())
    return [VersionChange(name, old[name], new[name]) for name in names if old[name] != new[name]]


def _versions_of(run: Fingerprint) -> dict[str, str]:
    return {MEASURING_METHOD: str(run.method_version), **run.versions}
