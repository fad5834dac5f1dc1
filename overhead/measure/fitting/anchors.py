"""Whether T(n) is the same line far beyond the sizes of n that were fitted, from the anchors of the
processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Line
from overhead.measure.fitting.one_process import Process
from overhead.numerics import student_t_quantile
from overhead.results import Why, because


@dataclass(frozen=True)
class _HoldRule:
    """When an anchor fits the line. Stricter values refuse lines on a disturbed machine; looser
    ones accept a bend.
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


_RULE = _HoldRule()
ANCHOR_MAY_DIFFER = _RULE.off


@dataclass(frozen=True)
class Held:
    """What the anchors show about one figure. ``to``: the line was seen to hold up to this n; 0 if
    it was not.

    ``bends``: T(n) is no line. ``unclear``: it is not known whether T(n) is a line. ``drifts``: the
    cost has changed since the rounds. '' where there is no such reason.
    """

    to: int = 0
    bends: Why = ""
    unclear: Why = ""
    drifts: Why = ""
    slopes: tuple[float, ...] = ()
    """Where it bends: ns per unit up to the line's largest n, and beyond."""


def held(
    processes: Sequence[Process], lines: Sequence[Line | None], issue: bool, quantum: float = 0.0
) -> Held:
    """What the anchors of these processes say of their ``lines``. ``issue``: the line of ``issue``,
    not of the total.

    ``quantum``: ns between two polls of the wait. An anchor that is a hundred times the line's
    largest n extends ``to`` only where it fits, and makes T(n) bent only where it is off by more
    than its own spread.
    """
    name = "anchor_issue" if issue else "anchor"
    found = [
        each
        for p, line in zip(processes, lines, strict=True)
        if line and (each := _of(p, line, name, quantum))
    ]
    reasons = [p.one_off["anchor"].reason for p in processes if "anchor" in p.one_off]
    if len(found) < _RULE.processes:
        none_taken = because("no-anchor-in-two-processes")
        return Held(unclear=next((reason for reason in reasons if reason), none_taken))
    off = np.array([each.off for each in found])
    at, top = min(each.n for each in found), max(each.top for each in found)
    allowed = _RULE.off + float(np.median([each.noise for each in found]))
    middle, slope = float(np.median(off)), float(np.median([each.slope for each in found]))
    change = 0.0 if quantum or issue else _change(found)
    if change:
        late = slope * (1 + change)
        return Held(drifts=because("drifts-after-rounds", early_us=slope / 1e3, late_us=late / 1e3))
    if abs(middle) <= allowed:
        return Held(at) if issue else _beyond(processes, at, slope, middle)
    beyond = float(np.median([each.beyond for each in found]))
    sure = np.array([each.clear for each in found])
    agreed = float(np.mean(sure & (off * np.sign(middle) > allowed))) >= _RULE.agree
    if agreed and len(found) >= _RULE.refusing:
        bends = because(
            "bends-at-anchor", slope_us=slope / 1e3, units=top, beyond_us=beyond / 1e3, anchor=at
        )
        return Held(bends=bends, slopes=(slope, beyond))
    return Held(unclear=because("anchors-differ", anchor=at, least=off.min(), most=off.max()))


@dataclass(frozen=True)
class _Anchor:
    """The anchor of one process. ``off``: its share above the line; ``noise``: how uncertain that
    is. ``clear``: the sign of ``off`` is known. ``slope``, ``beyond``: ns a unit of the line and
    between ``top`` and ``n``. ``pace``: T(top) over that of the line. ``canary``: that beside the
    anchor over that of the process; 1 where unknown.
    """

    n: int
    top: int
    off: float
    clear: bool
    slope: float
    beyond: float
    noise: float
    pace: float
    canary: float


