"""What a run measured of contention: a row for each case and placement, and what follows from the
rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from overhead.contention.limits import Limited, Slices, in_slices
from overhead.reading.view import CALLERS, View
from overhead.results import (
    VALUED,
    Contention,
    Placement,
    Scalar,
    StackFacts,
    Value,
    Way,
    together,
)

LEAST_WORK: Mapping[Way, float] = {"processes": 0.9, "threads": 0.8}
"""The ways in which one alone is an alternative. It is advised where all together surely do less
than so many times as much as one. Chosen, not measured: nearer to 1, a smaller loss is advice too.
"""
_PLACEMENTS: tuple[Placement, ...] = get_args(Placement)
_SAME_RATE = 1.25
"""Stacks meet at the device where the fastest and the slowest together need times within this
factor. Chosen, not measured: with a higher factor stacks of two rates are said to meet.
"""


SideOfOne = Literal["more", "less", "even"]
"""On which side of one alone a ratio surely is; ``even``: not told apart from it."""


@dataclass(frozen=True)
class PeersRow:
    """A row of a table of contention: one case while several peers (processes or threads) run it at
    once. ``records``: its figures by the number of peers, all in one way and placement. ``facts``:
    of the stack. What tells it apart from other rows: ``device``, the id of its device if the stack
    has several; ``on``, its adapter and API if these differ; ``params``, in which its case differs
    from others by the same caller.
    """

    records: Mapping[int, Contention]
    facts: StackFacts
    device: str
    on: tuple[str, ...]
    params: Mapping[str, Scalar]
    twins: tuple[PeersRow, ...] = ()
    """The rows of the same case in other placements, whose costs are the same by their intervals.
    """
    slices: Slices | None = None
    """The time slices that the device was seen to give for such work, be it through this stack or
    through another one.
    """

    def limited(self, peers: int) -> Limited:
        """What limits this number of peers. Rows with the same costs have the same limit: where the
        intervals of this row leave the limit open, that of a twin counts.
        """
        found = self._limited_alone(peers)
        return found if self.slices is None else in_slices(found, self.slices)

    def _limited_alone(self, peers: int) -> Limited:
        """The limit by this row and its twins."""
        own = self.records[peers]
        found = {own.limit: own.why}
        for twin in self.twins:
            if peers in twin.records:
                other = twin.records[peers]
                found.setdefault(other.limit, other.why)
        # Not clearly slower in this placement: then there is nothing to explain.
        if own.limit == "":
            return Limited("", own.why)
        named = {limit: why for limit, why in found.items() if limit not in ("", "unknown")}
        if len(named) > 1:
            return Limited("unknown", together(*named.values()))
        for limit, why in named.items():
            return Limited(limit, why)
        return Limited(own.limit, own.why)

    @property
    def first(self) -> Contention:
        """The record of the fewest peers; all have the same target, case and placement."""
        return self.records[min(self.records)]

    @property
    def without_device(self) -> Hashable:
        """Equal for rows that differ in their device alone, which a sentence does not name."""
        target = self.first.target
        params = tuple(self.params.items())
        return target.stack, self.on, params, target.software

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: from Python first, and first those that the system places."""
        caller = CALLERS.index(self.first.case.caller)
        placement = _PLACEMENTS.index(self.first.placement)
        return caller, placement

    def values(self, figure: str) -> dict[int, Value]:
        """The figure of this name by the number of peers, where it has a value above zero."""
        values = {}
        for peers, record in sorted(self.records.items()):
            # ``VALUED``: the statuses whose figures may be used: ``ok``, ``noisy`` and ``bimodal``.
            value = record.measured(figure) if record.status in VALUED else None
            if value is not None and value.value > 0:
                values[peers] = value
        return values

    def resolved(self, figure: str) -> dict[int, Value]:
        """The same where the figure is ``ok`` and its interval lies above zero."""
        resolved = {}
        for peers, value in self.values(figure).items():
            if value.status == "ok" and value.resolved:
                resolved[peers] = value
        return resolved

    def ratios(self, figure: str) -> list[RatioAt]:
        """The values of a ratio, with their numbers of peers."""
        return [RatioAt(self, peers, ratio) for peers, ratio in self.values(figure).items()]

    def resolved_ratios(self, figure: str) -> list[RatioAt]:
        """The same where the ratio is ``ok`` and its interval lies above zero."""
        return [RatioAt(self, peers, ratio) for peers, ratio in self.resolved(figure).items()]

    @property
    def shows_noise(self) -> bool:
        """Whether a cost of the table, or its work, is not ``ok``."""
        shown = [*self.values("cost").values(), *self.values("work").values()]
        return any(value.status != "ok" for value in shown)

    @property
    def reaches_above(self) -> bool:
        """Whether K peers, the most that were measured, seem to do more than K times as much as
        one, which needs a note as nobody expects it: surely, or for a noisy figure perhaps.
        """
        works = self.values("work")
        if not works:
            return False
        # Of the most peers that have the figure.
        peers = max(works)
        work = works[peers]
        # ``floor``, ``ceiling``: the ends of its interval.
        if work.status == "ok":
            return work.floor > peers
        # A noisy figure is shown as its interval, so there readers see the upper end.
        return work.floor > peers or work.ceiling > peers


