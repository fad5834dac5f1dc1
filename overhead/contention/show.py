"""What a run measured of contention, as blocks: for each way a finding, a table, and reasons."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.devices import without_brackets
from overhead.reading.format import (
    MICRO,
    TIMES,
    between,
    factor_spread,
    listed,
    micro_of,
    number,
    plain,
    positive_spread,
)
from overhead.reading.view import CALLER_WORDS, CALLERS, View, words
from overhead.results import VALUED, Contention, Limit, Placement, StackFacts, Value, Way, Why
from overhead.words.reasons import reasons_said, sentence

_PINNED: dict[Placement, str] = {"free": "", "core": "a core", "node": "a node"}
_LIMITS: dict[Limit, str] = {
    "": "none clear", "processors": "processors", "interpreter": "Python's lock", "lock": "shared lock",
    "slices": "time slices", "device": "the device", "unknown": "not known",
}  # fmt: skip
"""What limits, in the table; docs/contention.md tells what each means."""
_DRIVER_LOCK = "driver lock"
"""A lock where the peers are processes: these share no lock of Python or of a library."""
_SAME_RATE = 1.25
"""Stacks meet at the device where the fastest and the slowest together need times within this factor."""


@dataclasses.dataclass(frozen=True)
class WayWords:
    """A way in words. ``finding``: how a sentence on so many peers begins.

    ``advice``: what to use where all together surely do less than one. A finding gives it where they surely do less
    than ``least`` times as much.
    """

    title: str
    finding: str
    advice: str = ""
    least: float = 0.0


PEER_WORDS: dict[Way, WayWords] = {
    "processes": WayWords(
        "Processes on one device", "{} processes on one device together do", "one process a device", 0.9
    ),
    "threads": WayWords("Threads of one process", "{} threads of one process together do", "one launching thread", 0.8),
    "devices": WayWords("A process for each device", "{} processes, each on its own device, together do"),
    "busy": WayWords("Beside busy processors", "beside {} busy processes a unit costs"),
}


@dataclasses.dataclass(frozen=True)
class PeersRow:
    """A case on a target in one way and placement, as a table has it.

    ``records``: by the number of peers. ``facts``: of the stack.
    """

    label: str
    records: Mapping[int, Contention]
    facts: StackFacts

    @property
    def first(self) -> Contention:
        """The record of the fewest peers; all have the same target, case and placement."""
        return self.records[min(self.records)]

    @property
    def order(self) -> tuple[int, int]:
        """Sort key: from Python first, and first those that the system places."""
        return CALLERS.index(self.first.case.caller), [*_PINNED].index(self.first.placement)

    @property
    def name(self) -> str:
        """The stack inside a sentence, where all devices count as one: ``the CUDA driver``."""
        stack = self.first.target.stack
        return plain(self.facts.label, 40) + re.sub(" #[^ ]+", "", self.label.removeprefix(stack))

    @property
    def called(self) -> str:
        """The caller in words, and the placement if it is not free: ``from Python, pinned to a core``."""
        pinned = _PINNED[self.first.placement]
        return CALLER_WORDS[self.first.case.caller] + (f", pinned to {pinned}" if pinned else "")

    def values(self, figure: str) -> dict[int, Value]:
        """The figure by the number of peers, where it has a value above zero."""
        found = {k: one.measured(figure) for k, one in sorted(self.records.items()) if one.status in VALUED}
        return {k: value for k, value in found.items() if value is not None and value.value > 0}

    def resolved(self, figure: str) -> dict[int, Value]:
        """The same where the figure is ``ok`` and its interval lies above zero."""
        return {k: value for k, value in self.values(figure).items() if value.status == "ok" and value.resolved}


def rows_of(view: View, way: Way) -> list[PeersRow]:
    """A row for each case and placement that the run measured in this way; those of a target follow each other.

    Of several devices alone it has the one with the median cost.
    """
    own = [one for one in view.fingerprint.contention if one.way == way]
    groups: dict[tuple[str, Placement], dict[int, list[Contention]]] = {}
    for one in own:
        groups.setdefault((one.key, one.placement), {}).setdefault(one.peers, []).append(one)
    rows = []
    for group in groups.values():
        medians = {k: sorted(v, key=lambda one: one.value("cost") or 0.0)[len(v) // 2] for k, v in group.items()}
        first = next(iter(medians.values()))
        rows.append(PeersRow(_label(first, own), medians, view.facts(first.target.stack)))
    targets = list(dict.fromkeys(one.target.key for one in own))
    return sorted(rows, key=lambda row: (targets.index(row.first.target.key), row.order))


def _label(one: Contention, others: Sequence[Contention]) -> str:
    """The stack; in what its device differs from others of the stack, and its case from others by the same caller."""
    target, case = one.target, one.case
    of_stack = [other.target for other in others if other.target.stack == target.stack]
    told_apart = [f for f in ("adapter", "api") if len({getattr(each, f) for each in of_stack}) > 1]
    on = " ".join(plain(without_brackets(getattr(target, f)), 28) for f in told_apart)
    device = f"#{plain(target.device, 16)}" if len({each.device for each in of_stack}) > 1 else ""
    alike = [o.case.coordinates for o in others if o.target.key == target.key and o.case.caller == case.caller]
    differs = {k: v for k, v in case.coordinates.items() if any(other.get(k) != v for other in alike)}
    parts = [target.stack, device, f"on {on}" if on else "", *words(differs), "(software)" if target.software else ""]
    return " ".join(filter(None, parts))


def _judged(rows: Sequence[PeersRow]) -> list[PeersRow]:
    """The rows that a sentence may judge: those on hardware devices if there are any, else all that run their work."""
    running = [row for row in rows if row.first.target.executes]
    return [row for row in running if row.first.target.api != "CPU" and not row.first.target.software] or running


def losses(way: Way, rows: Sequence[PeersRow], below: float = 1.0) -> list[tuple[PeersRow, int, Value]]:
    """The unpinned rows in which all together surely do less than ``below`` times as much as one, the worst first.

    Each with the number of peers that do least, and their work beside that of one alone. Empty for a way in which one
    alone is no alternative.
    """
    if not PEER_WORDS[way].advice:
        return []
    free = [row for row in _judged(rows) if row.first.placement == "free"]
    works = [[(row, k, work) for k, work in row.resolved("work").items() if k > 1] for row in free]
    least = [min(of_row, key=lambda one: one[2].value) for of_row in works if of_row]
    return sorted((one for one in least if one[2].ceiling < below), key=lambda one: one[2].value)


def finding_sentences(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """How the most peers compare with one alone, for one caller; where they meet; what to do if all do less than one.

    Nothing where no comparison is resolved.
    """
    figure, alone = ("slowdown", "alone") if way == "busy" else ("work", "one alone")
    judged = _judged(rows)
    known = [(row, k, ratio) for row in judged for k, ratio in row.resolved(figure).items()]
    peers = max((k for _, k, _ in known), default=0)
    if peers <= (way != "busy"):
        return []
    at_most = [(row, ratio) for row, k, ratio in known if k == peers]
    order = min(row.order for row, _ in at_most)
    ordered = sorted(((row, ratio) for row, ratio in at_most if row.order == order), key=lambda one: one[1].value)
    (least, low), (most, high) = ordered[0], ordered[-1]
    said = f"{number(low)}{TIMES} ({least.name})" + (
        f" to {number(high)}{TIMES} ({most.name})" if most is not least else ""
    )
    called = f"{least.called[0].upper()}{least.called[1:]}"
    noisy = [
        row.name for row in judged if row.order == order and peers in row.values(figure).keys() - row.resolved(figure)
    ]
    unclear = f" Too noisy to be counted here: {listed(noisy)}." if noisy else ""
    sentences = [f"{called}, {PEER_WORDS[way].finding.format(peers)} {said} as much as {alone}.{unclear}"]
    sentences += _meeting_sentences(way, judged)
    if worst := [f"{row.name} {row.called} {factor_spread(work)} (K={k})" for row, k, work in losses(way, rows)]:
        sentences.append(f"Several do less than one alone through {listed(worst)}. Use {PEER_WORDS[way].advice} there.")
    return sentences


def _meeting_sentences(way: Way, rows: Sequence[PeersRow]) -> Iterator[str]:
    """Which stacks come to one rate, because the device limits all of them."""
    # Only stacks of one API share a rate, and only at their largest K does the device surely have enough to do.
    meeting: dict[tuple[str, int], list[tuple[PeersRow, Value]]] = {}
    for row in rows:
        rates = row.resolved("each")
        peers = max(rates, default=0)
        if peers > 1 and row.records[peers].limit == "device" and row.first.placement == "free":
            meeting.setdefault((row.first.target.api, peers), []).append((row, rates[peers]))
    for (_api, peers), met in meeting.items():
        low, high = min(each.floor for _, each in met), max(each.ceiling for _, each in met)
        names = list(dict.fromkeys(row.name for row, _ in met))
        if len(names) > 1 and high < _SAME_RATE * low:
            yield (
                f"The device limits {listed(names)}: {peers} {way} together need {between(low / 1e3, high / 1e3)} "
                f"{MICRO} a unit, whichever stack it is. So a stack that is slower alone gains more from several peers."
            )


def placing_sentences(rows: Sequence[PeersRow]) -> list[str]:
    """Of a process a device: how much slower than alone the cases with a limit are, unpinned and pinned.

    Each with the number of devices at which it is slowest.
    """
    cases: dict[str, list[PeersRow]] = {}
    for row in _judged(rows):
        if row.values("slowdown"):
            cases.setdefault(row.first.key, []).append(row)
    said, highest = [], 0.0
    for own in cases.values():
        slowdowns = [(row, k, ratio) for row in own for k, ratio in row.values("slowdown").items()]
        highest = max([highest, *(ratio.ceiling for _, _, ratio in slowdowns)])
        limited = [(ratio.value, k) for row, k, ratio in slowdowns if row.records[k].limit]
        if limited:
            _, slowest = max(limited)
            each = ", ".join(f"{row.called} {factor_spread(ratio)}" for row, k, ratio in slowdowns if k == slowest)
            said.append(f"{own[0].name} {each} (K={slowest})")
    if said:
        return [f"Slower than alone: {'; '.join(said)}."]
    if not cases:
        return []
    reach = f"; no interval reaches above {highest:.2f}{TIMES}" if math.isfinite(highest) else ""
    return [f"No case is clearly slower than alone{reach}."]


def way_blocks(view: View, way: Way) -> Iterator[Part]:
    """The finding, the table, the limits and the missing cases of one way. Empty if the run did not measure it."""
    rows = rows_of(view, way)
    if said := finding_sentences(way, rows) + (placing_sentences(rows) if way == "devices" else []):
        yield Text(said)
    if valued := [row for row in rows if row.values("cost")]:
        yield _table(way, valued)
    if notes := [*_notes(valued), *_reasons(rows)]:
        yield Text(notes, quiet=True)


def _table(way: Way, rows: Sequence[PeersRow]) -> Table:
    figure, heading = ("slowdown", "against alone") if way == "busy" else ("work", "together")
    counts = sorted({k for row in rows for k in row.records})
    most = max(k for row in rows for k in row.values("cost"))
    cells: list[list[str | Cell]] = []
    for row in rows:
        costs, ratio = row.values("cost"), row.values(figure).get(most)
        last = row.records[most] if most in costs else None
        cells.append([
            Cell(row.label, row.first.target.stack),
            CALLER_WORDS[row.first.case.caller].removeprefix("from "),
            _PINNED[row.first.placement],
            *(_short(costs[k] / 1e3) if k in costs else "" for k in counts),
            _short(ratio, TIMES) if ratio else "",
            f"{micro_of(min(last.costs))} to {micro_of(max(last.costs))}" if last and len(last.costs) > 1 else "",
            Cell(_limit_words(last), hover=sentence(last.why)) if last else "",
        ])  # fmt: skip
    columns = ["stack", "called from", "pinned to", *(f"K={k}" for k in counts), heading, "each peer", "limit"]
    of_k = "beside K busy processes" if way == "busy" else f"for each of K {way}"
    caption = f'Time of a unit {of_k}, {MICRO}; "{heading}" and "limit" at K={most}'
    columns = ["stack", "called from", "pinned to", *(f"K={k}" for k in counts), heading, "each peer", "limit"]
    each_peer = len(columns) - 2
    meanings = {each_peer: f'"each peer": the lowest and the highest cost of a peer at K={most}.'}
    if way == "devices":
        meanings[3] = "K=1: the median device."
    return Table(
        caption, columns, cells, range(3, each_peer + 1), optional=_leaving_first(len(counts)), meanings=meanings
    ).without_empty(2)


def _leaving_first(counts: int) -> dict[int, int]:
    """The ranks of the columns that a narrow terminal leaves out: each peer, then K=2 and up, K=1, the most peers."""
    of_counts = list(range(3, 3 + counts))
    order = [4 + counts, *of_counts[1:-1], *of_counts[:1], *of_counts[1:][-1:]]
    return {column: len(order) - 1 - at for at, column in enumerate(order)}


def _limit_words(record: Contention) -> str:
    """What limits the peers of the record, as the table has it."""
    if record.limit == "lock" and record.way != "threads":
        return _DRIVER_LOCK
    return _LIMITS[record.limit]


def _short(value: Value, sign: str = "") -> str | Cell:
    """The value with its interval where a pointer rests; the interval alone of a noisy one."""
    if value.status == "ok":
        return Cell(number(value) + sign, hover=positive_spread(value))
    if value.low is None or value.high is None:
        return f"{number(value)}{sign} {value.status}"
    return between(value.low, value.high) if value.low > 0 else f"at most {number(value.high)}"


def _reaches_above(row: PeersRow) -> bool:
    """Whether the work of the most peers, K, or the interval of a noisy one, reaches above K times that of one."""
    works = row.values("work")
    if not works:
        return False
    peers = max(works)
    work = works[peers]
    return work.floor > peers or (work.status != "ok" and work.ceiling > peers)


def _notes(rows: Sequence[PeersRow]) -> Iterator[str]:
    """How a noisy figure is shown; the slices of time that the device gives; and from what each limit follows."""
    if any(v.status != "ok" for row in rows for name in ("cost", "work") for v in row.values(name).values()):
        yield "A range alone is a noisy figure."
    if any(map(_reaches_above, rows)):
        yield "K peers do at most K times as much. A range that reaches above comes from a noisy K=1."
    for name, about in (
        ("slice", "Time slices of the device"),
        ("hand_over", "Time to switch the device between processes"),
    ):
        last = [(row, k, value) for row in rows for k, value in [*row.resolved(name).items()][-1:]]
        if said := [f"{row.name} {row.called} (K={k}) {number(value / 1e3)} {MICRO}" for row, k, value in last]:
            yield f"{about}: {'; '.join(said)}."
    free = [row for row in rows if row.first.placement == "free"]
    last_of = ((f"{row.name} {row.called}", row.records[max(row.values("cost"))]) for row in free)
    yield from reasons_said(((name, one.why) for name, one in last_of if one.limit and one.why), "What limits")


def _reasons(rows: Sequence[PeersRow]) -> list[str]:
    """Each reason for a missing cost, with the cases that it explains."""
    missing: list[tuple[str, Why]] = []
    for row in rows:
        peers: dict[Why, list[str]] = {}
        for k in sorted(row.records.keys() - row.values("cost").keys()):
            one, figure = row.records[k], row.records[k].figure("cost")
            peers.setdefault(one.reason or (figure and figure.reason) or one.status, []).append(str(k))
        missing += [(f"{row.name} {row.called} (K={', '.join(ks)})", why) for why, ks in peers.items()]
    return reasons_said(missing, "No cost of")
