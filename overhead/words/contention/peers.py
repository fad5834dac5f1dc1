"""The rows, the table and the findings of callers at once in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from overhead.contention.rows import MeetAtDevice, MostPeers, PeersRow, Placing, RatioAt
from overhead.devices import without_brackets
from overhead.reading.plain_text import plain
from overhead.reading.view import parameter_texts
from overhead.results import Caller, Contention, Limit, Placement, Value, Way
from overhead.words.format import MICRO, TIMES, between, factor_spread, listed, micro_of, number
from overhead.words.names import CALLER_WORDS

PAGE_TITLE = "Many at once"
ABOUT_MANY_AT_ONCE = (
    "What a kernel launch costs while other processes or threads of the same machine launch kernels"
    " too."
)
ADDS_A_TENSOR = "On this page PyTorch runs x.add_(y); on the first page PyTorch runs x.add_(1)."
RANGE_IS_NOISY = "A range without a value is the interval of a noisy cost."
RANGE_ABOVE = (
    "K callers do at most K times as much work as one caller. If a range goes above K, the cost at"
    " K=1 is noisy."
)
MEDIAN_DEVICE = "The cost at K=1 is the median of the devices."
WHAT_LIMITS = "What limits"
PINNED_COLUMN = "pinned to"
EACH_PEER_COLUMN = "lowest to highest"
LIMIT_COLUMN = "limit"
NO_COST = "No cost of"
_PINNED: dict[Placement, str] = {"free": "", "core": "a core", "node": "a node"}
_CALLERS: dict[Caller, str] = {
    "binding": "Python",
    "browser": "JavaScript",
    "ffi": "Python, no wrapper objects",
    "native": "compiled code",
}
"""Callers in the column "called from"."""
_LIMITS: dict[Limit, str] = {
    "": "none clear",
    "processors": "too few CPU cores",
    "interpreter": "Python's lock",
    "lock": "shared lock",
    "slices": "time slices",
    "device": "the device",
    "unknown": "not known",
}
"""What limits, in the table; docs/contention.md tells what each means."""
_DRIVER_LOCK = "driver lock"
"""A lock where the peers are processes: these share no lock of Python or of a library."""
_OF_DEVICE = {
    "slice": "The device works for one process at a time, in time slices of this length",
    "hand_over": "Switching the device from one process to another takes this long",
}
"""What figures of a device are, by their names."""


@dataclasses.dataclass(frozen=True)
class WayWords:
    """A way in words. ``finding``: how a sentence on so many peers begins.

    ``advice``: what to use where all together surely do less than one.
    """

    title: str
    finding: str
    advice: str = ""


PEER_WORDS: dict[Way, WayWords] = {
    "processes": WayWords(
        "Processes on one device",
        "{} processes on one device together do",
        "one process for each device",
    ),
    "threads": WayWords(
        "Threads of one process",
        "{} threads of one process together do",
        "one thread for all launches",
    ),
    "devices": WayWords(
        "A process for each device", "{} processes, each on its own device, together do"
    ),
    "busy": WayWords(
        "While other processes are busy", "while {} other processes are busy, a launch costs"
    ),
}


def label(row: PeersRow) -> str:
    """The stack of a row, and what tells it apart from other rows."""
    return " ".join([row.first.target.stack, *_device(row), *_case(row), *_software(row)])


def label_without_software(row: PeersRow) -> str:
    """The same, also where the adapter computes on the CPU."""
    return " ".join([row.first.target.stack, *_device(row), *_case(row)])


def name(row: PeersRow) -> str:
    """The stack inside a sentence, where all devices count as one: ``the CUDA driver``."""
    return " ".join([plain(row.facts.label, 40), *_case(row), *_software(row)])


def _device(row: PeersRow) -> list[str]:
    return [f"#{plain(row.device, 16)}"] if row.device else []


def _case(row: PeersRow) -> list[str]:
    """What tells a row apart from other rows of its stack: the adapter, and its parameters."""
    parameters = parameter_texts(dict(row.params))
    adapter = " ".join(plain(without_brackets(name), 28) for name in row.on)
    return [f"on {adapter}", *parameters] if adapter else parameters


def _software(row: PeersRow) -> list[str]:
    return ["(software)"] if row.first.target.software else []


def called(row: PeersRow) -> str:
    """The caller, and the placement if it is not free: ``from Python, pinned to a core``."""
    caller = CALLER_WORDS[row.first.case.caller]
    pinned = _PINNED[row.first.placement]
    return f"{caller}, pinned to {pinned}" if pinned else caller


def caller_cell(row: PeersRow) -> str:
    """The caller in its column."""
    return _CALLERS[row.first.case.caller]


def placement_cell(row: PeersRow) -> str:
    """To what the peers are pinned, in its column."""
    return _PINNED[row.first.placement]


def limit_cell(record: Contention) -> str:
    """What limits the peers of the record, in its column."""
    if record.limit == "lock" and record.way != "threads":
        return _DRIVER_LOCK
    return _LIMITS[record.limit]


def each_peer_cell(costs: Sequence[float]) -> str:
    """The lowest and the highest cost of a peer; '' of one peer."""
    if len(costs) <= 1:
        return ""
    return f"{micro_of(min(costs))} to {micro_of(max(costs))}"


def ratio_column(way: Way) -> str:
    """The heading of the column that compares with one alone."""
    return "vs. alone" if way == "busy" else "together"


def columns(way: Way, counts: Sequence[int]) -> list[str]:
    """The headings of a table of callers at once. ``way``: what they are, such as "threads";
    ``counts``: how many, a column for each.
    """
    # ``LIMIT_COLUMN``: what limits the cost. ``ratio_column``: the heading of the ratio to one
    # alone. ``EACH_PEER_COLUMN``: the costs of the fastest and of the slowest caller.
    of_counts = [f"K={k}" for k in counts]
    return [
        "stack",
        "called from",
        PINNED_COLUMN,
        LIMIT_COLUMN,
        ratio_column(way),
        *of_counts,
        EACH_PEER_COLUMN,
    ]


def table_title(way: Way, most: int) -> str:
    """The title of a table of callers at once. ``most``: the largest number of callers (peers) with
    a cost, at which two columns compare.
    """
    # K: the number of callers, as in the headings of the columns.
    of_k = "while K other processes are busy" if way == "busy" else f"for each of K {way}"
    ratios = ratio_column(way)
    return (
        f'Cost of one dispatch or launch {of_k}, {MICRO}; "{ratios}" and "{LIMIT_COLUMN}" at'
        f" K={most}"
    )


def each_peer_meaning(most: int) -> str:
    """What the column "each peer" means."""
    return f'"{EACH_PEER_COLUMN}": the costs of the fastest and of the slowest caller at K={most}.'


def most_peers(way: Way, found: MostPeers) -> str:
    """A sentence on how the largest number of callers compares with one alone: from the row that
    gains least to the row that gains most. ``way``: what they are; ``busy``: the others only load
    the CPU, so the cost of one is told and not the work of all.
    """
    # The rows with the lowest and the highest ratio. ``ratio``: how many times the work of one
    # alone all do together; beside busy processes, how many times as slow the one is.
    least, greatest = found.least, found.greatest
    times = f"{number(least.ratio)}{TIMES} ({name(least.row)})"
    if greatest.row is not least.row:
        times += f" to {number(greatest.ratio)}{TIMES} ({name(greatest.row)})"
    # All rows of the sentence have this caller.
    caller = called(least.row)
    # ``finding``: the beginning of the sentence for these callers, with a place for their number.
    begin = f"{caller[0].upper()}{caller[1:]}, {PEER_WORDS[way].finding.format(least.peers)}"
    if way == "busy":
        sentence = f"{begin} {times} as much as alone."
    else:
        sentence = f"{begin} {times} as much work as one alone."
    if not found.noisy:
        return sentence
    noisy = listed([name(row) for row in found.noisy])
    return f"{sentence} Not included, because too noisy: {noisy}."


def meeting(way: Way, found: MeetAtDevice) -> str:
    """A sentence on the stacks that come to the same rate when many callers use them, because the
    device limits all of them.
    """
    names = list(dict.fromkeys(map(name, found.rows)))
    # ``low`` and ``high``: the ends of the intervals of all these stacks, ns a unit of all callers
    # together.
    rate = between(found.low / 1e3, found.high / 1e3)
    return (
        f"The device limits {listed(names)}: {found.peers} {way} together need {rate} {MICRO} per"
        " dispatch or launch through each of these stacks. So a stack that is slow with one of the"
        f" {way} gains more from several."
    )


def losses(way: Way, found: Sequence[RatioAt]) -> str:
    """A sentence on the cases in which several callers do less work together than one alone, and
    what to use instead.
    """
    cases = [f"{case(loss.row, loss.peers)} {factor_spread(loss.ratio)}" for loss in found]
    advice = PEER_WORDS[way].advice
    return (
        f"Several {way} together do less work than one of the {way} alone: {'; '.join(cases)}. For"
        f" these stacks, use {advice}."
    )


def placing(found: Placing) -> str:
    """A sentence on machines with several devices and a process for each: which cases are clearly
    slower than alone, unpinned and pinned to a core or node. If none is, up to what the intervals
    reach.
    """
    if not found.limited:
        sentence = "No case is clearly slower than the same case alone"
        if found.is_bounded:
            # ``highest``: the upper end of the interval of the largest slowdown.
            sentence += f"; no interval goes above {found.highest:.2f}{TIMES}"
        return f"{sentence}."
    cases = []
    for limited in found.limited:
        # The slowdowns of one case: one for each way of pinning, at the same number of devices
        # (peers).
        first = limited.slowdowns[0]
        slowdowns = []
        for slowdown in limited.slowdowns:
            slowdowns.append(f"{called(slowdown.row)} {factor_spread(slowdown.ratio)}")
        cases.append(f"{name(first.row)} {', '.join(slowdowns)} (K={first.peers})")
    return f"Slower than the same case alone: {'; '.join(cases)}."


def of_device(figure: str, found: Sequence[RatioAt]) -> str:
    """A sentence on times of the device that some cases show: how long it works for one process at
    a time ("slice"), or how long switching to another one takes ("hand_over"). ``figure``: which of
    them.
    """
    cases = []
    for shown in found:
        # Here ``ratio`` holds no ratio but the time, ns.
        time = number(shown.ratio / 1e3)
        cases.append(f"{case(shown.row, shown.peers)} {time} {MICRO}")
    return f"{_OF_DEVICE[figure]}: {'; '.join(cases)}."


def case(row: PeersRow, *peers: int) -> str:
    """A row with its numbers of peers."""
    numbers = ", ".join(map(str, peers))
    return f"{name(row)} {called(row)} (K={numbers})"


def row_of_all(row: PeersRow) -> str:
    """A row, whatever the number of peers."""
    return f"{name(row)} {called(row)}"


def noisy_cell(value: Value, sign: str) -> str:
    """A noisy value in a table: its interval alone, or its status where that is not known."""
    if value.low is None or value.high is None:
        return f"{number(value)}{sign} {value.status}"
    if value.low <= 0:
        return f"at most {number(value.high)}"
    return between(value.low, value.high)
