"""The figures of one case from its raw samples, with intervals. Times in ns.

The way of a figure: the fits of the processes (``CaseFits``) -> the interval over the processes
(``mean_of_processes``) -> the checks (``CHECKS``) -> the figure with its status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.checks import FIXED_CHECKS, judged
from overhead.measure.fitting.figure_at_two_speeds import figure_at_two_speeds
from overhead.measure.fitting.fitted_case import CaseFits, FittedCase
from overhead.measure.fitting.interval import mean_of_processes, without_value
from overhead.measure.fitting.one_off_figures import one_off_figures, unpinned_figures
from overhead.measure.fitting.one_process import SLOPES, Series, wait_quantum
from overhead.measure.fitting.remarks import with_left_out, with_remarks
from overhead.results import Bound, Figure, because

DRIFTS = frozenset({"drifts-in-rounds", "drifts-after-rounds"})
"""The codes of the reasons of a figure whose cost changes in the course of a process."""


def estimate(series: Series, precision: float) -> dict[str, Figure]:
    """All figures of one case by name. ``precision``: the largest relative half-width of a figure
    that is ``ok``.

    ``issue``, ``host``, ``complete`` and ``fixed`` always, with a status; ``everything``, the mean
    over all samples with what an undisturbed cost leaves out, where anchors were taken; ``knee_n``
    and ``queue_depth`` if the queue was seen to be full; ``one_off_figures`` and
    ``unpinned_figures`` where they were measured. The precision of ``fixed`` is relative to the sum
    of ``fixed``, ``complete`` and the poll interval of a polling wait.
    """
    case = CaseFits(series, precision)
    figures = {name: _slope(name, case) for name in SLOPES}
    complete = figures["complete"]
    knee = _knee(case.whole)
    if complete.status == "nonlinear" and any(fit.knee for fit in case.whole.fits):
        # What looks like a full queue is then the same bend as that of T(n).
        reason = because("issue-bends-as-total-does")
        for name in ("issue", "host"):
            figures[name] = without_value(figures[name], "nonlinear", reason)
        knee = {}
    figures["fixed"] = _fixed(complete, case)
    figures |= knee
    figures |= _everything(complete, case.whole)
    return figures | one_off_figures(series, precision) | unpinned_figures(series)


@dataclass(frozen=True)
class _BoundRule:
    """What limits a case: chosen, not measured. Another number only moves cases between the words
    ``host``, ``balanced`` and ``device``.
    """

    host_bound_from: float = 0.9
    """Share of ``complete`` from which ``host`` alone explains it: a lower one hides what the
    device adds.
    """
    device_bound_below: float = 0.75
    """Share of ``complete`` below which ``host`` is hidden behind the device: above it, both may
    take turns.
    """


_BOUND = _BoundRule()


def limited_by(series: Series, figures: Mapping[str, Figure]) -> Bound:
    """``host``, ``device`` or ``balanced``: what limits ``complete`` in a pipelined pattern.

    ``host`` for a synchronous stack; empty for other patterns, or if a figure is missing.
    """
    if series.synchronous:
        return "host"
    if series.overlap != "pipelined":
        return ""
    host = figures.get("host")
    complete = figures.get("complete")
    if host is None or host.value is None or complete is None or not complete.value:
        return ""

    share = host.value / complete.value
    if share >= _BOUND.host_bound_from:
        return "host"
    if share < _BOUND.device_bound_below:
        return "device"
    return "balanced"


def _slope(name: str, case: CaseFits) -> Figure:
    """``issue``, ``host`` or ``complete``, ns per unit, or the reason why it has no value."""
    if not case.whole.processes:
        return Figure(name=name, status="failed", reason=because("no-round-sampled"))
    interval = Figure(name=name, status="failed", reason=because("too-few-sizes"))
    if case.whole.values(name):
        interval = with_remarks(case.usual.mean(name), case, case.usual)

    figure = judged(interval, case)

    if not case.series.anchored or figure.value is None or figure.status == "bimodal":
        return figure
    start = case.complete_start if name == "complete" else case.enqueue_start
    return replace(figure, holds_from=start.n)


def _fixed(complete: Figure, case: CaseFits) -> Figure:
    """The intercept, ns; without a value if ``complete`` has none."""
    if not case.whole.values("fixed") or complete.value is None:
        return Figure(
            name="fixed", status=complete.status, reason=complete.reason, rule=complete.rule
        )
    if complete.status == "bimodal":
        both = figure_at_two_speeds(case, "fixed", split_by="complete")
        if both is None:
            return Figure(name="fixed", status="noisy", reason=because("two-speeds-few-rounds"))
        return with_left_out(both, case, case.searched_for_speeds)

    beside_ns = complete.value + case.whole.longest_quantum
    fixed = case.usual.mean("fixed", beside_ns)
    if case.series.anchored:
        for check in FIXED_CHECKS:
            fixed = check(fixed, case, beside_ns)
    return with_left_out(fixed, case, case.usual)


def _everything(complete: Figure, whole: FittedCase) -> dict[str, Figure]:
    """The mean cost of a unit over all samples and anchors, nothing left out, ns; empty without
    anchors.
    """
    if not whole.series.anchored or complete.value is None or complete.status == "bimodal":
        return {}
    means: list[float] = []
    for one in whole.fitted:
        anchor = one.process.one_off.get("anchor")
        line = one.fit.complete
        if line is None or anchor is None or not anchor.values or wait_quantum(one.process):
            continue
        n = np.concatenate([one.fit.wall[:, 0], anchor.at])
        totals = np.concatenate([one.fit.wall[:, 2], anchor.values])
        above_fixed = totals - line.intercept
        means.append(float(above_fixed.sum() / n.sum()))
    if not means:
        return {}
    return {"everything": mean_of_processes("everything", means, whole.precision)}


def _knee(whole: FittedCase) -> dict[str, Figure]:
    """``knee_n`` and ``queue_depth`` if most processes have a knee, else nothing."""
    knees = [fit.knee for fit in whole.fits if fit.knee]
    if len(knees) * 2 <= len(whole.fits):
        return {}
    sizes = [knee.n for knee in knees]
    depths = [knee.depth for knee in knees]
    return {
        "knee_n": mean_of_processes("knee_n", sizes, whole.precision, unit="n"),
        "queue_depth": mean_of_processes("queue_depth", depths, whole.precision, unit="n"),
    }
