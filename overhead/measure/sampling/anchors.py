"""Anchors: samples of an n far beyond the largest n of the line, and of 1, 10 and 100 units where
the line has none.

The fit compares them with what the line predicts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from overhead.errors import Unverified
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.case import CaseInProgress
from overhead.measure.sampling.chain import Samples
from overhead.measure.sampling.clock import Clock
from overhead.results import OneOffEntry, because


@dataclass(frozen=True)
class AnchorRule:
    """Which anchors a process takes. More or longer ones see further, and take more time."""

    times: int = 10
    """The n of an anchor over the largest n of the line."""
    least_times: float = 2
    """Where the stack bounds n, a shorter anchor counts if it is at least this many times the
    line's largest n.
    """
    far_times: int = 100
    """The same for a base case, which is also looked at further out."""
    turns: int = 4
    """The most turns of one process. A preemption makes an anchor too long, so the shortest of the
    turns counts.
    """
    alike: float = 0.01
    """No further turn where the two shortest anchors differ by at most this share."""
    short_ns: float = 30e6
    """An anchor that takes longer is taken in few processes only, and in one turn."""
    processes: int = 3
    """So many processes take long anchors. With fewer a single disturbance decides."""
    far_processes: int = 2
    """So many processes take the longest anchors: each takes seconds."""
    longest_ns: float = 4e9
    """An anchor that would take longer is left out."""
    least_age_s: float = 2.0
    """The least time from the process's first call to its anchors: they show a warm-up that
    outlasts the rounds.
    """
    near: tuple[int, ...] = (1, 10, 100)
    """The short chains to look at: most programs issue so many units before they wait."""
    near_turns: int = 7
    """The turns of short chains, as many as of T(1) beside the rounds: their median counts."""
    read_share: float = 0.05
    """Reading the values after the anchor may take longer than after one unit by this share of
    T(n), and no more.
    """


ANCHORS = AnchorRule()


def aging_n(ladder: Ladder, most: int) -> int:
    """The n of the chains that only let a process grow older: at most that of an anchor, about
    ``short_ns`` long.
    """
    n = min(ANCHORS.times * ladder.ns[-1], int(ANCHORS.short_ns / ladder.unit_ns))
    return min(most, max(ladder.ns[-1], n))


def take(case: CaseInProgress, clock: Clock, process: int, far: bool) -> Iterator[OneOffEntry]:
    """T(top) and T(anchor) in turn, ns: ``anchor`` with the totals, ``anchor_issue`` with the times
    of ``issue``.

    ``top``: the largest n of the ladder. ``anchor_queued``: for how long the thread waited for its
    processor meanwhile. ``process``: its number among those of the case. ``far``: also
    ``anchor_far``, n a hundred times the top, beside ten times as many shorter chains, and
    ``anchor_far_queued``. A line without values has the reason. Raises ``Unverified`` where the
    work seems to be done when the values are read.
    """
    top, most, unit = case.ladder.ns[-1], case.chain.max_n, case.ladder.unit_ns
    n = min(ANCHORS.times * top, most)
    took = case.ladder.one_ns + n * unit
    if n < ANCHORS.least_times * top:
        yield case.once("anchor", reason=because("n-is-bounded", most=most))
        return
    if took > ANCHORS.longest_ns:
        yield case.once("anchor", reason=because("anchor-too-long", units=n, seconds=took / 1e9))
        return
    short = took <= ANCHORS.short_ns
    if not short and process >= ANCHORS.processes:
        return
    rows: Samples = []
    beside = [top] * (1 if case.ladder.stairs else n // top // 2)
    case.verify()
    _rows(case, [1], clock)
    few, many = _reading_ns(case, clock), math.inf
    for _ in range(ANCHORS.turns):
        # The first chain after a read is slow: Dawn's takes up to twice its time.
        turn = _rows(case, [top, top, n, top] if short else [top, *beside, n, *beside], clock)[1:]
        many = min(many, _reading_ns(case, clock))
        lazy = many - few > ANCHORS.read_share * sum(row[2] for row in turn)
        rows += turn
        shortest = sorted(row[2] for row in rows if row[0] == n)[:2]
        if not lazy and (
            not short or (len(shortest) == 2 and shortest[1] <= (1 + ANCHORS.alike) * shortest[0])
        ):
            break
    at = [row[0] for row in rows]
    for name, column in (("anchor_issue", 1), ("anchor", 2), ("anchor_queued", 3)):
        yield case.once(name, [float(row[column]) for row in rows], at)
    if lazy:
        raise Unverified(
            because("work-done-on-reading", few_us=few / 1e3, many_us=many / 1e3, units=n + top)
        )
    far_n = ANCHORS.far_times * top
    if (
        far
        and far_n <= most
        and process < ANCHORS.far_processes
        and far_n * unit <= ANCHORS.longest_ns
    ):
        rows = _rows(case, [n] * (far_n // n) + [far_n], clock)
        for name, column in (("anchor_far", 2), ("anchor_far_queued", 3)):
            times = [float(row[column]) for row in rows]
            yield case.once(name, [sum(times[:-1]), times[-1]], [n, far_n])


def take_near(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """T of short chains and T(top) in turn, ns: ``anchor_near`` with the totals,
    ``anchor_near_issue`` with ``issue``.

    The short chains are those below the top that the ladder lacks. Nothing where it has all, or
    where the wait polls.
    """
    ladder = case.ladder
    top = ladder.ns[-1]
    short = [n for n in ANCHORS.near if n < top and n not in ladder.ns]
    if not short or ladder.stairs:
        return
    _rows(case, [top], clock)  # the first chain after a read is slow
    rows: Samples = []
    for _ in range(ANCHORS.near_turns):
        rows += _rows(case, [*short, top], clock)
    at = [row[0] for row in rows]
    yield case.once("anchor_near", [float(row[2]) for row in rows], at)
    yield case.once("anchor_near_issue", [float(row[1]) for row in rows], at)


def _reading_ns(case: CaseInProgress, clock: Clock) -> int:
    """The time of a read of the values, which are verified, ns."""
    began = clock.now()
    case.verify()
    return clock.now() - began


def _rows(case: CaseInProgress, ns: list[int], clock: Clock) -> Samples:
    """A sample of each n: ``[n, issue_ns, total_ns, queued_ns]``. Their units count as issued."""
    rows = []
    for n in ns:
        case.issued += case.chain.units([n])
        before = clock.queued()
        (row,) = window.sample(case.chain, [n], clock)
        rows.append([*row, clock.queued() - before])
    return rows
