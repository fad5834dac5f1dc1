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
    """The n of the chains that are run, untimed, only to let time pass until the process is old
    enough for its anchors (samples of a very large n, taken last).

    Such a chain takes about ``ANCHORS.short_ns``. Its n is at least the largest n of the rounds and
    at most that of an anchor.
    """
    top = ladder.ns[-1]
    units_in_short_time = int(ANCHORS.short_ns / ladder.unit_ns)
    n = min(ANCHORS.times * top, units_in_short_time)
    # ``most``: the largest n that the stack accepts.
    return min(most, max(top, n))


@dataclass
class _Turns:
    """The anchors of one process while they are taken. An anchor is a sample of ``n`` units, far
    beyond ``top``, the largest n of the ladder; a turn is one anchor and the shorter chains beside
    it.

    ``is_short``: an anchor takes at most ``ANCHORS.short_ns``. ``few_ns``: the time of a read of
    the device's values after one unit; ``many_ns``: the shortest such read after an anchor.
    ``rows``: the samples of all turns so far. ``turns``: how many these are. ``last_turn_ns``: how
    long the last turn took.
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
        """Whether reading the values takes longer after an anchor than after one unit, by more than
        a share of the last turn: the stack then seems to do the work only when its values are read,
        and the wait did not wait for it.
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
    """Take the anchors of a case: chains of ten times the largest n of its rounds, each beside
    chains of that largest n. They show whether the fitted line goes on beyond the n that it was
    fitted to.

    Yields journal entries with times in ns: ``anchor`` (until ``wait`` returned), ``anchor_issue``
    (until ``issue`` returned), ``anchor_queued`` (for how long the thread waited for its processor
    meanwhile); or one entry with the reason if no anchor is possible. ``process``: the number of
    this process among those of the case; only the first few take anchors that last long. ``far``:
    also take one anchor of a hundred times the largest n. Raises ``Unverified`` where the work
    seems to be done only when the values are read.
    """
    top = case.ladder.ns[-1]
    # The anchor's n, roughly its time, and whether it is worth taking.
    n = min(ANCHORS.times * top, case.chain.max_n)
    expected_ns = case.ladder.one_ns + n * case.ladder.unit_ns
    refused = _why_no_anchor(case, n, expected_ns)
    if refused:
        yield case.once("anchor", reason=refused)
        return
    is_short = expected_ns <= ANCHORS.short_ns
    # Three processes: with fewer, a single disturbance would decide.
    if not is_short and process >= ANCHORS.processes:
        return

    # Reads the values that the units wrote, and raises unless all issued units ran.
    case.verify()
    # One unit after a read: the time of the next read is compared with a read after an anchor.
    _rows(case, [1], clock)
    taken = _Turns(n, top, is_short, few_ns=_reading_ns(case, clock))
    # Turns (anchor and chains beside it) until a rule says that they are enough: four, one of a
    # long anchor, or as soon as the two shortest anchors are alike.
    while not any(rule(taken) for rule in TURN_RULES):
        _take_turn(case, clock, taken)

    # Each column of the rows is one list of values, with the n of each row.
    ns = [row[0] for row in taken.rows]
    for column in _COLUMNS:
        yield case.once(column.name, column.of(taken.rows), ns)
    # ``is_lazy``: reading the values took longer after an anchor than after one unit.
    if taken.is_lazy:
        raise Unverified(
            because(
                "work-done-on-reading",
                few_us=taken.few_ns / 1e3,
                many_us=taken.many_ns / 1e3,
                units=n + top,
            )
        )
    # Two processes: such an anchor takes seconds.
    if far and process < ANCHORS.far_processes:
        yield from _take_far(case, clock, n)


def _why_no_anchor(case: CaseInProgress, n: int, expected_ns: float) -> Why:
    """Why no anchor of this n is taken: the stack bounds n, or it would take too long; else ''."""
    if n < ANCHORS.least_times * case.ladder.ns[-1]:
        return because("n-is-bounded", most=case.chain.max_n)
    if expected_ns > ANCHORS.longest_ns:
        return because("anchor-too-long", units=n, seconds=expected_ns / 1e9)
    return ""


