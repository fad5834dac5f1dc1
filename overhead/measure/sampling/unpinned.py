"""The *unpinned* cost (``met`` in files): what a program pays on the processors that the system
gives it, with nothing left out.

It is measured before the first call that sets affinity. Each case is sampled in a few turns at two
lengths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from overhead.errors import Unsupported
from overhead.measure.sampling import window
from overhead.measure.sampling.calibrate import Limits
from overhead.measure.sampling.case import CaseInProgress
from overhead.measure.sampling.clock import Clock
from overhead.results import because


@dataclass(frozen=True)
class UnpinnedRule:
    """How long the unpinned cost is sampled: longer sees more of what disturbs a program, and takes
    more time.

    The numbers were chosen, not measured, where a line does not name a run.
    """

    turns: int = 3
    """Turns of each case; the cases alternate."""
    turn_ns: int = 100_000_000
    fewest_pairs: int = 2
    """The least time of a turn, and its least number of pairs (a short and a long sample)."""
    long_ns: int = 5_000_000
    """Wanted time of the long sample: a shorter one is lost in the clock, a longer one needs a
    longer chain.
    """
    long_to_short: int = 8
    """The long sample has this many times the units of the short one: a smaller ratio makes the
    slope less certain.
    """


UNPINNED = UnpinnedRule()


@dataclass(frozen=True)
class Lengths:
    """The number of units of the short and of the long sample."""

    short: int
    long: int


def find_lengths(case: CaseInProgress, clock: Clock, ladder: Sequence[int]) -> Lengths:
    """Choose the two numbers of units whose times give a case's unpinned cost (what a program pays
    on any processor): the smallest chain of about 5 ms, and one of an eighth of its units. Lengths
    are tried upwards from the n of an earlier process's ``ladder``, then doubled.

    Raises ``Unsupported`` where the wait polls, where the stack accepts no second length, and where
    the shortest length takes too long. A longer one may exceed that limit: to leave out a slow
    process would make the unpinned cost too low.
    """
    chain = case.chain
    # ``poll_ns``: ns between two polls of the wait, 0 if it does not poll. Polls round times up.
    if chain.poll_ns:
        raise Unsupported(because("sample-would-show-poll", poll_ms=chain.poll_ns / 1e6))
    # ``Limits.sample_ns``: the longest sample of the rounds, 20 ms. ``least_ns``: what the chain
    # asks T(n) to rise by at least.
    longest_ns = max(Limits.sample_ns, 2 * chain.least_ns)
    long = 0
    # Try longer and longer chains until one takes as long as wanted.
    for tried, long in enumerate(_lengths(ladder, chain.max_n)):
        took_ns = _totals(case, clock, [long])[0]
        if took_ns >= UNPINNED.long_ns:
            # The first one may have been interrupted, and the chain be shorter than wanted.
            took_ns = min(took_ns, _totals(case, clock, [long])[0])
        if tried == 0 and took_ns > longest_ns:
            too_long = because(
                "first-units-too-long",
                units=long,
                took_ms=took_ns / 1e6,
                most_ms=longest_ns / 1e6,
            )
            raise Unsupported(too_long)
        if took_ns >= UNPINNED.long_ns:
            break
    if not long:
        raise Unsupported(because("n-is-bounded", most=chain.max_n))
    # An eighth: with more units the slope between both is less certain.
    short = max(1, long // UNPINNED.long_to_short)
    _totals(case, clock, [short, long])  # the first pass may differ
    return Lengths(short, long)


def take_turn(case: CaseInProgress, clock: Clock, lengths: Lengths) -> float:
    """Alternate short and long chains for one turn, at least ``UNPINNED.turn_ns``, and return the
    cost of a unit, ns: the difference of the mean times over that of the lengths. Means and not
    medians, so that what disturbs a program is in it.
    """
    short_totals: list[int] = []
    long_totals: list[int] = []
    began = clock.now()
    # 0.1 s, and two pairs at least.
    while len(long_totals) < UNPINNED.fewest_pairs or clock.now() - began < UNPINNED.turn_ns:
        short_total, long_total = _totals(case, clock, [lengths.short, lengths.long])
        short_totals.append(short_total)
        long_totals.append(long_total)
    # What the additional units of the long chain take.
    added_ns = fmean(long_totals) - fmean(short_totals)
    return added_ns / (lengths.long - lengths.short)


def _lengths(ladder: Sequence[int], most: int) -> Iterator[int]:
    """The numbers of units to try for the long chain, ascending: those that an earlier process
    sampled (``ladder``), which the stack has compiled already, then doubles up to ``most``.
    """
    n = 1
    # n stays the last one yielded, so doubling goes on from there.
    for rung in ladder:
        if 2 <= rung <= most:
            n = rung
            yield n
    while n < most:
        n = min(2 * n, most)
        yield n


def _totals(case: CaseInProgress, clock: Clock, ns: list[int]) -> list[int]:
    """T(n) of each n, ns. The units count as issued."""
    rows = window.sample(case.chain, ns, clock)
    case.issued += case.chain.units(ns)
    return [row[2] for row in rows]
