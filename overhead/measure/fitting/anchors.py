"""Whether T(n) is the same line far beyond the sizes of n that were fitted, from the anchors of the
processes.

An anchor is a sample of ten times the largest n of the line (``top``), between samples of ``top``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from overhead.measure.fitting.line import Floats, Line
from overhead.measure.fitting.one_process import Process
from overhead.measure.fitting.spread import interval_of_mean, median, without_outliers
from overhead.results import Reason, Why, because


@dataclass(frozen=True)
class _HoldRule:
    """When an anchor fits the line. Stricter values refuse lines on a disturbed machine; looser
    ones accept a bend.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

    off: float = 0.02
    """An anchor may differ from the line by this share, and by a poll of the wait and the noise of
    a long one.
    """
    most_noise: float = 0.05
    """That noise counts up to this share."""
    processes: int = 2
    """With anchors from fewer processes the figure is not checked."""
    refusing: int = 3
    """With anchors from fewer processes no bend and no drift is stated: a busy machine can disturb
    two alike.
    """
    agree: float = 0.75
    """T(n) bends if the anchors of this share of the processes are off to the same side."""
    drift: float = 0.015
    """The cost drifts if it changed by this share since the rounds. With 0.01 no other of 247
    ``ok`` figures of H100 would drift (November 2026).
    """
    upper_quantile: float = 0.9975
    """Upper end of the interval of that change over the processes: a higher one needs more
    processes.
    """
    far_off: float = 3.0
    """A far anchor makes T(n) bent only if each process has it off by this multiple of ``off``, and
    their mean by this multiple of their range: few processes take one, each in a single sample.
    """


_RULE = _HoldRule()
ANCHOR_MAY_DIFFER = _RULE.off


@dataclass(frozen=True)
class AnchorVerdict:
    """What the anchors (samples of far more units than the line was fitted to) show about one
    figure. ``holds_to``: the line was seen to hold up to this n; 0 if it was not.

    ``bends``: T(n) is no line. ``unclear``: it is not known whether T(n) is a line. ``drifts``: the
    cost has changed since the rounds. '' where there is no such reason.
    """

    holds_to: int = 0
    bends: Why = ""
    unclear: Why = ""
    drifts: Why = ""
    slopes: tuple[float, ...] = ()
    """Where it bends: ns per unit up to the line's largest n, and beyond."""


@dataclass(frozen=True)
class _Anchor:
    """The anchor of one process: a sample of ``n`` units, ten times ``top``, the largest n that the
    line of the process was fitted to.

    ``share_off``: the share by which it lies above the line; ``noise``: how uncertain that is;
    ``sign_is_known``: both estimates of it have the same sign. ``slope``: of the line, ns a unit;
    ``slope_beyond``: the same between ``top`` and ``n``. ``pace``: T(top) beside the anchor over
    that of the line, above 1 if units became slower since the rounds. ``reference``: the reference
    loop (fixed work that shows the processor's speed) beside the anchor over that of the process; 1
    where unknown.
    """

    n: int
    top: int
    share_off: float
    sign_is_known: bool
    slope: float
    slope_beyond: float
    noise: float
    pace: float
    reference: float