def rows_of(view: View, way: Way) -> list[PeersRow]:
    """The rows of the table of one way to run many peers at once: one for each case and placement;
    those of a target follow each other.

    In the way ``devices`` each device was also measured alone. A row has one record for a number of
    peers, so of these it has the one with the median cost.
    """
    of_way = [record for record in view.fingerprint.contention if record.way == way]
    # By case and placement, and in each by number of peers: the records.
    # ``key``: names target and case.
    groups: dict[tuple[str, Placement], dict[int, list[Contention]]] = {}
    for record in of_way:
        by_peers = groups.setdefault((record.key, record.placement), {})
        by_peers.setdefault(record.peers, []).append(record)
    rows = []
    for by_peers in groups.values():
        # By number of peers the record with the median cost; only ``devices`` has several.
        medians = {peers: _of_median_cost(records) for peers, records in by_peers.items()}
        first = next(iter(medians.values()))
        facts = view.facts(first.target.stack)
        rows.append(_row(first, medians, facts, of_way))
    # The rows keep the order of the targets in the run.
    targets: list[str] = []
    for record in of_way:
        if record.target.key not in targets:
            targets.append(record.target.key)
    # ``order``: calls from Python first, and of each caller first the unpinned ones.
    rows = sorted(rows, key=lambda row: (targets.index(row.first.target.key), row.order))
    of_way_rows = []
    for row in rows:
        beside = [other for other in rows if _shares_device(row, other)]
        of_way_rows.append(replace(row, twins=_twins(row, rows), slices=_slices(way, beside)))
    return of_way_rows


def _shares_device(row: PeersRow, other: PeersRow) -> bool:
    """Whether both give the same device the same kind of work, through one API. A device gives time
    slices of another length to another API, and a graph keeps it busy where launches do not.
    """
    mine, its = row.first, other.first
    return (mine.target.api, mine.target.adapter, mine.case.unit) == (
        its.target.api,
        its.target.adapter,
        its.case.unit,
    )


def _slices(way: Way, rows: Sequence[PeersRow]) -> Slices | None:
    """The time slices that one of these rows showed; only processes get them. A stack whose one
    process alone is too noisy shows none, though its processes share the same device.
    """
    if way != "processes":
        return None
    for row in rows:
        for record in row.records.values():
            slice_ns, switch_ns = record.value("slice"), record.value("hand_over")
            if slice_ns and switch_ns is not None:
                return Slices(slice_ns, switch_ns)
    return None


def _twins(row: PeersRow, rows: Sequence[PeersRow]) -> tuple[PeersRow, ...]:
    """The rows of the same case in other placements whose costs are the same."""
    twins = []
    for other in rows:
        is_same_case = other.first.key == row.first.key
        if is_same_case and other.first.placement != row.first.placement and _agree(row, other):
            twins.append(other)
    return tuple(twins)


