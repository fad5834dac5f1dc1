"""What a recording holds beside its steps, what it has lost, and whether its two clocks agree. Pure.

A sentence about a step is true only if the recording is whole. So everything that is left out is counted, and above a
share the recording allows no verdict.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from overhead.reading.format import count, micro_of, percent

MOST_LOST = 0.02
"""The largest share of launches or of device time without its other half that still allows a verdict."""
MOST_BESIDE = 0.1
"""The largest share of a step that may be unclear to the replay: from a tenth on, synchronisations are named too."""
SKEW_NS = 2000.0
"""How far the clocks of host and device may differ without a correction: recordings on healthy machines differ so."""
_WAKE_NS = 6000.0
"""At most so long after its work a wait returns that waited for it: 6.1 µs in a recorded training step on an H200."""
_MOST_DRIFT = 1e-3
"""Quartz clocks differ by less than 1e-4; more is no drift of a clock."""
_WINDOWS = 200
"""The clocks are compared in so many parts of the recording."""
_MANY, _ALONE_NS = 20, 20_000.0
"""A time is a bad record if, of so many, at most one in fifty lies so far from the others; drift and jitter do not."""
_COARSE_NS = 500.0
"""Times that are rounded to more than this cannot tell a kernel of a few µs."""


@dataclass(frozen=True)
class Clocks:
    """How late the device's clock is against the host's. ``late_ns``: in the middle; ``drift``: ns for each ns.

    ``checked``: whether a wait for the device was there, without which a late clock cannot be seen.
    ``wrong_ns``: by how much times contradict each other that no clock explains; 0 if none do. ``outliers``: times
    that contradict all others, and were not compared.
    """

    late_ns: float = 0.0
    drift: float = 0.0
    middle_ns: float = 0.0
    checked: bool = False
    wrong_ns: float = 0.0
    outliers: int = 0

    def late_at(self, at_ns: float) -> float:
        """How late the device's clock is at this time, ns."""
        return self.late_ns + self.drift * (at_ns - self.middle_ns)


@dataclass(frozen=True)
class Recording:
    """Counts of a recording. ``marked``: whether it has marks of steps. ``recorded_ns``: its whole length.

    ``launches``: in the steps; ``launches_without_work``: of these. ``work_ns``: of the device in the time of the
    steps; ``work_without_call``, ``work_without_call_ns``: of that, what no recorded call issued. ``migrations``:
    how many of these pieces move managed memory. ``earlier``: work that was issued before the recording began.
    ``shared``: kernels that share the number of a launch with another kernel. ``doubled``: events that are there twice.
    ``backwards``: events that end before they begin; ``unreadable``: other events that cannot be read.
    ``steps_without_work``: marked steps that are left out. ``start_up``, ``start_up_ns``: the operation before an
    unmarked step whose first call took so much longer than the others.
    ``steps_ns``: how long the steps take together; the next times are of these. ``copies``: calls that copy or fill;
    ``copies_without_work``: of these. ``lost_ns``: the longest time that the work of launches, copies and fills may
    have taken that is not in the recording. ``waits``: calls that wait; ``unexplained_waits``, ``unexplained_ns``: of
    these, where no recorded work ends for which they can have waited. ``nodes``: pieces of work of replayed graphs;
    ``nodes_missing``: what replays have less than others of the same graph. ``may_wait``, ``may_wait_ns``: calls that
    last while the device works and are not known as waits. ``beside_ns``: waits of one thread while another works.
    ``profiler_ns``: how long the profiler itself held up calls.
    """

    marked: bool = True
    recorded_ns: float = 0.0
    launches: int = 0
    launches_without_work: int = 0
    work_ns: float = 0.0
    work_without_call: int = 0
    work_without_call_ns: float = 0.0
    migrations: int = 0
    earlier: int = 0
    shared: int = 0
    doubled: int = 0
    backwards: int = 0
    unreadable: int = 0
    events: int = 0
    memory_recorded: bool = True
    steps_without_work: int = 0
    start_up: str = ""
    start_up_ns: float = 0.0
    rounded_ns: float = 0.0
    steps_ns: float = 0.0
    copies: int = 0
    copies_without_work: int = 0
    lost_ns: float = 0.0
    waits: int = 0
    unexplained_waits: int = 0
    unexplained_ns: float = 0.0
    nodes: int = 0
    nodes_missing: int = 0
    may_wait: str = ""
    may_wait_ns: float = 0.0
    beside_ns: float = 0.0
    profiler_ns: float = 0.0
    clocks: Clocks = Clocks()


