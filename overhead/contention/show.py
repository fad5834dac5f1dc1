"""What a run measured of contention, as blocks: for each way a finding, a table, and reasons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.contention.evidence import evidence
from overhead.contention.rows import (
    PeersRow,
    RatioAt,
    counts_of,
    losses,
    meetings,
    not_judged,
    pinning,
    placing,
    ratio_name,
    rows_of,
    shown_rows,
    verdicts,
)
from overhead.reading.view import View
from overhead.results import Contention, Limit, Value, Way, Why
from overhead.words.contention import peers as words
from overhead.words.format import TIMES, number, positive_spread
from overhead.words.reasons import reasons_said, sentence

_STACK, _CALLED, _PINNED, _LIMIT, _RATIO, _FIRST_COUNT = range(6)
"""The columns; those of the numbers of peers begin at the last of these, and that of each peer
follows them.
"""


def answer(way: Way, rows: Sequence[PeersRow]) -> str:
    """The sentence that a table of contention opens with: how the most peers compare with one
    alone, and what limits them; '' where no interval tells.
    """
    if way == "devices":
        placed = placing(rows)
        return words.placing(placed) if placed is not None else ""
    judged = verdicts(way, rows)
    if judged is None:
        return ""
    return words.answer(way, judged, _limits(judged.largest))


def _limits(cases: Sequence[RatioAt]) -> list[Limit]:
    """What limits these cases, each limit once; not of those without a slowdown."""
    limits: list[Limit] = []
    for found in cases:
        limit = found.row.limited(found.peers).limit
        if limit and limit not in limits:
            limits.append(limit)
    return limits


def finding_sentences(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """What else the rows of a table of contention show, in sentences: which stacks come to the same
    rate; what to do if all together do less than one; whether pinning changes anything.
    """
    sentences = [words.meeting(way, meeting) for meeting in meetings(rows)]
    if losses(way, rows):
        sentences.append(words.advice(way))
    pinned = pinning(rows)
    if pinned.same or pinned.other:
        sentences.append(words.pinning(way, pinned))
    return sentences


def way_blocks(view: View, way: Way) -> Iterator[Part]:
    """What terminal and page show of one way to run many peers at once: the answer, the table, what
    else was found, what limits the peers, and why cases are missing. Empty if the run did not
    measure it.
    """
    rows = rows_of(view, way)
    opening = answer(way, rows)
    if opening:
        left_out = not_judged(way, rows)
        said = f"{opening} {words.without(left_out)}" if left_out else opening
        yield Text([said], lead=True)
    # Rows with a cost; the others only give a reason below the table.
    valued = [row for row in shown_rows(rows) if row.values("cost")]
    if valued:
        yield _table(way, valued)
    sentences = finding_sentences(way, rows)
    if sentences:
        yield Text(sentences)
    limits = _limit_lines(way, valued)
    if limits:
        yield Text(limits, quiet=True, folded=words.WHAT_LIMITS)
    notes = [*_notes(valued), *_reasons(rows)]
    if notes:
        yield Text(notes, quiet=True)


def _limit_lines(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """A line for each limit of these rows."""
    shown = evidence(rows)
    judged: list[RatioAt] = []
    for found in shown:
        judged += found.slowdowns
    return [words.limit_line(way, found, judged) for found in shown]


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
    ratio = row.values(ratio_name(way)).get(most)
    limit: str | Cell = ""
    each_peer = ""
    if most in costs:
        limited = row.limited(most)
        limit = Cell(words.limit_name(limited.limit, way), hover=sentence(limited.why))
        each_peer = words.each_peer_cell(row.records[most].costs)
    # Costs are in ns, and the table shows us.
    of_counts = [_short(costs[peers] / 1e3) if peers in costs else "" for peers in counts]
    return [
        # With the stack's colour before the text.
        Cell(words.label(row), row.first.target.stack),
        words.caller_cell(row),
        words.placement_cell(row),
        limit,
        _ratio_cell(way, ratio, most) if ratio else "",
        *of_counts,
        each_peer,
    ]


def _ratio_cell(way: Way, ratio: Value, most: int) -> str | Cell:
    """The ratio to one alone. All of K peers do at most K times as much as one, so the upper end of
    an interval above K says nothing.
    """
    if way != "busy" and ratio.status != "ok" and ratio.bounded and ratio.ceiling > most:
        return Cell(words.at_least(ratio), hover=positive_spread(ratio))
    return _short(ratio, TIMES)


def _short(value: Value, sign: str = "") -> str | Cell:
    """The value with its interval where a pointer rests; the interval alone of a noisy one."""
    if value.status == "ok":
        return Cell(number(value) + sign, hover=positive_spread(value))
    return words.noisy_cell(value, sign)


def _notes(rows: Sequence[PeersRow]) -> Iterator[str]:
    """What stands below a table: how it shows a noisy figure, and peers that seem to do more than
    they can.
    """
    if any(row.shows_noise for row in rows):
        yield words.RANGE_IS_NOISY
    # K peers that seem to do more than K times the work of one.
    if any(row.reaches_above for row in rows):
        yield words.RANGE_ABOVE


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