def _take_turn(case: CaseInProgress, clock: Clock, taken: _Turns) -> None:
    """Time one anchor (a chain far longer than those of the rounds) with chains of ``top`` units,
    the largest n of the rounds, before and after it, then read the values.

    The chains beside the anchor cancel a change of the processor's speed. A short anchor has one on
    either side, since several turns are taken. A long one is taken once, so it gets half as many
    units on either side as it has itself: they last as long as the anchor.
    """
    top = taken.top
    chains_beside = [top]
    # The wait of a staircase polls rarely: each further chain beside the anchor would last until a
    # poll.
    if not taken.is_short and not case.ladder.stairs:
        chains_beside = [top] * (taken.n // top // 2)
    # The first chain after a read is slow, and left out: Dawn's takes up to twice its time.
    rows = _rows(case, [top, *chains_beside, taken.n, *chains_beside], clock)[1:]
    # The read after an anchor: slow if the work was left undone until then.
    taken.many_ns = min(taken.many_ns, _reading_ns(case, clock))
    # Index 2 of a row is T(n), the time until ``wait`` returned.
    taken.last_turn_ns = sum(row[2] for row in rows)
    taken.rows += rows
    taken.turns += 1


def _take_far(case: CaseInProgress, clock: Clock, n: int) -> Iterator[OneOffEntry]:
    """Time one far anchor, a chain of a hundred times the largest n of the rounds, after as many
    units in chains of ``n``, the n of the usual anchor. Both sums then contain the same number of
    units, and differ if the cost of a unit does.

    Nothing is taken where the stack bounds n, or where it would take too long.
    """
    far_n = ANCHORS.far_times * case.ladder.ns[-1]
    far_ns = far_n * case.ladder.unit_ns
    if far_n > case.chain.max_n or far_ns > ANCHORS.longest_ns:
        return
    # Ten anchors and a chain of ten times their n: the same number of units on both sides.
    ns = [n] * (far_n // n) + [far_n]
    rows = _rows(case, ns, clock)
    for column in _FAR_COLUMNS:
        *near_times, far_time = column.of(rows)
        yield case.once(column.name, [sum(near_times), far_time], [n, far_n])


def take_near(case: CaseInProgress, clock: Clock) -> Iterator[OneOffEntry]:
    """Time the short chains of ``ANCHORS.near`` units (1, 10, 100) that the rounds did not sample,
    each time beside a chain of their largest n. They show from which n on the fitted line holds.

    Yields ``anchor_near`` (times until ``wait`` returned, ns) and ``anchor_near_issue`` (until
    ``issue`` returned). Nothing where the rounds sampled these n, or where the wait polls: a short
    chain then lasts until the first poll, whatever its n.
    """
    ladder = case.ladder
    top = ladder.ns[-1]
    # Only n that the rounds lack; the chain of ``top`` shows the processor's speed meanwhile.
    short = [n for n in ANCHORS.near if n < top and n not in ladder.ns]
    if not short or ladder.stairs:
        return
    _rows(case, [top], clock)  # the first chain after a read is slow
    rows: Samples = []
    for _ in range(ANCHORS.near_turns):
        rows += _rows(case, [*short, top], clock)
    # Index 0 of a row is its n.
    ns = [row[0] for row in rows]
    for column in _NEAR_COLUMNS:
        yield case.once(column.name, column.of(rows), ns)


def _reading_ns(case: CaseInProgress, clock: Clock) -> int:
    """The time of a read of the values, which are verified, ns."""
    began = clock.now()
    case.verify()
    return clock.now() - began


def _rows(case: CaseInProgress, ns: list[int], clock: Clock) -> Samples:
    """One sample of each n: ``[n, issue_ns, total_ns, queued_ns]``; the last is the time for which
    the thread waited for its processor. The units that run are added to those that the case has
    issued, which ``verify`` compares with what the device ran.
    """
    rows = []
    for n in ns:
        # ``chain.units``: these and the warm units that a sample runs before.
        case.issued += case.chain.units([n])
        before = clock.queued()
        (row,) = window.sample(case.chain, [n], clock)
        rows.append([*row, clock.queued() - before])
    return rows