def judge_anchors(
    processes: Sequence[Process],
    lines: Sequence[Line | None],
    *,
    of_enqueue: bool,
    quantum: float = 0.0,
) -> AnchorVerdict:
    """Whether the lines fitted to these processes go on far beyond the n that they were fitted to,
    as their anchors show it: samples of ten times the largest n. The checks of a figure turn the
    verdict into its status.

    ``of_enqueue``: these are the lines of the time until ``issue`` returns, not of the total.
    ``quantum``: ns between two polls of the wait, 0 if it does not poll. An anchor of a hundred
    times the largest n extends ``holds_to`` only where it fits, and makes T(n) bent only where it
    is off by more than its own spread.
    """
    name = "anchor_issue" if of_enqueue else "anchor"
    anchors: list[_Anchor] = []
    for process, line in zip(processes, lines, strict=True):
        anchor = _anchor_of(process, line, name, quantum) if line else None
        if anchor is not None:
            anchors.append(anchor)
    if len(anchors) < _RULE.processes:
        return AnchorVerdict(unclear=_why_none_taken(processes))

    # Where the cost itself changed since the rounds, anchors tell nothing of the line. T(top) shows
    # that, unless polls round it up.
    if not quantum and not of_enqueue:
        drifts = _why_drifted(anchors)
        if drifts:
            return AnchorVerdict(drifts=drifts)

    shares_off = np.array([anchor.share_off for anchor in anchors])
    median_off = median(shares_off)
    slope = median([anchor.slope for anchor in anchors])
    noise = median([anchor.noise for anchor in anchors])
    allowed = _RULE.off + noise
    n = min(anchor.n for anchor in anchors)
    if abs(median_off) <= allowed:
        # The far anchors were taken for the total alone.
        if of_enqueue:
            return AnchorVerdict(holds_to=n)
        return _held_at_far_anchors(processes, n, slope, median_off)

    # T(n) bends only if most processes say so alone: a disturbance meets a few of them.
    sign_is_known = np.array([anchor.sign_is_known for anchor in anchors])
    off_to_median_side = shares_off * np.sign(median_off)
    share_that_agrees = np.mean(sign_is_known & (off_to_median_side > allowed))
    if len(anchors) >= _RULE.refusing and share_that_agrees >= _RULE.agree:
        top = max(anchor.top for anchor in anchors)
        beyond = median([anchor.slope_beyond for anchor in anchors])
        bends = because(
            "bends-at-anchor",
            slope_us=slope / 1e3,
            units=top,
            beyond_us=beyond / 1e3,
            anchor=n,
        )
        return AnchorVerdict(bends=bends, slopes=(slope, beyond))
    unclear = because("anchors-differ", anchor=n, least=shares_off.min(), most=shares_off.max())
    return AnchorVerdict(unclear=unclear)


def _why_none_taken(processes: Sequence[Process]) -> Why:
    """Why the processes have no anchors: the first reason that one of them gives."""
    for process in processes:
        if "anchor" in process.one_off and process.one_off["anchor"].reason:
            return process.one_off["anchor"].reason
    return because("no-anchor-in-two-processes")


class _Estimate(NamedTuple):
    """One estimate from the times of an anchor: the share by which it lies above the line, and the
    slope from ``top`` (the line's largest n) to the anchor, ns a unit.
    """

    share_off: float
    slope: float


def _anchor_of(process: Process, line: Line, name: str, quantum: float) -> _Anchor | None:
    """The anchor of a process beside its line; None if it has none. ``name``: of the one-off values
    with the times of the anchor and of the chains of ``top`` units (the line's largest n) next to
    it. ``quantum``: ns between two polls of the wait, or 0.

    T(top) beside the anchor tells how fast the processor was at that moment, so that the anchor
    tests the line and not the host. Two estimates leave out interruptions: the shortest of several
    samples, and the median of their times without the waits for the processor. The smaller
    difference from the line counts. A single long anchor was interrupted as often as the same time
    of shorter chains: it counts beside their mean.
    """
    # The anchor and its neighbours: one value alone has nothing to be compared with.
    values = np.asarray(process.values(name), dtype=np.float64)
    if values.size < 2 or line.slope <= 0:
        return None
    # ``anchor_queued``: by sample, how long the thread waited for a processor; 0 if not measured.
    queued = np.zeros(values.size)
    if process.values("anchor_queued"):
        queued = np.asarray(process.values("anchor_queued"), dtype=np.float64)
    running = np.maximum(values - queued, 0.0)
    ns = np.asarray(process.one_off[name].at)
    shortest = _estimate(ns, values, line, percent=0, quantum=quantum)
    middle = _estimate(ns, running, line, percent=50, quantum=quantum)
    smaller = min(shortest, middle, key=lambda estimate: abs(estimate.share_off))

    # Only two sizes were taken: the anchor's, and the line's largest, which is the smaller one.
    top = int(ns.min())
    n = int(ns.max())
    tops = running[ns == top]
    # As a share of what the line gives for n units: a polling wait may return a poll late, and a
    # single long sample is as noisy as its neighbours.
    noise = quantum / (line.slope * n)
    if np.count_nonzero(ns == n) == 1:
        noise += _noise_of_mean(tops)
    top_on_line = line.intercept + line.slope * top
    # Above 1: units became slower since the rounds. The reference loop (fixed work, "canary") tells
    # how much of that is the processor's.
    pace = 1.0
    if top_on_line > 0:
        pace = median(tops) / top_on_line
    reference = 1.0
    beside = process.values("anchor_canary")
    if beside and process.pace:
        reference = beside[0] / process.pace
    return _Anchor(
        n=n,
        top=top,
        share_off=smaller.share_off,
        sign_is_known=shortest.share_off * middle.share_off > 0,
        slope=line.slope,
        slope_beyond=smaller.slope,
        noise=noise,
        pace=pace,
        reference=reference,
    )