def _of(process: Process, line: Line, name: str, quantum: float) -> _Anchor | None:
    """The anchor of a process; None if it has none.

    T(top) beside it tells how fast the processor was at that moment, so that the anchor tests the
    line and not the host. Two ways lead to the anchor without interruptions: the shortest of
    several, and the median of their times without the waits for the processor. The smaller
    difference from the line counts. A single long one was interrupted as often as the same time of
    shorter chains: it counts beside their mean.
    """
    values = np.asarray(process.values(name), dtype=np.float64)
    if values.size < 2 or line.slope <= 0:
        return None
    ns = np.asarray(process.one_off[name].at)
    top, n = int(ns.min()), int(ns.max())
    near_line, expected = line.intercept + line.slope * top, line.slope * n
    alone = np.count_nonzero(ns == n) == 1
    queued = np.asarray(process.values("anchor_queued") or np.zeros(values.size), dtype=np.float64)
    ways = []
    for times, percent in ((values, 0), (np.maximum(values - queued, 0.0), 50)):
        tops, far = times[ns == top], float(np.percentile(times[ns == n], percent))
        near = float(tops.mean() if alone else np.percentile(tops, percent))
        at_once = near / near_line if near_line > 0 and not quantum else 1.0
        ways.append(
            (
                (far / max(at_once, 1e-9) - line.intercept - expected) / expected,
                (far - near) / (n - top),
            )
        )
    off, beyond = min(ways, key=lambda way: abs(way[0]))
    noise = quantum / expected
    if alone and tops.size > 1 and tops.mean() > 0:
        noise += min(
            _RULE.most_noise, 2 * float(tops.std(ddof=1)) / float(tops.mean()) / tops.size**0.5
        )
    pace = float(np.median(tops)) / near_line if near_line > 0 else 1.0
    seen = process.values("anchor_canary")
    canary = seen[0] / process.pace if seen and process.pace else 1.0
    return _Anchor(
        n, top, off, ways[0][0] * ways[1][0] > 0, line.slope, beyond, noise, pace, canary
    )


def has_anchors(processes: Sequence[Process]) -> bool:
    """Whether enough processes have anchors to tell whether the cost has changed since the
    rounds.
    """
    return sum(len(process.values("anchor")) > 1 for process in processes) >= _RULE.refusing


def slope_to_anchor(process: Process, line: Line) -> float:
    """ns a unit between the largest n of the line and the anchor; 0 without an anchor."""
    found = _of(process, line, "anchor", 0.0)
    return found.beyond if found else 0.0


def _change(found: Sequence[_Anchor]) -> float:
    """The mean change of T(top) since the rounds, which the canary does not explain; 0 where it is
    small or unclear.
    """
    if len(found) < _RULE.refusing:
        return 0.0
    paces = np.array([each.pace for each in found])
    plain, changes = paces - 1, [paces - 1, paces / np.array([each.canary for each in found]) - 1]
    factor = student_t_quantile(_RULE.upper_quantile, len(found) - 1) / len(found) ** 0.5
    clipped = [
        np.clip(each, -largest, largest)
        for each in changes
        if (largest := 1.5 * abs(float(np.median(each))))
    ]
    limits = [max(_RULE.drift, factor * float(each.std(ddof=1))) for each in clipped]
    clear = all(
        abs(float(each.mean())) > limit for each, limit in zip(clipped, limits, strict=True)
    )
    return float(np.median(plain)) if clipped and clear else 0.0


def _off_far(process: Process) -> float:
    """The share by which the far anchor differs from the shorter chains: with or without the waits
    for the processor, whichever is less.
    """
    near, far = process.values("anchor_far")
    plain = far / near - 1
    waits = process.values("anchor_far_queued")
    if not waits:
        return plain
    run_near, run_far = near - waits[0], far - waits[1]
    running = run_far / run_near - 1 if run_near > 0 else plain
    return min(plain, running, key=abs)


def _beyond(processes: Sequence[Process], at: int, slope: float, so_far: float) -> Held:
    """``at``, or the n of the far anchors where these fit as well. ``so_far``: the share by which
    ``at`` is off.
    """
    far = [p for p in processes if p.values("anchor_far")]
    if len(far) < _RULE.processes:
        return Held(at)
    off = np.array([_off_far(process) for process in far])
    n, middle = min(process.one_off["anchor_far"].at[1] for process in far), float(off.mean())
    if abs((1 + so_far) * (1 + middle) - 1) <= _RULE.off:
        return Held(n)
    if np.all(off * np.sign(middle) > 3 * _RULE.off) and abs(middle) > 3 * float(np.ptp(off)):
        beyond = slope * (1 + middle)
        bends = because(
            "bends-before-far-anchor",
            slope_us=slope / 1e3,
            units=at,
            beyond_us=beyond / 1e3,
            anchor=n,
        )
        return Held(bends=bends, slopes=(slope, beyond))
    return Held(at)
