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
    if figure.name != "host" or case.all_rounds.values("host"):
        return figure
    reason = because("cpu-clock-cannot-measure")
    return Figure(name=figure.name, status="unavailable", reason=reason)


def below_resolution_at_one_poll(figure: Figure, case: CaseFits) -> Figure:
    """``complete`` is ``below-resolution`` if every wait of a polling stack ended at the same poll:
    such times fit any slope, so no process has a line.
    """
    if figure.name != "complete" or not case.all_rounds.polls or case.all_rounds.values("complete"):
        return figure
    # ``values``: the slope of each process that has a line. ``polls``: the wait polls rarely.
    reason = because("one-step-of-the-poll")
    return Figure(name=figure.name, status="below-resolution", reason=reason)


def below_resolution_unless_above_zero(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``below-resolution`` if its slope is zero or less in a process: noise then
    hides it. The reason names the clock where that is too coarse for any slope.
    """
    # The slope in each process, ns per unit.
    slopes = case.all_rounds.values(figure.name)
    if not slopes or min(slopes) > 0:
        return figure
    reason = _coarse_for_longest_chain(case.all_rounds) or because(
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
    """The figure is ``below-resolution`` if from the shortest to the longest chain it adds too few
    steps of the clock. A figure with two speeds is not checked; the next check gives it both
    values.
    """
    if figure.value is None or _at_two_speeds(figure, case) is not None:
        return figure

    # What the slope adds to the time of a chain from the smallest to the largest n.
    added_ns = abs(figure.value) * _shortest_range_of_n(case.at_usual_speed)
    step_ns = _clock_step(case.at_usual_speed)
    # A hundred steps: each end of the line is uncertain by one, so fewer make the slope uncertain
    # by more than 1 %.
    if added_ns >= _CLOCK.clock_steps * step_ns:
        return figure

    reason = _coarse_for_longest_chain(case.at_usual_speed) or because(
        "slope-too-small-for-clock", reach_ns=added_ns, step_ns=step_ns
    )
    # ``without_value``: the figure with this status and reason, and without its value.
    return without_value(figure, "below-resolution", reason)


def _coarse_for_longest_chain(fitted: FittedCase) -> Why:
    """The reason that the clock is too coarse even for the whole time of the longest chain; '' if
    it is not.

    The reader then learns that the clock is at fault, and not the small cost.
    """
    # Columns of ``wall``: n, the time of ``issue``, and T(n), the time until the wait ended.
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
    # Where the cost itself cannot be told, two speeds of it cannot either.
    if figure.status == "below-resolution":
        return figure
    return _at_two_speeds(figure, case) or figure


def _at_two_speeds(figure: Figure, case: CaseFits) -> Figure | None:
    """The figure with a value for each of two speeds, if its rounds form two groups; None if the
    case has one speed, or if no process has the figure.

    Two checks ask for it, and it takes long, so the case keeps the answer.
    """
    name = figure.name
    if not case.all_rounds.values(name):
        return None
    if name not in case.at_two_speeds:
        # ``split_by``: the figure by whose values the rounds are split, here itself.
        both = figure_at_two_speeds(case, name, split_by=name)
        if both is not None:
            # Remarks, such as how many rounds were left out, are those of the rounds searched.
            both = with_remarks(both, case, case.searched_for_speeds)
        case.at_two_speeds[name] = both
    return case.at_two_speeds[name]


def nonlinear_off_the_line(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if in the median process the median time at some n is off the
    line by more than ``LINE.misfit`` and the wanted precision, as a share of the line's whole rise.
    A figure of two speeds is not checked: its samples belong to two lines.
    """
    if figure.value is None or figure.status == "bimodal":
        return figure

    # Of each process with a line its largest such distance.
    misfits: list[Misfit] = []
    for fitted_process in case.at_usual_speed.fitted_processes:
        misfit = _misfit(figure.name, fitted_process.process, fitted_process.fit)
        if misfit is not None:
            misfits.append(misfit)
    if not misfits:
        return figure

    # The median process decides; the one with the largest misfit is told.
    median_share = median([misfit.share for misfit in misfits])
    # ``LINE.misfit``: 3 %.
    if abs(median_share) <= max(case.precision, LINE.misfit):
        return figure
    worst = max(misfits, key=lambda misfit: abs(misfit.share))
    return without_value(figure, "nonlinear", _off_the_line(worst))


def _misfit(name: str, process: Process, fit: ProcessFit) -> Misfit | None:
    """How far a process's times are off its line, at the n where that is most; for ``complete`` the
    times until the wait ended, for the others those of ``issue``. None without a line that rises.

    Nor for ``complete`` if the wait polls: polls round these times up, so they are never on the
    line.
    """
    # ``complete`` is fitted to T(n); ``issue`` and ``host`` to the time until ``issue`` returned.
    of_enqueue = name != "complete"
    line = fit.line(of_enqueue=of_enqueue)
    if line is None or line.slope == 0:
        return None
    # Only T(n) contains the wait, and so what a poll adds; the time of ``issue`` does not.
    if not of_enqueue and wait_quantum(process):
        return None
    samples = fit.samples(of_enqueue=of_enqueue)
    # Where the median time at an n is farthest from the line, beyond what noise explains.
    return worst_misfit(samples.n, samples.times, line)


def _off_the_line(worst: Misfit) -> Reason:
    """The n at which T(n) is farthest from the line, and on which side of the line."""
    if worst.share > 0:
        return because("above-the-line", n=worst.at, share=worst.share)
    return because("below-the-line", n=worst.at, share=-worst.share)


def nonlinear_if_bent(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if T(n) bends: one half of the ladder (the sizes of n) is steeper
    than the other, or the intercept of T(n) is clearly below zero. With two speeds all rounds are
    looked at; else those at the usual speed of the processor.
    """
    if figure.value is None:
        return figure
    # ``bimodal``: the figure has two speeds, and so a value for each.
    fitted = case.all_rounds if figure.status == "bimodal" else case.at_usual_speed
    bent = _why_bent(figure, fitted)
    if not bent:
        return figure
    return without_value(figure, "nonlinear", bent)


def _why_bent(figure: Figure, fitted: FittedCase) -> Why:
    """Why T(n) of the figure is no line; '' if it may be one, or where the wait polls: T(n) is then
    a staircase.

    Only the line of ``complete`` has an intercept that must not be negative: no wait takes less
    than no time.
    """
    if fitted.polls:
        return ""
    of_enqueue = figure.name != "complete"
    # First: an intercept clearly below zero, judged against the longest T(n).
    if not of_enqueue:
        # ``mean("fixed")``: the mean intercept of the processes, with its interval.
        too_low = why_intercept_too_low(fitted.mean("fixed"), _longest_total_ns(fitted))
        if too_low:
            return too_low

    # Then: by process how much steeper one half of the ladder is than the other.
    changes: list[float] = []
    for fit in fitted.fits:
        samples = fit.samples(of_enqueue=of_enqueue)
        change = slope_change(samples.n, samples.times)
        if change is not None:
            changes.append(change)

    # A change within the figure's own interval is no finding.
    precision = fitted.precision
    if figure.value and figure.low is not None and figure.high is not None:
        half_width = (figure.high - figure.low) / 2
        precision = max(precision, half_width / abs(figure.value))
    return why_bent(changes, precision)


def _longest_total_ns(fitted: FittedCase) -> float:
    """The time of the longest chains, ns: the median T(n) at a process's largest n, of the process
    where it is longest.
    """
    medians: list[float] = []
    for fit in fitted.fits:
        # Columns of ``wall``: n, the time of ``issue``, T(n).
        n = fit.wall[:, 0]
        totals_ns = fit.wall[n == n.max(), 2]
        medians.append(median(totals_ns))
    return max(medians)


def nonlinear_at_anchors(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``nonlinear`` if its anchors (samples ten times as long as the longest chain of
    the line) lie off the line to the same side in most processes; ``modes`` then gives the cost
    before and beyond.

    Not where the cost itself has changed since the rounds: anchors then tell nothing of the line.
    Nor for the enqueue time of a pipeline: it rises there because the queue is full, which is no
    bend.
    """
    # Judged by them: it has a value, anchors were taken, and the cost has not changed since.
    if not _is_judged_by_anchors(figure, case):
        return figure
    # ``bends``: why T(n) is no line, '' if it may be one. ``holds_to``: the n up to which the line
    # was seen to hold, 0 if it was not; never set together with ``bends``. ``slopes``: ns per unit
    # up to the line's largest n, and from there to the anchor.
    verdict = _anchors_of(figure, case)
    if not verdict.bends or verdict.holds_to or _enqueue_of_pipeline(figure, case):
        return figure
    bent = without_value(figure, "nonlinear", verdict.bends)
    return replace(bent, modes=list(verdict.slopes))


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
    processor's speed, which the reference loop of each round shows, does not explain the change. A
    figure of two speeds is not checked: it tells already that the cost changes.
    """
    if figure.value is None or figure.status == "bimodal":
        return figure
    # By process the figure in each round; the reference loop of these rounds shows the speed.
    slopes = case.at_usual_speed.slopes_by_round(figure.name)
    drift = find_drift_beyond_reference(
        slopes, case.at_usual_speed.reference_by_round, case.precision
    )
    # ``drift``: the mean cost in the first and in the last third of the rounds.
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
    anchor (a sample ten times as long as its longest chain) shows that the line goes on.

    The enqueue time of a pipeline holds to the longest chain of its line: beyond it, the queue may
    be full, and no anchor can tell.
    """
    # Judged by them: it has a value, anchors were taken, and the cost has not changed since.
    if not _is_judged_by_anchors(figure, case):
        return figure
    # ``unclear``: why the anchors do not tell whether the line goes on.
    verdict = _anchors_of(figure, case)
    if verdict.holds_to:
        return replace(figure, holds_to=verdict.holds_to)
    if _enqueue_of_pipeline(figure, case):
        # The line of ``issue`` was fitted only to n at which the queue is not full (the knee).
        below_knee = [fit.samples(of_enqueue=True).n for fit in case.all_rounds.fits]
        return replace(figure, holds_to=max(int(n.max()) for n in below_knee))
    unclear = because("not-checked-beyond", units=case.all_rounds.largest_n, why=verdict.unclear)
    return replace(figure, status="noisy", reason=together(figure.reason, unclear))


def noisy_if_slow_samples_are_work(figure: Figure, case: CaseFits) -> Figure:
    """The figure is ``noisy`` if samples that it leaves out as interrupted take much time in most
    processes, and no other thread explains this: then the stack itself does something long every so
    many units, and its mean cost is higher. A polling wait, whose times are rounded up, does not
    show it.
    """
    if figure.value is None or not case.series.anchored or figure.status == "bimodal":
        return figure
    all_rounds = case.all_rounds
    if all_rounds.polls:
        return figure

    # Time in the samples left out, as a share of the cost; 0 if it is small, or explained by
    # something else than the stack.
    share = share_of_slow_samples(all_rounds.processes, all_rounds.fits)
    if share and figure.name != "complete":
        # Alone, a long ``issue`` only takes from the wait that follows, so both must be slow.
        share = share_of_slow_samples(all_rounds.processes, all_rounds.fits, of_enqueue=True)
    if not share:
        return figure

    # What a unit costs on average with the slow samples included.
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
    """The one-off cost ``fixed``, the intercept of the line, is ``noisy`` if a chain of one unit
    takes clearly more or less than the line gives: ``fixed`` and the cost of a unit then do not add
    up to its time. ``start.expected`` is what the line gives, and 0 where T(1) is not clearly off.
    ``beside_ns`` is not used: all checks of ``fixed`` are called alike.
    """
    # ``LineStart``: from which n on T(n) is the line, and T(1) where it is clearly off.
    start = case.complete_start
    if fixed.value is None or not start.expected:
        return fixed
    reason = because(
        "one-unit-is-off", single_us=start.single / 1e3, expected_us=start.expected / 1e3
    )
    return replace(fixed, status="noisy", reason=together(fixed.reason, reason))


def noisy_if_waits_differ(fixed: Figure, case: CaseFits, beside_ns: float) -> Figure:
    """The one-off cost ``fixed`` is ``noisy`` if in most processes many waits for one unit differ
    from the others: the median that it rests on then says nothing of the mean. Not where the wait
    polls, which makes all its waits differ.

    ``beside_ns``: the time to which its precision is relative in addition to its value.
    """
    processes = case.at_usual_speed.processes
    if fixed.value is None or fixed.low is None or fixed.high is None or case.at_usual_speed.polls:
        return fixed
    # How far the mean of all T(1) is from their median; None with few processes or waits.
    slow = slow_waits(processes, [single_waits(process) for process in processes])
    # It counts if it exceeds both the interval and what the precision allows of this size.
    half_width = (fixed.high - fixed.low) / 2
    size_ns = abs(fixed.value) + beside_ns
    if slow is None or not slow.make_noisy(size_ns, half_width, case.precision):
        return fixed
    return replace(fixed, status="noisy", reason=together(fixed.reason, slow.reason))


FIXED_CHECKS = (noisy_if_one_unit_is_off, noisy_if_waits_differ)
"""The checks of the one-off cost ``fixed``. Each takes the figure, the fits of the case, and what
the precision of ``fixed`` is relative to in addition to its value (``beside_ns``).
"""
