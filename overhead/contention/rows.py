"""What a run measured of contention: a row for each case and placement, and what follows from the
rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from overhead.reading.view import CALLERS, View
from overhead.results import VALUED, Contention, Placement, Scalar, StackFacts, Value, Way

LEAST_WORK: Mapping[Way, float] = {"processes": 0.9, "threads": 0.8}
"""The ways in which one alone is an alternative. It is advised where all together surely do less
than so many times as much as one.
"""
_PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
_SAME_RATE = 1.25
"""Stacks meet at the device where the fastest and the slowest together need times within this
factor.
"""


@dataclass(frozen=True)
class PeersRow:
    """A case on a target in one way and placement, as a table has it.

    ``records``: by the number of peers. ``facts``: of the stack. What tells it apart from other
    rows: ``device``, the id of its device if the stack has several; ``on``, its adapter and API if
    these differ; ``params``, in which its case differs from others by the same caller.
    """

    records: Mapping[int, Contention]
    facts: StackFacts
    device: str
    on: tuple[str, ...]
    params: Mapping[str, Scalar]

    @property
    def first(self) -> Contention:
        """The record of the fewest peers; all have the same target, case and placement."""
        return self.records[min(self.records)]

    @property
    def without_device(self) -> Hashable:
        """Equal for rows that differ in their device alone, which a sentence does not name."""
        target = self.first.target
        return target.stack, self.on, tuple(self.params.items()), target.software

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: from Python first, and first those that the system places."""
        return CALLERS.index(self.first.case.caller), _PLACEMENTS.index(self.first.placement)

    def values(self, figure: str) -> dict[int, Value]:
        """The figure by the number of peers, where it has a value above zero."""
        found = {
            k: one.measured(figure)
            for k, one in sorted(self.records.items())
            if one.status in VALUED
        }
        return {k: value for k, value in found.items() if value is not None and value.value > 0}

    def resolved(self, figure: str) -> dict[int, Value]:
        """The same where the figure is ``ok`` and its interval lies above zero."""
        return {
            k: value
            for k, value in self.values(figure).items()
            if value.status == "ok" and value.resolved
        }

    @property
    def shows_noise(self) -> bool:
        """Whether a cost of the table, or its work, is not ``ok``."""
        shown = [*self.values("cost").values(), *self.values("work").values()]
        return any(value.status != "ok" for value in shown)

    @property
    def reaches_above(self) -> bool:
        """Whether the work of the most peers, K, or the interval of a noisy one, is above K times
        that of one.
        """
        works = self.values("work")
        if not works:
            return False
        peers = max(works)
        work = works[peers]
        return work.floor > peers or (work.status != "ok" and work.ceiling > peers)


