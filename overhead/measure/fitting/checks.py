"""The status of a figure: the checks that a figure goes through, as a list.

Each check takes the figure as the checks before it left it, and returns it with another status, or
unchanged. The order is that of the table of statuses in docs/method.md. The longer algorithms are
in modules of their own: ``two_speeds``, ``curvature``, ``anchors``, ``drift``, ``slow_samples``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from overhead.measure.fitting.anchors import AnchorVerdict
from overhead.measure.fitting.curvature import slope_change, why_bent, why_intercept_too_low
from overhead.measure.fitting.drift import find_drift_beyond_reference
from overhead.measure.fitting.figure_at_two_speeds import figure_at_two_speeds
from overhead.measure.fitting.fitted_case import CaseFits, FittedCase
from overhead.measure.fitting.interval import without_value
from overhead.measure.fitting.line import LINE, Misfit, worst_misfit
from overhead.measure.fitting.one_process import (
    Process,
    ProcessFit,
    clock_step,
    single_waits,
    wait_quantum,
)
from overhead.measure.fitting.remarks import with_remarks
from overhead.measure.fitting.slow_samples import share_of_slow_samples, slow_waits
from overhead.measure.fitting.spread import median
from overhead.results import Figure, Reason, Status, Why, because, together


def unavailable_without_cpu_clock(figure: Figure, case: CaseFits) -> Figure:
    """``host`` is ``unavailable`` if no process could measure the CPU time of its wait."""
    if figure.name != "host" or case.whole.values("host"):
        return figure
    reason = because("cpu-clock-cannot-measure")
    return Figure(name=figure.name, status="unavailable", reason=reason)


def below_resolution_at_one_poll(figure: Figure, case: CaseFits) -> Figure:
    """``complete`` is ``below-resolution`` if every wait of a polling stack ended at the same poll:
    such times fit any slope.
    """
    if figure.name != "complete" or not case.whole.polls or case.whole.values("complete"):
        return figure
    reason = because("one-step-of-the-poll")
    return Figure(name=figure.name, status="below-resolution", reason=reason)


def below_resolution_unless_above_zero(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``below-resolution`` if its slope is zero or less in a process: noise then
    hides it.
    """
    slopes = case.whole.values(figure.name)
    if not slopes or min(slopes) > 0:
        return figure
    reason = _coarse_for_longest_chain(case.whole) or because(
        "slope-not-told-from-zero", least_ns=min(slopes)
    )
    return Figure(name=figure.name, status="below-resolution", reason=reason, processes=len(slopes))


@dataclass(frozen=True)
class _ClockRule:
    """When a clock is fine enough."""

    clock_steps: int = 100
    """The slope must add so many steps of the clock from the smallest to the largest n. Not
    measured, but computed: each end of the line is uncertain by a step, so fewer steps make the
    slope uncertain by more than 1 %. More would refuse good figures.
    """


_CLOCK = _ClockRule()


