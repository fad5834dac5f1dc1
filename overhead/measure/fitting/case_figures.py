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
    """All figures of one case (a way to launch work) by name, from its raw samples. ``precision``:
    the largest relative half-width of a figure that is ``ok``.

    The costs of a unit, ``issue`` (until the call returns), ``host`` (CPU time) and ``complete``
    (until the work is done), and ``fixed``, the part of a chain that does not depend on its length,
    are always there, with a status. ``everything``, the mean over all samples, where anchors
    (samples of far more units) were taken; ``knee_n`` and ``queue_depth`` if the queue was seen to
    be full; ``one_off_figures`` and ``unpinned_figures`` where they were measured.
    """
    # ``CaseFits``: the lines through the samples of each process. ``_slope``: a cost with the
    # status that its checks give it.
    case = CaseFits(series, precision)
    figures = {name: _slope(name, case) for name in SLOPES}
    complete = figures["complete"]
    knee = _knee(case.all_rounds)
    if complete.status == "nonlinear" and any(fit.knee for fit in case.all_rounds.fits):
        # What looks like a full queue is then the same bend as that of T(n).
        reason = because("issue-bends-as-total-does")
        for name in ("issue", "host"):
            figures[name] = without_value(figures[name], "nonlinear", reason)
        knee = {}
    figures["fixed"] = _fixed(complete, case)
    figures |= knee
    figures |= _everything(complete, case.all_rounds)
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
    """What limits the cost of a unit, ``complete``: ``host`` if the CPU time of a unit explains it
    alone, ``device`` if the CPU is clearly ahead of the device, ``balanced`` in between. Only in a
    pipelined pattern, where both work at the same time.

    Always ``host`` for a synchronous stack; empty for other patterns, or if a figure is missing.
    """
    if series.synchronous:
        return "host"
    if series.overlap != "pipelined":
        return ""
    host = figures.get("host")
    complete = figures.get("complete")
    if host is None or host.value is None or complete is None or not complete.value:
        return ""

    # From 0.9 on ``host`` alone explains the cost; below 0.75 it is hidden behind the device.
    share = host.value / complete.value
    if share >= _BOUND.host_bound_from:
        return "host"
    if share < _BOUND.device_bound_below:
        return "device"
    return "balanced"


def _slope(name: str, case: CaseFits) -> Figure:
    """One of the costs of a unit, ``issue``, ``host`` or ``complete``, in ns, with its interval
    over the processes and the status that the checks give it; or the reason why it has no value.
    """
    if not case.all_rounds.processes:
        return Figure(name=name, status="failed", reason=because("no-round-sampled"))
    interval = Figure(name=name, status="failed", reason=because("too-few-sizes"))
    # At least one process has a line. ``at_usual_speed``: the fits without rounds in which the
    # processor was slowed down; the remarks tell how many are left out.
    if case.all_rounds.values(name):
        interval = with_remarks(case.at_usual_speed.mean(name), case, case.at_usual_speed)

    # One check after another (is it a line, does it drift, ...) may change the status.
    figure = judged(interval, case)

    # From which n on the line holds is not looked at where two lines would be needed.
    if not case.series.anchored or figure.value is None or figure.status == "bimodal":
        return figure
    # ``host`` is ``issue`` and the CPU time of the wait, so its line begins where that of ``issue``
    # does.
    start = case.complete_start if name == "complete" else case.enqueue_start
    return replace(figure, holds_from=start.n)


def _fixed(complete: Figure, case: CaseFits) -> Figure:
    """The one-off cost, ns: the intercept of the line T(n), what a chain costs whatever its length.
    Without a value if the slope, ``complete``, has none, and with one for each speed if that has
    two.
    """
    if not case.all_rounds.values("fixed") or complete.value is None:
        return Figure(
            name="fixed", status=complete.status, reason=complete.reason, rule=complete.rule
        )
    if complete.status == "bimodal":
        both = figure_at_two_speeds(case, "fixed", split_by="complete")
        if both is None:
            return Figure(name="fixed", status="noisy", reason=because("two-speeds-few-rounds"))
        # Its rule tells the share of the rounds that the fits leave out.
        return with_left_out(both, case, case.searched_for_speeds)

    # Its precision is relative to T(1), the sum of both, since it may itself be about zero. A poll
    # of the wait adds to T(1).
    # ``longest_quantum``: ns between two polls of the wait, 0 if it does not poll.
    beside_ns = complete.value + case.all_rounds.longest_quantum
    fixed = case.at_usual_speed.mean("fixed", beside_ns)
    # ``FIXED_CHECKS``: whether T(1) is what the line gives, and whether single waits vary too much
    # for their median. Earlier methods did not have them.
    if case.series.anchored:
        for check in FIXED_CHECKS:
            fixed = check(fixed, case, beside_ns)
    return with_left_out(fixed, case, case.at_usual_speed)


def _everything(complete: Figure, all_rounds: FittedCase) -> dict[str, Figure]:
    """The figure ``everything``: the mean cost of a unit over all samples and anchors (samples of
    far more units), ns, also those that the cost leaves out as disturbed. In each process it is the
    time above the intercept, summed, over the sum of n. Empty without anchors, without a cost, or
    where the cost has two speeds.
    """
    if not all_rounds.series.anchored or complete.value is None or complete.status == "bimodal":
        return {}
    means: list[float] = []
    for fitted_process in all_rounds.fitted_processes:
        anchor = fitted_process.process.one_off.get("anchor")
        line = fitted_process.fit.complete
        if (
            line is None
            or anchor is None
            or not anchor.values
            or wait_quantum(fitted_process.process)
        ):
            continue
        # Columns of ``wall``: n, the time of ``issue``, T(n). ``at``: the n of each anchor. Where
        # the wait polls, times are rounded up, so such a process does not count.
        n = np.concatenate([fitted_process.fit.wall[:, 0], anchor.at])
        totals = np.concatenate([fitted_process.fit.wall[:, 2], anchor.values])
        above_fixed = totals - line.intercept
        means.append(float(above_fixed.sum() / n.sum()))
    if not means:
        return {}
    return {"everything": mean_of_processes("everything", means, all_rounds.precision)}


def _knee(all_rounds: FittedCase) -> dict[str, Figure]:
    """The length at which the device's queue is full and the units that it then holds, ``knee_n``
    and ``queue_depth``; nothing unless most processes saw ``issue`` bend there.
    """
    # ``knee``: where ``issue`` bends, with ``depth``, the units in flight there; None if it does
    # not.
    knees = [fit.knee for fit in all_rounds.fits if fit.knee]
    if len(knees) * 2 <= len(all_rounds.fits):
        return {}
    sizes = [knee.n for knee in knees]
    depths = [knee.depth for knee in knees]
    return {
        "knee_n": mean_of_processes("knee_n", sizes, all_rounds.precision, unit="n"),
        "queue_depth": mean_of_processes("queue_depth", depths, all_rounds.precision, unit="n"),
    }