def clocks_of(waits: Sequence[tuple[float, float]], starts: Sequence[tuple[float, float]]) -> Clocks:
    """Compare the clocks. ``waits``: when a wait ends, and how much later than that the work ends that it waited for.

    ``starts``: when a call begins that issues work, and how much later the work begins. Both in ns. Work must not
    begin before its call, nor end after the wait for it; so each gives a bound for how late the device's clock is.
    """
    waits, odd_waits = _without_outliers(waits, 1)
    starts, odd_starts = _without_outliers(starts, -1)
    outliers = odd_waits + odd_starts
    lowest = max((later for _, later in waits), default=-math.inf)
    highest = min((later for _, later in starts), default=math.inf)
    checked = bool(waits)
    if lowest <= SKEW_NS and highest >= -SKEW_NS:
        return Clocks(checked=checked, outliers=outliers)
    if lowest <= highest:
        inside = min((highest - lowest) / 2, _WAKE_NS)
        late = lowest + inside if lowest > SKEW_NS else highest - inside
        return Clocks(late, checked=checked, outliers=outliers)
    found = _drifting(_extremes(waits, max), _extremes(starts, min), checked)
    return dataclasses.replace(found, outliers=outliers)


def _without_outliers(bounds: Sequence[tuple[float, float]], sign: int) -> tuple[Sequence[tuple[float, float]], int]:
    """The bounds without a few that contradict equal clocks and all others too; how many these are.

    ``sign``: 1 where a larger bound is the tighter one, else -1. One bad record must not move all others.
    """
    ordered = sorted((sign * later for _, later in bounds), reverse=True)
    most = max(1, int(MOST_LOST * len(ordered)))
    if len(ordered) < _MANY:
        return bounds, 0
    for odd in range(most, 0, -1):
        alone = ordered[odd - 1] - ordered[odd] > _ALONE_NS
        if alone and ordered[odd - 1] > SKEW_NS:
            return [bound for bound in bounds if sign * bound[1] <= ordered[odd]], odd
    return bounds, 0


def _extremes(bounds: Sequence[tuple[float, float]], extreme: Callable[..., tuple[float, float]]) -> np.ndarray:
    """The tightest bound of each part of the recording, with its time."""
    if not bounds:
        return np.empty((0, 2))
    first, last = min(bounds)[0], max(bounds)[0]
    length = max(last - first, 1.0) / _WINDOWS
    parts: dict[int, tuple[float, float]] = {}
    for at, later in bounds:
        part = int((at - first) / length)
        parts[part] = extreme(parts.get(part, (at, later)), (at, later), key=_later)
    return np.array(sorted(parts.values()))


def _later(bound: tuple[float, float]) -> float:
    return bound[1]


