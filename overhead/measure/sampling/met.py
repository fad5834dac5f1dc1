"""The met cost: slopes under the affinity that the process inherited, with no choice of processor and nothing left out.

It is measured before the first call that sets affinity. Each case is sampled in a few turns at two lengths.
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

TURNS = 3
"""Turns of each case; the cases alternate."""
_TURN_NS = 100_000_000
"""Duration of a turn, at least."""
_FEWEST_PAIRS = 2
"""Pairs of a short and a long sample in a turn, at least."""
_LONG_NS = 5_000_000
"""Wanted time of the long sample."""
_LONG_TO_SHORT = 8


@dataclass(frozen=True)
class Lengths:
    """The number of units of the short and of the long sample."""

    short: int
    long: int


def find_lengths(case: CaseInProgress, clock: Clock, ladder: Sequence[int]) -> Lengths:
    """The shortest length that takes about 5 ms, from the rungs of an earlier process's ``ladder`` and their doubles.

    Raises ``Unsupported`` where the stack accepts no second length, and where the shortest length takes too long. A
    longer one may exceed that limit: to leave out a slow process would make the met cost too low.
    """
    chain = case.chain
    if chain.poll_ns:
        raise Unsupported(f"the wait polls every {chain.poll_ns / 1e6:.0f} ms, and a sample would show the poll")
    longest_ns = max(Limits.sample_ns, 2 * chain.least_ns)
    long = 0
    for tried, long in enumerate(_lengths(ladder, chain.max_n)):
        took = _total(case, clock, long)
        if took >= _LONG_NS:
            took = min(took, _total(case, clock, long))  # the first one may have been interrupted
        if took > longest_ns and not tried:
            raise Unsupported(f"{long} units take {took / 1e6:.0f} ms, and a sample may take {longest_ns / 1e6:.0f} ms")
        if took >= _LONG_NS:
            break
    if not long:
        raise Unsupported(f"the stack bounds n at {chain.max_n}")
    short = max(1, long // _LONG_TO_SHORT)
    _sample(case, clock, [short, long])  # the first pass may differ
    return Lengths(short, long)


def take_turn(case: CaseInProgress, clock: Clock, lengths: Lengths) -> float:
    """ns per unit in one turn: the difference of the mean totals over that of the lengths."""
    short, long = lengths.short, lengths.long
    totals: list[list[int]] = []
    began = clock.now()
    while len(totals) < _FEWEST_PAIRS or clock.now() - began < _TURN_NS:
        totals.append(_sample(case, clock, [short, long]))
    mean_short, mean_long = map(fmean, zip(*totals, strict=True))
    return (mean_long - mean_short) / (long - short)


def _lengths(ladder: Sequence[int], most: int) -> Iterator[int]:
    """The lengths to try, ascending: the rungs from 2 units on, then doubles up to ``most``.

    A stack may have to compile for each new length, so the rungs come first.
    """
    n = 1
    for n in (rung for rung in ladder if 2 <= rung <= most):
        yield n
    while n < most:
        n = min(2 * n, most)
        yield n


def _total(case: CaseInProgress, clock: Clock, n: int) -> int:
    return _sample(case, clock, [n])[0]


def _sample(case: CaseInProgress, clock: Clock, ns: list[int]) -> list[int]:
    """T(n) of each n, ns. The units count as issued."""
    rows = window.sample(case.chain, ns, clock)
    case.issued += case.chain.units(ns)
    return [row[2] for row in rows]
