"""Which figures show what limits callers at once: for each limit the cases with their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from overhead.contention.rows import PeersRow, RatioAt
from overhead.results import Limit, Why, ratio


@dataclass
class LimitEvidence:
    """The cases that one limit slows, and the figures that show it, all at the most peers of each
    case.

    ``slowdowns``: how many times as long a unit takes as with one alone; ``enqueue``: the same of
    the enqueue time; ``from_python``: the time of all threads that call from Python, relative to as
    many from compiled code. ``slices``, ``switches``: how long the device works for one process,
    and how long it takes to switch, ns. ``reasons``: why the limit is given, by case.
    """

    limit: Limit
    slowdowns: list[RatioAt] = field(default_factory=list)
    enqueue: list[RatioAt] = field(default_factory=list)
    from_python: list[RatioAt] = field(default_factory=list)
    slices: list[RatioAt] = field(default_factory=list)
    switches: list[RatioAt] = field(default_factory=list)
    reasons: list[tuple[PeersRow, Why]] = field(default_factory=list)


def evidence(rows: Sequence[PeersRow]) -> list[LimitEvidence]:
    """The evidence for each limit of these rows, in the order of the rows. Rows that nothing
    clearly slows have none.
    """
    by_limit: dict[Limit, LimitEvidence] = {}
    for row in rows:
        slowdowns = row.values("slowdown")
        if not slowdowns:
            continue
        peers = max(slowdowns)
        limited = row.limited(peers)
        if not limited.limit:
            continue
        found = by_limit.setdefault(limited.limit, LimitEvidence(limited.limit))
        found.slowdowns.append(RatioAt(row, peers, slowdowns[peers]))
        found.reasons.append((row, limited.why))
        found.enqueue += _enqueue(row, peers)
        if limited.limit == "interpreter":
            found.from_python += _from_python(row, peers, rows)
        found.slices += _at_most_peers(row, "slice")
        found.switches += _at_most_peers(row, "hand_over")
    return list(by_limit.values())


def _enqueue(row: PeersRow, peers: int) -> Iterator[RatioAt]:
    """The enqueue time relative to that of one alone, where both were measured."""
    alone = None
    # Pinned peers were measured together only, so one alone may stand in the row of a twin.
    for of_case in (row, *row.twins):
        if alone is None and 1 in of_case.records:
            alone = of_case.records[1].measured("issue")
    longer = ratio(row.records[peers].measured("issue"), alone)
    if longer is not None:
        yield RatioAt(row, peers, longer)


def _from_python(row: PeersRow, peers: int, rows: Sequence[PeersRow]) -> Iterator[RatioAt]:
    """The time of all these threads, relative to that of as many that make the same calls from
    compiled code.
    """
    for other in rows:
        is_same = (
            other.first.target.key == row.first.target.key
            and other.first.placement == row.first.placement
            and other.first.case.caller == "native"
        )
        if is_same and peers in other.records:
            each = other.records[peers].measured("each")
            longer = ratio(row.records[peers].measured("each"), each)
            if longer is not None:
                yield RatioAt(row, peers, longer)


def _at_most_peers(row: PeersRow, figure: str) -> Iterator[RatioAt]:
    """The figure at the largest number of peers at which its interval lies above zero and is narrow
    enough (it is *resolved*), if there is one.
    """
    values = row.resolved(figure)
    if values:
        peers = max(values)
        yield RatioAt(row, peers, values[peers])