def rows_of(view: View, way: Way) -> list[PeersRow]:
    """A row for each case and placement that the run measured in this way; those of a target follow
    each other.

    Of several devices alone it has the one with the median cost.
    """
    own = [one for one in view.fingerprint.contention if one.way == way]
    groups: dict[tuple[str, Placement], dict[int, list[Contention]]] = {}
    for one in own:
        groups.setdefault((one.key, one.placement), {}).setdefault(one.peers, []).append(one)
    rows = []
    for group in groups.values():
        medians = {
            k: sorted(v, key=lambda one: one.value("cost") or 0.0)[len(v) // 2]
            for k, v in group.items()
        }
        facts = view.facts(next(iter(medians.values())).target.stack)
        rows.append(_row(medians, facts, own))
    targets = list(dict.fromkeys(one.target.key for one in own))
    return sorted(rows, key=lambda row: (targets.index(row.first.target.key), row.order))


def _row(
    records: Mapping[int, Contention], facts: StackFacts, others: Sequence[Contention]
) -> PeersRow:
    """The row of these records. ``others``: all records of the way."""
    one = next(iter(records.values()))
    target, case = one.target, one.case
    of_stack = [other.target for other in others if other.target.stack == target.stack]
    on = []
    if len({other.adapter for other in of_stack}) > 1:
        on.append(target.adapter)
    if len({other.api for other in of_stack}) > 1:
        on.append(target.api)
    device = target.device if len({other.device for other in of_stack}) > 1 else ""
    of_target = [other.case for other in others if other.target.key == target.key]
    alike = [other.coordinates for other in of_target if other.caller == case.caller]
    params = {
        k: v for k, v in case.coordinates.items() if any(other.get(k) != v for other in alike)
    }
    return PeersRow(records, facts, device, tuple(on), params)


def _judged(rows: Sequence[PeersRow]) -> list[PeersRow]:
    """The rows that a sentence may judge: those on hardware devices if there are any, else all that
    run their work.
    """
    running = [row for row in rows if row.first.target.executes]
    return [
        row for row in running if row.first.target.api != "CPU" and not row.first.target.software
    ] or running


@dataclass(frozen=True)
class RatioAt:
    """A ratio of a row to one alone, with the number of peers."""

    row: PeersRow
    peers: int
    ratio: Value


def losses(way: Way, rows: Sequence[PeersRow], below: float = 1.0) -> list[RatioAt]:
    """The unpinned rows in which all together surely do less than ``below`` times as much as one,
    the worst first.

    Each with the number of peers that do least. Empty for a way in which one alone is no
    alternative.
    """
    if way not in LEAST_WORK:
        return []
    found = []
    for row in _judged(rows):
        works = [RatioAt(row, k, work) for k, work in row.resolved("work").items() if k > 1]
        if works and row.first.placement == "free":
            least = min(works, key=_size)
            if least.ratio.ceiling < below:
                found.append(least)
    return sorted(found, key=_size)


def _size(of: RatioAt) -> float:
    return of.ratio.value


@dataclass(frozen=True)
class MostPeers:
    """How the most peers compare with one alone, for one caller: the least and the greatest ratio.

    ``noisy``: rows by this caller that are left out, as they are too noisy.
    """

    least: RatioAt
    greatest: RatioAt
    noisy: tuple[PeersRow, ...]


def most_peers(way: Way, rows: Sequence[PeersRow]) -> MostPeers | None:
    """The ratios of the most peers: of the cost in the way ``busy``, else of the work; None where
    none is resolved.
    """
    figure = "slowdown" if way == "busy" else "work"
    judged = _judged(rows)
    known: list[RatioAt] = []
    for row in judged:
        known += [RatioAt(row, k, ratio) for k, ratio in row.resolved(figure).items()]
    peers = max((one.peers for one in known), default=0)
    if peers <= (way != "busy"):
        return None
    at_most = [one for one in known if one.peers == peers]
    order = min(one.row.order for one in at_most)
    ordered = sorted((one for one in at_most if one.row.order == order), key=_size)
    of_caller = [row for row in judged if row.order == order]
    noisy = [row for row in of_caller if peers in row.values(figure).keys() - row.resolved(figure)]
    return MostPeers(ordered[0], ordered[-1], tuple(noisy))


@dataclass(frozen=True)
class MeetAtDevice:
    """Stacks that come to one rate, because the device limits all of them. ``low``, ``high``: ns a
    unit, together.
    """

    peers: int
    rows: tuple[PeersRow, ...]
    low: float
    high: float


def meetings(rows: Sequence[PeersRow]) -> Iterator[MeetAtDevice]:
    """Which stacks come to one rate."""
    # Only stacks of one API share a rate, and only at their largest K does the device surely have
    # enough to do.
    limited: dict[tuple[str, int], list[RatioAt]] = {}
    for row in _judged(rows):
        rates = row.resolved("each")
        peers = max(rates, default=0)
        if peers > 1 and row.records[peers].limit == "device" and row.first.placement == "free":
            limited.setdefault((row.first.target.api, peers), []).append(
                RatioAt(row, peers, rates[peers])
            )
    for (_api, peers), alike in limited.items():
        low = min(one.ratio.floor for one in alike)
        high = max(one.ratio.ceiling for one in alike)
        stacks = {one.row.without_device for one in alike}
        if len(stacks) > 1 and high < _SAME_RATE * low:
            yield MeetAtDevice(peers, tuple(one.row for one in alike), low, high)


@dataclass(frozen=True)
class SlowestPlacing:
    """A case with a limit, at the number of devices at which it is slowest: its slowdown in each
    placement.
    """

    slowdowns: tuple[RatioAt, ...]


@dataclass(frozen=True)
class Placing:
    """Of a process a device: the cases that something limits, and how far the slowdown of any
    reaches.
    """

    limited: tuple[SlowestPlacing, ...]
    highest: float

    @property
    def is_bounded(self) -> bool:
        """Whether all slowdowns have an upper end."""
        return math.isfinite(self.highest)


def placing(rows: Sequence[PeersRow]) -> Placing | None:
    """How much slower than alone the cases are, unpinned and pinned; None where no slowdown is
    known.
    """
    cases: dict[str, list[PeersRow]] = {}
    for row in _judged(rows):
        if row.values("slowdown"):
            cases.setdefault(row.first.key, []).append(row)
    found, highest = [], 0.0
    for own in cases.values():
        slowdowns: list[RatioAt] = []
        for row in own:
            slowdowns += [RatioAt(row, k, ratio) for k, ratio in row.values("slowdown").items()]
        highest = max([highest, *(one.ratio.ceiling for one in slowdowns)])
        limited = [
            (one.ratio.value, one.peers) for one in slowdowns if one.row.records[one.peers].limit
        ]
        if limited:
            _, slowest = max(limited)
            found.append(SlowestPlacing(tuple(one for one in slowdowns if one.peers == slowest)))
    return Placing(tuple(found), highest) if cases else None
