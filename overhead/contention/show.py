"""What a run measured of contention, as blocks: for each way a finding, a table, and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.contention.rows import (
    PeersRow,
    RatioAt,
    losses,
    meetings,
    most_peers,
    placing,
    rows_of,
)
from overhead.reading.view import View
from overhead.results import Value, Way, Why
from overhead.words.contention import peers as words
from overhead.words.format import TIMES, number, positive_spread
from overhead.words.reasons import reasons_said, sentence

_STACK, _CALLED, _PINNED, _LIMIT, _RATIO, _FIRST_COUNT = range(6)
"""The columns; those of the numbers of peers begin at the last of these, and that of each peer
follows them.
"""


def finding_sentences(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """How the most peers compare with one alone, for one caller; where they meet; what to do if all
    do less than one.

    Nothing where no comparison is resolved.
    """
    found = most_peers(way, rows)
    if found is None:
        return []
    sentences = [words.most_peers(way, found)]
    sentences += [words.meeting(way, one) for one in meetings(rows)]
    if worst := losses(way, rows):
        sentences.append(words.losses(way, worst))
    return sentences


def placing_sentences(rows: Sequence[PeersRow]) -> list[str]:
    """Of a process a device: how much slower than alone the cases with a limit are, unpinned and
    pinned.
    """
    found = placing(rows)
    return [words.placing(found)] if found is not None else []


def way_blocks(view: View, way: Way) -> Iterator[Part]:
    """The finding, the table, the limits and the missing cases of one way. Empty if the run did not
    measure it.
    """
    rows = rows_of(view, way)
    if said := finding_sentences(way, rows) + (placing_sentences(rows) if way == "devices" else []):
        yield Text(said)
    if valued := [row for row in rows if row.values("cost")]:
        yield _table(way, valued)
    if notes := [*_notes(valued), *_reasons(rows)]:
        yield Text(notes, quiet=True)


def _table(way: Way, rows: Sequence[PeersRow]) -> Table:
    counts = sorted(set().union(*(row.records for row in rows)))
    most = max(max(row.values("cost")) for row in rows)
    alone, *some, at_most = range(_FIRST_COUNT, _FIRST_COUNT + max(2, len(counts)))
    each_peer = _FIRST_COUNT + len(counts)
    meanings = {each_peer: words.each_peer_meaning(most)}
    if way == "devices":
        meanings[_FIRST_COUNT] = words.MEDIAN_DEVICE
    return Table(
        words.table_title(way, most),
        words.columns(way, counts),
        [_cells(way, row, counts, most) for row in rows],
        range(_RATIO, each_peer + 1),
        optional=(each_peer, *some, alone),
        important=(at_most, _PINNED),
        meanings=meanings,
    ).without_empty(2)


def _cells(way: Way, row: PeersRow, counts: Sequence[int], most: int) -> list[str | Cell]:
    """The cells of a row. ``most``: the number of peers that the last columns are about."""
    costs = row.values("cost")
    ratio = row.values("slowdown" if way == "busy" else "work").get(most)
    last = row.records[most] if most in costs else None
    return [
        Cell(words.label(row), row.first.target.stack),
        words.caller_cell(row),
        words.placement_cell(row),
        Cell(words.limit_cell(last), hover=sentence(last.why)) if last else "",
        _short(ratio, TIMES) if ratio else "",
        *(_short(costs[k] / 1e3) if k in costs else "" for k in counts),
        words.each_peer_cell(last.costs) if last else "",
    ]


def _short(value: Value, sign: str = "") -> str | Cell:
    """The value with its interval where a pointer rests; the interval alone of a noisy one."""
    if value.status == "ok":
        return Cell(number(value) + sign, hover=positive_spread(value))
    return words.noisy_cell(value, sign)


def _notes(rows: Sequence[PeersRow]) -> Iterator[str]:
    """How a noisy figure is shown; the slices of time that the device gives; and from what each
    limit follows.
    """
    if any(row.shows_noise for row in rows):
        yield words.RANGE_IS_NOISY
    if any(row.reaches_above for row in rows):
        yield words.RANGE_ABOVE
    for figure in ("slice", "hand_over"):
        if found := _at_most_peers(rows, figure):
            yield words.of_device(figure, found)
    limits: list[tuple[str, Why]] = []
    for row in rows:
        last = row.records[max(row.values("cost"))]
        if row.first.placement == "free" and last.limit and last.why:
            limits.append((words.row_of_all(row), last.why))
    yield from reasons_said(limits, words.WHAT_LIMITS)


def _at_most_peers(rows: Sequence[PeersRow], figure: str) -> list[RatioAt]:
    """The figure of each row at the largest number of peers at which it is resolved."""
    found = []
    for row in rows:
        if values := row.resolved(figure):
            peers = max(values)
            found.append(RatioAt(row, peers, values[peers]))
    return found


def _reasons(rows: Sequence[PeersRow]) -> list[str]:
    """Each reason for a missing cost, with the cases that it explains."""
    missing: list[tuple[str, Why]] = []
    for row in rows:
        peers: dict[Why, list[int]] = {}
        for k in sorted(row.records.keys() - row.values("cost").keys()):
            one, figure = row.records[k], row.records[k].figure("cost")
            peers.setdefault(one.reason or (figure and figure.reason) or one.status, []).append(k)
        missing += [(words.case(row, *ks), why) for why, ks in peers.items()]
    return reasons_said(missing, words.NO_COST)