def _estimate(
    ns: Floats, times: Floats, line: Line, *, percent: float, quantum: float
) -> _Estimate:
    """How far the anchor (the largest of ``ns``) lies above the line, judged by this percentile of
    its ``times`` and of those at ``top``, the largest n of the line, which is the smallest of
    ``ns``. A single anchor is set beside the mean of the samples at ``top``, which contains
    interruptions as it does.
    """
    top = int(ns.min())
    n = int(ns.max())
    tops = times[ns == top]
    far = float(np.percentile(times[ns == n], percent))
    if np.count_nonzero(ns == n) == 1:
        near = float(tops.mean())
    else:
        near = float(np.percentile(tops, percent))

    # T(top) beside the anchor over that of the line: above 1 the processor is slower than it was.
    # Where the wait polls, T(top) is rounded up and does not tell.
    top_on_line = line.intercept + line.slope * top
    slowdown = 1.0
    if top_on_line > 0 and not quantum:
        slowdown = near / top_on_line
    units_on_line = line.slope * n
    # The anchor as it would be at the speed of the line: the floor only avoids a division by zero.
    far_at_usual_speed = far / max(slowdown, 1e-9)
    share_off = (far_at_usual_speed - line.intercept - units_on_line) / units_on_line
    return _Estimate(share_off, (far - near) / (n - top))


def _noise_of_mean(tops: Floats) -> float:
    """Two standard errors of the mean of these times at the line's largest n, as a share of the
    mean: how uncertain a single anchor (a far longer chain) beside them is.
    """
    mean = float(tops.mean())
    if tops.size < 2 or mean <= 0:
        return 0.0
    deviation = float(tops.std(ddof=1))
    # Capped, so that scattered neighbours do not make every anchor fit.
    return min(_RULE.most_noise, 2 * deviation / mean / tops.size**0.5)


def has_anchors(processes: Sequence[Process]) -> bool:
    """Whether enough processes have anchors to tell whether the cost has changed since the
    rounds.
    """
    counts = [len(process.values("anchor")) for process in processes]
    anchored = [count for count in counts if count > 1]
    return len(anchored) >= _RULE.refusing


def slope_to_anchor(process: Process, line: Line) -> float:
    """ns a unit between the largest n of the line and the anchor; 0 without an anchor."""
    anchor = _anchor_of(process, line, "anchor", 0.0)
    return anchor.slope_beyond if anchor else 0.0