def _drifting(lower: np.ndarray, upper: np.ndarray, checked: bool) -> Clocks:
    """The clock as a straight line between both kinds of bounds, as far from each as can be."""
    from scipy.optimize import linprog

    times = np.concatenate([lower[:, 0], upper[:, 0]])
    middle, length = (times.min() + times.max()) / 2, max(np.ptp(times), 1.0)
    # The line is a + b * x with x from -0.5 to 0.5. Each bound may be crossed by s, and s is made as small as can be.
    x_lower, x_upper = (lower[:, 0] - middle) / length, (upper[:, 0] - middle) / length
    above = np.column_stack([-np.ones(len(lower)), -x_lower, -np.ones(len(lower))])
    below = np.column_stack([np.ones(len(upper)), x_upper, -np.ones(len(upper))])
    limits = np.concatenate([-lower[:, 1], upper[:, 1]])
    free, crossed = (None, None), (-_WAKE_NS, None)
    found = linprog([0, 0, 1], np.vstack([above, below]), limits, bounds=[free, free, crossed])
    if not found.success:
        return Clocks(checked=checked, wrong_ns=float(lower[:, 1].max() - upper[:, 1].min()))
    late, drift, wrong = (float(value) for value in found.x)
    if wrong > SKEW_NS or abs(drift / length) > _MOST_DRIFT:
        return Clocks(checked=checked, wrong_ns=float(lower[:, 1].max() - upper[:, 1].min()))
    return Clocks(late, drift / length, float(middle), checked)


def why_no_verdict(found: Recording) -> str:
    """Why the recording allows no verdict, in words; empty if it does."""
    return "; ".join(_reasons(found))


def _reasons(found: Recording) -> Iterator[str]:
    yield from _lost(found)
    yield from _contradictions(found)
    if found.backwards > MOST_LOST * max(found.events, 1):
        yield f"{found.backwards:,} of {found.events:,} events end before they begin"
    if found.unreadable > MOST_LOST * max(found.events, 1):
        yield f"{found.unreadable:,} of {found.events:,} events cannot be read"
    if found.rounded_ns > _COARSE_NS:
        yield f"its times are rounded to {micro_of(found.rounded_ns)} µs"


def _lost(found: Recording) -> Iterator[str]:
    """What is missing, by the other half of it."""
    launches = max(found.launches, 1)
    if found.launches_without_work > MOST_LOST * launches:
        share = percent(found.launches_without_work / launches)
        yield (
            f"{found.launches_without_work:,} of {launches:,} launches ({share}) have no device work in this "
            "recording; its buffers may have overflowed"
        )
    elif found.lost_ns > MOST_LOST * found.steps_ns:
        lost = {
            f"{found.launches_without_work:,} of {launches:,} launches": found.launches_without_work,
            f"{found.copies_without_work:,} of {found.copies:,} copies and fills": found.copies_without_work,
        }
        yield (
            f"{' and '.join(words for words, number in lost.items() if number)} have no device work in this recording; "
            f"it may have taken {percent(found.lost_ns / found.steps_ns)} of the time of the steps"
        )
    if found.work_without_call_ns > MOST_LOST * found.work_ns:
        whose = " (managed memory)" if found.migrations == found.work_without_call else ""
        what = "copies" if whose else "kernels and copies"
        yield (
            f"{found.work_without_call:,} {what}{whose} were issued by no call in this recording, "
            f"{percent(found.work_without_call_ns / found.work_ns)} of the device's time"
        )
    if found.shared > MOST_LOST * launches:
        yield f"{found.shared:,} kernels share the number of a launch with another kernel"


def _contradictions(found: Recording) -> Iterator[str]:
    """What cannot be true together, if nothing is missing and the clocks are one."""
    launches = max(found.launches, 1)
    if found.nodes_missing > MOST_LOST * (found.nodes + found.nodes_missing):
        yield (
            f"replays of one graph have different numbers of kernels: {found.nodes_missing:,} of "
            f"{found.nodes + found.nodes_missing:,} are missing"
        )
    if found.unexplained_ns > MOST_LOST * found.steps_ns:
        share = percent(found.unexplained_ns / found.steps_ns)
        yield (
            f"{count(found.unexplained_waits, 'wait')} for the device, {share} of the time of the steps, end when no "
            "recorded work ends: device work is missing, or the clocks of host and device differ"
        )
    if found.beside_ns > MOST_BESIDE * found.steps_ns:
        yield (
            f"a thread waits for the device for {percent(found.beside_ns / found.steps_ns)} of the time of the steps "
            "while another one runs operations; threads that work side by side are not told apart"
        )
    if found.clocks.wrong_ns:
        yield (
            f"the times of host and device contradict each other by {micro_of(found.clocks.wrong_ns)} µs, "
            "as after a jump of a clock"
        )
    if found.clocks.outliers > MOST_LOST * launches:
        yield (
            f"{count(found.clocks.outliers, 'piece')} of device work of {launches:,} began before the call that "
            "issued it, or ended after the wait for it"
        )


