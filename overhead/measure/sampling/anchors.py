"""Anchors: samples of an n far beyond the largest n of the line, and of 1, 10 and 100 units where
the line has none.

The fit compares them with what the line predicts. ``top`` is the largest n of the ladder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from overhead.errors import Unverified
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.case import CaseInProgress
from overhead.measure.sampling.chain import Samples
from overhead.measure.sampling.clock import Clock
from overhead.results import OneOffEntry, Why, because


@dataclass(frozen=True)
class AnchorRule:
    """Which anchors a process takes. More or longer ones see further, and take more time.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=straight-laws`` and ``make bench ARGS=planted-laws`` show what a change of one does.
    """

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
    top = ladder.ns[-1]
    units_in_short_time = int(ANCHORS.short_ns / ladder.unit_ns)
    n = min(ANCHORS.times * top, units_in_short_time)
    return min(most, max(top, n))


@dataclass
class _Turns:
    """The anchors of one process while they are taken.

    ``n``: of the anchor. ``is_short``: it takes at most ``ANCHORS.short_ns``. ``few_ns``: the time
    of a read of the values after one unit; ``many_ns``: the shortest after an anchor. ``rows``: the
    samples of all turns so far. ``turns``: how many these are.
    """

    n: int
    top: int
    is_short: bool
    few_ns: int
    many_ns: float = float("inf")
    rows: Samples = field(default_factory=list)
    turns: int = 0
    last_turn_ns: int = 0

    @property
    def is_lazy(self) -> bool:
        """Whether reading the values takes longer after an anchor, by more than a share of the last
        turn: the work then seems to be done when the values are read.
        """
        extra_ns = self.many_ns - self.few_ns
        return extra_ns > ANCHORS.read_share * self.last_turn_ns


def _all_turns_taken(taken: _Turns) -> bool:
    """As many turns as a process may take."""
    return taken.turns == ANCHORS.turns


def _long_anchor_taken(taken: _Turns) -> bool:
    """One turn of a long anchor. A read that seems slow is looked at again in further turns."""
    return not taken.is_lazy and not taken.is_short


def _shortest_are_alike(taken: _Turns) -> bool:
    """The two shortest anchors agree, so no interruption lengthened them."""
    anchors_ns = sorted(row[2] for row in taken.rows if row[0] == taken.n)
    if taken.is_lazy or len(anchors_ns) < 2:
        return False
    return anchors_ns[1] <= (1 + ANCHORS.alike) * anchors_ns[0]


TURN_RULES: tuple[Callable[[_Turns], bool], ...] = (
    _all_turns_taken,
    _long_anchor_taken,
    _shortest_are_alike,
)
"""After a turn, no further anchor is taken as soon as one of these says so."""


class _Column(NamedTuple):
    """A column of the rows ``[n, issue_ns, total_ns, queued_ns]``, and the name of its values."""

    name: str
    position: int

    def of(self, rows: Samples) -> list[float]:
        """The values of this column, ns."""
        return [float(row[self.position]) for row in rows]


_COLUMNS = (_Column("anchor_issue", 1), _Column("anchor", 2), _Column("anchor_queued", 3))
_FAR_COLUMNS = (_Column("anchor_far", 2), _Column("anchor_far_queued", 3))
_NEAR_COLUMNS = (_Column("anchor_near", 2), _Column("anchor_near_issue", 1))


def take(case: CaseInProgress, clock: Clock, process: int, far: bool) -> Iterator[OneOffEntry]:
    """T(top) and T(anchor) in turn, ns: ``anchor`` with the totals, ``anchor_issue`` with the times
    of ``issue``.

    ``anchor_queued``: for how long the thread waited for its processor meanwhile. ``process``: its
    number among those of the case. ``far``: also ``anchor_far``, n a hundred times the top, beside
    ten times as many shorter chains, and ``anchor_far_queued``. A line without values has the
    reason. Raises ``Unverified`` where the work seems to be done when the values are read.
    """
    top = case.ladder.ns[-1]
    n = min(ANCHORS.times * top, case.chain.max_n)
    took_ns = case.ladder.one_ns + n * case.ladder.unit_ns
    refused = _why_no_anchor(case, n, took_ns)
    if refused:
        yield case.once("anchor", reason=refused)
        return
    is_short = took_ns <= ANCHORS.short_ns
    if not is_short and process >= ANCHORS.processes:
        return

    case.verify()
    _rows(case, [1], clock)
    taken = _Turns(n, top, is_short, few_ns=_reading_ns(case, clock))
    while not any(rule(taken) for rule in TURN_RULES):
        _take_turn(case, clock, taken)

    ns = [row[0] for row in taken.rows]
    for column in _COLUMNS:
        yield case.once(column.name, column.of(taken.rows), ns)
    if taken.is_lazy:
        raise Unverified(
            because(
                "work-done-on-reading",
                few_us=taken.few_ns / 1e3,
                many_us=taken.many_ns / 1e3,
                units=n + top,
            )
        )
    if far and process < ANCHORS.far_processes:
        yield from _take_far(case, clock, n)


def _why_no_anchor(case: CaseInProgress, n: int, took_ns: float) -> Why:
    """Why no anchor of this n is taken: the stack bounds n, or it would take too long; else ''."""
    if n < ANCHORS.least_times * case.ladder.ns[-1]:
        return because("n-is-bounded", most=case.chain.max_n)
    if took_ns > ANCHORS.longest_ns:
        return because("anchor-too-long", units=n, seconds=took_ns / 1e9)
    return ""


def _take_turn(case: CaseInProgress, clock: Clock, taken: _Turns) -> None:
    """One anchor between chains of ``top``, and a read of the values. A short anchor has one such
    chain on either side; a long one has half as many units on either side as it has itself.
    """
    top = taken.top
    beside = [top]
    if not taken.is_short and not case.ladder.stairs:
        beside = [top] * (taken.n // top // 2)
    # The first chain after a read is slow, and left out: Dawn's takes up to twice its time.
    rows = _rows(case, [top, *beside, taken.n, *beside], clock)[1:]
    taken.many_ns = min(taken.many_ns, _reading_ns(case, clock))
    taken.last_turn_ns = sum(row[2] for row in rows)
    taken.rows += rows
    taken.turns += 1


def _take_far(case: CaseInProgress, clock: Clock, n: int) -> Iterator[OneOffEntry]:
    """The far anchor beside as many units in chains of ``n``, the anchor's n; nothing where the
    stack bounds n, or where it would take too long.
    """
    far_n = ANCHORS.far_times * case.ladder.ns[-1]
    far_ns = far_n * case.ladder.unit_ns
    if far_n > case.chain.max_n or far_ns > ANCHORS.longest_ns:
        return
    ns = [n] * (far_n // n) + [far_n]
    rows = _rows(case, ns, clock)
    for column in _FAR_COLUMNS:
        *near_times, far_time = column.of(rows)
        yield case.once(column.name, [sum(near_times), far_time], [n, far_n])


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
    ns = [row[0] for row in rows]
    for column in _NEAR_COLUMNS:
        yield case.once(column.name, column.of(rows), ns)


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
