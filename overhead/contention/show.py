"""What a run measured of contention, as blocks: for each way a finding, a table, and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.contention.rows import (
    PeersRow,
    RatioAt,
    counts_of,
    losses,
    meetings,
    most_peers,
    placing,
    rows_of,
)
from overhead.reading.view import View
from overhead.results import Contention, Value, Way, Why
from overhead.words.contention import peers as words
from overhead.words.format import TIMES, number, positive_spread
from overhead.words.reasons import reasons_said, sentence

_STACK, _CALLED, _PINNED, _LIMIT, _RATIO, _FIRST_COUNT = range(6)
"""The columns; those of the numbers of peers begin at the last of these, and that of each peer
follows them.
"""


def finding_sentences(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """What the rows of a table of contention show, in sentences: how the most peers compare with
    one alone; which stacks come to the same rate; what to do if all together do less than one.

    No sentence where no comparison is precise enough.
    """
    most = most_peers(way, rows)
    if most is None:
        return []
    sentences = [words.most_peers(way, most)]
    sentences += [words.meeting(way, meeting) for meeting in meetings(rows)]
    # All together do less than one alone.
    worst = losses(way, rows)
    if worst:
        sentences.append(words.losses(way, worst))
    return sentences


def placing_sentences(rows: Sequence[PeersRow]) -> list[str]:
    """Of a process a device: how much slower than alone the cases with a limit are, unpinned and
    pinned.
    """
    placed = placing(rows)
    return [words.placing(placed)] if placed is not None else []


def way_blocks(view: View, way: Way) -> Iterator[Part]:
    """What terminal and page show of one way to run many peers at once: what was found, the table,
    what limits the peers, and why cases are missing. Empty if the run did not measure it.
    """
    rows = rows_of(view, way)
    sentences = finding_sentences(way, rows)
    if way == "devices":
        sentences += placing_sentences(rows)
    if sentences:
        yield Text(sentences)
    # Rows with a cost; the others only give a reason below the table.
    valued = [row for row in rows if row.values("cost")]
    if valued:
        yield _table(way, valued)
    notes = [*_notes(valued), *_reasons(rows)]
    if notes:
        yield Text(notes, quiet=True)


def _table(way: Way, rows: Sequence[PeersRow]) -> Table:
    """The table of these rows: their costs, in a column for each number of peers, after how the
    most peers compare with one alone, and what limits them.

    Where there is no room, ``optional`` columns are hidden first and ``important`` ones last.
    """
    # ``alone``, ``some``, ``at_most``: the columns of one peer, of the numbers between, and of the
    # most.
    counts = counts_of(rows)
    most = max(max(row.values("cost")) for row in rows)
    # The columns of costs begin at ``_FIRST_COUNT``, and that of each peer follows them. With only
    # one number of peers ``at_most`` is already that of each peer.
    alone, *some, at_most = range(_FIRST_COUNT, _FIRST_COUNT + max(2, len(counts)))
    each_peer = _FIRST_COUNT + len(counts)
    meanings = {each_peer: words.each_peer_meaning(most)}
    if way == "devices":
        meanings[_FIRST_COUNT] = words.MEDIAN_DEVICE
    return Table(
        words.table_title(way, most),
        words.columns(way, counts),
        [_cells(way, row, counts, most) for row in rows],
        # The columns that hold numbers.
        range(_RATIO, each_peer + 1),
        optional=(each_peer, *some, alone),
        important=(at_most, _PINNED),
        meanings=meanings,
        # Columns without any text are left out, but never the stack and how it is called.
    ).without_empty(2)


def _cells(way: Way, row: PeersRow, counts: Sequence[int], most: int) -> list[str | Cell]:
    """The cells of a row of the table. ``counts``: the numbers of peers that have a column of
    costs. ``most``: the number that the columns of the limit, the ratio and each peer are about.
    """
    costs = row.values("cost")
    # At the most peers, as in the first sentence.
    ratio = row.values("slowdown" if way == "busy" else "work").get(most)
    limit: str | Cell = ""
    each_peer = ""
    if most in costs:
        last = row.records[most]
        limit = Cell(words.limit_cell(last), hover=sentence(last.why))
        each_peer = words.each_peer_cell(last.costs)
    # Costs are in ns, and the table shows us.
    of_counts = [_short(costs[peers] / 1e3) if peers in costs else "" for peers in counts]
    return [
        # With the stack's colour before the text.
        Cell(words.label(row), row.first.target.stack),
        words.caller_cell(row),
        words.placement_cell(row),
        limit,
        _short(ratio, TIMES) if ratio else "",
        *of_counts,
        each_peer,
    ]


def _short(value: Value, sign: str = "") -> str | Cell:
    """The value with its interval where a pointer rests; the interval alone of a noisy one."""
    if value.status == "ok":
        return Cell(number(value) + sign, hover=positive_spread(value))
    return words.noisy_cell(value, sign)


def _notes(rows: Sequence[PeersRow]) -> Iterator[str]:
    """What stands below a table: how it shows a noisy figure; how long the device works for one
    process before it turns to the next (``slice``), and how long the turn takes (``hand_over``);
    and from what each limit follows.
    """
    if any(row.shows_noise for row in rows):
        yield words.RANGE_IS_NOISY
    # K peers that seem to do more than K times the work of one.
    if any(row.reaches_above for row in rows):
        yield words.RANGE_ABOVE
    for figure in ("slice", "hand_over"):
        of_device = _at_most_peers(rows, figure)
        if of_device:
            yield words.of_device(figure, of_device)
    # What limits the peers, for unpinned rows.
    limits: list[tuple[str, Why]] = []
    for row in rows:
        last = row.records[max(row.values("cost"))]
        if row.first.placement == "free" and last.limit and last.why:
            limits.append((words.row_of_all(row), last.why))
    yield from reasons_said(limits, words.WHAT_LIMITS)


def _at_most_peers(rows: Sequence[PeersRow], figure: str) -> list[RatioAt]:
    """The figure of each row at the largest number of peers at which its interval lies above zero
    and is narrow enough (it is *resolved*). Rows without such a value are left out.
    """
    at_most = []
    for row in rows:
        values = row.resolved(figure)
        if values:
            peers = max(values)
            at_most.append(RatioAt(row, peers, values[peers]))
    return at_most


def _reasons(rows: Sequence[PeersRow]) -> list[str]:
    """Each reason for a missing cost, with the cases and numbers of peers that it explains."""
    missing: list[tuple[str, Why]] = []
    for row in rows:
        by_reason: dict[Why, list[int]] = {}
        for peers in sorted(row.records.keys() - row.values("cost").keys()):
            by_reason.setdefault(_why_no_cost(row.records[peers]), []).append(peers)
        for why, counts in by_reason.items():
            missing.append((words.case(row, *counts), why))
    return reasons_said(missing, words.NO_COST)


def _why_no_cost(record: Contention) -> Why:
    """Why the record has no cost: its own reason, else that of the figure, else its status."""
    figure = record.figure("cost")
    if record.reason:
        return record.reason
    if figure is not None and figure.reason:
        return figure.reason
    return record.status
