"""The figures of one case from its raw samples, with intervals. Times in ns.

T(n) is the time of a chain of n units. The canary is a fixed loop, timed in every round: it shows
the processor's speed.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from overhead.measure.fitting.anchors import Held, has_anchors, held, slope_to_anchor
from overhead.measure.fitting.curvature import slope_change, why_bent, why_intercept_too_low
from overhead.measure.fitting.drift import can_show_drift, find_drift_beyond_canary
from overhead.measure.fitting.interval import mean_of_processes, without_value
from overhead.measure.fitting.line import LINE, Mask, Misfit, worst_misfit
from overhead.measure.fitting.line_start import LineStart, line_start
from overhead.measure.fitting.one_off_figures import met_figures, one_off_figures
from overhead.measure.fitting.one_process import (
    SLOPES,
    Process,
    ProcessFit,
    Series,
    clock_step,
    fit_process,
    single_waits,
    slopes_by_round,
    wait_quantum,
)
from overhead.measure.fitting.quiet_rounds import canary_ns, without_slow_rounds
from overhead.measure.fitting.slow_samples import share_of_slow_samples, slow_waits
from overhead.measure.fitting.two_speeds import (
    SPEEDS,
    Owners,
    both_speeds,
    canary_changed,
    split_speeds,
    two_groups,
)
from overhead.results import Bound, Figure, Reason, Why, because, together

DRIFTS = frozenset({"drifts-in-rounds", "drifts-after-rounds"})
"""The codes of the reasons of a figure whose cost changes in the course of a process."""


@dataclass(frozen=True)
class _CaseRule:
    """When a clock is fine enough, and what limits a case."""

    clock_steps: int = 100
    """The slope must add so many steps of the clock from the smallest to the largest n: fewer make
    it uncertain by more than 1 %, more refuse good figures.
    """
    host_bound_from: float = 0.9
    """Share of ``complete`` from which ``host`` alone explains it: a lower one hides what the
    device adds.
    """
    device_bound_below: float = 0.75
    """Share of ``complete`` below which ``host`` is hidden behind the device: above it, both may
    take turns.
    """


_RULE = _CaseRule()


def estimate(series: Series, target: float) -> dict[str, Figure]:
    """All figures of one case by name. ``target``: the largest relative half-width of a figure that
    is ``ok``.

    ``issue``, ``host``, ``complete`` and ``fixed`` always, with a status; ``everything``, the mean
    over all samples with what a quiet cost leaves out, where anchors were taken; ``knee_n`` and
    ``queue_depth`` if the queue was seen to be full; ``one_off_figures`` and ``met_figures`` where
    they were measured. The precision of ``fixed`` is relative to the sum of ``fixed``, ``complete``
    and the poll interval of a polling wait.
    """
    case = _Case(series, target)
    figures = {name: case.slope(name) for name in SLOPES}
    knee = case.knee()
    if figures["complete"].status == "nonlinear" and any(fit.knee for fit in case.fits):
        why = because("issue-bends-as-total-does")
        figures |= {
            name: without_value(figures[name], "nonlinear", why) for name in ("issue", "host")
        }
        knee = {}
    figures |= (
        {"fixed": case.fixed(figures["complete"])} | knee | case.everything(figures["complete"])
    )
    return figures | one_off_figures(series, target) | met_figures(series)


def limited_by(series: Series, figures: Mapping[str, Figure]) -> Bound:
    """``host``, ``device`` or ``balanced``: what limits ``complete`` in a pipelined pattern.

    ``host`` for a synchronous stack; empty for other patterns, or if a figure is missing.
    """
    if series.synchronous:
        return "host"
    host, complete = figures.get("host"), figures.get("complete")
    if (
        series.overlap != "pipelined"
        or not host
        or not complete
        or host.value is None
        or not complete.value
    ):
        return ""
    share = host.value / complete.value
    return (
        "host"
        if share >= _RULE.host_bound_from
        else "device"
        if share < _RULE.device_bound_below
        else "balanced"
    )


def is_drift_judged(series: Series) -> bool:
    """Whether a drift of the cost within a process would be seen: by the rounds, or by the anchors
    at its end.
    """
    quiet = [process for process in series.processes if not wait_quantum(process)]
    return can_show_drift(quiet) or has_anchors(quiet)


class _Case:
    """The processes of one case that have samples, with their fits and canaries."""

    def __init__(self, series: Series, target: float) -> None:
        self.series, self.target = series, target
        self.processes = [p for p in self.series.processes if any(r.samples for r in p.rounds)]
        self.fits = [fit_process(p, self.series) for p in self.processes]
        self.canaries = [{r.round: canary_ns(r) for r in p.rounds} for p in self.processes]
        fitted = list(zip(self.processes, self.fits, strict=True))
        self.by_round = functools.cache(
            lambda name: [slopes_by_round(p, series, name, f.knee) for p, f in fitted]
        )

    def slope(self, name: str) -> Figure:
        """A figure in ns per unit, or the reason why it has no value."""
        values = self.values(name)
        if not values:
            return self.missing(name)
        if min(values) <= 0:
            reason = self.coarse_clock() or because(
                "slope-not-told-from-zero", least_ns=min(values)
            )
            return Figure(
                name=name, status="below-resolution", reason=reason, processes=len(values)
            )
        both = self.speeds.bimodal(name, name)
        usual = self.speeds if both else self.usual
        found = self.refused_if_bent(name, both) if both else usual.checked(name, usual.mean(name))
        if self.series.anchored and found.value is not None:
            found = self.anchored(name, found)
            found = self.with_start(name, found)
            found = self.refused_if_slow_samples_are_work(name, found)
        return self.with_remarks(found, usual, *self.remarks(name))

    def anchored(self, name: str, found: Figure) -> Figure:
        """The figure with ``holds_to``; ``nonlinear`` where an anchor shows that T(n) bends,
        ``noisy`` without one.

        Where a queue is full at the anchor, ``issue`` is slower there than it is below the knee,
        which is no bend.
        """
        of_issue = name != "complete"
        if self.complete_held.drifts:
            return msgspec.structs.replace(found, status="noisy", reason=self.complete_held.drifts)
        seen = self.issue_held if of_issue else self.complete_held
        if seen.to:
            return msgspec.structs.replace(found, holds_to=seen.to)
        if of_issue and self.series.overlap == "pipelined" and not self.series.synchronous:
            return msgspec.structs.replace(
                found, holds_to=max(int(f.wall[f.below, 0].max()) for f in self.fits)
            )
        if seen.bends:
            bent = without_value(found, "nonlinear", seen.bends)
            return msgspec.structs.replace(bent, modes=list(seen.slopes))
        top = max(int(fit.wall[:, 0].max()) for fit in self.fits)
        unclear = because("not-checked-beyond", units=top, why=seen.unclear)
        return msgspec.structs.replace(
            found, status="noisy", reason=together(found.reason, unclear)
        )

    def with_start(self, name: str, found: Figure) -> Figure:
        """The figure with ``holds_from``, the smallest n from which on T(n) was seen to be this
        line.
        """
        if found.value is None or found.status == "bimodal":
            return found
        start = self.complete_start if name == "complete" else self.issue_start
        return msgspec.structs.replace(found, holds_from=start.n)

    def refused_if_slow_samples_are_work(self, name: str, found: Figure) -> Figure:
        """The figure; ``noisy`` where samples that it leaves out take much time in most processes
        and no other thread explains it: the stack itself does something long every so many units.
        """
        if (
            found.value is None
            or found.status == "bimodal"
            or any(map(wait_quantum, self.processes))
        ):
            return found
        share = share_of_slow_samples(self.processes, self.fits)
        if (
            share and name != "complete"
        ):  # alone, a long issue only takes from the wait that follows
            share = share_of_slow_samples(self.processes, self.fits, issue=True)
        if not share:
            return found
        are_work = because(
            "slow-samples-are-work", share=share, mean_us=found.value * (1 + share) / 1e3
        )
        return msgspec.structs.replace(
            found, status="noisy", reason=together(found.reason, are_work)
        )

    @functools.cached_property
    def complete_start(self) -> LineStart:
        """Where the line of T(n) begins."""
        return self.start(issue=False)

    @functools.cached_property
    def issue_start(self) -> LineStart:
        """Where the line of ``issue`` begins."""
        return self.start(issue=True)

    def start(self, *, issue: bool) -> LineStart:
        """Where a line begins; nothing where the wait polls, since T(n) is a staircase there."""
        usual = self.usual
        if any(map(wait_quantum, usual.processes)):
            return LineStart()
        return line_start(usual.processes, usual.fits, self.target, issue=issue)

    @functools.cached_property
    def complete_held(self) -> Held:
        """What the anchors show about T(n)."""
        quantum = max(map(wait_quantum, self.processes))
        return held(self.processes, [fit.complete for fit in self.fits], False, quantum)

    @functools.cached_property
    def issue_held(self) -> Held:
        """What the anchors show about the time until ``issue`` returns."""
        return held(self.processes, [fit.issue for fit in self.fits], True)

    @functools.cached_property
    def usual(self) -> _Case:
        """The case without rounds of a slow processor or at another clock."""
        quiet = without_slow_rounds(self.series)
        found = self if quiet is self.series else _Case(quiet, self.target)
        found.usual = found
        return found

    def with_remarks(self, found: Figure, usual: _Case, *remarks: Why) -> Figure:
        """A figure of ``usual``, with the rounds it leaves out and the remarks appended to its
        rule.
        """
        whole, left = (sum(len(p.rounds) for p in case.processes) for case in (self, usual))
        left_out = because("rounds-left-out", share=1 - left / whole) if left < whole else ""
        return msgspec.structs.replace(found, rule=together(found.rule, left_out, *remarks))

    def remarks(self, name: str) -> list[Why]:
        """What of the canary, the ladder and the wait affects how to read the figure."""
        found: list[Why] = []
        off = canary_changed(np.array([ns for own in self.canaries for ns in own.values() if ns]))
        if off.any():
            found.append(because("canary-was-off", by=SPEEDS.canary_change, share=off.mean()))
        ladders = [p.one_off["ladder"] for p in self.processes if "ladder" in p.one_off]
        shortfalls = dict.fromkeys(ladder.reason for ladder in ladders if ladder.reason)
        found += [because("ladder-too-short", why=why) for why in shortfalls]
        if name == "host" and self.series.wait_spins and not self.series.synchronous:
            found.append(because("wait-spins"))
        ages = [float(p.values("anchor_age")[0]) for p in self.processes if p.values("anchor_age")]
        if name == "complete" and ages and is_drift_judged(self.series):
            found.append(because("drift-judged-over", seconds=min(ages) / 1e9))
        return found

    def fixed(self, complete: Figure) -> Figure:
        """The intercept, ns; without a value if ``complete`` has none."""
        values = self.values("fixed")
        if not values or complete.value is None:
            return Figure(
                name="fixed", status=complete.status, reason=complete.reason, rule=complete.rule
            )
        if complete.status == "bimodal":
            both = self.speeds.bimodal("complete", "fixed")
            if both is None:
                return Figure(name="fixed", status="noisy", reason=because("two-speeds-few-rounds"))
            return self.with_remarks(both, self.speeds)
        beside = complete.value + max(map(wait_quantum, self.processes))
        found = self.usual.mean("fixed", beside)
        if self.series.anchored:
            found = self.refused_if_one_unit_is_off(found)
            found = self.refused_if_waits_differ(found, beside)
        return self.with_remarks(found, self.usual)

    def refused_if_one_unit_is_off(self, found: Figure) -> Figure:
        """The intercept; ``noisy`` where one unit takes clearly more or less than the line
        gives.
        """
        start = self.complete_start
        if found.value is None or not start.expected:
            return found
        off = because(
            "one-unit-is-off", single_us=start.single / 1e3, expected_us=start.expected / 1e3
        )
        return msgspec.structs.replace(found, status="noisy", reason=together(found.reason, off))

    def refused_if_waits_differ(self, found: Figure, beside: float) -> Figure:
        """The intercept; ``noisy`` where many waits for one unit differ from the others in most
        processes, so that the median that it rests on says nothing of the mean. ``beside``: as for
        its precision, ns.
        """
        processes = self.usual.processes
        if (
            found.value is None
            or found.low is None
            or found.high is None
            or any(map(wait_quantum, processes))
        ):
            return found
        seen = slow_waits(processes, [single_waits(process) for process in processes])
        if seen is None or not seen.matter(
            abs(found.value) + beside, (found.high - found.low) / 2, self.target
        ):
            return found
        return msgspec.structs.replace(
            found, status="noisy", reason=together(found.reason, seen.reason)
        )

    def everything(self, complete: Figure) -> dict[str, Figure]:
        """The mean cost of a unit over all samples and anchors, nothing left out, ns; empty without
        anchors.
        """
        if not self.series.anchored or complete.value is None or complete.status == "bimodal":
            return {}
        values = []
        for process, fit in zip(self.processes, self.fits, strict=True):
            anchor = process.one_off.get("anchor")
            if fit.complete and anchor and anchor.values and not wait_quantum(process):
                n, total = np.r_[fit.wall[:, 0], anchor.at], np.r_[fit.wall[:, 2], anchor.values]
                values.append(float((total - fit.complete.intercept).sum() / n.sum()))
        return (
            {"everything": mean_of_processes("everything", values, self.target)} if values else {}
        )

    def knee(self) -> dict[str, Figure]:
        """``knee_n`` and ``queue_depth`` if most processes have a knee, else nothing."""
        knees = [f.knee for f in self.fits if f.knee]
        if len(knees) * 2 <= len(self.fits):
            return {}
        return {
            "knee_n": mean_of_processes("knee_n", [k.n for k in knees], self.target, unit="n"),
            "queue_depth": mean_of_processes(
                "queue_depth", [k.depth for k in knees], self.target, unit="n"
            ),
        }

    def values(self, name: str) -> list[float]:
        """The figure in each process that has it."""
        return [v for fit in self.fits if (v := fit.value(name)) is not None]

    def mean(self, name: str, beside: float = 0.0) -> Figure:
        """The mean of the figure over the processes that have it."""
        paces = [
            p.pace
            for p, fit in zip(self.processes, self.fits, strict=True)
            if fit.value(name) is not None
        ]
        return mean_of_processes(name, self.values(name), self.target, beside=beside, paces=paces)

    def missing(self, name: str) -> Figure:
        """The figure without a value, with the reason."""
        if not self.processes:
            return Figure(name=name, status="failed", reason=because("no-round-sampled"))
        if name == "host":
            return Figure(
                name=name, status="unavailable", reason=because("cpu-clock-cannot-measure")
            )
        if name == "complete" and any(map(wait_quantum, self.processes)):
            return Figure(
                name=name, status="below-resolution", reason=because("one-step-of-the-poll")
            )
        return Figure(name=name, status="failed", reason=because("too-few-sizes"))

    def checked(self, name: str, found: Figure) -> Figure:
        """The figure; without its value if the clock is too coarse for it or T(n) is not linear."""
        if found.value is None:
            return found
        if too_coarse := self.clock_too_coarse(found.value):
            return without_value(found, "below-resolution", too_coarse)
        misfits = [
            m
            for p, f in zip(self.processes, self.fits, strict=True)
            if (m := _misfit(name, p, f)) is not None
        ]
        share = float(np.median([m.share for m in misfits])) if misfits else 0.0
        if abs(share) > max(self.target, LINE.misfit):
            worst = max(misfits, key=lambda m: abs(m.share))
            return without_value(found, "nonlinear", _off_the_line(worst))
        found = self.refused_if_bent(name, found)
        return found if found.value is None else self.refused_if_drifting(name, found)

    def clock_too_coarse(self, slope: float) -> Why:
        """Why the clock cannot tell this slope (ns per unit); '' if it can."""
        reach = min(
            abs(slope) * float(np.ptp(fit.wall[:, 0])) for fit in self.fits if fit.wall.size
        )
        step = max(map(clock_step, self.processes))
        if reach >= _RULE.clock_steps * step:
            return ""
        return self.coarse_clock() or because(
            "slope-too-small-for-clock", reach_ns=reach, step_ns=step
        )

    def coarse_clock(self) -> Why:
        """That the clock is too coarse for any of these chains; '' if it is fine enough for the
        longest.
        """
        longest = max(float(fit.wall[:, 2].max()) for fit in self.fits if fit.wall.size)
        step = max(map(clock_step, self.processes))
        if longest >= _RULE.clock_steps * step:
            return ""
        return because("clock-too-coarse", longest_ns=longest, step_ns=step)

    def refused_if_bent(self, name: str, found: Figure) -> Figure:
        """The figure; ``nonlinear`` without its value if T(n) bends."""
        bent = self.bent(name, found)
        return without_value(found, "nonlinear", bent) if bent else found

    def bent(self, name: str, found: Figure) -> Why:
        """Why T(n) of the figure is no line, from both halves of the ladder and the intercept; else
        empty.
        """
        if any(map(wait_quantum, self.processes)):
            return ""
        if name == "complete":
            longest = max(
                float(np.median(fit.wall[fit.wall[:, 0] == fit.wall[:, 0].max(), 2]))
                for fit in self.fits
            )
            if too_low := why_intercept_too_low(self.mean("fixed"), longest):
                return too_low
            changes = [slope_change(fit.wall[:, 0], fit.wall[:, 2]) for fit in self.fits]
        else:
            changes = [
                slope_change(fit.wall[fit.below, 0], fit.wall[fit.below, 1]) for fit in self.fits
            ]
        precision = self.target
        if found.value and found.low is not None and found.high is not None:
            precision = max(precision, (found.high - found.low) / 2 / abs(found.value))
        return why_bent([change for change in changes if change is not None], precision)

    def refused_if_drifting(self, name: str, found: Figure) -> Figure:
        """The figure; ``noisy`` with both values if it changes during a process and the canary does
        not explain it.
        """
        trend = find_drift_beyond_canary(self.by_round(name), self.canaries, self.target)
        if trend is None:
            return found
        drifts = because("drifts-in-rounds", early_us=trend.early / 1e3, late_us=trend.late / 1e3)
        return msgspec.structs.replace(found, status="noisy", reason=drifts)

    @functools.cached_property
    def speeds(self) -> _Case:
        """The rounds in which two speeds are looked for: all if the canary itself has two speeds,
        else the usual.
        """
        canaries = np.array([ns for own in self.canaries for ns in own.values()])
        owners = np.repeat(np.arange(len(self.canaries)), [len(own) for own in self.canaries])
        return (
            self
            if canaries.all() and two_groups(canaries, owners, SPEEDS.canary_share) is not None
            else self.usual
        )

    def bimodal(self, split_by: str, name: str) -> Figure | None:
        """The figure at two speeds, each from a fit to its own rounds, which ``split_by`` tells
        apart; None for one.
        """
        rounds = self.by_round(split_by)
        values = np.array([value for own in rounds for value in own.values()])
        owners = np.array([i for i, own in enumerate(rounds) for _ in own], dtype=np.intp)
        canaries = np.array(
            [self.canaries[i][number] for i, own in enumerate(rounds) for number in own]
        )
        two = split_speeds(values, canaries if canaries.all() else np.zeros(0), owners)
        if two is None:
            return None
        labels = iter(two.slow)
        groups: dict[bool, list[float]] = {False: [], True: []}
        for process, own in zip(self.processes, rounds, strict=True):
            is_slow = {number: bool(next(labels)) for number in own}
            for label, group in groups.items():
                chosen = [r for r in process.rounds if is_slow.get(r.round) is label]
                enough = len(chosen) >= SPEEDS.rounds_of_process
                value = (
                    fit_process(replace(process, rounds=chosen), self.series).value(name)
                    if enough
                    else None
                )
                if value is not None:
                    group.append(value)
        fast, slow = (
            mean_of_processes(name, groups[label], self.target) for label in (False, True)
        )
        if fast.value is None or slow.value is None:
            return None
        of_total = name == "complete" or (
            self.series.synchronous and name in SLOPES
        )  # as the anchors are
        if (
            of_total
            and two.by == "rounds"
            and self.anchors_deny(two.slow, owners, slow.value / fast.value)
        ):
            return None
        return both_speeds(fast, slow, two, len(self.processes))

    def anchors_deny(self, slow: Mask, owners: Owners, ratio: float) -> bool:
        """Whether long chains are alike in processes of both speeds, whose slopes have this
        ``ratio``.

        The processes then differ in their sizes of n, as where the stack rounds n up to a multiple
        of 64. Never where a process has rounds of both speeds.
        """
        beyond: dict[bool, list[float]] = {False: [], True: []}
        for position, (process, fit) in enumerate(zip(self.processes, self.fits, strict=True)):
            own = slow[owners == position]
            if not own.size or fit.complete is None:
                continue
            if own.any() != own.all():
                return False
            cost = slope_to_anchor(process, fit.complete)
            if cost:
                beyond[bool(own.all())].append(cost)
        if not beyond[False] or not beyond[True]:
            return False
        return float(np.median(beyond[True])) < ratio**0.5 * float(np.median(beyond[False]))


def _off_the_line(worst: Misfit) -> Reason:
    if worst.share > 0:
        return because("above-the-line", n=worst.at, share=worst.share)
    return because("below-the-line", n=worst.at, share=-worst.share)


def _misfit(name: str, process: Process, fit: ProcessFit) -> Misfit | None:
    """The misfit of ``complete``, else of ``issue``; None without a line that rises, or if the wait
    polls.
    """
    whole = name == "complete"
    line = fit.complete if whole else fit.issue
    if line is None or line.slope == 0 or (whole and wait_quantum(process)):
        return None
    samples, column = (fit.wall, 2) if whole else (fit.wall[fit.below], 1)
    return worst_misfit(samples[:, 0], samples[:, column], line)