def caveats(found: Recording, shown_ns: float) -> list[str]:
    """What a reader must know before the verdict, in sentences. ``shown_ns``: how long the steps take together."""
    said = []
    if not found.marked:
        part = f"the recording of {_seconds(found.recorded_ns)} is taken as one step"
        if shown_ns < 0.98 * found.recorded_ns:
            part = (
                f"{_seconds(shown_ns)} of the recording of {_seconds(found.recorded_ns)} are taken as one step, from "
                "the first launch to the last device work"
            )
        said.append(f"No steps are marked: {part}. Mark them: profiler.step(), or ranges of NVTX named step 1, step 2.")
    if found.start_up:
        said.append(f"The first call of {found.start_up}, {_seconds(found.start_up_ns)}, is left out as start-up.")
    if found.steps_without_work:
        said.append(f"Left out: {count(found.steps_without_work, 'marked step')} without device work.")
    if found.profiler_ns > MOST_LOST * found.steps_ns:
        share = percent(found.profiler_ns / found.steps_ns)
        said.append(
            f"The profiler itself holds up calls for {share} of the time of the steps; that counts as host work."
        )
    late = found.clocks.late_ns
    if late or found.clocks.drift:
        drift = f", and drifts by {1e6 * abs(found.clocks.drift):,.0f} µs a second" if found.clocks.drift else ""
        side = "late" if late > 0 else "early"
        said.append(
            f"The device's clock is about {micro_of(abs(late))} µs {side} against the host's{drift}: corrected by its "
            "launches and waits."
        )
    return said


def left_out(found: Recording) -> Iterator[str]:
    """What is left out, in sentences; nothing where it is so much that the verdict says it."""
    if why_no_verdict(found):
        return
    yield from _little_doubts(found)
    if found.work_without_call:
        share = percent(found.work_without_call_ns / found.work_ns) if found.work_ns else "0 %"
        whose = f", {found.migrations:,} of them of managed memory" if found.migrations else ""
        pieces = count(found.work_without_call, "piece")
        yield f"Left out: {pieces} of device work without a call ({share} of the device's time){whose}."
    if found.shared:
        yield f"{count(found.shared, 'kernel')} have the launch number of another kernel; they are kept."
    if found.earlier:
        yield f"Left out: {count(found.earlier, 'piece')} of device work from before the recording."
    if found.doubled:
        yield f"Left out: {count(found.doubled, 'event')} that the recording has twice."
    if bad := found.backwards + found.unreadable:
        yield f"Left out: {count(bad, 'event')} that cannot be read or end before they begin."


def _little_doubts(found: Recording) -> Iterator[str]:
    """What is missing or contradicts the rest, and is too little to change a verdict."""
    if found.launches_without_work:
        yield f"{found.launches_without_work:,} of {found.launches:,} launches have no device work in this recording."
    if found.copies_without_work:
        copies = f"{found.copies_without_work:,} of {found.copies:,} copies and fills"
        yield f"{copies} have no device work in this recording."
    if found.nodes_missing:
        yield f"Replays of one graph differ: {found.nodes_missing:,} of their kernels are missing."
    if found.unexplained_waits:
        share = percent(found.unexplained_ns / found.steps_ns)
        yield f"{count(found.unexplained_waits, 'wait')} ({share} of the steps) end when no recorded work ends."
    if found.clocks.outliers:
        yield f"{count(found.clocks.outliers, 'piece')} of device work with times that contradict all others."


def _seconds(ns: float) -> str:
    return f"{ns / 1e9:.3g} s" if ns >= 0.9995e9 else f"{ns / 1e6:.3g} ms"