def _why_drifted(anchors: Sequence[_Anchor]) -> Why:
    """That the cost of a unit has changed since the rounds: the longest chains of the line take
    another time beside the anchors (far longer chains), at the end of the processes, by more than
    the reference loop (which shows the processor's speed) explains. '' if the change is small or
    unclear.
    """
    # A busy machine can disturb two processes alike, so three must have anchors.
    if len(anchors) < _RULE.refusing:
        return ""
    paces = np.array([anchor.pace for anchor in anchors])
    reference = np.array([anchor.reference for anchor in anchors])
    # Both the times and the times over the reference loop must change: a cost that the device
    # bounds does not follow the processor's speed, so the division alone would show a change.
    changes = paces - 1
    relative_changes = paces / reference - 1
    if not _is_clear_change(changes) or not _is_clear_change(relative_changes):
        return ""
    change = median(changes)
    if not change:
        return ""
    slope = median([anchor.slope for anchor in anchors])
    late = slope * (1 + change)
    return because("drifts-after-rounds", early_us=slope / 1e3, late_us=late / 1e3)


def _is_clear_change(changes: Floats) -> bool:
    """Whether the mean change of the processes exceeds ``_RULE.drift``, and its interval does not
    hold zero.
    """
    interval = interval_of_mean(without_outliers(changes), _RULE.upper_quantile)
    return abs(interval.mean) > max(_RULE.drift, interval.half_width)


def _off_far(process: Process) -> float:
    """The share by which the far anchor, one chain of a hundred times the line's largest n, takes
    longer than as many units in shorter chains. The times count with or without the waits for the
    processor, whichever gives less: an interruption is no bend.
    """
    # ``near``: the same number of units in shorter chains, together. ``queued``: of both, how long
    # the thread waited for a processor.
    near, far = process.values("anchor_far")
    plain = far / near - 1
    queued = process.values("anchor_far_queued")
    if not queued:
        return plain
    near_running = near - queued[0]
    far_running = far - queued[1]
    if near_running <= 0:
        return plain
    return min(plain, far_running / near_running - 1, key=abs)


def _held_at_far_anchors(
    processes: Sequence[Process], n: int, slope: float, off_at_n: float
) -> AnchorVerdict:
    """The verdict on a line that fits its anchors: it holds up to ``n``, their n, or up to that of
    the far anchors (ten times ``n``) where these fit as well; or it bends there.

    Few processes take far anchors, each a single one. So they refute the line only if all are far
    off to the same side and agree well; else they are ignored. ``slope``: of the line, ns a unit.
    ``off_at_n``: the share by which the anchors at ``n`` are off; the far ones, compared with
    these, add to it.
    """
    with_far = [process for process in processes if process.values("anchor_far")]
    if len(with_far) < _RULE.processes:
        return AnchorVerdict(holds_to=n)
    shares_off = np.array([_off_far(process) for process in with_far])
    mean_off = float(shares_off.mean())
    far_n = min(process.one_off["anchor_far"].at[1] for process in with_far)
    # A chain at ``n`` is off by one share, the far one by another of that: the factors multiply.
    off_at_far_n = (1 + off_at_n) * (1 + mean_off) - 1
    if abs(off_at_far_n) <= _RULE.off:
        return AnchorVerdict(holds_to=far_n)

    # Bent only if each process is off to the side of the mean, by three times (``far_off``) what an
    # anchor may be off (``off``); the sign makes that side the positive one.
    off_to_mean_side = shares_off * np.sign(mean_off)
    if not np.all(off_to_mean_side > _RULE.far_off * _RULE.off):
        return AnchorVerdict(holds_to=n)
    # And only if the mean is three times as large as what the processes disagree by: ``ptp``, the
    # largest less the smallest share.
    if abs(mean_off) <= _RULE.far_off * float(np.ptp(shares_off)):
        return AnchorVerdict(holds_to=n)
    beyond = slope * (1 + mean_off)
    bends: Reason = because(
        "bends-before-far-anchor",
        slope_us=slope / 1e3,
        units=n,
        beyond_us=beyond / 1e3,
        anchor=far_n,
    )
    return AnchorVerdict(bends=bends, slopes=(slope, beyond))