def _agree(row: PeersRow, other: PeersRow) -> bool:
    """Whether the intervals of the costs overlap at every number of peers that both rows have. A
    cost without an interval agrees with none.
    """
    costs, others = row.values("cost"), other.values("cost")
    both = costs.keys() & others.keys()
    for peers in both:
        cost, beside = costs[peers], others[peers]
        if not cost.bounded or not beside.bounded:
            return False
        if cost.floor > beside.ceiling or beside.floor > cost.ceiling:
            return False
    return bool(both)


def shown_rows(rows: Sequence[PeersRow]) -> list[PeersRow]:
    """The rows that a table shows: a pinned row only if it says something else than the unpinned
    row of its case.
    """
    return [row for row in rows if not is_repeated(row)]


def is_repeated(row: PeersRow) -> bool:
    """Whether the row is pinned, and has the costs of the unpinned row of its case and no sure
    comparison with one alone that the unpinned row lacks.
    """
    free = [twin for twin in row.twins if twin.first.placement == "free"]
    if row.first.placement == "free" or not free:
        return False
    # Wide intervals overlap: the costs count as the same, and yet only one row may be sure of a
    # slowdown.
    return _side(row) in ("even", _side(free[0]))


def _side(row: PeersRow) -> SideOfOne:
    """On which side of one alone the largest number of peers of the row surely is."""
    way = row.first.way
    ratios = [ratio for ratio in row.ratios(ratio_name(way)) if ratio.ratio.bounded]
    if not ratios:
        return "even"
    return side_of(max(ratios, key=_peers).ratio)


def side_of(ratio: Value) -> SideOfOne:
    """Whether a ratio to one alone is more or less than 1 with its whole interval."""
    if ratio.floor > 1:
        return "more"
    return "less" if ratio.ceiling < 1 else "even"


@dataclass(frozen=True)
class Pinning:
    """Which pinned rows have the costs of the unpinned row of their case, and which have not."""

    same: tuple[PeersRow, ...]
    other: tuple[PeersRow, ...]


def pinning(rows: Sequence[PeersRow]) -> Pinning:
    """The pinned rows with a cost, by whether pinning changed a cost beyond the intervals."""
    pinned = [row for row in rows if row.first.placement != "free" and row.values("cost")]
    same = [row for row in pinned if is_repeated(row)]
    other = [row for row in pinned if not is_repeated(row)]
    return Pinning(tuple(same), tuple(other))


def counts_of(rows: Sequence[PeersRow], figure: str = "") -> list[int]:
    """All numbers of peers of these rows, or those at which a row has a value of the figure."""
    counts: set[int] = set()
    for row in rows:
        counts.update(row.values(figure) if figure else row.records)
    return sorted(counts)


