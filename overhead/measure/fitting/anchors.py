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
    """What the anchors show about one figure. ``holds_to``: the line was seen to hold up to this n;
    0 if it was not.

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
    """The anchor of one process. ``off``: its share above the line; ``noise``: how uncertain that
    is. ``clear``: the sign of ``off`` is known. ``slope``, ``beyond``: ns a unit of the line and
    between ``top`` and ``n``. ``pace``: T(top) over that of the line. ``reference``: the reference
    loop beside the anchor over that of the process; 1 where unknown.
    """

    n: int
    top: int
    off: float
    clear: bool
    slope: float
    beyond: float
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
    """What the anchors of these processes say of their ``lines``. ``of_enqueue``: these are the
    lines of ``issue``, not of the total.

    ``quantum``: ns between two polls of the wait. An anchor that is a hundred times the line's
    largest n extends ``holds_to`` only where it fits, and makes T(n) bent only where it is off by
    more than its own spread.
    """
    name = "anchor_issue" if of_enqueue else "anchor"
    anchors: list[_Anchor] = []
    for process, line in zip(processes, lines, strict=True):
        anchor = _anchor_of(process, line, name, quantum) if line else None
        if anchor is not None:
            anchors.append(anchor)
    if len(anchors) < _RULE.processes:
        return AnchorVerdict(unclear=_why_none_taken(processes))

    if not quantum and not of_enqueue:
        drifts = _why_drifted(anchors)
        if drifts:
            return AnchorVerdict(drifts=drifts)

    off = np.array([anchor.off for anchor in anchors])
    median_off = median(off)
    slope = median([anchor.slope for anchor in anchors])
    noise = median([anchor.noise for anchor in anchors])
    allowed = _RULE.off + noise
    n = min(anchor.n for anchor in anchors)
    if abs(median_off) <= allowed:
        if of_enqueue:
            return AnchorVerdict(holds_to=n)
        return _held_at_far_anchors(processes, n, slope, median_off)

    clear = np.array([anchor.clear for anchor in anchors])
    off_to_median_side = off * np.sign(median_off)
    share_that_agrees = np.mean(clear & (off_to_median_side > allowed))
    if len(anchors) >= _RULE.refusing and share_that_agrees >= _RULE.agree:
        top = max(anchor.top for anchor in anchors)
        beyond = median([anchor.beyond for anchor in anchors])
        bends = because(
            "bends-at-anchor",
            slope_us=slope / 1e3,
            units=top,
            beyond_us=beyond / 1e3,
            anchor=n,
        )
        return AnchorVerdict(bends=bends, slopes=(slope, beyond))
    unclear = because("anchors-differ", anchor=n, least=off.min(), most=off.max())
    return AnchorVerdict(unclear=unclear)


def _why_none_taken(processes: Sequence[Process]) -> Why:
    """Why the processes have no anchors: the first reason that one of them gives."""
    for process in processes:
        if "anchor" in process.one_off and process.one_off["anchor"].reason:
            return process.one_off["anchor"].reason
    return because("no-anchor-in-two-processes")


class _Beyond(NamedTuple):
    """What one estimate of the anchor says: its share above the line, and ns a unit beyond
    ``top``.
    """

    off: float
    slope: float


def _anchor_of(process: Process, line: Line, name: str, quantum: float) -> _Anchor | None:
    """The anchor of a process; None if it has none.

    T(top) beside the anchor tells how fast the processor was at that moment, so that the anchor
    tests the line and not the host. Two estimates leave out interruptions: the shortest of several
    samples, and the median of their times without the waits for the processor. The smaller
    difference from the line counts. A single long anchor was interrupted as often as the same time
    of shorter chains: it counts beside their mean.
    """
    values = np.asarray(process.values(name), dtype=np.float64)
    if values.size < 2 or line.slope <= 0:
        return None
    queued = np.zeros(values.size)
    if process.values("anchor_queued"):
        queued = np.asarray(process.values("anchor_queued"), dtype=np.float64)
    running = np.maximum(values - queued, 0.0)
    ns = np.asarray(process.one_off[name].at)
    shortest = _beyond(ns, values, line, percent=0, quantum=quantum)
    middle = _beyond(ns, running, line, percent=50, quantum=quantum)
    smaller = min(shortest, middle, key=lambda estimate: abs(estimate.off))

    top = int(ns.min())
    n = int(ns.max())
    tops = running[ns == top]
    noise = quantum / (line.slope * n)
    if np.count_nonzero(ns == n) == 1:
        noise += _noise_of_mean(tops)
    near_line = line.intercept + line.slope * top
    pace = 1.0
    if near_line > 0:
        pace = median(tops) / near_line
    reference = 1.0
    beside = process.values("anchor_canary")
    if beside and process.pace:
        reference = beside[0] / process.pace
    return _Anchor(
        n=n,
        top=top,
        off=smaller.off,
        clear=shortest.off * middle.off > 0,
        slope=line.slope,
        beyond=smaller.slope,
        noise=noise,
        pace=pace,
        reference=reference,
    )


def _beyond(ns: Floats, times: Floats, line: Line, *, percent: float, quantum: float) -> _Beyond:
    """How far the anchor lies above the line, from this percentile of the ``times`` at ``top`` and
    at the anchor. A single anchor is set beside the mean of the samples at ``top``.
    """
    top = int(ns.min())
    n = int(ns.max())
    tops = times[ns == top]
    far = float(np.percentile(times[ns == n], percent))
    if np.count_nonzero(ns == n) == 1:
        near = float(tops.mean())
    else:
        near = float(np.percentile(tops, percent))

    near_line = line.intercept + line.slope * top
    speed = 1.0  # T(top) beside the anchor over that of the line: above 1 the processor is slower
    if near_line > 0 and not quantum:
        speed = near / near_line
    expected = line.slope * n
    far_at_usual_speed = far / max(speed, 1e-9)
    off = (far_at_usual_speed - line.intercept - expected) / expected
    return _Beyond(off, (far - near) / (n - top))


def _noise_of_mean(tops: Floats) -> float:
    """Two standard errors of the mean of the samples at ``top``, as a share of the mean."""
    mean = float(tops.mean())
    if tops.size < 2 or mean <= 0:
        return 0.0
    deviation = float(tops.std(ddof=1))
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
    return anchor.beyond if anchor else 0.0


def _why_drifted(anchors: Sequence[_Anchor]) -> Why:
    """That T(top) has changed since the rounds, by more than the reference loop explains; '' if the
    change is small or unclear.
    """
    if len(anchors) < _RULE.refusing:
        return ""
    paces = np.array([anchor.pace for anchor in anchors])
    reference = np.array([anchor.reference for anchor in anchors])
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
    """The share by which the far anchor differs from the shorter chains: with or without the waits
    for the processor, whichever is less.
    """
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
    """That the line holds up to ``n``, or up to the n of the far anchors where these fit as well.

    ``off_at_n``: the share by which the anchors at ``n`` are off, which the far ones add to.
    """
    with_far = [process for process in processes if process.values("anchor_far")]
    if len(with_far) < _RULE.processes:
        return AnchorVerdict(holds_to=n)
    off = np.array([_off_far(process) for process in with_far])
    mean_off = float(off.mean())
    far_n = min(process.one_off["anchor_far"].at[1] for process in with_far)
    off_at_far_n = (1 + off_at_n) * (1 + mean_off) - 1
    if abs(off_at_far_n) <= _RULE.off:
        return AnchorVerdict(holds_to=far_n)

    off_to_mean_side = off * np.sign(mean_off)
    if not np.all(off_to_mean_side > _RULE.far_off * _RULE.off):
        return AnchorVerdict(holds_to=n)
    if abs(mean_off) <= _RULE.far_off * float(np.ptp(off)):
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
