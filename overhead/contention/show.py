"""What a run measured of contention, as blocks: for each way a finding, a table, and reasons."""

from __future__ import annotations

import dataclasses
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
from overhead.reading.missing_values import reasons_said
from overhead.reading.view import CALLER_WORDS, CALLERS, STACK_NAMES, View, words
from overhead.results import VALUED, Contention, Limit, Placement, Value, Way

_PINNED: dict[Placement, str] = {"free": "", "core": "a core", "node": "a node"}
_LIMITS: dict[Limit, str] = {
    "": "none clear", "processors": "processors", "interpreter": "Python's lock", "lock": "shared lock",
    "slices": "time slices", "device": "the device", "unknown": "not known",
}  # fmt: skip
"""What limits, in the table; docs/contention.md tells what each means."""


@dataclasses.dataclass(frozen=True)
class WayWords:
    """A way in words. ``finding``: how a sentence on so many peers begins.

    ``advice``: what to use where all together surely do less than ``least`` times as much as one.
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
    """A case on a target in one way and placement, as a table has it. ``records``: by the number of peers."""

    label: str
    records: Mapping[int, Contention]

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
        return STACK_NAMES.get(stack, stack) + re.sub(" #[^ ]+", "", self.label.removeprefix(stack))

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
        rows.append(PeersRow(_label(next(iter(medians.values())), own), medians))
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


def losses(way: Way, rows: Sequence[PeersRow]) -> list[tuple[PeersRow, int, Value]]:
    """The unpinned rows in which all together surely do less than the bound of the way, the worst first.

    Each with the number of peers that do least, and their work beside that of one alone.
    """
    free = [row for row in _judged(rows) if row.first.placement == "free"]
    works = [[(row, k, work) for k, work in row.resolved("work").items() if k > 1] for row in free]
    least = [min(of_row, key=lambda one: one[2].value) for of_row in works if of_row]
    return sorted((one for one in least if one[2].ceiling < PEER_WORDS[way].least), key=lambda one: one[2].value)


def finding_sentences(way: Way, rows: Sequence[PeersRow]) -> list[str]:
    """How the most peers compare with one alone, for one caller; what to do if all do less than one. Else nothing."""
    figure, alone = ("slowdown", "alone") if way == "busy" else ("work", "one alone")
    known = [(row, k, ratio) for row in _judged(rows) for k, ratio in row.resolved(figure).items()]
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
    sentences = [f"{called}, {PEER_WORDS[way].finding.format(peers)} {said} as much as {alone}."]
    if worst := listed([f"{row.name} {row.called}" for row, *_ in losses(way, rows)]):
        sentences.append(f"Several do less than one alone through these: {worst}. Use {PEER_WORDS[way].advice} there.")
    return sentences


def placing_sentences(rows: Sequence[PeersRow]) -> list[str]:
    """Of a process a device: how much slower than alone the cases with a limit are, unpinned and pinned."""
    cases: dict[str, list[PeersRow]] = {}
    for row in _judged(rows):
        if row.values("slowdown"):
            cases.setdefault(row.first.key, []).append(row)
    said, highest = [], 0.0
    for own in cases.values():
        most = max(k for row in own for k in row.values("slowdown"))
        ratios = [(row, ratio) for row in own if (ratio := row.values("slowdown").get(most)) is not None]
        highest = max([highest, *(ratio.ceiling for _, ratio in ratios)])
        if any(row.records[most].limit for row, _ in ratios):
            each = ", ".join(f"{row.called} {factor_spread(ratio)}" for row, ratio in ratios)
            said.append(f"{own[0].name} {each} (K={most})")
    if said:
        return [f"Slower than alone: {'; '.join(said)}."]
    return [f"No case is clearly slower than alone; no interval reaches above {highest:.2f}{TIMES}."] if cases else []


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
            Cell(_LIMITS[last.limit], hover=last.why) if last else "",
        ])  # fmt: skip
    columns = ["stack", "called from", "pinned to", *(f"K={k}" for k in counts), heading, "each peer", "limit"]
    of_k = "beside K busy processes" if way == "busy" else f"for each of K {way}"
    of_k += f", {MICRO}" + ("; K=1: the median device" if way == "devices" else "")
    caption = f'Time of a unit {of_k}. The columns from "{heading}" on: K={most}'
    return Table(caption, columns, cells, range(3, 5 + len(counts)), optional={4 + len(counts): 0}).without_empty(2)


def _short(value: Value, sign: str = "") -> str | Cell:
    """The value with its interval where a pointer rests; the interval alone of a noisy one."""
    if value.status == "ok":
        return Cell(number(value) + sign, hover=positive_spread(value))
    if value.low is None or value.high is None:
        return f"{number(value)}{sign} {value.status}"
    return between(value.low, value.high) if value.low > 0 else f"at most {number(value.high)}"


def _notes(rows: Sequence[PeersRow]) -> Iterator[str]:
    """How a noisy figure is shown; the slices of time that the device gives; and from what each limit follows."""
    if any(v.status != "ok" for row in rows for name in ("cost", "work") for v in row.values(name).values()):
        yield "A range alone is a noisy figure."
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
    missing: list[tuple[str, str]] = []
    for row in rows:
        peers: dict[str, list[str]] = {}
        for k in sorted(row.records.keys() - row.values("cost").keys()):
            one, figure = row.records[k], row.records[k].figure("cost")
            peers.setdefault(one.reason or (figure and figure.reason) or one.status, []).append(str(k))
        missing += [(f"{row.name} {row.called} (K={', '.join(ks)})", plain(why)) for why, ks in peers.items()]
    return reasons_said(missing, "No cost of")