def _of_median_cost(records: Sequence[Contention]) -> Contention:
    """The record with the median cost; the upper one of two in the middle."""
    by_cost = sorted(records, key=lambda record: record.value("cost") or 0.0)
    return by_cost[len(by_cost) // 2]


def _row(
    first: Contention,
    records: Mapping[int, Contention],
    facts: StackFacts,
    of_way: Sequence[Contention],
) -> PeersRow:
    """The row of these records, which are by number of peers; ``first`` is one of them.

    ``of_way``: all records of the same table. What differs among those of the same stack is what
    the name of the row must tell: adapter, API, device, and the parameters of the case.
    """
    target, case = first.target, first.case
    of_stack = [other.target for other in of_way if other.target.stack == target.stack]
    on = []
    if len({other.adapter for other in of_stack}) > 1:
        on.append(target.adapter)
    if len({other.api for other in of_stack}) > 1:
        on.append(target.api)
    has_several_devices = len({other.device for other in of_stack}) > 1
    device = target.device if has_several_devices else ""

    # Parameters in which this case differs from others on its target by the same caller.
    of_caller = []
    for other in of_way:
        if other.target.key == target.key and other.case.caller == case.caller:
            of_caller.append(other.case.coordinates)
    params = {}
    for name, value in case.coordinates.items():
        if any(other.get(name) != value for other in of_caller):
            params[name] = value
    return PeersRow(records, facts, device, tuple(on), params)


def _judged(rows: Sequence[PeersRow]) -> list[PeersRow]:
    """The rows that sentences are made of: those on GPUs. Where there are none, those of software
    adapters and CPUs too, but not of a device that accepts work and runs nothing.
    """
    running = [row for row in rows if row.first.target.executes]
    on_hardware = []
    for row in running:
        if row.first.target.api != "CPU" and not row.first.target.software:
            on_hardware.append(row)
    return on_hardware or running


@dataclass(frozen=True)
class RatioAt:
    """A ratio of a row to one alone, with the number of peers."""

    row: PeersRow
    peers: int
    ratio: Value


def losses(way: Way, rows: Sequence[PeersRow], below: float = 1.0) -> list[RatioAt]:
    """The cases in which several peers surely do less together than ``below`` times what one does
    alone, the worst first; each with the number of peers that do least.

    Only unpinned ones, as programs run. Empty for a way in which one alone is no alternative.
    """
    # It has the ways ``processes`` and ``threads``. With a process for each device, for example,
    # one alone would leave the other devices idle.
    if way not in LEAST_WORK:
        return []
    lost = []
    for row in _judged(rows):
        # ``work``: what all do together, relative to one alone.
        works = [work for work in row.resolved_ratios("work") if work.peers > 1]
        if not works or row.first.placement != "free":
            continue
        least = min(works, key=_size)  # ``_size``: the value of the ratio
        # Surely: the whole interval of the ratio lies below.
        if least.ratio.ceiling < below:
            lost.append(least)
    return sorted(lost, key=_size)


def _peers(of: RatioAt) -> int:
    return of.peers


def _size(of: RatioAt) -> float:
    """What sorts ratios: their value."""
    return of.ratio.value


@dataclass(frozen=True)
class PeersVerdicts:
    """How this number of peers compares with one alone, case by case, as the intervals show it.

    ``more``, ``less``: all together surely do more, or less, than one (beside ``busy`` processes:
    the one is clearly slower, or surely faster, than alone), the lowest ratio first. ``even``:
    neither.
    """

    peers: int
    more: tuple[RatioAt, ...]
    less: tuple[RatioAt, ...]
    even: tuple[RatioAt, ...]

    @property
    def largest(self) -> tuple[RatioAt, ...]:
        """The largest of the three groups."""
        return max(self.more, self.less, self.even, key=len)

    @property
    def all(self) -> tuple[RatioAt, ...]:
        """Every case that was judged."""
        return self.more + self.less + self.even


def verdicts(way: Way, rows: Sequence[PeersRow]) -> PeersVerdicts | None:
    """How the largest number of peers compares with one alone, for the rows that a table shows;
    None where no ratio has an interval.

    The ratio is how many times as much all do together; beside ``busy`` processes, how many times
    as slow the one is that is measured.
    """
    known: list[RatioAt] = []
    for row in _judged(shown_rows(rows)):
        for ratio in row.ratios(ratio_name(way)):
            if ratio.ratio.bounded and ratio.peers >= fewest_peers(way):
                known.append(ratio)
    peers = max((ratio.peers for ratio in known), default=0)
    more: list[RatioAt] = []
    less: list[RatioAt] = []
    even: list[RatioAt] = []
    for found in sorted(known, key=_size):
        if found.peers != peers:
            continue
        by_side: dict[SideOfOne, list[RatioAt]] = {"more": more, "less": less, "even": even}
        by_side[side_of(found.ratio)].append(found)
    return PeersVerdicts(peers, tuple(more), tuple(less), tuple(even)) if peers else None


def ratio_name(way: Way) -> str:
    """The figure that compares peers with one alone: what all do together, or, beside busy
    processes, how slow the one is.
    """
    return "slowdown" if way == "busy" else "work"


def fewest_peers(way: Way) -> int:
    """The least number of peers that is a comparison: busy processes count without the one that is
    measured.
    """
    return 1 if way == "busy" else 2


def not_judged(way: Way, rows: Sequence[PeersRow]) -> list[PeersRow]:
    """The rows with a ratio that sentences leave out, because their work runs on the CPU. The table
    shows them.
    """
    shown = shown_rows(rows)
    judged = [id(row) for row in _judged(shown)]
    return [row for row in shown if id(row) not in judged and row.values(ratio_name(way))]


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
    """The stacks that do the same number of units a second with many peers, however different they
    are alone: they meet at what the device can do. Each by API and number of peers.
    """
    # Only stacks of one API share a rate, and only at their largest K does the device surely have
    # enough to do.
    limited: dict[tuple[str, int], list[RatioAt]] = {}
    for row in _judged(rows):
        # "each": the time of a unit of all peers together, ns; by number of peers, where it is
        # ``ok``.
        times = row.resolved("each")
        peers = max(times, default=0)
        # Pinned peers are not as programs run; and one peer shows no common rate.
        if peers <= 1 or row.first.placement != "free":
            continue
        # ``limit``: what the run found that the peers wait for, such as the device or a lock.
        if row.limited(peers).limit == "device":
            of_api = limited.setdefault((row.first.target.api, peers), [])
            of_api.append(RatioAt(row, peers, times[peers]))
    # ``ratio`` holds the time of a unit, ns. ``low``, ``high``: the lowest and the highest end of
    # all their intervals. They meet where these differ by less than the factor ``_SAME_RATE``.
    for (_api, peers), alike in limited.items():
        low = min(each.ratio.floor for each in alike)
        high = max(each.ratio.ceiling for each in alike)
        # ``without_device``: the stack with its adapter and parameters; two equal GPUs count once.
        stacks = {each.row.without_device for each in alike}
        if len(stacks) > 1 and high < _SAME_RATE * low:
            yield MeetAtDevice(peers, tuple(each.row for each in alike), low, high)


@dataclass(frozen=True)
class SlowestPlacing:
    """A case that something limits, with a process for each device: its slowdown in each placement
    of the processes, at the number of devices at which it is slowest.
    """

    slowdowns: tuple[RatioAt, ...]


@dataclass(frozen=True)
class Placing:
    """How slow cases are that run in one process for each device. ``limited``: those that something
    limits. ``largest``: of the slowdowns of all cases the one whose interval reaches highest.
    """

    limited: tuple[SlowestPlacing, ...]
    largest: Value

    @property
    def highest(self) -> float:
        """The upper end of the interval of the largest slowdown."""
        return self.largest.ceiling

    @property
    def is_bounded(self) -> bool:
        """Whether all slowdowns have an upper end."""
        return math.isfinite(self.highest)


def placing(rows: Sequence[PeersRow]) -> Placing | None:
    """How much slower than alone cases are that run in one process for each device, unpinned and
    pinned to processors; None where no slowdown is known.
    """
    cases: dict[str, list[PeersRow]] = {}
    for row in _judged(rows):
        if row.values("slowdown"):
            cases.setdefault(row.first.key, []).append(row)
    if not cases:
        return None
    limited: list[SlowestPlacing] = []
    every: list[Value] = []
    for of_case in cases.values():
        slowdowns: list[RatioAt] = []
        for row in of_case:
            slowdowns += row.ratios("slowdown")
        every += [slowdown.ratio for slowdown in slowdowns]
        # Of the number of devices at which the case is slowest, all placements are shown.
        peers = _slowest_limited(slowdowns)
        if peers is not None:
            at_slowest = [slowdown for slowdown in slowdowns if slowdown.peers == peers]
            limited.append(SlowestPlacing(tuple(at_slowest)))
    return Placing(tuple(limited), max(every, key=_ceiling))


def _ceiling(value: Value) -> float:
    return value.ceiling


def _slowest_limited(slowdowns: Sequence[RatioAt]) -> int | None:
    """The number of peers at which a case is slowest, of those numbers at which it was found what
    limits it; None where nothing does. Of equal slowdowns the most peers count.
    """
    limited = []
    for slowdown in slowdowns:
        if slowdown.row.limited(slowdown.peers).limit:
            limited.append(slowdown)
    if not limited:
        return None
    return max(limited, key=lambda slowdown: (slowdown.ratio.value, slowdown.peers)).peers
