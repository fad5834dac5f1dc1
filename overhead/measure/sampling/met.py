"""The *met* cost: what a program pays on the processors that the system gives it, with nothing left
out.

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
class MetRule:
    """How long the met cost is sampled: longer sees more of what disturbs a program, and takes more
    time.
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


MET = MetRule()


@dataclass(frozen=True)
class Lengths:
    """The number of units of the short and of the long sample."""

    short: int
    long: int


def find_lengths(case: CaseInProgress, clock: Clock, ladder: Sequence[int]) -> Lengths:
    """The shortest long sample of about 5 ms, and a short one; from the n of an earlier process's
    ``ladder``, doubled.

    Raises ``Unsupported`` where the stack accepts no second length, and where the shortest length
    takes too long. A longer one may exceed that limit: to leave out a slow process would make the
    met cost too low.
    """
    chain = case.chain
    if chain.poll_ns:
        raise Unsupported(because("sample-would-show-poll", poll_ms=chain.poll_ns / 1e6))
    longest_ns = max(Limits.sample_ns, 2 * chain.least_ns)
    long = 0
    for tried, long in enumerate(_lengths(ladder, chain.max_n)):
        took = _sample(case, clock, [long])[0]
        if took >= MET.long_ns:
            took = min(
                took, _sample(case, clock, [long])[0]
            )  # the first one may have been interrupted
        if took > longest_ns and not tried:
            too_long = because(
                "first-units-too-long", units=long, took_ms=took / 1e6, most_ms=longest_ns / 1e6
            )
            raise Unsupported(too_long)
        if took >= MET.long_ns:
            break
    if not long:
        raise Unsupported(because("n-is-bounded", most=chain.max_n))
    short = max(1, long // MET.long_to_short)
    _sample(case, clock, [short, long])  # the first pass may differ
    return Lengths(short, long)


def take_turn(case: CaseInProgress, clock: Clock, lengths: Lengths) -> float:
    """Sample one turn; return ns per unit: the difference of the mean totals over that of the
    lengths.
    """
    short, long = lengths.short, lengths.long
    totals: list[list[int]] = []
    began = clock.now()
    while len(totals) < MET.fewest_pairs or clock.now() - began < MET.turn_ns:
        totals.append(_sample(case, clock, [short, long]))
    mean_short, mean_long = map(fmean, zip(*totals, strict=True))
    return (mean_long - mean_short) / (long - short)


def _lengths(ladder: Sequence[int], most: int) -> Iterator[int]:
    """The lengths to try, ascending: those of the ladder, which are compiled already, then doubles
    up to ``most``.
    """
    n = 1
    for n in (rung for rung in ladder if 2 <= rung <= most):
        yield n
    while n < most:
        n = min(2 * n, most)
        yield n


def _sample(case: CaseInProgress, clock: Clock, ns: list[int]) -> list[int]:
    """T(n) of each n, ns. The units count as issued."""
    rows = window.sample(case.chain, ns, clock)
    case.issued += case.chain.units(ns)
    return [row[2] for row in rows]