def below_resolution_if_clock_is_coarse(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``below-resolution`` if the longest chain adds too few steps of the clock to
    the shortest one. A figure with two speeds is not checked.
    """
    if figure.value is None or _at_two_speeds(figure, case) is not None:
        return figure

    added_ns = abs(figure.value) * _shortest_range_of_n(case.usual)
    step_ns = _clock_step(case.usual)
    if added_ns >= _CLOCK.clock_steps * step_ns:
        return figure

    reason = _coarse_for_longest_chain(case.usual) or because(
        "slope-too-small-for-clock", reach_ns=added_ns, step_ns=step_ns
    )
    return without_value(figure, "below-resolution", reason)


def _coarse_for_longest_chain(fitted: FittedCase) -> Why:
    """That the clock is too coarse even for the whole time of the longest chain; '' if it is not.

    The reader then learns that the clock is at fault, and not the small cost.
    """
    totals = [fit.wall[:, 2] for fit in fitted.fits]
    longest_ns = max(float(times.max()) for times in totals if times.size)
    step_ns = _clock_step(fitted)
    if longest_ns >= _CLOCK.clock_steps * step_ns:
        return ""
    return because("clock-too-coarse", longest_ns=longest_ns, step_ns=step_ns)


def _shortest_range_of_n(fitted: FittedCase) -> float:
    """How far the largest n is from the smallest one, of the process where that is least."""
    sizes = [fit.wall[:, 0] for fit in fitted.fits]
    return min(float(np.ptp(n)) for n in sizes if n.size)


def _clock_step(fitted: FittedCase) -> float:
    """The smallest step between two readings of the clock, ns, of the process with the coarsest
    clock.
    """
    return max(clock_step(process) for process in fitted.processes)


def bimodal_at_two_speeds(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``bimodal`` if its rounds form two groups: then both costs are given."""
    if figure.status == "below-resolution":
        return figure
    return _at_two_speeds(figure, case) or figure


def _at_two_speeds(figure: Figure, case: CaseFits) -> Figure | None:
    """The figure at two speeds, with its rule; None if it has one speed, or if no process has it.

    Two checks ask for it, so the case keeps the answer.
    """
    name = figure.name
    if not case.whole.values(name):
        return None
    if name not in case.at_two_speeds:
        both = figure_at_two_speeds(case, name, split_by=name)
        if both is not None:
            both = with_remarks(both, case, case.searched_for_speeds)
        case.at_two_speeds[name] = both
    return case.at_two_speeds[name]


def nonlinear_off_the_line(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if in the median process T(n) leaves the line at some n by more
    than ``LINE.misfit`` or the wanted precision.
    """
    if figure.value is None or figure.status == "bimodal":
        return figure

    misfits: list[Misfit] = []
    for one in case.usual.fitted:
        misfit = _misfit(figure.name, one.process, one.fit)
        if misfit is not None:
            misfits.append(misfit)
    if not misfits:
        return figure

    median_share = median([misfit.share for misfit in misfits])
    if abs(median_share) <= max(case.precision, LINE.misfit):
        return figure
    worst = max(misfits, key=lambda misfit: abs(misfit.share))
    return without_value(figure, "nonlinear", _off_the_line(worst))


def _misfit(name: str, process: Process, fit: ProcessFit) -> Misfit | None:
    """How far a process's times are off its line, for ``complete`` or the time of ``issue``; None
    without a line that rises, or if the wait polls.
    """
    of_enqueue = name != "complete"
    line = fit.line(of_enqueue=of_enqueue)
    if line is None or line.slope == 0:
        return None
    if not of_enqueue and wait_quantum(process):
        return None
    samples = fit.samples(of_enqueue=of_enqueue)
    return worst_misfit(samples.n, samples.times, line)


def _off_the_line(worst: Misfit) -> Reason:
    """The n at which T(n) is farthest from the line, and on which side of the line."""
    if worst.share > 0:
        return because("above-the-line", n=worst.at, share=worst.share)
    return because("below-the-line", n=worst.at, share=-worst.share)


def nonlinear_if_bent(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if T(n) bends: one half of the ladder is steeper than the other,
    or the intercept of T(n) is clearly below zero.
    """
    if figure.value is None:
        return figure
    fitted = case.whole if figure.status == "bimodal" else case.usual
    bent = _why_bent(figure, fitted)
    if not bent:
        return figure
    return without_value(figure, "nonlinear", bent)


def _why_bent(figure: Figure, fitted: FittedCase) -> Why:
    """Why T(n) of the figure is no line; '' if it may be one, or where the wait polls: T(n) is then
    a staircase.
    """
    if fitted.polls:
        return ""
    of_enqueue = figure.name != "complete"
    if not of_enqueue:
        too_low = why_intercept_too_low(fitted.mean("fixed"), _longest_total_ns(fitted))
        if too_low:
            return too_low

    changes: list[float] = []
    for fit in fitted.fits:
        samples = fit.samples(of_enqueue=of_enqueue)
        change = slope_change(samples.n, samples.times)
        if change is not None:
            changes.append(change)

    precision = fitted.precision
    if figure.value and figure.low is not None and figure.high is not None:
        half_width = (figure.high - figure.low) / 2
        precision = max(precision, half_width / abs(figure.value))
    return why_bent(changes, precision)


def _longest_total_ns(fitted: FittedCase) -> float:
    """The median T(n) at the largest n of a process, ns, of the process where it is longest."""
    medians: list[float] = []
    for fit in fitted.fits:
        n = fit.wall[:, 0]
        totals_ns = fit.wall[n == n.max(), 2]
        medians.append(median(totals_ns))
    return max(medians)


def nonlinear_at_anchors(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if its anchors (samples ten times as long as the longest chain)
    lie off the line to the same side; ``modes`` then gives the cost before and beyond.

    Where the cost itself has changed since the rounds, anchors tell nothing of the line. The time
    of ``issue`` may rise there because the queue is full, which is no bend.
    """
    if not _is_judged_by_anchors(figure, case):
        return figure
    seen = _anchors_of(figure, case)
    if not seen.bends or seen.holds_to or _enqueue_of_pipeline(figure, case):
        return figure
    bent = without_value(figure, "nonlinear", seen.bends)
    return replace(bent, modes=list(seen.slopes))


def _is_judged_by_anchors(figure: Figure, case: CaseFits) -> bool:
    """Whether anchors can tell of the line of this figure: it has a value, anchors were taken, and
    the cost has not changed since the rounds.
    """
    if figure.value is None or not case.series.anchored:
        return False
    return not case.complete_anchors.drifts


def _anchors_of(figure: Figure, case: CaseFits) -> AnchorVerdict:
    """What the anchors show about the line that the figure is the slope of."""
    return case.complete_anchors if figure.name == "complete" else case.enqueue_anchors


def _enqueue_of_pipeline(figure: Figure, case: CaseFits) -> bool:
    """Whether the figure is an enqueue time beside which the device works: such a time rises once
    the queue is full.
    """
    pipelined = case.series.overlap == "pipelined" and not case.series.synchronous
    return pipelined and figure.name != "complete"


def noisy_if_drifting_in_rounds(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``noisy`` if its cost rises or falls over the rounds of the processes, and the
    reference loop does not explain the change.
    """
    if figure.value is None or figure.status == "bimodal":
        return figure
    slopes = case.usual.slopes_by_round(figure.name)
    drift = find_drift_beyond_reference(slopes, case.usual.reference_by_round, case.precision)
    if drift is None:
        return figure
    reason = because("drifts-in-rounds", early_us=drift.early / 1e3, late_us=drift.late / 1e3)
    return replace(figure, status="noisy", reason=reason)


def noisy_if_drifted_after_rounds(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``noisy`` if the longest chains cost something else beside the anchors, at the
    end of the processes, than in the rounds.
    """
    if figure.value is None or not case.series.anchored or not case.complete_anchors.drifts:
        return figure
    return replace(figure, status="noisy", reason=case.complete_anchors.drifts)


def noisy_unless_checked_beyond(figure: Figure, case: CaseFits) -> Figure:
    """The figure with ``holds_to``, the n up to which the line was seen to hold; ``noisy`` if no
    anchor shows that the line goes on beyond its longest chain.

    The enqueue time of a pipeline holds to the longest chain of its line: beyond it, the queue may
    be full.
    """
    if not _is_judged_by_anchors(figure, case):
        return figure
    seen = _anchors_of(figure, case)
    if seen.holds_to:
        return replace(figure, holds_to=seen.holds_to)
    if _enqueue_of_pipeline(figure, case):
        below_knee = [fit.samples(of_enqueue=True).n for fit in case.whole.fits]
        return replace(figure, holds_to=max(int(n.max()) for n in below_knee))
    unclear = because("not-checked-beyond", units=case.whole.largest_n, why=seen.unclear)
    return replace(figure, status="noisy", reason=together(figure.reason, unclear))


def noisy_if_slow_samples_are_work(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``noisy`` if samples that it leaves out take much time in most processes, and
    no other thread explains this: the stack itself does something long every so many units.
    """
    if figure.value is None or not case.series.anchored or figure.status == "bimodal":
        return figure
    whole = case.whole
    if whole.polls:
        return figure

    share = share_of_slow_samples(whole.processes, whole.fits)
    if share and figure.name != "complete":
        # Alone, a long ``issue`` only takes from the wait that follows, so both must be slow.
        share = share_of_slow_samples(whole.processes, whole.fits, of_enqueue=True)
    if not share:
        return figure

    mean_us = figure.value * (1 + share) / 1e3
    are_work = because("slow-samples-are-work", share=share, mean_us=mean_us)
    return replace(figure, status="noisy", reason=together(figure.reason, are_work))


class Check(NamedTuple):
    """One check of a figure. ``status``: what a figure becomes that the check refuses. ``judge``:
    returns the figure with that status, or unchanged.
    """

    status: Status
    judge: Callable[[Figure, CaseFits], Figure]


CHECKS = (
    Check("unavailable", unavailable_without_cpu_clock),
    Check("below-resolution", below_resolution_at_one_poll),
    Check("below-resolution", below_resolution_unless_above_zero),
    Check("below-resolution", below_resolution_if_clock_is_coarse),
    Check("bimodal", bimodal_at_two_speeds),
    Check("nonlinear", nonlinear_off_the_line),
    Check("nonlinear", nonlinear_if_bent),
    Check("nonlinear", nonlinear_at_anchors),
    Check("noisy", noisy_if_drifting_in_rounds),
    Check("noisy", noisy_if_drifted_after_rounds),
    Check("noisy", noisy_unless_checked_beyond),
    Check("noisy", noisy_if_slow_samples_are_work),
)
"""The checks of a slope (``issue``, ``host``, ``complete``), in the order of docs/method.md. The
interval itself calls a figure ``noisy`` whose half-width is too large (``mean_of_processes``).
"""


def judged(figure: Figure, case: CaseFits) -> Figure:
    """The slope with the status that ``CHECKS`` give it, one check after another."""
    for check in CHECKS:
        figure = check.judge(figure, case)
    return figure


def noisy_if_one_unit_is_off(fixed: Figure, case: CaseFits, beside_ns: float) -> Figure:
    """The one-off cost is ``noisy`` if a chain of one unit takes clearly more or less than the line
    gives.
    """
    start = case.complete_start
    if fixed.value is None or not start.expected:
        return fixed
    reason = because(
        "one-unit-is-off", single_us=start.single / 1e3, expected_us=start.expected / 1e3
    )
    return replace(fixed, status="noisy", reason=together(fixed.reason, reason))


def noisy_if_waits_differ(fixed: Figure, case: CaseFits, beside_ns: float) -> Figure:
    """The one-off cost is ``noisy`` if in most processes many waits for one unit differ from the
    others: the median that the cost rests on then says nothing of the mean.
    """
    processes = case.usual.processes
    if fixed.value is None or fixed.low is None or fixed.high is None or case.usual.polls:
        return fixed
    seen = slow_waits(processes, [single_waits(process) for process in processes])
    half_width = (fixed.high - fixed.low) / 2
    size_ns = abs(fixed.value) + beside_ns
    if seen is None or not seen.matter(size_ns, half_width, case.precision):
        return fixed
    return replace(fixed, status="noisy", reason=together(fixed.reason, seen.reason))


FIXED_CHECKS = (noisy_if_one_unit_is_off, noisy_if_waits_differ)
"""The checks of the one-off cost ``fixed``. Each takes the figure, the fits of the case, and what
the precision of ``fixed`` is relative to in addition to its value (``beside_ns``).
"""
